"""Opens compressed files as streams of their content.

    gzip    .gz
    bzip2   .bz2
    xz      .xz, .lzma
    zstd    .zst    needs Python 3.14 or the package backports.zstd
    epub    books: see epub.py
    zip     several files: see archives.py

The first bytes of a file show how it is compressed. If they do not, as for .lzma, the name of the file decides.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from ..errors import FormatError, MissingExtraError, UnsupportedError
from .streams import DerivedStream

ENDINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}
_ALL_ENDINGS = (*ENDINGS, ".zip")


def packing_of_name(path: str) -> str | None:
    """Returns how a file is compressed, judging by its name, or None."""
    name = path.lower()
    if not name.endswith(_ALL_ENDINGS):  # most files
        return None
    return next((packing for ending, packing in ENDINGS.items() if name.endswith(ending)), "zip")


_BLOCK = 1 << 17  # the number of bytes that are read at once
_GZIP_BLOCK = 1 << 14  # less for gzip: zlib's module copies what a step has not used
# What decompressing may take, so that a small file cannot take much memory: dictionaries of xz of up to 128 MiB, like
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


def unpacked(path: str, packing: str | None, stream: BinaryIO) -> BinaryIO:
    """Returns a stream of the decompressed content of a stream."""
    if packing is None:
        return stream
    if packing == "epub":
        from .epub import Epub  # its parsers take 20 ms

        return Epub(path, stream)  # type: ignore[return-value]
    if packing == "zip":
        raise FormatError(f"{path}: a zip archive, which may have several files: unpack it, and pass one of them")
    return _Unpacked(path, stream, packing, *_decompressors(path, packing))  # type: ignore[return-value]


def _decompressors(path: str, packing: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns what makes a decompressor for the first compressed stream of a file, and for those after it."""
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


class _Unpacked(DerivedStream):
    """The content of the compressed streams of a file, one after another. Zeros may separate and follow them, because
    tapes and xz pad files; anything else is an error. Errors name the file.

    bz2.BZ2File and lzma.LZMAFile end silently if a stream after the first is damaged. GzipFile and ZstdFile hold the
    GIL for longer.

    Args:
        path: the name of the file.
        packed: the file.
        packing: how it is compressed.
        first, following: see _decompressors.
    """

    def __init__(
        self, path: str, packed: BinaryIO, packing: str, first: Callable[[], Any], following: Callable[[], Any]
    ) -> None:
        self._first, self._following = first, following
        self._block = _GZIP_BLOCK if packing == "gzip" else _BLOCK
        self._may_be_empty = packing == "gzip"  # an empty file of another kind is damaged
        super().__init__(path, packed)

    def _begin(self) -> None:
        super()._begin()
        self._decompressor = self._first()
        self._waiting = b""
        self._read = 0  # bytes of the file

    def _read_block(self) -> bytes:
        block = self._source.read(self._block)
        self._read += len(block)
        return block

    def _next(self, size: int) -> bytes:
        try:
            return self._decompressed(size)
        except (EOFError, zlib.error, ValueError) as error:
            problem = str(error)
        except Exception as error:  # ZstdError and LZMAError, whose modules may be absent, are plain Exceptions
            if type(error).__name__ not in ("BadGzipFile", "ZstdError", "LZMAError") and not _is_bz2_error(error):
                raise
            problem = str(error)
        if problem.endswith(_MEMORY_ERRORS):
            raise UnsupportedError(
                f"{self.name}: decompressing takes more than 128 MiB of memory, because the file was compressed with a "
                "larger window or dictionary: decompress it first, with xz -d or zstd -d --long=31"
            )
        raise FormatError(f"{self.name}: damaged before byte {self._read}: {problem}", self._read)

    def _decompressed(self, size: int) -> bytes:
        while not self._decompressor.eof or self._follows():
            block = b""
            if self._decompressor.needs_input:
                block, self._waiting = self._waiting or self._read_block(), b""
                if not block:
                    if self._may_be_empty and not self._read:
                        return b""
                    raise EOFError("the file ends before the compressed stream does")
            data: bytes = self._decompressor.decompress(block, min(size, _STEP))
            if data:
                return data
        return b""

    def _follows(self) -> bool:
        """Returns whether another stream follows the one that has ended. If so, starts to decompress it."""
        rest = self._decompressor.unused_data or self._waiting or self._read_block()
        while rest and not (found := rest.lstrip(b"\0")):
            rest = self._read_block()
        if not rest:
            return False
        self._decompressor, self._waiting = self._following(), found
        return True


def _is_bz2_error(error: Exception) -> bool:
    """Returns whether bz2 raised an error because data is damaged: it is an OSError without an errno."""
    return isinstance(error, OSError) and error.errno is None


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
        """What follows the stream, after its end."""
        return self._stream.unused_data

    @property
    def needs_input(self) -> bool:
        """Whether `decompress` needs more data to go on."""
        return not self._stream.unconsumed_tail

    def decompress(self, data: bytes, size: int) -> bytes:
        """Returns at most `size` bytes. `data` must be empty unless the stream needs input."""
        return self._stream.decompress(data or self._stream.unconsumed_tail, size)
