"""tokenizer.json files of Hugging Face's library and of model families, with small vocabularies: the same ids, or an
error that names what pybpe does not have."""

import json
import random
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from c_tokenizer import CTokenizer
from pipelines import (
    BLOOM,
    BYTE_LEVEL,
    CONTIGUOUS,
    DEEPSEEK_V3,
    DIGITS,
    EXACT,
    LLAMA3,
    O200K,
    QWEN2,
    WITH_REGEX,
    WITHOUT_REGEX,
    added,
    sequence,
    split,
    splits,
)
from selection import one_in
from texts import CORNER_TEXTS, chinese, english, hostile, mixed
from tokenizers import models, pre_tokenizers, trainers

import pybpe
from pybpe import Template
from pybpe.formats import tokenizer_json, vocab_merges

SPECIALS = ["<|endoftext|>", "<|im_end|>", "<tool>"]


def hostile_texts(seed: int, count: int, specials: Sequence[str] = SPECIALS) -> list[str]:
    """Returns short texts with special tokens whole, cut, and before a mark."""
    rng = random.Random(seed)
    more = ["xyzzyx", " unreachable", *(part for text in specials for part in (text, text[:-1], text + "\u0338"))]
    return [hostile(rng, 25, more) for _ in range(count)]


def changed(pre_tokenizer: dict[str, Any] | None = WITH_REGEX, model: dict[str, Any] = {}, **parts: Any) -> str:  # noqa: B006
    """Returns a tokenizer.json of the bytes without merges, with other parts."""
    data = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    data["model"] |= {"vocab": {char: i for i, char in enumerate(vocab_merges.CHAR_TO_BYTE)}} | model
    return json.dumps(data | {"pre_tokenizer": pre_tokenizer} | parts)


# ----------------------------------------------------------------------------------------------------
# The pipelines of models


@cache
def trained(pipeline: str) -> str:
    """Returns a tokenizer.json that `tokenizers` has trained."""
    pre_tokenizer, normalizer = EXACT[pipeline]
    theirs = tokenizers.Tokenizer.from_str(changed(pre_tokenizer, normalizer=normalizer and {"type": normalizer}))
    given = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=SPECIALS, **given)
    corpus = [english()[:60_000], chinese()[:10_000], mixed()[:20_000], *hostile_texts(1, 500, [])]
    theirs.train_from_iterator(corpus, trainer)
    return theirs.to_str()


