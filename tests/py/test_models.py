"""tokenizer.json files of model families: small vocabularies trained under the families' exact pipelines."""

import json
import random
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
    CONTIGUOUS,
    DEEPSEEK_V3,
    DIGITS,
    EXACT,
    LLAMA3,
    O200K,
    QWEN2,
    WITH_REGEX,
    WITHOUT_REGEX,
    sequence,
    split,
)
from selection import one_in
from texts import CORNER_TEXTS, chinese, english, mixed
from tokenizers import models, pre_tokenizers, trainers

import pybpe
from pybpe.formats import byte_level

SPECIALS = ["<|endoftext|>", "<|im_end|>", "<tool>"]
PIECES = [
    *SPECIALS, "<|im_end",
    *(" ", "  ", "   ", "\n", "\n\n", "\r\n", "\r", "\t", "\u00a0", "\u3000", "\u2028", "\x0b", "\x85"),
    *("a", "The", " the", "don't", "I'LL", "'ſ", "x_y", "camelCase", "ABCd", "e\u0301", "\u0338", "ǆ", "ß"),
    *("ᾼ", "ꞇ"),
    *("1", "12", "123", "1234567", " 1", "3.14", "٣", "Ⅷ", "½", "²", "ò", "³é", "१२३", "𝟘"),
    *(".", "?!", "...", " (", ")]", "[x]", "|", "$+<=>^`", "/n", "//", "，", "。", "！／", "‘’", "、।۔،", ),
    *("¡", "⹏", "᙭"),
    *("中文", "一龥", "丁", "ひらがな", "カタカナ", "ア・イ", "゠", "\u3099", "゛", "한국어", ),
    *("ࠀ", "คำ", "हिन्दी", "العربية"),
    *("👍", "👩\u200d👧", "\u200b", "\ufeff", "\x00", "\x7f", "\x1c", "\ue000", "\U000e0001", ),
    *("#include", "def f(x):", "¤"),
]  # fmt: skip


def hostile(seed: int, count: int, pieces: Sequence[str] = PIECES) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(pieces, k=rng.randint(1, 25))) for _ in range(count)]


def changed(pre_tokenizer: dict[str, Any] | None, **parts: Any) -> str:
    data = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    data["model"]["vocab"] = {char: i for i, char in enumerate(byte_level.CHAR_TO_BYTE)}
    return json.dumps(data | {"pre_tokenizer": pre_tokenizer} | parts)


@cache
def trained(pipeline: str) -> str:
    """Returns a tokenizer.json that `tokenizers` has trained."""
    pre_tokenizer, normalizer = EXACT[pipeline]
    theirs = tokenizers.Tokenizer.from_str(changed(pre_tokenizer, normalizer=normalizer and {"type": normalizer}))
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    corpus = [english()[:60_000], chinese()[:10_000], mixed()[:20_000], *hostile(1, 500, PIECES[len(SPECIALS) :])]
    theirs.train_from_iterator(corpus, trainer)
    return theirs.to_str()


@pytest.mark.parametrize("pipeline", one_in(4, EXACT))
def test_ids_are_those_of_hugging_face(pipeline: str, tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer.from_str(trained(pipeline))
    path = tmp_path / "tokenizer.json"
    path.write_text(trained(pipeline))
    ours = pybpe.Tokenizer.from_file(path)
    texts = [*CORNER_TEXTS, english()[60_000:80_000], chinese()[9000:12_000], mixed()[15_000:30_000], *hostile(2, 400)]
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


@pytest.mark.parametrize("pipeline", EXACT)
def test_c_knows_the_words_of_every_row(pipeline: str) -> None:
    pre_tokenizer, normalizer = EXACT[pipeline]
    text = changed(pre_tokenizer, normalizer=normalizer and {"type": normalizer})
    in_c, ours = CTokenizer(text.encode()), pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(text))
    for sample in hostile(4, 80):
        data = sample.encode()
        assert in_c.word_ends(data) == ours.pattern.word_ends(data), sample


@pytest.mark.parametrize("pipeline", one_in(4, EXACT))
def test_what_is_saved_is_the_same_tokenizer(pipeline: str, tmp_path: Path) -> None:
    """The test saves in pybpe's formats, and for Hugging Face."""
    ours = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(trained(pipeline)))
    ours.save(tmp_path / "ours.json")
    saved = ["ours.json"]
    if not ours.model.prefix_space:
        ours.save(tmp_path / "ours.bin")
        saved.append("ours.bin")
    texts = hostile(3, 100)
    expected = [ours.encode(text) for text in texts]
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json"))
    for again in (pybpe.Tokenizer.from_file(tmp_path / name) for name in saved):
        assert again.pattern == ours.pattern and [again.encode(text) for text in texts] == expected
    assert [encoding.ids for encoding in theirs.encode_batch(texts, add_special_tokens=False)] == expected
    assert [encoding.ids for encoding in ours.to_hf().encode_batch(texts, add_special_tokens=False)] == expected


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
    for seed in range(300):
        text = changed(random_pre_tokenizer(rng))
        theirs = tokenizers.Tokenizer.from_str(text)
        try:
            ours = pybpe.Tokenizer.from_hf(theirs)
        except pybpe.errors.FormatError as error:
            refused += 1
            assert "behavior" in str(error), text
            continue
        for sample in hostile(seed, 10):
            pieces = theirs.pre_tokenizer.pre_tokenize_str(sample)
            data = sample.encode()
            words = [data[a:b] for a, b in pairwise([0, *ours.pattern.word_ends(data)])]
            assert words == [byte_level.to_bytes(piece) for piece, _ in pieces], (text, sample)
    assert refused < 30


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
    ],
)
def test_what_is_refused_by_name(pre_tokenizer: dict[str, Any] | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(changed(pre_tokenizer))
    with pytest.raises(pybpe.errors.FormatError, match=message):
        pybpe.Tokenizer.from_file(path)
    if "add_prefix_space" not in message:  # the pattern does not decide where spaces are added
        assert pybpe.Tokenizer.from_file(path, pattern="gpt2").pattern.name == "gpt2"


@pytest.mark.parametrize("kind", ["RobertaProcessing", "BertProcessing"])
def test_templates_of_roberta_and_bert(kind: str, tmp_path: Path) -> None:
    tokens = [
        {"id": 256 + i, "content": text, "special": True, "normalized": False, "single_word": False}
        | {"lstrip": False, "rstrip": False}
        for i, text in enumerate(["<s>", "</s>"])
    ]
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


def test_the_page_on_models_says_what_is_tested(root: Path) -> None:
    """Each exact pipeline of these tests is a row of the table in docs/models.md, and each exact row is tested."""
    page = (root / "docs" / "models.md").read_text(encoding="utf-8").partition("## Other parts")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    assert [name for name, _, verdict in rows[1:] if verdict == "exact"] == list(EXACT)
    assert all(verdict == "exact" or verdict.startswith("refused: ") for _, _, verdict in rows[1:])
