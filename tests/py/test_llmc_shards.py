"""Token shards, and the DataLoader against llm.c's own batches (tests/vectors) and a slow reference.

tests/c/test_shard.c and test_loader.c have every damaged byte, the limits of the writer, and faults under way.
"""

import json
import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy
import pytest
from reference.loader import DataLoader as Slow

from llmc_compat.shards import DataLoader, read_shard, write_shard
from pybpe.errors import ArgumentError, FileError, FormatError, LimitError

SIZES = [1000, 777, 2049, 513, 1025]  # of the shards that tests/vectors/README.md describes
CASES = json.loads((Path(__file__).parents[1] / "vectors" / "loader_llmc.json").read_text())


def tokens_of(shard: int, size: int, modulus: int = 1 << 16) -> list[int]:
    return [(i * 2654435761 + shard * 40503) % modulus for i in range(size)]


def write_shards(folder: Path, shards: list[list[int]], dtype: str = "u2") -> str:
    folder.mkdir(exist_ok=True)
    for k, tokens in enumerate(shards):
        write_shard(folder / f"golden_{k:06d}.bin", numpy.array(tokens, dtype=dtype))
    return str(folder / "golden_*.bin")


class Flat:
    """A DataLoader whose batches are pairs of lists, as those of the slow one."""

    def __init__(self, pattern: str, B: int, T: int, rank: int = 0, world: int = 1, shuffle: bool = False) -> None:
        self.loader = DataLoader(pattern, B, T, rank, world, shuffle)
        self.reset, self.seek = self.loader.reset, self.loader.seek

    def next(self) -> tuple[list[int], list[int]]:
        inputs, targets = self.loader.next_batch()
        return inputs.ravel().tolist(), targets.ravel().tolist()


