"""Counts the instructions that this process executes in user mode, with Linux's perf_event_open(2).

Counts hardly depend on other programs, so they can be compared on a busy machine. Many virtual machines have no
counter, and systems may forbid it (see /proc/sys/kernel/perf_event_paranoid); then there is no count.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}  # its number
_HARDWARE, _INSTRUCTIONS = 0, 1
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_THIS_PROCESS, _ANY_CPU, _NO_GROUP = 0, -1, -1


class InstructionCounter:
    """A counter for this thread and the threads that it starts. It counts from the beginning."""

    def __init__(self, kind: int = _HARDWARE, event: int = _INSTRUCTIONS) -> None:
        """Opens the counter, or not, if the system has none. Tests count another event."""
        flags = _INHERIT | _NO_KERNEL | _NO_HYPERVISOR
        # struct perf_event_attr, first version: type, size, config, three fields that sampling needs, flags, two more.
        attributes = struct.pack("=IIQQQQQIIQ", kind, 64, event, 0, 0, 0, flags, 0, 0, 0)
        number = _SYSTEM_CALL.get(platform.machine()) if platform.system() == "Linux" else None
        self._file = -1
        if number is not None:
            call = ctypes.CDLL(None, use_errno=True).syscall
            call.restype = ctypes.c_long
            arguments = [ctypes.c_long(x) for x in (_THIS_PROCESS, _ANY_CPU, _NO_GROUP, 0)]
            self._file = call(ctypes.c_long(number), attributes, *arguments)

    def read(self) -> int | None:
        """Returns the instructions so far, or None if they cannot be counted."""
        return None if self._file < 0 else int.from_bytes(os.read(self._file, 8), "little")
