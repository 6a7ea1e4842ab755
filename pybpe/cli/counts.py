"""The command `pybpe counts`, and what it shares with `pybpe train`: which texts they read, and how."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .common import (
    add_command,
    add_common,
    add_encoding,
    add_on_error,
    add_text_or_records,
    check_writable,
    list_of_skipped,
    named_output,
    parse_amount,
    parse_bytes,
    parse_digits,
    progress,
    remove_old_list,
    report,
)
from .executors import add_dask_options, dask_executor

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ..training.counts import Counts


def add_input_options(parser: argparse.ArgumentParser, what: str = "") -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="text, *.jsonl, parquet or Arrow files, compressed or not (gz, bz2, xz, zst); folders, globs, URLs (s3,"
        f" gs, hf, https); - is stdin{what}",
    )
    add_encoding(parser)
    add_text_or_records(parser)
    parser.add_argument("--text-key", default="text", metavar="K", help="key of a record's text (default: text)")
    add_on_error(parser, listed=True)
    parser.add_argument("--max-documents", type=parse_amount, metavar="N", help="use a sample of N documents")
    parser.add_argument("--max-bytes", type=parse_bytes, metavar="N", help="use a sample of N bytes, e.g. 500M")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed for sampling (default: 0)")
    parser.add_argument("--memory-limit", type=parse_bytes, metavar="N", help="memory for counting, in bytes, e.g. 2G")


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
        "documents": args.documents,
        "on_error": args.on_error,
        "skipped": list_of_skipped(args),
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
        "made on several machines, name their *.counts files: any number of them, in less than 200 MB of memory.",
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
    add_dask_options(
        parser,
        "a Dask scheduler whose workers count, e.g. tcp://node1:8786; they need the files at the same paths",
        "a rerun starts over",
    )
    add_common(parser)
    parser.set_defaults(run=_run_counts)


def _run_counts(args: argparse.Namespace) -> None:
    check_writable(args.output)
    texts = [path for path in args.files if not path.endswith(".counts")]
    counts = [path for path in args.files if path.endswith(".counts")]
    if not args.files:
        raise ArgumentError("name files to count, or *.counts files to add")
    if args.dask is not None and counts:
        raise ArgumentError("--dask counts texts: add *.counts files without it")
    with named_output(args.output, ".counts") as name, dask_executor(args.dask) as executor:
        words = _write_counts(args, (texts, counts), name, executor)
    remove_old_list(args)
    report(args, {"output": args.output, "words": words}, f"{args.output}: {words} distinct words")


def _write_counts(
    args: argparse.Namespace, files: tuple[list[str], list[str]], output: str, executor: Executor | None
) -> int:
    """Writes the sum of the words of texts and of .counts files. Returns the number of words."""
    from ..model import special_ids_of
    from ..pattern import Pattern
    from ..reading.options import ReadOptions
    from ..reading.sample import Sample
    from ..support.run_options import RunOptions
    from ..training.counting import count_to_file
    from ..training.counts import Counts, check_addable, settings_of_files
    from ..training.word_counter import CountSettings

    texts, counts = files
    run = RunOptions(args.workers, executor, args.memory_limit, progress(args), args.task_timeout)
    if not texts:
        return Counts.merge_files(counts, output)
    settings = CountSettings(
        Pattern(args.pattern or "gpt2", args.digits),
        tuple(special_ids_of(args.special_token or ())),
        args.normalizer,
        ReadOptions(
            args.text_key, args.encoding, args.documents, on_error=args.on_error, skipped=list_of_skipped(args)
        ),
    )
    sample = Sample(args.max_documents, args.max_bytes, args.seed)
    if not counts:
        return count_to_file(texts, settings, sample, run, output)
    check_addable(settings_of_files(counts), settings, f"{counts[0]}: ")
    with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
        counted = os.path.join(folder, "texts.counts")
        count_to_file(texts, settings, sample, run, counted)
        return Counts.merge_files([*counts, counted], output)
