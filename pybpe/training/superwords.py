"""Superwords: tokens that cross spaces, after Liu et al. 2025, "SuperBPE: Space Travel for Language Models".

Training has two stages. Stage 1 is ordinary BPE: a pattern splits text into words, and no merge crosses the end of a
word. Stage 2 starts from the merges of stage 1 and continues on *chunks*: long parts of a text that end only at
numbers, at runs of punctuation and before trailing spaces. The tokenizer keeps the pattern of the chunks and encodes
with it.

The counter counts chunks, and stage 1 learns from the words in these chunks. So a token of stage 1 never crosses the
end of a chunk, where encoding could not produce it.
"""

from __future__ import annotations

from .. import _binding
from ..arguments import instance, param
from ..errors import ArgumentError
from ..pattern import Pattern
from .counting import word_lists

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


def words_of(chunks: _binding.Words, pattern: Pattern) -> _binding.Words:
    """Returns the words in chunks, with their counts."""
    counter = _binding.Counter(pattern.pretok, None)
    if pattern.pretok is not None:
        counter.add_texts(chunks)
        return counter.export()
    counts: dict[bytes, int] = {}
    for chunk, count in chunks.to_dict().items():
        for words in word_lists(pattern, chunk):
            for word in words:
                counts[word] = counts.get(word, 0) + count
    return _binding.Words.from_dict(counts)


def transition_size(transition: float | None, vocab_size: int) -> int:
    """Returns the number of tokens that a vocabulary has after stage 1."""
    share = TRANSITION if transition is None else transition
    instance("transition", share, (int, float), "a share of the vocabulary, such as 0.8")
    if isinstance(share, bool) or not 0 <= share < 1:
        raise ArgumentError(
            f"{param('transition')} must be a share of the vocabulary, at least 0 and less than 1, not {share!r}"
        )
    return round(share * vocab_size)
