"""The C library as Python objects. Only this module calls it.

Each class owns one C handle of csrc/pybpe.h and keeps alive what that handle borrows. This module
validates what C cannot (types, NULs in paths), and turns every error code into an exception of
errors.py. It adds no behavior; for what a call does, read the header.

cffi releases the GIL around every call, so threads run them in parallel.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, Union

from . import errors
from .arguments import shown

try:
    from ._core import ffi, lib
except ModuleNotFoundError as error:
    if error.name != f"{__package__}._core":
        raise
    raise errors.not_compiled(os.path.dirname(os.path.abspath(__file__))) from None

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

    import numpy

Data = Union[bytes, bytearray, memoryview, "Buffer"]
PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

NO_ID: int = lib.PYBPE_NO_ID
DIGITS1: int = lib.PYBPE_PATTERN_DIGITS1
CUSTOM: int = lib.PYBPE_PATTERN_CUSTOM
TIE_BREAKS: dict[str, int] = {
    "lexicographic": lib.PYBPE_TIE_LEXICOGRAPHIC,
    "huggingface": lib.PYBPE_TIE_HUGGINGFACE,
}
NORMALIZERS: dict[str | None, int] = {
    None: lib.PYBPE_NORMALIZER_NONE,
    "NFC": lib.PYBPE_NORMALIZER_NFC,
    "NFKC": lib.PYBPE_NORMALIZER_NFKC,
}
SHARD_HEADER_BYTES: int = lib.PYBPE_SHARD_HEADER_BYTES
SHARD_MAX_BYTES: int = lib.PYBPE_SHARD_MAX_BYTES

# ffi.new clears memory, which wastes time for buffers that C fills.
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


def version() -> str:
    """Returns the version of the C library."""
    return str(ffi.string(lib.pybpe_version()).decode())


def unicode_version() -> str:
    """Returns the version of the Unicode tables that the patterns use."""
    return str(ffi.string(lib.pybpe_unicode_version()).decode())


def normalizer_unicode_version() -> str:
    """Returns the version of the Unicode tables that the normalizers use."""
    return str(ffi.string(lib.pybpe_normalizer_unicode_version()).decode())


def unicode_classes() -> bytes:
    """Returns the class of each code point as the patterns see it, one byte each: see pybpe_unicode_class."""
    return bytes(map(lib.pybpe_unicode_class, range(0x110000)))


# ----------------------------------------------------------------------------------------------------
# Errors and arguments


def _raise(err: Any) -> NoReturn:
    message = ffi.string(err.msg).decode("utf-8", "replace")
    code = err.code
    if code == lib.PYBPE_ERR_IO:
        raise errors.file_error(err.sys_errno, message)
    if code == lib.PYBPE_ERR_FORMAT:
        raise errors.FormatError(message, err.offset)
    if code == lib.PYBPE_ERR_LIMIT:
        raise errors.LimitError(message)
    if code == lib.PYBPE_ERR_MEMORY:
        raise errors.OutOfMemoryError(message)
    raise errors.ArgumentError(message)


def _call(function: Any, *args: Any) -> None:
    """Calls a fallible C function, whose last parameter is the error to fill."""
    err = ffi.new("pybpe_error *")
    if function(*args, err) < 0:
        _raise(err)


def _make(handle: str, function: Any, free: Any, *args: Any) -> Any:
    """Calls a C function that makes a handle, and frees the handle with its owner."""
    out = ffi.new(handle + " **")
    _call(function, out, *args)
    return ffi.gc(out[0], free)


def path_bytes(path: PathLike) -> bytes:
    """Returns a path as C takes it. Raises ArgumentError if it is not a path, or has a NUL, which would end it in C."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise errors.ArgumentError(f"expected a path, not {type(path).__name__}")
    try:
        encoded = os.fsencode(path)
    except (TypeError, UnicodeEncodeError) as error:  # __fspath__ returns no path; surrogates that stand for no byte
        raise errors.ArgumentError(f"expected a path, not {shown(path)}: {error}") from None
    if b"\0" in encoded:
        raise errors.ArgumentError(f"a path cannot contain a NUL: {shown(path)}")
    return encoded


def path_text(path: PathLike) -> str:
    """Returns a path as a str, with the checks of `path_bytes`."""
    return os.fsdecode(path_bytes(path))


def output_bytes(path: PathLike) -> bytes:
    """Returns the path of a file to be written as C takes it, and makes its folder if needed."""
    encoded = path_bytes(path)
    folder = os.path.dirname(encoded)
    if folder and not os.path.isdir(folder):
        with errors.file_errors(encoded, "its folder cannot be made"):
            os.makedirs(folder, exist_ok=True)
    return encoded


