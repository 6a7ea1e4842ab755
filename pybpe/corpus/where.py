"""Selects records by a condition in SQL, such as "score > 3 and language == 'en'".

DuckDB parses and evaluates it. This module refuses whatever is not about the fields of one record: other tables, files,
and functions that give another value every time. Rows of parquet and Arrow are compared as they are stored, before they
become JSON.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..arguments import instance, param
from ..errors import ArgumentError, FormatError, MissingExtraError

_ALLOWED = frozenset("BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR TYPE".split())
_STABLE = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"


class Where:
    """A condition. It does not select a record that makes it NULL in SQL, for example because the record lacks a field.

    SQL takes `a` and `A` for the same name, but records do not. So DuckDB gets the values of a field in a column
    with a name of its own: f0, f1, ...

    Attributes:
        names: the fields that the condition names. They are fields of the record itself, not of objects in it.

    Raises:
        ArgumentError: it is not a condition on fields. MissingExtraError: DuckDB or pyarrow is not installed.
    """

    def __init__(self, condition: str) -> None:
        try:
            import duckdb
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("selecting records needs packages: pip install 'pybpe[where]'") from None
        self._condition, self._failures = condition, duckdb.Error
        self._connection: Any = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        query = self._parsed("SELECT true FROM fields")
        found, plain = (self._parsed(text)["statements"][0]["node"] for text in (f"SELECT ({condition}\n)", "SELECT 1"))
        same = plain.keys() - {"select_list", "from_table"}
        if found.get("from_table", {}).get("type") != "EMPTY" or any(found[key] != plain[key] for key in same):
            raise self._refusal("is more than a condition")
        (expression,) = found["select_list"]
        nodes = list(_nodes(expression))
        stable = {name for (name,) in self._connection.execute(_STABLE).fetchall()}
        for node in nodes:
            name = node.get("function_name")
            if node["class"] not in _ALLOWED or (node["class"] == "FUNCTION" and name not in stable):
                raise self._refusal(f"{name or node['class'].lower()} is not about the fields of one record")
        fields = [node for node in nodes if node["class"] == "COLUMN_REF"]
        self._paths = sorted({tuple(node["column_names"]) for node in fields})
        self.names = sorted({path[0] for path in self._paths})
        for node in fields:
            node["column_names"] = [f"f{self._paths.index(tuple(node['column_names']))}"]
        query["statements"][0]["node"]["select_list"] = [expression]
        self._query = self._connection.execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(query)]).fetchall()[
            0
        ][0]

    def _parsed(self, query: str) -> Any:
        parsed = json.loads(self._connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0])
        if parsed["error"]:
            raise self._refusal(parsed["error_message"])
        return parsed

    def of_records(self, records: Iterable[Mapping[str, Any]]) -> tuple[list[bool], set[str]]:
        """Returns which of some records of JSON are selected, and which of `names` they have."""
        import pyarrow

        columns: list[list[Any]] = [[] for _ in self._paths]
        found, count = set[str](), 0
        for record in records:
            count += 1
            found.update(name for name in self.names if name in record)
            for path, column in zip(self._paths, columns):
                value: Any = record
                for name in path:
                    value = value.get(name) if isinstance(value, dict) else None
                column.append(None if value != value else value)  # NaN
        arrays = []
        for path, values in zip(self._paths, columns):
            try:
                arrays.append(pyarrow.array(values))
            except (pyarrow.ArrowException, OverflowError) as error:
                told = f"the field {'.'.join(path)!r} has values of different kinds, or too large ones"
                raise FormatError(f"{param(where=self._condition)}: {told} ({error})") from None
        return self._kept(arrays, count), found

    def of_batch(self, batch: Any) -> list[bool]:
        """Returns which rows of a record batch are selected."""
        import pyarrow
        from pyarrow import compute

        arrays = []
        for name, *inner in self._paths:
            if batch.schema.names.count(name) != 1:
                raise self._refusal(f"no column {name!r}, or several; the columns are {', '.join(batch.schema.names)}")
            column = batch.column(batch.schema.get_field_index(name))
            for part in inner:
                try:
                    column = compute.struct_field(column, part)
                except (pyarrow.ArrowException, NotImplementedError):
                    raise self._refusal(f"the column {name!r} has no {part!r}, or several") from None
            if pyarrow.types.is_floating(column.type):  # NaN stands for no value, and SQL takes it for a large one
                column = compute.if_else(compute.is_nan(column), None, column)
            arrays.append(column)
        return self._kept(arrays, len(batch))

    def _kept(self, arrays: list[Any], count: int) -> list[bool]:
        import pyarrow

        names = [f"f{number}" for number in range(len(arrays))]
        # The last column is there because a condition may name no field.
        table = pyarrow.table([*arrays, pyarrow.nulls(count)], [*names, "rows"])
        try:
            self._connection.register("fields", table)
            result = self._connection.sql(self._query).to_arrow_table().column(0)
        except self._failures as error:
            raise self._refusal(self._with_names(str(error))) from None
        if str(result.type) not in ("bool", "null"):
            raise self._refusal(f"is not a condition, but has values of the kind {result.type}")
        return [value is True for value in result.to_pylist()]

    def _with_names(self, told: str) -> str:
        """Returns a message of DuckDB with the names of the fields."""
        return re.sub(r"\bf(\d+)\b", lambda found: ".".join(self._paths[int(found[1])]), told.split("LINE 1")[0])

    def _refusal(self, problem: str) -> ArgumentError:
        return ArgumentError(f"{param(where=self._condition)}: {' '.join(problem.split())[:300]}")


@lru_cache(maxsize=8)
def _made(condition: str, process: int, thread: int) -> Where:
    return Where(condition)


def where_of(condition: str) -> Where:
    """Returns a condition for this thread. It is made once, which takes 40 ms. DuckDB's connection is neither for other
    threads nor for the child of a fork.

    Raises:
        ArgumentError, MissingExtraError: as Where.
    """
    instance("where", condition, str, "a condition in SQL, such as \"score > 3 and language == 'en'\"")
    return _made(condition, os.getpid(), threading.get_ident())


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    """Yields the parts of an expression."""
    if isinstance(tree, dict) and "class" in tree:
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(part)
