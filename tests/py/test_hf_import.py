"""tokenizer.json files like those of GPT-2, Llama 3 and Qwen, and objects of the tokenizers library."""

import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from pipelines import BYTE_LEVEL, LLAMA3, QWEN2, WITHOUT_REGEX, sequence, split
from texts import CORNER_TEXTS, chinese, english, mixed

import pybpe
from pybpe import Template
from pybpe.formats import tokenizer_json


def isolated(regex: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return sequence(split(regex, behavior, invert), WITHOUT_REGEX)


def added(i: int, text: str, special: bool = True, normalized: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    return {"id": i, "content": text, **flags, "normalized": normalized, "special": special}


def base(pattern: str) -> dict[str, Any]:
    """Returns a trained vocabulary as JSON, without its special tokens."""
    tok = pybpe.train(
        iter([english()[:60_000], chinese()[:10_000], mixed()[:20_000]]), vocab_size=1500, pattern=pattern
    )
    data = tokenizer_json.to_object(tok.model)
    del data["model"]["pybpe"]
    return data


def gpt2_family() -> dict[str, Any]:
    data = base("gpt2")
    data["added_tokens"] = [added(1500, "<|endoftext|>", normalized=True)]
    data["model"].update({"vocab": {**data["model"]["vocab"], "<|endoftext|>": 1500}, "unk_token": "<|endoftext|>"})
    data["model"].update({"continuing_subword_prefix": "", "end_of_word_suffix": ""})
    del data["model"]["ignore_merges"], data["model"]["byte_fallback"]
    data["post_processor"] = {**BYTE_LEVEL, "use_regex": True}
    return data


def llama3_family() -> dict[str, Any]:
    """Returns a file with merges for all splits, in the order of their results, some tokens that no merge makes, and a
    template with bos."""
    data = base("llama3")
    vocab = data["model"]["vocab"]
    for token in ("Ġunreachable", "xyzzyx", "ä¸Ńæĸĩä¸Ń"):
        vocab[token] = len(vocab)
    merges = []
    for token, i in vocab.items():
        halves = ((token[:at], token[at:]) for at in range(1, len(token)))
        merges += sorted((i, vocab[a], vocab[b], a, b) for a, b in halves if a in vocab and b in vocab)
    data["model"].update({"merges": [[a, b] for *_, a, b in sorted(merges)], "ignore_merges": True})
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|eot_id|>"]
    data["added_tokens"] = [added(len(vocab) + i, name) for i, name in enumerate(names)]
    data["pre_tokenizer"] = isolated(LLAMA3)
    bos = {"SpecialToken": {"id": names[0], "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [
            bos,
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": names[0], "type_id": 1}},
            {"Sequence": {"id": "B", "type_id": 1}},
        ],
        "special_tokens": {names[0]: {"id": names[0], "ids": [len(vocab)], "tokens": [names[0]]}},
    }
    data["post_processor"] = {"type": "Sequence", "processors": [{**BYTE_LEVEL, "use_regex": True}, template]}
    return data


def qwen_family() -> dict[str, Any]:
    data = base("qwen2")
    names = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<tool_call>", False)]
    data["added_tokens"] = [added(1500 + i, name, special) for i, (name, special) in enumerate(names)]
    data["normalizer"] = {"type": "NFC"}
    data["pre_tokenizer"] = isolated(QWEN2)
    data["post_processor"] = {**BYTE_LEVEL, "use_regex": False}
    return data


FAMILIES = {"gpt2": gpt2_family, "llama3": llama3_family, "qwen2": qwen_family}


def hostile(specials: list[str], seed: int, count: int = 300) -> list[str]:
    """Returns short texts of everything that has broken a tokenizer, with special tokens whole, cut and with marks."""
    rng = random.Random(seed)
    pieces = [
        *specials, *(text[:-1] for text in specials), *(text + "\u0338" for text in specials), "\u0338", "\u0301",
        *("e\u0301", "\u1e9b\u0323", "\uac00\u11a8", "ﬁ", "\ufdfa", "①", "Å", " ", "  ", "\n", "\r\n", "\u3000"),
        *("xyzzyx", " unreachable", "中文中", "中文", "don't", "I'LL", "12345", "a", "\x00", "👩\u200d👧", "<|", "|>"),
        *("\u00a0", "\u2028", "\t", "ſ", "'ſ", "ǆ", "३", "²", "_", "'s", "’s", "\u200b", "\ufeff"),
    ]  # fmt: skip
    return ["".join(rng.choices(pieces, k=rng.randint(0, 40))) for _ in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_are_those_of_hugging_face(family: str, tmp_path: Path) -> None:
    data = FAMILIES[family]()
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data))
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    for ours in (pybpe.Tokenizer.from_file(path), pybpe.Tokenizer.from_hf(theirs)):
        assert ours.pattern == pybpe.tokenizer.of_model(ours.model).pattern
        assert ours.pattern.name is not None and ours.vocab_size == theirs.get_vocab_size()
        texts = [*CORNER_TEXTS, english()[:20_000], chinese()[:3000], mixed()[:20_000]]
        for text in [*texts, *hostile(sorted(ours.special_tokens), seed=1)]:
            expected = theirs.encode(text, add_special_tokens=False).ids
            assert ours.encode(text) == expected, text[:60]
            assert ours.encode_to_numpy(text).tolist() == expected
            assert ours.count(text) == len(expected)
            assert list(ours.encode_iterable([text])) == expected
            assert ours.encode(text, add_special_tokens=True) == theirs.encode(text).ids
            pair = ours.encode(text, "B side", add_special_tokens=True)
            assert pair == theirs.encode(text, "B side").ids
            assert ours.decode(expected) == theirs.decode(expected, skip_special_tokens=False)
            assert ours.decode(expected, skip_special_tokens=True) == theirs.decode(expected)


def test_what_the_families_are(tmp_path: Path) -> None:
    llama = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(json.dumps(llama3_family())))
    assert llama.model.whole_words and llama.eot_token == llama.special_tokens["<|end_of_text|>"]
    assert str(llama.model.template) == "<|begin_of_text|> $A | <|begin_of_text|> $A <|begin_of_text|>:1 $B:1"
    whole = llama.token_to_id(" unreachable")
    assert llama.encode("an unreachable") == [*llama.encode("an"), whole]
    assert whole not in llama.encode(" unreachables")
    qwen = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(json.dumps(qwen_family())))
    assert qwen.model.normalizer == "NFC" and qwen.pattern == pybpe.tokenizer.of_model(qwen.model).pattern
    assert qwen.model.visible == {"<tool_call>"}
    # A file with pattern and specials in raw text: a mark after a special joins with nothing.
    assert qwen.encode("<|im_end|>\u0338")[0] == qwen.special_tokens["<|im_end|>"]


