"""Encoding."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import numpy
from ..errors import OutOfMemoryError
from .core import Data, ffi, lib, make_handle, new_uncleared, raise_error
from .text import Pretok, Specials
from .vocabulary import Vocab

_NORMALIZED_GROWTH = 11  # NFKC turns the 3 bytes of U+FDFA into 33; no other character grows more
_LIST_STEP = 1 << 20  # ids that become Python's ints in one call; other threads and Ctrl-C wait for it


class _Scratch:
    """The memory with which one thread encodes: a word cache, and buffers that calls reuse."""

    BLOCK = 1 << 23  # bytes; the ids of a piece (reading/pieces.py) of a long text fit, at either id size

    def __init__(self, encoder: Any) -> None:
        self.cache = make_handle("pybpe_cache", lib.pybpe_cache_new, lib.pybpe_cache_free, encoder, ffi.NULL)
        self.err = ffi.new("pybpe_error *")
        self.count = ffi.new("size_t *")
        self._block: Any = None  # BLOCK bytes, allocated at the first use; memory that is not touched costs nothing

    def room(self, size: int) -> Any:
        """Returns memory for `size` bytes of ids. The caller must copy the ids, because the next call reuses the
        memory: fresh memory for the greatest possible number of ids would cost more than the copy."""
        if size > self.BLOCK:
            return new_uncleared("uint32_t[]", size // 4 + 1)
        if self._block is None:
            self._block = new_uncleared("uint32_t[]", self.BLOCK // 4)
        return self._block


def _find_texts(texts: list[str | bytes]) -> tuple[Any, int, object]:
    """Returns where the texts are, for C; their total length; and what must be kept until C has read them, as must the
    list. Raises TypeError if a text has another type, or is a str with lone surrogates."""
    starts, lengths = new_uncleared("const uint8_t *[]", len(texts)), new_uncleared("size_t[]", len(texts))
    size = lib.texts_find(id(texts), starts, lengths)
    if size < 0:
        raise TypeError("expected a list of bytes and of strs without lone surrogates")
    return (
        ffi.new("pybpe_texts *", {"starts": starts, "lengths": lengths, "count": len(texts)}),
        size,
        (starts, lengths),
    )


class ShortCalls:
    """What csrc/python/short_calls.h describes: functions that return None unless their argument is short and right."""

    encode: Callable[[object], list[int] | None]
    encode_ordinary: Callable[[object], list[int] | None]
    encode_array: Callable[[object], numpy.ndarray[Any, Any] | None]
    count: Callable[[object], int | None]
    decode: Callable[[object], str | None]
    decode_bytes: Callable[[object], bytes | None]

    def __init__(self, functions: Mapping[str, Callable[[Any], Any]]) -> None:
        vars(self).update(functions)


def _none(_: object) -> None:
    """Stands in for a function for short texts, where only the long way is right."""


class Encoder:
    """An encoder for one vocabulary. Threads share it: each call borrows a scratch from a free list, whose pop and
    append are atomic, so no lock is held while encoding.

    Attributes:
        growth: the most ids for a byte of text, before it is normalized and gets a space.
    """

    def __init__(self, vocab: Vocab, pretok: Pretok | None = None, prepares: bool = False) -> None:
        """Makes an encoder. `pretok` splits the texts if the vocabulary's pattern is not built in. If `prepares`, the
        encoder normalizes texts, and adds spaces before them, as the vocabulary says. If not, the caller does that."""
        self._keep = (vocab, pretok)
        pretok_c = pretok.c if pretok is not None else ffi.NULL
        new = lib.pybpe_encoder_new_pretok if prepares else lib.pybpe_encoder_new_normalized
        self.c = make_handle("pybpe_encoder", new, lib.pybpe_encoder_free, vocab.c, pretok_c, ffi.NULL)
        # Each text that gets a space has at least one byte.
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

    def _encode(
        self, scratch: _Scratch, data: Data, specials: Specials | None, ids: Any, id_bytes: int, cap: int
    ) -> int:
        if lib.pybpe_encode(
            self.c,
            scratch.cache,
            ffi.NULL if specials is None else specials.c,
            data if type(data) is bytes else ffi.from_buffer(data),  # cffi accepts bytes directly, which is faster
            len(data),
            ids,
            id_bytes,
            cap,
            scratch.count,
            scratch.err,
        ):
            raise_error(scratch.err)
        return scratch.count[0]  # type: ignore[no-any-return]

    def encode(self, data: Data, specials: Specials | None) -> list[int]:
        """Returns the ids of one piece of text."""
        scratch = self._lease()
        cap = self.growth * len(data)
        ids = new_uncleared("uint32_t[]", cap)
        count = self._encode(scratch, data, specials, ids, 4, cap)
        self._free.append(scratch)
        return self._list(ids, count)

    def _list(self, ids: Any, count: int) -> list[int]:
        found: list[int] = []
        for start in range(0, count, _LIST_STEP):
            (some,) = self.lists(ids + start, [min(count - start, _LIST_STEP)])
            found = found + some if found else some
        return found

    def lists(self, ids: Any, ends: Any) -> list[list[int]]:
        """Returns lists of ids, each of which ends at an index of `ids`: memory of C, or an array, of uint32."""
        found: list[list[int]] = []
        ids_c = ids if isinstance(ids, ffi.CData) else ffi.from_buffer("uint32_t[]", ids)
        ends_c = ffi.new("uint64_t[]", ends) if isinstance(ends, list) else ffi.from_buffer("uint64_t[]", ends)
        if lib.id_lists_append(self._ints, id(found), ids_c, ends_c, len(ends)):
            raise OutOfMemoryError("out of memory: lists of ids")
        return found

    def encode_into(self, data: Data, specials: Specials | None, ids: numpy.ndarray[Any, Any]) -> int:
        """Encodes into an array of uint16 or uint32 with room for growth * len(data) ids. Returns their number."""
        scratch = self._lease()
        target = ffi.from_buffer(ids, require_writable=True)
        count = self._encode(scratch, data, specials, target, ids.itemsize, len(ids))
        self._free.append(scratch)
        return count

    def encode_batch(
        self,
        texts: list[str | bytes],
        specials: Specials | None,
        room: Callable[[int], numpy.ndarray[Any, Any]],
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Encodes many short texts.

        Args:
            texts: bytes, and strs of ASCII. (CPython would keep the UTF-8 of another str: see str_utf8.)
            specials: the special tokens to look for.
            room: returns an array of uint16 or uint32 with room for a number of ids.

        Returns:
            All ids, in the array that `room` returned, and the index at which each text ends in it: shape (texts,),
            int64.

        Raises:
            TypeError: a text has another type, or is a str with lone surrogates.
        """
        c_texts, size, _keep = _find_texts(texts)
        ends = numpy.empty(len(texts), dtype=numpy.int64)
        scratch = self._lease()
        ids = room(self.growth * size)
        if lib.pybpe_encode_batch(
            self.c, scratch.cache, ffi.NULL if specials is None else specials.c, c_texts,
            ffi.from_buffer(ids, require_writable=True), ids.itemsize, len(ids),
            ffi.from_buffer("uint64_t[]", ends, require_writable=True), scratch.err,
        ):  # fmt: skip
            raise_error(scratch.err)
        self._free.append(scratch)
        return ids[: int(ends[-1]) if len(ends) else 0], ends

    def encode_array(self, data: Data, specials: Specials | None, typecode: str) -> array[int]:
        """Returns the ids of one piece of text as an array of type H (uint16) or I (uint32)."""
        scratch = self._lease()
        ids, cap = array(typecode), self.growth * len(data)
        room = scratch.room(cap * ids.itemsize)
        count = self._encode(scratch, data, specials, room, ids.itemsize, cap)
        ids.frombytes(ffi.buffer(room, count * ids.itemsize))
        self._free.append(scratch)
        return ids

    def encode_texts(
        self, texts: Sequence[bytes], specials: Specials | None, typecode: str
    ) -> tuple[array[int], array[int]]:
        """Encodes many short texts. Returns all ids, and the index at which the ids of each text end, as an array of
        type Q."""
        some: list[str | bytes] = list(texts)
        c_texts, size, _keep = _find_texts(some)
        ends = array("Q", bytes(8 * len(some)))
        scratch = self._lease()
        ids, size = array(typecode), self.growth * size
        room = scratch.room(size * ids.itemsize)
        if lib.pybpe_encode_batch(
            self.c, scratch.cache, ffi.NULL if specials is None else specials.c, c_texts, room, ids.itemsize, size,
            ffi.from_buffer("uint64_t[]", ends, require_writable=True), scratch.err,
        ):  # fmt: skip
            raise_error(scratch.err)
        ids.frombytes(ffi.buffer(room, ends[-1] * ids.itemsize if some else 0))
        self._free.append(scratch)
        return ids, ends

    def short_calls(self, specials: Specials | None, id_bytes: int, encodes: bool) -> ShortCalls:
        """Returns functions for short texts; if not `encodes`, those that encode always return None. The caller keeps
        this encoder and the specials for as long."""
        vocab: Vocab = self._keep[0]
        functions: dict[str, Callable[[Any], Any]] = {}
        specials_c = ffi.NULL if specials is None else specials.c
        if lib.short_calls_add(id(functions), self.c, specials_c, vocab.c, self._ints, id_bytes):
            raise OutOfMemoryError("out of memory: functions for short texts")
        others = () if encodes else ("encode", "encode_ordinary", "encode_array", "count")
        return ShortCalls(functions | dict.fromkeys(others, _none))

    def count(self, data: Data, specials: Specials | None) -> int:
        """Returns the number of ids of a piece of text."""
        scratch = self._lease()
        count = self._encode(scratch, data, specials, ffi.NULL, 4, 0)
        self._free.append(scratch)
        return count

    def encode_dropout(self, data: bytes, rate: float, seed: int, offset: int) -> list[int]:
        """Returns the ids of ordinary text with merges left out at random. The text begins at the byte `offset` of the
        whole text."""
        how = ffi.new("pybpe_dropout *", {"rate": rate, "seed": seed, "offset": offset})
        count, err = ffi.new("size_t *"), ffi.new("pybpe_error *")
        ids = new_uncleared("uint32_t[]", len(data) or 1)
        if lib.pybpe_encode_dropout(self.c, how, data, len(data), ids, count, err):
            raise_error(err)
        return self._list(ids, count[0])

    def encode_words(self, data: Data, ends: Sequence[int]) -> list[int]:
        """Returns the ids of a text that the caller has split into words, which end at the byte offsets `ends`."""
        scratch = self._lease()
        view = ffi.from_buffer(data)
        ids = new_uncleared("uint32_t[]", len(view) or 1)
        c_ends = ffi.new("size_t[]", ends)
        if lib.pybpe_encode_words(
            self.c, scratch.cache, view, c_ends, len(ends), ids, 4, len(view), scratch.count, scratch.err
        ):
            raise_error(scratch.err)
        count = scratch.count[0]
        self._free.append(scratch)
        return self._list(ids, count)
