"""Vocabularies, their files, decoding and encoding."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, NamedTuple, TypeVar, overload

from .. import errors
from .._lazy import Array, cached_property, numpy
from ..errors import OutOfMemoryError
from .core import (
    NO_ID,
    Data,
    PathLike,
    Strings,
    call,
    ffi,
    lib,
    make_handle,
    new_uncleared,
    output_bytes,
    path_bytes,
    raise_error,
    strings_list,
)
from .text import NORMALIZERS, Pretok, Specials

Item = TypeVar("Item")


def tokenizer_json_spans(text: bytes) -> list[int] | None:
    """Returns the byte offsets where model.vocab and model.merges begin and end in a tokenizer.json, or None if they
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
    """Returns the special tokens as text, in the order of their ids."""
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
        found. Raises FormatError or ArgumentError if this function cannot read the file. Python may be able to."""
        texts, spec, _kept = _special_texts(specials), *_vocab_spec(rules)
        view = ffi.from_buffer("uint8_t[]", text)
        vocab, vocab_end, merges, merges_end = spans
        parts = view + vocab, vocab_end - vocab, view + merges, merges_end - merges
        make, free = lib.pybpe_vocab_new_json, lib.pybpe_vocab_free
        return cls(make_handle("pybpe_vocab", make, free, *parts, texts.c, spec, ffi.NULL))

    @classmethod
    def from_ranks(cls, text: bytes, specials: Mapping[str, int], rules: VocabRules) -> Vocab:
        """Makes a vocabulary from the content of a .tiktoken file. Raises FormatError or ArgumentError if this function
        cannot read it. Python may be able to."""
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
        """Returns three buffers that live as long as this object: all tokens end to end, the offsets where tokens
        begin and the last one ends (uint64), and the merges (two uint32 per merge)."""
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
        """Whether a space is added before every text between special tokens."""
        return bool(self._spec.prefix_space)

    def decoded_length(self, ids: IdBuffer) -> int:
        """Returns the number of bytes that `decode_into` writes for these ids. Raises ArgumentError for an unknown
        id."""
        length = ffi.new("size_t *")
        call(lib.pybpe_decode, self.c, ids.c, ids.id_bytes, ids.count, ffi.NULL, 0, length)
        return int(length[0])

    def decode_into(self, ids: IdBuffer, out: Any, size: int) -> None:
        """Decodes ids to a C pointer. `size` is the result of `decoded_length` for them."""
        length = ffi.new("size_t *")
        call(lib.pybpe_decode, self.c, ids.c, ids.id_bytes, ids.count, out, size, length)
        if length[0] != size:
            raise errors.ArgumentError("another thread changed the ids while they were being decoded")


def vocab_of_packed(tokens: bytes, offsets: bytes, merges: bytes, rules: VocabRules) -> Vocab:
    """Makes a vocabulary from the result of `Vocab.packed`, which is how vocabularies are pickled. This is no method of
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
    """Returns a bytes object of zeros, and a pointer for the caller to fill it. As with
    PyBytes_FromStringAndSize, no other code may see the object before it is filled."""
    data = bytes(size)  # for large sizes the system supplies zeroed pages without writing them
    return data, ffi.from_buffer("uint8_t[]", data)


# ----------------------------------------------------------------------------------------------------
# Encoding.


_NORMALIZED_GROWTH = 11  # NFKC turns the 3 bytes of U+FDFA into 33. No other character grows more
_LIST_STEP = 1 << 20  # ids that become Python's ints in one call. Other threads and Ctrl-C wait for it

View = TypeVar("View")


