"""Where the documents of token files came from: NAME.provenance, a parquet file next to each token file.

    first_token     where a document, or the part of it in this file, begins in the file
    tokens          the number of its tokens there, with its mark
    file            the input, as the caller named it
    row             the record in that file, from 0: a JSON line (blank lines do not count), a row, a line with
                    `documents="line"`, and for other texts the number of the document in the file
    id              what identifies the record, if the caller names its key: a text, or null

A task does not know how many records of a file come before its own. So it counts from 0 in each result (see Read in
task_encoder.py), and `documents_of`, which reads the results in order, adds up. The ending is not .parquet, and next to
parquet files the name begins with _, because programs read all such files of a folder as rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from .._lazy import Array, numpy
from ..errors import file_errors
from ..reading.rows import pyarrow_parquet
from ..support.output_files import give_name
from ..support.task_results import results_in
from .formats import Layout
from .manifest import ShardRecord
from .task_encoder import Stream, read_origins, read_starts

ENDING = ".provenance"
_GROUP_ROWS = 1 << 16

Documents = Iterator[tuple[Array, Any]]
"""Documents of a split, in order: where they begin, int64, and a table of Arrow with the columns file, row and id."""


def provenance_name(file: str) -> str:
    """Returns the name of the file that says where the documents of a token file came from."""
    return ("_" if file.endswith(".parquet") else "") + re.sub(r"(\.input_ids)?\.\w+$", ENDING, file)


def table_of(files: Sequence[str], rows: Array, ids: Sequence[str | None] | None) -> Any:
    """Returns the table of some documents. `ids` is None if there are none in the output."""
    import pyarrow

    names = [os.fsencode(file).decode("utf-8", "backslashreplace") for file in files]
    columns = {"file": pyarrow.array(names, pyarrow.string()), "row": pyarrow.array(rows, pyarrow.int64())}
    if ids is not None:
        columns["id"] = pyarrow.array(ids or [None] * len(names), pyarrow.string())
    return pyarrow.table(columns)


def documents_of(layout: Layout, split: int, paths: Iterable[str]) -> Documents:
    """Yields the documents of a split. `paths` are the files of the results."""
    stream = Stream(layout.marks)
    file, total, is_open = "", 0, False  # of the records that were read last
    for result, header in chain.from_iterable(map(results_in, paths)):
        before = stream.tokens
        stream.take(header["splits"][split])
        starts = numpy.array(read_starts(result, split)[stream.goes_on :], dtype=numpy.int64) + (before + stream.added)
        numbers, ids = read_origins(result, split)
        rows = numpy.array(numbers[stream.goes_on :], dtype=numpy.int64)
        files, firsts, counts = list[str](), list[int](), list[int]()
        for path, count, begins_before, ends_after in header["reads"]:
            if path != file:
                file, total, is_open = path, 0, False
            files.append(layout.source_names.get(path, path))
            firsts.append(total - (is_open and begins_before))
            counts.append(count)
            total, is_open = firsts[-1] + count, ends_after
        ends = numpy.cumsum(numpy.array(counts, dtype=numpy.int64))
        places = numpy.searchsorted(ends, rows, side="right")
        moved = numpy.array(firsts, dtype=numpy.int64) - ends + counts
        some = [files[place] for place in places.tolist()]
        yield starts, table_of(some, rows + moved[places], ids[stream.goes_on :] if layout.output.id_key else None)


# ----------------------------------------------------------------------------------------------------
# Writing


def write_provenance(folder: str, shards: Sequence[ShardRecord], documents: Documents, has_ids: bool) -> list[str]:
    """Writes the files for the shards of a split. Returns their names."""
    return write_parts(folder, [shard.file for shard in shards], _parts(shards, documents), has_ids)


def write_parts(folder: str, shards: Sequence[str], parts: Iterator[tuple[int, Any]], has_ids: bool) -> list[str]:
    """Writes the files for some shards. `parts` yields the number of a shard, and some of its rows. Returns their
    names."""
    names, groups = list(map(provenance_name, shards)), groupby(parts, itemgetter(0))
    following = next(groups, None)
    for number, name in enumerate(names):  # a shard without tokens has no parts
        is_there = following is not None and following[0] == number
        tables = (table for _, table in following[1]) if following is not None and is_there else iter(())
        _write(os.path.join(folder, name), tables, has_ids)
        following = next(groups, None) if is_there else following
    return names


def _parts(shards: Sequence[ShardRecord], documents: Documents) -> Iterator[tuple[int, Any]]:
    """Yields the documents of a split in parts, each with the number of its shard."""
    borders = numpy.cumsum([0, *(shard.tokens for shard in shards)])
    begin, last = numpy.empty(0, dtype=numpy.int64), list[Any]()  # the last document, whose end is not known
    for starts, table in documents:
        found, last = numpy.concatenate([begin, starts]), [*last, table]
        if len(found) > 1:
            whole = _joined(last)
            yield from _in_shards(borders, found, whole.slice(0, len(found) - 1))
            last = [whole.slice(len(found) - 1)]
        begin = found[-1:]
    if len(begin):
        yield from _in_shards(borders, numpy.append(begin, borders[-1]), _joined(last))


def _joined(tables: Sequence[Any]) -> Any:
    import pyarrow

    return pyarrow.concat_tables(tables)


def _in_shards(borders: Array, edges: Array, table: Any) -> Iterator[tuple[int, Any]]:
    """Yields what `_parts` does for documents. `edges` are where they begin, and the end of the last one."""
    firsts = numpy.union1d(edges[:-1], borders[(borders > edges[0]) & (borders < edges[-1])])
    numbers = numpy.searchsorted(borders, firsts, side="right") - 1
    places = numpy.searchsorted(edges[:-1], firsts, side="right") - 1
    lengths = numpy.diff(numpy.append(firsts, edges[-1]))
    for number in numpy.unique(numbers).tolist():
        some = numbers == number
        yield number, placed(table.take(places[some]), firsts[some] - borders[number], lengths[some])


def placed(table: Any, firsts: Array, lengths: Array) -> Any:
    """Returns the rows of a file: where documents begin there, their lengths, and what a table says about them."""
    return table.add_column(0, "tokens", [lengths]).add_column(0, "first_token", [firsts])


def _write(path: str, tables: Iterable[Any], has_ids: bool) -> None:
    import pyarrow

    kinds = {"first_token": pyarrow.int64(), "tokens": pyarrow.int64()}
    kinds |= {"file": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), "row": pyarrow.int64()}
    schema = pyarrow.schema([*kinds.items(), *([("id", pyarrow.string())] if has_ids else [])])
    temporary, waiting, rows = f"{path}-{os.urandom(4).hex()}.tmp", list[Any](), 0
    with file_errors(temporary, "cannot be written"):
        with pyarrow_parquet(path).ParquetWriter(temporary, schema, compression="zstd") as writer:
            for table in chain(tables, [None]):
                if table is not None:
                    waiting.append(table)
                    rows += len(table)
                if waiting and (table is None or rows >= _GROUP_ROWS):
                    writer.write_table(_joined(waiting).cast(schema))
                    waiting, rows = [], 0
    give_name(temporary, path)
