"""A recipe: the sources of a mixture, and how much of each goes into which phase. See docs/mixing.md.

seed = 1
tokens = 2_000_000_000

[sources.english]
data = "english"          # a folder that binarize wrote
weight = 0.9

[sources.code]
inputs = ["src/**/*.c"]   # what binarize reads
documents = "file"
weight = 0.1
"""

from __future__ import annotations

import glob
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ... import _binding
from ...arguments import is_url, shown, without_secrets
from ...errors import ArgumentError, FormatError
from ...reading.options import ReadOptions
from ...reading.paths import STDIN, path_list
from ...reading.splits import SplitOptions
from ...reading.streams import read_file

AMOUNTS = ("weight", "tokens", "epochs")
ALL = "all"
MAX_EPOCHS = 4.0  # Muennighoff et al., "Scaling Data-Constrained Language Models" (2023): up to 4 cost little
_READ = ("documents", "text_key", "encoding")
_SOURCE = ("data", "inputs", "max_epochs", "split_by", *_READ, *AMOUNTS)
_PHASE = ("name", "tokens", "sources")
_RECIPE = ("seed", "tokens", "splits", "sources", "phases")


@dataclass(frozen=True)
class SourceAmount:
    """How much of a source a phase gets."""

    kind: str  # one of AMOUNTS
    value: Fraction  # the share of the phase's tokens; a number of tokens; or a number of passes over the source


@dataclass(frozen=True)
class Source:
    """A source of documents.

    Attributes:
        name: its name.
        data: a folder that binarize wrote; or None.
        inputs: otherwise, what binarize reads.
        read, split: how to read it.
        max_epochs: how often it may be repeated by a weight or a number of tokens.
        limits_epochs: whether the recipe gives max_epochs. Otherwise it does not limit `epochs`.
    """

    name: str
    data: str | None = None
    inputs: tuple[str, ...] = ()
    read: ReadOptions = field(default_factory=ReadOptions)
    split: SplitOptions = field(default_factory=SplitOptions)
    max_epochs: Fraction = Fraction(MAX_EPOCHS)
    limits_epochs: bool = False


@dataclass(frozen=True)
class Phase:
    """A part of the training, in which documents are shuffled."""

    name: str
    tokens: int | None  # its size; None is the sum of the amounts
    amounts: Mapping[str, SourceAmount]  # by the name of the source


@dataclass(frozen=True)
class Recipe:
    """A mixture.

    Attributes:
        seed: chooses the order of everything.
        sources, phases: see their classes.
        content: the recipe as it was given, as JSON values, for the manifest.
    """

    seed: int
    sources: tuple[Source, ...]
    phases: tuple[Phase, ...]
    content: Mapping[str, Any]

    def with_seed(self, seed: int | None) -> Recipe:
        """Returns the recipe with another seed, unless it is None."""
        if seed is None:
            return self
        return replace(self, seed=seed, content={**self.content, "seed": seed})


def load_recipe(recipe: _binding.PathLike | Mapping[str, Any]) -> Recipe:
    """Reads a recipe: a TOML file, or the same content as a mapping. Paths in a file are relative to its folder; those
    in a mapping to the current folder.

    Raises:
        FileError: the file cannot be read. FormatError: it is not TOML. ArgumentError: it is not a recipe.
    """
    if isinstance(recipe, Mapping):
        return _Reader("recipe", "").recipe(recipe)
    path = _binding.path_text(recipe)
    return _Reader(path, os.path.dirname(path)).recipe(_toml(read_file(path), path))


def _toml(data: bytes, path: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # pragma: no cover (Python 3.10)
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode("utf-8"))
    except ValueError as error:  # also if it is not UTF-8
        raise FormatError(f"{path}: not a TOML file: {error}") from None


