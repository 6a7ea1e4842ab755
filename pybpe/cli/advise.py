"""The command `pybpe advise`."""

from __future__ import annotations

import argparse

from ..reading.options import ReadOptions
from ..reading.sample import Sample
from ..training.options import TrainOptions
from .common import add_common, add_files, call, describe, report
from .options import add_options, parse_amount
from .train import CUTTING


def add_advise(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Trains one large vocabulary on a sample of the files, measures how well it and its beginnings compress text\n"
        "that was held out, and suggests the size of a vocabulary for a GPT-2 with this many parameters, if all\n"
        "sizes get the same compute. The reasons are in five lines; docs/vocabularies.md says how far to trust them.",
        "pybpe advise corpus.txt --params 30M --tokens 600M\n"
        "pybpe advise corpus/ --layers 12 --channels 768 --tokens 10G --plot curve.svg\n"
        "pybpe advise corpus.jsonl.zst --text-key content --params 30M --tokens 600M --pattern o200k --json",
    )
    add_files(parser)
    parser.add_argument(
        "--params", type=parse_amount, metavar="N", help="parameters of the model without embeddings, e.g. 30M"
    )
    parser.add_argument("--layers", type=int, metavar="L", help="instead of --params, with --channels")
    parser.add_argument(
        "--channels", type=int, metavar="C", help="width of the model (default: 64 for each layer, as in llm.c)"
    )
    parser.add_argument(
        "--tokens",
        type=parse_amount,
        required=True,
        metavar="N",
        help="number of tokens to train on, e.g. 600M: with --params it sets the compute, which all sizes get",
    )
    add_options(parser, TrainOptions, *CUTTING, "special_tokens")
    add_options(parser, ReadOptions, "text_key", "encoding")
    add_options(parser, Sample, "max_bytes", "seed", max_bytes=200_000_000)
    parser.add_argument("--plot", metavar="FILE", help="draw the curve to *.png, *.svg or *.pdf")
    add_common(parser, _run_advise)


def _run_advise(args: argparse.Namespace) -> None:
    from ..analysis import advice, compression_curve

    if args.plot is not None:
        compression_curve.check_plot(args.plot)
    found = call(advice.advise, args, args.files)
    if args.plot is not None:
        advice.plot(found, args.plot)
    report(args, found.to_dict(), str(found))
