"""Joined folders are what one run of binarize on all inputs writes."""

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from corpora import content, documents, jsonl, small_tokenizer

import pybpe
from pybpe.cli import main
from pybpe.errors import PybpeWarning
from pybpe.tokens import token_folders
from pybpe.tokens.token_folders import TokenFolder
from pybpe.tokens.verification import verify

VERSIONS = Path(__file__).parents[1] / "vectors" / "versions" / "0.1.0"


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    """Three files of different documents, with empty ones."""
    paths = [tmp_path / f"part{number}.jsonl" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(jsonl([*documents(240)[number::3], "", "x"]))
    return paths


def files(folder: Path) -> dict[str, bytes]:
    """Returns the files of a folder except the manifest."""
    return {name: data for name, data in content(folder).items() if name != "manifest.json"}


SETTINGS = [
    {"format": "llmc", "shard_tokens": 3000},
    {"format": "llmc", "eot": "append", "splits": (9, 1), "dtype": "uint32"},
    {"format": "raw"},
    {"format": "raw", "eot": "prepend", "splits": (1,)},
    {"format": "npy", "shard_tokens": 1000},
    {"format": "megatron"},
    {"format": "llmq", "min_shard_tokens": 0},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_equals_one_run(settings: dict[str, object], tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path) -> None:
    settings = settings if settings["format"] == "raw" else {"name": "x", **settings}
    whole = pybpe.binarize(tok, inputs, tmp_path / "whole", split_by="hash", **settings)  # type: ignore[arg-type]
    folders = [tmp_path / f"node{number}" for number in range(3)]
    for path, folder in zip(inputs, folders, strict=True):
        pybpe.binarize(tok, path, folder, split_by="hash", **settings)  # type: ignore[arg-type]
    joined = pybpe.join(tok, folders, tmp_path / "joined")
    assert files(tmp_path / "joined") == files(tmp_path / "whole") and len(files(tmp_path / "whole")) > 0
    for split, records in whole.shards.items():
        assert records == joined.shards[split]
    assert verify(tmp_path / "joined", tok)[1] == []
    assert joined.inputs == whole.inputs == [(str(path), path.stat().st_size) for path in inputs]


def test_a_way_to_divide_text_does_not_matter_for_records(
    tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"name": "x", "split_by": "hash"}
    whole = pybpe.binarize(tok, inputs[:2], tmp_path / "whole", **given)
    pybpe.binarize(tok, inputs[0], tmp_path / "a", documents="line", **given)
    pybpe.binarize(tok, inputs[1], tmp_path / "b", **given)
    assert pybpe.join(tok, [tmp_path / "a", tmp_path / "b"], tmp_path / "joined").shards == whole.shards
    caplog.set_level("INFO")
    pybpe.prepare(inputs, tmp_path / "p", vocab_size=300, documents="blank", progress=False)
    pybpe.prepare(inputs, tmp_path / "p", vocab_size=300, progress=False)
    assert "p: already complete" in caplog.text
    (tmp_path / "c.txt").write_text("One line.\n" * 99)
    pybpe.binarize(tok, tmp_path / "c.txt", tmp_path / "c", documents="line", **given, min_shard_tokens=0)
    pybpe.binarize(tok, inputs[2], tmp_path / "d", **given, min_shard_tokens=0)
    with pytest.raises(pybpe.errors.ArgumentError, match="documents='auto', and .*c with 'line'"):
        pybpe.join(tok, [tmp_path / "c", tmp_path / "d"], tmp_path / "refused")


def test_joined_folders_can_be_joined_again(tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path) -> None:
    whole = pybpe.binarize(tok, inputs, tmp_path / "whole", name="x", split_by="hash")
    for number, path in enumerate(inputs):
        pybpe.binarize(tok, path, tmp_path / f"node{number}", name="x", split_by="hash")
    pybpe.join(tok, [tmp_path / "node0", tmp_path / "node1"], tmp_path / "two")
    pybpe.join(tok, [tmp_path / "two", tmp_path / "node2"], tmp_path / "three")
    assert files(tmp_path / "three") == files(tmp_path / "whole") and whole.tokens > 5000
    with pytest.raises(pybpe.errors.ArgumentError, match="both were made from .*part1"):
        pybpe.join(tok, [tmp_path / "two", tmp_path / "node1"], tmp_path / "four")
    assert not (tmp_path / "four").exists()


def test_refusals(tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path) -> None:
    def made(name: str, path: Path = inputs[0], **settings: object) -> Path:
        pybpe.binarize(tok, path, tmp_path / name, **settings)  # type: ignore[arg-type]
        return tmp_path / name

    def refused(folders: list[Path], match: str) -> None:
        with pytest.raises(pybpe.errors.ArgumentError, match=match):
            pybpe.join(tok, folders, tmp_path / "out")
        assert not (tmp_path / "out").exists()

    first = made("a")
    refused([first, first], "both have the same tokens, so their documents would occur twice")
    refused([first, made("again")], "both have the same tokens, so their documents would occur twice")
    refused(
        [first, made("other", inputs[2], splits=(1, 1, 1))], r"splits=\[1.0, 1.0, 1.0\], and .*a with \[8.0, 1.0, 1.0\]"
    )
    refused([first, made("dtype", inputs[2], dtype="uint32")], "dtype='uint32'")
    with pytest.raises(pybpe.errors.ArgumentError, match="has files of the format webdataset, expected llmc"):
        pybpe.join(pybpe.Tokenizer.from_file(VERSIONS / "gpt2.json"), [VERSIONS / "webdataset"], tmp_path / "out")


def test_folders_made_from_standard_input(
    tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They can be joined, unless the text was the same."""

    def made(name: str, path: Path) -> Path:
        with open(path, encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            pybpe.binarize(tok, "-", tmp_path / name, documents="jsonl")
        return tmp_path / name

    first, second, again = made("a", inputs[0]), made("b", inputs[1]), made("again", inputs[0])
    joined = pybpe.join(tok, [first, second], tmp_path / "out")
    assert joined.tokens == pybpe.Manifest.load(first).tokens + pybpe.Manifest.load(second).tokens
    with pytest.raises(pybpe.errors.ArgumentError, match="both have the same tokens"):
        pybpe.join(tok, [first, again], tmp_path / "out2")


def test_changed_manifests(tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, path in zip(folders, inputs):
        pybpe.binarize(tok, path, folder, name="x", splits=(1,))
    documents = sum(pybpe.Manifest.load(folder).split_documents("train") for folder in folders)
    path = folders[0] / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"]["val"] = []  # another program may list a split without files
    path.write_text(json.dumps(manifest))
    assert pybpe.join(tok, folders, tmp_path / "out").split_documents("train") == documents
    del manifest["settings"]["split_by"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(pybpe.errors.FormatError, match="have no split_by: `binarize` did not write it"):
        pybpe.join(tok, folders, tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("form", ["llmc", "raw", "npy", "megatron", "llmq"])
def test_folders_without_text(form: str, tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")

    def made(name: str, paths: Sequence[Path]) -> Path:
        prefix = None if form == "raw" else "x"
        pybpe.binarize(tok, paths, tmp_path / name, name=prefix, format=form, splits=(1,), min_shard_tokens=0)
        return tmp_path / name

    with pytest.warns(PybpeWarning):
        folders = [made("none", [empty]), made("a", inputs[:1]), made("b", inputs[1:])]
    pybpe.join(tok, folders, tmp_path / "joined")
    assert files(tmp_path / "joined") == files(made("whole", inputs))


def test_the_command(
    tok: pybpe.Tokenizer, inputs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    tok.save(tmp_path / "tok.json")
    monkeypatch.chdir(tmp_path)
    for number, path in enumerate(inputs):
        pybpe.binarize(tok, path.name, f"node{number}", name="x")
    whole = pybpe.join(tok, ["node0", "node1", "node2"], "whole")
    assert main(["join", "node0", "node1", "node2", "-t", "tok.json", "-o", "all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"]["train"] == whole.split_tokens("train")
    assert files(Path("all")) == files(Path("whole"))
    assert main(["join", "node0", "nothing", "-t", "tok.json", "-o", "less"]) == 2
    assert "nothing" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------
# What folders have in common


def split_as_they_are(folder: Path, name: str, texts: list[str], held: list[str], **settings: Any) -> Path:
    """Binarizes texts, the first of which, `held`, are val."""
    path = folder / f"{name}.jsonl"
    path.write_bytes(jsonl([*held, *texts]))
    options: dict[str, Any] = {"min_shard_tokens": 0, "name": "x", "progress": False, **settings}
    pybpe.binarize(small_tokenizer(), path, folder / name, val_documents=len(held), **options)
    return folder / name


@pytest.mark.parametrize("eot", ["prepend", "append"])
def test_no_document_that_one_holds_out_is_trained_on_through_another(
    eot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against sets of texts, with documents that are longer than what is read at once."""
    monkeypatch.setattr(token_folders, "_BLOCK", 120)
    monkeypatch.setattr(token_folders, "_SAMPLE", 20)
    rng, tok = random.Random(eot), small_tokenizer()
    pool = [text[: rng.choice((1, 30, 500))] + str(i) for i, text in enumerate(documents(120))]
    refused = 0
    for number in range(6):
        taken = rng.sample(pool, 60)
        texts = [[taken[k * 20 : k * 20 + 15], taken[k * 20 + 15 : k * 20 + 20]] for k in range(3)]
        if number % 2:
            texts[rng.randrange(3)][0].append(rng.choice(rng.choice(texts)[1]))
        parts = [
            split_as_they_are(tmp_path, f"{number}-{k}", train, held, eot=eot, dtype="uint16" if k else "uint32")
            for k, (train, held) in enumerate(texts)
        ]
        named = [(str(part), TokenFolder.open(str(part), tok)) for part in parts]
        wrong = any({*texts[a][0]} & {*texts[b][1]} for a in range(3) for b in range(3) if a != b)
        refused += wrong
        if wrong:
            with pytest.raises(pybpe.errors.ArgumentError, match="would train on 1 document or more that .* holds out"):
                token_folders.check_documents_apart(named)
        else:
            token_folders.check_documents_apart(named)
    assert 0 < refused < 6


def test_join_and_mix_refuse_to_train_on_held_out_documents(tmp_path: Path) -> None:
    tok, texts = small_tokenizer(), documents(40)
    a = split_as_they_are(tmp_path, "a", texts[:20], texts[20:25])
    b = split_as_they_are(tmp_path, "b", texts[22:30], texts[30:35])
    recipe = {"sources": {name: {"data": str(folder), "epochs": 1} for name, folder in (("a", a), ("b", b))}}
    for call in (lambda: pybpe.join(tok, [a, b], tmp_path / "out"), lambda: pybpe.mix(tok, recipe, tmp_path / "out")):
        with pytest.raises(
            pybpe.errors.ArgumentError, match="b: would train on 3 documents or more that .*a holds out"
        ):
            call()
        assert not (tmp_path / "out").exists()


def test_files_with_equal_paths_are_told_apart_by_their_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok, texts = small_tokenizer(), documents(60)
    contents = {
        "one": texts[:30],
        "other": texts[30:],
        "grown": texts[:40],
        "little": [*texts[40:], texts[0]],
    }
    for name, some in contents.items():
        place = tmp_path / f"of {name}"  # the same relative path on several machines
        place.mkdir()
        monkeypatch.chdir(place)
        Path("web.jsonl").write_bytes(jsonl(some).ljust(30_000, b"\n") if name != "grown" else jsonl(some))
        pybpe.binarize(tok, "web.jsonl", tmp_path / name, min_shard_tokens=0)
    monkeypatch.chdir(tmp_path)
    for names, is_right in ((("one", "other"), True), (("one", "grown"), False), (("one", "little"), False)):
        if is_right:
            assert pybpe.join(tok, names, "-".join(names)).tokens
        else:
            with pytest.raises(
                pybpe.errors.ArgumentError, match="both were made from web.jsonl.*leave one of them out"
            ):
                pybpe.join(tok, names, "-".join(names))
