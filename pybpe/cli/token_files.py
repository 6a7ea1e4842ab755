"""What the commands that write token files share: separators of documents, splits, and sizes of shards."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from .common import add_encoding, add_on_error, log_path, parse_amount, parse_numbers

if TYPE_CHECKING:
    from ..tokens.manifest import Manifest


def add_document_options(parser: argparse.ArgumentParser, skips: bool = False) -> None:
    """Adds the files, and the options that say how to find documents in them. `skips`: whether the command can skip bad
    records."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="text or *.jsonl, plain or compressed (gz, bz2, xz, zst), *.parquet, *.arrow; folders, globs, URLs (s3,"
        " gs, hf, https); - is stdin",
    )
    add_encoding(parser)
    parser.add_argument(
        "--documents",
        default="auto",
        metavar="HOW",
        help="what separates documents in text files: special (default: the tokenizer's end-of-text token, usually"
        " <|endoftext|>), blank (blank lines), line (one document per line) or file (one per file);"
        " jsonl reads every file as JSON lines",
    )
    parser.add_argument("--text-key", default="text", metavar="K", help="key of a JSON record's text (default: text)")
    if skips:
        add_on_error(parser, listed=False)


def add_split_options(parser: argparse.ArgumentParser, by: bool = True) -> None:
    """Adds options for the shares of the splits, the size of shards, and, unless `by` is False, what decides the split
    of a document."""
    parser.add_argument(
        "--splits", default="8,1,1", metavar="A,B,C", help="shares of train, val and test (default: 8,1,1)"
    )
    if by:
        parser.add_argument(
            "--split-by",
            default="hash",
            metavar="BY",
            help="how to split: hash (default) by each document's content; document or token in input order",
        )
    parser.add_argument(
        "--shard-tokens",
        type=parse_amount,
        default=10**8,
        metavar="N",
        help="maximum number of tokens per shard, e.g. 50M (default: 100M); shards for llm.c have equal sizes",
    )


def add_least_tokens(parser: argparse.ArgumentParser, default: int | None = None) -> None:
    """Adds the option for the smallest shard. None means the minimum of the format, which is 257 for llm.c."""
    parser.add_argument(
        "--min-shard-tokens",
        type=parse_amount,
        default=default,
        metavar="N",
        help="minimum number of tokens per shard (default: 257, which llm.c needs; 0 allows any number)",
    )


def add_pack_options(parser: argparse.ArgumentParser) -> None:
    """Adds options for packing documents into rows in the same run."""
    parser.add_argument(
        "--pack",
        action="store_true",
        help="pack the documents into rows of --sequence-length tokens, as `pybpe pack` does; only these are kept",
    )
    parser.add_argument(
        "--packing", metavar="HOW", help="how to pack: best-fit (default), fill or concat; see `pybpe pack --help`"
    )


def row_lines(manifest: Manifest) -> list[str]:
    """Returns a line for each split about its packed rows, if there are any."""
    packing = manifest.packing
    if packing is None:
        return []
    size = packing["sequence_length"]
    return [
        f"{split}: {counted(facts['rows'], 'row')} of {size} tokens,"
        f" {100 * facts['padding'] / (facts['rows'] * size):.4f} % padding,"
        f" {counted(facts['cuts'], 'cut')} in {counted(manifest.split_documents(split), 'document')}"
        for split, facts in packing["splits"].items()
        if facts
    ]


def pack_log_path(args: argparse.Namespace) -> str:
    """Returns the path of the log of a run with or without --pack: see log_path."""
    from ..tokens.finished import hidden_folder

    is_packed = args.pack or args.format in ("parquet", "webdataset")
    return log_path(argparse.Namespace(output=hidden_folder(args.output)) if is_packed else args)


def option_arguments(args: argparse.Namespace, *kinds: type) -> dict[str, Any]:
    """Returns the fields of these options (ReadOptions, SplitOptions, OutputOptions) that the command has, as keyword
    arguments."""
    names = [field.name for kind in kinds for field in fields(kind)]
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    return given if "splits" not in given else {**given, "splits": parse_numbers("--splits", args.splits)}
