"""The ways to get the C library: `make install`, pkg-config, CMake, and the amalgamation, a source file
and its headers that any C project can take, strict with every compiler and equal to the library."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from texts import mixed

import pybpe

HEADER = Path(__file__).resolve().parents[2] / "csrc" / "pybpe.h"
# The example at the head of the header, which reads tokenizer.json.
PROGRAM = re.search(r"^    #include <pybpe.h>\n.*?^    }\n", HEADER.read_text(encoding="utf-8"), re.M | re.S)[0]  # type: ignore[index]
EXAMPLE = pybpe.train(iter(["Once upon a time"]), vocab_size=260)
SHOWN = f"{EXAMPLE.count('Once upon a time')} tokens: Once upon a time\n"
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
    EXAMPLE.save(tmp_path / "tokenizer.json")
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


@pytest.mark.slow
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


# ---------------------------------------------------------------------------------------------------
# The amalgamation

STRICT = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror".split()


@pytest.fixture(scope="module", params=["gcc", "clang"])
def library(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The object file, compiled alone in a folder with pybpe.h, so that no other file of csrc/ can be included."""
    needs(request.param)
    subprocess.run(["make", "amalgamation"], cwd=root, check=True, capture_output=True)
    alone = tmp_path_factory.mktemp("alone")
    for name in ("pybpe.c", "pybpe.h"):  # the other headers are for programs that include them
        shutil.copy(root / "build" / "amalgamation" / name, alone)
    run(request.param, "-std=c11", *STRICT, "-c", alone / "pybpe.c", "-o", alone / "pybpe.o")
    return alone / "pybpe.o"


@pytest.mark.slow
def test_a_program_with_the_amalgamation_does_what_the_library_does(
    root: Path, library: Path, c_program: Callable[[str], Path], tmp_path: Path
) -> None:
    program = tmp_path / "decode_test"
    run("cc", f"-I{library.parent}", root / "tests/c/decode_test.c", library, "-o", program)

    (tmp_path / "corpus.txt").write_text(mixed(), encoding="utf-8", newline="")
    tok = pybpe.train(tmp_path / "corpus.txt", vocab_size=600, special_tokens=["<|endoftext|>"])
    tok.save(tmp_path / "tokenizer.bin")
    manifest = pybpe.binarize(tok, tmp_path / "corpus.txt", tmp_path / "out")
    shards = sorted((tmp_path / "out").glob("*.bin"))
    assert manifest.tokens > 10_000 and shards
    shown = run(program, tmp_path / "tokenizer.bin", *shards)
    assert shown == run(c_program("decode_test"), tmp_path / "tokenizer.bin", *shards)


@pytest.mark.slow
def test_the_package_has_the_amalgamation(root: Path, program: Path, library: Path) -> None:
    folder = run(sys.executable, "-m", "pybpe", "--include-dir").rstrip("\n")
    for name in ("pybpe.c", "pybpe.h", "pybpe_train.h", "pybpe_corpus.h"):
        assert Path(folder, name).read_bytes() == (root / "build" / "amalgamation" / name).read_bytes()
    program.write_text('#include "llmc/tokenizer.h"\n' + PROGRAM)
    run("cc", f"-I{folder}", program, library, "-o", program.parent / "built", "-lm", "-pthread")
    assert run(program.parent / "built", cwd=program.parent) == SHOWN


WIDEST = """
#include <pybpe_train.h>
#include <stdio.h>
int main(void) {
    pybpe_pretok *p;
    if (pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL)) return 1;
    puts(pybpe_pretok_simd(p));
    pybpe_pretok_free(p);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("switch", "left_out", "registers"),
    [("PYBPE_NO_AVX512", {"avx512"}, "%zmm"), ("PYBPE_NO_AVX", {"avx512", "avx2"}, "%ymm")],
)
def test_a_library_compiled_without_avx(
    root: Path, tmp_path: Path, switch: str, left_out: set[str], registers: str
) -> None:
    """-DPYBPE_NO_AVX512 leaves out all code for AVX-512, and -DPYBPE_NO_AVX for AVX2 too. Asking for them at run time
    then changes nothing."""
    needs("objdump")
    run("make", "amalgamation", cwd=root)
    (tmp_path / "widest.c").write_text(WIDEST)
    folder = root / "build" / "amalgamation"
    run("cc", f"-D{switch}", f"-I{folder}", "widest.c", folder / "pybpe.c", "-o", "widest", cwd=tmp_path)
    for name in left_out:
        assert run(tmp_path / "widest", PYBPE_SIMD=name).strip() not in left_out
    assert registers not in run("objdump", "-d", tmp_path / "widest")


@pytest.mark.slow
def test_a_program_sees_only_public_names(library: Path) -> None:
    needs("nm")
    names = re.findall(r" [A-TV-Z] (\w+)", run("nm", library))
    assert len(names) > 50
    assert [name for name in names if not name.lstrip("_").startswith("pybpe_")] == []


@pytest.mark.slow
def test_optimizing_compilers_warn_of_nothing(library: Path, request: pytest.FixtureRequest) -> None:
    compiler = request.node.callspec.params["library"]
    run(compiler, "-O3", *STRICT, "-c", library.with_name("pybpe.c"), "-o", "/dev/null")


@pytest.mark.slow
def test_a_cpp_compiler_gets_one_error(library: Path) -> None:
    needs("c++")
    result = subprocess.run(["c++", "-c", "pybpe.c"], cwd=library.parent, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.count("error: ") == 1
    assert "compile it with a C compiler" in result.stderr


@pytest.mark.slow
def test_the_header_is_whole_and_is_cpp_too(library: Path, tmp_path: Path) -> None:
    includes = re.findall(r"^#include (.*)", library.with_name("pybpe.h").read_text(encoding="utf-8"), re.M)
    assert includes == ["<stddef.h>", "<stdint.h>"]
    needs("c++")
    source = tmp_path / "main.cpp"
    source.write_text('#include "pybpe.h"\n#include <cstdio>\nint main() { std::puts(pybpe_version()); }\n')
    strict = [flag for flag in STRICT if flag != "-Wstrict-prototypes"]
    program = tmp_path / "main"
    run("c++", "-std=c++17", *strict, f"-I{library.parent}", source, library, "-o", program)
    assert run(program).strip() == pybpe.__version__
