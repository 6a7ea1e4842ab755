"""Windows, as far as another system can simulate it: with the code of support/platform.py for Windows, the package
imports and works. `make lint` checks with mypy that nothing else uses what Windows lacks."""

import subprocess
import sys
from pathlib import Path

import pytest
from texts import english

# An imitation of Windows: Python's own modules are imported first; then POSIX's are out of reach, and msvcrt is ours.
WINDOWS = """
import sys, types
from importlib import import_module
from pkgutil import walk_packages

for name in sys.stdlib_module_names - {"fcntl", "resource", "antigravity", "this", "idlelib", "__main__", "turtle"}:
    try:
        import_module(name)
    except Exception:
        pass
for name in ("concurrent.futures.process", "concurrent.futures.thread", "multiprocessing.popen_fork", "numpy",
             "numpy.testing", "logging.handlers", "regex", "tqdm", "cffi", "tokenizers", "tiktoken"):
    try:
        import_module(name)
    except ImportError:
        pass

import errno, fcntl, os, signal

posix = fcntl
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2


def locking(handle, mode, size):
    assert (mode, size) == (msvcrt.LK_NBLCK, 1)
    try:
        posix.flock(handle, posix.LOCK_EX | posix.LOCK_NB)
    except OSError:
        raise OSError(errno.EINVAL, "this number says nothing") from None


msvcrt.locking = locking
unlink, replace, removed = os.unlink, os.replace, []


def refuse_if_open(path):
    open_files = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            open_files.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    if os.path.realpath(path) in open_files:
        raise PermissionError(errno.EACCES, "Access is denied", path)


def unlink_closed(path, **keywords):
    # Windows does not remove an open file.
    refuse_if_open(path)
    removed.append(os.fspath(path))
    unlink(path, **keywords)


def replace_closed(source, target):
    # Windows does not replace an open file.
    refuse_if_open(target)
    replace(source, target)


fsync = os.fsync


def fsync_written(handle):
    # Windows does not sync what is open for reading only.
    if posix.fcntl(handle, posix.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise PermissionError(errno.EACCES, "the file is open for reading only")
    fsync(handle)


os.fsync = fsync_written
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"):
    sys.modules[name] = None
sys.modules["torch"] = None  # if it is installed, it would load files of Windows
sys.modules["msvcrt"] = msvcrt
signal.SIGBREAK = signal.SIGHUP
del signal.SIGHUP
for name in ("fchmod", "statvfs", "sched_getaffinity", "O_CLOEXEC", "O_NONBLOCK", "getuid", "mkfifo", "pread"):
    if hasattr(os, name):
        delattr(os, name)
if os.path.isdir("/proc/self/fd"):
    os.unlink = os.remove = unlink_closed
    os.replace = replace_closed
sys.platform = "win32"


def symlink(*_, **__):
    raise OSError(errno.EPERM, "a required privilege is not held by the client")


os.symlink = symlink

import llmc_compat, pybpe

for package in (pybpe, llmc_compat):
    for module in walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith((".__main__", "._core")):
            import_module(module.name)
"""

WORK = """
from llmc_compat.workspace import make_workspace
import threading
from pathlib import Path
from pybpe.errors import FileError
from pybpe.support import platform
from pybpe.support.output_files import give_name
from pybpe.support.output_files import only_holder

tok = pybpe.train("text.txt", vocab_size=400, special_tokens=["<|endoftext|>"], workers=2)
tok.save("tok.json")
tok.save("tok.json")  # over an existing file
manifest = pybpe.binarize(tok, "text.txt", "shards", splits=(1,), workers=2)
again = pybpe.binarize(tok, "text.txt", "shards", splits=(1,), workers=2)
assert manifest.tokens == again.tokens > 0
stream = pybpe.loading.PackedSequences("shards/*_train_*.bin", 16)
assert len(stream[0][0]) == 16
with only_holder("lock", "out"):
    try:
        with only_holder("lock", "out"):
            raise AssertionError("two writers")
    except FileError as error:
        assert "another thread is writing" in str(error)
    handle = os.open("lock", os.O_RDWR)  # another process can open it, but not lock it
    try:
        platform.lock_file(handle)
        raise AssertionError("two locks")
    except PermissionError as error:
        assert error.errno == errno.EACCES
    os.close(handle)
    assert os.path.exists("lock")
assert not os.path.exists("lock") and platform.open_files_limit() is None
if os.replace is replace_closed:
    manifest_file = Path("shards", "manifest.json")
    old = manifest_file.read_bytes()
    Path("new").write_text("new")
    reader = open(manifest_file)
    try:
        give_name("new", str(manifest_file))
        raise AssertionError("an open file was replaced")
    except FileError as error:
        assert "manifest.json: cannot be written: Access is denied; perhaps the file is open in a program" in str(error)
        assert error.errno == errno.EACCES and manifest_file.read_bytes() == old
    closing = threading.Timer(0.03, reader.close)  # pybpe tries again
    closing.start()
    give_name("new", str(manifest_file))
    closing.join()
    assert manifest_file.read_text() == "new" and not os.path.exists("new")
make_workspace("text.txt", "work", vocab_size=400, layers=1, heads=1, channels=8, sequence_length=64)
links = sorted(Path("work/dev/data/tinyshakespeare").iterdir())
assert [link.is_symlink() for link in links] == [False, False]
for link, split in zip(links, ("train", "val")):
    (shard,) = Path("work/data").glob(f"*_{split}_*.bin")
    assert link.read_bytes() == shard.read_bytes()
assert not [path for path in Path(".").rglob("*") if path.name.startswith(".pybpe") or path.suffix == ".tmp"]
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="imitates Windows elsewhere")
def test_training_and_files_work_with_the_side_for_windows(tmp_path: Path) -> None:
    """And every module can be imported without what only POSIX has."""
    (tmp_path / "text.txt").write_text(english()[:120_000], encoding="utf-8", newline="")
    result = subprocess.run([sys.executable, "-c", WINDOWS + WORK], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
