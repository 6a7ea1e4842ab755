"""The documentation is true: its code and its notebooks run, the files and options that it names exist, and its
reference has every public name. `make docs` checks the links wholly, and the names in the reference."""

import argparse
import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from texts import chinese, english

import pybpe
from pybpe import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks/RESULTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# The tutorials have a text each.
TRANSLATED = [page for page in sorted((ROOT / "docs").glob("*.zh.md")) if page.name != "tutorial.zh.md"]


def parametrize_pages(pages: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.relative_to(ROOT).as_posix())


# ---------------------------------------------------------------------------------------------------
# The code of a page. Its blocks that are marked `python` or `sh` run in order, in one folder; all Python blocks form
# one program. A block marked `text` directly after one of them must be exactly what that block prints.


class Block(NamedTuple):
    """A block of code: its language and content; the line of the page where it begins, from 1; and what the page says
    that it prints, or None."""

    language: str
    code: str
    line: int
    shown: str | None


def blocks(page: Path) -> list[Block]:
    """Returns all blocks of a page, in order."""
    fenced = re.compile(r"^```(\w*)\n(.*?)^```\n(\n?```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    return [Block(it[1], it[2], text.count("\n", 0, it.start(2)) + 1, it[4]) for it in fenced.finditer(text)]


def code_of(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in ("python", "sh")]


def run_page(page: Path, folder: Path) -> None:
    """Runs a page in a folder, and compares what it prints with what it shows."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in code_of(page):
        printed = (
            run_python(page, block, folder, names) if block.language == "python" else run_shell(page, block, folder)
        )
        assert block.shown in (None, printed), f"{page}:{block.line} prints\n{printed}"


def run_python(page: Path, block: Block, folder: Path, names: dict[str, object]) -> str:
    # The empty lines make a traceback name the lines of the page.
    code = compile("\n" * (block.line - 1) + block.code, page, "exec")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(folder)
        exec(code, names)
    return printed.getvalue()


def run_shell(page: Path, block: Block, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euxo", "pipefail", "-c", block.code]
    result = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert result.returncode == 0, f"{page}:{block.line} ends with {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def downloads() -> Path:
    """Returns a folder with the packages that a page tells its reader to download."""
    subprocess.run(["make", "--silent", ".venv/texts/stamp"], cwd=ROOT, check=True)
    return ROOT / ".venv" / "texts"


@pytest.fixture
def folder(tmp_path: Path, downloads: Path) -> Path:
    """Writes the files that pages may use: novel.txt (Chinese), corpus.txt (English), out/corpus.txt as `make demo`
    does, and the packages that `pip download` gets."""
    (tmp_path / "out").mkdir()
    for package in (*downloads.glob("*.whl"), *downloads.glob("*.tar.gz")):
        shutil.copy(package, tmp_path)
    (tmp_path / "novel.txt").write_text(chinese(), encoding="utf-8", newline="")
    for name in ("corpus.txt", "out/corpus.txt"):
        (tmp_path / name).write_text(english(), encoding="utf-8", newline="")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in WITH_CODE if page not in TRANSLATED], ids=lambda page: page.name)
def test_the_code_of_the_page_runs(page: Path, folder: Path) -> None:
    if page.name == "README.md":  # it follows `make demo`
        pybpe.prepare(folder / "out/corpus.txt", folder / "out", vocab_size=1000)
    run_page(page, folder)


@parametrize_pages(TRANSLATED)
def test_the_translated_page_has_the_code_of_the_other_one(page: Path) -> None:
    """Except for comments, and for C programs that it leaves out."""
    pages = page, page.with_name(page.name.replace(".zh", ""))
    ours, theirs = [[(re.sub("#.*", "", block.code), block.shown) for block in code_of(page)] for page in pages]
    assert ours == theirs
    ours, theirs = [[re.sub(r"/\*.*?\*/", "", it.code) for it in blocks(page) if it.language == "c"] for page in pages]
    assert set(ours) <= set(theirs)


def test_the_plots_show_the_results() -> None:
    """`make plots` draws them again."""
    for name, content in runpy.run_path(str(ROOT / "docs/site/plots.py"))["drawn"]().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == content, name


def test_the_results_show_the_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make bench-plots` makes the tables and plots again."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for name, content in runpy.run_path(str(ROOT / "benchmarks/plots.py"))["drawn"]().items():
        assert (ROOT / name).read_text(encoding="utf-8") == content, name


def test_the_first_page_names_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    assert "](docs/index.md)" in WITH_CODE[0].read_text(encoding="utf-8")
    for page in {*WITH_CODE[1:]} - {index}:
        link = os.path.relpath(page, index.parent)
        assert f"]({link})" in index.read_text(encoding="utf-8"), f"{page.name} is not in the list of docs/index.md"


def test_a_page_that_is_not_true_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for code in ("python\nprint(1)\n```\n```text\n2", "sh\nfalse | true", "python\n1 / 0"):
        page.write_text(f"```{code}\n```\n")
        with pytest.raises((AssertionError, ZeroDivisionError)):
            run_page(page, tmp_path)
    page.write_text("```python\nx = 1\nprint(x)\n```\n```text\n1\n```\n\n```\nno code\n```\n\n```sh\necho 2\n```\n")
    run_page(page, tmp_path)
    assert len(code_of(page)) == 2


def test_the_page_of_a_package_index_has_no_links_to_files() -> None:
    index_page = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["index_page"]
    assert (
        index_page("[`a.md`](a.md) [b](c/d.py#e) [f](#g) [h](https://i.j)")
        == "`a.md` b (`c/d.py`) [f](#g) [h](https://i.j)"
    )
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = index_page(text)
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", readme) == [] and "tutorial (`docs/tutorial.md`)" in readme
    assert "viewer.png" not in readme
    there = index_page(text, "https://a.b/c", "v1")
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", there) == [] and '"https://a.b/c/raw/v1/docs/viewer.png"' in there
    assert "[tutorial](https://a.b/c/blob/v1/docs/tutorial.md)" in there


# ---------------------------------------------------------------------------------------------------
# Names of files and options

FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("csrc", "pybpe", "llmc_compat", "tests", "docs", "benchmarks")
    for path in (ROOT / folder).rglob("*.*")
] + [path.name for path in ROOT.glob("*.*")]

# Files of other projects, and files that a command makes.
FOREIGN = {
    *("llm.c", "train_gpt2.c", "train_gpt2.py", "train_llama3.py", "utils.h", "data_common.py", "pybpe.c", "Python.h"),
    *("README.pybpe.md", "pybpe.mk"),  # in a workspace
    *("fineweb.py", "hellaswag.py", "tinyshakespeare.py", "prepare.py", "sample.py", "encoder.py"),
}

NAME = re.compile(r"(?<![\w/*.-])(?:[\w*-]+/)*[\w*][\w*.-]*\.(?:py|md|mk|[ch]|\[ch\])(?![\w/]|\.\w)")


def files_named(text: str) -> set[str]:
    """Returns the names of source files in a text: paths, bare names, and patterns such as train*.[ch]."""
    text = re.sub(r"#include <[^>\n]+>", "", text)
    return {name for name in NAME.findall(text) if name.rpartition("/")[2] not in FOREIGN and name != "work/README.md"}


def exists(name: str) -> bool:
    """Returns whether a file of the project has this path, or a path that ends with it."""
    return any(fnmatchcase(f"/{file}", f"*/{name}") for file in FILES)


@parametrize_pages(PAGES)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    assert [name for name in sorted(files_named(page.read_text(encoding="utf-8"))) if not exists(name)] == []


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


@parametrize_pages(PAGES)
def test_the_options_that_a_page_names_exist(page: Path, options: Options) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = [f"{' '.join(words)}: {name}" for words in calls(text) for name in unknown(words, options)]
    known = set().union(*options.values())
    named = [] if page.name == "RESULTS.md" else options_named(text)  # which names options of the benchmarks
    assert wrong + [name for name in named if name not in known] == []


def options_named(text: str) -> list[str]:
    """Returns the options in `...` of a text, without those of other programs, and of llm.c's scripts, which have an
    underscore."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    ours = [span for span in spans if not span.startswith(OTHER_PROGRAMS)]
    return [option for span in ours for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w-])", span)]


