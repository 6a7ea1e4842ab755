"""Filters: comparison with measures by their definitions; the published limits on good and bad texts, also Chinese."""

import inspect
import re
from pathlib import Path

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference.corpus import measures
from texts import english

import pybpe
from pybpe import _binding
from pybpe.cli import main
from pybpe.corpus import Filters
from pybpe.corpus.filters import Measures, characters, check_texts

PIECES = st.sampled_from(
    [
        "the ", "cat", " sat", "The", " ", "\n", "\n\n", "12", "a1", "中", "文字", "ไทย", "é", "e\u0301", "#", "...",
        "，", "İ", "Σ", "ος ", "\x00", "\x1c", "\u2028", " \n\t\n", "\u2022 ", "\u2026", "x" * 27, "\udcff",
        "\udce4\udcb8",
    ]
)  # fmt: skip
TEXTS = st.lists(st.lists(PIECES, max_size=40).map("".join), min_size=1, max_size=5)
STORY = (
    "The old harbour was quiet when the boats came home. Nobody had waited for them, except two children who sat on\n"
    "the wall and counted masts until it grew dark. Their mother called from a window, and they ran up the hill,\n"
    "talking about storms, whales and the price of rope. Next morning everything smelled of fish and wet wood again."
)
CHINESE_STORY = (
    "清晨的港口很安静，渔船陆续回来，岸上没有人等候，只有两个孩子坐在墙头数着桅杆，一直数到天黑。母亲从窗口喊他们回家，"
    "他们便跑上山坡，一路谈论风暴、鲸鱼和绳子的价钱。\n第二天早晨，到处又弥漫着鱼腥和湿木头的气味，老人们修补渔网，"
    "说起从前的海难，孩子们听得入神，忘了上学的时间。"
)


@given(TEXTS)
@example(["", " ", "a"])
@example(["中文中文中文 abc", "the cat the cat the cat", "İİ İİ"])
@example(["a b a b a b a b c a b a b a b a b", "a a a a a a a a a a", "x\n\nx\n \ny\nx\n\ny\n...\n"])
def test_measures_are_what_they_are_defined_to_be(texts: list[str]) -> None:
    """Bytes that are not UTF-8 are escaped as lone surrogates for the reference."""
    expected = [measures(text) for text in texts]
    names = sorted({name for values in expected for name in values})
    encoded = _binding.Strings([text.encode("utf-8", "surrogateescape") for text in texts])
    found = Measures(encoded, names)
    assert Measures(encoded, ["chars"]).value("chars").tolist() == found.value("chars").tolist()  # C reads no words
    for name in names:
        wanted = [values.get(name, numpy.nan) for values in expected]
        numpy.testing.assert_allclose(found.value(name), wanted, err_msg=name)


@pytest.fixture
def new_tables() -> None:
    """Makes the tables of characters again, so that a test notices a fault that mutation puts into them."""
    characters.cache_clear()


def test_letters_of_scripts_without_spaces_are_words_of_their_own(new_tables: None) -> None:
    """The first and the last of each range: a letter that follows one of them is of another script."""
    unspaced = "\u0f00\u1000\u1780\u3005\u31a0\u31f0\u3400\u4e00\uf900\uff66\U0001b000\U00020000"
    others = "\u10a0\ua4d0\ufb00\uffa0\U0001b170"
    selectors = "\U000e0100\U000e01ef"  # marks of the letter before them; no letter follows them
    for some, words in ((unspaced, 3), (others + selectors, 1), ("\U000e01f0", 2)):
        found = Measures(check_texts([f"a{c}a" for c in some]), ["chars", "words"])
        assert set(found.value("words")) == {words}


def test_words_are_equal_in_any_case_and_in_any_iterable(new_tables: None) -> None:
    texts = ["Жук жук ЖУК", "Ÿa ÿa", "Жук лук"]
    assert Measures(check_texts(iter(texts)), ["repeated_words"]).value("repeated_words").tolist() == [1, 1, 0.5]


