"""mutable_state.md lists everything in the Python packages that may change while several threads run them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHES = {"cache", "lru_cache", "cached_property"}
MUTATORS = set(
    "add append appendleft clear discard extend insert move_to_end pop popitem popleft put remove reverse setdefault"
    " sort update write".split()
)
CONSTRUCTORS = {"__init__", "__post_init__"}

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def root_of(node: ast.expr) -> tuple[str, str]:
    """Returns the variable to which an expression belongs, and its attribute: `self.a.b[c]` gives ("self", "a")."""
    attribute = ""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        attribute = node.attr if isinstance(node, ast.Attribute) else attribute
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), attribute


def changes(scope: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields (variable, attribute) of everything that the code changes in place."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            yield root_of(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield root_of(node.func.value)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from ((name, "") for name in node.names)


def assigned(scope: ast.AST) -> set[str]:
    """Returns the variables of a function or a module, but not of the functions in it."""
    names = (
        {arg.arg for arg in ast.walk(scope.args) if isinstance(arg, ast.arg)} if isinstance(scope, SCOPES) else set()
    )
    declared: set[str] = set()
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            declared |= set(node.names)
        if not isinstance(node, (*SCOPES, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return names - declared


def mutable_state(node: ast.AST, name: str, outer: dict[str, str]) -> Iterator[str]:
    """Yields the names of what may change while several threads run the code of a module: caches; classes whose methods
    change attributes; variables of modules; and functions whose variables an inner function changes.

    Args:
        node: the module, or a part of it.
        name: the qualified name of the part with a dot at the end, or "".
        outer: the variables that the part sees, with the function to which each belongs, or "" if the module has it.
    """
    for child in ast.iter_child_nodes(node):
        inner, visible = name, outer
        if isinstance(child, ast.ClassDef):
            inner = f"{name}{child.name}."
            methods = [m for m in child.body if isinstance(m, ast.FunctionDef) and m.name not in CONSTRUCTORS]
            if any(variable == "self" and attribute for m in methods for variable, attribute in changes(m)):
                yield inner[:-1]
        elif isinstance(child, SCOPES):
            own = assigned(child)
            if not isinstance(child, ast.Lambda):
                inner = f"{name}{child.name}."
                if any(CACHES & set(root_of(d.func if isinstance(d, ast.Call) else d)) for d in child.decorator_list):
                    yield inner[:-1]
            for variable, _ in changes(child):
                if variable in outer and variable not in own:
                    yield outer[variable] or variable
            visible = {**outer, **dict.fromkeys(own, inner[:-1])}
        yield from mutable_state(child, inner, visible)


def found_in_sources() -> set[tuple[str, str]]:
    """Returns (module, name) of everything that may change in both packages."""
    found = set()
    for path in [path for package in ("pybpe", "llmc_compat") for path in (ROOT / package).rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = set(mutable_state(tree, "", dict.fromkeys(assigned(tree), "")))
        found |= {(path.relative_to(ROOT).as_posix(), name) for name in names}
    return found


def listed() -> list[tuple[str, str]]:
    """Returns (module, name) of everything in the tables of mutable_state.md."""
    page = (ROOT / "tests/py/mutable_state.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_/]+\.py)` \| (.+?) \|", page, re.M)
    return [(path, name) for path, names in rows for name in re.findall(r"`([\w.]+)`", names)]


@pytest.mark.slow
def test_the_page_lists_everything_that_threads_could_change() -> None:
    """To add a name to mutable_state.md, find out who uses the object, and write there why threads cannot break it."""
    names = listed()
    assert len(names) == len(set(names))
    assert sorted(found_in_sources() - set(names)) == []
    assert sorted(set(names) - found_in_sources()) == []
