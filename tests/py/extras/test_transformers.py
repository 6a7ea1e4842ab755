"""Folders of save_pretrained in transformers: the same ids, the right end of text, the chat template."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from pipelines import LLAMA3, QWEN2, WITH_REGEX, splits
from test_added_tokens import file, token
from test_pretrained_folders import CONFIGS, folder_with
from texts import english, mixed

transformers = pytest.importorskip("transformers")
pytest.importorskip("jinja2")

import pybpe  # noqa: E402
from pybpe.formats.pretrained import chat_template  # noqa: E402
from pybpe.like_transformers import PreTrainedTokenizerFast  # noqa: E402
from pybpe.model import CONTROL_TOKENS  # noqa: E402

TEXTS = ["", "Hello, world! 12345", "  two  spaces\n\n", "naïve 中文 👍<|endoftext|>x", "a , b .", "\x00"]
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <3"}]


def load(tok: pybpe.Tokenizer, folder: Path):
    tok.save_pretrained(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return transformers.AutoTokenizer.from_pretrained(folder)


def train(specials: list[str], **options: object) -> pybpe.Tokenizer:
    return pybpe.train(
        iter(["Hello world, hello two spaces. " * 20]), vocab_size=320, special_tokens=specials, **options
    )


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "llama3", "qwen2"])
@pytest.mark.parametrize("normalizer", [None, "NFC"])
def test_auto_tokenizer(tmp_path: Path, pattern: str, normalizer: str | None) -> None:
    tok = train(list(CONTROL_TOKENS), pattern=pattern, normalizer=normalizer)
    theirs = load(tok, tmp_path)
    for text in TEXTS:
        assert theirs(text)["input_ids"] == tok.encode(text) == theirs.encode(text)
        assert theirs.decode(tok.encode(text)) == tok.decode(tok.encode(text))
        assert theirs.decode(tok.encode(text), skip_special_tokens=True) == tok.decode(
            tok.encode(text), skip_special_tokens=True
        )
    assert len(theirs) == tok.vocab_size
    assert theirs.eos_token == "<|endoftext|>" and theirs.eos_token_id == tok.eot_token == 0
    assert theirs.bos_token_id == 0 and theirs.pad_token == "<|padding|>"
    back = pybpe.Tokenizer.from_hf(theirs)
    assert back.model.fingerprint == tok.model.fingerprint and back.eot_token == 0
    theirs.save_pretrained(tmp_path / "theirs")
    again = pybpe.Tokenizer.from_file(tmp_path / "theirs")
    assert again.model.fingerprint == tok.model.fingerprint and chat_template(again.model) == chat_template(tok.model)


@pytest.mark.parametrize("specials", [list(CONTROL_TOKENS), ["<s>", "</s>"], []])
def test_a_folder_with_vocab_json_and_merges_txt(tmp_path: Path, specials: list[str]) -> None:
    tok = train(specials, end_of_text=specials[1] if specials else None)
    tok.save(tmp_path, "files")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert len(theirs) == tok.vocab_size and theirs.eos_token_id == tok.eot_token
    for text in [*TEXTS, "a" + "b ".join(specials)]:
        assert theirs(text)["input_ids"] == tok.encode(text)


def test_chat_of_the_control_tokens(tmp_path: Path) -> None:
    tok = train(list(CONTROL_TOKENS))
    theirs = load(tok, tmp_path)
    text = theirs.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|endoftext|><|im_start|><|system|>Be brief.<|im_end|><|im_start|><|user|>Hi <3<|im_end|>"
        "<|im_start|><|assistant|>"
    )
    ids = theirs.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False)
    assert ids == tok.encode(text)


def test_there_and_back_again_all_formats_are_left(tmp_path: Path) -> None:
    """transformers adds a template that has no effect, and saves the truncation and padding of its last call."""
    tok = train(list(CONTROL_TOKENS))
    theirs = load(tok, tmp_path / "ours")
    assert sorted(theirs.all_special_tokens) == sorted(tok.special_tokens)
    theirs("some words", truncation=True, max_length=2)
    theirs(["some words", "a"], padding=True)
    theirs.save_pretrained(tmp_path / "theirs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for back in (pybpe.Tokenizer.from_hf(theirs), pybpe.Tokenizer.from_file(tmp_path / "theirs")):
            assert back == tok and back.encode("some words") == tok.encode("some words")
            back.save(tmp_path / "t.bin")
            back.save(tmp_path / "t.tiktoken")
            back.to_tiktoken()


@pytest.mark.parametrize(
    "change",
    [
        {"pad_token": "llo w"},
        {"additional_special_tokens": ["llo w"]},
        {"extra_special_tokens": ["llo w"]},
        {"split_special_tokens": True},
        {"added_tokens_decoder": {"0": {"content": "<s>", "lstrip": True, "rstrip": True, "special": True}}},
    ],
)
def test_a_configuration_that_changes_ids_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    tok = train(["<s>"])
    tok.save_pretrained(tmp_path, bos_token="<s>")
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    text = "Hello <s> Hello world"
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(text)["input_ids"] != tok.encode(text)
    with pytest.raises(pybpe.errors.FormatError, match=r"tokenizer_config\.json"):
        pybpe.Tokenizer.from_file(tmp_path)


def test_chatml_where_there_are_its_tokens(tmp_path: Path) -> None:
    theirs = load(train(["<|im_start|>", "<|im_end|>"]), tmp_path)
    text = theirs.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <3<|im_end|>\n<|im_start|>assistant\n"
    )
    assert theirs.eos_token is None


def test_templates_and_other_roles(tmp_path: Path) -> None:
    tok = train(["<s>", "</s>", "<unk>"])
    tok = tok.replace(template=pybpe.Template.parse("<s> $A </s>", "<s> $A </s> $B:1 </s>:1"))
    tok.save_pretrained(tmp_path, eos_token="</s>", unk_token="<unk>")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("a")["input_ids"] == tok.encode("a", add_special_tokens=True)
    assert theirs("a", "b")["input_ids"] == tok.encode("a", "b", add_special_tokens=True)
    assert (theirs.bos_token, theirs.eos_token, theirs.unk_token) == ("<s>", "</s>", "<unk>")
    back = pybpe.Tokenizer.from_file(tmp_path)
    assert back.eot_token == tok.special_tokens["</s>"] and back.model.template == tok.model.template
    with pytest.raises(pybpe.errors.ArgumentError, match="'<nope>'"):
        tok.save_pretrained(tmp_path, eos_token="<nope>")


def test_a_chat_template_of_ones_own(tmp_path: Path) -> None:
    tok = train(["<|endoftext|>"]).replace(chat_template="{{ messages[0]['content'] }}")
    theirs = load(tok, tmp_path)
    assert theirs.apply_chat_template(CHAT, tokenize=False) == "Be brief."
    assert chat_template(pybpe.Tokenizer.from_hf(theirs).model) == chat_template(tok.model)


def test_a_folder_that_was_used_before(tmp_path: Path) -> None:
    """Files of an earlier tokenizer in the folder do not affect how transformers reads the new one."""
    theirs = load(train(["<|endoftext|>"]), tmp_path)
    theirs.chat_template = {"default": "old", "rag": "older"}
    theirs.save_pretrained(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<old>": 400}')
    theirs = load(train(["<|endoftext|>"]).replace(chat_template="new"), tmp_path)
    assert theirs.chat_template == "new" and "<old>" not in theirs.get_vocab()


@pytest.mark.parametrize(("kind", "pattern"), [("Qwen2Tokenizer", "qwen2"), ("GPTNeoXTokenizer", "gpt2")])
def test_classes_with_the_rules_of_the_file(tmp_path: Path, kind: str, pattern: str) -> None:
    train(["<|endoftext|>"], pattern=pattern, normalizer="NFC").save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tokenizer_class": kind}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = pybpe.Tokenizer.from_file(tmp_path)
    assert [theirs.encode(text) for text in [*TEXTS, "e\u0301"]] == ours.encode_batch([*TEXTS, "e\u0301"])


BOS = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<bos>": {"id": "<bos>", "ids": [265], "tokens": ["<bos>"]}},
}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["</s>", 266],
    "cls": ["<s>", 265],
    "trim_offsets": True,
    "add_prefix_space": True,
}


@pytest.mark.parametrize(
    ("pre_tokenizer", "tokens", "parts", "model"),
    [
        (WITH_REGEX, [token("<|endoftext|>")], {}, {}),  # GPT-2
        (splits(LLAMA3), [token("<bos>"), token("<eot>")], {"post_processor": BOS}, {"ignore_merges": True}),
        (
            splits(QWEN2),
            [token("<|endoftext|>"), token("<tool>", special=False), token("<|im_end|>")],
            {"normalizer": {"type": "NFC"}},
            {},
        ),
        (
            {**WITH_REGEX, "add_prefix_space": True},
            [token("<s>"), token("</s>"), token("<mask>", lstrip=True), token("<n>", normalized=True)],
            {"post_processor": ROBERTA},
            {"unk_token": "<s>"},
        ),
    ],
    ids=["gpt2", "llama3", "qwen2", "roberta"],
)
def test_training_in_the_likeness_of_a_tokenizer(
    pre_tokenizer: dict, tokens: list[dict], parts: dict, model: dict
) -> None:
    data = json.loads(file(tokens, pre_tokenizer))
    data = {**data, **parts, "model": {**data["model"], **model}}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data))
    options = {"eos_token": tokens[-1]["content"], "chat_template": "{{ messages }}"}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)
    like, texts = pybpe.Tokenizer.from_hf(theirs), [english()[:30_000], mixed(20_000), "e\u0301 12345"]
    expected = theirs.train_new_from_iterator([texts], 900, new_special_tokens=["<new>"], show_progress=False)
    settings = {"vocab_size": 900, "tie_break": "huggingface", "special_ids": "first", "special_tokens": ["<new>"]}
    ours = pybpe.train(iter(texts), like=like, **settings)
    assert ours.get_vocab() == expected.get_vocab()
    wanted = pybpe.Tokenizer.from_hf(expected).model
    assert replace(ours.model, training={}) == replace(wanted, tokens=ours.model.tokens, merges=ours.model.merges)
    assert list(ours.model.merges) == list(wanted.merges)
    for text in [*texts, *TEXTS, f"a {tokens[-1]['content']} <new>"]:
        assert ours.encode(text) == expected.encode(text, add_special_tokens=False)
        assert ours.encode(text, add_special_tokens=True) == expected.encode(text)


def answers(tokenizer) -> dict[str, object]:
    names = (
        *("bos_token", "eos_token", "pad_token", "unk_token", "bos_token_id", "eos_token_id", "pad_token_id"),
        *("model_max_length", "padding_side", "truncation_side", "clean_up_tokenization_spaces", "model_input_names"),
        *("all_special_tokens", "all_special_ids", "special_tokens_map", "chat_template", "split_special_tokens"),
    )
    found = {name: getattr(tokenizer, name) for name in names}
    found |= {f"ids of {text!r}": tokenizer(text).input_ids for text in [*TEXTS, "<s>x</s>"]}
    if tokenizer.chat_template is not None:
        found["chat"] = tokenizer.apply_chat_template(CHAT, tokenize=False)
    return found | {"decoded": tokenizer.decode(tokenizer.encode("a , b .<s>"), skip_special_tokens=True)}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_that_was_saved_again_gives_the_same_answers(tmp_path: Path, name: str) -> None:
    theirs = transformers.AutoTokenizer.from_pretrained(folder_with(tmp_path, CONFIGS[name]))
    read = pybpe.Tokenizer.from_file(tmp_path)
    made = pybpe.Tokenizer.from_hf(theirs)
    for way, tok in {"read": read, "object": made, "Hugging Face": pybpe.Tokenizer.from_hf(read.to_hf())}.items():
        tok.save_pretrained(tmp_path / way)
        assert answers(transformers.AutoTokenizer.from_pretrained(tmp_path / way)) == answers(theirs), way
    theirs.pad_token, theirs.padding_side = "<|im_start|>", "left"  # settings may change after loading
    assert answers(load(pybpe.Tokenizer.from_hf(theirs), tmp_path / "changed")) == answers(theirs)
    assert answers(PreTrainedTokenizerFast.from_pybpe(pybpe.Tokenizer.from_hf(theirs))) == answers(theirs)
