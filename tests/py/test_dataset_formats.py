"""The formats that binarize writes, read by simple readers in this file."""

import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, SPLITS, documents, tokens_of

import pybpe
from pybpe.tokens.token_files import TokenStream
from pybpe.tokens.verification import verify

pytestmark = pytest.mark.usefixtures("small_tasks")


def read_megatron(base: Path) -> tuple[numpy.ndarray, list[numpy.ndarray], list[int]]:
    """Returns all ids, the sequences and the document borders, from the layout that Megatron-LM's reader expects."""
    index = base.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, borders = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    dtype = {8: numpy.dtype("<u2"), 4: numpy.dtype("<i4")}[code]
    at = 9 + 25
    lengths = numpy.frombuffer(index, "<i4", sequences, at)
    pointers = numpy.frombuffer(index, "<i8", sequences, at + 4 * sequences)
    documents = numpy.frombuffer(index, "<i8", borders, at + 12 * sequences)
    assert at + 12 * sequences + 8 * borders == len(index)
    data = base.with_suffix(".bin").read_bytes()
    found = [numpy.frombuffer(data, dtype, length, pointer) for length, pointer in zip(lengths, pointers)]
    return numpy.frombuffer(data, dtype), found, documents.tolist()


@pytest.mark.parametrize(("dtype", "eot"), [("uint16", "prepend"), ("uint32", "append"), ("uint16", "none")])
def test_megatron(tok: pybpe.Tokenizer, marked: Path, tmp_path: Path, dtype: str, eot: str) -> None:
    manifest = pybpe.binarize(tok, marked, tmp_path / "out", format="megatron", eot=eot, dtype=dtype)
    pybpe.binarize(tok, marked, tmp_path / "llmc", eot=eot)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "manifest.json",
        *(f"corpus_{split}.{ending}" for split in SPLITS for ending in ("bin", "idx")),
    }
    found = []
    for split in SPLITS:
        ids, sequences, borders = read_megatron(tmp_path / "out" / f"corpus_{split}")
        assert ids.tolist() == tokens_of(tmp_path / "llmc", split)
        assert numpy.concatenate(sequences).tolist() == ids.tolist()
        assert borders == list(range(len(sequences) + 1))
        assert len(sequences) == manifest.split_documents(split)
        found += [tok.decode(ids).replace(EOT, "") for ids in sequences]
    assert sorted(found) == sorted(documents(200))
    assert {record.file for record in manifest.files} == {f"corpus_{split}.idx" for split in SPLITS}


def test_megatron_takes_its_own_bound_for_uint16(tok: pybpe.Tokenizer, marked: Path, tmp_path: Path) -> None:
    tokens = {i: tok.decode_single_token_bytes(i) for i in range(tok.vocab_size) if i != tok.eot_token}
    tokens |= {i: b"padding %d" % i for i in range(1000, 65500)}
    large = pybpe.Tokenizer(tokens, tok.merges, [EOT])
    assert large.vocab_size == 65501 and large.model.dtype == numpy.uint16
    pybpe.binarize(large, marked, tmp_path / "out", format="megatron")
    assert read_megatron(tmp_path / "out" / "corpus_val")[0].dtype == numpy.dtype("<i4")


def read_llmq(path: Path) -> tuple[int, list[int]]:
    """Returns the size of the vocabulary and the ids, as llmq's dataloader.cpp reads them."""
    data = path.read_bytes()
    assert data[:8] == b"BIN.TOK\n"
    version, id_bytes, count, n_vocab, has_masks = struct.unpack_from("<5i", data, 8)
    assert (version, id_bytes, has_masks, len(data)) == (2, 4, 0, 1024 + 4 * count)
    return n_vocab, numpy.frombuffer(data, "<i4", count, 1024).tolist()


