"""The steps that `clean` runs: its options as one object."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..arguments import instance, shown
from ..errors import ArgumentError
from ..model import END_OF_TEXT
from ..normalize import check_normalizer
from ..reading.documents import Kinds
from ..reading.options import ReadOptions
from .filters import Filters
from .language import check_languages
from .near_duplicates import check_near_dedup
from .pii import KINDS, check_kinds

DEDUP = ("exact", "normalized")


class Scorer(NamedTuple):
    """A user's detector or classifier: documents with a score above max_score are dropped.

    Attributes:
        name: the reason that the report gives.
        function: text -> score, any number. Worker processes must be able to import it.
        max_score: the highest score that is kept.
    """

    name: str
    function: Callable[[str], float]
    max_score: float

    @classmethod
    def all_of(cls, given: Any) -> tuple[Scorer, ...]:
        """Returns scorers from a list of (name, function, max_score). Raises ArgumentError for anything else."""
        instance("scorers", given, Iterable, "a list of (name, function, max_score)")
        return tuple(map(cls.of, given))

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
    """What `clean` does with documents. The fields are its keyword arguments, which errors name.

    Raises:
        ArgumentError: a value is invalid, or needs another one.
        MissingExtraError: a step needs a package that is not installed.
    """

    read: ReadOptions
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
        self.kinds  # noqa: B018  refuses what cannot separate documents
        check_normalizer(self.normalizer)
        instance("filters", self.filters, Filters, "corpus.Filters, such as Filters.gopher()")
        self._check_languages()
        check_kinds(self.scrub_pii)
        if self.dedup not in (None, *DEDUP):
            raise ArgumentError(f"dedup must be one of {', '.join(DEDUP)}, or None, not {shown(self.dedup)}")
        if self.near_dedup is not None:
            check_near_dedup(self.near_dedup)
        elif self.keep_near:
            raise ArgumentError("keep_near needs near_dedup, which says how similar near duplicates are")

    def _check_languages(self) -> None:
        if self.languages:
            check_languages(self.languages)
        instance("min_confidence", self.min_confidence, (int, float), "a number from 0 to 1")
        if not 0 <= self.min_confidence <= 1:
            raise ArgumentError(f"min_confidence must be from 0 to 1, not {self.min_confidence}")
        if self.min_confidence and not self.languages:
            raise ArgumentError("min_confidence needs languages: name the languages to keep")

    @property
    def kinds(self) -> Kinds:
        """How documents are separated."""
        return Kinds(self.read, END_OF_TEXT)

    def identity(self) -> tuple[object, ...]:
        """Returns everything that the results of tasks depend on. (keep_near is applied to them afterwards.)"""
        scorers = [
            (s.name, s.function.__module__, getattr(s.function, "__qualname__", ""), s.max_score) for s in self.scorers
        ]
        rest = {
            # A task in which nothing was skipped is the same.
            "read": replace(self.read, on_error="stop", skipped=None),
            "normalizer": self.normalizer,
            "filters": self.filters,
            "languages": self.languages,
            "min_confidence": self.min_confidence,
            "pii": self.scrub_pii,
            "dedup": self.dedup,
            "dedup_paragraphs": self.dedup_paragraphs,
            "near_dedup": self.near_dedup,
        }
        return rest, scorers


def strings(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Returns a list that was passed as an argument. Raises ArgumentError for one string, or something else."""
    if isinstance(values, str):
        raise ArgumentError(f"{name} must be a list such as [{values!r:.80}], not a string")
    instance(name, values, Iterable, "a list of strings")
    return tuple(values)


def kinds_of(scrub_pii: bool | Iterable[str]) -> tuple[str, ...]:
    """Returns the kinds of personal data to replace."""
    if isinstance(scrub_pii, bool):
        return KINDS if scrub_pii else ()
    return strings("scrub_pii", scrub_pii)
