"""The splitters against the `regex` package, and the safe cuts. The generated files of csrc are current."""

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import LLAMA3, O200K, QWEN2
from reference import pretok as reference
from selection import one_in
from texts import hostile_bytes

import pybpe
from pybpe._core import ffi, lib
from pybpe.pattern import _SPELLINGS, Pattern

NAMES = ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat"]
DIGITS1, DIGITS3 = lib.PYBPE_PATTERN_DIGITS1, lib.PYBPE_PATTERN_DIGITS3
SIMD = ["swar", "avx2", "avx512", "neon"]
# `make exhaustive`: every code point in every context, and 100,000 random texts; some minutes.
EXHAUSTIVE = bool(os.environ.get("PYBPE_EXHAUSTIVE"))
UNICODE = ffi.string(lib.pybpe_unicode_version()).decode()


def number(name: str) -> int:
    return int(lib.pybpe_pattern_find(name.encode()))


PATTERNS = [number(name) + digits for name in NAMES for digits in (0, DIGITS1, DIGITS3)]
REGEX = {pattern: ffi.string(lib.pybpe_pattern_regex(pattern)).decode() for pattern in PATTERNS}

# Tables of a Unicode version other than the installed regex's may be correct, but cannot be compared.
same_unicode = pytest.mark.skipif(
    reference.load_generator().unicode_version() != UNICODE, reason=f"`regex` does not have Unicode {UNICODE}"
)


class Splitter:
    def __init__(self, pattern: int) -> None:
        out = ffi.new("pybpe_pretok **")
        assert lib.pybpe_pretok_new(out, pattern, ffi.NULL, ffi.NULL) == lib.PYBPE_OK
        self.c = ffi.gc(out[0], lib.pybpe_pretok_free)
        self.simd = ffi.string(lib.pybpe_pretok_simd(self.c)).decode()

    def ends(self, data: bytes, cap: int = 4096) -> list[int]:
        """Returns the ends of all words, at most `cap` per call."""
        ends, found = ffi.new("size_t[]", cap), [0]
        while count := lib.pybpe_pretok_split(self.c, data, len(data), found[-1], ends, cap):
            found += ffi.unpack(ends, count)
            assert count <= cap and found[-1] > found[-1 - count]
        return found[1:]

    def count(self, data: bytes) -> tuple[int, int]:
        """Returns the number of words, and the length of the last one."""
        cap = 1 << 16  # each call looks for the end of a run of digits
        ends = ffi.new("size_t[]", cap)
        total, pos, last = 0, 0, 0
        while count := lib.pybpe_pretok_split(self.c, data, len(data), pos, ends, cap):
            total += count
            last = ends[count - 1] - (ends[count - 2] if count > 1 else pos)
            pos = ends[count - 1]
        return total, last

    def cut(self, data: bytes, start: int, specials: object = ffi.NULL) -> int:
        return int(lib.pybpe_text_cut(self.c, specials, data, len(data), start))

    def cuts(self, data: bytes, specials: object = ffi.NULL) -> list[int]:
        """Returns every cut except 0."""
        cuts = []
        start = 1
        while start < len(data) and (found := self.cut(data, start, specials)) < len(data):
            assert found >= start
            cuts.append(found)
            start = found + 1
        return cuts


