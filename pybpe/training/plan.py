"""The plan of a training run, which follows from its options and from a base or counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import cached_property
from ..arguments import number_of, param, shown
from ..errors import ArgumentError
from ..formats import pretrained, vocab_merges
from ..model import Model
from ..model.remap import config_with, with_specials
from ..pattern import Pattern, PatternLike
from ..reading.inputs import ReadOptions
from . import superwords
from .counts import CountSettings
from .train_options import TrainOptions

_MERGING = ("tie_break", "min_frequency", "max_token_length")  # the options that a saved tokenizer records
# The settings that a tokenizer takes from `like`.
_LIKE = ("whole_words", "template", "eos", "chat_template", "unknown", "prefix_space", "dropout")
_RECORDED_IF_SET = ("superwords", "transition", "whole_characters")


class Stage(NamedTuple):
    """One of the stages of a training run. It continues with the merges of the one before it."""

    # The pattern that splits the counted texts into words to learn from, or None if the counted texts are these words.
    words: Pattern | None
    size: int  # the trainer's vocab_size: bytes and merged tokens
    rules: int  # the rules that forbid merges, as for `_binding.Trainer`
    parity: bool = False  # whether each merge helps the language that costs the most


@dataclass(frozen=True)
class TrainPlan:
    """Everything except the text that the result depends on."""

    options: TrainOptions  # what to train
    count: CountSettings  # how words are counted. Its special tokens are the base's and the new ones
    new_specials: Sequence[str]  # the special tokens that the base lacks
    # The pattern of stage 1 if there are two stages, for superwords. `count` then has the pattern of stage 2.
    words: Pattern | None = None

    def __post_init__(self) -> None:
        if self.base is None:
            least = 256 + len(self.new_specials)
            parts = f"256 bytes + {number_of(len(self.new_specials), 'special token')}"
        else:
            least = len(self.base.tokens) + len(self.new_specials)
            parts = (
                f"{len(self.base.tokens)} tokens of the base + {number_of(len(self.new_specials), 'new special token')}"
            )
        if self.options.vocab_size < least:
            raise ArgumentError(
                f"{param('vocab_size')} {self.options.vocab_size} is too small: the minimum is {least} ({parts})"
            )
        self._check_ids(self._planned_ids())  # it makes the numbering, which refuses a base that cannot be extended
        end = self.options.end_of_text
        if end is not None and end not in self.count.specials:
            raise ArgumentError(f"{param('end_of_text')}: {shown(end)} is not among the special tokens: add it to them")

    @classmethod
    def of(cls, options: TrainOptions, counted: CountSettings | None, read: ReadOptions) -> TrainPlan:
        """Returns the plan for the options. `counted` says how words were counted, if they already were. Raises
        ArgumentError if an option contradicts the base or the counts."""
        base, specials = options.base, options.specials
        parent = counted if base is None else base
        words, pattern = None, _pattern(options, base if options.superwords else parent)
        if options.superwords and not superwords.is_chunk_pattern(pattern):
            words, pattern = pattern, superwords.chunk_pattern(pattern)
        settings = CountSettings(pattern, tuple(specials), _normalizer(options, parent), read)
        if options.like is not None:
            kept = _likeness(options.like, specials)
            settings = replace(settings, matching=kept["matching"], prefix_space=kept["prefix_space"])
        if base is None:
            return cls(options, settings, specials, words)
        if options.special_ids != "first":
            raise ArgumentError(
                f"{param('special_ids')} cannot be used with {param('base')}: new special tokens follow the ids of the"
                " base"
            )
        new = [text for text in specials if text not in base.specials]
        settings = replace(settings, specials=(*base.specials, *new), matching=base.matching)
        return cls(options, replace(settings, prefix_space=base.prefix_space), new, words)

    @property
    def base(self) -> Model | None:
        """The tokenizer that the run extends, or None."""
        return self.options.base

    def _planned_ids(self) -> dict[str, int]:
        """Returns the ids of the special tokens if training reaches vocab_size."""
        last = self.options.special_ids == "last"
        first = self.options.vocab_size - len(self._missing) if last else len(self.numbering.start.tokens)
        return {**self.numbering.start.specials, **{text: first + i for i, text in enumerate(self._missing)}}

    def _check_ids(self, ids: Mapping[str, int]) -> None:
        """Raises ArgumentError unless the special tokens have the ids that the caller wants."""
        for text, wanted in self.options.wanted_ids.items():
            if ids[text] != wanted:
                raise ArgumentError(
                    f"{param('special_tokens')} gives {text!r:.80} id {wanted}, but training gives it {ids[text]}:"
                    f" pass a list of the strings, and choose {param('special_ids')}"
                )

    @cached_property
    def numbering(self) -> Numbering:
        """What training begins with, in the numbering of the trainer."""
        options, count = self.options, self.count
        settings = options.special_ids, options.tie_break, count.pattern, count.normalizer
        if self.base is not None:
            return Numbering(self.base)
        kept = {} if options.like is None else _likeness(options.like, count.specials)
        return Numbering(replace(blank(self.new_specials, *settings), **kept))

    @property
    def _missing(self) -> list[str]:
        """The special tokens that are not there when training begins."""
        return [text for text in self.new_specials if text not in self.numbering.start.specials]

    def _merged_size(self, vocab_size: int) -> int:
        """Returns the number of bytes and merged tokens of a trainer when the vocabulary has this size."""
        there = len(self.numbering.start.tokens) + len(self._missing)
        return 256 + self.numbering.made + max(vocab_size - there, 0)

    @property
    def stages(self) -> list[Stage]:
        """The stages of the run, in order."""
        options = self.options
        rules = _binding.RULE_WHOLE_CHARACTERS if options.whole_characters else 0
        chunks = _binding.RULE_SUPERWORDS if superwords.is_chunk_pattern(self.count.pattern) else 0
        last = Stage(None, self._merged_size(options.vocab_size), rules | chunks, options.parity is not None)
        if last.parity:
            size = superwords.transition_size(options.transition or 0.0, options.vocab_size)
            first = last._replace(size=self._merged_size(size), parity=False)
            return [first, last] if options.transition else [last]
        if self.words is None:
            return [last]
        size = superwords.transition_size(options.transition, options.vocab_size)
        return [Stage(self.words, self._merged_size(size), rules), last]

    def without_whole_words(self, words: _binding.Words) -> _binding.Words:
        """Returns the words that are not tokens of the base. Training learns nothing from the words that are."""
        whole = self._whole_words()
        if not whole:
            return words
        return _binding.Words.from_dict({word: n for word, n in words.to_dict().items() if word not in whole})

    def language_without_whole_words(self, language: _binding.Language) -> _binding.Language:
        """Returns a language without the words that are tokens of the base. In its development text, such
        a word becomes a word of one byte, because it is one token and stays one."""
        whole = self._whole_words()
        if not whole:
            return language
        measured: dict[bytes, int] = {}
        for word, count in language.measured.to_dict().items():
            kept = word[:1] if word in whole else word
            measured[kept] = measured.get(kept, 0) + count
        words = self.without_whole_words(language.words)
        return _binding.Language(words, _binding.Words.from_dict(measured), language.size)

    def _whole_words(self) -> set[bytes]:
        if self.base is None or not self.base.whole_words:
            return set()
        return {self.base.tokens[i] for i in self.base.unreached()}

    @property
    def recorded(self) -> dict[str, object]:
        """The options that a saved tokenizer records: some only if they are set, so that files without them do not
        change."""
        values = {name: getattr(self.options, name) for name in _RECORDED_IF_SET}
        if self.options.parity is not None:
            values |= {"parity": list(self.options.parity), "parity_per": self.options.parity_per}
        always = {name: getattr(self.options, name) for name in _MERGING}
        return always | {name: value for name, value in values.items() if value}

    def model(self, merged: Sequence[tuple[int, int, int]]) -> Model:
        """Returns the tokenizer with the merges that the trainer made."""
        options = self.options
        model = self.numbering.extended(merged, self._missing, options.special_ids == "last")
        self._check_ids(model.specials)  # with special_ids="last" the ids depend on the number of tokens
        model = replace(model, pattern=self.count.pattern, training=self.recorded)
        return model if options.end_of_text in (None, model.eot) else replace(model, eos=options.end_of_text)


def _likeness(like: Model, specials: Collection[str]) -> dict[str, Any]:
    """Returns the fields of Model that a tokenizer with these special tokens takes over from the one in whose likeness
    it is trained: all but tokens and merges, as in train_new_from_iterator of transformers. Raises ArgumentError if
    the template has another token, which is not special."""
    if like.template is not None:
        like.template.check(dict.fromkeys(specials, 0))
    matching = {text: rules for text, rules in like.matching.items() if text in specials}
    new = [text for text in specials if text not in like.specials]
    config = config_with(pretrained.without_class(like.config), new)
    return {"matching": matching, "config": config, **{name: getattr(like, name) for name in _LIKE}}


def _pattern(options: TrainOptions, parent: Model | CountSettings | None) -> Pattern:
    """Returns the pattern: the parent's, if there is one."""
    if parent is None:
        return Pattern("gpt2" if options.pattern is None else options.pattern, options.digits)
    if options.pattern is not None or options.digits is not None:
        asked: PatternLike = parent.pattern.name or "gpt2" if options.pattern is None else options.pattern
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


