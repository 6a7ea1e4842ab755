"""The amalgamation: two files that any C project can take, strict with every compiler, equal to the library."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from texts import mixed

import pybpe

STRICT = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror".split()


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    subprocess.run(["make", "amalgamation"], cwd=root, check=True, capture_output=True)
    return root / "build" / "amalgamation"


def run(*command: str | Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_program_with_the_two_files_does_what_the_library_does(
    root: Path, folder: Path, c_program: Callable[[str], Path], tmp_path: Path, compiler: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    for name in ("pybpe.c", "pybpe.h"):  # alone in a folder, so that no other file of csrc/ can be included
        shutil.copy(folder / name, tmp_path)
    run(compiler, "-std=c11", *STRICT, "-O2", "-c", tmp_path / "pybpe.c", "-o", tmp_path / "pybpe.o")
    program = tmp_path / "decode_test"
    source = root / "tests/c/decode_test.c"
    run(compiler, f"-I{tmp_path}", source, tmp_path / "pybpe.o", "-o", program)

    (tmp_path / "corpus.txt").write_text(mixed(), encoding="utf-8", newline="")
    tok = pybpe.train(tmp_path / "corpus.txt", vocab_size=600, special_tokens=["<|endoftext|>"])
    tok.save(tmp_path / "tokenizer.bin")
    manifest = pybpe.binarize(tok, tmp_path / "corpus.txt", tmp_path / "out")
    shards = sorted((tmp_path / "out").glob("*.bin"))
    assert manifest.tokens > 10_000 and shards
    shown = run(program, tmp_path / "tokenizer.bin", *shards)
    assert shown == run(c_program("decode_test"), tmp_path / "tokenizer.bin", *shards)


@pytest.mark.slow
def test_a_program_sees_only_public_names(folder: Path, tmp_path: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    run("cc", "-c", folder / "pybpe.c", "-o", tmp_path / "pybpe.o")
    names = re.findall(r" [A-TV-Z] (\w+)", run("nm", tmp_path / "pybpe.o"))
    assert len(names) > 50
    assert [name for name in names if not name.lstrip("_").startswith("pybpe_")] == []


@pytest.mark.slow
def test_the_header_is_whole_and_is_cpp_too(folder: Path, tmp_path: Path) -> None:
    includes = re.findall(r"^#include (.*)", (folder / "pybpe.h").read_text(encoding="utf-8"), re.M)
    assert includes == ["<stddef.h>", "<stdint.h>"]
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    run("cc", "-c", folder / "pybpe.c", "-o", tmp_path / "pybpe.o")
    source = tmp_path / "main.cpp"
    source.write_text('#include "pybpe.h"\n#include <cstdio>\nint main() { std::puts(pybpe_version()); }\n')
    strict = [flag for flag in STRICT if flag != "-Wstrict-prototypes"]
    program = tmp_path / "main"
    run(compiler, "-std=c++17", *strict, f"-I{folder}", source, tmp_path / "pybpe.o", "-o", program)
    assert run(program).strip() == pybpe.__version__
