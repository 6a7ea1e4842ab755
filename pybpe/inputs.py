"""What can be trained on: files, globs, folders; plain, compressed, or JSON lines.

A file is read in pieces (pretokenize.py) and may also be read in ranges, by machines that know nothing of each
other: a range of bytes stands for what lies between the first safe cut at or behind its start and the first
one at or behind its end. Whether a place is a safe cut shows in the few bytes around it, so neighbours agree.
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

_SAMPLE_BYTES = 1 << 20  # the ranges that a sample of plain text is made of
_LOOK_BYTES = 1 << 16  # how much is read to see whether an encoding is the right one
_FIRST_LOOK = 1 << 16  # how much is read to find a cut; more if there is none


# ----------------------------------------------------------------------------------------------------
# Files


def input_files(inputs: Inputs) -> list[str]:
    """The files that paths, globs and folders name. Globs and folders give theirs sorted; a folder gives all
    files in it and in its folders, but none whose name begins with a dot, none that pybpe wrote there, and no pipes,
    sockets and devices, which could be waited for without end. STDIN stays what it is."""
    return [name for path in path_list(inputs) for name in _files_of(path)[0]]


def _files_of(path: str, outputs: Collection[str] = ()) -> tuple[list[str], list[str], bool]:
    """The files that a path, folder or glob stands for; those that were left out; and whether it is the name of a
    file."""
    left_out: list[str] = []
    if path != STDIN and os.path.isdir(path):
        found, left_out = corpus_of_folder(path, outputs)
    elif path != STDIN and _is_glob(path):
        found, left_out = _files_of_glob(path, outputs)
    else:
        return [path], [], True
    if not found:
        raise ArgumentError(f"{path}: no file is there" + (" but tokens and tokenizers" if left_out else ""))
    return found, left_out, False


def _files_of_glob(pattern: str, outputs: Collection[str]) -> tuple[list[str], list[str]]:
    """What a glob matches, as if a shell had put it on a command line: folders stand for their files. Where ** matches
    folders it matches what is in them too."""
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
        raise ArgumentError(f"{shown(pattern)}: a pattern of too many folders") from None


def _is_glob(path: str) -> bool:
    return glob.has_magic(path) and not os.path.exists(path)


def corpus_files(
    inputs: Inputs, encoding: str | None = None, outputs: Sequence[str] = (), documents: str = "auto"
) -> list[InputFile]:
    """The files of a corpus that paths, globs and folders name, each with what a run has to know of it. Warns of empty
    files, and of files that were left out of a folder since they hold tokens or a tokenizer, as pybpe writes them.

    Args:
        encoding: of the files' text; None is UTF-8.
        outputs: what this run writes.
        documents: "jsonl" says that files hold JSON lines whatever their names are.

    Raises:
        ArgumentError: nothing is there, or it is an output. FileError: a file cannot be read. FormatError: a file is
        not text.
    """
    encoding = check_encoding(encoding)
    own = {os.path.realpath(path) for path in outputs}
    files: list[InputFile] = []
    left_out: list[str] = []
    for path in path_list(inputs):
        if own and path != STDIN and os.path.realpath(path) in own:
            raise ArgumentError(f"{path}: is input and output at once; name another output")
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
    _tell("holds tokens or a tokenizer: left out", "hold tokens or a tokenizer: left out", left_out)
    _tell("is empty", "are empty", [file.path for file in files if file.size == 0])
    if encoding is not None:
        valid = [file.path for file in files if file.size and _is_utf8_after_all(file, encoding)]
        told = f"UTF-8 as far as a look at its start tells, but read as {encoding}, as the encoding says"
        _tell(f"is {told}", f"are {told}", valid)
    if not files:
        raise ArgumentError(f"{path_list(inputs)[0]}: no file is there but tokens and tokenizers")
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
    """Whether a file holds JSON lines, by its name."""
    return without_ending(path).endswith((".jsonl", ".ndjson"))


def open_text(path: str, encoding: str | None = None) -> BinaryIO:
    """Opens a file for reading; what is compressed is decompressed on the way. STDIN is standard input. JSON of any
    kind is text here.

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
    """A Cut: the first start of a line at or behind `start`."""
    if start == 0:
        return 0
    found = data.find(b"\n", start - 1)  # type: ignore[union-attr]
    return found + 1 if found >= 0 else len(data)


