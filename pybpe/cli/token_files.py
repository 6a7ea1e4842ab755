"""The commands that write and check token files: `pybpe binarize`, `prepare`, `join`, `mix`, `pack` and `verify`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from ..control_tokens import CONTROL_TOKENS
from ..errors import ArgumentError, note
from ..reading.options import ReadOptions
from ..reading.splits import DEFAULT_SPLITS, SplitOptions
from ..support.run_options import RunOptions
from ..tokens.options import OutputOptions
from ..tokens.pack.options import RowOptions
from ..training.plan import TrainOptions
from .common import (
    add_common,
    add_dask,
    add_files,
    add_output,
    add_tokenizer,
    describe,
    load,
    log_path,
    progress,
    report,
)
from .executors import dask_executor
from .options import add_options, given
from .train import fewer_than, training_arguments

if TYPE_CHECKING:
    from ..tokens.manifest import Manifest

_DIR = "the output folder, created if needed"
_LARGE = 10**8  # tokens


def _add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-resume", action="store_true", help="start over; do not resume an interrupted run")


def _again(args: argparse.Namespace) -> dict[str, Any]:
    return {"resume": not args.no_resume, "force": args.force}


# ----------------------------------------------------------------------------------------------------
# binarize, prepare


def add_binarize(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Encodes a corpus, splits it, and writes token files, by default shards that llm.c reads directly, with a\n"
        "manifest. If a run is interrupted or killed, run the same command again to resume it.",
        "pybpe binarize -t tok.json novel.txt -o out\n"
        "pybpe binarize -t tok.json web/ -o out --splits 98,1,1\n"
        "pybpe binarize -t tok.json 's3://corpora/web/*.jsonl.zst' -o out\n"
        "pybpe binarize -t tok.json pages.jsonl.zst -o out --text-key content --format megatron\n"
        "pybpe binarize -t tok.json pages.jsonl -o rows --pack --sequence-length 1024\n"
        "pybpe binarize -t tok.json web/*.jsonl.zst -o out --on-error skip\n"
        "pybpe binarize -t tok.json /shared/web/ -o /shared/out --dask tcp://node1:8786 --workers 64\n"
        "zcat dump.gz | pybpe binarize -t tok.json - -o out --documents blank",
    )
    add_tokenizer(parser)
    _add_data(parser)
    add_options(parser, OutputOptions, "dtype")
    add_pack_options(parser)
    add_options(parser, RowOptions, "sequence_length")
    _add_resume(parser)
    add_common(parser)
    parser.set_defaults(run=_run_binarize, state=pack_log_path)


def add_prepare(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Splits the text, trains a tokenizer on the train split only, so that it does not see the validation\n"
        "text, and encodes all splits.",
        "pybpe prepare novel.txt -o data --vocab-size 20000",
    )
    _add_data(parser)
    add_options(parser, TrainOptions, without=["parity_per"], special_tokens=CONTROL_TOKENS)
    add_common(parser)
    parser.set_defaults(run=_run_prepare, state=log_path)


def _add_data(parser: argparse.ArgumentParser) -> None:
    """Adds what `binarize` and `prepare` share."""
    add_files(parser)
    add_output(parser, _DIR, "DIR")
    add_options(parser, ReadOptions, without=["skipped"])
    add_options(parser, SplitOptions)
    add_options(parser, OutputOptions, without=["dtype"])
    add_dask(parser, "encode")
    add_options(parser, RunOptions, "workers")


def add_pack_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for packing documents into rows in the same run."""
    parser.add_argument(
        "--pack",
        action="store_true",
        help="pack the documents into rows of --sequence-length tokens, as `pybpe pack` does; only these are kept",
    )
    add_options(parser, RowOptions, "packing")


def pack_log_path(args: argparse.Namespace) -> str:
    """Returns the path of the log of a run with or without --pack: see log_path."""
    from ..tokens.finished import hidden_folder

    is_packed = args.pack or args.format in ("parquet", "webdataset")
    return log_path(argparse.Namespace(output=hidden_folder(args.output)) if is_packed else args)


def _run_binarize(args: argparse.Namespace) -> None:
    from ..tokens.binarization import binarize

    with dask_executor(args.dask) as executor:
        manifest = binarize(
            load(args.tokenizer),
            args.files,
            args.output,
            **given(args, ReadOptions, SplitOptions, OutputOptions, RowOptions, RunOptions),
            **_again(args),
            pack=args.pack,
            executor=executor,
            progress=progress(args),
        )
    _report_manifest(args, manifest)


