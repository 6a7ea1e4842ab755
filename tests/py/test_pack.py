"""Folders of packed rows in every format: against the slow version, through llm.c's loader, in one call or two, after
a kill. Parquet is in tests/py/extras."""

import hashlib
import io
import os
import tarfile
from pathlib import Path

import numpy
import pytest
from corpora import EOT, content, documents, split_of_tokens, tokens_of
from reference.loader import DataLoader
from reference.packing import columns, pieces, pieces_of_rows
from test_ulimits import file_limit

import pybpe
from llmc_compat.check import check
from llmc_compat.shards import Batch, read_shard
from pybpe.cli import main
from pybpe.loading import PackedSequences
from pybpe.tokens.formats import METHODS
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.pack.rows import COLUMNS, row_fault
from pybpe.tokens.verification import dataset_statistics, verify

T = 64
DOCUMENTS = 70


@pytest.fixture(scope="module")
def data(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    texts = [*documents(DOCUMENTS), "x", "Long. " * 400, "yes"]
    (folder / "corpus.txt").write_text(EOT.join(texts), encoding="utf-8")
    pybpe.binarize(tok, folder / "corpus.txt", folder / "data", shard_tokens=4000, split_by="hash")
    return folder / "data"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pad", [None, EOT])
def test_a_folder_is_packed(tok: pybpe.Tokenizer, data: Path, tmp_path: Path, method: str, pad: str | None) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, packing=method, pad=pad, shard_tokens=4000)
    assert tok.eot_token is not None and made.packing is not None
    assert made.packing["pad"] == tok.special_tokens[pad or "<|pad|>"]
    source = Manifest.load(data)
    for split, shards in made.shards.items():
        assert len({shard.tokens for shard in shards}) == 1  # llm.c can resume
        rows = []
        for shard in shards:
            ids = read_shard(tmp_path / "a" / shard.file).tolist()
            assert row_fault([numpy.array(ids)], T, tok.eot_token) is None and ids[-1] == tok.eot_token
            rows += [ids[at : at + T] for at in range(0, len(ids) - 1, T)]
        expected = pieces(split_of_tokens(tokens_of(data, split), tok.eot_token)[1:], tok.eot_token, T)
        found = pieces_of_rows(rows, tok.eot_token, made.packing["pad"])
        if method == "best-fit":
            assert sorted(found) == sorted(expected)
        facts = made.packing["splits"][split]
        assert facts["rows"] == len(rows) and facts["cuts"] == len(found) - source.split_documents(split)
        assert facts["padding"] == len(rows) * T - sum(map(len, found))
        assert made.split_documents(split) == source.split_documents(split)
    assert made.text_bytes == source.text_bytes
    assert verify(tmp_path / "a", tok)[1] == []
    facts = dataset_statistics(tmp_path / "a")
    assert sum(split.documents for split in facts.values()) == DOCUMENTS + 3
    assert method != "best-fit" or facts["train"].document_tokens[100] == T - 1  # a row


@pytest.mark.parametrize("form", ["llmc", "npy"])
def test_a_split_without_documents_has_no_rows(tok: pybpe.Tokenizer, tmp_path: Path, form: str) -> None:
    text = _written(tmp_path / "a.txt", EOT.join(documents(20)))
    pybpe.binarize(tok, text, tmp_path / "data", splits=(1, 0, 1), min_shard_tokens=0)
    tok.save(tmp_path / "tok.json")
    words = ["--sequence-length", "16", "--format", form, "-o", str(tmp_path / "rows")]
    assert main(["pack", str(tmp_path / "data"), "-t", str(tmp_path / "tok.json"), *words]) == 0
    manifest = Manifest.load(tmp_path / "rows")
    assert manifest.packing is not None and manifest.packing["splits"]["val"] == {} and manifest.shards["val"] == []
    assert verify(tmp_path / "rows")[1] == []


