"""Folders of transformers with other files that affect ids or the chat template: read as there, or refused."""

import json
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
    assert [f"tokenizer_class is '{kind}'" in str(warning.message) for warning in recwarn] == [True] * is_warned


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
