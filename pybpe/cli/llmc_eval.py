"""pybpe llmc eval."""

from __future__ import annotations

import argparse
from typing import Any

from .common import TOKENIZER_HELP, add_command, add_common, check_not_input, check_writable, load, open_source, report


def add_eval(commands: Any) -> None:
    """Adds the command to those of `pybpe llmc`."""
    parser = add_command(
        commands,
        "eval",
        "multiple-choice questions to an eval file such as HellaSwag's",
        'Encodes JSON lines {"context": ..., "completions": [4 texts], "label": 0-3}, or HellaSwag\'s own (ctx,\n'
        "endings, label). llm.c evaluates dev/data/hellaswag/hellaswag_val.bin of its working folder with -h 1.",
        "pybpe llmc eval -t tok.json hellaswag_val.jsonl -o work/dev/data/hellaswag/hellaswag_val.bin\n"
        "pybpe llmc eval -t tok.json fragen.jsonl.gz -o questions.bin\n"
        "pybpe llmc eval -t tok.json chinese.jsonl -o questions.bin --separator ''",
    )
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help=TOKENIZER_HELP)
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="JSON lines; - (default) is stdin")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the eval file")
    parser.add_argument(
        "--separator", default=" ", metavar="S", help="put before each completion (default: a space, as llm.c does)"
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