OTHER_PROGRAMS = (
    "mypy ",
    "xcode-select ",
    "git ",
    "pip ",
    "make ",
    '"--train-file',
    "python ",
    "mpiexec ",
    "cargo ",
    "perf ",
    "--write_",
    "taskset ",
)


# ---------------------------------------------------------------------------------------------------
# Names of Python

DOTTED = re.compile(r"(?<![\w./-])(?:pybpe|llmc_compat)(?:\.\w+)+(?![\w/])")
FOREIGN_NAMES = {"pybpe.load"}  # an example of a name that does not exist
FILE_ENDINGS = ("h", "c", "mk", "py", "md", "json", "bin", "html", "js", "a", "so", "pc", "wasm")
ARGUMENT = re.compile(r"\b([a-z]\w*)=(?![=>])")


def resolves(name: str) -> bool:
    """Returns whether a dotted name exists. Modules of extras that are not installed cannot be looked into."""
    parts = name.split(".")
    found: object = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                found = importlib.import_module(".".join(parts[:number]))
            except ModuleNotFoundError as error:
                return error.name is not None and not error.name.startswith(("pybpe", "llmc_compat"))
        else:
            found = getattr(found, part)
    return True


@parametrize_pages(PAGES)
def test_the_names_that_a_page_names_exist(page: Path) -> None:
    named = set(DOTTED.findall(page.read_text(encoding="utf-8"))) - FOREIGN_NAMES
    assert [name for name in sorted(named) if name.split(".")[-1] not in FILE_ENDINGS and not resolves(name)] == []


