"""The small faults that a mutation run puts into Python source, one at a time: operators.py does the same for C.

if n > cap:       ->    if n >= cap:       if n <= cap:       if True:        if False:
count += 1        ->    pass               count += 2
continue          ->    pass
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from operators import Mutant

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yields what an expression becomes."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _COMPARED[type(node.ops[0])]:
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        yield ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)


def _faults(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yields what is replaced, and by what."""
    for other in _expressions(node):
        yield node, f"({ast.unparse(other)})"
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield from ((node.test, text) for text in ("True", "False") if ast.unparse(node.test) != text)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)) and not is_text:
        yield node, "pass"


def _hints(tree: ast.AST) -> set[int]:
    """Returns the nodes of type hints, of code that runs only in type checkers, and of decorators such as
    @dataclass(frozen=True): the type checker finds assignments to what is frozen."""
    hidden: set[int] = set()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        if isinstance(node, ast.ClassDef):
            parts = list(node.decorator_list)
        hidden.update(id(inner) for part in parts if part is not None for inner in ast.walk(part))
    return hidden


def mutants(source: str) -> list[Mutant]:
    """Returns all faults for a Python source, in a fixed order."""
    tree, starts = ast.parse(source), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines, hidden = source.splitlines(), _hints(tree)

    def place(line: int, byte: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:byte].decode())

    found = [
        Mutant(place(at.lineno, at.col_offset), place(at.end_lineno, at.end_col_offset), text, at.lineno)
        for node in ast.walk(tree)
        if id(node) not in hidden
        for at, text in _faults(node)
    ]
    return sorted(set(found), key=lambda fault: (fault.start, fault.end, fault.text))
