"""Files from elsewhere: no path in them leads out of a folder, and nothing in them is executed or shown as markup."""

import ast
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


# The only pickles that are read: what an executor's worker gets from the process that started the run, in a message, or
# in a file whose SHA-256 is in the message.
OWN_PICKLES = {("encoding.py", "loads")}
OWN_PICKLES |= {("shared_store.py", "loads")}
OWN_PICKLES |= {("__main__.py", "exec")}  # of an empty string
DANGEROUS = {"pickle": {"load", "loads", "Unpickler"}, "marshal": {"load", "loads"}, "torch": {"load"}}
DANGEROUS |= {"yaml": {"load"}, "shelve": {"open"}, "os": {"system", "popen"}}


def test_nothing_in_the_source_could_execute_a_file(root: Path) -> None:
    found = set()
    for path in [*(root / "pybpe").rglob("*.py"), *(root / "llmc_compat").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                if node.func.attr in DANGEROUS.get(owner, ()):
                    found.add((path.name, node.func.attr))
                allowed = [keyword.value for keyword in node.keywords if keyword.arg in ("allow_pickle", "shell")]
                if any(not isinstance(value, ast.Constant) or value.value for value in allowed):
                    found.add((path.name, "allow_pickle or shell"))
                if owner in ("numpy", "np") and node.func.attr == "load":
                    assert any(keyword.arg == "allow_pickle" for keyword in node.keywords), path
                if node.func.attr in ("extractall", "extract"):
                    found.add((path.name, node.func.attr))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                found.add((path.name, node.func.id))
    assert found == OWN_PICKLES
