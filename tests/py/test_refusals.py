"""Users' mistakes and the errors they get: arguments and files that no other test covers."""

import json
import shutil
import struct
import zlib
from pathlib import Path

import numpy
import pytest
from corpora import documents, small_tokenizer

import pybpe
import pybpe.corpus
from llmc_compat.shards import DataLoader, write_shard
from pybpe.cli import main
from pybpe.formats import counts_file
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.verification import verify

EOT = "<|endoftext|>"


@pytest.fixture(scope="module")
def tok() -> pybpe.Tokenizer:
    return pybpe.train(iter(documents(8)), vocab_size=300, special_tokens=[EOT])


# ------------------------------------------------------------------------------------------------------
# llm.c's DataLoader


def test_a_data_loader_counts_and_seeks(tmp_path: Path) -> None:
    for i, count in enumerate((9, 15)):
        write_shard(tmp_path / f"{i}.bin", numpy.arange(100 * i, 100 * i + count, dtype="u2"))
    loader = DataLoader(tmp_path / "?.bin", 1, 2)
    assert (loader.num_tokens, loader.num_shards, loader.batches_per_epoch) == (24, 2, 4 + 7)
    batches = [loader.next_batch() for _ in range(12)]
    assert [int(x[0, 0]) for x, _ in batches] == [0, 2, 4, 6, *range(100, 114, 2), 0]
    assert all((y == x + 1).all() for x, y in batches)
    loader.seek(5)
    assert loader.next_batch()[0].tolist() == batches[5][0].tolist()
    loader.reset()
    assert loader.next_batch()[0].tolist() == batches[0][0].tolist()


def test_shards_and_loaders_say_what_they_take(tmp_path: Path) -> None:
    for ids in (numpy.arange(4.0), numpy.arange(4), numpy.zeros((2, 2), dtype="u2")):
        with pytest.raises(pybpe.errors.ArgumentError, match="one-dimensional uint16 or uint32"):
            write_shard(tmp_path / "x.bin", ids)
    write_shard(tmp_path / "x.bin", numpy.arange(9, dtype="u2"))
    for B, T in ((0, 2), (2, -1)):
        with pytest.raises(pybpe.errors.ArgumentError, match="at least 1"):
            DataLoader(tmp_path / "x.bin", B, T)
    with pytest.raises(pybpe.errors.ArgumentError, match="batches must be at least 0, not -1"):
        DataLoader(tmp_path / "x.bin", 1, 2).seek(-1)
    for one in ({"process_rank": 1}, {"num_processes": 2}):
        with pytest.raises(pybpe.errors.ArgumentError, match="pass both process_rank and num_processes, or neither"):
            DataLoader(tmp_path / "x.bin", 1, 2, **one)
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="NUL"):
        pybpe.Tokenizer.from_file("tok\0.bin")


# ------------------------------------------------------------------------------------------------------
# Folders of transformers


def test_a_folder_without_a_tokenizer(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has neither tokenizer.json nor vocab.json"):
        pybpe.Tokenizer.from_file(tmp_path)
    plain = pybpe.Tokenizer(tok.model.vocab, tok.merges)
    plain.save(tmp_path, "files")
    assert pybpe.Tokenizer.from_file(tmp_path).encode("the text") == plain.encode("the text")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected one JSON object"),
        ({"add_prefix_space": True}, "add_prefix_space"),
        ({"chat_template": "\ud800"}, "chat_template contains a lone surrogate"),
        ({"added_tokens_decoder": {"7": {"content": "<|new|>"}}}, "adds the token '<|new|>' with id 7"),
        (
            {"added_tokens_decoder": {"0": {"content": EOT, "lstrip": True}}},
            f"token '{EOT}' has lstrip on here and off",
        ),
        ({"pad_token": "<|new|>"}, "adds the special token '<|new|>'"),
        ({"bos_token": {"__type": "AddedToken", "content": "<|new|>"}}, "adds the special token '<|new|>'"),
        ({"additional_special_tokens": [EOT, "<|new|>"]}, "adds the special token '<|new|>'"),
        ({"extra_special_tokens": {"image_token": "<|new|>"}}, "adds the special token '<|new|>'"),
        ({"split_special_tokens": True}, "split_special_tokens is on"),
    ],
)
def test_a_configuration_that_changes_ids(change: object, message: str, tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    tok.save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(change if isinstance(change, str) else json.dumps({**json.loads(path.read_text()), **change}))  # type: ignore[dict-item]
    with pytest.raises(pybpe.errors.FormatError, match=message.replace("|", r"\|")) as caught:
        pybpe.Tokenizer.from_file(tmp_path)
    assert str(path) in str(caught.value)


def test_a_chat_template_in_a_file_of_its_own(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    tok.save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    found = pybpe.Tokenizer.from_file(tmp_path)
    found.save_pretrained(tmp_path / "again")
    assert "{{ messages }}" in "".join(path.read_text() for path in (tmp_path / "again").iterdir())
    with pytest.raises(pybpe.errors.ArgumentError, match="pad_token='<none>' is not a special token"):
        tok.save_pretrained(tmp_path / "refused", pad_token="<none>")
    with pytest.raises(
        pybpe.errors.ArgumentError, match="additional_special_tokens must be one special token, not list"
    ):
        tok.save_pretrained(tmp_path / "refused", additional_special_tokens=[EOT])  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------
# Word counts


SOUND = json.dumps({"pattern": r"\w+", "special_tokens": [], "normalizer": None}).encode()


def checked(data: bytes) -> bytes:
    return data + struct.pack("<I", zlib.crc32(data))


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        (b"[]", 0, "not a JSON object"),
        (b"{", 0, "not a JSON object"),
        (SOUND, 5, "number of words"),
        (b"{}", 0, "invalid"),
    ],
)
def test_counts_with_right_checksums_and_wrong_content(header: bytes, words: int, message: str, tmp_path: Path) -> None:
    """Writes counts as a faulty program would; checksums would reveal mere damage."""
    start = counts_file.MAGIC + struct.pack("<II", counts_file.VERSION, len(header)) + header
    (tmp_path / "x.counts").write_bytes(checked(start) + checked(struct.pack("<IQ", 0, words)))
    with pytest.raises(pybpe.errors.FormatError, match=rf"x\.counts.*{message}"):
        pybpe.Counts.load(tmp_path / "x.counts")