class _Reader:
    """Checks what a recipe contains.

    Args:
        name: the recipe's, for errors.
        folder: what paths are relative to.
    """

    def __init__(self, name: str, folder: str) -> None:
        self._name, self._folder = name, folder

    def recipe(self, content: Any) -> Recipe:
        """Returns the recipe."""
        table = self._table(content, "", _RECIPE)
        splits = table.get("splits", (8, 1, 1))
        sources = self._nonempty(table.get("sources"), "sources")
        found = tuple(self._source(name, value, splits) for name, value in sources.items())
        if "splits" in table and not any(source.inputs for source in found):
            raise self._error("splits", "is only for inputs: folders of tokens have their splits already")
        phases = self._phases(table, sources)
        return Recipe(self._integer(table.get("seed", 0), "seed", None), found, phases, _plain(content))

    def _source(self, name: str, content: Any, splits: Any) -> Source:
        where = f"sources.{name}"
        table = self._table(content, where, _SOURCE)
        if ("data" in table) == ("inputs" in table):
            raise self._error(where, "needs either data, a folder that binarize wrote, or inputs, which binarize reads")
        most = self._number(table.get("max_epochs", MAX_EPOCHS), f"{where}.max_epochs")
        limits = "max_epochs" in table
        if "data" in table:
            for key in ("split_by", *_READ):
                if key in table:
                    raise self._error(f"{where}.{key}", "is only for inputs: the folder's tokens are used as they are")
            return Source(name, self._paths(table["data"], where)[0], max_epochs=most, limits_epochs=limits)
        read = {key: table[key] for key in _READ if key in table}
        inputs = table["inputs"] if isinstance(table["inputs"], list) else [table["inputs"]]
        paths = tuple(path for given in inputs for path in self._paths(given, where))
        if not paths:
            raise self._error(where, "inputs is empty")
        try:
            split = SplitOptions(splits, table.get("split_by", "hash"))
            return Source(name, None, paths, ReadOptions(**read), split, most, limits)
        except ArgumentError as error:
            raise self._error(where, str(error)) from None

    def _paths(self, given: Any, where: str) -> list[str]:
        if not isinstance(given, (str, os.PathLike)) or not os.fspath(given) or given == STDIN:
            raise self._error(where, f"data and inputs must be paths, not {shown(given)}")
        folder = glob.escape(self._folder) if glob.has_magic(os.fspath(given)) else self._folder
        return [path if is_url(path) else os.path.join(folder, path) for path in path_list(given)]

    # ------------------------------------------------------------------------------------------------
    # Phases and amounts

    def _phases(self, table: Mapping[str, Any], sources: Mapping[str, Any]) -> tuple[Phase, ...]:
        phases = table.get("phases")
        if phases is None:
            tokens = self._optional_tokens(table, "tokens")
            return (Phase("train", tokens, self._amounts(sources, "sources", _SOURCE)),)
        if not isinstance(phases, (list, tuple)) or not phases:
            raise self._error("phases", "must be a list of tables, [[phases]]")
        if "tokens" in table:
            raise self._error("tokens", "each phase has its own: write tokens in the phases")
        for name, source in sources.items():
            for kind in AMOUNTS:
                if kind in source:
                    raise self._error(f"sources.{name}.{kind}", "write amounts in the phases, since there are some")
        found = tuple(self._phase(number, phase, sources) for number, phase in enumerate(phases, 1))
        for name in sources:
            if not any(name in phase.amounts for phase in found):
                raise self._error(f"sources.{name}", "no phase uses it: remove it")
        return found

    def _phase(self, number: int, content: Any, sources: Mapping[str, Any]) -> Phase:
        where = f"phases[{number}]"
        table = self._table(content, where, _PHASE)
        amounts = self._nonempty(table.get("sources"), f"{where}.sources")
        for name in amounts:
            if name not in sources:
                raise self._error(f"{where}.sources.{name}", f"there is no source {name!r} in [sources]")
        name = table.get("name", f"phase {number}")
        if not isinstance(name, str):
            raise self._error(f"{where}.name", f"must be a string, not {shown(name)}")
        tokens = self._optional_tokens(table, f"{where}.tokens")
        return Phase(name, tokens, self._amounts(amounts, f"{where}.sources", AMOUNTS))

    def _amounts(self, tables: Mapping[str, Any], where: str, known: tuple[str, ...]) -> dict[str, SourceAmount]:
        return {name: self._amount(table, f"{where}.{name}", known) for name, table in tables.items()}

    def _amount(self, content: Any, where: str, known: tuple[str, ...]) -> SourceAmount:
        table = self._table(content, where, known)
        kinds = [kind for kind in AMOUNTS if kind in table]
        if len(kinds) != 1:
            raise self._error(where, f"needs one of weight, tokens or epochs, but has {' and '.join(kinds) or 'none'}")
        kind, value = kinds[0], table[kinds[0]]
        if value == ALL and kind != "weight":
            return SourceAmount("epochs", Fraction(1))
        if kind == "tokens":
            return SourceAmount(kind, Fraction(self._integer(value, f"{where}.tokens", 1)))
        return SourceAmount(kind, self._number(value, f"{where}.{kind}"))

    # ------------------------------------------------------------------------------------------------
    # Values

    def _table(self, content: Any, where: str, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(content, Mapping):
            raise self._error(where or "its content", f"must be a table, not {shown(content)}")
        for key in content:
            if key not in known:
                raise self._error(f"{where}.{key}".lstrip("."), f"is unknown here; known are {', '.join(known)}")
        return content

    def _nonempty(self, content: Any, where: str) -> Mapping[str, Any]:
        if not isinstance(content, Mapping) or not content or not all(isinstance(name, str) for name in content):
            raise self._error(where, "must be a table with at least one source")
        return content

    def _optional_tokens(self, table: Mapping[str, Any], where: str) -> int | None:
        return self._integer(table["tokens"], where, 1) if "tokens" in table else None

    def _integer(self, value: Any, where: str, least: int | None) -> int:
        is_integer = isinstance(value, int) or (isinstance(value, float) and value.is_integer())  # such as 1e9
        if isinstance(value, bool) or not is_integer or (least is not None and value < least):
            raise self._error(where, f"must be an integer{'' if least is None else ' above 0'}, not {shown(value)}")
        return int(value)

    def _number(self, value: Any, where: str) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise self._error(where, f"must be a number above 0, not {shown(value)}")
        return Fraction(str(value))  # the decimal that was written, not the nearest float

    def _error(self, where: str, fault: str) -> ArgumentError:
        return ArgumentError(f"{self._name}: {where}: {fault}")


def _plain(content: Any) -> Any:
    """Returns a recipe as JSON values. The manifest has them, so URLs are without their secrets."""
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    content = os.fspath(content) if isinstance(content, os.PathLike) else content
    return without_secrets(content) if isinstance(content, str) else content
