"""A second writer to a folder or checkpoint is refused before it has changed anything."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from corpora import content, documents, small_tokenizer, standard_input

import pybpe
from llmc_compat import chat
from llmc_compat.workspace import make_workspace
from pybpe.corpus import clean
from pybpe.model import CONTROL_TOKENS
from pybpe.support.output_files import FOLDER, only_holder, only_writer

HOLD = """
import sys
from pybpe.support.output_files import only_holder, only_writer

with only_writer(sys.argv[1]) if len(sys.argv) == 2 else only_holder(*sys.argv[1:]):
    print("holds", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process_holds(*arguments: object) -> Iterator[None]:
    command = [sys.executable, "-c", HOLD, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline().rstrip() == b"holds"
        yield
        other.kill()


def write_chat(corpus: Path, out: Path) -> object:
    tok = pybpe.train(iter(documents(8)), vocab_size=320, special_tokens=CONTROL_TOKENS)
    return chat.write_chat(tok, [corpus], out / "o")


SHAPE: dict[str, Any] = {"layers": 1, "heads": 2, "channels": 8, "sequence_length": 64, "splits": (1, 1)}
# What writes a corpus, and the folder that it locks
WRITERS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "binarize": (lambda corpus, out: pybpe.binarize(small_tokenizer(), corpus, out / "o"), "o"),
    "binarize -": (lambda corpus, out: pybpe.binarize(small_tokenizer(), "-", out / "o"), "o"),
    "prepare": (lambda corpus, out: pybpe.prepare(corpus, out / "o", vocab_size=400), "o"),
    "workspace": (lambda corpus, out: make_workspace(corpus, out / "o", vocab_size=400, **SHAPE), "o"),
    "chat": (write_chat, "o"),
    "corpus": (lambda corpus, out: clean(corpus, out / "o.jsonl", workers=1), ".o.jsonl.unfinished"),
    "corpus -": (lambda corpus, out: clean("-", out / "o.jsonl", workers=1), ".o.jsonl.unfinished"),
    "encode": (lambda corpus, out: pybpe.encode_files(small_tokenizer(), corpus, out / "o.npy"), ".o.npy.unfinished"),
    "train": (lambda corpus, out: pybpe.train(corpus, vocab_size=400, checkpoint=out / "o.x"), "o.x"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_refused_writer_has_changed_nothing(marked: Path, tmp_path: Path, name: str) -> None:
    out, (write, locked) = tmp_path / "out", WRITERS[name]
    folder = out / locked
    (folder / FOLDER).mkdir(parents=True)
    for file in ("tokenizer.json", "tokenizer.bin", "README.md", f"{FOLDER}/input-0", f"{FOLDER}/rows"):
        (folder / file).write_bytes(b"of the other")
    with another_process_holds(folder):
        before = content(out)
        with (
            standard_input(str(marked)),
            pytest.raises(pybpe.errors.FileError, match="another process is writing to it"),
        ):
            write(marked, out)
        assert content(out) == before


def test_threads_of_one_process_exclude_each_other_too(marked: Path, tmp_path: Path) -> None:
    """A lock of the operating system belongs to the process, so it would not exclude other threads."""
    refused: list[str] = []

    def write() -> None:
        try:
            pybpe.binarize(small_tokenizer(), marked, tmp_path / "o")
        except pybpe.errors.FileError as error:
            refused.append(str(error))

    with only_writer(str(tmp_path / "o")):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(refused) == 1 and "another thread is writing to it" in refused[0]
    write()
    assert len(refused) == 1 and (tmp_path / "o" / "manifest.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove a file that another process has locked")
def test_a_lock_file_that_was_removed_in_between_protects_nobody(tmp_path: Path) -> None:
    """A process that opened it before its owner ended holds a lock that no other process sees, so it must look
    again."""
    lock = tmp_path / "lock"
    with only_holder(str(lock), "x"):
        lock.unlink()
        lock.write_bytes(b"of another writer")
    assert lock.read_bytes() == b"of another writer"  # a writer with a different file has not removed it
    with another_process_holds(lock, "x"), pytest.raises(pybpe.errors.FileError, match="another process"):
        with only_holder(str(lock), "x"):
            pass
