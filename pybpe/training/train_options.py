"""The options of a training run.

To add one: a field of TrainOptions, and the argument of `train` (trainer.py) with its docstring. If a saved tokenizer
records it, its name is in _MERGING (plan.py), and in docs/file-formats.md. A setting of counting is also a field of
CountSettings (counts.py), so that a checkpoint does not use counts with another value, and `settings_of_header` there
gives older files the value that they were made with. Test both (test_counting.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING

from .. import _binding
from ..arguments import instance, one_of, option, param, whole_number
from ..errors import ArgumentError
from ..model import MOST_IDS, Model, check_specials, special_ids_of
from ..normalize import check_normalizer
from ..pattern import Digits, PatternLike

if TYPE_CHECKING:
    from . import parity

SPECIAL_IDS = ("first", "after_bytes", "last")


@dataclass(frozen=True)
class TrainOptions:
    """What to train. The fields are the keyword arguments of `pybpe.train`, which its errors name."""

    vocab_size: int = option(MISSING, "number of tokens, including special tokens")
    special_tokens: Iterable[str] | Mapping[str, int] = option(
        (),
        "a text that always becomes one id; repeatable. llm.c, and `pybpe binarize` by default, need <|endoftext|>",
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
        "the share of the vocabulary at which superwords (default: 0.8) or parity (default: 0) begin",
        "SHARE",
    )
    whole_characters: bool = option(False, "do not make tokens that combine part of a character with other characters")
    parity: parity.Texts | None = None
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
        from . import superwords

        if self.base is not None:
            raise ArgumentError(
                f"{param('like')} cannot be used with {param('base')}, whose settings the result has: leave one of"
                " them out"
            )
        if self.pattern is None and superwords.is_chunk_pattern(like.pattern):
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
            from . import parity

            one_of("parity_per", self.parity_per, parity.UNITS)
            parity.check_texts("parity", self.parity)
            if self.superwords:
                raise ArgumentError(
                    f"{param('parity')} cannot be used with {param('superwords')}: leave one of them out"
                )
        elif self.parity_per != "text":
            raise ArgumentError(f"{param('parity_per')} needs {param('parity')}: it says how parity compares languages")
        if self.superwords or self.parity is not None:
            from . import superwords

            superwords.transition_size(self.transition, self.vocab_size)
        elif self.transition is not None:
            raise ArgumentError(
                f"{param('transition')} needs {param(superwords=True)} or {param('parity')}: it says when the stage of"
                " superwords or parity begins"
            )

    @property
    def wanted_ids(self) -> Mapping[str, int]:
        """The ids that the caller gave for special tokens."""
        return self.special_tokens if isinstance(self.special_tokens, Mapping) else {}

    @property
    def specials(self) -> list[str]:
        """The special tokens, in the order of their ids."""
        return list(self.special_tokens)
