"""The Tokenizer, which turns text into ids and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from .. import _binding, formats
from .._lazy import TheirName, answer_their_names, cached_property, numpy
from ..arguments import Text, instance, is_unicode, param, probability, shown, utf8, whole_number
from ..errors import ArgumentError, UnsupportedError
from ..formats.vocab_merges import token_names
from ..model import Model, Template, check_specials, model_of_parts, named_special, special_ids_of
from ..model import remap as remaps
from ..pattern import Digits, Pattern, PatternLike
from ..reading.inputs import Inputs, is_path_list, path_list
from .decoding import DecodeStream, IdDecoder, decoded_batch, has_none_of
from .encoding import AllowedSpecial, EncodingWithOffsets, TextEncoder, char_starts, spans, text_list

if TYPE_CHECKING:
    from .explanation import Explanation


_OWN = ("_model", "_vocab", "_encoder", "_short", "_decoder")  # the attributes of a Tokenizer


def of_model(model: Model, kind: type[Tokenizer] | None = None) -> Tokenizer:
    """Makes a Tokenizer, or an object of a subclass, from plain data."""
    return (kind or Tokenizer)._of(model)


@answer_their_names
class Tokenizer:
    """A byte-level BPE tokenizer. It is immutable, so any number of threads may share it.

    Make one with `pybpe.train`, `Tokenizer.from_file`, `pybpe.get_encoding`, or from the parts:

    Args:
        vocab: id -> bytes. It must contain all 256 single bytes.
        merges: (left bytes, right bytes) in rank order.
        special_tokens: strings that are matched whole, before anything else. A string that the vocabulary lacks gets
            the next id. A mapping text -> id sets the ids, which may leave others unused.
        pattern, digits, normalizer: as in `pybpe.train`.

    Raises:
        ArgumentError: the parts do not fit together. The message names the id or merge.

    >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")])
    >>> tokenizer.encode("hi!")
    [256, 33]
    >>> tokenizer.decode([256, 33])
    'hi!'
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]] | None = None,
        special_tokens: Iterable[str] | Mapping[str, int] | None = None,
        *,
        pattern: PatternLike = "gpt2",
        digits: Digits = None,
        normalizer: str | None = None,
    ) -> None:
        if isinstance(vocab, (str, bytes, os.PathLike)):
            raise ArgumentError(f"vocab: expected id -> bytes; to read a file: Tokenizer.from_file({vocab!r:.80})")
        if merges is None:
            raise ArgumentError("merges: missing. Pass pairs of bytes, in the order in which training made them")
        specials = special_ids_of(() if special_tokens is None else special_tokens)
        self._set(model_of_parts(vocab, merges, specials, Pattern(pattern, digits), normalizer))

    def _set(self, model: Model, vocab: _binding.Vocab | None = None) -> None:
        self._model = model
        self._vocab = vocab if vocab is not None else model.to_vocab()
        self._encoder = TextEncoder(model, self._vocab)
        self._short = self._encoder.short
        self._decoder = IdDecoder(model.tokens, self._vocab)

    @classmethod
    def _of(cls, model: Model, vocab: _binding.Vocab | None = None) -> Tokenizer:
        """Makes a Tokenizer from plain data. `vocab` is the model's C vocabulary, if there already is one."""
        tokenizer = cls.__new__(cls)
        tokenizer._set(model, vocab)
        return tokenizer

    def _with(self, model: Model, vocab: _binding.Vocab | None = None) -> Tokenizer:
        """Returns the same object with another model: of the same subclass, with the attributes that it added."""
        made = self._of(model, vocab)
        vars(made).update(self._added())
        return made

    def _added(self) -> dict[str, Any]:
        """Returns the attributes of a subclass."""
        return {
            name: value
            for name, value in vars(self).copy().items()
            if name not in _OWN and not isinstance(getattr(type(self), name, None), cached_property)
        }

    def __reduce__(self) -> tuple[object, ...]:
        if type(self) is Tokenizer:
            return of_model, (self._model,)
        return of_model, (self._model, type(self)), self._added()

    def __eq__(self, other: object) -> bool:
        """Returns whether two tokenizers give the same ids for every text, whichever files they came from."""
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self._fingerprint == other._fingerprint

    def __hash__(self) -> int:
        return hash(self._fingerprint)

    @cached_property
    def _fingerprint(self) -> tuple[str, Template | None]:
        model, template = self._model, self._model.template
        if model.whole_words and not model.unreached():  # then it has no effect
            model = replace(model, whole_words=False)
        return model.fingerprint, template if template is not None and template.changes_ids else None

    # ------------------------------------------------------------------------------------------------
    # Files

    @classmethod
    def from_file(
        cls,
        path: _binding.PathLike,
        *,
        merges: _binding.PathLike | None = None,
        pattern: PatternLike | None = None,
        special_tokens: Iterable[str] | Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Reads a tokenizer.json (ours, or a Hugging Face byte-level BPE), a tokenizer.bin (llm.c's or ours), a
        .tiktoken file, GPT-2's vocab.json with its merges.txt, or a folder that `save_pretrained` wrote. The content
        shows which of these it is.

        Args:
            merges: the merges.txt of a vocab.json. None means merges.txt in its folder.
            pattern: a name or regular expression, as in `pybpe.train`. Required for a .tiktoken file, which has none:
                a name, or a regular expression in tiktoken's syntax (`Tokenizer.pattern` then has it in the syntax of
                Python's regex package). For a vocab.json, which has none either, None means "gpt2". For a
                tokenizer.json it replaces the one in the file: pass it if you know that it gives the same words.
            special_tokens: text -> id, for a .tiktoken file. For a vocab.json, strings in the vocabulary, or new
                strings, which get the next ids, or a mapping text -> id. None means <|endoftext|>, if the vocabulary
                has it.

        Raises:
            FileError: the file cannot be read.
            FormatError: the content is invalid. The message gives the place and the expected content.
            ArgumentError: `pattern` is missing, you pass `merges` or `special_tokens` for a file that has its own, or a
                special token has another id in the vocabulary.
            UnsupportedError: see `from_tiktoken`, for a .tiktoken file.
        """
        return cls._of(*formats.any_format.read(path, pattern, special_tokens, merges))

    @classmethod
    def from_tiktoken(cls, encoding: Any) -> Tokenizer:
        """Makes a tokenizer that gives the ids of a tiktoken.Encoding. It recovers the merges from the ranks.
        (`from_file` reads a .tiktoken file.)

        Raises:
            ArgumentError: `encoding` is something else.
            UnsupportedError: the pattern may split text differently here and in tiktoken, or does not match all text,
                so that tiktoken drops some. Or one special token begins with another, so that tiktoken may find either.
        """
        return cls._of(formats.tiktoken.from_encoding(encoding))

    @classmethod
    def from_hf(cls, tokenizer: Any, *, pattern: PatternLike | None = None) -> Tokenizer:
        """Makes a tokenizer that gives Hugging Face's ids.

        Args:
            tokenizer: a tokenizers.Tokenizer of a version before 1.0, or a fast tokenizer of transformers, whose chat
                template and end-of-text token the result keeps.
            pattern: as in `from_file`.

        Raises:
            ArgumentError: `tokenizer` is something else.
            FormatError: `tokenizer` has a part that pybpe does not support. The message says which.
        """
        return cls._of(formats.pretrained.from_hf(tokenizer, None if pattern is None else Pattern(pattern)))

    def save(self, path: _binding.PathLike, format: str | None = None, *, ids_only: bool = False) -> None:
        """Writes the tokenizer, atomically. `from_file` reads every format but "gguf", "byte_lengths" and "nanochat",
        and gives the same ids.

        Args:
            path: the file or folder to write.
            format: "json" (tokenizer.json, which Hugging Face tokenizers read; if they read a custom pattern
                differently, they refuse the file, and this method warns), "json2" (its version 2.0, which only
                version 1.0 of tokenizers reads), "bin" (llm.c's tokenizer.bin), "bin1" (its
                version 1, which llm.c accepts only for GPT-2's 50,257 tokens; for others this warns), "files" (a folder
                with vocab.json, merges.txt, and a tokenizer_config.json that has the special tokens), "tiktoken"
                (ranks; its reader also needs the pattern and the special tokens), "pretrained" (see
                `save_pretrained`), "gguf" (the vocabulary for llama.cpp; needs the package gguf), "byte_lengths" (only
                the table of that method: an array if the path ends in .npy, or a tensor of PyTorch if it ends in .pt,
                as nanochat's token_bytes.pt), "nanochat" (the folder that nanochat and autoresearch read: tokenizer.pkl
                and token_bytes.pt). None chooses by the ending .json, .bin, .tiktoken or .gguf. Without an ending,
                "pretrained".
            ids_only: leave out parts that the format cannot hold, if `encode` gives the same ids without them: a
                template, a chat template, which token ends a document, and which special tokens are text to readers.

        Raises:
            UnsupportedError: the format cannot represent the tokenizer. The message says why.
            LimitError: a token is too long for the format.
            ArgumentError: there is no such format, or no format has this ending.
            MissingExtraError: a .pt file without PyTorch, or "nanochat" without tiktoken.
        """
        formats.any_format.write(self._model, path, format, ids_only)

    def save_pretrained(self, folder: _binding.PathLike, **tokens: str) -> None:
        """Writes a folder that transformers.AutoTokenizer.from_pretrained loads: tokenizer.json,
        tokenizer_config.json with the chat template, special_tokens_map.json. Removes files of an earlier tokenizer
        that transformers would still read: chat_template.jinja, additional_chat_templates/*.jinja, added_tokens.json.

        Args:
            tokens: special tokens by role, such as unk_token="<unk>". A tokenizer that was read from such a folder, or
                from an object of transformers, keeps its roles and settings (`Model.config`). Otherwise eos_token is
                the end of text, bos_token is the first token of the template or the end of text, and pad_token is
                <|padding|> or <|pad|>.

        Raises:
            ArgumentError: the token of a role is not a special token.
            UnsupportedError: see `save`, or the pattern may split text differently in Hugging Face's engine.
        """
        formats.pretrained.write(formats.any_format.held(self._model, "pretrained"), folder, tokens)

    def to_tiktoken(self, name: str = "pybpe", *, ids_only: bool = False) -> Any:
        """Returns a tiktoken.Encoding that gives the same ids. `ids_only` is as in `save`.

        Raises:
            UnsupportedError: no Encoding can represent the tokenizer. The message says why.
            MissingExtraError: tiktoken is not installed.
        """
        return formats.tiktoken.to_encoding(formats.any_format.held(self._model, "encoding", ids_only), name)

    def to_hf(self) -> Any:
        """Returns a tokenizers.Tokenizer that gives the same ids. It has `eos_token` and `chat_template`, like
        tokenizers of transformers, and `from_hf` reads them. A file that it writes does not have them.

        Raises:
            UnsupportedError: no tokenizers.Tokenizer gives the same ids. The message says why.
            MissingExtraError: tokenizers is not installed, or its version is 1.0 or newer.
        """
        return formats.pretrained.to_hf(formats.any_format.held(self._model, "pretrained"))

    # ------------------------------------------------------------------------------------------------
    # Encoding

    def encode(
        self,
        text: Text,
        pair: Text | None = None,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
        add_special_tokens: bool = False,
    ) -> list[int]:
        """Returns the ids of a text. Special tokens in it become their ids. (tiktoken raises an error instead. For text
        that you do not trust, pass allowed_special=(), or call `encode_ordinary`.)

        Args:
            text: str or bytes. Bytes that are not valid UTF-8 are encoded one by one. Other objects with readable
                bytes (bytearray, memoryview, mmap, uint8 array) are not copied.
            pair: a second text. Its ids follow the ids of the first, or are where the template puts them.
            allowed_special: the special tokens that become one id: "all", or a set. Others are text.
            disallowed_special: special tokens that raise an error if they occur. "all" means all that are not allowed.
            add_special_tokens: add the special tokens of the template, if there is one (see `replace`).

        Raises:
            ArgumentError: a disallowed special token occurs, or `text` has another type.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>"])
        >>> tokenizer.encode("hi<s>")
        [104, 105, 256]
        >>> tokenizer.encode("hi<s>", allowed_special=())
        [104, 105, 60, 115, 62]
        >>> tokenizer.replace(template="<s> $A").encode("hi", add_special_tokens=True)
        [256, 104, 105]
        """
        if not disallowed_special and pair is None and not add_special_tokens:
            if allowed_special == "all":
                short = self._short.encode(text)
                if short is not None:
                    return short
            elif isinstance(allowed_special, (tuple, list, set, frozenset)) and not allowed_special:
                return self.encode_ordinary(text)
        encoder = self._encoder
        texts = (text,) if pair is None else (text, pair)
        specials = encoder.allowed(texts, allowed_special, disallowed_special)
        ids = encoder.encode(text, specials)
        if pair is None and not add_special_tokens:
            return ids
        return self._with_template(ids, None if pair is None else encoder.encode(pair, specials), add_special_tokens)

    def _with_template(self, first: list[int], second: list[int] | None, apply: bool) -> list[int]:
        template = self._model.template
        if template is None or (not apply and second is None):
            return first + (second or [])
        return (template if apply else template.without_specials()).apply(self._model.specials, first, second)

    def encode_ordinary(self, text: Text) -> list[int]:
        """Returns the ids of a text, and encodes special tokens in it as ordinary text.

        >>> Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>"]).encode_ordinary("<s>")
        [60, 115, 62]
        """
        short = self._short.encode_ordinary(text)
        return self._encoder.encode(text, None) if short is None else short

    def encode_batch(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """Returns a list of `encode`'s results, one per text, computed by `num_threads` threads (None for all CPUs)."""
        texts = text_list(texts)
        specials = self._encoder.allowed(texts, allowed_special, disallowed_special)
        rows = self._encoder.batch(texts, specials, num_threads)
        return [self._with_template(ids, None, True) for ids in rows] if add_special_tokens else rows

    def encode_dropout(
        self,
        text: Text,
        *,
        seed: int,
        dropout: float | None = None,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> list[int]:
        """Returns the ids of a text, with merges left out at random: BPE dropout (Provilkov et al. 2020). If you use a
        different seed in every epoch, a model learns words as different sequences of tokens.

        The result depends only on the arguments, on every machine. The distribution is the same as in Hugging Face's
        tokenizers. Words are merged one by one, without a cache, so this is much slower than `encode`.

        Args:
            seed: an integer from 0 to 2^64 - 1. The random numbers of a word depend on it and on the word's place in
                the text, so use a different seed for every text.
            dropout: the probability of passing over a possible merge. None uses the tokenizer's own. 0.1 is usual. With
                0 the ids are the same as from `encode`, and with 1 the ids of the bytes.
            allowed_special, disallowed_special: as in `encode`.

        Raises:
            ArgumentError: `seed` or `dropout` is out of range, or there is no dropout. Also see `encode`.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")])
        >>> [tokenizer.encode_dropout("hi", seed=seed, dropout=0.5) for seed in range(4)]
        [[104, 105], [104, 105], [256], [104, 105]]
        """
        seed = whole_number("seed", seed, most=(1 << 64) - 1)
        rate = self._model.dropout if dropout is None else probability("dropout", dropout)
        if dropout is None and not rate:
            raise ArgumentError(f"this tokenizer has no dropout: pass {param(dropout=0.1)}, or use encode")
        if not rate:  # merging alone would not find the tokens that only whole words become
            certain = self.replace(dropout=0) if self._model.dropout else self
            return certain.encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
        specials = self._encoder.allowed((text,), allowed_special, disallowed_special)
        return self._encoder.with_dropout(text, specials, rate, seed)

    def encode_iterable(self, texts: Iterable[Text]) -> Iterator[int]:
        """Yields, one by one, the ids of all strings joined, for example the lines of an open file.

        This is lazy and takes little memory: it gathers text only up to the next place where a cut does not change any
        id.
        """
        instance("texts", texts, Iterable, "an iterable of texts")
        return self._encoder.iterate(texts, self._encoder.specials)

    def encode_to_numpy(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
        num_threads: int | None = None,
    ) -> numpy.ndarray[Any, Any]:
        """Encodes like `encode`, and returns an array.

        Args:
            num_threads: number of threads for a long text (None for all CPUs). The ids do not depend on it.

        Returns:
            An array of shape (tokens,), uint16 if every id of the vocabulary fits, otherwise uint32.
        """
        if allowed_special == "all" and not disallowed_special and num_threads is None:
            short = self._short.encode_array(text)
            if short is not None:
                return short
        specials = self._encoder.allowed((text,), allowed_special, disallowed_special)
        return self._encoder.text_array(text, specials, num_threads)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Encodes all texts into one array, with `num_threads` threads (None for all CPUs).

        Returns:
            ids: shape (tokens,), dtype as in `encode_to_numpy`.
            row_offsets: shape (texts + 1,), int64. Text i has ids[row_offsets[i] : row_offsets[i + 1]].
        """
        texts = text_list(texts)
        specials = self._encoder.allowed(texts, allowed_special, disallowed_special)
        return self._encoder.arrays(texts, specials, num_threads)

    def encode_with_offsets(
        self, text: Text, *, allowed_special: AllowedSpecial = "all", disallowed_special: AllowedSpecial = ()
    ) -> EncodingWithOffsets:
        """Returns the ids, and the spans of the tokens in the text (in the normalized text, if there is a normalizer).
        The span of a special token includes white space that it absorbs (lstrip, rstrip).

        Raises:
            UnsupportedError: the text contains a special token that shares its id with another special token.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
        >>> tokenizer.encode_with_offsets("né").char_spans
        [(0, 1), (1, 2), (1, 2)]
        """
        specials = self._encoder.allowed((text,), allowed_special, disallowed_special)
        if alias := next((alias for alias in self._model.aliases if alias.encode() in bytes(utf8(text))), None):
            raise UnsupportedError(
                f"the text has the special token {alias!r:.80}, which shares its id, so its bytes cannot be counted"
            )
        ids = self._encoder.encode(text, specials)
        token_offsets = numpy.frombuffer(self._vocab.packed()[1], dtype=numpy.uint64)
        matched = self._encoder.matched_lengths(text, ids, specials)
        spelled = self._encoder.normalized(text, specials)
        return EncodingWithOffsets(ids, *spans(ids, token_offsets, spelled, matched))

    def count(
        self, text: Text, *, allowed_special: AllowedSpecial = "all", disallowed_special: AllowedSpecial = ()
    ) -> int:
        """Returns the number of ids that `encode` would return, without building the list."""
        if allowed_special == "all" and not disallowed_special:
            short = self._short.count(text)
            if short is not None:
                return short
        return self._encoder.count(text, self._encoder.allowed((text,), allowed_special, disallowed_special))

    def explain(self, text: Text, *, allowed_special: AllowedSpecial = "all") -> Explanation:
        """Returns the steps from a text to its ids: the bytes of every word, and its merges with their ranks. Print it,
        look at it in a notebook, or read its `words`.

        Args:
            allowed_special: as in `encode`.

        Raises:
            UnsupportedError: the tokenizer has dropout, so the merges are random: use replace(dropout=0).
            LimitError: a word is too long for a person to read, or would take too long.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")])
        >>> print(tokenizer.explain("hi!"))
        'hi': 256
                  bytes  'h' 'i'
                merge 0  'hi'
        '!': 33
                  bytes  '!'
        """
        from .explanation import explain

        specials = self._encoder.allowed((text,), allowed_special)
        self._encoder.count(text, specials)  # refuses the same as `encode`: dropout, bytes without a token
        return explain(self._model, bytes(utf8(text)), specials)

    # ------------------------------------------------------------------------------------------------
    # Decoding

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids: a list, an array of numpy or of the array module, or any iterable of int.

        Raises:
            UnknownIdError (an ArgumentError): an id is not in the vocabulary. The message gives the id and its
                position.
        """
        short = self._short.decode_bytes(ids)
        return self._decoder.decode(ids) if short is None else short

    def decode(self, ids: Iterable[int], errors: str = "replace", *, skip_special_tokens: bool = False) -> str:
        """Returns the text of ids.

        Args:
            errors: how to handle bytes that are not UTF-8: see bytes.decode.
            skip_special_tokens: leave out special tokens, except those that readers see as text (Model.visible).

        Raises:
            UnknownIdError: as in `decode_bytes`.
            ArgumentError: Python has no such handler of errors.
        """
        hidden = self._model.hidden_ids if skip_special_tokens else None
        if errors == "replace" and (hidden is None or has_none_of(hidden, ids)):
            short = self._short.decode(ids)
            if short is not None:
                return short
        return self._decoder.text(ids, errors, hidden)

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        errors: str = "replace",
        *,
        skip_special_tokens: bool = False,
        num_threads: int | None = None,
    ) -> list[str]:
        """Returns the results of `decode` for all sequences, computed by `num_threads` threads (None for all CPUs)."""
        instance("batch", batch, Iterable, "sequences of ids")
        decode = partial(self.decode, errors=errors, skip_special_tokens=skip_special_tokens)
        return decoded_batch(decode, batch, num_threads)

    def decode_with_offsets(self, ids: Iterable[int]) -> tuple[str, list[int]]:
        """Returns the text of ids, and for every id the index of the character where it begins, like tiktoken.

        Raises:
            UnknownIdError: as in `decode_bytes`.
            UnicodeDecodeError: the bytes are not UTF-8.
        """
        tokens = [self._model.tokens[i] for i in self._decoder.known_ids(ids)]
        return b"".join(tokens).decode("utf-8"), char_starts(tokens)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Returns the bytes of one id, or the text of a special token as UTF-8. Raises UnknownIdError."""
        return self._decoder.token(token)

    def decode_stream(self, errors: str = "replace", *, skip_special_tokens: bool = False) -> DecodeStream:
        """Returns a decoder for ids that arrive one by one: see DecodeStream. The arguments are as in `decode`."""
        return DecodeStream(self, errors, self._model.hidden_ids if skip_special_tokens else ())

    # ------------------------------------------------------------------------------------------------
    # The vocabulary

    @property
    def vocab_size(self) -> int:
        """The number of ids, including special tokens and unused ids: len(tok)."""
        return len(self._model.tokens)

    def __len__(self) -> int:
        return len(self._model.tokens)

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The merges as (left bytes, right bytes), in rank order."""
        tokens = self._model.tokens
        return [(tokens[left], tokens[right]) for left, right in self._model.merges]

    def byte_lengths(self) -> numpy.ndarray[Any, Any]:
        """Returns the numbers of bytes of text that ids stand for: int32, shape (vocab_size,).

        It is 0 for special tokens, except those that readers see as text (Model.visible), and for unused ids. So
        `tok.byte_lengths()[ids].sum()` is the length of `tok.decode_bytes(ids)` without special tokens, also where a
        token ends inside a character. `pybpe.bits_per_byte` divides by this sum. `save(path, "byte_lengths")` writes
        the table.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")], ["<s>"])
        >>> tokenizer.byte_lengths()[[0xE9, 256, 257]].tolist()
        [1, 2, 0]
        """
        return self._model.byte_lengths()

    @property
    def special_tokens(self) -> dict[str, int]:
        """A dictionary of the special tokens, text -> id."""
        return dict(self._model.specials)

    @property
    def eot_token(self) -> int | None:
        """The id of the special token that ends a document, usually <|endoftext|>, or None."""
        return self._model.eot_id

    @property
    def pattern(self) -> Pattern:
        """The pattern that splits text into words."""
        return self._model.pattern

    @property
    def model(self) -> Model:
        """The tokenizer as plain data."""
        return self._model

    def id_to_token(self, token: int) -> str:
        """Returns the text of one id, for display. U+FFFD replaces bytes that are not UTF-8 on their own."""
        return self._decoder.token(token).decode("utf-8", "replace")

    def token_to_id(self, token: Text) -> int | None:
        """Returns the id of the special or ordinary token with this text, or None. If both exist, a str means the
        special token, and bytes mean the ordinary one.

        A token is its text, as in `id_to_token`: " the", not Hugging Face's "Ġthe". `get_vocab` has the latter.
        """
        if isinstance(token, str) and token in self._model.specials:
            return self._model.specials[token]
        return self._ids.get(bytes(utf8(token)))

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        specials = {text.encode(): i for text, i in self._model.specials.items()}
        hidden = set(specials.values())
        return specials | {token: i for i, token in self._model.vocab.items() if i not in hidden}

    def replace(
        self,
        *,
        template: Template | str | None | EllipsisType = ...,
        chat_template: str | None | EllipsisType = ...,
        dropout: float | EllipsisType = ...,
        end_of_text: str | EllipsisType = ...,
    ) -> Tokenizer:
        """Returns the same tokenizer with other settings. Settings that you do not pass stay. `Tokenizer.model` has
        them.

        Args:
            template: the tokens that `encode(..., add_special_tokens=True)` puts around a text: a Template, one in
                Hugging Face's syntax, such as "<s> $A </s>" where $A is the text, or None.
            chat_template: the Jinja template that transformers uses to turn a chat into text, or None.
            dropout: the default probability that `encode_dropout` passes over a merge. Unless it is 0, `encode`
                and other functions that need one result for every text raise UnsupportedError.
            end_of_text: the special token that separates documents in text files and in token files, which becomes
                `eot_token`.

        Raises:
            ArgumentError: the template has no $A, or has a token that is not a special token, the chat template is not
                valid Unicode, `dropout` is not a number from 0 to 1, or `end_of_text` is not a special token.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
        >>> tokenizer.replace(dropout=0.1).model.dropout
        0.1
        """
        changes: dict[str, Any] = {}
        if template is not ...:
            changes["template"] = None if template is None else self._checked(template)
        if chat_template is not ...:
            if chat_template is not None:
                instance("chat_template", chat_template, str, "a str or None")
                if not is_unicode(chat_template):
                    raise ArgumentError(
                        f"{param('chat_template')} contains a lone surrogate, which is not valid Unicode"
                    )
            changes["chat_template"] = chat_template or ""
        if dropout is not ...:
            changes["dropout"] = probability("dropout", dropout)
        if end_of_text is not ...:
            changes["eos"] = named_special("end_of_text", end_of_text, self._model.specials)
        if changes.keys() & {"template", "dropout", "eos"}:
            changes["config"] = formats.pretrained.without_class(self._model.config)
        # The C vocabulary has only the end of text of these settings.
        return self._with(replace(self._model, **changes), None if "eos" in changes else self._vocab)

    def _checked(self, template: Template | str) -> Template:
        if isinstance(template, str):
            template = Template.parse(template)
        instance("template", template, Template, "a Template or a str")
        template.check(self._model.specials)
        return template

    def prune(
        self,
        keep: Iterable[int] | None = None,
        *,
        vocab_size: int | None = None,
        remap: _binding.PathLike | None = None,
    ) -> Tokenizer:
        """Returns a tokenizer with fewer tokens. A dropped token is encoded as its parts.

        Args:
            keep: the ids to keep. The result has these, the parts that their merges need, the bytes, and the special
                tokens. The remaining ids are renumbered without gaps.
            vocab_size: keep the first tokens, this many, instead. The result equals a tokenizer trained with this
                vocab_size, unless it was trained with superwords: in such training, vocab_size decides where the second
                stage begins.
            remap: a file to write, which says which rows of an embedding to keep: see `pybpe.model.remap`.

        Raises:
            ArgumentError: an id is not in the vocabulary, the vocabulary cannot have this size, or both or none of
                `keep` and `vocab_size` are given.

        >>> from pybpe import train
        >>> tokenizer = train(iter(["abcabd abc"]), vocab_size=260)
        >>> [tokenizer.id_to_token(i) for i in range(256, 260)]
        ['ab', 'abc', 'abcab', 'abcabd']
        >>> small = tokenizer.prune([tokenizer.token_to_id("abc")])
        >>> [small.id_to_token(i) for i in range(256, len(small))]
        ['ab', 'abc']
        """
        if (keep is None) == (vocab_size is None):
            raise ArgumentError(
                f"pass {param('keep')} or {param('vocab_size')}: the tokens to keep, or how many of the first ones"
            )
        model = (
            remaps.pruned(self._model, keep or ())
            if vocab_size is None
            else remaps.first_tokens(self._model, vocab_size)
        )
        return self._changed(model, remap)

    def extend(
        self,
        special_tokens: Iterable[str] = (),
        inputs: Inputs | None = None,
        *,
        vocab_size: int | None = None,
        remap: _binding.PathLike | None = None,
        **training: Any,
    ) -> Tokenizer:
        """Returns a tokenizer with more tokens. All existing ids stay.

        Args:
            special_tokens: new special tokens, which get the next ids.
            inputs: documents to learn more merges from: see `pybpe.train`.
            vocab_size: the new number of tokens, if there are inputs.
            remap: a file to write, which says which ids are new: see `pybpe.model.remap`.
            training: further arguments of `pybpe.train`.

        Raises:
            ArgumentError: a special token already exists, or only one of inputs and vocab_size is given.
        """
        from ..support.call_paths import check_paths
        from ..training.merging import learned

        if (inputs is None and "counts" not in training) != (vocab_size is None):
            raise ArgumentError(
                f"{param('inputs')} and {param('vocab_size')} go together: pass both to learn merges, or neither"
            )
        if remap is not None and inputs is not None and is_path_list(inputs):
            check_paths({"remap": [_binding.path_text(remap)]}, texts={"the input": path_list(inputs)})
        specials = check_specials(special_tokens)
        if vocab_size is None:
            return self._changed(remaps.with_specials(self._model, specials), remap)
        remaps.with_specials(self._model, specials)  # refuses special tokens that exist
        given = training | {"vocab_size": vocab_size, "special_tokens": specials}
        return self._changed(learned(self._model, inputs, given), remap)

    def _changed(self, model: Model, remap: _binding.PathLike | None) -> Tokenizer:
        tokenizer = self._with(model)
        if remap is not None:
            remaps.save_remap(remap, remaps.old_ids(self._model, model))
        return tokenizer

    def get_vocab(self) -> dict[str, int]:
        """Returns token -> id, with tokens spelled as in vocab.json and Hugging Face: a space is "Ġ", and letters like
        it represent some other bytes. `token_to_id` takes the text itself, where "Ġ" is just a letter."""
        return {name: i for i, name in enumerate(token_names(self._model)) if name}

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not isinstance(vars(Tokenizer).get(name), TheirName)]

    def __repr__(self) -> str:
        return (
            f"Tokenizer(vocab_size={len(self)}, merges={len(self._model.merges)},"
            f" specials={len(self._model.specials)}, pattern={self._model.pattern.name or 'custom'!r})"
        )


# ----------------------------------------------------------------------------------------------------
# Several tokenizers with names

Tokenizers = Tokenizer | Mapping[str, Tokenizer] | Sequence[Tokenizer]


def named_tokenizers(tokenizers: Tokenizers) -> dict[str, Tokenizer]:
    """Returns tokenizers by name. Those without a name become "tokenizer", or "tokenizer 1", "tokenizer 2" and so
    on."""
    if isinstance(tokenizers, Tokenizer):
        tokenizers = {"tokenizer": tokenizers}
    if isinstance(tokenizers, (list, tuple)):
        tokenizers = {f"tokenizer {number}": tok for number, tok in enumerate(tokenizers, 1)}
    if not isinstance(tokenizers, Mapping):
        raise ArgumentError(
            f"{param('tokenizers')} must be a Tokenizer, a list of them, or a mapping of names to them, not"
            f" {shown(tokenizers)}"
        )
    for name, tok in tokenizers.items():
        instance("the name of a tokenizer", name, str, "a str")
        instance(f"tokenizers[{shown(name)}]", tok, Tokenizer, "a Tokenizer")
    return dict(tokenizers)
