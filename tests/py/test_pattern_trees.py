"""Trees of patterns: their width, whether they are a run of characters or can be empty, and their simplest form."""

import pytest
import regex

from pybpe.pattern.dialects.parse import REGEX, RUST, parse
from pybpe.pattern.dialects.tree import (
    ANY,
    NEWLINE,
    Alt,
    Atomic,
    Both,
    Chars,
    Either,
    End,
    Look,
    Repeat,
    Run,
    Seq,
    Start,
    alt,
    boundary,
    can_be_empty,
    chars,
    intersection,
    run_of,
    seq,
    union,
    width,
    without,
)
from pybpe.pattern.dialects.write import Writer, write

A, B, C = chars([(97, 97)]), chars([(98, 98)]), chars([(99, 99)])
LETTER, NO_LETTER = chars([], ["L"]), chars([], ["L"], negated=True)


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [
        *[("a", 1), ("ab", 2), ("[a-z]", 1), ("a|b", 1), ("ab|cd", 2), ("ab|c", None), ("a{3}", 3), ("(?:ab){3}c", 7)],
        *[("a?", None), ("a{2,3}", None), ("(?:a|bc){2}", None), ("a(?:b|cd)", None), ("(?>a)", None), ("^", None)],
        *[("(?=a)", None), ("", 0), (r"\b", None)],
    ],
)
def test_width(pattern: str, characters: int | None) -> None:
    assert width(parse(pattern, REGEX)) == characters


@pytest.mark.parametrize(
    ("pattern", "run"),
    [
        *[
            ("a", Run(A, 1)),
            ("a+", Run(A, None)),
            ("a{1,3}", Run(A, 3)),
            ("a++", Run(A, None)),
            ("(?>a+)", Run(A, None)),
        ],
        *[
            ("a*", None),
            ("a+?", None),
            ("a{2}", None),
            ("a{2,}", None),
            ("ab", None),
            ("(?:ab)+", None),
            ("a|bc", None),
        ],
        *[("^", None), ("(?=a)", None), ("(?>ab)", None), ("(?>(?>a{1,2}))", Run(A, 2))],
    ],
)
def test_runs(pattern: str, run: Run | None) -> None:
    assert run_of(parse(pattern, REGEX)) == run


def test_runs_of_sets_that_are_not_one_class() -> None:
    either, both = Either((A, NO_LETTER)), Both((A, B))
    assert run_of(either) == Run(either, 1) and run_of(both) == Run(both, 1)
    assert run_of(Repeat(either, 1, 5)) == Run(either, 5) and run_of(Repeat(both, 1, None, "+")) == Run(both, None)
    assert width(either) is width(both) is None


def test_ranges_are_joined_and_sorted() -> None:
    assert chars([(5, 6), (1, 3)]).ranges == ((1, 3), (5, 6))
    assert (
        chars([(1, 3), (4, 6)]).ranges == chars([(1, 6), (2, 3)]).ranges == chars([(1, 4), (2, 6)]).ranges == ((1, 6),)
    )
    assert chars([], ["N", "L", "N"]).properties == ("L", "N")
    assert chars([], ["L", "^L"]) == chars([(1, 2)], ["N", "L", "^L"]) == ANY
    assert chars([], ["L", "^L"], negated=True) == chars() == Chars()
    assert chars([], ["^L"]) == NO_LETTER and chars([], ["^L"], negated=True) == LETTER
    assert chars([(1, 1)], ["^L"]).properties == ("^L",) and chars([], ["^L", "^N"]).properties == ("^L", "^N")


def test_sets_are_combined() -> None:
    assert without(A) == chars([(97, 97)], negated=True) and without(without(A)) == A
    assert without(Both((A, NO_LETTER))) == Either((without(A), LETTER))
    assert without(Either((A, NO_LETTER))) == Both((without(A), LETTER))
    assert union([A, B]) == chars([(97, 98)]) and union([A]) == A and union([]) == Chars()
    assert union([A, NO_LETTER]) == chars([(97, 97)], ["^L"])
    assert union([A, without(B)]) == Either((A, without(B))) and union([without(B)]) == without(B)
    assert union([without(chars([(97, 97)], ["L"])), B, C]) == Either(
        (chars([(98, 99)]), without(chars([(97, 97)], ["L"])))
    )
    assert union([without(chars([], ["L", "N"])), A]) == Either((A, without(chars([], ["L", "N"]))))
    assert intersection([A]) == A and intersection([A, NO_LETTER]) == Both((A, NO_LETTER))


def test_sequences_and_alternatives_are_flat() -> None:
    assert seq([A]) == A == alt([A]) and seq([]) == Seq(())
    assert seq([A, Seq((B, C))]) == Seq((A, B, C)) and alt([A, Alt((B, C))]) == Alt((A, B, C))
    assert seq([Look(A), B]) == Both((A, B)) and seq([Look(A, negated=True), B]) == Both((without(A), B))
    assert seq([Look(A), Look(B), C]) == Both((A, B, C)) and seq([Look(A), Both((B, C))]) == Both((A, B, C))
    assert seq([Look(A, behind=True), B]) == Seq((Look(A, behind=True), B))
    assert seq([Look(Seq((A, B))), A]) == Seq((Look(Seq((A, B))), A)) and seq([Look(A), Start()]) == Seq(
        (Look(A), Start())
    )


def test_a_boundary_has_a_word_on_one_side() -> None:
    before, after = Look(A, behind=True), Look(A)
    not_before, not_after = Look(A, behind=True, negated=True), Look(A, negated=True)
    assert boundary(A, False) == Alt((Seq((before, not_after)), Seq((not_before, after))))
    assert boundary(A, True) == Alt((Seq((before, after)), Seq((not_before, not_after))))


def test_the_empty_set_and_the_ends_of_ranges_are_written() -> None:
    nothing = write(Chars(), REGEX)
    assert regex.search(nothing, "\x00a\uffff\U0010ffff") is None
    assert [Writer(REGEX).char(point) for point in (0x85, 0xFFFF, 0x10FFFF)] == [r"\u0085", r"\uffff", r"\U0010ffff"]
    assert [Writer(RUST).char(point) for point in (0x85, 0x10FFFF)] == [r"\x{85}", r"\x{10ffff}"]


def test_what_can_be_empty() -> None:
    empty = [
        Seq(()), Repeat(A, 0, 1), Repeat(Seq(()), 1, 2), Alt((A, Seq(()))), Atomic(Repeat(A, 0, None)), Look(A),
        End(),
    ]  # fmt: skip
    full = [
        A, Either((A, B)), Both((A, B)), Repeat(A, 1, None), Seq((Repeat(A, 0, 1), B)), Alt((A, B)), Atomic(NEWLINE),
    ]  # fmt: skip
    assert all(map(can_be_empty, empty)) and not any(map(can_be_empty, full))
