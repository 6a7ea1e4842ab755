"""The C DataLoader against llm.c's own batches (tests/vectors) and a slow reference."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from reference.loader import DataLoader, MersenneTwister
from test_shard_core import call, path_bytes, write_shard

from pybpe._core import ffi, lib

SIZES = [1000, 777, 2049, 513, 1025]  # of the shards that tests/vectors/README.md describes
CASES = json.loads((Path(__file__).parents[1] / "vectors" / "loader_llmc.json").read_text())


def tokens_of(shard: int, size: int, modulus: int = 1 << 16) -> list[int]:
    return [(i * 2654435761 + shard * 40503) % modulus for i in range(size)]


def write_shards(folder: Path, shards: list[list[int]], id_bytes: int = 2) -> str:
    for k, tokens in enumerate(shards):
        write_shard(folder / f"golden_{k:06d}.bin", tokens, id_bytes)
    return str(folder / "golden_*.bin")


class Loader:
    """The C loader, with lists for buffers."""

    def __init__(self, pattern: str, B: int, T: int, rank: int = 0, world: int = 1, shuffle: bool = False) -> None:
        out = ffi.new("pybpe_loader **")
        call(lib.pybpe_loader_new, out, path_bytes(pattern), B, T, rank, world, int(shuffle), ffi.NULL)
        self.handle = ffi.gc(out[0], lib.pybpe_loader_free)
        self.inputs = ffi.new("int32_t[]", B * T)
        self.targets = ffi.new("int32_t[]", B * T)

    def next(self) -> tuple[list[int], list[int]]:
        call(lib.pybpe_loader_next, self.handle, self.inputs, self.targets)
        return list(self.inputs), list(self.targets)

    def reset(self) -> None:
        call(lib.pybpe_loader_reset, self.handle)

    def seek(self, batches: int) -> None:
        call(lib.pybpe_loader_seek, self.handle, batches)


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
    loader = Loader(golden, case["B"], case["T"], case["rank"], case["world"], case["shuffle"])
    assert serve(loader, case) == (case["first"], case["fnv1a"])
    assert lib.pybpe_loader_tokens(loader.handle) == case["num_tokens"] == sum(SIZES)
    assert lib.pybpe_loader_shards(loader.handle) == len(SIZES)
    sample = case["B"] * case["T"] * case["world"]
    assert lib.pybpe_loader_batches(loader.handle) == sum((n - 1) // sample for n in SIZES)


@pytest.mark.parametrize("case", [c for c in CASES if c["B"] > 1], ids=case_name)
def test_the_reference_is_llmc_too(case: dict[str, Any]) -> None:
    shards = [tokens_of(k, n) for k, n in enumerate(SIZES)]
    loader = DataLoader(shards, case["B"], case["T"], case["rank"], case["world"], case["shuffle"])
    assert serve(loader, case) == (case["first"], case["fnv1a"])


def test_the_reference_draws_standard_mt19937() -> None:
    # The 10,000th number of seed 5489 is in the C++ standard, [rand.predef]; the others are PyTorch's, in rand.h.
    rng = MersenneTwister(5489)
    assert [rng.next() for _ in range(10_000)][-1] == 4123659995
    rng = MersenneTwister(137)
    assert [rng.next() for _ in range(5)] == [4053805790, 2173880614, 380293709, 1237255315, 2986595568]


@pytest.mark.parametrize("id_bytes", [2, 4])
def test_random_settings_equal_the_reference(tmp_path: Path, id_bytes: int) -> None:
    rng = random.Random(7 + id_bytes)
    for trial in range(25):
        B, T, world = rng.randint(1, 5), rng.randint(1, 9), rng.randint(1, 4)
        least = B * T * world + 1
        shards = [tokens_of(k, least + rng.randint(0, 300), 1 << (8 * id_bytes - 1)) for k in range(rng.randint(1, 6))]
        folder = tmp_path / str(trial)
        folder.mkdir()
        rank, shuffle = rng.randrange(world), rng.random() < 0.7
        setting = (B, T, rank, world, shuffle)
        ours, theirs = Loader(write_shards(folder, shards, id_bytes), *setting), DataLoader(shards, *setting)
        for _ in range(150):
            if rng.random() < 0.02:
                ours.reset()
                theirs.reset()
            assert ours.next() == theirs.next(), (setting, [len(s) for s in shards])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("setting", [(4, 16, 0, 1), (8, 64, 0, 1), (2, 32, 1, 2)])
def test_seek_is_as_many_batches(golden: str, setting: tuple[int, int, int, int], shuffle: bool) -> None:
    walker, seeker = Loader(golden, *setting, shuffle), Loader(golden, *setting, shuffle)
    epoch = lib.pybpe_loader_batches(walker.handle)
    expected = [walker.next() for _ in range(5 * epoch)]
    places = sorted({*range(0, 2 * epoch + 3, 3), epoch - 1, epoch, epoch + 1, 3 * epoch, 4 * epoch})
    random.Random(5).shuffle(places)
    for place in places:  # in any order: a seek does not depend on the loader's position
        seeker.seek(place)
        assert [seeker.next() for _ in range(4)] == expected[place : place + 4]


@pytest.mark.parametrize("batches", [0, 1, 17, 82, 83, 84, 200])
def test_a_reset_after_seek_draws_what_it_would_have_drawn(golden: str, batches: int) -> None:
    walker, seeker = Loader(golden, 4, 16, 0, 1, True), Loader(golden, 4, 16, 0, 1, True)
    for _ in range(batches):
        walker.next()
    seeker.seek(batches)
    walker.reset()
    seeker.reset()
    assert [walker.next() for _ in range(90)] == [seeker.next() for _ in range(90)]


def test_far_seeks(golden: str) -> None:
    loader = Loader(golden, 8, 64, 0, 1, True)
    oracle = DataLoader([tokens_of(k, n) for k, n in enumerate(SIZES)], 8, 64, 0, 1, True)
    for _ in range(20_000):
        expected = oracle.next()
    loader.seek(19_999)
    assert loader.next() == expected
    with pytest.raises(RuntimeError, match="1000000000 is the last"):
        loader.seek(10**9 + 1)
    assert loader.next() == oracle.next()  # a refused seek changes nothing
    straight = Loader(golden, 8, 64)
    straight.seek(2**64 - 1)
    distance = (2**64 - 1) % lib.pybpe_loader_batches(straight.handle)
    other = Loader(golden, 8, 64)
    for _ in range(distance):
        other.next()
    assert straight.next() == other.next()


def test_shards_are_taken_in_the_order_of_bytes(tmp_path: Path) -> None:
    names = ["b", "a", "B", "é", "a-b", "aa", "_"]
    for value, name in enumerate(sorted((f"{name}.bin" for name in names), key=str.encode)):
        write_shard(tmp_path / name, [value] * 3, 2)
    loader = Loader(str(tmp_path / "*.bin"), 1, 2)
    assert [loader.next()[0][0] for _ in names] == list(range(len(names)))


def test_more_shards_than_open_files(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    for k in range(150):
        write_shard(tmp_path / f"{k:03d}.bin", [k, k, k], 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, limits[1]))
    try:
        loader = Loader(str(tmp_path / "*.bin"), 1, 2)
        assert [loader.next()[0][0] for _ in range(300)] == list(range(150)) * 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, 0, 1), "B 0"),
        ((4, 0, 0, 1), "T 0"),
        ((4, 4, -1, 1), "rank -1"),
        ((4, 4, 1, 1), "rank 1 of 1"),
        ((4, 4, 0, 0), "rank 0 of 0"),
        ((2**33, 2**33, 0, 1), "more than a shard can hold"),
        ((2**31, 1, 0, 1), "more than a shard can hold"),
        ((4, 256, 0, 1), "golden_000000.bin: 1000 tokens.* = 1025 are needed"),
    ],
)
def test_arguments(golden: str, arguments: tuple[int, int, int, int], message: str) -> None:
    B, T, rank, world = arguments
    out = ffi.new("pybpe_loader **")
    with pytest.raises(RuntimeError, match=message):
        call(lib.pybpe_loader_new, out, path_bytes(golden), B, T, rank, world, 0, ffi.NULL)
    assert out[0] == ffi.NULL


def test_exactly_enough_tokens(tmp_path: Path) -> None:
    pattern = write_shards(tmp_path, [list(range(9))])
    assert Loader(pattern, 2, 4).next() == ([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8])
    with pytest.raises(RuntimeError, match="9 tokens"):
        Loader(pattern, 3, 3)


def test_patterns_that_match_nothing_or_damage(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no shard matches"):
        Loader(str(tmp_path / "*.bin"), 1, 1)
    write_shards(tmp_path, [list(range(9))])
    (tmp_path / "golden_000001.bin").write_bytes(b"not a shard")
    with pytest.raises(RuntimeError, match="golden_000001.bin: 11 bytes"):
        Loader(str(tmp_path / "*.bin"), 1, 1)


def test_a_shard_that_changes_under_way(tmp_path: Path) -> None:
    pattern = write_shards(tmp_path, [[0, 1, 2], [3, 4, 5]])
    loader = Loader(pattern, 1, 2)
    loader.next()
    (tmp_path / "golden_000001.bin").unlink()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="golden_000001.bin: cannot be opened"):
            loader.next()
    write_shard(tmp_path / "golden_000001.bin", [6, 7, 8, 9], 2)
    with pytest.raises(RuntimeError, match="4 tokens, but it had 3"):
        loader.next()
    loader = Loader(str(tmp_path / "golden_000001.bin"), 1, 2)
    with open(tmp_path / "golden_000001.bin", "r+b") as file:
        file.truncate(1024 + 3)
    with pytest.raises(RuntimeError, match="ends at offset 1027"):
        loader.next()


def test_ids_beyond_int32(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.bin", [1, 2**31 - 1, 2**31, 4], 4)
    with pytest.raises(RuntimeError, match="id 2147483648 at offset 1032 does not fit int32"):
        Loader(str(tmp_path / "a.bin"), 1, 2).next()
    assert Loader(str(tmp_path / "a.bin"), 1, 1).next() == ([1], [2**31 - 1])
