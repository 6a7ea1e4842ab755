"""Decoding: converts the ids of callers for C, and turns ids that arrive one by one into text.

A chunk of ids takes a few milliseconds, and Ctrl-C works between chunks.
"""

from __future__ import annotations

import codecs
import operator
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from typing import Any

from .._binding import IdBuffer, Vocab, new_bytes
from .._lazy import numpy
from ..arguments import instance, number_of, param, shown
from ..errors import ArgumentError, UnknownIdError
from ..support.parallel import map_ordered, worker_count

CHUNK = 1 << 18  # ids
# The handlers of errors that do not look at the position of an error in all bytes, which differs in a chunk.
_BLIND = ("replace", "ignore", "strict", "backslashreplace", "surrogateescape", "surrogatepass")
_MANY = 1 << 14  # ids, whose decoding is worth handing to a thread


def id_chunks(ids: Iterable[int], vocab_size: int, position: int = 0) -> Iterator[IdBuffer]:
    """Returns the ids in chunks of CHUNK. The last may be shorter. Arrays that C can read directly are not copied.
    `position` is the position of the first id in error messages.

    Raises:
        ArgumentError: an item cannot be an id. The message gives its position. (C reports numbers that are not in the
            vocabulary.)
    """
    if isinstance(ids, (list, tuple)):
        return _list_chunks(ids, vocab_size, position)
    try:
        view = memoryview(ids)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # no buffer, or a numpy array of times, which cannot be exported
        view = None
    if view is None or view.ndim == 1 and view.format == "O":
        instance("ids", ids, Iterable, "a list, an array or another iterable of integers")
        return _list_chunks(list(ids), vocab_size, position)
    if view.ndim != 1:
        raise ArgumentError(f"expected ids in one dimension, not an array of shape {view.shape}")
    if view.format in ("H", "I") and view.c_contiguous:
        return (IdBuffer(view[i : i + CHUNK]) for i in range(0, len(view), CHUNK))
    return _array_chunks(view, vocab_size, position)


def _list_chunks(ids: Sequence[int], vocab_size: int, position: int) -> Iterator[IdBuffer]:
    for start in range(0, len(ids), CHUNK):
        part = ids[start : start + CHUNK] if len(ids) > CHUNK else ids
        try:
            numbers = array("I", part)
        except (OverflowError, TypeError):
            raise first_unknown(part, position + start, vocab_size) from None
        yield IdBuffer(numbers)


def _array_chunks(ids: memoryview, vocab_size: int, position: int) -> Iterator[IdBuffer]:
    """Yields chunks of an array of other integers: signed, wider, narrower, or not contiguous."""
    whole: numpy.ndarray[Any, Any] = numpy.asarray(ids)
    for start in range(0, len(whole), CHUNK):
        part = whole[start : start + CHUNK]
        if part.dtype.kind not in "iub" or bool(((part < 0) | (part >= vocab_size)).any()):
            raise first_unknown(part.tolist(), position + start, vocab_size)
        yield IdBuffer(part.astype(numpy.uint32))


def first_unknown(ids: Iterable[Any], start: int, vocab_size: int, unused: Sequence[bytes] = ()) -> ArgumentError:
    """Returns the error for the first item that is not an id. `start` is the position of the first item. `unused` are
    the tokens. An empty token means that its id is unused."""
    for position, i in enumerate(ids, start):
        try:
            known = 0 <= operator.index(i) < vocab_size
        except TypeError:
            known = False
        if not known or (unused and not unused[i]):
            return UnknownIdError(
                f"{shown(i)} at position {position} is not an id of this vocabulary (0 to {vocab_size - 1})"
                + (", where it is unused" if known else "")
            )
    return ArgumentError("another thread changed the ids while they were being decoded")


def has_none_of(hidden: frozenset[int], ids: Iterable[int]) -> bool:
    """Returns whether ids are a list, so that looking at them does not change them, without any of `hidden`."""
    try:
        return type(ids) is list and hidden.isdisjoint(ids)
    except TypeError:  # unhashable objects are not ids, and decoding raises
        return False


def error_handler(name: str) -> str:
    """Returns the name of a handler of bytes that are not UTF-8. Raises ArgumentError if there is no such handler."""
    instance("errors", name, str, "the name of an error handler")
    if name in ("replace", "strict"):
        return name
    try:
        b"\xff".decode("utf-8", name)
    except UnicodeDecodeError:
        pass
    except (LookupError, TypeError, ValueError):  # no handler, one for encoding only, a NUL in the name
        raise ArgumentError(
            f"{param('errors')} must be a handler of bytes.decode, such as 'replace', 'ignore' or 'strict', not"
            f" {shown(name)}"
        ) from None
    return name


def decoded_batch(
    decode: Callable[[Iterable[int]], str], batch: Iterable[Iterable[int]], num_threads: int | None
) -> list[str]:
    """Returns decode(ids) for all sequences of a batch, computed by threads, unless all are short: threads cost more
    than decoding these."""
    count, rows = worker_count(num_threads, "num_threads"), list(batch)
    has_long = any(not isinstance(ids, Sized) or len(ids) > _MANY for ids in rows)
    return list(map_ordered(decode, rows, count if has_long else 1))


