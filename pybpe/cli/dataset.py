"""The commands `pybpe verify` and `pybpe stats`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import Any

from .common import add_command, add_common, counted, load, report


def add_verify(commands: Any) -> None:
    parser = add_command(
        commands,
        "verify",
        "check token files against their manifest",
        "Checks the size and SHA-256 of every file that `pybpe binarize` or `prepare` wrote. With the tokenizer,\n"
        "also checks every id, the amount of text, and that samples encode to the same ids again. Exits with 1 if\n"
        "something is wrong.",
        "pybpe verify out\npybpe verify out -t tok.json",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json")
    parser.add_argument(
        "-t", "--tokenizer", metavar="TOK", help="tokenizer.json or .bin (default: DIR/tokenizer.json, if it exists)"
    )
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_verify)


def _run_verify(args: argparse.Namespace) -> None:
    from ..dataset.verification import verify

    manifest, problems = verify(args.folder, load(args.tokenizer) if args.tokenizer else None)
    count = len(manifest.file_names)
    lines = [str(problem) for problem in problems] or [
        f"{args.folder}: {counted(count, 'file')}, {counted(manifest.tokens, 'token')}: OK"
    ]
    report(args, {"files": count, "problems": [asdict(problem) for problem in problems]}, "\n".join(lines))
    if problems:
        sys.exit(1)


def add_stats(commands: Any) -> None:
    parser = add_command(
        commands,
        "stats",
        "show what a folder of token files contains",
        "Prints the number of tokens, documents and bytes of text, and the lengths of documents, for each split that\n"
        "`pybpe binarize` or `prepare` wrote.",
        "pybpe stats out\npybpe stats out --json",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_stats)


def _run_stats(args: argparse.Namespace) -> None:
    from ..dataset.statistics import dataset_statistics

    found = dataset_statistics(args.folder)
    lines = []
    for split, facts in found.items():
        lines.append(
            f"{split}: {counted(facts.tokens, 'token')}, {counted(facts.documents, 'document')},"
            f" {counted(facts.text_bytes, 'byte')} of text, {facts.bytes_per_token:.3f} bytes per token,"
            f" {counted(facts.shards, 'file')}"
        )
        if facts.document_tokens:
            shares = ", ".join(f"{percent}%: {length}" for percent, length in facts.document_tokens.items())
            lines.append(f"    tokens per document, by percentile: {shares}")
    report(args, {split: asdict(facts) for split, facts in found.items()}, "\n".join(lines))
