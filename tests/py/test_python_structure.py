"""Functions of the Python packages: options travel as objects, so that only public functions have many parameters."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_PARAMETERS = 7
# Public functions, whose keyword arguments are what users write.
WITH_KEYWORDS = {
    "advise",
    *(
        "train",
        "count_words",
        "clean",
        "binarize",
        "mix",
        "pack",
        "prepare",
        "encode_files",
        "create_dataloader",
        "make_workspace",
        "write_chat",
    ),
}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns how many arguments a caller passes: all except self and cls."""
    given = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len(given) - (given[:1] in (["self"], ["cls"]))


def test_only_public_functions_have_many_parameters() -> None:
    found = {
        function.name
        for package in ("pybpe", "llmc_compat")
        for path in (ROOT / package).rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and parameters(function) > MOST_PARAMETERS
    }
    assert found == WITH_KEYWORDS