def fnv1a(h: int, numbers: list[int]) -> int:
    for x in numbers:
        for byte in x.to_bytes(4, "little"):
            h = (h ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return h


def serve(loader: Any, case: dict[str, Any]) -> tuple[list[int], str]:
    """Returns what a case records: the first inputs, and the hash of all inputs."""
    h, first = 14695981039346656037, []
    for n in range(case["batches"]):
        if n == case["reset_after"]:
            loader.reset()
        inputs, targets = loader.next()
        first.append(inputs[0])
        h = fnv1a(h, [x for pair in zip(inputs, targets) for x in pair])
    return first[: len(case["first"])], f"{h:016x}"


def case_name(case: dict[str, Any]) -> str:
    return "B{B}-T{T}-{rank}of{world}-shuffle{shuffle}".format(**case)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_shards(tmp_path_factory.mktemp("golden"), [tokens_of(k, n) for k, n in enumerate(SIZES)])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_batches_are_those_of_llmc(golden: str, case: dict[str, Any]) -> None:
    flat = Flat(golden, case["B"], case["T"], case["rank"], case["world"], case["shuffle"])
    assert serve(flat, case) == (case["first"], case["fnv1a"])
    loader, sample = flat.loader, case["B"] * case["T"] * case["world"]
    assert loader.num_tokens == case["num_tokens"] == sum(SIZES) and loader.num_shards == len(SIZES)
    assert loader.batches_per_epoch == sum((n - 1) // sample for n in SIZES)


@pytest.mark.parametrize("case", [c for c in CASES if c["B"] > 1], ids=case_name)
def test_the_reference_is_llmc_too(case: dict[str, Any]) -> None:
    shards = [tokens_of(k, n) for k, n in enumerate(SIZES)]
    loader = Slow(shards, case["B"], case["T"], case["rank"], case["world"], case["shuffle"])
    assert serve(loader, case) == (case["first"], case["fnv1a"])


@pytest.mark.parametrize("id_bytes", [2, 4])
def test_random_settings_equal_the_reference(tmp_path: Path, id_bytes: int) -> None:
    rng = random.Random(7 + id_bytes)
    for trial in range(15):
        B, T, world = rng.randint(1, 5), rng.randint(1, 9), rng.randint(1, 4)
        least = B * T * world + 1
        shards = [tokens_of(k, least + rng.randint(0, 300), 1 << (8 * id_bytes - 1)) for k in range(rng.randint(1, 6))]
        rank, shuffle = rng.randrange(world), rng.random() < 0.7
        setting = (B, T, rank, world, shuffle)
        pattern = write_shards(tmp_path / str(trial), shards, f"u{id_bytes}")
        ours, theirs = Flat(pattern, *setting), Slow(shards, *setting)
        for _ in range(120):
            if rng.random() < 0.02:
                ours.reset()
                theirs.reset()
            assert ours.next() == theirs.next(), (setting, [len(s) for s in shards])


@pytest.mark.parametrize("setting", [(4, 16, 0, 1), (8, 64, 0, 1), (2, 32, 1, 2)])
def test_seek_is_as_many_batches(golden: str, setting: tuple[int, int, int, int]) -> None:
    walker, seeker = Flat(golden, *setting, True), Flat(golden, *setting, True)
    epoch = walker.loader.batches_per_epoch
    expected = [walker.next() for _ in range(5 * epoch)]
    places = sorted({*range(0, 2 * epoch + 3, 3), epoch - 1, epoch, epoch + 1, 3 * epoch, 4 * epoch})
    random.Random(5).shuffle(places)
    for place in places:  # in any order: a seek does not depend on the loader's position
        seeker.seek(place)
        assert [seeker.next() for _ in range(4)] == expected[place : place + 4]


def test_a_reset_after_seek_draws_what_it_would_have_drawn(golden: str) -> None:
    for batches in (0, 17, 82, 83, 84, 200):
        walker, seeker = Flat(golden, 4, 16, 0, 1, True), Flat(golden, 4, 16, 0, 1, True)
        for _ in range(batches):
            walker.next()
        seeker.seek(batches)
        walker.reset()
        seeker.reset()
        assert [walker.next() for _ in range(90)] == [seeker.next() for _ in range(90)], batches


def test_far_seeks(golden: str) -> None:
    loader = Flat(golden, 8, 64, 0, 1, True)
    oracle = Slow([tokens_of(k, n) for k, n in enumerate(SIZES)], 8, 64, 0, 1, True)
    for _ in range(3000):
        expected = oracle.next()
    loader.seek(2999)
    assert loader.next() == expected
    with pytest.raises(ArgumentError, match="1000000000 is the last"):
        loader.seek(10**9 + 1)
    assert loader.next() == oracle.next()  # a refused seek changes nothing


def test_shards_are_taken_in_the_order_of_bytes(tmp_path: Path) -> None:
    names = ["b", "a", "B", "é", "a-b", "aa", "_"]
    for value, name in enumerate(sorted((f"{name}.bin" for name in names), key=str.encode)):
        write_shard(tmp_path / name, numpy.full(3, value, "u2"))
    loader = Flat(str(tmp_path / "*.bin"), 1, 2)
    assert [loader.next()[0][0] for _ in names] == list(range(len(names)))


def test_more_shards_than_open_files(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    for k in range(150):
        write_shard(tmp_path / f"{k:03d}.bin", numpy.full(3, k, "u2"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, limits[1]))
    try:
        loader = Flat(str(tmp_path / "*.bin"), 1, 2)
        assert [loader.next()[0][0] for _ in range(300)] == list(range(150)) * 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


# ------------------------------------------------------------------------------------------------------
# Refusals


def header(count: int, magic: int = 20240520, version: int = 1) -> bytes:
    return struct.pack("<3i", magic, version, count).ljust(1024, b"\0")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes are not a token shard: the header alone has 1024"),
        (b"\1\0" * 600, "magic 65537 at offset 0, expected 20240520 .*'Bad magic'"),
        (header(0, version=2), "version 2 at offset 4, expected 1; llm.c aborts"),
        (header(-1), "token count -1 at offset 8 is negative"),
        (header(2**31 - 1, 20240801, 7), "1024 bytes, expected 8589935612 for the 2147483647 tokens"),
        (header(3) + bytes(5), "1029 bytes, expected 1030"),
    ],
)
def test_what_is_no_shard_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "s.bin").write_bytes(data)
    for read in (read_shard, lambda path: DataLoader(path, 1, 1)):
        with pytest.raises(FormatError, match=r"s\.bin: " + message):
            read(tmp_path / "s.bin")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, Path("/dev/null"), Path("x" * 5000)):
        with pytest.raises(FileError):
            read_shard(path)
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "s.bin", tmp_path):
        with pytest.raises(FileError):
            write_shard(path, numpy.arange(3, dtype="u2"))


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ArgumentError, "at least 1", {"B": 0}),
        (ArgumentError, "at least 1", {"T": -1}),
        (ArgumentError, "rank", {"process_rank": 1, "num_processes": 1}),
        (ArgumentError, "pass both process_rank and num_processes, or neither", {"process_rank": 1}),
        (ArgumentError, "pass both process_rank and num_processes, or neither", {"num_processes": 2}),
        (LimitError, "golden_000003.bin: 513 tokens.* = 601 are needed", {"B": 3, "T": 200}),
        (FileError, "no shard matches", {"filename_pattern": "none*.bin"}),
    ],
)
def test_arguments(golden: str, error: type[Exception], message: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        DataLoader(**{"filename_pattern": golden, "B": 1, "T": 2} | arguments)
    with pytest.raises(ArgumentError, match="batches must be at least 0, not -1"):
        DataLoader(golden, 1, 2).seek(-1)


def test_only_ids_are_written(tmp_path: Path) -> None:
    for ids in (numpy.arange(4.0), numpy.arange(4), numpy.zeros((2, 2), dtype="u2")):
        with pytest.raises(ArgumentError, match="one-dimensional uint16 or uint32"):
            write_shard(tmp_path / "x.bin", ids)
    assert os.listdir(tmp_path) == []
    for dtype in ("u2", "u4"):
        write_shard(tmp_path / "x.bin", numpy.array([0, 1, 65535], dtype))
        found = read_shard(tmp_path / "x.bin")
        assert found.dtype == dtype and found.tolist() == [0, 1, 65535]
    assert os.listdir(tmp_path) == ["x.bin"]
