"""The normalizer of the C library against Hugging Face's, on every code point, every pair, and hostile texts."""

import random
import sys
import unicodedata
from functools import cache

import pytest
from reference.normalization import normalized
from texts import chinese, english, mixed, random_bytes

import pybpe
from pybpe import _binding, normalize

FORMS = ["NFC", "NFKC"]
CODE_POINTS = [chr(i) for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]


def check(text: str | bytes, form: str) -> None:
    data = text.encode() if isinstance(text, str) else text
    assert bytes(_binding.normalize(data, form)) == normalized(data, form)


# Python's Unicode is newer than the normalizers': it has all marks and pairs that they have, and more.


@cache
def marks() -> list[str]:
    return [c for c in CODE_POINTS if unicodedata.combining(c)]


@cache
def compositions() -> list[tuple[str, str, str]]:
    """Returns what is composed, and of which two characters."""
    split = ((c, unicodedata.decomposition(c).split()) for c in CODE_POINTS)
    return [(c, *(chr(int(x, 16)) for x in parts)) for c, parts in split if len(parts) == 2 and "<" not in parts[0]]


def joining() -> list[str]:
    """Returns what is composed with the character before it, such as vowels and final consonants of Hangul."""
    hangul = map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)))
    return sorted({*hangul, *(second for _, _, second in compositions())})


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_code_point(form: str) -> None:
    """Tests each character alone, after a letter, after a mark, and before two marks."""
    for shape in ("{}\n", "a{}\n", "e\u0327{}\n", "{}\u0301\u0323\n"):
        check("".join(shape.format(c) for c in CODE_POINTS), form)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_pair_that_could_compose(form: str) -> None:
    """Each character that composes with something, or is made so, before each that joins what is before it."""
    firsts = {c for whole, first, _ in compositions() for c in (whole, first)}
    firsts |= set("aZ1.<\u1100\u1112\uac00\uac01\ud788\u0b47\uff76\ufb49")
    seconds = sorted({*joining(), *marks()})
    for first in sorted(firsts):
        check("".join(f"{first}{second}\n" for second in seconds), form)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_two_classes_of_marks(form: str) -> None:
    classes: dict[int, list[str]] = {}
    for mark in marks():
        classes.setdefault(unicodedata.combining(mark), []).append(mark)
    some = [mark for equal in classes.values() for mark in (equal[0], equal[-1])]
    check("".join(f"o{a}{b}\n" for a in some for b in some), form)


@pytest.mark.parametrize("form", FORMS)
def test_hostile_texts(form: str) -> None:
    """Tests characters that decompose, compose, join or change places, in any order; and bytes that are not UTF-8."""
    rng = random.Random(form)
    changed = [c for c in CODE_POINTS if unicodedata.normalize("NFKC", c) != c]
    jamo = [chr(i) for i in (0x1100, 0x1112, 0x1113, 0x1161, 0x1175, 0x1176, 0x11A7, 0x11A8, 0x11C2, 0x11C3, 0xFFA1)]
    syllables = [chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(10)] + ["\uac00", "\ud7a3", "\ud7a4"]
    starters = [*"aAoOi1<=. ", "\u00e9", "\u1ea5", "\u0b92", "\u09c7", "\u4e2d", "\U0001d15f", "\u0f73", "\u0344"]
    kinds = [marks(), joining(), changed, jamo, syllables, starters]
    for round_ in range(4000):
        alphabet = [rng.choice(kind) for kind in kinds for _ in range(3)]
        text = "".join(rng.choices(alphabet, k=rng.choice([2, 5, 12, 40]))).encode()
        if round_ % 4 == 0:
            bad = rng.choice([b"\xff", b"\xe4", b"\x80", b"\xf0\x9f", b"\xed\xa0\x80"])
            at = rng.randrange(len(text) + 1)  # also inside a character
            text = text[:at] + bad + text[at:]
        check(text, form)
    check(random_bytes(20_000, 1), form)
    for text in (english(), chinese(), mixed()):
        check(text, form)
        check(unicodedata.normalize("NFD", text), form)


def test_a_long_run_of_marks() -> None:
    """Tests 8 MB of marks, each after one of a higher class: sorting by exchanging neighbors would never end."""
    many = 1_000_000
    found = normalize.normalize(("a" + "\u0345\u0301\u0323\u0334" * many).encode(), "NFC")
    assert bytes(found).decode() == (
        "\u1ea1" + "\u0334" * many + "\u0323" * (many - 1) + "\u0301" * many + "\u0345" * many
    )


def test_what_is_normalized_is_not_copied() -> None:
    for data in (english().encode(), chinese().encode(), b"", b"\xff\xfe", "\uac00\uac01".encode()):
        assert _binding.normalize(data, "NFC") is data


def test_texts_with_lone_surrogates_keep_them() -> None:
    assert normalize.normalize_text("\ud800e\u0301\udc80", "NFC") == "\ud800\u00e9\udc80"


def test_ids_do_not_depend_on_the_unicode_of_python() -> None:
    """U+1ABF is a mark since Unicode 13, and U+1F16D has a decomposition since: Hugging Face leaves both alone."""
    for form in FORMS:
        for text in ("a\u1abf\u0323", "a\u0301\u1abf", "\U0001f16d", "\u32ff"):
            check(text, form)
    tok = pybpe.train(iter(["a\u1abf\u0323" * 5]), vocab_size=256, normalizer="NFC")
    assert tok.decode(tok.encode("a\u1abf\u0323")) == "a\u1abf\u0323"
