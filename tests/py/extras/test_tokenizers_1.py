"""Version 1.0 of Hugging Face's tokenizers, in a process of its own, next to the version that other tests use: it gives
the ids of pybpe for every tokenizer.json that pybpe writes, of version 1.0 or 2.0, and pybpe reads what it writes. Its
release candidate has no engine for regular expressions, so it refuses to encode with those that it does not know."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from c_tokenizer import CTokenizer
from pipelines import DIGITS, EXACT, KIMI, O200K, QWEN2, TEKKEN, added, sequence, split
from test_hf_import import hostile_texts, trained
from texts import CORNER_TEXTS, chinese, english, mixed

import pybpe
from pybpe import Template
from pybpe.formats import tokenizer_json, vocab_merges
from pybpe.model import Matching, Model
from pybpe.pattern import Pattern
from pybpe.tokenizer import of_model

FOLDER = Path(sys.prefix, "tokenizers-1")
if not FOLDER.exists():
    pytest.skip("make test-extras installs it", allow_module_level=True)

PROGRAM = """
import json, sys
from tokenizers import Tokenizer
for line in sys.stdin:
    text, inputs = json.loads(line)
    found = []
    try:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text)
        tok = Tokenizer.from_file(sys.argv[1])
        found.append(json.loads(tok.__reduce__()[1][0]))
        found.append([tok.encode(input).ids for input in inputs])
    except ValueError as error:
        found.append(str(error))
    print(json.dumps((found + [None])[:2]))
