"""Word counts as objects, and as files: words with their counts, sorted by the words' bytes, so that equal counts give
equal files.

All integers are little-endian.

    offset  size
    0       8      "pybpecnt"
    8       4      version: 1
    12      4      h, the length of the header
    16      h      the header, JSON: the inputs and settings of the count
    16+h    4      CRC-32 of all preceding bytes

Blocks of 65,536 words follow. The last block may have fewer:

    4              n, the number of words in the block, at least 1
    4 * n          their lengths
    8 * n          their counts
                   their bytes, end to end
    4              CRC-32 of the block up to here

A block of 0 words ends the file: the number 0, the total number of words (8 bytes), and their CRC-32. Blocks are
written and read one at a time, so merging files of any size takes little memory.
"""

from __future__ import annotations

import errno
import heapq
import io
import itertools
import json
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, BinaryIO

from .. import _binding
from .._lazy import numpy, tempfile
from ..arguments import Text, instance, number_of, shown, utf8, whole_number
from ..errors import ArgumentError, FormatError, file_error, file_errors
from ..formats import check_version
from ..model import Matching, check_specials, matcher, special_ids_of
from ..normalize import check_normalizer, prepared
from ..pattern import Pattern, PatternLike
from ..reading.cuts import Cutting
from ..reading.inputs import ReadOptions
from ..reading.streams import open_unchanged
from ..support.call_paths import check_once, check_paths
from ..support.output_files import remove_file
from ..support.parallel import end_if_unwanted


@dataclass(frozen=True)
class CountSettings:
    """The settings that determine the word counts of a text."""

    pattern: Pattern  # splits text into words
    # strings that separate words and are not counted. In JSON records they are plain text.
    specials: tuple[str, ...] = ()
    normalizer: str | None = None  # None, "NFC" or "NFKC": applied before text is split into words
    read: ReadOptions = ReadOptions()  # how files are read
    # Pattern.tables where the words were counted, empty means here. With other tables, a pattern may split a text with
    # recently assigned characters differently.
    tables: str = ""
    # text -> flags, for the special tokens that have any.
    matching: Mapping[str, Matching] = field(default_factory=dict)
    prefix_space: bool = False  # as in Model

    def __post_init__(self) -> None:
        check_normalizer(self.normalizer)

    @property
    def cutting(self) -> Cutting:
        """Finds where text can be cut between two words."""
        found = matcher(self.specials, self.matching)
        return Cutting.of(self.pattern, self.specials, found, self.normalizer, self.prefix_space)

    @property
    def changes_text(self) -> bool:
        """Whether text changes before it is split into words."""
        return self.normalizer is not None or self.prefix_space

    def prepared(self, text: _binding.Data) -> _binding.Data:
        """Returns a text without special tokens as the pattern sees it."""
        return prepared(text, self.normalizer, self.prefix_space)


