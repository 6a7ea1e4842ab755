"""The command `pybpe llmc checkpoint`: makes models for llm.c, moves them to another tokenizer, converts them from and
to Hugging Face, and shows them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pybpe.cli.common import TOKENIZER_HELP, add_command, add_common, check_writable, load, report

if TYPE_CHECKING:
    from llmc_compat.gpt2_config import GPT2Config


def add_checkpoint(commands: Any) -> None:
    """Adds the command to `pybpe llmc`."""
    parser = add_command(
        commands,
        "checkpoint",
        "make, resize, convert and show models",
        "llm.c takes its vocabulary size from the checkpoint that it starts from. These commands make a checkpoint\n"
        "for a tokenizer: with random weights, from a checkpoint for another tokenizer, or from a Hugging Face folder.",
        "pybpe llmc checkpoint new -t tok.bin -o gpt2_124M.bin --depth d12\n"
        "pybpe llmc checkpoint resize gpt2_124M.bin --from gpt2_tokenizer.bin --to tok.bin -o model.bin\n"
        "pybpe llmc checkpoint to-hf model.bin -t tok.bin -o hf\n"
        "pybpe llmc checkpoint from-hf hf -o model.bin\n"
        "pybpe llmc checkpoint show model.bin",
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_new(inner)
    _add_resize(inner)
    _add_to_hf(inner)
    _add_from_hf(inner)
    _add_show(inner)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds options for the shape of a new model, its type, padding and seed."""
    parser.add_argument(
        "--depth", default="d12", metavar="D", help="one of llm.c's model sizes: d6, d12 (default), d24, ..."
    )
    parser.add_argument("--layers", type=int, metavar="L", help="number of layers (default: from --depth)")
    parser.add_argument("--heads", type=int, metavar="NH", help="number of heads (default: from --depth)")
    parser.add_argument("--channels", type=int, metavar="C", help="number of channels (default: from --depth)")
    parser.add_argument(
        "--sequence-length", type=int, default=1024, metavar="T", help="the longest sequence (default: 1024)"
    )
    _add_dtype(parser)
    _add_pad(parser)
    parser.add_argument("--seed", type=int, default=42, metavar="N", help="random seed for the weights (default: 42)")


def depth_number(args: argparse.Namespace) -> int:
    """Returns 12 for --depth d12."""
    from pybpe.errors import ArgumentError

    number: str = args.depth.removeprefix("d")
    if not (number.isascii() and number.isdigit()):
        raise ArgumentError(f"--depth: expected d6, d12, d24 and so on, not {args.depth!r}")
    return int(number)


def _add_dtype(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dtype", default="fp32", metavar="D", help="fp32 (default; for the CPU) or bf16 (CUDA)")


def _add_pad(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pad", type=int, default=128, metavar="N", help="pad the vocabulary to a multiple of N (default: 128)"
    )


def _add_model_and_output(parser: argparse.ArgumentParser, what: str, output: str, metavar: str = "OUT") -> None:
    parser.add_argument("model", metavar="MODEL", help=what)
    parser.add_argument("-o", "--output", required=True, metavar=metavar, help=output)


def _facts(config: GPT2Config) -> dict[str, int]:
    return {**vars(config), "parameters": config.num_parameters}


def _text(config: GPT2Config) -> str:
    return (
        f"{config.vocab_size} tokens (padded to {config.padded_vocab_size}), {config.num_layers} layers,"
        f" {config.num_heads} heads, {config.channels} channels, sequence length {config.max_seq_len},"
        f" {config.num_parameters} parameters"
    )


# ----------------------------------------------------------------------------------------------------
# new, resize


def _add_new(commands: Any) -> None:
    parser = add_command(
        commands,
        "new",
        "make random weights for a tokenizer",
        "Writes GPT-2's initialization for the vocabulary of a tokenizer. The same seed gives the same file.",
        "pybpe llmc checkpoint new -t tok.bin -o gpt2_124M.bin\n"
        "pybpe llmc checkpoint new -t tok.bin -o tiny.bin --layers 4 --heads 4 --channels 128 --sequence-length 64\n"
        "pybpe llmc checkpoint new -t tok.bin -o d24_bf16.bin --depth d24 --dtype bf16",
    )
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help=TOKENIZER_HELP)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the checkpoint to write")
    add_model_options(parser)
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_new)


def _run_new(args: argparse.Namespace) -> None:
    from llmc_compat.gpt2_config import GPT2Config
    from llmc_compat.initialization import write_random_checkpoint

    check_writable(args.output)
    config = GPT2Config.of_depth(
        depth_number(args),
        load(args.tokenizer).vocab_size,
        args.sequence_length,
        args.pad,
        layers=args.layers,
        heads=args.heads,
        channels=args.channels,
    )
    write_random_checkpoint(args.output, config, dtype=args.dtype, seed=args.seed)
    facts = {"output": args.output, "dtype": args.dtype, **_facts(config)}
    report(args, facts, f"{args.output}: {_text(config)}, {args.dtype}")


