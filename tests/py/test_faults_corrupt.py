"""Damaged files of every format are refused, or still valid, and take little memory: the quick part of `make soak`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import shim  # noqa: E402

pytestmark = pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable()))


@pytest.mark.slow
def test_damaged_files_of_every_format() -> None:
    out = shim.run("corrupt.py", "--each", "120")
    assert "'files': 2040" in out and "0 problems" in out


@pytest.mark.slow
def test_what_was_found_before(root: Path) -> None:
    out = shim.run("corrupt.py", "--found", str(root / "tests" / "corrupt"))
    found = len(list((root / "tests" / "corrupt").glob("*/*")))
    assert f"corrupt: {{'files': {found}, 'refused': {found}}}, 0 problems" in out