@pytest.mark.parametrize("eot", ["append", "prepend"])
def test_llmq(tok: pybpe.Tokenizer, marked: Path, tmp_path: Path, eot: str) -> None:
    options: dict[str, Any] = {"eot": eot, "shard_tokens": 1000, "min_shard_tokens": 0}
    pybpe.binarize(tok, marked, tmp_path / "out", format="llmq", **options)
    pybpe.binarize(tok, marked, tmp_path / "npy", format="npy", **options)
    for split in SPLITS:
        found = []
        for path in sorted((tmp_path / "out").glob(f"corpus_{split}_*.bin")):
            n_vocab, ids = read_llmq(path)
            assert n_vocab == tok.vocab_size and ids == TokenStream(path).slice(0, len(ids)).tolist()
            found += ids
        assert found == [
            i for path in sorted((tmp_path / "npy").glob(f"*_{split}_*")) for i in numpy.load(path).tolist()
        ]
    assert verify(tmp_path / "out", tok)[1] == []
    with pytest.raises(pybpe.errors.ArgumentError, match="llmq reads ids of 32 bits"):
        pybpe.binarize(tok, marked, tmp_path / "x", format="llmq", dtype="uint16")
    with pytest.raises(pybpe.errors.LimitError, match="llmq needs at least 2049"):
        pybpe.binarize(tok, marked, tmp_path / "x", format="llmq", splits=(98, 1, 1))


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [(8, 1, "has version 1 and 4"), (12, 2, "version 2 and 2"), (16, 5, "says 5 ids"), (24, 1, "has a loss mask")],
)
def test_damaged_headers_of_llmq(tmp_path: Path, at: int, value: int, message: str) -> None:
    data = bytearray(struct.pack("<8s5i", b"BIN.TOK\n", 2, 4, 100, 1000, 0).ljust(1024, b"\0") + bytes(400))
    (tmp_path / "a.bin").write_bytes(data)
    assert len(TokenStream(tmp_path / "a.bin")) == 100
    struct.pack_into("<i", data, at, value)
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(pybpe.errors.FormatError, match=message):
        TokenStream(tmp_path / "a.bin")


def test_raw_has_nanogpts_meta(tok: pybpe.Tokenizer, marked: Path, tmp_path: Path) -> None:
    manifest = pybpe.binarize(tok, marked, tmp_path / "out", format="raw", eot="prepend")
    pybpe.binarize(tok, marked, tmp_path / "llmc")
    meta = pickle.loads((tmp_path / "out" / "meta.pkl").read_bytes())
    assert set(meta) == {"vocab_size", "itos", "stoi"} and meta["vocab_size"] == 1000
    ids = numpy.memmap(tmp_path / "out" / "val.bin", dtype=numpy.uint16, mode="r")  # as nanoGPT's train.py does
    assert ids.tolist() == tokens_of(tmp_path / "llmc", "val")
    assert [meta["itos"][i] for i in ids] == [tok.id_to_token(int(i)) for i in ids]
    assert [meta["stoi"][c] for c in "To be"] == [tok.token_to_id(c) for c in "To be"]
    assert [record.file for record in manifest.files] == ["meta.pkl"]


def test_parquet_without_pyarrow_says_what_to_install(
    tok: pybpe.Tokenizer, marked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pybpe.binarize(tok, marked, tmp_path / "data")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"pip install 'pybpe\[parquet\]'"):
        pybpe.pack(tok, tmp_path / "data", tmp_path / "out", sequence_length=64, format="parquet")
    assert not (tmp_path / "out").exists()
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(pybpe.errors.MissingExtraError, match="x.parquet: parquet files need a package"):
        pybpe.binarize(tok, tmp_path / "x.parquet", tmp_path / "out")


# ------------------------------------------------------------------------------------------------------
# Where documents begin


