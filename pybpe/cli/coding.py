"""The commands `pybpe encode`, `decode` and `count`."""

from __future__ import annotations

import argparse
import errno
import glob
import io
import os
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import pybpe

from .._lazy import numpy, tempfile
from ..arguments import chosen, is_url, number_of, one_of, without_secrets
from ..errors import ArgumentError, FileError, FileMissingError, FormatError
from ..reading.charset import Doubts, check_encoding
from ..reading.cuts import data_pieces, stream_pieces
from ..reading.file_types import llmc_file
from ..reading.input_file import InputFile
from ..reading.inputs import ReadOptions
from ..support.parallel import RunOptions, map_ordered
from .command import Command
from .common import (
    dask_executor,
    list_of_skipped,
    load,
    named_output,
    open_source,
    progress,
    remove_old_list,
    report,
    tell_terminal,
    writing,
)

if TYPE_CHECKING:
    from ..reading.pieces import Piece

_BLANKS = bytes.maketrans(b"[],\t\r\v\f", b" " * 7)  # so a JSON list reads like decimal ids
_IDS = re.compile(r"[\[,]*\d[\d,\]\s]*")  # an argument that holds one or more ids
_BLOCK = 1 << 20  # ids, or bytes of text, that are read at once
_LONGEST_ID = 4000  # digits; Python reads at most 4300, and leading zeros are allowed


def add_encode(command: Command) -> None:
    """Turn text into ids: decimal numbers separated by spaces.

    examples:
      pybpe encode -t gpt2 --text 'Hello, world'
      pybpe encode -t gpt2 --text 'Hello, world' --explain
      echo 'Hello, world' | pybpe encode -t tok.json
      pybpe encode -t tok.json novel.txt -o ids.npy
      pybpe encode -t tok.json novel.txt --dropout 0.1 --seed 1

    If OUT ends in .npy, it is a numpy file. If it ends in .bin, it has only the
    ids, as uint16 or uint32, depending on the size of the vocabulary. Bytes that
    are not UTF-8 are encoded one by one.
    """
    command.tokenizer()
    command.option("file FILE", "a text file, plain or compressed; - (default) is stdin", nargs="?", path="texts")
    add_text(command)
    _add_output(command)
    how = command.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="write the ids as a JSON list")
    how.add_argument("--explain", action="store_true", help="write the merges of every word, step by step")
    with command.group("dropout"):
        command.option(
            "--dropout P",
            "leave out every merge with this probability (BPE dropout; default: the tokenizer's own)",
            float,
        )
        command.option("--seed N", "for dropout: the same N gives the same ids", int)
    with command.group("reading"):
        command.options(ReadOptions, "encoding", "keep_crlf")
        command.option(
            "--documents HOW",
            "auto (default) refuses JSON lines; file encodes them as one text, with braces and keys",
            default="auto",
        )
    command.runtime("workers")
    command.runs(_run_encode, has_summary=False)


def add_text(command: Command) -> None:
    command.option("--text TEXT", "the text itself, instead of a file")
    command.option("--ordinary", "treat special tokens in the text as plain text")


def _add_output(command: Command) -> None:
    command.option("-o --output OUT", "output file; - (default) is stdout", default="-", path="writes")


def _run_encode(args: argparse.Namespace) -> None:
    tokenizer = _without_dropout(load(args.tokenizer), args)
    is_binary = args.output.endswith((".npy", ".bin"))
    if is_binary and (args.json or args.explain):
        option = "json" if args.json else "explain"
        raise ArgumentError(f"--{option} writes text, but {args.output} would hold binary ids: use another ending")
    if args.explain:
        if args.dropout:
            raise ArgumentError("--explain shows merges that are not random: use --dropout 0")
        shown = tokenizer.explain(b"".join(_pieces(tokenizer, args)), allowed_special=() if args.ordinary else "all")
        with writing(args) as write:
            write(f"{shown}\n".encode())
        return
    blocks = _encode_pieces(tokenizer, args)
    with writing(args) as write:
        if is_binary:
            arrays = list(blocks)
            if args.output.endswith(".npy"):
                from ..formats.id_files import npy_header

                write(npy_header(sum(map(len, arrays)), tokenizer.model.id_bytes))
            for ids in arrays:
                if sys.byteorder == "big":  # pragma: no cover (other machines)
                    ids.byteswap()
                write(memoryview(ids).cast("B"))
            return
        start, between, end = ("[", ", ", "]\n") if args.json else ("", " ", "\n")
        write(start.encode())
        separator = ""
        for ids in blocks:
            if ids:
                write((separator + between.join(map(str, ids))).encode())
                separator = between
        write(end.encode())


