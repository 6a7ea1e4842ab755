"""Personal data: precision and recall on a labeled set, as docs/corpus.md states them; linear time; placeholders."""

import calendar
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pii_samples import LABELLED

import pybpe
from pybpe.corpus import find_pii, replace_pii
from pybpe.corpus.pii import _PATTERNS, KINDS

_MARK = re.compile(r"\[\[(\w+):(.*?)\]\]")


def unmarked(sample: str) -> tuple[str, set[tuple[str, int, int]]]:
    """Returns the text and its labels: (kind, start, end)."""
    text = ""
    labels = set()
    at = 0
    for match in _MARK.finditer(sample):
        text += sample[at : match.start()]
        if match[1] != "FALSE":
            labels.add((match[1], len(text), len(text) + len(match[2])))
        text += match[2]
        at = match.end()
    return text + sample[at:], labels


def scores() -> tuple[float, float, list[str]]:
    """Returns precision, recall, and the errors."""
    right = found_count = label_count = 0
    wrong = []
    for sample in LABELLED:
        text, labels = unmarked(sample)
        found = {tuple(finding) for finding in find_pii(text)}
        right += len(found & labels)
        found_count += len(found)
        label_count += len(labels)
        wrong += [f"{'missed' if it in labels else 'wrong'} {it[0]} {text[it[1] : it[2]]!r}" for it in found ^ labels]
    return right / found_count, right / label_count, sorted(wrong)


def test_precision_and_recall_are_as_the_page_says(root: Path) -> None:
    precision, recall, wrong = scores()
    assert wrong == [
        "missed API_KEY 'hunter2'",
        "missed EMAIL 'at'",
        "missed EMAIL 'dot'",
        "missed EMAIL '用户@例子.公司'",
        "missed IP_ADDRESS '8.8.8.8'",
        "missed PHONE '0044 20 7946 0958'",
        "missed PHONE '021－62751234'",
        "wrong EMAIL 'git@github.example'",
        "wrong IP_ADDRESS '4.18.0.205'",
    ]
    page = (root / "docs" / "corpus.md").read_text(encoding="utf-8")
    assert f"precision of {precision:.2f} and a recall of {recall:.2f}" in page


@given(st.text(alphabet="a1@.:- +86()sk_%X中\n", max_size=200))
def test_findings_are_disjoint_and_scrubbing_leaves_the_rest(text: str) -> None:
    findings = find_pii(text)
    assert all(a.end <= b.start for a, b in zip(findings, findings[1:]))
    rest = re.split("|".join(f"<{kind}>" for kind in KINDS), replace_pii(text, findings))
    at = 0
    for finding, part in zip(findings, rest):
        assert text[at : finding.start] == part
        at = finding.end
    assert text[at:] == rest[-1]


def everywhere(text: str) -> list[tuple[str, int, int]]:
    """Returns what the patterns find if no part of the text is skipped."""
    found = []
    taken: set[int] = set()
    for kind, regex, _, check in _PATTERNS:
        for match in regex.finditer(text):
            start, end = match.span(match.lastgroup or 0)
            if check(text[start:end]) and taken.isdisjoint(range(start, end)):
                taken |= set(range(start, end))
                found.append((kind, start, end))
    return sorted(found, key=lambda finding: finding[1])


PIECES = [unmarked(sample)[0] for sample in LABELLED] + [
    "+", "\n", "1", "X", " ", "-", "x", "中", "(", "138 1234 5678", "key=",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_passing_over_text_loses_nothing(text: str) -> None:
    assert list(map(tuple, find_pii(text))) == everywhere(text)


def test_scrubbed_text_has_nothing_left() -> None:
    for sample in LABELLED:
        text, _ = unmarked(sample)
        assert find_pii(replace_pii(text, find_pii(text))) == []


def test_cards_have_a_check_digit() -> None:
    cards = ["4222222222222", "6304000000000000000", "378282246310005", "3782 822463 10005", "4111-1111-1111-1111"]
    others = ["4222222222223", "422222222222", "6666666666666"]  # the sum of the last one is right
    found = [text for text in cards + others if any(finding.kind == "CREDIT_CARD" for finding in find_pii(text))]
    assert found == cards


def check_digit(digits: str) -> str:
    """The one of ISO 7064, MOD 11-2, by its recursive definition."""
    remainder = 0
    for digit in digits:
        remainder = (remainder + int(digit)) * 2 % 11
    return "0123456789X"[(12 - remainder) % 11]


def test_chinese_numbers_have_a_date_and_a_check_digit() -> None:
    rng = random.Random(1)
    found = 0
    for _ in range(400):
        year, month, day = rng.choice([1899, 1900, 1949, 2000, 2100, 2101]), rng.randint(1, 13), rng.randint(0, 31)
        digits = f"{rng.randint(1, 9)}{rng.randrange(10**5):05}{year}{month:02}{day:02}{rng.randrange(1000):03}"
        last = rng.choice([check_digit(digits)] * 3 + list("0123456789Xx"))
        exists = month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1] and 1900 <= year <= 2100
        is_id = exists and last.upper() == check_digit(digits)
        assert ("CHINESE_ID" in [finding.kind for finding in find_pii(digits + last)]) == is_id
        found += is_id
    assert found > 50


def test_what_is_too_simple_is_not_found() -> None:
    for text, kind in (
        ("64.1.2.3", "IP_ADDRESS"),
        ("1.2.3.64", "IP_ADDRESS"),
        ("api_key=abcd1234abcd1234e", "API_KEY"),
    ):
        assert [finding.kind for finding in find_pii(text)] == [kind]
    keys = ("abcd1234abcd1234", "abcdefghijklmnopq", "12345678901234567")
    assert [find_pii(text) for text in ("63.1.2.3", *(f"api_key={key}" for key in keys))] == [[]] * 4


def test_what_is_no_text() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="text must be a str, not"):
        find_pii(b"ann@example.com")  # type: ignore[arg-type]


def test_only_some_kinds() -> None:
    text = "ann@example.com 13812345678"
    for kinds in (["PHONE"], iter(["PHONE"])):
        assert replace_pii(text, find_pii(text, kinds)) == "ann@example.com <PHONE>"
    with pytest.raises(pybpe.errors.ArgumentError, match="unknown kind of personal data 'NAME'"):
        find_pii(text, ["NAME"])


_ADVERSARIAL = [
    *("a@", "a.", "1", "1-", "+1 ", "::", "a:", "0a:", "1.", "eyJ", "api_key=", "+1(1(1(", "4111 ", "138 1234 ", "a%"),
    *("x@a.", "x@a-", "415-555-", "1 (415) ", "11010519491231002", "api_key:   ", "_api_key_api_key", ":: ", "sk-"),
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", _ADVERSARIAL)
def test_time_is_linear(piece: str) -> None:
    """The test does not measure time: a pattern that is not linear would never finish."""
    for text in (piece * (100_000 // len(piece)), piece + "1" * 50_000, piece + "a" * 50_000):
        assert find_pii(text + " ann@example.com")[-1].kind == "EMAIL"
