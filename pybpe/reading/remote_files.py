"""Files that URLs name. A RemoteFile is one as a run first saw it; InputFile holds it, and opens it at an offset like a
local file, so nothing else needs to know where a file is. Folders and globs mean the same as on a local disk (see
files.py), and give the same order."""

from __future__ import annotations

import errno
import glob
import hashlib
import io
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, BinaryIO

from ..errors import FileError, FormatError, file_error
from ..support.parallel import map_ordered
from .corpus_folder import is_hidden, own_files, saved_dataset
from .remote_objects import WEB, Address, Answer, NoRangeError, ask, is_object, names

_LEAST_BYTES = 1 << 16  # what a request asks for at least: enough to recognize a file
_PART_BYTES = 1 << 22
_CONNECTIONS = 4
_READS_BEFORE_AHEAD = 2  # requests in sequence
_KEPT_ENCODINGS = ("", "identity", "gzip", "x-gzip", "zstd")  # what unpacking.py recognizes


@dataclass(frozen=True)
class RemoteFile:
    """A remote file as it was when the run began. It can be sent to workers on other machines, which need the same
    access to it.

    Attributes:
        address: its URL.
        length: the number of bytes.
        version: the ETag or version, and the time of the last change, as the server gives them, or "".
        is_divisible: whether it can be read in ranges. A web server may send only the whole file.
    """

    address: Address
    length: int
    version: tuple[str, str] = ("", "")
    is_divisible: bool = True

    @classmethod
    def look(cls, url: str) -> tuple[RemoteFile, BinaryIO | None]:
        """Looks at a file. Returns it, and a stream of it; None if it can be read only once.

        Raises:
            ArgumentError: pybpe cannot read such URLs. FileError: the file cannot be read. MissingExtraError: a package
            is not installed. FormatError: the server sends a web page instead.
        """
        address = Address.parse(url)
        try:
            answer, is_divisible = ask(address, 0, _LEAST_BYTES), True
        except NoRangeError:  # an empty object has no ranges, either
            answer = ask(address)
            is_divisible = answer.size == 0
        if address.scheme in WEB:
            _check_content(address.name, answer)
        file = cls(address, answer.size, (answer.tag, answer.modified), is_divisible)
        return file, file.open(head=b"".join(answer.blocks)) if is_divisible else None

    @property
    def name(self) -> str:
        """The URL without secrets."""
        return self.address.name

    @property
    def size(self) -> int | None:
        """The number of bytes; None if the file can be read only once, from its start."""
        return self.length if self.is_divisible else None

    @property
    def identity(self) -> tuple[object, ...]:
        """What distinguishes this file from others, for runs that resume. The query of a URL belongs to it, as a hash,
        only if the server gives neither an ETag nor a time: a new signature of the same file changes nothing."""
        query = "" if any(self.version) else hashlib.blake2b(self.address.url.encode(), digest_size=16).hexdigest()
        return (self.name, self.length, *self.version, query)

    def open(self, start: int = 0, end: int | None = None, head: bytes = b"") -> BinaryIO:
        """Opens the file at an offset. A read raises FileChangedError if the file has changed since the run looked at
        it.

        Args:
            start: the position of the stream.
            end: where the reader will stop, if it is known.
            head: the first bytes, if they are known.
        """
        stream = io.BufferedReader(_Stream(self, end, head), _LEAST_BYTES)
        if start:
            stream.seek(start)
        return stream

    def part(self, span: tuple[int, int]) -> bytes:
        """Returns the bytes from span[0] to span[1]."""
        try:
            data = b"".join(self._unchanged(ask(self.address, *span)))
        except NoRangeError:
            raise self._changed(f"ends before byte {span[0] + 1}, or can only be read as a whole") from None
        if len(data) != span[1] - span[0]:
            problem = f"the server sent {len(data)} bytes of the range {span[0]} to {span[1]}"
            raise file_error(errno.EIO, f"{self.name}: cannot be read: {problem}")
        return data

    def whole(self) -> Iterator[bytes]:
        """Yields the whole file in blocks."""
        return self._unchanged(ask(self.address))

    def _unchanged(self, answer: Answer) -> Iterator[bytes]:
        """Returns the bytes of an answer. Raises FileChangedError if it is of another version of the file. The ETag
        alone decides, if there is one, because a copy with the same content may be newer."""
        tag, modified = self.version
        if answer.size != self.length:
            raise self._changed(f"has {answer.size} bytes, but had {self.length}")
        if (answer.tag, answer.modified if not tag else modified) != self.version:
            raise self._changed("has another " + ("ETag or version" if tag or answer.tag else "modification time"))
        return answer.blocks

    def _changed(self, what: str) -> FileError:
        return file_error(
            errno.ESTALE,
            f"{self.name}: this file changed after this run first looked at it: it now {what}. Run again when nothing"
            " writes to it",
        )


