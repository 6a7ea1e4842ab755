"""Duplicates and near duplicates: signatures by their definition, pairs and clusters against the obvious ways, in
little memory."""

import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from corpora import records, small_tokenizer
from hypothesis import example, given
from hypothesis import strategies as st
from reference import shingles as reference
from texts import chinese, english

import pybpe
from pybpe import _binding, corpus
from pybpe.corpus import cleaning, duplicates, running
from pybpe.corpus.duplicates import PERMUTATIONS, Banding, jaccard, repeated, signatures
from pybpe.corpus.filters import characters
from pybpe.reading.files import Corpus
from pybpe.reading.planning import hash_split
from pybpe.support.parallel import RunOptions, memory_left

PIECES = st.sampled_from(
    [
        "the ", "cat", " sat ", "The ", " ", "\n", "12", "a1 ", "中", "文字", "ไทย", "é ", "e\u0301", "#", "，", "İ",
        "Σ", "ος ", "\udcff", "😀",
    ]
)  # fmt: skip


@given(st.lists(st.lists(PIECES, max_size=60).map("".join), min_size=1, max_size=4))
@example(["", "a", "!!!", "\udcff", "a b c d e", "a b c d", "中文中文中文中文中", "中文中文中文中文中文"])
def test_signatures_are_what_they_are_defined_to_be(texts: list[str]) -> None:
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    for text, data in zip(texts, encoded):
        assert _binding.shingle_hashes(data, characters()).tolist() == reference.shingles(text)
    strings, only = _binding.Strings(encoded), numpy.zeros(len(texts), dtype=numpy.uint64)
    expected = [reference.signature(text) for text in texts]
    assert _binding.minhash_texts(strings, characters()).tolist() == expected
    rows = _binding.minhash_texts(strings, characters(), only)
    assert only.tolist() == [reference.only_shingle(text) for text in texts]
    assert rows.tolist() == [row for row, hashed in zip(expected, only.tolist()) if not hashed]
    keys = [[reference.hash_of(row[start : start + 6]) for row in rows.tolist()] for start in range(0, 126, 6)]
    assert _binding.cut_signatures(rows, 21, 6).tolist() == keys


def test_a_text_of_many_blocks_of_words() -> None:
    """C reads it twice, block by block."""
    rng = random.Random(2)
    letters = " ".join(f"w{rng.randrange(9)}" for _ in range(17_000))
    for text in (
        letters,
        letters + " ." * 20_000,
        " ".join(chr(0x4E00 + rng.randrange(9)) for _ in range(17_000)) + " x",
    ):
        assert _binding.shingle_hashes(text.encode(), characters()).tolist() == reference.shingles(text)


def test_digests_are_blake2b() -> None:
    data = random.Random(1).randbytes(400)
    expected = [hashlib.blake2b(data[:n], digest_size=16).digest() for n in range(400)]
    assert _binding.digest_texts(_binding.Strings([data[:n] for n in range(400)])) == b"".join(expected)


def edited(text: str, edits: int, rng: random.Random) -> str:
    """A text with this many of its words (characters, in Chinese) replaced."""
    spaced = " " in text
    words = text.split() if spaced else list(text)
    for i in rng.sample(range(len(words)), edits):
        words[i] = f"new{rng.randrange(10**6)}" if spaced else chr(0x8000 + rng.randrange(1000))
    return (" " if spaced else "").join(words)


def pairs() -> list[tuple[str, str]]:
    rng = random.Random(7)
    starts = [(english()[i : i + 3000], [0, 1, 3, 10, 30, 100]) for i in range(0, 60_000, 6000)]
    starts += [(chinese()[i : i + 1500], [0, 1, 5, 20, 60, 200]) for i in range(0, 15_000, 1500)]
    return [(text, edited(text, n, rng)) for text, counts in starts for n in counts]


def test_the_estimate_is_as_good_as_theory_says() -> None:
    rows = pairs()
    a, b = signatures([first for first, _ in rows]), signatures([second for _, second in rows])
    assert a.shape == (len(rows), PERMUTATIONS) and a.dtype == numpy.uint32
    exact = numpy.array([jaccard(*row) for row in rows])
    errors = (a == b).mean(axis=1) - exact
    deviation = numpy.sqrt(exact * (1 - exact) / PERMUTATIONS)
    assert len(set(exact.round(1))) > 7
    assert (numpy.abs(errors) <= 4 * deviation + 1e-9).all()
    assert numpy.sqrt((errors**2).mean()) < 1.2 * numpy.sqrt((deviation**2).mean())
    assert abs(errors.mean()) < 0.01


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95])
def test_clusters_are_those_of_all_pairs(threshold: float) -> None:
    """The reference compares all pairs and links those whose signatures are similar enough. LSH may miss some."""
    texts = [text for pair in pairs() for text in pair]
    random.Random(3).shuffle(texts)
    rows = signatures(texts)
    expected = list(range(len(rows)))
    alike = (rows[:, None] == rows).mean(axis=2) >= threshold
    for i, j in numpy.argwhere(numpy.triu(alike, 1)).tolist():
        a, b = sorted((expected[i], expected[j]))
        expected = [a if root == b else root for root in expected]
    found = corpus.find_clusters(rows, threshold).tolist()
    assert all(root <= i and found[root] == root for i, root in enumerate(found))
    assert all(expected[root] == expected[i] for i, root in enumerate(found))  # never linked without a reason
    assert sum(a != b for a, b in zip(found, expected)) <= 0.02 * len(texts)


