"""Added tokens of a tokenizer.json: they get the ids that Hugging Face gives them, or pybpe refuses the file."""

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import pybpe
from pybpe.formats import added_tokens, byte_level

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {byte_level.BYTE_TO_CHAR[i]: i for i in range(256)}


def added(i: Any, text: str, **flags: Any) -> dict[str, Any]:
    every = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": i, "content": text, **every, **flags}


def file(vocab: dict[str, int], tokens: list[dict[str, Any]], normalizer: str | None = None, **model: Any) -> str:
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": normalizer and {"type": normalizer},
        "pre_tokenizer": BYTE_LEVEL,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": {"type": "BPE", "vocab": vocab, "merges": [], **model},
    }
    return json.dumps(data)


def load(text: str, tmp_path: Path) -> pybpe.Tokenizer:
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    return pybpe.Tokenizer.from_file(path)


def same(ours: pybpe.Tokenizer, text: str, texts: list[str]) -> None:
    theirs = tokenizers.Tokenizer.from_str(text)
    for sample in texts:
        assert ours.encode(sample) == theirs.encode(sample, add_special_tokens=False).ids, (text, sample)


@pytest.mark.parametrize(
    ("vocab", "tokens", "message"),
    [
        ({}, [added(300, "<a>")], "'<a>' has id 300, but Hugging Face ignores that and assigns 256"),
        ({}, [added(257, "<a>"), added(256, "<b>")], "'<a>' has id 257, .* assigns 256"),
        ({}, [added(256, "<a>"), added(258, "<b>")], "'<b>' has id 258, .* assigns 257"),
        ({"<a>": 300}, [added(300, "<a>"), added(257, "<b>")], "'<b>' has id 257, .* assigns 257 or 301"),
        ({"ab": 256}, [added(256, "<a>")], "id 256 is used twice"),
        ({"ab": 258}, [added(256, "<a>")], "'<a>' has id 256, .* assigns 257"),
        ({"<a>": 256}, [added(257, "<a>")], "the vocabulary gives it 256"),
        (
            {},
            [added(256, "<a>"), added(256, "<a>", special=False)],
            "'<a>' occurs twice, with different ids",
        ),
        ({}, [added(256, "<a>"), added(257, "<a>")], "'<a>' occurs twice, with different ids"),
        ({}, [added(256, "<a>", special=1)], "'special' must be of type bool"),
        ({}, [added(256.0, "<a>")], "'id' must be of type int"),
    ],
)
def test_other_ids_than_hugging_face_gives_are_refused(
    vocab: dict[str, int], tokens: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(pybpe.errors.FormatError, match=message):
        load(file({**BYTES, **vocab}, tokens), tmp_path)


@pytest.mark.parametrize(
    ("vocab", "tokens"),
    [
        ({}, [added(256, "<a>"), added(256, "<a>"), added(257, "<b>")]),
        ({"<b>": 300}, [added(257, "<a>"), added(300, "<b>")]),
        ({"<b>": 256}, [added(256, "<b>"), added(257, "<a>")]),
        ({"<b>": 256}, [added(257, "<a>"), added(256, "<b>"), added(258, "<c>", special=False)]),
        ({}, [added(256, ""), added(256, "<a>")]),
        ({"<b>": 257, "<a>": 256}, [added(257, "<b>"), added(256, "<a>")]),
    ],
)
def test_what_hugging_face_takes_as_it_is(vocab: dict[str, int], tokens: list[dict[str, Any]], tmp_path: Path) -> None:
    text = file({**BYTES, **vocab}, tokens)
    same(load(text, tmp_path), text, ["<a>x<b> <a><c>", ""])


def random_file(rng: random.Random) -> str:
    """Returns a file with some tokens in the vocabulary and some added, mostly with the correct ids."""
    names = ["<a>", "<b>", "<c>", "Ġfoo", "foo", "a>b", "ÃŃ", "é", "Ġ"]
    ids = iter(rng.sample(range(256, 262), 6) if rng.random() < 0.3 else range(256, 262))
    vocab = {**BYTES, **{name: next(ids) for name in rng.sample(names, rng.randrange(4)) if name != "Ġ"}}
    tokens, next_id = [], len(vocab)
    for name in rng.sample(names, rng.randrange(5)):
        i = vocab.get(name, next_id)
        next_id += name not in vocab
        if rng.random() < 0.1:
            i += rng.choice((-1, 1))
        tokens.append(added(i, name, normalized=rng.random() < 0.2, special=rng.random() < 0.7))
    normalizer = rng.choice((None, None, "NFC", "NFKC"))
    return file(vocab, tokens, normalizer, ignore_merges=rng.random() < 0.5)


@pytest.mark.slow
def test_random_files_give_the_ids_of_hugging_face_or_are_refused(tmp_path: Path) -> None:
    rng = random.Random(11)
    pieces = [
        "<a>", "<b>", "<c>", " foo", "foo", "ｆｏｏ", "a>b", "í", "é", "e\u0301", "Ġ", "Ġfoo", "Ã", " ", "x", "\ufb01",
    ]  # fmt: skip
    texts = ["".join(rng.choices(pieces, k=rng.randrange(8))) for _ in range(40)] + pieces
    read = 0
    for _ in range(600):
        text = random_file(rng)
        try:
            ours = load(text, tmp_path)
        except pybpe.errors.FormatError:
            continue
        read += 1
        same(ours, text, texts)
        with contextlib.suppress(pybpe.errors.UnsupportedError):
            same(ours, ours.to_hf().to_str(), texts)
    assert 200 < read < 550


def test_with_ignore_merges_an_added_token_is_no_word(tmp_path: Path) -> None:
    """Hugging Face looks words up in the vocabulary, where the added token is too."""
    for name, normalizer in (("foo", "NFKC"), ("Ġfoo", None), ("Ġfoo", "NFC")):
        vocab = {**BYTES, name: 256}
        with pytest.raises(pybpe.errors.FormatError, match=f"returns the added token '{name}', .* for a word or byte"):
            load(file(vocab, [added(256, name)], normalizer, ignore_merges=True), tmp_path)
        load(file(vocab, [added(256, name)], normalizer, ignore_merges=False), tmp_path)
        apart = file(BYTES, [added(256, name)], normalizer, ignore_merges=True)
        ours = load(apart, tmp_path)
        same(ours, apart, ["foo ｆｏｏ Ġfoo"])
        with pytest.raises(pybpe.errors.UnsupportedError, match=f"the special token '{name}' for a word or byte"):
            ours.save(tmp_path / "again.json")


def test_with_ignore_merges_a_single_word_may_be_a_part_of_a_word(tmp_path: Path) -> None:
    vocab = {**BYTES, "ab": 256}
    entry = added(256, "ab", single_word=True)
    text = file(vocab, [entry], None, ignore_merges=True)
    assert tokenizers.Tokenizer.from_str(text).encode("1ab").ids[-1] == 256
    with pytest.raises(pybpe.errors.FormatError, match="returns the added token 'ab', .* for a word or byte"):
        load(text, tmp_path)
    ours = load(file(BYTES, [entry], None, ignore_merges=True), tmp_path)
    assert ours.encode("1ab")[1:] == ours.encode("a") + ours.encode("b")
    with pytest.raises(pybpe.errors.UnsupportedError, match="the special token 'ab' for a word or byte"):
        ours.save(tmp_path / "again.json")


@pytest.mark.parametrize("around", ["1ab2", "1a"])
def test_with_ignore_merges_a_single_word_passes_over_a_token_that_it_overlaps(around: str, tmp_path: Path) -> None:
    vocab = {**BYTES, "ab": 256}
    text = file(vocab, [added(256, "ab"), added(257, around, single_word=True)], None, ignore_merges=True)
    assert 256 in tokenizers.Tokenizer.from_str(text).encode("z1ab2").ids
    with pytest.raises(pybpe.errors.FormatError, match="returns the added token 'ab', .* for a word or byte"):
        load(text, tmp_path)


def test_an_added_token_is_no_byte(tmp_path: Path) -> None:
    """Hugging Face begins with the tokens of single bytes, of which the added token may be one."""
    for name, normalizer in (("Ġ", None), ("Ã", None), ("a", "NFKC")):
        others = {char: i for char, i in BYTES.items() if char != name}
        text = file({**others, name: 256}, [added(256, name)], normalizer)
        with pytest.raises(pybpe.errors.FormatError, match=f"returns the added token '{name}', .* for a word or byte"):
            load(text, tmp_path)
    others = {char: i for char, i in BYTES.items() if char != "a"}
    text = file({**others, "a": 256}, [added(256, "a")])  # in a text, this is always the added token
    same(load(text, tmp_path), text, ["a bab"])


# ----------------------------------------------------------------------------------------------------
# Overlapping ones


def overlap(a: str, b: str) -> bool:
    """Returns whether a text can contain both tokens at overlapping places."""
    return a in b or b in a or any(a.endswith(b[:n]) or b.endswith(a[:n]) for n in range(1, min(len(a), len(b))))


def test_overlaps_are_those_of_looking_at_each_pair() -> None:
    rng = random.Random(2)
    clashes = 0
    for _ in range(3000):
        letters = "ab" if rng.random() < 0.5 else "abcdefg"
        some, others = (
            ["".join(rng.choices(letters, k=rng.randint(1, 5))) for _ in range(rng.randint(1, 4))] for _ in range(2)
        )
        found = added_tokens.first_overlap(some, others) or added_tokens.first_overlap(others, some)
        assert (found is not None) == any(overlap(a, b) for a in some for b in others)
        if found is not None:
            clashes += 1
            a, b = found
            assert overlap(a, b) and ((a in some and b in others) or (a in others and b in some))
    assert 500 < clashes < 2950
