"""The ways to get the C library: `make install`, pkg-config, CMake, and two files in the Python package."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pybpe

PROGRAM = """
#include "pybpe.h"
#include <stdio.h>
int main(void) {
    pybpe_error err;
    pybpe_vocab *vocab;
    int code = pybpe_vocab_load(&vocab, "no such file", NULL, &err);
    printf("%s %d\\n", pybpe_version(), code == PYBPE_ERR_IO);
    return 0;
}
"""
SHOWN = f"{pybpe.__version__} 1\n"
CMAKE = """
cmake_minimum_required(VERSION 3.15)
project(program C)
find_package(pybpe {version} CONFIG REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE pybpe::pybpe)
"""


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    result = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def prefix(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns where the library is, after its installation folder was moved."""
    folder = tmp_path_factory.mktemp("install")
    run("make", "install", "PREFIX=/opt/pybpe", f"DESTDIR={folder}/stage", cwd=root)
    (folder / "stage/opt/pybpe").rename(folder / "moved here")
    return folder / "moved here"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program.c").write_text(PROGRAM)
    return tmp_path / "program.c"


def needs(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")


def test_a_program_finds_the_library_through_pkg_config(prefix: Path, program: Path) -> None:
    needs("pkg-config")
    path = str(prefix / "lib/pkgconfig")
    assert run("pkg-config", "--modversion", "pybpe", PKG_CONFIG_PATH=path).strip() == pybpe.__version__
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "pybpe", PKG_CONFIG_PATH=path))
    run("cc", "program.c", "-o", "built", *flags, cwd=program.parent)
    assert run(program.parent / "built", cwd=program.parent) == SHOWN


def test_a_program_finds_the_library_through_cmake(prefix: Path, program: Path) -> None:
    needs("cmake")
    (program.parent / "CMakeLists.txt").write_text(CMAKE.format(version=""))
    run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=program.parent)
    run("cmake", "--build", "build", cwd=program.parent)
    assert run(program.parent / "build/program", cwd=program.parent) == SHOWN


def test_cmake_gets_no_version_in_which_functions_may_differ(prefix: Path, program: Path) -> None:
    needs("cmake")
    major, minor, patch = map(int, pybpe.__version__.split("."))
    accepted = [f"{major}", f"{major}.{minor}", f"{major}.{minor}.{patch} EXACT"]
    refused = [f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}", f"{major + 1}"]
    for version in (*accepted, *refused):
        source = program.parent / version
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CMAKE.format(version=version).replace("program.c", "../program.c"))
        command = ["cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
        result = subprocess.run(command, capture_output=True, text=True)
        assert (result.returncode == 0) == (version in accepted), (version, result.stderr)


@pytest.mark.slow
def test_a_program_is_made_of_the_two_files_in_the_package(program: Path) -> None:
    needs("cc")
    folder = run(sys.executable, "-m", "pybpe", "--include-dir").rstrip("\n")
    source = '#include "llmc/tokenizer.h"\n' + PROGRAM
    program.write_text(source)
    run("cc", f"-I{folder}", program, Path(folder, "pybpe.c"), "-o", program.parent / "built", "-lm", "-pthread")
    assert run(program.parent / "built", cwd=program.parent) == SHOWN


def test_a_clone_that_is_not_built_has_no_include_folder(root: Path, tmp_path: Path) -> None:
    for package in ("pybpe", "llmc_compat"):
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("*.so", "pybpe.[ch]"))
    command = [sys.executable, "-S", "-m", "pybpe", "--include-dir"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "run `make` there" in result.stderr