class Counts:
    """Words with their counts, and the settings of the counting. Immutable.

    `a + b` adds two Counts. `save` and `load` write and read files.
    """

    def __init__(self, words: _binding.Words, settings: CountSettings) -> None:
        self.words = words
        self.settings = settings

    @classmethod
    def from_dict(
        cls, counts: Mapping[Text, int], *, pattern: PatternLike = "gpt2", special_tokens: Sequence[str] = ()
    ) -> Counts:
        """Makes Counts from words that were counted elsewhere, with this pattern, and without these special tokens."""
        instance("counts", counts, Mapping, "a Counts, or a dictionary word -> count")
        words: dict[bytes, int] = {}
        for word, count in counts.items():
            data = bytes(utf8(word))
            words[data] = words.get(data, 0) + whole_number(f"the count of {shown(word)}", count, 0, (1 << 64) - 1)
        settings = CountSettings(Pattern(pattern), tuple(special_ids_of(special_tokens)))
        return cls(_binding.Words.from_dict(words), settings)

    def __len__(self) -> int:
        return len(self.words)

    def to_dict(self) -> dict[bytes, int]:
        """Returns a dictionary word -> count."""
        return self.words.to_dict()

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts.merge([self, other])

    @classmethod
    def merge(cls, counts: Iterable[Counts]) -> Counts:
        """Returns the sum of any number of Counts.

        Raises:
            ArgumentError: `counts` is empty, or they were made with different patterns, special tokens, normalizers or
                Unicode tables.
        """
        counts = iter(counts)
        first = next(counts, None)
        if first is None:
            raise ArgumentError("there are no counts to merge: pass at least one Counts")
        table = _binding.Counter(None, None)
        for each in chain([first], counts):
            instance("counts", each, Counts, "made by count_words")
            check_addable(each.settings, first.settings)
            table.add_words(each.words)
        return cls(table.export(), first.settings)

    def save(self, path: _binding.PathLike) -> None:
        """Writes a .counts file, atomically. Equal counts give equal bytes."""
        write_blocks(path, header_of(self.settings), sorted_blocks(self.words))

    @classmethod
    def load(cls, path: _binding.PathLike) -> Counts:
        """Reads a .counts file.

        Raises:
            FileError: the file cannot be read. FormatError: the file is not a .counts file, or is damaged.
        """
        return cls.load_sum([path])

    @classmethod
    def load_sum(cls, paths: Sequence[_binding.PathLike]) -> Counts:
        """Returns the sum of .counts files. Only the result is in memory.

        Raises:
            ArgumentError, FileError, FormatError: as for `merge_files`.
        """
        settings = settings_of_files(paths)
        with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
            return cls(_binding.Words.from_blocks(_sum_of(paths, folder, settings)), settings)

    @staticmethod
    def merge_files(paths: Sequence[_binding.PathLike], output: _binding.PathLike) -> int:
        """Writes the sum of .counts files to a .counts file, atomically, and returns the number of its words.

        The files may be larger than memory: about 2 MB of a file are in memory, for at most 64 files at once. Sums of
            more files
        are written to a temporary folder first.

        Raises:
            ArgumentError: `paths` is empty, or the files were made with different patterns, special tokens, normalizers
                or Unicode tables.
            FileError: a file cannot be read or written, or was replaced by one with other settings while it was read.
            FormatError: a file is not a .counts file, or is damaged.
        """
        check_paths({"output": [_binding.path_text(output)]}, {"paths": map(_binding.path_text, paths)})
        settings = settings_of_files(paths)
        with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
            return write_blocks(output, header_of(settings), _sum_of(paths, folder, settings))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return _comparable(self.settings) == _comparable(other.settings) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.words.to_block(), self.settings)

    def __repr__(self) -> str:
        return f"Counts({number_of(len(self), 'word')}, pattern={self.settings.pattern.name or 'custom'!r})"


def _unpickled(block: _binding.WordBlock, settings: CountSettings) -> Counts:
    return Counts(_binding.Words.from_blocks([block]), settings)


def _comparable(settings: CountSettings) -> CountSettings:
    """Returns settings that can be compared, without how files are read: that does not affect the words of a text."""
    specials, tables = tuple(sorted(settings.specials)), settings.tables or settings.pattern.tables
    return replace(settings, specials=specials, read=ReadOptions(), tables=tables)


def check_addable(theirs: CountSettings, ours: CountSettings, where: str = "") -> None:
    """Raises ArgumentError if counts with these settings cannot be added. `where` begins the message."""
    theirs, ours = _comparable(theirs), _comparable(ours)
    if replace(theirs, tables=ours.tables) != ours:
        raise ArgumentError(f"{where}counts with different patterns, special tokens or normalizers cannot be added")
    if theirs.tables != ours.tables:
        raise ArgumentError(
            f"{where}counts that were made with {theirs.tables} and with {ours.tables} cannot be added: these may split"
            " the same text differently. Count all texts with the same versions"
        )


def header_of(settings: CountSettings) -> dict[str, object]:
    """Returns the header of a .counts file."""
    return {
        "pattern": settings.pattern.regex,
        "special_tokens": sorted(settings.specials),
        "normalizer": settings.normalizer,
        "tables": settings.tables or settings.pattern.tables,
    }


