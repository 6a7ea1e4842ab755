"""Shingles and MinHash signatures of one text, by their definition in csrc/shingles/: slow, plain Python."""

from reference.corpus import lower, units_per_word, words

_MASK = (1 << 64) - 1
_BASE = 0x9E3779B97F4A7C15


def scramble(x: int) -> int:
    """The finalizer of MurmurHash3."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & _MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return x ^ x >> 33


def hash_of(items: list[int], start: int = 0) -> int:
    h = start
    for item in items:
        h ^= item
        h = ((h << 29 | h >> 35) & _MASK) * _BASE & _MASK
    return scramble(h)


def hash_of_window(hashes: list[int]) -> int:
    """A polynomial modulo 2^64."""
    total = 0
    for value in hashes:
        total = (total * _BASE + value) & _MASK
    return scramble(total)


def hash_of_word(word: str) -> int:
    """The lowercase in UTF-8, 8 bytes at a time."""
    data = "".join(map(lower, word)).encode()
    return hash_of([int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)])


def shingles(text: str) -> list[int]:
    """Returns the hash of each run of five words, or of the whole text if it has fewer."""
    hashes = [hash_of_word(word) for word in words(text)]
    n = 5 * units_per_word(text)
    if len(hashes) >= n:
        return [hash_of_window(hashes[i : i + n]) for i in range(len(hashes) - n + 1)]
    if hashes:
        return [hash_of(hashes, 1)]
    return [hash_of([byte + 1 for byte in text.encode("utf-8", "surrogateescape")])]


def only_shingle(text: str) -> int:
    """Returns the hash, not 0, of a text with fewer words than a shingle has; 0 for others."""
    return (shingles(text)[0] or 1) if len(words(text)) < 5 * units_per_word(text) else 0


def signature(text: str) -> list[int]:
    """Returns the minimum of each of 128 linear functions of the shingles."""
    points = [x >> 32 for x in shingles(text)]
    numbers = [scramble((i + 1) * _BASE & _MASK) for i in range(128)]
    return [min(((z >> 32 | 1) * x + z) & 0xFFFFFFFF for x in points) for z in numbers]
