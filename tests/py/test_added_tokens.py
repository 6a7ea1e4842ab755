"""Added tokens of a tokenizer.json: their ids, their flags (lstrip, rstrip, single_word, normalized), and the space
that add_prefix_space puts before each text between them. pybpe does what Hugging Face does, or refuses the file."""

import contextlib
import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from c_tokenizer import CTokenizer
from pipelines import DIGITS, LLAMA3, WITH_REGEX, WITHOUT_REGEX, added, sequence, split, splits
from test_hf_import import changed

import pybpe
from pybpe.analysis.comparison import differences, differences_on
from pybpe.cli import main
from pybpe.formats import tokenizer_json, vocab_merges
from pybpe.model import Matching, matcher
from pybpe.tokenizer.encoding import TextEncoder
from pybpe.tokens.verification import verify
from pybpe.viz import tokenizer_data

BYTES = {vocab_merges.BYTE_TO_CHAR[i]: i for i in range(256)}


def file_of(vocab: dict[str, int], tokens: list[dict[str, Any]], normalizer: str | None = None, **model: Any) -> str:
    """Returns a tokenizer.json without merges."""
    given = {"vocab": vocab, "merges": [], **model}
    return changed(model=given, added_tokens=tokens, normalizer=normalizer and {"type": normalizer})


