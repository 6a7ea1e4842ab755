"""Opens files and standard input for reading, and decompresses them. The errors of these streams name the file."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, BinaryIO

from .. import _binding
from .._lazy import hashlib, numpy
from ..arguments import is_url, without_secrets
from ..errors import ArgumentError, FileError, FormatError, MissingExtraError, UnsupportedError, file_error, file_errors
from ..support.parallel import end_if_unwanted

_HASH_BLOCK = 1 << 18  # bytes. Fits in a CPU cache
JSON_HEAD_BYTES = 1 << 16  # for files that begin like JSON: the first lines show whether it is JSON lines
POINTER = b"version https://git-lfs.github.com/spec/"  # how a file begins that Git LFS has not fetched
PULL = "run `git lfs pull` in its repository"
_SAMPLED_WHOLE = 1 << 16  # bytes of a file
_READ_BYTES = 1 << 24  # the most bytes that are read at once, whatever length a damaged file claims


class InputStream(io.FileIO):
    """A file open for reading. Its errors name the file. A read returns fewer bytes than requested only at the end of
    the file, whatever the file system does."""

    def readinto(self, block: Any) -> int:
        view = memoryview(block)
        view = view.cast("B") if view.nbytes else view[:0]  # an empty view cannot be cast
        filled = 0
        with file_errors(self.name, "cannot be read"):
            while filled < len(view):
                got = super().readinto(view[filled:])
                if not got:
                    break
                filled += got
        return filled

    def read(self, size: int | None = -1) -> bytes:
        with file_errors(self.name, "cannot be read"):
            if size is None or size < 0:
                return super().readall()
            parts = []
            while size > 0 and (part := super().read(min(size, _READ_BYTES))):
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def readall(self) -> bytes:
        return self.read()


class UnchangedStream(InputStream):
    """A file open for reading. As a context manager, it raises FileChangedError after the block if somebody has written
    to the file meanwhile, because the bytes read may then be neither the old content nor the new one. (The size and the
    modification time show that. A file that was replaced by renaming is read to the end as it was. A pipe cannot be
    read twice, and has no such times.)

    Args:
        path: the file.
        compare: raises FileChangedError, here and after the block, for the status of a file that has changed.
    """

    def __init__(self, path: _binding.PathLike, compare: Callable[[os.stat_result], None] | None = None) -> None:
        super().__init__(path)
        self.status, self._compare = os.fstat(self.fileno()), compare
        try:
            self.check()
        except FileError:
            self.close()
            raise

    def check(self) -> None:
        """Raises FileChangedError if the file has changed."""
        if self._compare is not None:
            self._compare(os.fstat(self.fileno()))
        elif stat.S_ISREG(self.status.st_mode) and _content(os.fstat(self.fileno())) != _content(self.status):
            raise _changed(self.name, "somebody wrote to it")

    def check_name(self) -> None:
        """Raises FileChangedError if the name now belongs to another file."""
        with file_errors(self.name, "cannot be opened"):
            now = os.stat(self.name)
        if (now.st_dev, now.st_ino) != (self.status.st_dev, self.status.st_ino):
            raise _changed(self.name, "it was replaced")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            self.close()


def _content(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _changed(name: str | bytes | os.PathLike[str] | os.PathLike[bytes], how: str) -> FileError:
    return file_error(
        errno.ESTALE,
        f"{os.fsdecode(name)}: this file changed while it was read: {how}. Run again when nothing writes to it",
    )


def open_input(path: _binding.PathLike) -> InputStream:
    """Opens a local file for reading. Raises FileError if that fails; the stream raises it if a read fails."""
    with file_errors(_local(path), "cannot be opened"):
        return InputStream(path)


def open_unchanged(path: _binding.PathLike) -> UnchangedStream:
    """Opens a local file whose content must not change while it is read: see UnchangedStream. Raises FileError if that
    fails. The stream raises it if a read fails."""
    with file_errors(_local(path), "cannot be opened"):
        return UnchangedStream(path)


def read_file(path: _binding.PathLike) -> bytes:
    """Returns the content of a local file. Raises FileError: it cannot be read, or was changed meanwhile. FormatError:
    it is a pointer of Git LFS."""
    with open_unchanged(path) as stream:
        return without_pointer(stream.read(), path)


def read_toml(path: _binding.PathLike) -> Any:
    """Returns the content of a TOML file. Raises FileError, as read_file, and FormatError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # pragma: no cover (Python 3.10)
        import tomli as tomllib
    data = read_file(path)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except ValueError as error:  # also if it is not UTF-8
        raise FormatError(f"{_binding.path_text(path)}: not a TOML file: {error}") from None


