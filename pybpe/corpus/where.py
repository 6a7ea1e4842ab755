"""Selects records by a condition in SQL, such as "score > 3 and language == 'en'".

DuckDB parses and evaluates it. This module refuses whatever is not about the fields of one record: other tables, files,
and functions that give another value each time. Rows of parquet and Arrow are compared as they are stored, before they
become JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from ..arguments import instance, param
from ..errors import ArgumentError, FormatError, MissingExtraError

_ALLOWED = frozenset("BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR TYPE".split())
_STABLE = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"


class Where:
    """A condition. A record for which it is NULL in SQL, for example because the record lacks a field, is not selected.

    Attributes:
        names: the fields that the condition names: those of the record itself, not of objects in it.

    Raises:
        ArgumentError: it is not a condition on fields. MissingExtraError: DuckDB or pyarrow is not installed.
    """

    def __init__(self, condition: str) -> None:
        instance("where", condition, str, "a condition in SQL, such as \"score > 3 and language == 'en'\"")
        try:
            import duckdb
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("selecting records needs packages: pip install 'pybpe[where]'") from None
        self._condition, self._failures = condition, duckdb.Error
        self._connection: Any = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        query = f"SELECT 1 FROM records WHERE ({condition}\n)"
        parsed = json.loads(self._connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0])
        if parsed["error"]:
            raise self._refusal(parsed["error_message"])
        nodes = list(_nodes(parsed["statements"][0]["node"]["where_clause"]))
        stable = {name for (name,) in self._connection.execute(_STABLE).fetchall()}
        for node in nodes:
            name = node.get("function_name")
            if node["class"] not in _ALLOWED or (node["class"] == "FUNCTION" and name not in stable):
                raise self._refusal(f"{name or node['class'].lower()} is not about the fields of one record")
        self._paths = sorted({tuple(node["column_names"]) for node in nodes if node["class"] == "COLUMN_REF"})
        self.names = sorted({path[0] for path in self._paths})

    def of_records(self, records: Iterable[Mapping[str, Any]]) -> tuple[list[bool], set[str]]:
        """Returns which of some records of JSON are selected, and which of `names` they have."""
        import pyarrow

        columns: dict[str, list[Any]] = {name: [] for name in self.names}
        found, count = set[str](), 0
        for record in records:
            count += 1
            found.update(name for name in self.names if name in record)
            for name, column in columns.items():
                inner = [path for path in self._paths if path[0] == name]
                column.append(record.get(name) if (name,) in inner else _parts(record, inner).get(name))
        arrays = {}
        for name, values in columns.items():
            try:
                arrays[name] = pyarrow.array(values)
            except (pyarrow.ArrowException, OverflowError) as error:
                told = f"the field {name!r} has values of different kinds, or too large ones"
                raise FormatError(f"{param(where=self._condition)}: {told} ({error})") from None
        arrays["count"] = pyarrow.nulls(count)  # a condition may name no field
        return self._kept(pyarrow.table(arrays)), found

    def of_batch(self, batch: Any) -> list[bool]:
        """Returns which rows of a record batch are selected."""
        import pyarrow
        from pyarrow import compute

        columns = {}
        for name in self.names:
            if batch.schema.names.count(name) != 1:
                raise self._refusal(f"no column {name!r}, or several; the columns are {', '.join(batch.schema.names)}")
            column = batch.column(batch.schema.get_field_index(name))
            if str(column.type) in ("float", "double"):  # NaN stands for no value, and SQL takes it for a large one
                column = compute.if_else(compute.is_nan(column), None, column)
            columns[name] = column
        return self._kept(pyarrow.table({**columns, "count": pyarrow.nulls(len(batch))}))

    def _kept(self, table: Any) -> list[bool]:
        try:
            self._connection.register("records", table)
            query = f"SELECT ({self._condition}\n) FROM records"
            result = self._connection.sql(query).to_arrow_table().column(0)
        except self._failures as error:
            raise self._refusal(str(error)) from None
        if str(result.type) not in ("bool", "null"):
            raise self._refusal(f"is not a condition, but has values of the kind {result.type}")
        return [value is True for value in result.to_pylist()]

    def _refusal(self, problem: str) -> ArgumentError:
        return ArgumentError(f"{param(where=self._condition)}: {' '.join(problem.split())[:300]}")


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    """Yields the parts of an expression."""
    if isinstance(tree, dict) and "class" in tree:
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(part)


def _parts(record: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Returns a record that has just the values at these paths; None where it lacks one."""
    found: dict[str, Any] = {}
    for *outer, last in paths:
        value: Any = record
        for name in (*outer, last):
            value = value.get(name) if isinstance(value, dict) else None
        reduce(lambda inner, name: inner.setdefault(name, {}), outer, found)[last] = value
    return found
