"""Files of ids without a header: pybpe refuses other kinds of files, unless the caller states the dtype."""

import zipfile
from pathlib import Path

import numpy
import pytest

import pybpe
from pybpe.cli import main
from pybpe.tokens.token_files import TokenFile

IDS = numpy.arange(2000) % 256


def contents(name: str, folder: Path) -> bytes:
    header = numpy.zeros(256, dtype=">i4")
    header[:3] = 20240520, 1, len(IDS)
    if name == "zip":
        with zipfile.ZipFile(folder / "x.zip", "w") as archive:
            archive.writestr("a", IDS.tobytes())
        return (folder / "x.zip").read_bytes()
    return {
        "text": b"It was a dark and stormy night. " * 10,
        "chinese": "中文小说".encode() * 100,
        "uint32": IDS.astype("<u4").tobytes(),
        "int64": IDS.astype("<i8").tobytes(),
        "big-endian": header.tobytes() + IDS.astype(">u2").tobytes(),
    }[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text", "seems to be text"),
        ("chinese", "seems to be text"),
        ("uint32", "seem to be uint32"),
        ("int64", "seem to be uint32"),
        ("big-endian", "big-endian shard"),
        ("zip", "is an archive"),
    ],
)
def test_other_files_are_refused(name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ids.bin"
    data = contents(name, tmp_path)
    path.write_bytes(data[: len(data) // 4 * 4])
    with pytest.raises(pybpe.errors.FormatError, match=message) as caught:
        TokenFile(path).read()
    assert str(path) in str(caught.value) and "pass dtype=" in str(caught.value)
    assert len(TokenFile(path, "uint32").read()) == len(data) // 4
    pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, []).save(tmp_path / "tok.json")
    assert main(["decode", "-t", str(tmp_path / "tok.json"), str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and message in printed.err


def test_ids_are_ids(tmp_path: Path) -> None:
    random = numpy.random.default_rng(5)
    some = [IDS, IDS + 60000, IDS % 5, numpy.zeros(1000, int), numpy.full(1000, 50256), IDS[:3], IDS[:0]]
    some.append(numpy.full(20, 25185))
    for top in (2, 65, 300, 5000, 50257, 65536):
        for size in (1, 31, 32, 33, 5000):
            some.append(random.integers(0, top, size))
            some[-1][0] = min(top - 1, 1)  # a first id that begins no known file
    for ids in some:
        ids.astype("<u2").tofile(tmp_path / "ids.bin")
        assert numpy.array_equal(TokenFile(tmp_path / "ids.bin").read(), ids)