class MemmapSource:
    """A source of documents for Grain, with the methods that torchtitan's page on datasets shows."""

    def __init__(self, tokens: numpy.ndarray, offsets: Path) -> None:
        self.tokens, self.offsets = tokens, numpy.load(offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[int]:
        start, end = self.offsets[index : index + 2]
        return self.tokens[start:end].tolist()


def source_of(folder: Path, split: str, dtype: str = "uint16") -> MemmapSource:
    (offsets,) = folder.glob(f"*{split}.document_offsets.npy")
    assert numpy.load(offsets).dtype == numpy.int64
    if shards := sorted(folder.glob(f"*_{split}_*.npy")):
        return MemmapSource(numpy.concatenate([numpy.load(path) for path in shards]), offsets)
    return MemmapSource(numpy.memmap(folder / f"{split}.bin", dtype, "r"), offsets)


def parts(ids: list[int], mark: int, eot: str) -> list[list[int]]:
    places = [i + (eot == "append") for i, each in enumerate(ids) if each == mark]
    borders = [*places, len(ids)] if eot == "prepend" else [0, *places]
    return [ids[a:b] for a, b in zip(borders, borders[1:])]


@pytest.mark.parametrize(("form", "eot"), [("raw", "append"), ("npy", "prepend"), ("npy", "append"), ("raw", "none")])
def test_offsets_are_those_of_documents(tok: pybpe.Tokenizer, tmp_path: Path, form: str, eot: str) -> None:
    texts = documents(60)
    for name, some in (("a", texts[:40]), ("b", texts[40:])):
        (tmp_path / f"{name}.txt").write_text(EOT.join(some), encoding="utf-8")
    given: dict[str, Any] = {"format": form, "eot": eot, "split_by": "hash", "document_offsets": True}
    given |= {"shard_tokens": 1000} if form == "npy" else {}
    plain = pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "plain", **{**given, "document_offsets": False})
    made = pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "a", **given)
    assert made.shards == plain.shards and "document_offsets" not in plain.settings
    assert verify(tmp_path / "a", tok)[1] == []
    mark, found = {"prepend": ([tok.eot_token], []), "append": ([], [tok.eot_token]), "none": ([], [])}[eot], []
    for split in SPLITS:
        source = source_of(tmp_path / "a", split)
        assert len(source) == made.split_documents(split) and source.offsets[-1] == made.split_tokens(split)
        found += [source[i] for i in range(len(source))]
    assert sorted(found) == sorted([*mark[0], *tok.encode(text), *mark[1]] for text in texts[:40])
    if eot == "none":
        return
    pybpe.binarize(tok, tmp_path / "b.txt", tmp_path / "b", **given)
    pybpe.join(tok, [tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    sources = {name: {"data": str(tmp_path / name), "epochs": 2} for name in ("a", "b")}
    more = {name: given[name] for name in ("format", "eot", "document_offsets", "shard_tokens") if name in given}
    pybpe.mix(tok, {"sources": sources}, tmp_path / "mixed", **more)
    for name in ("joined", "mixed"):
        for split in SPLITS:
            source = source_of(tmp_path / name, split)
            assert [source[i] for i in range(len(source))] == parts(source.tokens.tolist(), tok.eot_token or 0, eot)
            assert len(source) == pybpe.Manifest.load(tmp_path / name).split_documents(split)
    assert len(source_of(tmp_path / "joined", "train")) < 60 < len(source_of(tmp_path / "mixed", "train"))
    packed = pybpe.pack(tok, tmp_path / "joined", tmp_path / "rows", sequence_length=64, format="npy")
    assert "document_offsets" not in packed.settings and not list((tmp_path / "rows").glob("*offsets*"))


def test_offsets_of_no_documents_and_of_other_formats(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "a", format="raw", split_by="hash", document_offsets=True)
    found = [numpy.load(tmp_path / "a" / f"{split}.document_offsets.npy").tolist() for split in SPLITS]
    tokens = tok.count("one") + 1
    assert sorted(found) == [[0], [0], [0, tokens]]
    for form in ("llmc", "megatron", "llmq"):
        with pytest.raises(
            pybpe.errors.ArgumentError, match="document_offsets=True is for the formats raw and npy, not"
        ):
            pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "b", format=form, document_offsets=True)
    with pytest.raises(pybpe.errors.ArgumentError, match="document_offsets must be True or False"):
        pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "b", format="raw", document_offsets="yes")  # type: ignore
