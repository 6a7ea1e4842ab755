"""Files from elsewhere: no path in them leads out of a folder, and nothing in them is executed.
The linter names each place in the source that could: see pyproject.toml."""

import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy
import pytest

import pybpe
from pybpe.tokens.formats import FORMATS
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.token_files import TokenFile


def test_archives_are_read_without_being_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    data = io.BytesIO()
    numpy.save(data, numpy.arange(5, dtype="u2"))
    with tarfile.open(path, "w") as tar:
        for name in ("../escaped.input_ids.npy", "/tmp/pybpe-escaped.input_ids.npy"):
            member = tarfile.TarInfo(name)
            member.size = len(data.getvalue())
            tar.addfile(member, io.BytesIO(data.getvalue()))
    before = sorted(tmp_path.parent.iterdir())
    assert [block.tolist() for block in FORMATS["webdataset"].read(str(path), "uint16")] == [[0, 1, 2, 3, 4]] * 2
    assert sorted(tmp_path.parent.iterdir()) == before and sorted(tmp_path.iterdir()) == [path]
    assert not os.path.exists("/tmp/pybpe-escaped.input_ids.npy")


class Payload:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._path,)


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    numpy.save(tmp_path / "objects.npy", numpy.array([Payload(mark)], dtype=object), allow_pickle=True)
    with pytest.raises(pybpe.errors.FormatError):
        TokenFile(tmp_path / "objects.npy").read()
    payload = pickle.dumps(Payload(mark))
    for name in ("tok.json", "tok.bin", "x.counts", "manifest.json"):
        (tmp_path / name).write_bytes(payload)
    for read in (
        lambda: pybpe.Tokenizer.from_file(tmp_path / "tok.json"),
        lambda: pybpe.Tokenizer.from_file(tmp_path / "tok.bin"),
        lambda: pybpe.Counts.load(tmp_path / "x.counts"),
        lambda: Manifest.load(tmp_path),
    ):
        with pytest.raises(pybpe.errors.FormatError):
            read()
    assert not mark.exists()
