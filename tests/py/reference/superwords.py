"""Training with superwords and whole characters as they are defined: slow, obvious, right."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import regex

from .encode import Pair, apply, split

CHUNKS = regex.compile(r"\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]{2,}[\r\n/]*| +(?!\S)")
WORDS = regex.compile(r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")
Rule = Callable[[bytes], bool]


def chunks(text: str) -> list[str]:
    """The matches of the second pattern, and the text between them."""
    ends = sorted({0, len(text), *(place for match in CHUNKS.finditer(text) for place in match.span())})
    return [text[a:b] for a, b in zip(ends, ends[1:])]


def is_superword(token: bytes) -> bool:
    """At most four words, and no colon before a space."""
    return len([word for word in token.split(b" ") if word]) <= 4 and b": " not in token


def _all_characters() -> set[bytes]:
    return {chr(i).encode() for i in range(0x110000) if not 0xD800 <= i < 0xE000}


CHARACTERS = _all_characters()
PARTS = {char[a:b] for char in CHARACTERS for a in range(len(char)) for b in range(a + 1, len(char) + 1)} - CHARACTERS


def is_whole(token: bytes) -> bool:
    """A sequence of whole characters, or a part of one."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return token in PARTS
    return True


def continued(words: Iterable[bytes], merges: Sequence[Pair], total: int, rules: Sequence[Rule] = ()) -> list[Pair]:
    """Up to `total` tokens besides bytes: first these merges, then in each step the most frequent pair that the rules
    allow; of equally frequent ones the greatest."""
    corpus = Counter(tuple(split(word, merges)) for word in words)
    made = list(merges)
    while len({left + right for left, right in made}) < total:
        pairs: Counter[Pair] = Counter()
        for word, count in corpus.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        allowed = [pair for pair in pairs if all(rule(pair[0] + pair[1]) for rule in rules)]
        if not allowed:
            break
        best = max(allowed, key=lambda pair: (pairs[pair], pair))
        made.append(best)
        merged: Counter[tuple[bytes, ...]] = Counter()
        for word, count in corpus.items():
            merged[tuple(apply(list(word), best))] += count
        corpus = merged
    return made


def train(texts: Iterable[str], first: int, total: int, rules: Sequence[Rule] = ()) -> list[Pair]:
    """The merges of superwords: `first` tokens from words, the rest, up to `total`, from chunks."""
    pieces = [chunk for text in texts for chunk in chunks(text)]
    words = [word.encode() for piece in pieces for word in WORDS.findall(piece)]
    merges = continued(words, [], first, rules)
    return continued([piece.encode() for piece in pieces], merges, total, [*rules, is_superword])
