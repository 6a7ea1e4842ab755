"""binarize: token files contain the whole corpus, split and marked as requested."""

import hashlib
import itertools
import json
import os
import re
import tempfile
from array import array
from functools import partial
from pathlib import Path

import numpy
import pytest
from corpora import EOT, documents, split_of_tokens, tokens_of
from hypothesis import given
from hypothesis import strategies as st
from texts import chinese, english

import pybpe
from pybpe.reading import planning, splits
from pybpe.reading.documents import Kinds
from pybpe.reading.input_file import InputFile
from pybpe.reading.options import ReadOptions
from pybpe.reading.pieces import stream_pieces
from pybpe.reading.splits import hash_split
from pybpe.tokens.encoding import divide
from pybpe.tokens.spool import EotPlacer


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    path = tmp_path / "novel.txt"
    path.write_text(english(), encoding="utf-8", newline="")
    return path


# ------------------------------------------------------------------------------------------------------
# A single text


def test_a_novel_is_split_in_consecutive_parts(tok: pybpe.Tokenizer, novel: Path, tmp_path: Path) -> None:
    manifest = pybpe.binarize(tok, novel, tmp_path / "out")
    parts = {split: tokens_of(tmp_path / "out", split) for split in ("train", "val", "test")}
    assert all(ids[0] == tok.eot_token and ids.count(tok.eot_token) == 1 for ids in parts.values())
    texts = [tok.decode(ids[1:]) for ids in parts.values()]
    assert "".join(texts) == english()
    shares = [len(text.encode()) / len(english().encode()) for text in texts]
    assert [round(share, 2) for share in shares] == [0.8, 0.1, 0.1]
    assert all(tok.encode(text) == ids[1:] for text, ids in zip(texts, parts.values()))
    assert manifest.tokens == sum(map(len, parts.values()))


def test_the_manifest_describes_the_files(tok: pybpe.Tokenizer, novel: Path, tmp_path: Path) -> None:
    manifest = pybpe.binarize(tok, novel, tmp_path / "out", shard_tokens=50_000)
    data = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(os.listdir(tmp_path / "out")) == {
        "manifest.json",
        *(record["file"] for records in data["shards"].values() for record in records),
    }
    assert len(data["shards"]["train"]) > 2
    for records in data["shards"].values():
        for record in records:
            content = (tmp_path / "out" / record["file"]).read_bytes()
            assert record["bytes"] == len(content) == 1024 + 2 * record["tokens"]
            assert record["sha256"] == hashlib.sha256(content).hexdigest()
    assert sum(data["text_bytes"].values()) == len(english().encode())
    assert data["tokenizer"]["n_vocab"] == 1000
    tok.save(tmp_path / "copy.json")
    assert data["tokenizer"]["fingerprint"] == pybpe.Tokenizer.from_file(tmp_path / "copy.json").model.fingerprint
    assert manifest.split_tokens("train") == sum(r["tokens"] for r in data["shards"]["train"])


@pytest.mark.parametrize("shard_tokens", [300, 1000, 7777])
def test_shards_are_full_and_never_too_small(
    tok: pybpe.Tokenizer, novel: Path, tmp_path: Path, shard_tokens: int
) -> None:
    """Tests formats other than llm.c's; test_equal_shards.py tests that one."""
    options = {"eot": "prepend", "shard_tokens": shard_tokens, "min_shard_tokens": 257}
    manifest = pybpe.binarize(tok, novel, tmp_path / "many", format="npy", **options)
    whole = pybpe.binarize(tok, novel, tmp_path / "one")
    for split, records in manifest.shards.items():
        shards = [numpy.load(tmp_path / "many" / record.file) for record in records]
        assert numpy.concatenate(shards).tolist() == tokens_of(tmp_path / "one", split)
        assert all(record.tokens == shard_tokens for record in records[:-1])
        assert 257 <= records[-1].tokens < shard_tokens + 257
        assert [r.file for r in records] == [f"novel_{split}_{i:06d}.npy" for i in range(len(records))]
    assert whole.tokens == manifest.tokens


