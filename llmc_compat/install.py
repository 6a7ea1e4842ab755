"""Installs the drop-in headers, and the library they need, in a checkout of llm.c, or removes them again.

    pybpe llmc install LLMC [--undo]      python llmc_compat/install.py LLMC [--undo]

The installer replaces three headers of llmc/ and keeps the originals next to them as *.h.orig. Everything else is new.
No other llm.c file is changed: a GNUmakefile, which GNU make prefers to Makefile, includes llm.c's own Makefile and
links one more object file into its programs, that is, into every target that the Makefile builds from a .c or .cu file,
whatever branch is checked out. So `make train_gpt2` builds as before. A second GNUmakefile in dev/test does the same
for llm.c's own tests.

`make install-llmc` and `make uninstall-llmc` run it as a program. It uses only Python's standard library, and needs no
compiled part of pybpe.
"""

import argparse
import os
import sys
from pathlib import Path

LIBRARY = Path(__file__).parent / "include"  # wheels have pybpe.h and pybpe.c here. `make` writes them here
HEADERS = LIBRARY / "llmc"
REPLACED = ("tokenizer.h", "dataloader.h", "rand.h")
ADDED = ("fault.h", "pybpe.h", "pybpe.c")

# How our versions of REPLACED begin.
OUR_HEADER = "/*\nA drop-in replacement for llm.c's "
OUR_ADDITIONS = (
    "/*\npybpe ",
    "/*\nHow the drop-in headers handle errors",
)  # one of them: the files in ADDED begin like this
OUR_MAKEFILE = "# Made by pybpe: "
OBJECT = "build/pybpe.o"  # llm.c's `make clean` removes it
MAKEFILE = f"""\
{OUR_MAKEFILE}llm.c's programs, linked with what the headers in llmc/ need.
include Makefile

PYBPE_PROGRAMS := $(shell sed -n 's/^\\([A-Za-z0-9_.-]*\\): *[^ ]*[.]cu*\\( .*\\)*$$/\\1/p' Makefile)
$(PYBPE_PROGRAMS): {OBJECT}

{OBJECT}: LLMC/pybpe.c LLMC/pybpe.h
	@mkdir -p $(@D)
	$(CC) -O3 -c -o $@ $<
"""
FOLDERS = {".": "llmc", "dev/test": "../../llmc"}  # build folder -> path to llmc/ from there


class InstallError(Exception):
    """Something in the checkout is not as expected. Nothing was changed."""


def begins_with(path: Path, start: str) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start.encode()


def saved(header: Path) -> Path:
    return header.with_name(header.name + ".orig")


def is_begun(llmc: Path) -> bool:
    """Returns whether the headers are installed, or some of them."""
    headers = [llmc / "llmc" / name for name in REPLACED]
    return any(saved(header).exists() or (header.is_file() and begins_with(header, OUR_HEADER)) for header in headers)


def check(llmc: Path) -> None:
    """Refuses to overwrite or remove a file that is neither ours nor backed up."""
    for name in REPLACED:
        header = llmc / "llmc" / name
        if not header.is_file() and not saved(header).is_file():
            raise InstallError(f"{llmc}: not a checkout of llm.c: it has no llmc/{name}")
        if header.is_file() and saved(header).is_file() and not begins_with(header, OUR_HEADER):
            if header.read_bytes() != saved(header).read_bytes():
                raise InstallError(
                    f"{header}: this is neither pybpe's header nor the original saved as {saved(header).name}: remove"
                    " the outdated one of the two"
                )
    for added in (llmc / "llmc" / name for name in ADDED):
        if added.exists() and not (is_begun(llmc) and any(begins_with(added, start) for start in OUR_ADDITIONS)):
            raise InstallError(f"{added}: pybpe did not install this file, which it would replace: move it away")
    for folder in FOLDERS:
        makefile = llmc / folder / "GNUmakefile"
        if makefile.exists() and not begins_with(makefile, OUR_MAKEFILE):
            raise InstallError(
                f"{makefile}: pybpe did not make this file; move it away, because make would use it instead of Makefile"
            )


def write(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def library() -> Path:
    """The folder with pybpe.h, pybpe.c and llmc/. Raises InstallError in a clone of pybpe where `make` has not run."""
    for name in ("pybpe.h", "pybpe.c"):
        if not (LIBRARY / name).is_file():
            raise InstallError(f"{LIBRARY / name}: this file is missing; to write it, run `make` in the clone of pybpe")
    return LIBRARY


def install(llmc: Path) -> str:
    """Installs or updates the headers. Returns a sentence that says so."""
    sources = [(HEADERS if name == "fault.h" else library()) / name for name in ADDED]
    check(llmc)
    for name in REPLACED:
        header = llmc / "llmc" / name
        if not saved(header).exists() and not begins_with(header, OUR_HEADER):
            os.rename(header, saved(header))
        write(header, (HEADERS / name).read_bytes())
    for source in sources:
        write(llmc / "llmc" / source.name, source.read_bytes())
    for folder, headers in FOLDERS.items():
        if (llmc / folder / "Makefile").is_file():
            write(llmc / folder / "GNUmakefile", MAKEFILE.replace("LLMC", headers).encode())
    return f"{llmc}: installed; the originals are llmc/*.h.orig. Build as before: make train_gpt2"


def uninstall(llmc: Path) -> str:
    """Restores the originals and removes the added files. Does nothing if nothing is installed. Returns a sentence."""
    if not is_begun(llmc) and all((llmc / "llmc" / name).is_file() for name in REPLACED):
        return f"{llmc}: restored"
    check(llmc)
    for name in REPLACED:
        header = llmc / "llmc" / name
        if not saved(header).exists() and begins_with(header, OUR_HEADER):
            raise InstallError(
                f"{header}: the original of this file is missing: run git checkout llmc/{name}, then try again"
            )
    made = [llmc / folder / name for folder in FOLDERS for name in ("GNUmakefile", OBJECT)]
    for path in (*(llmc / "llmc" / name for name in ADDED), *made):
        path.unlink(missing_ok=True)
    for name in REPLACED:  # last, because they show that there is something to undo
        header = llmc / "llmc" / name
        if saved(header).exists():
            os.replace(saved(header), header)
    return f"{llmc}: restored"


def main() -> int:
    parser = argparse.ArgumentParser(description="Installs pybpe's drop-in headers in a checkout of llm.c.")
    parser.add_argument("llmc", type=Path, help="the folder with train_gpt2.c and llmc/")
    parser.add_argument("--undo", action="store_true", help="restore llm.c's own files")
    arguments = parser.parse_args()
    try:
        print(uninstall(arguments.llmc) if arguments.undo else install(arguments.llmc))
    except (InstallError, OSError) as error:
        print(f"install-llmc: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
