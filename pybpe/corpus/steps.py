"""The steps that `clean` runs: its options as one object, the language of a text, and conditions on records."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..arguments import instance, param, shown
from ..errors import ArgumentError, FormatError, MissingExtraError
from ..model import END_OF_TEXT
from ..normalize import check_normalizer
from ..reading.documents import CLUSTER, Kinds
from ..reading.inputs import ReadOptions
from .filters import Filters
from .pii import check_kinds

DEDUP = ("exact", "normalized")
LANGUAGE, CONFIDENCE = "pybpe_language", "pybpe_language_confidence"  # the fields that records get
UNKNOWN = "und"  # ISO 639-2's code for "undetermined"
_SAMPLE = 300  # characters per part


@lru_cache(maxsize=1)
def _detector() -> Any:
    try:
        import eldc
    except ImportError:
        raise MissingExtraError("detecting languages needs a package: pip install 'pybpe[langid]'") from None
    eldc.init()
    return eldc


def detect_language(text: str) -> tuple[str, float]:
    """Returns a text's language as an ISO 639-1 code, and the confidence from 0 to 1. eldc knows 60 languages, and
    downloads nothing.

    Long text is judged by three parts: the beginning, the middle and the end. Returns UNKNOWN with confidence 0 for a
    text without words, or one that could equally be in another language.

    Raises:
        MissingExtraError: eldc is not installed.
    """
    detector = _detector()
    instance("text", text, str, "a str")
    if len(text) > 3 * _SAMPLE:
        middle = (len(text) - _SAMPLE) // 2
        text = "\n".join((text[:_SAMPLE], text[middle : middle + _SAMPLE], text[-_SAMPLE:]))
    # eldc stops at a NUL, and rejects lone surrogates.
    clean = text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
    result = detector.detect_details(clean)
    if result.language == UNKNOWN:
        return UNKNOWN, 0.0
    return result.language, float(result.scores[result.language])


class Scorer(NamedTuple):
    """A user's detector or classifier: documents with a score above max_score are dropped."""

    name: str  # the reason that the report gives
    function: Callable[[str], float]  # text -> score, any number. Worker processes must be able to import it.
    max_score: float  # the highest score that is kept

    @classmethod
    def of(cls, given: Any) -> Scorer:
        """Returns a scorer from (name, function, max_score). Raises ArgumentError for anything else."""
        parts = tuple(given) if isinstance(given, (tuple, list)) else ()
        if len(parts) != 3 or not isinstance(parts[0], str) or not callable(parts[1]):
            raise ArgumentError(f"a scorer must be (name, function, max_score), not {shown(given)}")
        if isinstance(parts[2], bool) or not isinstance(parts[2], (int, float)):
            raise ArgumentError(f"the max_score of scorer {parts[0]!r} must be a number, not {shown(parts[2])}")
        return cls(*parts)

    def score(self, text: str) -> float:
        """Returns the score. Raises ArgumentError if the function fails or does not return a number."""
        try:
            score = float(self.function(text))
        except Exception as error:
            raise ArgumentError(f"scorer {self.name!r} failed: {type(error).__name__}: {error}") from error
        if math.isnan(score):
            raise ArgumentError(f"scorer {self.name!r} returned NaN instead of a number")
        return score