# ----------------------------------------------------------------------------------------------------
# The ids of the tokens that a trainer makes. It numbers the bytes 0-255, then tokens in the order of creation.


def blank(specials: Sequence[str], special_ids: str, tie_break: str, pattern: Pattern, normalizer: str | None) -> Model:
    """Returns what training begins with if it extends no tokenizer: the bytes, and the special tokens unless they are
    last. With tie_break "huggingface" the bytes are numbered as in Hugging Face, by the characters that represent
    them."""
    by_char = tie_break == "huggingface"
    tokens = [bytes([i]) for i in sorted(range(256), key=vocab_merges.BYTE_TO_CHAR.__getitem__ if by_char else None)]
    ids: dict[str, int] = {}
    if special_ids != "last":
        first = 0 if special_ids == "first" else 256
        tokens[first:first] = [text.encode("utf-8") for text in specials]
        ids = {text: i for i, text in enumerate(specials, first)}
    return Model(tokens, [], ids, pattern, normalizer)


class Numbering:
    """A tokenizer, `start`, in the numbering of a trainer that extends it. `merges` are (left, right) in rank order,
    which made `made` tokens. Two merges may make the same token. Raises ArgumentError if a byte has no token, or a
    merge joins a token that no earlier merge makes."""

    def __init__(self, start: Model) -> None:
        if lacking := start.lacking_bytes:
            raise ArgumentError(f"base: there is no token for the byte 0x{lacking[0]:02X}: training needs all 256")
        self.start = start
        numbers = {bytes([byte]): byte for byte in range(256)}
        self.merges: list[tuple[int, int]] = []
        for rank, (left, right) in enumerate(start.merges):
            parts = start.tokens[left], start.tokens[right]
            unmade = next((part for part in parts if part not in numbers), None)
            if unmade is not None:
                raise ArgumentError(
                    f"{param('base')}: merges[{rank}] joins {unmade!r:.60}, which no earlier merge makes: the merges"
                    " are not in training order, so training cannot extend them. extend(special_tokens) works"
                )
            self.merges.append((numbers[parts[0]], numbers[parts[1]]))
            numbers.setdefault(parts[0] + parts[1], len(numbers))
        self.made = len(numbers) - 256
        self._tokens = list(numbers)

    def extended(self, merged: Sequence[tuple[int, int, int]], new_specials: Sequence[str], last: bool) -> Model:
        """Returns the tokenizer with the trainer's tokens, and with special tokens that the start lacks, at the end if
        `last`. `merged` has (left, right, merged) of all merges, the start's first."""
        model = self.start if last else with_specials(self.start, new_specials)
        tokens, pairs, by_number = list(model.tokens), list(model.merges), list(self._tokens)
        special_ids = set(model.specials.values())
        final = {token: i for i, token in enumerate(tokens) if i not in special_ids}
        for left, right, new in merged[len(self.merges) :]:
            token = by_number[left] + by_number[right]
            if new == len(by_number):
                by_number.append(token)
            if token not in final:
                final[token] = len(tokens)
                tokens.append(token)
            pairs.append((final[by_number[left]], final[by_number[right]]))
        model = replace(model, tokens=tokens, merges=pairs)
        return with_specials(model, new_specials) if last else model