def settings_of_files(paths: Sequence[_binding.PathLike]) -> CountSettings:
    """Returns the settings of .counts files. Raises ArgumentError if there are no files, or two are one file, or they
    cannot be added."""
    first: CountSettings | None = None
    check_once(map(_binding.path_text, paths))
    for path in paths:
        with Reader(path) as reader:
            header = reader.header
        try:
            pattern, specials = Pattern(header["pattern"]), tuple(check_specials(header["special_tokens"]))
            settings = CountSettings(pattern, specials, header["normalizer"], tables=str(header.get("tables", "")))
        except (ArgumentError, KeyError, TypeError) as error:
            raise FormatError(f"{_binding.path_bytes(path).decode()}: the header is invalid: {error}", 16) from None
        if first is None:
            first = settings
        check_addable(settings, first, f"{_binding.path_text(path)}: ")
    if first is None:
        raise ArgumentError("there are no counts to merge: name at least one .counts file")
    return first


def _sum_of(paths: Sequence[_binding.PathLike], folder: str, settings: CountSettings) -> Iterator[_binding.WordBlock]:
    """Yields the sum of .counts files. Raises FileChangedError at the end if a file now has other settings."""
    yield from merged(list(map(_binding.path_text, paths)), folder)
    if settings_of_files(paths) != settings:  # the words that were read may belong to the new ones
        names = ", ".join(map(_binding.path_text, paths))
        raise file_error(errno.ESTALE, f"{names:.200}: a file was replaced while it was read: run again")


# ----------------------------------------------------------------------------------------------------
# The files


MAGIC = b"pybpecnt"
VERSION = 1
BLOCK_WORDS = 1 << 16


def write_blocks(path: _binding.PathLike, header: Mapping[str, object], blocks: Iterable[_binding.WordBlock]) -> int:
    """Writes a file, atomically, and returns the number of its words. They must be sorted, in blocks of BLOCK_WORDS."""
    words, text = 0, json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    with _binding.Output(path) as output:

        def write(data: bytes) -> None:
            output.write(data + struct.pack("<I", zlib.crc32(data)))

        write(MAGIC + struct.pack("<II", VERSION, len(text)) + text)
        for block in blocks:
            end_if_unwanted()
            numbers = numpy.asarray(block.lengths, "<u4").tobytes() + numpy.asarray(block.counts, "<u8").tobytes()
            write(struct.pack("<I", len(block.lengths)) + numbers + block.blob)
            words += len(block.counts)
        write(struct.pack("<IQ", 0, words))
    return words


class Reader:
    """Reads a .counts file, `path`, from its start, block by block. `header` is as in `write_blocks`. If the file
    is damaged, FormatError has the offset, here or in `blocks`. As a context manager, it raises FileChangedError after
    the block if somebody wrote to the file."""

    def __init__(self, path: _binding.PathLike) -> None:
        self.path = _binding.path_text(path)
        self._raw = open_unchanged(path)
        self._stream: BinaryIO = io.BufferedReader(self._raw)
        try:
            self._size = os.fstat(self._stream.fileno()).st_size
            self.header = self._read_header()
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._raw.check()
        finally:
            self._stream.close()

    def _fail(self, what: str) -> FormatError:
        offset = self._stream.tell()
        return FormatError(f"{self.path}: not a complete .counts file: {what} before byte {offset}", offset)

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size) if size <= self._size else b""
        if len(data) < size:
            raise self._fail("it is truncated, or a length is wrong")
        return data

    def _check(self, *data: bytes) -> None:
        checksum = 0
        for part in data:
            checksum = zlib.crc32(part, checksum)
        if self._read(4) != struct.pack("<I", checksum):
            raise self._fail("the checksum does not match")

    def _read_header(self) -> dict[str, Any]:
        start = self._read(16)
        version, length = struct.unpack_from("<II", start, 8)
        if not start.startswith(MAGIC):
            raise self._fail(f"it does not begin with {MAGIC.decode()}")
        check_version(version, VERSION, f"{self.path}: this .counts file", 8)
        text = self._read(length)
        self._check(start, text)
        try:
            header = json.loads(text)
        except ValueError:
            header = None
        if not isinstance(header, dict):
            raise self._fail("the header is not a JSON object")
        return header

    def blocks(self) -> Iterator[_binding.WordBlock]:
        """Yields the blocks of the file. Raises FormatError after the last of them if the file has more data."""
        total = 0
        while True:
            start = self._read(4)
            (count,) = struct.unpack("<I", start)
            if count == 0:
                end = self._read(8)
                self._check(start, end)
                if struct.unpack("<Q", end)[0] != total:
                    raise self._fail("the number of words does not match")
                if self._stream.tell() != self._size:
                    raise self._fail("the data should end")
                return
            total += count
            numbers = self._read(12 * count)
            lengths, counts = array("I"), array("Q")
            lengths.frombytes(numbers[: 4 * count])
            counts.frombytes(numbers[4 * count :])
            if sys.byteorder == "big":  # pragma: no cover (other machines)
                lengths.byteswap()
                counts.byteswap()
            blob = self._read(sum(lengths))
            self._check(start, numbers, blob)
            yield _binding.WordBlock(blob, lengths, counts)


