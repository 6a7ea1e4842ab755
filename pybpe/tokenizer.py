"""The Tokenizer: text to ids and back."""

from __future__ import annotations

import codecs
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from . import _binding, offsets
from . import remap as remaps
from .arguments import instance, is_unicode, whole_number
from .batches import text_list
from .decode_stream import DecodeStream
from .encoding import AllowedSpecial, TextEncoder
from .errors import ArgumentError
from .familiar import Answering, unknown_attribute
from .formats import export, hf, load, pretrained, tiktoken, vocab_merges
from .formats.spelling import token_names
from .ids import CHUNK, first_unknown, id_chunks
from .model import Model, check_specials, refuse_aliases, special_ids_of
from .parallel import map_ordered, worker_count
from .parts import model_of_parts
from .pattern import Pattern
from .pretokenize import Inputs, Text, utf8
from .template import Template

if TYPE_CHECKING:
    import numpy


class Tokenizer(metaclass=Answering):
    """A byte-level BPE tokenizer. Immutable; one object may be shared by any number of threads.

    Make one with `pybpe.train`, `Tokenizer.from_file`, `Tokenizer.from_files`, or from the parts:

    Args:
        vocab: id -> bytes. Each of the 256 single bytes must be there.
        merges: (left bytes, right bytes) in rank order.
        special_tokens: strings that are found whole before anything else. One that the vocabulary lacks
            gets the next free id. A mapping text -> id gives the ids; ids between may be unused.
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
        special_tokens: Iterable[str] | Mapping[str, int] | None = None,
        *,
        pattern: str = "gpt2",
        digits: int | None = None,
        normalizer: str | None = None,
    ) -> None:
        specials = special_ids_of(() if special_tokens is None else special_tokens)
        self._set(model_of_parts(vocab, merges, specials, Pattern(pattern, digits), normalizer))

    def _set(self, model: Model, vocab: _binding.Vocab | None = None) -> None:
        self._model = model
        self._vocab = vocab if vocab is not None else model.to_vocab()
        self._encoder = TextEncoder(model, self._vocab)

    @classmethod
    def from_model(cls, model: Model) -> Tokenizer:
        """From plain data (pybpe.model.Model)."""
        tokenizer = cls.__new__(cls)
        tokenizer._set(model)
        return tokenizer

    def __reduce__(self) -> tuple[object, ...]:
        return Tokenizer.from_model, (self._model,)

    def __eq__(self, other: object) -> bool:
        """Whether two give the same ids for every text, whatever files they came from."""
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[str, Template | None]:
        return self._model.fingerprint(), self._model.template

    # ------------------------------------------------------------------------------------------------
    # Files

    @classmethod
    def from_file(
        cls,
        path: _binding.PathLike,
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Reads a tokenizer.json (ours, or a Hugging Face byte-level BPE), a tokenizer.bin (llm.c's or ours), a
        .tiktoken file, or a folder that `save_pretrained` wrote; which one it is shows in the content.

        Args:
            pattern: a name or regular expression to be used instead of that of a tokenizer.json, if you know that
                it gives the same words; needed for a .tiktoken file, which has none (see `from_tiktoken`).
            special_tokens: text -> id, for a .tiktoken file.

        Raises:
            FileError, FormatError: with the file, the place and what was expected there.
            ArgumentError: the file has no pattern, or has its own special tokens.
        """
        tokenizer = cls.__new__(cls)
        tokenizer._set(*load.load(path, pattern, special_tokens))
        return tokenizer

    @classmethod
    def from_files(
        cls,
        vocab_json: _binding.PathLike,
        merges_txt: _binding.PathLike,
        special_tokens: Iterable[str] | Mapping[str, int] | None = None,
        *,
        pattern: str = "gpt2",
    ) -> Tokenizer:
        """Reads GPT-2's two files.

        Args:
            special_tokens: strings of the vocabulary, or new ones, which get the next ids; a mapping text -> id
                gives the ids. None means <|endoftext|> if the vocabulary has it.
            pattern: as in `pybpe.train`. The files do not say.

        Raises:
            FileError, FormatError: with the file, and the line or id.
            ArgumentError: a special token has another id in the vocabulary.
        """
        model = vocab_merges.read(vocab_json, merges_txt, special_tokens, Pattern(pattern))
        tokenizer = cls.__new__(cls)
        tokenizer._set(*load.fitting(model, f"{os.fsdecode(vocab_json)} and {os.fsdecode(merges_txt)}"))
        return tokenizer

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
            pattern: what a file goes with: a name (as in `pybpe.train`), or a regular expression as tiktoken reads
                it. The tokenizer has it as Python's regex package reads it.
            special_tokens: text -> id, for a file.

        Raises:
            ArgumentError: a file without a pattern, or an Encoding with one.
            UnsupportedError: the pattern may cut other words here than there, or leaves text unmatched, which
                tiktoken drops; or tiktoken may find another special token, since one begins another.
            FileError, FormatError: the file, with the line.
        """
        if isinstance(source, (str, bytes, os.PathLike)):
            tokenizer = cls.__new__(cls)
            tokenizer._set(*load.load_ranks(source, pattern, special_tokens))
            return tokenizer
        if pattern is not None or special_tokens is not None:
            raise ArgumentError("an Encoding has its own pattern and special tokens: leave these arguments out")
        return cls.from_model(tiktoken.from_encoding(source))

    @classmethod
    def from_hf(cls, tokenizer: Any, *, pattern: str | None = None) -> Tokenizer:
        """The tokenizer that gives Hugging Face's ids.

        Args:
            tokenizer: a tokenizers.Tokenizer, or a fast tokenizer of transformers, whose chat template and end of
                text are taken too.
            pattern: as in `from_file`.

        Raises:
            ArgumentError: it is another thing.
            FormatError: a part that pybpe does not have; it says which.
        """
        return cls.from_model(hf.from_hf(tokenizer, Pattern(pattern) if pattern is not None else None))

    def save(self, path: _binding.PathLike) -> None:
        """Writes a tokenizer.json, atomically. Hugging Face tokenizers read it and give the same ids; or they refuse
        it, and a warning says so, if the pattern is a regular expression that their engine reads differently.

        Raises:
            UnsupportedError: a special token is spelled as an ordinary token is.
        """
        export.export(self._model, path, "json")

    def save_bin(self, path: _binding.PathLike, version: int = 2) -> None:
        """Writes a tokenizer.bin, atomically: llm.c reads it, and `from_file` gives the same ids.

        Args:
            version: 2; or 1, which llm.c accepts only for GPT-2's own 50,257 tokens, with a warning.

        Raises:
            LimitError: a token is longer than 255 bytes, or an id is unused.
            UnsupportedError: there is a template.
        """
        version = whole_number("version", version, 1, 2)
        if version == 1 and (self.n_vocab, self.eot_token) != (50257, 50256):
            warnings.warn(
                f"llm.c aborts on a version 1 tokenizer.bin of {self.n_vocab} tokens: it takes 50257 for granted;"
                " write version 2",
                stacklevel=2,
            )
        export.refuse_template(self._model, "tokenizer.bin")
        refuse_aliases(self._model, "tokenizer.bin")
        self._vocab.save(path, version)

    def save_files(self, vocab_json: _binding.PathLike, merges_txt: _binding.PathLike) -> None:
        """Writes GPT-2's two files. UnsupportedError for what they cannot hold, such as another pattern."""
        export.refuse_template(self._model, "vocab.json and merges.txt")
        refuse_aliases(self._model, "vocab.json and merges.txt")
        vocab_merges.write(self._model, vocab_json, merges_txt)

    def save_pretrained(self, folder: _binding.PathLike, **tokens: str) -> None:
        """Writes a folder that transformers.AutoTokenizer.from_pretrained loads: tokenizer.json,
        tokenizer_config.json with the chat template, special_tokens_map.json. Removes what an earlier tokenizer left
        in the folder and transformers would still read: chat_template.jinja, additional_chat_templates/*.jinja,
        added_tokens.json.

        Args:
            tokens: special tokens by role, such as unk_token="<unk>". eos_token is the end of text unless given;
                bos_token what the template begins with, else the same; pad_token <|padding|> or <|pad|>.

        Raises:
            ArgumentError: a role's token is no special token.
            UnsupportedError: as `save`; or the pattern may cut other words in Hugging Face's engine.
        """
        pretrained.write(self._model, folder, tokens)

    def export(self, path: _binding.PathLike, format: str | None = None) -> None:
        """Writes a file or folder of another program's format.

        Args:
            path: where to.
            format: "json" (tokenizer.json), "bin" (llm.c's tokenizer.bin), "files" (a folder with vocab.json and
                merges.txt), "tiktoken" (ranks; tell its reader the pattern and the special tokens), "pretrained"
                (see `save_pretrained`). None: by the name's ending, .json, .bin or .tiktoken; else "pretrained".

        Raises:
            UnsupportedError: the format cannot hold something that decides ids; the message says what.
            ArgumentError: there is no such format.
        """
        export.export(self._model, path, format)

    def to_tiktoken(self, name: str = "pybpe") -> Any:
        """The tiktoken.Encoding that gives the same ids.

        Raises:
            UnsupportedError: there is none; it says why.
            MissingExtraError: tiktoken is not installed.
        """
        export.refuse_template(self._model, "a tiktoken.Encoding")
        return tiktoken.to_encoding(self._model, name)

    def to_hf(self) -> Any:
        """The tokenizers.Tokenizer that gives the same ids.

        Raises:
            UnsupportedError: there is none; it says why.
            MissingExtraError: tokenizers is not installed.
        """
        return hf.to_hf(self._model)

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
        """The ids of a text.

        Args:
            text: str, or bytes, of which any are fine: what is not valid UTF-8 is encoded byte by byte. Other
                objects with bytes to read (bytearray, memoryview, mmap, uint8 array) are not copied.
            pair: a second text, whose ids follow, or stand where the template wants them.
            allowed_special: the specials that become one id each; "all", or a set. The others are text.
            disallowed_special: specials whose occurrence is an error; "all" means all not allowed.
            add_special_tokens: put around it what the template says (see `with_template`), if there is one.

        Raises:
            ArgumentError: a disallowed special occurs, or text is of another type.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>"])
        >>> tokenizer.encode("hi<s>")
        [104, 105, 256]
        >>> tokenizer.encode("hi<s>", allowed_special=())
        [104, 105, 60, 115, 62]
        >>> tokenizer.with_template(bos="<s>").encode("hi", add_special_tokens=True)
        [256, 104, 105]
        """
        encoder = self._encoder
        specials = encoder.specials
        if allowed_special != "all" or disallowed_special:
            texts = (text,) if pair is None else (text, pair)
            specials = encoder.allowed(texts, allowed_special, disallowed_special)
        ids = encoder.encode(text, specials)
        if pair is None and not add_special_tokens:
            return ids
        return self._with_template(ids, None if pair is None else encoder.encode(pair, specials), add_special_tokens)

    def _with_template(self, first: list[int], second: list[int] | None, apply: bool) -> list[int]:
        if apply and self._model.template is not None:
            return self._model.template.apply(self._model.specials, first, second)
        return first + (second or [])

    def encode_ordinary(self, text: Text) -> list[int]:
        """The ids of a text in which no special is recognised.

        >>> Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>"]).encode_ordinary("<s>")
        [60, 115, 62]
        """
        return self._encoder.encode(text, None)

    def encode_batch(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """`encode` of each text, by threads (None: all CPUs)."""
        texts = text_list(texts)
        specials = self._encoder.allowed(texts, allowed_special, disallowed_special)
        rows = self._encoder.batch(texts, specials, num_threads)
        return [self._with_template(ids, None, True) for ids in rows] if add_special_tokens else rows

    def encode_iterable(self, texts: Iterable[Text]) -> Iterator[int]:
        """Yields, one by one, the ids of all texts joined, for instance the lines of an open file.

        Lazy, and memory stays bounded: text is gathered only up to the next place where it can be cut
        without influence on any id.
        """
        instance("texts", texts, Iterable, "an iterable of texts")
        return self._encoder.iterate(texts, self._encoder.specials)

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
        specials = self._encoder.allowed((text,), allowed_special, disallowed_special)
        return self._encoder.array(text, specials, self.dtype, num_threads)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """The ids of all texts in one array, and where each text's begin, by threads (None: all CPUs).

        Returns:
            ids: shape (tokens,), dtype as `encode_to_numpy`.
            row_offsets: shape (texts + 1,), int64: text i has ids[row_offsets[i] : row_offsets[i + 1]].
        """
        texts = text_list(texts)
        specials = self._encoder.allowed(texts, allowed_special, disallowed_special)
        return self._encoder.batch_arrays(texts, specials, self.dtype, num_threads)

    def encode_with_offsets(
        self, text: Text, *, allowed_special: AllowedSpecial = "all", disallowed_special: AllowedSpecial = ()
    ) -> offsets.EncodingWithOffsets:
        """`encode`, with the place of each token in the text (in the normalised one, if there is a normalizer).

        Raises:
            UnsupportedError: a special token occurs that shares its id with another one.

        >>> tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
        >>> tokenizer.encode_with_offsets("né").char_spans
        [(0, 1), (1, 2), (1, 2)]
        """
        import numpy

        specials = self._encoder.allowed((text,), allowed_special, disallowed_special)
        if any(alias.encode() in bytes(utf8(text)) for alias in self._model.aliases):
            refuse_aliases(self._model, "a list of places")
        ids = self._encoder.encode(text, specials)
        token_offsets = numpy.frombuffer(self._vocab.packed()[1], dtype=numpy.uint64)
        spelled = self._encoder.normalized(text, specials)
        return offsets.EncodingWithOffsets(ids, *offsets.spans(ids, token_offsets, spelled))

    def count(
        self, text: Text, *, allowed_special: AllowedSpecial = "all", disallowed_special: AllowedSpecial = ()
    ) -> int:
        """How many ids `encode` gives, without making them."""
        return self._encoder.count(text, self._encoder.allowed((text,), allowed_special, disallowed_special))

    # ------------------------------------------------------------------------------------------------
    # Decoding

    def decode_bytes(self, ids: Iterable[int], position: int = 0) -> bytes:
        """The bytes of ids: a list, an array of numpy or of the array module, or any iterable of int. `position` is
        what an error calls the place of the first.

        Raises:
            ArgumentError: an id that is not in the vocabulary; it names the id and its position.
        """
        return self._decode(list(id_chunks(ids, self.n_vocab, position)), position)

    def decode(self, ids: Iterable[int], errors: str = "replace", *, skip_special_tokens: bool = False) -> str:
        """The text of ids.

        Args:
            errors: what happens to bytes that are not UTF-8: see bytes.decode.
            skip_special_tokens: leave special tokens out, but for those that are text to a reader (Model.visible).

        Raises:
            ArgumentError: as `decode_bytes`.
        """
        instance("errors", errors, str, "the name of an error handler")
        if skip_special_tokens:
            hidden = self._hidden_ids
            ids = [i for known in self._known_ids(ids) for i in known if i not in hidden]
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

    @cached_property
    def _hidden_ids(self) -> frozenset[int]:
        return frozenset(i for text, i in self._model.specials.items() if text not in self._model.visible)

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

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        errors: str = "replace",
        *,
        skip_special_tokens: bool = False,
        num_threads: int | None = 1,
    ) -> list[str]:
        """`decode` of each sequence, by threads (None: all CPUs). They help only if sequences are long."""
        instance("batch", batch, Iterable, "sequences of ids")
        decode = partial(self.decode, errors=errors, skip_special_tokens=skip_special_tokens)
        return list(map_ordered(decode, batch, worker_count(num_threads, "num_threads")))

    def decode_with_offsets(self, ids: Iterable[int]) -> tuple[str, list[int]]:
        """The text of ids, and for each id the index of the character in which it begins, as in tiktoken.

        Raises:
            ArgumentError: as `decode_bytes`.
            UnicodeDecodeError: the bytes are not UTF-8.
        """
        tokens = [self._model.tokens[i] for known in self._known_ids(ids) for i in known]
        return b"".join(tokens).decode("utf-8"), offsets.char_starts(tokens)

    def _known_ids(self, ids: Iterable[int]) -> Iterator[list[int]]:
        """The ids in lists, each of which is in the vocabulary: ArgumentError for the first that is not."""
        tokens = self._model.tokens
        position = 0
        for chunk in id_chunks(ids, self.n_vocab):
            numbers = chunk.ids.tolist()
            if max(numbers) >= len(tokens) or not all(map(tokens.__getitem__, numbers)):
                raise first_unknown(numbers, position, self.n_vocab, tokens)
            position += len(numbers)
            yield numbers

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
        return self._encoder.specials

    @property
    def encoder(self) -> TextEncoder:
        """What the methods above share, for code that cuts texts itself."""
        return self._encoder

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one id; of a special, its UTF-8."""
        return self.decode_single_token_bytes(token)

    def id_to_token(self, token: int) -> str:
        """The text of one id, for display: U+FFFD stands for bytes that are not UTF-8 on their own."""
        return self.token_bytes(token).decode("utf-8", "replace")

    def token_to_id(self, token: Text) -> int | None:
        """The id of a special token or of an ordinary one with this text; None if there is none.

        A token is its text, as in `id_to_token`: " the", not Hugging Face's "Ġthe", for which `get_vocab` is.
        """
        if isinstance(token, str) and token in self._model.specials:
            return self._model.specials[token]
        return self._ordinary_ids.get(bytes(utf8(token)))

    @cached_property
    def _ordinary_ids(self) -> dict[bytes, int]:
        specials = set(self._model.specials.values())
        return {token: i for i, token in self.vocab.items() if i not in specials}

    @property
    def template(self) -> Template | None:
        """What `encode(..., add_special_tokens=True)` puts around a text."""
        return self._model.template

    def with_template(
        self,
        template: Template | str | None = None,
        pair: str = "$A $B:1",
        *,
        bos: str | None = None,
        eos: str | None = None,
    ) -> Tokenizer:
        """The same tokenizer with another template; without arguments, with none.

        Args:
            template: a Template, or Hugging Face's spelling of one, as in "<s> $A </s>": $A is the text.
            pair: the same for two texts, $A and $B.
            bos, eos: instead of these, special tokens that begin and end every text.

        Raises:
            ArgumentError: the template has no $A, or a token that is no special token.
        """
        if isinstance(template, str):
            template = Template.parse(template, pair)
        elif bos is not None or eos is not None:
            template = Template.around(bos, eos)
        if template is not None:
            instance("template", template, Template, "a Template or a str")
            template.check(self._model.specials)
        return self._with(template=template)

    @property
    def chat_template(self) -> str | None:
        """How transformers makes a text of a chat (Jinja): what was read or set, else what goes with the special
        tokens, such as ChatML with <|im_start|> and <|im_end|>; None if nothing does."""
        return pretrained.chat_template(self._model)

    def with_chat_template(self, chat_template: str | None) -> Tokenizer:
        """The same tokenizer with another chat template. ArgumentError for what is no valid Unicode."""
        if chat_template is not None:
            instance("chat_template", chat_template, str, "a str or None")
            if not is_unicode(chat_template):
                raise ArgumentError("chat_template holds a lone surrogate: not valid Unicode")
        return self._with(chat_template=chat_template)

    def _with(self, **changes: Any) -> Tokenizer:
        """The same with changes that the C vocabulary does not know of."""
        tokenizer = Tokenizer.__new__(Tokenizer)
        tokenizer._set(replace(self._model, **changes), self._vocab)
        return tokenizer

    def with_vocab_size(self, n: int) -> Tokenizer:
        """The tokenizer of the first `n` tokens, equal to one trained with vocab_size=n."""
        return Tokenizer.from_model(self._model.with_size(n))

    def prune(self, keep: Iterable[int], *, remap: _binding.PathLike | None = None) -> Tokenizer:
        """The tokenizer with fewer tokens: those of `keep`, the parts that their merges need, the bytes, and the
        special tokens. The ids that are left move up. What was dropped is encoded as its parts.

        Args:
            keep: ids.
            remap: a file to be written that says which rows of an embedding stay: see `pybpe.remap`.

        Raises:
            ArgumentError: an id that is not in the vocabulary.

        >>> from pybpe import train
        >>> tokenizer = train(iter(["abcabd abc"]), vocab_size=260)
        >>> [tokenizer.id_to_token(i) for i in range(256, 260)]
        ['ab', 'abc', 'abcab', 'abcabd']
        >>> small = tokenizer.prune([tokenizer.token_to_id("abc")])
        >>> [small.id_to_token(i) for i in range(256, small.n_vocab)]
        ['ab', 'abc']
        """
        return self._changed(remaps.pruned(self._model, keep), remap)

    def extend(
        self,
        special_tokens: Iterable[str] = (),
        inputs: Inputs | None = None,
        *,
        vocab_size: int | None = None,
        remap: _binding.PathLike | None = None,
        **training: Any,
    ) -> Tokenizer:
        """The tokenizer with more tokens; all ids stay.

        Args:
            special_tokens: get the next ids.
            inputs: texts to learn more merges from, as in `pybpe.train`, which also takes `training`.
            vocab_size: how many tokens there shall be then, if there are inputs.
            remap: a file to be written that says which ids are new: see `pybpe.remap`.

        Raises:
            ArgumentError: a special token that there is already, or one of inputs and vocab_size without the other.
        """
        from .trainer import train

        if (inputs is None and "counts" not in training) != (vocab_size is None):
            raise ArgumentError("inputs and vocab_size go together: give both to learn merges, or none")
        specials = check_specials(special_tokens)
        if vocab_size is None:
            return self._changed(remaps.with_specials(self._model, specials), remap)
        remaps.with_specials(self._model, specials)  # refuses what is there
        new = train(inputs, vocab_size=vocab_size, base=self, special_tokens=specials, **training)
        return self._changed(new.model, remap)

    def _changed(self, model: Model, remap: _binding.PathLike | None) -> Tokenizer:
        tokenizer = Tokenizer.from_model(model)
        if remap is not None:
            remaps.save_remap(remap, remaps.old_ids(self._model, model))
        return tokenizer

    def get_vocab(self) -> dict[str, int]:
        """Token -> id, spelled as in vocab.json and Hugging Face: a space is "Ġ", and other bytes have such letters
        too. `token_to_id` takes the text itself: the letter "Ġ" may be a part of that as well."""
        return {name: i for i, name in enumerate(token_names(self._model)) if name}

    if not TYPE_CHECKING:  # for a type checker it would make every misspelt name right

        def __getattr__(self, name: str) -> Any:
            raise unknown_attribute(f"{type(self).__name__!r} object", name)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .viz.notebook import table

        return table(self)

    def __repr__(self) -> str:
        return (
            f"Tokenizer(n_vocab={self.n_vocab}, merges={len(self._model.merges)},"
            f" specials={len(self._model.specials)}, pattern={self._model.pattern.name or 'custom'!r})"
        )
