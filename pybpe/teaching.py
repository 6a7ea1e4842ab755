"""Two tokenizers for learning how tokenizers work: one with an id per word, as in many tutorials, and BPE as first
published.

Both are short, slow, and meant for reading: docs/teaching.md explains them. They have the methods of pybpe.Tokenizer
that make sense for them. Do not train a model with them: decoding loses white space, and words that were not in the
training text become <|unk|>. `pybpe.train` has neither fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .arguments import counted, whole_number
from .errors import ArgumentError
from .model import END_OF_TEXT, check_specials

UNKNOWN = "<|unk|>"
END_OF_WORD = "</w>"


class _TokenTable:
    """The part that both tokenizers share: a vocabulary of strings, with the special tokens last."""

    def __init__(self, tokens: Iterable[str], special_tokens: Sequence[str]) -> None:
        special_tokens = check_specials(special_tokens)
        ordinary = dict.fromkeys(token for token in tokens if token not in special_tokens)
        self._tokens = [*ordinary, *dict.fromkeys(special_tokens)]
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        self.special_tokens = {token: self._ids[token] for token in special_tokens}

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text. Raises ArgumentError if a token is unknown and there is no <|unk|>."""
        return [self._id(token) for token in self.tokenize(text)]

    def tokenize(self, text: str) -> list[str]:
        """Returns the tokens of a text, as strings."""
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids. It may differ from the text that was encoded."""
        raise NotImplementedError

    def _id(self, token: str) -> int:
        found = self._ids.get(token, self.special_tokens.get(UNKNOWN))
        if found is None:
            raise ArgumentError(f"{token!r} is not in the vocabulary, which has no {UNKNOWN} to replace it")
        return found

    @property
    def vocab_size(self) -> int:
        """The number of ids, including special tokens."""
        return len(self._tokens)

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def eot_token(self) -> int | None:
        """The id of <|endoftext|>, or None."""
        return self.special_tokens.get(END_OF_TEXT)

    def token_to_id(self, token: str) -> int | None:
        """Returns the id of a token, or None."""
        return self._ids.get(token)

    def id_to_token(self, token: int) -> str:
        """Returns the token of an id. Raises ArgumentError for an unknown id."""
        if not 0 <= token < self.vocab_size:
            raise ArgumentError(f"{token} is not an id of this vocabulary (0 to {self.vocab_size - 1})")
        return self._tokens[token]

    def get_vocab(self) -> dict[str, int]:
        """Returns a dictionary token -> id."""
        return dict(self._ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size}, special_tokens={self.special_tokens})"


# ----------------------------------------------------------------------------------------------------
# One id per word


def split_words(text: str) -> list[str]:
    """Splits a text into words and punctuation marks, without white space.

    >>> split_words("Hello, world. Is this-- a test?")
    ['Hello', ',', 'world', '.', 'Is', 'this', '--', 'a', 'test', '?']
    """
    return [part.strip() for part in re.split(r"""([,.:;?_!"()']|--|\s)""", text) if part.strip()]


