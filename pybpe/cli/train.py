"""The commands whose output is a tokenizer: `pybpe train`, `export` and `prune`; and the options of training."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pybpe

from ..arguments import is_url, number_of, whole_number
from ..errors import ArgumentError, Error, file_errors, warn
from ..pattern import Pattern
from ..reading.files import input_files
from ..reading.inputs import STDIN, ReadOptions
from ..reading.pieces import Sample
from ..training.plan import TrainOptions
from .command import Command
from .common import (
    call,
    check_place,
    list_of_skipped,
    load,
    named_files,
    named_output,
    names_alone,
    parse_amount,
    remove_old_list,
    report,
    save_tokenizer,
    tell_of_commas,
)


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
            for path in input_files(args.files) if args.files and not args.parity else ():  # a wrong name comes first
                if path != STDIN and not is_url(path):
                    with file_errors(path, "cannot be opened"):
                        os.stat(path)
            raise ArgumentError("use --vocab-size N, or several sizes with --sizes N,N,...")
        size = max([*(args.sizes or ()), args.vocab_size or 0])
        if bool(args.counts) == bool(args.files):
            raise ArgumentError("use files to train on, or --counts")
        counts = pybpe.Counts.load_sum(args.counts) if args.counts else None
        tokenizer, counts = _trained(args, size, base, counts)
    save_tokenizer(tokenizer, args, base, keep=True)
    remove_old_list(args)
    facts = {"output": args.output, "vocab_size": len(tokenizer), "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {number_of(len(tokenizer), 'token')}, {number_of(facts['merges'], 'merge')}"
    if args.sizes is not None and counts is not None:
        from ..analysis.usage import compression_curve, curve_table, plot

        points = compression_curve(tokenizer, counts, args.sizes, args.channels or 768)
        facts["sizes"] = [point._asdict() for point in points]
        line += f"\n{curve_table(points)}"
        if args.plot is not None:
            plot(points, args.plot)
    report(args, facts, line)


def _check_options(args: argparse.Namespace) -> None:
    """Raises ArgumentError for contradictory options, and for a plot that could not be drawn."""
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


# ----------------------------------------------------------------------------------------------------
# export, prune


def _read(args: argparse.Namespace) -> pybpe.Tokenizer:
    """Loads TOK. For a .tiktoken file, uses --pattern and --special-token."""
    if args.pattern is None and args.special_tokens is None:
        return load(args.tokenizer)
    specials = {}
    for entry in args.special_tokens or ():
        text, _, number = entry.rpartition("=")
        if not text or not number.isdecimal():
            raise ArgumentError(f"--special-token: expected TEXT=ID, as in '<|endoftext|>=50256', not {entry!r}")
        specials[text] = int(number)
    if args.pattern is not None:
        known = None
        with suppress(Error):  # unless its pattern is not known
            known = load(args.tokenizer).pattern
        if known not in (None, Pattern(args.pattern)):
            what = f"has the pattern {str(known)!r:.60}: --pattern is for files without one, or with an unknown one"
            raise ArgumentError(f"{args.tokenizer}: {what}")
    return pybpe.Tokenizer.from_file(args.tokenizer, pattern=args.pattern, special_tokens=specials or None)


def add_export(command: Command) -> None:
    """Write a tokenizer in another format.

    examples:
      pybpe export tok.json -o tokenizer.bin         # for llm.c
      pybpe export tok.bin -o my-tokenizer/          # for AutoTokenizer
      pybpe export gpt2 -o gpt2.json                 # for tokenizers

    more examples:
      pybpe export tok.json -o gpt2/ --format files  # vocab.json and merges.txt
      pybpe export tok.json -o tok.tiktoken
      pybpe export tok.json -o vocab.gguf            # for llama.cpp
      pybpe export tok.json -o token_bytes.pt --format byte_lengths
      pybpe export tok.json -o ~/.cache/nanochat/tokenizer/ --format nanochat
      pybpe export cl100k_base.tiktoken --pattern cl100k -o tok.json \\
          --special-token '<|endoftext|>=100257'

    The command refuses an export that would change ids or lose something.
    """
    command.option(
        "tokenizer TOK", "tokenizer.json, tokenizer.bin, *.tiktoken, a folder, or a name such as gpt2", path="reads"
    )
    command.option("-o --output OUT", "the file or folder to write; - is stdout", required=True, path="writes folder")
    command.option(
        "--format F",
        "json, bin, files, tiktoken, gguf or pretrained (default: by the ending of OUT); json2, version 2.0 of"
        " tokenizer.json, which only tokenizers 1.0 reads; nanochat, for its folder; or"
        " byte_lengths: a table of the bytes of text of every id, in *.npy or *.pt (PyTorch)",
    )
    command.option(
        "--pattern P",
        "pattern of a .tiktoken file (a name, or tiktoken's regular expression), or to replace an unknown one",
    )
    command.option(
        "--special-token S=ID",
        "a special token and its id, for a .tiktoken file; repeatable",
        dest="special_tokens",
        action="append",
    )
    command.option(
        "--ids-only", "leave out parts that the format cannot hold and ids do not need, such as a chat template"
    )
    command.runs(_run_export)


def _run_export(args: argparse.Namespace) -> None:
    from ..formats.any_format import format_of

    tokenizer = _read(args)
    check_place(args, tokenizer)
    format = args.format or ("json" if args.output == "-" else format_of(args.output))
    if args.output == "-" and format in ("files", "pretrained", "nanochat"):
        raise ArgumentError(f"--format {format} makes a folder, which cannot go to standard output: name it with -o")
    with named_output(args, alone=names_alone()) as name:
        tokenizer.save(name, format, ids_only=args.ids_only)
    facts = {"output": args.output, "format": format, "vocab_size": len(tokenizer)}
    report(args, facts, f"{args.output}: {len(tokenizer)} tokens")


def add_prune(command: Command) -> None:
    """Drop tokens that a corpus does not use, or all after the first N.

    examples:
      pybpe prune tok.json corpus/ -o small.json --min-count 10 --remap remap.npy
      pybpe prune tok.json --vocab-size 16k -o small.json

    With files, the command keeps the tokens that occur in them, the tokens that
    they are merged from, all bytes and the special tokens. --remap tells you which
    rows of an embedding to keep.
    """
    command.option("tokenizer TOK", "a tokenizer file or folder", path="reads")
    command.option("files FILE", "text files, folders, globs", nargs="*", path="texts")
    command.output("*.json, *.bin or a folder; - is stdout")
    command.option("--min-count N", "keep tokens that occur at least N times (default: 1)", int, default=1)
    command.option("--vocab-size N", "keep the first N tokens instead", parse_amount)
    add_remap(command)
    with command.group("reading"):
        command.options(ReadOptions, "text_key", "encoding", "keep_crlf")
    command.runtime("workers")
    command.runs(_run_prune)


def _run_prune(args: argparse.Namespace) -> None:
    from ..formats.any_format import format_of

    format_of(args.output)  # refuses an unknown ending now
    if bool(args.files) == (args.vocab_size is not None):
        raise ArgumentError("name files with the tokens to keep, or use --vocab-size N")
    old, note = load(args.tokenizer), ""
    if args.vocab_size is not None:
        new = old.prune(vocab_size=args.vocab_size)
    else:
        counts = corpus_usage(old, args).counts
        new = old.prune([i for i, count in enumerate(counts) if count >= args.min_count])
        if len(new) == len(old):
            note = ": every token is used, part of a used token, a byte or a special token; --min-count drops rare ones"
    save_tokenizer(new, args, old)
    facts = {"output": args.output, "old": len(old), "vocab_size": len(new), "remap": args.remap}
    report(args, facts, f"{args.output}: {len(new)} tokens, previously {len(old)}{note}")


def corpus_usage(tokenizer: pybpe.Tokenizer, args: argparse.Namespace) -> Any:
    """Returns the pybpe.analysis.usage.Usage of a tokenizer on `args.files`."""
    from ..analysis.usage import measure

    if tokenizer.model.matching or tokenizer.model.prefix_space:
        warn(
            "words are counted without add_prefix_space and the flags of special tokens (lstrip,"
            " rstrip, single_word, normalized), so the counts of tokens next to special tokens are estimates"
        )
    counts = call(
        pybpe.count_words,
        args,
        args.files,
        pattern=tokenizer.pattern,
        normalizer=tokenizer.model.normalizer,
        special_tokens=list(tokenizer.special_tokens),
    )
    if not len(counts):
        raise ArgumentError("the files have no text, so no token would be found in them")
    return measure(tokenizer, counts.to_dict())
