"""A stopped or killed run of binarize whose inputs have changed: it keeps what it made of the text before the first
change, and the result is always that of the inputs as they are now."""

import errno
import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from corpora import content
from killed import run_and_die
from texts import english

import pybpe
from pybpe.reading.bad_records import SkipState
from pybpe.support.locking import FOLDER
from pybpe.tokens import encoding, run, store

pytestmark = pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")


@pytest.mark.parametrize("format", ["llmc", "npy"])
@pytest.mark.parametrize("split_by", ["hash", "token"])
def test_a_mended_file_is_done_again_and_the_files_before_it_are_kept(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, format: str, split_by: str
) -> None:
    given: dict[str, Any] = {"format": format, "split_by": split_by, "progress": False, "workers": 1}
    good = corpus[1].read_bytes()
    for number, place in enumerate((0, len(good))):
        at = good.rfind(b"\n", 0, place) + 1
        corpus[1].write_bytes(good[:at] + b'{"text": null}\n' + good[at:])
        out = tmp_path / f"out{number}"
        with pytest.raises(pybpe.errors.FormatError, match=f"b.jsonl: the line at byte {at}: "):
            pybpe.binarize(tok, corpus, out, **given)
        assert (out / FOLDER / "parts.log").exists()
        corpus[1].write_bytes(good)
        encoded = encoded_tasks(tok, corpus, out, **given)
        assert encoded[0] < encoded[1]  # the text before b.jsonl was encoded already
        pybpe.binarize(tok, corpus, tmp_path / f"fresh{number}", **given)
        assert content(out) == content(tmp_path / f"fresh{number}") and not (out / FOLDER).exists()


def encoded_tasks(tok: pybpe.Tokenizer, corpus: list[Path], out: Path, **given: Any) -> tuple[int, int]:
    """Runs binarize. Returns how many tasks it ran, and how many there are."""
    seen: list[Any] = []
    pieces = encoding.TaskEncoder.task_pieces

    def recorded(self: encoding.TaskEncoder, task: Any) -> Any:
        seen.append(task)
        return pieces(self, task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding.TaskEncoder, "task_pieces", recorded)
        pybpe.binarize(tok, corpus, out, **given)
        some = len(seen)
        pybpe.binarize(tok, corpus, out.with_name(f"{out.name}-all"), **given)
    return some, len(seen) - some


def test_what_changed_before_the_end_is_done_again(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path) -> None:
    """Killed runs, after which the files change in several ways: the result is always that of the new files."""
    rng = random.Random(3)
    original = [path.read_bytes() for path in corpus]
    for number in range(6):
        for path, data in zip(corpus, original):
            path.write_bytes(data)
        out = tmp_path / f"out{number}"
        given: dict[str, Any] = {"workers": 1, "progress": False, "shard_tokens": 5000, "name": "x"}
        given["format"] = rng.choice(["llmc", "npy", "megatron"])
        if given["format"] == "megatron":
            del given["shard_tokens"]
        run_and_die(rng.randrange(10, 90), pybpe.binarize, tok, corpus, out, **given)
        files = list(corpus)
        change = number % 4
        if change == 0:  # longer, so that its tasks differ
            path = rng.choice(corpus[:2])
            path.write_bytes(path.read_bytes() + b"\n" + path.read_bytes())
        elif change == 1:
            files.remove(rng.choice(corpus[1:]))
        elif change == 2:
            files.append(tmp_path / "more.txt")
            files[-1].write_text(english()[:50_000])
        else:
            files.reverse()
        pybpe.binarize(tok, files, out, **given)
        pybpe.binarize(tok, files, tmp_path / f"fresh{number}", **given)
        assert content(out) == content(tmp_path / f"fresh{number}"), number


def test_a_damaged_log_and_lost_spools(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path) -> None:
    """A damaged line ends the log, and a run never trusts tokens that are not on disk."""
    given: dict[str, Any] = {"workers": 1, "progress": False}
    pybpe.binarize(tok, corpus, tmp_path / "fresh", **given)
    rng = random.Random(5)
    for number in range(6):
        out = tmp_path / f"out{number}"
        assert run_and_die(60, pybpe.binarize, tok, corpus, out, **given)
        path = out / FOLDER / "parts.log"
        if number % 3 == 2:
            spool = rng.choice(sorted((out / FOLDER).glob("*.tokens")))
            spool.write_bytes(spool.read_bytes()[: rng.randrange(2000)])
        else:
            data = bytearray(path.read_bytes())
            if number % 3 == 0:
                data[rng.randrange(len(data))] ^= 1
            path.write_bytes(data[: rng.randrange(len(data))] if number % 3 == 1 else data)
        pybpe.binarize(tok, corpus, out, **given)
        assert content(out) == content(tmp_path / "fresh"), number


def test_shards_that_were_cut_already_are_cut_again(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last shards of a split are cut first. Those of the text before the change must not be used."""
    given: dict[str, Any] = {"shard_tokens": 4000, "splits": (1,), "workers": 1, "progress": False}
    copied: list[Any] = []

    def copy(*args: Any) -> str:
        if len(copied) == 2:
            raise OSError(errno.EIO, "Input/output error")
        copied.append(args)
        return real(*args)

    real = store._copy
    monkeypatch.setattr(store, "_copy", copy)
    with pytest.raises(OSError):
        pybpe.binarize(tok, corpus, tmp_path / "out", **given)
    monkeypatch.setattr(store, "_copy", real)
    corpus[2].write_bytes(gzip.compress(english()[100_000:150_000].encode()))
    pybpe.binarize(tok, corpus, tmp_path / "out", **given)
    pybpe.binarize(tok, corpus, tmp_path / "fresh", **given)
    assert content(tmp_path / "out") == content(tmp_path / "fresh")


def test_the_log_keeps_the_inputs_of_the_last_run(tmp_path: Path) -> None:
    """A run that resumes and is killed before its next part must not look like one with the inputs before it."""
    log = run.PartsLog(str(tmp_path))
    log.begin("settings", "old", [])
    log.add([encoding.Part(1, "hash", vars(SkipState()), [])])
    log.close()
    for _ in range(3):
        log = run.PartsLog(str(tmp_path))
        assert len(log.resume("new", 1)) == 1
        log.close()
    assert run.PartsLog(str(tmp_path)).inputs == "new"
