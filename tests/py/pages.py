"""Runs the code in pages of documentation.

The blocks of a page that are marked `python` or `sh` run in order, in one folder; all Python blocks form one program.
A block marked `text` directly after one of them must be exactly what that block prints. Other blocks are not run.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```\n(\n?```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language, code: "python", "sh" or another; its content.
        line: of the page, where the code begins, counted from 1.
        shown: what the page says that it prints; None if it says nothing.
    """

    language: str
    code: str
    line: int
    shown: str | None


def blocks(page: Path) -> list[Block]:
    """Returns all blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1, found[4]) for found in _FENCED.finditer(text)
    ]


def run_page(page: Path, folder: Path) -> int:
    """Runs a page in a folder, and compares what it prints with what it shows. Returns the number of blocks run."""
    names: dict[str, object] = {"__name__": "__main__"}
    count = 0
    for block in blocks(page):
        if block.language == "python":
            printed = _run_python(page, block, folder, names)
        elif block.language == "sh":
            printed = _run_shell(page, block, folder)
        else:
            continue
        assert block.shown in (None, printed), f"{page}:{block.line} prints\n{printed}"
        count += 1
    return count


def _run_python(page: Path, block: Block, folder: Path, names: dict[str, object]) -> str:
    # The empty lines make a traceback name the lines of the page.
    code = compile("\n" * (block.line - 1) + block.code, page, "exec")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(folder)
        exec(code, names)
    return printed.getvalue()


def _run_shell(page: Path, block: Block, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euxo", "pipefail", "-c", block.code]
    result = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert result.returncode == 0, f"{page}:{block.line} ends with {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout
