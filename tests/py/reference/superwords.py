"""Training with superwords and whole characters as they are defined: slow, obvious, right."""

import itertools
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


# With one of these before and after it, a part of a character is a character. The first byte decides whether the second
# may be \x80 or \xbf; all other bytes may be both.
BEFORE = (b"", b"\xf1")
AFTER = [bytes(tail) for length in range(4) for tail in itertools.product((0x80, 0xBF), repeat=length)]


def is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


def is_whole(token: bytes) -> bool:
    """A sequence of whole characters, or a part of one."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return any(is_character(head + token + tail) for head in BEFORE for tail in AFTER)
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