"""
SPECIALS = ["<|endoftext|>", "<|im_end|>", "<tool>"]
NO_ENGINE = "needs a system-regex backend"
TEXTS = [*CORNER_TEXTS, *hostile_texts(3, 100, SPECIALS), english()[:3000], chinese()[:1000], mixed()[:3000]]


@cache
def corpus() -> list[str]:
    return [english()[:40_000], chinese()[:8000], mixed()[:20_000]]


def theirs(files: list[tuple[str, list[str]]], folder: Path) -> list[tuple[Any, Any]]:
    """Returns for each file and its texts what tokenizers 1.0 writes, and the ids. The first error takes the place of
    either; after it comes None."""
    sent = "".join(json.dumps(file) + "\n" for file in files)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder / "theirs.json"],
        input=sent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its hash table says there what it tries
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        check=True,
        text=True,
        encoding="utf-8",
    )
    return [tuple(json.loads(line)) for line in run.stdout.splitlines()]


def both(model: Model) -> list[str]:
    return [tokenizer_json.dumps(model, version) for version in ("1.0", "2.0")]


def read(text: str) -> pybpe.Tokenizer:
    return of_model(tokenizer_json.loads(text, "x"))


def without_ours(text: str) -> Any:
    data = json.loads(text)
    del data["model"]["pybpe"]
    return data


def check(models: list[Model], texts: list[str], folder: Path) -> int:
    """Checks both files of each model. Returns for how many models tokenizers 1.0 has no engine."""
    refused = 0
    files = [(text, texts) for model in models for text in both(model)]
    results = theirs(files, folder)
    for i, model in enumerate(models):
        tok = of_model(model)
        expected = [tok.encode(text, add_special_tokens=True) for text in texts]
        (_, of_1), (canonical, of_2) = results[2 * i : 2 * i + 2]
        second = files[2 * i + 1][0]
        assert read(second).model == model
        assert json.dumps(canonical) == json.dumps(without_ours(second))  # in their order of keys
        if isinstance(of_2, str):
            assert NO_ENGINE in of_2 and of_1 == of_2
            refused += 1
            continue
        assert of_1 == of_2 == expected
        again = read(json.dumps(canonical))
        assert [again.encode(text, add_special_tokens=True) for text in texts] == expected
    return refused


def trained_here(**options: Any) -> Model:
    return pybpe.train(iter(corpus()), vocab_size=600, special_tokens=SPECIALS, **options).model


def test_files_of_every_kind_give_our_ids(tmp_path: Path) -> None:
    patterns, places = ("gpt2", "o200k", "llama3", "qwen2"), ("first", "after_bytes", "last")
    models = [trained_here(pattern=pattern, special_ids=place) for pattern in patterns for place in places]
    plain = models[0]
    runs = Template.parse("$A <tool>", "<tool> $A:2 <tool> <|im_end|> <tool>:1 $B:1 <|im_end|>:1")
    models += [
        trained_here(pattern="llama3", digits=1),
        trained_here(normalizer="NFC"),
        trained_here(normalizer="NFKC"),
        replace(plain, template=Template.parse("<tool>:1 <|im_end|> <tool> $A:2 <tool>:3")),
        replace(plain, template=runs, eos="<tool>"),
        replace(plain, matching={"<tool>": Matching(lstrip=True), "<|im_end|>": Matching(rstrip=True)}),
        replace(plain, visible=frozenset(["<tool>"])),
        replace(plain, tokens=[*plain.tokens, b" zqzq"], whole_words=True),
    ]
    assert check(models, TEXTS, tmp_path) == 0


def test_patterns_without_an_engine_are_refused_and_not_mistaken(tmp_path: Path) -> None:
    patterns = ["cl100k", "nanochat", r"\p{L}+|\P{L}+", r"[^\n]+\n?|\n"]
    models = [pybpe.train(iter(corpus()), vocab_size=400, pattern=pattern).model for pattern in patterns]
    assert check(models, TEXTS[:20], tmp_path) == len(models)


@pytest.mark.parametrize("pipeline", EXACT)
def test_what_it_makes_of_files_of_version_1_means_the_same(pipeline: str, tmp_path: Path) -> None:
    text = trained(pipeline)
    tok = read(text)
    [(written, ids)] = theirs([(text, TEXTS)], tmp_path)
    if isinstance(written, str):
        assert "add_prefix_space" in written or "must be the last" in written
        return
    again = read(json.dumps(written))
    expected = [tok.encode(text) for text in TEXTS]
    if pipeline == "Splits deepseek-llm":  # its engine differs in $
        assert again.pattern == Pattern(tok.pattern.regex.replace(r"(?=\n|\Z)", r"\Z")) != tok.pattern
    else:
        assert again.model == replace(tok.model, training=again.model.training)
        assert [again.encode(text) for text in TEXTS] == expected
    assert ids == expected or NO_ENGINE in ids


BYTES = {char: i for i, char in enumerate(vocab_merges.CHAR_TO_BYTE)}
GPT2 = {"type": "Split", "pattern": {"Regex": Pattern("gpt2").regex}}  # as tk-convert writes it
HAND_MADE: dict[str, dict[str, Any]] = {
    "as converted from gpt2": {
        "pre_tokenizer": GPT2,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    },
    "every part": {
        "role_to_token": {"bos_token": "<s>", "eos_token": "</s>"},
        "added_tokens": [added(256, "<s>", special=False), added(257, "</s>", rstrip=True)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        "pre_tokenizer": sequence(DIGITS, split(QWEN2)),
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"ids": [256, 257]}, {"seq": "A"}, {"ids": [257], "type_id": 1}],
            "pair": [{"seq": "A"}, {"ids": [257]}, {"seq": "B", "type_id": 1}],
        },
    },
    "kimi": {"pre_tokenizer": split(KIMI, "Removed", True), "added_tokens": [added(256, "<|endoftext|>")]},
    "tekken": {"pre_tokenizer": split(TEKKEN), "added_tokens": None},
    "o200k": {"pre_tokenizer": sequence(split(O200K))},
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_hand_made_files_are_read_alike(name: str, tmp_path: Path) -> None:
    merges = [["Ġ", "t"], ["h", "e"], ["Ġt", "he"], ["e", "r"], ["ä", "½"]]
    vocab = {**BYTES, **{left + right: 258 + i for i, (left, right) in enumerate(merges)}, "<s>": 256, "</s>": 257}
    if name != "every part":
        vocab = {**BYTES, "<|endoftext|>": 256, "<unused>": 257, **vocab}
        del vocab["<s>"], vocab["</s>"]
    model = {"type": "BPE", "unk_token": None, "byte_level": True, "vocab": vocab, "merges": merges}
    text = json.dumps({"version": "2.0", **HAND_MADE[name], "model": model})
    tok = read(text)
    inputs = [*TEXTS, "the </s>  there<s>", "other"]
    [(_, ids)] = theirs([(text, inputs)], tmp_path)
    assert ids == [tok.encode(input, add_special_tokens=True) for input in inputs]
    alone = CTokenizer(text.encode())
    assert [alone.encode(input) for input in inputs] == [tok.encode(input) for input in inputs]
    assert alone.vocab.eot_id == tok.eot_token
    assert tok.model.eot == {"every part": "</s>", "as converted from gpt2": None}.get(name, tok.model.eot)


def random_model(rng: random.Random) -> Model:
    """Returns a model whose tokens, merges and special tokens are drawn from few characters. The special tokens have no
    space, which tokenizers 1.0 writes as another character, and their beginning is nowhere else in them: its rc3 does
    not find ">>a" in ">>>a"."""
    letters = rng.sample("abc \n1é", 5)
    pattern = rng.choice(("gpt2", "o200k", "llama3", "qwen2", r"\p{N}(?then)gpt2"))
    words = ["".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(30)]
    specials = list(dict.fromkeys("".join(rng.choices("<ab>|", k=rng.randint(2, 4))) for _ in range(rng.randint(0, 4))))
    made = pybpe.train(
        iter([" ".join(words)]),
        vocab_size=256 + len(specials) + rng.randint(0, 40),
        special_tokens=specials,
        special_ids=rng.choice(("first", "after_bytes", "last")),
        pattern=pattern,
        normalizer=rng.choice((None, None, "NFC", "NFKC")),
    ).model
    if specials and rng.random() < 0.5:
        texts = rng.choices(specials, k=rng.randint(1, 4))
        texts.insert(rng.randrange(len(texts) + 1), "$A")
        pair = [*rng.choices(specials, k=rng.randint(0, 2)), "$A", *rng.choices(specials, k=rng.randint(0, 2)), "$B:1"]
        made = replace(made, template=Template.parse(texts, pair))
    return replace(made, eos=rng.choice([None, *specials]), visible=frozenset(specials[:1]))


@pytest.mark.filterwarnings("ignore:the vocabulary has")
def test_random_tokenizers(tmp_path: Path) -> None:
    rng = random.Random(5)
    for _ in range(int(os.environ.get("PYBPE_RANDOM", 200)) // 100):
        models = [random_model(rng) for _ in range(100)]
        texts = ["".join(rng.choices("abc \n1é<> |中\u0301", k=rng.randint(0, 40))) for _ in range(20)]
        assert check(models, texts, tmp_path) == 0
