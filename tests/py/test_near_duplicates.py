"""Near duplicates: signatures by their definition, their error by theory, clusters against all pairs."""

import itertools
import json
import random
from pathlib import Path

import numpy
import pytest
from corpora import small_tokenizer
from hypothesis import example, given
from hypothesis import strategies as st
from reference import shingles as reference
from texts import chinese, english

import pybpe
from pybpe import _binding, corpus
from pybpe.corpus.measures import characters
from pybpe.corpus.near_duplicates import PERMUTATIONS, Banding, jaccard, signatures
from pybpe.reading.splits import hash_split

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
    rows = _binding.minhash_texts(encoded, characters())
    assert rows.tolist() == [reference.signature(text) for text in texts]


def test_a_text_of_many_blocks_of_words() -> None:
    """C reads it twice, block by block."""
    rng = random.Random(2)
    for words in (
        [f"w{rng.randrange(9)}" for _ in range(17_000)],
        [chr(0x4E00 + rng.randrange(9)) for _ in range(17_000)],
    ):
        for tail in ("", " x", " ." * 20_000):
            text = " ".join(words) + tail
            assert _binding.shingle_hashes(text.encode(), characters()).tolist() == reference.shingles(text)


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


def exact_jaccard(first: str, second: str) -> float:
    """Compares strings; `jaccard` compares hashes."""
    from reference.corpus import folded, units_per_word

    def shingles(text: str) -> set[tuple[str, ...]]:
        n, units = 5 * units_per_word(text), folded(text)
        return {tuple(units[i : i + n]) for i in range(len(units) - n + 1)} or {tuple(units)}

    a, b = shingles(first), shingles(second)
    return len(a & b) / len(a | b)


def test_jaccard_is_exact() -> None:
    for first, second in pairs()[::3]:
        assert jaccard(first, second) == pytest.approx(exact_jaccard(first, second))


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


def test_signatures_depend_on_the_text_alone() -> None:
    texts = [english()[:3000], "", "a", "!!!", chinese()[:500], "a b c", english()[:3000]]
    together = signatures(texts)
    assert numpy.array_equal(together, numpy.concatenate([signatures([text]) for text in texts]))
    assert len({row.tobytes() for row in together}) == len(texts) - 1


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95])
def test_clusters_are_those_of_all_pairs(threshold: float) -> None:
    """The reference compares all pairs and links those whose signatures are similar enough. LSH may miss some."""
    texts = [text for pair in pairs() for text in pair]
    random.Random(3).shuffle(texts)
    rows = signatures(texts)
    expected = list(range(len(rows)))
    for i, j in itertools.combinations(range(len(rows)), 2):
        if numpy.mean(rows[i] == rows[j]) >= threshold:
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


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_first_stays_for_any_workers(web: Path, tmp_path: Path, small_tasks: None) -> None:
    settings: dict[str, object] = {"dedup": "exact", "near_dedup": 0.8}
    for n in (1, 2, 3):
        report = corpus.clean(str(web), tmp_path / f"{n}.jsonl", workers=n, **settings)  # type: ignore[arg-type]
        assert report.dropped == {"near_duplicate": 30, "duplicate": 2}
    assert len({(tmp_path / f"{n}.jsonl").read_bytes() for n in (1, 2, 3)}) == 1
    kept = records(tmp_path / "1.jsonl")
    assert [record["id"] for record in kept] == list(range(100))
    assert len({record["cluster"] for record in kept}) == 100
    assert "bands" not in str(report) and (report.to_json()["lsh"]["bands"], report.to_json()["lsh"]["rows"]) == (21, 6)


def test_splits_keep_clusters_together(web: Path, tmp_path: Path) -> None:
    report = corpus.clean(str(web), tmp_path / "marked.jsonl", near_dedup=0.8, keep_near=True, workers=1)
    assert report.dropped == {}
    marked = records(tmp_path / "marked.jsonl")
    assert len(marked) == 132 and len({record["cluster"] for record in marked}) == 100
    tok = small_tokenizer()
    pybpe.binarize(tok, str(tmp_path / "marked.jsonl"), tmp_path / "out", format="raw", dtype="uint16", splits=(1, 1))
    for split, name in enumerate(("train", "val")):
        ids = numpy.fromfile(tmp_path / "out" / f"{name}.bin", dtype=numpy.uint16)
        expected = [r["text"] for r in marked if hash_split(str(r["cluster"]).encode(), (1, 1)) == split]
        assert tok.decode(ids.tolist()).split("<|endoftext|>")[:-1] == expected
    together: dict[object, set[int]] = {}
    for record in marked:
        together.setdefault(record["cluster"], set()).add(hash_split(str(record["text"]).encode(), (1, 1)))
    assert any(len(splits) == 2 for splits in together.values())  # their own hashes would separate them
