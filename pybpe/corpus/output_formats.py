"""The formats of the files that `clean` writes: JSON lines, compressed or not, and parquet."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .. import _binding
from ..errors import FormatError
from ..reading.rows import pyarrow_parquet
from ..reading.streams import zstd_module

FORMATS = ("jsonl.zst", "jsonl.gz", "jsonl", "parquet")
_GROUP_BYTES = 1 << 26  # of lines in a row group, unless a file ends sooner
_LONG = re.compile(rb"[\[:,]\s*-?\d{16}")  # an integer that Arrow's parser might read as a float


def check_installed(format: str, path: str) -> None:
    """Raises MissingExtraError if a format needs a package."""
    if format == "parquet":
        pyarrow_parquet(path)
    elif format == "jsonl.zst":
        zstd_module(path)


def writer(
    format: str, output: _binding.Output, path: str, schema: Any, most: float
) -> tuple[Callable[[_binding.Data], int], Callable[[], None]]:
    """Returns write(lines), which returns the number of bytes in the file so far, and end(). Errors name `path`.
    `schema` is for parquet: see `schema_of`. `most` is the size at which the file ends."""
    if format == "parquet":
        return _parquet_writer(output, path, schema, most)
    size, compressor = 0, None
    if format == "jsonl.gz":
        compressor = zlib.compressobj(wbits=31)  # a gzip header without a timestamp: equal input gives equal bytes
    elif format == "jsonl.zst":
        compressor = zstd_module(path).ZstdCompressor()

    def write(lines: _binding.Data) -> int:
        nonlocal size
        data = lines if compressor is None else compressor.compress(lines)
        output.write(data)
        size += len(memoryview(data))
        return size

    return write, lambda: None if compressor is None else output.write(compressor.flush())


def _parquet_writer(
    output: _binding.Output, path: str, schema: Any, most: float
) -> tuple[Callable[[_binding.Data], int], Callable[[], None]]:
    import pyarrow
    from pyarrow import parquet

    sink = _Sink(output)
    writer = parquet.ParquetWriter(pyarrow.PythonFile(sink, "w"), schema, compression="zstd")
    waiting, group_bytes = list[bytes](), min(_GROUP_BYTES, most)

    def write(lines: _binding.Data, is_last: bool = False) -> int:
        waiting.append(bytes(lines))
        if is_last or sum(map(len, waiting)) >= group_bytes:
            if table := _table(path, b"".join(waiting), schema):
                with _fitting(path):
                    writer.write_table(table)
            waiting.clear()
        return sink.size

    def end() -> None:
        write(b"", is_last=True)
        writer.close()

    return write, end


class _Sink(io.RawIOBase):
    """A file that pyarrow writes."""

    def __init__(self, output: _binding.Output) -> None:
        self._output, self.size = output, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._output.write(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.size


def schema_of(path: str, parts: Iterable[_binding.Data]) -> Any:
    """Returns the columns of records. Numbers are 64-bit integers or floats."""
    import pyarrow
    from pyarrow import parquet

    found = pyarrow.schema([])
    with _fitting(path):
        for lines in parts:
            table = _table(path, bytes(lines))
            found = pyarrow.unify_schemas([found, table.schema], promote_options="permissive")
        parquet.ParquetWriter(io.BytesIO(), found).close()  # which refuses objects that have no fields
    return found


def _table(path: str, lines: bytes, schema: Any = None) -> Any:
    """Returns the records of lines as a table, with the columns of a schema, or with what they have."""
    import pyarrow
    from pyarrow import json as arrow_json

    if not lines:
        return (schema or pyarrow.schema([])).empty_table()
    with _fitting(path):
        if _LONG.search(lines) is None:
            with suppress(pyarrow.ArrowException):  # Python reads more, such as escapes of lone surrogates
                read = arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
                parse = arrow_json.ParseOptions(explicit_schema=schema)
                table = arrow_json.read_json(io.BytesIO(lines), read, parse)
                if schema is not None:
                    return table.select(schema.names)
                # A text that looks like a time is a text.
                fields = [pyarrow.field(field.name, _without_times(field.type)) for field in table.schema]
                return pyarrow.schema(fields).empty_table()
        rows = [json.loads(line) for line in lines.split(b"\n") if line]
        kind = None if schema is None else pyarrow.struct(list(schema))
        return pyarrow.Table.from_struct_array(pyarrow.array(rows, kind))


def _without_times(kind: Any) -> Any:
    import pyarrow

    if str(kind).startswith("timestamp"):
        return pyarrow.string()
    if str(kind).startswith("list<"):
        return pyarrow.list_(_without_times(kind.value_type))
    if str(kind).startswith("struct<"):
        return pyarrow.struct([pyarrow.field(field.name, _without_times(field.type)) for field in kind])
    return kind


@contextmanager
def _fitting(path: str) -> Iterator[None]:
    """Raises FormatError if the block cannot turn records into columns."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError) as error:
        told = f"the records do not fit in columns of parquet ({' '.join(str(error).split())[:200]})"
        raise FormatError(f"{path}: {told}: choose JSON lines") from None
