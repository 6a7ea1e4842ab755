"""The tests of the Python package, imported once, so that judging one fault takes a fraction of a second.

One pytest session imports the package and collects all tests. A child is forked for each fault. It gives the function
that has the fault its new code, and runs the tests that call this function, the fastest first, until one fails. If the
fault is outside functions, or in one that is called while the package is imported, another child forgets the package,
imports it again with the fault, and runs all tests of the module.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import hashlib
import importlib.util
import math
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType

import pytest
from hypothesis import Phase, settings
from programs import BUILD, LEAST_LIMIT, MEMORY, ROOT
from python_tests import SLOW

PACKAGE = ROOT / "pybpe"
TESTS = ROOT / "tests" / "py"
# Hypothesis does not simplify the cases that fail.
settings.register_profile(
    "mutants", derandomize=True, deadline=None, database=None, phases=(Phase.explicit, Phase.generate)
)
OPTIONS = ["-x", "-s", "--hypothesis-profile=mutants", "-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts="]
Place = tuple[str, int]  # of a function: its name and its first line, where its decorator is if it has one
Function = tuple[str, Place]  # a file of the package, and a place in it


def _place(code: CodeType) -> Place:
    return code.co_name, code.co_firstlineno


def _functions_of(codes: set[CodeType]) -> set[Function]:
    """Returns those functions of the package that have these codes."""
    return {(code.co_filename, _place(code)) for code in codes if code.co_filename.startswith(str(PACKAGE))}


@dataclass(frozen=True)
class Measured:
    """What a test does without a fault: the processor time that it takes, and the functions that it calls."""

    seconds: float
    called: set[Function]


@dataclass(eq=False)
class Session:
    """A pytest plugin that calls `use` instead of running tests.

    Attributes:
        tests: the tests of each module, relative to TESTS.
        use: called with this session.
        items: all of these tests.
        measured: what each of them does without a fault.
        functions: the package's, by file and place.
        at_import: those that are called when the package or a test is imported.
    """

    tests: dict[str, list[str]]
    use: Callable[[Session], None]
    items: dict[str, pytest.Item] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)
    functions: dict[Function, list[FunctionType]] = field(default_factory=dict)
    at_import: set[Function] = field(default_factory=set)

    def run(self) -> None:
        """Collects the tests and calls `use`."""
        names = dict.fromkeys(str(TESTS / test) for tests in self.tests.values() for test in tests)
        with _calls() as self._codes:
            code = pytest.main([*OPTIONS, *names], plugins=[self])
        if code != 0:
            raise SystemExit(f"pytest cannot collect the tests: {code!r}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Called by pytest for each file."""
        if report.failed:
            print(report.longreprtext, file=sys.stderr)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Called by pytest after each part of a test."""
        if call.excinfo is not None and not issubclass(call.excinfo.type, pytest.skip.Exception):
            print(f"{item.nodeid}: {call.excinfo!r}", file=sys.stderr)
            os._exit(1)  # before pytest formats a traceback, which takes long

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest after it has collected all tests."""
        sys.setprofile(None)
        if session.testsfailed:
            return True
        self.at_import = _functions_of(self._codes)
        slow = tuple(f"tests/py/{test}" for test in SLOW)
        self.items = {item.nodeid: item for item in session.items if not item.nodeid.startswith(slow)}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(PACKAGE)):
                self.functions.setdefault((one.__code__.co_filename, _place(one.__code__)), []).append(one)
        self._measure()
        gc.freeze()
        self.use(self)
        return True

    def judge(self, module: str, source: str, fault: str, line: int) -> bool:
        """Returns whether the tests of a module notice a fault in a line. `fault` is the source with the fault."""
        place = function_at(source, line)
        function = (str(PACKAGE / module), place) if place else None
        if function in self.functions:
            names = [name for name in self._tests_of(module) if function in self.measured[name].called]
            swapped = partial(self._swapped, self.functions[function], fault, names)
            if names and not _passes(swapped, self._seconds(names)):
                return True
            if function not in self.at_import:
                return False
        names = self._tests_of(module)
        return not _passes(partial(_imported, module, fault, names), 1 + self._seconds(names))

    def _tests_of(self, module: str) -> list[str]:
        """Returns the ids of a module's tests, the fastest first."""
        prefixes = tuple(f"tests/py/{test}" for test in self.tests[module])
        found = [name for name in self.items if name.startswith(prefixes)]
        return sorted(found, key=lambda name: self.measured[name].seconds)

    def _seconds(self, names: list[str]) -> float:
        return sum(self.measured[name].seconds for name in names)

    def _run_tests(self, names: list[str]) -> None:
        """Runs tests. Ends the process if one of them fails, or takes several times as long as without a fault."""
        for name, next_name in zip(names, [*names[1:], None]):
            item, next_item = self.items[name], None if next_name is None else self.items[next_name]
            if name in self.measured:
                signal.setitimer(signal.ITIMER_PROF, 1 + 3 * self.measured[name].seconds)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)

    def _swapped(self, functions: list[FunctionType], fault: str, names: list[str]) -> bool:
        """Runs tests after functions have been given the code of a source with a fault. Returns true if they pass."""
        code = _code_at(compile(fault, functions[0].__code__.co_filename, "exec"), _place(functions[0].__code__))
        for function in functions:
            function.__code__ = code
        self._run_tests(names)
        return True

    def _measure(self) -> None:
        """Finds out what each test does, file by file: in a child, or from an earlier run if nothing has changed."""
        package = b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))
        (BUILD / "python").mkdir(parents=True, exist_ok=True)
        files = dict.fromkeys(item.path for item in self.items.values())
        for path in files:
            digest = hashlib.sha256(package + path.read_bytes()).hexdigest()[:16]
            kept = BUILD / "python" / f"{path.stem}.{digest}.pickle"
            names = [name for name, item in self.items.items() if item.path == path]
            known: dict[str, Measured] = pickle.loads(kept.read_bytes()) if kept.exists() else {}
            if not set(names) <= set(known):
                if not _passes(partial(self._write_measures, names, kept), 600, quiet=False):
                    raise SystemExit(f"{path.name} fails without a fault")
                known = pickle.loads(kept.read_bytes())
            self.measured.update(known)

    def _write_measures(self, names: list[str], kept: Path) -> bool:
        measured: dict[str, Measured] = {}
        for name in names:
            start = time.process_time()
            with _calls() as codes:
                self._run_tests([name])
            measured[name] = Measured(time.process_time() - start, _functions_of(codes))
        kept.write_bytes(pickle.dumps(measured))
        return True


