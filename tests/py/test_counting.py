"""Counting words: runs that are killed resume, files of counts are added in little memory, executors count the
same, and a memory limit is kept."""

import gzip
import itertools
import json
import logging
import os
import random
import re
import struct
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import pybpe_command
from corpora import Twice
from texts import chinese, english, mixed

import pybpe
from pybpe import _binding
from pybpe.reading import pieces
from pybpe.reading.cuts import stream_pieces
from pybpe.reading.inputs import ReadOptions
from pybpe.reading.pieces import Piece, Sample
from pybpe.support.output_files import FOLDER
from pybpe.support.parallel import RunOptions
from pybpe.support.platform import machine_memory
from pybpe.training import counting, word_counter
from pybpe.training import counts as counts_file

SPECIALS = ["<|endoftext|>"]
pytestmark = pytest.mark.filterwarnings("ignore:.*this file is empty")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind: plain, compressed, in another encoding, records."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text(english()[:24_000] + SPECIALS[0] + mixed()[:8_000], encoding="utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress(chinese()[:8_000].encode()))
    lines = [json.dumps({"text": line}) for line in english()[60_000:80_000].splitlines()]
    (folder / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "d.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[::2]).encode()))
    (folder / "e.txt").write_text("", encoding="utf-8")
    (folder / "f.txt").write_text(english()[100_000:112_000], encoding="utf-8")
    return folder / "*"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, ranges and groups are small."""
    monkeypatch.setattr(pieces, "stream_pieces", partial(stream_pieces, piece_bytes=3000))
    monkeypatch.setattr("pybpe.reading.cuts._CUT_WINDOW", 300)
    monkeypatch.setattr(pieces, "_RANGE_BYTES", 5000)
    monkeypatch.setattr(counting, "LEAST_TASK", 7000)
    monkeypatch.setattr(counting, "_TASKS_OF_GROUP", 1)
    monkeypatch.setattr(counting, "_PIECES_OF_GROUP", 1)
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)
    monkeypatch.setattr(word_counter.MergingMemory, "need", lambda *_: 0)


def interrupted(run: Callable[[], Any], step: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """Repeats a run, each time interrupted after the words of `step` groups are kept, until it succeeds. Returns its
    result, and the number of interruptions."""
    write = word_counter.WordCounter.write
    left = 0

    def last_write(counter: word_counter.WordCounter, path: str, header: dict[str, object]) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise InterruptedError
        return write(counter, path, header)

    monkeypatch.setattr(word_counter.WordCounter, "write", last_write)
    for tries in itertools.count():
        left = step
        try:
            return run(), tries
        except InterruptedError:
            assert tries < 100


OPTIONS: list[dict[str, Any]] = [
    {}, {"workers": 1}, {"memory_limit": 1000}, {"max_bytes": 40_000, "seed": 4}, {"max_documents": 300, "seed": 5},
    {"pattern": r"\s?\S+|\s"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_interrupted_counting_resumes(
    options: dict[str, Any], corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(pybpe.train, corpus, vocab_size=600, special_tokens=SPECIALS, **options)
    expected = train()
    resumed, tries = interrupted(lambda: train(checkpoint=tmp_path / "x"), 3, monkeypatch)
    assert resumed.model == expected.model and tries >= 2
    assert os.listdir(tmp_path) == []


def test_text_in_another_encoding_resumes(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(chinese()[number * 6000 :][:6000], encoding="gb18030")
    train = partial(pybpe.train, tmp_path / "*.txt", vocab_size=500, encoding="gb18030")
    expected = train()
    resumed, tries = interrupted(lambda: train(checkpoint=tmp_path / "x"), 1, monkeypatch)
    assert resumed.model == expected.model and tries >= 2


def test_threads_and_executors_continue_for_one_another(
    corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(pybpe.train, corpus, vocab_size=600, special_tokens=SPECIALS)
    expected = train()
    with ThreadPoolExecutor(2) as executor:
        ways = itertools.cycle([{"executor": executor}, {"workers": 1}])
        resumed, tries = interrupted(lambda: train(checkpoint=tmp_path / "x", **next(ways)), 1, monkeypatch)
    assert resumed.model == expected.model and tries >= 4


def not_merged(*_: object) -> None:
    raise InterruptedError


def test_only_groups_whose_files_changed_are_counted_again(
    corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in corpus.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    inputs, point = str(tmp_path / "*.*"), tmp_path / "point"
    train = partial(pybpe.train, inputs, vocab_size=600, special_tokens=SPECIALS, workers=1, checkpoint=point)
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr("pybpe.training.merging._merge", not_merged)
        train()
    with (tmp_path / "f.txt").open("a") as stream:
        stream.write(english()[200_000:209_000])
    (tmp_path / "g.txt").write_text(chinese()[:3000])
    count_piece, seen = counting.count_piece, set[str]()

    def noted(counter: Any, doubts: Any, piece: Piece) -> counting.PieceTally:
        seen.add(os.path.basename(piece.path))
        return count_piece(counter, doubts, piece)

    monkeypatch.setattr(counting, "count_piece", noted)
    found = train(vocab_size=620)  # the vocabulary has no influence on words
    assert seen == {"f.txt", "g.txt"} and not point.exists()  # e is empty; together they are more than a task
    assert found.model == pybpe.train(inputs, vocab_size=620, special_tokens=SPECIALS).model


def test_counts_of_other_settings_stay_and_are_not_used(
    corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[dict[str, Any]] = [
        {}, {"pattern": "cl100k"}, {"special_tokens": ["the"]}, {"normalizer": "NFC"}, {"superwords": True},
        {"max_bytes": 30_000}, {"max_bytes": 30_000, "seed": 1}, {"text_key": "id"},
    ]  # fmt: skip
    inputs = [corpus.with_name(name) for name in ("a.txt", "b.txt.gz", "f.txt")]
    train, folder = partial(pybpe.train, inputs, vocab_size=600, checkpoint=tmp_path / "x"), tmp_path / "x" / FOLDER
    kept = set[str]()
    with monkeypatch.context() as patch:
        patch.setattr("pybpe.training.merging._merge", not_merged)
        for each in options:
            with pytest.raises(InterruptedError):
                train(**each)
            names = {str(path) for path in folder.rglob("*") if path.is_file()}
            assert kept < names and all(len(Path(name).relative_to(folder).parts) == 3 for name in names)
            kept = names
    assert train(pattern="cl100k").model == pybpe.train(inputs, vocab_size=600, pattern="cl100k").model
    assert os.listdir(tmp_path) == []


def test_counts_that_are_damaged_are_refused_and_missing_ones_made(
    corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(pybpe.train, corpus, vocab_size=600, special_tokens=SPECIALS, checkpoint=tmp_path / "x")
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr("pybpe.training.merging._merge", not_merged)
        train()
    folder = tmp_path / "x" / FOLDER
    first, second = sorted(folder.glob("tasks/*/*"))[:2]
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(pybpe.errors.FormatError, match=r"tasks/.*not a complete"):
        train()
    first.unlink()
    second.rename(f"{second}.123.tmp")  # as a kill leaves it
    (first.parent / "run000000-0a1b2c3d.counts").write_bytes(b"pybpecnt")
    assert train().model == pybpe.train(corpus, vocab_size=600, special_tokens=SPECIALS).model
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------------------------------------------
# Sums of .counts files in little memory: blocks and parts of every size, many files, files that are damaged or not


WORDS = [b"\0", b"a", b"a\0", b"ab", b" the", b"\xff\xfe", *(b" word" + b"%d" % i * (i % 7) for i in range(400))]


@pytest.fixture
def few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few files are open at once, and blocks are small."""
    monkeypatch.setattr(counts_file, "OPEN_FILES", 3)
    monkeypatch.setattr(counts_file, "_RUN_WORDS", 5)
    monkeypatch.setattr(counts_file, "BLOCK_WORDS", 7)


def files_of(folder: Path, number: int, seed: int) -> tuple[list[Path], dict[bytes, int]]:
    """Writes .counts files with random words. Returns them, and the sum."""
    draw = random.Random(seed)
    total: Counter[bytes] = Counter()
    paths = []
    for i in range(number):
        words = {word: draw.randrange(1, 9) for word in draw.sample(WORDS, draw.choice([0, 1, 30, 200]))}
        paths.append(folder / f"{i}.counts")
        pybpe.Counts.from_dict(words).save(paths[-1])
        total.update(words)
    return paths, dict(total)


def blocks_of(words: list[bytes]) -> list[_binding.WordBlock]:
    return [_binding.WordBlock(b"".join(words), array("I", map(len, words)), array("Q", [1] * len(words)))]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 20])
