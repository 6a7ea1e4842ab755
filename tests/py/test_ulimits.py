"""Systems that grant little (`ulimit -v`, `-n`, `-f`, `-s`): a command writes its whole output, or writes none and says
what is missing."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS, clear, run, written
from selection import one_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and the limits are Linux's")


LIMITED = ("train", "counts", "encode", "binarize", "prepare", "corpus")


def open_files(more: int) -> int:
    """Returns the limit with which a process may open this many more files."""
    return max(map(int, os.listdir("/proc/self/fd"))) + more


def address_space(more: int) -> int:
    """Returns the limit with which a process may take this many more bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more


LIMITS = [
    *((resource.RLIMIT_FSIZE, lambda more: more, more) for more in (0, 100, 3000)),
    *((resource.RLIMIT_NOFILE, open_files, more) for more in (1, 2, 4, 6)),
    *((resource.RLIMIT_AS, address_space, more << 20) for more in (64,)),
]


@pytest.mark.parametrize("name", one_in(4, LIMITED))
def test_a_command_with_little_ends_or_says_what_is_missing(place: Path, name: str) -> None:
    assert run(COMMANDS[name], place) == (0, "")
    complete, failed = written(place), 0
    for kind, limit_of, more in LIMITS:
        clear(place)

        def prepare() -> None:
            limit = limit_of(more)  # noqa: B023
            resource.setrlimit(kind, (limit, limit))  # noqa: B023

        code, said = run(COMMANDS[name], place, prepare)
        where = (kind, more, said)
        assert {file for file, data in written(place).items() if complete.get(file) != data} == set(), where
        assert code in (0, 2) and "Traceback" not in said, where
        assert (code == 0) == (said == "") and (code == 2 or written(place) == complete), where
        failed += code
    assert failed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train", "binarize"])
def test_a_small_stack_is_enough(place: Path, name: str) -> None:
    """Threads get a stack of this size. Python itself needs most of it."""
    words = [sys.executable, "-m", "pybpe", *COMMANDS[name].split(), "--quiet"]
    assert run(COMMANDS[name], place) == (0, "")
    complete = written(place)
    clear(place)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, 512 << 10))

    environment = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}
    subprocess.run(words, cwd=place, preexec_fn=limit, env=environment, check=True, timeout=120)
    assert written(place) == complete