def test_long_texts_with_a_normalizer_are_read_in_parts() -> None:
    qwen = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(json.dumps(qwen_family())))
    text = "".join(hostile(sorted(qwen.special_tokens), seed=2, count=3000))
    lines = text.splitlines(keepends=True)
    assert list(qwen.encode_iterable(lines)) == qwen.encode(text)


def changed(**changes: Any) -> str:
    data = qwen_family()
    data["normalizer"] = None
    for key, value in changes.items():
        if key == "model":
            data["model"].update(value)
        else:
            data[key] = value
    return json.dumps(data)


ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
TWO_IDS = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"x": {"id": "x", "ids": [1], "tokens": ["x"]}},
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(pre_tokenizer=isolated(r"\w+|\R|\W+")), r"\\R"),
        (changed(pre_tokenizer=isolated(QWEN2, "MergedWithNext")), "MergedWithNext"),
        (changed(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTE_LEVEL]}), "_digits"),
        (changed(pre_tokenizer={"type": "Metaspace"}), "Metaspace"),
        (changed(decoder={"type": "Metaspace"}), "Metaspace"),
        (changed(post_processor=ROBERTA), "cls is .* not an added token"),
        (changed(post_processor={"type": "Unknown"}), "Unknown"),
        (changed(post_processor=TWO_IDS), "not a special token"),
        (changed(version="2.0"), "the format has version '2.0'"),
        (changed(model={"byte_fallback": True}), "byte_fallback"),
        (changed(model={"dropout": 1.5}), "dropout"),
        (changed(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]}), "Sequence"),
        (changed(added_tokens=[added(0, "<a>"), added(1, "<a>")]), "different ids"),
        (changed(added_tokens=[added(1500, "<a>") | {"rstrip": True}, added(1501, " b")]), "begins with white space"),
        (changed(added_tokens=[added(1500, "<a>", normalized=True)], normalizer={"type": "NFKC"}), "normalized"),
        (changed(added_tokens=[added(300, "Ġt")]), "id"),
        (changed(added_tokens=True), "'added_tokens' must be of type list"),
        (changed(added_tokens=[added(1500, "\ud800")]), "lone surrogate"),
        (changed(model={"pybpe": {"tie_break": "\ud800"}}), "lone surrogate"),
        (changed(normalizer={"type": []}), "the normalizer is"),
    ],
)
def test_what_would_give_other_ids_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(pybpe.errors.FormatError, match=message) as caught:
        pybpe.Tokenizer.from_file(path)
    assert "t.json" in str(caught.value) and "\n" not in str(caught.value)


