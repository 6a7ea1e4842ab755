"""The command `pybpe advise`."""

from __future__ import annotations

import argparse

from ..reading.options import ReadOptions
from ..reading.sample import Sample
from ..training.options import TrainOptions
from .command import Command
from .common import CUTTING, call, report
from .options import parse_amount


def add_advise(command: Command) -> None:
    """Trains one large vocabulary on a sample of the files, measures how well it and its beginnings compress text
    that was held out, and suggests the size of a vocabulary for a GPT-2 with this many parameters, if all
    sizes get the same compute. The reasons are in five lines; docs/vocabularies.md says how far to trust them.

    examples:
      pybpe advise corpus.txt --params 30M --tokens 600M
      pybpe advise corpus/ --layers 12 --channels 768 --tokens 10G --plot curve.svg
      pybpe advise corpus.jsonl.zst --text-key content --params 30M --tokens 600M --pattern o200k --json
    """
    command.files()
    command.option("--params N", "parameters of the model without embeddings, e.g. 30M", parse_amount)
    command.option("--layers L", "instead of --params, with --channels", int)
    command.option("--channels C", "width of the model (default: 64 for each layer, as in llm.c)", int)
    command.option(
        "--tokens N",
        "number of tokens to train on, e.g. 600M: with --params it sets the compute, which all sizes get",
        parse_amount,
        required=True,
    )
    command.options(TrainOptions, *CUTTING, "special_tokens")
    command.options(ReadOptions, "text_key", "encoding")
    command.options(Sample, "max_bytes", "seed", max_bytes=200_000_000)
    command.option("--plot FILE", "draw the curve to *.png, *.svg or *.pdf")
    command.runs(_run_advise)


def _run_advise(args: argparse.Namespace) -> None:
    from ..analysis import advice, compression_curve

    if args.plot is not None:
        compression_curve.check_plot(args.plot)
    found = call(advice.advise, args, args.files)
    if args.plot is not None:
        advice.plot(found, args.plot)
    report(args, found.to_dict(), str(found))
