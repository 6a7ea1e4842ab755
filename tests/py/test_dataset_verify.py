"""pybpe verify and stats, and manifests that lie."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import pybpe_command as run
from corpora import EOT, SPLITS, documents, jsonl, split_of_tokens, tokens_of

import pybpe
from pybpe.cli import main
from pybpe.errors import PybpeWarning
from pybpe.reading.streams import file_sha256
from pybpe.support.output_files import FOLDER
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.verification import dataset_statistics, verify


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(jsonl([*documents(200), f"forged {EOT} mark"]))
    return path


def faults(folder: Path, tok: pybpe.Tokenizer | None = None) -> list[str]:
    return [str(problem) for problem in verify(folder, tok)[1]]


def save(tok: pybpe.Tokenizer, folder: Path) -> Path:
    tok.save(folder / "tok.json")
    return folder / "tok.json"


def edit_manifest(folder: Path, change: dict) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    data["shards"]["val"][0].update(change)
    path.write_text(json.dumps(data))


def edit_shard(folder: Path, changes: dict[int, int]) -> None:
    """Changes ids in the validation shard, and the manifest's hash with it."""
    path = folder / "corpus_val_000000.bin"
    data = bytearray(path.read_bytes())
    for place, token in changes.items():
        data[1024 + 2 * place : 1026 + 2 * place] = token.to_bytes(2, "little")
    path.write_bytes(data)
    edit_manifest(folder, {"sha256": file_sha256(str(path))})


def test_faults_are_named(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shard = out / "corpus_val_000000.bin"
    pybpe.binarize(tok, corpus, out)
    data, other = shard.read_bytes(), pybpe.train(iter(documents(50)), vocab_size=500, special_tokens=[EOT])
    for change, by, message in (
        (lambda: shard.write_bytes(data[:-2]), tok, f"{shard.name}: has {len(data) - 2} bytes"),
        (lambda: shard.write_bytes(data[:-2] + bytes([data[-2] ^ 1, data[-1]])), None, "SHA-256"),
        (lambda: shard.unlink(), None, "cannot be read"),
        (lambda: edit_shard(out, {5: 60_000}), tok, "has the id 60000, but the vocabulary ends at 999"),
        (lambda: edit_manifest(out, {"tokens": 7}), tok, "the manifest says 7"),
        (lambda: edit_manifest(out, {"text_bytes": 7}), tok, "of text, but the manifest says 7"),
        (lambda: None, other, "another tokenizer"),
    ):
        pybpe.binarize(tok, corpus, out, force=True)
        change()
        found = faults(out, by)
        assert message in "\n".join(found) and (len(found) == 1 or "says 7" in message)


def changed(**new: object) -> Callable[[Any], object]:
    return lambda data: data["settings"].update(new)


def swap(data: Any, a: str, b: str) -> None:
    for part in (data["shards"], data["text_bytes"]):
        part[a], part[b] = part[b], part[a]


def drop_split(data: Any) -> None:
    del data["shards"]["test"], data["text_bytes"]["test"]


EDITS: dict[str, Callable[[Any], object]] = {
    "documents": lambda data: data["shards"]["train"][0].update(documents=7),
    "documents of two": lambda data: [
        record.update(documents=record["documents"] + more) for record, more in zip(data["shards"]["train"], (1, -1))
    ],
    "text bytes of a split": lambda data: data["text_bytes"].update(train=data["text_bytes"]["train"] - 1),
    "n_vocab": lambda data: data["tokenizer"].update(n_vocab=1001),
    "eot id": lambda data: data["tokenizer"].update(eot=1),
    "pattern": lambda data: data["tokenizer"].update(pattern="x"),
    "normalizer": lambda data: data["tokenizer"].update(normalizer="NFC"),
    "eot": lambda data: data["settings"].update(eot="append" if data["settings"]["eot"] == "prepend" else "prepend"),
    "dtype": changed(dtype="uint32"),
    "format": changed(format="raw"),
    "unknown format": changed(format="other"),
    "splits": changed(splits=[8, 1]),
    "train and val swapped": lambda data: swap(data, "train", "val"),
    "a shard twice": lambda data: data["shards"]["train"].append(data["shards"]["train"][-1]),
    "a train shard in val": lambda data: data["shards"]["val"].append(data["shards"]["train"][0]),
    "the order": lambda data: data["shards"]["train"].reverse(),
    "a shard dropped": lambda data: data["shards"]["train"].pop(),
    "a split dropped": drop_split,
    "a split added": lambda data: data["shards"].update(more=[]),
}


@pytest.mark.parametrize("eot", ["prepend", "append"])
def test_a_manifest_that_contradicts_itself_the_files_or_the_tokenizer(
    eot: str, tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path
) -> None:
    """What an edit leaves without a record is removed with its file."""
    out = tmp_path / "out"
    pybpe.binarize(tok, corpus, out, eot=eot, splits=(8, 1, 1), shard_tokens=3000)
    before = (out / "manifest.json").read_bytes()
    assert faults(out, tok) == [] and len(json.loads(before)["shards"]["train"]) > 2
    for name, edit in EDITS.items():
        data = json.loads(before)
        edit(data)
        (out / "manifest.json").write_text(json.dumps(data))
        listed = {record["file"] for records in data["shards"].values() for record in records}
        removed = {path: path.read_bytes() for path in out.glob("*.bin") if path.name not in listed}
        for path in removed:
            path.unlink()
        assert faults(out, tok), name
        for path, content in removed.items():
            path.write_bytes(content)
    (out / "manifest.json").write_bytes(before)
    assert faults(out, tok.replace(dropout=0.1)) == []


@pytest.mark.parametrize("pad", [None, EOT])
def test_the_documents_of_packed_rows_are_counted(
    pad: str | None, tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path
) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "data")
    for method in ("best-fit", "fill"):
        out = tmp_path / method
        pybpe.pack(tok, tmp_path / "data", out, sequence_length=50, packing=method, pad=pad, shard_tokens=3000)
        assert faults(out, tok) == []
        edit_manifest(out, {"documents": 3})
        assert len(faults(out, tok)) == 1 and "val has" in faults(out, tok)[0]


