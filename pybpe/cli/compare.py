"""The commands `pybpe compare` and `bpb`: differences and measures."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from typing import Any

import pybpe

from .._lazy import Array, numpy
from ..arguments import number_of
from ..errors import ArgumentError, FormatError
from ..reading.inputs import ReadOptions
from ..reading.streams import open_unchanged
from .command import Command
from .common import call, load, load_all, named_files, open_source, parse_amount, report


def add_compare(command: Command) -> None:
    """Show how two tokenizers differ, or measure several on documents of your own.

    examples:
      pybpe compare a.json b.bin
      pybpe compare a.json b.json --file novel.txt
      pybpe compare mine.json gpt2 --on en=english.txt --on zh=chinese.txt
      pybpe compare a.json b.json --on news='news/*.jsonl.gz' --on code=src/ --json

    Differences are settings, special tokens, tokens that only one of them has,
    tokens with different ids, and the first different merge. With --file, you also
    see where the ids of a text differ. The command exits with 0 if both give the
    same ids for every text, and with 1 if they differ.

    Measures are bytes per token, tokens per word and per character, Renyi
    efficiency, the share of the vocabulary that is used, tokens that never occur,
    occur fewer than 100 times, are not UTF-8 or cannot be reached, the slope of the
    Zipf curve, fairness between languages, and how a tokenizer cuts numbers and
    code. Special tokens separate documents and are not measured. To compare
    languages, use translations of the same text, line by line.
    """
    command.option("tokenizers TOK", "tokenizer files or folders, or names such as gpt2", nargs="+", path="reads")
    command.option("--file FILE", "a text to encode with two tokenizers, to see where their ids differ", path="texts")
    command.option("--count N", "how many differences of each kind to show (default: 10)", int, default=10)
    command.option(
        "--on NAME=FILE",
        "measure on this file, folder or glob; NAME is its language or kind. Repeat the option for more; the same NAME"
        " adds files to it",
        action="append",
        path="texts",
    )
    with command.group("reading"):
        command.options(ReadOptions, "text_key", "encoding", "keep_crlf")
    command.runtime("workers")
    command.progress()
    command.runs(_run_compare)


def _run_compare(args: argparse.Namespace) -> int:
    if not args.on:
        return _run_differences(args)
    if args.file is not None:
        raise ArgumentError("--file shows where two tokenizers differ, without --on: leave one of them out")
    comparison = call(pybpe.compare, args, load_all(args.tokenizers), named_files("--on", args.on))
    report(args, comparison.to_dict(), str(comparison))
    return 0


def _run_differences(args: argparse.Namespace) -> int:
    from ..analysis.differences import differences, differences_on

    if len(args.tokenizers) != 2:
        raise ArgumentError("use two tokenizers, or --on NAME=FILE with documents to measure them on")
    a, b = map(load, args.tokenizers)
    facts = differences(a, b)
    if args.file is not None:
        with open_source(args.file, args.encoding, args.keep_crlf) as stream:
            facts["text"] = differences_on(a, b, stream.read())
    report(args, facts, "\n".join(_difference_lines(facts, max(0, args.count))))
    return 0 if facts["equal"] else 1


def _difference_lines(facts: dict[str, Any], count: int) -> list[str]:
    lines = ["equal: the same ids for every text" if facts["equal"] else "different"]
    lines += [f"{name}: {a} in A, {b} in B" for name, (a, b) in facts["settings"].items()]
    if not facts["equal"]:
        for key, title in (
            ("only_in_a", "tokens only in A"),
            ("only_in_b", "tokens only in B"),
            ("other_ids", "tokens with different ids [token, in A, in B]"),
        ):
            lines += [f"{title}: {len(facts[key])}", *(f"    {entry!r}" for entry in facts[key][:count])]
        if facts["first_merge"] is not None:
            rank, a, b = facts["first_merge"]
            lines.append(f"first merge that differs: number {rank}, {a} in A, {b} in B")
    return lines + (_text_lines(facts["text"], count) if "text" in facts else [])


def _text_lines(text: dict[str, Any], count: int) -> list[str]:
    lines = [f"the text: {number_of(text['tokens_a'], 'token')} in A, {text['tokens_b']} in B"]
    if text["different"] is None:
        return [*lines, "their normalizers or special tokens turn the text into different texts"]
    places = [f"    byte {at}: {a} in A, {b} in B" for at, a, b in text["different"][:count]]
    return [*lines, f"places that are split differently: {len(text['different'])}", *places]


# ----------------------------------------------------------------------------------------------------
# bpb


def add_bpb(command: Command) -> None:
    """Turn the losses of a model into bits per byte, a measure that lets you compare
    models with different tokenizers.

    examples:
      pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy
      pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy --limit 10485760
      pybpe bpb -t tok.json val.bin --losses 3.2829 --count-special

    Bits per byte are the sum of the losses / ln 2 / the bytes of text of the same
    tokens, parts of characters included. The model predicted every token but the
    first. Special tokens are no text, so both sums leave them out, like nanochat; a
    mean over all tokens needs --count-special. Losses are in nats, not in bits. The
    command refuses losses that do not fit the files, and a tokenizer that did not
    make them.
    """
    command.option("files FILE", "token files, which are one stream", nargs="+", path="texts")
    command.tokenizer()
    command.option(
        "--losses FILE|MEAN",
        "-ln p of every token, as *.npy of floats in any shape, or as text separated by white space; or their mean",
        required=True,
        path="texts",
    )
    command.option("--limit N", "the evaluation stopped after N tokens (default: at the end)", parse_amount)
    command.option(
        "--count-special",
        "add the losses of special tokens, which tell where documents end",
    )
    command.runs(_run_bpb)


def _run_bpb(args: argparse.Namespace) -> None:
    found = call(pybpe.bits_per_byte, args, load(args.tokenizer), args.files, losses=_losses(args.losses))
    report(args, {"bits_per_byte": found.value, **vars(found)}, str(found))


def _losses(given: str) -> float | Array:
    from ..formats.id_files import NPY_MAGIC, npy_blocks, read_npy_header

    with suppress(ValueError):
        if not os.path.lexists(given):
            return float(given)
    with open_unchanged(given) as stream:
        if stream.read(len(NPY_MAGIC)) == NPY_MAGIC:
            header = read_npy_header(stream, given)
            return numpy.concatenate([numpy.empty(0, header.dtype), *npy_blocks(stream, header, given, 1 << 24)])
        stream.seek(0)
        words = stream.read().split()
    try:
        return numpy.array(words, dtype=numpy.float64)
    except ValueError as error:
        raise FormatError(f"{given}: expected a .npy file, or numbers: {str(error):.120}") from None
