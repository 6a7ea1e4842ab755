"""Word counts as objects and files, made on this machine or on many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import Text, instance, shown, utf8, whole_number
from ..errors import ArgumentError, FormatError
from ..formats import counts_file
from ..model import check_specials, special_ids_of
from ..pattern import Pattern
from ..reading.options import ReadOptions
from .word_counter import CountSettings


class Counts:
    """Words with their counts, and the settings with which they were counted. Immutable.

    `a + b` adds two Counts. `save` and `load` write and read files (pybpe/formats/counts_file.py).
    """

    def __init__(self, words: _binding.Words, settings: CountSettings) -> None:
        self.words = words
        self.settings = settings

    @classmethod
    def from_dict(
        cls, counts: Mapping[Text, int], *, pattern: str = "gpt2", special_tokens: Sequence[str] = ()
    ) -> Counts:
        """Makes Counts from words that were counted elsewhere, with this pattern, and without these special tokens."""
        instance("counts", counts, Mapping, "a Counts, or a dictionary word -> count")
        words: dict[bytes, int] = {}
        for word, count in counts.items():
            data = bytes(utf8(word))
            words[data] = words.get(data, 0) + whole_number(f"the count of {shown(word)}", count, 0, (1 << 64) - 1)
        settings = CountSettings(Pattern(pattern), tuple(special_ids_of(special_tokens)))
        return cls(_binding.Words.from_dict(words), settings)

    def __len__(self) -> int:
        return len(self.words)

    def to_dict(self) -> dict[bytes, int]:
        """Returns a dictionary word -> count."""
        return self.words.to_dict()

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts.merge([self, other])

    @classmethod
    def merge(cls, counts: Iterable[Counts]) -> Counts:
        """Returns the sum of any number of Counts.

        Raises:
            ArgumentError: `counts` is empty, or they were made with different patterns, special tokens, normalizers or
                Unicode tables.
        """
        counts = iter(counts)
        first = next(counts, None)
        if first is None:
            raise ArgumentError("there are no counts to merge: pass at least one Counts")
        instance("counts", first, Counts, "made by count_words")
        table = CountTable(first.settings)
        table.add(first)
        for more in counts:
            table.add(more)
        return table.counts()

    def save(self, path: _binding.PathLike) -> None:
        """Writes a .counts file, atomically. Equal counts give equal bytes."""
        counts_file.write(path, _header(self.settings), counts_file.sorted_entries(self.words))

    @classmethod
    def load(cls, path: _binding.PathLike) -> Counts:
        """Reads a .counts file.

        Raises:
            FileError: the file cannot be read. FormatError: the file is not a .counts file, or is damaged.
        """
        with counts_file.Reader(path) as reader:
            settings = settings_of_header(reader.header, path)
            table = CountTable(settings)
            for blob, lengths, counts in reader.blocks():
                table.add_words(_binding.Words.from_parts(blob, lengths, counts))
            reader.check_end()
        return table.counts()

    def fingerprint(self) -> str:
        """Returns a SHA-256, in hex, of the words, the counts and the settings."""
        digest = hashlib.sha256()
        for part in counts_file.parts(_header(self.settings), counts_file.sorted_entries(self.words)):
            digest.update(part)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return _comparable(self.settings) == _comparable(other.settings) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*self.words.to_parts(), self.settings)

    def __repr__(self) -> str:
        return f"Counts({len(self)} words, pattern={self.settings.pattern.name or 'custom'!r})"


def _unpickled(blob: bytes, lengths: Any, counts: Any, settings: CountSettings) -> Counts:
    return Counts(_binding.Words.from_parts(blob, lengths, counts), settings)


def _comparable(settings: CountSettings) -> CountSettings:
    """Returns settings that can be compared, without how files are read: that does not affect the words of a text."""
    specials, tables = tuple(sorted(settings.specials)), settings.tables or settings.pattern.tables
    return replace(settings, specials=specials, read=ReadOptions(), tables=tables)


def _header(settings: CountSettings) -> dict[str, object]:
    return {
        "pattern": settings.pattern.regex,
        "special_tokens": sorted(settings.specials),
        "normalizer": settings.normalizer,
        "tables": settings.tables or settings.pattern.tables,
    }


def settings_of_header(header: Mapping[str, Any], path: _binding.PathLike) -> CountSettings:
    """Returns the settings with which the words of a .counts file were counted."""
    try:
        pattern, specials = Pattern(header["pattern"]), tuple(check_specials(header["special_tokens"]))
        return CountSettings(pattern, specials, header["normalizer"], tables=str(header.get("tables", "")))
    except (ArgumentError, KeyError, TypeError) as error:
        raise FormatError(f"{_binding.path_bytes(path).decode()}: the header is invalid: {error}", 16) from None


class CountTable:
    """The sum of Counts that are added one by one."""

    def __init__(self, settings: CountSettings) -> None:
        self._settings = settings
        self._counter = _binding.Counter(None, None)

    def add(self, counts: Counts) -> None:
        instance("counts", counts, Counts, "made by count_words")
        theirs, ours = _comparable(counts.settings), _comparable(self._settings)
        if replace(theirs, tables=ours.tables) != ours:
            raise ArgumentError("counts with different patterns, special tokens or normalizers cannot be added")
        if theirs.tables != ours.tables:
            raise ArgumentError(
                f"counts that were made with {theirs.tables} and with {ours.tables} cannot be added: these may split"
                " the same text differently. Count all texts with the same versions"
            )
        self.add_words(counts.words)

    def add_words(self, words: _binding.Words) -> None:
        self._counter.add_words(words)

    def counts(self) -> Counts:
        return Counts(self._counter.export(), self._settings)
