"""The command `pybpe train`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from ..control_tokens import END_OF_TEXT
from ..errors import ArgumentError, note
from .common import (
    add_command,
    add_common,
    check_tokenizer_output,
    check_writable,
    load,
    named_files,
    parse_amount,
    parse_amounts,
    remove_old_list,
    report,
    save_tokenizer,
)
from .counts import add_cutting_options, add_input_options, count, input_arguments

if TYPE_CHECKING:
    from ..training.counts import Counts


def add_train(commands: Any) -> None:
    parser = add_command(
        commands,
        "train",
        "train a tokenizer",
        "Counts the words of the files and merges the most frequent pairs of tokens until the vocabulary is\n"
        "full. The result is the same for any number of workers.",
        "pybpe train novel.txt --vocab-size 20000 --special-token '<|endoftext|>' -o tok.json\n"
        "pybpe train *.txt --vocab-size 32000 --pattern cl100k --min-frequency 2 -o tok.bin\n"
        "pybpe train corpus/ --max-bytes 2G --checkpoint tok.checkpoint --vocab-size 50k -o tok.json\n"
        "pybpe train corpus.jsonl.zst --text-key content --sizes 8k,16k,32k --plot curve.png -o tok.json\n"
        "pybpe train novel.txt --superwords --vocab-size 20000 -o superwords.json\n"
        "pybpe train en=en.txt zh='zh/*.txt' --parity en=dev.en --parity zh=dev.zh --vocab-size 20k -o fair.json\n"
        "pybpe train more.txt --base tok.json --vocab-size 24000 -o larger.json",
    )
    add_input_options(parser)
    add_training_options(parser, pattern=None, size_required=False)
    parser.add_argument("--counts", action="append", metavar="COUNTS", help="use counts from `pybpe counts`, not files")
    parser.add_argument("--base", metavar="TOK", help="a tokenizer to extend; its ids stay the same")
    parser.add_argument(
        "--parity",
        action="append",
        metavar="NAME=FILE",
        help="a development text of each language, repeatable: each merge helps the language that costs the most tokens"
        " on its own. Files to train on are then NAME=FILE too. --max-bytes and --max-documents are for each language",
    )
    parser.add_argument(
        "--parity-per",
        default="text",
        metavar="WHAT",
        help="compare languages by tokens per text (default; the development texts must be translations, line by line),"
        " character or byte",
    )
    parser.add_argument(
        "--checkpoint", metavar="F", help="save progress to F, also while counting; rerun the same command to resume"
    )
    parser.add_argument(
        "--sizes",
        type=parse_amounts,
        metavar="N,N,...",
        help="compare these vocabulary sizes, e.g. 8k,16k,32k (bytes/token, embedding parameters); train the largest",
    )
    parser.add_argument(
        "--hidden", type=int, default=768, metavar="N", help="width of the model, for --sizes (default: 768)"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the curve of --sizes to *.png, *.svg or *.pdf")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="output: *.json (Hugging Face), *.bin (llm.c) or a folder (transformers); - is stdout, as JSON",
    )
    add_common(parser)
    parser.set_defaults(run=_run_train, state=lambda args: args.checkpoint or "")


def add_training_options(
    parser: argparse.ArgumentParser,
    special_tokens: Sequence[str] = (),
    min_frequency: int = 0,
    pattern: str | None = "gpt2",
    size_required: bool = True,
    vocab_size: int | None = None,
) -> None:
    """Adds the options of every command that trains. The arguments are the command's defaults."""
    default = f" (default: {vocab_size})" if vocab_size is not None else ""
    parser.add_argument(
        "--vocab-size",
        type=parse_amount,
        default=vocab_size,
        required=size_required,
        metavar="N",
        help=f"number of tokens, including special tokens{default}",
    )
    default = (
        f"{len(special_tokens)} control tokens for documents and chats; the first is {special_tokens[0]}"
        if special_tokens
        else f"none. llm.c, and `pybpe binarize` by default, need {END_OF_TEXT}"
    )
    parser.add_argument(
        "--special-token",
        action="append",
        metavar="S",
        help=f"a text that always becomes one id; repeatable (default: {default})",
    )
    parser.add_argument(
        "--end-of-text", metavar="S", help="the special token that ends a document (default: <|endoftext|>)"
    )
    parser.add_argument(
        "--special-ids",
        default="first",
        metavar="WHERE",
        help="where to put the ids of special tokens: first (default), after_bytes or last",
    )
    add_cutting_options(parser, pattern)
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=min_frequency,
        metavar="N",
        help=f"merge only pairs that occur at least N times (default: {min_frequency})",
    )
    parser.add_argument(
        "--max-token-length",
        type=int,
        default=255,
        metavar="N",
        help="maximum number of bytes per token (default: 255, llm.c's limit)",
    )
    parser.add_argument(
        "--tie-break",
        default="lexicographic",
        metavar="T",
        help="which of several equally frequent pairs to merge first: lexicographic (default) or huggingface",
    )
    parser.add_argument(
        "--superwords",
        action="store_true",
        help="also learn tokens across spaces, such as ' of the', in a second stage (SuperBPE)",
    )
    parser.add_argument(
        "--transition",
        type=float,
        metavar="SHARE",
        help="the share of the vocabulary at which superwords (default: 0.8) or parity (default: 0) begin",
    )
    parser.add_argument(
        "--whole-characters",
        action="store_true",
        help="do not make tokens that combine part of a character with other characters",
    )


