"""A tokenizer as plain data: the form that file formats and the C library exchange."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import cached_property, hashlib, numpy
from ..arguments import by_caller, instance, is_unicode, param, shown, whole_number
from ..control_tokens import CONTROL_TOKENS as CONTROL_TOKENS
from ..control_tokens import END_OF_TEXT as END_OF_TEXT
from ..errors import ArgumentError, UnsupportedError
from ..normalize import check_normalizer
from ..pattern import Pattern

USUAL_ENDS = (END_OF_TEXT, "<|end_of_text|>")  # the names of the end-of-document token. The second is Llama 3's

MOST_IDS = 1 << 24
_UNUSED_IDS = 1 << 20  # at least this many ids may be unused. They take about 40 bytes each


class Matching(NamedTuple):
    """How a special token is matched: the flags of Hugging Face's added tokens, which csrc/special/special_rules.c
    explains. Most special tokens have none."""

    lstrip: bool = False  # a match includes the white space before the token
    rstrip: bool = False  # a match includes the white space after the token
    single_word: bool = False  # a word character next to the token prevents a match
    # Looked for only between the matches of the others, as if these parts stood alone. Hugging Face
    # calls it "normalized".
    late: bool = False

    @property
    def strips(self) -> bool:
        """Whether a match may include white space that the token does not have."""
        return self.lstrip or self.rstrip

    @property
    def names(self) -> list[str]:
        """The flags that are on, as Hugging Face calls them."""
        names = {"lstrip": self.lstrip, "rstrip": self.rstrip, "single_word": self.single_word, "normalized": self.late}
        return [name for name, is_on in names.items() if is_on]

    @property
    def flags(self) -> int:
        """The flags as C takes them."""
        return sum(_binding.SPECIAL_FLAGS[name] for name in self.names)


PLAIN = Matching()


def matcher(specials: Mapping[str, int] | Iterable[str], matching: Mapping[str, Matching]) -> _binding.Specials | None:
    """Returns the C matcher of special tokens, with the flags in `matching`, or None if there are none. Raises
    ArgumentError if two of them would match the same white space."""
    return _binding.Specials.of(specials, {text: rules.flags for text, rules in matching.items()})


def check_spaces(specials: Collection[str], matching: Mapping[str, Matching]) -> None:
    """Raises ArgumentError if one special token begins with white space that another one with rstrip may take."""
    spaced = {matching.get(text, PLAIN).late: text for text in specials if text[:1].isspace()}
    for text, rules in matching.items():
        if rules.rstrip and rules.late in spaced:
            raise ArgumentError(
                f"the special token {text!r:.80} has rstrip on, and {spaced[rules.late]!r:.80} begins with white space:"
                " pybpe supports only one of them"
            )


# ----------------------------------------------------------------------------------------------------
# Templates: the special tokens to put around an encoded text, or around a pair of them. They do the same as Hugging
# Face's TemplateProcessing, and have the same syntax.


class TemplatePiece(NamedTuple):
    """A part of a template."""

    text: str  # "A" or "B" for the first or the second text, otherwise a special token
    is_sequence: bool  # whether this piece is one of the texts
    type_id: int = 0  # Hugging Face's token type. Saved files keep it. It does not affect ids.

    @classmethod
    def parse(cls, spelled: str) -> TemplatePiece:
        """Parses a piece, such as "$A", "$B:1", "<s>" or "<s>:1"."""
        body, colon, number = spelled.rpartition(":")
        if not colon or not body or not number.isdecimal():
            body, number = spelled, "0"
        if not body.startswith("$"):
            return cls(body, False, int(number))
        name = body[1:] or "A"
        if name.isdecimal():  # "$1" is the first text with type 1
            name, number = "A", name
        if name.upper() not in ("A", "B"):
            raise ArgumentError(f"the texts of a template are $A and $B, not {spelled!r}")
        return cls(name.upper(), True, int(number))

    def __str__(self) -> str:
        body = f"${self.text}" if self.is_sequence else self.text
        return f"{body}:{self.type_id}" if self.type_id else body


@dataclass(frozen=True)
class Template:
    """The special tokens that `Tokenizer.encode(..., add_special_tokens=True)` puts around text.

    Attributes:
        single: the pieces for one text.
        pair: the pieces for a pair.

    >>> template = Template.parse("<s> $A </s>", "<s> $A </s> $B:1 </s>:1")
    >>> template.apply({"<s>": 1, "</s>": 2}, [10, 11])
    [1, 10, 11, 2]
    >>> template.apply({"<s>": 1, "</s>": 2}, [10], [20])
    [1, 10, 2, 20, 2]
    >>> print(Template.around(eos="</s>"))
    $A </s> | $A </s> $B:1 </s>:1
    """

    single: tuple[TemplatePiece, ...]
    pair: tuple[TemplatePiece, ...] = (TemplatePiece("A", True), TemplatePiece("B", True, 1))

    def __post_init__(self) -> None:
        if [piece.text for piece in self.single if piece.is_sequence] != ["A"]:
            raise ArgumentError(f"a template for one text must contain $A once, and no $B: {_join(self.single)!r}")
        if sorted(p.text for p in self.pair if p.is_sequence) != ["A", "B"]:
            raise ArgumentError(f"a template for two texts must contain $A and $B once each: {_join(self.pair)!r}")

    @classmethod
    def parse(cls, single: str | Sequence[str], pair: str | Sequence[str] = "$A $B:1") -> Template:
        """Parses Hugging Face's syntax: $A and $B are the first and the second text, the rest are special tokens, and
        ":1" sets the type.

        Args:
            single, pair: pieces separated by spaces, or a list of pieces (if a special token contains a space).

        Raises:
            ArgumentError: $A, or $B in a pair, is missing or repeated.
        """
        return cls(_split(single), _split(pair))

    @classmethod
    def around(cls, bos: str | None = None, eos: str | None = None) -> Template:
        """Returns the template that puts `bos` before and `eos` after a text. Raises ArgumentError if both are None."""
        if bos is None and eos is None:
            raise ArgumentError("bos and eos are both None: pass at least one of them")

        def one(text: str, type_id: int) -> tuple[TemplatePiece, ...]:
            before = (TemplatePiece(bos, False, type_id),) if bos is not None else ()
            after = (TemplatePiece(eos, False, type_id),) if eos is not None else ()
            return (*before, TemplatePiece(text, True, type_id), *after)

        return cls(one("A", 0), one("A", 0) + one("B", 1))

    @property
    def changes_ids(self) -> bool:
        """Whether this template changes the ids of encoded texts: it has special tokens, or puts $B first."""
        return bool(self.special_tokens) or self.pair[0].text != "A"

    @property
    def special_tokens(self) -> list[str]:
        """The special tokens of the template, in order, without repeats."""
        return list(dict.fromkeys(p.text for p in (*self.single, *self.pair) if not p.is_sequence))

    def check(self, specials: Mapping[str, int]) -> None:
        """Raises ArgumentError unless all its special tokens are in `specials` (text -> id)."""
        for text in self.special_tokens:
            if text not in specials:
                raise ArgumentError(f"{text!r} in the template is not a special token of this tokenizer")

    def without_specials(self) -> Template:
        """Returns the template without its special tokens: only the places of text, in the same order."""
        return Template(*(tuple(p for p in pieces if p.is_sequence) for pieces in (self.single, self.pair)))

    def apply(self, specials: Mapping[str, int], first: list[int], second: list[int] | None = None) -> list[int]:
        """Returns the ids of the texts and the special tokens around them.

        Args:
            specials: text -> id.
            first, second: the ids of the first text, and of the second one if there are two.
        """
        texts = {"A": first, "B": second or []}
        ids: list[int] = []
        for piece in self.single if second is None else self.pair:
            ids += texts[piece.text] if piece.is_sequence else [specials[piece.text]]
        return ids

    def __str__(self) -> str:
        return f"{_join(self.single)} | {_join(self.pair)}"


def _split(spelled: str | Sequence[str]) -> tuple[TemplatePiece, ...]:
    return tuple(map(TemplatePiece.parse, spelled.split() if isinstance(spelled, str) else spelled))


def _join(pieces: Sequence[TemplatePiece]) -> str:
    return " ".join(map(str, pieces))


# ----------------------------------------------------------------------------------------------------
# The tokenizer


@dataclass(frozen=True)
class Model:
    """A tokenizer as plain data."""

    tokens: Sequence[bytes]  # the bytes of id 0, 1, ..., or b"" if it is unused. Special tokens are included, as UTF-8.
    merges: Sequence[tuple[int, int]]  # (left id, right id) in rank order
    # text -> id. Two of them may share an id, as in tiktoken. `tokens` has the text that the id decodes to.
    specials: Mapping[str, int]
    pattern: Pattern  # splits text into words
    normalizer: str | None = None  # None, "NFC" or "NFKC"
    # How the tokenizer was trained (tie_break and so on). Saved files have it. It has no other effect.
    training: Mapping[str, object] = field(default_factory=dict)
    # Whether a word that is a token becomes that token even if merges give other tokens, as in tiktoken and in Hugging
    # Face's models with ignore_merges.
    whole_words: bool = False
    # The special tokens that readers see as text: Hugging Face's added tokens that are not "special".
    visible: frozenset[str] = frozenset()
    template: Template | None = None  # the special tokens that `encode` puts around a text if the caller asks for them
    eos: str | None = None  # the special token that ends a document, None for <|endoftext|>
    # Turns a chat into text, in Jinja, for transformers, or "" for no template, None for the one that fits the special
    # tokens.
    chat_template: str | None = None
    # The rest of the configuration of a tokenizer of transformers, such as the roles of special tokens. Saved files
    # keep it. None for a tokenizer from elsewhere, whose roles formats/pretrained.py chooses.
    config: Mapping[str, object] | None = None
    # unk_token and fuse_unk of a tokenizer.json, which saved files keep. They say what Hugging Face does with a byte
    # that has no token. pybpe raises an error for a text with such a byte.
    unknown: Mapping[str, object] = field(default_factory=dict)
    # text -> flags, for the special tokens that have any.
    matching: Mapping[str, Matching] = field(default_factory=dict)
    # Whether a space is added before the text between special tokens, after normalization, unless the text begins with
    # one: Hugging Face's add_prefix_space.
    prefix_space: bool = False
    # The probability that encoding passes over a possible merge. If it is not 0, only `encode_dropout` encodes.
    dropout: float = 0.0

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles only the fields, and a set in order, so the bytes depend neither on earlier calls nor on the
        process."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _of_fields, ({**fields, "visible": sorted(self.visible)},)

    @cached_property
    def vocab(self) -> dict[int, bytes]:
        """The tokens by id, without unused ids."""
        return {i: token for i, token in enumerate(self.tokens) if token}

    @property
    def id_bytes(self) -> int:
        """The size of an id: 2 bytes if every id fits, otherwise 4."""
        return 2 if len(self.tokens) <= 1 << 16 else 4

    @cached_property
    def dtype(self) -> numpy.dtype[Any]:
        """The numpy dtype for ids: uint16 if every id fits, otherwise uint32."""
        return numpy.dtype(f"u{self.id_bytes}")

    @property
    def lacking_bytes(self) -> list[int]:
        """The bytes that have no token. Hugging Face's trainer without initial_alphabet makes such vocabularies."""
        special_ids = set(self.specials.values())
        found = {token for i, token in enumerate(self.tokens) if len(token) == 1 and i not in special_ids}
        return [byte for byte in range(256) if bytes([byte]) not in found]

    @cached_property
    def eot(self) -> str | None:
        """The special token that ends a document, or None."""
        return end_of_text(self.specials, self.eos)

    @property
    def eot_id(self) -> int | None:
        """The id of the special token that ends a document, or None."""
        return self.specials.get(self.eot or "")

    @cached_property
    def hidden_ids(self) -> frozenset[int]:
        """The ids of the special tokens that readers do not see."""
        return frozenset(i for text, i in self.specials.items() if text not in self.visible)

    def byte_lengths(self) -> numpy.ndarray[Any, Any]:
        """Returns the number of bytes of every id: see Tokenizer.byte_lengths."""
        lengths = numpy.fromiter(map(len, self.tokens), dtype=numpy.int32, count=len(self.tokens))
        lengths[list(self.hidden_ids)] = 0
        return lengths

    @property
    def strips(self) -> bool:
        """Whether a special token may take white space around it, which decoding then does not return."""
        return any(rules.strips for rules in self.matching.values())

    @cached_property
    def changes_text(self) -> bool:
        """Whether ids may decode to a different text than the one that was encoded."""
        return self.normalizer is not None or self.strips or self.prefix_space

    def encodes_again(self, ids: Collection[int]) -> bool:
        """Returns whether encoding the decoded text of these ids, a whole text's, certainly gives them again.
        White space that a special token took, or a space that was added, may decide whether others match."""
        if self.prefix_space and any(text[0].isspace() for text in self.specials):
            return False
        return not (self.strips or self.prefix_space) or set(self.specials.values()).isdisjoint(ids)

    @cached_property
    def aliases(self) -> list[str]:
        """The special tokens whose id decodes to another special token."""
        return [text for text, i in self.specials.items() if self.tokens[i] != text.encode("utf-8")]

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256, in hex, of everything that affects encoding. Equal tokenizers have equal fingerprints, whichever
        files they came from, except that this looks at `whole_words` also where it has no effect."""
        digest = hashlib.sha256()
        vocab = self.to_vocab()  # the variable keeps the vocabulary alive, and with it the parts
        for part in vocab.packed():
            digest.update(part)
        digest.update(repr((sorted(self.specials.items()), self.pattern.regex, self.normalizer)).encode())
        digest.update(b"whole words" if self.whole_words else b"")
        flags = sorted((text, rules.names) for text, rules in self.matching.items())
        digest.update(repr(flags).encode() if flags else b"")
        digest.update(b"prefix space" if self.prefix_space else b"")
        digest.update(f"dropout {self.dropout!r}".encode() if self.dropout else b"")
        return digest.hexdigest()

    def to_vocab(self) -> _binding.Vocab:
        """Returns the C vocabulary. Raises ArgumentError if the parts do not fit together."""
        vocab = self.tokens.vocab if isinstance(self.tokens, _binding.VocabPart) else None
        if vocab is not None and self._is_of(vocab):
            return vocab
        return _binding.Vocab.new(self.tokens, self.merges, self.rules)

    @property
    def rules(self) -> _binding.VocabRules:
        """The settings that the C library needs besides tokens and merges."""
        number, custom = self.pattern.number, self.pattern.custom
        settings = (self.normalizer, self.whole_words, self.prefix_space)
        return _binding.VocabRules(self.specials.values(), self.eot_id, number, custom, *settings)

    def _is_of(self, vocab: _binding.Vocab) -> bool:
        """Returns whether the model was made from this vocabulary, and none of its parts has been replaced since."""
        if not isinstance(self.merges, _binding.VocabPart) or self.merges.vocab is not vocab:
            return False
        rules = self.rules
        theirs = (*vocab.pattern, vocab.normalizer, vocab.whole_words, vocab.prefix_space)
        ids = sorted(set(rules.specials)), rules.eot_id
        return ids == (vocab.specials(), vocab.eot_id) and rules[2:] == theirs

    def unreached(self) -> list[int]:
        """Returns the ids of the ordinary tokens that merging their bytes does not produce. Without `whole_words`,
        encoding never produces them."""
        special_ids = set(self.specials.values())
        ordinary = [i for i, token in enumerate(self.tokens) if token and i not in special_ids]
        lacking = set(self.lacking_bytes)
        ids = [i for i in ordinary if lacking.isdisjoint(self.tokens[i])]
        ends = list(accumulate(len(self.tokens[i]) for i in ids))
        encoder = _binding.Encoder(replace(self, whole_words=False).to_vocab())
        found = encoder.encode_words(b"".join(self.tokens[i] for i in ids), ends)
        starts = {end - len(self.tokens[i]) for i, end in zip(found, accumulate(len(self.tokens[i]) for i in found))}
        # Merging produces a token if none of the tokens found begins inside it.
        inside = sorted(starts.difference([0, *ends]))
        return sorted({*(ids[bisect_right(ends, at)] for at in inside), *(set(ordinary) - set(ids))})

    @classmethod
    def from_vocab(cls, vocab: _binding.Vocab) -> Model:
        """Returns the plain data of a C vocabulary."""
        specials = {vocab.token(i).decode("utf-8", "replace"): i for i in vocab.specials()}
        pattern = Pattern.from_number(*vocab.pattern)
        eos = None if vocab.eot_id is None else vocab.token(vocab.eot_id).decode("utf-8", "replace")
        model = cls(*vocab.parts, specials, pattern, vocab.normalizer, whole_words=vocab.whole_words)
        return model if model.eot == eos else replace(model, eos=eos)


def _of_fields(fields: Mapping[str, Any]) -> Model:
    """Makes a model from the pickle of `Model.__reduce__`."""
    return Model(**{**fields, "visible": frozenset(fields["visible"])})


def end_of_text(specials: Collection[str], named: str | None) -> str | None:
    """Returns the special token that ends a document: `named` if it is not None, otherwise the first of the usual names
    among the special tokens, or None."""
    names = USUAL_ENDS if named is None else (named,)
    return next((text for text in names if text in specials), None)


def named_special(name: str, text: object, specials: Collection[str], others: str = "") -> str:
    """Returns the special token that a parameter names. `others` says which other values it takes. Raises ArgumentError
    if there is no such token."""
    if isinstance(text, str) and text in specials:
        return text
    some = [shown(special) for special in islice(specials, 8)] + [f"{len(specials) - 8} more"] * (len(specials) > 8)
    raise ArgumentError(
        f"{param(name)} must be {others}one of the tokenizer's special tokens ({', '.join(some) or 'there are none'}),"
        f" not {shown(text)}"
    )


def id_problem(ids: Collection[object]) -> str | None:
    """Returns the problem with the ids of a vocabulary, or None. Without this check a short file with one huge id
    could take gigabytes of memory, because the unused ids below it take memory too."""
    limit = min(MOST_IDS, 2 * len(ids) + _UNUSED_IDS)
    for i in ids:
        if type(i) is not int or not 0 <= i < limit:
            return f"invalid id {i!r}: with {len(ids)} tokens, ids must be integers from 0 to {limit - 1}"
    return None


def check_all_bytes(tokens: Collection[bytes]) -> None:
    """Raises ArgumentError unless all 256 single bytes are among these ordinary tokens."""
    missing = next((byte for byte in range(256) if bytes([byte]) not in tokens), None)
    if missing is not None:
        raise ArgumentError(f"there is no token for the byte 0x{missing:02X}: a byte-level vocabulary needs all 256")


def check_specials(specials: Iterable[str]) -> list[str]:
    """Returns the special tokens as a list, and sorts a set. Raises ArgumentError for a special token that is
    empty, repeated or not a str, and for a mapping, because its ids would be lost."""
    if isinstance(specials, Mapping):
        raise ArgumentError(
            f"{param('special_tokens')} is a mapping with ids, but pybpe chooses the ids here: pass a list of the"
            " strings. Tokenizer(vocab, merges, special_tokens) takes ids"
        )
    if isinstance(specials, (str, bytes)):
        raise ArgumentError(f"{param('special_tokens')} must be a list of strings, not one string")
    if not isinstance(specials, Iterable):
        raise ArgumentError(f"{param('special_tokens')} must be a list of strings, not {type(specials).__name__}")
    if isinstance(specials, (set, frozenset)):  # the order of a set differs from run to run
        specials = sorted(specials, key=str)
    found: dict[str, None] = {}
    for text in specials:
        if not isinstance(text, str):
            raise ArgumentError(f"a special token must be a str, not {type(text).__name__}: {text!r}")
        if not text:
            raise ArgumentError("a special token cannot be empty")
        if text in found:
            raise ArgumentError(f"the special token {text!r} is given twice")
        if not is_unicode(text):
            raise ArgumentError(f"the special token {text!r} contains a lone surrogate, which is not valid Unicode")
        found[text] = None
    return list(found)


def special_ids_of(specials: Iterable[str] | Mapping[str, int]) -> dict[str, int | None]:
    """Returns a mapping of the special tokens that `check_specials` accepts to their ids, or to None without an id."""
    if not isinstance(specials, Mapping):
        return dict.fromkeys(check_specials(specials))
    found: dict[str, int | None] = {}
    owners: dict[int, str] = {}
    for text in check_specials(list(specials)):
        i = whole_number(f"the id of the special token {text!r:.80}", specials[text], 0, MOST_IDS - 1)
        if owners.setdefault(i, text) != text:
            raise ArgumentError(f"the special tokens {owners[i]!r:.80} and {text!r:.80} have the same id, {i}")
        found[text] = i
    return found


def refuse_dropout(model: Model, what: str) -> None:
    """Raises UnsupportedError if the model has dropout. `what` says which act is refused."""
    if model.dropout:
        raise UnsupportedError(
            f"{what}: this tokenizer leaves out merges at random (dropout {model.dropout:g})."
            + by_caller(
                " Use replace(dropout=0), or encode_dropout(text, seed=...)",
                " In Python, replace(dropout=0) makes one that does not",
            )
        )


# ----------------------------------------------------------------------------------------------------
# A model from the arguments of `Tokenizer(vocab, merges, special_tokens)`


def model_of_parts(
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    specials: Mapping[str, int | None],
    pattern: Pattern,
    normalizer: str | None,
) -> Model:
    """Makes a model. A special token without an id takes the id of a vocabulary entry with its text, unless BPE needs
    that entry, otherwise it is appended."""
    check_normalizer(normalizer)
    tokens = _tokens(vocab)
    instance("merges", merges, Iterable, "a list of (left bytes, right bytes)")
    merges = [_merge(rank, merge) for rank, merge in enumerate(merges)]
    owned = {i for i in specials.values() if i is not None}
    if problem := id_problem(owned):
        raise ArgumentError(f"{param('special_tokens')}: {problem}")
    by_bytes = {token: i for i, token in enumerate(tokens) if token and i not in owned}
    needed = {bytes([i]) for i in range(256)} | {left + right for left, right in merges}
    special_ids = _placed(specials, {token: i for token, i in by_bytes.items() if token not in needed}, tokens)
    check_all_bytes(by_bytes)
    return Model(tokens, _pairs(merges, by_bytes), special_ids, pattern, normalizer)


def _placed(specials: Mapping[str, int | None], known: Mapping[bytes, int], tokens: list[bytes]) -> dict[str, int]:
    """Returns the ids of the special tokens, and puts them at their ids. Tokens without an id have the one in `known`,
    or follow the other tokens."""
    ids = {}
    for text, wanted in specials.items():
        data = text.encode("utf-8")
        i = known.get(data, len(tokens)) if wanted is None else wanted
        if known.get(data, i) != i:
            raise ArgumentError(f"the special token {text!r:.80} has id {i}, but id {known[data]} in vocab")
        tokens += [b""] * (i + 1 - len(tokens))
        if tokens[i] not in (b"", data):
            raise ArgumentError(
                f"the special token {text!r:.80} cannot have id {i}, which belongs to {tokens[i]!r:.80}"
            )
        tokens[i] = data
        ids[text] = i
    return ids


def _pairs(merges: Iterable[tuple[bytes, bytes]], by_bytes: Mapping[bytes, int]) -> list[tuple[int, int]]:
    pairs = []
    for rank, (left, right) in enumerate(merges):
        if left not in by_bytes or right not in by_bytes:
            raise ArgumentError(f"merges[{rank}]: {left!r:.80} and {right!r:.80} must both be in the vocabulary")
        pairs.append((by_bytes[left], by_bytes[right]))
    return pairs


def _tokens(vocab: Mapping[int, bytes]) -> list[bytes]:
    """Returns the tokens by id, with b"" for an unused id."""
    instance("vocab", vocab, Mapping, "a dictionary id -> bytes")
    by_id = {whole_number("an id in vocab", i, 0, MOST_IDS - 1): token for i, token in vocab.items()}
    if problem := id_problem(by_id):
        raise ArgumentError(f"vocab: {problem}")
    tokens = [b""] * (max(by_id, default=-1) + 1)
    for i, token in by_id.items():
        instance(f"vocab[{i}]", token, bytes, "bytes")
        tokens[i] = token
    return tokens


def _merge(rank: int, merge: object) -> tuple[bytes, bytes]:
    if isinstance(merge, (tuple, list)) and len(merge) == 2 and all(isinstance(part, bytes) for part in merge):
        return merge[0], merge[1]
    raise ArgumentError(
        f"merges[{rank}] must be two bytes objects, (left, right), as Tokenizer.merges has them, not {shown(merge)}"
    )
