"""The command `pybpe train`, and the options that it shares with others that train or count words."""

from __future__ import annotations

import argparse
from typing import Any

import pybpe

from ..arguments import counted, whole_number
from ..errors import ArgumentError
from ..reading.options import ReadOptions
from ..reading.sample import Sample
from ..support.parallel import RunOptions
from ..training.options import TrainOptions
from .command import Command
from .common import call, list_of_skipped, load, remove_old_list, report, save_tokenizer, tell_of_commas
from .options import named_files, parse_amount


def add_train(command: Command) -> None:
    """Counts the words of the files and merges the most frequent pairs of tokens until the vocabulary is
    full. The result is the same for any number of workers. With --base, extends a tokenizer, whose ids stay:
    by new special tokens, and by merges learned from the files.

    examples:
      pybpe train novel.txt --vocab-size 20000 --special-token '<|endoftext|>' -o tok.json
      pybpe train *.txt --vocab-size 32000 --pattern cl100k --min-frequency 2 -o tok.bin
      pybpe train corpus/ --max-bytes 2G --checkpoint tok.checkpoint --vocab-size 50k -o tok.json
      pybpe train corpus.jsonl.zst --text-key content --sizes 8k,16k,32k --plot curve.png -o tok.json
      pybpe train novel.txt --superwords --vocab-size 20000 -o superwords.json
      pybpe train en=en.txt zh='zh/*.txt' --parity en=dev.en --parity zh=dev.zh --vocab-size 20k -o fair.json
      pybpe train german.txt --like tok.json --vocab-size 32000 -o german.json
      pybpe train more.txt --base tok.json --vocab-size 24000 -o larger.json --remap remap.npy
      pybpe train --base tok.json --special-token '<|tool|>' -o tools.json
    """
    command.files("*")
    command.options(TrainOptions, vocab_size=None)
    command.options(ReadOptions)
    command.options(Sample)
    command.options(RunOptions, "memory_limit", "workers")
    command.option("--counts COUNTS", "use counts from `pybpe count`, not files", action="append")
    command.option("--base TOK", "a tokenizer to extend; its ids stay the same")
    command.option("--like TOK", "a tokenizer whose settings to take, but none of its tokens")
    command.option(
        "--parity NAME=FILE",
        "a development text of each language, repeatable: each merge helps the language that costs the most tokens"
        " on its own. Files to train on are then NAME=FILE too. --max-bytes and --max-documents are for each language",
        action="append",
    )
    command.option("--checkpoint DIR", "save the words in a folder while counting; rerun the same command to resume")
    command.option(
        "--sizes N,N,...",
        "compare these vocabulary sizes, e.g. 8k,16k,32k (bytes/token, embedding parameters); train the largest",
        lambda text: [parse_amount(part) for part in text.split(",")],
    )
    command.option("--hidden N", "for --sizes: model width (default: 768)", int)
    command.option("--plot FILE", "draw the curve of --sizes to *.png, *.svg or *.pdf")
    command.output("output: *.json (Hugging Face), *.bin (llm.c) or a folder (transformers); - is stdout, as JSON")
    add_remap(command)
    command.progress()
    command.runs(_run_train)


def add_remap(command: Command) -> None:
    command.option("--remap F", "write the old id of each new id to *.npy (int64, -1 if none)")


def _run_train(args: argparse.Namespace) -> None:
    from ..formats.export import format_of

    format_of(args.output)  # refuses an unknown ending now, not after an hour of training
    _check_options(args)
    tell_of_commas(args)
    base = None if args.base is None else load(args.base)
    size, counts = 0, None
    if base is not None and args.special_tokens and not (args.files or args.counts):
        tokenizer = base.extend(args.special_tokens, vocab_size=args.vocab_size)
    else:
        if args.vocab_size is None and not args.sizes:
            raise ArgumentError("give --vocab-size N, or several sizes with --sizes N,N,...")
        size = max([*(args.sizes or ()), args.vocab_size or 0])
        if bool(args.counts) == bool(args.files):
            raise ArgumentError("name files to train on, or --counts")
        counts = pybpe.Counts.load_sum(args.counts) if args.counts else None
        tokenizer, counts = _trained(args, size, base, counts)
    save_tokenizer(tokenizer, args, base, keep=True)
    remove_old_list(args)
    facts = {"output": args.output, "vocab_size": len(tokenizer), "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {counted(len(tokenizer), 'token')}, {counted(facts['merges'], 'merge')}"
    if args.sizes is not None and counts is not None:
        from ..analysis.usage import compression_curve, plot, table

        points = compression_curve(tokenizer, counts, args.sizes, args.hidden or 768)
        facts["sizes"] = [point._asdict() for point in points]
        line += f"\n{table(points)}"
        if args.plot is not None:
            plot(points, args.plot)
    report(args, facts, line)


def _check_options(args: argparse.Namespace) -> None:
    """Raises ArgumentError for options that contradict each other, and for a plot that could not be drawn."""
    for name, needed, reason in (
        ("hidden", "sizes", "counts their embedding parameters"),
        ("plot", "sizes", "draws their curve"),
        ("remap", "base", "compares ids with its"),
    ):
        if getattr(args, name) is not None and getattr(args, needed) is None:
            raise ArgumentError(f"--{name} needs --{needed}: it {reason}")
    for name in ("base", "like", "checkpoint", "parity", "superwords"):
        if args.sizes is not None and getattr(args, name):
            raise ArgumentError(f"--sizes cannot be used with --{name}")
    if args.hidden is not None:
        args.hidden = whole_number("hidden", args.hidden, 1)
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
