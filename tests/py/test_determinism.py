"""Every compiler, optimization level, instruction set and number of workers gives the same bytes, in C and Python."""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS, link_inputs
from texts import chinese, english, mixed

import pybpe

pytestmark = pytest.mark.filterwarnings("ignore:.*uses these bytes unchanged")
VOCAB_SIZE = 1500
SPECIAL = "<|endoftext|>"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("determinism") / "corpus.txt"
    path.write_bytes((english()[:150_000] + chinese(1500) + mixed(40_000)).encode() + b"\xff\x00\xc3" * 50)
    return path


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


@pytest.fixture(scope="module")
def of_python(corpus: Path) -> str:
    """Returns the hashes of tokenizer.bin and of the shard that Python makes."""
    tok = pybpe.train(corpus, vocab_size=VOCAB_SIZE, special_tokens=[SPECIAL], special_ids="last")
    tok.save(corpus.with_name("python.bin"))
    pybpe.binarize(tok, corpus, corpus.parent / "python", splits=(1,), eot="none", name="python")
    return digest(corpus.with_name("python.bin"), corpus.parent / "python" / "python_train_000000.bin")


def run_pipeline(program: Path, corpus: Path, folder: Path, simd: str | None = None) -> str:
    outputs = folder / "tokenizer.bin", folder / "shard.bin"
    environment = os.environ | ({"PYBPE_SIMD": simd} if simd else {})
    command = [program, corpus, str(VOCAB_SIZE), *outputs]
    subprocess.run([os.fspath(part) for part in command], check=True, env=environment)
    return digest(*outputs)


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "optimisation"), [("gcc", "-O0"), ("clang", "-O3")])
def test_compilers(root: Path, tmp_path: Path, corpus: Path, of_python: str, compiler: str, optimisation: str) -> None:
    """The library as one file. test_instruction_sets has the program of `make`, which gcc compiles with -O3."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    include, program = root / "llmc_compat/include", tmp_path / "pipeline"
    flags = ["-std=c11", optimisation, "-DNDEBUG", f"-I{include}", "-pthread", "-o", program]
    subprocess.run([compiler, *flags, include / "pybpe.c", root / "tests/c/pipeline.c", "-lm"], check=True)
    assert run_pipeline(program, corpus, tmp_path) == of_python


@pytest.mark.parametrize("simd", ["avx512", "avx2", "neon", "swar"])
def test_instruction_sets(root: Path, tmp_path: Path, corpus: Path, of_python: str, simd: str) -> None:
    assert run_pipeline(root / "build/tests/pipeline", corpus, tmp_path, simd) == of_python


# ---------------------------------------------------------------------------------------------------
# The files that a command writes do not depend on the language, the encoding or the time zone of the system

USUAL = {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "TZ": "UTC", "PYTHONHASHSEED": "1"}
# With these, Python reads file names, its arguments and the text of files without a stated encoding as ASCII.
UNUSUAL = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "ascii",
    "TZ": "Pacific/Kiritimati",
    "PYTHONHASHSEED": "2",
    "COLUMNS": "20",
}


# Runs all commands in one process.
RUN = """
import pickle, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import commands
from pybpe.__main__ import main
out, place, found = sys.argv[2], Path.cwd(), {}
for name, command in commands.COMMANDS.items():
    commands.clear(place)
    sys.argv = ["pybpe", *commands.arguments(command)]
    assert main() == 0, name
    found[name] = commands.written(place)
Path(out).write_bytes(pickle.dumps(found))
"""


@pytest.fixture(scope="module")
def files(command_inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, bytes]]]:
    """Returns the files that each command writes in the usual environment, and in the unusual one."""
    folder = tmp_path_factory.mktemp("environments")
    place = folder / "place"
    place.mkdir()
    link_inputs(command_inputs, place)
    found = []
    for environment in (USUAL, UNUSUAL):
        command = [sys.executable, "-c", RUN, os.path.dirname(__file__), str(folder / "found")]
        environment = {**os.environ, "TMPDIR": str(place / "tmp"), **environment}
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        found.append(pickle.loads((folder / "found").read_bytes()))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_environment_changes_nothing(name: str, files: list[dict[str, dict[str, bytes]]]) -> None:
    usual, unusual = (found[name] for found in files)
    assert usual == unusual and any(path.startswith("out/") for path in usual)
