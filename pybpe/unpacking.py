"""Compressed files as streams of what they hold.

gzip    .gz     zlib.decompress is in the standard library, as are the next two
bzip2   .bz2
xz      .xz, .lzma
zstd    .zst    needs Python 3.14 or the package backports.zstd
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from .errors import FormatError, MissingExtraError

ENDINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}


_ALL_ENDINGS = tuple(ENDINGS)


def packing_of_name(path: str) -> str | None:
    """How a file is compressed, by its name."""
    if not path.endswith(_ALL_ENDINGS):  # most files
        return None
    return next((packing for ending, packing in ENDINGS.items() if path.endswith(ending)), None)


def without_ending(path: str) -> str:
    """A name without the ending that says how the file is compressed."""
    if not path.endswith(_ALL_ENDINGS):
        return path
    return next(path.removesuffix(ending) for ending in ENDINGS if path.endswith(ending))


def unpacked(path: str, packing: str | None, stream: BinaryIO) -> BinaryIO:
    """The stream of what a compressed stream holds."""
    if packing is None:
        return stream
    return _Unpacked(path, stream, _OPENERS[packing](path, stream))  # type: ignore[return-value]


def _open_gzip(path: str, stream: BinaryIO) -> Any:
    import gzip

    return gzip.GzipFile(fileobj=stream)


def _open_bzip2(path: str, stream: BinaryIO) -> Any:
    import bz2

    return bz2.BZ2File(stream)


def _open_xz(path: str, stream: BinaryIO) -> Any:
    import lzma

    return lzma.LZMAFile(stream)


def _open_zstd(path: str, stream: BinaryIO) -> Any:
    return zstd_module(path).ZstdFile(stream)


_OPENERS: dict[str, Callable[[str, BinaryIO], Any]] = {
    "gzip": _open_gzip,
    "bzip2": _open_bzip2,
    "xz": _open_xz,
    "zstd": _open_zstd,
}


def zstd_module(path: str) -> Any:
    """The module for *.zst files; MissingExtraError says what to install."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise MissingExtraError(f"{path}: .zst files need a package: pip install 'pybpe[zstd]'") from None
    return zstd


class _Unpacked:
    """A decompressing stream whose errors name the file."""

    def __init__(self, path: str, packed: BinaryIO, stream: Any) -> None:
        self.name, self._packed, self._stream = path, packed, stream

    def readinto(self, buffer: memoryview) -> int:
        """See io.RawIOBase."""
        return int(self._checked(self._stream.readinto, buffer))

    def read(self, size: int = -1) -> bytes:
        """See io.RawIOBase."""
        return bytes(self._checked(self._stream.read, size))

    def seek(self, offset: int) -> None:
        """To a place in the unpacked data: what lies before it is unpacked, and perhaps unpacked again."""
        self._checked(self._stream.seek, offset)

    def _checked(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except (EOFError, zlib.error, ValueError) as error:
            problem = str(error)
        except Exception as error:  # ZstdError and LZMAError, whose modules may be absent, are plain Exceptions
            if type(error).__name__ not in ("BadGzipFile", "ZstdError", "LZMAError") and not _is_bz2_error(error):
                raise
            problem = str(error)
        offset = self._packed.tell()
        raise FormatError(f"{self.name}: damaged before byte {offset}: {problem}", offset)

    def __enter__(self) -> _Unpacked:
        return self

    def __exit__(self, *error: Any) -> None:
        self._packed.__exit__(*error)


def _is_bz2_error(error: Exception) -> bool:
    """bz2 raises a bare OSError, without an errno, for damaged data."""
    return isinstance(error, OSError) and error.errno is None
