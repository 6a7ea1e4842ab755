"""Near duplicates and languages, with rensa and eldc."""

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

pytest.importorskip("rensa")
pytest.importorskip("eldc")

from corpora import small_tokenizer  # noqa: E402
from texts import chinese, english  # noqa: E402

import pybpe  # noqa: E402
from pybpe import corpus  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.corpus.minhash import PERMUTATIONS, Banding, jaccard, signatures  # noqa: E402
from pybpe.reading import planning  # noqa: E402
from pybpe.reading.splits import hash_split  # noqa: E402


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
    for first, second in pairs():
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


def test_the_first_stays_for_any_workers(web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    settings: dict[str, object] = {"dedup": "exact", "near_dedup": 0.8}
    for n in (1, 2, 3):
        report = corpus.clean(str(web), tmp_path / f"{n}.jsonl", workers=n, **settings)  # type: ignore[arg-type]
        assert report.dropped == {"near_duplicate": 30, "duplicate": 2}
    assert len({(tmp_path / f"{n}.jsonl").read_bytes() for n in (1, 2, 3)}) == 1
    kept = records(tmp_path / "1.jsonl")
    assert [record["id"] for record in kept] == list(range(100))
    assert len({record["cluster"] for record in kept}) == 100
    assert "21 bands of 6 rows" in str(report) and report.to_json()["lsh"]["rows"] == 6


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


def test_languages(tmp_path: Path) -> None:
    texts = {
        "en": "The harbour was quiet when the boats came home, and nobody had waited for them.",
        "zh": "渔船回来的时候，港口很安静，岸上没有人等候他们。",
        "fr": "Le port était calme quand les bateaux sont rentrés, et personne ne les attendait.",
        "de": "Der Hafen war ruhig, als die Boote zurückkamen, und niemand hatte auf sie gewartet.",
        "ja": "船が戻ってきたとき、港は静かで、誰も待っていませんでした。",
        "ru": "Гавань была тиха, когда лодки вернулись домой, и никто их не ждал.",
    }
    for code, text in texts.items():
        for longer in (text, text * 50):
            language, confidence = corpus.detect_language(longer)
            assert language == code and 0.5 < confidence <= 1
    assert corpus.detect_language("12345 !!") == ("und", 0.0) == corpus.detect_language("")
    assert corpus.detect_language("\ud800 \x00 " + texts["fr"])[0] == "fr"
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts.values(), "99 !!"]), encoding="utf-8")
    report = corpus.clean(str(path), tmp_path / "out.jsonl", languages=["zh", "en"])
    assert [record["language"] for record in records(tmp_path / "out.jsonl")] == ["en", "zh"]
    assert report.dropped == {"language": 5} and report.to_json()["languages"]["und"] == 1
    report = corpus.clean(str(path), tmp_path / "out.jsonl", languages=["zh", "en"], min_confidence=1)
    assert report.dropped == {"language": 5, "language_confidence": 2}
    with pytest.raises(pybpe.ArgumentError, match="unknown language 'xx'"):
        corpus.clean(str(path), tmp_path / "out.jsonl", languages=["xx"])


def test_all_steps_by_the_command(web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["corpus", str(web), "-o", str(tmp_path / "o.jsonl.zst"), "--normalize", "NFC", "--min-chars", "200"]
    command += [
        "--max-symbol-ratio",
        "0.6",
        "--languages",
        "zh,en",
        "--dedup",
        "--dedup-paragraphs",
        "--near-dedup",
        "0.8",
    ]
    assert main([*command, "--scrub-pii", "--report", str(tmp_path / "r.html")]) == 0
    assert "LSH: 21 bands of 6 rows" in capsys.readouterr().out
    assert "Languages" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert pybpe.train(str(tmp_path / "o.jsonl.zst"), vocab_size=300).n_vocab == 300


def test_parquet_comes_in(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["one", "two", "one"]}), tmp_path / "a.parquet")
    corpus.clean(str(tmp_path / "a.parquet"), tmp_path / "out.jsonl", dedup="exact")
    assert [record["text"] for record in records(tmp_path / "out.jsonl")] == ["one", "two"]


def test_no_processes_are_left(web: Path, tmp_path: Path) -> None:
    """Workers exit after their parent was killed."""
    script = (
        "import os, signal, sys, time\nfrom pybpe.corpus.processes import process_pool\n"
        "with process_pool(2) as pool:\n    print(*{f.result() for f in [pool.submit(os.getpid) for _ in range(9)]})\n"
        "    sys.stdout.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == -9
    for worker in map(int, result.stdout.split()):
        while _lives(worker):  # at most a second
            pass


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{process}")
