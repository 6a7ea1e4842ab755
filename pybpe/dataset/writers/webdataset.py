"""WebDataset: tar files, one packed sequence per sample.

A sample is three members: KEY.input_ids.npy, KEY.document_ids.npy, and KEY.json with its sources. Names, order
and times are fixed, so equal tokens give equal tars.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .base import Finished, Format
from .rows import packed_rows

if TYPE_CHECKING:
    import tarfile

    import numpy

    Array = numpy.ndarray[Any, Any]


def _convert(finished: Finished, path: str) -> None:
    import tarfile

    import numpy

    number = 0
    with open(path, "wb") as stream, tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for rows in packed_rows(finished):
            for row, (a, b) in enumerate(zip(rows.offsets, rows.offsets[1:])):
                key = f"{finished.split}-{finished.index:06d}-{number:09d}"
                for name, array in (("input_ids", rows.input_ids), ("document_ids", rows.document_ids)):
                    data = io.BytesIO()
                    numpy.save(data, array[a:b])
                    add_member(tar, f"{key}.{name}.npy", data.getvalue())
                facts = json.dumps({"source": rows.sources[row]}, ensure_ascii=False)
                add_member(tar, f"{key}.json", facts.encode("utf-8", "surrogateescape"))
                number += 1


def add_member(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    """Adds a file to a tar. Its times and owners are 0."""
    import tarfile

    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _read(path: str, dtype: str) -> Iterator[Array]:
    import tarfile

    import numpy

    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.name.endswith(".input_ids.npy"):
                data = tar.extractfile(member)
                assert data is not None
                yield numpy.load(io.BytesIO(data.read()), allow_pickle=False)


FORMAT = Format(name="webdataset", file="{name}_{split}_{index:06d}.tar", read=_read, convert=_convert, has_rows=True)