def _check_content(name: str, answer: Answer) -> None:
    """Raises FormatError for a web page in place of the file, such as a page about the file or for logging in; and for
    a compression that pybpe does not know."""
    kind = answer.attributes.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml") and not name.lower().endswith((".html", ".htm", ".xhtml")):
        raise FormatError(
            f"{name}: not this file, but a web page (text/html): pass the URL of the file itself, as the browser's"
            " download link has it"
        )
    encoding = answer.attributes.get("Content-Encoding", "").strip().lower()
    if encoding not in _KEPT_ENCODINGS:
        raise FormatError(f"{name}: the server sends it compressed with {encoding}: download it first")


class _Stream(io.RawIOBase):
    """The bytes of a RemoteFile. It reads ahead over several connections when it knows how far its reader will read, or
    when its reader has read some parts in sequence; so one reader is not limited by the speed of one connection.
    Otherwise it requests only what is asked for, because reading a few bytes somewhere must not transfer megabytes."""

    def __init__(self, file: RemoteFile, end: int | None, head: bytes) -> None:
        self.name = file.name
        self._file, self._end = file, end
        self._at = 0
        self._rest = memoryview(head)  # the bytes from _at that have been received
        self._ahead: Iterator[bytes] = iter(())
        self._requests = 0  # in sequence

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.is_divisible

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        to = offset + (0, self._at, self._file.length)[whence]
        skipped = to - self._at
        if not 0 <= skipped <= len(self._rest):
            self._forget()
            skipped = 0
        self._at, self._rest = to, self._rest[skipped:]
        return to

    def tell(self) -> int:
        return self._at

    def readinto(self, block: Any) -> int:
        if not self._rest and self._at < self._file.length:
            self._rest = memoryview(self._next(len(block)))
        size = min(len(block), len(self._rest))
        block[:size] = self._rest[:size]
        self._at, self._rest = self._at + size, self._rest[size:]
        return size

    def _next(self, wanted: int) -> bytes:
        part = next(self._ahead, b"")
        if not part and (self._file.is_divisible or self._at == 0):
            self._ahead = self._parts(wanted) if self._file.is_divisible else self._file.whole()
            self._requests += 1
            part = next(self._ahead, b"")
        if not part or self._at + len(part) > self._file.length:
            raise file_error(errno.EIO, f"{self.name}: cannot be read: the server sent too few bytes, or too many")
        return part

    def _parts(self, wanted: int) -> Iterator[bytes]:
        stop = self._at + max(wanted, _LEAST_BYTES)
        if self._end is not None and self._at < self._end:
            stop = self._end
        elif self._requests >= _READS_BEFORE_AHEAD:
            stop = self._file.length
        stop = min(stop, self._file.length)
        spans = [(at, min(at + _PART_BYTES, stop)) for at in range(self._at, stop, _PART_BYTES)]
        return map_ordered(self._file.part, spans, min(_CONNECTIONS, len(spans)))

    def _forget(self) -> None:
        self._rest, self._requests = memoryview(b""), 0
        if isinstance(self._ahead, Generator):
            self._ahead.close()
        self._ahead = iter(())

    def close(self) -> None:
        self._forget()
        super().close()


