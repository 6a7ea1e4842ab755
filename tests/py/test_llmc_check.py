"""check: finds every fault of llmc_faults.py in a valid workspace, and says what llm.c does and how to fix the fault.
tests/llmc_verdicts.py runs llm.c to see what it does.
"""

import json
import os
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from commands import pybpe_command
from llmc_faults import (
    ABORTS,
    CPU_TRAIN,
    CPU_VAL,
    EVALS,
    FAULTS,
    HANGS,
    MODEL,
    STORIES_TRAIN,
    STORIES_VAL,
    TOKENIZER,
    TRAIN,
    VAL,
    V,
    copy,
    floats,
    link,
    make_sound,
    model,
    remove,
    steps,
    tokens,
    without_trailer,
)
from texts import english

import pybpe
from llmc_compat.check import check
from llmc_compat.check_rules import Fault
from llmc_compat.shards import Batch, header, read_shard
from llmc_compat.workspace import make_workspace
from pybpe.errors import ArgumentError, FileMissingError, FilePermissionError, PybpeWarning, file_error
from pybpe.reading.streams import open_input


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sound(tmp_path_factory.mktemp("check"))


@pytest.fixture
def work(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "work", symlinks=True)
    return tmp_path / "work"


def test_a_sound_folder_has_no_fault(work: Path) -> None:
    files, findings = check([work])
    assert findings == []
    assert [len(paths) for paths in vars(files).values()] == [2, 4, 1, 1, 1, 0, 1]
    assert check([work / TRAIN])[1] == []  # check compares a single file with nothing


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(work: Path, name: str) -> None:
    row = FAULTS[name]
    row.damage(work)
    findings = check([work])[1]
    if row.severity == "none":
        assert findings == []
        return
    assert row.cpu not in (ABORTS, HANGS) or any(finding.is_error for finding in findings)
    matching = [
        finding
        for finding in findings
        if finding.file == str(work / row.file)
        and re.search(row.fault, finding.fault)
        and re.search(row.effect, finding.effect)
        and re.search(row.remedy, finding.remedy)
        and finding.severity == row.severity
    ]
    assert matching, findings
    line = str(matching[0])
    mark = "" if row.severity == "error" else "warning: "
    assert "\n" not in line and line.startswith(f"{work / row.file}: {mark}{matching[0].fault}; llm.c ")
    assert line.count("; llm.c ") == 1 and len(findings) == len(set(findings))


def test_what_is_there_is_not_called_missing(work: Path) -> None:
    """llm.c does not read the test split, a damaged model is present, and GPT-2's vocabulary needs no checkpoint."""
    (work / "data/corpus_test_000000.bin").unlink()
    assert check([work])[1] == []
    os.truncate(work / MODEL, 0)
    assert [finding.fault.partition(",")[0] for finding in check([work])[1]] == ["is empty"]
    gpt2 = work / "gpt2"
    gpt2.mkdir()
    tokens = b"".join(bytes([2, i >> 8, i & 255]) for i in range(50257))
    header = numpy.zeros(256, dtype="<i4")
    header[:4] = 20240328, 2, 50257, 50256
    (gpt2 / TOKENIZER).write_bytes(header.tobytes() + tokens)
    assert check([gpt2])[1] == []