def _run_prepare(args: argparse.Namespace) -> None:
    from ..tokens.preparation import prepare

    options = given(args, ReadOptions, SplitOptions, OutputOptions, RunOptions) | training_arguments(args)
    with dask_executor(args.dask) as executor:
        tok, manifest = prepare(
            args.files, args.output, **options, executor=executor, force=args.force, progress=progress(args)
        )
    _report_manifest(args, manifest, f" {len(tok)} tokens" + fewer_than(args.vocab_size, len(tok)))


def tell_set_aside(manifest: Manifest, splits: Sequence[float]) -> None:
    """Says how many tokens of a large corpus are not trained on, if that is more than they need to be."""
    tokens = {split: manifest.split_tokens(split) for split in manifest.shards}
    if sum(tokens.values()) > _LARGE and tuple(splits) == DEFAULT_SPLITS:
        others = ", ".join(f"{split} {tokens[split]:,}" for split in tokens if split != "train")
        note(f"tokens that are set aside, not to train on: {others}; --splits 98,1,1 sets aside less")


def _report_manifest(args: argparse.Namespace, manifest: Manifest, vocabulary: str = "") -> None:
    tell_set_aside(manifest, args.splits)
    lines = [
        f"{split}: {counted(manifest.split_tokens(split), 'token')},"
        f" {counted(manifest.split_documents(split), 'document')},"
        f" {counted(manifest.text_bytes[split], 'byte')} of text, {counted(len(records), 'shard')}"
        for split, records in manifest.shards.items()
    ]
    facts: dict[str, Any] = {"tokens": {split: manifest.split_tokens(split) for split in manifest.shards}}
    if manifest.skipped is not None:
        facts["skipped"] = manifest.skipped
    report(args, {"output": args.output, **facts}, _lines(f"{args.output}:{vocabulary}", *lines, *_row_lines(manifest)))


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def _row_lines(manifest: Manifest) -> list[str]:
    """Returns a line for each split about its packed rows, if there are any."""
    packing = manifest.packing
    if packing is None:
        return []
    size = packing["sequence_length"]
    return [
        f"{split}: {counted(facts['rows'], 'row')} of {size} tokens,"
        f" {100 * facts['padding'] / (facts['rows'] * size):.4f} % padding,"
        f" {counted(facts['cuts'], 'cut')} in {counted(manifest.split_documents(split), 'document')}"
        for split, facts in packing["splits"].items()
        if facts
    ]


# ----------------------------------------------------------------------------------------------------
# mix


