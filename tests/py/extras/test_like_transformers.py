"""pybpe's PreTrainedTokenizerFast does what transformers' does, and does the work itself."""

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from texts import CORNER_TEXTS, english, mixed

transformers = pytest.importorskip("transformers")
pytest.importorskip("jinja2")

import tokenizers  # noqa: E402

import pybpe  # noqa: E402
from pybpe.like_transformers import PreTrainedTokenizerFast  # noqa: E402

SPECIALS = ["<unk>", "<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"]
ROLES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"pattern": "gpt2"},
    "template": {"pattern": "llama3", "template": "<s> $A </s>"},
    "normalizer": {"pattern": "qwen2", "normalizer": "NFKC"},
}
TEXTS: list[Any] = [*CORNER_TEXTS, mixed()[:1500], "<s>a</s><pad>", "e\u0301 ﬁ <|im_start|>x"]
TEXTS += english()[:3000].split("\n\n")
OPTIONS: dict[str, list[Any]] = {
    "add_special_tokens": [True, False],
    "padding": [False, True, "longest", "max_length", "do_not_pad"],
    "truncation": [None, False, True, "longest_first", "only_first", "only_second", "do_not_truncate"],
    "max_length": [None, 0, 1, 2, 3, 8, 40],
    "pad_to_multiple_of": [None, 8],
    "padding_side": [None, "left", "right"],
    "return_tensors": [None, "np", "pt"],
    "return_attention_mask": [None, True, False],
    "return_special_tokens_mask": [False] * 7 + [True],
    "return_offsets_mapping": [False] * 7 + [True],
    "return_length": [False] * 7 + [True],
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """pybpe's and transformers' tokenizers of one folder."""
    options = dict(KINDS[request.param])
    template = options.pop("template", None)
    tok = pybpe.train(iter([english()[:50_000]]), vocab_size=600, special_tokens=SPECIALS, **options)
    folder = tmp_path_factory.mktemp("folder")
    tok.replace(template=template).save_pretrained(folder, **ROLES)
    yield PreTrainedTokenizerFast.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


def plain(value: Any) -> Any:
    """Returns a result so that == compares all of it."""
    if isinstance(value, transformers.BatchEncoding):
        encodings = [(e.ids, e.tokens, e.offsets, e.word_ids, e.type_ids) for e in value.encodings or []]
        return {key: plain(each) for key, each in value.items()}, list(value), encodings, value.n_sequences
    if hasattr(value, "tolist"):
        items = value.tolist() if str(value.dtype) != "object" else [*map(plain, value)]
        return type(value), str(value.dtype), value.shape, items
    return value


def outcome(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return plain(call(*args, **options))
    except Exception as error:
        return type(error), str(error)


def same(both: tuple[Any, Any], method: str, *args: Any, **options: Any) -> None:
    ours, theirs = (outcome(getattr(tokenizer, method), *args, **options) for tokenizer in both)
    assert ours == theirs, (method, args, options)


@pytest.mark.filterwarnings("ignore:.*max_length.* is ignored")
def test_calls(both: tuple[Any, Any]) -> None:
    rng, both = random.Random(1), copy.deepcopy(both)
    for _ in range(150):
        options = {name: rng.choice(values) for name, values in OPTIONS.items() if rng.random() < 0.4}
        for tokenizer in both:
            tokenizer.truncation_side = tokenizer.padding_side = "left" if len(options) % 2 else "right"
            tokenizer.model_max_length = 10 if "max_length" in options else 10**30
        batch = rng.choices(TEXTS, k=rng.choice([1, 1, 2, 5]))
        same(both, "__call__", batch, **options)
        same(both, "__call__", batch[0], **options)
        same(both, "encode", batch[0], **{k: v for k, v in options.items() if k != "pad_to_multiple_of"})


def test_other_calls(both: tuple[Any, Any]) -> None:
    same(both, "__call__", TEXTS)
    same(both, "__call__", "a b", "c d", padding="max_length", max_length=9)
    same(both, "__call__", ["a b", "c"], ["d", "e f"], True, True)
    same(both, "__call__", ["some words", "of"], is_split_into_words=True)
    same(both, "__call__", "a b c d e f g", truncation=True, max_length=4, stride=1, return_overflowing_tokens=True)
    same(both, "__call__", "a", text_target="b")
    same(both, "__call__", "<s>a", split_special_tokens=True)
    same(both, "__call__", text="a", return_token_type_ids=True)
    for wrong in (None, [], [[]], 5, b"a", ["a", None], ["a", 5], "\ud800", ["\ud800"], [["a"]], [("a", "b")]):
        for method in ("__call__", "encode"):
            same(both, method, wrong)
    for wrong_option in ({"padding": "nope"}, {"padding_side": "nope"}, {"add_special_tokens": None}):
        same(both, "__call__", "a", **wrong_option)
    same(both, "__call__", ["a", "b c"], padding=True, pad_to_multiple_of=-3)
    same(both, "encode", ["a", "b"])
    same(both, "tokenize", "some <s>words")
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    for options in ({"tokenize": False}, {"return_dict": False}, {"return_tensors": "np"}):
        same(both, "apply_chat_template", chat, **options)


def test_decoding(both: tuple[Any, Any]) -> None:
    ids = both[1]("".join(TEXTS))["input_ids"]
    unknown = both[0].vocab_size + 9
    rows: list[Any] = [ids, tuple(ids), numpy.array(ids), [], [3], 3, [unknown], [-1], ["a"], [1.0], None]
    rows += [[[1, 2], [3]], numpy.array([[1, 2], [3, 4]]), [200], [200, 201]]
    for row in rows:
        for options in ({}, {"skip_special_tokens": True}, {"clean_up_tokenization_spaces": True}, {"other": 1}):
            same(both, "decode", row, **options)
            if row is not None and not isinstance(row, int):
                same(both, "batch_decode", row, **options)
                same(both, "batch_decode", [row, row], **options)


def test_properties(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    assert isinstance(ours, transformers.PreTrainedTokenizerFast) and ours.is_fast
    for name in ("vocab_size", "pad_token_id", "bos_token", "eos_token_id", "all_special_ids", "chat_template"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert len(ours) == len(theirs) and ours.get_vocab() == theirs.get_vocab()
    same(both, "convert_tokens_to_ids", ["a", "<s>", "nope"])
    same(both, "convert_ids_to_tokens", [1, 100, 300])
    batch = [ours("a"), ours("b c")]
    assert plain(ours.pad(batch)) == plain(theirs.pad([theirs("a"), theirs("b c")]))


def test_pybpe_does_the_work(both: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = both[1](["a b", "c"], padding=True, truncation=True, max_length=9)
    for method in ("_encode_plus", "_decode"):
        monkeypatch.setattr(transformers.PreTrainedTokenizerFast, method, None)
    ours = both[0]
    again = ours(["a b", "c"], padding=True, truncation=True, max_length=9, return_offsets_mapping=False)
    assert dict(again) == dict(expected) and ours.batch_decode([[300]]) == [ours.decode([300])]
    assert ours.encode("a b") == ours("a b").input_ids == ours(["a b"])["input_ids"][0]


def set_part(name: str, value: object) -> Callable[[Any], object]:
    return lambda tokenizer: setattr(tokenizer.backend_tokenizer, name, value)


CHANGES: list[Callable[[Any], object]] = [
    lambda tokenizer: tokenizer.add_tokens(["some words"]),
    lambda tokenizer: tokenizer.add_special_tokens({"pad_token": "the"}),
    lambda tokenizer: setattr(tokenizer, "split_special_tokens", True),
    lambda tokenizer: setattr(tokenizer, "add_bos_token", True),
    lambda tokenizer: setattr(tokenizer.backend_tokenizer.model, "dropout", 1.0),
    set_part("post_processor", tokenizers.processors.TemplateProcessing("</s> $A", "$A $B", [("</s>", 2)])),
    set_part("normalizer", tokenizers.normalizers.NFC()),
    set_part("normalizer", tokenizers.normalizers.Lowercase()),
    set_part("pre_tokenizer", tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)),
    set_part("decoder", tokenizers.decoders.WordPiece()),
    set_part("decoder", None),
]


@pytest.mark.filterwarnings("ignore:transformers encodes and decodes")
def test_changes(both: tuple[Any, Any]) -> None:
    for change in CHANGES:
        changed = copy.deepcopy(both)
        changed[0].decode(changed[0]("a")["input_ids"])
        for tokenizer in changed:
            change(tokenizer)
        for text in [*TEXTS, "some words of the Text \u0301"]:
            same(changed, "__call__", text)
            same(changed, "decode", changed[1](text)["input_ids"])


def test_what_pybpe_does_not_support(both: tuple[Any, Any]) -> None:
    changed = copy.deepcopy(both)
    for tokenizer in changed:
        tokenizer.backend_tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    with pytest.warns(pybpe.errors.PybpeWarning, match="at its own speed, because of this tokenizer: .*Lowercase"):
        same(changed, "__call__", "A b")
    same(changed, "__call__", ["A b", "c"], padding=True)  # it warns once


def test_copies_and_files(both: tuple[Any, Any], tmp_path: Path) -> None:
    ours, theirs = copy.deepcopy(both)
    before = pickle.dumps(ours)
    found = ours(["a b", "c"], padding=True)
    assert pickle.dumps(ours) == before
    for again in (pickle.loads(before), PreTrainedTokenizerFast.from_pybpe(pybpe.Tokenizer.from_hf(ours), **ROLES)):
        same((again, theirs), "__call__", ["a <s>b", "c"], padding=True)
    assert pickle.loads(pickle.dumps(found)).word_ids(0) == theirs(["a b", "c"], padding=True).word_ids(0)
    ours.save_pretrained(tmp_path)
    same((ours, transformers.AutoTokenizer.from_pretrained(tmp_path)), "__call__", "a <s>b")
    found = ours(["a b", "c"], padding=True)
    ours.padding_side = "left"
    with pytest.raises(pybpe.errors.ArgumentError, match="changed"):
        found.word_ids(0)


def test_a_letter_of_a_special_token_that_means_a_byte(tmp_path: Path) -> None:
    tok = pybpe.train(iter(["a"]), vocab_size=260, special_tokens=["ku\u0107a", "\u4e2d"])
    tok.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    same((PreTrainedTokenizerFast.from_pybpe(tok), theirs), "decode", [0, 1, 50])