def test_a_shard_beyond_2_gib_is_found(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (work / TRAIN).stat().st_size
    monkeypatch.setattr("pybpe._binding.SHARD_MAX_BYTES", size)
    assert check([work / TRAIN])[1] == []
    monkeypatch.setattr("pybpe._binding.SHARD_MAX_BYTES", size - 1)
    (finding,) = check([work / TRAIN])[1]
    assert (finding.fault, finding.remedy) == (f"{size} bytes", "write smaller shards: `pybpe binarize --shard-tokens`")
    assert "aborts at the first batch beyond 2 GiB" in finding.effect


def test_the_batch_decides(work: Path) -> None:
    def faults(**batch: int) -> list[Fault]:
        return check([work / VAL, work / EVALS, work / MODEL], Batch(**batch))[1]

    count = len(read_shard(work / VAL))
    fit = (count - 1) // 64
    assert faults(B=fit) == []
    (fault,) = faults(B=fit + 1)
    assert fault.remedy == f"the largest batch that fits is B {fit} x T 64"
    assert faults(B=fit + 1)[0].fault == f"{count} tokens, but 1 x B {fit + 1} x T 64 + 1 = {64 * fit + 65} are needed"
    (fault,) = faults(B=fit // 2 + 1, processes=2)
    assert fault.remedy == f"the largest batch that fits is B {fit // 2} x T 64"
    assert [f.remedy for f in faults(B=1, T=64)] == ["use -b 4 or more, or -h 0"]
    assert [f.fault for f in faults(T=68)] == [
        "maxT is 64, but T is 68",
        "4 x B 4 x T 68 x C 8 is not a multiple of 2048",
    ]
    assert [f.fault for f in faults(T=2)][-1] == "its longest example needs T 4, but T is 2"
    assert [f for f in faults(processes=3) if f.is_error] == []
    assert faults(B=4, processes=4) == []  # the last process gets none of the 6 examples
    assert ["reads past the end" in f.effect for f in faults(processes=5)] == [True]
    assert [f.remedy for f in check([work / VAL], Batch(4, 64, 10_000))[1]] == [
        "no B and T fit: add more text or use fewer processes"
    ]
    with pytest.raises(ArgumentError, match="at least 1"):
        Batch(B=0)


def test_what_is_not_llm_cs_is_no_fault(work: Path) -> None:
    (work / "notes.txt").write_text("text")
    (work / "data" / "tokens.npy").write_bytes(b"\x93NUMPY")
    (work / "state_00000010_00000.bin").write_bytes(struct.pack("<3i", 20240527, 1, 1) + bytes(2000))
    (work / "manifest.json").write_text("[1]")
    pybpe.binarize(
        pybpe.Tokenizer.from_file(work / TOKENIZER), work / "notes.txt", work / "npy", format="npy", splits=(1,)
    )
    (work / ".pybpe-unfinished").mkdir(exist_ok=True)  # of a workspace that was killed
    (work / ".pybpe-unfinished" / "gpt2_124M.bin").write_bytes(struct.pack("<2i", 20240326, 3))
    os.mkfifo(work / "pipe")  # opening it would wait forever
    assert check([work])[1] == []


def test_a_tokenizer_as_llm_cs_scripts_write_it_is_fine(work: Path) -> None:
    """Even one that pybpe cannot load, with whole characters for bytes: llm.c only prints tokens."""
    without_trailer(work)
    assert check([work])[1] == []
    (work / TOKENIZER).write_bytes(header(20240328, 2, 3, 0) + b"\x0d<|endoftext|>\1a\1b")
    tokens("more/a_train_000000.bin", 300, 1)(work)
    shutil.copy(work / TOKENIZER, work / "more")
    assert {f.fault for f in check([work / "more"])[1]} == {
        "all 300 tokens are the id 1",
        "the end-of-text id is 0, which no train shard contains",
        "no manifest says which tokenizer encoded the shards in this folder",
        f"there is no checkpoint for the 3 tokens of {work / 'more' / TOKENIZER}",
    }


def test_shards_and_a_tokenizer_that_nothing_connects_are_said(work: Path) -> None:
    (work / "data/manifest.json").unlink()
    (found,) = check([work])[1]
    assert (found.file, found.severity) == (str(work / "data"), "warning")
    assert found.fault == "no manifest says which tokenizer encoded the shards in this folder"
    assert "wrong text if" in found.effect and run(work).stdout.endswith(
        f"no error: 2 tokenizers, 4 shards, 1 model, 1 eval, 1 mask\nnext: cd {work} && make train LLMC=path/to/llm.c\n"
    )
    assert check([work / "data"])[1] == [replace(found, effect=check([work / "data"])[1][0].effect)]
    assert check([work / "chat"])[1] == []  # no tokenizer is there


def test_tiny_stories_will_do(work: Path) -> None:
    steps(remove("dev"), link(STORIES_TRAIN, TRAIN), link(STORIES_VAL, VAL))(work)
    assert check([work])[1] == []


def test_what_only_cuda_refuses(work: Path) -> None:
    """A float32 model may be for the CPU, unless B and T are given."""

    def found(batch: Batch | None = None, name: str = MODEL) -> list[tuple[str, str]]:
        return [(f.severity, f.fault) for f in check([work / name], batch)[1]]

    assert found(Batch()) == []
    model(padded=V + 8)(work)
    assert found() == found(Batch()) == []  # Vp need not be a multiple of 128
    model(padded=V)(work)
    assert found() == found(Batch()) == []  # nor above V
    model(padded=V + 3)(work)
    assert found() == [("warning", "Vp is 403, not a multiple of 4")]
    assert found(Batch()) == [("error", "Vp is 403, not a multiple of 4")]
    model(padded=V + 4, dtype="bf16", name="model.bin", channels=12)(work)
    assert found(None, "model.bin") == [
        ("error", "C is 12, not a multiple of 8"),
        ("error", "Vp is 404, not a multiple of 8"),
    ]
    model(context=1024, channels=64, dtype="bf16", name="model.bin")(work)
    assert found(Batch(4, 1024), "model.bin") == []
    assert found(Batch(4, 66), "model.bin") == [
        ("error", "T is 66, not a multiple of 4"),
        ("error", "4 x B 4 x T 66 x C 64 is not a multiple of 4096"),
    ]
    assert found(Batch(8, 32), "model.bin") == [("error", "T is 32, but samples have 64 tokens")]
    model(context=1024, channels=64, padded=V + 8, name="model.bin")(work)
    floats("model.bin", 1024 + 4 * 64 * V, 1.0)(work)
    assert found(None, "model.bin") == [("warning", f"rows {V} to {V + 8} of wte are not zero")]
    assert found(Batch(), "model.bin") == [("error", f"rows {V} to {V + 8} of wte are not zero")]


def test_a_copy_of_a_shard_is_recognized_by_its_content(work: Path) -> None:
    copy(TRAIN, CPU_VAL)(work)
    shard = bytearray((work / TRAIN).read_bytes())
    assert [f.file for f in check([work])[1]] == [str(work / CPU_VAL)]
    shard[-2] ^= 1
    (work / CPU_VAL).write_bytes(shard)  # as long as that of the train split, with another token
    assert check([work])[1] == []


def test_two_workspaces_need_not_belong_together(work: Path) -> None:
    other = work.parent / "other"
    (work.parent / "text.txt").write_text(english()[:40_000])
    shape = {"layers": 1, "heads": 2, "channels": 8, "sequence_length": 64}
    make_workspace(work.parent / "text.txt", other, vocab_size=350, progress=False, **shape)
    assert check([work.parent])[1] == []
    shutil.copy(other / TOKENIZER, work / TOKENIZER)
    assert {f.file for f in check([work.parent])[1] if f.is_error} >= {str(work / TOKENIZER), str(work / MODEL)}


def test_each_name_is_looked_at(work: Path) -> None:
    """Links to folders are followed, even in circles; a link to the wrong kind is found though its file is known."""
    os.symlink(work, work / "data" / "circle")
    assert check([work])[1] == []
    (work / "data/circle").unlink()
    link(CPU_VAL, MODEL)(work)
    assert [f.file for f in check([work])[1]] == [str(work / CPU_VAL)]
    assert [f.file for f in check([work.parent])[1]] == [str(work / CPU_VAL)]  # a folder with workspaces
    assert check([work / CPU_TRAIN, work / TOKENIZER])[1] == []
    assert [f.file for f in check([work / CPU_TRAIN, work / CPU_VAL])[1]] == [str(work / CPU_VAL)]


def test_files_that_cannot_be_read(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> object:
        if path.endswith(MODEL):
            raise file_error(13, f"{path}: cannot be opened: Permission denied")
        return open_input(path)

    monkeypatch.setattr("llmc_compat.check.open_input", refuse)
    (finding,) = check([work])[1]
    assert finding.file == str(work / MODEL)
    assert (finding.fault, finding.effect) == ("cannot be opened: Permission denied", "aborts")
    with pytest.raises(FilePermissionError):
        check([work / MODEL])


def test_nothing_to_check(work: Path, tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        check([tmp_path / "none.bin"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text(english()[:3000])
    tok = pybpe.Tokenizer.from_file(work / TOKENIZER)
    pybpe.binarize(tok, tmp_path / "text.txt", tmp_path / "npy", format="npy", splits=(1,))
    pybpe.pack(tok, tmp_path / "npy", tmp_path / "tar", format="webdataset", sequence_length=64)
    for folder in ("empty", "npy", "tar"):
        for name in ("tokenizer.bin", "tokenizer.json"):
            (tmp_path / folder / name).unlink(missing_ok=True)
        with pytest.raises(ArgumentError, match="none of these"):
            check([tmp_path / folder])
    with pytest.warns(PybpeWarning, match="text.txt: not checked, because it is not a file of llm.c"):
        check([tmp_path / "text.txt", work / TOKENIZER])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="neither a file nor a folder"):
        check([tmp_path / "pipe"])


# ------------------------------------------------------------------------------------------------------
# The command


def run(*args: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
    return pybpe_command("llmc", "check", *args, code=code)


def test_exit_codes_and_output(work: Path) -> None:
    result = run(work)
    assert result.stderr == ""
    assert result.stdout == (
        "no fault: 2 tokenizers, 4 shards, 1 model, 1 eval, 1 mask, 1 manifest\n"
        f"next: cd {work} && make train LLMC=path/to/llm.c\n"
    )
    tokens(VAL, 100)(work)
    result = run(work / VAL, code=1)
    assert result.stderr == ""
    assert result.stdout == (
        f"{work / VAL}: 100 tokens, but 1 x B 4 x T 64 + 1 = 257 are needed; llm.c aborts;"
        " the largest batch that fits is B 1 x T 64\n"
    )
    facts = json.loads(run(work, "--json", "-b", 1, "-t", 100, code=1).stdout)
    assert {f["file"] for f in facts["faults"]} >= {str(work / VAL), str(work / MODEL)}
    assert set(facts["faults"][0]) == {"file", "fault", "effect", "remedy", "severity"}
    assert facts["evals"] == [str(work / EVALS)]
    run(work / VAL, "-b", 1)
    model(padded=V + 3)(work)
    result = run(work / MODEL)
    assert result.stdout.startswith(f"{work / MODEL}: warning: Vp is 403, ")
    assert result.stdout.endswith("\nno error: 1 model\n")
    run(work / MODEL, "-t", 64, code=1)
    for bad in (work / "none", work / "README.md"):
        assert run(bad, code=2).stderr.count("\n") == 1