def test_any_number_of_workers_gives_the_same_files(tok: pybpe.Tokenizer, novel: Path, tmp_path: Path) -> None:
    novel.write_text((english() + EOT + chinese()) * 8, encoding="utf-8", newline="")
    for split_by in ("token", "document", "hash"):
        hashes = set()
        for workers in (1, 2, 8):
            out = tmp_path / f"{split_by}{workers}"
            pybpe.binarize(tok, novel, out, split_by=split_by, workers=workers, splits=(1,))
            hashes.add(tuple(path.read_bytes() for path in sorted(out.iterdir())))
        assert len(hashes) == 1


# ------------------------------------------------------------------------------------------------------
# Documents


@pytest.mark.parametrize("style", ["between", "before", "after", "doubled", "files"])
def test_every_document_gets_one_mark(tok: pybpe.Tokenizer, tmp_path: Path, style: str) -> None:
    docs = documents(200)
    if style == "files":
        inputs = []
        for i, doc in enumerate(docs):
            (tmp_path / f"{i:03d}.txt").write_bytes(doc.encode())
            inputs.append(tmp_path / f"{i:03d}.txt")
    else:
        text = {
            "between": EOT.join(docs),
            "before": "".join(EOT + doc for doc in docs),
            "after": "".join(doc + EOT for doc in docs),
            "doubled": (EOT + EOT).join(["", *docs, ""]),
        }[style]
        inputs = [tmp_path / "corpus.txt"]
        inputs[0].write_bytes(text.encode())
    for split_by in ("hash", "document", "token"):
        for eot in ("prepend", "append", "none"):
            out = tmp_path / f"{style}-{split_by}-{eot}"
            pybpe.binarize(tok, inputs, out, split_by=split_by, eot=eot, name="x", splits=(1,))
            ids = tokens_of(out, "train")
            expected = [tok.encode_ordinary(doc) for doc in docs]
            mark = [tok.eot_token]
            if eot == "prepend":
                assert ids == [i for doc in expected for i in mark + doc]
            elif eot == "append":
                assert ids == [i for doc in expected for i in doc + mark]
            else:
                assert ids == [i for doc in expected for i in doc]


def test_hash_splits_keep_documents_whole_and_stable(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    docs = documents(400)
    found: dict[str, set[str]] = {}
    for size in (300, 400):
        path = tmp_path / f"{size}.txt"
        path.write_bytes(EOT.join(docs[:size]).encode())
        out = tmp_path / f"out{size}"
        pybpe.binarize(tok, path, out, split_by="hash", name="x")
        for split in ("train", "val", "test"):
            parts = split_of_tokens(tokens_of(out, split), tok.eot_token)[1:]
            texts = {tok.decode(part) for part in parts}
            assert texts <= set(docs)
            assert found.get(split, set()) <= texts  # earlier files are unchanged
            found[split] = texts
    assert sum(map(len, found.values())) == 400
    assert 250 < len(found["train"]) < 380 and found["val"] and found["test"]


def documents_of(text: bytes, kind: str) -> list[bytes]:
    """Returns the documents of a file, by the definition."""
    if kind == "special":
        found = text.split(EOT.encode())
    elif kind == "line":
        found = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    elif kind == "blank":
        found = [part.strip(b"\r\n") for part in re.split(rb"\n(?:\r?\n)+", text)]
    else:
        found = [text]
    return [document for document in found if document]


@given(
    st.lists(
        st.sampled_from(["", "a", "b<", "<|endoftext|", EOT, EOT, "x" * 40, "\n", "\r", "\n\n", " "]), max_size=12
    ),
    st.integers(1, 9),
    st.integers(1, 20),
    st.sampled_from(["special", "file", "blank", "line"]),
    st.booleans(),
)
def test_documents_are_found_whatever_the_blocks(
    pieces: list[str], block: int, task: int, kind: str, cuttable: bool
) -> None:
    text = "".join(pieces).encode()
    kinds = Kinds(ReadOptions(documents=kind), EOT)
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        file.write(text)
        file.flush()
        patch.setattr(splits, "PIECE_BYTES", block)
        patch.setattr(planning, "TASK_BYTES", task)
        patch.setattr(planning, "stream_pieces", partial(stream_pieces, piece_bytes=block))
        expected = documents_of(text, kind)
        many = kind in ("blank", "line") or len(expected) > 1
        assert splits.has_many_documents([InputFile.of(file.name)], kinds) == many
        patch.setattr(splits, "stream_pieces", partial(stream_pieces, piece_bytes=block))
        for count in range(1, len(expected)):
            number, at = splits.end_of_first([InputFile.of(file.name)], kinds, count)
            assert (number, documents_of(text[:at], kind)) == (0, expected[:count])
            assert at is not None and documents_of(text[at:], kind) == expected[count:]
        cutting = planning.Cutting(lambda data, start: start, 1, not cuttable)  # anywhere, or nowhere
        plan = planning.Plan([InputFile.of(file.name)], kinds, splits.SplitOptions((8, 1)), cutting)
        found: list[list[bytes]] = [[], []]
        long_one = b""
        for unit in plan.tasks():
            for piece in planning.pieces_of(unit, kinds, lambda data, start: len(data)):
                if piece.divided:
                    for split, documents in divide(piece, kinds, (8, 1)):
                        found[split] += documents
                elif many:
                    long_one += bytes(piece.data)  # type: ignore[arg-type]
                    if piece.ends_document:
                        found[piece.split or 0].append(long_one)
                        long_one = b""
        if many:
            assert found == [[d for d in expected if hash_split(d, (8, 1)) == split] for split in (0, 1)]


def test_hash_split_follows_the_shares() -> None:
    counts = [0, 0, 0]
    for i in range(20_000):
        counts[hash_split(f"document {i}".encode(), (8, 1, 1))] += 1
    assert [round(count / 20_000, 2) for count in counts] == [0.8, 0.1, 0.1]


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=6),
    st.sampled_from(["prepend", "append", "none"]),
    st.sampled_from(["H", "I"]),
)
def test_eot_placer_equals_its_definition(pieces: list[list[int]], mode: str, typecode: str) -> None:
    placer = EotPlacer(mode, 0)
    out: list[int] = []
    found: list[int] = []
    for piece in pieces:
        placed, starts = placer.place(array(typecode, piece), piece.count(0))
        found += [start + len(out) for start in starts]
        out += placed
    out += placer.end_document(typecode)
    docs = [doc for doc in split_of_tokens([i for piece in pieces for i in piece], 0) if doc]
    mark = [] if mode == "none" else [0]
    marked = [mark + doc if mode == "prepend" else doc + mark for doc in docs]
    assert out == [i for doc in marked for i in doc]
    assert found == [0, *itertools.accumulate(map(len, marked))][: len(docs)]


