"""The command `pybpe llmc`, with what only llm.c needs."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from pybpe.arguments import counted
from pybpe.cli.common import add_command, add_common, progress, report
from pybpe.cli.token_files import (
    add_document_options,
    add_pack_options,
    add_split_options,
    option_arguments,
    pack_log_path,
)
from pybpe.cli.train import add_training_options, fewer_than, training_arguments
from pybpe.control_tokens import CONTROL_TOKENS

from .checkpoint import add_checkpoint, add_model_options, depth_number
from .data import add_chat, add_eval
from .install import IncludeDirAction, add_install

__all__ = ["IncludeDirAction", "add_llmc"]


def add_llmc(commands: Any) -> None:
    """Adds the command and its subcommands."""
    parser = add_command(
        commands,
        "llmc",
        "make workspaces and check files for llm.c",
        "Makes folders in which unmodified llm.c can train, and checks files for it.",
        "pybpe llmc workspace novel.txt -o work\npybpe llmc check work",
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_workspace(inner)
    _add_check(inner)
    add_checkpoint(inner)
    add_eval(inner)
    add_chat(inner)
    add_install(inner)


def _add_workspace(commands: Any) -> None:
    parser = add_command(
        commands,
        "workspace",
        "make a folder in which llm.c can train",
        "Splits the text, trains a tokenizer on the train split, encodes all splits, and writes a random model for\n"
        "the vocabulary, all under the names that llm.c's trainers expect. A README.md has the exact commands.",
        "pybpe llmc workspace novel.txt -o work --vocab-size 20000\n"
        "pybpe llmc workspace web/*.txt -o work --dtype bf16 --depth d24 --vocab-size 32k\n"
        "pybpe llmc workspace pages.jsonl.zst -o work --text-key content --digits 1\n"
        "pybpe llmc workspace pages.jsonl.zst -o work --pack\n"
        "pybpe llmc workspace story.txt -o tiny --vocab-size 2000 --layers 4 --heads 4 --channels 128"
        " --sequence-length 64",
    )
    add_document_options(parser)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the output folder, created if needed")
    add_training_options(parser, CONTROL_TOKENS, min_frequency=2, size_required=False, vocab_size=20000)
    add_model_options(parser)
    add_split_options(parser)
    add_pack_options(parser)
    add_common(parser)
    parser.set_defaults(
        run=_run_workspace,
        state=lambda args: pack_log_path(argparse.Namespace(output=os.path.join(args.output, "data"), pack=args.pack)),
    )


def _run_workspace(args: argparse.Namespace) -> None:
    from llmc_compat.workspace import make_workspace
    from pybpe.reading.options import ReadOptions
    from pybpe.reading.splits import SplitOptions

    workspace = make_workspace(
        args.files,
        args.output,
        vocab_size=args.vocab_size,
        **training_arguments(args, CONTROL_TOKENS),
        depth=depth_number(args),
        layers=args.layers,
        heads=args.heads,
        channels=args.channels,
        sequence_length=args.sequence_length,
        dtype=args.dtype,
        pad=args.pad,
        seed=args.seed,
        **option_arguments(args, ReadOptions, SplitOptions),
        shard_tokens=args.shard_tokens,
        pack=args.pack,
        packing=args.packing,
        workers=args.workers,
        force=args.force,
        progress=progress(args),
    )
    config, manifest = workspace.config, workspace.manifest
    facts = {
        "output": workspace.folder,
        "vocab_size": config.vocab_size,
        "padded_vocab_size": config.padded_vocab_size,
        "parameters": config.num_parameters,
        "tokens": {split: manifest.split_tokens(split) for split in manifest.shards},
    }
    counts = ", ".join(f"{split} {manifest.split_tokens(split)}" for split in manifest.shards)
    text = (
        f"{workspace.folder}: {config.vocab_size} tokens{fewer_than(args.vocab_size, config.vocab_size)},"
        f" padded to {config.padded_vocab_size}; {config.num_parameters} parameters; {counts} tokens of"
        f" text; checked. The commands for llm.c are in {workspace.folder}/README.md"
    )
    report(args, facts, text)


def _add_check(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        "check whether llm.c can train on files",
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
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_check)


def _run_check(args: argparse.Namespace) -> None:
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
    if errors:
        sys.exit(1)
