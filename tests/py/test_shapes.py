"""The peak memory of the commands that read a corpus does not grow with the corpus, whatever its shape.

Each case runs in its own process, whose peak memory Linux reports when it ends. The limits leave room for other
versions of Python and numpy, but not for what used to go wrong: a buffer of 2 MiB for each small file, or a whole
document or all documents in memory.
"""

import gzip
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import EOT, small_tokenizer

from pybpe.errors import FormatError
from pybpe.tokens.formats import FORMATS

numpy = pytest.importorskip("numpy")
resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")

WORDS = [f"{word}{number}" for word in ("red", "green", "blue", "one", "two") for number in range(100)]
LIMITS = {"binarize": 110, "prepare": 110, "counts": 90, "verify": 130, "stats": 130}  # MB

# Python itself starts with the memory of the process that starts it, if that has more: so a small one starts it.
RUN = """
import os, sys
pid = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss // 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


READ = """
import sys
from pybpe.tokens.formats import FORMATS
print(sum(int(block.sum()) for block in FORMATS[sys.argv[1]].read(sys.argv[2], "uint16")))
"""


def peak_megabytes(*args: object) -> int:
    """Runs a command of pybpe in another process. Returns its peak memory."""
    return peak_of_python("-m", "pybpe", *args)


def peak_of_python(*args: object) -> int:
    command = [sys.executable, "-S", "-c", RUN, *map(str, args)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout.splitlines()[-1])


def text(size: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=size // 5))[:size]


def small_files(folder: Path) -> Path:
    (folder / "small").mkdir()
    for number in range(3000):
        (folder / "small" / f"{number}.txt").write_text(f"{number} {WORDS[number % 500]}")
    return folder / "small"


def lines(folder: Path) -> Path:
    (folder / "lines.txt").write_text("".join(f"{word} {number}\n" for number in range(400) for word in WORDS))
    return folder / "lines.txt"


def short_records(folder: Path) -> Path:
    (folder / "short.jsonl").write_text("".join(f'{{"text": "{w} {n}"}}\n' for n in range(300) for w in WORDS))
    return folder / "short.jsonl"


def one_document(folder: Path) -> Path:
    (folder / "book.txt").write_text(text(1 << 20, 1) * 64)
    return folder / "book.txt"


def many_documents(folder: Path) -> Path:
    one = text(3000, 2)
    with (folder / "marked.txt").open("w") as stream:
        stream.writelines(f"{number} {one}{EOT}" for number in range(16_000))
    return folder / "marked.txt"


def compressed(folder: Path) -> Path:
    one = text(3000, 3)
    with gzip.open(folder / "long.jsonl.gz", "wt", compresslevel=1) as stream:
        stream.writelines(json.dumps({"text": f"{number} {one}"}) + "\n" for number in range(16_000))
    return folder / "long.jsonl.gz"


SHAPES = {
    "small files": (small_files, []),
    "lines": (lines, ["--documents", "line"]),
    "short records": (short_records, []),
    "one document": (one_document, []),
    "many documents": (many_documents, []),
    "compressed": (compressed, []),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    small_tokenizer().save(folder / "tok.json")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_peak_memory(folder: Path, shape: str) -> None:
    make, how = SHAPES[shape]
    corpus, out = make(folder), folder / f"out {shape}"
    quiet = ["--workers", 2, "--quiet"]
    found = {
        "binarize": peak_megabytes("binarize", "-t", folder / "tok.json", corpus, "-o", out, *how, *quiet),
        "verify": peak_megabytes("verify", "-t", folder / "tok.json", out, "--quiet"),
        "stats": peak_megabytes("inspect", out, "--quiet"),
        "counts": peak_megabytes("count", corpus, "-o", folder / "x.counts", *quiet),
    }
    assert not {command: peak for command, peak in found.items() if peak >= LIMITS[command]}


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["small files", "many documents"])
def test_peak_memory_of_prepare(folder: Path, shape: str) -> None:
    again = folder / f"again {shape}"
    again.mkdir()
    corpus, out = SHAPES[shape][0](again), folder / f"prepared {shape}"
    found = peak_megabytes("prepare", corpus, "-o", out, "--vocab-size", 400, "--workers", 2, "--quiet")
    assert found < LIMITS["prepare"]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "shape"), [("raw", None), ("npy", (1 << 27,)), ("npy", (1 << 17, 1 << 10))])
def test_peak_memory_of_reading_a_large_token_file(tmp_path: Path, form: str, shape: tuple[int, ...] | None) -> None:
    path = tmp_path / "large"
    header = b""
    if shape is not None:
        stream = io.BytesIO()
        numpy.lib.format.write_array_header_1_0(stream, {"descr": "<u2", "fortran_order": False, "shape": shape})
        header = stream.getvalue()
    path.write_bytes(header)
    os.truncate(path, len(header) + (1 << 28))  # zeros, which need no space on the disk
    assert peak_of_python("-c", READ, form, path) < 130


def test_an_array_stored_by_columns_is_refused(tmp_path: Path) -> None:
    numpy.save(tmp_path / "columns.npy", numpy.asfortranarray(numpy.arange(6, dtype=numpy.uint16).reshape(2, 3)))
    with pytest.raises(FormatError, match="columns.npy: stores its rows by columns"):
        list(FORMATS["npy"].read(str(tmp_path / "columns.npy"), "uint16"))