def test_any_number_of_files_is_added(number: int, few_words: None, tmp_path: Path) -> None:
    paths, total = files_of(tmp_path, number, number)
    pybpe.Counts.from_dict(total).save(tmp_path / "expected")
    assert pybpe.Counts.merge_files(paths, tmp_path / "sum") == len(total)
    assert (tmp_path / "sum").read_bytes() == (tmp_path / "expected").read_bytes()
    assert pybpe.Counts.load_sum(paths).to_dict() == total
    assert all(path.exists() for path in paths)


def test_temporary_files_are_removed(few_words: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    paths, total = files_of(tmp_path, 10, 5)
    assert len(pybpe.Counts.load_sum(paths)) == len(total)
    paths[7].write_bytes(paths[7].read_bytes()[:-3])
    with pytest.raises(pybpe.errors.FormatError, match=r"7\.counts: not a complete"):
        pybpe.Counts.merge_files(paths, tmp_path / "sum")
    assert not (tmp_path / "sum").exists() and os.listdir(tmp_path / "temporary") == []


def test_counting_to_a_file_in_little_memory(few_words: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)
    draw = random.Random(3)
    for i in range(8):
        words = draw.choices([f"w{n}" for n in range(3000)], k=4000)
        (tmp_path / f"{i}.txt").write_text(" ".join(words), encoding="utf-8")
    counts = pybpe.count_words(tmp_path / "*.txt")
    counts.save(tmp_path / "expected")
    settings = counts.settings
    for limit in (None, 1000, 10_000_000):
        path = tmp_path / "limited"
        run = RunOptions(2, None, limit, False)
        assert counting.count_to_file(str(tmp_path / "*.txt"), settings, Sample(), run, path) == len(counts)
        assert path.read_bytes() == (tmp_path / "expected").read_bytes()
        path.unlink()


@pytest.mark.parametrize("words", [[b"b", b"a"], [b"a", b"a"], [b"ab", b"a"], [b"a\0", b"a"]])
@pytest.mark.parametrize("block", [1, 2])
def test_words_that_are_not_in_order_are_refused(words: list[bytes], block: int, tmp_path: Path) -> None:
    pybpe.Counts.from_dict({"a": 1, "z": 2}).save(tmp_path / "good.counts")
    with counts_file.Reader(tmp_path / "good.counts") as reader:
        header = reader.header
    parts = blocks_of(words) if block == 2 else [*blocks_of(words[:1]), *blocks_of(words[1:])]
    counts_file.write_blocks(tmp_path / "bad.counts", header, parts)
    paths = [tmp_path / "good.counts", tmp_path / "bad.counts"]
    with pytest.raises(pybpe.errors.FormatError, match=r"bad\.counts: words are not in ascending order"):
        pybpe.Counts.merge_files(paths, tmp_path / "sum")
    with pytest.raises(pybpe.errors.FormatError, match=r"bad\.counts: words are not in ascending order"):
        pybpe.Counts.load(tmp_path / "bad.counts")
    assert not (tmp_path / "sum").exists()


def test_sums_that_are_too_large_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "1.counts", tmp_path / "2.counts"]
    for path in paths:
        pybpe.Counts.from_dict({"a": 1 << 63}).save(path)
    with pytest.raises(pybpe.errors.LimitError, match=r"2\^64"):
        pybpe.Counts.load_sum(paths)