def test_ngrams_of_a_long_text() -> None:
    """So many n-grams that C counts them in several parts. All words have two characters."""
    numbers = numpy.random.default_rng(5).integers(26 * 26, size=1_300_000)
    letters = (
        numpy.stack([numbers // 26, numbers % 26, numpy.full(len(numbers), ord(" ") - 97)], axis=1) + 97
    ).tobytes()
    text = letters[::8]  # the low bytes of int64
    triples = (numbers[:-2] * 676 + numbers[1:-1]) * 676 + numbers[2:]
    _, first, counts = numpy.unique(triples, return_index=True, return_counts=True)
    found = Measures(_binding.Strings([text]), ["top_ngrams_3", "repeated_ngrams_3"])
    repeats = numpy.ones(len(triples), dtype=bool)
    repeats[first] = False
    covered = numpy.zeros(len(numbers), dtype=bool)
    for offset in range(3):
        covered[offset : offset + len(triples)] |= repeats
    assert found.value("top_ngrams_3")[0] == counts.max() * 3 / len(numbers)
    assert found.value("repeated_ngrams_3")[0] == covered.mean() > 0


def test_a_share_that_is_exactly_the_limit_is_kept() -> None:
    """As 1 - 7 / 10, the share of 3 repeats in 10 lines was above 0.3."""
    text = "\n".join([*"abcdefg", *"abc"])
    assert Filters(max_repeated_lines=0.3, max_repeated_line_chars=0.3).reasons([text]) == [None]
    assert Filters(max_repeated_lines=0.29).reasons([text]) == ["max_repeated_lines"]


def test_a_capital_with_a_longer_lowercase_changes_no_other_text() -> None:
    """One U+0130 made all texts of its batch differ by case."""
    assert Filters(min_distinct_words=2).reasons(["İ", "the The", "İ i\u0307 the The THE"]) == [
        "min_distinct_words",
        "min_distinct_words",
        None,
    ]


def test_the_published_limits_keep_prose() -> None:
    prose = [STORY, CHINESE_STORY]
    assert Filters.gopher().reasons(prose) == [None, None]
    assert Filters.fineweb(max_short_lines=1).reasons(prose) == [None, None]


def test_one_limit_on_symbols_keeps_prose_of_both_languages_and_drops_code() -> None:
    code = inspect.getsource(Measures)
    assert Filters(max_symbol_ratio=0.12).reasons([STORY, CHINESE_STORY, code]) == [None, None, "max_symbol_ratio"]


@pytest.mark.parametrize(
    "limits, keeps, drops",
    [
        ({"min_chars": 5}, "12345", "1234"),
        ({"max_chars": 5}, "12345", "123456"),
        ({"min_words": 3}, "a b c", "a b"),
        ({"min_words": 3}, "一二三四五六", "一二三四五"),
        ({"max_digit_ratio": 0.5}, "a 1", "a 12"),
        ({"max_digit_ratio": 0.5}, "中1", "中12"),
        ({"max_symbol_ratio": 0.5}, "a.", "a.;"),
        ({"max_symbol_ratio": 0.2}, "你好，世界。再见，朋友。", "你好，世界。。，"),
        ({"min_distinct_words": 3}, "a b c", "a b A"),
        ({"max_repeated_words": 0.5}, "a b a b", "a b a a"),
        ({"max_repeated_lines": 0.5}, "x\nx\ny\ny", "x\nx\nx\n\ny\ny"),
        ({"max_repeated_paragraphs": 0.4}, "x\ny\n\nz\nz", "x\n\nx"),
        ({"max_mean_word_length": 4}, "four four", "fives fives"),
        ({"max_mean_word_length": 4}, "中文文字没有空格", "fives"),
        ({"max_short_lines": 0.5}, "a" * 30, "a" * 29),
        ({"max_short_lines": 0.5}, "中" * 15, "中" * 14),
        ({"min_terminal_lines": 0.5}, "So.\nno", "so\nno\nyes."),
        ({"min_terminal_lines": 0.5}, "好。", "好"),
        ({"max_top_ngrams": {2: 0.5}}, "a b c d a b e f", "a b a b c"),
        ({"max_repeated_ngrams": {2: 0.3}}, "a b c d a b e f", "a b c a b"),
    ],
)
def test_each_limit_by_hand(limits: dict[str, object], keeps: str, drops: str) -> None:
    filters = Filters(**limits)  # type: ignore[arg-type]
    (name, _), *_ = filters.limits()
    assert filters.reasons([keeps, drops]) == [None, name]


def test_texts_do_not_influence_each_other() -> None:
    texts = [STORY, "", CHINESE_STORY, "x", STORY, english()[:5000]]
    filters = Filters.fineweb()
    assert filters.reasons(texts) == [filters.reasons([text])[0] for text in texts]


def test_the_published_limits() -> None:
    gopher: dict[str, float] = {
        **{"min_words": 50, "max_words": 100_000, "min_mean_word_length": 3, "max_mean_word_length": 10},
        **{"max_hashes_per_word": 0.1, "min_alphabetic_words": 0.8, "max_repeated_lines": 0.3},
        **{"max_repeated_line_chars": 0.2, "max_repeated_paragraphs": 0.3, "max_repeated_paragraph_chars": 0.2},
        **{"max_top_ngrams_2": 0.2, "max_top_ngrams_3": 0.18, "max_top_ngrams_4": 0.16},
        **{f"max_repeated_ngrams_{n}": (20 - n) / 100 for n in range(5, 11)},
        **{"max_bullet_lines": 0.9, "max_ellipsis_lines": 0.3},
    }
    fineweb = {**gopher, "max_repeated_line_chars": 0.1, "max_short_lines": 0.67, "min_terminal_lines": 0.12}
    assert dict(Filters.gopher().limits()) == gopher and dict(Filters.fineweb().limits()) == fineweb


def test_limits_at_the_ends_of_their_ranges() -> None:
    limits = Filters(max_digit_ratio=0, min_words=3, max_words=3, max_top_ngrams={1: 0.5})
    assert limits.reasons(["a b c", "a b", "a b c d", "a b 1", "a a a"]) == [
        *[None, "min_words", "max_words", "max_digit_ratio", "max_top_ngrams_1"]
    ]


def test_no_limits_and_no_texts() -> None:
    assert Filters().reasons([STORY]) == [None]
    assert Filters.gopher().reasons([]) == []


@pytest.mark.parametrize("limits", [{"min_chars": -1}, {"max_digit_ratio": "x"}, {"min_words": 9, "max_words": 8}])
def test_wrong_limits(limits: dict[str, object]) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="chars|digit|words"):
        Filters(**limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [0, -1, 1001, 1.5, "2"])
def test_n_of_ngrams_is_checked(n: object) -> None:
    """0 and -1 raised a numpy error at the first text; a huge number took as many bytes of memory."""
    for name in ("max_top_ngrams", "max_repeated_ngrams"):
        with pytest.raises(pybpe.errors.ArgumentError, match=f"n of {name} must be"):
            Filters(**{name: {n: 0.5}})  # type: ignore[arg-type]
        with pytest.raises(pybpe.errors.ArgumentError, match=f"{name} must be limits by n"):
            Filters(**{name: 0.5})  # type: ignore[arg-type]
    assert Filters(max_top_ngrams={1000: 0.5}).reasons(["a b"]) == [None]


def test_limits_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    for limits in (Filters.gopher(), Filters.fineweb(min_chars=3), Filters()):
        path.write_text(limits.to_toml())
        assert Filters.from_file(path) == limits
    with pytest.raises(SystemExit) as ended:
        main(["corpus", "--print-filters", "fineweb"])
    assert ended.value.code == 0 and capsys.readouterr().out == Filters.fineweb().to_toml()
    for text, message in (
        ("min_char = 3", "mine.toml: min_char is not a limit; did you mean min_chars?"),
        ("[gopher]\nmin_chars = 3", "mine.toml: gopher is not a limit"),
        ("min_chars = 'x'", "mine.toml: min_chars must be a number"),
        ("max_top_ngrams = {x = 3}", "mine.toml: n of max_top_ngrams must be"),
    ):
        path.write_text(text)
        with pytest.raises(pybpe.errors.ArgumentError, match=re.escape(message)):
            Filters.from_file(path)
    path.write_text("min_chars = 5")
    (tmp_path / "in.jsonl").write_text('{"text": "abc"}\n{"text": "abcdef"}\n')
    words = ["corpus", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), "--filters", str(path)]
    for more, kept in (([], 1), (["--min-chars", "1", "--force"], 2)):
        assert main([*words, *more, "--quiet"]) == 0
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == kept


def test_what_are_no_texts() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="not one str"):
        Filters(min_words=2).reasons("a b")
    with pytest.raises(pybpe.errors.ArgumentError, match="a text must be a str, not bytes"):
        Filters(min_words=2).reasons([b"a b"])  # type: ignore[list-item]


def test_a_limit_of_a_share_is_at_most_one() -> None:
    for name in ("max_digit_ratio", "max_symbol_ratio", "min_alphabetic_words", "max_repeated_lines"):
        Filters(**{name: 1})
        with pytest.raises(pybpe.errors.ArgumentError, match=f"{name} is a share"):
            Filters(**{name: 1.01})
    Filters(max_words=5, max_mean_word_length=5, max_hashes_per_word=5, min_distinct_words=5, max_chars=5)