# ----------------------------------------------------------------------------------------------------
# Folders and globs


def remote_files(url: str) -> tuple[list[str], list[str], bool]:
    """Returns the URLs of the files that a URL, folder or glob names, sorted; the URLs of files that pybpe wrote; and
    whether `url` is the name of a file.

    Raises:
        ArgumentError: pybpe cannot read such URLs. FileError: the store cannot be read.
    """
    address = Address.parse(url)
    if address.scheme in WEB or (not url.endswith("/") and is_object(address)):
        return [url], [], True
    parts = [part for part in address.path.split("/") if part]
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    folder = "/".join((f"{address.scheme}://{address.bucket}", *parts[:fixed]))
    found = sorted(names(Address.parse(folder)))
    if parts[fixed:]:
        return (*_of_glob(folder, found, parts[fixed:], "/" if url.endswith("/") else ""), False)
    if not found and not url.endswith("/"):
        return [url], [], True  # opening it raises an error
    return (*_of_folder(folder, found), False)


def _of_folder(folder: str, found: list[str]) -> tuple[list[str], list[str]]:
    """Returns the files of a folder that make up a corpus, and those that pybpe wrote. `found` has the paths of all
    files in it."""
    inside = defaultdict[str, tuple[list[str], set[str]]](lambda: ([], set()))  # the files and folders in each folder
    for path in found:
        place = folder
        *folders, name = path.split("/")
        for each in folders:
            inside[place][1].add(each)
            place += f"/{each}"
        if not any(map(is_hidden, folders)):
            inside[place][0].append(name)
    files = list[tuple[str, int, str, bool]]()
    for place, (here, folders_here) in inside.items():

        def content(name: str, place: str = place) -> bytes:
            _, stream = RemoteFile.look(f"{place}/{name}")
            return b"" if stream is None else stream.read()

        own = own_files(list(folders_here), here, content)
        listed = saved_dataset(place, here, content)
        first = None if listed is None else f"{place}/{min(listed, default='')}"
        for number, name in enumerate(here if listed is None else listed):
            if not is_hidden(name):
                files.append((first or f"{place}/{name}", number, f"{place}/{name}", name in own))
    files.sort()
    return [url for *_, url, is_own in files if not is_own], [url for *_, url, is_own in files if is_own]


def _of_glob(folder: str, found: list[str], pattern: list[str], end: str) -> tuple[list[str], list[str]]:
    """Returns what `_of_folder` does, for the files and folders that a glob matches. `found` is sorted. `end` is "/" if
    the glob matches only folders."""
    folders = {path[:at] for path in found for at, char in enumerate(path) if char == "/"}
    places = {path + end: path in folders for path in (*folders, *([] if end else found))}
    kept, left_out = list[str](), list[str]()
    for place, is_folder in sorted(places.items()):
        if not _matches(place.strip("/").split("/"), pattern):
            continue
        place = place.rstrip("/")
        if not is_folder:
            kept.append(f"{folder}/{place}")
        elif "**" not in pattern:  # otherwise it matches the files in all subfolders already
            inside = found[bisect_left(found, f"{place}/") : bisect_left(found, f"{place}0")]  # 0 follows /
            of_folder, own = _of_folder(f"{folder}/{place}", [path[len(place) + 1 :] for path in inside])
            kept += of_folder
            left_out += own
    return kept, left_out


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or bool(parts and not is_hidden(parts[0]) and _matches(parts[1:], pattern))
    return bool(parts) and _fits(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _fits(name: str, pattern: str) -> bool:
    if not glob.has_magic(pattern):
        return name == pattern
    return fnmatchcase(name, pattern) and (pattern.startswith(".") or not is_hidden(name))
