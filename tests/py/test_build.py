"""The build: one header, one version, complete packages, and a C library that keeps its habits."""

import hashlib
import importlib.metadata
import json
import os
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pybpe
from pybpe import _binding, _core


def declarations(root: Path) -> str:
    """Returns the headers without comments."""
    headers = (path.read_text(encoding="utf-8") for path in sorted((root / "csrc").glob("pybpe*.h")))
    return re.sub(r"/\*.*?\*/", " ", "".join(headers), flags=re.S)


def test_the_front_door_is_small(root: Path) -> None:
    lines = (root / "csrc" / "pybpe.h").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 450
    every = [line for path in (root / "csrc").glob("pybpe*.h") for line in path.read_text(encoding="utf-8").split("\n")]
    assert len(every) > 1000 and max(map(len, every)) <= 120


# ------------------------------------------------------------------------------------------------------
# One header


def test_every_function_of_the_header_is_bound(root: Path) -> None:
    # A name before "(", where a declaration can begin: neither a type, nor a callback "(*resize)(".
    declared = set(re.findall(r"\b(pybpe_\w+)\(", declarations(root)))
    assert "pybpe_encode" in declared and len(declared) > 50
    bound = {name for name in dir(_core.lib) if name.startswith("pybpe_")}
    assert bound == declared


def test_every_constant_of_the_header_is_bound(root: Path) -> None:
    text = declarations(root)
    declared = {name: int(value, 0) for name, value in re.findall(r"\b(PYBPE_\w+) = (-?\w+)", text)}
    declared |= {name: int(value, 0) for name, value in re.findall(r"#define (PYBPE_\w+) (\w+)\n", text)}
    del declared["PYBPE_VERSION_NUMBER"]  # for the preprocessor
    assert declared["PYBPE_ERR_LIMIT"] == -5 and declared["PYBPE_NO_ID"] == 0xFFFFFFFF
    assert {n: getattr(_core.lib, n) for n in dir(_core.lib) if n.startswith("PYBPE_")} == declared


# ------------------------------------------------------------------------------------------------------
# One version


def test_the_version_is_the_same_everywhere(root: Path) -> None:
    assert f"\n## {pybpe.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.fullmatch(r"\d+\.\d+\.\d+", pybpe.__version__)
    assert importlib.metadata.version("pybpe") == pybpe.__version__
    assert _core.ffi.string(_core.lib.pybpe_version()).decode() == pybpe.__version__
    header = (root / "csrc" / "pybpe.h").read_text(encoding="utf-8")
    assert re.findall(r'^#define PYBPE_VERSION "(.*)"', header, re.M) == [pybpe.__version__]
    major, minor, patch = map(int, pybpe.__version__.split("."))
    number = 10000 * major + 100 * minor + patch
    assert re.findall(r"^#define PYBPE_VERSION_NUMBER (.*)", header, re.M) == [str(number)]


# ------------------------------------------------------------------------------------------------------
# The packages: `make release-check` builds and tries them


