"""Folders of transformers with other files that affect ids or the chat template: read as there, or refused."""

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

import pybpe
from pybpe.errors import PybpeWarning

END = "<|endoftext|>"


def train(**options: Any) -> pybpe.Tokenizer:
    return pybpe.train(iter(["low lower newest widest 12345 " * 20]), vocab_size=300, special_tokens=[END], **options)


def change(folder: Path, **config: Any) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    train().save_pretrained(tmp_path)
    return tmp_path


def test_saving_replaces_what_an_earlier_tokenizer_left(folder: Path) -> None:
    (folder / "additional_chat_templates").mkdir()
    others = ["chat_template.jinja", "additional_chat_templates/rag.jinja", "added_tokens.json", "notes.jinja"]
    for name in others:
        (folder / name).write_text('{"<old>": 1000}')
    train().replace(chat_template="{{ messages }}").save_pretrained(folder)
    assert [(folder / name).exists() for name in others] == [False, False, False, True]
    assert pybpe.Tokenizer.from_file(folder).model.chat_template == "{{ messages }}"


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json"])
@pytest.mark.parametrize("number", [300, 301, "300", None])
def test_added_tokens_json(folder: Path, name: str, number: object) -> None:
    if name == "vocab.json":
        (folder / "tokenizer.json").unlink()
        train().save(folder, "files")
    (folder / "added_tokens.json").write_text(json.dumps({END: 0, "<new>": number}))
    with pytest.raises(pybpe.errors.FormatError, match=r"added_tokens\.json: adds the token '<new>'"):
        pybpe.Tokenizer.from_file(folder)
    (folder / "added_tokens.json").write_text(json.dumps({END: 0}))
    assert pybpe.Tokenizer.from_file(folder).encode("low" + END) == train().encode("low" + END)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected one JSON object"),
        ({"add_prefix_space": True}, "add_prefix_space is .* make them equal"),
        ({"chat_template": "\ud800"}, "chat_template contains a lone surrogate"),
        ({"added_tokens_decoder": {"7": {"content": "<|new|>"}}}, "adds the token '<|new|>' with id 7"),
        *(
            (change, "adds the special token '<|new|>'")
            for change in (
                {"pad_token": "<|new|>"},
                {"bos_token": {"__type": "AddedToken", "content": "<|new|>"}},
                {"additional_special_tokens": [END, "<|new|>"]},
                {"extra_special_tokens": {"image_token": "<|new|>"}},
                {"model_specific_special_tokens": {"image": "<|new|>"}},
                {"image_token": "<|new|>"},
                {"image_token": {"content": "<|new|>", "special": True}},
            )
        ),
        ({"split_special_tokens": True}, "split_special_tokens is on"),
    ],
)
def test_a_configuration_that_changes_ids(changes: object, message: str, folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(changes if isinstance(changes, str) else json.dumps({**json.loads(path.read_text()), **changes}))  # type: ignore[dict-item]
    with pytest.raises(pybpe.errors.FormatError, match=message.replace("|", r"\|")) as caught:
        pybpe.Tokenizer.from_file(folder)
    assert str(path) in str(caught.value)


def test_special_tokens_map(folder: Path) -> None:
    path = folder / "special_tokens_map.json"
    path.write_text('{"pad_token": {"content": "low", "lstrip": false}}')
    with pytest.raises(pybpe.errors.FormatError, match="adds the special token 'low'"):
        pybpe.Tokenizer.from_file(folder)
    change(folder, added_tokens_decoder={"0": {"content": END}})  # then transformers does not read the map
    assert pybpe.Tokenizer.from_file(folder).vocab_size == train().vocab_size
    path.write_text("[]")
    with pytest.raises(pybpe.errors.FormatError, match="expected one JSON object"):
        pybpe.Tokenizer.from_file(folder)


QWEN: dict[str, Any] = {"pattern": "qwen2", "normalizer": "NFC"}
OTHER_RULES: list[dict[str, Any]] = [{"pattern": "llama3"}, {"digits": 1}, {"normalizer": "NFC"}]


@pytest.mark.parametrize(
    ("kind", "options", "is_warned"),
    [
        *((kind, {}, False) for kind in ("GPT2TokenizerFast", "CodeGenTokenizer", "PreTrainedTokenizerFast", None)),
        *(("Qwen2TokenizerFast", QWEN, False), ("GPTNeoXTokenizerFast", {"normalizer": "NFC"}, False)),
        *((kind, {}, True) for kind in ("Qwen2Tokenizer", "Qwen2TokenizerFast", "RobertaTokenizerFast", "MyTokenizer")),
        *((kind, other, True) for kind in ("GPT2Tokenizer", "CodeGenTokenizerFast") for other in OTHER_RULES),
    ],
)
def test_a_class_with_rules_of_its_own_is_warned_of(
    kind: str | None, options: dict[str, Any], is_warned: bool, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    warnings.simplefilter("always", PybpeWarning)
    train(**options).save_pretrained(tmp_path)
    change(tmp_path, tokenizer_class=kind)
    assert pybpe.Tokenizer.from_file(tmp_path).encode("lower") == train(**options).encode("lower")
    told = [str(warning.message) for warning in recwarn if "tokenizer_class" in str(warning.message)]
    assert [f"tokenizer_class is '{kind}'" in each for each in told] == [True] * is_warned


@pytest.mark.parametrize("kind", ["Qwen2Tokenizer", "RobertaTokenizerFast", "MyTokenizer"])
def test_without_a_tokenizer_json_such_a_class_is_refused(folder: Path, kind: str) -> None:
    (folder / "tokenizer.json").unlink()
    train().save(folder, "files")
    change(folder, tokenizer_class=kind)
    with pytest.raises(pybpe.errors.FormatError, match=f"the class '{kind}'"):
        pybpe.Tokenizer.from_file(folder)
    assert pybpe.Tokenizer.from_file(folder, pattern="qwen2").pattern.name == "qwen2"


def test_classes_without_ignore_merges(folder: Path) -> None:
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    change(folder, tokenizer_class="GPT2Tokenizer")
    data["model"]["ignore_merges"] = True
    path.write_text(json.dumps(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # merges reach every token
        pybpe.Tokenizer.from_file(folder)
    data["model"]["vocab"]["zzz"] = len(data["model"]["vocab"])
    path.write_text(json.dumps(data))
    with pytest.warns(PybpeWarning, match="tokenizer_class is 'GPT2Tokenizer'"):
        pybpe.Tokenizer.from_file(folder)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ([{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}], "D"),
        ({"default": "D", "tool_use": "T"}, "D"),
        ([{"name": "tool_use", "template": "T"}], None),
        ([1, None, {"name": "default"}], None),
    ],
)
def test_chat_templates_with_names(folder: Path, template: object, expected: str | None) -> None:
    change(folder, chat_template=template)
    assert pybpe.Tokenizer.from_file(folder).model.chat_template == expected


def test_two_files_are_not_hidden_by_another_tokenizer(folder: Path) -> None:
    train().save(folder, "files")  # the same tokenizer, as in GPT-2's own folder
    other = pybpe.train(iter(["something else " * 20]), vocab_size=270, special_tokens=[END])
    before = (folder / "vocab.json").read_bytes()
    with pytest.raises(pybpe.errors.UnsupportedError, match=r"tokenizer\.json belongs to another tokenizer"):
        other.save(folder, "files")
    assert (folder / "vocab.json").read_bytes() == before
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(pybpe.errors.UnsupportedError, match=r"tokenizer\.json belongs to another tokenizer"):
        train().save(folder, "files")


@pytest.mark.parametrize(("texts", "is_read"), [(["<a>", "<b>"], True), (["<a>", "a>b"], False)])
def test_normalized_in_the_configuration_counts_where_it_changes_ids(
    texts: list[str], is_read: bool, tmp_path: Path
) -> None:
    """transformers replaces the flags of tokenizer.json. Without overlaps, normalized has no effect."""
    pybpe.train(iter(["ab"]), vocab_size=258, special_tokens=texts).save_pretrained(tmp_path)
    change(tmp_path, added_tokens_decoder={"0": {"content": texts[0], "normalized": True, "special": True}})
    if is_read:
        pybpe.Tokenizer.from_file(tmp_path)
        return
    with pytest.raises(pybpe.errors.FormatError, match=r"_config\.json: the added token '<a>' has normalized on here"):
        pybpe.Tokenizer.from_file(tmp_path)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has neither tokenizer.json nor vocab.json"):
        pybpe.Tokenizer.from_file(tmp_path)
    plain = pybpe.Tokenizer(train().model.vocab, train().merges)
    plain.save(tmp_path, "files")
    assert pybpe.Tokenizer.from_file(tmp_path).encode("the text") == plain.encode("the text")


def test_a_chat_template_in_a_file_of_its_own(folder: Path, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    found = pybpe.Tokenizer.from_file(folder)
    found.save_pretrained(tmp_path / "again")
    assert "{{ messages }}" in "".join(path.read_text() for path in (tmp_path / "again").iterdir())


def test_roles_of_special_tokens(tmp_path: Path) -> None:
    for role, message in (
        ({"pad_token": "<none>"}, "pad_token='<none>' is not a special token"),
        ({"additional_special_tokens": [END]}, "additional_special_tokens must be one special token, not list"),
        ({"eostoken": END}, "'eostoken' is not a role"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            train().save_pretrained(tmp_path, **role)  # type: ignore[arg-type]
    train().save_pretrained(tmp_path, image_token=END)


# ------------------------------------------------------------------------------------------------------
# Folders of other libraries keep their roles and settings

SPECIALS = [END, "<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"]


def object_of(text: str) -> dict[str, object]:
    return {"__type": "AddedToken", "content": text, "lstrip": False, "normalized": True}


# With the keys of the folders of DeepSeek-V3, gpt-oss, Qwen 3, and Llama 3.1.
CONFIGS: dict[str, dict[str, Any]] = {
    "deepseek": {
        "add_bos_token": False,
        "add_eos_token": False,
        **{f"{role}_token": object_of(text) for role, text in (("bos", "<s>"), ("eos", "</s>"), ("pad", "</s>"))},
        "clean_up_tokenization_spaces": False,
        "legacy": True,
        "model_max_length": 131072,
        "sp_model_kwargs": {},
        "unk_token": None,
        "tokenizer_class": "LlamaTokenizerFast",
        "chat_template": "{% for m in messages %}{{ bos_token + m['content'] + eos_token }}{% endfor %}",
    },
    "gpt-oss": {
        "bos_token": "<s>",
        "eos_token": "<|im_end|>",
        "pad_token": END,
        "extra_special_tokens": {},
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": 1000000000000000019884624838656,
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    },
    "qwen": {
        "add_bos_token": False,
        "add_prefix_space": False,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "bos_token": None,
        "chat_template": [{"name": "default", "template": "{{ messages }}"}, {"name": "rag", "template": "R"}],
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 131072,
        "pad_token": END,
        "split_special_tokens": False,
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": None,
    },
    "llama": {
        "bos_token": "<s>",
        "clean_up_tokenization_spaces": True,
        "eos_token": "</s>",
        "truncation_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    },
}


def folder_with(folder: Path, config: dict[str, Any]) -> Path:
    tok = pybpe.train(iter(["low lower newest widest 12345 " * 20]), vocab_size=300, special_tokens=SPECIALS)
    tok.save(folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def config_of(tok: pybpe.Tokenizer, folder: Path) -> dict[str, Any]:
    tok.save_pretrained(folder)
    found: dict[str, Any] = json.loads((folder / "tokenizer_config.json").read_text())
    return found


def plain(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value["content"] if isinstance(value, dict) and value else value for key, value in config.items()}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_keeps_its_roles_and_settings(tmp_path: Path, name: str) -> None:
    tok = pybpe.Tokenizer.from_file(folder_with(tmp_path, CONFIGS[name]))
    expected = plain(CONFIGS[name])
    tok.save(tmp_path / "alone.json")
    tok.save_pretrained(tmp_path / "again")
    ways = {
        "read": tok,
        "in tokenizer.json": pybpe.Tokenizer.from_file(tmp_path / "alone.json"),
        "read again": pybpe.Tokenizer.from_file(tmp_path / "again"),
        "pickled": pickle.loads(pickle.dumps(tok)),
        "pruned": tok.prune(vocab_size=270),
        "Hugging Face": pybpe.Tokenizer.from_hf(tok.to_hf()),
    }
    for way, same in ways.items():
        assert config_of(same, tmp_path / way) == expected, way
        mapped = json.loads((tmp_path / way / "special_tokens_map.json").read_text())
        roles = {key: text for key, text in expected.items() if key.endswith("_token") and isinstance(text, str)}
        more = {key: texts for key, texts in expected.items() if key == "additional_special_tokens"}
        assert mapped == roles | more
    assert tok.eot_token == tok.special_tokens[expected["eos_token"]]
    tok.save_pretrained(tmp_path / "role", unk_token=END)
    assert json.loads((tmp_path / "role" / "tokenizer_config.json").read_text()) == {**expected, "unk_token": END}


def test_special_tokens_map_comes_first(tmp_path: Path) -> None:
    folder_with(tmp_path, {"pad_token": "<s>"})
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"pad_token": object_of("<pad>")}))
    assert config_of(pybpe.Tokenizer.from_file(tmp_path), tmp_path / "again")["pad_token"] == "<pad>"


def test_chat_templates_in_files_keep_their_names(tmp_path: Path) -> None:
    folder_with(tmp_path, {"chat_template": "not used"})
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "chat_template.jinja").write_text("D")
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("R")
    tok = pybpe.Tokenizer.from_file(tmp_path)
    templates = [{"name": "default", "template": "D"}, {"name": "rag", "template": "R"}]
    assert tok.model.chat_template == "D" and config_of(tok, tmp_path / "again")["chat_template"] == templates
    none = pybpe.Tokenizer.from_file(folder_with(tmp_path / "again", {"eos_token": END}))
    assert "chat_template" not in config_of(none, tmp_path / "none")  # although there are the tokens of ChatML


def test_changes_to_a_tokenizer_with_a_configuration(tmp_path: Path) -> None:
    tok = pybpe.Tokenizer.from_file(folder_with(tmp_path, CONFIGS["deepseek"]))
    without = {key: value for key, value in plain(CONFIGS["deepseek"]).items() if not key.startswith("add_")}
    without["tokenizer_class"] = "PreTrainedTokenizerFast"  # whose rules are those of tokenizer.json
    assert config_of(tok.replace(template="<s> $A"), tmp_path / "template") == without
    assert config_of(tok.extend(["<new>"]), tmp_path / "new") == {
        **plain(CONFIGS["deepseek"]),
        "additional_special_tokens": ["<new>"],
    }
    like = pybpe.train(iter(["low lower"]), vocab_size=270, special_tokens=["<new>"], like=tok)
    assert config_of(like, tmp_path / "like") == {**without, "additional_special_tokens": ["<new>"]}


@pytest.mark.parametrize(
    ("change", "template", "theirs"),
    [
        ({}, None, None),
        ({"add_bos_token": True}, None, "<s> $A"),
        ({"add_bos_token": True}, "<s> $A", None),
        ({"add_bos_token": ...}, None, "<s> $A"),
        ({"add_eos_token": True}, None, "$A </s>"),
        ({}, "<s> $A", "$A"),
        ({"add_bos_token": True, "tokenizer_class": "PreTrainedTokenizerFast"}, None, None),
        ({"tokenizer_class": 5}, None, None),
    ],
)
def test_special_tokens_that_some_versions_add_are_warned_of(
    tmp_path: Path, change: dict[str, Any], template: str | None, theirs: str | None
) -> None:
    config = {**CONFIGS["deepseek"], **change}
    folder_with(tmp_path, {key: value for key, value in config.items() if value is not ...})
    tok = pybpe.Tokenizer.from_file(tmp_path / "tokenizer.json").replace(template=template)
    tok.save(tmp_path / "tokenizer.json")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pybpe.Tokenizer.from_file(tmp_path)
    assert [f"encodes a text as '{theirs}'" in str(warning.message) for warning in caught] == [True] * bool(theirs)


@pytest.mark.parametrize(
    "config",
    [
        {"eos_token": []},
        {"pad_token": 5, "additional_special_tokens": [["x"]]},
        {"x_token": "y", "pad_token": {"content": "y"}},
        {"additional_special_tokens": True, "extra_special_tokens": []},
    ],
)
def test_a_damaged_configuration_in_a_tokenizer_json(tmp_path: Path, config: dict[str, Any]) -> None:
    train().save(tmp_path / "tok.json")
    data = json.loads((tmp_path / "tok.json").read_text())
    data["model"]["pybpe"]["config"] = config
    (tmp_path / "tok.json").write_text(json.dumps(data))
    tok = pybpe.Tokenizer.from_file(tmp_path / "tok.json")
    for number, made in enumerate((tok, tok.extend(["<new>"]))):
        made.save_pretrained(tmp_path / str(number))
        assert pybpe.Tokenizer.from_file(tmp_path / str(number)) == made