@pytest.fixture(scope="module")
def splitters() -> list[tuple[int, Splitter]]:
    """Returns each pattern with each instruction set that this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        made = []
        for pattern in PATTERNS:
            seen = set()
            for simd in SIMD:
                patch.setenv("PYBPE_SIMD", simd)
                splitter = Splitter(pattern)
                if splitter.simd not in seen:
                    seen.add(splitter.simd)
                    made.append((pattern, splitter))
    return made


def expected_ends(pattern: int, data: bytes) -> list[int]:
    return [*accumulate(map(len, reference.words(REGEX[pattern], data)))]


def check(splitters: list[tuple[int, Splitter]], data: bytes, cap: int = 4096) -> None:
    expected = {pattern: expected_ends(pattern, data) for pattern in {pattern for pattern, _ in splitters}}
    for pattern, splitter in splitters:
        assert splitter.ends(data, cap) == expected[pattern], (REGEX[pattern], splitter.simd)


# ----------------------------------------------------------------------------------------------------
# Patterns


def test_no_such_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBPE_SIMD", "avx")
    for pattern in ("gpt2", r"\w+|\W"):
        with pytest.raises(pybpe.errors.ArgumentError, match="PYBPE_SIMD is 'avx': use avx512, avx2, neon or swar"):
            pybpe.train(iter(["a b"]), vocab_size=257, pattern=pattern)
    monkeypatch.setenv("PYBPE_SIMD", "")
    assert len(pybpe.train(iter(["a b"]), vocab_size=257).encode("a b")) == 2


def test_no_such_pattern() -> None:
    for pattern in (0, 7, 256, 263, 512, 519, 769, 1025, -4, 1 << 30):
        out, error = ffi.new("pybpe_pretok **"), ffi.new("pybpe_error *")
        assert lib.pybpe_pattern_regex(pattern) == ffi.NULL
        assert lib.pybpe_pretok_new(out, pattern, ffi.NULL, error) == lib.PYBPE_ERR_VALUE == error.code
        assert out[0] == ffi.NULL and b"pattern %d " % pattern in ffi.string(error.msg)


# What tiktoken and the tokenizer.json of models say. _SPELLINGS has the other patterns, which Pattern recognizes.
PUBLISHED = {"o200k": O200K, "llama3": LLAMA3, "qwen2": QWEN2}


@pytest.mark.parametrize(
    ("name", "regex"), [*PUBLISHED.items(), *((name, regex) for regex, name in _SPELLINGS.items())]
)
def test_published_regexes_have_these_words(name: str, regex: str) -> None:
    """Pattern takes most of them for the pattern, so that `regex` never runs them."""
    assert Pattern(regex).name == name if regex in _SPELLINGS else Pattern(regex).name in (name, None)
    for data in hostile_texts(seed=1, count=1000):
        assert reference.words(REGEX[number(name)], data) == reference.words(regex, data)


@pytest.mark.parametrize("name", NAMES)
def test_digits1(name: str) -> None:
    pattern = REGEX[number(name) + DIGITS1]
    assert pattern == re.sub(r"( \?)?\\p\{N\}(\+|\{1,[23]\})(?=\|)", r"\\p{N}", REGEX[number(name)])
    words = reference.words(pattern, b"a 12 345,6")
    assert [word for word in words if re.search(rb"\d", word)] == [b"1", b"2", b"3", b"4", b"5", b"6"]


@pytest.mark.parametrize("name", NAMES)
def test_digits3(name: str) -> None:
    """Numbers of every length, of one byte and of several, at every place in the splitter's blocks of 64 bytes."""
    pattern = number(name) + DIGITS3
    splitter, rng = Splitter(pattern), random.Random(5)
    digits = ["7", "\u0663", "\uff13", "½", "\U0001d7ce"]
    texts = ["".join(rng.choices(digits, [9, 1, 1, 1, 1], k=length)) + " " for length in range(200)]
    texts += ["a" * start + "1" * length + "b 12" for start in range(0, 130, 5) for length in range(64, 70)]
    texts += ["".join(rng.choices([*"12345678a .,-\n", *digits, "1234"], k=rng.randrange(300))) for _ in range(200)]
    for text in texts:
        for cap in (64, 4096):
            assert splitter.ends(text.encode(), cap) == expected_ends(pattern, text.encode())
    words = [word.strip() for word in reference.words(REGEX[pattern], b"1 12 123 1234 12345 1234567,")]
    assert b"|".join(words).replace(b"||", b"|") == b"1|12|123|1|234|12|345|1|234|567|,"


def test_long_numbers_take_linear_time() -> None:
    """The end of a run of digits is searched for once, so this ends soon."""
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], digits="3-from-right")
    assert tok.count("1" * 5_000_000) == 5_000_000


# ----------------------------------------------------------------------------------------------------
# Words


def code_points(stop: int, step: int = 1) -> Iterator[str]:
    return (chr(c) for c in range(0, stop, step) if not 0xD800 <= c < 0xE000)


def some_points() -> list[str]:
    if EXHAUSTIVE:
        return list(code_points(0x110000))
    return [*code_points(0x3400), *code_points(0x20000, 17), *code_points(0x110000, 997)]


@same_unicode
def test_every_code_point_between_letters(splitters: list[tuple[int, Splitter]]) -> None:
    check([each for each in splitters if each[0] < DIGITS1], "".join(code_points(0x110000)).encode())
    check(splitters, "a".join(code_points(0x40000, 1 if EXHAUSTIVE else 3)).encode())
    check(splitters, "a".join(code_points(0x110000, 61)).encode())


@pytest.mark.slow
@same_unicode
@pytest.mark.parametrize(
    "context",
    [
        "{0} {0}{0}  {0}1{0}\t",  # alone, doubled, after one or more spaces, next to digits
        "'{0}s\n{0}\n'{0}{0}'s ",  # next to apostrophes, newlines and contractions
        "!{0}!A{0}\u0301{0}\xa0{0}",  # next to other characters, capitals, marks and other spaces
    ],
)
def test_many_code_points_in_context(splitters: list[tuple[int, Splitter]], context: str) -> None:
    """The context of one character is the neighbor of the next, so that no separator hides an error."""
    check(splitters, "".join(context.format(c) for c in some_points()).encode())


