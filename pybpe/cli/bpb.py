"""The command `pybpe bpb`."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from dataclasses import asdict

from .._numpy import Array, numpy
from ..errors import FormatError
from .common import add_common, add_tokenizer, call, describe, load, report
from .options import parse_amount


def add_bpb(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Turns the losses of a model on token files into bits per byte of text, which models with different\n"
        "tokenizers can be compared by: the sum of the losses / ln 2 / the bytes of text of the same tokens, parts of\n"
        "characters included. The model predicted each token but the first. Special tokens, which are no text, are\n"
        "left out of both sums, as in nanochat. Losses are in nats, not in bits. Refuses losses that do not fit the\n"
        "files, and a tokenizer that did not make them.",
        "pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy\n"
        "pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy --limit 10485760\n"
        "pybpe bpb -t tok.json val.bin --losses 3.2829 --count-special      # a mean over all tokens",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="token files, which are one stream")
    add_tokenizer(parser)
    parser.add_argument(
        "--losses",
        required=True,
        metavar="FILE|MEAN",
        help="-ln p of each token: *.npy of floats in any shape, or text with white space between; or their mean",
    )
    parser.add_argument(
        "--limit", type=parse_amount, metavar="N", help="the evaluation stopped after N tokens (default: at the end)"
    )
    parser.add_argument(
        "--count-special",
        action="store_true",
        help="add the losses of special tokens: the bits that the documents take together with where they end",
    )
    add_common(parser, _run_bpb)


def _run_bpb(args: argparse.Namespace) -> None:
    from ..analysis.bits_per_byte import bits_per_byte

    found = call(bits_per_byte, args, load(args.tokenizer), args.files, losses=_losses(args.losses))
    report(args, {"bits_per_byte": found.value, **asdict(found)}, str(found))


def _losses(given: str) -> float | Array:
    """Returns the mean, or the losses in a file."""
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
        raise FormatError(f"{given}: expected a .npy file, or numbers: {error}") from None
