"""The command `pybpe corpus`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

from ..arguments import one_of
from ..corpus.filters import Filters
from ..errors import ArgumentError
from ..reading.options import ReadOptions
from ..support.run_options import RunOptions
from .common import (
    add_common,
    add_dask,
    add_files,
    add_output,
    add_resume,
    call,
    describe,
    list_of_skipped,
    named_output,
    report,
)
from .options import add_options, given


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
    add_dask(parser, "do the steps; they need the files at the same paths")
    parser.add_argument("--report", metavar="FILE", help="write counts, histograms and samples to *.html or *.json")
    add_resume(parser)
    add_common(parser, _run)


def _add_steps(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--normalize", "--normalizer", dest="normalizer", metavar="N", help="normalize text: NFC or NFKC"
    )
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
    add_options(group, Filters)


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


def _filters(args: argparse.Namespace) -> Filters:
    if args.filters is None:
        return Filters(**given(args, Filters))
    one_of("filters", args.filters, ("gopher", "fineweb"))
    rules: Filters = getattr(Filters, args.filters)(**given(args, Filters))
    return rules


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


def _run(args: argparse.Namespace) -> None:
    from ..corpus import clean

    pii = args.scrub_pii
    with named_output(args.output, ".jsonl") as out:
        found = call(
            clean,
            args,
            args.files,
            out,
            filters=_filters(args),
            languages=args.languages.split(",") if args.languages else (),
            scorers=[_scorer(text) for text in args.max_score],
            scrub_pii=pii == "all" if pii in (None, "all") else pii.split(","),
            skipped=list_of_skipped(args),
        )
    if args.report is not None:
        found.save(args.report)
    report(args, found.to_json(), str(found))