# ------------------------------------------------------------------------------------------------------
# Folders of token files


def test_verify_finds_ids_and_sums_that_are_not_the_tokenizers(tmp_path: Path) -> None:
    """Writes a manifest with correct hashes of faulty files."""
    text = tmp_path / "t.txt"
    text.write_text(" ".join(documents(40)))
    pybpe.binarize(small_tokenizer(), text, tmp_path / "out", splits=(1,), progress=False)
    small_tokenizer().save(tmp_path / "out" / "tokenizer.json")
    assert verify(tmp_path / "out")[1] == []

    def faults(**changes: object) -> str:
        folder = tmp_path / "changed"
        shutil.copytree(tmp_path / "out", folder, dirs_exist_ok=True)
        manifest = json.loads((folder / "manifest.json").read_text())
        (shards,) = (shards for shards in manifest["shards"].values() if shards)
        shards[0].update(changes)
        manifest["settings"]["format"] = changes.get("format", manifest["settings"]["format"])
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return "\n".join(map(str, verify(folder)[1]))

    assert "the manifest says 7" in faults(tokens=7)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for size in (None, "x", -1):
        (tmp_path / "changed" / "manifest.json").write_text(json.dumps(manifest | {"text_bytes": {"train": size}}))
        with pytest.raises(pybpe.errors.FormatError, match="text_bytes must be numbers"):
            Manifest.load(tmp_path / "changed")
    assert "bytes of text, but the manifest says 7" in faults(text_bytes=7)
    other = pybpe.train(iter(documents(3)), vocab_size=270, special_tokens=[EOT])
    assert "another tokenizer made these files" in str(verify(tmp_path / "out", other)[1][0])


# ------------------------------------------------------------------------------------------------------
# Cleaning


def test_clean_says_what_it_takes(tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("a\nb\n")

    def refused(message: str, inputs: object = text, **settings: object) -> None:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.corpus.clean(inputs, tmp_path / "o.jsonl", progress=False, **settings)  # type: ignore[arg-type]

    refused("inputs is empty", [])
    refused("must be a list such as", languages="en")
    refused("dedup must be one of exact", dedup="fuzzy")
    refused("min_confidence must be from 0 to 1", min_confidence=2.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.txt"]


# ------------------------------------------------------------------------------------------------------
# The command line


def test_train_options_that_do_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "t.txt"
    text.write_text(" ".join(documents(8)))
    arguments = ["train", str(text), "-o", str(tmp_path / "tok.bin"), "--quiet"]
    for extra, message in [
        (["--vocab-size", "300", "--plot", str(tmp_path / "p.svg")], "--plot needs --sizes"),
        (["--sizes", "280,300", "--base", str(tmp_path / "x.json")], "--sizes cannot be used with --base"),
        ([], "--vocab-size"),
    ]:
        assert main([*arguments, *extra]) == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]
    assert main([*arguments, "--vocab-size", "300"]) == 0
    assert pybpe.Tokenizer.from_file(tmp_path / "tok.bin").vocab_size == 300


def test_commands_say_what_they_do_not_take(
    tok: pybpe.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tok.save("t.json")
    for given in ("<s>", "<s>=x", "=5"):
        assert main(["export", "t.json", "-o", "u.json", "--special-token", given]) == 2
        assert "--special-token: expected TEXT=ID" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", "t.json", "-o", "u.json", "more", "words"])
    assert "unrecognized arguments: more words" in capsys.readouterr().err
    assert main(["prune", "t.json", "--vocab-size", "280", "-o", "less.json"]) == 0
    assert pybpe.Tokenizer.from_file("less.json").vocab_size == 280


# ------------------------------------------------------------------------------------------------------
# Manifests


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest["shards"]["train"][0].update(tokens="9"), "the record of .* is invalid"),
        (lambda manifest: manifest["shards"]["train"][0].update(bytes=-1), "the record of .* is invalid"),
        (lambda manifest: manifest.update(tokenizer=[]), "settings, tokenizer and text_bytes must be objects"),
        (lambda manifest: manifest.update(skipped={"records": 1, "skipped": "x"}), "needs the numbers of records"),
        (lambda manifest: manifest["text_bytes"].update(train=-1), "text_bytes must be numbers"),
        (lambda manifest: manifest["settings"].update(packing=[]), "packing must be an object"),
        (lambda manifest: manifest["settings"].update(packing={"sequence_length": 1}), "needs a sequence_length"),
        (
            lambda manifest: manifest["settings"].update(
                mixture={"sources": {"a": {"tokens": -1, "documents": 1, "used": 1, "epochs": 1}}, "phases": []}
            ),
            "the numbers of a mixture must be at least 0",
        ),
    ],
)
def test_a_changed_manifest(change: object, message: str, tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(documents(1)[0])
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,), min_shard_tokens=0)
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)  # type: ignore[operator]
    path.write_text(json.dumps(manifest))
    with pytest.raises(pybpe.errors.FormatError, match=message):
        Manifest.load(tmp_path / "out")
