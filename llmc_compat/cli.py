"""The command `pybpe llmc`, for everything that only llm.c needs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pybpe.analysis import table
from pybpe.arguments import chosen, number_of
from pybpe.cli.command import Command
from pybpe.cli.common import (
    call,
    check_writable,
    load,
    named_output,
    names_alone,
    open_source,
    report,
    tell_of_commas,
)
from pybpe.cli.token_files import split_tokens, tell_set_aside
from pybpe.cli.train import add_training
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.errors import ArgumentError
from pybpe.reading.inputs import ReadOptions
from pybpe.reading.planning import SplitOptions
from pybpe.tokens.formats import OutputOptions

from .checkpoint import Checkpoint, GPT2Config, ModelOptions, summarize, write_random_checkpoint

Result = TypeVar("Result")


def add_llmc(command: Command) -> None:
    """Make workspaces in which unmodified llm.c trains, and check files for it.

    examples:
      pybpe llmc workspace novel.txt -o work
      pybpe llmc check work
    """
    _add_commands(
        command,
        {
            "workspace": (_add_workspace, "make a folder in which llm.c trains"),
            "check": (_add_check, "check whether llm.c can train on files"),
            "checkpoint": (_add_checkpoint, "make and convert models"),
            "eval": (_add_eval, "make an eval file of multiple-choice questions"),
            "chat": (_add_chat, "turn conversations into shards and loss masks"),
            "install": (_add_install, "install the drop-in headers in a checkout of llm.c"),
        },
    )


def _add_commands(command: Command, added: Mapping[str, tuple[Callable[[Command], None], str]]) -> None:
    """Adds commands: name -> the function that adds the arguments, and a summary."""
    command.list_commands("commands", {name: summary for name, (_, summary) in added.items()})
    inner = command.commands()
    for name, (add, _) in added.items():
        inner.add_parser(name).declare(add)


def _add_workspace(command: Command) -> None:
    """Make a folder where llm.c trains: tokenizer, shards, and a model with random
    weights, under the names that llm.c expects. Its README.md has the commands.

    examples:
      pybpe llmc workspace novel.txt -o work --vocab-size 20000
      pybpe llmc workspace story.txt -o tiny --vocab-size 2000 --layers 4 \\
          --heads 4 --channels 128 --sequence-length 64
      pybpe llmc workspace web/ -o work --dtype bf16 --depth d24 --vocab-size 32k
      pybpe llmc workspace pages.jsonl.zst -o work --text-key content

    The tokenizer learns from the train split only.
    """
    command.files()
    command.output_folder()
    add_training(command, CONTROL_TOKENS, vocab_size=20000)
    with command.group("model"):
        command.options(ModelOptions)
    with command.group("reading"):
        command.options(ReadOptions, "text_key", "encoding", "keep_crlf", "documents")
    with command.group("splitting"):
        command.options(SplitOptions)
    with command.group("writing"):
        command.options(OutputOptions, "shard_tokens")
    command.runtime("workers")
    command.progress()
    command.runs(_run_workspace)


def _run_workspace(args: argparse.Namespace) -> None:
    from .workspace import make_workspace

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
    files = [name for name in workspace.changed if not name.startswith("programs/")]
    told = f"made {', '.join(files)}" if files else "already complete"
    counts = ", ".join(f"{split} {tokens}" for split, tokens in split_tokens(manifest).items())
    text = (
        f"{workspace.folder}: {config.vocab_size} tokens,"
        f" padded to {config.padded_vocab_size}; {config.num_parameters} parameters; {counts} tokens of"
        f" text; {told}; checked. The next commands are in {os.path.join(workspace.folder, workspace.readme)}"
    )
    report(args, facts, text)


def _add_check(command: Command) -> None:
    """Check whether llm.c can train on files, and whether they fit together.

    examples:
      pybpe llmc check work
      pybpe llmc check data/*.bin gpt2_tokenizer.bin model.bin -b 8 -t 1024 -n 2

    The files are tokenizers, shards, checkpoints and eval files, also at the names
    that are compiled into llm.c. You get one line per fault: the fault, its effect
    on llm.c, and the remedy. With an error, llm.c aborts or trains on nonsense.
    With a warning, it works, but not as you would expect. The command exits with 1
    if there is an error, 0 if there is none, and 2 if it cannot check the files.
    """
    command.option("paths PATH", "files, or folders that contain them", nargs="+", path="texts")
    command.option("-b B", "batch size per process (default: 4, as on the CPU)", int, dest="B")
    command.option("-t T", "sequence length (default: 64, as on the CPU)", int, dest="T")
    command.option("-n N", "number of processes (default: 1, as on the CPU)", int, dest="processes")
    command.runs(_run_check)


def _run_check(args: argparse.Namespace) -> int:
    from .check import check
    from .shards import Batch
    from .workspace import next_command

    batch = {name: value for name in ("B", "T", "processes") if (value := getattr(args, name)) is not None}
    after = [command for path in args.paths if (command := next_command(path)) is not None]
    try:
        files, findings = check(args.paths, Batch(**batch) if batch else None)
    except ArgumentError:
        if after:  # there is only unfinished work
            raise ArgumentError(after[0]) from None
        raise
    kinds = {kind: paths for kind, paths in vars(files).items() if kind != "others"}
    facts: dict[str, Any] = {**kinds, "faults": [vars(finding) for finding in findings], "next": after}
    found = ", ".join(number_of(len(paths), kind.removesuffix("s")) for kind, paths in kinds.items() if paths)
    errors = any(finding.is_error for finding in findings)
    lines = [str(finding) for finding in findings]
    if not errors:
        lines += [f"{'no error' if findings else 'no fault'}: {found}", *after]
    report(args, facts, "\n".join(lines))
    return 1 if errors else 0


def _add_chat(command: Command) -> None:
    """Turn conversations into shards and loss masks.

    examples:
      pybpe llmc chat -t tok.json conversations.jsonl -o chat
      pybpe llmc chat -t tok.json a.jsonl b.jsonl.gz -o chat --splits 95,5

    The input is JSON lines {"messages": [{"role": ..., "content": ...}, ...]}. The
    roles are system, user and assistant, and the assistant may have a "thought". A
    conversation becomes <|endoftext|>, and then for every message, without spaces,

      <|im_start|> <|ROLE|> [<|thought|> ... <|/thought|>] ... <|im_end|>

    The content of messages cannot forge these tokens. Next to every shard is its
    loss mask, *.mask, which is 1 where the assistant speaks. chat_template.jinja is
    the same format for Hugging Face.
    """
    command.tokenizer()
    command.option("files FILE", "JSON lines; - is stdin", nargs="+", path="texts")
    command.output_folder()
    command.option("--name NAME", "name prefix of the shards (default: chat)", default="chat")
    command.options(SplitOptions, "splits")
    command.options(OutputOptions, "shard_tokens", "min_shard_tokens", min_shard_tokens=257)
    command.runs(_run_chat)


def _run_chat(args: argparse.Namespace) -> None:
    from .chat import write_chat

    sources = [open_source("-", records="accept") if file == "-" else file for file in args.files]
    data = call(write_chat, args, load(args.tokenizer), sources, args.output)
    facts = {
        "output": args.output,
        "conversations": data.conversations,
        "tokens": data.tokens,
        "trained_tokens": data.trained_tokens,
    }
    lines = [
        f"{split}: {number_of(data.tokens[split], 'token')}, {data.trained_tokens[split]} of them trained on"
        for split in data.tokens
    ]
    report(args, facts, "\n".join([f"{args.output}: {number_of(data.conversations, 'conversation')}", *lines]))


def _add_eval(command: Command) -> None:
    """Make an eval file of multiple-choice questions, such as HellaSwag.

    examples:
      pybpe llmc eval -t tok.json questions.jsonl.gz -o questions.bin
      pybpe llmc eval -t tok.json chinese.jsonl -o questions.bin --separator ''
      pybpe llmc eval -t tok.json hellaswag_val.jsonl \\
          -o work/dev/data/hellaswag/hellaswag_val.bin

    The input is JSON lines {"context": ..., "completions": [4 strings], "label":
    0-3}, or the lines of HellaSwag (ctx, endings, label). With -h 1, llm.c
    evaluates dev/data/hellaswag/hellaswag_val.bin in its working folder.
    """
    command.tokenizer()
    command.option("file FILE", "JSON lines; - (default) is stdin", nargs="?", default="-", path="texts")
    command.output("the eval file to write")
    command.option("--separator S", "text before every completion (default: a space, as in llm.c)", default=" ")
    command.runs(_run_eval)


def _run_eval(args: argparse.Namespace) -> None:
    from .evals import encode_examples, write_eval

    source = open_source("-", records="accept") if args.file == "-" else args.file
    with named_output(args) as name:
        facts = write_eval(name, encode_examples(load(args.tokenizer), source, separator=args.separator))
    report(
        args,
        {"output": args.output, "examples": facts.examples, "min_T": facts.min_T, "min_B": 4},
        f"{args.output}: {number_of(facts.examples, 'example')}; llm.c needs -b 4 or more and -t {facts.min_T} or more",
    )


def _add_install(command: Command) -> None:
    """Install the drop-in headers in a checkout of llm.c.

    examples:
      pybpe llmc install path/to/llm.c
      pybpe llmc install path/to/llm.c --undo

    The headers replace llmc/tokenizer.h, dataloader.h and rand.h. They read the
    same files, check them, and encode prompts. The originals stay as *.h.orig. The
    command also adds the C library and a GNUmakefile that links it. No other file
    changes, and you build llm.c with the same commands as before. --undo restores
    everything.
    """
    command.option("llmc LLMC", "the folder with train_gpt2.c and llmc/", Path)
    command.option("--undo", "restore llm.c's own files")
    command.runs(_run_install)


def _run_install(args: argparse.Namespace) -> None:
    from .install import install, uninstall

    done = _checked(uninstall if args.undo else install, args.llmc)
    report(args, {"llmc": str(args.llmc), "installed": not args.undo}, done)


def include_dir() -> str:
    """Returns the folder of pybpe.h and of the drop-in headers."""
    from .install import library

    return str(_checked(library))


def _checked(function: Callable[..., Result], *args: Path) -> Result:
    """Calls a function of install.py, which does not need pybpe's errors."""
    from .install import InstallError

    try:
        return function(*args)
    except InstallError as error:
        raise ArgumentError(str(error)) from None


# ----------------------------------------------------------------------------------------------------
# checkpoint


def _add_checkpoint(command: Command) -> None:
    """Make a checkpoint for a tokenizer, or convert one. llm.c takes its vocabulary
    size from the checkpoint that it starts from.

    examples:
      pybpe llmc checkpoint new -t tok.bin -o gpt2_124M.bin --depth d12
      pybpe llmc checkpoint convert model.bin -t tok.bin -o hf
      pybpe llmc checkpoint convert model.bin -t tok.bin -o model.gguf
      pybpe llmc checkpoint convert hf -o model.bin
      pybpe llmc checkpoint convert gpt2_124M.bin --from gpt2_tokenizer.bin \\
          --to tok.bin -o model.bin

    `pybpe inspect` shows the contents of a checkpoint.
    """
    _add_commands(
        command,
        {
            "new": (_add_new, "make random weights for a tokenizer"),
            "convert": (_add_convert, "move a model to another tokenizer or format"),
        },
    )


def _facts(config: GPT2Config) -> dict[str, int]:
    return {**vars(config), "parameters": config.num_parameters}


def _text(config: GPT2Config) -> str:
    return (
        f"{config.vocab_size} tokens (padded to {config.padded_vocab_size}), {config.num_layers} layers,"
        f" {config.num_heads} heads, {config.channels} channels, sequence length {config.max_seq_len},"
        f" {config.num_parameters} parameters"
    )


def _add_new(command: Command) -> None:
    """Make random weights for the vocabulary of a tokenizer, as GPT-2 initializes
    them.

    examples:
      pybpe llmc checkpoint new -t tok.bin -o gpt2_124M.bin
      pybpe llmc checkpoint new -t tok.bin -o d24_bf16.bin --depth d24 --dtype bf16
      pybpe llmc checkpoint new -t tok.bin -o tiny.bin --layers 4 --heads 4 \\
          --channels 128 --sequence-length 64

    The same seed gives the same file.
    """
    command.tokenizer()
    command.output("the checkpoint to write")
    command.options(ModelOptions)
    command.runs(_run_new)


def _run_new(args: argparse.Namespace) -> None:
    config = chosen(ModelOptions, vars(args)).config(len(load(args.tokenizer)))
    with named_output(args) as name:
        write_random_checkpoint(name, config, dtype=args.dtype, seed=args.seed)
    facts = {"output": args.output, "dtype": args.dtype, **_facts(config)}
    report(args, facts, f"{args.output}: {_text(config)}, {args.dtype}")


def _add_convert(command: Command) -> None:
    """Move a model to another tokenizer, to or from Hugging Face, or to GGUF.

    examples:
      pybpe llmc checkpoint convert gpt2_124M.bin --from gpt2_tokenizer.bin \\
          --to tok.bin -o model.bin
      pybpe llmc checkpoint convert model.bin -t gpt2_tokenizer.bin -o hf
      pybpe llmc checkpoint convert model.bin -t gpt2_tokenizer.bin -o model.gguf
      pybpe llmc checkpoint convert gpt2-xl -o gpt2_xl_bf16.bin --dtype bf16

    With --from and --to, tokens that both tokenizers have keep their weights.
    (Special tokens are compared by their text, others by their bytes.) The other
    tokens start as the mean of all.

    With -t, you get a *.gguf file for llama.cpp, or a folder that
    AutoModelForCausalLM.from_pretrained and AutoTokenizer.from_pretrained load.

    From such a folder of a GPT-2 model, you get a checkpoint.
    """
    model = "a checkpoint, or a folder with config.json and model.safetensors"
    command.option("model MODEL", model, path="reads")
    output = "the new checkpoint; a *.gguf file; or the folder for Hugging Face"
    command.option("-o --output OUT", output, required=True, path="writes folder")
    command.option("--from TOK", "the tokenizer of MODEL", dest="old", path="reads")
    command.option("--to TOK", "the new tokenizer", dest="new", path="reads")
    command.option("-t --tokenizer TOK", "the tokenizer of MODEL, for Hugging Face or GGUF", path="reads")
    command.option("--dtype D", "of a new checkpoint: fp32 (default; for the CPU) or bf16 (CUDA)")
    command.option("--pad-vocab N", "pad the vocabulary to a multiple of N (default: 128)", int)
    command.runs(_run_convert)


def _run_convert(args: argparse.Namespace) -> None:
    from .convert import (
        MODEL_FILES,
        checkpoint_from_huggingface,
        checkpoint_to_gguf,
        checkpoint_to_huggingface,
        resize_checkpoint,
    )

    of_hugging_face, moves, to = os.path.isdir(args.model), args.old is not None, args.tokenizer
    if [each is not None for each in (args.old, args.new, to)] != [moves, moves, not moves and not of_hugging_face]:
        raise ArgumentError(
            "use --from and --to to move a checkpoint to another tokenizer, -t to write a folder for Hugging Face or a"
            " *.gguf file, or none of them to read such a folder"
        )
    if args.dtype is not None and not of_hugging_face:
        raise ArgumentError("--dtype is for a folder of Hugging Face: a checkpoint keeps its type")
    if args.pad_vocab is not None and to is not None:
        raise ArgumentError("--pad-vocab is for a checkpoint: a folder of Hugging Face has no padding")
    facts: dict[str, Any] = {}
    told, pad = "", 128 if args.pad_vocab is None else args.pad_vocab
    if to is not None:
        convert = checkpoint_to_gguf if args.output.endswith(".gguf") else checkpoint_to_huggingface
        with named_output(args, alone=(*names_alone(), *MODEL_FILES)) as name:
            config = convert(args.model, load(to), name)
    elif moves:
        check_writable(args.output)
        with named_output(args) as name:
            made = resize_checkpoint(args.model, load(args.old), load(args.new), name, pad_vocab=pad)
        config, facts = made.config, {"copied": made.copied, "averaged": made.averaged}
        told = f", {made.dtype}; {made.copied} tokens keep their weights, {made.averaged} start as the mean"
    else:
        check_writable(args.output)
        dtype = args.dtype or "fp32"
        with named_output(args) as name:
            config = checkpoint_from_huggingface(args.model, name, dtype=dtype, pad_vocab=pad)
        facts, told = {"dtype": dtype}, f", {dtype}"
    report(args, {"output": args.output, **facts, **_facts(config)}, f"{args.output}: {_text(config)}{told}")


def show(args: argparse.Namespace) -> None:
    """Does the work of `pybpe inspect` for a checkpoint."""
    with Checkpoint(args.path) as model:
        tensors = {name: summarize(model, name) for name in model.config.tensor_shapes()}
    rows = [
        (
            *(name, " x ".join(map(str, found["shape"]))),
            *(f"{found[key]:.3g}" for key in ("mean", "std", "min", "max")),
            f"{found['nonfinite']} are not finite" if found["nonfinite"] else "",
        )
        for name, found in tensors.items()
    ]
    shown = table(["tensor", "shape", "mean", "std", "min", "max", ""], rows)
    facts = {"model": args.path, "dtype": model.dtype, **_facts(model.config), "tensors": tensors}
    report(args, facts, f"{args.path}: {_text(model.config)}, {model.dtype}\n\n{shown}")
