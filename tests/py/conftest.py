"""Shared by all Python tests: fixed seeds, and the C programs that `make` builds."""

import os
import signal
import subprocess
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import pytest
from corpora import EOT, documents, small_tokenizer, write_corpus
from hypothesis import settings
from openai_ranks import fill_cache

import pybpe
from pybpe.reading import planning
from pybpe.training import counting

ROOT = Path(__file__).resolve().parents[2]

# The same examples in every run, on every machine, however slow it is.
settings.register_profile("pybpe", derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("pybpe")

if os.name == "nt":  # the lines of a text end in the same way on each system, because tests compare bytes
    Path.write_text = partialmethod(Path.write_text, newline="\n")  # type: ignore[method-assign,assignment]

# A job in the background of a shell ignores Ctrl-C, and so would the programs that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Warnings of many tests: short texts cannot be divided in the requested shares, nor do they have as many tokens as
# requested, and tests write twice into a folder.
EXPECTED = (
    "the shares of the splits differ",
    ".*replacing .* of an earlier run",
    "the vocabulary has .* fewer than",
)


def pytest_configure(config: pytest.Config) -> None:
    for message in EXPECTED:
        config.addinivalue_line("filterwarnings", f"ignore:{message}:pybpe.errors.PybpeWarning")


# These files take longest. They begin, so that no process has one left when the others are done.
LONGEST = set(
    "test_faults.py test_docs.py test_memory.py test_c_operations.py test_install.py test_llmc_install.py"
    " test_benchmarks.py test_build.py test_pretok.py test_viz.py".split()
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_report_header() -> str:
    return "seeds: hypothesis is derandomized; every other generator has its seed in its test"


@pytest.fixture(scope="session", autouse=True)
def tiktoken_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with OpenAI's encodings, which `get_encoding` would otherwise download."""
    folder = tmp_path_factory.mktemp("tiktoken")
    fill_cache(folder)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def c_program() -> Callable[[str], Path]:
    """c_program("decode_test") is the path of the program made of tests/c/decode_test.c."""

    def build(name: str) -> Path:
        program = ROOT / "build" / "tests" / name
        if not program.exists():
            subprocess.run(["make", f"build/tests/{name}"], cwd=ROOT, check=True)
        return program

    return build


@pytest.fixture(scope="session")
def tok() -> pybpe.Tokenizer:
    """A tokenizer for tests that need any. A module that needs a certain one has a `tok` of its own."""
    return small_tokenizer()


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a corpus many tasks."""
    monkeypatch.setattr(planning, "TASK_BYTES", 15_000)
    monkeypatch.setattr(counting, "LEAST_TASK", 15_000)


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Makes a text of 200 documents with marks between them."""
    path = tmp_path / "corpus.txt"
    path.write_text(EOT.join(documents(200)), encoding="utf-8", newline="")
    return path


@pytest.fixture
def corpus(tmp_path: Path, small_tasks: None) -> list[Path]:
    """Makes files of several kinds, which are many tasks."""
    return write_corpus(tmp_path / "corpus")


@pytest.fixture(scope="session")
def command_inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs of the commands in commands.py."""
    from commands import make_inputs  # it imports numpy, which some tests do without

    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


@pytest.fixture
def place(command_inputs: Path, tmp_path: Path) -> Path:
    """A folder with these inputs, where a test can run the commands."""
    from commands import link_inputs

    link_inputs(command_inputs, tmp_path)
    return tmp_path
