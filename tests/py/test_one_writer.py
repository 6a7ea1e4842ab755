"""A second writer to a folder or checkpoint is refused before it has changed anything."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from corpora import EOT, content, documents, small_tokenizer, standard_input

import pybpe
from llmc_compat import chat
from llmc_compat.workspace import make_workspace
from pybpe.model import CONTROL_TOKENS
from pybpe.support.locking import FOLDER, only_holder, only_writer

HOLD = """
import sys
from pybpe.support.locking import only_holder, only_writer

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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(EOT.join(documents(40)), encoding="utf-8")
    return path


def binarize_standard_input(corpus: Path, out: Path) -> object:
    with standard_input(str(corpus)):
        return pybpe.binarize(small_tokenizer(), "-", out / "o", progress=False)


def clean_standard_input(corpus: Path, out: Path) -> object:
    with standard_input(str(corpus)):
        return pybpe.corpus.clean("-", out / "o.jsonl", workers=1, progress=False)


def binarize(corpus: Path, out: Path) -> object:
    return pybpe.binarize(small_tokenizer(), corpus, out / "o", progress=False)


def prepare(corpus: Path, out: Path) -> object:
    return pybpe.prepare(corpus, out / "o", vocab_size=400, progress=False)


def workspace(corpus: Path, out: Path) -> object:
    shape = {"layers": 1, "heads": 2, "channels": 8, "sequence_length": 64}
    return make_workspace(corpus, out / "o", vocab_size=400, splits=(1, 1), **shape, progress=False)


def write_chat(corpus: Path, out: Path) -> object:
    tok = pybpe.train(iter(documents(8)), vocab_size=320, special_tokens=CONTROL_TOKENS)
    return chat.write_chat(tok, [corpus], out / "o")


def clean(corpus: Path, out: Path) -> object:
    return pybpe.corpus.clean(corpus, out / "o.jsonl", workers=1, progress=False)


def encode_files(corpus: Path, out: Path) -> object:
    return pybpe.encode_files(small_tokenizer(), corpus, out / "o.npy", progress=False)


def train(corpus: Path, out: Path) -> object:
    return pybpe.train(corpus, vocab_size=400, checkpoint=out / "o.checkpoint", progress=False)


FOLDERS = {
    binarize: "o",
    binarize_standard_input: "o",
    clean_standard_input: ".o.jsonl.unfinished",
    prepare: "o",
    workspace: "o",
    write_chat: "o",
    clean: ".o.jsonl.unfinished",
    encode_files: ".o.npy.unfinished",
    train: "o.checkpoint",
}


@pytest.mark.parametrize("write", FOLDERS, ids=lambda write: write.__name__)
def test_a_refused_writer_has_changed_nothing(
    corpus: Path, tmp_path: Path, write: Callable[[Path, Path], object]
) -> None:
    out = tmp_path / "out"
    folder = out / FOLDERS[write]
    (folder / FOLDER).mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer.bin", "README.md", f"{FOLDER}/input-0", f"{FOLDER}/parts.log"):
        (folder / name).write_bytes(b"of the other")
    with another_process_holds(folder):
        before = content(out)
        with pytest.raises(pybpe.errors.FileError, match="another process is writing to it"):
            write(corpus, out)
        assert content(out) == before


def test_threads_of_one_process_exclude_each_other_too(corpus: Path, tmp_path: Path) -> None:
    """A lock of the operating system belongs to the process, so it would not exclude other threads."""
    refused: list[str] = []

    def write() -> None:
        try:
            binarize(corpus, tmp_path)
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
