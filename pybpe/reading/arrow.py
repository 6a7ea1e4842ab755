"""Streams records of Arrow files: .arrow, .feather and .ipc, as streams (which Hugging Face's `datasets` writes) or as
files (which Feather is).

Both formats are a sequence of messages. A file has a mark before them, and a footer after them, which is not needed
here:

    FF FF FF FF   size of the metadata (int32)   metadata   body
    FF FF FF FF   0                              the end

Source: https://arrow.apache.org/docs/format/Columnar.html (Encapsulated message format) and format/Message.fbs. The
metadata is a FlatBuffer. This module reads only three of its fields, to find the record batches and their numbers of
rows without reading their bodies; pyarrow reads the batches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, BinaryIO, NamedTuple

from ..errors import FormatError
from .input_file import InputFile
from .row_file import RowFile, import_pyarrow

_FILE_MARK = b"ARROW1\0\0"
_CONTINUES = b"\xff\xff\xff\xff"
_LONGEST_METADATA = 1 << 28  # bytes; real ones have some kilobytes
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3  # fields of a Message
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3  # types of its header
_LENGTH = 0  # the field of a RecordBatch with the number of rows


class _Message(NamedTuple):
    """A message: its offset in the file, the type of its header, its number of rows, and the offset of the next."""

    offset: int
    type: int
    rows: int
    end: int


class _Index(NamedTuple):
    """Where things are in a file.

    Attributes:
        start: the offset of the schema.
        batches: the record batches.
        has_dictionaries: whether a column is encoded with a dictionary. Such batches must be read in order.
    """

    start: int
    batches: list[_Message]
    has_dictionaries: bool


class ArrowBatches(RowFile):
    """An Arrow file, read by record batches."""

    kind = "an Arrow file"

    def __init__(self, file: InputFile, text_key: str) -> None:
        pyarrow = import_pyarrow(file.location, "Arrow")
        super().__init__(file, text_key)
        self._index = _index_of(file)
        with file.open_stored() as stream:
            stream.seek(self._index.start)
            self._schema = self._checked(pyarrow.ipc.read_schema, stream)
        self._check_schema(self._schema)
        batches = [(batch.rows, batch.end - batch.offset) for batch in self._index.batches]
        if self._index.has_dictionaries:
            batches = [(sum(rows for rows, _ in batches), sum(size for _, size in batches))]
        self._set_groups(batches)

    def _columns(self, group: int) -> Iterator[Any]:
        from pyarrow import ipc

        with self._input.open_stored() as stream:
            if self._index.has_dictionaries:
                stream.seek(self._index.start)
                reader = self._checked(ipc.open_stream, stream)
                while (batch := self._checked(next, reader, None)) is not None:
                    yield self._column(batch)
            else:
                stream.seek(self._index.batches[group].offset)
                message = self._checked(ipc.read_message, stream)
                yield self._column(self._checked(ipc.read_record_batch, message, self._schema))

    def _column(self, batch: Any) -> Any:
        column = batch.column(self._schema.get_field_index(self._key))
        self._checked(partial(column.validate, full=True))  # otherwise wrong offsets would read memory outside it
        return column


@lru_cache(maxsize=8)
def _index_of(file: InputFile) -> _Index:
    """Finds the record batches of a file. A task reads only some of them, so their places are kept."""
    path, size = file.location, file.size or 0
    with file.open_stored() as stream:
        start = len(_FILE_MARK) if stream.read(len(_FILE_MARK)) == _FILE_MARK else 0
        messages = list(_messages(path, stream, start, size))
    types = [message.type for message in messages]
    if types[:1] != [_SCHEMA] or not set(types[1:]) <= {_DICTIONARY, _RECORDS}:
        raise _damaged(path, start, "it does not begin with a schema" if types[:1] != [_SCHEMA] else "unknown messages")
    return _Index(start, [message for message in messages if message.type == _RECORDS], _DICTIONARY in types)


def _messages(path: str, stream: BinaryIO, at: int, size: int) -> Iterator[_Message]:
    while at < size:
        stream.seek(at)
        prefix = stream.read(8)
        if len(prefix) < 8 or prefix[:4] != _CONTINUES:
            raise _damaged(path, at, "expected a message")
        length = int.from_bytes(prefix[4:], "little")
        if length == 0:
            return
        if length > min(_LONGEST_METADATA, size - at - 8):
            raise _damaged(path, at, f"its {length} bytes of metadata extend past the end of the file")
        message = _parsed(path, at, stream.read(length))
        if message.end > size:
            raise _damaged(path, at, f"the message ends at byte {message.end}, and the file at byte {size}")
        yield message
        at = message.end


def _parsed(path: str, at: int, metadata: bytes) -> _Message:
    try:
        table = _number(metadata, 0, "I")
        kind = _number(metadata, _field(metadata, table, _HEADER_TYPE), "B")
        body_at = _field(metadata, table, _BODY_LENGTH)
        body = _number(metadata, body_at, "q") if body_at else 0
        header_at = _field(metadata, table, _HEADER)
        header = header_at + _number(metadata, header_at, "I")
        rows_at = _field(metadata, header, _LENGTH) if kind == _RECORDS else 0
        rows = _number(metadata, rows_at, "q") if rows_at else 0
    except struct.error:
        raise _damaged(path, at, "its metadata is not valid") from None
    if body < 0 or rows < 0:
        raise _damaged(path, at, "its metadata has a negative length")
    return _Message(at, kind, rows, at + 8 + len(metadata) + body)


def _field(data: bytes, table: int, field: int) -> int:
    """Returns where a field of a FlatBuffer's table is; 0 if it has its default value, which is 0."""
    fields = table - _number(data, table, "i")
    if _number(data, fields, "H") < 6 + 2 * field:
        return 0
    offset = _number(data, fields + 4 + 2 * field, "H")
    return table + offset if offset else 0


def _number(data: bytes, at: int, kind: str) -> int:
    if at < 0:  # struct would count from the end
        raise struct.error
    number: int = struct.unpack_from("<" + kind, data, at)[0]
    return number


def _damaged(path: str, at: int, problem: str) -> FormatError:
    return FormatError(f"{path}: not an Arrow file, or damaged: the message at byte {at}: {problem}", at)
