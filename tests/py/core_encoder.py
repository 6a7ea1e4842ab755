"""Vocabularies and encoders of the C library, driven directly through cffi."""

from collections.abc import Sequence
from typing import Any

from pybpe._core import ffi, lib

NULL = ffi.NULL
BYTES = [bytes([byte]) for byte in range(256)]


class CoreError(Exception):
    """An error that the C library reported."""

    def __init__(self, err: Any) -> None:
        super().__init__(ffi.string(err.msg).decode())
        self.code = err.code
        self.offset = err.offset


def check(code: int, err: Any) -> None:
    assert code == err.code or code == lib.PYBPE_OK
    if code != lib.PYBPE_OK:
        raise CoreError(err)


def strings(items: Sequence[bytes]) -> tuple[Any, list[Any]]:
    """A pybpe_strings, and the objects that must outlive it."""
    offsets = [0]
    for item in items:
        offsets.append(offsets[-1] + len(item))
    alive = [ffi.new("uint8_t[]", b"".join(items)), ffi.new("uint64_t[]", offsets)]
    return ffi.new("pybpe_strings *", {"bytes": alive[0], "offsets": alive[1], "count": len(items)}), alive


def make_spec(
    tokens: Sequence[bytes],
    merges: Sequence[tuple[bytes, bytes]] = (),
    specials: Sequence[int] = (),
    pattern: int = lib.PYBPE_PATTERN_GPT2,
    custom: str | None = None,
    eot: int | None = None,
) -> tuple[Any, list[Any]]:
    """A pybpe_vocab_spec, and the objects that must outlive it. Merges name ordinary tokens."""
    listed, alive = strings(tokens)
    ids = {token: id_ for id_, token in enumerate(tokens) if id_ not in set(specials)}
    flat = [ids[part] for pair in merges for part in pair]
    alive += [listed, ffi.new("uint32_t[]", flat), ffi.new("uint32_t[]", list(specials))]
    alive.append(ffi.new("char[]", custom.encode()) if custom is not None else NULL)
    fields = {
        "tokens": listed[0],
        "merges": alive[-3],
        "merges_count": len(merges),
        "specials": alive[-2],
        "specials_count": len(specials),
        "eot_id": lib.PYBPE_NO_ID if eot is None else eot,
        "pattern": pattern,
        "normalizer": lib.PYBPE_NORMALIZER_NONE,
        "custom": alive[-1],
    }
    return ffi.new("pybpe_vocab_spec *", fields), alive


class Vocab:
    """A pybpe_vocab and its own error."""

    def __init__(self, c: Any) -> None:
        self.c = ffi.gc(c, lib.pybpe_vocab_free)
        self.err = ffi.new("pybpe_error *")

    @classmethod
    def new(cls, *args: Any, **kw: Any) -> "Vocab":
        spec, _alive = make_spec(*args, **kw)
        out, err = ffi.new("pybpe_vocab **"), ffi.new("pybpe_error *")
        check(lib.pybpe_vocab_new(out, spec, NULL, err), err)
        return cls(out[0])

    @classmethod
    def from_merges(cls, merges: Sequence[tuple[bytes, bytes]], specials: Sequence[bytes] = (), **kw: Any) -> "Vocab":
        """Makes a vocabulary: bytes, then the tokens of the merges, then the specials."""
        ordinary = list(dict.fromkeys([*BYTES, *(left + right for left, right in merges)]))
        ids = range(len(ordinary), len(ordinary) + len(specials))
        return cls.new([*ordinary, *specials], merges, ids, **kw)

    @classmethod
    def load(cls, data: bytes) -> "Vocab":
        out, err = ffi.new("pybpe_vocab **"), ffi.new("pybpe_error *")
        check(lib.pybpe_vocab_load_mem(out, data, len(data), NULL, err), err)
        return cls(out[0])

    def save(self, path: Any, version: int = 2) -> None:
        check(lib.pybpe_vocab_save(self.c, str(path).encode(), version, self.err), self.err)

    @property
    def spec(self) -> Any:
        return lib.pybpe_vocab_get_spec(self.c)

    @property
    def tokens(self) -> list[bytes]:
        t = self.spec.tokens
        return [ffi.buffer(t.bytes + t.offsets[i], t.offsets[i + 1] - t.offsets[i])[:] for i in range(t.count)]

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        tokens, spec = self.tokens, self.spec
        flat = [tokens[spec.merges[i]] for i in range(2 * spec.merges_count)]
        return list(zip(flat[::2], flat[1::2]))

    def decode(self, ids: Sequence[int]) -> bytes:
        array = ffi.new("uint32_t[]", list(ids))
        length = ffi.new("size_t *")
        check(lib.pybpe_decode(self.c, array, 4, len(ids), NULL, 0, length, self.err), self.err)
        out = ffi.new("uint8_t[]", length[0])
        check(lib.pybpe_decode(self.c, array, 4, len(ids), out, length[0], length, self.err), self.err)
        return bytes(ffi.buffer(out, length[0]))


class Encoder:
    """A pybpe_encoder with one cache."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self.err = ffi.new("pybpe_error *")
        out = ffi.new("pybpe_encoder **")
        check(lib.pybpe_encoder_new(out, vocab.c, NULL, self.err), self.err)
        self.c = ffi.gc(out[0], lib.pybpe_encoder_free)
        self.forget()

    def forget(self) -> None:
        """Empties the cache."""
        out = ffi.new("pybpe_cache **")
        check(lib.pybpe_cache_new(out, self.c, NULL, self.err), self.err)
        self.cache = ffi.gc(out[0], lib.pybpe_cache_free)

    def encode(self, text: bytes, specials: bool = False, id_bytes: int = 4) -> list[int]:
        ids = ffi.new(f"uint{8 * id_bytes}_t[]", len(text))
        count = ffi.new("size_t *")
        s = lib.pybpe_encoder_specials(self.c) if specials else NULL
        check(
            lib.pybpe_encode(
                self.c, self.cache, s, ffi.from_buffer(text), len(text), ids, id_bytes, len(text), count, self.err
            ),
            self.err,
        )
        return ffi.unpack(ids, count[0]) if count[0] else []

    def encode_words(self, words: Sequence[bytes]) -> list[int]:
        text = b"".join(words)
        ends = []
        at = 0
        for word in words:
            at += len(word)
            ends.append(at)
        ids = ffi.new("uint32_t[]", len(text))
        count = ffi.new("size_t *")
        check(
            lib.pybpe_encode_words(
                self.c, self.cache, text, ffi.new("size_t[]", ends), len(ends), ids, 4, len(text), count, self.err
            ),
            self.err,
        )
        return ffi.unpack(ids, count[0]) if count[0] else []
