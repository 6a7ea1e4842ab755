"""The command `pybpe count`: tokens, or the words of a corpus for `pybpe train --counts`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import Any

import pybpe

from .._lazy import tempfile
from ..arguments import chosen, number_of
from ..errors import ArgumentError
from ..model import special_ids_of
from ..pattern import Pattern
from ..reading.charset import Doubts
from ..reading.documents import Kinds
from ..reading.files import corpus_files
from ..reading.inputs import ReadOptions
from ..reading.pieces import data_pieces
from ..reading.planning import Piece, pieces_of, text_piece, whole
from ..reading.sample import Sample
from ..support.parallel import RunOptions, map_ordered
from ..training.train_options import TrainOptions
from .coding import add_text, hinting_at_text
from .command import Command
from .common import (
    dask_executor,
    list_of_skipped,
    load,
    named_output,
    progress,
    remove_old_list,
    report,
    tell_terminal,
)

_OF_WORDS = (
    *("pattern", "digits", "normalizer", "special_tokens", "max_documents", "max_bytes", "seed", "memory_limit"),
    *("dask", "task_timeout", "on_error", "skipped"),
)


def add_count(command: Command) -> None:
    """Count the tokens of documents, or save their words for `pybpe train --counts`.

    examples:
      pybpe count -t tok.json novel.txt
      pybpe count -t gpt2 --text 'Hello, world'
      pybpe count part1/*.txt -o part1.counts
      pybpe count part1.counts part2.counts -o all.counts
      pybpe train --counts all.counts --vocab-size 32000 -o tok.json

    With -t, you see the number of tokens, and the bytes per token. In JSON lines,
    parquet and Arrow files, only the text of the records counts.

    Without -t, the command does the first half of training: it saves how often
    every word occurs. To add up the counts of several machines, use their *.counts
    files as FILE: any number of them, in less than 200 MB of memory.
    """
    command.files("*", "; without -t, *.counts files are added")
    command.option("-t --tokenizer TOK", "count the tokens of this tokenizer", path="reads")
    add_text(command)
    with command.group("words, without -t"):
        command.output("where to save the counts (*.counts); - is stdout", required=False)
        command.options(TrainOptions, "pattern", "digits", "normalizer", "special_tokens")
        command.options(Sample)
    with command.group("reading"):
        command.options(ReadOptions)
    dask = "count; they need the files at the same paths. A rerun starts over"
    command.runtime("workers", "memory_limit", dask=dask)
    command.progress()
    command.runs(_run_count)


def _run_count(args: argparse.Namespace) -> None:
    if args.tokenizer is not None:
        if args.output is not None:
            raise ArgumentError("-t counts tokens, which are printed; -o saves words: leave one of them out")
        _refuse_given(args, _OF_WORDS, "needs -o: it is for counts of words")
        _count_tokens(args)
    elif args.output is None:
        raise ArgumentError("use -t TOK to count tokens, or -o FILE to save counts of words")
    else:
        _refuse_given(args, ("ordinary", "text"), "needs -t: it is for counts of tokens")
        _count_words(args)


def _refuse_given(args: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raises ArgumentError if an option is given that would have no effect."""
    for name in names:
        if getattr(args, name) != args.parser.get_default(name):
            raise ArgumentError(f"{args.parser.flags[name]} {why}")


# ----------------------------------------------------------------------------------------------------
# Tokens


def _pieces_to_count(tokenizer: pybpe.Tokenizer, args: argparse.Namespace) -> Iterator[Piece]:
    cut = tokenizer._encoder.cut
    if args.text is not None:
        if args.files:
            raise ArgumentError("use a file or --text, not both")
        yield from map(text_piece, data_pieces(os.fsencode(args.text), cut))
        return
    paths = args.files or ["-"]
    if "-" in paths:
        tell_terminal("-")
    with hinting_at_text(paths):
        read = ReadOptions(args.text_key, args.encoding, args.keep_crlf, args.documents)
        files = corpus_files(paths, read)
    for part in files.parts:
        yield from pieces_of(whole(part), Kinds(ReadOptions(args.text_key, read.encoding)), cut)


def _count_tokens(args: argparse.Namespace) -> None:
    tokenizer = load(args.tokenizer)
    allowed: Any = () if args.ordinary else "all"
    doubts = Doubts()

    def count(piece: Piece) -> tuple[int, int]:
        if piece.path:
            doubts.tell(piece.doubt(doubts.look))
        texts, specials = piece.texts(args.text_key), allowed if piece.is_text else ()
        return sum(tokenizer.count(text, allowed_special=specials) for text in texts), sum(map(len, texts))

    tokens, size = 0, 0
    for piece_tokens, piece_size in map_ordered(count, _pieces_to_count(tokenizer, args), args.workers):
        tokens += piece_tokens
        size += piece_size
    ratio = f", {size / tokens:.3f} bytes per token" if tokens else ""
    facts = {"tokens": tokens, "bytes": size}
    args.output = None
    report(args, facts, f"{number_of(tokens, 'token')}, {number_of(size, 'byte')}{ratio}")


# ----------------------------------------------------------------------------------------------------
# Words


def _count_words(args: argparse.Namespace) -> None:
    """Writes the sum of the words of documents and of .counts files."""
    texts = [path for path in args.files if not path.endswith(".counts")]
    counts = [path for path in args.files if path.endswith(".counts")]
    if not args.files:
        raise ArgumentError("name files to count, or *.counts files to add")
    if args.dask is not None and counts:
        raise ArgumentError("--dask counts texts: add *.counts files without it")
    with named_output(args, ".counts", keep=True) as name, tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
        if texts:
            part = os.path.join(folder, "texts.counts") if counts else name
            words = _count_texts(args, texts, counts, part)
            counts = [*counts, part]
        if counts != [name]:
            words = pybpe.Counts.merge_files(counts, name)
    remove_old_list(args)
    report(args, {"output": args.output, "words": words}, f"{args.output}: {words} distinct words")


def _count_texts(args: argparse.Namespace, texts: list[str], counts: list[str], output: str) -> int:
    """Writes the words of documents to a file, if the words of `counts` can be added. Returns the number of words."""
    from ..training.counting import count_to_file
    from ..training.counts import CountSettings, check_addable, settings_of_files

    specials = tuple(special_ids_of(args.special_tokens or ()))
    read = chosen(ReadOptions, vars(args), skipped=list_of_skipped(args))
    settings = CountSettings(Pattern(args.pattern or "gpt2", args.digits), specials, args.normalizer, read)
    if counts:
        check_addable(settings_of_files(counts), settings, f"{counts[0]}: ")
    with dask_executor(args.dask) as executor:
        run = chosen(RunOptions, vars(args), executor=executor, progress=progress(args))
        return count_to_file(texts, settings, chosen(Sample, vars(args)), run, output)