def test_truncation_and_padding_are_ignored_with_a_warning(tmp_path: Path) -> None:
    """In tokenizers, truncation and padding belong to the object; in transformers, to each call."""
    theirs = tokenizers.Tokenizer.from_str(changed())
    text = "a text of more than five tokens"
    whole = theirs.encode(text).ids
    theirs.enable_truncation(max_length=5)
    theirs.enable_padding(length=4)
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    for load in (lambda: pybpe.Tokenizer.from_file(path), lambda: pybpe.Tokenizer.from_hf(theirs)):
        with pytest.warns(UserWarning) as caught:
            assert load().encode(text) == whole
        shown = [str(warning.message) for warning in caught]
        assert len(shown) == 2 and "pybpe ignores the truncation in this file" in shown[0] and "padding" in shown[1]
    (tmp_path / "tokenizer_config.json").write_text("{}")  # a folder of transformers
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pybpe.Tokenizer.from_file(tmp_path).encode(text) == whole


def test_a_template_that_does_nothing_is_none(tmp_path: Path) -> None:
    """Newer versions of transformers write one into each file."""
    a, b = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    plain = {"type": "TemplateProcessing", "single": [a], "pair": [a, b], "special_tokens": {}}
    none = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(changed()))
    tok = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(changed(post_processor=plain)))
    assert tok == none and tok.model.template is None
    types = none.replace(template=Template.parse("$A:1", "$A $B"))  # other token types, the same ids
    for i, target in enumerate((tok, types)):  # which have a token that is not special
        target.save(tmp_path / f"{i}.bin", ids_only=True)
        assert target.to_tiktoken(ids_only=True).encode_ordinary("a b") == none.encode("a b")
    swapped = none.replace(template=Template.parse("$A", "$B $A"))
    with pytest.raises(pybpe.errors.UnsupportedError, match="template"):
        swapped.save(tmp_path / "swapped.bin")


def test_a_pattern_can_be_named_for_a_file_with_an_unknown_one(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(changed(pre_tokenizer=isolated(r"\s+|\w+|[^\s\w]+|\R")))
    theirs = tokenizers.Tokenizer.from_file(str(path))
    ours = pybpe.Tokenizer.from_file(path, pattern=r"\s+|\w+|[^\s\w]+")
    assert ours.encode(english()[:5000]) == theirs.encode(english()[:5000], add_special_tokens=False).ids


def test_an_object_that_takes_special_tokens_as_text_is_refused() -> None:
    theirs = tokenizers.Tokenizer.from_str(changed())
    theirs.encode_special_tokens = True
    with pytest.raises(pybpe.errors.ArgumentError, match="the Tokenizer encodes special tokens as text"):
        pybpe.Tokenizer.from_hf(theirs)


@pytest.mark.parametrize("thing", [None, 3, "tok.json", object()])
def test_other_objects_are_refused(thing: object) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="tokenizers"):
        pybpe.Tokenizer.from_hf(thing)


def test_matches_only_is_as_isolated_for_a_pattern_that_matches_all(tmp_path: Path) -> None:
    data = changed(pre_tokenizer=isolated(QWEN2, "Removed", True))
    ours = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(data))
    assert ours.pattern.name is not None


def test_training_and_encoding_find_specials_before_they_normalise(tmp_path: Path) -> None:
    """A combining mark after a special token is a separate word; fullwidth letters do not form a special token."""
    text = "<s>\u0338ab <s>\u0338ab ＜s＞ab e\u0301"
    path = tmp_path / "t.txt"
    path.write_text(text, encoding="utf-8")
    words = {"\u0338": 2, "ab": 3, " ": 1, " <": 1, "s": 1, ">": 1, " é": 1}
    for inputs in (iter([text]), str(path)):
        counts = pybpe.count_words(inputs, normalizer="NFKC", special_tokens=["<s>"], progress=False)
        assert {word.decode(): count for word, count in counts.to_dict().items()} == words
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>"], normalizer="NFKC")
    ids = tok.encode(text)
    assert ids.count(256) == 2 and tok.decode(ids) == "<s>\u0338ab <s>\u0338ab <s>ab é"


def test_no_text_grows_more_than_there_is_room_for() -> None:
    """Arrays are made before the text is normalized."""
    import unicodedata

    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], normalizer="NFKC")
    assert tok.encode_to_numpy("\ufdfa" * 10).tolist() == tok.encode("\ufdfa" * 10)
    assert tok.encode_batch_to_numpy(["\ufdfa" * 10])[0].tolist() == tok.encode("\ufdfa" * 10)
    growth = max(
        len(unicodedata.normalize(form, chr(c)).encode()) / len(chr(c).encode())
        for form in ("NFC", "NFKC")
        for c in range(0x110000)
        if not 0xD800 <= c < 0xE000
    )
    assert growth == 11