def without_pointer(data: bytes, path: _binding.PathLike) -> bytes:
    """Returns the content of a file. Raises FormatError for a pointer that Git has in place of a large file."""
    if data.startswith(POINTER):
        raise FormatError(f"{_binding.path_text(path)}: a pointer of Git LFS, not the file itself: {PULL}")
    return data


class Snapshot:
    """Reads several local files as they are at one moment. As a context manager, it raises FileChangedError after the
    block if one of them was changed or replaced meanwhile."""

    def __init__(self) -> None:
        self._streams: list[UnchangedStream] = []

    def read(self, path: _binding.PathLike) -> bytes:
        """Returns the content of a file. Raises FileError if it cannot be read."""
        self._streams.append(open_unchanged(path))
        return without_pointer(self._streams[-1].read(), path)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ExitStack() as stack:
            for stream in self._streams:
                stack.callback(stream.close)
            for stream in self._streams if kind is None else ():
                stream.check()
                stream.check_name()


def _local(path: _binding.PathLike) -> str:
    """Returns the name of a local file. Raises ArgumentError for a URL, and for anything that is not a path."""
    name = _binding.path_text(path)
    if is_url(name):
        raise ArgumentError(f"{without_secrets(name)}: only text can be read from a URL: copy this file here first")
    return name


class StandardInput(InputStream):
    """Standard input, as `open_input` opens a file. Never reads again after its end, because on a terminal such a read
    would wait for Ctrl-D."""

    def __init__(self) -> None:
        super().__init__(0, closefd=False)
        self.name = "standard input"
        self._ended = False

    def readinto(self, block: Any) -> int:
        got = 0 if self._ended else super().readinto(block)
        self._ended = self._ended or got < memoryview(block).nbytes
        return got

    def read(self, size: int | None = -1) -> bytes:
        data = b"" if self._ended else super().read(size)
        self._ended = self._ended or size is None or size < 0 or len(data) < size
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._ended = False
        return super().seek(offset, whence)


class DerivedStream(io.RawIOBase):
    """A stream that is made of another one, from its start: its decompressed content, or its text in UTF-8. To move
    back, it begins again.

    Args:
        name: its name in errors.
        source: the other stream. When this object ends as a context manager, the source does.
        blocks: blocks(source) yields the content, in blocks that are not empty.
    """

    def __init__(self, name: str, source: BinaryIO, blocks: Callable[[BinaryIO], Iterator[bytes]]) -> None:
        self.name, self._source, self._make = name, source, blocks
        self._begin()

    def _begin(self) -> None:
        self._blocks: Iterator[bytes] | None = self._make(self._source)
        self._block, self._at, self._given = b"", 0, 0

    def _take(self, size: int) -> bytes:
        """Returns the next bytes, at most `size`, or b"" at the end."""
        if self._at == len(self._block):
            blocks, self._blocks = self._blocks, None  # an error below leaves it so
            if blocks is None:
                raise FormatError(f"{self.name}: cannot be read further after an error: open it again")
            self._block, self._at, self._blocks = next(blocks, b""), 0, blocks
        data = self._block[self._at : self._at + size]
        self._at += len(data)
        self._given += len(data)
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer. Fills only its start if the stream ends."""
        return _binding.fill(buffer, self._take)

    def tell(self) -> int:
        return self._given

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to an offset from the start. Reads everything before it, again if necessary."""
        if offset < self._given:
            self._source.seek(0)
            self._begin()
        while self._given < offset and self._take(offset - self._given):
            pass
        return self._given

    def close(self) -> None:
        self._source.close()
        super().close()

    def __exit__(self, *error: Any) -> None:
        self._source.__exit__(*error)


