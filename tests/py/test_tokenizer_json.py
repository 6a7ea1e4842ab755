"""tokenizer.json: C reads the same as the Python reader: the large parts for Python, and whole files alone. If C does
not accept a file, the Python reader explains why."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
from c_tokenizer import CTokenizer
from texts import chinese, english

import pybpe
from pybpe import Template
from pybpe.formats import tokenizer_json
from pybpe.formats.any_format import fitting
from pybpe.formats.pre_tokenizer import BYTE_LEVEL, read_pattern, with_byte_level
from pybpe.model import Model
from pybpe.pattern import Pattern, portable


@cache
def model(special_ids: str) -> Model:
    texts = [english()[:30_000], chinese()[:3000]]
    specials = ["<|endoftext|>", "<|\u00fc \u4f60|>", 'q"\\']
    tok = pybpe.train(iter(texts), vocab_size=500, special_tokens=specials, special_ids=special_ids)
    return tok.model


def written(special_ids: str, version: str = "1.0", **how: Any) -> bytes:
    return json.dumps(tokenizer_json.to_object(model(special_ids), version), **how).encode()


def files() -> Iterator[tuple[str, bytes]]:
    yield "ours", tokenizer_json.dumps(model("last")).encode()
    yield "specials first, escapes, no white space", written("first", separators=(",", ":"))
    data = json.loads(written("last", ensure_ascii=False))
    data["model"]["merges"] = [merge.split(" ") for merge in data["model"]["merges"]]
    data["model"] = dict(reversed(data["model"].items()))
    for special in data["added_tokens"]:
        data["model"]["vocab"].pop(special["content"])
    yield "version 2.0", written("last", "2.0")
    yield "pairs, merges first, no special in the vocabulary", json.dumps(data, ensure_ascii=False).encode()


FILES = dict(files())


def slowly(text: bytes, monkeypatch: pytest.MonkeyPatch) -> Model | None:
    """Returns what the Python reader finds, or None if it refuses the file."""
    with monkeypatch.context() as patch:
        patch.setattr(tokenizer_json, "_loads_quickly", lambda *_: None)
        try:
            found = tokenizer_json.loads(text, "x")
            fitting(found, "x")
        except pybpe.errors.FormatError:
            return None
    return found


def quickly(text: bytes) -> Model | None:
    """Returns what C finds, or None if C does not accept the file."""
    return tokenizer_json._loads_quickly(text, "x", None)


def matches_alone(text: bytes, expected: Model | None) -> bool:
    """Checks that C alone finds what is expected, or refuses the file. Returns whether it finds it."""
    try:
        found = CTokenizer(text).vocab
    except pybpe.errors.FormatError:
        return False
    assert expected is not None, text
    vocab = expected.to_vocab()
    assert [bytes(part) for part in found.packed()] == [bytes(part) for part in vocab.packed()], text
    for key in ("eot_id", "pattern", "normalizer", "whole_words"):
        assert getattr(found, key) == getattr(vocab, key), text
    assert found.specials() == vocab.specials(), text
    return True


@pytest.mark.parametrize("name", FILES)
def test_both_readers_find_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, expected = quickly(FILES[name]), slowly(FILES[name], monkeypatch)
    assert found is not None and expected is not None
    assert found == expected
    assert found.fingerprint == expected.fingerprint
    assert list(found.tokens) == list(expected.tokens) and list(found.merges) == list(expected.merges)
    assert matches_alone(FILES[name], expected)


PIECES = [
    b'"', b"\\", b",", b"{", b"}", b"[", b"]", b":", b" ", b"0", b"1", b"-", b".", b"e", b"\xc4\xa0", b"\xff", b"\0",
]  # fmt: skip


def mutated(text: bytes, rng: random.Random) -> bytes:
    """Returns the file with one or two small changes."""
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(text))
        end = at + rng.choice((0, 1, 1, 2, 7))
        start = rng.randrange(len(text))
        other = text[start : start + rng.randrange(1, 25)]
        text = text[:at] + rng.choice((b"", rng.choice(PIECES), bytes([rng.randrange(256)]), other)) + text[end:]
    return text


def is_read_alike(text: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, bool]:
    """Checks that each reader of C finds what Python does, or refuses the file. Returns which of them find it."""
    found = quickly(text)
    expected = slowly(text, monkeypatch) if found is not None else None
    assert found == expected, text
    return found is not None, matches_alone(text, expected)


@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_read_alike_or_not_at_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(name)
    found = [is_read_alike(mutated(FILES[name], rng), monkeypatch) for _ in range(250)]
    taken, alone = map(sum, zip(*found))
    assert taken > 10 and alone > taken // 2  # white space, names of training facts and the like


def entries(data: dict[str, Any], rng: random.Random) -> None:
    """Changes an entry to a value that a valid file could have, or to a similar one."""
    vocab, merges, specials = data["model"]["vocab"], data["model"]["merges"], data["added_tokens"]
    a, b = rng.sample(list(vocab), 2)
    what = rng.randrange(8)
    if what == 0:
        vocab[a], vocab[b] = vocab[b], vocab[a]
    elif what == 1:
        vocab[a] = rng.choice((vocab[b], len(vocab), len(vocab) + 50, 10**6, -1, True, 1.0, str(vocab[a])))
    elif what == 2:
        vocab[rng.choice((a + b, a + " ", "", "\u4f60", a + "\u0142"))] = vocab.pop(a)
    elif what == 3:
        merges.insert(rng.randrange(len(merges)), rng.choice(merges))
    elif what == 4:
        merges[rng.randrange(len(merges))] = rng.choice((f"{a} {b}", [a, b], [a], f"{a}  {b}", a, 1, f"{a} {b} {a}"))
    elif what == 5:
        rng.choice(specials)["id"] = rng.choice((vocab[a], len(vocab), len(vocab) + 10**6))
    elif what == 6:
        rng.choice(specials)["content"] = rng.choice((a, a + b, "<new>"))
    else:
        vocab.pop(a)


def settings(data: dict[str, Any], rng: random.Random) -> None:
    """Changes a part around the vocabulary to a value that a file could have."""
    flag = rng.choice(("lstrip", "rstrip", "single_word", "normalized", "special", "content", "id"))
    token = rng.choice(data["added_tokens"] or [{}]) if isinstance(data["added_tokens"], list) else {}
    kind = rng.choice(("NFC", "NFKC", "NFD", "Sequence"))
    texts = ['q"\\', "<|endoftext|>", "other", 1, None]
    steps = [{"type": "Digits", "individual_digits": rng.choice((True, False, 1))}, data["pre_tokenizer"]]
    value = rng.choice((True, False, None, 0, 1, "", "x", [], {}))
    what = rng.randrange(10)
    if what < 2:
        token[flag] = value
    elif what == 2:
        data["normalizer"] = {"type": kind, "normalizers": rng.choice(([], [{"type": "NFC"}], [None], [1], {}))}
    elif what == 3:
        data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": rng.sample(steps, rng.randrange(3))}
    elif what == 4:
        data["pre_tokenizer"][rng.choice(("add_prefix_space", "use_regex", "type", "behavior", "invert"))] = value
    elif what == 5:
        data["model"][rng.choice(("type", "dropout", "byte_fallback", "ignore_merges", "unk_token", "byte_level"))] = (
            value
        )
    elif what == 6:
        data["model"]["pybpe"][rng.choice(("eos", "version", "regex"))] = value
    elif what == 7:
        data["model"]["pybpe"].pop("eos", None)
        data["role_to_token"] = rng.choice((None, value, *({"eos_token": text} for text in texts)))
    elif what == 8:
        data["decoder"] = rng.choice((None, {"type": kind}, {"type": "ByteLevel"}, value))
    else:
        data[rng.choice(("version", "normalizer", "decoder", "added_tokens", "other"))] = rng.choice((value, "2.0"))


@pytest.mark.parametrize(("change", "least", "most"), [(entries, 30, 200), (settings, 30, 180)])
def test_changed_values_are_read_alike_or_not_at_all(
    change: Callable[[dict[str, Any], random.Random], None], least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, alone = random.Random(6), 0
    for i in range(200):
        data = json.loads(
            FILES[rng.choice(("ours", "version 2.0"))] if change is settings else [*FILES.values()][i % len(FILES)]
        )
        for _ in range(rng.randint(1, 3) if change is settings else 1):
            change(data, rng)
        text = json.dumps(data, ensure_ascii=change is entries and rng.random() < 0.5).encode()
        alone += is_read_alike(text, monkeypatch)[1]
    assert least < alone < most


def test_parts_of_a_vocabulary_are_lists_to_whoever_looks() -> None:
    found = quickly(FILES["ours"])
    assert found is not None
    tokens = found.tokens
    assert len(tokens) == 500 and tokens == list(tokens) and tokens[97:99] == [tokens[97], tokens[98]]
    assert tokens != list(tokens)[1:]
    assert repr(tokens) == repr(list(tokens))
    assert found.to_vocab() is found.to_vocab()


@pytest.mark.parametrize("number", [-1, 1 << 31, (1 << 61) - 1, 10**30])
def test_ids_of_added_tokens_are_checked_before_they_are_keys(number: int) -> None:
    """Python's hash of a multiple of 2^61 - 1 is 0: 20,000 such ids once took seconds, 200,000 of them minutes."""
    data = json.loads(FILES["ours"])
    data["added_tokens"][0]["id"] = number
    with pytest.raises(pybpe.errors.FormatError, match=rf"the added token .* has id {number}; ids are from 0 to"):
        tokenizer_json.loads(json.dumps(data), "t.json")


