"""The command `pybpe llmc`, with what only llm.c needs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pybpe.arguments import counted
from pybpe.cli.command import Command
from pybpe.cli.common import call, fewer_than, load, open_source, report, tell_of_commas
from pybpe.cli.token_files import add_pack_options, split_tokens, tell_set_aside
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.errors import ArgumentError
from pybpe.reading.options import ReadOptions
from pybpe.reading.splits import SplitOptions
from pybpe.support.run_options import RunOptions
from pybpe.tokens.options import OutputOptions
from pybpe.training.options import TrainOptions

from ..workspace import ModelOptions
from .checkpoint import add_checkpoint

Result = TypeVar("Result")


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
        "eval": (_add_eval, "make an eval file of multiple-choice questions"),
        "chat": (_add_chat, "turn conversations into shards and loss masks"),
        "install": (_add_install, "install the drop-in headers in a checkout of llm.c"),
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


def _add_chat(command: Command) -> None:
    """Encodes JSON lines {"messages": [{"role": ..., "content": ..., "thought": ...}, ...]}. The roles are system,
    user and assistant, and the assistant may have a thought. Each conversation becomes

      <|endoftext|> and for each message <|im_start|> <|ROLE|> [<|thought|> ... <|/thought|>] ... <|im_end|>

    without spaces. Texts cannot forge these tokens. Next to each shard is its loss mask, *.mask, which is 1
    where the assistant speaks. chat_template.jinja is the same format for Hugging Face.

    examples:
      pybpe llmc chat -t tok.json conversations.jsonl -o chat
      pybpe llmc chat -t tok.json a.jsonl b.jsonl.gz -o chat --splits 95,5 --name tutor
    """
    command.tokenizer()
    command.option("files FILE", "JSON lines; - is stdin", nargs="+")
    command.output("the output folder, created if needed", "DIR")
    command.option("--name NAME", "name prefix of the shards (default: chat)", default="chat")
    command.options(SplitOptions, "splits")
    command.options(OutputOptions, "shard_tokens", "min_shard_tokens", min_shard_tokens=257)
    command.runs(_run_chat)


def _run_chat(args: argparse.Namespace) -> None:
    from llmc_compat.chat import write_chat

    sources = [open_source("-", records="accept") if file == "-" else file for file in args.files]
    data = call(write_chat, args, load(args.tokenizer), sources, args.output)
    facts = {
        "output": args.output,
        "conversations": data.conversations,
        "tokens": data.tokens,
        "trained_tokens": data.trained_tokens,
    }
    lines = [
        f"{split}: {counted(data.tokens[split], 'token')}, {data.trained_tokens[split]} of them trained on"
        for split in data.tokens
    ]
    report(args, facts, "\n".join([f"{args.output}: {counted(data.conversations, 'conversation')}", *lines]))


def _add_eval(command: Command) -> None:
    """Encodes JSON lines {"context": ..., "completions": [4 texts], "label": 0-3}, or HellaSwag lines (ctx,
    endings, label). With -h 1, llm.c evaluates dev/data/hellaswag/hellaswag_val.bin in its working folder.

    examples:
      pybpe llmc eval -t tok.json hellaswag_val.jsonl -o work/dev/data/hellaswag/hellaswag_val.bin
      pybpe llmc eval -t tok.json questions.jsonl.gz -o questions.bin
      pybpe llmc eval -t tok.json chinese.jsonl -o questions.bin --separator ''
    """
    command.tokenizer()
    command.option("file FILE", "JSON lines; - (default) is stdin", nargs="?", default="-")
    command.output("the eval file to write")
    command.option("--separator S", "text before each completion (default: a space, as in llm.c)", default=" ")
    command.runs(_run_eval)


def _run_eval(args: argparse.Namespace) -> None:
    from llmc_compat.evals import encode_examples, write_eval

    source = open_source("-", records="accept") if args.file == "-" else args.file
    facts = write_eval(args.output, encode_examples(load(args.tokenizer), source, separator=args.separator))
    report(
        args,
        {"output": args.output, "examples": facts.examples, "min_T": facts.min_T, "min_B": 4},
        f"{args.output}: {counted(facts.examples, 'example')}; llm.c needs -b 4 or more and -t {facts.min_T} or more",
    )


def _add_install(command: Command) -> None:
    """Replaces llmc/tokenizer.h, dataloader.h and rand.h with pybpe's, which read the same files, check them, and
    encode prompts. Keeps the originals as *.h.orig, and adds the C library and a GNUmakefile that links it. No
    other file changes, and llm.c builds by the same commands as before. --undo restores everything.

    examples:
      pybpe llmc install path/to/llm.c
      pybpe llmc install path/to/llm.c --undo
    """
    command.option("llmc LLMC", "the folder with train_gpt2.c and llmc/", Path)
    command.option("--undo", "restore llm.c's own files")
    command.runs(_run_install)


def _run_install(args: argparse.Namespace) -> None:
    from llmc_compat.install import install, uninstall

    done = _checked(uninstall if args.undo else install, args.llmc)
    report(args, {"llmc": str(args.llmc), "installed": not args.undo}, done)


def include_dir() -> str:
    """Returns the folder of pybpe.h and of the drop-in headers."""
    from llmc_compat.install import library

    return str(_checked(library))


def _checked(function: Callable[..., Result], *args: Path) -> Result:
    """Calls a function of install.py, which does not need pybpe's errors."""
    from llmc_compat.install import InstallError

    try:
        return function(*args)
    except InstallError as error:
        raise ArgumentError(str(error)) from None
