"""The commands `pybpe binarize` and `pybpe prepare`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from ..control_tokens import CONTROL_TOKENS
from .common import (
    TOKENIZER_HELP,
    add_command,
    add_common,
    load,
    log_path,
    progress,
    report,
)
from .executors import add_dask_options, dask_executor
from .token_files import (
    add_document_options,
    add_least_tokens,
    add_pack_options,
    add_split_options,
    option_arguments,
    pack_log_path,
    row_lines,
)
from .train import add_training_options, fewer_than, training_arguments

if TYPE_CHECKING:
    from ..tokens.manifest import Manifest


def add_binarize(commands: Any) -> None:
    parser = add_command(
        commands,
        "binarize",
        "turn a corpus into token files for training",
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
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help=TOKENIZER_HELP)
    add_document_options(parser, skips=True)
    _add_output_options(parser, "; packed: parquet, webdataset")
    parser.add_argument("--dtype", default="auto", metavar="D", help="uint16, uint32 or auto (default)")
    add_pack_options(parser)
    parser.add_argument(
        "--sequence-length", type=int, default=1024, metavar="N", help="tokens per packed row (default: 1024)"
    )
    parser.add_argument("--no-resume", action="store_true", help="start over; do not resume an interrupted run")
    add_common(parser)
    parser.set_defaults(run=_run_binarize, state=pack_log_path)


def _run_binarize(args: argparse.Namespace) -> None:
    from ..reading.options import ReadOptions
    from ..reading.splits import SplitOptions
    from ..tokens.binarization import binarize
    from ..tokens.options import OutputOptions

    with dask_executor(args.dask) as executor:
        manifest = binarize(
            load(args.tokenizer),
            args.files,
            args.output,
            **option_arguments(args, ReadOptions, SplitOptions, OutputOptions),
            sequence_length=args.sequence_length,
            pack=args.pack,
            packing=args.packing,
            workers=args.workers,
            executor=executor,
            task_timeout=args.task_timeout,
            resume=not args.no_resume,
            force=args.force,
            progress=progress(args),
        )
    _report_manifest(args, manifest)


def add_prepare(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "prepare",
        "train a tokenizer and write token files",
        "Splits the text, trains a tokenizer on the train split only, so that it does not see the validation\n"
        "text, and encodes all splits.",
        "pybpe prepare novel.txt -o data --vocab-size 20000",
    )
    add_document_options(parser, skips=True)
    add_training_options(parser, CONTROL_TOKENS, min_frequency=2)
    _add_output_options(parser)
    add_common(parser)
    parser.set_defaults(run=_run_prepare, state=log_path)


def _run_prepare(args: argparse.Namespace) -> None:
    from ..reading.options import ReadOptions
    from ..reading.splits import SplitOptions
    from ..tokens.options import OutputOptions
    from ..tokens.preparation import prepare

    with dask_executor(args.dask) as executor:
        tok, manifest = prepare(
            args.files,
            args.output,
            vocab_size=args.vocab_size,
            **training_arguments(args, CONTROL_TOKENS),
            **option_arguments(args, ReadOptions, SplitOptions, OutputOptions),
            workers=args.workers,
            executor=executor,
            task_timeout=args.task_timeout,
            force=args.force,
            progress=progress(args),
        )
    _report_manifest(args, manifest, f" {tok.vocab_size} tokens" + fewer_than(args.vocab_size, tok.vocab_size))


def _add_output_options(parser: argparse.ArgumentParser, rows: str = "") -> None:
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the output folder, created if needed")
    parser.add_argument(
        "--format",
        default="llmc",
        metavar="F",
        help=f"llmc (default), raw (nanoGPT), npy, megatron{rows}",
    )
    parser.add_argument(
        "--eot",
        metavar="WHERE",
        help="where to put the end-of-text token: prepend (default for llmc), append (default for others) or none",
    )
    add_split_options(parser)
    add_least_tokens(parser)
    parser.add_argument("--name", metavar="NAME", help="name prefix of the shards (default: taken from the first file)")
    add_dask_options(parser, "a Dask scheduler whose workers encode, e.g. tcp://node1:8786")


def _report_manifest(args: argparse.Namespace, manifest: Manifest, vocabulary: str = "") -> None:
    lines = [
        f"{split}: {counted(manifest.split_tokens(split), 'token')},"
        f" {counted(manifest.split_documents(split), 'document')},"
        f" {counted(manifest.text_bytes[split], 'byte')} of text, {counted(len(records), 'shard')}"
        for split, records in manifest.shards.items()
    ]
    facts: dict[str, Any] = {"tokens": {split: manifest.split_tokens(split) for split in manifest.shards}}
    if manifest.skipped is not None:
        facts["skipped"] = manifest.skipped
    report(
        args,
        {"output": args.output, **facts},
        "\n".join([f"{args.output}:{vocabulary}", *lines, *row_lines(manifest)]),
    )
