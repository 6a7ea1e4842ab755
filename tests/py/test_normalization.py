"""A normalizer belongs to its tokenizer: training, encoding and files always use the same one. The normalizer of the C
library gives what Hugging Face's gives."""

import random
import sys
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import regex
from corpora import tokens_of
from reference.normalization import normalized
from texts import chinese, english, mixed, random_bytes

import pybpe
from pybpe import _binding, normalize
from pybpe.pattern import Pattern
from pybpe.reading import planning
from pybpe.reading.cuts import cutter
from pybpe.training import counting

COMPOSED = "Caf\u00e9 au lait, d\u00e9j\u00e0 vu \u00fcber ﬁne ｆｕｌｌ <|endoftext|> na\u00efve "
SPECIALS = ["<|endoftext|>"]


def decomposed(text: str) -> str:
    result = unicodedata.normalize("NFD", text)
    assert result != text
    return result


def train(text: str, normalizer: str | None, **more: object) -> pybpe.Tokenizer:
    return pybpe.train(iter([text * 20]), vocab_size=320, special_tokens=SPECIALS, normalizer=normalizer, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_training_sees_the_normalised_text(form: str) -> None:
    tok = train(decomposed(COMPOSED), form)
    assert tok.merges == train(unicodedata.normalize(form, COMPOSED), None).merges
    assert tok.merges != train(decomposed(COMPOSED), None).merges


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_every_way_of_encoding_normalises(form: str) -> None:
    tok = train(COMPOSED, form)
    text = decomposed(COMPOSED)
    ids = tok.encode(unicodedata.normalize(form, COMPOSED))
    assert tok.encode(text) == ids == tok.encode(text.encode())
    assert tok.encode_to_numpy(text).tolist() == ids
    assert tok.encode_batch([text, text]) == [ids, ids]
    flat, ends = tok.encode_batch_to_numpy([text, text])
    assert flat.tolist() == ids + ids
    assert list(tok.encode_iterable([text[:40], text[40:]])) == ids
    assert tok.encode_with_offsets(text).ids == ids
    assert tok.count(text) == len(ids)
    assert tok.encode_ordinary(text) == tok.encode_ordinary(COMPOSED)
    assert normalize.normalize_text("\ud800e\u0301\udc80", form) == "\ud800\u00e9\udc80"  # keeps lone surrogates


def test_counts_and_bases_have_one_normalizer() -> None:
    tok = train(COMPOSED, "NFC")
    counts = pybpe.count_words(iter([COMPOSED]), special_tokens=SPECIALS, normalizer="NFC")
    assert pybpe.train(counts=counts, vocab_size=300).model.normalizer == "NFC"
    others = pybpe.count_words(iter([COMPOSED]), special_tokens=SPECIALS)
    for given, message in (
        ({"counts": counts, "vocab_size": 300, "normalizer": "NFKC"}, "the base or the counts already have 'NFC'"),
        ({"inputs": iter([COMPOSED]), "base": tok, "vocab_size": 400, "normalizer": "NFKC"}, "already have 'NFC'"),
        ({"counts": others, "base": tok, "vocab_size": 400}, "a different pattern or normalizer"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.train(**given)


def check_cuts(text: str, form: str, pattern: Pattern, at_least: int = 0) -> None:
    """If each side of a cut is normalized separately, their words are those of the normalized text."""

    def words(part: bytes) -> list[str]:
        return regex.findall(pattern.regex, normalized(part, form).decode())

    data, whole, cuts = text.encode(), words(text.encode()), set()
    cut = cutter(pattern, None, form)
    for start in range(1, len(data)):
        at = cut(data, start)
        if at not in cuts:
            cuts.add(at)
            assert words(data[:at]) + words(data[at:]) == whole, (form, pattern, at, ascii(text))
    assert len(cuts) > at_least


@pytest.mark.slow
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat"])
def test_normalising_does_not_notice_cuts(form: str, name: str) -> None:
    """Tests random texts of characters that compose, decompose, are reordered, or become characters of another kind."""
    rng = random.Random(f"{form} {name}")
    pattern = Pattern(name)
    changed = [c for c in map(chr, range(0x80, sys.maxunicode + 1)) if unicodedata.normalize("NFKC", c) != c]
    rare = (
        "\u0338\u0323\u0307\u0301\u3099\u1161\u11a8\u1100\ub098<>'\u2019\uff07\u2120"
        "\u3392\u2026\u00b4\u00bd\u2003\u00a0\u2028\u1e9b\u30fd"
    )
    for _ in range(250):
        alphabet = ["a", "Z", "1", ".", " ", "\n", "\u4e2d", "\u3002", *rng.sample(rare, 4), *rng.sample(changed, 4)]
        check_cuts("".join(rng.choices(alphabet, k=12)), form, pattern)


def test_chinese_can_be_cut_although_it_is_normalised() -> None:
    check_cuts("\u5929\u4e0b\u3002\n\u5206\u4e45\uff0c\u5fc5\u5408\u3002", "NFC", Pattern("gpt2"), at_least=3)


def test_cutting_a_corpus_changes_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFKC joins a letter and a symbol such as \u2120 into one word; otherwise text could be cut between them."""
    monkeypatch.setattr(planning, "TASK_BYTES", 15_000)
    monkeypatch.setattr(counting, "LEAST_TASK", 15_000)
    path = tmp_path / "marks.txt"
    path.write_text("".join(random.Random(4).choices(["a\u2120", "b\u2120", " "], [9, 9, 1], k=20_000)))
    tok = pybpe.train(path, vocab_size=290, special_tokens=SPECIALS, normalizer="NFKC")
    normalised = unicodedata.normalize("NFKC", path.read_text())
    plain = pybpe.train(iter([normalised]), vocab_size=290, special_tokens=SPECIALS)
    assert tok.merges == plain.merges
    pybpe.binarize(tok, path, tmp_path / "out", splits=(1,), eot="none")
    assert tokens_of(tmp_path / "out", "train") == tok.encode(path.read_text()) == plain.encode(normalised)


# ---------------------------------------------------------------------------------------------------
# The normalizer of the C library against Hugging Face's, on every code point, every pair, and hostile texts

FORMS = ["NFC", "NFKC"]
# Unicode puts nothing into the planes between, of which these are some.
_PLANES = (range(0xD800), range(0xE000, 0x32400), range(0x32400, 0xE0000, 97), range(0xE0000, 0xE0200),
           range(0xE0200, sys.maxunicode + 1, 97))  # fmt: skip
CODE_POINTS = [chr(i) for part in _PLANES for i in part]


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
    for round_ in range(1500):
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
    """Tests 4.8 MB of marks, each after one of a higher class: sorting by exchanging neighbors would never end."""
    many = 600_000
    found = normalize.normalize(("a" + "\u0345\u0301\u0323\u0334" * many).encode(), "NFC")
    assert bytes(found).decode() == (
        "\u1ea1" + "\u0334" * many + "\u0323" * (many - 1) + "\u0301" * many + "\u0345" * many
    )


def test_what_is_normalized_is_not_copied() -> None:
    for data in (english().encode(), chinese().encode(), b"", b"\xff\xfe", "\uac00\uac01".encode()):
        assert _binding.normalize(data, "NFC") is data


def test_ids_do_not_depend_on_the_unicode_of_python() -> None:
    """U+1ABF is a mark since Unicode 13, and U+1F16D has a decomposition since: Hugging Face leaves both alone."""
    for form in FORMS:
        for text in ("a\u1abf\u0323", "a\u0301\u1abf", "\U0001f16d", "\u32ff"):
            check(text, form)
    tok = pybpe.train(iter(["a\u1abf\u0323" * 5]), vocab_size=256, normalizer="NFC")
    assert tok.decode(tok.encode("a\u1abf\u0323")) == "a\u1abf\u0323"