def test_files_of_other_settings_are_named(tmp_path: Path) -> None:
    pybpe.Counts.from_dict({"a": 1}).save(tmp_path / "1.counts")
    pybpe.Counts.from_dict({"a": 1}, pattern="cl100k").save(tmp_path / "2.counts")
    with pytest.raises(pybpe.errors.ArgumentError, match=r"2\.counts: counts with different patterns"):
        pybpe.Counts.merge_files([tmp_path / "1.counts", tmp_path / "2.counts"], tmp_path / "sum")
    with pytest.raises(pybpe.errors.ArgumentError, match="no counts"):
        pybpe.Counts.merge_files([], tmp_path / "sum")


def test_texts_and_counts_together(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a b a c", encoding="utf-8")
    pybpe.Counts.from_dict({" b": 5}).save(tmp_path / "x.counts")
    command = ("count", "t.txt", "x.counts", "-o", "y.counts")
    result = pybpe_command(*command, "--json", cwd=tmp_path)
    assert json.loads(result.stdout) == {"output": "y.counts", "words": 4}
    assert pybpe.Counts.load(tmp_path / "y.counts").to_dict() == {b"a": 1, b" a": 1, b" b": 6, b" c": 1}
    refused = pybpe_command(*command, "--digits", 1, cwd=tmp_path, code=2)
    assert "x.counts: counts with different patterns" in refused.stderr


SOUND = json.dumps({"pattern": r"\w+", "special_tokens": [], "normalizer": None}).encode()


def checked(data: bytes) -> bytes:
    return data + struct.pack("<I", zlib.crc32(data))


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        (b"[]", 0, "not a JSON object"),
        (b"{", 0, "not a JSON object"),
        (SOUND, 5, "number of words"),
        (b"{}", 0, "invalid"),
    ],
)
def test_counts_with_right_checksums_and_wrong_content(header: bytes, words: int, message: str, tmp_path: Path) -> None:
    """Writes counts as a faulty program would; checksums would reveal mere damage."""
    start = counts_file.MAGIC + struct.pack("<II", counts_file.VERSION, len(header)) + header
    (tmp_path / "x.counts").write_bytes(checked(start) + checked(struct.pack("<IQ", 0, words)))
    with pytest.raises(pybpe.errors.FormatError, match=rf"x\.counts.*{message}"):
        pybpe.Counts.load(tmp_path / "x.counts")


