"""The documentation and the C comments refer only to source files, functions and options that exist."""

import argparse
import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pybpe import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "csrc").rglob("*.[ch]"))
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("csrc", "pybpe", "llmc_compat", "tests", "docs", "benchmarks")
    for path in (ROOT / folder).rglob("*.*")
] + [path.name for path in ROOT.glob("*.*")]

# Files of other projects, and files that a command makes.
FOREIGN = {
    *("llm.c", "train_gpt2.c", "train_gpt2.py", "train_llama3.py", "utils.h", "data_common.py", "pybpe.c", "Python.h"),
    *("fineweb.py", "hellaswag.py", "tinyshakespeare.py", "prepare.py", "sample.py", "encoder.py"),
}
FOREIGN_FUNCTIONS = {
    "pybpe_noun_verb",
    "write_datafile",
    "bytes_to_unicode",
    "ignore_merges",
    "byte_level",
    "encode_file",
}

NAME = re.compile(r"(?<![\w/*.-])(?:[\w*-]+/)*[\w*][\w*.-]*\.(?:py|md|mk|[ch]|\[ch\])(?![\w/]|\.\w)")
SYSTEM_HEADER = re.compile(r"#include <[^>\n]+>")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)


def files_named(text: str) -> set[str]:
    """Returns the names of source files in a text: paths, bare names, and patterns such as train*.[ch]."""
    text = SYSTEM_HEADER.sub("", text)
    return {name for name in NAME.findall(text) if name.rpartition("/")[2] not in FOREIGN and name != "work/README.md"}


def exists(name: str) -> bool:
    """Returns whether a file of the project has this path, or a path that ends with it."""
    return any(fnmatchcase(f"/{file}", f"*/{name}") for file in FILES)


def comments(source: str) -> str:
    """Returns the comments of a C file."""
    return "\n".join(part for part in COMMENT.findall(source) if part[0] == "/")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    assert [name for name in sorted(files_named(page.read_text(encoding="utf-8"))) if not exists(name)] == []


def test_the_files_that_comments_of_c_name_exist() -> None:
    stale = [
        f"{source.name}: {name}"
        for source in SOURCES
        for name in sorted(files_named(comments(source.read_text(encoding="utf-8"))))
        if not exists(name)
    ]
    assert stale == []


def test_the_functions_that_comments_of_c_name_exist() -> None:
    """Every name_with_underscores in a comment is in the code of csrc, or is a name in another project."""
    code = set()
    for source in SOURCES:
        code |= set(re.findall(r"\w+", COMMENT.sub(_without_comment, source.read_text(encoding="utf-8"))))
    for file in ("tests/c/test_count.c", "llmc_compat/include/llmc/dataloader.h", "llmc_compat/include/llmc/rand.h"):
        code |= set(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))
    stale = [
        f"{source.name}: {name}"
        for source in SOURCES
        for name in sorted(functions_named(comments(source.read_text(encoding="utf-8"))))
        if name not in code
    ]
    assert stale == []


def functions_named(text: str) -> set[str]:
    """Returns the names with underscores in a text, except parts of file names and names of other projects."""
    return set(re.findall(r"(?<![\w.*/])[a-z]\w*_\w+(?![\w*/]|\.[ch]|\.py)", text)) - FOREIGN_FUNCTIONS


def _without_comment(match: re.Match[str]) -> str:
    return " " if match[0][0] == "/" else match[0]


Options = dict[tuple[str, ...], set[str]]


def options_of(parser: argparse.ArgumentParser, command: tuple[str, ...] = ()) -> Options:
    """Returns the options of each command: ("llmc", "check") -> {"--json", "-b", ...}."""
    found: Options = {command: set(parser._option_string_actions)}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                found |= options_of(below, (*command, name))
    return found


@pytest.fixture(scope="module")
def options() -> Options:
    return options_of(cli._parser())


def calls(text: str) -> Iterator[list[str]]:
    """Returns the words after `pybpe` of each call in a text, to the end of the command; `...\\` continues a line."""
    for rest in re.findall(r"(?<![\w./-])pybpe ((?:\\\n|[^\n`|&;#>()])*)", text):
        yield rest.replace("\\\n", " ").split()


def unknown(words: list[str], options: Options) -> list[str]:
    """Returns the options in a call that its command does not have."""
    command: tuple[str, ...] = ()
    while (*command, *words[len(command) : len(command) + 1]) in options and len(command) < len(words):
        command = (*command, words[len(command)])
    known = options[command] if command else set().union(*options.values())
    named = [re.split(r"[=,:\]]", word.strip("[]'\""))[0] for word in words if re.match(r"\[?-[-a-z]", word)]
    return [word for word in named if word not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_options_that_a_page_names_exist(page: Path, options: Options) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = [f"{' '.join(words)}: {name}" for words in calls(text) for name in unknown(words, options)]
    alone = re.findall(r"`(--[a-z][a-z-]*)(?=[ =`])", text)  # with an underscore it is one of llm.c's scripts
    known = set().union(*options.values())
    assert wrong + [name for name in alone if name not in known] == []


def test_stale_names_are_found(options: Options) -> None:
    assert not exists("csrc/no_such.c") and not exists("cut.c") and exists("pretok_cut.c") and exists("pretok*.[ch]")
    assert files_named("see `csrc/a_1.h`, b.py, docs/c.md, d*.[ch]; not llm.c, e.g. f.txt, x.cu") == {
        *("csrc/a_1.h", "b.py", "docs/c.md", "d*.[ch]")
    }
    assert functions_named("see a_b, c_d(), e_f.c and _g_h; write_datafile") == {"a_b", "c_d"}
    text = "`pybpe train --vocab-size 5` and\npybpe llmc check \\\n    --jsn -b 4 | grep --x\n"
    assert [unknown(words, options) for words in calls(text)] == [[], ["--jsn"]]
    assert comments('x = "/* no */"; /* a.c */ // b.c') == "/* a.c */\n// b.c"


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda script: script.name)
def test_what_benchmarks_import_from_each_other_exists(script: Path) -> None:
    for statement in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if not isinstance(statement, ast.ImportFrom):
            continue
        source = script.with_name(f"{statement.module}.py")
        if source.exists():
            source_text = source.read_text(encoding="utf-8")
            assert [name.name for name in statement.names if not defines(source_text, name.name)] == []


def defines(source: str, name: str) -> bool:
    """Returns whether a Python file defines a name at its top level."""
    found = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found.add(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            found |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return name in found
