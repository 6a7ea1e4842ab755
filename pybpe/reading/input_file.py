"""One file of a corpus as a run first saw it: where it is, how to read it, and how to notice that it has changed. The
file is on this machine, or a URL names it (see remote.py).

A run looks at every file once, before it reads any of them. Every later reader of the file or of a range of it, on this
or another machine, compares its size and modification time with the first ones, before the first byte and after the
last. So if a file is truncated, grows or is replaced during a run, pybpe raises an error and never uses only part of
the text.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from .. import _binding
from ..arguments import can_pass, is_url, param, without_secrets
from ..errors import ArgumentError, FileError, FormatError, file_error, file_errors, note, warn
from .charset import (
    decoded,
    encoding_of,
    is_crlf,
    is_crlf_throughout,
    may_be_crlf,
    may_be_utf8,
    utf16_without_mark,
    without_returns,
)
from .corpus_folder import Found
from .file_types import (
    HEAD_BYTES,
    RANKS_ENDING,
    NoText,
    binary_kind,
    holds_records,
    is_json_name,
    no_text,
    row_kind,
    says_records,
)
from .inputs import STDIN, first_of
from .streams import (
    JSON_HEAD_BYTES,
    POINTER,
    Limited,
    Peekable,
    StandardInput,
    UnchangedStream,
    decompressed,
    open_input,
    packing_of_content,
    packing_of_name,
)

if TYPE_CHECKING:
    from .remote import RemoteFile
    from .zips import Archived

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as the one of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Set by a command that makes something of its inputs: then an empty one is an error.
needs_text: ContextVar[bool] = ContextVar("needs_text", default=False)


class InputFile(NamedTuple):
    """A file as it was when the run began.

    Attributes:
        path: the path of the file, or its URL without secrets. STDIN is standard input.
        size, mtime_ns: its size in bytes and its modification time. `size` is None if this is not a regular file. Then
            changes cannot be noticed.
        packing: how it is compressed (see streams.py), or None. If this is not a regular file, `open` finds out.
        encoding: Python's name of the encoding of its text. None is UTF-8, or not known yet (see `decided`).
        folder: the base of a relative path. "" is the current folder of the process that reads.
        remote: the file, if a URL names it, otherwise None.
        form: its kind, judging by its content and its name: "text", "jsonl", "parquet" or "arrow", or "" for a
            stream that only its reader can look at (see `open_in_form`).
        has_mark: whether it begins with a byte order mark, which shows the encoding and is not read as text.
        is_empty: whether it is known to have no text: no bytes, or only what marks its compression or encoding.
        inside: the archive that has the file, and where. Its path then begins with that of the archive.
        starts_in_utf8: whether its first bytes are UTF-8, if its encoding is not known yet, otherwise None.
        is_crlf: whether all lines end with \\r\\n, which is read as \\n. None if the first line does, and `decided`
            finds out about the others, or if the first bytes of a stream are to show it.
    """

    path: str
    size: int | None = None
    mtime_ns: int = 0
    packing: str | None = None
    encoding: str | None = None
    folder: str = ""
    remote: RemoteFile | None = None
    form: str = "text"
    has_mark: bool = False
    is_empty: bool = False
    starts_in_utf8: bool | None = None
    is_crlf: bool | None = False
    inside: tuple[InputFile, Archived] | None = None

    @classmethod
    def of(cls, path: str, encoding: str | None = None, called: str | None = None) -> InputFile:
        """Looks at a file. `encoding` is None if the file is to show it. `called` is its name in errors, if different.

        Raises:
            FileError: the file cannot be opened.
            FormatError: the file is not text. The message names its kind, and the remedy.
        """
        file, what = cls.look(path, encoding)
        if what is not None:
            raise refusal(called or file.path, what)
        return file

    @classmethod
    def look(cls, path: str, encoding: str | None = None) -> tuple[InputFile, NoText | None]:
        """Looks at a file. Returns the file, and its kind if it is not text, or None."""
        if is_url(path):
            return cls._look_at_url(path, encoding)
        if path == STDIN:
            return cls._unread(path, encoding), None
        start = _binding.FileStarts([path], JSON_HEAD_BYTES, JSON_HEAD_BYTES)
        return cls.of_start(path, encoding, start.sizes[0], start.modified[0], bytes(start.data[: start.offsets[1]]))

    @classmethod
    def of_start(
        cls, path: str, encoding: str | None, size: int, mtime_ns: int, head: bytes
    ) -> tuple[InputFile, NoText | None]:
        """Like `look`, for a local file with this start, which may be missing (see FileStarts)."""
        if size == _binding.FileStarts.UNREAD:
            status = _status(path)
            if not stat.S_ISREG(status.st_mode):
                return cls._unread(path, encoding), None
            size, mtime_ns = status.st_size, status.st_mtime_ns
            with open_input(path) as stream:
                head = stream.read(JSON_HEAD_BYTES)
            if head and not size:  # as in /proc: only reading shows the length
                return cls._unread(path, encoding), None
        packing = _packing_of(head, path)
        if packing == "zip":
            return cls(path, size, mtime_ns, packing, encoding, form=packing), None
        if packing is not None or len(head) < min(size, JSON_HEAD_BYTES):
            with open_input(path) as stream:
                head = _unpacked(path, packing, stream).read(JSON_HEAD_BYTES)
        return cls(path, size, mtime_ns, packing, encoding)._described(head)

    @classmethod
    def _unread(cls, path: str, encoding: str | None) -> InputFile:
        """Returns a stream, whose content only its reader can look at."""
        return cls(path, encoding=encoding, form=form_of_name(path))

    @classmethod
    def _look_at_url(cls, url: str, encoding: str | None) -> tuple[InputFile, NoText | None]:
        from .remote import RemoteFile

        remote, stream = RemoteFile.look(url)
        name = without_secrets(url)
        with stream:
            head = stream.read(JSON_HEAD_BYTES)
            if (packing := _packing_of(head, name)) == "zip":
                return cls(name, remote.size, 0, packing, encoding, "", remote, packing), None
            if packing is not None:
                stream.seek(0)
                head = _unpacked(name, packing, stream).read(JSON_HEAD_BYTES)
        return cls(name, remote.size, 0, packing, encoding, "", remote)._described(head)

    def unarchived(self) -> tuple[Found, list[tuple[InputFile, NoText | None]]]:
        """Returns the files in an archive, found like the files of a folder, and the results of `look` for kept ones.

        Raises:
            FormatError: the archive is damaged, or has a file that cannot be read.
        """
        from .zips import files_of_archive

        with self.open_stored() as stream:
            found, places = files_of_archive(self.path, stream)
        return found, [self._look_inside(path, place) for path, place in places.items()]

    def _look_inside(self, path: str, place: Archived) -> tuple[InputFile, NoText | None]:
        file = InputFile(path, place.size, self.mtime_ns, None, self.encoding, inside=(self, place))
        with file.open_stored() as stream:
            head = stream.read(JSON_HEAD_BYTES)
        file = file._replace(packing=_packing_of(head, path))
        if file.packing == "zip":
            return file, NoText("a zip archive in another", "unpack the outer one, and pass the folder")
        if file.packing is not None:
            with _unpacked(path, file.packing, file.open_stored()) as stream:
                head = stream.read(JSON_HEAD_BYTES)
        file, what = file._described(head)
        if what is None and file.has_rows:
            what = NoText(f"{file.form} in an archive", "unpack it, and pass the folder")
        return file, what

    def _described(self, head: bytes) -> tuple[InputFile, NoText | None]:
        """Like `look`, judging by the first JSON_HEAD_BYTES of the text. A byte order mark shows the
        encoding if the user does not say it."""
        if self.packing == "epub":  # whose text comes as UTF-8
            self = self._replace(encoding="utf-8")
        mark, marked = next((pair for pair in _BYTE_ORDER_MARKS if head.startswith(pair[0])), (b"", None))
        encoding = self.encoding or (None if marked == "utf-8" else marked)
        starts_in_utf8 = may_be_utf8(head) if self.encoding is None and marked is None else None
        if starts_in_utf8 is False or (starts_in_utf8 and b"\0" in head and head.count(0) * 4 > len(head)):
            encoding = None if says_records(self.path) else utf16_without_mark(head)
        text = head
        if encoding not in (None, "utf-8"):
            with suppress(Exception):  # whatever a codec raises, reading raises an error that says where
                text = codecs.getincrementaldecoder(encoding)("ignore").decode(head).encode("utf-8", "ignore")
        form = form_of_name(self.path) or ("jsonl" if holds_records(text, self.path) else "text")
        file = self._replace(encoding=None if encoding == "utf-8" else encoding, form=form, has_mark=marked is not None)
        file = file._replace(is_empty=head == mark, starts_in_utf8=starts_in_utf8 if encoding is None else None)
        may_be = form == "text" and (is_crlf(text) if len(head) < JSON_HEAD_BYTES else may_be_crlf(text))
        file = file._replace(is_crlf=None if may_be and self.packing != "epub" else False)
        what = no_text(head[:HEAD_BYTES], self.path)
        if what is None and file.encoding is None and not file.has_rows:
            what = binary_kind(head[:HEAD_BYTES])
        return file, what

    def decided(self, keep_crlf: bool, called: str | None = None) -> InputFile:
        """Returns the file with the encoding of its text, and whether its lines end with \\r\\n. The content decides
        unless something has shown it.

        Args:
            keep_crlf: whether \\r\\n is read as it is.
            called: the name of the file in errors, if different.

        Raises:
            FormatError: no encoding is clearly the best guess.
        """
        file = self._in_its_encoding(called)
        if keep_crlf or file.has_rows or file.form == "jsonl":
            return file._replace(is_crlf=False)
        if file.size is None or file.is_crlf is not None:
            return file._replace(is_crlf=None if file.size is None else file.is_crlf)
        with file.open() as stream:
            return file._replace(is_crlf=is_crlf_throughout(stream))

    def _in_its_encoding(self, called: str | None) -> InputFile:
        """Returns the file with the encoding of its text. Records are in UTF-8."""
        start, size = self.starts_in_utf8, self.size
        if start is None:
            return self
        file = self._replace(starts_in_utf8=None)
        can_seek = self.remote is None and not self.is_sequential
        if self.form != "text" or size is None or (start and (not can_seek or size <= JSON_HEAD_BYTES)):
            return file
        if start and all(map(may_be_utf8, _looks(file.location, size))):
            return file
        with file.open() as stream:
            if can_seek and size > _PARTS * _PART_BYTES:
                parts = [_lines_at(stream, at, _PART_BYTES) for at in _spread(size, _PART_BYTES, _PARTS)]
                encoding = encoding_of(called or _shown(self.path), parts, False)
            else:
                encoding = _encoding_of_start(called or _shown(self.path), stream, _PARTS * _PART_BYTES)
        return file._replace(encoding=encoding)

    def in_form(self, documents: str) -> InputFile:
        """Returns the file with the form in which it is read. Unless its name decides that, `documents` does, as in
        ReadOptions. With "auto", the content decides."""
        if documents == "auto" or self.has_rows or says_records(self.path):
            return self
        return self._replace(form="jsonl" if documents == "jsonl" else "text")

    def anchored(self) -> InputFile:
        """Returns the same file for a process whose current folder may differ."""
        if self.inside is not None:
            archive, place = self.inside
            return self._replace(inside=(archive.anchored(), place))
        return self if self.remote is not None else self._replace(folder=os.getcwd())

    @property
    def paths(self) -> Sequence[str]:
        """The path, as SmallFiles have several."""
        return (self.path,)

    @property
    def location(self) -> str:
        """The path to open, or the URL without secrets."""
        return self.path if self.remote is not None or not self.folder else os.path.join(self.folder, self.path)

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Where the file is, its version, and how it is read: another file with the same name has another one."""
        if self.inside is not None:
            archive, place = self.inside
            return (*archive.fingerprint, self.path, *place, self.packing, self.encoding, self.is_crlf)
        if self.remote is not None:
            return (*self.remote.fingerprint, self.packing, self.encoding, self.is_crlf)
        return (self.path, self.size, self.mtime_ns, self.packing, self.encoding, self.is_crlf, self.folder)

    @property
    def is_sequential(self) -> bool:
        """Whether the file can only be read from its start, because offsets in the text are not offsets in the file, or
        it is a stream of rows."""
        is_text = self.packing is None and self.encoding is None and not self.is_crlf and self.form != "arrow"
        return not is_text or self.inside is not None

    @property
    def has_rows(self) -> bool:
        """Whether its documents are rows."""
        return self.form in ("parquet", "arrow")

    @property
    def known_size(self) -> int | None:
        """The number of bytes of text, or None if the size of the file does not show it."""
        return None if self.is_sequential else self.size

    def open(self, start: int = 0, end: int | None = None) -> BinaryIO:
        """Opens the file for reading, and decompresses it if needed.

        Args:
            start: the offset in the text where the stream begins.
            end: the offset where it ends. None: it ends with the file, and can seek.

        Raises:
            FileChangedError: the file has changed since the run looked at it. As a context manager, the stream also
                raises this error after the block, if the file has changed meanwhile.
        """
        return self._opened(start, end)[0]

    def open_in_form(self, start: int = 0, end: int | None = None) -> tuple[BinaryIO, InputFile]:
        """Returns the stream of `open`, and this object with its form, which the first bytes of a stream show."""
        stream, file = self._opened(start, end)
        if file.form != self.form and file.form == "jsonl":
            tell_of_records([self.path])
        return stream, file

    def _opened(self, start: int, end: int | None) -> tuple[BinaryIO, InputFile]:
        file = self
        if self.size is not None and not self.is_sequential:
            stream = self.open_stored(start, end)
        else:
            stream = self.open_stored(0, self.size)
            if self.size is None:
                stream, file = self._peeked(stream)
            else:
                stream = decoded(self.path, self.encoding, _unpacked(self.path, self.packing, stream))
                stream = without_returns(self.path, self.is_crlf, stream)
            if start:
                stream.seek(start)
        return stream if end is None else Limited(stream, end - start), file  # type: ignore[return-value]

    def open_stored(self, start: int = 0, end: int | None = None) -> BinaryIO:
        """Opens the file as it is stored, at an offset. A reader who reads all up to some place says so (`end`), so
        that parts of a remote file can be requested ahead."""
        if self.remote is not None:
            return self.remote.open(start, end)
        stream: BinaryIO
        if self.inside is not None:
            from .zips import archived_file

            archive, place = self.inside
            stream = archived_file(self.path, archive.open_stored(), place)  # type: ignore[assignment]
        elif self.path == STDIN:
            stream = StandardInput()
        elif self.size is None:
            stream = open_input(self.location)
        else:
            with file_errors(self.location, "cannot be opened"):
                stream = UnchangedStream(self.location, self.check)
        if start:
            stream.seek(start)
        return stream

    def _peeked(self, packed: BinaryIO) -> tuple[BinaryIO, InputFile]:
        """Returns the text of a stream that can be read only once, and this object with its encoding and form. The
        first bytes show these, and how it is compressed."""
        stream = Peekable(packed)
        if (packing := _packing_of(stream.peek(), self.path)) is not None:
            stream = Peekable(_unpacked(self.path, packing, stream))
        file, what = self._replace(packing=packing)._described(stream.peek())
        check_text([file])
        if what is not None:
            packed.close()
            raise refusal(self.path, what)
        if file.starts_in_utf8 is False and file.form == "text":
            head = io.BytesIO(stream.peek())
            file = file._replace(encoding=_encoding_of_start(_shown(self.path), head, JSON_HEAD_BYTES - 1))
        file = file._replace(form=self.form or file.form, packing=self.packing)
        file = file._replace(is_crlf=self.is_crlf is None and file.is_crlf is None and file.form == "text")
        tell_of_encodings([file], self.encoding)
        tell_of_crlf([file])
        text = decoded(self.path, file.encoding, stream)
        return without_returns(_shown(self.path), file.is_crlf, text), file

    def check(self, status: os.stat_result) -> None:
        """Raises FileChangedError unless this is the status of the file that the run looked at."""
        if self.size is None or (self.size, self.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return
        what = f"now has {status.st_size} bytes, but had {self.size}"
        if status.st_size == self.size:
            what = f"was written to: its modification time differs, its size of {self.size} bytes does not"
        raise self._changed(what)

    def _changed(self, what: str) -> FileError:
        return file_error(
            errno.ESTALE,
            f"{self.location}: this file changed after this run first looked at it: it {what}. Run again when nothing"
            " writes to it. Workers on other machines need the same copy",
        )

    def check_now(self) -> None:
        """Raises FileChangedError if the name now belongs to another file than the one that the run looked at. (A
        RemoteFile compares every answer.)"""
        if self.remote is not None:
            return
        self.check(_status(self.location))


_LOOK_BYTES = 1 << 12  # that are looked at in a place of a large file
_PARTS, _PART_BYTES = 16, 1 << 18  # of a file whose encoding is guessed


def _spread(size: int, part: int, count: int) -> list[int]:
    """Returns places in a file, at equal distances, where parts of it begin: the first at its start, the last so
    that the part ends where the file does."""
    return [(size - part) * number // (count - 1) for number in range(count)]


def _looks(path: str, size: int) -> Iterator[bytes]:
    """Yields parts of a local file after its start. This takes some microseconds."""
    with file_errors(path, "cannot be read"), open(path, "rb", buffering=0) as stream:
        for at in _spread(size, _LOOK_BYTES, 4)[1:]:
            stream.seek(at)
            yield stream.read(_LOOK_BYTES)


def _lines_at(stream: BinaryIO, at: int, size: int) -> bytes:
    """Returns the lines that begin and end in a part of a file."""
    stream.seek(at)
    data = stream.read(size)
    begin = data.find(b"\n") + 1 if at else 0
    return data[begin : data.rfind(b"\n") + 1] or (b"" if at else data)


def _encoding_of_start(name: str, stream: BinaryIO, size: int) -> str | None:
    data = stream.read(size + 1)
    is_whole = len(data) <= size
    return encoding_of(name, [data if is_whole else data[: data.rfind(b"\n") + 1] or data], is_whole)


def _status(path: str) -> os.stat_result:
    with file_errors(path, "cannot be opened"):
        return os.stat(path)


def check_text(files: Iterable[InputFile]) -> None:
    """Raises ArgumentError if all files are empty, and the command would make something of them."""
    if needs_text.get() and all(file.is_empty for file in files) and (names := [_shown(file.path) for file in files]):
        what = "these files are" if names[1:] else "this file is"
        raise ArgumentError(f"{first_of(names)}: {what} empty, so nothing can be made of it: name a file with text")


def check_has_text(files: Iterable[InputFile], missing: str) -> None:
    """Raises ArgumentError for files in which a call found no text, so that its output would have no `missing`. Does
    nothing if all are empty, because `corpus_files` has told the user."""
    if not all(file.is_empty for file in files):
        raise ArgumentError(f"there is no text in the inputs, so there are no {missing}")


def _unpacked(path: str, packing: str | None, stream: BinaryIO) -> BinaryIO:
    """Returns a stream of the content of a file that is stored in this way."""
    if packing == "epub":
        from .zips import book_text

        return book_text(path, stream)  # type: ignore[return-value]
    return decompressed(path, packing, stream)


def _packing_of(head: bytes, path: str) -> str | None:
    if head.startswith(POINTER):  # whatever it stands for
        return None
    return packing_of_content(head) or packing_of_name(path)


@lru_cache(maxsize=1024)
def says_nothing(ending: str) -> bool:
    """Returns whether the ending of a name says nothing about the content of the file."""
    says = form_of_name(ending) or packing_of_name(ending) or is_json_name(ending) or ending.lower() == RANKS_ENDING
    return not says


def form_of_name(path: str) -> str:
    """Returns the kind of content that the name of a file shows, or "" if it shows nothing."""
    return row_kind(path) or ("jsonl" if says_records(path) else "")


def tell_of_encodings(files: Iterable[InputFile], given: str | None) -> None:
    """Says how files are read that begin with a byte order mark, and warns about guesses, if the caller does not give
    an encoding."""
    told: dict[tuple[bool, str], list[str]] = {}
    for file in files if given is None else ():
        if file.has_mark or file.encoding is not None:
            told.setdefault((file.has_mark, file.encoding or "utf-8"), []).append(_shown(file.path))
    for (has_mark, encoding), names in sorted(told.items()):
        if has_mark:
            note(f"{first_of(names)}: read as {encoding}, without the byte order mark at the start")
        else:
            other = f"; use {param(encoding='NAME')} for another encoding" if can_pass("encoding") else ""
            warn(f"{first_of(names)}: not UTF-8, read as {encoding}, judging by the text{other}")


def tell_of_crlf(files: Iterable[InputFile]) -> None:
    """Names the files whose \\r\\n is read as \\n."""
    if names := [_shown(file.path) for file in files if file.is_crlf]:
        other = f"; {param(keep_crlf=True)} keeps it" if can_pass("keep_crlf") else ""
        note(rf"{first_of(names)}: all lines end with \r\n, read as \n{other}")


def tell_of_records(paths: Sequence[str]) -> None:
    """Says that files are JSON lines, although their names do not say so."""
    if paths:
        names = first_of(list(map(_shown, paths)))
        other = f" ({param(documents='file')} would read text)" if can_pass("documents") else ""
        note(f"{names}: read as JSON lines, since each line is an object{other}")


def refusal(path: str, what: NoText) -> FormatError:
    """Returns the error for a file that is not text."""
    return FormatError(f"{_shown(path)}: not text, but {what.what}: {what.advice}")


def _shown(path: str) -> str:
    return "standard input" if path == STDIN else path
