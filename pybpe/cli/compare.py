"""The command `pybpe compare`."""

from __future__ import annotations

import argparse
from typing import Any

from .common import (
    Sink,
    add_command,
    add_common,
    add_encoding,
    check_writable,
    load_all,
    named_files,
    progress,
    report,
)


def add_compare(commands: Any) -> None:
    parser = add_command(
        commands,
        "compare",
        "measure tokenizers on the same texts",
        "Measures tokenizers on texts of several languages or kinds: bytes per token, tokens per word and per\n"
        "character, Renyi efficiency, share of the vocabulary that is used, tokens that never occur, occur fewer than\n"
        "100 times, are not UTF-8 or cannot be reached, the slope of the Zipf curve, fairness between languages, and\n"
        "how each tokenizer cuts numbers and code. docs/vocabularies.md says what these measures predict. Special\n"
        "tokens of any of the tokenizers separate texts and are not measured. To compare languages, give translations\n"
        "of the same text, line by line.",
        "pybpe compare mine.json gpt2 --on en=english.txt --on zh=chinese.txt\n"
        "pybpe compare a.json b.json --on news='news/*.jsonl.gz' --on code=src/ -o comparison.html\n"
        "pybpe compare tok.json --on en=sample.txt --json",
    )
    parser.add_argument(
        "tokenizers", nargs="+", metavar="TOK", help="tokenizer files or folders, or names such as gpt2"
    )
    parser.add_argument(
        "--on",
        action="append",
        required=True,
        metavar="NAME=FILE",
        help="a text and the name of its language or kind: a file, folder or glob, compressed or not, text, JSON lines,"
        " parquet or Arrow; repeatable, also with the same name",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="also write an HTML page; - is stdout")
    parser.add_argument(
        "--text-key", default="text", metavar="KEY", help="key of the text in JSON records (default: text)"
    )
    add_encoding(parser)
    add_common(parser)
    parser.set_defaults(run=_run_compare)


def _run_compare(args: argparse.Namespace) -> None:
    from ..analysis.comparison import compare

    on = named_files("--on", args.on)
    if args.output is not None:
        check_writable(args.output)
    comparison = compare(
        load_all(args.tokenizers),
        on,
        text_key=args.text_key,
        encoding=args.encoding,
        workers=args.workers,
        progress=progress(args),
    )
    if args.output is not None:
        with Sink(args.output) as sink:
            sink.write(comparison.to_html().encode("utf-8"))
    report(args, comparison.to_dict(), str(comparison))