def add_mix(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Reads a recipe: the sources, texts or folders that `pybpe binarize` wrote, and how much of each goes into\n"
        "which phase. Writes token files whose documents are in random order, over all sources. If a run is\n"
        "interrupted or killed, run the same command again to resume it. docs/data.md describes recipes.",
        "pybpe mix recipe.toml -t tok.json --dry-run\n"
        "pybpe mix recipe.toml -t tok.json -o mixed\n"
        "pybpe mix recipe.toml -t tok.json -o mixed --seed 7 --memory-limit 4G\n"
        "pybpe inspect mixed",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a TOML file")
    add_tokenizer(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help=_DIR)
    parser.add_argument(
        "--dry-run", action="store_true", help="show what the recipe asks of each source, and write nothing"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: the recipe's, or 0)")
    add_options(parser, OutputOptions)
    parser.add_argument(
        "--sequence-length",
        type=int,
        default=1024,
        metavar="N",
        help="amounts are exact to less than N tokens, and no document of up to N tokens is cut; also the tokens per"
        " row of parquet and webdataset (default: 1024)",
    )
    add_options(parser, RunOptions, "memory_limit", "workers")
    add_common(parser)
    parser.set_defaults(run=_run_mix, state=lambda args: log_path(args) if args.output is not None else "")


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
    report(args, {"sources": sources, "phases": phases}, _lines(*lines))


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
        **given(args, OutputOptions, RunOptions),
        seed=args.seed,
        sequence_length=args.sequence_length,
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
    text = _lines(f"{args.output}:", *lines, *_row_lines(manifest), *mixture_lines(manifest.mixture))
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


# ----------------------------------------------------------------------------------------------------
# join, pack, verify


def add_join(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Reads folders that `pybpe binarize` wrote with the same tokenizer and arguments, from different files, and\n"
        "writes the token files that one run on all the files would have written.",
        "pybpe join node0 node1 node2 -t tok.json -o all",
    )
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders with a manifest.json, in the order to join")
    add_tokenizer(parser)
    add_output(parser, _DIR)
    add_options(parser, OutputOptions, "name")
    _add_resume(parser)
    add_common(parser)
    parser.set_defaults(run=_run_join)


def _run_join(args: argparse.Namespace) -> None:
    from ..tokens.joining import join

    folders = list(map(named_by, args.folders))
    manifest = join(load(args.tokenizer), folders, args.output, name=args.name, progress=progress(args), **_again(args))
    counts = {
        split: {"tokens": manifest.split_tokens(split), "files": len(found)} for split, found in manifest.shards.items()
    }
    lines = [
        f"{split}: {counted(facts['tokens'], 'token')} in {counted(facts['files'], 'file')}"
        for split, facts in counts.items()
    ]
    report(args, {"output": args.output, "splits": counts}, _lines(*lines))


def named_by(name: str) -> str:
    """Returns the folder of token files that an argument names."""
    from ..tokens.manifest import named_folder

    folder, file = named_folder(name)
    if file is not None:
        raise ArgumentError(f"{name}: this command takes a folder with a manifest.json, not a file in it: {folder}")
    return folder


def add_pack(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Reads the llm.c shards that `pybpe binarize` or `prepare` wrote, and writes shards of rows of exactly T\n"
        "tokens, each beginning with the end-of-text token. Documents of up to T tokens are not cut. Train on the\n"
        "result with llm.c's -t T, or choose a format that has position_ids and a loss_mask for other trainers.",
        "pybpe pack data -t tok.json --sequence-length 1024 -o packed\n"
        "pybpe pack data -t tok.json --sequence-length 1024 -o packed --packing fill\n"
        "pybpe pack data -t tok.json --sequence-length 2048 -o rows --format parquet",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json and llm.c's shards")
    add_tokenizer(parser)
    parser.add_argument("--sequence-length", type=int, required=True, metavar="T", help="tokens per row")
    add_output(parser, _DIR)
    add_options(parser, RowOptions, "packing")
    parser.add_argument(
        "--format",
        default="llmc",
        metavar="F",
        help="llmc (default), or with the columns input_ids, document_ids, position_ids and loss_mask: npy, parquet or"
        " webdataset",
    )
    parser.add_argument(
        "--pad",
        metavar="S",
        help="the special token for padding (default: <|padding|> or <|pad|> if there is one, otherwise end of text)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed for the order (default: 0)")
    add_options(parser, OutputOptions, "shard_tokens")
    add_common(parser)
    parser.set_defaults(run=_run_pack)


def _run_pack(args: argparse.Namespace) -> None:
    from ..tokens.pack import pack

    manifest = pack(
        load(args.tokenizer),
        named_by(args.folder),
        args.output,
        **given(args, RowOptions),
        force=args.force,
        progress=progress(args),
    )
    report(args, {"output": args.output, **(manifest.packing or {})}, _lines(*_row_lines(manifest)))


def add_verify(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Checks the size and SHA-256 of every file that `pybpe binarize` or `prepare` wrote. With the tokenizer,\n"
        "also checks every id, the amount of text, and that samples encode to the same ids again. Exits with 1 if\n"
        "something is wrong.",
        "pybpe verify out\npybpe verify out -t tok.json\npybpe verify out/novel_val_000000.bin",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder with a manifest.json, or one file in it")
    parser.add_argument(
        "-t", "--tokenizer", metavar="TOK", help="tokenizer.json or .bin (default: DIR/tokenizer.json, if it exists)"
    )
    add_common(parser)
    parser.set_defaults(run=_run_verify)


def _run_verify(args: argparse.Namespace) -> None:
    from ..tokens.verification import verify

    manifest, problems = verify(args.folder, load(args.tokenizer) if args.tokenizer else None)
    count = len(manifest.file_names)
    lines = [str(problem) for problem in problems] or [
        f"{args.folder}: {counted(count, 'file')}, {counted(manifest.tokens, 'token')}: OK"
    ]
    report(args, {"files": count, "problems": [asdict(problem) for problem in problems]}, _lines(*lines))
    if problems:
        sys.exit(1)