class IdDecoder:
    """Decodes ids with one vocabulary. Immutable except for the text that streams keep, so threads may share it."""

    def __init__(self, tokens: Sequence[bytes], vocab: Vocab) -> None:
        """`tokens` are the bytes of id 0, 1, ...; b"" for an unused id."""
        self._tokens, self._vocab = tokens, vocab
        self._texts: dict[frozenset[int], list[str | None]] = {}

    def decode(self, ids: Iterable[int], start: int = 0) -> bytes:
        """Returns the bytes of ids that follow `start` others, which error messages count."""
        return self._joined(list(id_chunks(ids, len(self._tokens), start)), start)

    def length(self, ids: Iterable[int]) -> int:
        """Returns the number of bytes of ids, without decoding them."""
        return sum(self._sizes(list(id_chunks(ids, len(self._tokens)))))

    def text(self, ids: Iterable[int], errors: str, hidden: Collection[int] | None) -> str:
        """Returns the text of ids without those in `hidden`: see `Tokenizer.decode`."""
        errors = error_handler(errors)
        if hidden is not None:
            ids = [i for i in self.known_ids(ids) if i not in hidden]
        chunks = list(id_chunks(ids, len(self._tokens)))
        if len(chunks) <= 1 or errors not in _BLIND:
            return self._joined(chunks).decode("utf-8", errors)
        decoder = codecs.getincrementaldecoder("utf-8")(errors)
        text = ""
        try:
            for i, chunk in enumerate(chunks):  # a part takes some milliseconds. Python appends to a str in place
                text += decoder.decode(self._joined([chunk], i * CHUNK), final=chunk is chunks[-1])
        except UnicodeDecodeError:
            return self._joined(chunks).decode("utf-8", errors)  # raises the error with the position in all bytes
        return text

    def known_ids(self, ids: Iterable[int]) -> list[int]:
        """Returns the ids as a list. Raises UnknownIdError for the first one that is not in the vocabulary."""
        tokens, found = self._tokens, list[int]()
        for chunk in id_chunks(ids, len(tokens)):
            numbers = chunk.ids.tolist()
            if max(numbers) >= len(tokens) or not all(map(tokens.__getitem__, numbers)):
                raise first_unknown(numbers, len(found), len(tokens), tokens)
            found += numbers
        return found

    def token(self, i: int, position: int = 0) -> bytes:
        """Returns the bytes of an id; errors say that it is at `position`."""
        try:
            data = self._tokens[i] if i >= 0 else b""
        except (IndexError, TypeError):
            data = b""
        if not data:
            raise first_unknown([i], position, len(self._tokens), self._tokens)
        return data

    def stream_texts(self, skipped: Collection[int]) -> list[str | None]:
        """Returns the texts of tokens that are whole characters, by id, as streams that skip these ids return them. A
        stream enters a text when it first needs it. None means that it has not, or that the bytes are no text."""
        key = frozenset(skipped)
        if key not in self._texts:
            self._texts[key] = [None] * len(self._tokens)
        return self._texts[key]

    def _joined(self, chunks: Sequence[IdBuffer], start: int = 0) -> bytes:
        sizes = self._sizes(chunks, start)
        data, out = new_bytes(sum(sizes))
        for chunk, size in zip(chunks, sizes):
            self._vocab.decode_into(chunk, out, size)
            out += size
        return data

    def _sizes(self, chunks: Sequence[IdBuffer], start: int = 0) -> list[int]:
        """Returns the numbers of bytes of all chunks of ids. `start` others come before."""
        sizes = []
        for i, chunk in enumerate(chunks):
            try:
                sizes.append(self._vocab.decoded_length(chunk))
            except ArgumentError:
                raise first_unknown(chunk.ids, start + i * CHUNK, len(self._tokens), self._tokens) from None
        return sizes


class DecodeStream:
    """Decodes ids that arrive one by one. Never returns part of a character.

    `push` returns the text that the new id completes, and keeps the bytes of an incomplete character for the next id.
    The results of `push` and `flush`, joined, equal what `Tokenizer.decode` returns for all ids: with errors="replace"
    invalid bytes become U+FFFD, and with "surrogateescape" no byte is lost.

    >>> import pybpe
    >>> tokenizer = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
    >>> stream = tokenizer.decode_stream()
    >>> [stream.push(i) for i in "né".encode()], stream.flush()
    (['n', '', 'é'], '')
    """

    def __init__(self, tokenizer: Any, errors: str = "replace", skipped: Collection[int] = ()) -> None:
        """`tokenizer` is a Tokenizer. The text of the ids in `skipped` is left out."""
        decoder: IdDecoder = tokenizer._decoder
        self._tokenizer, self._bytes_of = tokenizer, decoder.token
        self._decoder = codecs.getincrementaldecoder("utf-8")(error_handler(errors))
        self._skipped = skipped
        self._texts = decoder.stream_texts(skipped)
        self._position = 0

    def __repr__(self) -> str:
        return f"DecodeStream(after {number_of(self._position, 'id')} of {self._tokenizer!r})"

    def push(self, token: int) -> str:
        """Returns the text that one more id completes, or "" if it completes no character.

        Raises:
            ArgumentError: the id is not in the vocabulary. The stream does not change.
        """
        try:
            text = self._texts[token] if token >= 0 else None
        except (IndexError, TypeError):
            text = None
        if text is None or self._decoder.buffer:
            return self._push_bytes(token)
        self._position += 1
        return text

    def _push_bytes(self, token: int) -> str:
        """Like `push`, for a token that is new, is not whole characters, or follows part of a character."""
        data = self._bytes_of(token, self._position)
        self._position += 1
        if token in self._skipped:
            data = b""
        if not self._decoder.buffer:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                pass
            else:
                self._texts[token] = text
                return text
        return self._decoder.decode(data)

    def flush(self) -> str:
        """Ends the text and returns the rest of it, which `push` has kept. The stream can then decode another text."""
        self._position = 0
        return self._decoder.decode(b"", final=True)
