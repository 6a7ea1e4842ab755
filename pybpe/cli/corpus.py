"""The command `pybpe corpus`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from ..reading.options import ReadOptions
from ..support.run_options import RunOptions
from .common import (
    add_common,
    add_dask,
    add_files,
    add_output,
    check_writable,
    describe,
    list_of_skipped,
    named_output,
    progress,
    report,
)
from .executors import dask_executor
from .options import add_options, given, parse_amount

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ..corpus import Filters, Report

_LIMITS: dict[str, tuple[str, Callable[[str], float], str]] = {  # limits of Filters: which ends, type, meaning
    "chars": ("min max", parse_amount, "characters"),
    "words": ("min max", parse_amount, "words; two Chinese characters count as one word"),
    "distinct-words": ("min", parse_amount, "distinct words"),
    "mean-word-length": ("min max", float, "letters per word, in scripts with spaces"),
    "symbol-ratio": ("max", float, "share of characters that are not letters, digits or spaces"),
    "digit-ratio": ("max", float, "share of digits among characters"),
    "hashes-per-word": ("max", float, "# and ... per word"),
    "alphabetic-words": ("min", float, "share of words with a letter"),
    "repeated-words": ("max", float, "share of words that are the most frequent one"),
    "repeated-lines": ("max", float, "share of lines that repeat an earlier one"),
    "repeated-line-chars": ("max", float, "share of characters in such lines"),
    "repeated-paragraphs": ("max", float, "share of paragraphs that repeat an earlier one"),
    "repeated-paragraph-chars": ("max", float, "share of characters in such paragraphs"),
    "bullet-lines": ("max", float, "share of lines that begin with a bullet"),
    "ellipsis-lines": ("max", float, "share of lines that end with an ellipsis"),
    "short-lines": ("max", float, "share of lines below 30 columns"),
    "terminal-lines": ("min", float, "share of lines that end with punctuation"),
}
_NGRAMS = {
    "max-top-ngrams": "share of characters in the most frequent sequence of N words",
    "max-repeated-ngrams": "share of characters in sequences of N words that occurred before",
}


def add_corpus(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Cleans a corpus before a tokenizer is trained on it. Runs the requested steps in this order: normalize,\n"
        "filter, keep some languages, score, replace personal data, drop duplicates, near duplicates and repeated\n"
        "paragraphs. Writes JSON lines in the order of the input, and reports what was dropped and why. If a run is\n"
        "killed, run the same command again to resume it.",
        "pybpe corpus web/*.jsonl.gz -o clean.jsonl.zst --filters gopher --dedup --report report.html\n"
        "pybpe corpus web -o clean.jsonl --min-chars 200 --max-digit-ratio 0.2 --languages zh,en --near-dedup 0.8\n"
        "pybpe corpus mails.jsonl -o clean.jsonl --scrub-pii --normalize NFC\n"
        "pybpe corpus web -o clean.jsonl --max-score my_module:toxicity=0.5",
    )
    add_files(parser)
    add_output(parser, "*.jsonl, *.jsonl.gz or *.jsonl.zst; - is stdout")
    add_options(parser, ReadOptions)
    _add_steps(parser)
    _add_limits(parser)
    add_options(parser, RunOptions, "memory_limit", "workers")
    add_dask(
        parser,
        "do the steps; they need the files at the same paths",
    )
    parser.add_argument("--report", metavar="FILE", help="write counts, histograms and samples to *.html or *.json")
    parser.add_argument("--no-resume", action="store_true", help="start over; do not resume a killed run")
    add_common(parser)
    parser.set_defaults(run=_run, state=_state)


def _add_steps(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--normalize", "--normalizer", metavar="N", help="normalize text: NFC or NFKC")
    parser.add_argument("--languages", metavar="L,L", help="keep only these languages, such as zh,en")
    parser.add_argument(
        "--min-confidence", type=float, default=0.0, metavar="C", help="minimum confidence in the language, 0 to 1"
    )
    parser.add_argument(
        "--max-score",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION=X",
        help="drop texts that your function (text -> score) scores above X",
    )
    parser.add_argument(
        "--scrub-pii",
        nargs="?",
        const="all",
        type=_parse_kinds,
        metavar="KINDS",
        help="replace personal data: all (default) or some kinds, such as EMAIL,PHONE",
    )
    parser.add_argument(
        "--dedup",
        nargs="?",
        const="exact",
        type=_parse_dedup,
        metavar="HOW",
        help="drop duplicates: exact (default), or normalized (ignores case, punctuation and spaces)",
    )
    parser.add_argument(
        "--near-dedup", type=float, metavar="J", help="drop near duplicates: Jaccard similarity of shingles, e.g. 0.8"
    )
    parser.add_argument("--keep-near", action="store_true", help="keep near duplicates, marked with their cluster")
    parser.add_argument("--dedup-paragraphs", action="store_true", help="keep only the first of repeated paragraphs")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits", "drop texts outside these limits; sources: pybpe/corpus/filters.py")
    group.add_argument(
        "--filters", metavar="SET", help="published limits, gopher or fineweb; limits that you give override them"
    )
    for name, (ends, kind, what) in _LIMITS.items():
        for end in ends.split():
            metavar = "X" if kind is float else "N"
            group.add_argument(f"--{end}-{name}", type=kind, metavar=metavar, help=what)
    for name, what in _NGRAMS.items():
        group.add_argument(f"--{name}", type=_parse_ngrams, metavar="N=X,N=X", help=what)


# Two options have optional values, so if one comes right before a file, it takes the file as its value.


def _parse_dedup(text: str) -> str:
    if text not in ("exact", "normalized"):
        raise argparse.ArgumentTypeError(f"expected exact or normalized, not {text!r}; put files before this option")
    return text


def _parse_kinds(text: str) -> str:
    from ..corpus.pii import KINDS

    if text != "all" and not set(text.split(",")) <= set(KINDS):
        kinds = ",".join(KINDS)
        raise argparse.ArgumentTypeError(f"expected all or some of {kinds}, not {text!r}; put files before this option")
    return text


def _parse_ngrams(text: str) -> dict[int, float]:
    try:
        return {int(n): float(x) for n, x in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected limits such as 2=0.2,3=0.18, not {text!r}") from None


def _filters(args: argparse.Namespace) -> Filters:
    from ..corpus import Filters

    names = [f"{end}-{name}" for name, (ends, _, _) in _LIMITS.items() for end in ends.split()]
    given = {name.replace("-", "_"): getattr(args, name.replace("-", "_")) for name in [*names, *_NGRAMS]}
    given = {name: value for name, value in given.items() if value is not None}
    if args.filters is None:
        return Filters(**given)
    if args.filters not in ("gopher", "fineweb"):
        raise ArgumentError(f"--filters: expected gopher or fineweb, not {args.filters!r}")
    return Filters.gopher(**given) if args.filters == "gopher" else Filters.fineweb(**given)


def _scorer(text: str) -> tuple[str, Any, float]:
    """Parses MODULE:FUNCTION=X and imports the function. Modules in the current folder are found too."""
    name, _, limit = text.rpartition("=")
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return name, getattr(importlib.import_module(module), function), float(limit)
    except (ImportError, AttributeError, ValueError) as error:
        raise ArgumentError(f"--max-score {text}: expected MODULE:FUNCTION=NUMBER ({error})") from None


def _state(args: argparse.Namespace) -> str:
    from ..support.output_files import unfinished_folder

    return unfinished_folder(args.output)


def _run(args: argparse.Namespace) -> None:
    if args.report is not None:
        check_writable(args.report)
    with named_output(args.output, ".jsonl") as out, dask_executor(args.dask) as executor:
        found = _clean(args, out, executor)
    if args.report is not None:
        found.save(args.report)
    report(args, found.to_json(), str(found))


def _clean(args: argparse.Namespace, out: str, executor: Executor | None) -> Report:
    from ..corpus import clean

    pii = args.scrub_pii
    return clean(
        args.files,
        out,
        normalizer=args.normalize,
        filters=_filters(args),
        languages=args.languages.split(",") if args.languages else (),
        min_confidence=args.min_confidence,
        scorers=[_scorer(text) for text in args.max_score],
        scrub_pii=pii.split(",") if pii not in (None, "all") else pii == "all",
        dedup=args.dedup,
        near_dedup=args.near_dedup,
        keep_near=args.keep_near,
        dedup_paragraphs=args.dedup_paragraphs,
        executor=executor,
        **{**given(args, ReadOptions, RunOptions), "skipped": list_of_skipped(args)},
        resume=not args.no_resume,
        progress=progress(args),
    )
