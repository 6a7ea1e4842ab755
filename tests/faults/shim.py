"""Builds shim.c, starts Python scripts under it, and, inside such a script, makes system calls and allocations fail."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum, IntFlag
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "faults" / "shim.so"


class Kind(IntFlag):
    """The kinds of calls. The values are shim.c's."""

    OPEN = 1
    READ = 2
    WRITE = 4
    SYNC = 8
    CLOSE = 16
    RENAME = 32
    UNLINK = 64
    TRUNCATE = 128
    OPEN_READ = 256


class Action(IntEnum):
    """What happens to a call. The values are shim.c's."""

    FAIL_ONCE = 0
    FAIL_ON = 1
    SHORT = 2
    DIE_BEFORE = 3
    DIE_AFTER = 4


def unavailable() -> str | None:
    """Returns why shim.c cannot be used here, or None if it can."""
    if not sys.platform.startswith("linux") or sysconfig.get_config_var("MULTIARCH") is None:
        return "the shim is for Linux with glibc"
    if "musl" in sysconfig.get_config_var("MULTIARCH"):
        return "the shim is for glibc"
    return None if shutil.which("cc") else "no C compiler"


def build() -> Path:
    """Compiles shim.c, unless it is compiled already."""
    source = Path(__file__).with_name("shim.c")
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < source.stat().st_mtime:
        LIBRARY.parent.mkdir(parents=True, exist_ok=True)
        new = LIBRARY.with_name(f"shim.{os.getpid()}.so")
        flags = ["-std=c11", "-Wall", "-Wextra", "-O2", "-shared", "-fPIC", "-fno-builtin"]
        subprocess.run(["cc", *flags, "-o", new, source, "-ldl"], check=True)
        os.replace(new, LIBRARY)
    return LIBRARY


def environment() -> dict[str, str]:
    """Returns the environment of a process under the shim, in which Python makes every allocation with malloc."""
    return {**os.environ, "LD_PRELOAD": str(build()), "PYTHONMALLOC": "malloc"}


def command(script: str, *arguments: str) -> list[str]:
    """Returns the command that runs a script of this folder."""
    return [sys.executable, str(Path(__file__).with_name(script)), *arguments]


def run(script: str, *arguments: str, timeout: float = 600) -> str:
    """Runs a script of this folder under the shim. Returns what it printed. Raises AssertionError if it failed."""
    line = command(script, *arguments)
    result = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=timeout)
    assert result.returncode == 0, f"{' '.join(line)}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def fast_folder() -> str | None:
    """Returns a folder for temporary files in memory, where a flush costs nothing, or None."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# ------------------------------------------------------------------------------------------------------
# Inside


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    for name in ("fault_fired", "fault_refused", "fault_memory_now", "fault_memory_peak"):
        getattr(library, name).restype = ctypes.c_long
    library.fault_log.restype = ctypes.c_char_p
    library.fault_arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    library.fault_memory.argtypes = [ctypes.c_long, ctypes.c_int]
    library.fault_core.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    return library


def watch(folder: str | os.PathLike[str]) -> None:
    """From now on, counts calls that concern files below this folder."""
    _library().fault_watch(os.fsencode(folder))


@contextmanager
def fault(kinds: Kind, at: int, action: Action, error: int = 0) -> Iterator[None]:
    """Makes the `at`-th call (from 1) of these kinds fail."""
    _library().fault_arm(kinds, at, action, error)
    try:
        yield
    finally:
        fired = _library().fault_fired()
        _library().fault_arm(0, 0, 0, 0)
        fault.fired = fired  # type: ignore[attr-defined]


def fired() -> int:
    """Returns the number of calls that failed in the last `fault`."""
    return int(getattr(fault, "fired", 0))


def calls(clear: bool = True) -> list[tuple[str, str, str]]:
    """Returns (what, path, other path) of the watched calls since this function was last called."""
    text = _library().fault_log().decode("utf-8", "surrogateescape")
    if clear:
        _library().fault_log_clear()
    return [tuple(line.split("\t")) for line in text.splitlines()]  # type: ignore[misc]


@contextmanager
def scarce_memory(granted: int, for_good: bool) -> Iterator[None]:
    """Grants _core.so this many allocations; then the next one fails, or all do."""
    _find_core()
    _library().fault_memory(granted, for_good)
    try:
        yield
    finally:
        scarce_memory.refused = _library().fault_refused()  # type: ignore[attr-defined]
        _library().fault_memory(-1, 0)


def refused() -> int:
    """Returns the number of allocations that failed in the last `scarce_memory`."""
    return int(getattr(scarce_memory, "refused", 0))


@cache
def _find_core() -> None:
    from pybpe import _core  # type: ignore[attr-defined]

    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(_core.__file__) and "r-xp" in line:
            start, end = line.split()[0].split("-")
            _library().fault_core(int(start, 16), int(end, 16))


def memory_now() -> int:
    """Returns the number of bytes on the heap."""
    return int(_library().fault_memory_now())


@contextmanager
def memory_peak() -> Iterator[None]:
    """Measures how far the heap rises above its start; `peak()` returns the result afterward."""
    start = memory_now()
    _library().fault_memory_reset_peak()
    yield
    memory_peak.bytes = int(_library().fault_memory_peak()) - start  # type: ignore[attr-defined]


def peak() -> int:
    """Returns the bytes that the last `memory_peak` measured."""
    return int(getattr(memory_peak, "bytes", 0))
