"""Describes the extension pybpe._core to cffi: setup.py names `ffi` below, and cffi compiles it.

Only the markers in csrc/pybpe*.h and csrc/python/*.h decide what Python sees: the declarations between them are the
cdef. They are never retyped, because a declaration that drifts from the header compiles and then corrupts memory.
Paths are relative to the project root, which is where setuptools always builds.
"""

import os
import runpy
from glob import glob
from pathlib import Path

from cffi import FFI

HEADERS = ["csrc/pybpe.h", "csrc/pybpe_train.h", "csrc/pybpe_corpus.h"]  # each includes the one before it
PYTHON_HEADERS = sorted(glob("csrc/python/*.h"))
BEGIN = "/* pybpe: begin cdef */"
END = "/* pybpe: end cdef */"


def read_cdef(header: str) -> str:
    """Returns the declarations between the two markers, each of which must occur exactly once."""
    text = Path(header).read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise ValueError(f"{header}: expected one '{BEGIN}' and after it one '{END}'")
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].replace("PYBPE_API ", "")


def compile_args() -> list[str]:
    """Ours come after CFLAGS on the command line, so an -O that the user chose must not be repeated."""
    args = ["-std=c11", "-fvisibility=hidden", "-g0"]  # debug information contains paths of the build machine
    if not any(flag.startswith("-O") for flag in os.environ.get("CFLAGS", "").split()):
        args.append("-O3")
    if os.name == "nt":
        args.append("-D__USE_MINGW_ANSI_STDIO=1")  # printf as C11 has it
    return [*args, *HARDENING["flags"](HARDENING["COMPILE"])]


def link_args() -> list[str]:
    """On Windows the extension needs no other library of gcc's."""
    return [*HARDENING["flags"](HARDENING["LINK"]), *(["-static"] if os.name == "nt" else [])]


HARDENING = runpy.run_path("csrc/hardening.py")
# `make` sets this variable: it compiles the library once, for C programs and for the extension.
LIBRARY = os.environ.get("PYBPE_LIBRARY")

ffi = FFI()
ffi.cdef("".join(map(read_cdef, [*HEADERS, *PYTHON_HEADERS])))
ffi.set_source(
    "pybpe._core",
    "".join(f'#include "{Path(header).relative_to("csrc").as_posix()}"\n' for header in [*HEADERS, *PYTHON_HEADERS]),
    sources=[] if LIBRARY else sorted(glob("csrc/*/*.c")),
    extra_objects=[LIBRARY] if LIBRARY else [],
    depends=[*HEADERS, *sorted(glob("csrc/*/*.h"))],
    include_dirs=["csrc"],
    extra_compile_args=compile_args(),
    extra_link_args=link_args(),
)
