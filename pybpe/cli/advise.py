"""The command `pybpe advise`."""

from __future__ import annotations

import argparse
from typing import Any

from .common import add_command, add_common, add_encoding, check_writable, parse_amount, parse_bytes, progress, report
from .counts import add_cutting_options


def add_advise(commands: Any) -> None:
    parser = add_command(
        commands,
        "advise",
        "suggest a vocabulary size for a model",
        "Trains one large vocabulary on a sample of the files, measures how well it and its beginnings compress text\n"
        "that was held out, and suggests the size of a vocabulary for a GPT-2 with this many parameters, if all\n"
        "sizes get the same compute. The reasons are in five lines; docs/vocabularies.md says how far to trust them.",
        "pybpe advise corpus.txt --params 30M --tokens 600M\n"
        "pybpe advise corpus/ --layers 12 --channels 768 --tokens 10G --plot curve.svg\n"
        "pybpe advise corpus.jsonl.zst --text-key content --params 30M --tokens 600M --pattern o200k --json",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="text or *.jsonl files, as for `pybpe train`")
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
    add_cutting_options(parser, "gpt2")
    parser.add_argument("--special-token", action="append", metavar="S", help="as for `pybpe train`; repeatable")
    add_encoding(parser)
    parser.add_argument("--text-key", default="text", metavar="K", help="key of a JSON record's text (default: text)")
    parser.add_argument(
        "--max-bytes", type=parse_bytes, default=200_000_000, metavar="N", help="size of the sample (default: 200M)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed of the sample (default: 0)")
    parser.add_argument("--plot", metavar="FILE", help="draw the curve to *.png, *.svg or *.pdf")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_advise)


def _run_advise(args: argparse.Namespace) -> None:
    from ..analysis import advice, compression_curve

    if args.plot is not None:
        check_writable(args.plot)
        compression_curve.check_plot(args.plot)
    found = advice.advise(
        args.files,
        tokens=args.tokens,
        params=args.params,
        layers=args.layers,
        channels=args.channels,
        pattern=args.pattern,
        special_tokens=args.special_token or (),
        digits=args.digits,
        normalizer=args.normalizer,
        text_key=args.text_key,
        encoding=args.encoding,
        max_bytes=args.max_bytes,
        seed=args.seed,
        progress=progress(args),
    )
    if args.plot is not None:
        advice.plot(found, args.plot)
    report(args, found.to_dict(), str(found))