# ----------------------------------------------------------------------------------------------------
# Ids


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
        ({}, [added(256, "<a>"), added(256, "<a>", special=False)], "'<a>' occurs twice, with different ids"),
        ({}, [added(256, "<a>"), added(257, "<a>")], "'<a>' occurs twice, with different ids"),
        ({}, [added(256, "<a>", special=1)], "'special' must be of type bool"),
        ({}, [added(256.0, "<a>")], "'id' must be of type int"),
    ],
)
def test_other_ids_than_hugging_face_gives_are_refused(
    vocab: dict[str, int], tokens: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(pybpe.errors.FormatError, match=message):
        load(file_of({**BYTES, **vocab}, tokens), tmp_path)


@pytest.mark.parametrize(
    ("vocab", "tokens"),
    [
        ({}, [added(256, "<a>"), added(256, "<a>"), added(257, "<b>")]),
        ({"<b>": 300}, [added(257, "<a>"), added(300, "<b>")]),
        ({"<b>": 256}, [added(256, "<b>"), added(257, "<a>")]),
        ({"<b>": 256}, [added(257, "<a>"), added(256, "<b>"), added(258, "<c>", special=False)]),
        ({}, [added(256, ""), added(256, "<a>")]),
        ({"<b>": 257, "<a>": 256}, [added(257, "<b>"), added(256, "<a>")]),
        ({"a": 256}, [added(256, "a")]),  # no token is this byte; in a text, it is always the added token
    ],
)
def test_what_hugging_face_takes_as_it_is(vocab: dict[str, int], tokens: list[dict[str, Any]], tmp_path: Path) -> None:
    text = file_of({**BYTES, **vocab}, tokens)
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
    return file_of(vocab, tokens, normalizer, ignore_merges=rng.random() < 0.5)


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


@pytest.mark.parametrize("ignore_merges", [True, False])
@pytest.mark.parametrize(
    ("names", "normalizer", "flags"),
    [
        (["foo"], "NFKC", {}),
        (["Ġfoo"], None, {}),
        (["Ġfoo"], "NFC", {}),
        (["ab"], None, {"single_word": True}),
        (["ab", "1ab2"], None, {}),
        (["ab", "1a"], None, {}),
        (["Ġ"], None, {}),
        (["Ã"], None, {}),
        (["a"], "NFKC", {}),
    ],
)
def test_an_added_token_is_no_word_and_no_byte(
    names: list[str], normalizer: str | None, flags: dict[str, bool], ignore_merges: bool, tmp_path: Path
) -> None:
    """Hugging Face looks up bytes, and with ignore_merges words, in the vocabulary, where the added token is too. A
    second added token is a single word, so that it passes over the first one, which it overlaps."""
    tokens = [added(256, names[0], **flags), *(added(257, name, single_word=True) for name in names[1:])]
    text = file_of({**BYTES, names[0]: 256}, tokens, normalizer, ignore_merges=ignore_merges)
    if ignore_merges or names[0] in BYTES:
        with pytest.raises(
            pybpe.errors.FormatError, match=f"returns the added token '{names[0]}', .* for a word or byte"
        ):
            load(text, tmp_path)
    else:
        load(text, tmp_path)


@pytest.mark.parametrize(
    ("tokens", "refused"),
    [
        ([{"content": "ab"}], ""),
        ([{"content": "ab", "normalized": True}, {"content": "xx"}], ""),
        ([{"content": "ab", "rstrip": True}, {"content": "abab"}], ""),
        ([{"content": "bc", "normalized": True}, {"content": "abc"}], ""),
        ([{"content": "ab", "single_word": True}], "'a' . 'b': an added token cannot be in a merge"),
        ([{"content": "xx", "single_word": True}], "'x' . 'x': an added token"),
        ([{"content": "Ġab"}], "'Ġ' . 'ab': an added token"),
    ],
)
@pytest.mark.parametrize("whole_words", [False, True])
def test_an_added_token_that_a_merge_makes(
    tokens: list[dict[str, Any]], refused: str, whole_words: bool, tmp_path: Path
) -> None:
    """The merge has no effect if the token is always found before words are merged."""
    vocab, merges = dict(BYTES), ["a b", "ab c", "b c", "a bc", "Ġ ab", "x x", "xx ab", "ab ab"]
    for merge in merges:
        vocab.setdefault(merge.replace(" ", ""), len(vocab))
    entries = [{**added(vocab[token["content"]], ""), **token} for token in tokens]
    text = file_of(vocab, entries, merges=merges, ignore_merges=whole_words)
    if refused:
        with pytest.raises(pybpe.errors.FormatError, match=refused):
            load(text, tmp_path)
        return
    rng = random.Random(2)
    samples = ["".join(rng.choices("abcx Ġ", k=rng.randint(0, 12))) for _ in range(500)]
    ours = load(text, tmp_path)
    same(ours, text, samples)
    ours.save(tmp_path / "again.json")
    again = (tmp_path / "again.json").read_text()
    same(ours, again, samples)
    assert load(again, tmp_path) == ours


def test_a_token_that_would_be_a_word_in_a_saved_file_is_refused(tmp_path: Path) -> None:
    text = file_of(BYTES, [added(256, "foo")], "NFKC", ignore_merges=True)
    same(ours := load(text, tmp_path), text, ["foo ｆｏｏ Ġfoo"])
    with pytest.raises(pybpe.errors.UnsupportedError, match="the special token 'foo' for a word or byte"):
        ours.save(tmp_path / "again.json")


def overlap(a: str, b: str) -> bool:
    """Returns whether a text can contain both tokens at overlapping places."""
    return a in b or b in a or any(a.endswith(b[:n]) or b.endswith(a[:n]) for n in range(1, min(len(a), len(b))))


def test_overlaps_are_those_of_looking_at_each_pair() -> None:
    rng = random.Random(2)
    clashes = 0
    for _ in range(1500):
        letters = "ab" if rng.random() < 0.5 else "abcdefg"
        some, others = (
            ["".join(rng.choices(letters, k=rng.randint(1, 5))) for _ in range(rng.randint(1, 4))] for _ in range(2)
        )
        found = tokenizer_json.first_overlap(some, others) or tokenizer_json.first_overlap(others, some)
        assert (found is not None) == any(overlap(a, b) for a in some for b in others)
        if found is not None:
            clashes += 1
            a, b = found
            assert overlap(a, b) and ((a in some and b in others) or (a in others and b in some))
    assert 250 < clashes < 1475


# ----------------------------------------------------------------------------------------------------
# Flags


FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
TEXTS = [
    *("<m>", "<mask>", "<mask>>", "mask", "cd", "cda", "dab", "bcd", "_x", "x9", "9-", "<|end|>", "[x]", "||"),
    *("  ", "\n\n", " m", "m ", "ő", "x\u0301", "中", "\u3000", "--", "KK", "\u200d"),
]
PARTS = [
    *TEXTS,
    *(
        " ", "  ", "\t", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u202f",
        "\u3000",
    ),
    *("a", "b", "c", "d", "x", "_", "1", "٣", "½", "Ⅷ", "Ⓐ", "ß", "\u0301", "\u0903", "\u200c", "\u200b", "\ufeff"),
    *("<", ">", ".", "-", "'", "中文", "👍", "\U0001d7ce", "\u037e", "\u212a", "\u0338", "=", "\u203f", "ª"),
]  # fmt: skip


def token(text: str, **flags: Any) -> dict[str, Any]:
    return {"content": text, **dict.fromkeys(FLAGS, False), "special": True, **flags}


MERGES = ["Ġ Ġ", "Ġ <", "Ġ a", "a b", "> Ġ", "m a", "Ġ m", "s k", "Ċ Ċ"]


def file(
    tokens: Sequence[dict[str, Any]], pre_tokenizer: dict[str, Any] = WITH_REGEX, normalizer: str | None = None
) -> str:
    """Returns a tokenizer.json with a few merges, so that words matter."""
    vocab = {char: i for i, char in enumerate(vocab_merges.CHAR_TO_BYTE)}
    for text in [merge.replace(" ", "") for merge in MERGES] + [token["content"] for token in tokens]:
        vocab[text] = len(vocab)
    parts = {"normalizer": normalizer and {"type": normalizer}, "decoder": WITH_REGEX}
    entries = [each | {"id": vocab[each["content"]]} for each in tokens]
    return changed(pre_tokenizer, {"vocab": vocab, "merges": MERGES}, added_tokens=entries, **parts)


def random_tokens(rng: random.Random) -> list[dict[str, Any]]:
    names = rng.sample(TEXTS, rng.randint(1, 6))
    rate = rng.choice([0.1, 0.4, 0.8])
    return [token(name, **{flag: rng.random() < rate for flag in FLAGS}) for name in names]


def random_texts(rng: random.Random, names: Sequence[str], count: int) -> list[str]:
    parts = [*PARTS, *list(names) * 8, *[" "] * 8]
    return ["".join(rng.choices(parts, k=rng.randint(0, 24))) for _ in range(count)]


Case = tuple[str, pybpe.Tokenizer, tokenizers.Tokenizer, list[str], list[str]]
PLAIN = [WITH_REGEX, sequence(DIGITS, WITH_REGEX), splits(LLAMA3)]
PREFIX = {**WITH_REGEX, "add_prefix_space": True}
BYTES_FIRST = {**WITHOUT_REGEX, "add_prefix_space": True}
PREFIXED = [
    PREFIX,
    sequence(PREFIX),
    sequence(PREFIX, DIGITS),
    sequence(BYTES_FIRST, split("Ġ", "MergedWithNext")),
    sequence(PREFIX, {**DIGITS, "individual_digits": False}, split("[0-9][0-9][0-9]")),
]


def cases(seed: int, count: int, normalizer: str | None = None, prefix: bool = False) -> list[Case]:
    """Returns random tokenizers that pybpe accepts, as a file and as objects of both libraries, with the added tokens
    and with texts. Few must be refused."""
    rng = random.Random(seed)
    found: list[Case] = []
    tried = 0
    while len(found) < count:
        tried += 1
        tokens = random_tokens(rng)
        text = file(tokens, rng.choice(PREFIXED if prefix else PLAIN), normalizer)
        theirs, names = tokenizers.Tokenizer.from_str(text), [token["content"] for token in tokens]
        try:
            ours = pybpe.Tokenizer.from_hf(theirs)
        except pybpe.errors.FormatError as error:
            assert "begins with white space" in str(error) or "there is a normalizer" in str(error)
            continue
        assert ours.model.prefix_space == prefix
        found.append((text, ours, theirs, names, random_texts(rng, names, 30)))
    assert tried < (2 if normalizer is None else 12) * count
    return found


def test_saved_files_keep_the_flags_and_c_finds_the_same(tmp_path: Path) -> None:
    for file_text, ours, theirs, names, texts in cases(1, 40):
        ours.save(tmp_path / "t.json")
        ours.save_pretrained(tmp_path / "folder")
        copies = [pybpe.Tokenizer.from_file(tmp_path / name) for name in ("t.json", "folder")]
        assert all(copy == ours and copy.model.matching == ours.model.matching for copy in copies)
        in_c, saved = CTokenizer(file_text.encode()), tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
        for text in texts:
            expected = theirs.encode(text, add_special_tokens=False).ids
            assert ours.encode(text) == in_c.encode(text) == expected, (names, text)
            assert saved.encode(text, add_special_tokens=False).ids == expected, (names, text)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("normalizer", [None, "NFC", "NFKC"])
def test_ids_and_offsets_are_those_of_hugging_face(normalizer: str | None, prefix: bool) -> None:
    kinds, again = set(), 0
    for file_text, ours, theirs, names, texts in cases(2, 60, normalizer, prefix):
        texts += ["", " ", "a", "\u00a0a", "\n", "\u3000 x", "\u2000x", "é", "e\u0301 x"]
        encodings = theirs.encode_batch(texts, add_special_tokens=False)
        expected = [encoding.ids for encoding in encodings]
        assert ours.encode_batch(texts) == expected, names
        if "MergedWithNext" not in file_text:  # of the pre_tokenizers, C does not know this one
            in_c = CTokenizer(file_text.encode())
            assert [in_c.encode(text) for text in texts] == expected, names
        ids, rows = ours.encode_batch_to_numpy(texts, 2)
        assert [ids[a:b].tolist() for a, b in pairwise(rows)] == expected
        specials = set(ours.special_tokens.values())
        for text, encoding in zip(texts, encodings, strict=True):
            assert ours.encode(text) == encoding.ids == ours.encode_to_numpy(text).tolist(), (names, text)
            assert ours.count(text) == len(encoding.ids)
            assert ours.decode(encoding.ids) == theirs.decode(encoding.ids, skip_special_tokens=False)
            again += ours.model.encodes_again(encoding.ids)
            if (normalizer is None or (prefix and normalizer == "NFC")) and ours.model.encodes_again(encoding.ids):
                assert ours.encode(ours.decode_bytes(encoding.ids)) == encoding.ids, (names, text)
            spans = ours.encode_with_offsets(text)
            assert spans.ids == encoding.ids and all(a[1] == b[0] for a, b in pairwise(spans.byte_spans))
            if normalizer is None:
                kinds |= {ours.model.matching.get(name) for name in names if ours.special_tokens[name] in encoding.ids}
                compared = specials if not prefix else set(encoding.ids)
                found = zip(encoding.ids, spans.char_spans, encoding.offsets, strict=True)
                assert all(ours_at == theirs_at for i, ours_at, theirs_at in found if i in compared), text
        assert ours.encode(texts[0], texts[1]) == theirs.encode(texts[0], texts[1], add_special_tokens=False).ids
        joined = "".join(texts)
        assert list(ours.encode_iterable(texts)) == theirs.encode(joined, add_special_tokens=False).ids
    assert again > 300 and (normalizer is not None or len(kinds) > 10)


MASK, WORD = token("<mask>", lstrip=True), token("word", single_word=True)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("normalizer", [None, "NFC"])
def test_pieces_of_any_size_give_the_ids_of_the_whole(normalizer: str | None, prefix: bool) -> None:
    """Cuts are forced as often as possible, for patterns with cuts at different places."""
    cuts = 0
    patterns = (None, "gpt2", "cl100k", r"[^\n]*\n|[^\n]+", r"\s+|\S+", r"(?:[^ ] )+|.|\n", r"(?bytes)[\xa0-\xff]")
    for _, ours, _, names, texts in cases(3, 10, normalizer, prefix):
        for pattern in patterns:
            model = ours.model if pattern is None else pybpe.Tokenizer.from_hf(ours.to_hf(), pattern=pattern).model
            encoder = TextEncoder(model, model.to_vocab())
            for sample in [*texts[:6], "".join(texts)]:
                data = sample.encode()
                ends = [*dict.fromkeys(encoder.cut(data, at) for at in range(1, len(data))), len(data)]
                parts = [data[a:b] for a, b in pairwise([0, *ends])]
                found = [encoder.encode(part, encoder.specials) for part in parts]
                assert sum(found, []) == encoder.encode(data, encoder.specials), (names, pattern, parts)
                cuts += len(parts)
    assert cuts > 1200


def test_bytes_that_are_not_utf8() -> None:
    """They are neither white space nor part of a word, so specials match around them as around any such character."""
    rng = random.Random(5)
    for _, ours, theirs, names, texts in cases(6, 30):
        specials = {ours.special_tokens[name] for name in names}
        for text in texts:
            chars = list(text)
            for _ in range(rng.randint(1, 3)):
                chars.insert(rng.randint(0, len(chars)), "\ufffd")
            bad = rng.choice([b"\xff", b"\xc3", b"\xe4\xb8", b"\x80", b"\xf0\x9f\x98"])
            data = "".join(chars).encode().replace("\ufffd".encode(), bad)
            expected = theirs.encode("".join(chars), add_special_tokens=False).ids
            assert [i for i in ours.encode(data) if i in specials] == [i for i in expected if i in specials], data


def both(
    *tokens: dict[str, Any], pre_tokenizer: dict[str, Any] = WITH_REGEX
) -> tuple[pybpe.Tokenizer, tokenizers.Tokenizer]:
    theirs = tokenizers.Tokenizer.from_str(file(tokens, pre_tokenizer))
    return pybpe.Tokenizer.from_hf(theirs), theirs


# ----------------------------------------------------------------------------------------------------
# Files


def test_white_space_that_two_tokens_would_take_is_refused(tmp_path: Path) -> None:
    """Hugging Face encodes some characters twice then. test_hf_import.py has the error for files."""
    tok, _ = both(token("<r>", rstrip=True), token(" x", normalized=True))
    assert tok.encode("<r>  x") == tok.encode("<r>x")
    with pytest.raises(pybpe.errors.ArgumentError, match="begins with white space, and special token 0 has rstrip"):
        matcher(["<r>", "\u2003"], {"<r>": Matching(rstrip=True)})


def test_disallowed_tokens_are_those_that_match() -> None:
    tok, _ = both(token("word", single_word=True, lstrip=True), token("<a>"))
    assert tok.encode("words <a>", disallowed_special={"word"}) == tok.encode("words <a>")
    with pytest.raises(pybpe.errors.ArgumentError, match="special token 'word' at byte 1"):
        tok.encode("a \t word b", disallowed_special={"word"})
    assert tok.encode("a word", allowed_special=()) == tok.encode_ordinary("a word")
    assert tok.encode("a  word<a>", allowed_special={"word"}) == [*tok.encode("a  word"), *tok.encode_ordinary("<a>")]


def test_offsets_of_many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The added spaces may be anywhere in the steps in which spans are computed."""
    ours, theirs = both(token("<m>"), pre_tokenizer=PREFIX)
    text = "é<m>word " * 40
    expected = theirs.encode(text, add_special_tokens=False).offsets
    for step in (1, 2, 3, 7):
        monkeypatch.setattr(pybpe.tokenizer.encoding, "_STEP", step)
        assert ours.encode_with_offsets(text).char_spans == expected


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for pre_tokenizer in (sequence(DIGITS, PREFIX), sequence(split(LLAMA3), BYTES_FIRST)):
        path.write_text(file([token("<m>")], pre_tokenizer))
        for pattern in (None, "gpt2"):
            with pytest.raises(pybpe.errors.FormatError, match="add_prefix_space after another step"):
                pybpe.Tokenizer.from_file(path, pattern=pattern)
    tok, _ = both(token("<m>"), pre_tokenizer=PREFIX)
    path.write_text(file([token("<m>")], PREFIX))
    other = pybpe.Tokenizer.from_file(path, pattern="llama3")
    assert other.encode("ab") == other.encode(" ab")
    with pytest.raises(pybpe.errors.UnsupportedError, match="add_prefix_space with the pattern 'llama3'"):
        other.save(path)
    plain, _ = both(token("<m>"))
    assert plain != tok and plain.encode(" ab") == tok.encode("ab") != plain.encode("ab")


def test_a_folder_with_other_settings_is_refused(tmp_path: Path) -> None:
    """transformers would follow tokenizer_config.json."""
    tok, _ = both(MASK, pre_tokenizer=PREFIX)
    tok.save_pretrained(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    facts = json.loads(config.read_text())
    i, entry = str(tok.special_tokens["<mask>"]), MASK
    config.write_text(json.dumps(facts | {"added_tokens_decoder": {i: entry}}))
    assert pybpe.Tokenizer.from_file(tmp_path) == tok
    changes = [({"add_prefix_space": None}, "add_prefix_space is .* make them equal")]
    for flag in FLAGS:
        other = {"added_tokens_decoder": {i: {**entry, flag: not entry[flag]}}}
        changes.append((other, f"'<mask>' has {flag} .* make them equal"))
    for change, message in changes:
        config.write_text(json.dumps(facts | change))
        with pytest.raises(pybpe.errors.FormatError, match=message):
            pybpe.Tokenizer.from_file(tmp_path)


# ----------------------------------------------------------------------------------------------------
# Corpora


EOT = "<|endoftext|>"


@pytest.mark.parametrize(
    ("others", "pre_tokenizer"),
    [
        ([MASK, token("<r>", rstrip=True), WORD], WITH_REGEX),
        ([], PREFIX),
        ([token("  ", normalized=True)], PREFIX),
        ([WORD], PREFIX),
    ],
)
def test_documents(others: list[dict[str, Any]], pre_tokenizer: dict[str, Any], tmp_path: Path) -> None:
    """However documents are divided, each is encoded as a separate text."""
    tok, theirs = both(token(EOT), *others, pre_tokenizer=pre_tokenizer)
    texts = random_texts(random.Random(8), ["<mask>", "<r>", "word", "  ", "x"], 200)
    texts = [line for text in texts if (line := text.replace("\n", "").replace("\r", ""))]
    mark = tok.special_tokens[EOT]
    joined = [i for text in texts for i in [mark, *theirs.encode(text, add_special_tokens=False).ids]]
    ordinary = [i for text in texts for i in [mark, *tok.encode_ordinary(text)]]
    options: dict[str, Any] = {"format": "raw", "splits": (1,), "eot": "prepend", "progress": False}
    for name, content, how, expected in (
        ("lines.txt", "\n".join(texts), {"documents": "line"}, joined),
        ("blank.txt", "\n\n".join(texts), {"documents": "blank"}, joined),
        ("marked.txt", EOT.join(texts), {"documents": "special"}, joined),
        ("records.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts), {}, ordinary),
    ):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        manifest = pybpe.binarize(tok, path, tmp_path / path.stem, **how, **options)
        assert np.fromfile(tmp_path / path.stem / "train.bin", dtype=np.uint16).tolist() == expected, name
        assert manifest.split_documents("train") == len(texts) and verify(tmp_path / path.stem, tok)[1] == []


@pytest.mark.parametrize("rules", [{"lstrip": True, "rstrip": True}, {"single_word": True}])
def test_a_mark_with_flags_divides_no_documents(rules: dict[str, bool], tmp_path: Path) -> None:
    tok, theirs = both(token(EOT, **rules), MASK)
    options: dict[str, Any] = {"format": "raw", "splits": (1,), "eot": "prepend", "progress": False}
    lines = ["a b ", " <mask> c", "x <mask>"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    with pytest.raises(pybpe.errors.ArgumentError, match="the end of text '<|endoftext|>' has .*strip|single_word"):
        pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", **options)
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", documents="line", **options)
    expected = [i for line in lines for i in [tok.special_tokens[EOT], *theirs.encode(line).ids]]
    assert np.fromfile(tmp_path / "out" / "train.bin", dtype=np.uint16).tolist() == expected


@pytest.mark.parametrize(
    ("mark", "pre_tokenizer", "text", "spelled", "message"),
    [
        (
            token("<m>", lstrip=True, rstrip=True),
            WITH_REGEX,
            "x <m>  ab ab \n\n\n <m> cd cd\n\n\n",
            "x<m>ab ab<m>cd cd\n\n\n",
            "special tokens with flags, such as '<m>'",
        ),
        (token("<m>"), PREFIX, "qz<m>qz<m>qz", " qz<m> qz<m> qz", "the base has add_prefix_space"),
    ],
    ids=["flags", "prefix"],
)
def test_training_that_extends_counts_what_is_encoded(
    mark: dict[str, Any], pre_tokenizer: dict[str, Any], text: str, spelled: str, message: str, tmp_path: Path
) -> None:
    (tok, _), (plain, _) = both(mark, pre_tokenizer=pre_tokenizer), both(token("<m>"))
    (tmp_path / "t.txt").write_text(text)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": part}) + "\n" for part in text.split("<m>")))
    records = "<m>".join(text.split("<m>") if pre_tokenizer != PREFIX else [" qz"] * 3)
    for inputs, same in ((tmp_path / "t.txt", spelled), (iter([text]), spelled), (tmp_path / "t.jsonl", records)):
        longer = tok.extend(inputs=inputs, vocab_size=tok.vocab_size + 3, progress=False)
        expected = plain.extend(inputs=iter([same]), vocab_size=tok.vocab_size + 3, progress=False)
        assert longer.merges == expected.merges and longer.model.prefix_space == tok.model.prefix_space
        assert longer.model.matching == tok.model.matching and longer.encode("<m> a") == tok.encode("<m> a")
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        tok.extend(counts=pybpe.count_words(iter(["a"]), special_tokens=["<m>"]), vocab_size=tok.vocab_size + 1)


def test_a_text_that_is_cut_between_splits(tmp_path: Path) -> None:
    """The parts of one text get no more spaces than the whole."""
    tok, theirs = both(token(EOT), pre_tokenizer=PREFIX)
    text = "".join(random.Random(5).choices([*PARTS, " ab", "\n"], k=4000)).replace(EOT, "")
    path = tmp_path / "t.txt"
    path.write_text(text, encoding="utf-8")
    pybpe.binarize(
        tok, path, tmp_path / "out", format="raw", splits=(5, 3, 2), split_by="token", eot="none", progress=False
    )
    found = [np.fromfile(tmp_path / "out" / f"{name}.bin", dtype=np.uint16) for name in ("train", "val", "test")]
    assert all(map(len, found))
    assert np.concatenate(found).tolist() == theirs.encode(text, add_special_tokens=False).ids


def test_programs_that_show_a_tokenizer(tmp_path: Path) -> None:
    tok, _ = both(token("<mask>", lstrip=True), token("<see>", rstrip=True, special=False))
    plain, _ = both(token("<mask>"), token("<see>", special=False))
    facts = differences(plain, tok)
    assert not facts["equal"] and facts["settings"]["matching"] == [{}, {"<mask>": ["lstrip"], "<see>": ["rstrip"]}]
    text = "ab <mask> <see>  ab\n" * 50
    assert differences_on(plain, tok, text.encode())["different"] is None
    page = tokenizer_data("tok", tok, text.encode())
    assert page["rewrites"] and page["pattern"]["why"] == "its special token '<mask>' has lstrip on"
    assert tokenizer_data("plain", plain, text.encode())["pattern"]["why"] is None


def test_inspect_says_that_it_counts_without_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = pybpe.train(iter(["a b c"]), vocab_size=258, special_tokens=["<mask>"])
    plain.save(tmp_path / "plain.json")
    data = json.loads((tmp_path / "plain.json").read_text())
    data["added_tokens"][0]["lstrip"] = True
    (tmp_path / "flags.json").write_text(json.dumps(data))
    (tmp_path / "text.txt").write_text("a <mask> b")
    for name, count in (("plain", 0), ("flags", 1)):
        main(["inspect", str(tmp_path / f"{name}.json"), str(tmp_path / "text.txt"), "--quiet"])
        assert capsys.readouterr().err.count("counted without add_prefix_space and the flags") == count
