"""Heuristic filters: numeric measures of documents, and limits on them.

Sources of the rules and thresholds:

- Gopher: Rae et al. 2021, "Scaling Language Models" (arXiv:2112.11446), appendix A.1.1: quality and repetition.
- C4: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (arXiv:1910.10683), section 2.2.
- RefinedWeb: Penedo et al. 2023 (arXiv:2306.01116), whose document filters are Gopher's.
- FineWeb: Penedo et al. 2024 (arXiv:2406.17557), section 3.6, three filters on lines.
- ROOTS: Laurencon et al. 2022 (arXiv:2303.03915): shares of special characters, repeated words.

Shares are of characters, and of words as measures.py defines them, so that the limits mean the same for Chinese.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from .. import _binding
from .._binding import PathLike, path_text
from .._lazy import Array
from ..arguments import instance, option, param, whole_number
from ..errors import ArgumentError
from ..reading.streams import read_toml
from .measures import Measures, check_texts

VARIED = ("min_chars", "max_chars", "min_words", "max_words", "max_symbol_ratio", "max_digit_ratio")  # with a flag
_MOST_WORDS = 1000  # the longest n-gram
_NO_SHARES = ("chars", "words", "distinct_words", "mean_word_length", "hashes_per_word")  # all others are from 0 to 1
GOPHER_TOP_NGRAMS = {2: 0.20, 3: 0.18, 4: 0.16}
GOPHER_REPEATED_NGRAMS = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}


@dataclass(frozen=True)
class Filters:
    """Limits on documents. pybpe drops a document that violates a limit, with the name of the first such limit as the
    reason. None means no limit.

    Attributes:
        min_chars, max_chars: number of characters.
        min_words, max_words: number of words. Gopher: 50 to 100,000.
        min_mean_word_length, max_mean_word_length: characters per word, over words in scripts with spaces, if these are
            the majority. Gopher: 3 to 10.
        max_symbol_ratio: the share of non-space characters that are neither letters nor digits ("special" in ROOTS). A
            Chinese character carries as much as several letters, so it counts as LETTERS_PER_UNIT letters. Otherwise,
            Chinese would look as full of symbols as program code. Nearly all paragraphs of English and Chinese books
            are below 0.12. Half the paragraphs of program code are above 0.16.
        max_digit_ratio: the share of non-space characters that are digits.
        max_hashes_per_word: "#" characters and ellipses per word. Gopher: 0.1.
        min_alphabetic_words: share of words that contain a letter. Gopher: 0.8.
        min_distinct_words: number of distinct words, ignoring case.
        max_repeated_words: share of words equal to the text's most frequent word.
        max_repeated_lines: share of lines that repeat an earlier one. Gopher: 0.3.
        max_repeated_line_chars: share of characters in such lines. Gopher: 0.2. FineWeb: 0.1.
        max_repeated_paragraphs: share of paragraphs, separated by blank lines, that repeat an earlier one. Gopher: 0.3.
        max_repeated_paragraph_chars: share of characters in such paragraphs. Gopher: 0.2.
        max_top_ngrams: n -> share of characters in the most frequent n consecutive words. Gopher: GOPHER_TOP_NGRAMS.
        max_repeated_ngrams: n -> share of characters in n consecutive words that occurred before. A character counts
            once. Gopher: GOPHER_REPEATED_NGRAMS.
        max_bullet_lines: share of lines that begin with a bullet. Gopher: 0.9.
        max_ellipsis_lines: share of lines that end with an ellipsis. Gopher: 0.3.
        max_short_lines: share of lines under 30 columns. A Chinese character takes two. FineWeb: 0.67.
        min_terminal_lines: share of lines that end with punctuation. FineWeb: 0.12.

    Only the repeats count, not the first occurrence, like in FineWeb's code.

    Raises:
        ArgumentError: a limit is not a number or is negative, a limit of a share is above 1, a minimum exceeds its
            maximum, or an n is not from 1 to 1000.
    """

    min_chars: int | None = option(None, "characters")
    max_chars: int | None = option(None, "characters")
    min_words: int | None = option(None, "words; two Chinese characters count as one word")
    max_words: int | None = option(None, "words; two Chinese characters count as one word")
    min_mean_word_length: float | None = option(None, "letters per word, in scripts with spaces")
    max_mean_word_length: float | None = option(None, "letters per word, in scripts with spaces")
    max_symbol_ratio: float | None = option(None, "share of characters that are not letters, digits or spaces", "X")
    max_digit_ratio: float | None = option(None, "share of digits among characters", "X")
    max_hashes_per_word: float | None = option(None, "# and ... per word")
    min_alphabetic_words: float | None = option(None, "share of words with a letter")
    min_distinct_words: int | None = option(None, "distinct words")
    max_repeated_words: float | None = option(None, "share of words that are the most frequent one")
    max_repeated_lines: float | None = option(None, "share of lines that repeat an earlier one")
    max_repeated_line_chars: float | None = option(None, "share of characters in such lines")
    max_repeated_paragraphs: float | None = option(None, "share of paragraphs that repeat an earlier one")
    max_repeated_paragraph_chars: float | None = option(None, "share of characters in such paragraphs")
    max_top_ngrams: Mapping[int, float] | None = option(
        None, "share of characters in the most frequent sequence of N words"
    )
    max_repeated_ngrams: Mapping[int, float] | None = option(
        None, "share of characters in sequences of N words that occurred before"
    )
    max_bullet_lines: float | None = option(None, "share of lines that begin with a bullet")
    max_ellipsis_lines: float | None = option(None, "share of lines that end with an ellipsis")
    max_short_lines: float | None = option(None, "share of lines below 30 columns")
    min_terminal_lines: float | None = option(None, "share of lines that end with punctuation")

    def __post_init__(self) -> None:
        for name in ("max_top_ngrams", "max_repeated_ngrams"):
            limits = getattr(self, name)
            instance(name, limits, (Mapping, type(None)), "limits by n, such as {2: 0.2}")
            if limits is not None:
                limits = {whole_number(f"n of {name}", n, 1, _MOST_WORDS): share for n, share in limits.items()}
                object.__setattr__(self, name, limits)
        for name, value in self.limits():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ArgumentError(f"{param(name)} must be a number of at least 0, not {value!r}")
            if value > 1 and name[len("max_") :] not in _NO_SHARES:
                raise ArgumentError(f"{param(name)} is a share: it must be from 0 to 1, not {value!r}")
        for what in ("chars", "words", "mean_word_length"):
            least, most = vars(self)["min_" + what], vars(self)["max_" + what]
            if least is not None and most is not None and least > most:
                raise ArgumentError(
                    f"{param(**{'min_' + what: least})} must not exceed {param(**{'max_' + what: most})}"
                )

    @classmethod
    def gopher(cls, **changes: Any) -> Filters:
        """Returns Gopher's rules, except the one on English stop words. RefinedWeb uses the same rules. `changes`
        override some."""
        rules: dict[str, Any] = {
            "min_words": 50,
            "max_words": 100_000,
            "min_mean_word_length": 3,
            "max_mean_word_length": 10,
            "max_hashes_per_word": 0.1,
            "min_alphabetic_words": 0.8,
            "max_repeated_lines": 0.3,
            "max_repeated_line_chars": 0.2,
            "max_repeated_paragraphs": 0.3,
            "max_repeated_paragraph_chars": 0.2,
            "max_top_ngrams": GOPHER_TOP_NGRAMS,
            "max_repeated_ngrams": GOPHER_REPEATED_NGRAMS,
            "max_bullet_lines": 0.9,
            "max_ellipsis_lines": 0.3,
        }
        return cls(**{**rules, **changes})

    @classmethod
    def fineweb(cls, **changes: Any) -> Filters:
        """Returns Gopher's rules plus FineWeb's rules on lines."""
        rules = {"max_repeated_line_chars": 0.1, "max_short_lines": 0.67, "min_terminal_lines": 0.12}
        return cls.gopher(**{**rules, **changes})

    @classmethod
    def from_file(cls, path: PathLike, **changes: Any) -> Filters:
        """Reads limits from a TOML file, such as `to_toml` returns. `changes` override some.

        Raises:
            ArgumentError: the file has something else than limits. FileError, FormatError: it cannot be read, or is not
            TOML.
        """
        found, name = read_toml(path), path_text(path)
        known = [field.name for field in fields(cls)]
        for key, value in found.items():
            if key not in known:
                meant = get_close_matches(key, known, cutoff=0)
                raise ArgumentError(f"{name}: {key} is no limit; did you mean {meant[0]}?")
            if isinstance(value, Mapping):  # all names in TOML are strings
                found[key] = {int(n) if n.isdecimal() else n: share for n, share in value.items()}
        try:
            return cls(**{**found, **changes})
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error}") from None

    def to_toml(self) -> str:
        """Returns the limits as a TOML file, where limits that are not set are comments."""
        lines = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                value = f"{{ {', '.join(f'{n} = {share}' for n, share in value.items())} }}"
            limit = f"# {field.name} =" if value is None else f"{field.name} = {value}"
            lines.append(f"{limit}  # {field.metadata['help']}")
        return "\n".join(lines) + "\n"

    def limits(self) -> list[tuple[str, Any]]:
        """Returns (name, limit) for every limit that is set. Limits of n-grams have n in their names."""
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                found += [(f"{field.name}_{n}", limit) for n, limit in sorted(value.items())]
            elif value is not None:
                found.append((field.name, value))
        return found

    def reasons(self, texts: Sequence[str]) -> list[str | None]:
        """Returns the reasons why documents are dropped, in order: None for a document that is kept.

        >>> Filters(min_chars=5, max_digit_ratio=0.5).reasons(["hi", "a text", "1234567 a"])
        ['min_chars', None, 'max_digit_ratio']
        """
        encoded = check_texts(texts)
        reasons = self.judge(encoded)[0]
        return [reasons.get(place) for place in range(len(encoded))]

    def judge(self, texts: _binding.Strings) -> tuple[dict[int, str], dict[str, Array], Array]:
        """Returns the reasons by the places of the documents that are dropped, the measures they come from: name ->
        numbers, one per document, and the documents' numbers of characters."""
        reasons: dict[int, str] = {}
        limits = self.limits()
        measures = Measures(texts, [name[4:] for name, _ in limits])
        known = {name[4:]: measures.value(name[4:]) for name, _ in limits}  # without min_ or max_
        for name, limit in limits:
            values = known[name[4:]]
            # NaN means that the measure does not apply to the text: both comparisons are false.
            for i in (values < limit if name.startswith("min_") else values > limit).nonzero()[0].tolist():
                reasons.setdefault(i, name)
        return reasons, known, measures.value("chars")
