"""The steps that `clean` runs: its options as one object, and the language of a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..arguments import instance, param, shown
from ..errors import ArgumentError, MissingExtraError
from ..model import END_OF_TEXT
from ..normalize import check_normalizer
from ..reading.documents import CLUSTER, Kinds
from ..reading.inputs import ReadOptions
from .filters import Filters
from .pii import check_kinds
from .where import where_of

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
    """What `clean` does with documents. The fields are its keyword arguments, which errors name. Raises ArgumentError
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
        where = self.kinds.where  # refuses what cannot separate documents, and what is no condition
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
