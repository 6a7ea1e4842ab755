"""Prints the hardening flags from the OpenSSF's compiler guide that a C compiler accepts.

    python csrc/hardening.py compile CC [FLAG...]        python csrc/hardening.py link CC [FLAG...]

Each FLAG is one that will be used as well: a compiler may refuse a flag without optimization, for example.
Makefile and csrc/cffi_build.py use the flags; benchmarks/RESULTS.md says what they cost. One flag of the guide is left
out: -ftrivial-auto-var-init=zero makes training 13% slower, and `make msan` shows that nothing uninitialized is read.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

COMPILE = (
    ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"),  # sizes are checked in the C library's own functions
    ("-fstack-protector-strong",),  # an overwritten return address is detected
    ("-fstack-clash-protection",),  # the stack cannot grow over other memory
    ("-fcf-protection=full",),  # x86: indirect jumps land only where they may
    ("-mbranch-protection=standard",),  # AArch64: the same
    ("-fstrict-flex-arrays=3",),  # for the checks above: a trailing array has exactly its declared size
    ("-fno-delete-null-pointer-checks", "-fno-strict-overflow", "-fno-strict-aliasing"),  # no check is optimized away
)
LINK = (
    ("-Wl,-z,relro",),  # tables of functions are read-only
    ("-Wl,-z,now",),
    ("-Wl,-z,noexecstack",),
    ("-Wl,--as-needed",),
)
PROGRAM = "#include <string.h>\nint main(int n, char **words) { return (int)strlen(words[n - 1]); }\n"


def accepts(compiler: list[str], flags: list[str]) -> bool:
    """Returns whether a program can be compiled and linked with the flags, without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "program.c")
        source.write_text(PROGRAM)
        command = [*compiler, "-Werror", *flags, str(source), "-o", str(source.with_suffix(".out"))]
        try:
            return subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            return False


def accepted(compiler: list[str], groups: tuple[tuple[str, ...], ...]) -> list[str]:
    """Returns the flags of all groups that the compiler accepts."""
    every = [flag for group in groups for flag in group]
    if accepts(compiler, every):
        return every
    return [flag for group in groups if accepts(compiler, list(group)) for flag in group]


def flags(groups: tuple[tuple[str, ...], ...]) -> list[str]:
    """Returns the flags for the compiler that setuptools uses."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "gcc")
    return accepted([*compiler, *shlex.split(os.environ.get("CFLAGS") or "-O3")], groups)


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] not in ("compile", "link"):
        print("usage: hardening.py compile|link CC [FLAG...]", file=sys.stderr)
        return 2
    print(*accepted(shlex.split(" ".join(sys.argv[2:])), COMPILE if sys.argv[1] == "compile" else LINK))
    return 0


if __name__ == "__main__":
    sys.exit(main())
