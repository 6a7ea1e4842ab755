"""The modules of csrc use one another as docs/architecture.md draws it, without a cycle."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "csrc").glob("*.[ch]"))}
PUBLIC = "pybpe.h"
COMMENT = re.compile(r"/\*.*?\*/", re.S)
MOST_PARAMETERS = 7
# Public functions with more. Structs would make their callers longer, and break the programs that call them.
LONG_CALLS = {
    *("pybpe_encode", "pybpe_encode_words", "pybpe_encode_batch", "pybpe_loader_new", "pybpe_marks_place"),
    *("pybpe_vocab_new_json", "pybpe_decode"),
}
SHORT_FILE = 45  # lines; shorter files need a reason in docs/architecture.md

Graph = dict[str, set[str]]


def page() -> str:
    """Returns the part of the page about the C library."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return text.split("Within the C library", 1)[1].split("\n## ", 1)[0]


def drawn() -> Graph:
    """Returns the arrows of the diagram: each module, and those that it uses."""
    graph: Graph = {}
    for line in page().split("```mermaid", 1)[1].split("```", 1)[0].splitlines():
        steps = [[name.strip() for name in step.split("&")] for step in line.split("-->")]
        for left, right in zip(steps, steps[1:], strict=False):
            for name in left + right:
                graph.setdefault(name, set())
            for name in left:
                graph[name] |= set(right)
    return graph


def module_of(name: str, modules: Graph) -> str:
    """Returns the module of a file: the longest name that the file's name begins with."""
    stem = Path(name).stem
    found = [module for module in modules if stem == module or stem.startswith(f"{module}_")]
    assert found, f"csrc/{name} belongs to no module of docs/architecture.md"
    return max(found, key=len)


def includes() -> Graph:
    """Returns the files of csrc that each file includes."""
    return {
        name: {found for found in re.findall(r'^#include "(.*)"', text, re.M) if found != PUBLIC}
        for name, text in SOURCES.items()
    }


def calls() -> Graph:
    """Returns the files that define the public functions that each file calls. pybpe.h declares them for all files."""
    code = {name: COMMENT.sub("", text) for name, text in SOURCES.items() if name != PUBLIC}
    home = {
        function: name
        for name, text in code.items()
        for function in re.findall(r"^(?!static)\w[\w *]*?\b(pybpe_\w+)\([^;{]*\)\s*\{", text, re.M)
    }
    return {name: {home[f] for f in re.findall(r"\b(pybpe_\w+)\(", text) if f in home} for name, text in code.items()}


def used(modules: Graph) -> Graph:
    """Returns the modules that each module uses, by an include or by a call of a public function."""
    graph: Graph = {module: set() for module in modules}
    for found in (includes(), calls()):
        for name, others in found.items():
            if name != PUBLIC:
                module = module_of(name, modules)
                graph[module] |= {module_of(other, modules) for other in others} - {module}
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    """Returns the modules that `start` uses, directly or indirectly."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def on_a_cycle(graph: Graph) -> list[str]:
    return [name for name in graph if name in reachable(graph, name)]


def test_no_cycle() -> None:
    assert on_a_cycle(includes()) == []
    assert on_a_cycle(drawn()) == []
    assert on_a_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]  # the check can fail


def test_the_diagram_is_true() -> None:
    """Each use is an arrow, or follows from arrows; each arrow is a use. All modules may use base."""
    modules = drawn()
    found = used(modules)
    wrong = {(a, b) for a in found for b in found[a] if b not in reachable(modules, a)}
    assert wrong == set(), "csrc has uses that docs/architecture.md does not draw"
    stale = {(a, b) for a in modules for b in modules[a] if b not in found[a]}
    assert stale == set(), "docs/architecture.md draws arrows that csrc does not have"


def test_a_use_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of uses count: the check can fail."""
    monkeypatch.setitem(SOURCES, "shard.c", '#include "mt19937.h"\nint x(void) { return pybpe_normalize(1); }\n')
    assert used(drawn())["shard"] == {"mt19937", "normalize"}


def test_short_files_have_a_reason() -> None:
    short = {name for name, text in SOURCES.items() if text.count("\n") < SHORT_FILE}
    listed = re.search(rf"Files of fewer than {SHORT_FILE} lines:(.*?)\n\n", page() + "\n\n", re.S)
    assert listed is not None
    assert set(re.findall(r"`(\w+\.[ch])`", listed[1])) == short


def functions() -> dict[str, int]:
    """Returns the functions that csrc defines, with the number of their parameters."""
    signature = re.compile(r"^(?!#)\w[\w *]*?\b(\w+)\(((?:[^(){};]|\([^()]*\))*)\)\s*\{", re.M)
    return {
        name: parameters.count(",") + 1
        for file, text in SOURCES.items()
        if file != PUBLIC
        for name, parameters in signature.findall(re.sub(r"__attribute__\(\(\w+\)\)", "", COMMENT.sub("", text)))
    }


def test_few_parameters() -> None:
    found = functions()
    assert len(found) > 600
    assert {name for name, count in found.items() if count > MOST_PARAMETERS} == LONG_CALLS
