"""Sorted runs of words on disk, and the sum of any number of .counts files in little memory.

A run is a .counts file (pybpe/formats/counts_file.py) without a header's settings, and with smaller blocks. When many
files are added, some are first added into a run, so that only OPEN_FILES files are open at once:

    150 files  ->  24 smallest files -> a run, 127 left
                   64 smallest files -> a run, 64 left
                   64 files          -> the sum

The first group is as small as possible, and groups consist of the smallest files, so little is read twice.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count

from .. import _binding
from ..errors import file_errors
from ..formats import counts_file
from ..support.output_files import remove_file

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
        counts_file.write(os.path.join(self._folder, name), {}, words.sorted_blocks(_RUN_WORDS))
        self.names.append(name)

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
                yield from _merged(some, stack, counts_file.BLOCK_WORDS)
            else:
                name = os.path.join(folder, f"merged{number:06d}.counts")
                counts_file.write(name, {}, _merged(some, stack, _RUN_WORDS))
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
    readers = [stack.enter_context(counts_file.Reader(path)) for _, path, _ in files]
    return _binding.merged_blocks([reader.sorted_words() for reader in readers], block_words)