@pytest.mark.parametrize("splits", ["8,1,1", [], [8, 1, 1, 1], ["8", "1"], {"train": 8}, 8])
def test_settings_of_another_type_are_named(splits: object, tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "data")
    path = tmp_path / "data" / "manifest.json"
    data = json.loads(path.read_text())
    recipe = {"sources": {"a": {"data": str(tmp_path / "data"), "epochs": 1}}}
    calls: list[Callable[[], object]] = [
        lambda: pybpe.join(tok, tmp_path / "data", tmp_path / "out"),
        lambda: pybpe.mix(tok, recipe, tmp_path / "out"),
        lambda: pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=64),
        lambda: verify(tmp_path / "data", tok),
    ]
    for settings in ({"splits": splits}, {"format": ["llmc"]}, {"shard_tokens": "7"}, {"min_shard_tokens": True}):
        path.write_text(json.dumps({**data, "settings": {**data["settings"], **settings}}))
        for call in calls:
            with pytest.raises(
                pybpe.errors.FormatError, match="data.manifest.json: not a manifest of token files.*settings"
            ):
                call()


def test_ids_that_encoding_never_gives_are_found(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "out")
    ids = tokens_of(tmp_path / "out", "val")
    changed = list(ids)
    place = 0
    while place + 1 < len(ids):  # two other ids with the same bytes
        both = b"".join(map(tok.decode_single_token_bytes, ids[place : place + 2]))
        found = [(tok.token_to_id(both[:i]), tok.token_to_id(both[i:])) for i in range(1, len(both))]
        other = [pair for pair in found if None not in pair and list(pair) != ids[place : place + 2]]
        if other and tok.eot_token not in ids[place : place + 2]:
            changed[place : place + 2] = other[0]
            place += 1
        place += 1
    assert tok.decode(changed) == tok.decode(ids) and changed != ids
    edit_shard(tmp_path / "out", dict(enumerate(changed)))
    assert ["a document encodes to different ids" in fault for fault in faults(tmp_path / "out", tok)] == [True]


