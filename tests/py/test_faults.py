"""Failing system calls and allocations, kills, and damaged files: the quick parts of `make faults` and `make soak`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import shim  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable())),
]


def test_every_failing_call_is_a_typed_error_and_leaves_the_old_file() -> None:
    every = ("save", "save bin", "counts", "write_shard", "checkpoint", "eval", "viz")
    some = (
        "train=23",
        "binarize llmc=23",
        "binarize npy=23",
        "chat=23",
        "binarize skip=9",
        "mix=97",
        "clean corpus=131",
    )
    assert "0 problems" in shim.run("inject.py", "errors", *every, *some, "clean corpus by workers=151")


def test_a_kill_at_any_call_leaves_no_torn_file_and_the_rerun_is_identical() -> None:
    """test_resume.py has binarize in each format."""
    some = ("save=3", "save bin=3", "counts=3", "train=3", "write_shard=3", "binarize skip=23", "join=23", "mix=59")
    some += ("binarize by executor=29", "clean corpus=19", "clean corpus by workers=19")
    assert "0 problems" in shim.run("inject.py", "deaths", *some)


def test_write_then_flush_then_rename_then_flush_the_folder() -> None:
    assert "0 problems" in shim.run("inject.py", "order")


def test_every_failing_allocation_is_a_typed_error_without_leak_and_repeatable() -> None:
    names = (
        "tokenizer", "from bin", "encode", "normalize", "count words", "read shard", "loader", "save bin",
        "write_shard", "signatures", "filters", "clean",
    )  # fmt: skip
    assert "0 problems" in shim.run("memory.py", *names)


def test_rounds_of_everything_give_the_same_results_and_leave_nothing() -> None:
    assert "hours: 0 problems" in shim.run("hours.py", "--rounds", "2")


def test_damaged_files_of_every_format() -> None:
    out = shim.run("corrupt.py", "--each", "120")
    assert "'files': 1920" in out and "0 problems" in out


def test_what_was_found_before(root: Path) -> None:
    out = shim.run("corrupt.py", "--found", str(root / "tests" / "corrupt"))
    found = len(list((root / "tests" / "corrupt").glob("*/*")))
    assert f"corrupt: {{'files': {found}, 'refused': {found}}}, 0 problems" in out
