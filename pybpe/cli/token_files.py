"""The commands that write and check token files: `pybpe binarize`, `prepare`, `join`, `mix`, `pack` and `verify`."""

from __future__ import annotations

import argparse
from dataclasses import MISSING

import pybpe

from ..arguments import counted
from ..control_tokens import CONTROL_TOKENS
from ..errors import ArgumentError, note
from ..reading.options import ReadOptions
from ..reading.splits import DEFAULT_SPLITS, SplitOptions
from ..support.parallel import RunOptions
from ..tokens.manifest import Manifest, named_folder
from ..tokens.options import OutputOptions, RowOptions
from .command import Command
from .common import call, load, report, tell_of_commas

_DIR = "the output folder, created if needed"
_LARGE = 10**8  # tokens


def report_manifest(args: argparse.Namespace, manifest: Manifest, note: str = "") -> None:
    """Prints what a command wrote."""
    facts = {name: getattr(manifest, name) for name in ("skipped", "packing", "mixture")}
    facts = {"tokens": split_tokens(manifest), **{name: value for name, value in facts.items() if value is not None}}
    report(args, {"output": args.output, **facts}, f"{args.output}:{note}\n{manifest}")


def split_tokens(manifest: Manifest) -> dict[str, int]:
    """Returns the number of tokens in each split."""
    return {split: manifest.split_tokens(split) for split in manifest.shards}


def tell_set_aside(args: argparse.Namespace, manifest: Manifest) -> None:
    """Says how many tokens of a large corpus are not trained on, if that is more than they need to be."""
    if manifest.tokens > _LARGE and tuple(args.splits) == DEFAULT_SPLITS and args.val_documents is None:
        others = ", ".join(f"{split} {count:,}" for split, count in split_tokens(manifest).items() if split != "train")
        note(f"tokens that are set aside, not to train on: {others}; --splits 98,1,1 sets aside less")


# ----------------------------------------------------------------------------------------------------
# binarize, prepare


def add_binarize(command: Command) -> None:
    """Encodes a corpus, splits it, and writes token files, by default shards that llm.c reads directly, with a
    manifest. If a run is interrupted or killed, run the same command again to resume it.

    examples:
      pybpe binarize -t tok.json novel.txt -o out
      pybpe binarize -t tok.json web/ -o out --splits 98,1,1
      pybpe binarize -t tok.json 's3://corpora/web/*.jsonl.zst' -o out
      pybpe binarize -t tok.json pages.jsonl.zst -o out --text-key content --format megatron
      pybpe binarize -t tok.json pages.jsonl -o rows --pack --sequence-length 1024
      pybpe binarize -t tok.json web/*.jsonl.zst -o out --on-error skip
      pybpe binarize -t tok.json /shared/web/ -o /shared/out --dask tcp://node1:8786 --workers 64
      zcat dump.gz | pybpe binarize -t tok.json - -o out --documents blank
    """
    command.tokenizer()
    _add_data(command)
    command.options(OutputOptions, "dtype")
    add_pack_options(command)
    command.options(RowOptions, "sequence_length")
    command.resume()
    command.progress()
    command.runs(_run_binarize)


def add_prepare(command: Command) -> None:
    """Splits the text, trains a tokenizer on the train split only, so that it does not see the validation
    text, and encodes all splits.

    examples:
      pybpe prepare novel.txt -o data --vocab-size 20000
    """
    from ..training.options import TrainOptions  # binarize needs none of it

    _add_data(command)
    command.options(TrainOptions, without=["parity_per"], special_tokens=CONTROL_TOKENS)
    command.progress()
    command.runs(_run_prepare)


def _add_data(command: Command) -> None:
    command.files()
    command.output(_DIR, "DIR")
    command.options(ReadOptions, without=["skipped"])
    command.options(SplitOptions)
    command.options(OutputOptions, without=["dtype"])
    command.dask("encode")
    command.options(RunOptions, "workers")


def add_pack_options(command: Command) -> None:
    """Adds the options for packing documents into rows in the same run."""
    command.option(
        "--pack", "pack the documents into rows of --sequence-length tokens, as `pybpe pack` does; only these are kept"
    )
    command.options(RowOptions, "packing")


def _run_binarize(args: argparse.Namespace) -> None:
    manifest = call(pybpe.binarize, args, load(args.tokenizer), args.files, args.output)
    tell_set_aside(args, manifest)
    report_manifest(args, manifest)


def _run_prepare(args: argparse.Namespace) -> None:
    tell_of_commas(args)
    tok, manifest = call(pybpe.prepare, args, args.files, args.output)
    tell_set_aside(args, manifest)
    report_manifest(args, manifest, note=f" {len(tok)} tokens")


# ----------------------------------------------------------------------------------------------------
# mix


