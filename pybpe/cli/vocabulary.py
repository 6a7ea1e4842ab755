"""The commands `pybpe export` and `prune`, whose input and output are whole tokenizers."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

import pybpe

from ..errors import ArgumentError, Error, warn
from ..pattern import Pattern
from ..reading.inputs import ReadOptions
from .command import Command
from .common import call, check_place, load, named_output, names_alone, report, save_tokenizer
from .options import parse_amount
from .train import add_remap


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
    these are merged from, the bytes and the special tokens. --remap tells you which
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
        raise ArgumentError("use files whose tokens to keep, or --vocab-size N")
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