def test_banding() -> None:
    for threshold in (0.1, 0.5, 0.7, 0.8, 0.9, 0.99, 1.0):
        banding = Banding.of(threshold)
        assert banding.bands * banding.rows <= PERMUTATIONS and banding.probability(threshold) >= 0.99
    assert Banding(20, 5).probability(0.8) == pytest.approx(1 - (1 - 0.8**5) ** 20)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """Returns 100 documents. Every tenth one has three near duplicates, far apart, and two exact ones."""
    rng = random.Random(1)
    words = sorted(set(english().split()))
    starts = [" ".join(rng.choices(words, k=300)) for _ in range(100)]
    texts = [*starts, *(edited(starts[i], 3, rng) for _ in range(3) for i in range(0, 100, 10)), starts[1], starts[2]]
    path = tmp_path / "web.jsonl"
    path.write_text(
        "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)), encoding="utf-8"
    )
    return path


def test_the_first_stays(web: Path, tmp_path: Path, small_tasks: None) -> None:
    report = corpus.clean(str(web), tmp_path / "out.jsonl", workers=1, dedup="exact", near_dedup=0.8)
    assert report.dropped == {"near_duplicate": 30, "duplicate": 2}
    kept = records(tmp_path / "out.jsonl")
    assert [record["id"] for record in kept] == list(range(100))
    assert len({record["pybpe_cluster"] for record in kept}) == 100
    assert "bands" not in str(report) and (report.to_json()["lsh"]["bands"], report.to_json()["lsh"]["rows"]) == (21, 6)


def test_fields_of_the_user_stay(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"cluster": "mine", "text": "one", "pybpe_cluster": "of an earlier run"}\n')
    corpus.clean(tmp_path / "in.jsonl", tmp_path / "out.jsonl", workers=1, near_dedup=0.8)
    (record,) = records(tmp_path / "out.jsonl")
    assert list(record) == ["cluster", "text", "pybpe_cluster"]
    assert record["cluster"] == "mine" and len(str(record["pybpe_cluster"])) == 32


