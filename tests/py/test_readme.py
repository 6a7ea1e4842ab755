"""The README is true: its Python and its commands run, in its order, in one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from texts import english


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `make demo` has left its corpus."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "out").mkdir()
    (folder / "out" / "corpus.txt").write_text(english(), encoding="utf-8", newline="")
    return folder


def blocks(root: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.S)


def test_the_python_of_the_readme_runs(root: Path, folder: Path) -> None:
    (code,) = blocks(root, "python")
    result = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) == 2


def test_the_commands_of_the_readme_run(root: Path, folder: Path) -> None:
    # The make commands are what CI runs around these tests.
    scripts = [block for block in blocks(root, "sh") if not block.startswith("make")]
    assert len(scripts) == 2
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for script in scripts:
        result = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        assert "no fault" in result.stdout or "Hello, world" in result.stdout