class Peekable(io.BufferedReader):
    """A stream whose first JSON_HEAD_BYTES can be looked at before they are read."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream, JSON_HEAD_BYTES)
        self._stream = stream

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)  # which may look whether the file has changed


class Limited:
    """The next `size` bytes of a stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.name, self._stream, self._left = stream.name, stream, size

    def readinto(self, buffer: memoryview) -> int:
        """See io.RawIOBase."""
        got: int = self._stream.readinto(buffer[: self._left]) or 0  # type: ignore[attr-defined]
        self._left -= got
        return got

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)


def read_items(stream: BinaryIO, dtype: str | numpy.dtype[Any], count: int) -> numpy.ndarray[Any, Any]:
    """Reads the next `count` items of a file that `open_input` opened. Returns an array of shape (count,). Shorter at
    the end of the file."""
    items = numpy.empty(count, dtype)
    got: int = stream.readinto(items)  # type: ignore[attr-defined]
    return items[: got // items.itemsize]


def sample_of(path: str, size: int, block: int = 1 << 12) -> bytes:
    """Returns a hash of a small file, or of three blocks of another one."""
    parts = [(0, size)] if size <= _SAMPLED_WHOLE else [(start, block) for start in (0, size // 2, size - block)]
    found = b""
    with file_errors(path, "cannot be read"), open(path, "rb") as stream:
        for start, length in parts:
            stream.seek(start)
            found += stream.read(length)
    return hashlib.blake2b(found, digest_size=16).digest()


def file_sha256(path: str) -> str:
    """Returns the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(_HASH_BLOCK))
    with open_input(path) as stream:
        while got := stream.readinto(block):
            end_if_unwanted()
            digest.update(block[:got])
    return digest.hexdigest()


# ----------------------------------------------------------------------------------------------------
# Compressed files, as streams of their content
#
#     gzip    .gz
#     bzip2   .bz2
#     xz      .xz, .lzma
#     zstd    .zst    needs Python 3.14 or the package backports.zstd
#     epub    books: see zips.py
#     zip     several files: see zips.py
#
# The first bytes of a file show how it is compressed. If they do not, as for .lzma, the name of the file decides.

ENDINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}
_ALL_ENDINGS = (*ENDINGS, ".zip")


def packing_of_name(path: str) -> str | None:
    """Returns how a file is compressed, judging by its name, or None."""
    name = path.lower()
    if not name.endswith(_ALL_ENDINGS):  # most files
        return None
    return next((packing for ending, packing in ENDINGS.items() if name.endswith(ending)), "zip")


_BLOCK = 1 << 17  # the number of bytes that are read at once
_GZIP_BLOCK = 1 << 14  # less for gzip: zlib's module copies the rest of a step
# Limits of decompression, so that a small file cannot take much memory: dictionaries of xz of up to 128 MiB, like
# zstd's own limit for windows. xz -9 needs 65 MiB.
_MEMORY = 130 << 20
_MEMORY_ERRORS = ("Memory usage limit exceeded", "Frame requires too much memory for decoding")
_STEP = 1 << 15  # the number of bytes that are decompressed at once: Python's modules join longer results from parts

PACKING_MARKS = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    *((b"BZh%d" % level + block, "bzip2") for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
)


_FIRST_TWO = frozenset((b"PK", *(mark[:2] for mark, _ in PACKING_MARKS)))
ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")  # of an archive, and of an empty one
_EPUB = b"mimetypeapplication/epub+zip"  # at 30: the first file of the archive


def packing_of_content(head: bytes) -> str | None:
    """Returns how a file is compressed, judging by its first bytes, or None."""
    if head[:2] not in _FIRST_TWO:  # most files
        return None
    if head[:2] == b"PK" and head[30:].startswith(_EPUB):
        return "epub"
    return next((packing for mark, packing in PACKING_MARKS if head.startswith(mark)), None)


def without_ending(path: str) -> str:
    """Returns a file name without the ending that shows its compression."""
    name = path.lower()
    return next((path[: -len(ending)] for ending in ENDINGS if name.endswith(ending)), path)


def decompressed(path: str, packing: str | None, stream: BinaryIO) -> BinaryIO:
    """Returns a stream of the decompressed content of a stream."""
    if packing is None:
        return stream
    if packing == "zip":
        raise FormatError(f"{path}: a zip archive, which may have several files: unpack it, and pass one of them")
    blocks = partial(_decompressed, path, packing, *_decompressors(path, packing))
    return DerivedStream(path, stream, blocks)  # type: ignore[return-value]


def _decompressors(path: str, packing: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns functions that make a decompressor for the first compressed stream of a file, and for those after it."""
    if packing == "gzip":
        return _Inflater, _Inflater
    if packing == "bzip2":
        import bz2

        return bz2.BZ2Decompressor, bz2.BZ2Decompressor
    if packing == "xz":
        import lzma

        first, following = (
            partial(lzma.LZMADecompressor, form, _MEMORY) for form in (lzma.FORMAT_AUTO, lzma.FORMAT_XZ)
        )
        return first, following
    decompressor = zstd_module(path).ZstdDecompressor
    return decompressor, decompressor


def zstd_module(path: str) -> Any:
    """Returns the module for *.zst files. Raises MissingExtraError, which says what to install."""
    try:
        if sys.version_info >= (3, 14):  # pragma: no cover (newer versions of Python)
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise MissingExtraError(f"{path}: .zst files need a package: pip install 'pybpe[zstd]'") from None
    return zstd


def _decompressed(
    path: str, packing: str, first: Callable[[], Any], following: Callable[[], Any], packed: BinaryIO
) -> Iterator[bytes]:
    """Yields the content of the compressed streams of a file, one after another. Zeros may separate and follow them,
    because tapes and xz pad files. Anything else is an error. Errors name the file.

    bz2.BZ2File and lzma.LZMAFile end silently if a stream after the first is damaged. GzipFile and ZstdFile hold the
    GIL for longer.

    Args:
        path: the name of the file.
        packing: how it is compressed.
        first, following: see _decompressors.
        packed: the file.
    """
    read = 0  # bytes of the file

    def more() -> bytes:
        nonlocal read
        block = packed.read(_GZIP_BLOCK if packing == "gzip" else _BLOCK)
        read += len(block)
        return block

    try:
        decompressor, waiting = first(), more()
        if packing == "gzip" and not waiting:  # an empty file of another kind is damaged
            return
        while True:
            while not decompressor.eof:
                block = b""
                if decompressor.needs_input:
                    block, waiting = waiting or more(), b""
                    if not block:
                        raise EOFError("the file ends before the compressed stream does")
                if data := decompressor.decompress(block, _STEP):
                    yield data
            waiting = (decompressor.unused_data or waiting or more()).lstrip(b"\0")
            while not waiting and (block := more()):
                waiting = block.lstrip(b"\0")
            if not waiting:
                return
            decompressor = following()
    except (EOFError, zlib.error, ValueError) as error:
        problem = str(error)
    except Exception as error:  # ZstdError and LZMAError, whose modules may be absent, are plain Exceptions
        is_of_bz2 = isinstance(error, OSError) and error.errno is None
        if type(error).__name__ not in ("BadGzipFile", "ZstdError", "LZMAError") and not is_of_bz2:
            raise
        problem = str(error)
    if problem.endswith(_MEMORY_ERRORS):
        raise UnsupportedError(
            f"{path}: decompressing takes more than 128 MiB of memory, because the file was compressed with a "
            "larger window or dictionary: decompress it first, with xz -d or zstd -d --long=31"
        )
    raise FormatError(f"{path}: damaged before byte {read}: {problem}", read)


class _Inflater:
    """Decompresses one stream of gzip, as bz2.BZ2Decompressor does one of bzip2."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # 16: with the header and checksum of gzip

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """The object that follows the stream, after its end."""
        return self._stream.unused_data

    @property
    def needs_input(self) -> bool:
        """Whether `decompress` needs more data to go on."""
        return not self._stream.unconsumed_tail

    def decompress(self, data: bytes, size: int) -> bytes:
        """Returns at most `size` bytes. `data` must be empty unless the stream needs input."""
        return self._stream.decompress(data or self._stream.unconsumed_tail, size)