def _add_resize(commands: Any) -> None:
    parser = add_command(
        commands,
        "resize",
        "move trained weights to another tokenizer",
        "Tokens that both tokenizers have (by their bytes; special tokens by their text) keep their weights; the\n"
        "others start as the mean of all. This lets you move GPT-2's weights to your own vocabulary.",
        "pybpe llmc checkpoint resize gpt2_124M.bin --from gpt2_tokenizer.bin --to tok.bin -o model.bin",
    )
    _add_model_and_output(parser, "a checkpoint", "the new checkpoint; may be MODEL")
    parser.add_argument("--from", required=True, dest="old", metavar="TOK", help="the tokenizer of MODEL")
    parser.add_argument("--to", required=True, dest="new", metavar="TOK", help="the new tokenizer")
    _add_pad(parser)
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_resize)


def _run_resize(args: argparse.Namespace) -> None:
    from llmc_compat.resize import resize_checkpoint

    check_writable(args.output)
    resized = resize_checkpoint(args.model, load(args.old), load(args.new), args.output, pad=args.pad)
    facts = {"output": args.output, "copied": resized.copied, "averaged": resized.averaged, **_facts(resized.config)}
    shares = f"{resized.copied} tokens keep their weights, {resized.averaged} start as the mean"
    report(args, facts, f"{args.output}: {_text(resized.config)}, {resized.dtype}; {shares}")


# ----------------------------------------------------------------------------------------------------
# Hugging Face


def _add_to_hf(commands: Any) -> None:
    parser = add_command(
        commands,
        "to-hf",
        "write a folder for Hugging Face transformers",
        "Writes config.json, model.safetensors, tokenizer.json and tokenizer_config.json to a folder that\n"
        "AutoModelForCausalLM.from_pretrained and AutoTokenizer.from_pretrained load.",
        "pybpe llmc checkpoint to-hf log124M/model_00019560.bin -t gpt2_tokenizer.bin -o hf",
    )
    _add_model_and_output(parser, "a checkpoint", "the output folder, created if needed", "DIR")
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help="the tokenizer of MODEL")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_to_hf)


def _run_to_hf(args: argparse.Namespace) -> None:
    from llmc_compat.huggingface import checkpoint_to_huggingface

    config = checkpoint_to_huggingface(args.model, load(args.tokenizer), args.output)
    report(args, {"output": args.output, **_facts(config)}, f"{args.output}: {_text(config)}")


def _add_from_hf(commands: Any) -> None:
    parser = add_command(
        commands,
        "from-hf",
        "make a checkpoint from a Hugging Face folder",
        "Reads the config.json and model.safetensors of a GPT-2 model, OpenAI's or a derived one, and writes a\n"
        "checkpoint. `resize` can then move it to another tokenizer; pass the folder's tokenizer.json as --from.",
        "pybpe llmc checkpoint from-hf gpt2 -o gpt2_124M.bin\n"
        "pybpe llmc checkpoint from-hf gpt2-xl -o gpt2_xl_bf16.bin --dtype bf16",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with config.json and model.safetensors")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the checkpoint to write")
    _add_dtype(parser)
    _add_pad(parser)
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_from_hf)


def _run_from_hf(args: argparse.Namespace) -> None:
    from llmc_compat.huggingface import checkpoint_from_huggingface

    check_writable(args.output)
    config = checkpoint_from_huggingface(args.folder, args.output, dtype=args.dtype, pad=args.pad)
    facts = {"output": args.output, "dtype": args.dtype, **_facts(config)}
    report(args, facts, f"{args.output}: {_text(config)}, {args.dtype}")


# ----------------------------------------------------------------------------------------------------
# show


def _add_show(commands: Any) -> None:
    parser = add_command(
        commands,
        "show",
        "show what a checkpoint contains",
        "Prints the header, and for every tensor its shape, mean, standard deviation, minimum, maximum, and the\n"
        "number of values that are infinite or NaN. For wte, the padding is left out.",
        "pybpe llmc checkpoint show gpt2_124M.bin\npybpe llmc checkpoint show --json model.bin",
    )
    parser.add_argument("model", metavar="MODEL", help="a checkpoint")
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_show)


def _run_show(args: argparse.Namespace) -> None:
    from llmc_compat.checkpoint import Checkpoint
    from llmc_compat.summary import summarize

    with Checkpoint(args.model) as model:
        tensors = summarize(model)
    lines = [f"{args.model}: {_text(model.config)}, {model.dtype}", ""]
    lines.append(f"{'tensor':9} {'shape':>18} {'mean':>10} {'std':>10} {'min':>10} {'max':>10}")
    for name, t in tensors.items():
        shape = " x ".join(map(str, t.shape))
        bad = f"  {t.nonfinite} are not finite" if t.nonfinite else ""
        lines.append(f"{name:9} {shape:>18} {t.mean:10.3g} {t.std:10.3g} {t.min:10.3g} {t.max:10.3g}{bad}")
    facts = {"model": args.model, "dtype": model.dtype, **_facts(model.config)}
    facts["tensors"] = {name: vars(t) for name, t in tensors.items()}
    report(args, facts, "\n".join(lines))