def second(change: Callable[[dict[str, Any]], Any] = lambda data: None) -> bytes:
    """Returns a file of version 2.0, with a change."""
    data = json.loads(FILES["version 2.0"])
    data["model"]["pybpe"].pop("eos", None)
    change(data)
    return json.dumps(data).encode()


def template(*single: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    pieces = {"single": list(single), "pair": [{"seq": "A"}, {"seq": "B"}]}
    return lambda data: data.update(post_processor={"type": "TemplateProcessing", **pieces})


def test_version_2_is_spelled_as_its_library_writes_it() -> None:
    """tests/py/extras/test_tokenizers_1.py compares whole files with that library's."""
    runs = Template.parse('q"\\:1 <|endoftext|> <|endoftext|> $A')
    data = tokenizer_json.to_object(replace(model("first"), template=runs, pattern=Pattern(r"x$(?then)gpt2")), "2.0")
    assert [*data] == (
        "version truncation padding role_to_token added_tokens normalizer pre_tokenizer post_processor decoder model"
    ).split()
    keys = "type unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback ignore_merges byte_level"
    assert [*data["model"]] == [*keys.split(), "vocab", "merges", "pybpe"]
    assert data["role_to_token"] == {"eos_token": "<|endoftext|>"}
    assert [step["pattern"]["Regex"] for step in data["pre_tokenizer"]["pretokenizers"]] == [
        r"x(?=\n?\z)",
        portable(Pattern("gpt2").regex),
    ]
    assert data["post_processor"]["single"] == [{"ids": [2], "type_id": 1}, {"ids": [0, 0]}, {"seq": "A"}]
    assert tokenizer_json.loads(json.dumps(data), "x") == replace(
        model("first"), template=runs, pattern=Pattern(r"x$(?then)gpt2")
    )


def test_regular_expressions_are_those_of_the_engine_of_the_version() -> None:
    for version, regex in (("1.0", r"x(?=\n|\Z)"), ("2.0", r"x\Z")):
        step = {"type": "Split", "pattern": {"Regex": "x$"}, "behavior": "Isolated", "invert": False}
        assert read_pattern(with_byte_level(step, "x"), None, "x", version) == Pattern(regex)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version="3.0"), r"version '3.0'; pybpe supports 1.0 and 2.0"),
        (lambda data: data["model"].update(byte_level=False), "model.byte_level is False"),
        (lambda data: data["model"].pop("byte_level"), "'byte_level' must be of type bool"),
        (lambda data: data["model"].update(dropout=0.1), "model.dropout is 0.1, which version 2.0 does not have"),
        (lambda data: data.update(pre_tokenizer=None), "the pre_tokenizer is .'ByteLevel'.; pybpe supports steps"),
        (
            lambda data: data.update(pre_tokenizer=BYTE_LEVEL),
            "has ByteLevel, for which version 2.0 has model",
        ),
        (lambda data: data.update(post_processor={"type": "ByteLevel"}), "'ByteLevel'; 2.0 has TemplateProcessing"),
        (lambda data: data.update(role_to_token=["<|endoftext|>"]), "'role_to_token' must be of type dict"),
        (lambda data: data.update(role_to_token={"eos_token": 0}), "'eos_token' must be of type str"),
        (template({"seq": "A"}, {"ids": [300]}), "300 is not the id of an added token"),
        (template({"seq": "A"}, {"ids": [True]}), "True is not the id of an added token"),
        (template({"seq": "A", "type_id": 256}), "a type_id below 256"),
        (template({"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"seq": "A"}), "expected seq or ids"),
        (template({"seq": "B"}), "must contain .A once"),
    ],
)
def test_what_version_2_lacks_is_refused(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    with pytest.raises(pybpe.errors.FormatError, match=message):
        tokenizer_json.loads(second(change), "x")


def test_what_ends_a_document_is_a_role_in_version_2() -> None:
    for named, eot in (('q"\\', 'q"\\'), ("other", "<|endoftext|>"), ("<|endoftext|>", "<|endoftext|>")):
        text = second(partial(dict.update, role_to_token={"eos_token": named}))
        found = tokenizer_json.loads(text, "x")
        assert found.eot == eot and found.eos == (None if eot == "<|endoftext|>" else eot)
        assert CTokenizer(text).vocab.eot_id == found.eot_id


def test_what_version_2_cannot_hold_is_refused() -> None:
    for template, message in (("$B $A", "A must come before"), ("$A $B:256", "below 256")):
        odd = replace(model("first"), template=Template.parse("$A", template))
        with pytest.raises(pybpe.errors.UnsupportedError, match=message):
            tokenizer_json.dumps(odd, "2.0")
    for pattern, message in (
        (r"gpt2(?then)(?bytes)a", "no step that reads bytes"),
        (r"\X", "engine .fancy-regex. may"),
    ):
        with pytest.raises(pybpe.errors.UnsupportedError, match=message):
            tokenizer_json.dumps(replace(model("first"), pattern=Pattern(pattern)), "2.0")
