"""The command `pybpe train`, and the options that it shares with others that train or count words."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from ..errors import ArgumentError, note
from ..reading.options import ReadOptions
from ..reading.sample import Sample
from ..support.run_options import RunOptions
from ..training.plan import TrainOptions
from .common import (
    add_common,
    add_files,
    add_output,
    check_tokenizer_output,
    check_writable,
    describe,
    list_of_skipped,
    load,
    progress,
    remove_old_list,
    report,
    save_tokenizer,
)
from .options import add_options, given, named_files, parse_amounts

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer
    from ..training.counts import Counts

CUTTING = ("pattern", "digits", "normalizer")  # how texts are split into words


def add_train(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Counts the words of the files and merges the most frequent pairs of tokens until the vocabulary is\n"
        "full. The result is the same for any number of workers. With --base, extends a tokenizer, whose ids stay:\n"
        "by new special tokens, and by merges learned from the files.",
        "pybpe train novel.txt --vocab-size 20000 --special-token '<|endoftext|>' -o tok.json\n"
        "pybpe train *.txt --vocab-size 32000 --pattern cl100k --min-frequency 2 -o tok.bin\n"
        "pybpe train corpus/ --max-bytes 2G --checkpoint tok.checkpoint --vocab-size 50k -o tok.json\n"
        "pybpe train corpus.jsonl.zst --text-key content --sizes 8k,16k,32k --plot curve.png -o tok.json\n"
        "pybpe train novel.txt --superwords --vocab-size 20000 -o superwords.json\n"
        "pybpe train en=en.txt zh='zh/*.txt' --parity en=dev.en --parity zh=dev.zh --vocab-size 20k -o fair.json\n"
        "pybpe train more.txt --base tok.json --vocab-size 24000 -o larger.json --remap remap.npy\n"
        "pybpe train --base tok.json --special-token '<|tool|>' -o tools.json",
    )
    add_files(parser, "*")
    add_options(parser, TrainOptions, vocab_size=None)
    add_options(parser, ReadOptions)
    add_options(parser, Sample)
    add_options(parser, RunOptions, "memory_limit", "workers")
    parser.add_argument("--counts", action="append", metavar="COUNTS", help="use counts from `pybpe count`, not files")
    parser.add_argument("--base", metavar="TOK", help="a tokenizer to extend; its ids stay the same")
    parser.add_argument(
        "--parity",
        action="append",
        metavar="NAME=FILE",
        help="a development text of each language, repeatable: each merge helps the language that costs the most tokens"
        " on its own. Files to train on are then NAME=FILE too. --max-bytes and --max-documents are for each language",
    )
    parser.add_argument(
        "--checkpoint", metavar="F", help="save progress to F, also while counting; rerun the same command to resume"
    )
    parser.add_argument(
        "--sizes",
        type=parse_amounts,
        metavar="N,N,...",
        help="compare these vocabulary sizes, e.g. 8k,16k,32k (bytes/token, embedding parameters); train the largest",
    )
    parser.add_argument("--hidden", type=int, default=768, metavar="N", help="for --sizes: model width (default: 768)")
    parser.add_argument("--plot", metavar="FILE", help="draw the curve of --sizes to *.png, *.svg or *.pdf")
    add_output(parser, "output: *.json (Hugging Face), *.bin (llm.c) or a folder (transformers); - is stdout, as JSON")
    add_remap(parser)
    add_common(parser)
    parser.set_defaults(run=_run_train, state=lambda args: args.checkpoint or "")


def add_remap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--remap", metavar="F", help="write the old id of each new id to *.npy (int64, -1 if none)")


def training_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of TrainOptions that the command has."""
    for text in args.special_tokens or ():
        if "," in text:
            note(f"--special-token {text!r} is one token, with its commas: to name several, repeat the option")
    return given(args, TrainOptions)