def test_the_bill_of_materials_lists_what_pip_installs(root: Path, tmp_path: Path) -> None:
    """It has the wheel's hash, and the versions of Unicode in the library."""
    wheel = tmp_path / "pybpe.whl"
    built = importlib.metadata.distribution("pybpe")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pybpe.dist-info/METADATA", built.read_text("METADATA") or str(built.read_text("PKG-INFO")))
    made = runpy.run_path(str(root / "tests/sbom.py"))
    metadata = made["read_metadata"](wheel)
    bill = made["bill"](metadata, wheel)
    about = bill["metadata"]["component"]
    inside = json.loads(made["written"](metadata.as_bytes()))  # setup.py puts this into the wheel
    assert inside["components"] == bill["components"] and "hashes" not in inside["metadata"]["component"]
    assert about["hashes"][0]["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert about["licenses"] == [{"license": {"id": "MIT"}}] and about["version"] == pybpe.__version__
    conditions = {package["name"]: package["properties"][1:] for package in bill["components"]}
    old_python = [{"name": "pybpe:condition", "value": 'python_version < "3.11"'}]
    assert conditions == {"cffi": [], "numpy": [], "regex": [], "tqdm": [], "chardet": [], "tomli": old_python}
    assert {package["properties"][0]["value"] for package in bill["components"]} >= {">=2.1"}
    versions = [_binding.unicode_version(), _binding.normalizer_unicode_version()]
    assert [table["version"] for table in about["components"]] == versions


# ------------------------------------------------------------------------------------------------------
# A machine that lacks something

# A Python that does something else if its arguments have $LACKS in them. It makes environments at once.
PYTHON = """#!/bin/sh
case "$*" in
*"$LACKS"*) $INSTEAD ;;
"-m venv .venv") mkdir -p .venv/bin; ln -sf "$REAL" .venv/bin/python ;;
*) exec "$REAL" "$@" ;;
esac
"""


@pytest.mark.parametrize(
    ("lacks", "instead", "compiler", "said"),
    [
        ("version_info", "exit 1", "cc", ["'./python' is not Python 3.10 or newer: install python3"]),
        ("ensurepip", "exit 1", "cc", ["Python's module venv is missing: install python3-venv"]),
        ("sysconfig", "echo /nowhere", "cc", ["Python.h is missing: install python3-dev (Debian, Ubuntu) or"]),
        ("nothing", "", "./no-cc", ["'./no-cc' does not compile C: install gcc and libc6-dev (Debian, Ubuntu), gcc"]),
        ("ensurepip", "exit 1", "false", ["Python's module venv is missing", "'false' does not compile C"]),
        ("nothing", "", "cc", ["pip cannot download packages: connect this machine to the Internet"]),
    ],
)  # fmt: skip
def test_what_a_machine_lacks_is_said_in_a_line_each(
    lacks: str, instead: str, compiler: str, said: list[str], root: Path, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    env = {"PATH": os.environ["PATH"], "REAL": sys.executable, "LACKS": lacks, "INSTEAD": instead}
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_NO_CACHE_DIR": "1"}
    command = ["sh", str(root / "csrc/venv.sh"), "./python", compiler]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    for line, start in zip(done.stderr.splitlines(), said, strict=True):
        assert line.startswith(f"pybpe: {start}")


def make(root: Path, *arguments: str) -> str:
    """Returns what `make` prints, as if a user had started it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_demo_installs_and_compiles_only_what_it_needs(root: Path) -> None:
    """It says in one line at most that it compiles the library. Other targets install the tests' tools as well."""
    fresh = ("-n", "-W", "pyproject.toml", "-W", "csrc/base/base.c")
    demo, every = make(root, *fresh, "demo"), make(root, *fresh, "all")
    tools = " -r .venv/test.txt"
    assert tools not in demo and tools in every and tools in make(root, *fresh, "lint")
    programs = re.compile(r" -o (build/tests/\w+) ")
    assert programs.findall(demo) == ["build/tests/decode_test"] and len(programs.findall(every)) > 20
    assert demo.count('echo "CC build/obj') <= 1 and "CC csrc" not in demo


def test_help_lists_each_target_in_a_line(root: Path) -> None:
    """The targets that CONTRIBUTING.md shows are among them."""
    shown = make(root, "help")
    assert all(len(line) <= 120 for line in shown.splitlines())
    listed = re.findall(r"^make ([\w-]+) +\S", shown, re.M)
    assert len(listed) == len(set(listed)) > 50
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    calls = re.findall(r"^make (.*?)(?: #|$)", page, re.M)
    named = {word for call in calls for word in call.split() if "=" not in word}
    assert {"demo", "test", "lint", *named} <= set(listed)


# ------------------------------------------------------------------------------------------------------
# Continuous builds


def test_workflows_run_no_action_that_can_change(root: Path) -> None:
    if not (root / ".github").is_dir():
        pytest.skip("not in the sdist")
    used = [
        line.partition("uses:")[2].strip()
        for path in (root / ".github/workflows").glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert len(used) > 10
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", action)] == []


def test_the_tools_that_build_releases_cannot_change(root: Path) -> None:
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    required = json.loads(re.findall(r"^requires = (.*)$", project, re.M)[0])
    inputs = (root / "tests/requirements-build.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in inputs if not line.startswith("#")] == required
    pins = []
    for name in ("build", "release"):
        text = (root / f"tests/requirements-{name}.txt").read_text(encoding="utf-8")
        entries = [re.sub(r"\s+", " ", entry) for entry in re.findall(r"^(?:[^#\n].*\\\n)+.*", text, re.M)]
        assert all(re.match(r"[\w-]+==[\w.]+ .*--hash=sha256:[0-9a-f]{64}$", entry) for entry in entries)
        pins.append(set(entries))
    builds, releases = pins
    assert builds <= releases  # what builds the wheels also builds those that `make release-check` inspects
    names = {entry.partition("==")[0] for entry in builds}
    assert {re.split("[<>=]", line)[0] for line in required} <= names


def test_the_portable_tests_need_only_the_package(root: Path) -> None:
    """They run on machines that have a wheel and no compiler: see pyproject.toml."""
    files = (root / "tests/portable.txt").read_text(encoding="utf-8").split()
    assert len(files) > 10
    for file in files:
        text = (root / file).read_text(encoding="utf-8")
        assert not re.search(r"c_program|\broot: Path|import (tiktoken|tokenizers|transformers|torch)", text), file


# ------------------------------------------------------------------------------------------------------
# The habits of the C library, read from its symbols

FORBIDDEN = {
    *("exit", "_exit", "quick_exit", "abort", "raise", "kill", "signal", "sigaction", "assert_fail"),
    *("printf", "puts", "putchar", "fprintf", "vprintf", "vfprintf", "fputs", "fwrite", "perror", "putc"),
    *("stdout", "stderr", "setenv", "putenv", "setlocale", "rand", "srand", "strtok", "strerror", "gets"),
}


@pytest.fixture(scope="module")
def symbols(root: Path) -> list[list[str]]:
    """Returns the lines of the library's symbol table, in fields."""
    if not sys.platform.startswith("linux"):
        pytest.skip("objdump's table is read as GNU binutils print it")
    subprocess.run(["make", "build/libpybpe.a"], cwd=root, check=True, capture_output=True)
    table = subprocess.check_output(["objdump", "-t", "build/libpybpe.a"], cwd=root, text=True)
    lines = [line.split() for line in table.splitlines()]
    assert any(fields[-1:] == ["pybpe_encode"] for fields in lines)
    return lines


def test_the_library_neither_prints_nor_ends_the_process(symbols: list[list[str]]) -> None:
    undefined = {fields[-1] for fields in symbols if "*UND*" in fields}
    called = {name.removeprefix("__").removesuffix("_chk") for name in undefined}  # as _FORTIFY_SOURCE spells
    assert "realloc" in called  # so the names are read from the file itself
    assert called & FORBIDDEN == set()


def test_the_library_has_no_variables(symbols: list[list[str]]) -> None:
    writable = re.compile(r"\.t?(data|bss)(?!\.rel\.ro)")  # .data.rel.ro holds constant tables of pointers
    assert [f for f in symbols if "O" in f and any(writable.match(field) for field in f)] == []


def test_the_library_exports_only_its_header(symbols: list[list[str]], root: Path) -> None:
    visible = {f[-1] for f in symbols if "g" in f and "*UND*" not in f and ".hidden" not in f}
    assert visible == set(re.findall(r"\b(pybpe_\w+)\(", declarations(root)))


def test_the_library_has_no_other_names_for_the_linker(symbols: list[list[str]], root: Path, tmp_path: Path) -> None:
    """A program may use any names that do not begin with pybpe_."""
    named = {fields[-1] for fields in symbols if "g" in fields and "*UND*" not in fields}
    assert {name for name in named if not name.startswith("pybpe_")} == set()
    (tmp_path / "own.c").write_text(
        '#include "pybpe.h"\nint mem_alloc, json_next, cache_add, file_read_all, error_fill;\n'
        "int main(void) { return pybpe_utf8_valid((const uint8_t *)0, 0) != 0; }\n"
    )
    command = [
        "cc",
        "-Wall",
        "-Werror",
        f"-I{root / 'csrc'}",
        "own.c",
        root / "build" / "libpybpe.a",
        "-lm",
        "-pthread",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "a.out"], check=True)


@pytest.mark.parametrize("language", ["c99", "c11", "c++98", "c++17"])
def test_the_header_is_plain_c_and_cpp(root: Path, tmp_path: Path, language: str) -> None:
    compiler = "c++" if language.startswith("c++") else "cc"
    names = sorted(path.name for path in (root / "csrc").glob("pybpe*.h"))
    assert names == ["pybpe.h", "pybpe_corpus.h", "pybpe_train.h"]
    (tmp_path / "only.h").write_text("".join(f'#include "{name}"\n' for name in [*names, *names]))
    strict = ["-Wall", "-Wextra", "-pedantic-errors", "-Werror", "-Wno-long-long", "-Wno-variadic-macros"]
    kind = "c++-header" if compiler == "c++" else "c-header"
    command = [compiler, f"-std={language}", *strict, f"-I{root / 'csrc'}", "-fsyntax-only", "-x", kind, "only.h"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_the_library_can_be_part_of_one_source_file(root: Path, tmp_path: Path) -> None:
    subprocess.run(["make", "amalgamation"], cwd=root, check=True, capture_output=True)
    (tmp_path / "one.c").write_text(
        '#define PYBPE_API static\n#include "pybpe.c"\nint main(void) { return pybpe_pattern_find("gpt2") != 1; }\n'
    )
    command = ["cc", "-w", "-c", f"-I{root / 'build' / 'amalgamation'}", "one.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    table = subprocess.check_output(["nm", "-g", "--defined-only", "one.o"], cwd=tmp_path, text=True)
    assert [line.split()[-1].lstrip("_") for line in table.splitlines() if " T " in line] == ["main"]


def test_the_example_of_the_header_runs(root: Path, tmp_path: Path) -> None:
    lines = (root / "csrc" / "pybpe.h").read_text().split("*/")[0].splitlines()
    first = lines.index("    #include <pybpe.h>")
    (tmp_path / "example.c").write_text("\n".join(lines[first:]) + "\n")
    library = [str(root / "build" / "libpybpe.a"), "-lm", "-pthread"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-I", str(root / "csrc")]
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *flags, "example.c", *library, "-o", "example"], cwd=tmp_path, check=True)
    tok = pybpe.train(iter(["Once upon a time"]), vocab_size=260)
    tok.save(tmp_path / "tokenizer.bin")
    tok.save(tmp_path / "tokenizer.json")
    expected = f"{tok.count('Once upon a time')} tokens: Once upon a time\n"
    assert subprocess.check_output([tmp_path / "example"], cwd=tmp_path, text=True) == expected
    (tmp_path / "tokenizer.bin").replace(tmp_path / "tokenizer.json")  # the content says what it is
    assert subprocess.check_output([tmp_path / "example"], cwd=tmp_path, text=True) == expected