# ------------------------------------------------------------------------------------------------------
# Formats and errors


def test_ids_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    vocab = {i: bytes([i]) for i in range(256)} | {70_000: b"th"}
    tok = pybpe.Tokenizer(vocab, [(b"t", b"h")], [EOT])
    path = tmp_path / "t.txt"
    path.write_text("the " * 1000)
    with pytest.raises(pybpe.errors.LimitError):
        pybpe.binarize(tok, path, tmp_path / "out", dtype="uint16", splits=(1,))
    assert tok.model.dtype == numpy.uint32
    pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))


def test_a_shard_too_small_for_llmc_is_refused(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("A short text. " * 20)
    with pytest.raises(pybpe.errors.LimitError, match="257"):
        pybpe.binarize(tok, path, tmp_path / "out")
    pybpe.binarize(tok, path, tmp_path / "out", min_shard_tokens=0)
    assert (
        tok.decode([i for s in ("train", "val", "test") for i in tokens_of(tmp_path / "out", s)[1:]])
        == path.read_text()
    )


@pytest.mark.filterwarnings("ignore:.*this file is empty")
@pytest.mark.parametrize("data", [b"", b"x"])
def test_tiny_texts_make_tiny_files_when_allowed(tok: pybpe.Tokenizer, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "tiny.txt"
    path.write_bytes(data)
    manifest = pybpe.binarize(tok, path, tmp_path / "out", format="raw")
    assert manifest.tokens == (2 if data else 0)


def test_a_tokenizer_without_eot_says_what_to_do(novel: Path, tmp_path: Path) -> None:
    tok = pybpe.train(novel, vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="eot='none'"):
        pybpe.binarize(tok, novel, tmp_path / "out")
    pybpe.binarize(tok, novel, tmp_path / "out", eot="none")
    with pytest.raises(FileNotFoundError, match="gone.txt"):
        pybpe.binarize(tok, tmp_path / "gone.txt", tmp_path / "out2", eot="none")
