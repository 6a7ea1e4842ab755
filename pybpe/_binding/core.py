"""The compiled module, and the code that every call to it needs: errors, handles and strings.

Only this package imports the compiled module. Each of its classes owns one C handle of csrc/pybpe.h, and keeps alive
the objects that the handle borrows. The package validates what C cannot (types, NULs in paths), and turns every error
code into an exception of errors.py. It adds no behavior: the header documents what each call does.

cffi releases the GIL around every call, so threads run them in parallel.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, Union

from .. import errors

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

try:
    from .._core import ffi as ffi
    from .._core import lib as lib
except ModuleNotFoundError as error:
    if error.name != "pybpe._core":
        raise
    raise errors.not_compiled(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) from None

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
    """A `pybpe_strings` with the memory it points to: some strings; or `data`, their bytes, and `offsets`, of type Q:
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
