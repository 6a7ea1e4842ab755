"""Handles of the C library when Ctrl-C arrives while one is made. Python raises KeyboardInterrupt when a Python
function starts, or after any call, also of C. These tests raise it at each such place in turn: no handle is lost or
freed twice."""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import pybpe
from llmc_compat.shards import write_shard
from pybpe._binding import Loader, Output, Shard, ShardWriter, core, normalize, pattern_find
from pybpe._binding.core import ffi, lib, make_handle

PATTERN = pattern_find("gpt2")

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files")


def interrupted(make: Callable[[], object], number: int) -> bool:
    """Calls `make`, and raises KeyboardInterrupt at one of the places, from 0. Returns whether there is such a one."""
    left = number + 1

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_return")
        if left == 0:
            left = -1  # only once
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        made = make()
        sys.setprofile(None)
        del made
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return left < 0


def places(make: Callable[[], object], after: Callable[[], object]) -> int:
    """Interrupts `make` at every place, and calls `after` each time. Returns the number of places."""
    number = 0
    while interrupted(make, number):
        gc.collect()
        after()
        number += 1
    return number


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shard", "loader", "shard writer", "output"])
def test_files_are_closed_and_temporary_files_removed(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_shard(path, numpy.arange(1000, dtype="u2"))
    makers: dict[str, Callable[[], object]] = {
        "shard": lambda: Shard(path),
        "loader": lambda: Loader(str(path), 2, 8, 0, 1, False),
        "shard writer": lambda: ShardWriter(tmp_path / "y.bin", "llmc", 2),
        "output": lambda: Output(tmp_path / "y.bin"),
    }

    def nothing_is_left() -> None:
        open_files = (os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
        assert [path for path in open_files if path.startswith(str(tmp_path))] == []
        assert os.listdir(tmp_path) == ["x.bin"]

    assert places(makers[kind], nothing_is_left) > 3


def test_a_handle_is_freed_once() -> None:
    """Interrupted right after C made it; not interrupted; and not made at all."""
    freed = []

    def free(handle: Any) -> None:
        freed.append(handle)
        lib.pybpe_pretok_free(handle)

    def new_then_interrupt(*args: Any) -> None:
        assert lib.pybpe_pretok_new(*args) == 0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_handle("pybpe_pretok", new_then_interrupt, free, PATTERN, ffi.NULL)
    gc.collect()
    assert len(freed) == 1
    handle = make_handle("pybpe_pretok", lib.pybpe_pretok_new, free, PATTERN, ffi.NULL)
    assert len(freed) == 1
    del handle
    gc.collect()
    assert len(freed) == 2
    with pytest.raises(pybpe.errors.ArgumentError):
        make_handle("pybpe_pretok", lib.pybpe_pretok_new, free, 99, ffi.NULL)
    gc.collect()
    assert len(freed) == 2


def test_a_normalized_text_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the interrupt arrives right after C made it."""
    freed = []

    class Library:
        def __getattr__(self, name: str) -> Any:
            return getattr(lib, name)

        def pybpe_normalize_free(self, text: Any, mem: Any) -> None:
            freed.append(text != ffi.NULL)
            lib.pybpe_normalize_free(text, mem)

    monkeypatch.setattr("pybpe._binding.text.lib", Library())

    def call_then_interrupt(*args: Any) -> None:
        core.call(*args)
        raise KeyboardInterrupt

    text = "e\u0301".encode()
    assert normalize(text, "NFC") == "\u00e9".encode() and freed == [True]
    monkeypatch.setattr("pybpe._binding.text.call", call_then_interrupt)
    with pytest.raises(KeyboardInterrupt):
        normalize(text, "NFC")
    assert freed == [True, True]
    monkeypatch.undo()
    assert normalize(b"a", "NFC") == b"a"
