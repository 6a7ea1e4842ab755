"""Word counts as objects and files, made on this machine or on many."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from .. import _binding
from .._lazy import tempfile
from ..arguments import Text, counted, instance, shown, utf8, whole_number
from ..errors import ArgumentError, FormatError, file_error
from ..model import check_specials, special_ids_of
from ..pattern import Pattern, PatternLike
from ..reading.options import ReadOptions
from ..support.call_paths import check_once, check_paths
from . import counts_file
from .counts_file import merged
from .word_counter import CountSettings


class Counts:
    """Words with their counts, and the settings of the counting. Immutable.

    `a + b` adds two Counts. `save` and `load` write and read files (pybpe/training/counts_file.py).
    """

    def __init__(self, words: _binding.Words, settings: CountSettings) -> None:
        self.words = words
        self.settings = settings

    @classmethod
    def from_dict(
        cls, counts: Mapping[Text, int], *, pattern: PatternLike = "gpt2", special_tokens: Sequence[str] = ()
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
        table = _binding.Counter(None, None)
        for each in chain([first], counts):
            instance("counts", each, Counts, "made by count_words")
            check_addable(each.settings, first.settings)
            table.add_words(each.words)
        return cls(table.export(), first.settings)

    def save(self, path: _binding.PathLike) -> None:
        """Writes a .counts file, atomically. Equal counts give equal bytes."""
        counts_file.write(path, header_of(self.settings), counts_file.sorted_blocks(self.words))

    @classmethod
    def load(cls, path: _binding.PathLike) -> Counts:
        """Reads a .counts file.

        Raises:
            FileError: the file cannot be read. FormatError: the file is not a .counts file, or is damaged.
        """
        return cls.load_sum([path])

    @classmethod
    def load_sum(cls, paths: Sequence[_binding.PathLike]) -> Counts:
        """Returns the sum of .counts files. Only the result is in memory.

        Raises:
            ArgumentError, FileError, FormatError: as for `merge_files`.
        """
        settings = settings_of_files(paths)
        with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
            return cls(_binding.Words.from_blocks(_merged(paths, folder, settings)), settings)

    @staticmethod
    def merge_files(paths: Sequence[_binding.PathLike], output: _binding.PathLike) -> int:
        """Writes the sum of .counts files to a .counts file, atomically, and returns the number of its words.

        The files may be larger than memory: about 2 MB of a file are in memory, for at most 64 files at once. Sums of
            more files
        are written to a temporary folder first.

        Raises:
            ArgumentError: `paths` is empty, or the files were made with different patterns, special tokens, normalizers
                or Unicode tables.
            FileError: a file cannot be read or written, or was replaced by one with other settings while it was read.
            FormatError: a file is not a .counts file, or is damaged.
        """
        check_paths({"output": [_binding.path_text(output)]}, {"paths": map(_binding.path_text, paths)})
        settings = settings_of_files(paths)
        with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
            return counts_file.write(output, header_of(settings), _merged(paths, folder, settings))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return _comparable(self.settings) == _comparable(other.settings) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.words.to_block(), self.settings)

    def __repr__(self) -> str:
        return f"Counts({counted(len(self), 'word')}, pattern={self.settings.pattern.name or 'custom'!r})"


def _unpickled(block: _binding.WordBlock, settings: CountSettings) -> Counts:
    return Counts(_binding.Words.from_blocks([block]), settings)


def _comparable(settings: CountSettings) -> CountSettings:
    """Returns settings that can be compared, without how files are read: that does not affect the words of a text."""
    specials, tables = tuple(sorted(settings.specials)), settings.tables or settings.pattern.tables
    return replace(settings, specials=specials, read=ReadOptions(), tables=tables)


def check_addable(theirs: CountSettings, ours: CountSettings, where: str = "") -> None:
    """Raises ArgumentError if counts with these settings cannot be added. `where` begins the message."""
    theirs, ours = _comparable(theirs), _comparable(ours)
    if replace(theirs, tables=ours.tables) != ours:
        raise ArgumentError(f"{where}counts with different patterns, special tokens or normalizers cannot be added")
    if theirs.tables != ours.tables:
        raise ArgumentError(
            f"{where}counts that were made with {theirs.tables} and with {ours.tables} cannot be added: these may split"
            " the same text differently. Count all texts with the same versions"
        )


def header_of(settings: CountSettings) -> dict[str, object]:
    """Returns the header of a .counts file."""
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


def settings_of_files(paths: Sequence[_binding.PathLike]) -> CountSettings:
    """Returns the settings of .counts files. Raises ArgumentError if there are no files, or two are one file, or they
    cannot be added."""
    first: CountSettings | None = None
    check_once(map(_binding.path_text, paths))
    for path in paths:
        with counts_file.Reader(path) as reader:
            settings = settings_of_header(reader.header, path)
        if first is None:
            first = settings
        check_addable(settings, first, f"{_binding.path_text(path)}: ")
    if first is None:
        raise ArgumentError("there are no counts to merge: name at least one .counts file")
    return first


def _merged(paths: Sequence[_binding.PathLike], folder: str, settings: CountSettings) -> Iterator[_binding.WordBlock]:
    """Yields the sum of .counts files. Raises FileChangedError at the end if a file now has other settings."""
    yield from merged(list(map(_binding.path_text, paths)), folder)
    if settings_of_files(paths) != settings:  # the words that were read may belong to the new ones
        names = ", ".join(map(_binding.path_text, paths))
        raise file_error(errno.ESTALE, f"{names:.200}: a file was replaced while it was read: run again")
