"""The counter of instructions that benchmarks/encode_one.py reads."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "instructions.py"
SOFTWARE, TASK_CLOCK = 1, 1  # an event that needs no hardware


@pytest.fixture(scope="module")
def instructions() -> Any:
    spec = importlib.util.spec_from_file_location("instructions", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("event", [(), (SOFTWARE, TASK_CLOCK)])
def test_counts_grow_or_are_missing(instructions: Any, event: tuple[int, ...]) -> None:
    counter = instructions.InstructionCounter(*event)
    before = counter.read()
    sum(range(200_000))
    after = counter.read()
    assert (before is None and after is None) or after - before > 50_000


def test_a_system_without_counters(instructions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.platform, "machine", lambda: "unknown")
    assert instructions.InstructionCounter().read() is None
