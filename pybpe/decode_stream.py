"""Decoding of ids that arrive one by one, as a model makes them."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tokenizer import Tokenizer


class DecodeStream:
    """Decodes ids that arrive one by one, without ever splitting a character.

    `push` returns what can be shown so far; bytes of an unfinished character wait for the next id. All that
    `push` and `flush` return, joined, is what `Tokenizer.decode` gives for all ids: with errors="replace"
    invalid bytes become U+FFFD, with "surrogateescape" none is lost.

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
        """The text that one more id completes; "" if it completes none.

        Raises:
            ArgumentError: an id that is not in the vocabulary. The stream is then as it was before.
        """
        data = self._tokenizer.decode_single_token_bytes(token, self._position)
        self._position += 1
        return self._decoder.decode(data)

    def flush(self) -> str:
        """What was held back, at the end of the stream. Then the stream can be used for another text."""
        self._position = 0
        return self._decoder.decode(b"", final=True)