# ----------------------------------------------------------------------------------------------------
# Merges that Hugging Face mistakes for the first line of a merges.txt


def version_tokenizer() -> pybpe.Tokenizer:
    """With a merge of "#version" and "s"."""
    parts = ["#v", "er", "si", "on", "#ver", "sion", "#version", "#versions"]
    halves = [
        ("#", "v"), ("e", "r"), ("s", "i"), ("o", "n"), ("#v", "er"), ("si", "on"), ("#ver", "sion"),
        ("#version", "s"),
    ]  # fmt: skip
    vocab = {i: bytes([i]) for i in range(256)} | {256 + i: text.encode() for i, text in enumerate(parts)}
    return pybpe.Tokenizer(vocab, [(a.encode(), b.encode()) for a, b in halves], pattern="[^ ]+| ")


VERSION_TEXTS = ["#versions", "#version s", "a #versions#version", "versions"]


def test_merges_that_begin_with_version_are_kept(tmp_path: Path) -> None:
    tok = version_tokenizer()
    assert tok.encode("#versions") == [263]
    tok.save(tmp_path / "t.json")
    tok.save_pretrained(tmp_path / "folder")
    again = pybpe.Tokenizer.from_file(tmp_path / "t.json")
    assert again == tok
    for theirs in (
        tok.to_hf(),
        tokenizers.Tokenizer.from_file(str(tmp_path / "t.json")),
        tokenizers.Tokenizer.from_file(str(tmp_path / "folder" / "tokenizer.json")),
    ):
        for text in VERSION_TEXTS:
            assert theirs.encode(text).ids == tok.encode(text) == pybpe.Tokenizer.from_hf(theirs).encode(text)


@pytest.mark.parametrize("escape", ["#version s", "\\u0023version s", "#\\u0076ersi\\u006Fn s"])
def test_strings_that_begin_with_version_are_dropped_as_hugging_face_does(escape: str, tmp_path: Path) -> None:
    data = tokenizer_json.to_object(version_tokenizer().model)
    data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(data).replace("#version s", escape))
    assert pybpe.Tokenizer.from_file(path).encode("#versions") == [263]  # a file of ours, which meant the merge
    del data["model"]["pybpe"]
    path.write_text(json.dumps(data).replace("#version s", escape))
    ours, theirs = pybpe.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))
    assert ours.encode("#versions") == [262, 115]
    for text in VERSION_TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids


def test_merges_txt_cannot_hold_them(tmp_path: Path) -> None:
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    tok = version_tokenizer()
    gpt2 = pybpe.Tokenizer(tok.model.vocab, tok.merges)
    with pytest.raises(pybpe.errors.UnsupportedError, match="#version.*save a tokenizer.json"):
        gpt2.save(tmp_path, "files")
    assert not vocab.exists()
    pybpe.Tokenizer(tok.model.vocab, tok.merges[:-1]).save(tmp_path, "files")
    merges.write_text(merges.read_text() + "#version s\n")
    with pytest.raises(pybpe.errors.FormatError, match="merges.txt: line 9: Hugging Face drops"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)


def test_a_template_that_puts_the_second_text_first_does_so_without_its_specials() -> None:
    tok = pybpe.train(iter(["a b c"]), vocab_size=257, special_tokens=["<s>"])
    tok = tok.replace(template=Template.parse("<s> $A", "<s> $B $A"))
    theirs = tok.to_hf()
    for apply in (False, True):
        assert tok.encode("a", "b", add_special_tokens=apply) == theirs.encode("a", "b", add_special_tokens=apply).ids
        assert tok.encode("a", add_special_tokens=apply) == theirs.encode("a", add_special_tokens=apply).ids


def test_a_merge_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    tok = version_tokenizer()
    pybpe.Tokenizer(tok.model.vocab, tok.merges[:-1]).save(tmp_path, "files")
    lines = merges.read_text(encoding="utf-8").splitlines(keepends=True)
    merges.write_text("".join([*lines, lines[-1]]), encoding="utf-8")
    with pytest.raises(pybpe.errors.FormatError, match="is a repeated merge"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)


def test_a_template_of_something_else_is_refused(tmp_path: Path) -> None:
    piece = {"Text": {"id": "A", "type_id": 0}}
    unknown = {"type": "TemplateProcessing", "single": [piece], "pair": [piece, piece], "special_tokens": {}}
    (tmp_path / "t.json").write_text(changed(post_processor=unknown))
    with pytest.raises(pybpe.errors.FormatError, match="expected a Sequence or a SpecialToken, found {'Text'"):
        pybpe.Tokenizer.from_file(tmp_path / "t.json")
