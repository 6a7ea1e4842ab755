"""Every kind of token file is byte for byte what it was when tests/vectors/outputs.json was made: SHA-256 of all files
but the manifests, by format, place of the mark, kind of split, sizes of shards, input, and command.

A change that is meant to change files runs `python tests/py/test_golden_outputs.py`, which writes outputs.json again.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from corpora import small_tokenizer, write_corpus

import pybpe
from pybpe.reading import planning

GOLDENS = Path(__file__).parents[1] / "vectors" / "outputs.json"
INPUTS = ("a.txt", "b.jsonl", "c.txt.gz", "")  # "" is the folder of the three
COMMON: dict[str, Any] = {"min_shard_tokens": 0, "progress": False, "split_by": "hash"}


def named(corpus: Path, format: str = "llmc", **_: Any) -> dict[str, Any]:
    """Returns the arguments for a file, or for the files of a folder, which have records and texts, and for the name of
    what is made of them."""
    if not corpus.is_dir():
        return {"inputs": corpus}
    return {"inputs": corpus / "*"} | ({} if format == "raw" else {"name": corpus.name})


def binarized(corpus: Path, out: Path, **options: Any) -> None:
    pybpe.binarize(small_tokenizer(), out=out, **{**COMMON, **named(corpus, **options), **options})


def packed(corpus: Path, out: Path, **options: Any) -> None:
    data = out.with_name(f"{out.name}-data")
    binarized(corpus, data, shard_tokens=6000)
    pybpe.pack(small_tokenizer(), data, out, sequence_length=64, shard_tokens=6000, progress=False, **options)


def written_by_workers(corpus: Path, out: Path, **options: Any) -> None:
    with ThreadPoolExecutor(2) as executor:
        binarized(corpus, out, executor=executor, workers=2, **options)


def joined(corpus: Path, out: Path, **options: Any) -> None:
    parts = [out.with_name(f"{out.name}-{name}") for name in INPUTS[:3]]
    for name, part in zip(INPUTS, parts):
        binarized(corpus / name, part, **options)
    pybpe.join(small_tokenizer(), parts, out, progress=False)


def mixed(corpus: Path, out: Path, **options: Any) -> None:
    sources = {name[0]: {"data": str(out.with_name(f"{out.name}-{name}")), "epochs": 1.5} for name in INPUTS[:2]}
    for name, source in zip(INPUTS, sources.values()):
        binarized(corpus / name, Path(str(source["data"])))
    pybpe.mix(small_tokenizer(), {"sources": sources}, out, min_shard_tokens=0, progress=False, **options)


def prepared(corpus: Path, out: Path, **options: Any) -> None:
    pybpe.prepare(out=out, vocab_size=400, min_frequency=2, **COMMON, **named(corpus, **options), **options)


def as_array(corpus: Path, out: Path, **options: Any) -> None:
    out.mkdir()
    inputs = named(corpus)["inputs"]
    pybpe.encode_files(small_tokenizer(), inputs, out / "ids.npy", progress=False, **options)


def cases() -> dict[str, Callable[[Path, Path], None]]:
    """Returns what writes each case's files: given the folder of the corpus, and the output folder."""
    found: dict[str, Callable[[Path, Path], None]] = {}

    def add(write: Callable[..., None], input: str = "", **options: Any) -> None:
        name = " ".join([write.__name__, input or "folder", *(f"{key}={value}" for key, value in options.items())])
        found[name] = lambda corpus, out: write(corpus / input, out, **options)

    for form, eot in product(("llmc", "raw", "npy", "megatron"), ("prepend", "append", "none")):
        for split_by in ("hash", "token"):
            add(binarized, format=form, eot=eot, split_by=split_by)
    for form, size, input in product(("llmc", "npy"), (1000, 9000), INPUTS):
        add(binarized, input, format=form, shard_tokens=size)
        add(binarized, input, format=form, shard_tokens=size, min_shard_tokens=700, splits=(1,))
    for form, method in product(("llmc", "npy", "webdataset"), ("best-fit", "fill")):
        add(packed, format=form, packing=method)
    for form, eot in product(("llmc", "npy", "raw"), ("prepend", "append")):
        sizes = {} if form == "raw" else {"shard_tokens": 7000}
        add(written_by_workers, format=form, eot=eot, **sizes)
        add(joined, format=form, eot=eot, **sizes)
    add(mixed)
    add(mixed, format="npy", shard_tokens=5000)
    add(prepared)
    add(prepared, documents="line", format="raw")
    add(as_array)
    add(as_array, "b.jsonl")
    return found


def digest(folder: Path) -> str:
    """Returns a hash of the names and bytes of a folder's files, except its manifest."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and "manifest" not in path.name:
            found.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "corpus"
    write_corpus(folder)
    return folder


@pytest.mark.parametrize("name", cases())
@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
def test_files_are_as_they_were(name: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    cases()[name](corpus, tmp_path / "out")
    assert digest(tmp_path / "out") == json.loads(GOLDENS.read_bytes())[name]


def test_all_cases_are_recorded() -> None:
    assert sorted(json.loads(GOLDENS.read_bytes())) == sorted(cases())


def _record() -> None:
    planning.TASK_BYTES = 20_000
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "corpus")
        digests = {}
        for number, (name, write) in enumerate(sorted(cases().items())):
            out = Path(folder) / str(number)
            write(Path(folder) / "corpus", out)
            digests[name] = digest(out)
    GOLDENS.write_text(json.dumps(digests, indent=1) + "\n")
    print(f"{GOLDENS}: {len(digests)} cases", file=sys.stderr)


if __name__ == "__main__":
    _record()
