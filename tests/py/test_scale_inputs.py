"""Training inputs: folders, globs, compressed files, JSON lines, samples; and the errors for damaged ones."""

import json
import os
import random
import sys
from pathlib import Path

import pytest
from texts import chinese, english, mixed

import pybpe
from pybpe.pattern import Pattern
from pybpe.reading.input_file import InputFile
from pybpe.reading.planning import pieces_of
from pybpe.training.counting import corpus_plan
from pybpe.training.word_counter import CountSettings, WordCounter

TEXT = english()[:60_000] + chinese()[:5000] + mixed()[:5000]
RECORDS = [TEXT[i : i + 700] for i in range(0, len(TEXT), 700)]


def counts_of_texts(texts: list[str], **settings: object) -> dict[bytes, int]:
    return pybpe.count_words(iter(texts), **settings).to_dict()


def write_jsonl(path: Path, texts: list[str], key: str = "text") -> Path:
    lines = [json.dumps({"id": i, key: text}, ensure_ascii=i % 2 == 0) for i, text in enumerate(texts)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------------
# Files


def test_folders_and_globs_are_sorted_and_recursive(tmp_path: Path) -> None:
    for name, text in {"b.txt": "bb", "a/z.txt": "zz", "a/.hidden": "hidden", ".git/x.txt": "git"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    from pybpe.reading.files import input_files

    assert input_files(tmp_path) == [str(tmp_path / "a/z.txt"), str(tmp_path / "b.txt")]
    assert input_files([str(tmp_path / "*.txt")]) == [str(tmp_path / "b.txt")]
    assert input_files(str(tmp_path / "**/*.txt")) == [str(tmp_path / "a/z.txt"), str(tmp_path / "b.txt")]
    os.mkfifo(tmp_path / "a" / "pipe")  # no process writes to it, so reading would wait forever
    assert pybpe.count_words(tmp_path).to_dict() == {b"bb": 1, b"zz": 1}
    (tmp_path / "a" / "link").symlink_to("missing")
    with pytest.raises(FileNotFoundError, match="a/link"):
        pybpe.count_words(tmp_path)
    (tmp_path / "odd[1].txt").write_text("odd")
    assert pybpe.count_words(tmp_path / "odd[1].txt").to_dict() == {b"odd": 1}
    with pytest.raises(pybpe.errors.ArgumentError, match="nothing"):
        input_files(str(tmp_path / "nothing*"))


def test_zstd_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "backports", None)
    (tmp_path / "x.zst").write_bytes(b"")
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"pip install 'pybpe\[zstd\]'"):
        pybpe.count_words(tmp_path / "x.zst")


# ------------------------------------------------------------------------------------------------------
# Records


def test_records_are_texts_without_specials(tmp_path: Path) -> None:
    texts = [*RECORDS, "a<|endoftext|>b", "", "\ud800 lone"]
    path = write_jsonl(tmp_path / "x.jsonl", texts)
    plain = tmp_path / "plain.txt"
    plain.write_text("a<|endoftext|>b")
    found = pybpe.count_words([path, plain], special_tokens=["<|endoftext|>"]).to_dict()
    expected = counts_of_texts(texts)  # without specials
    expected[b"a"] = expected.get(b"a", 0) + 1  # of the plain file
    expected[b"b"] = expected.get(b"b", 0) + 1
    assert found == expected
    assert b"endoftext" in found


