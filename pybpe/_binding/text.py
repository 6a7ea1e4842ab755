"""Text before it becomes tokens: normalization, patterns, special tokens and safe cuts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from .core import Data, Strings, call, ffi, lib, make_handle, new_uncleared

DIGITS1: int = lib.PYBPE_PATTERN_DIGITS1
DIGITS3: int = lib.PYBPE_PATTERN_DIGITS3
CUSTOM: int = lib.PYBPE_PATTERN_CUSTOM
NORMALIZERS: dict[str | None, int] = {
    None: lib.PYBPE_NORMALIZER_NONE,
    "NFC": lib.PYBPE_NORMALIZER_NFC,
    "NFKC": lib.PYBPE_NORMALIZER_NFKC,
}
SPECIAL_FLAGS: dict[str, int] = {
    "lstrip": lib.PYBPE_SPECIAL_LSTRIP,
    "rstrip": lib.PYBPE_SPECIAL_RSTRIP,
    "single_word": lib.PYBPE_SPECIAL_SINGLE_WORD,
    "normalized": lib.PYBPE_SPECIAL_LATE,
}


def unicode_version() -> str:
    """Returns the version of the Unicode tables that the patterns use."""
    return str(ffi.string(lib.pybpe_unicode_version()).decode())


def normalizer_unicode_version() -> str:
    """Returns the version of the Unicode tables that the normalizers use."""
    return str(ffi.string(lib.pybpe_normalizer_unicode_version()).decode())


def unicode_classes() -> bytes:
    """Returns the classes of all code points as the patterns see them, one byte per code point: see
    pybpe_unicode_class."""
    return bytes(map(lib.pybpe_unicode_class, range(0x110000)))


def normalize(data: Data, normalizer: str) -> Data:
    """Returns the normalized text: `data` itself if nothing changes."""
    view = ffi.from_buffer(data)
    out, length = ffi.new("uint8_t **"), ffi.new("size_t *")
    try:  # KeyboardInterrupt may follow any call
        call(lib.pybpe_normalize, out, length, NORMALIZERS[normalizer], view, len(view), ffi.NULL)
        return data if out[0] == ffi.NULL else bytes(ffi.buffer(out[0], length[0]))
    finally:
        lib.pybpe_normalize_free(out[0], ffi.NULL)


def pattern_find(name: str) -> int | None:
    """Returns the number of a built-in pattern, or None."""
    found: int = lib.pybpe_pattern_find(name.encode())
    return found if found >= 0 else None


def pattern_find_regex(regex: str) -> int | None:
    """Returns the number of the built-in pattern with this regular expression, or None."""
    data = regex.encode("utf-8", "surrogatepass")
    found: int = lib.pybpe_pattern_find_regex(data, len(data))
    return found if found >= 0 else None


def pattern_regex(pattern: int) -> str:
    """Returns the regular expression of a built-in pattern."""
    return str(ffi.string(lib.pybpe_pattern_regex(pattern)).decode())


class Pretok:
    """A splitter for one pattern: a built-in pattern, a compiled one or a sequence of these. Immutable."""

    _steps: Sequence[Pretok] = ()

    def __init__(self, pattern: int) -> None:
        self.c = make_handle("pybpe_pretok", lib.pybpe_pretok_new, lib.pybpe_pretok_free, pattern, ffi.NULL)

    @classmethod
    def from_sequence(cls, steps: Sequence[Pretok]) -> Pretok:
        """Returns the splitter that splits every word of one step with the next step, as a separate text."""
        self = cls.__new__(cls)
        self._steps = list(steps)  # C borrows them
        array_c = ffi.new("pybpe_pretok *[]", [step.c for step in steps])
        self.c = make_handle(
            "pybpe_pretok", lib.pybpe_pretok_new_sequence, lib.pybpe_pretok_free, array_c, len(steps), ffi.NULL
        )
        return self

    @classmethod
    def from_automaton(
        cls, ranges: Sequence[tuple[int, int]], classes: int, rows: array[int], of_bytes: bool = False
    ) -> Pretok:
        """Returns the splitter of a compiled regular expression: see pybpe_automaton in pybpe_train.h. `ranges` are
        (first code point, class). `rows`, of type H, are the entries of all states. With `of_bytes`, it reads bytes
        instead of characters."""
        first, class_of = array("I", [start for start, _ in ranges]), bytes(number for _, number in ranges)
        tables = ffi.new("pybpe_automaton *")
        tables.first = ffi.from_buffer("uint32_t[]", first)
        tables.class_of = ffi.from_buffer("uint8_t[]", class_of)
        tables.next = ffi.from_buffer("uint16_t[]", rows)
        tables.ranges, tables.classes, tables.states = len(ranges), classes, len(rows) // (classes + 2)
        tables.bytes = of_bytes
        self = cls.__new__(cls)
        self.c = make_handle("pybpe_pretok", lib.pybpe_pretok_new_automaton, lib.pybpe_pretok_free, tables, ffi.NULL)
        return self

    @property
    def has_cuts(self) -> bool:
        """Whether `text_cut` can find safe cuts for this pattern."""
        return bool(lib.pybpe_pretok_has_cuts(self.c))

    def split(self, data: Data) -> list[int]:
        """Returns the end offsets of all words of `data`, ascending."""
        view = ffi.from_buffer(data)
        room = 4096
        found: list[int] = []
        pos = 0
        while pos < len(view):
            ends = new_uncleared("size_t[]", room)
            count = lib.pybpe_pretok_split(self.c, view, len(view), pos, ends, room)
            found += ffi.unpack(ends, count)
            pos = found[-1]
            room = min(2 * room, len(view) + 64)  # doubled for a sequence, which starts over in every call
        return found


class Specials:
    """A matcher for special tokens. Immutable."""

    def __init__(self, ids: Mapping[str, int], flags: Mapping[str, int] | None = None) -> None:
        """Makes a matcher for text -> id. `flags` maps some of these strings to the SPECIAL_FLAGS that are on."""
        strings = Strings([text.encode("utf-8") for text in ids])
        numbers = ffi.new("uint32_t[]", list(ids.values()))
        bits = [(flags or {}).get(text, 0) for text in ids]
        self._has_flags = any(bits)
        new, free = lib.pybpe_specials_new, lib.pybpe_specials_free
        self.c = make_handle("pybpe_specials", new, free, strings.c, numbers, ffi.new("uint8_t[]", bits), ffi.NULL)

    @classmethod
    def of(cls, specials: Mapping[str, int] | Iterable[str], flags: Mapping[str, int] | None = None) -> Specials | None:
        """Returns a matcher, or None if there are no special tokens. Without ids they are numbered in order."""
        ids = dict(specials) if isinstance(specials, Mapping) else {text: i for i, text in enumerate(specials)}
        return cls(ids, flags) if ids else None

    def find(self, data: Data, start: int = 0) -> tuple[int, int, int] | None:
        """Returns (start, end, id) of the first special token at or after `start`, or None."""
        view = ffi.from_buffer(data)
        begin, end, number = ffi.new("size_t *"), ffi.new("size_t *"), ffi.new("uint32_t *")
        if lib.pybpe_specials_find(self.c, view, len(view), start, begin, end, number):
            return begin[0], end[0], number[0]
        return None

    def find_all(self, data: Data) -> Iterator[tuple[int, int, int]]:
        """Yields (start, end, id) of every special token in `data`, in order."""
        view = ffi.from_buffer(data)
        at, known, room = 0, 0, 16
        while True:
            spans, numbers = new_uncleared("size_t[]", 2 * room), new_uncleared("uint32_t[]", room)
            count = lib.pybpe_specials_find_all(self.c, view, len(view), at, spans, numbers, room)
            places = ffi.unpack(spans, 2 * count) if count else []
            found = zip(places[0::2], places[1::2], ffi.unpack(numbers, count) if count else ())
            yield from islice(found, known, None)
            if count < room:
                return
            if self._has_flags:  # every call must begin at the start of the text
                known, room = count, 4 * room
            else:
                at, room = places[-1], min(16 * room, 1 << 14)


def text_cut(pretok: Pretok, specials: Specials | None, data: Data, start: int) -> int:
    """Returns the first offset >= start where a cut changes no word of `data`, or the length of `data`."""
    view = ffi.from_buffer(data)
    specials_c = specials.c if specials is not None else ffi.NULL
    return int(lib.pybpe_text_cut(pretok.c, specials_c, view, len(view), start))


def str_utf8(text: str) -> memoryview | None:
    """Returns the UTF-8 of a str without copying it, or None if UTF-8 cannot represent it (lone surrogates).

    An ASCII str is itself UTF-8. For any other str, CPython makes the UTF-8 in the first such call, and keeps it as
    long as the str: this takes as much memory again as the text.
    """
    length = ffi.new("size_t *")
    start = lib.str_utf8(id(text), length)
    if start == ffi.NULL:
        return None

    def keep(_: object, text: str = text) -> None:
        """Refers to the str, and so keeps it alive as long as the result."""

    return memoryview(ffi.buffer(ffi.gc(start, keep), length[0])).toreadonly()


def utf8_valid(data: Data) -> int:
    """Returns the number of bytes at the start of `data` that are valid UTF-8: the offset of the first invalid
    character, or the length of `data`."""
    view = ffi.from_buffer(data)
    return int(lib.pybpe_utf8_valid(view, len(view)))