@same_unicode
@pytest.mark.parametrize("context", ["{0}", "{0}{0}", "a{0}a", " {0} ", "\n{0}\n", "'{0}'", "'{0}s"])
def test_code_points_in_texts_of_their_own(splitters: list[tuple[int, Splitter]], context: str) -> None:
    points = some_points() if EXHAUSTIVE else [*code_points(0x250), *code_points(0x30000, 521)]
    for c in points:
        check(splitters, context.format(c).encode(), cap=64)


def hostile_texts(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    return (hostile_bytes(rng, rng.choice([3, 8, 8, 20, 20, 60, 120])) for _ in range(count))


@same_unicode
def test_hostile_texts(splitters: list[tuple[int, Splitter]]) -> None:
    for i, data in enumerate(hostile_texts(seed=3, count=100_000 if EXHAUSTIVE else 400)):
        check(splitters, data, cap=[64, 65, 100, 4096][i % 4])


@same_unicode
@settings(max_examples=15)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(splitters: list[tuple[int, Splitter]], data: bytes) -> None:
    check(splitters, data)


@pytest.mark.parametrize("pos", range(60, 70))
def test_contraction_across_blocks(splitters: list[tuple[int, Splitter]], pos: int) -> None:
    """A block of csrc/pretok/pretok_block.h has 64 bytes. Everything that can straddle its end does so here."""
    for piece in ("'s", "'ll", "'lx", "'", "'sa", "'ll'll", "中", "\u3000", "\u3000\u3000", "😀", "é", " ", "  ", "'é"):
        for behind in ("", "a", " ", "  ", "1", "!", "中"):
            for filler in ("a", "!", " ", "a a"):
                text = (filler * 70)[:pos] + piece + behind
                check(splitters[:6], text.encode(), cap=64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "'", "中", "A", "\u0301", "1", " \n", "'s", "\u3000", "/\n", "\u0301A"]
)
def test_long_texts_take_linear_time(splitters: list[tuple[int, Splitter]], unit: str) -> None:
    """Quadratic time would never finish. The last character changes what the whole run means. Both lengths are
    multiples of 6, so numbers of 2 or 3 digits end alike."""
    variants = len(splitters) // len(PATTERNS)
    each_once = [splitters[i * variants + (i + i // 3) % variants] for i in range(len(PATTERNS))]
    for tail in ("", "x", " "):
        short, long = ((unit * size + tail).encode() for size in (600, 252_000))
        for pattern, splitter in each_once:
            expected = reference.words(REGEX[pattern], short)
            count, last = splitter.count(long)
            if len(expected) < 4:  # a few words, some long
                assert count == len(expected)
            if len(expected[-1]) < 600:
                assert last == len(expected[-1])


# ----------------------------------------------------------------------------------------------------
# Safe cuts


@pytest.mark.slow
def test_cuts_give_the_words_of_the_whole(splitters: list[tuple[int, Splitter]]) -> None:
    rng = random.Random(4)
    some = 0
    for data in hostile_texts(seed=5, count=40_000 if EXHAUSTIVE else 1500):
        cuts = splitters[0][1].cuts(data)
        some += len(cuts)
        chosen = sorted(rng.sample(cuts, rng.randint(0, len(cuts))))
        parts = [data[a:b] for a, b in pairwise([0, *chosen, len(data)])]
        for _, splitter in splitters:
            found = [start + end for start, part in zip([0, *chosen], parts) for end in splitter.ends(part)]
            assert found == splitter.ends(data), parts
    assert some > 4000


def test_cut_is_the_first_from_anywhere(splitters: list[tuple[int, Splitter]]) -> None:
    for data in hostile_texts(seed=6, count=100):
        data = data[:200]
        for _, splitter in splitters[::2]:
            cuts = splitter.cuts(data)
            for start in range(1, len(data) + 1):
                assert splitter.cut(data, start) == next((c for c in cuts if c >= start), len(data))
            assert splitter.cut(data, 0) == 0


# ----------------------------------------------------------------------------------------------------
# Generated files


@pytest.mark.parametrize("name", one_in(4, ["unicode", "normalize", "special", "known"]))
def test_generated_files_are_current(name: str, root: Path) -> None:
    if name == "unicode" and reference.load_generator().unicode_version() != UNICODE:
        pytest.skip(f"`regex` does not have Unicode {UNICODE}")
    subprocess.run([sys.executable, root / "csrc" / "generate" / f"{name}_generate.py", "--check"], check=True)
