"""The command `pybpe mix`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ..arguments import counted
from ..errors import ArgumentError
from .common import (
    add_command,
    add_common,
    add_tokenizer,
    load,
    log_path,
    parse_amount,
    parse_bytes,
    progress,
    report,
)
from .token_files import add_least_tokens, row_lines


def add_mix(commands: Any) -> None:
    parser = add_command(
        commands,
        "mix",
        "mix sources by a recipe, and shuffle all documents",
        "Reads a recipe: the sources, texts or folders that `pybpe binarize` wrote, and how much of each goes into\n"
        "which phase. Writes token files whose documents are in random order, over all sources. If a run is\n"
        "interrupted or killed, run the same command again to resume it. docs/data.md describes recipes.",
        "pybpe mix recipe.toml -t tok.json --dry-run\n"
        "pybpe mix recipe.toml -t tok.json -o mixed\n"
        "pybpe mix recipe.toml -t tok.json -o mixed --seed 7 --memory-limit 4G\n"
        "pybpe stats mixed",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a TOML file")
    add_tokenizer(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="the output folder, created if needed")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what the recipe asks of each source, and write nothing"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: the recipe's, or 0)")
    parser.add_argument(
        "--format",
        default="llmc",
        metavar="F",
        help="llmc (default), raw (nanoGPT), npy, megatron, parquet or webdataset",
    )
    parser.add_argument(
        "--eot",
        metavar="WHERE",
        help="where to put the end-of-text token: prepend (default for llmc), append (default for others) or none",
    )
    parser.add_argument("--dtype", default="auto", metavar="D", help="uint16, uint32 or auto (default)")
    parser.add_argument(
        "--shard-tokens", type=parse_amount, default=10**8, metavar="N", help="most tokens per shard (default: 100M)"
    )
    add_least_tokens(parser)
    parser.add_argument(
        "--sequence-length",
        type=int,
        default=1024,
        metavar="N",
        help="amounts are exact to less than N tokens, and no document of up to N tokens is cut; also the tokens per"
        " row of parquet and webdataset (default: 1024)",
    )
    parser.add_argument("--name", metavar="NAME", help="name prefix of the files (default: mix)")
    parser.add_argument(
        "--memory-limit", type=parse_bytes, metavar="N", help="memory for the shuffle, in bytes (default: 1 GiB)"
    )
    add_common(parser)
    parser.set_defaults(run=_run_mix, state=_state)


def _state(args: argparse.Namespace) -> str:
    return log_path(args) if args.output is not None else ""


def _run_plan(args: argparse.Namespace) -> None:
    from ..tokens.mix import plan_mix

    plan = plan_mix(load(args.tokenizer), args.recipe)
    lines = []
    for name, amounts in plan.phases:
        lines.append(f"phase {name}, {counted(sum(amounts.values()), 'token')}:")
        for source, tokens in amounts.items():
            lines.append(f"    {source}: {tokens} ({100 * tokens / sum(amounts.values()):.2f}%)")
    for name, facts in plan.sources.items():
        about = "about " if facts.is_estimate else ""
        there = f"{about}{counted(facts.tokens, 'token')} to train on"
        lines.append(f"source {name}: {there}, used {about}{_passes(facts.epochs)}")
    sources = {name: {**asdict(facts), "epochs": facts.epochs} for name, facts in plan.sources.items()}
    phases = [{"name": name, "sources": amounts} for name, amounts in plan.phases]
    report(args, {"sources": sources, "phases": phases}, "\n".join(lines))


def _run_mix(args: argparse.Namespace) -> None:
    from ..tokens.mix import mix

    if args.dry_run:
        return _run_plan(args)
    if args.output is None:
        raise ArgumentError("name the output folder with -o, or pass --dry-run")
    manifest = mix(
        load(args.tokenizer),
        args.recipe,
        args.output,
        seed=args.seed,
        format=args.format,
        eot=args.eot,
        dtype=args.dtype,
        shard_tokens=args.shard_tokens,
        min_shard_tokens=args.min_shard_tokens,
        sequence_length=args.sequence_length,
        name=args.name,
        workers=args.workers,
        memory_limit=args.memory_limit,
        force=args.force,
        progress=progress(args),
    )
    assert manifest.mixture is not None
    lines = [
        f"{split}: {counted(manifest.split_tokens(split), 'token')},"
        f" {counted(manifest.split_documents(split), 'document')}, {counted(len(records), 'file')}"
        for split, records in manifest.shards.items()
    ]
    facts = {key: value for key, value in manifest.mixture.items() if key != "recipe"}
    tokens = {split: manifest.split_tokens(split) for split in manifest.shards}
    text = "\n".join([f"{args.output}:", *lines, *row_lines(manifest), *mixture_lines(manifest.mixture)])
    report(args, {"output": args.output, "tokens": tokens, **facts}, text)


def mixture_lines(mixture: Mapping[str, Any]) -> Iterator[str]:
    """Yields lines that compare what was asked of each source with what it gave, and say how often it was repeated."""
    for phase in mixture["phases"]:
        yield f"phase {phase['name']}, {counted(phase['asked'], 'token')} asked:"
        for name, part in phase["sources"].items():
            share = 100 * part["tokens"] / max(1, sum(each["tokens"] for each in phase["sources"].values()))
            cut = f", {part['cuts']} of them cut" if part["cuts"] else ""
            yield (
                f"    {name}: {part['asked']} asked, {counted(part['tokens'], 'token')} ({share:.2f}%) in"
                f" {counted(part['documents'], 'document')}{cut}"
            )
    for name, source in mixture["sources"].items():
        yield f"source {name}: {counted(source['tokens'], 'token')}, used {_passes(source['epochs'])}"


def _passes(epochs: float) -> str:
    return "once" if epochs == 1 else f"{epochs:.4g} times"