@pytest.fixture(scope="module")
def parameters() -> set[str]:
    """Returns the names of all parameters of public functions and methods, and of those of llmc_compat."""
    modules = ["pybpe", "pybpe.loading", "pybpe.corpus", "pybpe.viz", "pybpe.like_tiktoken"]
    compat = ("check", "checkpoint", "chat", "convert", "evals", "shards", "workspace")
    modules += [f"llmc_compat.{name}" for name in compat]
    owners = [getattr(it, name) for it in map(importlib.import_module, modules) for name in dir(it)]
    owners += [getattr(pybpe, name) for name in pybpe.__all__]
    owners += [member for owner in owners if inspect.isclass(owner) for member in vars(owner).values()]
    functions = [getattr(owner, "__func__", owner) for owner in owners]
    return {
        parameter
        for function in functions
        if (inspect.isfunction(function) or inspect.isclass(function)) and has_signature(function)
        for parameter in inspect.signature(function).parameters
    }


def has_signature(function: Any) -> bool:
    try:
        return bool(inspect.signature(function))
    except ValueError:
        return False


# Arguments of other libraries, and variables of make and of programs.
FOREIGN_ARGUMENTS = set(
    "mp_context vocab_size in_order sampler shouting use_distributed_sampler max_length train_file count known"
    " files modules seconds hours path".split()
)


@parametrize_pages([page for page in WITH_CODE if page not in TRANSLATED])
def test_the_arguments_that_a_page_names_exist(page: Path, parameters: set[str]) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    spans = [span for span in re.findall(r"`([^`\n]+)`", text) if not span.startswith(OTHER_PROGRAMS)]
    named = {name for span in spans for name in ARGUMENT.findall(span)}
    assert named - parameters - FOREIGN_ARGUMENTS == set()


def test_stale_names_are_found(options: Options) -> None:
    assert not exists("csrc/no_such.c") and not exists("cut.c") and exists("pretok_cut.c") and exists("pretok*.[ch]")
    assert files_named("see `a/a_1.h`, b.py, d*.[ch]; not llm.c, f.txt, x.cu") == {"a/a_1.h", "b.py", "d*.[ch]"}
    text = "`pybpe train --vocab-size 5` and\npybpe llmc check \\\n    --jsn -b 4 | grep --x\n"
    assert [unknown(words, options) for words in calls(text)] == [[], ["--jsn"]]
    assert options_named("`--x`, `use --y 1`, `make --z`, `--a_b`, --c") == ["--x", "--y"]
    assert resolves("pybpe.Tokenizer.encode") and resolves("pybpe.loading.Mixture")
    assert not resolves("pybpe.Tokenizer.encoed") and not resolves("pybpe.laoding")


# ---------------------------------------------------------------------------------------------------
# The site and its reference

REFERENCE = ROOT / "docs/reference"


def described(page: Path) -> list[str]:
    """Returns the names whose docstrings a page of the reference shows."""
    return re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", ["pybpe", "pybpe.loading", "pybpe.corpus", "pybpe.viz"])
def test_the_reference_has_every_public_name(name: str) -> None:
    shown = {path for page in REFERENCE.glob("*.md") for path in described(page)}
    shown_names = {path.rpartition(".")[2] for path in shown}
    errors = set(vars(importlib.import_module("pybpe.errors"))) if "pybpe.errors" in shown else set()
    public = set(importlib.import_module(name).__all__) - {"__version__"}
    assert public - shown_names - errors == set()


# ---------------------------------------------------------------------------------------------------
# Examples in docstrings, and notebooks


def test_the_examples_in_docstrings_are_true() -> None:
    sources = [path for package in ("pybpe", "llmc_compat") for path in (ROOT / package).rglob("*.py")]
    with_examples = [path.relative_to(ROOT) for path in sources if ">>> " in path.read_text(encoding="utf-8")]
    modules = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in with_examples]
    results = [doctest.testmod(importlib.import_module(name)) for name in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 3


BOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_a_notebook_prints_what_it_shows(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells run one by one, in plain Python."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads(book.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for number, cell in enumerate(cells, 1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("".join(cell["source"]), f"{book.name}, cell {number}", "exec"), names)
        (output,) = cell["outputs"]
        assert printed.getvalue() == "".join(output["text"])