def test_the_text_key_and_custom_patterns(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.ndjson", RECORDS, "content")
    expected = counts_of_texts(RECORDS, pattern=r"\w+", normalizer="NFC")
    assert pybpe.count_words(path, text_key="content", pattern=r"\w+", normalizer="NFC").to_dict() == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "x"', "not JSON"),
        (b'{"text": 5}', "'text'"),
        (b'{"txt": "x"}', "'text'"),
        (b"[1]", "'text'"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line + b"\n")
    with pytest.raises(pybpe.errors.FormatError, match=f"x.jsonl: the line at byte 17: .*{message}") as caught:
        pybpe.count_words(path)
    assert caught.value.offset == 17


# ------------------------------------------------------------------------------------------------------
# Ranges


def counts_in_ranges(paths: list[Path], settings: CountSettings, size: int) -> pybpe.Counts:
    """Returns the counts of files that are read in ranges of about `size` bytes, in a random order."""
    plan = corpus_plan([InputFile.of(str(path)) for path in paths], settings)
    counter = WordCounter(settings, plan.kinds, workers=1)
    for part in plan.shuffled(size, 1):
        for piece in pieces_of([plan.at_cuts(part)], plan.kinds, settings.cutting.cut):
            counter.add(piece)
    return pybpe.Counts(counter.finish(), settings)


@pytest.mark.filterwarnings("ignore:.*not UTF-8")
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
@pytest.mark.parametrize("size", [7, 100, 3001])
def test_ranges_of_any_size_count_the_same(tmp_path: Path, pattern: str, size: int) -> None:
    text = (mixed()[:1500] + "<|a b|>x  <|a b|>\n\n y" * 20 + "z" * 500 + english()[:2000] + chinese()[:500]).encode()
    plain = tmp_path / "x.txt"
    plain.write_bytes(text + b"\xff\x80 \xe4\xb8")
    options = {"pattern": pattern, "special_tokens": ["<|a b|>", " x"]}
    settings = CountSettings(Pattern(pattern), ("<|a b|>", " x"))
    records = write_jsonl(tmp_path / "x.jsonl", RECORDS[:5])
    paths = [plain, records]
    assert counts_in_ranges(paths, settings, size) == pybpe.count_words(paths, **options)


def test_ranges_where_a_special_is_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    rng = random.Random(3)
    special = "".join(rng.choices("pqr ", k=70_000))
    path = tmp_path / "x.txt"
    text = english()[:150_000]
    path.write_text(text + special[:-1] + "!" + special + text + special + "end")
    settings = CountSettings(Pattern("gpt2"), (special,))
    assert counts_in_ranges([path], settings, 30_000) == pybpe.count_words(path, special_tokens=[special])


# ------------------------------------------------------------------------------------------------------
# Samples


def test_a_sample_of_records(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", [f"word{i}" for i in range(100)])
    assert len(pybpe.count_words(path, max_documents=10, pattern=r"\w+")) == 10
    assert len(pybpe.count_words(path, max_documents=1000, pattern=r"\w+")) == 100
    assert pybpe.count_words(path, max_bytes=100, pattern=r"\w+").to_dict() == {b"word%d" % i: 1 for i in range(4)}


def test_a_sample_is_spread_over_the_corpus_and_decided_by_the_seed(tmp_path: Path) -> None:
    for name in "abcdefgh":
        (tmp_path / name).write_text(f" {name}{name}" * 400_000)  # 1.2 MB: two ranges
    seen = set()
    for seed in range(6):
        sample = pybpe.count_words(tmp_path, max_bytes=3_000_000, seed=seed, workers=2)
        assert sample == pybpe.count_words(tmp_path, max_bytes=3_000_000, seed=seed, workers=1)
        total = sum(sample.to_dict().values())
        assert 999_999 <= total <= 1_000_002  # words of 3 bytes
        seen.add(tuple(sorted(sample.to_dict())))
    assert len(seen) > 1
    assert sum(pybpe.count_words(tmp_path, max_documents=16).to_dict().values()) == 8 * 400_000
    assert sum(pybpe.count_words(tmp_path, max_documents=1, seed=1).to_dict().values()) < 400_000


def test_a_sample_of_an_iterable_takes_no_more_than_it_needs() -> None:
    def endless() -> object:
        while True:
            yield "some words here"

    assert pybpe.count_words(endless(), max_documents=5).to_dict() == {b"some": 5, b" words": 5, b" here": 5}
    assert pybpe.count_words(endless(), max_bytes=20).to_dict() == {b"some": 2, b" words": 2, b" here": 1}
    with pytest.raises(pybpe.errors.ArgumentError, match="max_bytes"):
        pybpe.count_words(["x"], max_bytes=0)