class WordTokenizer(_TokenTable):
    """One id for each word and each punctuation mark, as in chapter 2 of Sebastian Raschka's "Build a Large
    Language Model (From Scratch)". Special tokens must be separated from words: "tea? <|endoftext|> In".

    Args:
        words: the vocabulary, in the order of the ids.
        special_tokens: strings that get the next ids. Without <|unk|>, an unknown word raises an error.

    >>> tokenizer = WordTokenizer.train("the cat sat on the mat.")
    >>> tokenizer.encode("the dog sat.")
    [5, 7, 4, 0]
    >>> tokenizer.decode([5, 7, 4, 0])
    'the <|unk|> sat.'
    """

    def __init__(self, words: Iterable[str], special_tokens: Sequence[str] = (END_OF_TEXT, UNKNOWN)) -> None:
        super().__init__(words, special_tokens)

    @classmethod
    def train(cls, text: str, special_tokens: Sequence[str] = (END_OF_TEXT, UNKNOWN)) -> WordTokenizer:
        """Makes a tokenizer from the distinct words of a text, sorted."""
        return cls(sorted(set(split_words(text))), special_tokens)

    def tokenize(self, text: str) -> list[str]:
        """Returns the words of a text: see split_words."""
        return split_words(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Joins the words with spaces, with none before a punctuation mark."""
        text = " ".join(self.id_to_token(i) for i in ids)
        return re.sub(r"""\s+([,.:;?!"()'])""", r"\1", text)


# ----------------------------------------------------------------------------------------------------
# BPE with a mark for the end of a word

Symbols = tuple[str, ...]


class Step(NamedTuple):
    """One merge: the pair, its frequency, and the words (with their counts) after the merge."""

    left: str
    right: str
    frequency: int
    words: dict[Symbols, int]

    def __str__(self) -> str:
        shown = [f"{' '.join(symbols)} x{count}" for symbols, count in list(self.words.items())[:4]]
        more = ", ..." if len(self.words) > 4 else ""
        merge = f"{self.left} + {self.right} = {self.left + self.right}, {counted(self.frequency, 'time')}"
        return f"{merge}: {', '.join(shown)}{more}"


def merge_steps(word_counts: Mapping[str, int]) -> Iterator[Step]:
    """Yields the merges that BPE learns from words and their counts, until each word is one symbol.

    Each step joins the most frequent pair of adjacent symbols; among equally frequent pairs, the one that comes first.
    Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016.
    """
    words = {(*word, END_OF_WORD): count for word, count in word_counts.items()}
    while pairs := _count_pairs(words):
        left, right = max(pairs, key=pairs.__getitem__)
        words = {_merge(symbols, left, right): count for symbols, count in words.items()}
        yield Step(left, right, pairs[left, right], words)


def _count_pairs(words: Mapping[Symbols, int]) -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for symbols, count in words.items():
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += count
    return pairs


def _merge(symbols: Symbols, left: str, right: str) -> Symbols:
    """Joins a pair wherever it occurs, from left to right."""
    merged: list[str] = []
    i = 0
    while i < len(symbols):
        if symbols[i : i + 2] == (left, right):
            merged.append(left + right)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


class ClassicBPE(_TokenTable):
    """BPE on characters, where "</w>" ends each word: "est</w>" is at the end of a word, and "est" is not. White space
    separates words.

    Args:
        characters: the symbols to start from, in the order of the ids, including "</w>".
        merges: pairs of symbols, in the order in which they are joined.

    >>> tokenizer = ClassicBPE.train("low low lower lowest", merges=3, show=None)
    >>> tokenizer.tokenize("lower low")
    ['low', 'e', 'r', '</w>', 'low</w>']
    """

    def __init__(self, characters: Iterable[str], merges: Sequence[tuple[str, str]]) -> None:
        super().__init__([*characters, *(left + right for left, right in merges)], [UNKNOWN])
        self.merges = list(merges)

    @classmethod
    def train(
        cls, words: str | Mapping[str, int], merges: int, show: Callable[[Step], object] | None = print
    ) -> ClassicBPE:
        """Learns merges from words.

        Args:
            words: a text, or words and their counts.
            merges: the maximum number of merges.
            show: called with each Step; None shows nothing.

        Raises:
            ArgumentError: a word contains "</w>", a count is below 1, or merges is negative.
        """
        word_counts = Counter(words.split()) if isinstance(words, str) else words
        for word, count in word_counts.items():
            if END_OF_WORD in word or count < 1:
                raise ArgumentError(
                    f"words: {word!r:.80} with count {count}: a word must not contain {END_OF_WORD}, and its count must"
                    " be at least 1"
                )
        learned = []
        for _, step in zip(range(whole_number("merges", merges)), merge_steps(word_counts)):
            learned.append((step.left, step.right))
            if show is not None:
                show(step)
        return cls(sorted({*"".join(word_counts), END_OF_WORD}), learned)

    def tokenize(self, text: str) -> list[str]:
        """Returns the symbols of each word after all merges."""
        found: list[str] = []
        for word in text.split():
            symbols: Symbols = (*word, END_OF_WORD)
            for left, right in self.merges:
                symbols = _merge(symbols, left, right)
            found += symbols
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """Joins the words with single spaces."""
        return "".join(self.id_to_token(i) for i in ids).replace(END_OF_WORD, " ").rstrip(" ")
