"""The documents in the results of all tasks, numbered in the order of the corpus."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from .. import _binding
from .._numpy import Array, numpy
from ..errors import FormatError, file_errors
from ..reading.streams import read_hashed
from .clusters import band_rows
from .duplicates import digest_rows
from .minhash import PERMUTATIONS, Banding
from .sorting import Cursor, SortedRows
from .spool import Result, Spool


class Documents:
    """Where the signatures and digests of documents are. It is sent to other processes as the name and the hash of a
    file.

    Args:
        spool: the results of all tasks.
        path: the file, which is made here.
    """

    def __init__(self, spool: Spool, path: str) -> None:
        self._files: list[tuple[str, int, int]] = []  # of each result, with its place and that of the signatures
        self.starts = [0]  # the first document of each result, and the number of all documents
        for result in spool.results():
            file, place = result.place("signatures")
            self._files.append((os.path.abspath(file), result.start, place))
            self.starts.append(self.starts[-1] + result.header["documents"])
        data = json.dumps([self._files, self.starts]).encode()
        _binding.write_file(path, data)
        self._saved = os.path.abspath(path), hashlib.sha256(data).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, self._saved

    def sizes(self, rows: int) -> list[int]:
        """Returns the number of rows of each result, if there are `rows` for each document."""
        return [(end - start) * rows for start, end in zip(self.starts, self.starts[1:])]

    def digests(self, first: int, last: int) -> Iterator[Array]:
        """Yields the rows of `digest_rows` for the documents of the results from `first` to `last`."""
        for number in range(first, last):
            yield digest_rows(self._result(number).section("digests"), self.starts[number])

    def bands(self, banding: Banding, dropped: SortedRows | None, first: int, last: int) -> Iterator[Array]:
        """Yields the rows of `band_rows` for the documents of the results from `first` to `last`, without documents
        whose numbers are among `dropped`."""
        rows = () if dropped is None else dropped.blocks(self.starts[first], self.starts[last])
        cursor = Cursor(rows, 1)
        for number in range(first, last):
            start, end = self.starts[number : number + 2]
            stays = numpy.ones(end - start, dtype=bool)
            stays[cursor.take(end)[:, 0].astype(numpy.int64) - start] = False
            data = self._result(number).section("signatures")
            signatures = numpy.frombuffer(data, dtype=numpy.uint32).reshape(-1, PERMUTATIONS)
            yield from band_rows(banding, start + numpy.flatnonzero(stays), signatures[stays])

    def signatures(self, numbers: Array) -> Array:
        """Returns the signatures of documents, whose numbers ascend."""
        found = numpy.empty((len(numbers), PERMUTATIONS), dtype=numpy.uint32)
        bounds = numpy.searchsorted(numbers, self.starts)
        for number in numpy.flatnonzero(numpy.diff(bounds)).tolist():
            first, last = bounds[number], bounds[number + 1]
            start, end = self.starts[number : number + 2]
            path, _, place = self._files[number]
            rows = _mapped(path, place, end - start)  # closed again soon: it would count as memory
            found[first:last] = rows[numbers[first:last] - start]
        return found

    def _result(self, number: int) -> Result:
        path, start, _ = self._files[number]
        return Result(path, start)


def _mapped(path: str, place: int, count: int) -> Array:
    with file_errors(path, "cannot be read"):
        try:
            return numpy.memmap(path, numpy.uint32, "r", place, (count, PERMUTATIONS))
        except ValueError:
            raise FormatError(f"{path}: became shorter; run the command again", place) from None


@lru_cache(maxsize=2)
def _load(path: str, digest: str) -> Documents:
    # A worker may outlive a run, and the next one has the same path.
    problem = "is not the file of this run: put the output on a disk that all workers share"
    data = read_hashed(path, digest, problem)
    documents = Documents.__new__(Documents)
    documents._saved = path, digest
    documents._files, documents.starts = json.loads(data)
    return documents
