"""Writes the C library as files that can be dropped into any C project: pybpe.c, pybpe.h and the other public headers,
for programs that include them.

    python csrc/amalgamate.py FOLDER VERSION

pybpe.c has all sources, one after another, each header where it is first included. This requires every name
at file level to be unique in csrc/. Functions that modules share become static, so that a program sees pybpe_* and
nothing else. `make amalgamation` and setup.py run it; it uses only Python's standard library.
"""

import re
import sys
from pathlib import Path

SOURCES = Path(__file__).parent
# One error instead of hundreds.
ONLY_C = """#if defined(__cplusplus)
#error "pybpe.c is C11: compile it with a C compiler, and include pybpe.h in C++"
#else

"""

# A comment, which is skipped, or a function at the start of a line: its type, and its name before "(".
COMMENT_OR_FUNCTION = re.compile(r"/\*.*?\*/|^(?!static\b|typedef\b)([a-z](?:\w|[ *])*[ *])(\w+)\(", re.M | re.S)


def hide_functions(text: str) -> str:
    """Makes every function static whose name is not public."""

    def hide(match: re.Match[str]) -> str:
        public = match[2] is None or match[2].startswith("pybpe_")
        return match[0] if public else f"static {match[0]}"

    return COMMENT_OR_FUNCTION.sub(hide, text)


def expand(name: str, included: set[str]) -> str:
    """Returns a file of csrc/ with our headers in place of their #include, except those that came before."""

    def include(match: re.Match[str]) -> str:
        header = match[1]
        if header in included:
            return ""
        included.add(header)
        return expand(header, included)

    text = hide_functions((SOURCES / name).read_text(encoding="utf-8"))
    return f"/* ==== {name} ==== */\n\n" + re.sub(r'^#include "(.*)"\n', include, text, flags=re.M)


def amalgamate(version: str) -> dict[str, str]:
    """Returns the text of each file by its name."""
    license = (SOURCES.parent / "LICENSE").read_text(encoding="utf-8").rstrip()
    top = f"/*\npybpe {version}\n\n{license}\n*/\n\n"
    included: set[str] = set()
    names = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.glob("*/*.c"))
    modules = "\n".join(expand(name, included) for name in names)
    headers = {path.name: top + path.read_text(encoding="utf-8") for path in SOURCES.glob("pybpe*.h")}
    return {"pybpe.c": f"{top}{ONLY_C}{modules}\n#endif\n", **headers}


def write(folder: Path, version: str) -> None:
    """Writes the files to a folder, which is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in amalgamate(version).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: amalgamate.py FOLDER VERSION", file=sys.stderr)
        return 2
    write(Path(sys.argv[1]), sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