@dataclass(frozen=True)
class Steps:
    """The steps of `clean`. The fields are its keyword arguments, which errors name. Raises ArgumentError
    for a value that is invalid or needs another one, and MissingExtraError if a step needs a package that is not
    installed."""

    read: ReadOptions
    where: str | None
    normalizer: str | None
    filters: Filters
    languages: tuple[str, ...]
    min_confidence: float
    scorers: tuple[Scorer, ...]
    scrub_pii: tuple[str, ...]
    dedup: str | None
    near_dedup: float | None
    keep_near: bool
    dedup_paragraphs: bool

    def __post_init__(self) -> None:
        where = self.kinds.where  # refuses a text that cannot separate documents, or is not a condition
        check_normalizer(self.normalizer)
        instance("filters", self.filters, Filters, "corpus.Filters, such as Filters.gopher()")
        self._check_languages()
        check_kinds(self.scrub_pii)
        if self.dedup not in (None, *DEDUP):
            raise ArgumentError(f"{param('dedup')} must be one of {', '.join(DEDUP)}, not {shown(self.dedup)}")
        near = self.near_dedup
        if near is None and self.keep_near:
            raise ArgumentError(
                f"{param('keep_near')} needs {param('near_dedup')}, which says how similar near duplicates are"
            )
        if near is not None and (isinstance(near, bool) or not isinstance(near, (int, float)) or not 0 < near <= 1):
            raise ArgumentError(
                f"{param('near_dedup')} must be a similarity above 0 and at most 1, such as 0.8, not {near!r}"
            )
        for step, field in ((near, CLUSTER), (self.languages, LANGUAGE), (self.languages, CONFIDENCE)):
            if step and self.read.text_key == field:
                raise ArgumentError(f"{field!r} is a field that this call writes: rename the field that holds the text")
            if step and where is not None and field in where.names:
                raise ArgumentError(
                    f"{param(where=self.where)}: {field!r} is a field that this call writes: select in another call"
                )

    def _check_languages(self) -> None:
        known = _detector().LANGUAGES if self.languages else ()
        for code in self.languages:
            if code not in known:
                raise ArgumentError(f"unknown language {code!r}; the languages are {', '.join(known)}")
        instance("min_confidence", self.min_confidence, (int, float), "a number from 0 to 1")
        if not 0 <= self.min_confidence <= 1:
            raise ArgumentError(f"{param('min_confidence')} must be from 0 to 1, not {self.min_confidence}")
        if self.min_confidence and not self.languages:
            raise ArgumentError(f"{param('min_confidence')} needs {param('languages')}: name the languages to keep")

    @property
    def kinds(self) -> Kinds:
        """How documents are separated, and which rows are selected."""
        where = None if self.where is None else where_of(self.where)
        return Kinds(self.read, END_OF_TEXT, columns=None, where=where)

    def check_fields(self, found: Collection[str]) -> None:
        """Raises ArgumentError unless some record has all fields that the condition names."""
        for name in where_of(self.where).names if self.where is not None else ():
            if name not in found:
                raise ArgumentError(f"{param(where=self.where)}: no record has the field {name!r}")


def strings(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Returns a list that was passed as an argument. Raises ArgumentError for one string, or something else."""
    if isinstance(values, str):
        raise ArgumentError(f"{param(name)} must be a list such as [{values!r:.80}], not a string")
    instance(name, values, Iterable, "a list of strings")
    return tuple(values)


# ----------------------------------------------------------------------------------------------------
# Conditions in SQL that select records, such as "score > 3 and language == 'en'".
#
# DuckDB parses and evaluates them. This code refuses whatever is not about the fields of one record: other tables,
# files, and functions that give another value every time. Rows of parquet and Arrow are compared as they are stored,
# before they become JSON.


_ALLOWED = frozenset("BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR TYPE".split())
_STABLE = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"


class Where:
    """A condition. It does not select a record that makes it NULL in SQL, for example because the record lacks a field.

    SQL takes `a` and `A` for the same name, but records do not. So DuckDB gets the values of a field in a column
    with a name of its own: f0, f1, ...

    Attributes:
        names: the fields that the condition names, such as "score" or "meta.score".

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
            if name == "isnan":
                raise self._refusal("isnan is never true, because NaN counts as null here: use `is null`")
            if node["class"] not in _ALLOWED or (node["class"] == "FUNCTION" and name not in stable):
                raise self._refusal(f"{name or node['class'].lower()} is not about the fields of one record")
        fields = [node for node in nodes if node["class"] == "COLUMN_REF"]
        self._paths = sorted({tuple(node["column_names"]) for node in fields})
        self.names = [".".join(path) for path in self._paths]
        for node in fields:
            node["column_names"] = [f"f{self._paths.index(tuple(node['column_names']))}"]
        query["statements"][0]["node"]["select_list"] = [expression]
        self._query = self._connection.execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(query)]).fetchall()[
            0
        ][0]

    def _parsed(self, query: str) -> Any:
        parsed = json.loads(self._connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0])
        if parsed["error"]:
            told = parsed["error_message"]
            quoted = '; put a field whose name is a word of SQL in double quotes, such as "when"'
            raise self._refusal(told + quoted if told.startswith("syntax error") else told)
        return parsed

    def of_records(self, records: Iterable[Mapping[str, Any]]) -> tuple[list[bool], set[str]]:
        """Returns which of some records of JSON are selected, and which of `names` they have."""
        import pyarrow

        columns: list[list[Any]] = [[] for _ in self._paths]
        found, count = set[str](), 0
        for record in records:
            count += 1
            for path, name, column in zip(self._paths, self.names, columns):
                value: Any = record
                for part in path[:-1]:
                    value = value.get(part) if isinstance(value, dict) else None
                if isinstance(value, dict) and path[-1] in value:
                    found.add(name)
                value = value.get(path[-1]) if isinstance(value, dict) else None
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
            told = str(error).split("LINE 1")[0]
            told = re.sub(r"\bf(\d+)\b", lambda column: ".".join(self._paths[int(column[1])]), told)
            raise self._refusal(told) from None
        if str(result.type) not in ("bool", "null"):
            raise self._refusal(f"is not a condition, but has values of the kind {result.type}")
        return [value is True for value in result.to_pylist()]

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
