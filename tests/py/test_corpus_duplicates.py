"""Pairs, clusters and repeats in little memory, against the obvious ways; memory of cleaning a corpus."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import pybpe
from pybpe import corpus
from pybpe.corpus import decisions, near_duplicates, work
from pybpe.corpus.duplicates import digest, repeated


@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("kinds", [1, 2, 300, 3000])
def test_pairs_to_compare(shares: int, kinds: int) -> None:
    """Keys that all numbers have, or few: each number meets the first and the one before it with the same key."""
    rng = numpy.random.default_rng(kinds)
    some = rng.integers(0, 2**64 - 1, size=kinds, dtype=numpy.uint64)
    some[1::3] = some[0] ^ numpy.uint64(1)  # equal, except in the last bit
    keys = some[rng.integers(0, kinds, size=3000)]
    numbers = numpy.arange(100, 3100)
    members: dict[int, list[int]] = {}
    for number, key in zip(numbers.tolist(), keys.tolist()):
        members.setdefault(key, []).append(number)
    expected = {(low, high) for some in members.values() for low, high in zip(some, some[1:])}
    expected |= {(some[0], other) for some in members.values() for other in some[1:]}
    blocks = [(keys[:1000], numbers[:1000]), (keys[:0], numbers[:0]), (keys[1000:], numbers[1000:])]
    found = [pair for share in range(shares) for pair in near_duplicates._pairs(iter(blocks), share, shares).tolist()]
    assert sorted(found) == sorted(map(list, expected))


def test_repeats_with_little_memory() -> None:
    digests = [digest(str(i * i % 10007)) for i in range(60_000)]
    seen: set[bytes] = set()
    expected = [d in seen or seen.add(d) is not None for d in digests]
    parts = [b"".join(digests[start : start + 7000]) for start in range(0, len(digests), 7000)]
    for memory in (1 << 30, 500_000):
        assert repeated(lambda: parts, len(digests), memory).tolist() == expected
    assert not len(repeated(lambda: [b""], 0, 1000))


def components(nodes: int, edges: list[list[int]]) -> list[int]:
    roots = list(range(nodes))
    for pair in edges:
        low, high = sorted(roots[i] for i in pair)
        roots = [low if root == high else root for root in roots]
    return roots


def test_components(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    path = [[i, i + 1] for i in range(300)]
    shuffled = rng.sample(range(301), 301)
    graphs = [path, path[::-1], [[shuffled[a], shuffled[b]] for a, b in path], [[0, i] for i in range(1, 300)], []]
    graphs += [[rng.sample(range(400), 2) for _ in range(n)] for n in (30, 200, 600)]
    for block in (16, 1 << 16):
        monkeypatch.setattr(near_duplicates, "_BLOCK", block)
        for edges in graphs:
            firsts = numpy.arange(401)
            for some in (edges[::2], edges[1::2]):
                near_duplicates._link(firsts, numpy.array(some, dtype=numpy.int64).reshape(-1, 2))
                near_duplicates._shorten(firsts)
            assert firsts.tolist() == components(401, edges)


@pytest.mark.parametrize("memory", [5000, 200_000])
def test_clusters_in_little_memory(memory: int) -> None:
    """Clusters whose texts are compared in several shares."""
    rng = numpy.random.default_rng(3)
    originals = rng.integers(0, 2**32, size=(300, 128), dtype=numpy.uint32)
    rows = originals[rng.integers(0, 300, size=800)]
    changed = rng.random(rows.shape) < 0.1
    rows = numpy.where(changed, rng.integers(0, 2**32, size=rows.shape, dtype=numpy.uint32), rows)
    expected = corpus.find_clusters(rows, 0.75)
    banding = near_duplicates.Banding.of(0.75)
    keys = near_duplicates.band_keys(banding, rows)

    def rows_of(band: int) -> Iterator[Any]:
        for start in range(0, 800, 77):
            yield keys[band, start : start + 77], numpy.arange(start, min(800, start + 77))

    found = near_duplicates.clusters(800, 0.75, rows_of, lambda numbers: rows[numbers], memory)
    assert found.tolist() == expected.tolist() and len(set(found.tolist())) < 400


def cleaned(folder: Path, name: str, **more: Any) -> tuple[bytes, Any]:
    report = corpus.clean(str(folder / "in.jsonl"), folder / name, **more)
    return (folder / name).read_bytes(), report.to_json()


def test_little_memory_changes_nothing(small_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_LEAST_MEMORY", 1)
    rng = random.Random(4)
    words = [f"word{i}" for i in range(3000)]
    texts = [" ".join(rng.choices(words, k=60)) for _ in range(300)]
    texts += [text.replace(" ", "\n\n", 3) for text in texts[::3]] + texts[::5]
    rng.shuffle(texts)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    settings: dict[str, Any] = {"dedup": "exact", "near_dedup": 0.7, "dedup_paragraphs": True}
    much, little = (cleaned(tmp_path, "out.jsonl", memory_limit=memory, **settings) for memory in (1 << 30, 20_000))
    assert much == little
    assert much[1]["dropped"]["duplicate"] == 60 and much[1]["dropped"]["near_duplicate"] > 90


def test_too_little_memory_for_so_many_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results so far stay, so that the same command with more memory resumes."""
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "{i}"}}\n' for i in range(32_000)), encoding="utf-8")
    with pytest.raises(pybpe.errors.ArgumentError, match="memory_limit must be at least 1024000 .* 32000 documents"):
        cleaned(tmp_path, "out.jsonl", near_dedup=0.9, memory_limit=10**6, workers=1)
    assert not (tmp_path / "out.jsonl").exists()
    monkeypatch.setattr(work.Work, "run", None)  # the tasks are done
    again = cleaned(tmp_path, "out.jsonl", near_dedup=0.9, memory_limit=1_024_000, workers=1)
    monkeypatch.undo()
    assert again == cleaned(tmp_path, "other.jsonl", near_dedup=0.9, workers=1)


def test_the_least_memory_limit(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a few words\n", encoding="utf-8")
    assert corpus.clean(str(tmp_path / "in.txt"), tmp_path / "out.jsonl", dedup="exact", memory_limit=10**6)
    with pytest.raises(pybpe.errors.ArgumentError, match="memory_limit"):
        corpus.clean(str(tmp_path / "in.txt"), tmp_path / "out2.jsonl", dedup="exact", memory_limit=10**6 - 1)


_PEAK = """
import resource, sys
from pybpe import corpus
clean = lambda name, **more: corpus.clean(name, sys.argv[2], documents=sys.argv[3], near_dedup=0.8, dedup="exact",
    filters=corpus.Filters.gopher(min_words=0, max_words=None), workers=1, progress=False, memory_limit=10**6)
clean(sys.argv[4])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
clean(sys.argv[1])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def peak(folder: Path, data: str, documents: str) -> int:
    """Returns by how many bytes cleaning this text raises the peak of the process that has cleaned a short one."""
    (folder / "small.txt").write_text("a few words\n", encoding="utf-8")
    (folder / "in.txt").write_text(data, encoding="utf-8")
    names = [str(folder / "in.txt"), str(folder / "out.jsonl"), documents, str(folder / "small.txt")]
    run = subprocess.run([sys.executable, "-c", _PEAK, *names], capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_memory_of_one_long_document(tmp_path: Path) -> None:
    """It took 55 times its size."""
    rng = random.Random(6)
    text = " ".join(f"w{rng.randrange(10**5)}" for _ in range(600_000))
    assert peak(tmp_path, text, "file") < 14 * len(text)
