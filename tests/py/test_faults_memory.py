"""Failing allocations of the C library, as Python sees them, and what many calls in one process leave: the quick
parts of tests/faults/memory.py and hours.py."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import shim  # noqa: E402

pytestmark = pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable()))


@pytest.mark.slow
def test_every_failing_allocation_is_a_typed_error_without_leak_and_repeatable() -> None:
    names = (
        "tokenizer",
        "from bin",
        "encode",
        "normalize",
        "count words",
        "read shard",
        "loader",
        "save bin",
        "write_shard",
        "signatures",
        "filters",
        "clean",
    )
    assert "0 problems" in shim.run("memory.py", *names)


@pytest.mark.slow
def test_rounds_of_everything_give_the_same_results_and_leave_nothing() -> None:
    assert "hours: 0 problems" in shim.run("hours.py", "--rounds", "2")
