"""Functions of the Python packages: a function takes few arguments by position. Arguments by keyword, which the caller
names, may be many, as the options of public functions are."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_BY_POSITION = 7
ALIKE = {"create_dataloader"}  # has the signature that users know from elsewhere


def by_position(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns how many arguments a caller may pass by position: all except self and cls."""
    given = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    return len(given) - (given[:1] in (["self"], ["cls"]))


def test_few_arguments_are_passed_by_position() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {function.name}"
        for package in ("pybpe", "llmc_compat")
        for path in (ROOT / package).rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and by_position(function) > MOST_BY_POSITION
        if function.name not in ALIKE
    }
    assert not found
