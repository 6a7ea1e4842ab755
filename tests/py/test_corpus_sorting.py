"""Sorting rows and connecting edges in little memory, against the obvious ways; memory of cleaning a corpus."""

import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy
import pytest

import pybpe
from pybpe import corpus
from pybpe.corpus import clusters, decisions
from pybpe.corpus.connecting import _are_no_stars, _with_least, connect
from pybpe.corpus.sorting import Cursor, Sorter, distinct
from pybpe.corpus.stages import LocalStages
from pybpe.reading import planning


def all_rows(blocks: Iterable[numpy.ndarray]) -> list[list[int]]:  # type: ignore[type-arg]
    return [row for rows in blocks for row in rows.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("memory", [20_000, 10**9])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_sorting(memory: int, columns: int, tmp_path: Path) -> None:
    rng = numpy.random.default_rng(columns)
    rows = rng.integers(0, 50, size=(6000, columns)).astype(numpy.uint64)
    rows[:, -1] += numpy.uint64(2**63)  # above what an int64 holds
    sorter = Sorter(str(tmp_path / "s"), columns, memory)
    at = 0
    while at < len(rows):
        count = int(rng.integers(1, 900))
        sorter.add(rows[at : at + count])
        at += count
        assert sorter._held_rows <= sorter._most
    expected = sorted(rows.tolist())
    assert all_rows(sorter.blocks()) == expected
    files = sorted(tmp_path.iterdir())
    assert all_rows(sorter.blocks()) == expected and sorted(tmp_path.iterdir()) == files
    unique = sorted(set(map(tuple, expected)))
    assert [tuple(row) for row in all_rows(distinct(sorter.blocks()))] == unique
    cursor = Cursor(sorter.blocks(), columns)
    for first, end in ((0, 0), (0, 3), (3, 3), (3, 49), (49, 2**64 - 1)):
        wanted = [row for row in expected if first <= row[0] < end]
        assert cursor.take(end).tolist() == all_rows(sorter.blocks(first, end)) == wanted
    assert any(tmp_path.iterdir()) == (memory < 10**6)
    sorter.close()
    assert not any(tmp_path.iterdir())


def test_distinct_rows_are_in_blocks_that_are_not_empty() -> None:
    blocks = [numpy.array([[value] for value in values], dtype=numpy.uint64) for values in ([1, 1], [1], [1, 2], [2])]
    assert [block.tolist() for block in distinct(blocks)] == [[[1]], [[2]]]


def components(nodes: int, edges: list[list[int]]) -> dict[int, int]:
    roots = list(range(nodes))
    for pair in edges:
        low, high = sorted(roots[i] for i in pair)
        roots = [low if root == high else root for root in roots]
    return {i: root for i, root in enumerate(roots) if i != root}


@pytest.mark.parametrize("memory", [8000, 10**9])
def test_components(memory: int, tmp_path: Path) -> None:
    rng = random.Random(1)
    path = [[i, i + 1] for i in range(300)]
    shuffled = rng.sample(range(301), 301)
    graphs = [path, [[shuffled[a], shuffled[b]] for a, b in path], [[0, i] for i in range(1, 300)], []]
    graphs += [[rng.sample(range(400), 2) for _ in range(n)] for n in (30, 200, 600)]
    for edges in graphs:
        rng.shuffle(edges)
        sorter = Sorter(str(tmp_path / "e"), 2, memory)
        sorter.add(numpy.array(edges, dtype=numpy.uint64).reshape(-1, 2))
        found = connect(LocalStages(str(tmp_path / "c"), memory), sorter)
        rows = all_rows(found.blocks())
        assert rows == sorted(rows) and dict(map(tuple, rows)) == components(401, edges)
        found.close()
        assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 200])
def test_nodes_that_continue_from_block_to_block(size: int) -> None:
    """The least neighbor of a node is in its first row, perhaps some blocks before the others."""
    rng = random.Random(size)
    rows = sorted([rng.randrange(8) * 3, rng.randrange(40)] for _ in range(60))
    least = {node: min(other for first, other in rows if first == node) for node, _ in rows}
    blocks = [numpy.array(rows[i : i + size], dtype=numpy.uint64) for i in range(0, len(rows), size)]
    found = [(block.tolist(), some.tolist()) for block, some in _with_least(blocks)]
    assert [row for block, _ in found for row in block] == rows
    assert [value for _, some in found for value in some] == [least[node] for node, _ in rows]
    assert _are_no_stars(blocks) == any(least[node] < node and other != least[node] for node, other in rows)
    star = [numpy.array([[node, low]], dtype=numpy.uint64) for node, low in ((1, 5), (1, 6), (5, 1), (6, 1), (7, 2))]
    assert not _are_no_stars(star)
    assert _are_no_stars([*star, numpy.array([[7, 3]], dtype=numpy.uint64)])


def test_clusters_in_little_memory(tmp_path: Path) -> None:
    """Groups and clusters that continue from block to block."""
    rng = numpy.random.default_rng(3)
    originals = rng.integers(0, 2**32, size=(300, 128), dtype=numpy.uint32)
    rows = originals[rng.integers(0, 300, size=800)]
    changed = rng.random(rows.shape) < 0.1
    rows = numpy.where(changed, rng.integers(0, 2**32, size=rows.shape, dtype=numpy.uint32), rows)
    expected = corpus.find_clusters(rows, 0.75)
    stages = LocalStages(str(tmp_path / "n"), 200_000)
    bands = Sorter(str(tmp_path / "b"), 2, 100_000)
    for start in range(0, 800, 77):
        part = numpy.arange(start, min(800, start + 77))
        for keys in clusters.band_rows(corpus.Banding.of(0.75), part, rows[part]):
            bands.add(keys)
    found = clusters.connected(stages, bands, 0.75, lambda numbers: rows[numbers])
    roots = list(range(800))
    for text, root in all_rows(found.blocks()):
        roots[text] = root
    assert roots == expected.tolist() and len(set(roots)) < 400


def test_little_memory_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    rng = random.Random(4)
    words = [f"word{i}" for i in range(3000)]
    texts = [" ".join(rng.choices(words, k=60)) for _ in range(300)]
    texts += [text.replace(" ", "\n\n", 3) for text in texts[::3]] + texts[::5]
    rng.shuffle(texts)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    reports = []
    for name, memory in (("much", 1 << 30), ("little", 60_000)):
        monkeypatch.setattr(decisions, "DEFAULT_MEMORY", memory)
        settings = {"dedup": "exact", "near_dedup": 0.7, "dedup_paragraphs": True}
        reports.append(corpus.clean(str(tmp_path / "in.jsonl"), tmp_path / f"{name}.jsonl", **settings))  # type: ignore[arg-type]
    assert (tmp_path / "much.jsonl").read_bytes() == (tmp_path / "little.jsonl").read_bytes()
    assert reports[0].dropped == reports[1].dropped
    assert reports[0].dropped["duplicate"] == 60 and reports[0].dropped["near_duplicate"] > 90


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
