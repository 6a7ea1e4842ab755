"""The command `pybpe llmc`, with what only llm.c needs."""

from __future__ import annotations

import argparse
from typing import Any

from pybpe.arguments import counted
from pybpe.cli.command import Command
from pybpe.cli.common import call, fewer_than, report, tell_of_commas
from pybpe.cli.token_files import add_pack_options, split_tokens, tell_set_aside
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


def add_llmc(command: Command) -> None:
    """Makes folders in which unmodified llm.c can train, and checks files for it.

    examples:
      pybpe llmc workspace novel.txt -o work
      pybpe llmc check work
    """
    inner = command.commands()
    for name, (add, summary) in {
        "workspace": (_add_workspace, "make a folder in which llm.c can train"),
        "check": (_add_check, "check whether llm.c can train on files"),
        "checkpoint": (add_checkpoint, "make and convert models"),
        "eval": (add_eval, "make an eval file of multiple-choice questions"),
        "chat": (add_chat, "turn conversations into shards and loss masks"),
        "install": (add_install, "install the drop-in headers in a checkout of llm.c"),
    }.items():
        inner.add_parser(name, help=summary).declare(add)


def _add_workspace(command: Command) -> None:
    """Splits the text, trains a tokenizer on the train split, encodes all splits, and writes a random model for
    the vocabulary, all under the names that llm.c's trainers expect. A README.md has the exact commands.

    examples:
      pybpe llmc workspace novel.txt -o work --vocab-size 20000
      pybpe llmc workspace web/*.txt -o work --dtype bf16 --depth d24 --vocab-size 32k
      pybpe llmc workspace pages.jsonl.zst -o work --text-key content --digits 1
      pybpe llmc workspace pages.jsonl.zst -o work --pack
      pybpe llmc workspace story.txt -o tiny --vocab-size 2000 --layers 4 --heads 4 --channels 128 --sequence-length 64
    """
    command.files()
    command.output("the output folder, created if needed", "DIR")
    command.options(ReadOptions, "text_key", "encoding", "documents")
    command.options(TrainOptions, without=["parity_per"], special_tokens=CONTROL_TOKENS, vocab_size=20000)
    command.options(ModelOptions)
    command.options(SplitOptions)
    command.options(OutputOptions, "shard_tokens")
    add_pack_options(command)
    command.options(RunOptions, "workers")
    command.runs(_run_workspace)


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


def _add_check(command: Command) -> None:
    """Reads tokenizers, shards, checkpoints and eval files as llm.c would, checks each of them and whether they
    fit together, and checks the files at the names that are compiled into llm.c. Prints one line per fault:
    what is wrong, what llm.c would do, and how to fix it. Errors make llm.c abort or train on nonsense; with
    warnings it works, but not as expected. Exits with 1 if there is an error, 0 if there is none, and 2 if
    the files cannot be checked.

    examples:
      pybpe llmc check work
      pybpe llmc check data/*.bin gpt2_tokenizer.bin model.bin -b 8 -t 1024 -n 2
    """
    command.option("paths PATH", "files, or folders that contain them", nargs="+")
    command.option("-b B", "batch size per process (default: 4, as on the CPU)", int)
    command.option("-t T", "sequence length (default: 64, as on the CPU)", int)
    command.option("-n N", "number of processes (default: 1, as on the CPU)", int)
    command.runs(_run_check)


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
