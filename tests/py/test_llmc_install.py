"""`make install-llmc` in a stand-in for a checkout of llm.c, which builds by the same command and loses no file."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import pybpe_command, refusal
from corpora import content

from llmc_compat import install

HEADERS = ("tokenizer.h", "dataloader.h", "rand.h")
MAKEFILE = """\
CC ?= clang
CFLAGS = -O1
LDLIBS = -lm
NVCC_CUDNN =
all: train_gpt2
train_gpt2: train_gpt2.c
	$(CC) $(CFLAGS) $^ $(LDLIBS) -o $@
train_llama3cu: train_llama3.cu $(NVCC_CUDNN)
	sh nvcc.sh $^ $(LDLIBS) -o $@
clean:
	rm -f train_gpt2 train_llama3cu build/*.o
"""
TEST_MAKEFILE = """\
CC ?= gcc
$(shell mkdir -p build)
all: test_dataloader
%.d: %.c
	$(CC) -MMD -MP -MF $@ -c $<
test_dataloader: test_dataloader.c
	$(CC) -g $^ -lm -o $@
clean:
	rm -f test_dataloader *.d *.o build/*.o
"""
TEST_PROGRAM = """\
#include "../../llmc/dataloader.h"
int main(int argc, char **argv) {
    DataLoader loader;
    if (argc > 1) {
        dataloader_init(&loader, argv[1], 1, 1, 0, 1, 1);
    }
    return 0;
}
"""
NVCC = """\
for name in "$@"; do case $name in *.cu) set -- "$@" -x c++ "$name" -x none;; *) set -- "$@" "$name";; esac; shift; done
exec c++ -std=c++17 "$@"
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """Makefiles like llm.c's, headers that do not compile, and tests/c/llmc_walk.c instead of train_gpt2.c."""
    llmc = tmp_path / "path with spaces" / "llm.c"
    (llmc / "llmc").mkdir(parents=True)
    (llmc / "Makefile").write_text(MAKEFILE)
    (llmc / "dev" / "test" / "build").mkdir(parents=True)
    (llmc / "dev" / "test" / "Makefile").write_text(TEST_MAKEFILE)
    (llmc / "dev" / "test" / "test_dataloader.c").write_text(TEST_PROGRAM)
    (llmc / "train_llama3.cu").write_text(TEST_PROGRAM.replace("../../", ""))
    (llmc / "nvcc.sh").write_text(NVCC)
    for name in HEADERS:
        (llmc / "llmc" / name).write_text(f"#error the original {name}\n")
    (llmc / "llmc" / "utils.h").write_text("#ifndef UTILS_H\n#define UTILS_H\n#endif\n")
    shutil.copy(root / "tests/c/llmc_walk.c", llmc / "train_gpt2.c")
    for name in ("check.h", "scratch.h"):
        shutil.copy(root / "tests/c" / name, llmc)
    return llmc


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def quick_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the compiler of `make` one that does not optimize, which would take a minute."""
    (tmp_path / "quick-cc").write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    (tmp_path / "quick-cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CC", "quick-cc")


@pytest.fixture
def installer(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """installer(checkout, "--undo") runs llmc_compat/install.py in this process. Returns its exit code and output."""
    assert (root / "llmc_compat" / "include" / "pybpe.c").is_file()  # `make` wrote it

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["install.py", *map(str, arguments)])
        code = install.main()
        return code, *capsys.readouterr()

    return run


@pytest.mark.slow
def test_installs_builds_runs_and_leaves_without_a_trace(root: Path, checkout: Path, quick_compiler: None) -> None:
    before = content(checkout)
    assert make(checkout).returncode != 0
    for _ in range(2):  # the second run changes nothing
        result = make(root, "install-llmc", f"LLMC={checkout}")
        assert result.returncode == 0, result.stderr
        assert all((checkout / "llmc" / f"{name}.orig").read_bytes() == before[f"llmc/{name}"] for name in HEADERS)
    installed = content(checkout)
    assert all(installed[name] == data for name, data in before.items() if name[len("llmc/") :] not in HEADERS)

    result = make(checkout)
    assert result.returncode == 0, result.stderr
    vectors = root / "tests/vectors/loader_llmc.json"
    result = subprocess.run([checkout / "train_gpt2", vectors], capture_output=True, text=True)
    assert result.returncode == 0 and ", 0 failed" in result.stdout, result.stdout

    assert make(checkout, "clean").returncode == 0
    assert content(checkout) == installed
    for folder, target in ((checkout, "train_llama3cu"), (checkout / "dev" / "test", "test_dataloader")):
        result = make(folder, target)
        assert result.returncode == 0, result.stderr
        assert subprocess.run([folder / target]).returncode == 0
        assert make(folder, "clean").returncode == 0
    assert content(checkout) == installed
    for _ in range(2):
        assert make(root, "uninstall-llmc", f"LLMC={checkout}").returncode == 0
        assert content(checkout) == before


def test_a_newer_version_takes_the_place_of_ours_but_not_of_the_originals(
    installer: Callable[..., tuple[int, str, str]], checkout: Path
) -> None:
    before = content(checkout)
    assert installer(checkout)[0] == 0
    header = checkout / "llmc" / "rand.h"
    current = header.read_bytes()
    header.write_bytes(current + b"/* an older version of ours */\n")
    (checkout / "llmc" / "tokenizer.h").unlink()  # as if an installation had been interrupted
    assert installer(checkout)[0] == 0
    assert header.read_bytes() == current
    assert (checkout / "llmc" / "tokenizer.h").exists()
    for _ in range(2):
        assert installer(checkout, "--undo") == (0, f"{checkout}: restored\n", "")
        assert content(checkout) == before


