"""Chooses the splits of documents."""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import BinaryIO

from .. import _binding
from ..arguments import by_caller, number_of, one_of, option, param, refuse_unused, shown, whole_number
from ..errors import ArgumentError, FormatError, note
from .documents import Kinds, RecordNotes, records
from .input_file import InputFile
from .inputs import first_of
from .pieces import PIECE_BYTES, stream_pieces, without_mark
from .rows import open_rows
from .streams import Limited

SPLIT_NAMES = ("train", "val", "test")
DEFAULT_SPLITS = (8, 1, 1)
SPLIT_BY = ("auto", "hash", "token")
FEW = 200  # documents. With fewer, the shares of a hash may be far from those that the caller wants
_LOOK_BYTES = 1 << 22  # of a text, to count its documents
_FAR = 2.0  # a share is far from another that is this many times larger or smaller
_LARGE_PART, _MOST_LOOKED = 20, 1 << 30  # a document of a 20th of all text is large, in a file of so many bytes at most

_FIRST_BYTES = 1 << 16  # the size of the first read. Most documents are shorter
_HASHES = 2**64
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd


@dataclass(frozen=True)
class SplitOptions:
    """How documents are divided among splits. The fields have the names of the public keyword arguments, which its
    errors name.

    Attributes:
        splits: the shares of train, val and test. With fewer than three, the last splits are left out.
        split_by: one of SPLIT_BY, or "first", if there are val_documents. "auto" becomes one of the others when the
            files are known (see `decided`).
        val_documents: if not None, the first documents, this many, are val, and the others train. There are no shares.

    Raises:
        ArgumentError: a value is invalid.
    """

    splits: Sequence[float] = option(DEFAULT_SPLITS, "shares of train, val and test", "A,B,C")
    split_by: str = option(
        "auto",
        "how to split: hash, by the content of documents; token, files in order, between words; auto (default),"
        " token for fewer than 200 documents, otherwise hash",
        "BY",
    )
    val_documents: int | None = option(
        None, "the first N documents of the corpus are val, and all others train, instead of --splits and --split-by"
    )

    def __post_init__(self) -> None:
        try:
            shares = tuple(map(float, self.splits))
            right = 1 <= len(shares) <= 3 and min(shares) >= 0 and shares[0] > 0 and math.isfinite(sum(shares))
        except (TypeError, ValueError, OverflowError):
            right = False
        if not right:
            told = f"must be 1 to 3 shares such as {by_caller('(8, 1, 1)', '8,1,1')}, the first above 0"
            raise ArgumentError(f"{param('splits')} {told}, not {shown(self.splits)}")
        object.__setattr__(self, "splits", shares)
        one_of("split_by", self.split_by, SPLIT_BY)
        if self.val_documents is not None:
            for name, value, default in (("splits", self.splits, DEFAULT_SPLITS), ("split_by", self.split_by, "auto")):
                if value != default:
                    refuse_unused(
                        name, value, f"{param('val_documents')} says which documents are val, and the others are train"
                    )
            object.__setattr__(self, "val_documents", whole_number("val_documents", self.val_documents, 1))
            object.__setattr__(self, "splits", (1.0, 1.0))
            object.__setattr__(self, "split_by", "first")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the splits."""
        return SPLIT_NAMES[: len(self.splits)]

    def decided(self, files: Sequence[InputFile], kinds: Kinds, recorded: object) -> SplitOptions:
        """Returns the options for some files, with "hash" or "token" instead of "auto". `recorded` is how the
        token files were split that these replace: documents keep their splits as long as it stays."""
        if self.split_by != "auto":
            return self
        if len(self.splits) == 1:
            return replace(self, split_by="hash")
        if recorded in SPLIT_BY[1:]:
            return replace(self, split_by=recorded)
        name, are_many = first_of([file.path for file in files]), sum(not file.is_empty for file in files) >= FEW
        count = FEW if are_many else count_documents(files, kinds, FEW, _LOOK_BYTES)
        why = f"only {number_of(count, 'document')}" if count else ""
        if count == FEW:
            large = _too_large(files, kinds, self.splits)
            if large is None:
                return replace(self, split_by="hash")
            name, why = large, "one document is so large that the splits would have other shares"
        if why:
            keeps = f"{param(split_by='hash')} keeps documents whole"
            note(f"{name}: {why}, so each file is split in order, between words ({keeps})")
        return replace(self, split_by="token")


def are_far(sizes: Sequence[int], splits: Sequence[float]) -> bool:
    """Returns whether the sizes of splits are far from their shares."""
    wanted = [share / sum(splits) for share in splits]
    shares = [size / max(1, sum(sizes)) for size in sizes]
    return any(not want / _FAR <= share <= want * _FAR for share, want in zip(shares, wanted))


def _too_large(files: Sequence[InputFile], kinds: Kinds, splits: Sequence[float]) -> str | None:
    """Returns the path of a text with a document that leaves the splits far from their shares, wherever the others go,
    or None. (Records stay whole however they are split, and the text of compressed files has an unknown size.)"""
    total = sum(file.size or 0 for file in files)
    sizes, path = [0] * len(splits), ""
    for file in files:
        size = file.size or 0
        if size * _LARGE_PART < total or size > _MOST_LOOKED or file.packing is not None or kinds.is_divided(file):
            continue
        with file.open() as stream:
            begin, whole = 0, [(sys.maxsize, sys.maxsize)]
            for end, following in marks(stream, kinds) if kinds.kind(file) == "special" else whole:
                amount = min(end - begin, size)
                if amount * _LARGE_PART >= total:
                    at, path = stream.tell(), path or file.path
                    sizes[hash_split_of_range(stream, begin, end, splits)] += amount
                    stream.seek(at)
                begin = following
    rest = max(0, total - sum(sizes)) / sum(splits)
    found = [size + int(rest * share) for size, share in zip(sizes, splits)]
    return path if path and are_far(found, splits) else None


def hash_split(document: bytes, splits: Sequence[float]) -> int:
    """Returns the split of a document. It depends only on the content: it is the same in any corpus, in any order.

    The hash is a CRC-32, which costs almost nothing, times the golden ratio: similar documents have similar checksums,
    and the product spreads them.
    """
    return _split_of_hash(_hash_of(zlib.crc32(document)), splits)


def hash_split_of_range(stream: BinaryIO, start: int, end: int, splits: Sequence[float]) -> int:
    """Returns the split of a document in a file, which may be larger than memory."""
    stream.seek(start)
    part = Limited(stream, end - start)
    block = memoryview(bytearray(PIECE_BYTES))
    checksum = 0
    while got := part.readinto(block):
        checksum = zlib.crc32(block[:got], checksum)
    return _split_of_hash(_hash_of(checksum), splits)


def _hash_of(checksum: int) -> int:
    return checksum * _GOLDEN % _HASHES


def _split_of_hash(number: int, splits: Sequence[float]) -> int:
    place = _place(number, splits)
    return place if place < len(splits) else 0


def _place(number: int, splits: Sequence[float]) -> int:
    """Returns the split of a hash, or len(splits) if rounding leaves it after the last one."""
    place = number / _HASHES * sum(splits)
    for split, share in enumerate(splits):
        place -= share
        if place < 0:
            return split
    return len(splits)


def last_hashes(splits: Sequence[float]) -> list[int]:
    """Returns the last hash of every split, for code that does not repeat the rounding above: a document belongs to the
    first split whose last hash is not below its own, or if there is none, to split 0."""
    return [_last_hash(split, splits) for split in range(len(splits))]


def _last_hash(split: int, splits: Sequence[float]) -> int:
    """Returns the greatest hash whose place is at most `split`. Hash 0 has place 0, and places never decrease."""
    low, high = 0, _HASHES
    while high - low > 1:
        middle = (low + high) // 2
        if _place(middle, splits) <= split:
            low = middle
        else:
            high = middle
    return low


def count_documents(files: Iterable[InputFile], kinds: Kinds, most: int, look: int = sys.maxsize) -> int:
    """Returns the number of documents that are not empty, at most `most`. Of a text that is not divided, only the first
    `look` bytes are looked at, and of a file with a fault, the part before it: whoever reads the file raises the error.
    Holds no document in memory."""
    count = 0
    for file in files:
        with suppress(FormatError):
            for _ in islice(_document_ends(file, kinds, look), most - count):
                count += 1
        if count == most:
            break
    return count


def end_of_first(files: Iterable[InputFile], kinds: Kinds, count: int) -> tuple[int, int | None]:
    """Returns where the first documents, this many, end: the number of a file, and a position in it (None: its end).
    Reads up to the end of the next document. Raises ArgumentError if there is none."""
    ends = ((number, end) for number, file in enumerate(files) for end in _document_ends(file, kinds))
    found = next(islice(ends, count - 1, None), None)
    if found is None or next(ends, None) is None:
        raise ArgumentError(
            f"{param('val_documents')}: the corpus has no more than {number_of(count, 'document')}, so none is left to"
            " train on"
        )
    return found


def _document_ends(file: InputFile, kinds: Kinds, look: int = sys.maxsize) -> Iterator[int | None]:
    """Yields where the non-empty documents of a file end, as a byte or a row. None means the end of the file, or of
    the first `look` bytes of a text that is not divided."""
    if file.has_rows:
        for texts, notes in open_rows(file, kinds.read.text_key).texts(
            0, None, RecordNotes(file.path, 0, kinds.read.skips)
        ):
            offsets = (pair for _, some in texts.parts for pair in pairwise(some))
            yield from (row for row, (start, end) in enumerate(offsets, notes.start + 1) if end > start)
        return
    stream, formed = file.open_in_form()
    with stream:
        if kinds.is_divided(formed):
            at = 0
            for data in stream_pieces(stream, kinds.document_cut(formed)):
                yield from _ends_in(data, at, formed, kinds)
                at += len(data)
            return
        begin = 0 if without_mark(memoryview(stream.read(3)), 0) else 3
        stream.seek(begin)
        if kinds.kind(formed) == "special":
            for end, following in marks(Limited(stream, look), kinds, begin):
                if end > begin:
                    yield following if following > end else None
                begin = following
        elif stream.read(1):
            yield None


def _ends_in(data: memoryview, at: int, file: InputFile, kinds: Kinds) -> Iterator[int]:
    """Yields where the non-empty documents of a piece of divided text end. The piece begins at position `at`."""
    kind, cut, begin, key = kinds.kind(file), kinds.document_cut(file), 0, kinds.read.text_key
    divider = _binding.Divider(b"", None, key, last_hashes((1.0,)))
    while begin < len(data):
        end = cut(data, begin + 1)
        part = data[begin:end] if kind == "jsonl" else without_mark(data[begin:end], at + begin)
        divider.clear()
        if divider.divide(kind, part):
            found = divider.documents(0).count > 0
        else:
            found = any(
                record[key] for record, _ in records(part, key, RecordNotes(file.path, at + begin, kinds.read.skips))
            )
        if found:
            yield at + end
        begin = end


def marks(stream: BinaryIO | Limited, kinds: Kinds, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Yields (start, end) of every mark, and finally the end of the stream as an empty mark. `offset` is the position
    of the stream. Holds one block in memory."""
    keep = len(kinds.mark_bytes) - 1  # this many bytes of a block may begin a mark that ends in the next
    block = bytearray(keep + min(_FIRST_BYTES, PIECE_BYTES))
    held = 0
    while got := stream.readinto(memoryview(block)[held:]):  # type: ignore[union-attr]
        end, begin = held + got, 0
        while (found := kinds.find_mark(memoryview(block)[:end], begin)) is not None:
            yield offset + found[0], offset + found[1]
            begin = found[1]
        held = min(keep, end - begin)
        block[:held] = block[end - held : end]
        offset += end - held
        if len(block) < PIECE_BYTES:
            block.extend(bytes(len(block)))
    yield offset + held, offset + held
