"""The command `pybpe train`, and the options that it shares with others that train or count words."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import pybpe

from ..arguments import counted, whole_number
from ..errors import ArgumentError
from ..reading.inputs import ReadOptions
from ..reading.sample import Sample
from ..training.train_options import TrainOptions
from .command import Command
from .common import call, list_of_skipped, load, remove_old_list, report, save_tokenizer, tell_of_commas
from .options import named_files, parse_amount


def add_train(command: Command) -> None:
    """Train a tokenizer: count the words of the files, and merge the most frequent
    pairs of tokens until the vocabulary is full.

    examples:
      pybpe train novel.txt --vocab-size 20000 -o tok.json \\
          --special-token '<|endoftext|>'
      pybpe train web/*.jsonl.zst --text-key content --vocab-size 32k -o tok.json
      pybpe train novel.txt --sizes 8k,16k,32k --plot curve.png -o tok.json

    more examples:
      pybpe train *.txt --vocab-size 32k --pattern cl100k -o tok.bin
      pybpe train web/ --max-bytes 2G --checkpoint tok.checkpoint \\
          --vocab-size 50k -o tok.json
      pybpe train novel.txt --superwords --vocab-size 20000 -o superwords.json
      pybpe train en=en.txt zh='zh/*.txt' --parity en=dev.en --parity zh=dev.zh \\
          --vocab-size 20k -o fair.json
      pybpe train german.txt --like tok.json --vocab-size 32000 -o german.json
      pybpe train more.txt --base tok.json --vocab-size 24000 -o larger.json
      pybpe train --base tok.json --special-token '<|tool|>' -o tools.json

    The result is the same for any number of workers.
    """
    command.files("*")
    command.output("*.json (Hugging Face), *.bin (llm.c) or a folder (transformers); - is stdout, as JSON")
    add_training(command, vocab_size=None)
    with command.group("comparing vocabulary sizes"):
        command.option(
            "--sizes N,N,...",
            "train the largest size, and show bytes per token and embedding parameters of all, e.g. 8k,16k,32k",
            lambda text: [parse_amount(part) for part in text.split(",")],
        )
        command.option("--channels C", "the width of the model, for embedding parameters (default: 768)", int)
        command.option("--plot FILE", "draw the curve to *.png, *.svg or *.pdf", path="writes")
    with command.group("starting from another tokenizer"):
        command.option("--base TOK", "extend this tokenizer, and keep its ids", path="reads")
        command.option("--like TOK", "use the settings of this tokenizer, but none of its tokens", path="reads")
        add_remap(command)
    with command.group("several languages"):
        command.option(
            "--parity NAME=FILE",
            "a development text for a language. Repeat the option for every language, and write the files to train on"
            " as NAME=FILE, too. Each merge helps the language that costs the most tokens. --max-bytes and"
            " --max-documents then apply to every language",
            action="append",
            path="texts",
        )
        command.options(TrainOptions, "parity_per")
    with command.group("reading"):
        command.options(ReadOptions)
    with command.group("sampling"):
        command.options(Sample)
    command.runtime("workers", "memory_limit")
    with command.group("running"):
        command.option(
            "--counts COUNTS", "use counts from `pybpe count` instead of files", action="append", path="reads"
        )
        command.option(
            "--checkpoint DIR",
            "save the words in this folder while counting; rerun the same command to resume",
            path="writes folder",
        )
    command.progress()
    command.runs(_run_train)


def add_training(command: Command, special_tokens: Sequence[str] = (), **more: Any) -> None:
    """Adds the options of training, the essential ones first, without those for several languages."""
    essential = ("vocab_size", "special_tokens", "pattern")
    command.options(TrainOptions, *essential, special_tokens=special_tokens, **more)
    with command.group("training"):
        command.options(TrainOptions, without=(*essential, "parity_per"))


def add_remap(command: Command) -> None:
    help = "write the old id of every new id to *.npy (int64, -1 if there is none)"
    command.option("--remap FILE", help, path="writes")


def _run_train(args: argparse.Namespace) -> None:
    from ..formats.any_format import format_of

    format_of(args.output)  # refuses an unknown ending now, not after an hour of training
    _check_options(args)
    tell_of_commas(args)
    base = None if args.base is None else load(args.base)
    size, counts = 0, None
    if base is not None and args.special_tokens and not (args.files or args.counts):
        tokenizer = base.extend(args.special_tokens, vocab_size=args.vocab_size)
    else:
        if args.vocab_size is None and not args.sizes:
            raise ArgumentError("use --vocab-size N, or several sizes with --sizes N,N,...")
        size = max([*(args.sizes or ()), args.vocab_size or 0])
        if bool(args.counts) == bool(args.files):
            raise ArgumentError("use files to train on, or --counts")
        counts = pybpe.Counts.load_sum(args.counts) if args.counts else None
        tokenizer, counts = _trained(args, size, base, counts)
    save_tokenizer(tokenizer, args, base, keep=True)
    remove_old_list(args)
    facts = {"output": args.output, "vocab_size": len(tokenizer), "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {counted(len(tokenizer), 'token')}, {counted(facts['merges'], 'merge')}"
    if args.sizes is not None and counts is not None:
        from ..analysis.usage import compression_curve, curve_table, plot

        points = compression_curve(tokenizer, counts, args.sizes, args.channels or 768)
        facts["sizes"] = [point._asdict() for point in points]
        line += f"\n{curve_table(points)}"
        if args.plot is not None:
            plot(points, args.plot)
    report(args, facts, line)


def _check_options(args: argparse.Namespace) -> None:
    """Raises ArgumentError for options that contradict each other, and for a plot that could not be drawn."""
    for name, needed, reason in (
        ("channels", "sizes", "counts their embedding parameters"),
        ("plot", "sizes", "draws their curve"),
        ("remap", "base", "compares ids with its"),
    ):
        if getattr(args, name) is not None and getattr(args, needed) is None:
            raise ArgumentError(f"--{name} needs --{needed}: it {reason}")
    for name in ("base", "like", "checkpoint", "parity", "superwords"):
        if args.sizes is not None and getattr(args, name):
            raise ArgumentError(f"--sizes cannot be used with --{name}")
    if args.channels is not None:
        args.channels = whole_number("channels", args.channels, 1)
    if args.plot is not None:
        from ..analysis.usage import check_plot

        check_plot(args.plot)


def _trained(
    args: argparse.Namespace, size: int, base: pybpe.Tokenizer | None, counts: pybpe.Counts | None
) -> tuple[pybpe.Tokenizer, pybpe.Counts | None]:
    """Returns the tokenizer, and the counts that it learned from if they are known."""
    skipped, files, parity = list_of_skipped(args), args.files, None
    like = None if args.like is None else load(args.like)
    more: dict[str, Any] = {}
    if args.parity:
        files = named_files("with --parity, files", files)
        parity = named_files("--parity", args.parity)
    elif args.sizes is not None and counts is None:
        counts = call(pybpe.count_words, args, files, skipped=skipped)
        more = {"max_documents": None, "max_bytes": None, "seed": 0}  # the counts were made from the sample
    texts = files if counts is None else None
    made = call(
        pybpe.train,
        args,
        texts,
        vocab_size=size,
        base=base,
        like=like,
        counts=counts,
        parity=parity,
        skipped=skipped,
        **more,
    )
    return made, counts
