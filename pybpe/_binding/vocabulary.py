"""Vocabularies, their files, and decoding."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, overload

from .. import errors
from .._lazy import cached_property, numpy
from .core import (
    NO_ID,
    PathLike,
    Strings,
    call,
    ffi,
    lib,
    make_handle,
    new_uncleared,
    output_bytes,
    path_bytes,
    strings_list,
)
from .text import NORMALIZERS

Item = TypeVar("Item")


def tokenizer_json_spans(text: bytes) -> list[int] | None:
    """Returns the byte offsets at which model.vocab and model.merges begin and end in a tokenizer.json; None if they
    are not certain."""
    spans = ffi.new("size_t[4]")
    found = lib.pybpe_tokenizer_json_find(ffi.from_buffer("uint8_t[]", text), len(text), spans)
    return ffi.unpack(spans, 4) if found else None


class VocabRules(NamedTuple):
    """The settings in a `pybpe_vocab_spec`: all parts of a vocabulary except tokens and merges."""

    specials: Iterable[int]
    eot_id: int | None
    pattern: int
    custom: str | None
    normalizer: str | None = None
    whole_words: bool = False
    prefix_space: bool = False


def _vocab_spec(rules: VocabRules) -> tuple[Any, tuple[Any, ...]]:
    """Returns a `pybpe_vocab_spec` without tokens and merges, and the objects that must live as long as it does."""
    special_ids = sorted(set(rules.specials))
    numbers = ffi.new("uint32_t[]", special_ids)
    regex = ffi.new("char[]", rules.custom.encode()) if rules.custom is not None else ffi.NULL
    spec = ffi.new("pybpe_vocab_spec *")
    spec.specials = numbers
    spec.specials_count = len(special_ids)
    spec.eot_id = NO_ID if rules.eot_id is None else rules.eot_id
    spec.pattern = rules.pattern
    spec.custom = regex
    spec.normalizer = NORMALIZERS[rules.normalizer]
    spec.whole_words = rules.whole_words
    spec.prefix_space = rules.prefix_space
    return spec, (numbers, regex)


def _special_texts(specials: Mapping[str, int]) -> Strings:
    """Returns the texts of special tokens in the order of their ids."""
    return Strings([text.encode("utf-8") for text in sorted(specials, key=specials.__getitem__)])


class Vocab:
    """A vocabulary in C. Immutable. Make one with `Vocab.new` or `Vocab.load`."""

    def __init__(self, c: Any) -> None:
        self.c = c
        self._spec = lib.pybpe_vocab_get_spec(c)  # kept, because cffi's view of a struct in it would not keep it alive

    @classmethod
    def new(cls, tokens: Sequence[bytes], merges: Sequence[tuple[int, int]] | None, rules: VocabRules) -> Vocab:
        """Makes a vocabulary: see pybpe_vocab_spec. If `merges` is None, recovers the merges from the order of ids."""
        spec, _kept = _vocab_spec(rules)
        if isinstance(tokens, VocabPart):
            spec.tokens = tokens.vocab._spec.tokens
        else:
            strings = Strings(tokens)
            spec.tokens = strings.c[0]
        if merges is None:
            count = ffi.new("size_t *")
            pairs = new_uncleared("uint32_t[]", 2 * len(tokens) + 2)
            call(lib.pybpe_vocab_recover_merges, spec, pairs, count, ffi.NULL)
            spec.merges_count = count[0]
        else:
            pairs = ffi.new("uint32_t[]", [i for pair in merges for i in pair])
            spec.merges_count = len(merges)
        spec.merges = pairs
        return cls(make_handle("pybpe_vocab", lib.pybpe_vocab_new, lib.pybpe_vocab_free, spec, ffi.NULL))

    def __reduce__(self) -> tuple[object, ...]:
        settings = (*self.pattern, self.normalizer, self.whole_words, self.prefix_space)
        return vocab_of_packed, (*map(bytes, self.packed()), VocabRules(self.specials(), self.eot_id, *settings))

    @classmethod
    def from_json(cls, text: bytes, spans: Sequence[int], specials: Mapping[str, int], rules: VocabRules) -> Vocab:
        """Makes a vocabulary from the tokens and merges of a tokenizer.json, at the offsets that `tokenizer_json_spans`
        found. Raises FormatError or ArgumentError if this function cannot read the file; Python may be able to."""
        texts, spec, _kept = _special_texts(specials), *_vocab_spec(rules)
        view = ffi.from_buffer("uint8_t[]", text)
        vocab, vocab_end, merges, merges_end = spans
        parts = view + vocab, vocab_end - vocab, view + merges, merges_end - merges
        make, free = lib.pybpe_vocab_new_json, lib.pybpe_vocab_free
        return cls(make_handle("pybpe_vocab", make, free, *parts, texts.c, spec, ffi.NULL))

    @classmethod
    def from_ranks(cls, text: bytes, specials: Mapping[str, int], rules: VocabRules) -> Vocab:
        """Makes a vocabulary from the content of a .tiktoken file. Raises FormatError or ArgumentError if this function
        cannot read it; Python may be able to."""
        texts, spec, _kept = _special_texts(specials), *_vocab_spec(rules)
        make, free = lib.pybpe_vocab_new_ranks, lib.pybpe_vocab_free
        return cls(make_handle("pybpe_vocab", make, free, text, len(text), texts.c, spec, ffi.NULL))

    @classmethod
    def load(cls, path: PathLike) -> Vocab:
        """Reads a tokenizer.bin."""
        return cls(make_handle("pybpe_vocab", lib.pybpe_vocab_load, lib.pybpe_vocab_free, path_bytes(path), ffi.NULL))

    def save(self, path: PathLike, bin_version: int) -> None:
        """Writes a tokenizer.bin of version 1 or 2."""
        call(lib.pybpe_vocab_save, self.c, output_bytes(path), bin_version)

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of ids and the number of merges."""
        spec = self._spec
        return spec.tokens.count, spec.merges_count

    def packed(self) -> tuple[Any, Any, Any]:
        """Returns three buffers that live as long as this object: all tokens end to end; the offsets at which each
        begins and the last ends (uint64); and the merges (two uint32 each)."""
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
        """Returns the bytes of every id; b"" for an unused id."""
        return strings_list(self._spec.tokens)

    def merges(self) -> list[tuple[int, int]]:
        """Returns the merges in rank order, as (left, right) ids."""
        spec = self._spec
        flat = ffi.unpack(spec.merges, 2 * spec.merges_count) if spec.merges_count else []
        return list(zip(flat[0::2], flat[1::2]))

    @property
    def parts(self) -> tuple[VocabPart[bytes], VocabPart[tuple[int, int]]]:
        """The tokens and the merges, which are made at their first use."""
        tokens, merges = self.sizes
        return VocabPart(self, self.tokens, tokens), VocabPart(self, self.merges, merges)

    def specials(self) -> list[int]:
        """Returns the ids of special tokens, ascending."""
        spec = self._spec
        return list(ffi.unpack(spec.specials, spec.specials_count)) if spec.specials_count else []

    @property
    def eot_id(self) -> int | None:
        """The id of the end-of-text token, or None."""
        eot: int = self._spec.eot_id
        return None if eot == NO_ID else eot

    @property
    def pattern(self) -> tuple[int, str | None]:
        """The number of the pattern, and the regular expression of a custom pattern or None."""
        spec = self._spec
        return spec.pattern, ffi.string(spec.custom).decode() if spec.custom != ffi.NULL else None

    @property
    def normalizer(self) -> str | None:
        """The normalizer: None, "NFC" or "NFKC"."""
        number = self._spec.normalizer
        return next(name for name, value in NORMALIZERS.items() if value == number)

    @property
    def whole_words(self) -> bool:
        """Whether a word that is a token is encoded as that token, even if the merges give other tokens."""
        return bool(self._spec.whole_words)

    @property
    def prefix_space(self) -> bool:
        """Whether a space is added before each text between special tokens."""
        return bool(self._spec.prefix_space)

    def decoded_length(self, ids: IdBuffer) -> int:
        """Returns the number of bytes that `decode_into` writes for these ids. Raises ArgumentError for an unknown
        id."""
        length = ffi.new("size_t *")
        call(lib.pybpe_decode, self.c, ids.c, ids.id_bytes, ids.count, ffi.NULL, 0, length)
        return int(length[0])

    def decode_into(self, ids: IdBuffer, out: Any, size: int) -> None:
        """Decodes ids to a C pointer. `size` is what `decoded_length` returned for them."""
        length = ffi.new("size_t *")
        call(lib.pybpe_decode, self.c, ids.c, ids.id_bytes, ids.count, out, size, length)
        if length[0] != size:
            raise errors.ArgumentError("another thread changed the ids while they were being decoded")