def _without_dropout(tokenizer: pybpe.Tokenizer, args: argparse.Namespace) -> pybpe.Tokenizer:
    """Sets args.dropout to the dropout to encode with. Returns the tokenizer without its own, because the code that
    cuts text refuses it."""
    own = tokenizer.model.dropout
    args.dropout = own if args.dropout is None else tokenizer.replace(dropout=args.dropout).model.dropout
    if args.dropout and args.seed is None:
        raise ArgumentError(f"dropout {args.dropout:g} is random: choose a --seed, or --dropout 0")
    if args.seed is not None and not args.dropout:
        raise ArgumentError("--seed is for dropout, and there is none: use --dropout 0.1, for example")
    return tokenizer.replace(dropout=0) if own else tokenizer


def _encode_pieces(tokenizer: pybpe.Tokenizer, args: argparse.Namespace) -> Iterator[array[int]]:
    """Yields the ids of the input, an array per piece, in order."""
    typecode = "H" if tokenizer.model.id_bytes == 2 else "I"
    if args.dropout:
        text, allowed = b"".join(_pieces(tokenizer, args)), () if args.ordinary else "all"
        yield array(
            typecode, tokenizer.encode_dropout(text, seed=args.seed, dropout=args.dropout, allowed_special=allowed)
        )
        return
    specials = None if args.ordinary else tokenizer._encoder.specials
    encode = partial(tokenizer._encoder.compact, specials=specials, typecode=typecode)
    yield from map_ordered(encode, _pieces(tokenizer, args), args.workers)


def _open_text(args: argparse.Namespace) -> BinaryIO:
    if args.text is not None:
        if args.file is not None:
            raise ArgumentError("use a file or --text, not both")
        return io.BytesIO(os.fsencode(args.text))
    path = "-" if args.file is None else args.file
    one_of("documents", args.documents, ("auto", "file"))
    with hinting_at_text([path]):
        records = "accept" if args.documents == "file" else "refuse"
        return open_source(path, args.encoding, args.keep_crlf, records)


@contextmanager
def hinting_at_text(paths: Sequence[str]) -> Iterator[None]:
    """Says, if one of the paths does not exist, that it may be meant as a text."""
    try:
        yield
    except (FileError, ArgumentError) as error:  # the latter if no file can have such a name
        local = (path for path in paths if path != "-" and not is_url(path))
        missing = next((path for path in local if not (os.path.lexists(path) or any(glob.iglob(path)))), None)
        sys_errno = error.errno if isinstance(error, FileError) else errno.ENOENT
        if missing is None or sys_errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise
        shown = missing if len(missing) <= 80 else missing[:77] + "..."
        raise FileMissingError(f"{shown}: no such file. If you mean this text, use --text") from None


def _pieces(tokenizer: pybpe.Tokenizer, args: argparse.Namespace) -> Iterator[bytes]:
    """Yields the input in pieces that can be encoded separately. Warns if it is not UTF-8."""
    doubts, offset, is_given = Doubts(), 0, check_encoding(args.encoding) is not None
    with _open_text(args) as stream:
        for piece in stream_pieces(stream, tokenizer._encoder.cut):
            doubts.tell(doubts.look(piece, without_secrets(args.file or "-"), offset, is_given))
            offset += len(piece)
            yield piece  # type: ignore[misc]  # memoryviews work as bytes


def add_decode(command: Command) -> None:
    """Turn ids into text: write exactly the bytes of these tokens. (On a terminal, a
    newline follows them.)

    examples:
      pybpe decode -t gpt2 15496 11 995
      echo 15496 11 995 | pybpe decode -t gpt2
      pybpe decode -t out/tokenizer.bin out/novel_val_000000.bin

    A file has decimal ids separated by whitespace or commas, or a JSON list of ids.
    It can also be a numpy file (*.npy), a shard for llm.c, or plain ids (*.bin,
    uint16 or uint32, depending on the size of the vocabulary).
    """
    command.tokenizer()
    command.option(
        "ids FILE|ID", "ids, or a file of ids, plain or compressed; - (default) is stdin", nargs="*", path="texts"
    )
    _add_output(command)
    command.runs(_run_decode, has_summary=False)