class _Scratch:
    """The memory of one thread that encodes: a word cache, and buffers that calls reuse."""

    BLOCK = 1 << 23  # bytes. The ids of a piece (reading/cuts.py) of a long text fit, at either id size

    def __init__(self, encoder: Any) -> None:
        self.cache = make_handle("pybpe_cache", lib.pybpe_cache_new, lib.pybpe_cache_free, encoder, ffi.NULL)
        self.err = ffi.new("pybpe_error *")
        self._block: Any = None  # BLOCK bytes, allocated at the first use. Memory that is not touched costs nothing
        self._one = [ffi.new(kind) for kind in ("const uint8_t *[1]", "size_t[1]", "uint64_t[1]")]
        self._text = ffi.new("pybpe_texts *", {"starts": self._one[0], "lengths": self._one[1], "count": 1})

    def room(self, size: int) -> Any:
        """Returns memory for `size` bytes of ids, which the next call reuses: fresh memory for the greatest possible
        number of ids would cost more than a copy of the ids."""
        if size > self.BLOCK:
            return new_uncleared("uint32_t[]", size // 4 + 1)
        if self._block is None:
            self._block = new_uncleared("uint32_t[]", self.BLOCK // 4)
        return self._block

    def find(self, texts: Sequence[str | Data]) -> tuple[Any, int, Any, object]:
        """Returns where the texts are, for C, their total length, room for the end of each, and an object that must
        live until C has read them, as must the texts. Raises TypeError if one of several texts is neither bytes nor a
        str without lone surrogates."""
        if len(texts) == 1 and not isinstance(texts[0], str):
            view = ffi.from_buffer("uint8_t[]", texts[0])
            starts, lengths, ends = self._one
            starts[0], lengths[0] = view, len(view)
            return self._text, len(view), ends, view
        texts = texts if isinstance(texts, list) else list(texts)
        starts, lengths = new_uncleared("const uint8_t *[]", len(texts)), new_uncleared("size_t[]", len(texts))
        size = lib.texts_find(id(texts), starts, lengths)
        if size < 0:
            raise TypeError("expected a list of bytes and of strs without lone surrogates")
        found = ffi.new("pybpe_texts *", {"starts": starts, "lengths": lengths, "count": len(texts)})
        return found, size, new_uncleared("uint64_t[]", len(texts)), (texts, starts, lengths)


class Ids(NamedTuple):
    """The ids of some texts: see Encoder.encode."""

    room: Any  # memory that begins with all ids in order
    ends: Any  # the indices where the ids of the texts end
    texts: int  # the number of texts
    ints: Any  # Python's ints of ids: see id_lists.h

    def total(self) -> int:
        """Returns the number of ids."""
        return self.ends[self.texts - 1] if self.texts else 0

    def lists(self) -> list[list[int]]:
        """Returns one list of ids per text. Ids must have 4 bytes."""
        if self.texts == 1:
            return [_list(self.ints, self.room, self.ends[0])]
        found: list[list[int]] = []
        _append_lists(found, self.ints, self.room, self.ends, self.texts)
        return found

    def compact(self, typecode: str) -> tuple[array[int], array[int]]:
        """Returns copies of all ids, and of the ends as an array of type Q."""
        ids, ends = array(typecode), array("Q")
        ids.frombytes(ffi.buffer(self.room, self.total() * ids.itemsize))
        ends.frombytes(ffi.buffer(self.ends, 8 * self.texts))
        return ids, ends

    def array(self, dtype: numpy.dtype[Any]) -> Array:
        """Returns a copy of all ids."""
        ids: Array = numpy.frombuffer(ffi.buffer(self.room, self.total() * dtype.itemsize), dtype).copy()
        return ids

    def arrays(self, dtype: numpy.dtype[Any]) -> tuple[Array, Array]:
        """Returns copies of all ids, and of the ends as int64, after a 0."""
        return self.array(dtype), numpy.concatenate(([0], self.numpy_ends()))

    def numpy_ends(self) -> Array:
        """Returns a copy of the ends as int64."""
        ends: Array = numpy.frombuffer(ffi.buffer(self.ends, 8 * self.texts), numpy.int64).copy()
        return ends


def _list(ints: Any, ids: Any, count: int) -> list[int]:
    found: list[list[int]] = []
    for start in range(0, count, _LIST_STEP):
        _append_lists(found, ints, ids + start, [min(count - start, _LIST_STEP)], 1)
    return found[0] if len(found) == 1 else [i for some in found for i in some]


def _append_lists(found: list[list[int]], ints: Any, ids: Any, ends: Any, count: int) -> None:
    if lib.id_lists_append(ints, id(found), ids, ends, count):
        raise OutOfMemoryError("out of memory: lists of ids")


class ShortCalls:
    """The functions of csrc/python/short_calls.h, which return None unless their argument is short and right."""

    encode: Callable[[object], list[int] | None]
    encode_ordinary: Callable[[object], list[int] | None]
    encode_array: Callable[[object], Array | None]
    count: Callable[[object], int | None]
    decode: Callable[[object], str | None]
    decode_bytes: Callable[[object], bytes | None]

    def __init__(self, functions: Mapping[str, Callable[[Any], Any]]) -> None:
        vars(self).update(functions)


def _none(_: object) -> None:
    """Stands in for a function for short texts, where only the long way is right."""


class Encoder:
    """An encoder for one vocabulary. Threads share it: a call borrows a scratch from a free list, whose pop and
    append are atomic, so no lock is held while encoding.

    Attributes:
        growth: the most ids for a byte of text, before it is normalized and gets a space.
    """

    def __init__(self, vocab: Vocab, pretok: Pretok | None = None, prepares: bool = False) -> None:
        """Makes an encoder. `pretok` splits the texts if the vocabulary's pattern is not built in. If `prepares`, the
        encoder normalizes texts, and adds spaces before them, as the vocabulary says. If not, the caller does that."""
        self._keep = (vocab, pretok)
        pretok_c = pretok.c if pretok is not None else ffi.NULL
        flags = 0 if prepares else lib.PYBPE_ENCODER_NORMALIZED
        new, free = lib.pybpe_encoder_new, lib.pybpe_encoder_free
        self.c = make_handle("pybpe_encoder", new, free, vocab.c, pretok_c, flags, ffi.NULL)
        # A text that gets a space has at least one byte.
        self.growth = (1 if vocab.normalizer is None else _NORMALIZED_GROWTH) + vocab.prefix_space
        self._free: list[_Scratch] = []
        self._ints = lib.id_ints_new(vocab.sizes[0])
        if self._ints == ffi.NULL:
            raise OutOfMemoryError("out of memory: ints of ids")
        self._ints = ffi.gc(self._ints, lib.id_ints_free)

    def _lease(self) -> _Scratch:
        try:
            return self._free.pop()
        except IndexError:
            return _Scratch(self.c)

    def encode(
        self,
        texts: Sequence[str | Data],
        specials: Specials | None,
        id_bytes: int,
        view: Callable[[Ids], View],
        room: Callable[[int], Array] | None = None,
    ) -> View:
        """Encodes texts.

        Args:
            texts: one text as bytes or another buffer, or a list of bytes and of strs of ASCII. (CPython would keep the
                UTF-8 of another str: see str_utf8.)
            specials: the special tokens to look for.
            id_bytes: the size of an id: 2 or 4, or 0 if only the numbers of ids are needed.
            view: makes the result from the ids.
            room: returns an array with room for a number of ids. None means memory that the next call reuses.

        Raises:
            TypeError: one of several texts has another type, or is a str with lone surrogates.
        """
        scratch = self._lease()
        c_texts, size, ends, _keep = scratch.find(texts)
        most = self.growth * size
        if room is not None:
            memory: Any = room(most)
            ids = ffi.from_buffer(memory, require_writable=True)
        else:
            memory = ids = scratch.room(most * id_bytes) if id_bytes else ffi.NULL
        specials_c = ffi.NULL if specials is None else specials.c
        if lib.pybpe_encode_batch(
            self.c, scratch.cache, specials_c, c_texts, ids, id_bytes or 4, most if id_bytes else 0, ends, scratch.err
        ):  # fmt: skip
            raise_error(scratch.err)
        found = view(Ids(memory, ends, len(texts), self._ints))
        self._free.append(scratch)
        return found

    def of_lists(
        self,
        rows: Sequence[Sequence[int]],
        id_bytes: int,
        view: Callable[[Ids], View],
        room: Callable[[int], Array] | None = None,
    ) -> View:
        """Like `encode`, for texts whose ids the caller has."""
        ids = array("H" if id_bytes == 2 else "I", chain.from_iterable(rows))
        ends = ffi.new("uint64_t[]", list(accumulate(map(len, rows))))
        memory: Any = ffi.cast("uint32_t *", ffi.from_buffer(ids))
        if room is not None:
            memory = room(len(ids))
            memory[: len(ids)] = ids
        return view(Ids(memory, ends, len(rows), self._ints))

    def short_calls(self, specials: Specials | None, id_bytes: int, encodes: bool) -> ShortCalls:
        """Returns functions for short texts. If not `encodes`, the ones that encode always return None. The caller
        keeps this encoder and the specials for as long."""
        vocab: Vocab = self._keep[0]
        functions: dict[str, Callable[[Any], Any]] = {}
        specials_c = ffi.NULL if specials is None else specials.c
        if lib.short_calls_add(id(functions), self.c, specials_c, vocab.c, self._ints, id_bytes):
            raise OutOfMemoryError("out of memory: functions for short texts")
        others = () if encodes else ("encode", "encode_ordinary", "encode_array", "count")
        return ShortCalls(functions | dict.fromkeys(others, _none))

    def encode_dropout(self, data: bytes, rate: float, seed: int, offset: int) -> list[int]:
        """Returns the ids of ordinary text with merges left out at random. The text begins at the byte `offset` of the
        whole text."""
        how = ffi.new("pybpe_dropout *", {"rate": rate, "seed": seed, "offset": offset})
        count, err = ffi.new("size_t *"), ffi.new("pybpe_error *")
        ids = new_uncleared("uint32_t[]", len(data) or 1)
        if lib.pybpe_encode_dropout(self.c, how, data, len(data), ids, count, err):
            raise_error(err)
        return _list(self._ints, ids, count[0])

    def encode_words(self, data: Data, ends: Sequence[int]) -> list[int]:
        """Returns the ids of a text that the caller has split into words, which end at the byte offsets `ends`."""
        scratch, count = self._lease(), ffi.new("size_t *")
        view = ffi.from_buffer(data)
        ids, c_ends = new_uncleared("uint32_t[]", len(view) or 1), ffi.new("size_t[]", ends)
        if lib.pybpe_encode_words(
            self.c, scratch.cache, view, c_ends, len(ends), ids, 4, len(view), count, scratch.err
        ):  # fmt: skip
            raise_error(scratch.err)
        self._free.append(scratch)
        return _list(self._ints, ids, count[0])
