"""Parquet: rows that `pack` wrote, which this module reads. pack/row_files.py writes them."""

from __future__ import annotations

from collections.abc import Iterator

from ..._numpy import Array
from ...reading.parquet import pyarrow_parquet
from ..manifest import HIDDEN_NAME
from .base import Format


def _read(path: str, dtype: str) -> Iterator[Array]:
    file = pyarrow_parquet(path).ParquetFile(path)
    for batch in file.iter_batches(1024, columns=["input_ids"]):
        yield batch.column(0).flatten().to_numpy()


FORMAT = Format(name="parquet", file="{name}_{split}_{index:06d}.parquet", read=_read, manifest=HIDDEN_NAME)
