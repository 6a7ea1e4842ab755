"""Counts: files, sums, executors, memory limits; and training from them or from a base."""

import os
import pickle
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
from texts import chinese, english, mixed

import pybpe
from pybpe import _binding
from pybpe.training import runs, word_counter

SPECIALS = ["<|endoftext|>"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text(english()[:200_000] + "<|endoftext|>" + mixed(), encoding="utf-8")
    (folder / "b.txt").write_text(chinese() + "<|endoftext|>", encoding="utf-8")
    return folder


# ------------------------------------------------------------------------------------------------------
# Counts and their files


def test_equal_counts_give_equal_files(corpus: Path, tmp_path: Path) -> None:
    whole = pybpe.count_words(corpus, special_tokens=SPECIALS)
    parts = [pybpe.count_words(corpus / name, special_tokens=SPECIALS) for name in ("b.txt", "a.txt")]
    (parts[0] + parts[1]).save(tmp_path / "parts.counts")
    whole.save(tmp_path / "whole.counts")
    assert (tmp_path / "parts.counts").read_bytes() == (tmp_path / "whole.counts").read_bytes()
    loaded = pybpe.Counts.load(tmp_path / "whole.counts")
    assert loaded == whole == pybpe.Counts.merge(parts) == pickle.loads(pickle.dumps(whole))
    assert loaded != parts[0] and len(loaded) == len(whole.to_dict())
    assert loaded.settings.specials == ("<|endoftext|>",)


def test_empty_counts_are_a_file_too(tmp_path: Path) -> None:
    pybpe.Counts.from_dict({}).save(tmp_path / "x.counts")
    assert pybpe.Counts.load(tmp_path / "x.counts").to_dict() == {}
    assert pickle.loads(pickle.dumps(pybpe.Counts.from_dict({}))).to_dict() == {}


def test_every_damage_to_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.counts"
    pybpe.Counts.from_dict({b"word%d" % i: i for i in range(5)}).save(path)
    good = path.read_bytes()
    for size in range(len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(pybpe.errors.FormatError, match="x.counts"):
            pybpe.Counts.load(path)
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1 << random.Random(position).randrange(8)
        path.write_bytes(bad)
        with pytest.raises(pybpe.errors.FormatError, match="x.counts"):
            pybpe.Counts.load(path)
    path.write_bytes(good + b"x")
    with pytest.raises(pybpe.errors.FormatError, match="should end"):
        pybpe.Counts.load(path)
    with pytest.raises(FileNotFoundError, match="none"):
        pybpe.Counts.load(tmp_path / "none")


# ------------------------------------------------------------------------------------------------------
# Training from counts and from a base


def test_training_from_counts_equals_training_from_texts(corpus: Path, tmp_path: Path) -> None:
    direct = pybpe.train(corpus, vocab_size=1000, special_tokens=SPECIALS, pattern="cl100k")
    counted = pybpe.count_words(corpus, special_tokens=SPECIALS, pattern="cl100k")
    counted.save(tmp_path / "x.counts")
    of_file = pybpe.Counts.load(tmp_path / "x.counts")
    for source in (counted, of_file):
        tok = pybpe.train(counts=source, vocab_size=1000, special_tokens=SPECIALS)
        assert tok.model == direct.model
    tok = pybpe.train(counts=counted.to_dict(), vocab_size=1000, special_tokens=SPECIALS, pattern="cl100k")
    assert tok.model == direct.model


def test_huge_counts() -> None:
    tok = pybpe.train(counts={"a" * 10: 1 << 40, b"bcbcbc": 50}, vocab_size=259)
    assert tok.merges[0] == (b"a", b"a")


def test_arguments_that_contradict_are_refused(corpus: Path) -> None:
    base = pybpe.train(corpus, vocab_size=300)
    counted = pybpe.Counts.from_dict({"x": 1})
    for arguments, message in [
        ({}, "either"),
        ({"inputs": corpus, "counts": {"x": 1}}, "either"),
        ({"counts": counted, "pattern": "cl100k"}, "pattern"),
        ({"counts": counted, "normalizer": "NFC"}, "normalizer"),
        ({"counts": counted, "digits": 1}, "pattern"),
        ({"counts": counted, "special_tokens": ["<|a|>"]}, "count again with them"),
        ({"inputs": corpus, "base": base, "pattern": "cl100k"}, "pattern"),
        ({"inputs": corpus, "base": base, "special_ids": "last"}, "special_ids"),
        ({"counts": pybpe.Counts.from_dict({"x": 1}, pattern="o200k"), "base": base}, "pattern"),
        ({"inputs": corpus, "base": pybpe.train(corpus, vocab_size=500)}, "500"),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.train(**arguments, vocab_size=400)


@pytest.mark.parametrize("where", ["first", "after_bytes", "last"])
@pytest.mark.parametrize("tie_break", ["lexicographic", "huggingface"])
def test_a_smaller_vocabulary_is_what_a_smaller_training_gives(corpus: Path, where: str, tie_break: str) -> None:
    arguments = {"special_tokens": SPECIALS, "special_ids": where, "tie_break": tie_break}
    large = pybpe.train(corpus, vocab_size=2000, **arguments)
    for size in (257, 258, 700, 1999, 2000):
        assert large.prune(vocab_size=size).model == pybpe.train(corpus, vocab_size=size, **arguments).model
    for size in (256, 2001):
        with pytest.raises(pybpe.errors.ArgumentError, match="257 to 2000"):
            large.prune(vocab_size=size)


@pytest.mark.parametrize("tie_break", ["lexicographic", "huggingface"])
def test_a_base_on_the_same_text_goes_on_as_if_never_stopped(corpus: Path, tie_break: str) -> None:
    whole = pybpe.train(corpus, vocab_size=1500, special_tokens=SPECIALS, tie_break=tie_break)
    for size in (257, 300, 1100, 1500):
        base = whole.prune(vocab_size=size)
        assert pybpe.train(corpus, vocab_size=1500, base=base, tie_break=tie_break).model == whole.model


@pytest.mark.parametrize("where", ["first", "after_bytes", "last"])
def test_a_base_keeps_every_id(corpus: Path, where: str) -> None:
    base = pybpe.train(corpus / "a.txt", vocab_size=600, special_tokens=["<|a|>"], special_ids=where, pattern="cl100k")
    tok = pybpe.train(corpus / "b.txt", vocab_size=900, special_tokens=["<|b|>", "<|a|>"], base=base)
    assert [tok.model.vocab[i] for i in range(600)] == [base.model.vocab[i] for i in range(600)]
    assert tok.merges[: len(base.merges)] == base.merges and len(tok) == 900
    assert tok.special_tokens == base.special_tokens | {"<|b|>": 600}
    assert tok.pattern == base.pattern
    text = chinese() + "<|b|><|a|>" + english()[:1000]
    assert tok.decode(tok.encode(text)) == text
    assert len(tok.encode(chinese())) < len(base.encode(chinese()))


# ------------------------------------------------------------------------------------------------------
# Executors


def test_any_executor_gives_the_same_and_the_same_errors(corpus: Path, tmp_path: Path, small_tasks: None) -> None:
    expected = pybpe.count_words(corpus, special_tokens=SPECIALS)
    with ThreadPoolExecutor(3) as threads:
        assert pybpe.count_words(corpus, special_tokens=SPECIALS, executor=threads) == expected
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert pybpe.count_words(corpus, special_tokens=SPECIALS, executor=processes) == expected
        tok = pybpe.train(corpus, vocab_size=500, special_tokens=SPECIALS, executor=processes)
        with pytest.raises(FileNotFoundError, match="missing"):
            pybpe.count_words(corpus / "missing", executor=processes)
        with pytest.raises(pybpe.errors.ArgumentError, match="executor"):
            pybpe.count_words(iter(["x"]), executor=processes)
        (tmp_path / "x.jsonl").write_text("{}")
        with pytest.raises(pybpe.errors.FormatError, match="x.jsonl: the line at byte 0"):
            pybpe.count_words(tmp_path, executor=processes)
    assert tok.model == pybpe.train(corpus, vocab_size=500, special_tokens=SPECIALS).model


def test_a_worker_that_dies_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    kill = "import os, sys; open(sys.argv[1], 'w'); os.kill(int(sys.argv[2]), 9)"  # opens when the worker has opened it
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        worker = processes.submit(os.getpid).result()
        with subprocess.Popen([sys.executable, "-c", kill, str(tmp_path / "never"), str(worker)]):
            with pytest.raises(pybpe.errors.WorkerError, match="died"):
                pybpe.count_words(tmp_path / "never", executor=processes)


# ------------------------------------------------------------------------------------------------------
# Memory


def test_a_memory_limit_changes_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    expected = pybpe.count_words(corpus, special_tokens=SPECIALS)
    spilled = []
    spill = word_counter.WordCounter._spill
    monkeypatch.setattr(word_counter.WordCounter, "_spill", lambda *args: spilled.append(1) or spill(*args))
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)
    monkeypatch.setattr(runs, "OPEN_FILES", 2)
    copies = corpus.with_name("copies")
    copies.mkdir()
    for name in "123":
        (copies / f"{name}.txt").write_bytes((corpus / "a.txt").read_bytes())
    limited = pybpe.count_words([copies, corpus], special_tokens=SPECIALS, memory_limit=1000)
    assert limited == pybpe.Counts.merge(
        [pybpe.count_words(corpus / "a.txt", special_tokens=SPECIALS)] * 3 + [expected]
    )
    assert len(spilled) >= 5 and os.listdir(tmp_path) == []
    with pytest.raises(pybpe.errors.FileError):
        pybpe.count_words([corpus, corpus / "missing"], memory_limit=1000)
    assert os.listdir(tmp_path) == []
    with monkeypatch.context() as patch:
        patch.setattr(word_counter, "LEAST_MEMORY", 1 << 24)
        with pytest.raises(pybpe.errors.ArgumentError, match="memory_limit"):
            pybpe.count_words(corpus, memory_limit=1000)


# ------------------------------------------------------------------------------------------------------
# Checkpoints


def killed(trainer: _binding.Trainer, budget: int) -> bool:
    raise InterruptedError


def test_a_training_that_ends_while_it_merges_does_not_count_again(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybpe.training.saved_counting.SECONDS", 0.0)
    train = partial(pybpe.train, corpus, special_tokens=SPECIALS, checkpoint=tmp_path / "x")
    expected = pybpe.train(corpus, vocab_size=4000, special_tokens=SPECIALS)
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(_binding.Trainer, "step", killed)
        train(vocab_size=4000)
    with pytest.raises(pybpe.errors.ArgumentError, match="another training run: its vocab_size differs"):
        train(vocab_size=4001)
    monkeypatch.setattr("pybpe.training.counting.count_piece", None)
    assert train(vocab_size=4000).model == expected.model
    assert os.listdir(tmp_path) == []


def test_a_training_with_a_base_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base makes bbb of b + bb, which words never have. So bb + b makes it again, before an a + bbb."""
    monkeypatch.setattr("pybpe.training.saved_counting.SECONDS", 0.0)
    monkeypatch.setattr("pybpe.training.merging._STEP_BUDGET", 1)
    (tmp_path / "a.txt").write_text("abbbab")
    tokens = [*(bytes([i]) for i in range(256)), b"bb", b"bbb", b"abbb"]
    base = pybpe.Tokenizer(dict(enumerate(tokens)), [(b"b", b"b"), (b"b", b"bb"), (b"a", b"bbb")])
    train = partial(pybpe.train, tmp_path / "a.txt", vocab_size=262, base=base)
    expected = train().merges
    assert expected[3:] == [(b"bb", b"b"), (b"bbb", b"a"), (b"bbba", b"b"), (b"a", b"bbbab")]
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(_binding.Trainer, "step", killed)
        train(checkpoint=tmp_path / "x")
    assert train(checkpoint=tmp_path / "x").merges == expected


def test_a_checkpoint_needs_files_to_count(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(pybpe.errors.ArgumentError, match="iterable"):
        pybpe.train(iter(["x"]), vocab_size=300, checkpoint=path)
    with pytest.raises(pybpe.errors.ArgumentError, match="leave it out with counts"):
        pybpe.train(counts={"a": 1}, vocab_size=300, checkpoint=path)
    assert not path.exists()
    path.write_bytes(b"something else entirely")
    with pytest.raises(pybpe.errors.FileError, match="x.*cannot be made"):
        pybpe.train(corpus, vocab_size=300, checkpoint=path)
    assert path.read_bytes() == b"something else entirely"
