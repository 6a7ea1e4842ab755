"""The command `pybpe counts`, and what it shares with `pybpe train`: which texts they read, and how."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .common import (
    add_command,
    add_common,
    add_encoding,
    check_not_input,
    check_writable,
    named_output,
    parse_amount,
    parse_digits,
    progress,
    report,
)

if TYPE_CHECKING:
    from ..training.counts import Counts


def add_input_options(parser: argparse.ArgumentParser, what: str = "") -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="text or *.jsonl files, plain or compressed (gz, bz2, xz, zst); folders, globs, URLs (s3, gs, hf, https);"
        f" - is stdin{what}",
    )
    add_encoding(parser)
    parser.add_argument("--text-key", default="text", metavar="K", help="key of a JSON record's text (default: text)")
    parser.add_argument("--max-documents", type=parse_amount, metavar="N", help="use a sample of N documents")
    parser.add_argument("--max-bytes", type=parse_amount, metavar="N", help="use a sample of N bytes, e.g. 500M")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed for sampling (default: 0)")
    parser.add_argument("--memory-limit", type=parse_amount, metavar="N", help="memory for counting, in bytes, e.g. 2G")


def add_cutting_options(parser: argparse.ArgumentParser, pattern: str | None = None) -> None:
    """Adds the options that say how texts are split into words. Pattern None means gpt2, unless a tokenizer or counts
    decide it."""
    parser.add_argument(
        "--pattern",
        default=pattern,
        metavar="P",
        help="gpt2, cl100k, o200k, llama3, qwen2, or a regular expression; to use several, join them"
        " with (?then): each splits the pieces of the one before it (default: gpt2)",
    )
    parser.add_argument(
        "--digits",
        type=parse_digits,
        metavar="D",
        help="1: make every digit a separate word; 3-from-right: groups of three digits, counted from the right",
    )
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
    from ..training.counting import count_words

    return count_words(
        list(files),
        pattern=args.pattern or "gpt2",
        digits=args.digits,
        normalizer=args.normalizer,
        special_tokens=args.special_token or (),
        **input_arguments(args),
    )


def add_counts(commands: Any) -> None:
    parser = add_command(
        commands,
        "counts",
        "count words for `pybpe train --counts`, or add up counts",
        "Counts the words of files, which is the first half of training. To add up counts of parts of a corpus,\n"
        "made on several machines, name their *.counts files.",
        "pybpe counts part1/*.txt --special-token '<|endoftext|>' -o part1.counts\n"
        "pybpe counts part1.counts part2.counts -o all.counts\n"
        "pybpe train --counts all.counts --vocab-size 32000 --special-token '<|endoftext|>' -o tok.json",
    )
    add_input_options(parser, "; *.counts files are added")
    add_cutting_options(parser)
    parser.add_argument(
        "--special-token", action="append", metavar="S", help="a special token, which separates words; repeatable"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="where to save the counts (*.counts); - is stdout"
    )
    add_common(parser)
    parser.set_defaults(run=_run_counts)


def _run_counts(args: argparse.Namespace) -> None:
    from ..training.counts import Counts

    check_writable(args.output)
    check_not_input(args.output, args.files)
    texts = [path for path in args.files if not path.endswith(".counts")]
    counts = [Counts.load(path) for path in args.files if path.endswith(".counts")]
    if texts:
        counts.append(count(args, texts))
    if not counts:
        raise ArgumentError("name files to count, or *.counts files to add")
    total = Counts.merge(counts)
    with named_output(args.output, ".counts") as name:
        total.save(name)
    report(args, {"output": args.output, "words": len(total)}, f"{args.output}: {len(total)} distinct words")
