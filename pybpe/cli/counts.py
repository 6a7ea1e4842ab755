"""The command `pybpe counts`."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import ArgumentError
from .common import add_command, add_common, check_not_input, check_writable, named_output, report
from .inputs import add_cutting_options, add_input_options, count


def add_counts(commands: Any) -> None:
    parser = add_command(
        commands,
        "counts",
        "count words for `pybpe train --counts`, or add up counts",
        "Counts the words of files, which is the first half of training. To add up counts of parts of a corpus,\n"
        "made on several machines, name their *.counts files.",
        "pybpe counts part1/*.txt --special-token '<|endoftext|>' -o part1.counts\n"
        "pybpe counts part1.counts part2.counts -o all.counts\n"
        "pybpe train --counts all.counts --vocab-size 32000 --special-token '<|endoftext|>' -o tok.json",
    )
    add_input_options(parser, "; *.counts files are added")
    add_cutting_options(parser)
    parser.add_argument(
        "--special-token", action="append", metavar="S", help="a special token, which separates words; repeatable"
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="where to save: *.counts; - is stdout")
    add_common(parser)
    parser.set_defaults(run=_run_counts)


def _run_counts(args: argparse.Namespace) -> None:
    from ..counts import Counts

    check_writable(args.output)
    check_not_input(args.output, args.files)
    texts = [path for path in args.files if not path.endswith(".counts")]
    counts = [Counts.load(path) for path in args.files if path.endswith(".counts")]
    if texts:
        counts.append(count(args, texts))
    if not counts:
        raise ArgumentError("name files to count, or *.counts files to add")
    total = Counts.merge(counts)
    with named_output(args.output, ".counts") as name:
        total.save(name)
    report(args, {"output": args.output, "words": len(total)}, f"{args.output}: {len(total)} distinct words")