def add_mix(command: Command) -> None:
    """Reads a recipe: the sources, folders that `pybpe binarize` wrote, and how much of each to use. Writes token
    files whose documents are in random order, over all sources. If a run is interrupted or killed, run the same
    command again to resume it. docs/mixing.md describes recipes.

    examples:
      pybpe mix recipe.toml -t tok.json --dry-run
      pybpe mix recipe.toml -t tok.json -o mixed
      pybpe mix recipe.toml -t tok.json -o mixed --seed 7 --memory-limit 4G
      pybpe inspect mixed
    """
    command.option("recipe RECIPE", "a TOML file")
    command.tokenizer()
    command.option("-o --output DIR", _DIR)
    command.option("--dry-run", "show what the recipe asks of each source, and write nothing")
    command.option("--seed N", "random seed (default: the recipe's, or 0)", int)
    command.options(OutputOptions)
    command.option(
        "--sequence-length N",
        "amounts are exact to less than N tokens, and no document of up to N tokens is cut; also the tokens per"
        " row of parquet and webdataset (default: 1024)",
        int,
        default=1024,
    )
    command.options(RunOptions, "memory_limit")
    command.progress()
    command.runs(_run_mix)


def _run_mix(args: argparse.Namespace) -> None:
    if args.dry_run:
        plan = pybpe.plan_mix(load(args.tokenizer), args.recipe)
        sources = {name: {**vars(source), "epochs": source.epochs} for name, source in plan.sources.items()}
        return report(args, {"sources": sources}, str(plan))
    if args.output is None:
        raise ArgumentError("name the output folder with -o, or pass --dry-run")
    manifest = call(pybpe.mix, args, load(args.tokenizer), args.recipe, args.output)
    report_manifest(args, manifest)


# ----------------------------------------------------------------------------------------------------
# join, pack, verify


def add_join(command: Command) -> None:
    """Reads folders that `pybpe binarize` wrote with the same tokenizer and arguments, from different files, and
    writes the token files that one run on all the files would have written.

    examples:
      pybpe join node0 node1 node2 -t tok.json -o all
    """
    command.option("folders DIR", "folders with a manifest.json, in the order to join", nargs="+")
    command.tokenizer()
    command.output(_DIR, "DIR")
    command.options(OutputOptions, "name")
    command.resume()
    command.progress()
    command.runs(_run_join)


def _run_join(args: argparse.Namespace) -> None:
    manifest = call(pybpe.join, args, load(args.tokenizer), list(map(named_by, args.folders)), args.output)
    report_manifest(args, manifest)


def named_by(name: str) -> str:
    """Returns the folder of token files that an argument names."""
    folder, file = named_folder(name)
    if file is not None:
        raise ArgumentError(f"{name}: this command takes a folder with a manifest.json, not a file in it: {folder}")
    return folder


def add_pack(command: Command) -> None:
    """Reads token files that `pybpe binarize`, `prepare`, `join` or `mix` wrote, and writes shards of rows of exactly T
    tokens, each beginning with the end-of-text token. Documents of up to T tokens are not cut. Train on the
    result with llm.c's -t T, or choose a format that has position_ids and a loss_mask for other trainers.

    examples:
      pybpe pack data -t tok.json --sequence-length 1024 -o packed
      pybpe pack data -t tok.json --sequence-length 1024 -o packed --packing fill
      pybpe pack data -t tok.json --sequence-length 2048 -o rows --format parquet
    """
    command.option("folder DIR", "a folder with a manifest.json")
    command.tokenizer()
    command.output(_DIR, "DIR")
    command.options(RowOptions, sequence_length=MISSING)
    command.options(OutputOptions, "shard_tokens")
    command.progress()
    command.runs(_run_pack)


def _run_pack(args: argparse.Namespace) -> None:
    manifest = call(pybpe.pack, args, load(args.tokenizer), named_by(args.folder), args.output)
    report_manifest(args, manifest)


def add_verify(command: Command) -> None:
    """Checks the size and SHA-256 of every file that `pybpe binarize` or `prepare` wrote. With the tokenizer,
    also checks every id, the amount of text, and that samples encode to the same ids again. Exits with 1 if
    something is wrong.

    examples:
      pybpe verify out
      pybpe verify out -t tok.json
      pybpe verify out/novel_val_000000.bin
    """
    command.option("folder DIR", "a folder with a manifest.json, or one file in it")
    command.option("-t --tokenizer TOK", "tokenizer.json or .bin (default: DIR/tokenizer.json, if it exists)")
    command.runs(_run_verify)


def _run_verify(args: argparse.Namespace) -> int:
    from ..tokens.verification import verify

    manifest, problems = verify(args.folder, load(args.tokenizer) if args.tokenizer else None)
    count = len(manifest.file_names)
    well = f"{args.folder}: {counted(count, 'file')}, {counted(manifest.tokens, 'token')}: OK"
    facts = {"files": count, "problems": [vars(problem) for problem in problems]}
    report(args, facts, "\n".join(map(str, problems)) or well)
    return 1 if problems else 0
