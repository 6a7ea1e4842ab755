"""The commands that write and check token files: `pybpe binarize`, `prepare`, `join`, `mix`, `pack` and `verify`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import MISSING

import pybpe

from ..arguments import number_of
from ..control_tokens import CONTROL_TOKENS
from ..errors import ArgumentError, note
from ..reading.inputs import ReadOptions
from ..reading.planning import DEFAULT_SPLITS, SplitOptions
from ..tokens.formats import OutputOptions, RowOptions
from ..tokens.manifest import Manifest, named_folder, with_mark
from .command import Command
from .common import call, load, report, tell_of_commas

_LARGE = 10**8  # tokens


def report_manifest(args: argparse.Namespace, manifest: Manifest, detail: str = "") -> None:
    """Prints the output of a command."""
    facts = {name: getattr(manifest, name) for name in ("skipped", "packing", "mixture")}
    facts = {"tokens": split_tokens(manifest), **{name: value for name, value in facts.items() if value is not None}}
    report(args, {"output": args.output, **facts}, f"{args.output}:{detail}\n{manifest}")


def split_tokens(manifest: Manifest) -> dict[str, int]:
    """Returns split -> number of tokens."""
    return {split: manifest.split_tokens(split) for split in manifest.shards}


def tell_set_aside(args: argparse.Namespace, manifest: Manifest) -> None:
    """Says how many tokens of a large corpus are not trained on, if that is more than they need to be."""
    if manifest.tokens > _LARGE and tuple(args.splits) == DEFAULT_SPLITS and args.val_documents is None:
        others = ", ".join(f"{split} {count:,}" for split, count in split_tokens(manifest).items() if split != "train")
        note(f"tokens that are set aside, not to train on: {others}; --splits 98,1,1 sets aside less")


# ----------------------------------------------------------------------------------------------------
# binarize, prepare


def add_binarize(command: Command) -> None:
    """Turn a corpus into token files for training: encode it, split it, and write
    shards that llm.c reads, or files in another format, with a manifest.

    examples:
      pybpe binarize -t tok.json novel.txt -o out
      pybpe binarize -t tok.json web/ -o out --splits 98,1,1
      pybpe binarize -t tok.json 's3://corpora/web/*.jsonl.zst' -o out

    more examples:
      pybpe binarize -t tok.json pages.jsonl.zst -o out --text-key content \\
          --format megatron
      pybpe binarize -t tok.json web/*.jsonl.zst -o out --on-error skip
      pybpe binarize -t tok.json /shared/web/ -o /shared/out \\
          --dask tcp://node1:8786 --workers 64
      zcat dump.gz | pybpe binarize -t tok.json - -o out --documents blank

    If a run is interrupted or killed, run the same command again to resume it.
    """
    command.files()
    command.tokenizer()
    command.output_folder()
    _add_formats(command)
    command.progress()
    command.runs(_run_binarize)


def add_prepare(command: Command) -> None:
    """Train a tokenizer on the train split only, and write token files for all splits.

    examples:
      pybpe prepare novel.txt -o data --vocab-size 20000
    """
    from .train import add_training  # binarize needs none of it

    command.files()
    command.output_folder()
    add_training(command, CONTROL_TOKENS)
    _add_formats(command, without=["dtype"])
    command.progress()
    command.runs(_run_prepare)


def _add_formats(command: Command, without: Sequence[str] = ()) -> None:
    """Adds the options for reading, splitting and writing."""
    with command.group("reading"):
        command.options(ReadOptions, without=["skipped"])
    with command.group("splitting"):
        command.options(SplitOptions)
    with command.group("writing"):
        command.options(OutputOptions, without=without)
    command.runtime("workers", dask="encode")


def _run_binarize(args: argparse.Namespace) -> None:
    tok = load(args.tokenizer)
    manifest = call(pybpe.binarize, args, tok, args.files, args.output)
    tell_set_aside(args, manifest)
    report_manifest(args, manifest, f" {_marks(tok, manifest)}")


def _marks(tok: pybpe.Tokenizer, manifest: Manifest) -> str:
    """Returns which token is between documents, and that the special tokens of a template are not."""
    tok = with_mark(tok, manifest)
    mode, template = manifest.settings["eot"], tok.model.template
    place = {"prepend": "begins", "append": "ends"}.get(str(mode))
    told = f"{tok.model.eot} (id {tok.eot_token}) {place} every document" if place else "no token between documents"
    lacked = [] if template is None else [text for text in template.special_tokens if text != tok.model.eot]
    if template is None or not lacked:
        return told
    where, how = ("after", "append") if template.single[0].is_sequence else ("before", "prepend")
    remedy = f"--eot {shlex.quote(f'{how}:{lacked[0]}')} puts {lacked[0]} {where} every document instead"
    return f"{told}; token files never have {' and '.join(lacked)} of the template: {remedy}"


def _run_prepare(args: argparse.Namespace) -> None:
    tell_of_commas(args)
    tok, manifest = call(pybpe.prepare, args, args.files, args.output)
    tell_set_aside(args, manifest)
    report_manifest(args, manifest, f" {len(tok)} tokens, {_marks(tok, manifest)}")


# ----------------------------------------------------------------------------------------------------
# mix


def add_mix(command: Command) -> None:
    """Mix sources by a recipe, and shuffle the documents of all of them.

    examples:
      pybpe mix recipe.toml -t tok.json --dry-run
      pybpe mix recipe.toml -t tok.json -o mixed
      pybpe mix recipe.toml -t tok.json -o mixed --seed 7 --memory-limit 4G
      pybpe inspect mixed

    A recipe is a TOML file with the sources, which are folders that `pybpe
    binarize` wrote, and their amounts. For example, this is one pass over the web
    and two over the books:

      [sources.web]
      data = "web"
      epochs = 1

      [sources.books]
      data = "books"
      epochs = 2

    If a run is interrupted or killed, run the same command again to resume it.
    """
    command.option("recipe RECIPE", "a TOML file", path="reads")
    command.tokenizer()
    command.output_folder(required=False)
    command.option("--dry-run", "show the amounts that the recipe asks of every source, and write nothing")
    command.option("--seed N", "random seed (default: the recipe's, or 0)", int)
    command.option(
        "--sequence-length N",
        "amounts are accurate to within N tokens, and no document of up to N tokens is cut (default: 1024)",
        int,
        default=1024,
    )
    with command.group("writing"):
        command.options(OutputOptions, without=["provenance", "id_key"])
    command.runtime("memory_limit")
    command.progress()
    command.runs(_run_mix)


def _run_mix(args: argparse.Namespace) -> None:
    if args.dry_run:
        plan = pybpe.plan_mix(load(args.tokenizer), args.recipe)
        sources = {name: {**vars(source), "epochs": source.epochs} for name, source in plan.sources.items()}
        return report(args, {"sources": sources}, str(plan))
    if args.output is None:
        raise ArgumentError("use -o DIR, or --dry-run")
    manifest = call(pybpe.mix, args, load(args.tokenizer), args.recipe, args.output)
    report_manifest(args, manifest)


# ----------------------------------------------------------------------------------------------------
# join, pack, verify


def add_join(command: Command) -> None:
    """Join token files from several machines. You get the same files as from one run
    on all inputs.

    examples:
      pybpe join node0 node1 node2 -t tok.json -o all

    `pybpe binarize` must have written the folders from different files, with the
    same tokenizer and options.
    """
    command.option("folders DIR", "folders with a manifest.json, in the order to join", nargs="+", path="reads")
    command.tokenizer()
    command.output_folder()
    command.options(OutputOptions, "name")
    command.progress()
    command.runs(
        lambda args: report_manifest(
            args, call(pybpe.join, args, load(args.tokenizer), list(map(named_by, args.folders)), args.output)
        )
    )


def named_by(name: str) -> str:
    """Returns the folder of token files that an argument names."""
    folder, file = named_folder(name)
    if file is not None:
        fix = f"use {folder}" if os.path.exists(os.path.join(folder, "manifest.json")) else "`pybpe binarize` makes one"
        raise ArgumentError(f"{name}: expected a folder with token files and a manifest.json, not a file: {fix}")
    return folder


def add_pack(command: Command) -> None:
    """Pack documents into rows of exactly T tokens, so that training cuts few of them.

    examples:
      pybpe pack data -t tok.json --sequence-length 1024 -o packed
      pybpe pack data -t tok.json --sequence-length 1024 -o packed --packing fill
      pybpe pack data -t tok.json --sequence-length 2048 -o rows --format parquet

    The input is token files that `pybpe binarize`, `prepare`, `join` or `mix`
    wrote. Every row begins with the end-of-text token. Documents of up to T tokens
    are not cut. Train on the rows with llm.c's -t T. For other trainers, choose a
    format that has position_ids and a loss_mask.
    """
    command.option("folder DIR", "a folder with a manifest.json", path="reads")
    command.tokenizer()
    command.output_folder()
    command.options(RowOptions, sequence_length=MISSING)
    command.options(OutputOptions, "shard_tokens")
    command.progress()
    command.runs(
        lambda args: report_manifest(
            args, call(pybpe.pack, args, load(args.tokenizer), named_by(args.folder), args.output)
        )
    )


def add_verify(command: Command) -> None:
    """Check token files against their manifest.

    examples:
      pybpe verify out
      pybpe verify out -t tok.json
      pybpe verify out/novel_val_000000.bin

    The command checks the size and SHA-256 of every file. With the tokenizer, it
    also checks every id and the amount of text, and encodes samples again. It exits
    with 1 if something is wrong.
    """
    command.option("folder DIR", "a folder with a manifest.json, or one file in it", path="reads")
    help = "tokenizer.json or .bin (default: DIR/tokenizer.json, if it exists)"
    command.option("-t --tokenizer TOK", help, path="reads")
    command.runs(_run_verify)


def _run_verify(args: argparse.Namespace) -> int:
    from ..tokens.verification import verify

    manifest, problems = verify(args.folder, load(args.tokenizer) if args.tokenizer else None)
    count = len(manifest.file_names)
    well = f"{args.folder}: {number_of(count, 'file')}, {number_of(manifest.tokens, 'token')}: OK"
    facts = {"files": count, "problems": [vars(problem) for problem in problems]}
    report(args, facts, "\n".join(map(str, problems)) or well)
    return 1 if problems else 0
