"""Training on large corpora: ranges and samples of files, counts and their files, a base, executors, little memory,
checkpoints; and the options of `pybpe train` and `pybpe count`."""

import gzip
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
from commands import pybpe_command as run
from corpora import jsonl
from texts import chinese, english, mixed

import pybpe
from pybpe import _binding
from pybpe.cli import main
from pybpe.pattern import Pattern
from pybpe.reading.files import Corpus
from pybpe.reading.input_file import InputFile
from pybpe.reading.pieces import pieces_of
from pybpe.training import counts as counts_file
from pybpe.training import word_counter
from pybpe.training.counting import corpus_plan
from pybpe.training.counts import CountSettings
from pybpe.training.word_counter import WordCounter

TEXT = english()[:60_000] + chinese()[:5000] + mixed()[:5000]
RECORDS = [TEXT[i : i + 700] for i in range(0, len(TEXT), 700)]
SPECIALS = ["<|endoftext|>"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text(english()[:200_000] + "<|endoftext|>" + mixed(), encoding="utf-8")
    (folder / "b.txt").write_text(chinese() + "<|endoftext|>", encoding="utf-8")
    return folder


# ------------------------------------------------------------------------------------------------------
# Records, ranges and samples


def write_jsonl(path: Path, texts: list[str], key: str = "text") -> Path:
    path.write_bytes(jsonl(texts, key))
    return path


def test_records_are_texts_without_specials(tmp_path: Path) -> None:
    texts = [*RECORDS, "a<|endoftext|>b", "", "\ud800 lone"]
    path = write_jsonl(tmp_path / "x.jsonl", texts)
    plain = tmp_path / "plain.txt"
    plain.write_text("a<|endoftext|>b")
    found = pybpe.count_words([path, plain], special_tokens=["<|endoftext|>"]).to_dict()
    expected = pybpe.count_words(iter(texts)).to_dict()  # without specials
    expected[b"a"] = expected.get(b"a", 0) + 1  # of the plain file
    expected[b"b"] = expected.get(b"b", 0) + 1
    assert found == expected and b"endoftext" in found
    write_jsonl(path, RECORDS, "content")
    options = {"pattern": r"\w+", "normalizer": "NFC"}
    assert pybpe.count_words(path, text_key="content", **options) == pybpe.count_words(iter(RECORDS), **options)


def counts_in_ranges(paths: list[Path], settings: CountSettings, size: int) -> pybpe.Counts:
    """Returns the counts of files that are read in ranges of about `size` bytes, in a random order."""
    plan = corpus_plan(Corpus(InputFile.of(str(path)) for path in paths), settings)
    counter = WordCounter(settings, plan.kinds, workers=1)
    plan.task_bytes = size
    tasks = list(plan.loose_tasks())
    random.Random(1).shuffle(tasks)
    for task in tasks:
        for piece in pieces_of(plan.fixed(task), plan.kinds, settings.cutting.cut):
            counter.add(piece)
    return pybpe.Counts(counter.finish(), settings)


@pytest.mark.filterwarnings("ignore:.*not UTF-8")
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
@pytest.mark.parametrize("size", [7, 3001])
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


def test_a_sample_of_records(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", [f"word{i}" for i in range(100)])
    assert len(pybpe.count_words(path, max_documents=10, pattern=r"\w+")) == 10
    assert len(pybpe.count_words(path, max_documents=1000, pattern=r"\w+")) == 100
    assert pybpe.count_words(path, max_bytes=100, pattern=r"\w+").to_dict() == {b"word%d" % i: 1 for i in range(4)}


def test_a_sample_is_spread_over_the_corpus_and_decided_by_the_seed(tmp_path: Path) -> None:
    for name in "abcdefgh":
        (tmp_path / name).write_text(f" {name}{name}" * 400_000)  # 1.2 MB: two ranges
    seen = set()
    for seed in range(4):
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
    pybpe.Counts.from_dict({}).save(tmp_path / "x.counts")
    assert pybpe.Counts.load(tmp_path / "x.counts").to_dict() == {}
    assert pickle.loads(pickle.dumps(pybpe.Counts.from_dict({}))).to_dict() == {}


def test_every_damage_to_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.counts"
    pybpe.Counts.from_dict({b"word%d" % i: i for i in range(5)}).save(path)
    good = path.read_bytes()
    for place in range(len(good)):
        flipped = good[place] ^ 1 << random.Random(place).randrange(8)
        for damaged in (good[:place], good[:place] + bytes([flipped]) + good[place + 1 :]):
            path.write_bytes(damaged)
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
    for source, more in ((counted, {}), (pybpe.Counts.load(tmp_path / "x.counts"), {}),
                         (counted.to_dict(), {"pattern": "cl100k"})):  # fmt: skip
        assert pybpe.train(counts=source, vocab_size=1000, special_tokens=SPECIALS, **more).model == direct.model
    tok = pybpe.train(counts={"a" * 10: 1 << 40, b"bcbcbc": 50}, vocab_size=259)  # huge ones
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


@pytest.mark.parametrize(
    ("where", "tie_break"), [("first", "huggingface"), ("after_bytes", "lexicographic"), ("last", "lexicographic")]
)
def test_a_smaller_vocabulary_and_a_base_give_what_training_at_once_gives(
    corpus: Path, where: str, tie_break: str
) -> None:
    arguments = {"special_tokens": SPECIALS, "special_ids": where, "tie_break": tie_break}
    large = pybpe.train(corpus, vocab_size=2000, **arguments)
    for size in (257, 258, 700, 1999, 2000):
        small = large.prune(vocab_size=size)
        assert small.model == pybpe.train(corpus, vocab_size=size, **arguments).model
        if where != "last":  # a base keeps its ids
            assert pybpe.train(corpus, vocab_size=2000, base=small, tie_break=tie_break).model == large.model
    for size in (256, 2001):
        with pytest.raises(pybpe.errors.ArgumentError, match="257 to 2000"):
            large.prune(vocab_size=size)


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
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
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
    monkeypatch.setattr(counts_file, "OPEN_FILES", 2)
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
    train = partial(pybpe.train, corpus, special_tokens=SPECIALS, checkpoint=tmp_path / "x")
    expected = pybpe.train(corpus, vocab_size=4000, special_tokens=SPECIALS)
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(_binding.Trainer, "step", killed)
        train(vocab_size=4000)
    monkeypatch.setattr("pybpe.training.counting.count_piece", None)
    assert train(vocab_size=4000).model == expected.model
    assert os.listdir(tmp_path) == []


def test_a_training_with_a_base_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base makes bbb of b + bb, which words never have. So bb + b makes it again, before an a + bbb."""
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


# ------------------------------------------------------------------------------------------------------
# The command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in its own folder: plain text, and compressed records."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "corpus").mkdir()
    (folder / "corpus" / "a.txt").write_text(english()[:100_000], encoding="utf-8")
    lines = "".join(json.dumps({"content": line}) + "\n" for line in chinese().splitlines())
    (folder / "corpus" / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def test_counts_are_made_added_and_trained_from(folder: Path) -> None:
    options = ["--text-key", "content", "--digits", "1", "--special-token", "<|x|>"]
    for name in ("a.txt", "b.jsonl.gz"):
        run("count", folder / "corpus" / name, *options, "-o", folder / f"{name}.counts")
    run("count", folder / "a.txt.counts", folder / "b.jsonl.gz.counts", "-o", folder / "sum.counts")
    facts = json.loads(run("count", folder / "corpus" / "*", *options, "-o", folder / "all.counts", "--json").stdout)
    assert facts == {"output": str(folder / "all.counts"), "words": len(pybpe.Counts.load(folder / "all.counts"))}
    assert (folder / "sum.counts").read_bytes() == (folder / "all.counts").read_bytes()
    size = ["--vocab-size", "1k", "--special-token", "<|x|>"]
    parts = ("--counts", folder / "a.txt.counts", "--counts", folder / "b.jsonl.gz.counts")
    run("train", *parts, *size, "-o", folder / "1.json")
    run("train", folder / "corpus" / "*", *options, "--vocab-size", 1000, "-o", folder / "2.json")
    assert (folder / "1.json").read_bytes() == (folder / "2.json").read_bytes()


def test_the_options_of_train_equal_the_api(folder: Path) -> None:
    options = ["--max-bytes", "50k", "--seed", 3, "--memory-limit", "1G", "--text-key", "content"]
    checkpoint = folder / "x.checkpoint"
    run(
        "train",
        folder / "corpus" / "*",
        *options,
        "--vocab-size",
        600,
        "--checkpoint",
        checkpoint,
        "-o",
        folder / "s.json",
    )
    tok = pybpe.train(folder / "corpus" / "*", max_bytes=50_000, seed=3, text_key="content", vocab_size=600)
    assert pybpe.Tokenizer.from_file(folder / "s.json").model == tok.model
    assert not checkpoint.exists()
    run("train", folder / "corpus/a.txt", "--base", folder / "s.json", "--vocab-size", 700, "-o", folder / "t.json")
    assert pybpe.Tokenizer.from_file(folder / "t.json").merges[: len(tok.merges)] == tok.merges


def test_the_compression_curve(folder: Path) -> None:
    path = folder / "corpus/a.txt"
    out = folder / "c.json"
    result = run("train", path, "--sizes", "300,1k,0.5k", "--channels", 64, "-o", out)
    rows = [line.replace(",", "").split() for line in result.stdout.splitlines()[2:]]
    data = path.read_bytes()
    tok = pybpe.Tokenizer.from_file(out)
    assert len(tok) == 1000
    before = 0
    for row, size in zip(rows, (300, 500, 1000), strict=True):
        tokens = tok.prune(vocab_size=size).count(data)
        gain = [f"{100 - 100 * tokens / before:.1f}%"] if before else []
        assert row == [str(size), f"{len(data) / tokens:.3f}", *gain, str(2 * size * 64)]
        before = tokens
    facts = json.loads(run("train", path, "--sizes", "300,1k", "--json", "-o", out).stdout)
    assert [point["embedding_parameters"] for point in facts["sizes"]] == [2 * 300 * 768, 2 * 1000 * 768]


def test_a_list_of_special_tokens_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("a b a b")
    words = ["train", str(tmp_path / "a.txt"), "--vocab-size", "258", "--special-token", "<a>,<b>"]
    assert main([*words, "-o", str(tmp_path / "tok.json")]) == 0
    assert "--special-token '<a>,<b>' is one token" in capsys.readouterr().err


# Ctrl-C: a step that never ends simulates a huge one: the command must not wait for it.

STUCK = """
import sys, threading
from pybpe import _binding
from pybpe.__main__ import main
def stuck(*args, **kw):
    print("stuck", flush=True)
    threading.Event().wait()
_binding.{place} = stuck
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["Trainer.step", "Trainer.__init__", "Counter.export"])
def test_an_interrupt_is_answered_in_the_middle_of_a_step(folder: Path, tmp_path: Path, place: str) -> None:
    program = textwrap.dedent(STUCK).format(place=place)
    arguments = ["train", str(folder / "corpus/a.txt"), "--vocab-size", "400", "-o", str(tmp_path / "x.json")]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"stuck\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    lines = stderr.splitlines()
    assert process.returncode == 130 and lines[0].startswith(b"pybpe: train ") and b": started at " in lines[0]
    assert lines[-1] == b"pybpe: interrupted" and os.listdir(tmp_path) == []
