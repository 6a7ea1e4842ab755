"""The plan of a training run: its options, and what follows from them and from a base or counts.

To add an option: a field of TrainOptions, and the argument of `train` (trainer.py) with its docstring. If a saved
tokenizer records it, its name is in _MERGING, and in docs/file-formats.md. A setting of counting is also a field of
CountSettings (counts.py), so that a checkpoint does not use counts with another value, and `settings_of_files` there
gives older files the value that they were made with. Test both (test_counting.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import cached_property
from ..arguments import instance, is_unicode, number_of, one_of, option, param, shown, whole_number
from ..errors import ArgumentError
from ..formats import pretrained, vocab_merges
from ..model import MOST_IDS, Model, check_specials, special_ids_of
from ..model.remap import config_with, with_specials
from ..normalize import check_normalizer
from ..pattern import Digits, Pattern, PatternLike
from ..reading.inputs import ReadOptions
from .counts import CountSettings

SPECIAL_IDS = ("first", "after_bytes", "last")
PARITY_UNITS = ("text", "character", "byte")
Texts = Mapping[str, Any]  # languages, as for `inputs` of pybpe.train: Inputs | Iterable[Text]


@dataclass(frozen=True)
class TrainOptions:
    """What to train. The fields are the keyword arguments of `pybpe.train`, which its errors name."""

    vocab_size: int = option(MISSING, "number of tokens, including special tokens")
    special_tokens: Iterable[str] | Mapping[str, int] = option(
        (),
        "a string that always becomes one id, such as <|endoftext|>, which llm.c and `pybpe binarize` need; repeatable",
        "S",
        flag="--special-token",
    )
    pattern: PatternLike | None = option(
        None,
        "gpt2 (default), cl100k, o200k, llama3, qwen2, nanochat, or a regular expression; to use several, join them"
        " with (?then): a pattern splits the pieces of the one before it",
        "P",
    )
    min_frequency: int = option(0, "merge only pairs that occur at least N times")
    tie_break: str = option(
        None,
        "which of several equally frequent pairs to merge first: lexicographic (default), huggingface or rustbpe",
        "T",
    )
    special_ids: str = option(
        None, "where to put the ids of special tokens: first (default), after_bytes or last", "WHERE"
    )
    max_token_length: int = option(255, "maximum number of bytes per token; 255 is llm.c's limit")
    normalizer: str | None = option(None, "convert text to NFC or NFKC first (default: none)")
    digits: Digits = option(
        None,
        "1: make every digit a separate word; 3-from-right: groups of three digits, counted from the right",
        "D",
    )
    end_of_text: str | None = option(None, "the special token that ends a document (default: <|endoftext|>)", "S")
    base: Model | None = None
    like: Model | None = None
    superwords: bool = option(False, "also learn tokens across spaces, such as ' of the', in a second stage (SuperBPE)")
    transition: float | None = option(
        None,
        "the share of the vocabulary to make first, without superwords (default: 0.8) or parity (default: 0)",
        "SHARE",
    )
    whole_characters: bool = option(False, "do not make tokens that combine part of a character with other characters")
    parity: Texts | None = None
    parity_per: str = option(
        "text",
        "with --parity, compare languages by tokens per: text (for translations), character, or byte",
        "WHAT",
    )

    def __post_init__(self) -> None:
        for name, least, most in (
            ("vocab_size", None, MOST_IDS),  # the minimum depends on the special tokens: see TrainPlan
            ("min_frequency", 0, (1 << 64) - 1),
            ("max_token_length", 1, (1 << 32) - 1),
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))
        if isinstance(self.special_tokens, Iterator):
            object.__setattr__(self, "special_tokens", list(self.special_tokens))
        specials = special_ids_of(self.special_tokens)
        if self.like is not None:
            specials = self._take_likeness(self.like)
        for name, default in (("tie_break", "lexicographic"), ("special_ids", "first")):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        one_of("tie_break", self.tie_break, _binding.TIE_BREAKS)
        one_of("special_ids", self.special_ids, SPECIAL_IDS)
        check_normalizer(self.normalizer)
        instance("superwords", self.superwords, bool, "True or False")
        instance("whole_characters", self.whole_characters, bool, "True or False")
        self._check_stages()
        ids = sorted((i, text) for text, i in specials.items() if i is not None)
        object.__setattr__(self, "special_tokens", {text: i for i, text in ids} or tuple(specials))

    def _take_likeness(self, like: Model) -> dict[str, int | None]:
        """Sets the options that are not given as a tokenizer has them. Returns its special tokens, and the new ones."""
        if self.base is not None:
            raise ArgumentError(
                f"{param('like')} cannot be used with {param('base')}, because the result has its settings: leave one"
                " of them out"
            )
        if self.pattern is None and is_chunk_pattern(like.pattern):
            raise ArgumentError(
                f"{param('like')}: this tokenizer has superwords, so it does not record the pattern of words: pass"
                f" {param('pattern')}, and {param(superwords=True)}"
            )
        # In the order of their ids, without those that readers see as text: Hugging Face does not keep added tokens
        # that are not special.
        specials = sorted(like.specials.keys() - like.visible, key=lambda text: (like.specials[text], text))
        first = min(map(like.specials.__getitem__, specials), default=0)
        own = {
            "pattern": like.pattern,
            "normalizer": like.normalizer,
            "tie_break": like.training.get("tie_break"),
            "special_ids": "first" if first == 0 else "after_bytes" if first == 256 and like.merges else "last",
        }
        for name, value in own.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        return dict.fromkeys([*specials, *check_specials(self.special_tokens)])

    def _check_stages(self) -> None:
        if self.parity is not None:
            one_of("parity_per", self.parity_per, PARITY_UNITS)
            check_texts("parity", self.parity)
            if self.superwords:
                raise ArgumentError(
                    f"{param('parity')} cannot be used with {param('superwords')}: leave one of them out"
                )
        elif self.parity_per != "text":
            raise ArgumentError(f"{param('parity_per')} needs {param('parity')}: it says how parity compares languages")
        if self.superwords or self.parity is not None:
            transition_size(self.transition, self.vocab_size)
        elif self.transition is not None:
            raise ArgumentError(
                f"{param('transition')} needs {param(superwords=True)} or {param('parity')}: it says when the stage of"
                " superwords or parity begins"
            )

    @property
    def specials(self) -> list[str]:
        """The special tokens, in the order of their ids."""
        return list(self.special_tokens)


def check_texts(name: str, texts: object) -> None:
    """Raises ArgumentError unless `texts` maps the names of languages to paths or texts."""
    instance(name, texts, Mapping, "a mapping of languages to texts, such as {'en': 'en.txt', 'zh': 'zh.txt'}")
    assert isinstance(texts, Mapping)
    if len(texts) < 2:
        raise ArgumentError(f"{param(name)} has {len(texts)} languages: there must be at least 2")
    for language in texts:
        instance(f"the name of a language in {name}", language, str, "a str")
        if not language or not language.isprintable() or not is_unicode(language):
            raise ArgumentError(f"{name}: {shown(language)} cannot be the name of a language: use one such as 'en'")


# ----------------------------------------------------------------------------------------------------
# Superwords: tokens that cross spaces, after Liu et al. 2025, "SuperBPE: Space Travel for Language Models".
#
# Training has two stages. Stage 1 is ordinary BPE: a pattern splits text into words, and no merge crosses the end of a
# word. Stage 2 starts from the merges of stage 1 and continues on *chunks*: long parts of a text that end only at
# numbers, at runs of punctuation and before trailing spaces. The tokenizer keeps the pattern of the chunks and encodes
# with it.
#
# The counter counts chunks, and stage 1 learns from the words in these chunks. So a token of stage 1 never crosses the
# end of a chunk, where encoding could not produce it.

TRANSITION = 0.8

# The second pattern of Liu et al., except that marks, such as the vowel signs of Hindi, are not punctuation.
_CHUNKS = r"\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]{2,}[\r\n/]*| +(?!\S)"
_CHUNKS_OF_DIGITS = _CHUNKS.replace("{1,3}", "", 1)


def chunk_pattern(words: Pattern) -> Pattern:
    """Returns the pattern of stage 2. Digits stay separate if `words`, the pattern of stage 1, separates them."""
    ends = words.word_ends(b"1234567")
    if ends == [1, 4, 7]:
        raise ArgumentError(
            f"{param('superwords')}: the pattern groups digits from the right; use {param(digits=1)}, or leave digits"
            " out"
        )
    return Pattern(_CHUNKS_OF_DIGITS if ends == [1, 2, 3, 4, 5, 6, 7] else _CHUNKS)


def is_chunk_pattern(pattern: Pattern) -> bool:
    """Returns whether a tokenizer with this pattern has superwords."""
    return pattern.regex in (_CHUNKS, _CHUNKS_OF_DIGITS)


def transition_size(transition: float | None, vocab_size: int) -> int:
    """Returns the number of tokens that a vocabulary has after stage 1."""
    share = TRANSITION if transition is None else transition
    instance("transition", share, (int, float), "a share of the vocabulary, such as 0.8")
    if isinstance(share, bool) or not 0 <= share < 1:
        raise ArgumentError(
            f"{param('transition')} must be a share of the vocabulary, at least 0 and less than 1, not {share!r}"
        )
    return round(share * vocab_size)


# ----------------------------------------------------------------------------------------------------
# The plan

_MERGING = ("tie_break", "min_frequency", "max_token_length")  # the options that a saved tokenizer records
# The settings that a tokenizer takes from `like`.
_LIKE = ("whole_words", "template", "eos", "chat_template", "unknown", "prefix_space", "dropout")
_RECORDED_IF_SET = ("superwords", "transition", "whole_characters")


class Stage(NamedTuple):
    """One of the stages of a training run. It continues with the merges of the one before it."""

    # The pattern that splits the counted words into the words to learn from, or None if they are these words already.
    words: Pattern | None
    size: int  # the trainer's vocab_size: bytes and merged tokens
    rules: int  # the rules that forbid merges, as for `_binding.Trainer`
    parity: bool = False  # whether every merge helps the language that costs the most


@dataclass(frozen=True)
class TrainPlan:
    """Everything except the text that the result depends on."""

    options: TrainOptions  # the tokenizer to train
    count_settings: CountSettings  # how words are counted. Its special tokens are the base's and the new ones
    new_specials: Sequence[str]  # the special tokens that the base lacks
    # The pattern of stage 1 if there are two stages, for superwords. `count_settings` then has the pattern of stage 2.
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
        start = self.numbering.start  # which refuses a base that cannot be extended
        last = self.options.special_ids == "last"
        first = self.options.vocab_size - len(self._missing) if last else len(start.tokens)
        self._check_ids({**start.specials, **{text: i for i, text in enumerate(self._missing, first)}})
        end = self.options.end_of_text
        if end is not None and end not in self.count_settings.specials:
            raise ArgumentError(f"{param('end_of_text')}: {shown(end)} is not among the special tokens: add it to them")

    @classmethod
    def of(cls, options: TrainOptions, read: ReadOptions, ready: CountSettings | None = None) -> TrainPlan:
        """Returns the plan for the options. `ready` says how words were counted, if they already were. Raises
        ArgumentError if an option contradicts the base or the counts."""
        base, specials = options.base, options.specials
        parent = ready if base is None else base
        words, pattern = None, _pattern(options, base if options.superwords else parent)
        if options.superwords and not is_chunk_pattern(pattern):
            words, pattern = pattern, chunk_pattern(pattern)
        normalizer = options.normalizer if parent is None else parent.normalizer
        if options.normalizer not in (None, normalizer):
            raise ArgumentError(f"normalizer: the base or the counts already have {normalizer!r}: leave it out")
        settings = CountSettings(pattern, tuple(specials), normalizer, read)
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

    def _check_ids(self, ids: Mapping[str, int]) -> None:
        """Raises ArgumentError unless the special tokens have the ids that the caller wants."""
        specials = self.options.special_tokens
        for text, wanted in specials.items() if isinstance(specials, Mapping) else ():
            if ids[text] != wanted:
                raise ArgumentError(
                    f"{param('special_tokens')} gives {text!r:.80} id {wanted}, but training gives it {ids[text]}:"
                    f" pass a list of the strings, and choose {param('special_ids')}"
                )

    @cached_property
    def numbering(self) -> Numbering:
        """What training begins with, in the numbering of the trainer."""
        options, count = self.options, self.count_settings
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
        chunks = _binding.RULE_SUPERWORDS if is_chunk_pattern(self.count_settings.pattern) else 0
        last = Stage(None, self._merged_size(options.vocab_size), rules | chunks, options.parity is not None)
        if last.parity:
            size = transition_size(options.transition or 0.0, options.vocab_size)
            first = last._replace(size=self._merged_size(size), parity=False)
            return [first, last] if options.transition else [last]
        if self.words is None:
            return [last]
        size = transition_size(options.transition, options.vocab_size)
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
        found = {name: getattr(self.options, name) for name in _MERGING}
        found |= {name: value for name in _RECORDED_IF_SET if (value := getattr(self.options, name))}
        if self.options.parity is not None:
            found |= {"parity": list(self.options.parity), "parity_per": self.options.parity_per}
        return found

    def model(self, merged: Sequence[tuple[int, int, int]]) -> Model:
        """Returns the tokenizer with the merges that the trainer made."""
        options = self.options
        model = self.numbering.extended(merged, self._missing, options.special_ids == "last")
        self._check_ids(model.specials)  # with special_ids="last" the ids depend on the number of tokens
        model = replace(model, pattern=self.count_settings.pattern, training=self.recorded)
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
