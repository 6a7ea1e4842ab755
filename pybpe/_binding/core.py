"""The compiled module, and the code that every call to it needs: errors, handles, strings and paths, and output files
that appear complete or not at all.

Only this package imports the compiled module. Every class owns one C handle of csrc/pybpe.h, and keeps alive
the objects that the handle borrows. The package validates what C cannot (types, NULs in paths), and turns every error
code into an exception of errors.py. It adds no behavior: the header documents the calls.

cffi releases the GIL around every call, so threads run them in parallel.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, Union

from .. import errors
from ..arguments import refuse_as_output, shown

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

try:
    from .._core import ffi as ffi
    from .._core import lib as lib
except ModuleNotFoundError as error:
    if error.name != "pybpe._core":
        raise
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    raise errors.NotCompiledError(
        f"{package} is source code that is not compiled. To use the pybpe that you installed, run Python from a folder"
        f" other than {os.path.dirname(package)}. To work on the source, run `make` there and use .venv/bin/python"
    ) from None

Data = Union[bytes, bytearray, memoryview, "Buffer"]
NO_ID: int = lib.PYBPE_NO_ID

# ffi.new clears memory, which wastes time for buffers that C fills.
new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


def new_block(size: int) -> memoryview:
    """Returns memory for `size` bytes, which are undefined. Unlike a bytearray, it is not cleared: the system clears
    each page when it is first written, which is often while the GIL is released."""
    return memoryview(ffi.buffer(new_uncleared("uint8_t[]", size)))


def fill(buffer: Data, following: Callable[[int], bytes]) -> int:
    """Fills a writable buffer from its start, and lets other threads run while it copies. Returns the number of bytes
    that were copied. following(left) returns the next bytes, at most `left` of them, or b"" if there are no more."""
    start = ffi.from_buffer("uint8_t[]", buffer, require_writable=True)
    filled, room = 0, len(start)
    while filled < room and (data := following(room - filled)):
        if len(data) > room - filled:
            raise ValueError(f"{len(data)} bytes do not fit into {room - filled}")
        lib.bytes_copy_unlocked(start + filled, data, len(data))
        filled += len(data)
    return filled


def version() -> str:
    """Returns the version of the C library."""
    return str(ffi.string(lib.pybpe_version()).decode())


def raise_error(err: Any) -> NoReturn:
    message = ffi.string(err.msg).decode("utf-8", "replace")
    code = err.code
    if code == lib.PYBPE_ERR_IO:
        raise errors.file_error(err.sys_errno, message)
    if code == lib.PYBPE_ERR_FORMAT:
        raise errors.FormatError(message, err.offset)
    if code == lib.PYBPE_ERR_LIMIT:
        raise errors.LimitError(message)
    if code == lib.PYBPE_ERR_MEMORY:
        raise errors.OutOfMemoryError(message)
    raise errors.ArgumentError(message)


def call(function: Any, *args: Any) -> None:
    """Calls a fallible C function, whose last parameter is the error to fill."""
    err = ffi.new("pybpe_error *")
    if function(*args, err) < 0:
        raise_error(err)


def make_handle(handle: str, function: Any, free: Any, *args: Any) -> Any:
    """Calls a C function that makes a handle. Returns the handle, which C frees when Python drops it.

    Python may raise KeyboardInterrupt after any call. If it does so after the one that makes the handle, nobody else
    has the handle, and it is freed here. After `ffi.gc`, Python drops it.
    """
    out = ffi.new(handle + " **")
    try:
        call(function, out, *args)
    except BaseException:
        if out[0] != ffi.NULL:  # a function that fails makes no handle
            free(out[0])
        raise
    return ffi.gc(out[0], free)


class Strings:
    """A `pybpe_strings` with the memory it points to: some strings, or `data`, their bytes, and `offsets`, of type Q:
    string i is data[offsets[i] : offsets[i + 1]], from offset 0 on."""

    def __init__(self, strings: Sequence[bytes] = (), data: Data | None = None, offsets: Data = b"") -> None:
        if data is None:
            # A subclass of bytes may report a wrong length.
            offsets = array("Q", accumulate(map(bytes.__len__, strings), initial=0))
            data = b"".join(strings)
        self.data, self.offsets = memoryview(data), memoryview(offsets).cast("B").cast("Q")
        self.c = ffi.new("pybpe_strings *")
        self.c.bytes = ffi.from_buffer("uint8_t[]", self.data)
        self.c.offsets = ffi.from_buffer("uint64_t[]", self.offsets)
        self.c.count = len(self.offsets) - 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def list(self) -> list[bytes]:
        """Returns them as bytes."""
        return strings_list(self.c)


def strings_list(c: Any) -> list[bytes]:
    """Returns a `pybpe_strings` as a Python list."""
    offsets = ffi.unpack(c.offsets, c.count + 1)
    blob = ffi.buffer(c.bytes, offsets[-1]) if offsets[-1] else b""
    return [blob[a:b] for a, b in zip(offsets, offsets[1:])]


PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def path_bytes(path: PathLike) -> bytes:
    """Returns a path as C takes it. Raises ArgumentError if it is not a path, or has a NUL, which would end it in C."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise errors.ArgumentError(f"expected a path, not {type(path).__name__}")
    try:
        encoded = os.fsencode(path)
    except (TypeError, UnicodeEncodeError) as error:  # __fspath__ returns another type. Surrogates that are no bytes
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

    Python may raise KeyboardInterrupt, or the exception of another signal's handler, at the start of a Python function
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
