"""The .counts format: words with their counts, sorted by the words' bytes, so that equal counts give equal files.

All integers are little-endian.

    offset  size
    0       8      "pybpecnt"
    8       4      version: 1
    12      4      h, the length of the header
    16      h      the header, JSON: what was counted, and how
    16+h    4      CRC-32 of all preceding bytes

Blocks of 65,536 words follow; the last block may have fewer:

    4              n, the number of words in the block, at least 1
    4 * n          their lengths
    8 * n          their counts
                   their bytes, end to end
    4              CRC-32 of the block up to here

A block of 0 words ends the file: the number 0, the total number of words (8 bytes), and their CRC-32. Blocks are
written and read one at a time, so merging files of any size takes little memory.
"""

from __future__ import annotations

import heapq
import io
import json
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, BinaryIO

from .. import _binding
from ..errors import FormatError, file_errors
from ..formats import check_version
from ..reading.streams import open_unchanged
from ..support.output_files import remove_file

MAGIC = b"pybpecnt"
VERSION = 1
BLOCK_WORDS = 1 << 16


def write(path: _binding.PathLike, header: Mapping[str, object], blocks: Iterable[_binding.WordBlock]) -> int:
    """Writes a file, atomically, and returns the number of its words. They must be sorted, in blocks of BLOCK_WORDS."""
    words = 0
    with _binding.Output(path) as output:
        for part, count in parts(header, blocks):
            output.write(part)
            words += count
    return words


def parts(header: Mapping[str, object], blocks: Iterable[_binding.WordBlock]) -> Iterator[tuple[bytes, int]]:
    """Yields the bytes of a file, in parts, each with the number of its words."""
    text = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    yield _checked(MAGIC + struct.pack("<II", VERSION, len(text)) + text), 0
    total = 0
    for block in blocks:
        total += len(block.counts)
        yield _checked(_block(block)), len(block.counts)
    yield _checked(struct.pack("<IQ", 0, total)), 0


def _checked(data: bytes) -> bytes:
    return data + struct.pack("<I", zlib.crc32(data))


def _block(block: _binding.WordBlock) -> bytes:
    return b"".join([struct.pack("<I", len(block.lengths)), _little(block.lengths), _little(block.counts), block.blob])


def _little(numbers: array[int]) -> bytes:
    """Returns little-endian bytes."""
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


class Reader:
    """Reads a .counts file, `path`, from its start, block by block; `header` is as in `write`. FormatError says at
    which offset the file is damaged, here or in `blocks`. As a context manager, it raises FileChangedError after the
    block if somebody wrote to the file."""

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
_RUN_WORDS = 1 << 12  # the number of words in a block of a run; one block of each open file is in memory


class Runs:
    """The runs in an existing folder, which also gets temporary files while they are merged. `names` are those that it
    already has."""

    def __init__(self, folder: str, names: Sequence[str] = ()) -> None:
        self._folder = folder
        self.names = list(names)
        self._numbers = count(len(self.names))
        self._process = os.urandom(4).hex()

    def add(self, words: _binding.Words) -> None:
        """Sorts words and writes them as a run. Several threads may call this at the same time."""
        name = f"run{next(self._numbers):06d}-{self._process}.counts"
        write(os.path.join(self._folder, name), {}, words.sorted_blocks(_RUN_WORDS))
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
    for number in count():
        some = [heapq.heappop(files) for _ in range(group)]
        with ExitStack() as stack:
            if not files:
                yield from _merged(some, stack, BLOCK_WORDS)
            else:
                name = os.path.join(folder, f"merged{number:06d}.counts")
                write(name, {}, _merged(some, stack, _RUN_WORDS))
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