def sorted_blocks(words: _binding.Words) -> Iterator[_binding.WordBlock]:
    """Returns the blocks of a file with these words."""
    return words.sorted_blocks(BLOCK_WORDS)


# ----------------------------------------------------------------------------------------------------
# Sorted runs of words on disk, and the sum of any number of .counts files in little memory.
#
# A run is a file without a header's settings, and with smaller blocks. When many files are added, some are first added
# into a run, so that only OPEN_FILES files are open at once:
#
#     150 files  ->  24 smallest files -> a run, 127 left
#                    64 smallest files -> a run, 64 left
#                    64 files          -> the sum
#
# The first group is as small as possible, and groups consist of the smallest files, so little is read twice.

OPEN_FILES = 64  # the number of files that are merged at once
_RUN_WORDS = 1 << 12  # the number of words in a block of a run. One block per open file is in memory


class Runs:
    """The runs in an existing folder, which also gets temporary files while they are merged. `names` are the files that
    it already has."""

    def __init__(self, folder: str, names: Sequence[str] = ()) -> None:
        self._folder = folder
        self.names = list(names)
        self._numbers = itertools.count(len(self.names))
        self._process = os.urandom(4).hex()

    def add(self, words: _binding.Words) -> None:
        """Sorts words and writes them as a run. Several threads may call this at the same time."""
        name = f"run{next(self._numbers):06d}-{self._process}.counts"
        write_blocks(os.path.join(self._folder, name), {}, words.sorted_blocks(_RUN_WORDS))
        self.names.append(name)

    def remove(self) -> None:
        """Removes all runs."""
        while self.names:
            remove_file(os.path.join(self._folder, self.names.pop()))

    def merged(self) -> Iterator[_binding.WordBlock]:
        """Yields the sum of all runs, in blocks for a .counts file."""
        return merged([os.path.join(self._folder, name) for name in self.names], self._folder)


def merged(paths: Sequence[str], folder: str) -> Iterator[_binding.WordBlock]:
    """Yields the sum of .counts files, in blocks for a .counts file. For more than OPEN_FILES files, `folder` gets
    temporary files."""
    files = [(_size(path), path, False) for path in paths]
    heapq.heapify(files)
    group = len(files) if len(files) <= OPEN_FILES else (len(files) - 2) % (OPEN_FILES - 1) + 2
    for number in itertools.count():
        some = [heapq.heappop(files) for _ in range(group)]
        with ExitStack() as stack:
            if not files:
                yield from _merged(some, stack, BLOCK_WORDS)
            else:
                name = os.path.join(folder, f"merged{number:06d}.counts")
                write_blocks(name, {}, _merged(some, stack, _RUN_WORDS))
        for _, path, temporary in some:
            if temporary:
                remove_file(path)
        if not files:
            return
        heapq.heappush(files, (_size(name), name, True))
        group = OPEN_FILES


def _size(path: str) -> int:
    with file_errors(path, "cannot be opened"):
        return os.path.getsize(path)


def _merged(files: Sequence[tuple[int, str, bool]], stack: ExitStack, block_words: int) -> Iterator[_binding.WordBlock]:
    readers = [stack.enter_context(Reader(path)) for _, path, _ in files]
    return _binding.merged_blocks(
        [_binding.SortedWords(reader.path, reader.blocks()) for reader in readers], block_words
    )
