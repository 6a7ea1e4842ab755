"""The command `pybpe corpus`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from contextlib import nullcontext
from typing import Any, NoReturn

import pybpe

from ..corpus.filters import VARIED, Filters
from ..errors import ArgumentError
from ..reading.inputs import ReadOptions
from .command import Command
from .common import call, list_of_skipped, named_output, parse_bytes, report

_PUBLISHED = ("gopher", "fineweb")


def add_corpus(command: Command) -> None:
    """Clean documents before you train on them: filter, scrub and deduplicate.

    examples:
      pybpe corpus web/*.jsonl.gz -o clean.jsonl.zst --filters gopher --dedup
      pybpe corpus mails.jsonl -o clean.jsonl --scrub-pii --normalize NFC
      pybpe corpus web -o clean.jsonl --languages zh,en --near-dedup 0.8 \\
          --min-chars 200 --max-digit-ratio 0.2 --report report.html
      pybpe corpus web/*.parquet -o clean --format parquet --where "score > 3"
      pybpe corpus --print-filters gopher > mine.toml
      pybpe corpus web -o clean.jsonl --max-score my_module:toxicity=0.5

    The steps run in this order: normalize, filter, keep some languages, score,
    replace personal data, drop duplicates, near duplicates and repeated paragraphs.
    Documents stay in the order of the input, as JSON lines or parquet. A summary
    shows how many were dropped, and why. If a run is killed, run the same command
    again to resume it.
    """
    command.files()
    command.output("*.jsonl, *.jsonl.gz, *.jsonl.zst, *.parquet; or a folder for several files; - is stdout")
    command.option("--format F", "of the files in a folder: jsonl.zst (default), jsonl.gz, jsonl or parquet")
    command.option("--shard-bytes N", "the size at which a file in a folder ends (default: 256M)", parse_bytes)
    command.option("--report FILE", "write counts, histograms and samples to *.html or *.json", path="writes")
    with command.group("steps"):
        _add_steps(command)
    with command.group("limits (documents outside them are dropped)"):
        help = "published limits, gopher or fineweb, or a TOML file of limits; the options below override them"
        command.option("--filters SET", help, path="reads")
        command.options(Filters, *VARIED)
        help = "print all limits, of gopher, fineweb or none, as a TOML file to edit, and exit"
        command.option("--print-filters SET", help, action=_PrintFilters, choices=_PUBLISHED)
    with command.group("reading"):
        command.options(ReadOptions)
    command.runtime("workers", "memory_limit", dask="do the steps; they need the files at the same paths")
    command.progress()
    command.runs(_run)


def _add_steps(command: Command) -> None:
    command.option("--where CONDITION", "keep records that meet this condition, such as \"score > 3 and lang == 'en'\"")
    command.option("--normalize --normalizer N", "normalize text: NFC or NFKC", dest="normalizer")
    command.option("--languages L,L", "keep only these languages, such as zh,en")
    command.option("--min-confidence C", "minimum confidence in the language, 0 to 1", float, default=0.0)
    command.option(
        "--max-score MODULE:FUNCTION=X",
        "drop documents that your function (text -> score) scores above X",
        dest="scorers",
        action="append",
        default=[],
    )
    command.option(
        "--scrub-pii KINDS",
        "replace personal data: all (default) or some kinds, such as EMAIL,PHONE",
        _parse_kinds,
        nargs="?",
        const="all",
    )
    command.option(
        "--dedup HOW",
        "drop duplicates: exact (default), or normalized (ignores case, punctuation and spaces)",
        _parse_dedup,
        nargs="?",
        const="exact",
    )
    command.option("--near-dedup J", "drop near duplicates: Jaccard similarity of shingles, e.g. 0.8", float)
    command.option("--keep-near", "keep near duplicates, marked with their cluster")
    command.option("--dedup-paragraphs", "keep only the first of repeated paragraphs")


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


class _PrintFilters(argparse.Action):
    """Prints limits, as --help prints the help."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more, nargs="?")

    def __call__(self, parser: argparse.ArgumentParser, _: object, value: Any, option: str | None = None) -> NoReturn:
        sys.stdout.write(_limits(value, {}).to_toml())
        parser.exit()


def _limits(given: str | None, changes: dict[str, Any]) -> Filters:
    """Returns the limits that a name or file has."""
    if given is None:
        return Filters(**changes)
    if given not in _PUBLISHED:
        if not os.path.lexists(given):
            raise ArgumentError(f"--filters must be gopher, fineweb or a TOML file, not {given!r}")
        return Filters.from_file(given, **changes)
    found: Filters = getattr(Filters, given)(**changes)
    return found


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
    from ..corpus.output import check_outside

    check_outside(args.output, report=args.report)
    pii = args.scrub_pii
    with named_output(args, ".jsonl") if args.output == "-" else nullcontext(args.output) as out:
        found = call(
            pybpe.corpus.clean,
            args,
            args.files,
            out,
            filters=_limits(args.filters, {name: x for name in VARIED if (x := getattr(args, name)) is not None}),
            languages=args.languages.split(",") if args.languages else (),
            scorers=[_scorer(text) for text in args.scorers],
            scrub_pii=pii == "all" if pii in (None, "all") else pii.split(","),
            skipped=list_of_skipped(args),
        )
    if args.report is not None:
        found.save(args.report)
    report(args, found.to_json(), str(found))
