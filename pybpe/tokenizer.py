"""The Tokenizer: text to ids and back."""

from __future__ import annotations

import codecs
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from . import _binding, offsets
from .batches import Item, joined, text_list, work_items
from .decode_stream import DecodeStream
from .errors import ArgumentError
from .formats import tiktoken, tokenizer_json, vocab_merges
from .ids import CHUNK, first_unknown, id_chunks
from .model import Model, check_specials
from .normalize import normalize
from .parallel import Result, map_ordered, run_interruptibly
from .pattern import Pattern
from .pretokenize import BLOCK_BYTES, Text, cutter, data_pieces, open_input, text_pieces, utf8

if TYPE_CHECKING:
    import numpy

AllowedSpecial = Literal["all"] | Collection[str]

_ITERABLE_BYTES = 1 << 14  # how much text encode_iterable gathers before it encodes
_SHORT_TEXT = 1 << 18  # characters, or bytes: up to so many are encoded in one call of C
_LONG_PIECE = 4 * BLOCK_BYTES  # a text without safe cuts makes longer pieces, which take long


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
            text: str, or bytes, of which any are fine: what is not valid UTF-8 is encoded byte by byte. Other
                objects with bytes to read (bytearray, memoryview, mmap, uint8 array) are not copied.
            allowed_special: the specials that become one id each; "all", or a set. The others are text.
            disallowed_special: specials whose occurrence is an error; "all" means all not allowed.

        Raises:
            ArgumentError: a disallowed special occurs, or text is of another type.
        """
        if allowed_special == "all" and not disallowed_special:
            return self._encode(text, self._specials)
        return self._encode(text, self._allowed((text,), allowed_special, disallowed_special))

    def encode_ordinary(self, text: Text) -> list[int]:
        """The ids of a text in which no special is recognised."""
        return self._encode(text, None)

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        num_threads: int | None = None,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> list[list[int]]:
        """`encode` of each text, by threads (None: all CPUs)."""
        texts = text_list(texts)
        specials = self._allowed(texts, allowed_special, disallowed_special)

        def encode(item: Item) -> list[tuple[int, list[int]]]:
            return [(i, self._encode_piece(piece, specials)) for i, piece in item]

        rows: list[list[int]] = [[] for _ in texts]
        for done in map_ordered(encode, work_items(texts, self._pieces), num_threads):
            for i, ids in done:
                rows[i] += ids
        return rows

    def encode_iterable(self, texts: Iterable[Text]) -> Iterator[int]:
        """Yields, one by one, the ids of all texts joined, for instance the lines of an open file.

        Lazy, and memory stays bounded: text is gathered only up to the next place where it can be cut
        without influence on any id.
        """
        pending = bytearray()
        enough = _ITERABLE_BYTES
        for text in texts:
            pending += normalize(utf8(text), self._model.normalizer)
            if len(pending) < enough:
                continue
            at = self._cut(pending, max(1, len(pending) // 2))
            if at < len(pending):
                yield from self._encode_piece(bytes(pending[:at]), self._specials)
                del pending[:at]
                enough = _ITERABLE_BYTES
            else:  # there is no cut: looking again after each text would take quadratic time
                enough = 2 * len(pending)
        yield from self._encode_piece(bytes(pending), self._specials)

    def encode_to_numpy(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
        num_threads: int | None = 1,
    ) -> numpy.ndarray[Any, Any]:
        """`encode` to an array.

        Args:
            num_threads: how many encode a long text together (None: all CPUs). The ids are the same.

        Returns:
            shape (tokens,), uint16 if every id of the vocabulary fits, else uint32.
        """
        import numpy

        specials = self._allowed((text,), allowed_special, disallowed_special)
        if num_threads == 1 and self._direct and not (isinstance(text, str) and len(text) > BLOCK_BYTES):
            data = utf8(text)
            ids = numpy.empty(len(data), dtype=self.dtype)  # pages that stay untouched cost nothing
            count = 0
            for piece in data_pieces(data, self._cut):
                count += self._encode_into(piece, specials, ids[count:])
            ids.resize(count, refcheck=False)
            return ids
        parts = map_ordered(lambda piece: self._encode_array(piece, specials), self._pieces(text), num_threads)
        return joined(list(parts), self.dtype)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        *,
        num_threads: int | None = None,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """The ids of all texts in one array, and where each text's begin, by threads (None: all CPUs).

        Returns:
            ids: shape (tokens,), dtype as `encode_to_numpy`.
            row_offsets: shape (texts + 1,), int64: text i has ids[row_offsets[i] : row_offsets[i + 1]].
        """
        import numpy

        texts = text_list(texts)
        specials = self._allowed(texts, allowed_special, disallowed_special)

        def encode(item: Item) -> tuple[numpy.ndarray[Any, Any], list[tuple[int, int]]]:
            ids = numpy.empty(sum(len(piece) for _, piece in item), dtype=self.dtype)
            counts = []
            total = 0
            for i, piece in item:
                counts.append((i, self._encode_into(piece, specials, ids[total:])))
                total += counts[-1][1]
            ids.resize(total, refcheck=False)
            return ids, counts

        parts = []
        row_offsets = numpy.zeros(len(texts) + 1, dtype=numpy.int64)
        for ids, counts in map_ordered(encode, work_items(texts, self._pieces), num_threads):
            parts.append(ids)
            for i, count in counts:
                row_offsets[i + 1] += count
        numpy.cumsum(row_offsets, out=row_offsets)
        return joined(parts, self.dtype), row_offsets

    def encode_with_offsets(
        self, text: Text, *, allowed_special: AllowedSpecial = "all", disallowed_special: AllowedSpecial = ()
    ) -> offsets.EncodingWithOffsets:
        """`encode`, with the place of each token in the text (in the normalised one, if there is a normalizer).

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
        >>> tokenizer.encode_with_offsets("né").char_spans
        [(0, 1), (1, 2), (1, 2)]
        """
        data = bytes(normalize(utf8(text), self._model.normalizer))
        ids = self._encode(data, self._allowed((data,), allowed_special, disallowed_special))
        spans = offsets.byte_spans([len(self._model.tokens[i]) for i in ids])
        return offsets.EncodingWithOffsets(ids, spans, offsets.char_spans(data, spans))

    def count(
        self, text: Text, *, allowed_special: AllowedSpecial = "all", disallowed_special: AllowedSpecial = ()
    ) -> int:
        """How many ids `encode` gives, without making them."""
        specials = self._allowed((text,), allowed_special, disallowed_special)
        if self._model.pattern.is_custom:
            return sum(len(self._encode_piece(piece, specials)) for piece in self._pieces(text))
        return sum(_interruptibly(self._encoder.count, piece, specials) for piece in self._pieces(text))

    def _encode(self, text: Text, specials: _binding.Specials | None) -> list[int]:
        if self._direct and isinstance(text, (str, bytes)) and len(text) <= _SHORT_TEXT:  # short calls come first
            return self._encoder.encode(utf8(text), specials)
        ids: list[int] = []
        for piece in self._pieces(text):
            ids += self._encode_piece(piece, specials)
        return ids

    def _pieces(self, text: Text) -> Iterator[_binding.Data]:
        """A text, normalised, in pieces that can be encoded separately."""
        if self._model.normalizer is None:
            return text_pieces(text, self._cut)
        return data_pieces(normalize(utf8(text), self._model.normalizer), self._cut)

    def _encode_piece(self, piece: _binding.Data, specials: _binding.Specials | None) -> list[int]:
        if self._model.pattern.is_custom:
            return self._encode_custom(bytes(piece), specials)
        return _interruptibly(self._encoder.encode, piece, specials)

    def _encode_into(
        self, piece: _binding.Data, specials: _binding.Specials | None, ids: numpy.ndarray[Any, Any]
    ) -> int:
        """Writes the ids to the start of an array with room for a piece's length; returns how many there are."""
        if self._model.pattern.is_custom:
            found = self._encode_custom(bytes(piece), specials)
            ids[: len(found)] = found
            return len(found)
        return _interruptibly(self._encoder.encode_into, piece, specials, ids)

    def _encode_array(self, piece: _binding.Data, specials: _binding.Specials | None) -> numpy.ndarray[Any, Any]:
        import numpy

        ids = numpy.empty(len(piece), dtype=self.dtype)
        ids.resize(self._encode_into(piece, specials, ids), refcheck=False)
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

    def _allowed(
        self, texts: Iterable[Text], allowed: AllowedSpecial, disallowed: AllowedSpecial
    ) -> _binding.Specials | None:
        """The matcher of the allowed specials, after a check that no disallowed one occurs."""
        if allowed == "all" and not disallowed:
            return self._specials
        allowed = self._special_set(allowed)
        all_others = disallowed == "all"
        disallowed = self._special_set(disallowed)
        forbidden = self._special_subset(disallowed - allowed if all_others else disallowed)
        if forbidden is not None:
            for text in texts:
                self._refuse_specials(text, forbidden)
        return self._special_subset(allowed)

    def _refuse_specials(self, text: Text, forbidden: _binding.Specials) -> None:
        begin = 0
        for piece in self._pieces(text):  # no special lies across two of them
            found = _interruptibly(forbidden.find, piece)
            if found is not None:
                raise ArgumentError(
                    f"the text contains the special token {self.id_to_token(found[2])!r} at byte {begin + found[0]},"
                    " which is disallowed; pass it in allowed_special, or use disallowed_special=() to take it as text"
                )
            begin += len(piece)

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
        return self._decode(list(id_chunks(ids, self.n_vocab)))

    def decode(self, ids: Iterable[int], errors: str = "replace") -> str:
        """The text of ids. `errors` is what happens to bytes that are not UTF-8: see bytes.decode."""
        chunks = list(id_chunks(ids, self.n_vocab))
        if len(chunks) <= 1:
            return self._decode(chunks).decode("utf-8", errors)
        decoder = codecs.getincrementaldecoder("utf-8")(errors)
        text = ""
        try:
            for i, chunk in enumerate(chunks):  # each some milliseconds; Python appends to a str in place
                text += decoder.decode(self._decode([chunk], i * CHUNK), final=chunk is chunks[-1])
        except UnicodeDecodeError:
            return self._decode(chunks).decode("utf-8", errors)  # raises it with the place in the whole
        return text

    def _decode(self, chunks: Sequence[_binding.IdBuffer], start: int = 0) -> bytes:
        """The bytes of ids, of which `start` others came before."""
        sizes = []
        for i, chunk in enumerate(chunks):
            try:
                sizes.append(self._vocab.decoded_length(chunk))
            except ArgumentError:
                raise first_unknown(chunk.ids, start + i * CHUNK, self.n_vocab, self._model.tokens) from None
        data, out = _binding.new_bytes(sum(sizes))
        for chunk, size in zip(chunks, sizes):
            self._vocab.decode_into(chunk, out, size)
            out += size
        return data

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

    def decode_single_token_bytes(self, token: int, position: int = 0) -> bytes:
        """The bytes of one id. `position` is what an error calls its place."""
        try:
            data = self._model.tokens[token] if token >= 0 else b""
        except (IndexError, TypeError):
            data = b""
        if not data:
            raise first_unknown([token], position, self.n_vocab, self._model.tokens)
        return data

    def decode_stream(self, errors: str = "replace") -> DecodeStream:
        """A decoder for ids that arrive one by one: see DecodeStream. `errors` as in `decode`."""
        return DecodeStream(self, errors)

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


def _interruptibly(function: Callable[..., Result], piece: _binding.Data, *args: object) -> Result:
    """function(piece, *args). Ctrl-C is answered at once even if the piece is long."""
    return run_interruptibly(function, piece, *args) if len(piece) > _LONG_PIECE else function(piece, *args)


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