@pytest.mark.parametrize("pipeline", one_in(4, EXACT))
def test_ids_are_those_of_hugging_face(pipeline: str, tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer.from_str(trained(pipeline))
    path = tmp_path / "tokenizer.json"
    path.write_text(trained(pipeline))
    ours = pybpe.Tokenizer.from_file(path)
    texts = [*CORNER_TEXTS, english()[60_000:80_000], chinese()[9000:12_000], mixed()[15_000:30_000]]
    texts += hostile_texts(2, 200)
    expected = [encoding.ids for encoding in theirs.encode_batch(texts, add_special_tokens=False)]
    for text, ids in zip(texts, expected, strict=True):
        assert ours.encode(text) == ids, text[:80]
    assert ours.encode_batch_to_numpy(texts)[0].tolist() == [i for ids in expected for i in ids]
    assert [ours.count(text) for text in texts] == [len(ids) for ids in expected]
    joined = "".join(texts)
    assert list(ours.encode_iterable(texts)) == theirs.encode(joined, add_special_tokens=False).ids
    assert ours.encode_to_numpy(joined).tolist() == theirs.encode(joined, add_special_tokens=False).ids
    in_c = CTokenizer(path.read_bytes())
    assert [in_c.encode(text) for text in [*texts, joined]] == [*expected, ours.encode(joined)]
    ours.save(tmp_path / "ours.json")
    for saved in (tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json")), ours.to_hf()):
        assert [encoding.ids for encoding in saved.encode_batch(texts, add_special_tokens=False)] == expected
    for name in ("ours.json",) if ours.model.prefix_space else ("ours.json", "ours.bin"):
        ours.save(tmp_path / name)
        again = pybpe.Tokenizer.from_file(tmp_path / name)
        assert again.pattern == ours.pattern and again.encode_batch(texts) == expected


@pytest.mark.parametrize("pipeline", EXACT)
def test_c_knows_the_words_of_every_row(pipeline: str) -> None:
    pre_tokenizer, normalizer = EXACT[pipeline]
    text = changed(pre_tokenizer, normalizer=normalizer and {"type": normalizer})
    in_c, ours = CTokenizer(text.encode()), pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(text))
    for sample in hostile_texts(4, 80):
        data = sample.encode()
        assert in_c.word_ends(data) == ours.pattern.word_ends(data), sample


LINE_ENDS = [split(regex, "MergedWithNext") for regex in (r"(?:\r?\n)+(?!\r?\n)", r"(?:\r?\n)+")]
BEHAVIORS = ["Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
RUNS = [r"\p{N}", r"\p{N}+", r"[\p{P}\p{S}]", "[\r\n]", " ", r"\s+", "[a-z]", "[一-龥ア]+", "(?:a|b|1)", "(?>[^a-z ]+)"]
PATTERNS = [LLAMA3, QWEN2, O200K, BLOOM, *DEEPSEEK_V3, r"\s?\p{L}+", r"\s?\p{P}+", r"\s+$", "don't", "x|xy?", "(?:12)+"]
AFTER = [DIGITS, {**DIGITS, "individual_digits": False}, split("[0-9][0-9][0-9]"), split("[Ā-Ġ]"), split("a|Ãł?")]


def random_pre_tokenizer(rng: random.Random) -> dict[str, Any]:
    def step() -> dict[str, Any]:
        kind = rng.randrange(6)
        if kind == 5:
            return rng.choice(LINE_ENDS)
        if kind == 0:
            return rng.choice([DIGITS, {**DIGITS, "individual_digits": False}, CONTIGUOUS, {"type": "Punctuation"}])
        if kind == 1:
            return split(rng.choice(PATTERNS), invert=rng.random() < 0.2)
        if kind == 2:
            string = {"String": rng.choice(["a", " ", "--", "don't", "."])}
            return {**split("", "Isolated"), "pattern": string}
        return split(rng.choice(RUNS), rng.choice(BEHAVIORS), rng.random() < 0.3)

    steps = [step() for _ in range(rng.randint(0, 3))]
    inner = sequence(*steps) if steps and rng.random() < 0.2 else None
    steps = [inner] if inner is not None else steps
    level = rng.choice([WITH_REGEX, WITHOUT_REGEX]) if steps else WITH_REGEX
    return sequence(*steps, level, *rng.choices(AFTER, k=rng.choice([0, 0, 1, 2])))


def test_random_pre_tokenizers_make_the_words_of_hugging_face() -> None:
    rng = random.Random(7)
    refused = 0
    for seed in range(150):
        text = changed(random_pre_tokenizer(rng))
        theirs = tokenizers.Tokenizer.from_str(text)
        try:
            ours = pybpe.Tokenizer.from_hf(theirs)
        except pybpe.errors.FormatError as error:
            refused += 1
            assert "behavior" in str(error), text
            continue
        for sample in hostile_texts(seed, 10):
            pieces = theirs.pre_tokenizer.pre_tokenize_str(sample)
            data = sample.encode()
            words = [data[a:b] for a, b in pairwise([0, *ours.pattern.word_ends(data)])]
            assert words == [vocab_merges.to_bytes(piece) for piece, _ in pieces], (text, sample)
    assert refused < 15


def test_the_page_on_models_says_what_is_tested(root: Path) -> None:
    """Each exact pipeline of these tests is a row of the table in docs/models.md, and each exact row is tested."""
    page = (root / "docs" / "models.md").read_text(encoding="utf-8").partition("## Other parts")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    assert [name for name, _, verdict in rows[1:] if verdict == "exact"] == list(EXACT)
    assert all(verdict == "exact" or verdict.startswith("refused: ") for _, _, verdict in rows[1:])


# ----------------------------------------------------------------------------------------------------
# A family


def llama3_family() -> dict[str, Any]:
    """Returns a file with merges for all splits, in the order of their results, some tokens that no merge makes, and a
    template with bos."""
    texts = [english()[:60_000], chinese()[:10_000], mixed()[:20_000]]
    data = tokenizer_json.to_object(pybpe.train(iter(texts), vocab_size=1500, pattern="llama3").model)
    del data["model"]["pybpe"]
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
    data["pre_tokenizer"] = splits(LLAMA3)
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


def test_a_file_like_llama_3s_has_the_ids_of_hugging_face(tmp_path: Path) -> None:
    data = llama3_family()
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data))
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    ours = pybpe.Tokenizer.from_file(path)
    assert ours == pybpe.Tokenizer.from_hf(theirs) and ours.vocab_size == theirs.get_vocab_size()
    assert ours.pattern.name == "llama3" and ours.eot_token == ours.special_tokens["<|end_of_text|>"]
    assert str(ours.model.template) == "<|begin_of_text|> $A | <|begin_of_text|> $A <|begin_of_text|>:1 $B:1"
    texts = [*CORNER_TEXTS, english()[:20_000], chinese()[:3000], mixed()[:20_000]]
    for text in [*texts, *hostile_texts(5, 300, sorted(ours.special_tokens))]:
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ours.encode_to_numpy(text).tolist() == expected, text[:60]
        assert ours.count(text) == len(expected) and list(ours.encode_iterable([text])) == expected
        assert ours.encode(text, add_special_tokens=True) == theirs.encode(text).ids
        assert ours.encode(text, "B side", add_special_tokens=True) == theirs.encode(text, "B side").ids
        assert ours.decode(expected) == theirs.decode(expected, skip_special_tokens=False)
        assert ours.decode(expected, skip_special_tokens=True) == theirs.decode(expected)
    whole = ours.token_to_id(" unreachable")  # no merge makes it
    assert ours.encode("an unreachable") == [*ours.encode("an"), whole]
    assert whole not in ours.encode(" unreachables")


