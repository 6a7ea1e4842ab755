"""What pybpe can train on: files, globs and folders; plain text or JSON lines, compressed or not.

A file is read in pieces (pretokenize.py). It may also be read in ranges, by machines that know nothing of each other:
a range of bytes is the text from the first safe cut at or after its start to the first safe cut at or after its end.
The few bytes around a place decide whether it is a safe cut, so the readers of neighboring ranges agree.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

try:
    from orjson import loads as _fast_loads
except ImportError:
    _decode = json.JSONDecoder().decode

    def _fast_loads(line: bytes) -> Any:  # type: ignore[misc,unused-ignore]
        return _decode(line.decode())  # json.loads would guess the encoding first


from . import _binding
from .arguments import shown, whole_number
from .corpus_folder import corpus_of_folder
from .errors import ArgumentError, FormatError
from .file_types import JSON_LINES
from .input_file import InputFile, refusal
from .pretokenize import STDIN, Cut, Inputs, path_list, stream_pieces, utf8
from .text_encoding import check_encoding, seems_utf8
from .unpacking import without_ending
from .warning import warn

_SAMPLE_BYTES = 1 << 20  # size of the ranges that make up a sample of plain text
_LOOK_BYTES = 1 << 16  # how much is read to check whether an encoding is right
_FIRST_LOOK = 1 << 16  # how much is read at first to find a cut


# ----------------------------------------------------------------------------------------------------
# Files


def input_files(inputs: Inputs) -> list[str]:
    """Returns the files that paths, globs and folders name. The files of a glob or folder are sorted. A folder gives
    all files in it and its subfolders, except those whose names begin with a dot, those that pybpe wrote there, and
    pipes, sockets and devices, which could block forever. STDIN is returned unchanged."""
    return [name for path in path_list(inputs) for name in _files_of(path)[0]]


def _files_of(path: str, outputs: Collection[str] = ()) -> tuple[list[str], list[str], bool]:
    """Returns the files that a path, folder or glob names; those that were left out; and whether `path` is the name of
    a file."""
    left_out: list[str] = []
    if path != STDIN and os.path.isdir(path):
        found, left_out = corpus_of_folder(path, outputs)
    elif path != STDIN and _is_glob(path):
        found, left_out = _files_of_glob(path, outputs)
    else:
        return [path], [], True
    if not found:
        raise ArgumentError(f"{path}: no files found" + (" except tokens and tokenizers" if left_out else ""))
    return found, left_out, False


def _files_of_glob(pattern: str, outputs: Collection[str]) -> tuple[list[str], list[str]]:
    """Returns the files that a glob names, as if a shell had expanded it: a folder gives its files. If ** matches
    folders, it also matches their contents."""
    kept, left_out = list[str](), list[str]()
    for name in sorted(_glob(pattern)):
        if not os.path.isdir(name):
            kept.append(name)
        elif "**" not in pattern:
            found, left = corpus_of_folder(name, outputs)
            kept += found
            left_out += left
    return kept, left_out


def _glob(pattern: str) -> list[str]:
    try:
        return glob.glob(pattern, recursive=True)
    except RecursionError:
        raise ArgumentError(f"{shown(pattern)}: this glob names too many folders") from None


def _is_glob(path: str) -> bool:
    return glob.has_magic(path) and not os.path.exists(path)


def corpus_files(
    inputs: Inputs, encoding: str | None = None, outputs: Sequence[str] = (), documents: str = "auto"
) -> list[InputFile]:
    """Returns the files of a corpus that paths, globs and folders name, each with what a run must know about it. Warns
    of empty files, and of files of a folder that were left out because they hold tokens or a tokenizer.

    Args:
        encoding: encoding of the files; None is UTF-8.
        outputs: the paths that this run writes.
        documents: "jsonl" means that all files hold JSON lines, whatever their names.

    Raises:
        ArgumentError: there are no files, or an input is also an output. FileError: a file cannot be read.
        FormatError: a file is not text.
    """
    encoding = check_encoding(encoding)
    own = {os.path.realpath(path) for path in outputs}
    files: list[InputFile] = []
    left_out: list[str] = []
    for path in path_list(inputs):
        if own and path != STDIN and os.path.realpath(path) in own:
            raise ArgumentError(f"{path}: this is both input and output: name another output")
        names, left, is_named = _files_of(path, own)
        left_out += left
        for name in names:
            file, what = InputFile.look(name, encoding)
            if what is JSON_LINES and documents == "jsonl":
                what = None
            if what is not None and what.is_own and not is_named:
                left_out.append(name)
            elif what is not None:
                raise refusal(name, what)
            else:
                files.append(file)
    _tell("left out: it holds tokens or a tokenizer", "left out: they hold tokens or tokenizers", left_out)
    _tell("this file is empty", "these files are empty", [file.path for file in files if file.size == 0])
    if encoding is not None:
        valid = [file.path for file in files if file.size and _is_utf8_after_all(file, encoding)]
        told = f"to be UTF-8, judging by the start, but encoding={encoding!r} was given"
        _tell(f"this file seems {told}", f"these files seem {told}", valid)
    if not files:
        raise ArgumentError(f"{path_list(inputs)[0]}: no files found except tokens and tokenizers")
    return files


def _is_utf8_after_all(file: InputFile, encoding: str) -> bool:
    if file.path.endswith(".parquet"):
        return False
    with replace(file, encoding=None).open() as stream:
        return seems_utf8(stream.read(_LOOK_BYTES), encoding)


def _tell(one: str, many: str, paths: Sequence[str]) -> None:
    if len(paths) == 1:
        warn(f"{paths[0]}: {one}")
    elif paths:
        warn(f"{paths[0]} and {len(paths) - 1} more: {many}")


def has_records(path: str) -> bool:
    """Returns whether a file holds JSON lines, judging by its name."""
    return without_ending(path).endswith((".jsonl", ".ndjson"))


def open_text(path: str, encoding: str | None = None) -> BinaryIO:
    """Opens a file for reading, and decompresses it if needed. STDIN is standard input. JSON of any kind is accepted
    as text.

    Raises:
        FileError: it cannot be read. FormatError: it is not text.
    """
    file, what = InputFile.look(path, check_encoding(encoding))
    if what is not None and not what.is_json:
        raise refusal(path, what)
    return file.open()


# ----------------------------------------------------------------------------------------------------
# Records


def line_cut(data: _binding.Data, start: int) -> int:
    """Returns the first start of a line at or after `start`. This is a Cut."""
    if start == 0:
        return 0
    found = data.find(b"\n", start - 1)  # type: ignore[union-attr]
    return found + 1 if found >= 0 else len(data)


def record_texts(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[bytes]:
    """Yields the texts of JSON lines that begin at byte `offset` of a file. Blank lines are skipped."""
    for record in records(lines, text_key, path, offset):
        yield utf8(record[text_key])


def records(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[dict[str, Any]]:
    """Yields the whole records, each with a string at `text_key`."""
    return (record for record, _ in record_lines(lines, text_key, path, offset))


def record_lines(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields the records, each with its line."""
    for line in bytes(lines).split(b"\n"):
        if line and not line.isspace():
            yield _record(line, text_key, path, offset), line
        offset += len(line) + 1


