"""Operations that write files survive every failing system call: the quick part of `make faults`
(tests/faults/inject.py)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import shim  # noqa: E402

pytestmark = pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable()))


@pytest.mark.slow
def test_every_failing_call_is_a_typed_error_and_leaves_the_old_file() -> None:
    out = shim.run("inject.py", "errors", "save", "save bin", "counts", "write_shard", "checkpoint", "eval", "viz")
    assert "0 problems" in out
    out = shim.run("inject.py", "errors", "--every", "23", "train", "binarize llmc", "binarize npy", "chat")
    assert "0 problems" in out
    out = shim.run("inject.py", "errors", "--every", "9", "binarize skip")
    assert "0 problems" in out
    assert "0 problems" in shim.run("inject.py", "errors", "--every", "97", "mix")
    assert "0 problems" in shim.run("inject.py", "errors", "--every", "61", "clean corpus", "clean corpus by workers")


@pytest.mark.slow
def test_a_kill_at_any_call_leaves_no_torn_file_and_the_rerun_is_identical() -> None:
    out = shim.run("inject.py", "deaths", "--every", "3", "save", "save bin", "counts", "train", "write_shard")
    assert "0 problems" in out
    assert "0 problems" in shim.run("inject.py", "deaths", "--every", "29", "binarize llmc", "binarize megatron")
    assert "0 problems" in shim.run("inject.py", "deaths", "--every", "59", "mix")
    assert "0 problems" in shim.run("inject.py", "deaths", "--every", "19", "clean corpus", "clean corpus by workers")


@pytest.mark.slow
def test_write_then_flush_then_rename_then_flush_the_folder() -> None:
    assert "0 problems" in shim.run("inject.py", "order")
