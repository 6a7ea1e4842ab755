"""`pybpe train` and `pybpe count` on large corpora: their options, and Ctrl-C."""

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from commands import pybpe_command as run
from texts import chinese, english

import pybpe


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
    facts = json.loads(run("count", folder / "corpus", *options, "-o", folder / "all.counts", "--json").stdout)
    assert facts == {
        "output": str(folder / "all.counts"),
        "words": len(pybpe.Counts.load(folder / "all.counts")),
    }
    assert (folder / "sum.counts").read_bytes() == (folder / "all.counts").read_bytes()
    size = ["--vocab-size", "1k", "--special-token", "<|x|>"]
    parts = ("--counts", folder / "a.txt.counts", "--counts", folder / "b.jsonl.gz.counts")
    run("train", *parts, *size, "-o", folder / "1.json")
    run("train", folder / "corpus", *options, "--vocab-size", 1000, "-o", folder / "2.json")
    assert (folder / "1.json").read_bytes() == (folder / "2.json").read_bytes()


def test_the_options_of_train_equal_the_api(folder: Path) -> None:
    options = ["--max-bytes", "50k", "--seed", 3, "--memory-limit", "1G", "--text-key", "content"]
    checkpoint = folder / "x.checkpoint"
    run("train", folder / "corpus", *options, "--vocab-size", 600, "--checkpoint", checkpoint, "-o", folder / "s.json")
    tok = pybpe.train(folder / "corpus", max_bytes=50_000, seed=3, text_key="content", vocab_size=600)
    assert pybpe.Tokenizer.from_file(folder / "s.json").model == tok.model
    assert not checkpoint.exists()
    run("train", folder / "corpus/a.txt", "--base", folder / "s.json", "--vocab-size", 700, "-o", folder / "t.json")
    assert pybpe.Tokenizer.from_file(folder / "t.json").merges[: len(tok.merges)] == tok.merges


def test_the_compression_curve(folder: Path) -> None:
    path = folder / "corpus/a.txt"
    out = folder / "c.json"
    result = run("train", path, "--sizes", "300,1k,0.5k", "--hidden", 64, "-o", out)
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
    sample = run("train", path, "--sizes", "300,600", "--max-bytes", "20k", "-o", out)
    assert pybpe.Tokenizer.from_file(out) == pybpe.train(path, vocab_size=600, max_bytes=20_000), sample.stdout
    facts = json.loads(run("train", path, "--sizes", "300,1k", "--json", "-o", out).stdout)
    assert [point["embedding_parameters"] for point in facts["sizes"]] == [2 * 300 * 768, 2 * 1000 * 768]


# ------------------------------------------------------------------------------------------------------
# Ctrl-C. A step that never ends simulates a huge one: the command must not wait for it.

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
    assert process.returncode == 130 and stderr == b"pybpe: interrupted\n"
    assert os.listdir(tmp_path) == []