def _loads(line: bytes) -> Any:
    try:
        return _fast_loads(line)
    except ValueError:  # orjson refuses some of what Python's json accepts: NaN, lone surrogates
        return json.loads(line.decode("utf-8-sig"))


def _record(line: bytes, text_key: str, path: str, offset: int) -> dict[str, Any]:
    try:
        record = _loads(line)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at its byte {error.start}: if the file has another encoding, name it (--encoding)"
    except (ValueError, RecursionError) as error:
        problem = f"not JSON ({error})"
    else:
        if isinstance(record, dict) and isinstance(record.get(text_key), str):
            return record
        problem = f"expected an object with a string {text_key!r}"
        if isinstance(record, dict) and text_key not in record:
            keys = ", ".join(repr(key[:40]) for key in islice(record, 8))
            problem += f", but its keys are {keys or 'none'}: name the key of the text with text_key (--text-key)"
    raise FormatError(f"{path}: the line at byte {offset}: {problem}", offset)


# ----------------------------------------------------------------------------------------------------
# Ranges and pieces


class Range(NamedTuple):
    """A part of a file. If `end` is None, it extends to the end of the file."""

    file: InputFile
    start: int = 0
    end: int | None = None


class Piece(NamedTuple):
    """What a worker counts at once: plain text; JSON lines if `records`; or the texts of records."""

    data: memoryview
    path: str = ""
    offset: int = 0
    records: bool = False
    texts: Sequence[bytes] = ()


