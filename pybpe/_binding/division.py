"""Documents in a corpus."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from .core import Data, ffi, lib, make_handle, new_uncleared, raise_error
from .text import Specials

DOCUMENTS: dict[str, int] = {
    "line": lib.PYBPE_DOCUMENTS_LINE,
    "blank": lib.PYBPE_DOCUMENTS_BLANK,
    "special": lib.PYBPE_DOCUMENTS_MARK,
    "jsonl": lib.PYBPE_DOCUMENTS_RECORD,
}


class Divider:
    """Divides pieces into documents, and these among splits. Only one thread may use it at a time.

    Args:
        separator: the bytes written after each document.
        marks: matches what separates documents of the kind "special".
        key: the key of the text in a record.
        last: the last hash of each split: see pybpe_division in csrc/pybpe.h.
    """

    def __init__(self, separator: bytes, marks: Specials | None, key: str, last: Sequence[int]) -> None:
        self._keep = marks
        self.splits, self._separator = len(last), separator
        self._err = ffi.new("pybpe_error *")
        name, hashes = key.encode(), array("Q", last)
        how = ffi.new("pybpe_division *")
        how.marks = marks.c if marks is not None else ffi.NULL
        how.key, how.key_n = ffi.from_buffer("uint8_t[]", name), len(name)
        how.separator, how.separator_n = ffi.from_buffer("uint8_t[]", separator), len(separator)
        how.last, how.splits = ffi.from_buffer("uint64_t[]", hashes), len(last)
        self.c = make_handle("pybpe_divider", lib.pybpe_divider_new, lib.pybpe_divider_free, how, ffi.NULL)

    def clear(self) -> None:
        """Removes all documents."""
        lib.pybpe_divider_clear(self.c)

    def divide(self, kind: str, data: Data) -> bool:
        """Adds the documents of a piece. Returns False if one of its lines is not a record, or may be one but needs a
        complete parser of JSON. Then the divider must be cleared."""
        view = ffi.from_buffer(data)
        code = lib.pybpe_divider_divide(self.c, DOCUMENTS[kind], view, len(view), self._err)
        if code == lib.PYBPE_ERR_FORMAT:
            return False
        if code:
            raise_error(self._err)
        return True

    def add(self, data: Data, offsets: Data) -> None:
        """Adds documents that are separate already. `offsets` are 64-bit numbers: document i is
        data[offsets[i] : offsets[i + 1]], and the last number is at most len(data)."""
        numbers = ffi.from_buffer("uint64_t[]", offsets)
        if lib.pybpe_divider_add(self.c, ffi.from_buffer(data), numbers, len(numbers) - 1, self._err):
            raise_error(self._err)

    def records(self) -> tuple[int, int]:
        """Returns the number of records and of line ends in the JSON lines that were divided."""
        found = new_uncleared("size_t[2]")
        lib.pybpe_divider_records(self.c, found, found + 1)
        return found[0], found[1]

    def documents(self, split: int) -> Any:
        """Returns the documents of a split as a pybpe_strings, valid until the next call."""
        return lib.pybpe_divider_documents(self.c, split)

    def joined(self, split: int) -> tuple[memoryview, int]:
        """Returns the documents of a split with the separator between them, valid until the next call, and the number
        of documents."""
        count, size = self.size(split)
        if not count:
            return memoryview(b""), 0
        return memoryview(ffi.buffer(self.documents(split).bytes, size - len(self._separator))), count

    def size(self, split: int) -> tuple[int, int]:
        """Returns the number of the documents of a split, and their bytes with a separator after each."""
        strings = self.documents(split)
        return strings.count, strings.offsets[strings.count] if strings.count else 0