# ---------------------------------------------------------------------------------------------------
# Counting on an executor's workers: the same files as on one machine


def count_by(executor: Executor, corpus: Path, output: Path, limit: int | None = None) -> tuple[int, pybpe.Counts]:
    """Counts with an executor. Returns the number of words, and the counts that one process makes."""
    expected = pybpe.count_words(corpus, special_tokens=SPECIALS)
    run = RunOptions(None, executor, limit, False)
    return counting.count_to_file(str(corpus), expected.settings, Sample(), run, output), expected


@pytest.mark.parametrize(("kind", "limit"), [(ThreadPoolExecutor, None), (ThreadPoolExecutor, 1000), (Twice, None)])
def test_workers_give_the_same_file(
    kind: type[Executor],
    limit: int | None,
    corpus: Path,
    small_tasks: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)  # with the limit, each task is a run on the disk
    (tmp_path / "out").mkdir()
    with kind(3) as executor:
        words, expected = count_by(executor, corpus, tmp_path / "out" / "x.counts", limit)
    expected.save(tmp_path / "expected")
    assert (tmp_path / "out" / "x.counts").read_bytes() == (tmp_path / "expected").read_bytes()
    assert words == len(expected) and os.listdir(tmp_path / "out") == ["x.counts"]


class Counting(ThreadPoolExecutor):
    """Counts the tasks that count."""

    tasks = 0

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        self.tasks += args[3].func is counting.count_task
        return super().submit(function, *args, **keywords)


def test_a_corpus_of_any_size_keeps_many_workers_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(english().encode()[:100_000])
    for least, most, expected in ((1 << 26, 1 << 30, 1), (10_000, 1 << 30, 10), (1, 1 << 30, 256), (1, 250, 400)):
        monkeypatch.setattr(counting, "LEAST_TASK", least)
        monkeypatch.setattr(counting, "MOST_TASK", most)
        with Counting(2) as executor:
            count_by(executor, tmp_path / "a.txt", tmp_path / "x.counts")
        assert 0.95 * expected <= executor.tasks <= 2 * expected + 1  # a power of two decides


