"""Rows that `pack` wrote, which this module reads, as parquet or as WebDataset's tar files. pack/row_files.py writes
them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial

from ..._numpy import Array, numpy
from ...reading.rows import pyarrow_parquet
from ..manifest import HIDDEN_NAME
from .base import Format


def _read_parquet(path: str, dtype: str) -> Iterator[Array]:
    file = pyarrow_parquet(path).ParquetFile(path)
    for batch in file.iter_batches(1024, columns=["input_ids"]):
        yield batch.column(0).flatten().to_numpy()


PARQUET = Format(
    name="parquet",
    file="{name}_{split}_{index:06d}.parquet",
    read=_read_parquet,
    manifest=HIDDEN_NAME,
    check_packages=partial(pyarrow_parquet, "format='parquet'"),
)


def _read_webdataset(path: str, dtype: str) -> Iterator[Array]:
    import tarfile

    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.name.endswith(".input_ids.npy"):
                data = tar.extractfile(member)
                assert data is not None
                yield numpy.load(io.BytesIO(data.read()), allow_pickle=False)


WEBDATASET = Format(name="webdataset", file="{name}_{split}_{index:06d}.tar", read=_read_webdataset)
