"""The command `pybpe llmc`, with what only llm.c needs."""

from __future__ import annotations

import argparse
from typing import Any

from pybpe.arguments import counted
from pybpe.cli.common import add_common, add_files, add_output, call, describe, report
from pybpe.cli.options import add_options
from pybpe.cli.token_files import add_pack_options, split_tokens, tell_set_aside
from pybpe.cli.train import fewer_than, tell_of_commas
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.reading.options import ReadOptions
from pybpe.reading.splits import SplitOptions
from pybpe.support.run_options import RunOptions
from pybpe.tokens.options import OutputOptions
from pybpe.training.options import TrainOptions

from ..workspace import ModelOptions
from .checkpoint import add_checkpoint
from .data import add_chat, add_eval
from .install import add_install


def add_llmc(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands."""
    describe(
        parser,
        "Makes folders in which unmodified llm.c can train, and checks files for it.",
        "pybpe llmc workspace novel.txt -o work\npybpe llmc check work",
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (add, summary) in {
        "workspace": (_add_workspace, "make a folder in which llm.c can train"),
        "check": (_add_check, "check whether llm.c can train on files"),
        "checkpoint": (add_checkpoint, "make and convert models"),
        "eval": (add_eval, "make an eval file of multiple-choice questions"),
        "chat": (add_chat, "turn conversations into shards and loss masks"),
        "install": (add_install, "install the drop-in headers in a checkout of llm.c"),
    }.items():
        add(inner.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter))


def _add_workspace(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Splits the text, trains a tokenizer on the train split, encodes all splits, and writes a random model for\n"
        "the vocabulary, all under the names that llm.c's trainers expect. A README.md has the exact commands.",
        "pybpe llmc workspace novel.txt -o work --vocab-size 20000\n"
        "pybpe llmc workspace web/*.txt -o work --dtype bf16 --depth d24 --vocab-size 32k\n"
        "pybpe llmc workspace pages.jsonl.zst -o work --text-key content --digits 1\n"
        "pybpe llmc workspace pages.jsonl.zst -o work --pack\n"
        "pybpe llmc workspace story.txt -o tiny --vocab-size 2000 --layers 4 --heads 4 --channels 128"
        " --sequence-length 64",
    )
    add_files(parser)
    add_output(parser, "the output folder, created if needed", "DIR")
    add_options(parser, ReadOptions, "text_key", "encoding", "documents")
    add_options(parser, TrainOptions, without=["parity_per"], special_tokens=CONTROL_TOKENS, vocab_size=20000)
    add_options(parser, ModelOptions)
    add_options(parser, SplitOptions)
    add_options(parser, OutputOptions, "shard_tokens")
    add_pack_options(parser)
    add_options(parser, RunOptions, "workers")
    add_common(parser, _run_workspace)


def _run_workspace(args: argparse.Namespace) -> None:
    from llmc_compat.workspace import make_workspace

    tell_of_commas(args)
    workspace = call(make_workspace, args, args.files, args.output)
    config, manifest = workspace.config, workspace.manifest
    tell_set_aside(args, manifest)
    facts = {
        "output": workspace.folder,
        "vocab_size": config.vocab_size,
        "padded_vocab_size": config.padded_vocab_size,
        "parameters": config.num_parameters,
        "tokens": split_tokens(manifest),
    }
    counts = ", ".join(f"{split} {tokens}" for split, tokens in split_tokens(manifest).items())
    text = (
        f"{workspace.folder}: {config.vocab_size} tokens{fewer_than(args.vocab_size, config.vocab_size)},"
        f" padded to {config.padded_vocab_size}; {config.num_parameters} parameters; {counts} tokens of"
        f" text; checked. The commands for llm.c are in {workspace.folder}/README.md"
    )
    report(args, facts, text)


def _add_check(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Reads tokenizers, shards, checkpoints and eval files as llm.c would, checks each of them and whether they\n"
        "fit together, and checks the files at the names that are compiled into llm.c. Prints one line per fault:\n"
        "what is wrong, what llm.c would do, and how to fix it. Errors make llm.c abort or train on nonsense; with\n"
        "warnings it works, but not as expected. Exits with 1 if there is an error, 0 if there is none, and 2 if\n"
        "the files cannot be checked.",
        "pybpe llmc check work\npybpe llmc check data/*.bin gpt2_tokenizer.bin model.bin -b 8 -t 1024 -n 2",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, or folders that contain them")
    parser.add_argument("-b", type=int, metavar="B", help="batch size per process (default: 4, as on the CPU)")
    parser.add_argument("-t", type=int, metavar="T", help="sequence length (default: 64, as on the CPU)")
    parser.add_argument("-n", type=int, metavar="N", help="number of processes (default: 1, as on the CPU)")
    add_common(parser, _run_check)


def _run_check(args: argparse.Namespace) -> int:
    from llmc_compat.batch import Batch
    from llmc_compat.check import check

    given = {"B": args.b, "T": args.t, "processes": args.n}
    batch = {name: value for name, value in given.items() if value is not None}
    files, findings = check(args.paths, Batch(**batch) if batch else None)
    kinds = {kind: paths for kind, paths in vars(files).items() if kind != "others"}
    facts: dict[str, Any] = {**kinds, "faults": [vars(finding) for finding in findings]}
    found = ", ".join(counted(len(paths), kind.removesuffix("s")) for kind, paths in kinds.items() if paths)
    errors = any(finding.is_error for finding in findings)
    lines = [str(finding) for finding in findings]
    if not errors:
        lines.append(f"{'no error' if findings else 'no fault'}: {found}")
    report(args, facts, "\n".join(lines))
    return 1 if errors else 0