@pytest.mark.parametrize(("B", "world", "shuffle"), [(1, 1, False), (4, 1, True), (3, 2, True)])
def test_llmc_reads_whole_rows(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, B: int, world: int, shuffle: bool
) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, shard_tokens=4000)
    shards = [read_shard(tmp_path / "a" / shard.file).tolist() for shard in made.shards["train"]]
    assert len(shards) > 1
    rows = {tuple(shard[at : at + T]) for shard in shards for at in range(0, len(shard) - 1, T)}
    for rank in range(world):
        loader = DataLoader(shards, B, T, rank, world, shuffle)
        for _ in range(2 * sum(map(len, shards)) // (B * T * world)):
            inputs, targets = loader.next()
            for at in range(0, B * T, T):
                assert tuple(inputs[at : at + T]) in rows
                assert targets[at + T - 1] == tok.eot_token


# ----------------------------------------------------------------------------------------------------
# Refusals, and what reads the result


def test_what_cannot_be_packed_is_refused(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for wrong, message in (
        ({"sequence_length": 1}, "sequence_length"),
        ({"sequence_length": 64, "packing": "worst-fit"}, "packing"),
        ({"sequence_length": 64, "format": "raw"}, "format must be one of llmc, npy, parquet, webdataset"),
        ({"sequence_length": 64, "pad": "nothing"}, "pad"),
        ({"sequence_length": 64, "shard_tokens": 64}, "shard_tokens"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.pack(tok, data, out, **wrong)  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.LimitError, match="2 GiB"):
        pybpe.pack(tok, data, out, sequence_length=T, shard_tokens=1 << 31)
    with pytest.raises(pybpe.errors.LimitError, match="tokens"):
        pybpe.pack(tok, _tiny(tok, tmp_path), out, sequence_length=T)
    pybpe.binarize(tok, data.parent / "corpus.txt", tmp_path / "bare", eot="none")
    with pytest.raises(pybpe.errors.ArgumentError, match="bare: has no end of text between documents"):
        pybpe.pack(tok, tmp_path / "bare", out, sequence_length=T)
    assert not out.exists()
    pybpe.pack(tok, data, out, sequence_length=T)
    with pytest.raises(pybpe.errors.ArgumentError, match="This call has sequence_length 32 instead of 64: choose"):
        pybpe.pack(tok, data, out, sequence_length=32)


def _tiny(tok: pybpe.Tokenizer, folder: Path) -> Path:
    """A split whose tokens are enough for a shard; as rows they are padded, and remain enough only from 257 tokens."""
    pybpe.binarize(tok, _written(folder / "tiny.txt", "a b"), folder / "tiny", splits=(1,), min_shard_tokens=0)
    manifest = folder / "tiny" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"min_shard_tokens": 0', '"min_shard_tokens": 257'))
    return folder / "tiny"


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_documents_with_the_padding_token_are_refused(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    text = EOT.join(["<|pad|> in a text", *documents(30)])
    pybpe.binarize(tok, _written(tmp_path / "c.txt", text), tmp_path / "data", splits=(1,))
    with pytest.raises(pybpe.errors.ArgumentError, match="contain the padding token"):
        pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=T)
    pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=T, pad=EOT)
    assert verify(tmp_path / "out", tok)[1] == []


def test_check_refuses_another_T(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T // 2)
    assert not [each for each in check([tmp_path / "a"], Batch(4, T // 2))[1] if "rows" in str(each)]
    (finding,) = [each for each in check([tmp_path / "a"], Batch(4, T))[1] if "rows" in str(each)]
    assert finding.is_error and "rows of 32 tokens were packed, but T is 64" in finding.fault
    (finding,) = [each for each in check([tmp_path / "a"])[1] if "rows" in str(each)]
    assert not finding.is_error
    path = tmp_path / "a" / made.shards["train"][0].file
    ids = read_shard(path)
    path.write_bytes(path.read_bytes()[:1024] + numpy.roll(ids, 1).tobytes())
    assert any("begins a row" in str(each) for each in check([tmp_path / "a"], Batch(4, T // 2))[1])


def test_the_windows_of_several_shards_are_their_rows(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, shard_tokens=4000)
    shards = [read_shard(tmp_path / "a" / shard.file).tolist() for shard in made.shards["train"]]
    expected = [shard[at : at + T + 1] for shard in shards for at in range(0, len(shard) - 1, T)]
    windows = PackedSequences(tmp_path / "a" / "*_train_*.bin", T, eot_id=tok.eot_token, eot="prepend")
    assert len(shards) > 1 and len(windows) == len(expected)
    assert [[*x.tolist(), int(y[-1])] for x, y in windows] == expected
    assert windows[-1].inputs.tolist() == expected[-1][:-1]
    assert [windows.cu_seqlens(i)[0] for i in range(3)] == [0, 0, 0]
    assert {len(window.inputs) for window in PackedSequences(windows.stream.paths, T, drop_last=False)} == {T}


def test_windows_that_are_not_rows_are_refused(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, shard_tokens=4000)
    size = made.shards["train"][0].bytes
    first = tmp_path / "a" / made.shards["train"][0].file
    for path, length, stride in ((tmp_path / "a" / "*_train_*.bin", T, 1), (first, T // 2, None), (first, T // 2, T)):
        with pytest.raises(pybpe.errors.ArgumentError, match="packed rows of 64"):
            PackedSequences(path, length, stride)
    with pytest.raises(pybpe.errors.ArgumentError, match="the manifest says eot='prepend', not 'append'"):
        PackedSequences(first, T, eot="append")
    with pytest.raises(pybpe.errors.ArgumentError, match="has no packed rows, but another of the files does"):
        PackedSequences([first, next(data.glob("*_val_*.bin"))], T)
    ids = read_shard(first)
    first.write_bytes(
        numpy.array([20240520, 1, len(ids) - 1], dtype="<i4").tobytes().ljust(1024, b"\0") + ids[:-1].tobytes()
    )
    with pytest.raises(pybpe.errors.FormatError, match=f"the manifest says {size}: write the data"):
        PackedSequences(first, T)
    manifest = tmp_path / "a" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"bytes": {size}', f'"bytes": {size - 2}'))
    with pytest.raises(pybpe.errors.FormatError, match="are not rows of 64 and one more"):
        PackedSequences(first, T)


def test_the_command_line_packs(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"sequence_length": T, "packing": "fill", "format": "npy"}
    tok.save(tmp_path / "tok.json")
    words = ["-t", str(tmp_path / "tok.json"), "--sequence-length", str(T), "--packing", "fill", "--format", "npy"]
    assert main(["pack", str(data), "-o", str(tmp_path / "out"), *words, "--seed", "3"]) == 0
    assert "padding" in capsys.readouterr().out
    made = [pybpe.pack(tok, data, tmp_path / f"{seed}", seed=seed, **given) for seed in (3, 4)]  # type: ignore[arg-type]
    assert content(tmp_path / "out") == content(tmp_path / "3") and made[0].shards != made[1].shards


# ----------------------------------------------------------------------------------------------------
# Other formats than shards: rows have columns


def rows_of(folder: Path, split: str, form: str) -> dict[str, list[list[int]]]:
    """Returns the columns of all rows of a split."""
    found: dict[str, list[list[int]]] = {column: [] for column in COLUMNS}
    if form == "npy":
        for column in COLUMNS:
            for path in sorted(folder.glob(f"*_{split}_*.{column}.npy")):
                found[column] += numpy.load(path).tolist()
        return found
    for path in sorted(folder.glob(f"*_{split}_*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                column = member.name.split(".")[1]
                found[column].append(numpy.load(io.BytesIO(tar.extractfile(member).read())).tolist())
    return found


@pytest.mark.parametrize("form", ["npy", "webdataset"])
def test_rows_have_columns_in_other_formats(tok: pybpe.Tokenizer, data: Path, tmp_path: Path, form: str) -> None:
    llmc = pybpe.pack(tok, data, tmp_path / "llmc", sequence_length=T)
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, format=form, shard_tokens=4000)
    assert [len(shards) for shards in made.shards.values()][0] > 1
    for split, shards in made.shards.items():
        (shard,) = llmc.shards[split]
        expected = read_shard(tmp_path / "llmc" / shard.file)[:-1].reshape(-1, T).tolist()
        found = rows_of(tmp_path / "a", split, form)
        rows = found["input_ids"]
        assert rows == expected[: len(rows)] and len(expected) - len(rows) <= 1  # llm.c's shards may need a spare row
        assert made.packing["splits"][split]["rows"] == len(rows)
        assert sum(shard.tokens for shard in shards) == len(rows) * T
        for i, row in enumerate(rows):
            parts = pieces_of_rows([row], tok.eot_token, made.packing["pad"])
            slow = columns([(part, True) for part in parts], T, made.packing["pad"])
            mask = slow.pop("loss_mask")
            assert {name: found[name][i] for name in slow} == slow
            assert all(a == b or ids == tok.eot_token for a, b, ids in zip(found["loss_mask"][i], mask, row))
    assert verify(tmp_path / "a", tok)[1] == []
    assert dataset_statistics(tmp_path / "a")["train"].documents == made.split_documents("train")
    path = tmp_path / "a" / made.shards["train"][0].file
    before = path.read_bytes()
    path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    assert [str(problem) for problem in verify(tmp_path / "a", tok)[1]] == [
        f"{path.name}: its SHA-256 is not the manifest's: its content has changed"
    ]


def test_rows_that_are_not_rows_are_found_in_other_formats(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, format="npy")
    path = tmp_path / "a" / made.shards["val"][0].file
    ids = numpy.load(path)
    old = made.shards["val"][0].sha256
    for changed, message in (
        (numpy.roll(ids, 1), "begins a row"),
        (ids.reshape(-1)[:-1], "a whole number of rows of 64"),
    ):
        numpy.save(path, changed)
        manifest = tmp_path / "a" / "manifest.json"
        text = manifest.read_text().replace(old, hashlib.sha256(path.read_bytes()).hexdigest())
        manifest.write_text(text.replace(f'"bytes": {made.shards["val"][0].bytes}', f'"bytes": {path.stat().st_size}'))
        assert message in str(verify(tmp_path / "a", tok)[1][0])
        manifest.write_bytes(made.to_json())


@pytest.mark.parametrize("form", ["llmc", "npy", "webdataset"])
def test_a_file_that_cannot_be_written_is_named(tok: pybpe.Tokenizer, tmp_path: Path, form: str) -> None:
    text = _written(tmp_path / "corpus.txt", "Long. " * 20_000)
    pybpe.binarize(tok, text, tmp_path / "data", splits=(1,))
    with (
        file_limit(10_000),
        pytest.raises(pybpe.errors.FileError, match="corpus_train_000000.*cannot be written.*large"),
    ):
        pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=1024, format=form)
    assert not (tmp_path / "out").exists()


def test_rows_are_alone_in_their_folder(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(pybpe.errors.ArgumentError, match="contains other files, such as file"):
        pybpe.pack(tok, data, tmp_path, sequence_length=T)
    with pytest.raises(pybpe.errors.ArgumentError, match="format='parquet' is for rows, which `pybpe pack` makes"):
        pybpe.binarize(tok, data.parent / "corpus.txt", tmp_path / "out", format="parquet")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("form", ["raw", "npy", "megatron", "llmq"])
def test_marks_after_documents_and_other_formats_give_the_same_rows(
    form: str, tok: pybpe.Tokenizer, data: Path, tmp_path: Path
) -> None:
    """As in llm.c's shards with marks before documents."""
    named = {} if form == "raw" else {"name": "corpus"}
    source = pybpe.binarize(
        tok,
        data.parent / "corpus.txt",
        tmp_path / "data",
        format=form,
        eot="append",
        split_by="hash",
        min_shard_tokens=0,
        **named,
    )  # type: ignore[arg-type]
    whole = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T)
    same = pybpe.pack(tok, tmp_path / "data", tmp_path / "b", sequence_length=T)
    for split, records in whole.shards.items():
        ids = [[read_shard(folder / each.file).tolist() for each in made.shards[split]]
               for made, folder in ((whole, tmp_path / "a"), (same, tmp_path / "b"))]  # fmt: skip
        assert ids[0] == ids[1] and len(records) > 0
    assert same.settings["eot"] == "prepend" and source.settings["eot"] == "append"
    assert verify(tmp_path / "b", tok)[1] == []
