"""Decodes ids that arrive one by one, as a model generates them."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tokenizer import Tokenizer


class DecodeStream:
    """Decodes ids that arrive one by one, and never splits a character.

    `push` returns the text that can be shown so far; bytes of an incomplete character wait for the next id. What
    `push` and `flush` return, joined, equals what `Tokenizer.decode` returns for all ids: with errors="replace"
    invalid bytes become U+FFFD, and with "surrogateescape" no byte is lost.

    >>> import pybpe
    >>> tokenizer = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
    >>> stream = tokenizer.decode_stream()
    >>> [stream.push(i) for i in "né".encode()], stream.flush()
    (['n', '', 'é'], '')
    """

    def __init__(self, tokenizer: Tokenizer, errors: str = "replace") -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)
        self._position = 0

    def __repr__(self) -> str:
        return f"DecodeStream(after {self._position} ids of {self._tokenizer!r})"

    def push(self, token: int) -> str:
        """Returns the text that one more id completes; "" if it completes no character.

        Raises:
            ArgumentError: the id is not in the vocabulary. The stream does not change.
        """
        data = self._tokenizer.decode_single_token_bytes(token, self._position)
        self._position += 1
        return self._decoder.decode(data)

    def flush(self) -> str:
        """Ends the stream and returns the text that was held back. The stream can then be used for another text."""
        self._position = 0
        return self._decoder.decode(b"", final=True)