class Source:
    """Reads files in ranges and pieces.

    Args:
        cut: finds where plain text can be cut.
        whole: whether plain text must not be read in ranges, because its pattern has no safe cuts.
        context: how many bytes before a place may decide whether it is a cut.
    """

    def __init__(self, cut: Cut, whole: bool, context: int) -> None:
        self._cut, self._whole, self._context = cut, whole, context

    def ranges(self, files: Iterable[InputFile], size: int) -> Iterator[Range]:
        """Yields the files in ranges of about `size` bytes, or whole if they cannot be read in ranges."""
        for file in files:
            length = file.known_size
            if length is None or length <= size or (self._whole and not has_records(file.path)):
                yield Range(file)
                continue
            for start in range(0, length, size):
                yield Range(file, start, min(start + size, length))

    def pieces(self, part: Range) -> Iterator[Piece]:
        """Yields the pieces of a range."""
        path = part.file.path
        records = has_records(path)
        cut = line_cut if records else self._cut
        with part.file.open() as stream:
            offset, size = 0, part.file.known_size
            if part.end is not None:
                offset = find_cut(stream, part.start, cut, self._context)
                size = max(0, find_cut(stream, part.end, cut, self._context) - offset)
                stream.seek(offset)
                stream = Limited(stream, size)  # type: ignore[assignment]
            for data in stream_pieces(stream, cut, size=size):
                yield Piece(data, path, offset, records)
                offset += len(data)

    def sample(self, files: Iterable[InputFile], sample: Sample) -> Iterator[Piece]:
        """Yields the pieces of a sample."""
        import random

        parts = list(self.ranges(files, _SAMPLE_BYTES))
        random.Random(sample.seed).shuffle(parts)
        left = _Left(sample)
        for part in parts:
            if left.none:
                return
            if not has_records(part.file.path):
                left.documents -= 1
            for piece in self.pieces(part):
                taken = left.take_records(piece.data) if piece.records else left.take_text(piece.data, self._cut)
                yield piece._replace(data=taken)
                if left.bytes <= 0 or (piece.records and left.none):
                    break


def find_cut(stream: BinaryIO, start: int, cut: Cut, context: int) -> int:
    """Returns the first safe cut of a file at or after `start`. Up to `context` bytes before it may decide."""
    if start == 0:
        return 0
    begin = max(0, start - context)
    stream.seek(begin)
    look = _FIRST_LOOK
    window = bytearray()
    while True:
        more = stream.read(look)
        window += more
        if not more:
            return begin + len(window)
        if start - begin < len(window):  # otherwise the context is not complete, and more must be read
            found = cut(window, start - begin)
            if found < len(window):
                return begin + found
        look = len(window)


class Limited:
    """The next `size` bytes of a stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.name, self._stream, self._left = stream.name, stream, size

    def readinto(self, buffer: memoryview) -> int:
        """See io.RawIOBase."""
        got: int = self._stream.readinto(buffer[: self._left]) or 0  # type: ignore[attr-defined]
        self._left -= got
        return got


# ----------------------------------------------------------------------------------------------------
# Samples


def flat_texts(texts: Iterable[Any]) -> Iterator[Any]:
    """Yields the texts of an iterable, which may also hold lists of texts, like the batches that Hugging Face's
    trainers take."""
    for item in texts:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item


class Sample(NamedTuple):
    """How much of a corpus is used, and the seed that decides which part.

    Files are divided into documents: a JSON record, a range of 1 MiB of plain text, or a smaller or compressed plain
    file. The ranges of 1 MiB, of JSON lines too, are shuffled with the seed and taken until there are max_documents, or
    max_bytes of file content. What exceeds max_bytes is dropped, starting at the next safe cut or record. The texts of
    an iterable are documents, taken in their own order.
    """

    max_documents: int | None = None
    max_bytes: int | None = None
    seed: int = 0

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.max_documents is None and self.max_bytes is None

    def checked(self) -> Sample:
        """Returns the sample with Python integers. Raises ArgumentError for a number below 1, or a non-integer."""
        return Sample(
            None if self.max_documents is None else whole_number("max_documents", self.max_documents, 1),
            None if self.max_bytes is None else whole_number("max_bytes", self.max_bytes, 1),
            whole_number("seed", self.seed, None),
        )

    def texts(self, texts: Iterable[Any], cut: Cut) -> Iterator[Any]:
        """Yields the texts of an iterable that belong to the sample."""
        left = _Left(self)
        for text in texts:
            left.documents -= 1
            yield text if self.max_bytes is None else left.take_text(memoryview(utf8(text)), cut)
            if left.none:
                return


class _Left:
    """How much a sample may still take."""

    def __init__(self, sample: Sample) -> None:
        self.documents: float = float("inf") if sample.max_documents is None else sample.max_documents
        self.bytes: float = float("inf") if sample.max_bytes is None else sample.max_bytes

    @property
    def none(self) -> bool:
        return self.documents <= 0 or self.bytes <= 0

    def take_text(self, data: memoryview, cut: Cut) -> memoryview:
        if len(data) > self.bytes:
            data = data[: cut(data, int(self.bytes))]
        self.bytes -= len(data)
        return data

    def take_records(self, data: memoryview) -> memoryview:
        taken = 0
        for line in bytes(data).split(b"\n"):
            if self.none:
                break
            taken += len(line) + 1
            if line and not line.isspace():
                self.documents -= 1
                self.bytes -= len(line) + 1
        return data[:taken]
