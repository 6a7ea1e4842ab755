"""pybpe inspect."""

from __future__ import annotations

import argparse
from typing import Any

from .common import add_command, add_common, load, report


def add_inspect(commands: Any) -> None:
    parser = add_command(
        commands,
        "inspect",
        "show what is in a tokenizer",
        "Prints the facts of a tokenizer, its special tokens, and its first, last and longest tokens.",
        "pybpe inspect tok.json\npybpe inspect --json tokenizer.bin",
    )
    parser.add_argument("tokenizer", metavar="TOK", help="tokenizer.json or tokenizer.bin")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="how many tokens of each kind (10)")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_inspect)


def _run_inspect(args: argparse.Namespace) -> None:
    from ..padding import padded_vocab_size

    tok = load(args.tokenizer)
    first = sorted(tok.vocab.items())
    longest = sorted(first, key=lambda entry: -len(entry[1]))
    count = max(0, args.count)
    shown = {
        "first": first[:count],
        "last": first[-count:] if count else [],
        "longest": longest[:count],
    }
    facts: dict[str, Any] = {
        "tokens": tok.n_vocab,
        "padded_64": padded_vocab_size(tok.n_vocab, 64),
        "padded_128": padded_vocab_size(tok.n_vocab, 128),
        "merges": len(tok.model.merges),
        "pattern": tok.pattern.name or tok.pattern.regex,
        "digits": tok.pattern.digits,
        "normalizer": tok.normalizer,
        "dtype": tok.dtype.name,
        "end_of_text": tok.eot_token,
        "special_tokens": tok.special_tokens,
    }
    lines = [f"{key:>15}  {value}" for key, value in facts.items()]
    for title, entries in shown.items():
        lines += ["", f"{title} tokens", *(f"{i:>15}  {token!r}" for i, token in entries)]
    machine = {key: [[i, token.decode("latin-1")] for i, token in entries] for key, entries in shown.items()}
    report(args, {**facts, **machine}, "\n".join(lines))
