"""The commands on folders of token files: `pybpe join`, `pybpe pack`, `pybpe verify` and `pybpe stats`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import Any

from ..arguments import counted
from ..errors import ArgumentError
from .common import add_command, add_common, add_tokenizer, load, parse_amount, progress, report
from .mixture import mixture_lines
from .token_files import row_lines


def add_join(commands: Any) -> None:
    parser = add_command(
        commands,
        "join",
        "join token files that several machines wrote",
        "Reads folders that `pybpe binarize` wrote with the same tokenizer and arguments, from different files, and\n"
        "writes the token files that one run on all the files would have written.",
        "pybpe join node0 node1 node2 -t tok.json -o all",
    )
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders with a manifest.json, in the order to join")
    add_tokenizer(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the output folder")
    parser.add_argument("--name", metavar="NAME", help="NAME of the files (default: that of the first folder)")
    parser.add_argument("--no-resume", action="store_true", help="start over; ignore an unfinished run")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_join)


def _run_join(args: argparse.Namespace) -> None:
    from ..tokens.joining import join

    manifest = join(
        load(args.tokenizer),
        list(map(_folder, args.folders)),
        args.output,
        name=args.name,
        resume=not args.no_resume,
        force=args.force,
        progress=progress(args),
    )
    counts = {
        split: {"tokens": manifest.split_tokens(split), "files": len(found)} for split, found in manifest.shards.items()
    }
    lines = [
        f"{split}: {counted(facts['tokens'], 'token')} in {counted(facts['files'], 'file')}"
        for split, facts in counts.items()
    ]
    report(args, {"output": args.output, "splits": counts}, "\n".join(lines))


def _folder(given: str) -> str:
    """Returns the folder of token files that an argument names, perhaps by its manifest."""
    from ..tokens.manifest import named_folder

    folder, file = named_folder(given)
    if file is not None:
        raise ArgumentError(f"{given}: this command takes a folder with a manifest.json, not a file in it: {folder}")
    return folder


def add_pack(commands: Any) -> None:
    parser = add_command(
        commands,
        "pack",
        "pack documents into rows of T tokens",
        "Reads the llm.c shards that `pybpe binarize` or `prepare` wrote, and writes shards of rows of exactly T\n"
        "tokens, each beginning with the end-of-text token. Documents of up to T tokens are not cut. Train on the\n"
        "result with llm.c's -t T, or choose a format that has position_ids and a loss_mask for other trainers.",
        "pybpe pack data -t tok.json --sequence-length 1024 -o packed\n"
        "pybpe pack data -t tok.json --sequence-length 1024 -o packed --packing fill\n"
        "pybpe pack data -t tok.json --sequence-length 2048 -o rows --format parquet",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json and llm.c's shards")
    add_tokenizer(parser)
    parser.add_argument("--sequence-length", type=int, required=True, metavar="T", help="tokens per row")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the output folder")
    parser.add_argument(
        "--packing",
        default="best-fit",
        metavar="HOW",
        help="best-fit (default) cuts only documents longer than T, and pads rows; fill also cuts documents to fill"
        " the rows that would be short; concat cuts wherever a row is full",
    )
    parser.add_argument(
        "--format",
        default="llmc",
        metavar="F",
        help="llmc (default), or with the columns input_ids, document_ids, position_ids and loss_mask: npy, parquet or"
        " webdataset",
    )
    parser.add_argument(
        "--pad",
        metavar="S",
        help="the special token for padding (default: <|padding|> or <|pad|> if there is one, otherwise end of text)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed for the order (default: 0)")
    parser.add_argument(
        "--shard-tokens", type=parse_amount, default=10**8, metavar="N", help="most tokens per shard (default: 100M)"
    )
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_pack)


def _run_pack(args: argparse.Namespace) -> None:
    from ..tokens.pack import pack

    manifest = pack(
        load(args.tokenizer),
        _folder(args.folder),
        args.output,
        sequence_length=args.sequence_length,
        packing=args.packing,
        format=args.format,
        pad=args.pad,
        seed=args.seed,
        shard_tokens=args.shard_tokens,
        force=args.force,
        progress=progress(args),
    )
    report(args, {"output": args.output, **(manifest.packing or {})}, "\n".join(row_lines(manifest)))


def add_verify(commands: Any) -> None:
    parser = add_command(
        commands,
        "verify",
        "check token files against their manifest",
        "Checks the size and SHA-256 of every file that `pybpe binarize` or `prepare` wrote. With the tokenizer,\n"
        "also checks every id, the amount of text, and that samples encode to the same ids again. Exits with 1 if\n"
        "something is wrong.",
        "pybpe verify out\npybpe verify out -t tok.json\npybpe verify out/novel_val_000000.bin",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json, or one file in it")
    parser.add_argument(
        "-t", "--tokenizer", metavar="TOK", help="tokenizer.json or .bin (default: DIR/tokenizer.json, if it exists)"
    )
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_verify)


def _run_verify(args: argparse.Namespace) -> None:
    from ..tokens.verification import verify

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
        "`pybpe binarize` or `prepare` wrote. For a mixture, also what its recipe asked of each source, what it gave,\n"
        "and how often it was repeated.",
        "pybpe stats out\npybpe stats out --json",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_stats)


def _run_stats(args: argparse.Namespace) -> None:
    from ..tokens.manifest import Manifest
    from ..tokens.statistics import dataset_statistics

    folder = _folder(args.folder)
    found = dataset_statistics(folder)
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
    mixture = Manifest.load(folder).mixture
    described: dict[str, Any] = {split: asdict(facts) for split, facts in found.items()}
    if mixture is not None:
        lines += mixture_lines(mixture)
        described["mixture"] = {key: mixture[key] for key in ("seed", "sources", "phases")}
    report(args, described, "\n".join(lines))