@contextlib.contextmanager
def _calls() -> Iterator[set[CodeType]]:
    """Gives a set to which the code of each function that is called is added."""
    codes: set[CodeType] = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(called)
    sys.setprofile(called)
    yield codes
    sys.setprofile(None)
    threading.setprofile(None)


def _passes(call: Callable[[], bool], seconds: float, *, quiet: bool = True) -> bool:
    """Returns what `call` returns in a child, or false if it fails. `seconds` is the processor time without a fault."""
    folder = tempfile.mkdtemp(dir=BUILD)
    child = os.fork()
    if child == 0:
        try:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
            os.chdir(ROOT)
            limit = math.ceil(3 * seconds + 2)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY << 10, MEMORY << 10))
            signal.alarm(math.ceil(3 * LEAST_LIMIT + 20 * seconds))
            if quiet:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)
            os._exit(0 if call() else 1)
        finally:
            os._exit(2)
    passed = os.waitpid(child, 0)[1] == 0
    shutil.rmtree(folder, ignore_errors=True)
    return passed


def function_at(source: str, line: int) -> Place | None:
    """Returns the place of the outermost function whose body has a line."""
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        for node in ast.iter_child_nodes(nodes.pop()):
            if isinstance(node, ast.ClassDef):
                nodes.append(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min(node.lineno, *(decorator.lineno for decorator in node.decorator_list), node.lineno)
                if node.body[0].lineno <= line <= (node.end_lineno or 0):
                    return node.name, first
    return None


def _code_at(code: CodeType, place: Place) -> CodeType:
    """Returns the code of the function at a place."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    for one in inner:
        if _place(one) == place:
            return one
        with contextlib.suppress(LookupError):
            return _code_at(one, place)
    raise LookupError(place)


class _Finder:
    """Finds a module, and gives it a source."""

    def __init__(self, module: str, source: str) -> None:
        self.name = ".".join(["pybpe", *Path(module).with_suffix("").parts]).removesuffix(".__init__")
        self.path, self.source = str(PACKAGE / module), source

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Called by the import system."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=_Loader(name, self.path, self.source))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")


def _imported(module: str, fault: str, tests: list[str]) -> bool:
    """Returns whether tests pass after the package has been imported again with a fault in a module."""
    for name, one in list(sys.modules.items()):
        is_test = str(getattr(one, "__file__", None) or "").startswith(str(TESTS))
        if is_test or (f"{name}.".startswith("pybpe.") and name != "pybpe._core"):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(module, fault))  # type: ignore[arg-type]
    return pytest.main([*OPTIONS, *(str(ROOT / test) for test in tests)]) == 0
