"""The command `pybpe compare`: the differences between two tokenizers, or measures of several on the same texts."""

from __future__ import annotations

import argparse
from typing import Any

from ..arguments import counted
from ..errors import ArgumentError
from ..reading.options import ReadOptions
from ..support.run_options import RunOptions
from .common import add_common, call, describe, load, load_all, open_source, report, writing
from .options import add_options, named_files


def add_compare(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints the differences between two tokenizers: settings, special tokens, tokens that only one has, tokens\n"
        "with different ids, and the first different merge; with --text, also where the ids differ. Exits with 0 if\n"
        "they give the same ids for every text, and 1 if they differ.\n\n"
        "With --on, measures any number of tokenizers on texts of several languages or kinds: bytes per token, tokens\n"
        "per word and per character, Renyi efficiency, share of the vocabulary that is used, tokens that never occur,\n"
        "occur fewer than 100 times, are not UTF-8 or cannot be reached, the slope of the Zipf curve, fairness\n"
        "between languages, and how each tokenizer cuts numbers and code. docs/comparing.md says what these\n"
        "measures predict. Special tokens of any of the tokenizers separate texts and are not measured. To compare\n"
        "languages, give translations of the same text, line by line.",
        "pybpe compare a.json b.bin\n"
        "pybpe compare a.json b.json --text novel.txt --json\n"
        "pybpe compare mine.json gpt2 --on en=english.txt --on zh=chinese.txt\n"
        "pybpe compare a.json b.json --on news='news/*.jsonl.gz' --on code=src/ -o comparison.html",
    )
    parser.add_argument(
        "tokenizers", nargs="+", metavar="TOK", help="tokenizer files or folders, or names such as gpt2"
    )
    parser.add_argument("--text", metavar="FILE", help="a text to encode with both")
    parser.add_argument(
        "--count", type=int, default=10, metavar="N", help="how many differences of each kind to show (default: 10)"
    )
    parser.add_argument(
        "--on",
        action="append",
        metavar="NAME=FILE",
        help="a text and the name of its language or kind: a file, folder or glob, compressed or not, text, JSON lines,"
        " parquet or Arrow; repeatable, also with the same name",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="with --on, also write an HTML page; - is stdout")
    add_options(parser, ReadOptions, "text_key", "encoding")
    add_options(parser, RunOptions, "workers")
    add_common(parser, _run_compare)


def _run_compare(args: argparse.Namespace) -> int:
    from ..analysis.comparison import compare

    if not args.on:
        return _run_differences(args)
    if args.text is not None:
        raise ArgumentError("--text shows where two tokenizers differ, without --on: leave one of them out")
    comparison = call(compare, args, load_all(args.tokenizers), named_files("--on", args.on))
    if args.output is not None:
        with writing(args.output) as write:
            write(comparison.to_html().encode("utf-8"))
    report(args, comparison.to_dict(), str(comparison))
    return 0


def _run_differences(args: argparse.Namespace) -> int:
    from ..analysis.differences import differences, differences_on

    if len(args.tokenizers) != 2 or args.output is not None:
        raise ArgumentError("name two tokenizers, or texts to measure tokenizers on: --on NAME=FILE")
    a, b = map(load, args.tokenizers)
    facts = differences(a, b)
    if args.text is not None:
        with open_source(args.text, args.encoding) as stream:
            facts["text"] = differences_on(a, b, stream.read())
    report(args, facts, "\n".join(_difference_lines(facts, max(0, args.count))))
    return 0 if facts["equal"] else 1


def _difference_lines(facts: dict[str, Any], count: int) -> list[str]:
    """Returns the differences as lines of text, with the first `count` of each kind."""
    lines = ["equal: the same ids for every text" if facts["equal"] else "different"]
    lines += [f"{name}: {a} in A, {b} in B" for name, (a, b) in facts["settings"].items()]
    if not facts["equal"]:
        for key, title in (
            ("only_in_a", "tokens only in A"),
            ("only_in_b", "tokens only in B"),
            ("other_ids", "tokens with different ids [token, in A, in B]"),
        ):
            lines += [f"{title}: {len(facts[key])}", *(f"    {entry!r}" for entry in facts[key][:count])]
        if facts["first_merge"] is not None:
            rank, a, b = facts["first_merge"]
            lines.append(f"first merge that differs: number {rank}, {a} in A, {b} in B")
    return lines + (_text_lines(facts["text"], count) if "text" in facts else [])


def _text_lines(text: dict[str, Any], count: int) -> list[str]:
    lines = [f"the text: {counted(text['tokens_a'], 'token')} in A, {text['tokens_b']} in B"]
    if text["different"] is None:
        return [*lines, "their normalizers or special tokens turn the text into different texts"]
    places = [f"    byte {at}: {a} in A, {b} in B" for at, a, b in text["different"][:count]]
    return [*lines, f"places that are split differently: {len(text['different'])}", *places]