def _run_decode(args: argparse.Namespace) -> None:
    tokenizer = load(args.tokenizer)
    name, blocks = _ids(args.ids, tokenizer)
    position, last = 0, b""
    with writing(args) as write:
        for ids in blocks:
            try:
                data = tokenizer._decoder.decode(ids, position)
            except ArgumentError as error:
                raise ArgumentError(f"{name}: {error}") from None
            write(data)
            position += len(ids)
            last = data[-1:] or last
        if args.output == "-" and sys.stdout.isatty() and last not in (b"", b"\n"):
            write(b"\n")


def _ids(given: list[str], tokenizer: pybpe.Tokenizer) -> tuple[str, Iterator[list[int] | numpy.ndarray[Any, Any]]]:
    """Returns the name for error messages, and the ids to decode, in blocks: the ids themselves, or a file's."""
    are_ids = given and all(map(_IDS.fullmatch, given))
    if are_ids and (len(given) > 1 or not os.path.lexists(given[0])):
        return "the ids", _decimal_ids(" ".join(given).encode(), io.BytesIO(), "the ids", 1)
    if len(given) > 1:
        bad = next(word for word in given if not _IDS.fullmatch(word))
        raise ArgumentError(f"{bad[:80]}: this is not an id, and only one file can be decoded at a time")
    path = given[0] if given else "-"
    return path, _read_ids(path, _dtype_in(path, tokenizer))


def _dtype_in(path: str, tokenizer: pybpe.Tokenizer) -> str | None:
    """Returns the dtype of a file of plain ids, as TokenFile takes it. Raises ArgumentError if the manifest next to it
    says that another tokenizer made it."""
    from ..tokens.manifest import check_tokenizer
    from ..tokens.token_files import file_facts

    facts = file_facts([path])[0]
    if facts is not None and facts.fingerprint is not None:
        check_tokenizer(path, facts.fingerprint, tokenizer)
    is_stated = facts is not None and facts.dtype is not None
    return None if is_stated or tokenizer.model.id_bytes == 2 else "uint32"


def _read_ids(path: str, dtype: str | None) -> Iterator[list[int] | numpy.ndarray[Any, Any]]:
    from ..formats.id_files import NPY_MAGIC
    from ..tokens.token_files import TokenFile

    tell_terminal(path)
    with InputFile.look(path)[0].open() as stream:
        start = stream.read(8)
        is_binary = llmc_file(start) == "a token shard" or start.startswith(NPY_MAGIC)
        is_binary |= path.endswith(".bin") and bool(start.translate(_BLANKS, b"0123456789").strip())
        if path == "-" or not is_binary:
            yield from _decimal_ids(start, stream, path)
            return
    yield from TokenFile(path, dtype).blocks(_BLOCK)


def _decimal_ids(start: bytes, stream: BinaryIO, path: str, block: int = _BLOCK) -> Iterator[list[int]]:
    rest = start
    offset = 0
    while True:
        more = stream.read(block)
        text = (rest + more).translate(_BLANKS)
        # The last number may continue in the next block.
        end = max(text.rfind(b" "), text.rfind(b"\n"), 0)
        end = end if more and len(text) - end <= _LONGEST_ID + 1 else len(text)
        words, rest = text[:end].split(), text[end:]
        bad = next((word for word in words if not word.isdigit() or len(word) > _LONGEST_ID), None)
        if bad is not None:
            at = offset + text.find(bad)
            raise FormatError(f"{path}: expected decimal ids, found {bad[:40]!r} at byte {at}", at)
        offset += end
        yield [int(word) for word in words]
        if not more:
            return


# ----------------------------------------------------------------------------------------------------
# count: tokens, or the words of a corpus for `pybpe train --counts`


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
    from ..reading.pieces import Sample
    from ..training.plan import TrainOptions

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
    from ..reading.documents import Kinds
    from ..reading.files import corpus_files
    from ..reading.pieces import pieces_of, text_piece
    from ..reading.planning import whole

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
        raise ArgumentError("--dask counts text: leave it out to add *.counts files")
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
    from ..model import special_ids_of
    from ..pattern import Pattern
    from ..reading.pieces import Sample
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