@pytest.mark.parametrize("regex", ["[^a&&b]", "[^ab&&bc]", "[a-c&&[^b]]", "[^[a-c]&&[bd]]", "[^[^a]&&[^b]]"])
def test_classes_with_operators_in_every_behavior(regex: str, tmp_path: Path) -> None:
    """Python's regex package reads [^a]|[^b] as [^ab]."""
    letters, merges, words = "abcd ", [], list("abcdĠ")
    for _ in range(2):  # merges of any two and three letters show where words begin
        words = [left + right for left in words for right in "abcdĠ"]
        merges += [f"{word[:-1]} {word[-1]}" for word in words]
    vocab = {char: byte for byte, char in vocab_merges.BYTE_TO_CHAR.items()}
    vocab |= {merge.replace(" ", ""): 256 + i for i, merge in enumerate(merges)}
    rng = random.Random(3)
    samples = ["".join(rng.choices(letters, k=rng.randint(0, 8))) for _ in range(200)]
    for behavior in ("Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for invert in (False, True):
            steps = sequence(split(regex, behavior, invert), WITHOUT_REGEX)
            text = changed(steps, model={"vocab": vocab, "merges": merges})
            (tmp_path / "t.json").write_text(text)
            ours, theirs = pybpe.Tokenizer.from_file(tmp_path / "t.json"), tokenizers.Tokenizer.from_str(text)
            assert ours.pattern.pretok is not None
            for sample in samples:
                assert ours.encode(sample) == theirs.encode(sample).ids, (regex, behavior, invert, sample)


# ----------------------------------------------------------------------------------------------------
# What is refused


ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
TWO_IDS = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"x": {"id": "x", "ids": [1], "tokens": ["x"]}},
}
_TEXT = {"Text": {"id": "A", "type_id": 0}}
OF_TEXT = {"type": "TemplateProcessing", "single": [_TEXT], "pair": [_TEXT, _TEXT], "special_tokens": {}}


