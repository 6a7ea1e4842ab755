"""The command `pybpe bpb`."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from dataclasses import asdict

from .._numpy import Array, numpy
from ..errors import FormatError
from .command import Command
from .common import call, load, report
from .options import parse_amount


def add_bpb(command: Command) -> None:
    """Turns the losses of a model on token files into bits per byte of text, which models with different
    tokenizers can be compared by: the sum of the losses / ln 2 / the bytes of text of the same tokens, parts of
    characters included. The model predicted each token but the first. Special tokens, which are no text, are
    left out of both sums, as in nanochat. Losses are in nats, not in bits. Refuses losses that do not fit the
    files, and a tokenizer that did not make them.

    examples:
      pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy
      pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy --limit 10485760
      pybpe bpb -t tok.json val.bin --losses 3.2829 --count-special      # a mean over all tokens
    """
    command.option("files FILE", "token files, which are one stream", nargs="+")
    command.tokenizer()
    command.option(
        "--losses FILE|MEAN",
        "-ln p of each token: *.npy of floats in any shape, or text with white space between; or their mean",
        required=True,
    )
    command.option("--limit N", "the evaluation stopped after N tokens (default: at the end)", parse_amount)
    command.option(
        "--count-special",
        "add the losses of special tokens: the bits that the documents take together with where they end",
    )
    command.runs(_run_bpb)


def _run_bpb(args: argparse.Namespace) -> None:
    from ..analysis.bits_per_byte import bits_per_byte

    found = call(bits_per_byte, args, load(args.tokenizer), args.files, losses=_losses(args.losses))
    report(args, {"bits_per_byte": found.value, **asdict(found)}, str(found))


def _losses(given: str) -> float | Array:
    from ..formats.id_files import NPY_MAGIC, npy_blocks, read_npy_header
    from ..reading.streams import open_unchanged

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
