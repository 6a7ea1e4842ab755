"""What the commands that write token files share: how documents are told apart, splits, sizes of shards."""

from __future__ import annotations

import argparse

from .common import add_encoding, parse_amount


def add_document_options(parser: argparse.ArgumentParser) -> None:
    """The files, and how documents are found in them."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="text, *.jsonl, *.parquet, also compressed (gz, bz2, xz, zst); folders, globs; - is stdin",
    )
    add_encoding(parser)
    parser.add_argument(
        "--documents",
        default="auto",
        metavar="HOW",
        help="in text files they are separated by the tokenizer's end of text, usually"
        " <|endoftext|> (special, the default), blank lines (blank);"
        " or are one a line (line) or file; jsonl: JSON lines, whatever the name",
    )
    parser.add_argument("--text-key", default="text", metavar="K", help="the text of a record (default: text)")


def add_split_options(parser: argparse.ArgumentParser, by: bool = True) -> None:
    """The shares of the splits, the size of shards, and unless `by` is False, what decides a document's split."""
    parser.add_argument(
        "--splits", default="8,1,1", metavar="A,B,C", help="shares of train, val and test (default: 8,1,1)"
    )
    if by:
        parser.add_argument(
            "--split-by",
            default="hash",
            metavar="BY",
            help="hash (default): by each document's content; document or token: in the order of the input",
        )
    parser.add_argument(
        "--shard-tokens",
        type=parse_amount,
        default=10**8,
        metavar="N",
        help="the most tokens of a shard, e.g. 50M (default: 100M); llm.c's shards are of equal size",
    )


def add_least_tokens(parser: argparse.ArgumentParser, default: int | None = None) -> None:
    """The least size of a shard. None stands for that of the format, which is 257 for llm.c's."""
    parser.add_argument(
        "--min-shard-tokens",
        type=parse_amount,
        default=default,
        metavar="N",
        help="the fewest tokens of a shard (default: 257, as llm.c needs them; 0 allows any)",
    )
