"""A corpus: its files, of which the small ones are columns of names, sizes and times, because a corpus may have
millions, and an object for each would take longer than its text.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice, pairwise

from .. import _binding
from .._lazy import hashlib
from .file_types import NoText, plain_starts
from .input_file import InputFile, says_nothing
from .line_ends import is_crlf, may_be_crlf
from .options import ReadOptions
from .text_encoding import are_utf8, may_be_utf8

SMALL_BYTES = 1 << 16  # of a small file: reading a smaller one costs little more than opening it
_LOOK_BYTES = 1 << 12  # of each file that C reads at first: most small files, to see whether they are UTF-8
_AT_ONCE = 256  # files that C reads in one call
_GROUP_BYTES = 1 << 20  # of small files that are encoded together


class SmallFiles:
    """Small files of plain text on this machine, as they were when the run began (see InputFile). Iteration yields an
    InputFile for each.

    Attributes:
        paths, sizes, modified: the path of each file, its size (type Q), and its modification time in ns (type q).
        are_crlf: for each file, 1 if its lines end with \\r\\n, which is read as \\n; otherwise 0.
        folder: as in InputFile.
        size: the sum of the sizes.
    """

    def __init__(
        self, paths: list[str], sizes: array[int], modified: array[int], are_crlf: bytes, folder: str = ""
    ) -> None:
        self.paths, self.sizes, self.modified, self.are_crlf, self.folder = paths, sizes, modified, are_crlf, folder
        self.size = sum(sizes)

    def __iter__(self) -> Iterator[InputFile]:
        for path, size, mtime_ns, crlf in zip(self.paths, self.sizes, self.modified, self.are_crlf):
            yield InputFile(path, size, mtime_ns, folder=self.folder, is_empty=not size, is_crlf=bool(crlf))

    @property
    def path(self) -> str:
        """The path of the first file."""
        return self.paths[0]

    @property
    def identity(self) -> str:
        """A hash of what distinguishes these files from others with the same names."""
        names = "\0".join((*self.paths, self.folder)).encode("utf-8", "surrogateescape")
        columns = bytes(self.sizes) + bytes(self.modified) + self.are_crlf
        return hashlib.blake2b(names + columns, digest_size=16).hexdigest()

    def anchored(self) -> SmallFiles:
        """Returns the same files for a process whose current folder may differ."""
        return SmallFiles(self.paths, self.sizes, self.modified, self.are_crlf, os.getcwd())

    def read(self) -> tuple[memoryview, array[int]]:
        """Returns the text of all files, and the offsets (type Q) between which that of each is. Raises FileError if a
        file has changed, or cannot be read."""
        paths = [os.path.join(self.folder, path) for path in self.paths] if self.folder else self.paths
        starts = _binding.FileStarts(paths, SMALL_BYTES, self.size, known=True)
        is_unchanged = (starts.sizes, starts.modified) == (self.sizes, self.modified)
        if is_unchanged and not any(self.are_crlf):
            return starts.data, starts.offsets
        parts = []
        for file, (begin, end) in zip(self, pairwise(starts.offsets)):
            if is_unchanged:
                data = bytes(starts.data[begin:end])
                parts.append(data.replace(b"\r", b"") if file.is_crlf else data)
                continue
            with file.open() as stream:  # which says what is wrong
                parts.append(stream.read())
        return memoryview(b"".join(parts)), array("Q", accumulate(map(len, parts), initial=0))


class Corpus:
    """The files of a corpus, in order. Iteration yields an InputFile for each.

    Args:
        parts: the files, some of them together.
    """

    def __init__(self, parts: Iterable[InputFile | SmallFiles] = ()) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return sum(len(part.paths) if isinstance(part, SmallFiles) else 1 for part in self.parts)

    def __iter__(self) -> Iterator[InputFile]:
        for part in self.parts:
            if isinstance(part, SmallFiles):
                yield from part
            else:
                yield part

    @property
    def paths(self) -> Iterator[str]:
        """The path of each file."""
        return chain.from_iterable(part.paths if isinstance(part, SmallFiles) else (part.path,) for part in self.parts)

    @property
    def sizes(self) -> Iterator[int | None]:
        """The size of each file as it is stored, or None if that is not known."""
        return chain.from_iterable(part.sizes if isinstance(part, SmallFiles) else (part.size,) for part in self.parts)

    @property
    def singles(self) -> list[InputFile]:
        """The files that are not among small ones."""
        return [part for part in self.parts if isinstance(part, InputFile)]

    @property
    def crlf(self) -> Iterator[InputFile]:
        """The files whose \\r\\n is read as \\n."""
        for part in self.parts:
            if isinstance(part, InputFile) or any(part.are_crlf):
                yield from (file for file in Corpus([part]) if file.is_crlf)

    @property
    def size(self) -> int:
        """The sum of the sizes as they are stored. Standard input and pipes count as 0."""
        return sum(part.size or 0 for part in self.parts)

    @property
    def known_size(self) -> int | None:
        """The number of bytes of text, or None if the sizes do not show it. Standard input and pipes count as 0."""
        return None if any(file.is_sequential or file.has_rows for file in self.singles) else self.size


def look_at(
    paths: Iterable[str], read: ReadOptions, known: bool
) -> Iterator[tuple[InputFile | SmallFiles, NoText | None]]:
    """Yields what `InputFile.look` returns for some local files, in order, many small ones together. C reads the starts
    of many at once. `known` says that all are regular files or links."""
    rest = iter(paths)
    may_be_small = read.encoding in (None, "utf-8") and read.documents != "jsonl"
    in_utf8 = True if read.encoding is None else None
    while some := list(islice(rest, _AT_ONCE)):
        starts = _binding.FileStarts(some, _LOOK_BYTES, _LOOK_BYTES * len(some), known)
        sizes, modified, offsets = starts.sizes, starts.modified, starts.offsets
        data = bytes(starts.data[: offsets[-1]])
        small = [
            is_plain and may_be_small and size <= SMALL_BYTES and says_nothing(path[path.rfind(".") :])
            for is_plain, size, path in zip(plain_starts(data, offsets), sizes, some)
        ]
        if in_utf8 and not are_utf8(view := memoryview(data), offsets):
            small = [each and may_be_utf8(view[a:b]) for each, (a, b) in zip(small, pairwise(offsets))]
        others = dict[int, tuple[InputFile, NoText | None]]()
        for i in [i for i, is_small in enumerate(small) if not is_small]:
            others[i] = InputFile.of_start(
                some[i], read.encoding, sizes[i], modified[i], data[offsets[i] : offsets[i + 1]]
            )
            text = InputFile(some[i], sizes[i], modified[i], is_empty=not sizes[i], starts_in_utf8=in_utf8)
            text = text._replace(is_crlf=others[i][0].is_crlf)
            small[i] = may_be_small and sizes[i] <= SMALL_BYTES and others[i] == (text, None)
        sums = list(accumulate(sizes, initial=0))
        are_crlf = bytes(len(some)) if read.keep_crlf else _are_crlf(some, small, starts, data, known)
        begin = 0
        while begin < len(some):
            if not small[begin]:
                yield others[begin]
                begin += 1
                continue
            most = bisect_right(sums, sums[begin] + _GROUP_BYTES, begin + 2) - 1
            end = next((i for i in range(begin, most) if not small[i]), most)
            yield SmallFiles(some[begin:end], sizes[begin:end], modified[begin:end], are_crlf[begin:end]), None
            begin = end


def _are_crlf(
    paths: Sequence[str], small: Sequence[bool], starts: _binding.FileStarts, data: bytes, known: bool
) -> bytes:
    """Returns SmallFiles.are_crlf for some files, of which those that are small matter."""
    found, offsets = bytearray(len(paths)), starts.offsets
    sizes = [end - begin for begin, end in pairwise(offsets)]
    no_returns = b"\r" not in data
    longer = list[int]()
    for i, (is_small, size, whole) in enumerate(zip(small, sizes, starts.sizes)):
        if is_small and not (no_returns and size == whole):
            start = data[offsets[i] : offsets[i + 1]]
            if size == whole:
                found[i] = is_crlf(start)
            elif may_be_crlf(start) or b"\n" not in start:
                longer.append(i)
    if longer:
        room = sum(starts.sizes[i] for i in longer)
        rest = _binding.FileStarts([paths[i] for i in longer], SMALL_BYTES, room, known)
        for number, i in enumerate(longer):
            text = rest.data[rest.offsets[number] : rest.offsets[number + 1]]
            if len(text) < starts.sizes[i] or rest.sizes[number] != starts.sizes[i]:
                with InputFile(
                    paths[i], starts.sizes[i], starts.modified[i]
                ).open() as stream:  # which says what is wrong
                    text = memoryview(stream.read())
            found[i] = is_crlf(text)
    return bytes(found)
