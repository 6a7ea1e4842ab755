"""The folders of csrc use one another as docs/architecture.md draws it: through their doors, and without a circle.
Its functions have few parameters; the linter counts those of Python."""

import re
from functools import cache
from pathlib import Path

CSRC = Path(__file__).resolve().parents[2] / "csrc"
# The library without its public headers, pybpe*.h, which any file may include: "base/base.c" -> its text.
SOURCES = {
    path.relative_to(CSRC).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(CSRC.glob("*/*.[ch]"))
    if path.parent.name != "python"
}
PUBLIC = {path.name for path in CSRC.glob("pybpe*.h")}
COMMENT_OR_STRING = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
# Public functions with more. Structs would make their callers longer, and break the programs that call them.
LONG_CALLS = {
    *("pybpe_encode", "pybpe_encode_words", "pybpe_encode_batch", "pybpe_loader_new", "pybpe_marks_place"),
    *("pybpe_vocab_new_json", "pybpe_decode"),
}
SHORT_FILE = 45  # lines; shorter files need a reason in docs/architecture.md

Graph = dict[str, set[str]]


def page() -> str:
    """Returns the part of the page about the C library."""
    text = (CSRC.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    return text.split("## The C library", 1)[1].split("\n## ", 1)[0]


def drawn() -> Graph:
    """Returns the arrows of the diagram: each folder, and those that it uses."""
    graph: Graph = {}
    for line in page().split("```mermaid", 1)[1].split("```", 1)[0].splitlines():
        steps = [[name.strip() for name in step.split("&")] for step in line.split("-->")]
        for left, right in zip(steps, steps[1:], strict=False):
            for name in left + right:
                graph.setdefault(name, set())
            for name in left:
                graph[name] |= set(right)
    return graph


def folder(file: str) -> str:
    return file.partition("/")[0]


@cache
def includes() -> Graph:
    """Returns the files of csrc that each file includes."""
    return {
        name: set(re.findall(r'^#include "(.*)"', text, re.M)) - PUBLIC for name, text in SOURCES.items()
    }  # fmt: skip


@cache
def code() -> dict[str, str]:
    """Returns the text of each file without comments and strings."""
    return {name: COMMENT_OR_STRING.sub("", text) for name, text in SOURCES.items()}


def definitions(text: str) -> dict[str, str]:
    """Returns the functions that the code of a file defines, with their parameters."""
    signature = re.compile(r"^(?!#)\w[\w *]*?\b(\w+)\(((?:[^(){};]|\([^()]*\))*)\)\s*\{", re.M)
    return dict(signature.findall(re.sub(r"__attribute__\(\(\w+\)\)", "", text)))


@cache
def calls() -> Graph:
    """Returns the files that define the functions that each file calls, or takes the address of.

    A declaration is not a call. Nor is the slow path of an inline function: X.h may call X.c.
    """
    texts = code()
    home = {
        function: name
        for name, text in texts.items()
        for function in definitions(text)
        if name.endswith(".h") or not re.search(rf"^static\b.*\b{function}\(", text, re.M)
    }
    graph: Graph = {}
    for name, text in texts.items():
        text = re.sub(r"^(?!#)\w[\w *]*\b\w+\((?:[^(){};]|\([^()]*\))*\)[^;{}]*;", "", text, flags=re.M)
        used = {home[word] for word in set(re.findall(r"\w+", text)) & set(home)}
        twin = name[:-1] + "c" if name.endswith(".h") else ""
        graph[name] = used - {name, twin}
    return graph


def used_by_folders() -> Graph:
    """Returns the folders that each folder uses, by an include or by a call."""
    graph: Graph = {folder(name): set() for name in SOURCES}
    for found in (includes(), calls()):
        for name, others in found.items():
            graph[folder(name)] |= {folder(other) for other in others} - {folder(name)}
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    """Returns what `start` uses, directly or indirectly."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def on_a_circle(graph: Graph) -> list[str]:
    return [name for name in graph if name in reachable(graph, name)]


def not_by_the_door(found: Graph) -> list[str]:
    """Returns the includes of an inner header of another folder."""
    return [
        f"{name} includes {other}"
        for name, others in found.items()
        for other in sorted(others)
        if folder(name) != folder(other) and other != f"{folder(other)}/{folder(other)}.h"
    ]


def test_the_door_of_a_folder_is_its_only_header_for_others() -> None:
    assert not_by_the_door(includes()) == []
    assert not_by_the_door({"a/x.c": {"a/y.h", "b/b.h", "b/c.h"}}) == ["a/x.c includes b/c.h"]  # the check can fail


def test_each_include_names_the_folder() -> None:
    assert [other for others in includes().values() for other in others if other not in SOURCES] == []


def test_no_circle_between_folders() -> None:
    assert on_a_circle(used_by_folders()) == []
    assert on_a_circle(drawn()) == []
    assert on_a_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_no_circle_between_files() -> None:
    assert on_a_circle(includes()) == []
    assert on_a_circle(calls()) == []


def test_the_diagram_is_true() -> None:
    """Each use is an arrow, or follows from arrows; each arrow is a use."""
    folders, found = drawn(), used_by_folders()
    assert set(folders) == set(found)
    wrong = {(a, b) for a in found for b in found[a] if b not in reachable(folders, a)}
    assert wrong == set(), "csrc has uses that docs/architecture.md does not draw"
    stale = {(a, b) for a in folders for b in folders[a] if b not in found[a]}
    assert stale == set(), "docs/architecture.md draws arrows that csrc does not have"


def test_names_of_files_are_unique() -> None:
    """Libraries, debuggers and the lists of the tests know a file by its name."""
    names = [Path(name).name for name in SOURCES]
    assert len(set(names)) == len(names)


def test_the_map_lists_every_folder() -> None:
    assert set(re.findall(r"^\| `csrc/(\w+)/` \|", page(), re.M)) == {folder(name) for name in SOURCES}


def test_short_files_have_a_reason() -> None:
    short = {Path(name).name for name, text in SOURCES.items() if text.count("\n") < SHORT_FILE}
    listed = re.search(rf"Files of fewer than {SHORT_FILE} lines:(.*?)\n\n", page() + "\n\n", re.S)
    assert listed is not None
    assert set(re.findall(r"`(\w+\.[ch])`", listed[1])) == short


def test_each_function_that_takes_arrays_is_tried_without_them() -> None:
    """tests/c/test_null.c calls all functions that create a handle from an array, or from a struct with one."""
    headers = (path.read_text(encoding="utf-8") for path in sorted(CSRC.glob("pybpe*.h")))
    header = COMMENT_OR_STRING.sub("", "".join(headers))
    declared = re.findall(r"^PYBPE_API int (pybpe_\w+)\((pybpe_\w+ \*\*out, [^;]*)\);", header, re.M)
    plain = {"char", "pybpe_allocator", *re.findall(r"^typedef struct \w+ (pybpe_\w+);", header, re.M)}
    takes = {name for name, types in declared if set(re.findall(r"const (\w+) \*(?!\*|const)", types)) - plain}
    takes |= {name for name, types in declared if "*const *" in types}
    tried = set(re.findall(r"pybpe_\w+", (CSRC.parent / "tests" / "c" / "test_null.c").read_text(encoding="utf-8")))
    assert len(declared) > 20 and len(takes) > 10
    assert takes - tried == set()


def test_few_parameters() -> None:
    found = {
        name: parameters.count(",") + 1 for text in code().values() for name, parameters in definitions(text).items()
    }
    assert len(found) > 600
    assert {name for name, count in found.items() if count > 7} == LONG_CALLS
