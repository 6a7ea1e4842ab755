"""What a training run makes: its options, and with a base or counts the plan that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .. import _binding
from ..arguments import one_of, whole_number
from ..errors import ArgumentError
from ..model import MOST_IDS, SPECIAL_IDS, BaseNumbering, Model, check_end_of_text, lay_out, special_ids_of
from ..normalize import check_normalizer
from ..pattern import Digits, Pattern
from ..reading.options import ReadOptions
from .word_counter import CountSettings

_MERGING = ("tie_break", "min_frequency", "max_token_length")  # the options that a saved tokenizer records


@dataclass(frozen=True)
class TrainOptions:
    """What to train. The fields are the keyword arguments of `pybpe.train`, which its errors name.

    Raises:
        ArgumentError: a value is invalid.
    """

    vocab_size: int
    special_tokens: Iterable[str] | Mapping[str, int] = ()
    pattern: str | None = None
    min_frequency: int = 0
    tie_break: str = "lexicographic"
    special_ids: str = "first"
    max_token_length: int = 255
    normalizer: str | None = None
    digits: Digits = None
    end_of_text: str | None = None
    base: Model | None = None

    def __post_init__(self) -> None:
        for name, least, most in (
            ("vocab_size", None, MOST_IDS),  # the minimum depends on the special tokens: see Plan
            ("min_frequency", 0, (1 << 64) - 1),
            ("max_token_length", 1, (1 << 32) - 1),
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))
        one_of("tie_break", self.tie_break, _binding.TIE_BREAKS)
        one_of("special_ids", self.special_ids, SPECIAL_IDS)
        check_normalizer(self.normalizer)
        given = special_ids_of(self.special_tokens)
        ids = sorted((i, text) for text, i in given.items() if i is not None)
        object.__setattr__(self, "special_tokens", {text: i for i, text in ids} or tuple(given))

    @property
    def wanted_ids(self) -> Mapping[str, int]:
        """The ids that the caller gave for special tokens."""
        return self.special_tokens if isinstance(self.special_tokens, Mapping) else {}

    @property
    def specials(self) -> list[str]:
        """The special tokens, in the order of their ids."""
        return list(self.special_tokens)


@dataclass(frozen=True)
class Plan:
    """Everything except the text that the result depends on.

    Attributes:
        options: what to train.
        count: how words are counted; its special tokens are those of the base and the new ones.
        new_specials: the special tokens that the base lacks.
    """

    options: TrainOptions
    count: CountSettings
    new_specials: Sequence[str]

    def __post_init__(self) -> None:
        if self.base is None:
            least = 256 + len(self.new_specials)
            parts = f"256 bytes + {len(self.new_specials)} special tokens"
        else:
            least = len(self.base.tokens) + len(self.new_specials)
            parts = f"{len(self.base.tokens)} tokens of the base + {len(self.new_specials)} new special tokens"
        if self.options.vocab_size < least:
            raise ArgumentError(f"vocab_size {self.options.vocab_size} is too small: the minimum is {least} ({parts})")
        self._check_ids(self._planned_ids())
        check_end_of_text(self.count.specials, self.options.end_of_text)
        self.numbering  # noqa: B018  refuses a base that cannot be extended now, not after counting

    @classmethod
    def of(cls, options: TrainOptions, counted: CountSettings | None, read: ReadOptions) -> Plan:
        """Returns the plan for the options. `counted` says how words were counted, if they already were.

        Raises:
            ArgumentError: an option contradicts the base or the counts.
        """
        base, specials = options.base, options.specials
        parent = counted if base is None else base
        settings = CountSettings(_pattern(options, parent), tuple(specials), _normalizer(options, parent), read)
        if base is None:
            return cls(options, settings, specials)
        if options.special_ids != "first":
            raise ArgumentError("special_ids cannot be used with base: new special tokens follow the ids of the base")
        new = [text for text in specials if text not in base.specials]
        return cls(options, replace(settings, specials=(*base.specials, *new)), new)

    @property
    def base(self) -> Model | None:
        """The tokenizer that is extended."""
        return self.options.base

    def _planned_ids(self) -> dict[str, int]:
        """Returns the ids of the special tokens, if training makes as many tokens as it may."""
        starts = {"first": 0, "after_bytes": 256, "last": self.options.vocab_size - len(self.new_specials)}
        start = starts[self.options.special_ids] if self.base is None else len(self.base.tokens)
        ids = {} if self.base is None else dict(self.base.specials)
        return ids | {text: start + i for i, text in enumerate(self.new_specials)}

    def _check_ids(self, ids: Mapping[str, int]) -> None:
        """Raises ArgumentError unless the special tokens have the ids that the caller wants."""
        for text, wanted in self.options.wanted_ids.items():
            if ids[text] != wanted:
                raise ArgumentError(
                    f"special_tokens gives {text!r:.80} id {wanted}, but training gives it {ids[text]}: pass a list of"
                    " the strings, and choose special_ids"
                )

    @cached_property
    def numbering(self) -> BaseNumbering | None:
        """The base as a trainer sees it."""
        return None if self.base is None else BaseNumbering(self.base)

    @property
    def base_merges(self) -> list[tuple[int, int]]:
        return [] if self.numbering is None else self.numbering.merges

    @property
    def merged_size(self) -> int:
        """The trainer's vocab_size: bytes and merged tokens."""
        size = self.options.vocab_size - len(self.new_specials)
        if self.base is None or self.numbering is None:
            return size
        return 256 + self.numbering.made + size - len(self.base.tokens)

    def without_whole_words(self, words: _binding.Words) -> _binding.Words:
        """Returns the words that are not single tokens of the base. There is nothing to learn from those that are."""
        if self.base is None or not self.base.whole_words:
            return words
        whole = {self.base.tokens[i] for i in self.base.unreached()}
        return _binding.Words.from_dict({word: n for word, n in words.to_dict().items() if word not in whole})

    def fingerprint(self) -> dict[str, object]:
        """Returns the plan in types that JSON can hold."""
        return {
            **{name: getattr(self.options, name) for name in (*_MERGING, "vocab_size", "special_ids")},
            "pattern": self.count.pattern.regex,
            "special_tokens": list(self.count.specials),
            "normalizer": self.count.normalizer,
            "text_key": self.count.read.text_key,
            "encoding": self.count.read.encoding,
            "base": None if self.base is None else self.base.fingerprint(),
        }

    def model(self, merged: Sequence[tuple[int, int, int]]) -> Model:
        """Returns the tokenizer with the merges that the trainer made."""
        options = self.options
        if self.numbering is None:
            parts = lay_out(merged, self.new_specials, options.special_ids, options.tie_break)
        else:
            parts = self.numbering.extend(merged, self.new_specials)
        tokens, merges, specials = parts
        self._check_ids(specials)  # with special_ids="last" the ids depend on the number of tokens
        training = {name: getattr(options, name) for name in _MERGING}
        if self.base is None:
            model = Model(tokens, merges, specials, self.count.pattern, self.count.normalizer, training)
        else:
            model = replace(self.base, tokens=tokens, merges=merges, specials=specials, training=training)
        return model if options.end_of_text in (None, model.eot) else replace(model, eos=options.end_of_text)


def _pattern(options: TrainOptions, parent: Model | CountSettings | None) -> Pattern:
    """Returns the pattern: the parent's, if there is one."""
    if parent is None:
        return Pattern("gpt2" if options.pattern is None else options.pattern, options.digits)
    if options.pattern is not None or options.digits is not None:
        asked = parent.pattern.name or "gpt2" if options.pattern is None else options.pattern
        if Pattern(asked, options.digits) != parent.pattern:
            raise ArgumentError(f"pattern: the base or the counts already have {parent.pattern!r}: leave it out")
    return parent.pattern


def _normalizer(options: TrainOptions, parent: Model | CountSettings | None) -> str | None:
    """Returns the normalizer: the parent's, if there is one."""
    if parent is None:
        return options.normalizer
    if options.normalizer not in (None, parent.normalizer):
        raise ArgumentError(f"normalizer: the base or the counts already have {parent.normalizer!r}: leave it out")
    return parent.normalizer