def test_a_manifest_names_its_folder_and_a_file_is_checked_alone(
    tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    manifest = pybpe.binarize(tok, corpus, out)
    edit_shard(out, {20: 65535})
    for command in ("verify", "inspect"):
        assert main([command, str(out), "--json"]) == main([command, str(out / "manifest.json"), "--json"])
        first, second = map(json.loads, capsys.readouterr().out.splitlines())
        assert first == second
    good, bad = out / "corpus_train_000000.bin", out / "corpus_val_000000.bin"
    assert main(["verify", str(good), "-t", str(save(tok, tmp_path))]) == 0
    assert f"{good}: 1 file, {manifest.shards['train'][0].tokens} tokens: OK" in capsys.readouterr().out
    assert faults(good, tok) == [] and len(faults(bad, tok)) == 1
    (out / "other.bin").write_bytes(b"x")
    with pytest.raises(
        pybpe.errors.ArgumentError, match=r"other\.bin: the manifest in this folder does not list this file"
    ):
        verify(out / "other.bin")
    assert main(["inspect", str(good)]) == 2
    assert "not a tokenizer" in capsys.readouterr().err


def test_manifests_cannot_lead_out_of_their_folder(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "out")
    for name in ("../corpus.jsonl", "/etc/passwd", "..", ".", "a/b.bin", "a\\..\\b", "", "a\0b", 7, None, "\ud800"):
        edit_manifest(tmp_path / "out", {"file": name})
        with pytest.raises(pybpe.errors.FormatError, match="manifest.json"):
            verify(tmp_path / "out")
    with pytest.warns(PybpeWarning, match="is in no manifest, so it stays"):
        pybpe.binarize(tok, corpus, tmp_path / "out", force=True)
    assert corpus.exists()


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"shards": 1}', b"\xff" * 9, b'{"shards": {"a": [{}]}}'])
def test_manifests_of_nonsense(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(data)
    for function in (verify, dataset_statistics):
        with pytest.raises(pybpe.errors.FormatError, match="not a manifest"):
            function(tmp_path)
    with pytest.raises(FileNotFoundError, match="gone: no such folder"):
        verify(tmp_path / "gone")
    (tmp_path / "manifest.json").rename(tmp_path / "x.txt")
    for path, told in ((tmp_path, "not a folder of token files"), (tmp_path / "x.txt", "x.txt: not one of pybpe's")):
        with pytest.raises(FileNotFoundError, match=f"{told}.*no manifest.json"):
            verify(path)


def test_a_kind_of_split_that_is_gone_is_refused(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"split_by": "hash"', '"split_by": "document"'))
    message = "manifest.json: was made with split_by='document', which no version has: make it again"
    for function in (verify, dataset_statistics, lambda out: pybpe.join(tok, [out], tmp_path / "joined")):
        with pytest.raises(pybpe.errors.FormatError, match=message):
            function(tmp_path / "out")


def test_a_changed_manifest(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(documents(1)[0])
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,), min_shard_tokens=0)
    path = tmp_path / "out" / "manifest.json"
    text = path.read_text()
    row = {"rows": "1", "padding": 0, "cuts": 0}
    source = {"tokens": -1, "documents": 1, "used": 1, "epochs": 1}
    for place, change, message in (
        (("shards", "train", 0), {"tokens": "9"}, "the record of .*: tokens must be"),
        (("shards", "train", 0), {"bytes": -1}, "the record of .*: bytes must be"),
        ((), {"tokenizer": []}, "settings, tokenizer, text_bytes and encodings must be objects"),
        ((), {"skipped": {"records": 1, "skipped": "x"}}, "skipped: skipped must be"),
        *((("text_bytes",), {"train": size}, "text_bytes: train must be") for size in (-1, "x", None)),
        *(((), {"inputs": [names]}, "inputs must be names and sizes") for names in (["a.txt", 0.5], [5, 5])),
        ((), {"inputs": [["a.txt"]]}, "not a manifest of token files"),
        (("settings",), {"joined": [{"inputs": 5}]}, "not a manifest of token files"),
        (("settings",), {"packing": []}, "packing: sequence_length must be"),
        (("settings",), {"packing": {"sequence_length": 1}}, "packing: pad must be"),
        (("settings",), {"packing": {"sequence_length": 9, "pad": -1, "splits": {}}}, "packing: pad must be"),
        (
            ("settings",),
            {"packing": {"sequence_length": 9, "pad": 0, "splits": {"train": row}}},
            "a split of packed rows: rows must be",
        ),
        (
            ("settings",),
            {"mixture": {"sources": {"a": source}}},
            "a source of a mixture: tokens must be",
        ),
    ):
        manifest = json.loads(text)
        changed = manifest
        for key in place:
            changed = changed[key]
        changed.update(change)
        path.write_text(json.dumps(manifest))
        with pytest.raises(pybpe.errors.FormatError, match=message):
            Manifest.load(tmp_path / "out")


@pytest.mark.parametrize("eot", ["prepend", "append", "none"])
def test_statistics(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, eot: str) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "out", eot=eot, shard_tokens=3000)
    found = dataset_statistics(tmp_path / "out")
    assert sum(facts.documents for facts in found.values()) == 201
    for split in SPLITS:
        ids = tokens_of(tmp_path / "out", split)
        facts = found[split]
        assert facts.tokens == len(ids)
        assert facts.text_bytes == sum(len(tok.decode_single_token_bytes(i)) for i in ids if i != tok.eot_token)
        assert facts.bytes_per_token == round(facts.text_bytes / facts.tokens, 4)
        lengths = [len(part) for part in split_of_tokens(ids, tok.eot_token) if part]
        if eot == "none":
            assert facts.document_tokens == {}
        else:
            assert facts.document_tokens[0] == min(lengths) and facts.document_tokens[100] == max(lengths)
            assert facts.document_tokens[50] == statistics.median_low(lengths)


