"""Files of earlier releases (tests/vectors/versions) are read to the same ids, and files of newer ones are refused."""

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import pybpe
from llmc_compat.evals import read_eval
from pybpe.tokens.verification import shard_blocks, verify

VERSIONS = sorted(path for path in (Path(__file__).parents[1] / "vectors" / "versions").iterdir() if path.is_dir())
FORMATS = ("llmc", "raw", "npy", "megatron", "webdataset", "packed")


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def expected(folder: Path) -> Iterator[tuple[str, list[tuple[bytes, list[int]]]]]:
    """Yields the name of each tokenizer with its texts and their ids."""
    content = json.loads((folder / "expected.json").read_text())
    probes = [base64.b64decode(probe) for probe in content["probes"]]
    for name, ids in content["ids"].items():
        yield name, list(zip(probes, ids, strict=True))


def test_every_tokenizer_gives_the_ids_of_its_release(folder: Path) -> None:
    for name, pairs in expected(folder):
        for path in (folder / f"{name}.json", folder / f"{name}.bin"):
            tok = pybpe.Tokenizer.from_file(path)
            for probe, ids in pairs:
                assert tok.encode(probe) == ids, path
    gpt2 = pybpe.Tokenizer.from_file(folder / "gpt2.json")
    assert pybpe.Tokenizer.from_file(folder / "gpt2-pretrained") == gpt2
    small = pybpe.Tokenizer.from_file(folder / "pruned.json")
    remap = numpy.load(folder / "remap.npy")
    assert [gpt2.decode_single_token_bytes(i) for i in remap] == [
        small.decode_single_token_bytes(i) for i in range(small.vocab_size)
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_every_token_file_has_the_documents_of_its_release(folder: Path, form: str) -> None:
    tok = pybpe.Tokenizer.from_file(folder / "gpt2.json")
    manifest, problems = verify(folder / form, tok)
    assert problems == []
    written = []
    for shards in manifest.shards.values():
        ids = [int(i) for shard in shards for block in shard_blocks(str(folder / form), shard, manifest) for i in block]
        written += tok.decode(ids).replace("<|padding|>", "").split("<|endoftext|>")
    texts = [json.loads(line)["text"] for line in (folder / "documents.jsonl").read_text().splitlines()]
    assert sorted(filter(None, written)) == sorted(texts)


@pytest.mark.parametrize("form", FORMATS[:4])
def test_the_inputs_of_its_release_are_known(folder: Path, form: str) -> None:
    """Version 1 of manifests has ranges of inputs in each shard."""
    written = json.loads((folder / form / "manifest.json").read_text())
    names = {source[0] for shards in written["shards"].values() for shard in shards for source in shard["sources"]}
    assert {name for name, _ in pybpe.Manifest.load(folder / form).inputs} == names != set()


def test_counts_and_questions(folder: Path) -> None:
    texts = [json.loads(line)["text"] for line in (folder / "documents.jsonl").read_text().splitlines()]
    counts = pybpe.Counts.load(folder / "words.counts")
    again = pybpe.count_words(iter(texts), special_tokens=["<|endoftext|>", "<|padding|>", "<|user|>"])
    assert counts.to_dict() == again.to_dict() and len(counts) > 50
    tok = pybpe.Tokenizer.from_file(folder / "gpt2.json")
    (question,) = read_eval(folder / "questions.bin")
    assert [tok.decode([*question.context, *end]) for end in question.completions] == [
        f"The cat sat on the {word}" for word in ("mat", "dog", "friends", "12")
    ]


# ------------------------------------------------------------------------------------------------------
# Newer versions


@pytest.mark.parametrize(("version", "message"), [(99, "a newer pybpe made.*update pybpe"), (0, "no pybpe writes")])
def test_other_versions_are_refused(version: int, message: str, tmp_path: Path) -> None:
    folder = VERSIONS[-1]
    tokenizer = json.loads((folder / "gpt2.json").read_text())
    tokenizer["model"]["pybpe"]["version"] = version
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(pybpe.errors.FormatError, match=f"model.pybpe has .*{message}"):
        pybpe.Tokenizer.from_file(tmp_path / "tokenizer.json")

    manifest = json.loads((folder / "llmc" / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": version}))
    with pytest.raises(pybpe.errors.FormatError, match=f"this manifest has .*{message}"):
        pybpe.Manifest.load(tmp_path)

    data = bytearray((folder / "words.counts").read_bytes())
    struct.pack_into("<I", data, 8, version)
    (tmp_path / "words.counts").write_bytes(data)
    with pytest.raises(pybpe.errors.FormatError, match=f"this .counts file has .*{message}") as caught:
        pybpe.Counts.load(tmp_path / "words.counts")
    assert caught.value.offset == 8


def test_a_newer_trailer_of_tokenizer_bin_is_refused(tmp_path: Path) -> None:
    data = bytearray((VERSIONS[-1] / "gpt2.bin").read_bytes())
    data[data.index(b"PYBPETRL") + 8] = 200
    (tmp_path / "tokenizer.bin").write_bytes(data)
    with pytest.raises(pybpe.errors.FormatError, match="a newer pybpe wrote it"):
        pybpe.Tokenizer.from_file(tmp_path / "tokenizer.bin")


def test_files_without_a_version_are_read(tmp_path: Path) -> None:
    """Files of pybpe have a version since 0.1.0 was released; those made before it count as version 1."""
    folder = VERSIONS[-1]
    tokenizer = json.loads((folder / "gpt2.json").read_text())
    del tokenizer["model"]["pybpe"]["version"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    found = pybpe.Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert found == pybpe.Tokenizer.from_file(folder / "gpt2.json")
    manifest = json.loads((folder / "llmc" / "manifest.json").read_text())
    del manifest["version"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert pybpe.Manifest.load(tmp_path).tokens > 0


def test_counts_made_with_other_unicode_tables_are_not_added(tmp_path: Path) -> None:
    """Another version of the tables may split recently assigned characters differently; training from such counts
    alone is fine."""
    ours = pybpe.count_words(iter(["a b a b"]))
    ours.save(tmp_path / "words.counts")
    data = (tmp_path / "words.counts").read_bytes()
    (length,) = struct.unpack_from("<I", data, 12)
    header = json.loads(data[16 : 16 + length])
    assert header["tables"] == f"Unicode {pybpe._binding.unicode_version()}"
    text = json.dumps({**header, "tables": "Unicode 9.9"}).encode()
    start = data[:12] + struct.pack("<I", len(text)) + text
    (tmp_path / "old.counts").write_bytes(start + struct.pack("<I", zlib.crc32(start)) + data[20 + length :])
    theirs = pybpe.Counts.load(tmp_path / "old.counts")
    with pytest.raises(pybpe.errors.ArgumentError, match=r"with Unicode \d+.* and with Unicode 9.9 cannot be added"):
        _ = theirs + ours
    assert theirs != ours and (theirs + theirs).to_dict() == (ours + ours).to_dict()
    assert pybpe.train(vocab_size=257, counts=theirs).merges == pybpe.train(vocab_size=257, counts=ours).merges
