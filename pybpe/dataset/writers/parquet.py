"""Parquet: one packed sequence per row, with input_ids, document_ids and source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...reading.parquet import pyarrow_parquet
from ..manifest import HIDDEN_NAME
from .base import Finished, Format
from .rows import Rows, packed_rows

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


def _convert(finished: Finished, path: str) -> None:
    parquet = pyarrow_parquet(path)
    import pyarrow

    schema = pyarrow.schema(
        [
            ("input_ids", pyarrow.list_(getattr(pyarrow, finished.dtype)())),
            ("document_ids", pyarrow.list_(pyarrow.int64())),
            ("source", pyarrow.list_(pyarrow.string())),
        ]
    )
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in packed_rows(finished):
            writer.write_table(_table(rows, schema))


def _table(rows: Rows, schema: Any) -> Any:
    import pyarrow

    offsets = pyarrow.array(rows.offsets, pyarrow.int32())
    columns = [
        pyarrow.ListArray.from_arrays(offsets, pyarrow.array(rows.input_ids, schema.field(0).type.value_type)),
        pyarrow.ListArray.from_arrays(offsets, pyarrow.array(rows.document_ids, pyarrow.int64())),
        pyarrow.array(rows.sources, schema.field(2).type),
    ]
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _read(path: str, dtype: str) -> Iterator[Array]:
    file = pyarrow_parquet(path).ParquetFile(path)
    for batch in file.iter_batches(1024, columns=["input_ids"]):
        yield batch.column(0).flatten().to_numpy()


FORMAT = Format(
    name="parquet",
    file="{name}_{split}_{index:06d}.parquet",
    read=_read,
    convert=_convert,
    manifest=HIDDEN_NAME,
    has_rows=True,
    check_packages=partial(pyarrow_parquet, "format='parquet'"),
)
