"""What a newcomer meets: a clone that is not compiled, first guesses at commands, messages that say the way out."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# What makes a start slow, or is no business of a command that only prints its help.
NOT_FOR_HELP = {"asyncio", "cffi", "_cffi_backend", "numpy", "regex", "tqdm", "concurrent", "llmc_compat", "logging"}


def run(*args: object, stdin: bytes | None = None, code: int = 0, cwd: Path | None = None) -> str:
    """Runs `pybpe ARGS`; returns what it said on standard error, one line if it failed, else on standard output."""
    command = [sys.executable, "-m", "pybpe", *map(str, args)]
    result = subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=cwd)
    assert result.returncode == code, result.stdout.decode() + result.stderr.decode()
    if code == 2:
        assert result.stderr.count(b"\n") == 1 and result.stdout == b""
        return result.stderr.decode()
    return result.stdout.decode()


# ------------------------------------------------------------------------------------------------------
# The package


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A folder with the package as git has it."""
    shutil.copytree(root / "pybpe", tmp_path / "pybpe", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("-c", "import pybpe; pybpe.train('novel.txt', vocab_size=300)"),
        ("-c", "import pybpe; pybpe.Tokenizer"),
        ("-m", "pybpe", "train", "novel.txt", "--vocab-size", "300", "-o", "tok.json"),
        ("-m", "pybpe", "--version"),
    ],
)
def test_a_clone_that_is_not_compiled_says_what_to_do(clone: Path, command: tuple[str, ...]) -> None:
    (clone / "novel.txt").write_text("once upon a time")
    # -S: no installed package is in the way, as where Python finds this folder first.
    result = subprocess.run([sys.executable, "-S", *command], cwd=clone, capture_output=True, text=True)
    last = result.stderr.splitlines()[-1]
    assert result.returncode != 0 and f"{clone}/pybpe is source code that is not compiled" in last
    assert f"run Python from another folder than {clone}" in last and "`make`" in last
    if command[0] == "-m":
        assert result.stderr.count("\n") == 1 and result.returncode == 2


def test_an_import_error_inside_the_compiled_part_is_not_hidden(clone: Path) -> None:
    (clone / "pybpe" / "_core.py").write_text("import no_such_module\n")
    result = subprocess.run([sys.executable, "-S", "-c", "import pybpe._binding"], cwd=clone, capture_output=True)
    assert b"No module named 'no_such_module'" in result.stderr.splitlines()[-1]


def test_help_loads_only_what_it_needs() -> None:
    code = "import sys; from pybpe.__main__ import main; sys.argv[1:] = ['--help']; main()"
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(result.stderr.split())
    assert not NOT_FOR_HELP & {name.partition(".")[0] for name in loaded}
    ours = {name for name in loaded if name.startswith("pybpe.") and not name.startswith("pybpe.cli.")}
    assert ours <= {"pybpe.__main__", "pybpe._version", "pybpe.cli", "pybpe.control_tokens", "pybpe.errors"}
