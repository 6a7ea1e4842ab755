"""What `pybpe train` and `pybpe counts` share: which texts they read, and how they read them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .common import add_encoding, parse_amount, progress

if TYPE_CHECKING:
    from ..counts import Counts


def add_input_options(parser: argparse.ArgumentParser, what: str = "") -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"text or *.jsonl files, may be compressed (gz, bz2, xz, zst); folders, globs; - is stdin{what}",
    )
    add_encoding(parser)
    parser.add_argument("--text-key", default="text", metavar="K", help="key of a JSON record's text (default: text)")
    parser.add_argument("--max-documents", type=parse_amount, metavar="N", help="use a sample of N documents")
    parser.add_argument("--max-bytes", type=parse_amount, metavar="N", help="use a sample of N bytes, e.g. 500M")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed for sampling (default: 0)")
    parser.add_argument("--memory-limit", type=parse_amount, metavar="N", help="memory for counting in bytes, e.g. 2G")


def add_cutting_options(parser: argparse.ArgumentParser, pattern: str | None = None) -> None:
    """Adds the options that say how texts are split into words. Pattern None means gpt2, unless a tokenizer or counts
    decide it."""
    parser.add_argument(
        "--pattern",
        default=pattern,
        metavar="P",
        help="gpt2, cl100k, o200k, llama3, qwen2, or a regular expression (default: gpt2)",
    )
    parser.add_argument("--digits", type=int, metavar="1", help="make every digit a separate word; 1 is the only value")
    parser.add_argument("--normalizer", metavar="N", help="convert text to NFC or NFKC first (default: none)")


def input_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of `train` and `count_words` that say what to read."""
    return {
        "text_key": args.text_key,
        "encoding": args.encoding,
        "max_documents": args.max_documents,
        "max_bytes": args.max_bytes,
        "seed": args.seed,
        "memory_limit": args.memory_limit,
        "workers": args.workers,
        "progress": progress(args),
    }


def count(args: argparse.Namespace, files: Sequence[str]) -> Counts:
    from ..counts import count_words

    return count_words(
        list(files),
        pattern=args.pattern or "gpt2",
        digits=args.digits,
        normalizer=args.normalizer,
        special_tokens=args.special_token or (),
        **input_arguments(args),
    )
