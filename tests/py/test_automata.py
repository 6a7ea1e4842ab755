r"""Compiled regular expressions give the words that the `regex` package finds: for the built-in patterns, for those of
known models, and for random ones. What does not compile runs in `regex`, with a warning.

PYBPE_AUTOMATA_PAIRS=1000000 compares so many pairs of a pattern and a text (`make fuzz-patterns`)."""

import os
import pickle
import random
import re

import pytest
from pipelines import DEEPSEEK_V3, KIMI, LLAMA3, TEKKEN
from texts import english, hostile_bytes

from pybpe import _binding
from pybpe import pattern as pattern_module
from pybpe.errors import PybpeWarning, UnsupportedError
from pybpe.pattern import NAMES, Pattern, automata
from pybpe.reading.cuts import cutter, data_pieces
from pybpe.training import plan

PAIRS = int(os.environ.get("PYBPE_AUTOMATA_PAIRS", "2000"))
SEED = int(os.environ.get("PYBPE_AUTOMATA_SEED", "15"))

NANOCHAT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
MODELS = {
    "nanochat": NANOCHAT,
    "kimi": KIMI.replace(r"&&[^\p{Han}]]", "]"),
    "deepseek v3": DEEPSEEK_V3[2],
    "deepseek han": r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "deepseek digits": r"\p{N}{1,3}",
    "starcoder": r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "bloom": r" ?[^(\s|.,!?…。，、।۔،)]+",  # noqa: RUF001
    "falcon": r"[0-9][0-9][0-9]|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "glm": LLAMA3,
    "tekken": TEKKEN,
    "words": r"\w+|\s+|[^\w\s]",
    "lines": r"[^\n]*\n|[^\n]+",
    "lazy": r"a+?b|<.+?>|\s{2,4}?|.",
    "gaps": r"\p{L}+",
    "last newline": r"\s+$|\w+|\s|.",
    "end": r"\s+\Z|\w+|\s|.",
    "multiline": r"(?m)[^\n]+$|\n|.",
    "fixed": r".{1,4}",
    "ahead in the middle": r"a(?=b)[ab]+|b(?!a|\s|$)\w?|\s|\S",
    "atomic": r"(?>\s+)\S|\w{1,3}+\d|(?>ab|a)|.",
    "atomic in atomic": r"(?>(?>a|b))c|(?>(?>a|b)+)\d|.",
    "complements": r"[\P{L}a]{2,}|[\P{C}\n]\d|[\s\S]",
    "far": r"a*b|a|\s+!|\s",
}


def check(pattern: str, texts: list[bytes]) -> None:
    splitter, slow = automata.compiled(pattern), Pattern(pattern)
    for data in texts:
        assert splitter.split(data) == slow.searched_ends(data), (pattern, data)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("name", NAMES)
def test_built_in_patterns_compiled_are_the_splitters(name: str, digits: int | None) -> None:
    rng = random.Random(name)
    named = Pattern(name, digits)
    texts = [hostile_bytes(rng, 40) for _ in range(400)]
    check(named.regex, texts)
    splitter = automata.compiled(named.regex)
    assert all(splitter.split(data) == named.pretok.split(data) for data in texts if named.pretok is not None)
    if digits is not None:  # the same classes of characters
        return
    every = "".join(chr(i) + "a " + chr(i) * 2 for i in range(0x110000) if not 0xD800 <= i < 0xE000).encode()
    assert splitter.split(every) == named.word_ends(every)


@pytest.mark.parametrize("name", MODELS)
def test_patterns_of_models(name: str) -> None:
    rng = random.Random(name)
    assert pickle.loads(pickle.dumps(Pattern(MODELS[name]))).pretok is not None  # without a warning
    check(MODELS[name], [hostile_bytes(rng, 40) for _ in range(500)] + [english()[:20000].encode()])


# ----------------------------------------------------------------------------------------------------
# Random patterns

SETS = (
    r"a b c ' \n . \s \S \d \D \w \W \p{L} \p{Lu} \p{Ll} \P{L} \p{N} \p{M} \p{P} \p{Han} [ab] [^ab] [a-c] [^\s] [\r\n]"
    r" [^\s\p{L}\p{N}] [^\r\n\p{L}\p{N}] [\p{L}\p{M}] [\p{Lu}\p{Lo}] [\u4e00-\u9fff] (?i:s) (?i:[a-k]) (?:a|b)"
).split(" ") + [" ", " "]


def random_set(rng: random.Random) -> str:
    return rng.choice(SETS)


def random_count(rng: random.Random) -> str:
    return rng.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}"])


def random_item(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    count = random_count(rng)
    mode = rng.choice(["", "", "", "?", "+"]) if count else ""
    if kind < 0.12 and depth:
        return f"(?:{random_pattern(rng, depth - 1)}){rng.choice(['', '', '?', '+', '{1,2}', '??', '+?'])}"
    if kind < 0.16:
        return f"(?>{random_set(rng)}{count})"
    if kind < 0.26:
        return rng.choice(["(?!{})", "(?={})", "(?!{}|$)", "(?={}|\\Z)"]).format(random_set(rng))
    if kind < 0.30:
        return rng.choice(["$", "\\Z", "(?m:$)", "(?!\\S)", "(?=\\S)"])
    if kind < 0.34:
        return rng.choice(["(?i:'s|'ll)", "ab", "'s", "abc", "你好"])
    return random_set(rng) + count + mode


def random_pattern(rng: random.Random, depth: int = 2) -> str:
    ways = ["".join(random_item(rng, depth) for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 4))]
    return "|".join(ways)


