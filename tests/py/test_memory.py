"""The peak memory of the commands that read or check a corpus grows neither with the corpus nor with its shape.

Each command runs in its own process, whose peak memory Linux reports when it ends.
"""

import gzip
import io
import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, small_tokenizer

from pybpe.errors import FormatError, MissingExtraError
from pybpe.reading.streams import zstd_module
from pybpe.tokens.formats import FORMATS

pytest.importorskip("resource")
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    small_tokenizer().save(folder / "tok.json")
    return folder


# ------------------------------------------------------------------------------------------------------
# Files of several sizes

# A file, and one of four times its size. The words are those of a fixed vocabulary, so word counts do not grow either.
SIZES = (1500, 6000)  # records of 4 kB
GROWTH = 18  # MB; the sizes differ by 23
# Arrow keeps memory that it has freed, more in some runs than in others.
ARROW_SIZES = (1500, 30_000)
ARROW_GROWTH = 80  # MB; the sizes differ by 110
QUIET = ["--workers", 1, "--quiet"]


def texts(count: int) -> Iterator[str]:
    """Yields texts, of which every tenth one is a near duplicate of another, and every hundredth one equals one."""
    rng = random.Random(1)
    one: list[str] = []
    for number in range(count):
        if number % 10 or number < 10:
            one = rng.choices(WORDS, k=800)
        elif number % 100:
            one = [*one[:400], "changed", *one[401:]]
        yield " ".join(one)


def jsonl(path: Path, count: int) -> None:
    with path.open("w") as stream:
        stream.writelines(json.dumps({"text": text}) + "\n" for text in texts(count))


def zst(path: Path, count: int) -> None:
    with zstd_module(str(path)).open(path, "wt") as stream:
        stream.writelines(json.dumps({"text": text}) + "\n" for text in texts(count))


def parquet(path: Path, count: int) -> None:
    """Writes groups of some MB, as large files have them. pyarrow takes much memory, so another process does it."""
    import pyarrow
    import pyarrow.parquet

    rows = list(texts(count))
    pyarrow.parquet.write_table(pyarrow.table({"text": rows}), path, row_group_size=500)


def can_read_zst() -> bool:
    try:
        return zstd_module("x.zst") is not None
    except MissingExtraError:
        return False


KINDS: dict[str, tuple[Callable[[Path, int], None], bool]] = {
    "jsonl": (jsonl, True),
    "jsonl.zst": (zst, can_read_zst()),
    "parquet": (parquet, find_spec("pyarrow") is not None),
}


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, list[Path]]:
    """Returns the two files of each format that can be read here."""
    found = {}
    for name, (write, available) in KINDS.items():
        if available:
            sizes = ARROW_SIZES if name == "parquet" else SIZES
            found[name] = [folder / f"{count}.{name}" for count in sizes]
            for path, count in zip(found[name], sizes):
                write(path, count)
    return found


def growth(*commands: list[Any]) -> int:
    """Returns the difference of the peak memory of two commands, in MB."""
    first, second = (peak_megabytes(*command, *QUIET) for command in commands)
    return second - first


COMMANDS: dict[str, Callable[[Path, Path], list[Any]]] = {
    "binarize": lambda path, out: [
        "binarize", "-t", out.parent / "tok.json", path, "-o", out, "--shard-tokens", 200_000,
    ],
    "train": lambda path, out: ["train", path, "--vocab-size", 300, "-o", f"{out}.json"],
    "corpus": lambda path, out: [
        "corpus", path, "-o", f"{out}.jsonl", "--filters", "gopher", "--dedup", "--near-dedup", 0.8,
        "--dedup-paragraphs", "--memory-limit", "1M",
    ],
}  # fmt: skip


CASES = [("train", "jsonl"), ("corpus", "jsonl")]
CASES += [(command, form) for command in ("binarize", "corpus") for form in ("jsonl.zst", "parquet")]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "form"), CASES)
def test_reading_takes_no_more_memory(command: str, form: str, files: dict[str, list[Path]], folder: Path) -> None:
    if form not in files:
        pytest.skip(f"{form} needs a package that is not installed")
    made = [COMMANDS[command](path, folder / f"{command}-{path.name}") for path in files[form]]
    assert growth(*made) < (ARROW_GROWTH if form == "parquet" else GROWTH)


RELEASE = """
from pathlib import Path
from pybpe.support.parallel import release_memory
some = [bytes(2000) for _ in range(50_000)]
del some[:-1]  # the last one keeps the allocator from returning the others
before = int(Path("/proc/self/statm").read_text().split()[1])
release_memory()
print(before - int(Path("/proc/self/statm").read_text().split()[1]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no such function")
def test_free_memory_is_released() -> None:
    done = subprocess.run([sys.executable, "-c", RELEASE], capture_output=True, text=True, check=True)
    assert int(done.stdout) * os.sysconf("SC_PAGE_SIZE") > 50_000_000


@pytest.mark.slow
def test_mix_stays_below_the_memory_limit(folder: Path) -> None:
    (folder / "mix.txt").write_text("".join(f"{number} {' '.join(WORDS * 5)}\n" for number in range(1500)))
    peak_megabytes("binarize", "-t", folder / "tok.json", folder / "mix.txt", "-o", folder / "mix", *QUIET)
    (folder / "mix.toml").write_text(f"[sources.a]\ndata = '{folder / 'mix'}'\nepochs = 40\n")
    given = ["-t", folder / "tok.json", "-o", folder / "mixed", "--memory-limit", "120M", "--quiet"]
    assert peak_megabytes("mix", folder / "mix.toml", *given) <= 120


# ------------------------------------------------------------------------------------------------------
# Corpora of several shapes. The limits leave room for other versions of Python and numpy, but not for what used to go
# wrong: a buffer of 2 MiB for each small file, or a whole document or all documents in memory.


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


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_peak_memory(folder: Path, shape: str) -> None:
    """Also of checking what binarize has written."""
    make, how = SHAPES[shape]
    corpus, out, tok = make(folder), folder / f"out {shape}", folder / "tok.json"
    commands: dict[str, list[Any]] = {
        "binarize": ["binarize", "-t", tok, corpus, "-o", out, *how, "--workers", 2],
        "counts": ["count", corpus, "-o", folder / f"{shape}.counts", "--workers", 2],
    }
    if shape in ("small files", "many documents"):
        prepared = folder / f"prepared {shape}"
        commands["prepare"] = ["prepare", corpus, "-o", prepared, "--vocab-size", 400, "--workers", 2]
    if shape == "many documents":
        commands |= {"verify": ["verify", "-t", tok, out], "stats": ["inspect", out]}
    found = {name: peak_megabytes(*command, "--quiet") for name, command in commands.items()}
    assert not {name: peak for name, peak in found.items() if peak >= LIMITS[name]}


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