class _Strings:
    """A `pybpe_strings` with the memory it points to."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        # A subclass of bytes may report a wrong length.
        self._offsets = array("Q", accumulate(map(bytes.__len__, strings), initial=0))
        self._bytes = b"".join(strings)
        self.c = ffi.new("pybpe_strings *")
        self.c.bytes = ffi.from_buffer("uint8_t[]", self._bytes)
        self.c.offsets = ffi.from_buffer("uint64_t[]", self._offsets)
        self.c.count = len(strings)


def _strings_list(c: Any) -> list[bytes]:
    """Returns a `pybpe_strings` as a Python list."""
    offsets = ffi.unpack(c.offsets, c.count + 1)
    blob = bytes(ffi.buffer(c.bytes, offsets[-1])) if offsets[-1] else b""
    return [blob[a:b] for a, b in zip(offsets, offsets[1:])]


# ----------------------------------------------------------------------------------------------------
# Files


class Output:
    """A file that appears complete, at `commit`, or not at all. Its folder is made if needed. It is a context manager
    that commits unless the block raises."""

    def __init__(self, path: PathLike) -> None:
        out = ffi.new("pybpe_output **")
        _call(lib.pybpe_output_open, out, output_bytes(path), ffi.NULL)
        self._c = out[0]

    def write(self, data: Data) -> None:
        """Appends bytes."""
        view = ffi.from_buffer(data)
        _call(lib.pybpe_output_write, self._c, view, len(view))

    def commit(self) -> None:
        """Gives the file its name."""
        handle, self._c = self._c, ffi.NULL
        _call(lib.pybpe_output_commit, handle)

    def discard(self) -> None:
        """Removes the unfinished file."""
        handle, self._c = self._c, ffi.NULL
        lib.pybpe_output_discard(handle)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def write_file(path: PathLike, data: Data) -> None:
    """Writes a whole file atomically: a reader finds the old file or the new one, never part of one."""
    with Output(path) as output:
        output.write(data)


# ----------------------------------------------------------------------------------------------------
# Normalization


def normalize(data: Data, normalizer: str) -> Data:
    """Returns the normalized text: `data` itself if nothing changes."""
    view = ffi.from_buffer(data)
    out, length = ffi.new("uint8_t **"), ffi.new("size_t *")
    _call(lib.pybpe_normalize, out, length, NORMALIZERS[normalizer], view, len(view), ffi.NULL)
    if out[0] == ffi.NULL:
        return data
    try:
        return bytes(ffi.buffer(out[0], length[0]))
    finally:
        lib.pybpe_normalize_free(out[0], ffi.NULL)


# ----------------------------------------------------------------------------------------------------
# Patterns and specials


def pattern_find(name: str) -> int | None:
    """Returns the number of a built-in pattern, or None."""
    found: int = lib.pybpe_pattern_find(name.encode())
    return found if found >= 0 else None


def pattern_regex(pattern: int) -> str:
    """Returns the regular expression of a built-in pattern."""
    return str(ffi.string(lib.pybpe_pattern_regex(pattern)).decode())


class Pretok:
    """A splitter for one pattern: a built-in one, or what `from_automaton` or `from_sequence` makes. Immutable."""

    _steps: Sequence[Pretok] = ()

    def __init__(self, pattern: int) -> None:
        self.c = _make("pybpe_pretok", lib.pybpe_pretok_new, lib.pybpe_pretok_free, pattern, ffi.NULL)

    @classmethod
    def from_sequence(cls, steps: Sequence[Pretok]) -> Pretok:
        """The splitter that cuts each word of one step with the next step, as a text of its own."""
        self = cls.__new__(cls)
        self._steps = list(steps)  # C borrows them
        array_c = ffi.new("pybpe_pretok *[]", [step.c for step in steps])
        self.c = _make(
            "pybpe_pretok", lib.pybpe_pretok_new_sequence, lib.pybpe_pretok_free, array_c, len(steps), ffi.NULL
        )
        return self

    @classmethod
    def from_automaton(
        cls, ranges: Sequence[tuple[int, int]], classes: int, rows: array[int], of_bytes: bool = False
    ) -> Pretok:
        """The splitter of a compiled regular expression: see pybpe_automaton in csrc/pybpe.h.

        Args:
            ranges: (first code point, class).
            classes: how many there are.
            rows: the entries of all states, of type H.
            of_bytes: whether it reads bytes instead of characters.
        """
        first, class_of = array("I", [start for start, _ in ranges]), bytes(number for _, number in ranges)
        tables = ffi.new("pybpe_automaton *")
        tables.first = ffi.from_buffer("uint32_t[]", first)
        tables.class_of = ffi.from_buffer("uint8_t[]", class_of)
        tables.next = ffi.from_buffer("uint16_t[]", rows)
        tables.ranges, tables.classes, tables.states = len(ranges), classes, len(rows) // (classes + 2)
        tables.bytes = of_bytes
        self = cls.__new__(cls)
        self.c = _make("pybpe_pretok", lib.pybpe_pretok_new_automaton, lib.pybpe_pretok_free, tables, ffi.NULL)
        return self

    @property
    def has_cuts(self) -> bool:
        """Whether `text_cut` can find cuts."""
        return bool(lib.pybpe_pretok_has_cuts(self.c))

    @property
    def simd(self) -> str:
        """The vector instructions in use."""
        return str(ffi.string(lib.pybpe_pretok_simd(self.c)).decode())

    def split(self, data: Data) -> list[int]:
        """Returns the end offsets of all words of `data`, ascending."""
        view = ffi.from_buffer(data)
        room = 4096
        found: list[int] = []
        pos = 0
        while pos < len(view):
            ends = _new_uncleared("size_t[]", room)
            count = lib.pybpe_pretok_split(self.c, view, len(view), pos, ends, room)
            found += ffi.unpack(ends, count)
            pos = found[-1]
            room = min(2 * room, len(view) + 64)  # doubled for a sequence, which begins anew in each call
        return found


class Specials:
    """A matcher for special tokens. Immutable."""

    def __init__(self, ids: dict[str, int]) -> None:
        strings = _Strings([text.encode("utf-8") for text in ids])
        numbers = ffi.new("uint32_t[]", list(ids.values()))
        self.c = _make("pybpe_specials", lib.pybpe_specials_new, lib.pybpe_specials_free, strings.c, numbers, ffi.NULL)

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
        at, room = 0, 16
        while True:
            spans, numbers = _new_uncleared("size_t[]", 2 * room), _new_uncleared("uint32_t[]", room)
            count = lib.pybpe_specials_find_all(self.c, view, len(view), at, spans, numbers, room)
            places = ffi.unpack(spans, 2 * count) if count else []
            yield from zip(places[0::2], places[1::2], ffi.unpack(numbers, count) if count else ())
            if count < room:
                return
            at, room = places[-1], min(16 * room, 1 << 14)


def text_cut(pretok: Pretok, specials: Specials | None, data: Data, start: int) -> int:
    """Returns the first offset >= start where a cut changes no word of `data`, or the length of `data`."""
    view = ffi.from_buffer(data)
    specials_c = specials.c if specials is not None else ffi.NULL
    return int(lib.pybpe_text_cut(pretok.c, specials_c, view, len(view), start))


def utf8_valid(data: Data) -> int:
    """Returns how many bytes at the start of `data` are valid UTF-8: the offset of the first invalid character, or
    the length of `data`."""
    view = ffi.from_buffer(data)
    return int(lib.pybpe_utf8_valid(view, len(view)))


# ----------------------------------------------------------------------------------------------------
# Counting and training


class Words:
    """Distinct words with their counts, in C memory. Counters export them and trainers take them."""

    def __init__(self, strings: Any, counts: Any, keep: tuple[object, ...]) -> None:
        self.strings = strings
        self.counts = counts
        self._keep = keep

    @classmethod
    def from_dict(cls, counts: dict[bytes, int]) -> Words:
        """Makes them from a dictionary. Raises ArgumentError for a count that is negative or exceeds 64 bits."""
        strings = _Strings(list(counts))
        try:
            numbers = array("Q", counts.values())
        except (OverflowError, TypeError) as error:
            raise errors.ArgumentError(f"a word count must be an integer from 0 to 2^64 - 1: {error}") from None
        return cls(strings.c, ffi.from_buffer("uint64_t[]", numbers), (strings, numbers))

    @classmethod
    def from_parts(cls, blob: bytes, lengths: array[int], counts: array[int]) -> Words:
        """Makes them from words laid end to end; `lengths` and `counts` are arrays of type Q."""
        offsets = array("Q", accumulate(lengths, initial=0))
        strings = ffi.new("pybpe_strings *")
        strings.bytes = ffi.from_buffer("uint8_t[]", blob)
        strings.offsets = ffi.from_buffer("uint64_t[]", offsets)
        strings.count = len(lengths)
        return cls(strings, ffi.from_buffer("uint64_t[]", counts), (blob, offsets, counts))

    def to_parts(self) -> tuple[bytes, array[int], array[int]]:
        """Returns the arguments of `from_parts`."""
        offsets = ffi.unpack(self.strings.offsets, len(self) + 1)
        blob = bytes(ffi.buffer(self.strings.bytes, offsets[-1])) if offsets[-1] else b""
        counts = array("Q", ffi.unpack(self.counts, len(self)) if len(self) else ())
        return blob, array("Q", (b - a for a, b in zip(offsets, offsets[1:]))), counts

    def __len__(self) -> int:
        return int(self.strings.count)

    def to_dict(self) -> dict[bytes, int]:
        """Returns a dictionary word -> count."""
        return dict(zip(_strings_list(self.strings), ffi.unpack(self.counts, len(self)) if len(self) else ()))


class Counter:
    """A table word -> count. Only one thread may use it at a time."""

    def __init__(self, pretok: Pretok | None, specials: Specials | None) -> None:
        self._keep = (pretok, specials)
        self.c = _make(
            "pybpe_counter",
            lib.pybpe_counter_new,
            lib.pybpe_counter_free,
            pretok.c if pretok is not None else ffi.NULL,
            specials.c if specials is not None else ffi.NULL,
            ffi.NULL,
        )

    def add(self, data: Data) -> None:
        """Counts the words of one piece of text."""
        view = ffi.from_buffer(data)
        _call(lib.pybpe_counter_add, self.c, view, len(view))

    def add_words(self, words: Words) -> None:
        """Adds words that were counted elsewhere."""
        _call(lib.pybpe_counter_add_words, self.c, words.strings, words.counts)

    def add_word_list(self, words: Sequence[bytes]) -> None:
        """Adds one occurrence of each word in a list."""
        strings = _Strings(words)  # a name, since it must outlive the call
        _call(lib.pybpe_counter_add_words, self.c, strings.c, ffi.NULL)

    def reserve(self, words: int) -> None:
        """Makes room for this many distinct words in all."""
        _call(lib.pybpe_counter_reserve, self.c, words)

    def absorb(self, other: Counter) -> None:
        """Moves all counts of another table to this one."""
        _call(lib.pybpe_counter_absorb, self.c, other.c)

    @property
    def stats(self) -> Any:
        """words, bytes, total and memory: see pybpe_counter_stats."""
        return lib.pybpe_counter_get_stats(self.c)

    def export(self) -> Words:
        """Returns a copy of the table."""
        stats = self.stats
        blob = _new_uncleared("uint8_t[]", stats.bytes or 1)
        offsets = _new_uncleared("uint64_t[]", stats.words + 1)
        counts = _new_uncleared("uint64_t[]", stats.words or 1)
        lib.pybpe_counter_export(self.c, blob, offsets, counts)
        strings = ffi.new("pybpe_strings *")
        strings.bytes, strings.offsets, strings.count = blob, offsets, stats.words
        return Words(strings, counts, (blob, offsets))


class Trainer:
    """The merge loop. Tokens 0-255 are the bytes; later numbers follow the order in which tokens are made."""

    def __init__(
        self,
        words: Words,
        *,
        vocab_size: int,
        max_token_length: int,
        min_frequency: int,
        tie_break: str,
        base_merges: Sequence[tuple[int, int]] = (),
    ) -> None:
        config = ffi.new("pybpe_train_config *")
        config.vocab_size = vocab_size
        config.max_token_length = max_token_length
        config.min_frequency = min_frequency
        config.tie_break = TIE_BREAKS[tie_break]
        self._base = ffi.new("uint32_t[]", [i for pair in base_merges for i in pair])
        config.base_merges = self._base
        config.base_merges_count = len(base_merges)
        self.c = _make(
            "pybpe_trainer",
            lib.pybpe_trainer_new,
            lib.pybpe_trainer_free,
            words.strings,
            words.counts,
            config,
            ffi.NULL,
        )

    def step(self, budget: int) -> bool:
        """Processes about `budget` occurrences. Returns True when training is done."""
        done = ffi.new("int *")
        _call(lib.pybpe_trainer_step, self.c, budget, done)
        return bool(done[0])

    @property
    def tokens(self) -> int:
        """How many tokens there are so far, including the 256 bytes."""
        return int(lib.pybpe_trainer_tokens(self.c))

    def merges(self) -> list[tuple[int, int, int]]:
        """Returns the merges in order, as (left, right, merged) ids."""
        out = ffi.new("uint32_t **")
        count = lib.pybpe_trainer_merges(self.c, out)
        flat = ffi.unpack(out[0], 3 * count) if count else []
        return list(zip(flat[0::3], flat[1::3], flat[2::3]))


# ----------------------------------------------------------------------------------------------------
# Vocabularies


def tokenizer_json_spans(text: bytes) -> list[int] | None:
    """Returns where model.vocab and model.merges begin and end in a tokenizer.json; None if that is not certain."""
    spans = ffi.new("size_t[4]")
    found = lib.pybpe_tokenizer_json_find(ffi.from_buffer("uint8_t[]", text), len(text), spans)
    return ffi.unpack(spans, 4) if found else None


def _vocab_spec(
    specials: Iterable[int], eot_id: int | None, pattern: int, custom: str | None, normalizer: str | None, whole: bool
) -> tuple[Any, tuple[Any, ...]]:
    """Returns a `pybpe_vocab_spec` without tokens and merges, and the objects that must live as long as it does."""
    special_ids = sorted(set(specials))
    numbers = ffi.new("uint32_t[]", special_ids)
    regex = ffi.new("char[]", custom.encode()) if custom is not None else ffi.NULL
    spec = ffi.new("pybpe_vocab_spec *")
    spec.specials = numbers
    spec.specials_count = len(special_ids)
    spec.eot_id = NO_ID if eot_id is None else eot_id
    spec.pattern = pattern
    spec.custom = regex
    spec.normalizer = NORMALIZERS[normalizer]
    spec.whole_words = whole
    return spec, (numbers, regex)


class Vocab:
    """A vocabulary in C. Immutable. Make one with `Vocab.new` or `Vocab.load`."""

    def __init__(self, c: Any) -> None:
        self.c = c

    @classmethod
    def new(
        cls,
        tokens: Sequence[bytes],
        merges: Sequence[tuple[int, int]] | None,
        specials: Iterable[int],
        eot_id: int | None,
        pattern: int,
        custom: str | None,
        normalizer: str | None,
        whole_words: bool = False,
    ) -> Vocab:
        """Makes a vocabulary: see pybpe_vocab_spec. If `merges` is None, recovers them from the order of the ids."""
        strings = _Strings(tokens)
        spec, _kept = _vocab_spec(specials, eot_id, pattern, custom, normalizer, whole_words)
        spec.tokens = strings.c[0]
        if merges is None:
            count = ffi.new("size_t *")
            pairs = _new_uncleared("uint32_t[]", 2 * len(tokens) + 2)
            _call(lib.pybpe_vocab_recover_merges, spec, pairs, count, ffi.NULL)
            spec.merges_count = count[0]
        else:
            pairs = ffi.new("uint32_t[]", [i for pair in merges for i in pair])
            spec.merges_count = len(merges)
        spec.merges = pairs
        return cls(_make("pybpe_vocab", lib.pybpe_vocab_new, lib.pybpe_vocab_free, spec, ffi.NULL))

    @classmethod
    def from_json(
        cls,
        text: bytes,
        spans: Sequence[int],
        specials: Mapping[str, int],
        eot_id: int | None,
        pattern: int,
        custom: str | None,
        normalizer: str | None,
        whole_words: bool,
    ) -> Vocab:
        """Makes a vocabulary from the tokens and merges of a tokenizer.json, at places that `tokenizer_json_spans`
        found. Raises FormatError or ArgumentError if the file must be read by other means."""
        by_id = sorted(specials, key=specials.__getitem__)
        texts = _Strings([special.encode("utf-8") for special in by_id])
        spec, _kept = _vocab_spec(specials.values(), eot_id, pattern, custom, normalizer, whole_words)
        view = ffi.from_buffer("uint8_t[]", text)
        vocab, vocab_end, merges, merges_end = spans
        parts = view + vocab, vocab_end - vocab, view + merges, merges_end - merges
        make, free = lib.pybpe_vocab_new_json, lib.pybpe_vocab_free
        return cls(_make("pybpe_vocab", make, free, *parts, texts.c, spec, ffi.NULL))

    @classmethod
    def load(cls, path: PathLike) -> Vocab:
        """Reads a tokenizer.bin."""
        return cls(_make("pybpe_vocab", lib.pybpe_vocab_load, lib.pybpe_vocab_free, path_bytes(path), ffi.NULL))

    def save(self, path: PathLike, bin_version: int) -> None:
        """Writes a tokenizer.bin of version 1 or 2."""
        _call(lib.pybpe_vocab_save, self.c, output_bytes(path), bin_version)

    @property
    def _spec(self) -> Any:
        return lib.pybpe_vocab_get_spec(self.c)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many ids and merges there are."""
        spec = self._spec
        return spec.tokens.count, spec.merges_count

    def packed(self) -> tuple[Any, Any, Any]:
        """Returns three buffers that live as long as this object: all tokens end to end; where each begins and the last
        ends (uint64); and the merges (two uint32 each)."""
        spec = self._spec
        offsets = ffi.buffer(spec.tokens.offsets, 8 * (spec.tokens.count + 1))
        end = spec.tokens.offsets[spec.tokens.count]
        return ffi.buffer(spec.tokens.bytes, end), offsets, ffi.buffer(spec.merges, 8 * spec.merges_count)

    def token(self, number: int) -> bytes:
        """Returns the bytes of one id."""
        tokens = self._spec.tokens
        begin = tokens.offsets[number]
        return bytes(ffi.buffer(tokens.bytes + begin, tokens.offsets[number + 1] - begin))

    def tokens(self) -> list[bytes]:
        """Returns the bytes of every id; b"" for an unused one."""
        return _strings_list(self._spec.tokens)

    def merges(self) -> list[tuple[int, int]]:
        """Returns the merges in rank order, as (left, right) ids."""
        spec = self._spec
        flat = ffi.unpack(spec.merges, 2 * spec.merges_count) if spec.merges_count else []
        return list(zip(flat[0::2], flat[1::2]))

    def specials(self) -> list[int]:
        """Returns the ids of special tokens, ascending."""
        spec = self._spec
        return list(ffi.unpack(spec.specials, spec.specials_count)) if spec.specials_count else []

    @property
    def eot_id(self) -> int | None:
        """The end-of-text id."""
        eot: int = self._spec.eot_id
        return None if eot == NO_ID else eot

    @property
    def pattern(self) -> tuple[int, str | None]:
        """The pattern's number, and the regular expression if it is a custom one."""
        spec = self._spec
        return spec.pattern, ffi.string(spec.custom).decode() if spec.custom != ffi.NULL else None

    @property
    def normalizer(self) -> str | None:
        """None, "NFC" or "NFKC"."""
        number = self._spec.normalizer
        return next(name for name, value in NORMALIZERS.items() if value == number)

    @property
    def whole_words(self) -> bool:
        """Whether a word that is a token is encoded as that token, whatever the merges give."""
        return bool(self._spec.whole_words)

    def decoded_length(self, ids: IdBuffer) -> int:
        """Returns how many bytes `decode_into` writes for these ids. Raises ArgumentError for an unknown id."""
        length = ffi.new("size_t *")
        _call(lib.pybpe_decode, self.c, ids.c, ids.id_bytes, ids.count, ffi.NULL, 0, length)
        return int(length[0])

    def decode_into(self, ids: IdBuffer, out: Any, size: int) -> None:
        """Decodes ids to a C pointer. `size` is what `decoded_length` returned for them."""
        length = ffi.new("size_t *")
        _call(lib.pybpe_decode, self.c, ids.c, ids.id_bytes, ids.count, out, size, length)
        if length[0] != size:
            raise errors.ArgumentError("another thread changed the ids while they were being decoded")