@pytest.mark.parametrize(
    ("pre_tokenizer", "message"),
    [
        (sequence({"type": "WhitespaceSplit"}, WITHOUT_REGEX), "WhitespaceSplit, which does not keep white space"),
        (sequence({"type": "Whitespace"}, WITHOUT_REGEX), "Whitespace, which"),
        ({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": True}, "Metaspace, which"),
        (sequence(split(r"\s+", "Removed"), WITHOUT_REGEX), "behavior 'Removed'.*it drops text"),
        (sequence(split(r"\w+", "Removed", True), WITHOUT_REGEX), "may leave text unmatched"),
        (sequence(split(r"(?:\r?\n)+(?!\r?\n)", "MergedWithPrevious"), WITH_REGEX), "behavior 'MergedWithPrevious'"),
        (sequence(split(r"(?:\r?\n)+(?!\n)", "MergedWithNext"), WITH_REGEX), "behavior 'MergedWithNext'"),
        (sequence(WITH_REGEX, WITH_REGEX), "ByteLevel twice"),
        (sequence(DIGITS, {**WITH_REGEX, "add_prefix_space": True}), "add_prefix_space after another step"),
        (sequence(DIGITS), "one ByteLevel"),
        (WITHOUT_REGEX, "one ByteLevel"),
        (sequence(WITH_REGEX, split("a(?=b)")), "after ByteLevel: the pattern has a lookahead"),
        (sequence({"type": "UnicodeScripts"}, WITH_REGEX), "UnicodeScripts"),
        (None, "pre_tokenizer"),
        (splits(r"\w+|\R|\W+"), r"\\\\R"),
        (sequence(split(QWEN2, "MergedWithNext"), WITHOUT_REGEX), "MergedWithNext"),
        (sequence({"type": "Digits"}, BYTE_LEVEL), "_digits"),
    ],
)
def test_a_pre_tokenizer_that_would_give_other_words_is_refused(
    pre_tokenizer: dict[str, Any] | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(changed(pre_tokenizer))
    with pytest.raises(pybpe.errors.FormatError, match=message):
        pybpe.Tokenizer.from_file(path)
    if "add_prefix_space" not in message:  # the pattern does not decide where spaces are added
        assert pybpe.Tokenizer.from_file(path, pattern="gpt2").pattern.name == "gpt2"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"decoder": {"type": "Metaspace"}}, "Metaspace"),
        ({"post_processor": ROBERTA}, "cls is .* not an added token"),
        ({"post_processor": {"type": "Unknown"}}, "Unknown"),
        ({"post_processor": TWO_IDS}, "not a special token"),
        ({"post_processor": OF_TEXT}, "expected a Sequence or a SpecialToken, found {'Text'"),
        ({"version": "3.0"}, "the format has version '3.0'"),
        ({"model": {"type": "WordPiece"}}, "WordPiece"),
        ({"model": {"byte_fallback": True}}, "byte_fallback"),
        ({"model": {"dropout": 1.5}}, "dropout"),
        ({"model": {"pybpe": {"tie_break": "\ud800"}}}, "lone surrogate"),
        ({"model": {"vocab": {}}}, "byte"),
        ({"model": {"vocab": {"a": 0, "b": 0}}}, "twice"),
        ({"model": {"vocab": {"a": -1}}}, "id"),
        ({"model": {"vocab": {"a": 1 << 40}}}, "id"),
        ({"model": {"vocab": {"中": 0}}}, "no byte"),
        ({"model": {"vocab": {"a": 0}, "merges": ["a b c"]}}, r"merges\[0\]"),
        ({"normalizer": {"type": "Lowercase"}}, "Lowercase"),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]}}, "Sequence"),
        ({"normalizer": {"type": []}}, "the normalizer is"),
        ({"added_tokens": [added(0, "<a>"), added(1, "<a>")]}, "different ids"),
        ({"added_tokens": [added(256, "<a>") | {"rstrip": True}, added(257, " b")]}, "begins with white space"),
        ({"added_tokens": [added(256, "<a>", normalized=True)], "normalizer": {"type": "NFKC"}}, "normalized"),
        ({"added_tokens": [added(300, "Ġt")]}, "id"),
        ({"added_tokens": True}, "'added_tokens' must be of type list"),
        ({"added_tokens": [added(256, "\ud800")]}, "lone surrogate"),
        ({"added_tokens": [{"id": 0, "content": "<x>", "lstrip": 1}]}, "lstrip"),
        ({"added_tokens": [{"content": "<x>"}]}, "id"),
    ],
)
def test_what_would_give_other_ids_is_refused_by_name(parts: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(changed(**parts))
    with pytest.raises(pybpe.errors.FormatError, match=message) as caught:
        pybpe.Tokenizer.from_file(tmp_path / "t.json")
    assert "t.json" in str(caught.value) and "\n" not in str(caught.value)


# ----------------------------------------------------------------------------------------------------
# Templates and other parts


@pytest.mark.parametrize("kind", ["RobertaProcessing", "BertProcessing"])
def test_templates_of_roberta_and_bert(kind: str, tmp_path: Path) -> None:
    tokens = [added(256, "<s>"), added(257, "</s>")]
    processor = {"type": kind, "cls": ["<s>", 256], "sep": ["</s>", 257]}
    processor |= {"trim_offsets": True, "add_prefix_space": False} if kind == "RobertaProcessing" else {}
    text = changed(WITH_REGEX, added_tokens=tokens, post_processor=processor)
    theirs = tokenizers.Tokenizer.from_str(text)
    ours = pybpe.Tokenizer.from_hf(theirs)
    ours.save(tmp_path / "ours.json")
    for tok in (ours, pybpe.Tokenizer.from_file(tmp_path / "ours.json")):
        for sample in ("", "Hello", " <s>x</s>"):
            assert tok.encode(sample, add_special_tokens=True) == theirs.encode(sample).ids
            assert tok.encode(sample, "B side", add_special_tokens=True) == theirs.encode(sample, "B side").ids
    saved = tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json")).encode("a", "b")
    assert saved.type_ids == theirs.encode("a", "b").type_ids
    for wrong in (["<s>", 257], ["<x>", 256], "<s>", ["<s>"], None):
        data = json.loads(text)
        data["post_processor"]["cls"] = wrong
        (tmp_path / "wrong.json").write_text(json.dumps(data))
        with pytest.raises(pybpe.errors.FormatError, match="cls is"):
            pybpe.Tokenizer.from_file(tmp_path / "wrong.json")


def test_a_template_that_puts_the_second_text_first_does_so_without_its_specials() -> None:
    tok = pybpe.train(iter(["a b c"]), vocab_size=257, special_tokens=["<s>"])
    tok = tok.replace(template=Template.parse("<s> $A", "<s> $B $A"))
    theirs = tok.to_hf()
    for apply in (False, True):
        assert tok.encode("a", "b", add_special_tokens=apply) == theirs.encode("a", "b", add_special_tokens=apply).ids
        assert tok.encode("a", add_special_tokens=apply) == theirs.encode("a", add_special_tokens=apply).ids


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
    for processor in (BYTE_LEVEL, plain):
        tok = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(changed(post_processor=processor)))
        assert tok == none and tok.model.template is None
    types = none.replace(template=Template.parse("$A:1", "$A $B"))  # other token types, the same ids
    for i, target in enumerate((tok, types)):  # which have a token that is not special
        target.save(tmp_path / f"{i}.bin", ids_only=True)
        assert target.to_tiktoken(ids_only=True).encode_ordinary("a b") == none.encode("a b")
    swapped = none.replace(template=Template.parse("$A", "$B $A"))
    with pytest.raises(pybpe.errors.UnsupportedError, match="template"):
        swapped.save(tmp_path / "swapped.bin")


def test_other_objects_are_refused() -> None:
    for thing in (None, 3, "tok.json", object()):
        with pytest.raises(pybpe.errors.ArgumentError, match="tokenizers"):
            pybpe.Tokenizer.from_hf(thing)
    theirs = tokenizers.Tokenizer.from_str(changed())
    theirs.encode_special_tokens = True
    with pytest.raises(pybpe.errors.ArgumentError, match="the Tokenizer encodes special tokens as text"):
        pybpe.Tokenizer.from_hf(theirs)


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
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], normalizer="NFKC")
    assert tok.encode_to_numpy("\ufdfa" * 10).tolist() == tok.encode("\ufdfa" * 10)
    assert tok.encode_batch_to_numpy(["\ufdfa" * 10])[0].tolist() == tok.encode("\ufdfa" * 10)
    growth = max(
        len(unicodedata.normalize(form, chr(c)).encode()) / len(chr(c).encode())
        for form in ("NFC", "NFKC")
        for c in range(0x110000)
        if unicodedata.decomposition(chr(c))
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
