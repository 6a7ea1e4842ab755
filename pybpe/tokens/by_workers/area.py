"""The hidden folder that the client and its workers share during a run, and what they exchange through it."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import time
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from ... import _binding
from ...errors import FileError, WorkerError, file_errors
from ...reading.streams import open_input, read_hashed
from ...support.output_files import make_folder, remove_file
from ..encoding import TaskEncoder
from ..layout import Layout

_NUMBER_BYTES = 16  # of the random number
_PATIENCE_SECONDS = 10.0  # the time that a network file system may need to show a file to other machines
_PAUSE_SECONDS = 0.1


class Context(NamedTuple):
    """What the tasks of a run have in common.

    Attributes:
        encoder: encodes them.
        layout: the token files.
    """

    encoder: TaskEncoder
    layout: Layout


class Area(NamedTuple):
    """The shared folder, as messages name it.

    Attributes:
        folder: its absolute path, the same on all machines.
        number: the run's random number, in hex.
        context: the name of the file with the pickled Context.
    """

    folder: str
    number: str
    context: str

    def path(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self.folder, name)

    def load(self) -> Context:
        """Returns the context, on a worker. A process reads it once.

        Raises:
            WorkerError: this machine does not share the folder.
        """
        return _context(self)

    def keep(self, kind: str, data: bytes) -> str:
        """Stores something that messages refer to, and returns its name, which has its hash."""
        name = f"{kind}-{hashlib.sha256(data).hexdigest()}"
        _binding.write_file(self.path(name), data)
        return name

    def kept(self, name: str) -> bytes:
        """Returns what `keep` stored. Raises WorkerError if the file has something else."""
        digest = name.rpartition("-")[2]
        return read_hashed(self.path(name), digest, "has been changed, or cannot be read completely here: run again")

    def names(self) -> list[str]:
        """Returns the names of all files in the folder."""
        with file_errors(self.folder, "cannot be listed"):
            return os.listdir(self.folder)

    def remove_others(self, beginnings: tuple[str, ...], keep: Collection[str]) -> None:
        """Removes the files whose names begin in one of some ways, except those to keep."""
        for name in self.names():
            if name.startswith(beginnings) and name not in keep:
                remove_file(self.path(name))

    def check_visible(self, name: str, size: int) -> None:
        """Raises WorkerError unless the client sees a file of this size, which a worker has written."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (found := _size(self.path(name))) != size:
            if time.monotonic() > deadline:
                seen = "does not see it" if found is None else f"sees {found} bytes"
                raise WorkerError(
                    f"{self.path(name)}: a worker wrote {size} bytes, but this machine {seen}: the output folder must"
                    " be on a file system that all machines share"
                )
            time.sleep(_PAUSE_SECONDS)


def make_area(folder: str, context: Context) -> Area:
    """Makes the shared folder of a run, with its random number and context."""
    make_folder(folder)
    number = os.urandom(_NUMBER_BYTES).hex()
    _binding.write_file(os.path.join(folder, _number_name(number)), number.encode())
    area = Area(os.path.abspath(folder), number, "")
    return area._replace(context=area.keep("context", pickle.dumps(context)))


def _number_name(number: str) -> str:
    return f"run-{number[:8]}"


@lru_cache(maxsize=2)
def _context(area: Area) -> Context:
    try:
        with open_input(area.path(_number_name(area.number))) as stream:
            found = stream.read()
    except FileError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        found = b""
    if found != area.number.encode():
        raise WorkerError(
            f"{area.folder}: this worker does not see the files of the run there, so its output folder is another one."
            " The output folder must be shared, under the same name, by all machines"
        )
    context: Context = pickle.loads(area.kept(area.context))
    return context


def _size(path: str) -> int | None:
    """Returns the size of a file, or None if it does not exist. Opens it: unlike stat, that asks a network file system
    for the size that the file has now."""
    try:
        with file_errors(path, "cannot be opened"), open(path, "rb") as stream:
            return os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        return None