# ------------------------------------------------------------------------------------------------------
# Command line


def test_commands(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    out, tokenizer = tmp_path / "out", save(tok, tmp_path)
    run("binarize", "-t", tokenizer, corpus, "-o", out, "--format", "megatron")
    assert "6 files" in run("verify", out, "-t", tokenizer).stdout
    stats = json.loads(run("inspect", out, "--json").stdout)
    assert stats["train"]["documents"] + stats["val"]["documents"] + stats["test"]["documents"] == 201
    assert "bytes per token" in run("inspect", out).stdout
    (out / "corpus_val.idx").write_bytes(b"x")
    broken = run("verify", out, "--json", code=1)
    assert json.loads(broken.stdout)["problems"][0]["file"] == "corpus_val.idx"
    run("inspect", tmp_path, code=2)


def test_verify_with_a_copy_that_has_dropout_and_in_a_workspace(
    tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path
) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "work" / "data", splits=(1,))
    assert verify(tmp_path / "work" / "data", tok.replace(dropout=0.1))[1] == []
    with pytest.raises(pybpe.errors.FileMissingError, match="of this workspace are in .*work/data: name that"):
        verify(tmp_path / "work")


def test_fingerprints_never_change() -> None:
    """If fingerprints changed, those in existing manifests would not match, and `verify` would reject valid folders."""
    tok = pybpe.train(iter(["aa bb aa"]), vocab_size=259, special_tokens=["<|endoftext|>"], normalizer="NFC")
    assert tok.model.fingerprint == "2582b53f044b55c6bfcd8d075e6b39f713c52cda349b57119de241c82231b77b"


def test_shards_that_the_manifest_does_not_list_are_named(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pybpe.binarize(tok, corpus, out)
    (out / "corpus_train_000007.bin").write_bytes((out / "corpus_train_000000.bin").read_bytes())
    (out / "notes.txt").write_text("mine")
    assert [problem.file for problem in verify(out, tok)[1]] == ["corpus_train_000007.bin"]
    (out / "corpus_train_000007.bin").unlink()
    (out / FOLDER / "tasks" / "settings").mkdir(parents=True)
    assert faults(out, tok) == []  # a run that has not removed the manifest has changed nothing
    (out / "manifest.json").unlink()
    with pytest.raises(pybpe.errors.ArgumentError, match="has not finished: run its command again"):
        verify(out, tok)