class IdBuffer:
    """Ids as C reads them: an object with the buffer protocol whose items are unsigned, of 2 or 4 bytes."""

    def __init__(self, ids: array[int] | memoryview | numpy.ndarray[Any, Any]) -> None:
        self.ids = ids
        self.c = ffi.from_buffer(ids)
        self.id_bytes = ids.itemsize
        self.count = len(ids)


def new_bytes(size: int) -> tuple[bytes, Any]:
    """Returns bytes that are yet to be written, and the pointer to write them through. As with
    PyBytes_FromStringAndSize, no other code may see them before they are written."""
    data = bytes(size)  # for large sizes the system supplies zeroed pages without writing them
    return data, ffi.from_buffer("uint8_t[]", data)


# ----------------------------------------------------------------------------------------------------
# Encoding


_encode, _unpack, _NULL = lib.pybpe_encode, ffi.unpack, ffi.NULL  # global names make short calls faster
_UNPACK_STEP = 1 << 20  # ids per conversion to Python integers; other threads and Ctrl-C wait that long


class _Scratch:
    """What one thread needs to encode: a word cache, and buffers that calls reuse."""

    START = 1 << 12  # ids; short texts fit without a new buffer
    BLOCK = 1 << 23  # bytes; the ids of a piece of a long text (pretokenize.BLOCK_BYTES) fit, at either id size

    def __init__(self, encoder: Any) -> None:
        self.cache = _make("pybpe_cache", lib.pybpe_cache_new, lib.pybpe_cache_free, encoder, ffi.NULL)
        self.err = ffi.new("pybpe_error *")
        self.count = ffi.new("size_t *")
        self.ids = _new_uncleared("uint32_t[]", self.START)
        self._block: Any = None  # BLOCK bytes, once they are needed; memory that is not touched costs nothing

    def room(self, size: int) -> Any:
        """Returns memory for `size` bytes of ids, which the caller copies. It is reused, because fresh memory for as
        many ids as there could be costs more than the copy."""
        if size > self.BLOCK:
            return _new_uncleared("uint32_t[]", size // 4 + 1)
        if self._block is None:
            self._block = _new_uncleared("uint32_t[]", self.BLOCK // 4)
        return self._block


class Encoder:
    """An encoder for one vocabulary. Threads share it: each call borrows a scratch from a free list, whose pop and
    append are atomic, so no lock is held while encoding."""

    def __init__(self, vocab: Vocab, pretok: Pretok | None = None) -> None:
        """`pretok` cuts the texts, if the vocabulary's pattern is none of the built-in ones."""
        self._keep = (vocab, pretok)
        pretok_c = pretok.c if pretok is not None else ffi.NULL
        self.c = _make(
            "pybpe_encoder", lib.pybpe_encoder_new_pretok, lib.pybpe_encoder_free, vocab.c, pretok_c, ffi.NULL
        )
        self._free: list[_Scratch] = []

    def _lease(self) -> _Scratch:
        try:
            return self._free.pop()
        except IndexError:
            return _Scratch(self.c)

    def _encode(
        self, scratch: _Scratch, data: Data, specials: Specials | None, ids: Any, id_bytes: int, cap: int
    ) -> int:
        if _encode(
            self.c,
            scratch.cache,
            ffi.NULL if specials is None else specials.c,
            data if type(data) is bytes else ffi.from_buffer(data),  # cffi takes bytes as they are, which is faster
            len(data),
            ids,
            id_bytes,
            cap,
            scratch.count,
            scratch.err,
        ):
            _raise(scratch.err)
        return scratch.count[0]  # type: ignore[no-any-return]

    def encode(self, data: Data, specials: Specials | None) -> list[int]:
        """Returns the ids of one piece of text."""
        scratch = self._lease()
        cap = len(data)
        if cap <= _Scratch.START:  # written out, because short calls spend most of their time in Python
            ids, c_count = scratch.ids, scratch.count
            if _encode(
                self.c, scratch.cache, specials.c if specials is not None else _NULL,
                data if type(data) is bytes else ffi.from_buffer(data), cap, ids, 4, cap, c_count, scratch.err,
            ):  # fmt: skip
                _raise(scratch.err)
            found: list[int] = _unpack(ids, c_count[0])
            self._free.append(scratch)
            return found
        ids = _new_uncleared("uint32_t[]", cap)
        count = self._encode(scratch, data, specials, ids, 4, cap)
        found = ffi.unpack(ids, min(count, _UNPACK_STEP))
        self._free.append(scratch)
        while len(found) < count:
            found += ffi.unpack(ids + len(found), min(count - len(found), _UNPACK_STEP))
        return found

    def encode_into(self, data: Data, specials: Specials | None, ids: numpy.ndarray[Any, Any]) -> int:
        """Encodes into an array of uint16 or uint32 that has room for len(data) ids. Returns how many there are."""
        scratch = self._lease()
        target = ffi.from_buffer(ids, require_writable=True)
        count = self._encode(scratch, data, specials, target, ids.itemsize, len(ids))
        self._free.append(scratch)
        return count

    def encode_batch(
        self,
        data: bytes,
        offsets: numpy.ndarray[Any, Any],
        specials: Specials | None,
        dtype: numpy.dtype[Any],
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Encodes many short texts; text i is data[offsets[i] : offsets[i + 1]], and `offsets` are uint64. Returns all
        ids in one array, and where each text ends in it (int64)."""
        import numpy

        strings = ffi.new("pybpe_strings *")
        c_data, c_offsets = ffi.from_buffer("uint8_t[]", data), ffi.from_buffer("uint64_t[]", offsets)
        strings.bytes, strings.offsets, strings.count = c_data, c_offsets, len(offsets) - 1
        scratch = self._lease()
        size = len(data) * dtype.itemsize
        room = scratch.room(size)
        ends = numpy.empty(len(offsets) - 1, dtype=numpy.int64)
        if lib.pybpe_encode_batch(
            self.c, scratch.cache, ffi.NULL if specials is None else specials.c, strings, room, dtype.itemsize,
            len(data), ffi.from_buffer("uint64_t[]", ends, require_writable=True), scratch.err,
        ):  # fmt: skip
            _raise(scratch.err)
        count = int(ends[-1]) if len(ends) else 0
        ids = numpy.frombuffer(ffi.buffer(room, size), dtype=dtype)[:count].copy()
        self._free.append(scratch)
        return ids, ends

    def encode_array(self, data: Data, specials: Specials | None, typecode: str) -> array[int]:
        """Returns the ids of one piece of text as an array of type H (uint16) or I (uint32)."""
        scratch = self._lease()
        ids = array(typecode)
        room = scratch.room(len(data) * ids.itemsize)
        count = self._encode(scratch, data, specials, room, ids.itemsize, len(data))
        ids.frombytes(ffi.buffer(room, count * ids.itemsize))
        self._free.append(scratch)
        return ids

    def count(self, data: Data, specials: Specials | None) -> int:
        """Returns how many ids a piece of text has."""
        scratch = self._lease()
        count = self._encode(scratch, data, specials, ffi.NULL, 4, 0)
        self._free.append(scratch)
        return count

    def encode_words(self, data: Data, ends: Sequence[int]) -> list[int]:
        """Returns the ids of text that the caller has cut into words ending at `ends`."""
        scratch = self._lease()
        view = ffi.from_buffer(data)
        ids = _new_uncleared("uint32_t[]", len(view) or 1)
        c_ends = ffi.new("size_t[]", ends)
        if lib.pybpe_encode_words(
            self.c, scratch.cache, view, c_ends, len(ends), ids, 4, len(view), scratch.count, scratch.err
        ):
            _raise(scratch.err)
        found: list[int] = ffi.unpack(ids, scratch.count[0])
        self._free.append(scratch)
        return found


# ----------------------------------------------------------------------------------------------------
# Documents in a stream of ids

MARKS: dict[str, int] = {
    "none": lib.PYBPE_MARKS_NONE,
    "prepend": lib.PYBPE_MARKS_PREPEND,
    "append": lib.PYBPE_MARKS_APPEND,
}


def count_id(ids: array[int] | memoryview, number: int) -> int:
    """Returns how many of the ids equal `number`."""
    buffer = IdBuffer(ids)
    return int(lib.pybpe_ids_count(buffer.c, buffer.id_bytes, buffer.count, number))


def place_marks(
    ids: array[int], mark: int, count: int, mode: str, is_open: bool
) -> tuple[memoryview, array[int], bool]:
    """Places one mark, or none, around each document in a piece of a stream: see pybpe_marks_place. The piece has
    `count` marks.

    Returns:
        The ids; where documents begin in them, of type Q; and whether a document is open at the end.
    """
    buffer = IdBuffer(ids)
    out = _new_uncleared("uint8_t[]", (buffer.count + 1) * buffer.id_bytes)
    starts = array("Q", bytes(8 * (count + 1)))
    c_open, documents = ffi.new("int *", is_open), ffi.new("size_t *")
    length = lib.pybpe_marks_place(
        buffer.c, buffer.id_bytes, buffer.count, mark, MARKS[mode], c_open, out, ffi.from_buffer("uint64_t[]", starts),
        documents,
    )  # fmt: skip
    del starts[documents[0] :]
    placed: Any = memoryview(ffi.buffer(out, length * buffer.id_bytes)).cast("B")
    return placed.cast(ids.typecode), starts, bool(c_open[0])


# ----------------------------------------------------------------------------------------------------
# Shards and batches

SHARD_FORMATS: dict[tuple[str, int], int] = {
    ("llmc", 2): lib.PYBPE_SHARD_UINT16,
    ("llmc", 4): lib.PYBPE_SHARD_UINT32,
    ("raw", 2): lib.PYBPE_SHARD_RAW_UINT16,
    ("raw", 4): lib.PYBPE_SHARD_RAW_UINT32,
}


class Shard:
    """A token shard with a header, for reading."""

    def __init__(self, path: PathLike) -> None:
        self.c = _make("pybpe_shard", lib.pybpe_shard_open, lib.pybpe_shard_free, path_bytes(path), ffi.NULL)

    def __len__(self) -> int:
        return int(lib.pybpe_shard_count(self.c))

    @property
    def id_bytes(self) -> int:
        """2 for uint16, 4 for uint32."""
        return int(lib.pybpe_shard_id_bytes(self.c))

    def read(self, start: int, count: int) -> numpy.ndarray[Any, Any]:
        """Returns tokens `start` to `start + count` (exclusive) as uint32, shape (count,)."""
        import numpy

        ids = numpy.empty(count, dtype=numpy.uint32)
        if count:
            _call(lib.pybpe_shard_read, self.c, start, count, ffi.from_buffer("uint32_t[]", ids))
        return ids


class ShardWriter:
    """A token shard being written. It appears, complete, at `finish`."""

    def __init__(self, path: PathLike, format: str, id_bytes: int) -> None:
        out = ffi.new("pybpe_shard_writer **")
        number = SHARD_FORMATS[format, id_bytes]
        _call(lib.pybpe_shard_writer_new, out, output_bytes(path), number, ffi.NULL)
        self._c = out[0]

    def write(self, ids: numpy.ndarray[Any, Any]) -> None:
        """Appends a contiguous array of uint16 or uint32."""
        if len(ids):
            _call(lib.pybpe_shard_writer_write, self._c, ffi.from_buffer(ids), ids.itemsize, len(ids))

    def finish(self) -> None:
        """Completes the file."""
        handle, self._c = self._c, ffi.NULL
        _call(lib.pybpe_shard_writer_finish, handle)

    def discard(self) -> None:
        """Removes the unfinished file. Does nothing after `finish`."""
        handle, self._c = self._c, ffi.NULL
        lib.pybpe_shard_writer_discard(handle)


class Loader:
    """llm.c's DataLoader: batches of shape (B, T) from the shards that match a glob pattern. Threads take turns."""

    def __init__(self, pattern: PathLike, B: int, T: int, rank: int, world: int, shuffle: bool) -> None:
        self._shape = (B, T)
        self._turn = threading.RLock()  # a signal handler may take a batch too
        self.c = _make(
            "pybpe_loader",
            lib.pybpe_loader_new,
            lib.pybpe_loader_free,
            path_bytes(pattern),
            B,
            T,
            rank,
            world,
            int(shuffle),
            ffi.NULL,
        )

    def next(self) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Returns inputs and targets, int32, each of shape (B, T)."""
        import numpy

        inputs = numpy.empty(self._shape, dtype=numpy.int32)
        targets = numpy.empty(self._shape, dtype=numpy.int32)
        with self._turn:
            _call(
                lib.pybpe_loader_next,
                self.c,
                ffi.from_buffer("int32_t[]", inputs),
                ffi.from_buffer("int32_t[]", targets),
            )
        return inputs, targets

    def reset(self) -> None:
        """Returns to the start."""
        with self._turn:
            _call(lib.pybpe_loader_reset, self.c)

    def seek(self, batches: int) -> None:
        """Moves to the state after `batches` calls of `next` on a new loader."""
        with self._turn:
            _call(lib.pybpe_loader_seek, self.c, batches)

    @property
    def tokens(self) -> int:
        """How many tokens all shards hold."""
        return int(lib.pybpe_loader_tokens(self.c))

    @property
    def batches(self) -> int:
        """How many batches each process gets per epoch."""
        return int(lib.pybpe_loader_batches(self.c))

    @property
    def shards(self) -> int:
        """How many shards match."""
        return int(lib.pybpe_loader_shards(self.c))