def training_arguments(args: argparse.Namespace, special_tokens: Sequence[str] = ()) -> dict[str, Any]:
    """Returns these options, except the vocabulary's size, as arguments of `pybpe.train`."""
    for text in args.special_token or ():
        if "," in text:
            note(f"--special-token {text!r} is one token, with its commas: to name several, repeat the option")
    return {
        "special_tokens": args.special_token or special_tokens,
        "end_of_text": args.end_of_text,
        "special_ids": args.special_ids,
        "pattern": args.pattern,
        "digits": args.digits,
        "normalizer": args.normalizer,
        "min_frequency": args.min_frequency,
        "max_token_length": args.max_token_length,
        "tie_break": args.tie_break,
        "superwords": args.superwords,
        "transition": args.transition,
        "whole_characters": args.whole_characters,
    }


def _run_train(args: argparse.Namespace) -> None:
    from ..analysis import compression_curve
    from ..trainer import train

    check_tokenizer_output(args.output)
    inputs, parity = _inputs(args)
    size = _vocab_size(args)
    if args.plot is not None:
        check_writable(args.plot)
        compression_curve.check_plot(args.plot)
    counts = _counts(args)
    reading = input_arguments(args)
    if counts is not None and not args.counts:  # these counts already come from the sample
        reading |= {"max_documents": None, "max_bytes": None}
    tokenizer = train(
        inputs if counts is None else None,
        counts=counts,
        parity=parity,
        parity_per=args.parity_per,
        vocab_size=size,
        base=load(args.base) if args.base is not None else None,
        checkpoint=args.checkpoint,
        **training_arguments(args),
        **reading,
    )
    save_tokenizer(tokenizer, args.output)
    remove_old_list(args)
    facts = {"output": args.output, "n_vocab": tokenizer.vocab_size, "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {counted(tokenizer.vocab_size, 'token')}, {counted(facts['merges'], 'merge')}"
    line += fewer_than(size, tokenizer.vocab_size)
    if args.sizes is not None and counts is not None:
        points = compression_curve.compression_curve(tokenizer, counts, args.sizes, args.hidden)
        facts["sizes"] = [point._asdict() for point in points]
        line += "\n" + compression_curve.table(points)
        if args.plot is not None:
            compression_curve.plot(points, args.plot)
    report(args, facts, line)


def _inputs(args: argparse.Namespace) -> tuple[list[str] | dict[str, list[str]], dict[str, list[str]] | None]:
    """Returns the files to train on, by language if --parity is given, and the development texts."""
    if not args.parity:
        return args.files, None
    if args.counts or args.sizes is not None:
        raise ArgumentError("--parity cannot be used with --counts or --sizes")
    inputs, parity = named_files("with --parity, files", args.files), named_files("--parity", args.parity)
    return inputs, parity


def fewer_than(size: int, got: int) -> str:
    """Returns why a vocabulary has fewer tokens than requested; "" if it does not."""
    if got >= size:
        return ""
    return f" (fewer than {size}: no other pair occurs often enough; use more text to get more)"


def _vocab_size(args: argparse.Namespace) -> int:
    if args.plot is not None and args.sizes is None:
        raise ArgumentError("--plot draws the curve of --sizes: give --sizes too")
    if args.sizes is not None and args.base is not None:
        raise ArgumentError("--sizes cannot be used with --base")
    if args.sizes is not None and args.superwords:
        raise ArgumentError(
            "--sizes cannot be used with --superwords: where its second stage begins depends on the size"
        )
    sizes: list[int] = [*(args.sizes or ()), *([args.vocab_size] if args.vocab_size is not None else ())]
    if not sizes:
        raise ArgumentError("give --vocab-size N, or several sizes with --sizes N,N,...")
    return max(sizes)


def _counts(args: argparse.Namespace) -> Counts | None:
    """Returns the counts that were given, or that the curve also needs; None if `train` must count."""
    from ..training.counts import Counts

    if bool(args.counts) == bool(args.files):
        raise ArgumentError("name files to train on, or --counts")
    if args.counts:
        return Counts.load_sum(args.counts)
    if args.sizes is None:
        return None
    return count(args, args.files)
