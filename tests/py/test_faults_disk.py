"""Disks that are really full, folders that cannot be written, and the order of system calls as strace sees it."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from corpora import documents, small_tokenizer

import pybpe


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
    content = [
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in (tmp_path / "undisturbed", small_disk / "out")
    ]
    assert content[0] == content[1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(pybpe.errors.FilePermissionError, match=r"x\.json"):
        small_tokenizer().save(tmp_path / "x.json")


_SAVE = """
import sys, pybpe
tok = pybpe.Tokenizer.from_file(sys.argv[1])
tok.save(sys.argv[2] + "/x.json")
tok.save(sys.argv[2] + "/x.bin")
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_order_of_system_calls(tmp_path: Path) -> None:
    small_tokenizer().save(tmp_path / "tok.json")
    out = tmp_path / "out"
    out.mkdir()
    calls = "openat,pwrite64,write,fsync,fdatasync,rename,renameat,renameat2,close"
    command = ["strace", "-f", "-y", "-o", str(tmp_path / "log"), "-e", f"trace={calls}"]
    command += [sys.executable, "-c", _SAVE, str(tmp_path / "tok.json"), str(out)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode and "ptrace" in result.stderr.lower():
        pytest.skip(f"strace may not trace here: {result.stderr.strip()}")
    assert result.returncode == 0, result.stderr
    log = (tmp_path / "log").read_text()
    for name in ("x.json", "x.bin"):
        temporary = rf"{re.escape(str(out))}/{re.escape(name)}\.\d+-0\.tmp"
        steps = [
            rf"openat\(.*\"{temporary}\", .*O_EXCL",
            rf"pwrite64\(\d+<{temporary}>",
            rf"fsync\(\d+<{temporary}>\) += 0",
            rf"rename\(\"{temporary}\", \"{re.escape(str(out / name))}\"\) += 0",
            rf"fsync\(\d+<{re.escape(str(out))}>\) += 0",
        ]
        at = 0
        for step in steps:
            found = re.compile(step).search(log, at)
            assert found, f"{step} does not follow in\n{log[-3000:]}"
            at = found.end()
        flushed = re.search(rf"fsync\(\d+<{temporary}>\)", log)
        assert flushed and not re.search(rf"pwrite64\(\d+<{temporary}>", log[flushed.end() :])
