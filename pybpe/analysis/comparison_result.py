"""The result of comparing tokenizers, as data and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .tables import Table, as_text, cut, page
from .tally import TextSize

ALL = "all"  # the name of all texts together

# The columns that show Measures: title, attribute, format.
_COLUMNS = (
    ("tokens", "tokens", ",d"),
    ("bytes/token", "bytes_per_token", ".3f"),
    ("tokens/word", "tokens_per_word", ".3f"),
    ("tokens/char", "tokens_per_character", ".3f"),
    ("Renyi", "renyi_efficiency", ".3f"),
    ("used", "used_share", ".1%"),
    ("never", "never", ",d"),
    ("rare", "rare", ",d"),
    ("not UTF-8", "not_utf8_share", ".1%"),
    ("Zipf", "zipf_slope", ".2f"),
)


@dataclass(frozen=True)
class VocabularyFacts:
    """Facts about a vocabulary that do not depend on a text.

    Attributes:
        ordinary: number of tokens that can occur in a text: all except special tokens.
        special: number of special tokens.
        not_utf8: number of ordinary tokens of several bytes that are not valid UTF-8, such as parts of characters.
        unreachable: number of ordinary tokens that are UTF-8, but that encoding their own text does not give.
    """

    ordinary: int
    special: int
    not_utf8: int
    unreachable: int


@dataclass(frozen=True)
class Measures:
    """Measures of a tokenizer on a text. A measure that is undefined for the text is None.

    Attributes:
        tokens: number of tokens of the text.
        bytes_per_token, tokens_per_word, tokens_per_character: see TextSize for what they count.
        renyi_efficiency: Renyi entropy (alpha = 2.5) of the tokens, divided by log2(all ordinary tokens).
        renyi_efficiency_used: the same entropy, divided by log2(ordinary tokens that occur).
        used: number of ordinary tokens that occur.
        used_share: `used` as a share of all ordinary tokens.
        never: number of ordinary tokens that do not occur.
        rare: number of ordinary tokens that occur, but fewer than 100 times.
        not_utf8_share: share of the text's tokens that are not valid UTF-8 on their own.
        zipf_slope, zipf_r2: the line that fits log(count) over log(rank): see pybpe.analysis.measures.Zipf.
    """

    tokens: int
    bytes_per_token: float | None
    tokens_per_word: float | None
    tokens_per_character: float | None
    renyi_efficiency: float | None
    renyi_efficiency_used: float | None
    used: int
    used_share: float
    never: int
    rare: int
    not_utf8_share: float | None
    zipf_slope: float | None
    zipf_r2: float | None


@dataclass(frozen=True)
class Fairness:
    """How differently a tokenizer treats languages.

    Attributes:
        parity: language -> the number of its tokens divided by the first language's. None if the texts are not
            parallel.
        gini_tokens: Gini coefficient of the tokens of each language. None if the texts are not parallel.
        gini_per_character, gini_per_byte: Gini coefficient of the tokens per character, and per byte.
    """

    parity: dict[str, float] | None
    gini_tokens: float | None
    gini_per_character: float
    gini_per_byte: float


@dataclass(frozen=True)
class Comparison:
    """The result of `pybpe.compare`. print() shows it as a table.

    Attributes:
        texts: language -> TextSize.
        vocabularies: tokenizer -> VocabularyFacts.
        measures: tokenizer -> language, or "all" -> Measures.
        fairness: tokenizer -> Fairness. Empty if there is only one language.
        parallel: whether the texts of all languages have the same number of lines. pybpe then assumes that they are
            translations of each other.
        samples: a number or a piece of code -> tokenizer -> its tokens, as text. A tokenizer that has no token for one
            of the bytes is missing.
        notes: facts that a reader of the numbers should know.
    """

    texts: dict[str, TextSize]
    vocabularies: dict[str, VocabularyFacts]
    measures: dict[str, dict[str, Measures]]
    fairness: dict[str, Fairness]
    parallel: bool
    samples: dict[str, dict[str, list[str]]]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data, with fractions rounded to 6 digits."""
        plain: dict[str, Any] = _rounded(asdict(self))
        return plain

    def __str__(self) -> str:
        return as_text(self.tables(), self.code(), self.notes)

    def to_html(self) -> str:
        """Returns a page that shows the comparison, as self-contained HTML without a script."""
        return page(" · ".join(self.measures), self.tables(), self.code(), self.notes)

    def tables(self) -> list[Table]:
        """Returns the tables that show the comparison."""
        tables = [self._texts(), self._vocabularies(), *self._measures()]
        if self.fairness:
            tables.append(self._fairness())
        return [*tables, self._numbers()]

    def code(self) -> list[dict[str, list[str]]]:
        """Returns the samples of several lines: tokenizer -> tokens."""
        return [found for sample, found in self.samples.items() if "\n" in sample]

    def _texts(self) -> Table:
        table = Table("Texts", ["text", "bytes", "characters", "words", "lines"])
        for name, size in self.texts.items():
            table.add(name, *(f"{n:,}" for n in (size.bytes, size.characters, size.words, size.lines)))
        return table

    def _vocabularies(self) -> Table:
        table = Table("Vocabularies", ["vocabulary", "tokens", "special", "not UTF-8", "unreachable"])
        for name, facts in self.vocabularies.items():
            table.add(name, *(f"{n:,}" for n in (facts.ordinary, facts.special, facts.not_utf8, facts.unreachable)))
        return table

    def _measures(self) -> Iterator[Table]:
        """Yields a table for each language, and one for all if there are several."""
        for language in (*self.texts, *((ALL,) if len(self.texts) > 1 else ())):
            table = Table(f"On {language}", [f"on {language}", *(title for title, _, _ in _COLUMNS)])
            for name, found in self.measures.items():
                table.add(name, *(_shown(getattr(found[language], field), form) for _, field, form in _COLUMNS))
            yield table

    def _fairness(self) -> Table:
        how = "translations of each other, line by line" if self.parallel else "not translations of each other"
        table = Table(f"Fairness (the texts are {how})", ["fairness", "Gini/char", "Gini/byte"])
        if self.parallel:
            table.titles.extend(["Gini", *(f"parity {language}" for language in self.texts)])
        for name, facts in self.fairness.items():
            cells = [_shown(facts.gini_per_character, ".3f"), _shown(facts.gini_per_byte, ".3f")]
            if facts.parity is not None:
                cells += [_shown(facts.gini_tokens, ".3f"), *(f"{ratio:.2f}" for ratio in facts.parity.values())]
            table.add(name, *cells)
        return table

    def _numbers(self) -> Table:
        table = Table("Numbers", ["sample", *self.measures], left=True)
        for sample, found in self.samples.items():
            if "\n" not in sample:
                table.add(sample, *(cut(found.get(name, ["-"])) for name in self.measures))
        return table


def _shown(value: float | None, form: str) -> str:
    """Returns a number in a format, or "-" for None."""
    return "-" if value is None else format(value, form)


def _rounded(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_rounded(value) for value in data]
    if isinstance(data, float) and data and math.isfinite(data):
        return float(f"{data:.6g}")
    return data
