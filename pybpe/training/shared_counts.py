"""Counts and sums of counts that an executor's workers write to a folder which all machines share.

No process holds all words, and only names and sizes travel between processes:

    ranges of the corpus          a worker counts each         task000000.counts, task000001.counts, ...
    64 of these files             a worker adds them           sum000-000000.counts, ...
    64 of these files             a worker adds them           the output

The files are in a hidden folder next to the output, which gets its name at the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from .. import _binding
from ..errors import file_errors
from ..formats import counts_file
from ..reading.bad_records import Seen, SkippedRecords
from ..reading.input_file import InputFile
from ..reading.ranges import Range
from ..reading.text_encoding import Doubts
from ..support.locking import only_holder
from ..support.output_files import give_name, make_folder, output_file, remove_folder, unfinished_folder
from ..support.progress import Progress
from ..support.remote import Workers, map_by_executor
from ..support.shared_folder import SharedFolder
from .runs import OPEN_FILES, merged
from .word_counter import CountSettings, WordCounter

LEAST_RANGE, MOST_RANGE = 1 << 26, 1 << 30  # the number of bytes of text that one task counts
_TASKS = 256  # if ranges of these sizes allow: longer ranges leave workers idle, shorter ones make more words to add
_PENDING = 4096  # the number of tasks that wait or run at once; their results are small
_ADVICE = "Run the same again: it starts over"


@contextmanager
def shared_folder(output: _binding.PathLike) -> Iterator[SharedFolder]:
    """Makes the hidden folder of an output, and removes it at the end. Raises FileError if another run is using it."""
    path = _target(output)
    folder = unfinished_folder(path)
    with only_holder(f"{folder}.lock", path):
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        try:
            yield SharedFolder.begin(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        remove_folder(folder)


class Written(NamedTuple):
    """A .counts file that a worker wrote.

    Attributes:
        path: its path.
        size: the number of bytes of text that were counted.
        doubt: a warning about the encoding of this text, or None.
        seen: the records of its pieces.
    """

    path: str
    size: int = 0
    doubt: str | None = None
    seen: Sequence[Seen] = ()


def range_bytes(files: Iterable[InputFile]) -> int:
    """Returns the number of bytes of text that one task counts. The sums do not depend on it."""
    return min(max(sum(file.known_size or 0 for file in files) // _TASKS, LEAST_RANGE), MOST_RANGE)


def count_by_workers(
    settings: CountSettings,
    ranges: Iterable[Range],
    folder: SharedFolder,
    how: tuple[Workers, int | None],
    reporting: tuple[Progress, SkippedRecords],
) -> list[str]:
    """Counts ranges of files on workers. Returns the paths of the files that they wrote, in the order of the ranges.

    Args:
        how: the workers, and the memory limit of each, or None.
        reporting: a progress bar, which advances by the size of each range, and what adds up the records of all ranges.
    """
    (workers, memory_limit), (bar, records) = how, reporting
    doubts, paths = Doubts(), []
    count = partial(_count, settings, folder, memory_limit)
    for written in map_by_executor(count, ranges, workers, _PENDING, _ADVICE):
        doubts.tell(written.doubt)
        for seen in written.seen:
            records.add(seen)
        bar.add(written.size)
        paths.append(written.path)
    return paths


def _count(settings: CountSettings, folder: SharedFolder, memory_limit: int | None, part: Range) -> Written:
    """Counts a range in a worker."""
    path = folder.new_file("task", ".counts")
    counter = WordCounter(settings, 1, memory_limit)
    doubt, seen = counter.add_range(part)
    counter.write(path, {})
    return Written(path, counter.bytes_seen, doubt, seen)


def merge_by_workers(
    paths: Sequence[str], header: Mapping[str, object], folder: SharedFolder, workers: Workers
) -> tuple[str, int]:
    """Adds .counts files on workers, OPEN_FILES of them per task, until one file is left. Returns its path, for
    `publish`, and the number of its words."""
    own: set[str] = set()
    while len(paths) > OPEN_FILES:
        groups = [paths[i : i + OPEN_FILES] for i in range(0, len(paths), OPEN_FILES)]
        sums = [path for path, _ in map_by_executor(partial(_merge, folder, {}), groups, workers, _PENDING, _ADVICE)]
        for path in own.intersection(paths):
            with file_errors(path, "cannot be removed"):
                os.unlink(path)
        own, paths = set(sums), sums
    [(path, words)] = map_by_executor(partial(_merge, folder, header), [paths], workers, 1, _ADVICE)
    return path, int(words)


def publish(path: str, output: _binding.PathLike) -> None:
    """Makes a file in the shared folder of an output this output."""
    give_name(path, _target(output))


def _target(output: _binding.PathLike) -> str:
    return output_file(os.path.abspath(_binding.path_text(output)))


def _merge(folder: SharedFolder, header: Mapping[str, object], paths: Sequence[str]) -> tuple[str, int]:
    """Adds some files in a worker. Returns the path of the sum and the number of its words."""
    path = folder.new_file("sum", ".counts")
    return path, counts_file.write(path, header, merged(paths, folder.path))
