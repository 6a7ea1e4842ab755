"""Systems that grant little (`ulimit -v`, `-n`, `-f`, `-s`): a command writes its whole output, or writes none and says
what is missing."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import COMMANDS, clear, run, written
from corpora import content, documents, small_tokenizer
from selection import one_in

import pybpe

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


@pytest.mark.parametrize("name", one_in(6, LIMITED))
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


# ---------------------------------------------------------------------------------------------------
# Disks that are really full, and folders that cannot be written


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Lets no file of this process grow beyond a limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("room", [0, 1, 1000, 4096])
@pytest.mark.parametrize("name", ["x.json", "x.bin"])
def test_a_file_that_may_not_grow_leaves_the_old_one(name: str, room: int, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"old")
    with file_limit(room), pytest.raises(pybpe.errors.FileError, match=rf"{name}: cannot be written.*File too large"):
        small_tokenizer().save(tmp_path / name)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mounts a file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted: not root, or in a container")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_and_then_a_larger_one(small_disk: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(documents(600)))
    keywords = {"shard_tokens": 20_000, "workers": 2, "progress": False}
    pybpe.binarize(small_tokenizer(), text, tmp_path / "undisturbed", **keywords)
    with pytest.raises(pybpe.errors.FileError, match="the disk is full"):
        pybpe.binarize(small_tokenizer(), text, small_disk / "out", **keywords)
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    pybpe.binarize(small_tokenizer(), text, small_disk / "out", **keywords)
    assert content(tmp_path / "undisturbed") == content(small_disk / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(pybpe.errors.FilePermissionError, match=r"x\.json"):
        small_tokenizer().save(tmp_path / "x.json")
