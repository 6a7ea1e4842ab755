"""A tiktoken.Encoding that encodes and decodes with pybpe, for programs written for tiktoken.

tiktoken is optional (pip install tiktoken): this module can be imported without it.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ._lazy import Array, numpy
from .arguments import instance
from .errors import ArgumentError
from .tokenizer import Tokenizer
from .tokenizer.encoding import AllowedSpecial

_SEQUENCES = (list, tuple, array, numpy.ndarray)  # of ids. tiktoken takes some others, but no iterators and no sets


def _base() -> Any:
    """Returns tiktoken's class. Without tiktoken, no Encoding is ever made."""
    try:
        from tiktoken import Encoding
    except ImportError:
        return object
    return Encoding


class Encoding(_base()):  # type: ignore[misc]
    """A tiktoken.Encoding with the same methods, results and errors, at pybpe's speed.

    Methods that programs seldom call, such as `encode_with_unstable`, are tiktoken's own code. tiktoken also handles
    every call that pybpe refuses, and decides about the result or the error.

    >>> from pybpe import train
    >>> encoding = Encoding(train(iter(["hello world"]), vocab_size=260), "mine")
    >>> encoding.decode(encoding.encode("hello")), encoding.name, encoding.n_vocab
    ('hello', 'mine', 260)
    """

    def __init__(self, tokenizer: Tokenizer, name: str = "pybpe") -> None:
        """Makes an encoding that gives the ids of `tokenizer`.

        Raises:
            UnsupportedError: no tiktoken.Encoding can represent the tokenizer. The message says why.
            MissingExtraError: tiktoken is not installed.
        """
        instance("tokenizer", tokenizer, Tokenizer, "a Tokenizer")
        self.__dict__.update(vars(tokenizer.to_tiktoken(name)))
        self._ours = tokenizer
        self._beginning = os.path.commonprefix(list(self.special_tokens_set))  # of every special token

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._ours, self.name)

    def _encoded(
        self,
        ours: Callable[..., Any],
        theirs: Callable[..., Any],
        texts: Sequence[Any],
        special: dict[str, AllowedSpecial],
    ) -> Any:
        """Returns what `ours` returns, given which special tokens to look for in the texts. What `theirs` returns if
        tiktoken must decide. `special` are the keyword arguments of the caller."""
        allowed, disallowed = special.get("allowed_special", frozenset()), special.get("disallowed_special", "all")
        if isinstance(disallowed, Iterator):  # which only one of the two could read
            special["disallowed_special"] = disallowed = frozenset(disallowed)
        given = {"allowed_special": allowed, "disallowed_special": disallowed}
        known = given.keys() >= special.keys() and (allowed == "all" or isinstance(allowed, (set, frozenset)))
        if not known or not all(isinstance(text, str) for text in texts):
            return theirs(**special)
        if disallowed == "all" or not disallowed:
            begin = self._beginning
            if allowed == "all" or not self.special_tokens_set:
                given = {}
            elif begin and not any(begin[0] in text and begin in text for text in texts):
                given = {}  # no text has any special token, so `ours`, which looks for all, is right, and faster
        try:
            return ours(**given)
        except (ArgumentError, UnicodeEncodeError):
            return theirs(**special)

    def encode_ordinary(self, text: str) -> list[int]:
        return self._ours.encode_ordinary(text) if isinstance(text, str) else super().encode_ordinary(text)

    def encode(self, text: str, **special: AllowedSpecial) -> list[int]:
        return self._encoded(partial(self._ours.encode, text), partial(super().encode, text), (text,), special)  # type: ignore[no-any-return]

    def encode_to_numpy(self, text: str, **special: AllowedSpecial) -> Array:
        def encode(**given: Any) -> Array:
            return self._ours.encode_to_numpy(text.encode(), **given)  # refuses lone surrogates, as tiktoken does here

        ids = self._encoded(encode, partial(super().encode_to_numpy, text), (text,), special)
        return ids.astype(numpy.uint32, copy=False)  # type: ignore[no-any-return]

    def encode_ordinary_batch(self, text: Iterable[str], *, num_threads: int = 8) -> list[list[int]]:
        return self.encode_batch(text, num_threads=num_threads, disallowed_special=())

    def encode_batch(self, text: Iterable[str], *, num_threads: int = 8, **special: AllowedSpecial) -> list[list[int]]:
        texts = list(text)
        theirs = partial(super().encode_batch, texts, num_threads=num_threads)
        return self._encoded(partial(self._ours.encode_batch, texts, num_threads), theirs, texts, special)  # type: ignore[no-any-return]

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        data = self._decoded(self._ours.decode_bytes, tokens)
        return super().decode_bytes(tokens) if data is None else data  # type: ignore[no-any-return]

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        text = self._decoded(self._ours.decode, tokens, errors)
        return super().decode(tokens, errors) if text is None else text  # type: ignore[no-any-return]

    def _decoded(self, decode: Callable[..., Any], tokens: Sequence[int], *errors: str) -> Any:
        """Returns decode(tokens, *errors), or None if tiktoken must decide."""
        try:
            return decode(tokens, *errors) if isinstance(tokens, _SEQUENCES) else None
        except ArgumentError:
            return None
