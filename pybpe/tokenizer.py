"""The Tokenizer: text to ids and back."""

from __future__ import annotations

import codecs
import os
import warnings
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from . import _binding, offsets
from .errors import ArgumentError
from .formats import tiktoken, tokenizer_json, vocab_merges
from .model import Model, check_specials
from .normalize import normalize
from .parallel import map_ordered
from .pattern import Pattern
from .pretokenize import BLOCK_BYTES, Text, cutter, data_pieces, open_input, utf8

if TYPE_CHECKING:
    import numpy

AllowedSpecial = Literal["all"] | Collection[str]

_ITERABLE_BYTES = 1 << 14  # how much text encode_iterable gathers before it encodes


class Tokenizer:
    """A byte-level BPE tokenizer. Immutable; one object may be shared by any number of threads.

    Make one with `pybpe.train`, `Tokenizer.from_file`, `Tokenizer.from_files`, or from the parts:

    Args:
        vocab: id -> bytes. Each of the 256 single bytes must be there.
        merges: (left bytes, right bytes) in rank order.
        special_tokens: strings that are found whole before anything else. One that the vocabulary lacks
            gets the next free id.
        pattern, digits, normalizer: as in `pybpe.train`.

    Raises:
        ArgumentError: the parts do not fit together; it says which id or merge.

    >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")])
    >>> tokenizer.encode("hi!")
    [256, 33]
    >>> tokenizer.decode([256, 33])
    'hi!'
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]],
        special_tokens: Iterable[str] | None = None,
        *,
        pattern: str = "gpt2",
        digits: int | None = None,
        normalizer: str | None = None,
    ) -> None:
        specials = check_specials(special_tokens or ())
        self._set(_model_of_parts(vocab, merges, specials, Pattern(pattern, digits), normalizer))

    def _set(self, model: Model, vocab: _binding.Vocab | None = None) -> None:
        self._model = model
        self._vocab = vocab if vocab is not None else model.to_vocab()
        self._encoder = _binding.Encoder(self._vocab)
        self._specials = _binding.Specials(dict(model.specials)) if model.specials else None
        self._cut = cutter(model.pattern, self._specials)
        self._direct = model.normalizer is None and not model.pattern.is_custom
        self._matchers: dict[frozenset[str], _binding.Specials | None] = {}

    @classmethod
    def from_model(cls, model: Model) -> Tokenizer:
        """From plain data (pybpe.model.Model)."""
        tokenizer = cls.__new__(cls)
        tokenizer._set(model)
        return tokenizer

    def __reduce__(self) -> tuple[object, ...]:
        return Tokenizer.from_model, (self._model,)

    # ------------------------------------------------------------------------------------------------
    # Files

    @classmethod
    def from_file(cls, path: _binding.PathLike) -> Tokenizer:
        """Reads a tokenizer.json (ours, or a Hugging Face byte-level BPE) or a tokenizer.bin (llm.c's or
        ours); which one it is shows in the content.

        Raises:
            FileError, FormatError: with the file, the place and what was expected there.
        """
        with open_input(path) as stream:
            start = stream.read(4)
            if start[:1] in b"{ \t\r\n" and start:
                return cls.from_model(tokenizer_json.loads(start + stream.read(), str(path)))
        vocab = _binding.Vocab.load(path)
        tokenizer = cls.__new__(cls)
        tokenizer._set(Model.from_vocab(vocab), vocab)
        return tokenizer

    @classmethod
    def from_files(
        cls,
        vocab_json: _binding.PathLike,
        merges_txt: _binding.PathLike,
        special_tokens: Iterable[str] | None = None,
        *,
        pattern: str = "gpt2",
    ) -> Tokenizer:
        """Reads GPT-2's two files. special_tokens None means <|endoftext|> if the vocabulary has it."""
        return cls.from_model(vocab_merges.read(vocab_json, merges_txt, special_tokens, Pattern(pattern)))

    @classmethod
    def from_tiktoken(
        cls,
        source: Any,
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """The tokenizer that gives tiktoken's ids. Merges are recovered from the ranks.

        Args:
            source: a tiktoken.Encoding, which says all; or the path of a .tiktoken file, which has only ranks.
            pattern: what a file goes with, a name or a regular expression (as in `pybpe.train`).
            special_tokens: text -> id, for a file.

        Raises:
            ArgumentError: a file without a pattern, or an Encoding with one.
            FileError, FormatError: the file, with the line.
            LimitError: a token that no merge makes; ids would differ.
        """
        if not isinstance(source, (str, bytes, os.PathLike)):
            if pattern is not None or special_tokens is not None:
                raise ArgumentError("an Encoding has its own pattern and special tokens: leave these arguments out")
            return cls.from_model(tiktoken.from_encoding(source))
        if pattern is None:
            raise ArgumentError(
                f"{os.fsdecode(source)}: a .tiktoken file has no pattern: pass it, as in pattern='cl100k'"
            )
        return cls.from_model(tiktoken.read(source, special_tokens or {}, Pattern(pattern)))

    def save(self, path: _binding.PathLike) -> None:
        """Writes a tokenizer.json, atomically. Hugging Face tokenizers read it and give the same ids."""
        _binding.write_file(path, tokenizer_json.dumps(self._model).encode("utf-8"))

    def save_bin(self, path: _binding.PathLike, version: int = 2) -> None:
        """Writes a tokenizer.bin, atomically: llm.c reads it, and `from_file` restores all of it.

        Args:
            version: 2; or 1, which llm.c accepts only for GPT-2's own 50,257 tokens, with a warning.

        Raises:
            LimitError: a token is longer than 255 bytes, or an id is unused.
        """
        if version == 1 and (self.n_vocab, self.eot_token) != (50257, 50256):
            warnings.warn(
                f"llm.c aborts on a version 1 tokenizer.bin of {self.n_vocab} tokens: it takes 50257 for granted;"
                " write version 2",
                stacklevel=2,
            )
        self._vocab.save(path, version)

    def save_files(self, vocab_json: _binding.PathLike, merges_txt: _binding.PathLike) -> None:
        """Writes GPT-2's two files."""
        vocab_merges.write(self._model, vocab_json, merges_txt)

    # ------------------------------------------------------------------------------------------------
    # Encoding

    def encode(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> list[int]:
        """The ids of a text.

        Args:
            text: str, or bytes, of which any are fine: what is not valid UTF-8 is encoded byte by byte.
            allowed_special: the specials that become one id each; "all", or a set. The others are text.
            disallowed_special: specials whose occurrence is an error; "all" means all not allowed.

        Raises:
            ArgumentError: a disallowed special occurs, or text is of another type.
        """
        if allowed_special == "all" and not disallowed_special:
            return self._encode(text, self._specials)
        return self._encode(text, self._matcher(text, allowed_special, disallowed_special))

    def encode_ordinary(self, text: Text) -> list[int]:
        """The ids of a text in which no special is recognised."""
        return self._encode(text, None)

    def encode_batch(self, texts: Sequence[Text], *, num_threads: int | None = None) -> list[list[int]]:
        """`encode` of each text, by threads (None: all CPUs)."""
        return list(map_ordered(self.encode, texts, num_threads))

    def encode_iterable(self, texts: Iterable[Text]) -> Iterator[int]:
        """Yields, one by one, the ids of all texts joined, for instance the lines of an open file.

        Lazy, and memory stays bounded: text is gathered only up to the next place where it can be cut
        without influence on any id.
        """
        pending = bytearray()
        for text in texts:
            pending += normalize(utf8(text), self._model.normalizer)
            if len(pending) >= _ITERABLE_BYTES:
                at = self._cut(pending, max(1, len(pending) // 2))
                if at < len(pending):
                    yield from self._encode_data(bytes(pending[:at]), self._specials)
                    del pending[:at]
        yield from self._encode_data(bytes(pending), self._specials)

    def encode_to_numpy(self, text: Text, *, allowed_special: AllowedSpecial = "all") -> numpy.ndarray[Any, Any]:
        """The ids as an array of shape (tokens,): uint16 if every id of the vocabulary fits, else uint32."""
        import numpy

        specials = self._specials if allowed_special == "all" else self._matcher(text, allowed_special, ())
        data = normalize(utf8(text), self._model.normalizer)
        if self._model.pattern.is_custom:
            return numpy.array(self._encode_data(data, specials), dtype=self.dtype)
        ids = numpy.empty(len(data), dtype=self.dtype)  # pages that stay untouched cost nothing
        count = 0
        for piece in data_pieces(data, self._cut):
            count += self._encoder.encode_into(piece, specials, ids[count:])
        ids.resize(count, refcheck=False)
        return ids

    def encode_batch_to_numpy(
        self, texts: Sequence[Text], *, num_threads: int | None = None
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """The ids of all texts in one array, and where each text's begin.

        Returns:
            ids: shape (tokens,), dtype as `encode_to_numpy`.
            row_offsets: shape (texts + 1,), int64: text i has ids[row_offsets[i] : row_offsets[i + 1]].
        """
        import numpy

        rows = list(map_ordered(self.encode_to_numpy, texts, num_threads))
        row_offsets = numpy.zeros(len(rows) + 1, dtype=numpy.int64)
        numpy.cumsum([len(row) for row in rows], out=row_offsets[1:])
        return numpy.concatenate([numpy.empty(0, dtype=self.dtype), *rows]), row_offsets

    def encode_with_offsets(
        self, text: Text, *, allowed_special: AllowedSpecial = "all"
    ) -> offsets.EncodingWithOffsets:
        """`encode`, with the place of each token in the text (in the normalised one, if there is a normalizer).

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
        >>> tokenizer.encode_with_offsets("né").char_spans
        [(0, 1), (1, 2), (1, 2)]
        """
        data = bytes(normalize(utf8(text), self._model.normalizer))
        ids = self.encode(data, allowed_special=allowed_special)
        spans = offsets.byte_spans([len(self._model.tokens[i]) for i in ids])
        return offsets.EncodingWithOffsets(ids, spans, offsets.char_spans(data, spans))

    def count(self, text: Text, *, allowed_special: AllowedSpecial = "all") -> int:
        """How many ids `encode` gives, without making them."""
        specials = self._specials if allowed_special == "all" else self._matcher(text, allowed_special, ())
        data = normalize(utf8(text), self._model.normalizer)
        if self._model.pattern.is_custom:
            return len(self._encode_data(data, specials))
        return sum(self._encoder.count(piece, specials) for piece in data_pieces(data, self._cut))

    def _encode(self, text: Text, specials: _binding.Specials | None) -> list[int]:
        data = utf8(text)
        if self._direct and len(data) <= BLOCK_BYTES:  # short calls come first
            return self._encoder.encode(data, specials)
        return self._encode_data(normalize(data, self._model.normalizer), specials)

    def _encode_data(self, data: _binding.Data, specials: _binding.Specials | None) -> list[int]:
        if self._model.pattern.is_custom:
            return self._encode_custom(bytes(data), specials)
        ids: list[int] = []
        for piece in data_pieces(data, self._cut):
            ids += self._encoder.encode(piece, specials)
        return ids

    def _encode_custom(self, data: bytes, specials: _binding.Specials | None) -> list[int]:
        """With a pattern that Python cuts: the text between specials, then the special, in turn."""
        ids: list[int] = []
        begin = 0
        while begin < len(data):
            found = specials.find(data, begin) if specials is not None else None
            end = found[0] if found is not None else len(data)
            segment = data[begin:end]
            ids += self._encoder.encode_words(segment, self._model.pattern.word_ends(segment))
            if found is None:
                break
            ids.append(found[2])
            begin = found[1]
        return ids

    def _matcher(self, text: Text, allowed: AllowedSpecial, disallowed: AllowedSpecial) -> _binding.Specials | None:
        """The matcher for the allowed specials, after a check that no disallowed one occurs."""
        allowed = self._special_set(allowed)
        all_others = disallowed == "all"
        disallowed = self._special_set(disallowed)
        if all_others:
            disallowed -= allowed
        if disallowed:
            data = normalize(utf8(text), self._model.normalizer)
            found = self._special_subset(disallowed).find(data)  # type: ignore[union-attr]
            if found is not None:
                raise ArgumentError(
                    f"the text contains the special token {self.id_to_token(found[2])!r} at byte {found[0]}, which"
                    " is disallowed; pass it in allowed_special, or use disallowed_special=() to take it as text"
                )
        return self._special_subset(allowed)

    def _special_set(self, specials: AllowedSpecial) -> frozenset[str]:
        if specials == "all":
            return frozenset(self._model.specials)
        if isinstance(specials, str):
            raise ArgumentError(f"expected 'all' or a set of special tokens, not the string {specials!r}")
        unknown = set(specials) - set(self._model.specials)
        if unknown:
            raise ArgumentError(f"not special tokens of this tokenizer: {sorted(unknown)}")
        return frozenset(specials)

    def _special_subset(self, texts: frozenset[str]) -> _binding.Specials | None:
        if texts not in self._matchers:
            ids = {text: self._model.specials[text] for text in texts}
            self._matchers[texts] = _binding.Specials(ids) if ids else None
        return self._matchers[texts]

    # ------------------------------------------------------------------------------------------------
    # Decoding

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of ids: a list, an array of numpy or of the array module, or any iterable of int.

        Raises:
            ArgumentError: an id that is not in the vocabulary; it names the id and its position.
        """
        buffer, id_bytes, count = self._id_buffer(ids)
        return self._vocab.decode(buffer, id_bytes, count)

    def decode(self, ids: Iterable[int], errors: str = "replace") -> str:
        """The text of ids. `errors` is what happens to bytes that are not UTF-8: see bytes.decode."""
        return self.decode_bytes(ids).decode("utf-8", errors)

    def decode_batch(self, batch: Iterable[Iterable[int]], errors: str = "replace") -> list[str]:
        """`decode` of each sequence."""
        return [self.decode(ids, errors) for ids in batch]

    def decode_with_offsets(self, ids: Iterable[int]) -> tuple[str, list[int]]:
        """The text of ids, and for each id the index of the character in which it begins, as in tiktoken.

        Raises:
            UnicodeDecodeError: the bytes are not UTF-8.
        """
        tokens = [self.decode_single_token_bytes(i) for i in ids]
        return b"".join(tokens).decode("utf-8"), offsets.char_starts(tokens)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id."""
        return self.decode_bytes([token])

    def decode_stream(self) -> DecodeStream:
        """A decoder for ids that arrive one by one: see DecodeStream."""
        return DecodeStream(self)

    def _id_buffer(self, ids: Iterable[int]) -> tuple[Any, int, int]:
        """A buffer of C integers, their size, and how many."""
        if not isinstance(ids, (list, tuple)):
            view = _native_ids(ids)
            if view is not None:
                return _binding.c_buffer(view), view.itemsize, len(view)
            ids = list(ids)
        try:
            numbers = array("I", ids)
        except (OverflowError, TypeError):
            for position, i in enumerate(ids):
                if not hasattr(i, "__index__") or not 0 <= int(i) < self.n_vocab:
                    raise ArgumentError(
                        f"{i!r} at position {position} is not an id of this vocabulary (0 to {self.n_vocab - 1})"
                    ) from None
            raise
        return _binding.c_buffer(numbers), 4, len(numbers)

    # ------------------------------------------------------------------------------------------------
    # The vocabulary

    @property
    def n_vocab(self) -> int:
        """How many ids there are, specials included."""
        return len(self._model.tokens)

    vocab_size = n_vocab

    def __len__(self) -> int:
        return self.n_vocab

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """uint16 if every id fits, else uint32."""
        import numpy

        return numpy.dtype(numpy.uint16 if self.n_vocab <= 1 << 16 else numpy.uint32)

    @cached_property
    def vocab(self) -> dict[int, bytes]:
        """id -> bytes, without unused ids."""
        return {i: token for i, token in enumerate(self._model.tokens) if token}

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """(left bytes, right bytes) in rank order."""
        tokens = self._model.tokens
        return [(tokens[left], tokens[right]) for left, right in self._model.merges]

    @property
    def special_tokens(self) -> dict[str, int]:
        """Text -> id of the special tokens."""
        return dict(self._model.specials)

    @property
    def eot_token(self) -> int | None:
        """The id of <|endoftext|>, or None if there is no such special."""
        return self._model.eot_id

    @property
    def pattern(self) -> Pattern:
        """How text is cut into words."""
        return self._model.pattern

    @property
    def normalizer(self) -> str | None:
        """None, "NFC" or "NFKC"."""
        return self._model.normalizer

    @property
    def model(self) -> Model:
        """The plain data."""
        return self._model

    @property
    def specials_matcher(self) -> _binding.Specials | None:
        """The C matcher of all specials, for code that cuts texts itself."""
        return self._specials

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one id; of a special, its UTF-8."""
        return self.decode_single_token_bytes(token)

    def id_to_token(self, token: int) -> str:
        """The text of one id, for display: U+FFFD stands for bytes that are not UTF-8 on their own."""
        return self.token_bytes(token).decode("utf-8", "replace")

    def token_to_id(self, token: Text) -> int | None:
        """The id of a special token or of an ordinary one with this text; None if there is none."""
        if isinstance(token, str) and token in self._model.specials:
            return self._model.specials[token]
        return self._ordinary_ids.get(bytes(utf8(token)))

    @cached_property
    def _ordinary_ids(self) -> dict[bytes, int]:
        specials = set(self._model.specials.values())
        return {token: i for i, token in self.vocab.items() if i not in specials}

    def with_vocab_size(self, n: int) -> Tokenizer:
        """The tokenizer of the first `n` tokens, equal to one trained with vocab_size=n."""
        return Tokenizer.from_model(self._model.with_size(n))

    def get_vocab(self) -> dict[str, int]:
        """Token -> id, spelled as in vocab.json (a space is "Ġ")."""
        return {name: i for i, name in enumerate(tokenizer_json.token_names(self._model)) if name}

    def __repr__(self) -> str:
        return (
            f"Tokenizer(n_vocab={self.n_vocab}, merges={len(self._model.merges)},"
            f" specials={len(self._model.specials)}, pattern={self._model.pattern.name or 'custom'!r})"
        )


class DecodeStream:
    """Decodes ids that arrive one by one, without ever splitting a character.

    `push` returns what can be shown so far; bytes of an unfinished character wait for the next id.
    Invalid bytes become U+FFFD.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that one more id completes; "" if it completes none."""
        return self._decoder.decode(self._tokenizer.token_bytes(token))

    def flush(self) -> str:
        """What was held back, at the end of the stream."""
        return self._decoder.decode(b"", final=True)


def _native_ids(ids: object) -> memoryview | None:
    """A view of an array whose items C can read as they are: 2 or 4 bytes, unsigned, contiguous."""
    try:
        view = memoryview(ids)  # type: ignore[arg-type]
    except TypeError:
        return None
    return view if view.format in ("H", "I") and view.ndim == 1 and view.c_contiguous else None


def _model_of_parts(
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    specials: Sequence[str],
    pattern: Pattern,
    normalizer: str | None,
) -> Model:
    """Gives every part its id. A special takes the id of a vocabulary entry with its text, unless BPE needs
    that entry; else it is appended."""
    tokens = [b""] * (max(vocab, default=-1) + 1)
    for i, token in vocab.items():
        if not isinstance(i, int) or i < 0 or not isinstance(token, bytes):
            raise ArgumentError(f"vocab maps ids to bytes; it has {i!r}: {token!r}")
        tokens[i] = token
    needed = {bytes([i]) for i in range(256)} | {left + right for left, right in merges}
    by_bytes = {token: i for i, token in enumerate(tokens) if token}
    special_ids = {}
    for text in specials:
        data = text.encode("utf-8")
        if data in by_bytes and data not in needed:
            special_ids[text] = by_bytes[data]
        else:
            special_ids[text] = len(tokens)
            tokens.append(data)
    pairs = []
    for rank, (left, right) in enumerate(merges):
        if left not in by_bytes or right not in by_bytes:
            raise ArgumentError(f"merges[{rank}]: {left!r} + {right!r}: both must be in the vocabulary")
        pairs.append((by_bytes[left], by_bytes[right]))
    return Model(tokens, pairs, special_ids, pattern, normalizer)