@pytest.mark.slow
def test_random_patterns() -> None:
    rng = random.Random(SEED)
    compared = refused = 0
    reasons: dict[str, int] = {}
    while compared < PAIRS:
        pattern = random_pattern(rng)
        if re.fullmatch(r"[\w.-]*", pattern):  # it would be the name of a pattern
            continue
        try:
            automata.compiled.__wrapped__(pattern)
        except UnsupportedError as error:
            refused += 1
            reason = str(error).split(" at character ")[0][:60]
            reasons[reason] = reasons.get(reason, 0) + 1
            continue
        check(pattern, [hostile_bytes(rng, 14) for _ in range(20)])
        compared += 20
    if PAIRS > 2000:
        print(f"{compared} pairs, {compared // 20} patterns, {refused} refused:", reasons)
    assert refused < 2 * compared // 20  # half of these can match the empty string, or repeat a part that can


# ----------------------------------------------------------------------------------------------------
# What does not compile


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"(\w)\1|.", "1"),
        (r"(?<=a)b|.", "look-behind"),
        (r"\bword|.", "word boundary"),
        (r"^a|.", "start of the text"),
        (r"a(?=bc)|.", "a lookahead at more than one character"),
        (r"(?:ab)++c|.", "possessive"),
        (r"(?>a+b|a)c|.", "atomic"),
        (r"a*", "match the empty string"),
        (r"\X|.", "X"),
        (r"(?:[ab]*[ac].{12})*a", "too many states"),
        (r".{5000}a|.", "too many states"),
        (r"(?:.{200}){200}a|.", "repeats too much"),
        (r"(?:a{1,99}){1,99}b", "too many states"),
    ],
)
def test_what_does_not_compile_is_searched_and_said_once(pattern: str, construct: str) -> None:
    pattern_module._automaton.cache_clear()
    data = b"a word, aabc abab c\n"
    with pytest.warns(PybpeWarning, match="does not compile, so Python's regex package runs it") as caught:
        assert Pattern(pattern).word_ends(data) == Pattern(pattern).searched_ends(data)
    assert len(caught) == 1 and construct in str(caught[0].message)


# ----------------------------------------------------------------------------------------------------
# Safe cuts


@pytest.mark.parametrize("name", MODELS)
def test_safe_cuts_divide_no_word(name: str) -> None:
    rng = random.Random(name)
    pattern = Pattern(MODELS[name])
    specials = _binding.Specials({"<s>": 0, "b ": 1})
    for matcher in (None, specials):
        cut = cutter(pattern, matcher, None)
        for _ in range(150):
            data = hostile_bytes(rng, 60) + (b"" if matcher is None else b" c") + hostile_bytes(rng, 20)
            if matcher is not None and matcher.find(data) is not None:
                continue
            ends, base = [], 0
            for piece in data_pieces(data, cut, rng.randrange(1, 12)):
                ends += [base + end for end in pattern.word_ends(bytes(piece))]
                base += len(piece)
            assert ends == pattern.word_ends(data)


@pytest.mark.slow
def test_safe_cuts_of_random_patterns() -> None:
    """Wherever a text may be cut, the words of the parts are those of the whole. Many of these patterns leave text
    unmatched."""
    rng = random.Random(SEED)
    cuts = patterns = 0
    while patterns < 60:
        pattern = random_pattern(rng)
        try:
            splitter = automata.compiled.__wrapped__(pattern)
        except UnsupportedError:
            continue
        patterns += splitter.has_cuts
        for _ in range(30 if splitter.has_cuts else 0):
            data = hostile_bytes(rng, 14)
            ends = splitter.split(data)
            for at in range(1, len(data)):
                if _binding.text_cut(splitter, None, data, at) == at:
                    cuts += 1
                    assert ends == splitter.split(data[:at]) + [at + end for end in splitter.split(data[at:])], pattern
    assert cuts > 1000


def test_superwords_have_cuts_at_numbers() -> None:
    for regex, expected in ((plan._CHUNKS, [7, 10, 11]), (plan._CHUNKS_OF_DIGITS, [4, 5, 6, 7, 10, 11])):
        splitter = Pattern(regex).pretok
        assert splitter is not None and splitter.has_cuts
        data = b"in 1984, a1 b"
        cuts = [at for at in range(1, len(data)) if _binding.text_cut(splitter, None, data, at) == at]
        assert cuts == expected


NO_CUTS = r"[\s\S]{1,2}"  # where words end depends on the whole text before


@pytest.mark.parametrize(("name", "some"), [(name, True) for name in ("kimi", "words", "gaps")] + [(NO_CUTS, False)])
def test_which_patterns_have_cuts(name: str, some: bool) -> None:
    pattern = Pattern(MODELS.get(name, name))
    assert pattern.pretok is not None and pattern.pretok.has_cuts is some
    pieces = list(data_pieces(english()[:100_000].encode(), cutter(pattern, None, None), 1000))
    assert (len(pieces) > 50) is some
    assert len(list(data_pieces(english()[:5000].encode(), cutter(pattern, None, "NFC"), 1000))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["a*b|a", "a*b", r"\s*\n|\s+(?!\S)|\s", "(?:aa)*b|(?:aaa)*c|a"])
def test_no_text_takes_quadratic_time(pattern: str) -> None:
    """If matching started anew at every character, each of these would take many minutes."""
    counter = _binding.Counter(Pattern(pattern).pretok, None)
    counter.add(b"a" * 300_000 + b" " * 300_000)
    assert counter.stats.total > 0


def test_at_most_250_classes_are_compiled() -> None:
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 248)))
    automata.compiled(letters)  # also classes of the newline and of all other characters
    with pytest.raises(UnsupportedError, match="distinguishes more than 250 classes of characters"):
        automata.compiled(letters + "x")
