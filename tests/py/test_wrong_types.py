"""Files of other libraries, with a JSON value of a wrong type at every place in turn: pybpe raises a typed error, or
reads the file as Hugging Face does."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from pipelines import WITH_REGEX as BYTE_LEVEL
from pipelines import added
from test_added_tokens import BYTES

import pybpe

VALUES = [
    *(
        None, True, False, 0, 1, -1, 1.5, 10**30, "", "x", "Sequence", "NFC", "ByteLevel", "gpt2", "(", "\ud800", [],
        {}, [1], ["x"],
    ),
    *([[]], [{}], [None, None], {"x": 1}, {"type": "Sequence"}, {"type": "NFC"}, {"type": "ByteLevel"}, {"type": []}),
]  # fmt: skip
GONE = object()
TEXTS = ["Hello <s>\u0338 ＡＢ e\u0301\n\n x</s> 中文", "abab", "\x00é  a"]


def template() -> dict[str, Any]:
    bos, a, b = (
        {kind: {"id": i, "type_id": 0}} for kind, i in (("SpecialToken", "<s>"), ("Sequence", "A"), ("Sequence", "B"))
    )
    special = {"id": "<s>", "ids": [256], "tokens": ["<s>"]}
    return {"type": "TemplateProcessing", "single": [bos, a], "pair": [a, b], "special_tokens": {"<s>": special}}


def whole() -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pybpe.pattern.Pattern("cl100k").regex}, "behavior": "Isolated"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(256, "<s>"), added(258, "</s>", special=False)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split | {"invert": False}, BYTE_LEVEL | {"use_regex": False}],
        },
        "post_processor": {"type": "Sequence", "processors": [BYTE_LEVEL, template()]},
        "decoder": BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {**BYTES, "<s>": 256, "ab": 257},
            "merges": ["a b"],
            "pybpe": {"tie_break": "lexicographic", "eos": "</s>"},
        },
    }


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path to each value; in the vocabulary, only to some values."""
    yield path
    inside = list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ())
    for key, value in inside if len(inside) < 50 else [*inside[:1], *inside[-2:]]:
        yield from places(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    data = copy.copy(data)
    if len(path) == 1 and value is GONE:
        del data[path[0]]
    else:
        data[path[0]] = changed(data[path[0]], path[1:], value)
    return data


def variants(data: Any, step: int = 1) -> Iterator[tuple[str, str]]:
    """Yields what is changed, and the JSON text: at each place in turn, every `step`-th value."""
    for number, path in enumerate(places(data)):
        for value in [*VALUES, *([GONE] if path else [])][number % step :: step]:
            yield f"{path}: {value!r:.40}", json.dumps(changed(data, path, value))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_place_of_a_tokenizer_json(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    read = refused = 0
    for what, text in variants(whole()):
        path.write_text(text)
        try:
            ours = pybpe.Tokenizer.from_file(path)
        except pybpe.errors.FormatError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 500, what
            continue
        try:
            theirs = tokenizers.Tokenizer.from_str(text)
        except Exception:  # noqa: BLE001  stricter than we are
            continue
        read += 1
        for sample in TEXTS:
            if ours.model.dropout:  # of 1, which leaves out all merges: the only rate that is not random
                assert ours.encode_dropout(sample, seed=0) == theirs.encode(sample, add_special_tokens=False).ids, what
                continue
            assert ours.encode(sample, add_special_tokens=True) == theirs.encode(sample).ids, (what, sample)
    assert read > 100 and refused > 1000


@pytest.mark.filterwarnings("ignore")
def test_every_place_of_a_configuration(tmp_path: Path) -> None:
    pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>", "</s>"]).save_pretrained(
        tmp_path, eos_token="</s>"
    )
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config["added_tokens_decoder"] = {"256": added(256, "<s>"), "257": added(257, "</s>")}
    config["bos_token"] = added(256, "<s>")
    for _, text in variants(config, 4):
        path.write_text(text)
        try:
            assert pybpe.Tokenizer.from_file(tmp_path).encode("a<s>") == [97, 256]
        except pybpe.errors.FormatError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_every_place_of_the_two_files_of_gpt2(name: str, tmp_path: Path) -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"ab"}, [(b"a", b"b")])
    tok.save(tmp_path, "files")
    vocab = {name: i for name, i in tok.get_vocab().items() if i > 250}
    small = {name: i for name, i in tok.get_vocab().items() if i <= 250}
    path = tmp_path / name
    for _, text in variants(vocab):
        data = json.loads(text)
        path.write_text(json.dumps({**small, **data}) if isinstance(data, dict) and name == "vocab.json" else text)
        try:
            pybpe.Tokenizer.from_file(tmp_path)
        except pybpe.errors.FormatError as error:
            assert str(tmp_path) in str(error)