def cutting_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of `count_words` that say how to split text."""
    return {key: value for key, value in given(args, TrainOptions).items() if key in (*CUTTING, "special_tokens")}


def input_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of `train` and `count_words` that say what to read, and how to run."""
    found = given(args, ReadOptions, Sample, RunOptions)
    return {**found, "skipped": list_of_skipped(args), "progress": progress(args)}


def _run_train(args: argparse.Namespace) -> None:
    from ..remap import old_ids, save_remap

    check_tokenizer_output(args.output)
    if args.parity and (args.counts or args.sizes is not None):
        raise ArgumentError("--parity cannot be used with --counts or --sizes")
    if args.sizes is not None and args.base is not None:
        raise ArgumentError("--sizes cannot be used with --base")
    if args.plot is not None and args.sizes is None:
        raise ArgumentError("--plot draws the curve of --sizes: give --sizes too")
    if args.plot is not None:
        from ..analysis.compression_curve import check_plot

        check_writable(args.plot)
        check_plot(args.plot)
    base = load(args.base) if args.base is not None else None
    if args.remap is not None and base is None:
        raise ArgumentError("--remap compares the ids with those of --base: give --base too")
    size, counts = None, None
    if base is not None and not args.files and not args.counts and args.special_tokens:
        tokenizer = base.extend(args.special_tokens, vocab_size=args.vocab_size)
    else:
        size, counts = _vocab_size(args), _counts(args)
        tokenizer = _trained(args, size, base, counts)
    save_tokenizer(tokenizer, args.output)
    if args.remap is not None and base is not None:
        save_remap(args.remap, old_ids(base.model, tokenizer.model))
    remove_old_list(args)
    facts = {"output": args.output, "vocab_size": len(tokenizer), "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {counted(len(tokenizer), 'token')}, {counted(facts['merges'], 'merge')}"
    line += fewer_than(size or 0, len(tokenizer))
    if args.sizes is not None and counts is not None:
        from ..analysis import compression_curve

        points = compression_curve.compression_curve(tokenizer, counts, args.sizes, args.hidden)
        facts["sizes"] = [point._asdict() for point in points]
        line += "\n" + compression_curve.table(points)
        if args.plot is not None:
            compression_curve.plot(points, args.plot)
    report(args, facts, line)


def _trained(args: argparse.Namespace, size: int, base: Tokenizer | None, counts: Counts | None) -> Tokenizer:
    from ..trainer import train

    files, parity = args.files, None
    if args.parity:
        files = named_files("with --parity, files", args.files)
        parity = named_files("--parity", args.parity)
    reading = input_arguments(args)
    if counts is not None and not args.counts:  # these counts already come from the sample
        reading |= {"max_documents": None, "max_bytes": None, "seed": 0}
    options = training_arguments(args) | {"vocab_size": size, "base": base, "parity": parity}
    return train(files if counts is None else None, counts=counts, checkpoint=args.checkpoint, **{**options, **reading})


def fewer_than(size: int, got: int) -> str:
    """Returns why a vocabulary has fewer tokens than requested; "" if it does not."""
    if got >= size:
        return ""
    return f" (fewer than {size}: no other pair occurs often enough; use more text to get more)"


def _vocab_size(args: argparse.Namespace) -> int:
    if args.sizes is not None and args.superwords:
        raise ArgumentError(
            "--sizes cannot be used with --superwords: where its second stage begins depends on the size"
        )
    sizes: list[int] = [*(args.sizes or ()), *([args.vocab_size] if args.vocab_size is not None else ())]
    if not sizes:
        raise ArgumentError("give --vocab-size N, or several sizes with --sizes N,N,...")
    return max(sizes)


def _counts(args: argparse.Namespace) -> Counts | None:
    """Returns the counts that were given, or that the curve also needs; None if `train` must count."""
    from ..training.counting import count_words
    from ..training.counts import Counts

    if bool(args.counts) == bool(args.files):
        raise ArgumentError("name files to train on, or --counts")
    if args.counts:
        return Counts.load_sum(args.counts)
    if args.sizes is None or args.parity:
        return None
    return count_words(args.files, **cutting_arguments(args), **input_arguments(args))
