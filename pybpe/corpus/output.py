"""The output of `clean`: one file, or a folder of files of about equal size. A hidden file there says how it was made.

All files are made in a hidden folder, which then gets the name PARTS. From there they get their names, the hidden file
last. So a run that is killed meanwhile goes on with that.
"""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import shutil
from ..arguments import counted, param, refuse_unused, whole_number
from ..errors import ArgumentError, FormatError, file_errors, note
from ..reading.rows import pyarrow_parquet
from ..reading.streams import sample_of, zstd_module
from ..support import platform
from ..support.output_files import (
    CLEANED,
    FOLDER,
    PARTS,
    give_name,
    make_folder,
    only_writer,
    output_file,
    record_name,
    remove_file,
    remove_folder,
    remove_work,
    unfinished_folder,
)
from ..support.replacing import differences

SHARD_BYTES = 256 * 10**6
FORMATS = ("jsonl.zst", "jsonl.gz", "jsonl", "parquet")
_SAMPLED = 1 << 16  # bytes
_GROUP_BYTES = 1 << 26  # of lines in a row group, unless a file ends sooner
_MOST_FILES = 10**6  # in a folder: a longer number would sort before shorter ones, and readers sort names
_LONG = re.compile(rb"[\[:,]\s*-?\d{16}")  # an integer that Arrow's parser might read as a float


