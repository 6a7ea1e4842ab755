"""pybpe train."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .common import add_command, add_common, check_writable, progress, report


def add_train(commands: Any) -> None:
    parser = add_command(
        commands,
        "train",
        "train a tokenizer",
        "Counts the words of the files and merges the most frequent pairs of tokens until the vocabulary is\n"
        "full. The result is the same for any number of workers.",
        "pybpe train novel.txt --vocab-size 20000 --special-token '<|endoftext|>' -o tok.json\n"
        "pybpe train *.txt --vocab-size 32000 --pattern cl100k --min-frequency 2 -o tok.bin",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="text files")
    add_training_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="where to save: *.json (Hugging Face) or *.bin (llm.c)",
    )
    add_common(parser)
    parser.set_defaults(run=_run_train)


def add_training_options(
    parser: argparse.ArgumentParser, special_tokens: Sequence[str] = (), min_frequency: int = 0
) -> None:
    """The options of every command that trains; the arguments are its defaults."""
    parser.add_argument("--vocab-size", type=int, required=True, metavar="N", help="tokens, specials included")
    default = f"{len(special_tokens)} control tokens" if special_tokens else "none"
    parser.add_argument(
        "--special-token", action="append", metavar="S", help=f"a control token; may be repeated (default: {default})"
    )
    parser.add_argument(
        "--special-ids", default="first", metavar="WHERE", help="first, after_bytes or last (default: first)"
    )
    parser.add_argument(
        "--pattern",
        default="gpt2",
        metavar="P",
        help="gpt2, cl100k, o200k, llama3, qwen2, or a regular expression (default: gpt2)",
    )
    parser.add_argument("--digits", type=int, metavar="1", help="1: every digit is a word of its own")
    parser.add_argument("--normalizer", metavar="N", help="NFC or NFKC (default: none)")
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=min_frequency,
        metavar="N",
        help=f"merge no pair that is rarer (default: {min_frequency})",
    )
    parser.add_argument(
        "--max-token-length",
        type=int,
        default=255,
        metavar="N",
        help="in bytes (default: 255, llm.c's limit)",
    )
    parser.add_argument(
        "--tie-break", default="lexicographic", metavar="T", help="lexicographic (default) or huggingface"
    )


def _run_train(args: argparse.Namespace) -> None:
    from ..trainer import train

    check_writable(args.output)
    tokenizer = train(
        args.files,
        vocab_size=args.vocab_size,
        special_tokens=args.special_token or (),
        special_ids=args.special_ids,
        pattern=args.pattern,
        digits=args.digits,
        normalizer=args.normalizer,
        min_frequency=args.min_frequency,
        max_token_length=args.max_token_length,
        tie_break=args.tie_break,
        workers=args.workers,
        progress=progress(args),
    )
    if args.output.endswith(".bin"):
        tokenizer.save_bin(args.output)
    else:
        tokenizer.save(args.output)
    facts = {"output": args.output, "n_vocab": tokenizer.n_vocab, "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {tokenizer.n_vocab} tokens, {facts['merges']} merges"
    if tokenizer.n_vocab < args.vocab_size:
        line += f" (fewer than {args.vocab_size}: no pair was left that is frequent enough)"
    report(args, facts, line)
