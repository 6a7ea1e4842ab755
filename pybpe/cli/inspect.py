"""The command `pybpe inspect`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .common import add_command, add_common, load, report
from .vocabulary import corpus_usage

if TYPE_CHECKING:
    from ..analysis.usage import Usage
    from ..tokenizer import Tokenizer

Entries = list[tuple[int, bytes]]

_TITLES = {
    "first": "first tokens",
    "last": "last tokens",
    "longest": "longest tokens",
    "not_utf8": "multi-byte tokens that are not UTF-8",
    "never_used": "tokens that the files never use",
}


def add_inspect(commands: Any) -> None:
    parser = add_command(
        commands,
        "inspect",
        "show what a tokenizer contains",
        "Prints the properties of a tokenizer, its special tokens, its first, last and longest tokens, and tokens\n"
        "that are not UTF-8 on their own. With files, also prints the tokens that they never use, and how well the\n"
        "tokenizer compresses each script, optionally next to another tokenizer.",
        "pybpe inspect tok.json\npybpe inspect --json tokenizer.bin\npybpe inspect tok.json corpus/ --compare gpt2",
    )
    parser.add_argument("tokenizer", metavar="TOK", help="a tokenizer file or folder")
    parser.add_argument("files", nargs="*", metavar="FILE", help="text files, folders, globs")
    parser.add_argument("--compare", metavar="TOK", help="another tokenizer, such as gpt2; needs files")
    parser.add_argument(
        "--count", type=int, default=10, metavar="N", help="how many tokens of each kind to show (default: 10)"
    )
    add_common(parser)
    parser.set_defaults(run=_run_inspect)


def _run_inspect(args: argparse.Namespace) -> None:
    from ..errors import ArgumentError

    if args.compare is not None and not args.files:
        raise ArgumentError("--compare needs files to compare on")
    tok = load(args.tokenizer)
    facts = _facts(tok)
    lists = _lists(tok)
    usage = corpus_usage(tok, args) if args.files else None
    if usage is not None:
        lists["never_used"], facts["prunable"] = _never_used(tok, usage)
    lines = [f"{key:>15}  {value}" for key, value in facts.items() if value is not None]
    for title, entries in lists.items():
        lines += _list(title, entries, max(0, args.count), facts)
    if usage is not None:
        other = load(args.compare) if args.compare is not None else None
        compared = corpus_usage(other, args) if other is not None else None
        facts["scripts"] = _scripts(usage, compared)
        lines += ["", *_script_table(facts["scripts"])]
    report(args, facts, "\n".join(lines))


def _never_used(tok: Tokenizer, usage: Usage) -> tuple[Entries, int]:
    """Returns the tokens that a corpus does not use, and how many of them `pybpe prune` drops."""
    specials = set(tok.special_tokens.values())
    unused = [(i, tok.decode_single_token_bytes(i)) for i in usage.unused if i in tok.model.vocab and i not in specials]
    used = tok.prune([i for i, amount in enumerate(usage.counts) if amount and i in tok.model.vocab])
    return unused, len(tok.model.vocab) - len(used.model.vocab)


def _list(title: str, entries: Entries, count: int, facts: dict[str, Any]) -> list[str]:
    """Returns the lines for `count` tokens of a list, and adds these tokens to the facts."""
    shown = entries[-count:] if title == "last" and count else entries[:count]
    facts[title] = [{"id": i, "text": token.decode("utf-8", "replace"), "hex": token.hex()} for i, token in shown]
    total = ""
    if title in ("not_utf8", "never_used"):
        facts[f"{title}_count"] = len(entries)
        total = f" ({len(entries)})"
    if title == "never_used":
        total = f" ({len(entries)}; `pybpe prune` drops {facts['prunable']}, the others are bytes or parts of tokens)"
    return ["", f"{_TITLES[title]}{total}", *(f"{i:>15}  {_shown(token)}" for i, token in shown)]


def _shown(token: bytes) -> str:
    """Returns a token as Python writes it: 'text', or b'bytes' if it is not UTF-8."""
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)


def _facts(tok: Tokenizer) -> dict[str, Any]:
    from ..padding import padded_vocab_size

    return {
        "tokens": tok.vocab_size,
        "padded_64": padded_vocab_size(tok.vocab_size, 64),
        "padded_128": padded_vocab_size(tok.vocab_size, 128),
        "merges": len(tok.model.merges),
        "pattern": tok.pattern.name or tok.pattern.regex,
        "digits": tok.pattern.digits,
        "normalizer": tok.model.normalizer,
        "prefix_space": tok.model.prefix_space,
        "whole_words": tok.model.whole_words,
        "dropout": tok.model.dropout,
        "template": str(tok.model.template) if tok.model.template is not None else None,
        "dtype": tok.model.dtype.name,
        "end_of_text": tok.eot_token,
        "special_tokens": tok.special_tokens,
        "special_token_flags": {text: rules.names for text, rules in tok.model.matching.items()} or None,
    }


def _lists(tok: Tokenizer) -> dict[str, Entries]:
    from ..analysis.comparison import is_utf8

    first = sorted(tok.model.vocab.items())
    broken = [(i, token) for i, token in first if len(token) > 1 and not is_utf8(token)]
    longest = sorted(first, key=lambda entry: -len(entry[1]))
    return {"first": first, "last": first, "longest": longest, "not_utf8": broken}


def _scripts(usage: Usage, other: Usage | None) -> dict[str, dict[str, float]]:
    """Returns, for each script and for all, the bytes, bytes per token, tokens per character, and the same for the
    other tokenizer."""
    table = {}
    for script, amount in {"all": usage.total, **usage.scripts}.items():
        row = {
            "bytes": amount.bytes,
            "bytes_per_token": round(amount.bytes_per_token, 3),
            "tokens_per_character": round(amount.tokens_per_character, 3),
        }
        theirs = None if other is None else other.total if script == "all" else other.scripts.get(script)
        if theirs is not None:
            row["other_bytes_per_token"] = round(theirs.bytes_per_token, 3)
            row["other_tokens_per_character"] = round(theirs.tokens_per_character, 3)
        table[script] = row
    return table


def _script_table(scripts: dict[str, dict[str, float]]) -> list[str]:
    with_other = any("other_bytes_per_token" in row for row in scripts.values())
    header = f"{'script':>15}  {'bytes':>12}  {'bytes/token':>11}  {'tokens/char':>11}"
    lines = [header + (f"  {'other b/t':>11}  {'other t/c':>11}" if with_other else "")]
    for script, row in scripts.items():
        line = f"{script:>15}  {row['bytes']:>12,}"
        for key in ("bytes_per_token", "tokens_per_character", "other_bytes_per_token", "other_tokens_per_character"):
            line += f"  {row[key]:>11.3f}" if key in row else ""
        lines.append(line)
    return lines
