"""WebDataset: tar files with rows that `pack` wrote, which this module reads. pack/row_files.py writes them."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ..._numpy import Array, numpy
from .base import Format


def _read(path: str, dtype: str) -> Iterator[Array]:
    import tarfile

    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.name.endswith(".input_ids.npy"):
                data = tar.extractfile(member)
                assert data is not None
                yield numpy.load(io.BytesIO(data.read()), allow_pickle=False)


FORMAT = Format(name="webdataset", file="{name}_{split}_{index:06d}.tar", read=_read)