def test_short_texts_are_compared_exactly(tmp_path: Path) -> None:
    """The shingles of the first two agree in 32 bits, all that a signature has of one: of 10^9 short texts, a tenth."""
    texts = ["w30502", "w31008", "W30502!", "a b c d", "a b c d e", "A, b: c d", "?", "!", "?"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    rows = signatures(texts)
    assert (rows[0] == rows[1]).all()
    corpus.clean(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl", workers=1, near_dedup=0.8)
    assert [record["text"] for record in records(tmp_path / "out.jsonl")] == [*texts[:2], *texts[3:5], *texts[6:8]]


def test_splits_keep_clusters_together(web: Path, tmp_path: Path) -> None:
    report = corpus.clean(str(web), tmp_path / "marked.jsonl", near_dedup=0.8, keep_near=True, workers=1)
    assert report.dropped == {}
    marked = records(tmp_path / "marked.jsonl")
    assert len(marked) == 132 and len({record["pybpe_cluster"] for record in marked}) == 100
    tok = small_tokenizer()
    given: dict[str, Any] = {"format": "raw", "dtype": "uint16", "splits": (1, 1), "split_by": "hash"}
    pybpe.binarize(tok, str(tmp_path / "marked.jsonl"), tmp_path / "out", **given)
    for split, name in enumerate(("train", "val")):
        ids = numpy.fromfile(tmp_path / "out" / f"{name}.bin", dtype=numpy.uint16)
        expected = [r["text"] for r in marked if hash_split(str(r["pybpe_cluster"]).encode(), (1, 1)) == split]
        assert tok.decode(ids.tolist()).split("<|endoftext|>")[:-1] == expected
    together: dict[object, set[int]] = {}
    for record in marked:
        together.setdefault(record["pybpe_cluster"], set()).add(hash_split(str(record["text"]).encode(), (1, 1)))
    assert any(len(splits) == 2 for splits in together.values())  # their own hashes would separate them


# ------------------------------------------------------------------------------------------------------
# Pairs, clusters and repeats in little memory, against the obvious ways; memory of cleaning a corpus.


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
    found = [pair for share in range(shares) for pair in duplicates._pairs(iter(blocks), share, shares).tolist()]
    assert sorted(found) == sorted(map(list, expected))


def test_repeats_with_little_memory() -> None:
    digests = [hashlib.blake2b(str(i * i % 10007).encode(), digest_size=16).digest() for i in range(60_000)]
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
        monkeypatch.setattr(duplicates, "_BLOCK", block)
        for edges in graphs:
            firsts = numpy.arange(401)
            for some in (edges[::2], edges[1::2]):
                duplicates._link(firsts, numpy.array(some, dtype=numpy.int64).reshape(-1, 2))
                duplicates._shorten(firsts)
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
    banding = duplicates.Banding.of(0.75)
    keys = _binding.cut_signatures(rows, *banding)

    def rows_of(band: int | None) -> Iterator[Any]:
        for start in range(0, 800, 77) if band is not None else [800]:
            yield keys[band or 0, start : start + 77], numpy.arange(start, min(800, start + 77))

    found = duplicates.clusters(800, 0.75, rows_of, lambda numbers: rows[numbers], memory)
    assert found.tolist() == expected.tolist() and len(set(found.tolist())) < 400


def cleaned(folder: Path, name: str, **more: Any) -> tuple[bytes, Any]:
    report = corpus.clean(str(folder / "in.jsonl"), folder / name, **more)
    return (folder / name).read_bytes(), report.to_json()


def test_little_memory_changes_nothing(small_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "_LEAST_MEMORY", 1)
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
    monkeypatch.setattr(cleaning, "_LEAST_MEMORY", 1)
    monkeypatch.setattr(running, "_RESULT_BYTES", 100_000)  # a task has several results
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "{i}"}}\n' for i in range(3200)), encoding="utf-8")
    with pytest.raises(pybpe.errors.ArgumentError, match="memory_limit must be at least 102400 .* 3200 documents"):
        cleaned(tmp_path, "out.jsonl", near_dedup=0.9, memory_limit=10**5, workers=1)
    assert not (tmp_path / "out.jsonl").exists()
    with monkeypatch.context() as patch:
        patch.setattr(running, "results_of", lambda *_: pytest.fail("the tasks are done"))
        again = cleaned(tmp_path, "out.jsonl", near_dedup=0.9, memory_limit=102_400, workers=1)
    assert again == cleaned(tmp_path, "other.jsonl", near_dedup=0.9, workers=1)


def test_the_least_memory_limit(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a few words\n", encoding="utf-8")
    assert corpus.clean(str(tmp_path / "in.txt"), tmp_path / "out.jsonl", dedup="exact", memory_limit=10**6)
    with pytest.raises(pybpe.errors.ArgumentError, match="memory_limit"):
        corpus.clean(str(tmp_path / "in.txt"), tmp_path / "out2.jsonl", dedup="exact", memory_limit=10**6 - 1)


_PEAK = """
import resource, sys
from pybpe import corpus
clean = lambda name: corpus.clean(name, "out.jsonl", force=True, documents="file", near_dedup=0.8, dedup="exact",
    filters=corpus.Filters.gopher(min_words=0, max_words=None), workers=1, progress=False, memory_limit=10**6)
clean("small.txt")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
clean("in.txt")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.slow
def test_memory_of_one_long_document(tmp_path: Path) -> None:
    """It took 55 times its size. Measures by how much it raises the peak of a process that has cleaned a short one."""
    (tmp_path / "small.txt").write_text("a few words\n", encoding="utf-8")
    rng = random.Random(6)
    text = " ".join(f"w{rng.randrange(10**5)}" for _ in range(600_000))
    (tmp_path / "in.txt").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", _PEAK]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 14 * len(text)


def test_a_memory_limit_allows_fewer_processes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    monkeypatch.setattr(running, "process_pool", None)  # a call of it fails
    monkeypatch.setattr(running, "write_results", lambda *_: True)
    caplog.set_level("INFO", "pybpe")

    def done(limit: int) -> int:
        orders: list[Any] = [SimpleNamespace(path="", task=None)] * 2
        run = RunOptions(2, memory_limit=limit, progress=False)
        with ExitStack() as stack:
            no_steps: Any = None
            return len(
                list(running._done(partial(running.results_of, no_steps), orders, "", Corpus(), run, stack, int))
            )

    with pytest.raises(TypeError):
        done(160 * 10**6)
    assert not caplog.messages
    assert done(70 * 10**6) == 2
    assert memory_left(200 * 10**6) == 120 * 10**6 and memory_left(10**6) == 250_000
    assert ["memory_limit may be exceeded, because pybpe can take 80 MB for any such input"] == caplog.messages
