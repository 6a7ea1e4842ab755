"""Files from elsewhere: no path in them leads out of a folder, and nothing in them is executed or shown as markup."""

import ast
import io
import json
import os
import pickle
import tarfile
from pathlib import Path

import numpy
import pytest
from corpora import documents, small_tokenizer

import pybpe
from pybpe import viz
from pybpe.errors import PybpeWarning
from pybpe.tokens.formats import FORMATS
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.token_files import TokenFile

OUTSIDE = ["../x", "/etc/passwd", "a/b", "..", ".", "", "a\\..\\b", "a\0b", "./a", 7, None, "\ud800"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_manifest_names_files_of_its_own_folder_only(name: object, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"precious")
    out = tmp_path / "out"
    (tmp_path / "text.txt").write_text("\n".join(documents(20)))
    keywords = {"min_shard_tokens": 0, "workers": 1, "progress": False}
    pybpe.binarize(small_tokenizer(), tmp_path / "text.txt", out, **keywords)
    manifest = json.loads((out / "manifest.json").read_bytes())
    manifest["shards"]["train"][0]["file"] = name
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(pybpe.errors.FormatError, match=r"manifest\.json"):
        Manifest.load(out)
    # A run into this folder removes files that this manifest names and the new one does not.
    with pytest.warns(PybpeWarning, match="is in no manifest, so it stays"):
        pybpe.binarize(small_tokenizer(), tmp_path / "text.txt", out, splits=(1,), force=True, **keywords)
    assert (tmp_path / "x").read_bytes() == b"precious" and (tmp_path / "text.txt").exists()


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
    for name in ("tok.json", "tok.bin", "x.counts", "x.checkpoint", "manifest.json"):
        (tmp_path / name).write_bytes(payload)
    for read in (
        lambda: pybpe.Tokenizer.from_file(tmp_path / "tok.json"),
        lambda: pybpe.Tokenizer.from_file(tmp_path / "tok.bin"),
        lambda: pybpe.Counts.load(tmp_path / "x.counts"),
        lambda: pybpe.train(counts={"aa": 1}, vocab_size=257, checkpoint=tmp_path / "x.checkpoint"),
        lambda: Manifest.load(tmp_path),
    ):
        with pytest.raises(pybpe.errors.FormatError):
            read()
    assert not mark.exists()


# The only pickles that are read: what an executor's worker gets from the process that started the run, in a message, or
# in a file whose SHA-256 is in the message.
OWN_PICKLES = {("workers.py", "loads")}
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


def test_a_page_escapes_everything(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u2028'\"&amp;<|endoftext|>"
    tok = pybpe.train(iter([evil * 3]), vocab_size=300, special_tokens=["<|endoftext|>", "</script><b>"])
    viz.write_page(tmp_path / "page.html", evil, {evil: tok}, source=evil)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    clean = tmp_path / "clean.html"
    viz.write_page(clean, "x", {"x": pybpe.train(iter(["x"]), vocab_size=256)}, source="x")
    for piece in ("<script", "</script", "<!--", "<img"):
        assert page.lower().count(piece) == clean.read_text(encoding="utf-8").lower().count(piece)
    assert "alert(1)</" not in page and "<b>" not in page
