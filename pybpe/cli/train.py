"""The command `pybpe train`, and the options that it shares with others that train or count words."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from ..errors import ArgumentError, note
from ..reading.options import ReadOptions
from ..reading.sample import Sample
from ..support.run_options import RunOptions
from ..training.options import TrainOptions
from .common import (
    add_common,
    add_files,
    add_output,
    call,
    describe,
    list_of_skipped,
    load,
    remove_old_list,
    report,
    save_tokenizer,
)
from .options import add_options, named_files, parse_amounts

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
        "pybpe train german.txt --like tok.json --vocab-size 32000 -o german.json\n"
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
    parser.add_argument("--like", metavar="TOK", help="a tokenizer whose settings to take, but none of its tokens")
    parser.add_argument(
        "--parity",
        action="append",
        metavar="NAME=FILE",
        help="a development text of each language, repeatable: each merge helps the language that costs the most tokens"
        " on its own. Files to train on are then NAME=FILE too. --max-bytes and --max-documents are for each language",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="save the words in a folder while counting; rerun the same command to resume",
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
    add_common(parser, _run_train)


def add_remap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--remap", metavar="F", help="write the old id of each new id to *.npy (int64, -1 if none)")


def tell_of_commas(args: argparse.Namespace) -> None:
    for text in args.special_tokens or ():
        if "," in text:
            note(f"--special-token {text!r} is one token, with its commas: to name several, repeat the option")


def fewer_than(size: int, got: int) -> str:
    """Returns why a vocabulary has fewer tokens than requested; "" if it does not."""
    if got >= size:
        return ""
    return f" (fewer than {size}: no other pair occurs often enough; use more text to get more)"


def _run_train(args: argparse.Namespace) -> None:
    from ..formats.export import format_of
    from ..model.remap import old_ids, save_remap
    from ..training.counts import Counts

    format_of(args.output)  # refuses an unknown ending now, not after an hour of training
    _check_options(args)
    tell_of_commas(args)
    base = None if args.base is None else load(args.base)
    size, counts = 0, None
    if base is not None and args.special_tokens and not (args.files or args.counts):
        tokenizer = base.extend(args.special_tokens, vocab_size=args.vocab_size)
    else:
        size = max([*(args.sizes or ()), args.vocab_size or 0])
        if not size:
            raise ArgumentError("give --vocab-size N, or several sizes with --sizes N,N,...")
        if bool(args.counts) == bool(args.files):
            raise ArgumentError("name files to train on, or --counts")
        counts = Counts.load_sum(args.counts) if args.counts else None
        tokenizer, counts = _trained(args, size, base, counts)
    save_tokenizer(tokenizer, args.output)
    if base is not None and args.remap is not None:
        save_remap(args.remap, old_ids(base.model, tokenizer.model))
    remove_old_list(args)
    facts = {"output": args.output, "vocab_size": len(tokenizer), "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {counted(len(tokenizer), 'token')}, {counted(facts['merges'], 'merge')}"
    line += fewer_than(size, len(tokenizer))
    if args.sizes is not None and counts is not None:
        from ..analysis.compression_curve import compression_curve, plot, table

        points = compression_curve(tokenizer, counts, args.sizes, args.hidden)
        facts["sizes"] = [point._asdict() for point in points]
        line += f"\n{table(points)}"
        if args.plot is not None:
            plot(points, args.plot)
    report(args, facts, line)


def _check_options(args: argparse.Namespace) -> None:
    """Raises ArgumentError for options that contradict each other, and for a plot that could not be drawn."""
    for name, needed, reason in (("plot", "sizes", "draws their curve"), ("remap", "base", "compares ids with its")):
        if getattr(args, name) is not None and getattr(args, needed) is None:
            raise ArgumentError(f"--{name} needs --{needed}: it {reason}")
    for name in ("base", "like", "checkpoint", "parity", "superwords"):
        if args.sizes is not None and getattr(args, name):
            raise ArgumentError(f"--sizes cannot be used with --{name}")
    if args.plot is not None:
        from ..analysis.compression_curve import check_plot

        check_plot(args.plot)


def _trained(
    args: argparse.Namespace, size: int, base: Tokenizer | None, counts: Counts | None
) -> tuple[Tokenizer, Counts | None]:
    """Returns the tokenizer, and the counts that it learned from if they are known."""
    from ..trainer import train
    from ..training.counting import count_words

    skipped, files, parity = list_of_skipped(args), args.files, None
    like = None if args.like is None else load(args.like)
    more: dict[str, Any] = {}
    if args.parity:
        files = named_files("with --parity, files", files)
        parity = named_files("--parity", args.parity)
    elif args.sizes is not None and counts is None:
        counts = call(count_words, args, files, skipped=skipped)
        more = {"max_documents": None, "max_bytes": None, "seed": 0}  # the counts were made from the sample
    texts = files if counts is None else None
    made = call(
        train, args, texts, vocab_size=size, base=base, like=like, counts=counts, parity=parity, skipped=skipped, **more
    )
    return made, counts