def test_headers_that_git_restored_are_replaced_again(
    installer: Callable[..., tuple[int, str, str]], checkout: Path
) -> None:
    """Also in an older llm.c, which has no tests to build."""
    shutil.rmtree(checkout / "dev")
    before = content(checkout)
    assert installer(checkout)[0] == 0
    installed = content(checkout)
    assert "GNUmakefile" in installed and not (checkout / "dev").exists()
    (checkout / "llmc" / "rand.h").write_bytes(before["llmc/rand.h"])  # git checkout llmc/rand.h
    assert installer(checkout)[0] == 0
    assert content(checkout) == installed
    assert installer(checkout, "--undo")[0] == 0
    assert content(checkout) == before


@pytest.mark.parametrize("undo", [(), ("--undo",)])
def test_what_would_be_lost_is_refused(
    installer: Callable[..., tuple[int, str, str]], checkout: Path, undo: tuple[str, ...]
) -> None:
    assert installer(checkout)[0] == 0
    (checkout / "llmc" / "dataloader.h").write_text("#error a new original, from git pull\n")
    before = content(checkout)
    code, shown, error = installer(checkout, *undo)
    assert (code, shown) == (2, "") and "dataloader.h: this is neither" in error
    assert content(checkout) == before

    (checkout / "llmc" / "dataloader.h.orig").unlink()
    (checkout / "GNUmakefile").write_text("include Makefile\n")
    before = content(checkout)
    code, shown, error = installer(checkout, *undo)
    assert (code, shown) == (2, "") and "GNUmakefile: pybpe did not make this file" in error
    assert content(checkout) == before


def test_files_of_others_with_our_names_stay(installer: Callable[..., tuple[int, str, str]], checkout: Path) -> None:
    for name in ("pybpe.c", "pybpe.h", "fault.h"):
        (checkout / "llmc" / name).write_text("/*\npybpe 0.1.0, which the user put here */\n")
        before = content(checkout)
        code, _, error = installer(checkout)
        assert code == 2 and f"{name}: pybpe did not install this file" in error
        assert installer(checkout, "--undo")[0] == 0  # nothing is installed
        assert content(checkout) == before
        (checkout / "llmc" / name).unlink()
    assert installer(checkout)[0] == 0
    (checkout / "llmc" / "fault.h").write_text("mine")
    before = content(checkout)
    for undo in ((), ("--undo",)):
        code, _, error = installer(checkout, *undo)
        assert code == 2 and "fault.h: pybpe did not install this file" in error and content(checkout) == before


def test_an_original_that_was_removed_is_asked_for(
    installer: Callable[..., tuple[int, str, str]], checkout: Path
) -> None:
    assert installer(checkout)[0] == 0
    (checkout / "llmc" / "rand.h.orig").unlink()
    assert installer(checkout)[0] == 0
    assert not (checkout / "llmc" / "rand.h.orig").exists()  # ours must not be kept as the original
    code, _, error = installer(checkout, "--undo")
    assert code == 2 and "git checkout llmc/rand.h" in error


def test_what_cannot_be_installed_is_one_line(
    installer: Callable[..., tuple[int, str, str]], checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a clone where `make` has not run, and after an error of the system."""
    before = content(checkout)
    with monkeypatch.context() as patch:
        patch.setattr(install, "LIBRARY", tmp_path)
        code, _, error = installer(checkout)
    assert code == 2 and "pybpe.h: this file is missing; to write it, run `make`" in error
    (checkout / "GNUmakefile").mkdir()
    code, _, error = installer(checkout)
    assert code == 2 and error.startswith("install-llmc: ") and error.count("\n") == 1
    assert content(checkout) == before


def test_the_command_does_what_make_does(root: Path, checkout: Path) -> None:
    before = content(checkout)
    assert make(root, "install-llmc", f"LLMC={checkout}").returncode == 0
    installed = content(checkout)
    command = ("llmc", "install", checkout)
    pybpe_command(*command, "--undo", "--quiet")
    assert content(checkout) == before
    assert json.loads(pybpe_command(*command, "--json").stdout) == {"llmc": str(checkout), "installed": True}
    assert content(checkout) == installed
    (checkout / "llmc" / "dataloader.h").write_text("#error a new original, from git pull\n")
    assert "dataloader.h: this is neither" in refusal(shlex.join(map(str, command)))


def test_no_llmc_is_one_line(installer: Callable[..., tuple[int, str, str]], root: Path, tmp_path: Path) -> None:
    for undo in ([], ["--undo"]):
        code, _, error = installer(tmp_path, *undo)
        assert code == 2 and error == f"install-llmc: {tmp_path}: not a checkout of llm.c: it has no llmc/tokenizer.h\n"
    result = make(root, "install-llmc")
    assert result.returncode != 0 and "LLMC=path" in result.stderr
    assert content(tmp_path) == {}
