"""Where the documents of token files came from: NAME.provenance, a parquet file next to each token file.

    first_token     where a document, or the part of it in this file, begins in the file
    tokens          the number of its tokens there, with its mark
    file            the input, as the caller named it
    row             the record in that file, from 0: a JSON line (blank lines do not count), a row, a line with
                    `documents="line"`, and for other texts the number of the document in the file
    id              the id of the record, if the caller names its key: a text, or null

A task does not know how many records of a file come before its own. So it counts from 0 in each result (see Read in
task_encoder.py), and `documents_of`, which reads the results in order, adds up. The ending is not .parquet, and next to
parquet files the name begins with _, because programs read all such files of a folder as rows.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import IO, Any, NamedTuple, cast

from .._lazy import Array, numpy
from ..arguments import is_url
from ..errors import ArgumentError, FileError, FormatError, file_errors, note
from ..reading.input_file import InputFile
from ..reading.planning import SPLIT_NAMES
from ..reading.records import RecordNotes, record_line, valid_records
from ..reading.rows import open_rows, parquet_batches, pyarrow_parquet
from ..support.output_files import give_name
from ..support.task_results import results_in
from .formats import FORMATS, Layout
from .manifest import Manifest, ShardRecord, checked
from .task_encoder import Stream, counts_in, read_origins, read_starts, with_sizes
from .token_folders import TokenFolder

ENDING = ".provenance"
_GROUP_ROWS = 1 << 16


class Sources(NamedTuple):
    """The records that some documents came from."""

    files: Array  # the numbers of their inputs
    rows: Array
    ids: Any  # an array of Arrow, None if there are none in the output

    def part(self, begin: int, end: int) -> Sources:
        """Returns some of them."""
        ids = None if self.ids is None else self.ids[begin:end]
        return Sources(self.files[begin:end], self.rows[begin:end], ids)


Part = tuple[Array, Array, Sources]
"""Some rows of a file: where documents begin there, their lengths, and where they came from."""

Documents = Iterator[tuple[Array, Sources]]
"""Documents of a split, in order: where they begin, int64, and where they came from."""


def provenance_name(file: str) -> str:
    """Returns the name of the file that says where the documents of a token file came from."""
    return ("_" if file.endswith(".parquet") else "") + re.sub(r"(\.input_ids)?\.\w+$", ENDING, file)


def documents_of(
    layout: Layout,
    split: int,
    paths: Iterable[str],
    names: list[str],
    provenance: Callable[[str], Provenance] | None = None,
) -> Documents:
    """Yields the documents of a split, and adds the names of their inputs to `names`. `paths` are the files of the
    results. With `provenance`, the results have positions among the tokens of other folders, and provenance(split) says
    where those came from."""
    stream, known = Stream(layout.marks), None if provenance is None else provenance(SPLIT_NAMES[split])
    names += [] if known is None else known.names
    numbers, has_ids = dict[str, int](), layout.output.id_key is not None
    file, total, is_open = "", 0, False  # of the records that were read last
    for result, header in chain.from_iterable(map(results_in, paths)):
        before = stream.tokens
        stream.take(counts_in(header)[split])
        starts = numpy.array(read_starts(result, split)[stream.goes_on :], dtype=numpy.int64) + (before + stream.added)
        places, ids = read_origins(result, split)
        rows = numpy.array(places[stream.goes_on :], dtype=numpy.int64)
        if known is not None:
            yield starts, known.at(rows)
            continue
        files, firsts, counts = list[int](), list[int](), list[int]()
        for path, count, begins_before, ends_after in header["reads"]:
            if path != file:
                file, total, is_open = path, 0, False
            files.append(numbers.setdefault(path, len(numbers)))
            if len(names) < len(numbers):
                names.append(layout.source_names.get(path, path))
            firsts.append(total - (is_open and begins_before))
            counts.append(count)
            total, is_open = firsts[-1] + count, ends_after
        ends = numpy.cumsum(numpy.array(counts, dtype=numpy.int64))
        reads = numpy.searchsorted(ends, rows, side="right")
        moved = numpy.array(firsts, dtype=numpy.int64) - ends + counts
        found = _strings(*(ids or with_sizes([None] * len(places))))[stream.goes_on :] if has_ids else None
        yield starts, Sources(numpy.array(files, dtype=numpy.int32)[reads], rows + moved[reads], found)


# ----------------------------------------------------------------------------------------------------
# Writing
#
# Arrays of Arrow are made from memory: pyarrow.array would import pandas, which takes half a second, and functions such
# as `take` and `cast` another module, which takes as long as all other work for 100,000 documents.


def write_provenance(
    folder: str, shards: Sequence[ShardRecord], documents: Documents, names: Sequence[str], has_ids: bool
) -> list[str]:
    """Writes the files for the shards of a split. `names` is the list that `documents_of` fills. Returns their
    names."""
    return write_parts(folder, [shard.file for shard in shards], _parts(shards, documents), names, has_ids)


def write_parts(
    folder: str, shards: Sequence[str], parts: Iterator[tuple[int, Part]], names: Sequence[str], has_ids: bool
) -> list[str]:
    """Writes the files for some shards. `parts` yields the number of a shard, and some rows. `names` are those of the
    inputs. Returns the names of the files."""
    written, groups = list(map(provenance_name, shards)), groupby(parts, itemgetter(0))
    following = next(groups, None)
    for number, name in enumerate(written):  # a shard without tokens has no parts
        is_there = following is not None and following[0] == number
        some = (part for _, part in following[1]) if following is not None and is_there else iter(())
        _write(os.path.join(folder, name), some, names, has_ids)
        following = next(groups, None) if is_there else following
    return written


def _parts(shards: Sequence[ShardRecord], documents: Documents) -> Iterator[tuple[int, Part]]:
    """Yields the documents of a split in parts, each with the number of its shard."""
    borders = numpy.cumsum([0, *(shard.tokens for shard in shards)])
    begin, last = numpy.empty(0, dtype=numpy.int64), list[Sources]()  # the last document, whose end is not known
    for starts, sources in documents:
        found, last = numpy.concatenate([begin, starts]), [*last, sources]
        if len(found) > 1:
            whole, end = _joined(last), len(found) - 1
            yield from _in_shards(borders, found, whole.part(0, end))
            last = [whole.part(end, end + 1)]
        begin = found[-1:]
    if len(begin):
        yield from _in_shards(borders, numpy.append(begin, borders[-1]), _joined(last))


def _joined(some: Sequence[Sources]) -> Sources:
    import pyarrow

    files, rows = (numpy.concatenate([each[column] for each in some]) for column in (0, 1))
    return Sources(files, rows, None if some[0].ids is None else pyarrow.concat_arrays([each.ids for each in some]))


def _in_shards(borders: Array, edges: Array, sources: Sources) -> Iterator[tuple[int, Part]]:
    """Like `_parts`, for documents. `edges` are where they begin, and the end of the last one."""
    starts, (first, last) = edges[:-1], numpy.searchsorted(borders, [edges[0], edges[-1] - 1], side="right") - 1
    for number in range(first, last + 1):
        low, high = borders[number : number + 2]
        begin = max(0, int(numpy.searchsorted(starts, low, side="right")) - 1)
        end = int(numpy.searchsorted(starts, high))
        if low < high:
            bounds = numpy.clip(edges[begin : end + 1], low, high)
            yield number, (bounds[:-1] - low, numpy.diff(bounds), sources.part(begin, end))


def _write(path: str, parts: Iterable[Part], names: Sequence[str], has_ids: bool) -> None:
    import pyarrow

    kinds = {"first_token": pyarrow.int64(), "tokens": pyarrow.int64()}
    kinds |= {"file": pyarrow.dictionary(pyarrow.int32(), pyarrow.large_string()), "row": pyarrow.int64()}
    schema = pyarrow.schema([*kinds.items(), *([("id", pyarrow.large_string())] if has_ids else [])])
    temporary, waiting, rows = f"{path}-{os.urandom(4).hex()}.tmp", list[Part](), 0
    given: dict[str, Any] = {"compression": "zstd", "use_dictionary": ["file"]}
    given["column_encoding"] = dict.fromkeys(("first_token", "tokens", "row"), "DELTA_BINARY_PACKED")
    with file_errors(temporary, "cannot be written"):
        with pyarrow_parquet(path).ParquetWriter(temporary, schema, **given) as writer:
            for part in chain(parts, [None]):
                if part is not None:
                    waiting.append(part)
                    rows += len(part[0])
                if waiting and (part is None or rows >= _GROUP_ROWS):
                    writer.write_table(pyarrow.Table.from_arrays(_columns(waiting, names), schema=schema))
                    waiting, rows = [], 0
    give_name(temporary, path)


def _columns(parts: Sequence[Part], names: Sequence[str]) -> list[Any]:
    """Returns the columns of some rows, as arrays of Arrow."""
    import pyarrow

    firsts, lengths = (numpy.concatenate([part[column] for part in parts]) for column in (0, 1))
    files, rows, ids = _joined([part[2] for part in parts])
    used, numbers = numpy.unique(files, return_inverse=True)
    shown = [os.fsencode(names[number]).decode("utf-8", "backslashreplace").encode() for number in used.tolist()]
    file = pyarrow.DictionaryArray.from_arrays(_numbers(numbers, "int32"), _strings(*with_sizes(shown)))
    columns = [_numbers(firsts), _numbers(lengths), file, _numbers(rows)]
    return columns if ids is None else [*columns, ids]


def _numbers(values: Array, kind: str = "int64") -> Any:
    """Returns numbers as an array of Arrow."""
    import pyarrow

    data = pyarrow.py_buffer(numpy.ascontiguousarray(values, dtype=kind))
    return pyarrow.Array.from_buffers(getattr(pyarrow, kind)(), len(values), [None, data])


def _strings(data: bytes, sizes: array[int]) -> Any:
    """Returns texts as an array of Arrow: see `with_sizes`."""
    import pyarrow

    ends = numpy.zeros(len(sizes) + 1, dtype=numpy.int64)
    numpy.cumsum(numpy.maximum(sizes, 0), out=ends[1:])
    known = numpy.packbits(numpy.asarray(sizes) >= 0, bitorder="little")
    return pyarrow.Array.from_buffers(
        pyarrow.large_string(), len(sizes), list(map(pyarrow.py_buffer, (known, ends, data)))
    )


# ----------------------------------------------------------------------------------------------------
# Reading, for output that is made from token files


class Provenance(NamedTuple):
    """Where the tokens of one split of some folders came from, in files without names, since there may be more
    documents than fit in memory."""

    starts: Array  # where documents begin, among the tokens of all folders
    files: Array  # the numbers of their inputs
    rows: Array
    names: Sequence[str]  # of the inputs
    ids: tuple[Array, Array] | None  # bytes, JSON, and where the ids of the documents end in them

    def at(self, positions: Array) -> Sources:
        """Returns where the documents came from that have the tokens at these positions."""
        places = numpy.searchsorted(self.starts, positions, side="right") - 1
        return Sources(
            self.files[places], self.rows[places], None if self.ids is None else self._ids(*self.ids, places)
        )

    def _ids(self, data: Array, ends: Array, places: Array) -> Any:
        begins = numpy.where(places > 0, ends[places - 1], 0).tolist()
        spelled = (data[begin:end].tobytes() for begin, end in zip(begins, ends[places].tolist()))
        return _strings(*with_sizes([None if key is None else key.encode() for key in map(json.loads, spelled)]))


def kept_provenance(parts: Sequence[TokenFolder]) -> dict[str, Any]:
    """Returns the settings of provenance for token files that are made from some folders. They have provenance if all
    of these folders do."""
    settings = [part.manifest.settings for part in parts]
    lacking = [part.path for part, some in zip(parts, settings) if not some.get("provenance")]
    if lacking:
        if len(lacking) < len(parts):
            note(f"{lacking[0]}: has no provenance, so the output has none")
        return {}
    keys = [some["id_key"] for some in settings if "id_key" in some]
    return {"provenance": True, **({"id_key": keys[0]} if keys else {})}


def provenance_of(parts: Sequence[TokenFolder], folder: str, split: str) -> Provenance:
    """Returns where the tokens of a split of folders with provenance came from. The files are in `folder`.

    Raises:
        FormatError: a file does not match its manifest.
    """
    numbers, first = dict[str, int](), 0
    with ExitStack() as stack, file_errors(folder, "cannot be written"):
        files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(5)]
        has_ids = any("id_key" in part.manifest.settings for part in parts)
        for part in parts:
            records = {record.file: record for record in part.manifest.files}
            for shard in part.manifest.shards.get(split, ()):
                record = records.get(provenance_name(shard.file))
                if record is None:
                    raise FormatError(
                        f"{part.path}: the manifest has no provenance of {shard.file}: make the folder again"
                    )
                path = part.checked(record)
                for batch in parquet_batches(path):
                    names = batch.column("file").to_pylist()
                    codes = [numbers.setdefault(name, len(numbers)) for name in names]
                    columns = first + batch.column("first_token").to_numpy(), codes, batch.column("row").to_numpy()
                    for file, column in zip(files, columns):
                        file.write(numpy.asarray(column, dtype=numpy.int64).tobytes())
                    ids = batch.column("id").to_pylist() if "id" in batch.schema.names else [None] * len(names)
                    spelled = [json.dumps(each).encode() for each in ids] if has_ids else []
                    files[3].write(b"".join(spelled))
                    ends = files[3].tell() + numpy.cumsum([0, *map(len, spelled)])[1:] - sum(map(len, spelled))
                    files[4].write(ends.astype(numpy.int64).tobytes())
                first += shard.tokens
        starts, inputs, rows, data, ends = map(_mapped, files, ("i8", "i8", "i8", "u1", "i8"))
    return Provenance(starts, inputs, rows, list(numbers), (data, ends) if has_ids else None)


def _mapped(file: IO[bytes], dtype: str) -> Array:
    file.flush()
    if not file.tell():  # an empty file cannot be mapped
        return numpy.empty(0, dtype)
    return numpy.memmap(file, dtype=dtype, mode="r").view(numpy.ndarray)


# ----------------------------------------------------------------------------------------------------
# Looking one up


def document_at(path: str, token: int) -> tuple[Manifest, dict[str, Any], list[int]]:
    """Returns the manifest of a token file, the row of its provenance about a token, and the tokens of that row.

    Raises:
        ArgumentError: the token file has no provenance, or no such token, or the token is padding. FileError,
            FormatError: there is no manifest, or a file does not match it.
    """
    folder, file = os.path.split(path)
    folder = folder or "."
    manifest = Manifest.load(folder)
    shard = next((some for shards in manifest.shards.values() for some in shards if some.file == file), None)
    if shard is None:
        raise ArgumentError(f"{path}: is not a token file of the manifest in {folder}")
    if not 0 <= token < shard.tokens:
        raise ArgumentError(f"{path}: has no token {token}: its tokens are 0 to {shard.tokens - 1}")
    record = next((some for some in manifest.files if some.file == provenance_name(file)), None)
    if record is None:
        raise ArgumentError(f"{path}: has no provenance: make the files again with `pybpe binarize --provenance`")
    checked(folder, shard)
    name = checked(folder, record)
    for batch in parquet_batches(name):
        firsts = batch.column("first_token").to_numpy()
        place = int(numpy.searchsorted(firsts, token, side="right")) - 1
        if place >= 0 and token < int(firsts[place]) + batch.column("tokens")[place].as_py():
            row = batch.slice(place, 1).to_pylist()[0]
            return manifest, row, _tokens_of(path, manifest, row["first_token"], row["tokens"])
    raise ArgumentError(f"{path}: token {token} is padding, or the end-of-text token after the last row")


def _tokens_of(path: str, manifest: Manifest, first: int, count: int) -> list[int]:
    found, at = list[int](), 0
    for block in FORMATS[str(manifest.settings["format"])].read(path, str(manifest.settings["dtype"])):
        ids = block.reshape(-1)
        found += ids[max(0, first - at) : max(0, first + count - at)].tolist()
        at += len(ids)
        if at >= first + count:
            break
    return found


def record_at(
    name: str, row: int, text_key: str, encoding: str | None, documents: str = "auto"
) -> tuple[str, str] | None:
    """Returns the text of a record of an input as it is now, and the record: a JSON line, or a row as JSON. They are
    empty if there is no such record now. None if the input is not there, or has no records. `documents` is as in
    ReadOptions."""
    with suppress(FileError, FormatError, OSError):
        file = _input_named(name, encoding)
        if file is None or (file := file.in_form(documents)).form == "text":
            return None
        if file.has_rows:
            for texts, notes in open_rows(file, text_key, None).texts(row, row + 1, RecordNotes(name, row, True)):
                fields = texts.fields[0] if texts.fields else {}
                text = b"".join(texts).decode("utf-8", "replace")
                if notes.end > row:
                    return text, record_line(name, {**fields, text_key: text})[0].decode().rstrip("\n")
            return "", ""
        with file.open() as stream:
            buffered = io.BufferedReader(cast(io.RawIOBase, stream))  # which closes the stream when it is gone
            line = next(islice((line for line in buffered if line.strip()), row, None), b"")
            for record, _ in valid_records(memoryview(line), text_key, RecordNotes(name, 0, True)):
                return record[text_key], line.decode("utf-8", "replace").strip()
            return "", ""
    return None


def _input_named(name: str, encoding: str | None) -> InputFile | None:
    """Returns the file of this name, which may be in an archive."""
    if is_url(name) or os.path.isfile(name):
        return InputFile.of(name, encoding)
    archive = name
    while not os.path.isfile(archive):
        if archive in ("", "/", archive := os.path.dirname(archive)):
            return None
    return next((file for file, _ in InputFile.of(archive, encoding).unarchived()[1] if file.path == name), None)
