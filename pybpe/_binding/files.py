"""Paths as C takes them, and output files that appear complete or not at all."""

from __future__ import annotations

import os
from typing import Union

from .. import errors
from ..arguments import shown
from ..urls import refuse_as_output
from .core import Data, call, ffi, lib, raise_error

PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def path_bytes(path: PathLike) -> bytes:
    """Returns a path as C takes it. Raises ArgumentError if it is not a path, or has a NUL, which would end it in C."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise errors.ArgumentError(f"expected a path, not {type(path).__name__}")
    try:
        encoded = os.fsencode(path)
    except (TypeError, UnicodeEncodeError) as error:  # __fspath__ returns another type; surrogates that are no bytes
        raise errors.ArgumentError(f"expected a path, not {shown(path)}: {error}") from None
    if not encoded:
        raise errors.ArgumentError("expected a path, not an empty name")
    if b"\0" in encoded:
        raise errors.ArgumentError(f"a path cannot contain a NUL: {shown(path)}")
    return encoded


def path_text(path: PathLike) -> str:
    """Returns a path as a str, with the checks of `path_bytes`."""
    return os.fsdecode(path_bytes(path))


def output_bytes(path: PathLike) -> bytes:
    """Returns the path of an output file as C takes it. Makes its folder if needed."""
    encoded = path_bytes(path)
    refuse_as_output(encoded)
    folder = os.path.dirname(encoded)
    if folder and not os.path.isdir(folder):
        with errors.file_errors(encoded, "its folder cannot be made"):
            os.makedirs(folder, exist_ok=True)
    return encoded


class Output:
    """A file that appears complete, at `commit`, or not at all. Makes its folder if needed. As a context manager, it
    commits unless the block raises.

    Python may raise KeyboardInterrupt, or what the handler of another signal raises, at the start of a Python function
    and after a call. So C itself stores the handle where `__del__` finds it, and no Python function starts between
    taking the handle and giving it to C.
    """

    _process = 0  # until there is something to discard

    def __init__(self, path: PathLike) -> None:
        self._handle = ffi.new("pybpe_output **")
        self._process = os.getpid()
        call(lib.pybpe_output_open, self._handle, output_bytes(path), ffi.NULL)

    def write(self, data: Data) -> None:
        """Appends bytes."""
        view = ffi.from_buffer(data)
        call(lib.pybpe_output_write, self._handle[0], view, len(view))

    def commit(self) -> None:
        """Gives the file its name."""
        err = ffi.new("pybpe_error *")
        handle, self._handle[0] = self._handle[0], ffi.NULL
        if lib.pybpe_output_commit(handle, err) < 0:
            raise_error(err)

    def discard(self) -> None:
        """Removes the unfinished file, if there is one."""
        handle, self._handle[0] = self._handle[0], ffi.NULL
        lib.pybpe_output_discard(handle)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()

    def __del__(self) -> None:
        if self._process == os.getpid():  # the file is not a forked child's
            self.discard()


def write_file(path: PathLike, data: Data) -> None:
    """Writes a whole file atomically: a reader finds the old file or the new one, never part of one."""
    with Output(path) as output:
        output.write(data)