class Target(NamedTuple):
    """Where the output goes.

    Attributes:
        path: the file or folder, as errors name it.
        format: one of FORMATS.
        shard_bytes: the size at which a file ends, or None for one file.
    """

    path: str
    format: str
    shard_bytes: int | None

    @classmethod
    def of(cls, out: _binding.PathLike, format: str | None, shard_bytes: int | None) -> Target:
        """Raises ArgumentError for a name with another ending, and MissingExtraError if a format needs a package."""
        path = _binding.path_text(out)
        ending = next((form for form in FORMATS if path.replace(".ndjson", ".jsonl").endswith(f".{form}")), None)
        if ending is None and os.path.splitext(path)[1] and not os.path.isdir(path):
            raise ArgumentError(f"{path}: name it .{', .'.join(FORMATS)}, or name a folder, without an ending")
        if ending is None or os.path.isdir(path):
            if format not in (None, *FORMATS):
                raise ArgumentError(f"{param('format')} must be one of {', '.join(FORMATS)}, not {format!r}")
            most = SHARD_BYTES if shard_bytes is None else whole_number("shard_bytes", shard_bytes, 1)
            found = cls(path, format or FORMATS[0], most)
        else:
            for name, value in (("format", format), ("shard_bytes", shard_bytes)):
                if value is not None:
                    refuse_unused(name, value, "the name of a file has its format; name a folder to get several files")
            found = cls(path, ending, None)
        if found.format == "parquet":
            pyarrow_parquet(path)
        elif found.format == "jsonl.zst":
            zstd_module(path)
        return found

    @property
    def folder(self) -> str:
        """Where the files get their names."""
        return self.path if self.shard_bytes else os.path.dirname(output_file(self.path))

    @property
    def home(self) -> str:
        """The folder whose lock the writer holds, and into which inputs are staged."""
        return self.path if self.shard_bytes else unfinished_folder(output_file(self.path))

    @property
    def hidden(self) -> str:
        """The folder for unfinished work."""
        return os.path.join(self.path, FOLDER) if self.shard_bytes else self.home

    @property
    def record(self) -> str:
        """The file that says how the output was made."""
        name = CLEANED if self.shard_bytes else record_name(os.path.basename(output_file(self.path)))
        return os.path.join(self.folder, name)

    def names(self) -> Iterator[str]:
        """Yields the names of the files."""
        if not self.shard_bytes:
            yield os.path.basename(output_file(self.path))
            return
        yield from (f"part-{number:06d}.{self.format}" for number in range(_MOST_FILES))
        told = f"would need more than {_MOST_FILES} files: raise {param('shard_bytes')}, and the call resumes"
        raise ArgumentError(f"{self.path}: {told}")

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Holds the lock of the output, and completes a `publish` that was killed."""
        with only_writer(self.home, temporary=not self.shard_bytes):
            if os.path.isdir(os.path.join(self.hidden, PARTS)):
                self.publish()
            self._there()  # now, not after an hour of work
            yield

    def clear(self) -> None:
        """Removes the unfinished work."""
        remove_work(self.path) if self.shard_bytes else remove_folder(self.home)

    # ------------------------------------------------------------------------------------------------
    # What is there

    def replaced(self) -> list[str]:
        """Returns the paths of the files that this call would replace."""
        return [os.path.join(self.folder, name) for name in self._there()]

    def made(self, call: str, asked: dict[str, Any], repeats: bool, list_path: str) -> dict[str, Any] | None:
        """Returns the record of the output if an equal call has made it, or None if this call has to do the work.
        Raises ArgumentError if the output is of another call. `repeats` says that an equal call does the work again."""
        there = self._there()
        if not there:
            return None
        found = self._record()
        if found.get("files") == {name: _sample(os.path.join(self.folder, name)) for name in there}:
            if found["call"] == call and repeats:
                return None
            if found["call"] == call and (found["skipped"] is None or os.path.exists(list_path)):
                note(
                    f"{self.path}: already complete ({counted(found['tally']['documents'].get('out', 0), 'document')})"
                )
                return found
            told = (
                differences(found["asked"], asked) if found["call"] != call else "Its list of skipped records is gone"
            )
        else:
            told = "Its content is not what a call wrote there"
        raise ArgumentError(
            f"{self.path}: was not made by this call. {told}: choose another output, or pass {param(force=True)}"
        )

    def _there(self) -> list[str]:
        """Returns the files of the output that are there. Raises ArgumentError if a folder has something else, because
        programs read all of its files."""
        if not self.shard_bytes:
            name = os.path.basename(output_file(self.path))
            return [name] if os.path.exists(self.path) and os.path.getsize(self.path) else []
        names = sorted(name for name in os.listdir(self.folder) if not name.startswith("."))
        others = set(names) - self._record().get("files", {}).keys()
        if others:
            raise ArgumentError(f"{self.path}: has something else, such as {min(others)}: name another folder")
        return names

    def _record(self) -> dict[str, Any]:
        with suppress(OSError, ValueError), open(self.record, "rb") as stream:
            found = json.load(stream)
            if isinstance(found, dict) and found.keys() >= {"call", "asked", "files", "skipped", "tally"}:
                return found
        return {}

    # ------------------------------------------------------------------------------------------------
    # Writing

    def write(self, parts: Callable[[], Iterable[_binding.Data]], record: Callable[[], dict[str, Any]]) -> None:
        """Writes the files, and gives them their names.

        Args:
            parts: yields the lines of the documents. For parquet, it is called twice.
            record: returns the other entries of the record, when the files are written.
        """
        new = f"{os.path.join(self.hidden, PARTS)}.new"
        remove_folder(new)
        make_folder(new)
        schema = _schema(self.path, parts()) if self.format == "parquet" else None
        lines, files = (some for some in parts() if memoryview(some).nbytes), dict[str, Any]()
        some, limit = next(lines, None), self.shard_bytes or float("inf")
        for name in self.names():
            with _binding.Output(os.path.join(new, name)) as output:
                write, end = _writer(self, output, schema)
                size = 0
                while some is not None and size < limit:
                    size, some = write(some), next(lines, None)
                end()
            files[name] = _sample(os.path.join(new, name))
            if some is None:
                break
        replaced = [*self._record().get("files", {})] if self.shard_bytes else []
        content = {**record(), "files": files, "replaced": replaced}
        _binding.write_file(os.path.join(new, os.path.basename(self.record)), json.dumps(content).encode())
        with file_errors(new, "cannot be renamed"):
            os.rename(new, os.path.join(self.hidden, PARTS))
            platform.sync_folder(self.hidden)
        self.publish()

    def publish(self) -> None:
        """Gives the files in PARTS their names, the record last. Removes the files that they replace."""
        parts, last = os.path.join(self.hidden, PARTS), os.path.basename(self.record)
        if os.path.exists(os.path.join(parts, last)):  # otherwise they have their names
            with open(os.path.join(parts, last), "rb") as stream:
                made = json.load(stream)
            for name in made["replaced"]:
                if name not in made["files"]:
                    remove_file(os.path.join(self.folder, name))
            for name in (*made["files"], last):
                if os.path.exists(os.path.join(parts, name)):
                    give_name(os.path.join(parts, name), os.path.join(self.folder, name))
        shutil.rmtree(parts)


def check_outside(folder: str, **others: str | None) -> None:
    """Raises ArgumentError if another file that a call writes, by its parameter, is in the folder of the output: the
    next call would refuse the folder, because programs read all of its files."""
    for name, path in others.items():
        if path is not None and os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), "")):
            raise ArgumentError(f"{path}: {param(name)} must not be in the output folder, {folder}: choose another")


def _sample(path: str) -> list[object] | None:
    """Returns the size of a file, and a hash of parts of it; None if there is no file."""
    with suppress(FileNotFoundError), file_errors(path, "cannot be read"):
        size = os.path.getsize(path)
        return [size, sample_of(path, size, _SAMPLED).hex()]
    return None


# ----------------------------------------------------------------------------------------------------
# Formats


def _writer(
    target: Target, output: _binding.Output, schema: Any
) -> tuple[Callable[[_binding.Data], int], Callable[[], None]]:
    """Returns write(lines), which returns the number of bytes in the file so far, and end()."""
    if target.format == "parquet":
        return _parquet_writer(target, output, schema)
    size, compressor = 0, None
    if target.format == "jsonl.gz":
        compressor = zlib.compressobj(wbits=31)  # a gzip header without a timestamp: equal texts give equal bytes
    elif target.format == "jsonl.zst":
        compressor = zstd_module(target.path).ZstdCompressor()

    def write(lines: _binding.Data) -> int:
        nonlocal size
        data = lines if compressor is None else compressor.compress(lines)
        output.write(data)
        size += len(memoryview(data))
        return size

    return write, lambda: None if compressor is None else output.write(compressor.flush())


def _parquet_writer(
    target: Target, output: _binding.Output, schema: Any
) -> tuple[Callable[[_binding.Data], int], Callable[[], None]]:
    import pyarrow
    from pyarrow import parquet

    sink = _Sink(output)
    writer = parquet.ParquetWriter(pyarrow.PythonFile(sink, "w"), schema, compression="zstd")
    waiting, group_bytes = list[bytes](), min(_GROUP_BYTES, target.shard_bytes or _GROUP_BYTES)

    def write(lines: _binding.Data, is_last: bool = False) -> int:
        waiting.append(bytes(lines))
        if is_last or sum(map(len, waiting)) >= group_bytes:
            if table := _table(target.path, b"".join(waiting), schema):
                with _fitting(target.path):
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


def _schema(path: str, parts: Iterable[_binding.Data]) -> Any:
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
