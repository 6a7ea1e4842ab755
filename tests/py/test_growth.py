"""The peak memory of the commands that read or check a corpus does not grow with it: a file, and one of four times its
size. The records are those of Zipf's law over a fixed vocabulary, so that word counts do not grow either.

test_shapes.py has limits for other shapes of input.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from corpora import small_tokenizer
from test_shapes import WORDS, peak_megabytes

from pybpe.errors import MissingExtraError
from pybpe.reading.unpacking import zstd_module

pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")

SIZES = (1500, 6000)  # records of 4 kB
GROWTH = 15  # MB; the sizes differ by 23
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


FORMATS: dict[str, tuple[Callable[[Path, int], None], bool]] = {
    "jsonl": (jsonl, True),
    "jsonl.zst": (zst, can_read_zst()),
    "parquet": (parquet, find_spec("pyarrow") is not None),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("growth")
    small_tokenizer().save(folder / "tok.json")
    return folder


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, list[Path]]:
    """Returns the two files of each format that can be read here."""
    found = {}
    for name, (write, available) in FORMATS.items():
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
    "binarize": lambda path, out: ["binarize", "-t", out.parent / "tok.json", path, "-o", out],
    "counts": lambda path, out: ["count", path, "-o", f"{out}.counts"],
    "train": lambda path, out: ["train", path, "--vocab-size", 300, "-o", f"{out}.json"],
    "corpus": lambda path, out: [
        "corpus", path, "-o", f"{out}.jsonl", "--filters", "gopher", "--dedup", "--near-dedup", 0.8,
        "--dedup-paragraphs", "--memory-limit", "1M",
    ],
    "prepare": lambda path, out: ["prepare", path, "--vocab-size", 300, "-o", out],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, form",
    [
        (command, form)
        for command in COMMANDS
        for form in FORMATS
        if (command, form) not in (("counts", "parquet"), ("train", "parquet"))  # they read no parquet
    ],
)
def test_reading_takes_no_more_memory(command: str, form: str, files: dict[str, list[Path]], folder: Path) -> None:
    if form not in files:
        pytest.skip(f"{form} needs a package that is not installed")
    made = [COMMANDS[command](path, folder / f"{command}-{path.name}") for path in files[form]]
    assert growth(*made) < (ARROW_GROWTH if form == "parquet" else GROWTH)


@pytest.mark.slow
def test_checking_takes_no_more_memory(files: dict[str, list[Path]], folder: Path) -> None:
    outs = [folder / f"checked-{path.name}" for path in files["jsonl"]]
    for path, out in zip(files["jsonl"], outs):
        peak_megabytes(*COMMANDS["binarize"](path, out), "--shard-tokens", 200_000, *QUIET)
    for command in (["verify", "-t", folder / "tok.json"], ["inspect"]):
        peaks = [peak_megabytes(*command, out, "--quiet") for out in outs]
        assert peaks[1] - peaks[0] < GROWTH