@pytest.mark.filterwarnings("ignore:.*records are not valid")
def test_records_that_are_not_valid_are_skipped_and_listed(small_tasks: None, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"line {i}"}) if i % 50 else '{"text": nonsense' for i in range(1000)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    one, many = tmp_path / "one.jsonl", tmp_path / "many.jsonl"
    expected = pybpe.count_words(tmp_path / "x.jsonl", on_error="skip", skipped=one)
    read = ReadOptions(on_error="skip", skipped=str(many))
    settings = replace(expected.settings, read=read)
    with ThreadPoolExecutor(2) as executor:
        run = RunOptions(None, executor, None, False)
        counting.count_to_file(str(tmp_path / "x.jsonl"), settings, Sample(), run, tmp_path / "x.counts")
    assert pybpe.Counts.load(tmp_path / "x.counts") == expected
    assert many.read_bytes() == one.read_bytes() and one.read_bytes().count(b"\n") >= 20


def test_what_workers_cannot_count_is_refused(corpus: Path, tmp_path: Path) -> None:
    settings = pybpe.Counts.from_dict({}).settings
    with ThreadPoolExecutor(1) as executor:
        run = RunOptions(None, executor, None, False)
        for inputs, sample, message in (
            ("-", Sample(), "standard input"),
            (iter(["text"]), Sample(), "pass paths"),
            (str(corpus), Sample(max_bytes=100), "max_bytes"),
        ):
            with pytest.raises(pybpe.errors.ArgumentError, match=message):
                counting.count_to_file(inputs, settings, sample, run, tmp_path / "x.counts")
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------------------------------------------
# Training keeps to its memory limit, or says what it needs and which sample needs less.


@pytest.mark.parametrize("spilled", [False, True])
def test_words_that_do_not_fit_are_refused_with_a_sample_that_fits(
    spilled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.txt").write_text(chinese()[:30_000], encoding="utf-8")
    limit = 300_000
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)
    if not spilled:
        monkeypatch.setattr(word_counter.WordCounter, "_is_full", lambda *_: False)
    with pytest.raises(pybpe.errors.LimitError, match=r"memory_limit allows \(0.3 MB") as refused:
        pybpe.train(tmp_path / "t.txt", vocab_size=300, memory_limit=limit)
    found = re.search(r"max_bytes=(\d+)", str(refused.value))
    assert found is not None and int(found[1]) > 1000
    pybpe.train(tmp_path / "t.txt", vocab_size=300, memory_limit=limit, max_bytes=int(found[1]))
    counts = pybpe.count_words(tmp_path / "t.txt")
    with pytest.raises(pybpe.errors.LimitError, match="with max_bytes, or"):
        pybpe.train(counts=counts, vocab_size=300, memory_limit=limit)


def test_the_memory_of_the_process_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    merging = word_counter.MergingMemory(300 * 10**6, 300)
    need = merging.need(4_000_000, 36_000_000)
    assert 220 * 10**6 > need > 100 * 10**6 and merging.fits(4_000_000, 36_000_000) is True
    less = merging._replace(limit=need + 70 * 10**6)
    assert not less.fits(4_000_000, 36_000_000)
    with pytest.raises(pybpe.errors.LimitError, match="next to 80 MB for pybpe itself"):
        less.check(4_000_000, 36_000_000)


def test_what_merging_takes_is_said_if_it_is_much(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(word_counter, "_LARGE", 100_000)
    caplog.set_level(logging.INFO, "pybpe")
    for most, told in ((100, []), (30_000, ["30000 distinct words"])):
        pybpe.train(iter(["".join(f" n{i}" for i in range(most))]), vocab_size=300, pattern=r" n\d+", workers=1)
        assert [record.message.split(":")[0] for record in caplog.records] == told


@pytest.mark.skipif(os.name == "nt", reason="Python cannot say on Windows")
def test_the_memory_of_the_machine() -> None:
    found = machine_memory()
    assert found is not None and 1 << 20 < found <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
