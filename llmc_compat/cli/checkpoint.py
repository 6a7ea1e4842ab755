"""The command `pybpe llmc checkpoint`: makes models for llm.c, and converts them."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from pybpe.analysis.tables import Table
from pybpe.arguments import chosen
from pybpe.cli.command import Command
from pybpe.cli.common import check_writable, load, report
from pybpe.errors import ArgumentError

from ..workspace import ModelOptions

if TYPE_CHECKING:
    from llmc_compat.gpt2_config import GPT2Config


def add_checkpoint(command: Command) -> None:
    """llm.c takes its vocabulary size from the checkpoint that it starts from. These commands make a checkpoint
    for a tokenizer: with random weights, from a checkpoint for another tokenizer, or from a folder of Hugging
    Face. `pybpe inspect` shows what a checkpoint contains.

    examples:
      pybpe llmc checkpoint new -t tok.bin -o gpt2_124M.bin --depth d12
      pybpe llmc checkpoint convert gpt2_124M.bin --from gpt2_tokenizer.bin --to tok.bin -o model.bin
      pybpe llmc checkpoint convert model.bin -t tok.bin -o hf
      pybpe llmc checkpoint convert model.bin -t tok.bin -o model.gguf
      pybpe llmc checkpoint convert hf -o model.bin
    """
    inner = command.commands()
    for name, (add, summary) in {
        "new": (_add_new, "make random weights for a tokenizer"),
        "convert": (
            _add_convert,
            "convert a model from or to Hugging Face or to GGUF, or move it to another tokenizer",
        ),
    }.items():
        inner.add_parser(name, help=summary).declare(add)


def _facts(config: GPT2Config) -> dict[str, int]:
    return {**vars(config), "parameters": config.num_parameters}


def _text(config: GPT2Config) -> str:
    return (
        f"{config.vocab_size} tokens (padded to {config.padded_vocab_size}), {config.num_layers} layers,"
        f" {config.num_heads} heads, {config.channels} channels, sequence length {config.max_seq_len},"
        f" {config.num_parameters} parameters"
    )


def _add_new(command: Command) -> None:
    """Writes GPT-2's initialization for the vocabulary of a tokenizer. The same seed gives the same file.

    examples:
      pybpe llmc checkpoint new -t tok.bin -o gpt2_124M.bin
      pybpe llmc checkpoint new -t tok.bin -o tiny.bin --layers 4 --heads 4 --channels 128 --sequence-length 64
      pybpe llmc checkpoint new -t tok.bin -o d24_bf16.bin --depth d24 --dtype bf16
    """
    command.tokenizer()
    command.output("the checkpoint to write")
    command.options(ModelOptions)
    command.runs(_run_new)


def _run_new(args: argparse.Namespace) -> None:
    from llmc_compat.checkpoint import write_random_checkpoint

    config = chosen(ModelOptions, vars(args)).config(len(load(args.tokenizer)))
    write_random_checkpoint(args.output, config, dtype=args.dtype, seed=args.seed)
    facts = {"output": args.output, "dtype": args.dtype, **_facts(config)}
    report(args, facts, f"{args.output}: {_text(config)}, {args.dtype}")


def _add_convert(command: Command) -> None:
    """With --from and --to, moves the weights of a checkpoint to another tokenizer: tokens that both have (by
    their bytes; special tokens by their text) keep their weights, and the others start as the mean of all.
    With -t, writes config.json, model.safetensors, tokenizer.json and tokenizer_config.json to a folder that
    AutoModelForCausalLM.from_pretrained and AutoTokenizer.from_pretrained load; or a *.gguf file for llama.cpp.
    Of such a folder of a GPT-2 model, OpenAI's or a derived one, writes a checkpoint.

    examples:
      pybpe llmc checkpoint convert gpt2_124M.bin --from gpt2_tokenizer.bin --to tok.bin -o model.bin
      pybpe llmc checkpoint convert log124M/model_00019560.bin -t gpt2_tokenizer.bin -o hf
      pybpe llmc checkpoint convert log124M/model_00019560.bin -t gpt2_tokenizer.bin -o model.gguf
      pybpe llmc checkpoint convert gpt2-xl -o gpt2_xl_bf16.bin --dtype bf16
    """
    command.option("model MODEL", "a checkpoint, or a folder with config.json, model.safetensors")
    command.output("the new checkpoint, which may be MODEL; a *.gguf file; or the folder for Hugging Face", "OUT|DIR")
    command.option("--from TOK", "the tokenizer of MODEL", dest="old")
    command.option("--to TOK", "the new tokenizer", dest="new")
    command.option("-t --tokenizer TOK", "the tokenizer of MODEL, for Hugging Face or GGUF")
    command.option("--dtype D", "of a new checkpoint: fp32 (default; for the CPU) or bf16 (CUDA)")
    command.option("--pad N", "pad the vocabulary to a multiple of N (default: 128)", int)
    command.runs(_run_convert)


def _run_convert(args: argparse.Namespace) -> None:
    of_hugging_face, moves, given = (
        os.path.isdir(args.model),
        args.old is not None,
        (args.old, args.new, args.tokenizer),
    )
    if [each is not None for each in given] != [moves, moves, not moves and not of_hugging_face]:
        raise ArgumentError(
            "give --from and --to, to move a checkpoint to another tokenizer; -t, to write a folder for Hugging Face or"
            " a *.gguf file; or none of them, with such a folder"
        )
    if args.dtype is not None and not of_hugging_face:
        raise ArgumentError("--dtype is for a folder of Hugging Face: a checkpoint keeps its type")
    if args.pad is not None and given[2] is not None:
        raise ArgumentError("--pad is for a checkpoint: a folder of Hugging Face has no padding")
    if args.tokenizer is None:
        check_writable(args.output)
    convert = _from_hugging_face if of_hugging_face else _resize if moves else _to_other_program
    facts, text = convert(args, 128 if args.pad is None else args.pad)
    report(args, {"output": args.output, **facts}, f"{args.output}: {text}")


def _resize(args: argparse.Namespace, pad: int) -> tuple[dict[str, Any], str]:
    from llmc_compat.resize import resize_checkpoint

    made = resize_checkpoint(args.model, load(args.old), load(args.new), args.output, pad=pad)
    shares = f"{made.copied} tokens keep their weights, {made.averaged} start as the mean"
    facts = {"copied": made.copied, "averaged": made.averaged, **_facts(made.config)}
    return facts, f"{_text(made.config)}, {made.dtype}; {shares}"


def _to_other_program(args: argparse.Namespace, pad: int) -> tuple[dict[str, Any], str]:
    from llmc_compat.gguf import checkpoint_to_gguf
    from llmc_compat.huggingface import checkpoint_to_huggingface

    convert = checkpoint_to_gguf if args.output.endswith(".gguf") else checkpoint_to_huggingface
    config = convert(args.model, load(args.tokenizer), args.output)
    return _facts(config), _text(config)


def _from_hugging_face(args: argparse.Namespace, pad: int) -> tuple[dict[str, Any], str]:
    from llmc_compat.huggingface import checkpoint_from_huggingface

    dtype = args.dtype or "fp32"
    config = checkpoint_from_huggingface(args.model, args.output, dtype=dtype, pad=pad)
    return {"dtype": dtype, **_facts(config)}, f"{_text(config)}, {dtype}"


def show(args: argparse.Namespace) -> None:
    """Does the work of `pybpe inspect` for a checkpoint."""
    from llmc_compat.checkpoint import Checkpoint, summarize

    with Checkpoint(args.path) as model:
        tensors = summarize(model)
    table = Table("tensors", ["tensor", "shape", "mean", "std", "min", "max", ""])
    for name, t in tensors.items():
        numbers = (f"{number:.3g}" for number in (t.mean, t.std, t.min, t.max))
        table.add(name, " x ".join(map(str, t.shape)), *numbers, f"{t.nonfinite} are not finite" if t.nonfinite else "")
    facts = {"model": args.path, "dtype": model.dtype, **_facts(model.config)}
    facts["tensors"] = {name: vars(t) for name, t in tensors.items()}
    report(args, facts, f"{args.path}: {_text(model.config)}, {model.dtype}\n\n{table}")
