"""The command `pybpe llmc eval`."""

from __future__ import annotations

import argparse
from typing import Any

from .common import TOKENIZER_HELP, add_command, add_common, check_not_input, check_writable, load, open_source, report


def add_eval(commands: Any) -> None:
    """Adds the command to `pybpe llmc`."""
    parser = add_command(
        commands,
        "eval",
        "make an eval file of multiple-choice questions",
        'Encodes JSON lines {"context": ..., "completions": [4 texts], "label": 0-3}, or those of HellaSwag (ctx,\n'
        "endings, label). With -h 1, llm.c evaluates dev/data/hellaswag/hellaswag_val.bin in its working folder.",
        "pybpe llmc eval -t tok.json hellaswag_val.jsonl -o work/dev/data/hellaswag/hellaswag_val.bin\n"
        "pybpe llmc eval -t tok.json questions.jsonl.gz -o questions.bin\n"
        "pybpe llmc eval -t tok.json chinese.jsonl -o questions.bin --separator ''",
    )
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help=TOKENIZER_HELP)
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="JSON lines; - (default) is stdin")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the eval file")
    parser.add_argument(
        "--separator", default=" ", metavar="S", help="text before each completion (default: a space, as in llm.c)"
    )
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_eval)


def _run_eval(args: argparse.Namespace) -> None:
    from llmc_compat.evals import encode_examples, write_eval

    check_writable(args.output)
    check_not_input(args.output, [args.file])
    source = open_source("-") if args.file == "-" else args.file
    facts = write_eval(args.output, encode_examples(load(args.tokenizer), source, separator=args.separator))
    report(
        args,
        {"output": args.output, "examples": facts.examples, "min_T": facts.min_T, "min_B": 4},
        f"{args.output}: {facts.examples} examples; llm.c needs -b 4 or more and -t {facts.min_T} or more",
    )