def record_texts(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[bytes]:
    """The texts of JSON lines, which begin at byte `offset` of a file. Blank lines are skipped."""
    for record in records(lines, text_key, path, offset):
        yield utf8(record[text_key])


def records(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[dict[str, Any]]:
    """The same with all that the records hold; each has a string at `text_key`."""
    return (record for record, _ in record_lines(lines, text_key, path, offset))


def record_lines(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The same with the line of each record."""
    for line in bytes(lines).split(b"\n"):
        if line and not line.isspace():
            yield _record(line, text_key, path, offset), line
        offset += len(line) + 1


def _loads(line: bytes) -> Any:
    try:
        return _fast_loads(line)
    except ValueError:  # orjson refuses some of what Python's own module takes: NaN, lone surrogates
        return json.loads(line.decode("utf-8-sig"))


def _record(line: bytes, text_key: str, path: str, offset: int) -> dict[str, Any]:
    try:
        record = _loads(line)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start} of it: if it is in another encoding, name that (--encoding)"
    except (ValueError, RecursionError) as error:
        problem = f"not JSON ({error})"
    else:
        if isinstance(record, dict) and isinstance(record.get(text_key), str):
            return record
        problem = f"expected an object with a string {text_key!r}"
        if isinstance(record, dict) and text_key not in record:
            keys = ", ".join(repr(key[:40]) for key in islice(record, 8))
            problem += f", and its keys are {keys or 'none'}: say with text_key (--text-key) which one is the text"
    raise FormatError(f"{path}: the line at byte {offset}: {problem}", offset)


# ----------------------------------------------------------------------------------------------------
# Ranges and pieces


class Range(NamedTuple):
    """A part of a file; end None is the file's end."""

    file: InputFile
    start: int = 0
    end: int | None = None


class Piece(NamedTuple):
    """What a worker counts in one go: plain text; JSON lines if `records`; or the texts of records."""

    data: memoryview
    path: str = ""
    offset: int = 0
    records: bool = False
    texts: Sequence[bytes] = ()


class Source:
    """How files are read.

    Args:
        cut: where plain text can be cut.
        whole: plain text must not be read in ranges, since its pattern knows no cuts.
        context: bytes before a place that may decide whether it is a cut.
    """

    def __init__(self, cut: Cut, whole: bool, context: int) -> None:
        self._cut, self._whole, self._context = cut, whole, context

    def ranges(self, files: Iterable[InputFile], size: int) -> Iterator[Range]:
        """Files in ranges of about `size` bytes, where they can be read so."""
        for file in files:
            length = file.known_size
            if length is None or length <= size or (self._whole and not has_records(file.path)):
                yield Range(file)
                continue
            for start in range(0, length, size):
                yield Range(file, start, min(start + size, length))

    def pieces(self, part: Range) -> Iterator[Piece]:
        """The pieces of a range."""
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
        """The pieces of a sample."""
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
    """The first safe cut of a file at or behind `start`; `context` bytes before it may decide."""
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
        if start - begin < len(window):  # else the context alone is longer, and more must be read
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
    """The texts of an iterable, which may also hold lists of them, as Hugging Face's trainers take batches."""
    for item in texts:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item


class Sample(NamedTuple):
    """How much of a corpus is used, and what decides which part.

    Files are divided into documents: a JSON record, a range of 1 MiB of plain text, or a smaller or compressed
    plain file. Those ranges (of JSON lines too) are shuffled by the seed and taken until there are
    max_documents, or max_bytes of file content; what then exceeds max_bytes is left out from the next safe
    cut, or record, on. Texts of an iterable are documents that are taken in their own order.
    """

    max_documents: int | None = None
    max_bytes: int | None = None
    seed: int = 0

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.max_documents is None and self.max_bytes is None

    def checked(self) -> Sample:
        """The same with numbers of Python; ArgumentError for one below 1, or what is no number."""
        return Sample(
            None if self.max_documents is None else whole_number("max_documents", self.max_documents, 1),
            None if self.max_bytes is None else whole_number("max_bytes", self.max_bytes, 1),
            whole_number("seed", self.seed, None),
        )

    def texts(self, texts: Iterable[Any], cut: Cut) -> Iterator[Any]:
        """The part of an iterable of texts."""
        left = _Left(self)
        for text in texts:
            left.documents -= 1
            yield text if self.max_bytes is None else left.take_text(memoryview(utf8(text)), cut)
            if left.none:
                return


class _Left:
    """What a sample may still take."""

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