def vocab_of_packed(tokens: bytes, offsets: bytes, merges: bytes, rules: VocabRules) -> Vocab:
    """Makes a vocabulary from what `Vocab.packed` returned, which is how vocabularies are pickled. This is no method of
    the class, because dill would copy the code of one."""
    strings, spec, _kept = Strings(data=tokens, offsets=offsets), *_vocab_spec(rules)
    spec.tokens, spec.merges = strings.c[0], ffi.from_buffer("uint32_t[]", merges)
    spec.merges_count = len(merges) // 8
    return Vocab(make_handle("pybpe_vocab", lib.pybpe_vocab_new, lib.pybpe_vocab_free, spec, ffi.NULL))


class VocabPart(Sequence[Item], Generic[Item]):
    """Tokens or merges of a vocabulary: the list that `read()` returns, made at its first use. Most programs only
    encode, and making fifty thousand objects takes longer than loading the vocabulary. Immutable."""

    def __init__(self, vocab: Vocab, read: Callable[[], list[Item]], size: int) -> None:
        self.vocab, self._read, self._size = vocab, read, size

    @cached_property
    def _items(self) -> list[Item]:
        return self._read()

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        return self._items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[object, ...]:
        return VocabPart, (self.vocab, self._read, self._size)


class IdBuffer:
    """Ids as C reads them: an object with the buffer protocol whose items are unsigned, of 2 or 4 bytes."""

    def __init__(self, ids: array[int] | memoryview | numpy.ndarray[Any, Any]) -> None:
        self.ids = ids
        self.c = ffi.from_buffer(ids)
        self.id_bytes = ids.itemsize
        self.count = len(ids)


def new_bytes(size: int) -> tuple[bytes, Any]:
    """Returns a bytes object of zeros, and a pointer through which the caller fills it. As with
    PyBytes_FromStringAndSize, no other code may see the object before it is filled."""
    data = bytes(size)  # for large sizes the system supplies zeroed pages without writing them
    return data, ffi.from_buffer("uint8_t[]", data)
