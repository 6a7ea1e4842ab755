r"""Regular expressions in three dialects: a translated expression has the same matches in the other engine, character
by character and word by word. pybpe refuses constructs that are not known to mean the same, and names them.

The oracles are the engines themselves: Python's regex package, tiktoken, and Hugging Face tokenizers.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from engines import ALL, DIALECTS, WORDS, assigned, members
from pipelines import KIMI
from selection import one_in
from texts import hostile

import pybpe
from pybpe.pattern import _SPELLINGS, Pattern
from pybpe.pattern.dialects import REGEX, first_uncovered, parse, translate, write
from pybpe.pattern.dialects.parse import _POSIX, PROPERTIES

PAIRS = list(itertools.permutations(WORDS, 2))
ids = "-to-".join


def translated(pattern: str, source: str, target: str) -> str | None:
    try:
        return translate(pattern, DIALECTS[source], DIALECTS[target])
    except pybpe.errors.UnsupportedError:
        return None


# ----------------------------------------------------------------------------------------------------
# Sets of characters


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rust", "onig"])
def test_names_of_sets_mean_the_same(engine: str) -> None:
    for name in sorted(PROPERTIES):
        ours, theirs = members("regex", f"\\p{{{name}}}"), members(engine, f"\\p{{{name}}}")
        assert ours & assigned() == theirs & assigned(), name


SETS = [
    *(r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\h", r"\H", "[\\w-]", r"[^\W]", r"[\W_]", r"[^\w\d]", r"[\s\S]", "."),
    *(
        r"\pL", r"\p{^L}", r"\P{^L}", r"[^\P{L}]", r"\p{Script=Han}", r"[\p{^L}\d]", r"\x41", r"[\xa0-\xff]",
        r"[\u4e00-\u9fff]", r"\t",
    ),
    *(r"[^\S\n]", r"[^\W\d_]"),
    *(f"(?i:{char})" for char in "abfiks'ıKß"),
    *("(?i:[a-z])", "(?i:[^i-s])", "(?i:[h-t_])", "(?s:.)", "(?m:.)", r"(?i:\w)", r"(?i:[^\d\s])"),
    *(f"[[:{name}:]]" for name in _POSIX),
    *(r"[[:^alpha:]]", r"(?i:[[:upper:]])", r"[\w&&\p{Han}\d]", r"[^\w&&[^a]]", "[^a-c&&b-e]", "[a-c[^b-d]]"),
    *(r"[\p{L}&&[^\p{Han}]]", "[a-w&&[^c-g]z]", r"[\w--[a-z]\d]", "[a-z~~x-~]", r"[\p{L}--\p{Lu}&&[^\p{Han}]]"),
    *(f"(?i:\\p{{{name}}})" for name in sorted(PROPERTIES - {"Cn"})),
    *(f"(?i:[^\\p{{{name}}}])" for name in sorted(PROPERTIES - {"Cn"})[::4]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=map(ids, PAIRS))
def test_sets_have_the_same_characters(source: str, target: str) -> None:
    compared = 0
    for pattern in SETS:
        other = translated(pattern, source, target)
        if other is not None:
            compared += 1
            assert members(source, pattern) & assigned() == members(target, other) & assigned(), (pattern, other)
    assert compared > 80


@pytest.mark.parametrize("name", one_in(10, sorted(PROPERTIES - REGEX.cased_names)))
def test_a_property_means_itself_in_a_class_with_case_ignored(name: str) -> None:
    r"""regex 2026.11 matches \u0345 with (?i)[\p{L}\d], but not with (?i)\p{L}, and makes one class of \p{L}|\d."""
    expected = members("regex", rf"\p{{{name}}}") | {"\0"}
    assert members("regex", rf"(?i)[\p{{{name}}}\0]") == expected
    assert members("regex", rf"(?i)\p{{{name}}}|\0") == expected
    assert members("regex", rf"(?i)[^\p{{{name}}}\0]") == set(ALL) - expected


# ----------------------------------------------------------------------------------------------------
# Words


def hostile_texts(rng: random.Random, count: int) -> list[str]:
    return [hostile(rng, 6)[:10] for _ in range(count)]


ATOMS = [
    *("a", "b", "s", "k", "i", "1", " ", "'s", "_", "\\.", "中", r"\n", r"\r", r"\t", ".", "ab", "ss", "fi"),
    *(r"\w", r"\W", r"\d", r"\s", r"\S", r"\h", r"\p{L}", r"\p{Lu}", r"\P{L}", r"\p{N}", r"\p{M}", r"\p{Han}"),
    *("[ab]", "[^a]", "[a-z]", r"[\w-]", r"[^\s\p{L}\p{N}]", r"[\r\n]", r"[^\r\n\p{L}\p{N}]", r"[\p{L}&&[^\p{Han}]]"),
    *(r"[\w--\d]", "[[:alpha:]]", r"[\s\S]", "[^ ]", r"[\p{Lu}\p{Lt}\p{M}]"),
]  # fmt: skip
ANCHORS = ["^", "$", r"\A", r"\Z", r"\z", r"\b", r"\B"]
COUNTS = ["*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,3}", "{2,}", "{,2}", "{1,3}+", "{1,2}?", "{2}?"]
KINDS = ["(", "(?:", "(?i:", "(?s:", "(?m:", "(?is:", "(?-i:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?<n>"]


def random_part(rng: random.Random, depth: int) -> str:
    """A part of a pattern: an anchor, an atom or a group, with or without a count."""
    if rng.random() < 0.12:
        return rng.choice(ANCHORS)
    if depth > 0 and rng.random() < 0.3:
        part = rng.choice(KINDS) + random_pattern(rng, depth - 1) + ")"
    else:
        part = rng.choice(ATOMS)
    return part + (rng.choice(COUNTS) if rng.random() < 0.4 else "")


def random_pattern(rng: random.Random, depth: int) -> str:
    parts = ("".join(random_part(rng, depth) for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 3)))
    return "|".join(parts)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=map(ids, PAIRS))
def test_random_patterns_cut_the_same_words(source: str, target: str) -> None:
    rng = random.Random(1)
    compared = 0
    for _ in range(300):
        pattern = rng.choice(["", "", "", "(?i)", "(?s)", "(?m)"]) + random_pattern(rng, 2) + r"|[\s\S]"
        other = translated(pattern, source, target)
        if other is None:
            continue
        compared += 1
        texts = hostile_texts(rng, 10)
        assert WORDS[source](pattern, texts) == WORDS[target](other, texts), (pattern, other, texts)
    assert compared > 40


REAL = {
    "kimi": KIMI,
    "finding": r"[\p{L}&&[^\p{Han}]]+|\p{Han}+|\s+|[\s\S]",
    "posix": r"[[:alpha:]]+|[[:^alpha:]]",
    "end": r"\S+$|\S|\s+",
    "hexadecimal": r"\h+|\H",
}


# ----------------------------------------------------------------------------------------------------
# Translations and errors, which record_translations.py wrote when the engines agreed with them

FILE = Path(__file__).parent / "translations.jsonl"


def outcome(pattern: str, source: str) -> list[str | None]:
    """Returns what a pattern means, as Python's regex package writes it, and the translations of the pattern to each
    dialect, or one for all if they are equal: None if the pattern stays as it is. An error follows a "!". A pattern
    that cannot be read is not translated."""
    read = _read(pattern, source)
    if read.startswith("!"):
        return [read]
    found = [_translated(pattern, source, target) for target in DIALECTS]
    return [read, *(found[:1] if len(set(found)) == 1 else found)]


def _read(pattern: str, source: str) -> str:
    try:
        return write(parse(pattern, DIALECTS[source]), REGEX)
    except pybpe.errors.UnsupportedError as error:
        return f"!{error}"


def _translated(pattern: str, source: str, target: str) -> str | None:
    try:
        found = translate(pattern, DIALECTS[source], DIALECTS[target])
    except pybpe.errors.UnsupportedError as error:
        return f"!{error}"
    return None if found == pattern else found


@pytest.mark.parametrize("source", DIALECTS)
def test_translations_and_errors_are_those_recorded(source: str) -> None:
    for line in FILE.read_text(encoding="ascii").splitlines():
        pattern, *of_sources = json.loads(line)
        assert outcome(pattern, source) == of_sources[list(DIALECTS).index(source)], pattern


@pytest.mark.slow
def test_no_pattern_breaks_the_parser() -> None:
    """Every dialect accepts or refuses any text; groups may be deeply nested."""
    rng = random.Random(3)
    signs = "()[]{}|*+?^$.\\-&~:=!<>,iaPpLdwsxuU1{}é \n"
    patterns = ["".join(rng.choices(signs, k=rng.randint(0, 12))) for _ in range(1500)] + ["(" * 10_000, "[" * 10_000]
    for pattern in patterns:
        for source, target in PAIRS:
            translated(pattern, source, target)


# ----------------------------------------------------------------------------------------------------
# Text that no match covers


@pytest.mark.parametrize(
    ("pattern", "point"),
    [
        (r"\w+", 0),
        (r"\w+|\s+", 0),
        (r"\w+|\W", None),
        (r".+", 10),
        (r"(?s).", None),
        (r"\p{L}+|[^\p{L}]{2,}", 0),
        (r"\p{L}+|[^\p{L}]{1,3}", None),
        (r" ?\p{L}+|\P{L}", None),
        (r" ?+\p{L}+|[^\p{L} ]| ", None),
        (r"[^\n]?+\p{L}+|\P{L}", 65),
        (r"\s+(?!\S)|\S", 9),
        (r"(?=a)[\s\S]|b", 0),
        (r"(?>\w+)|(?:\W(?:xy)*)", None),
        (r"a{2}", 0),
        (r"c?+a{2}b?", 0),
        (r"(?=a)|[\s\S]", None),
        (r"(?:ab)?+\w|\W", 48),
        (r"(?:\s?\S?)|\s", 0),
        (r"[^\ue000]", 0xE000),
        (r"[^\ud7ff]", 0xD7FF),
        (r"[a-z]?[a-y]|[^a-y]", None),
        (r"[a-z]?+[a-y]|[^a-y]", 97),
    ],
)
def test_first_uncovered(pattern: str, point: int | None) -> None:
    assert first_uncovered(parse(pattern, REGEX)) == point


@pytest.mark.slow
def test_what_is_known_to_cover_does() -> None:
    rng = random.Random(4)
    covered = 0
    for _ in range(200):
        pattern = random_pattern(rng, 1) + rng.choice(["", r"|\s", r"|\W", r"|[\s\S]+", r"|\S+|\s*\s|\s"])
        try:
            translate(pattern, REGEX, REGEX, whole=True)
        except pybpe.errors.UnsupportedError:
            continue
        covered += 1
        texts = [*hostile_texts(rng, 10), ALL]
        assert ["".join(words) for words in WORDS["regex"](pattern, texts)] == texts, pattern
    assert covered > 20


def test_spellings_of_built_in_patterns_are_read_alike_by_tiktoken() -> None:
    for number, (regex, name) in enumerate(_SPELLINGS.items()):
        texts = hostile_texts(random.Random(number), 200)
        assert WORDS["rust"](regex, texts) == WORDS["regex"](Pattern(name).regex, texts), regex
