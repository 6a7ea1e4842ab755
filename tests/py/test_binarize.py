"""binarize: token files contain the whole corpus, split and marked as requested."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, content, documents, jsonl, tokens_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.dataset import documents_of, streams
from texts import english

import pybpe
from pybpe.cli import main
from pybpe.reading import pieces as pieces_module
from pybpe.reading import planning
from pybpe.reading.cuts import stream_pieces
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.verification import verify


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


# ------------------------------------------------------------------------------------------------------
# Documents


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from(["", "a", "b<", "<|endoftext|", EOT, EOT, "x" * 40, "\n", "\r", "\n\n", " "]), max_size=12
    ),
    st.integers(1, 9),
    st.integers(1, 20),
    st.sampled_from(["special", "file", "blank", "line"]),
    st.integers(1, 9),
)
def test_documents_are_found_whatever_the_blocks(
    tok: pybpe.Tokenizer, pieces: list[str], block: int, task: int, kind: str, first: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path, out = Path(folder) / "in.txt", Path(folder) / "out"
        path.write_bytes("".join(piece for piece in pieces if kind == "special" or piece != EOT).encode())
        patch.setattr(planning, "PIECE_BYTES", block)
        patch.setattr(planning, "TASK_BYTES", task)
        for module in (planning, pieces_module):
            patch.setattr(module, "stream_pieces", partial(stream_pieces, piece_bytes=block))
        expected = [(document, False) for document in documents_of(path, kind)]
        use: dict[str, Any] = {"keep_crlf": True, "min_shard_tokens": 0, "progress": False}
        if expected:
            pybpe.binarize(tok, path, out, documents=kind, splits=(1,), **use)
            assert tokens_of(out, "train") == streams(tok, expected, lambda _: 0, 1, "prepend")[0]
        if len(expected) > first:
            pybpe.binarize(tok, path, out, documents=kind, val_documents=first, force=True, **use)
            for split, some in (("val", expected[:first]), ("train", expected[first:])):
                assert tokens_of(out, split) == streams(tok, some, lambda _: 0, 1, "prepend")[0]


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
    with pytest.warns(
        pybpe.errors.PybpeWarning, match="llm.c's train_gpt2 aborts on such shards.* dtype='uint32' asks"
    ):
        pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pybpe.binarize(tok, path, tmp_path / "asked", splits=(1,), dtype="uint32")
        pybpe.binarize(tok, path, tmp_path / "raw", splits=(1,), format="raw")


def test_a_shard_too_small_for_llmc_is_refused(
    tok: pybpe.Tokenizer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "short.txt"
    path.write_text("A short text. " * 20)
    with pytest.raises(pybpe.errors.LimitError, match="257.* Finished work is kept"):
        pybpe.binarize(tok, path, tmp_path / "out")
    with caplog.at_level("INFO", "pybpe"):
        pybpe.binarize(tok, path, tmp_path / "out", min_shard_tokens=0)
    assert any("resuming after" in message for message in caplog.messages)
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


def test_the_command_says_which_token_is_between_documents(
    tok: pybpe.Tokenizer, novel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bos = tok.extend(["<s>"]).replace(template="<s> $A")
    for name, made in (("plain", tok), ("bos", bos)):
        made.save(tmp_path / f"{name}.json")
    mark, out = f"<|endoftext|> (id {tok.eot_token})", str(tmp_path / "out")
    for more, told in (
        (["-t", str(tmp_path / "plain.json")], f"{mark} begins every document"),
        (["-t", str(tmp_path / "plain.json"), "--eot", "append"], f"{mark} ends every document"),
        (["-t", str(tmp_path / "plain.json"), "--eot", "none"], "no token between documents"),
        (
            ["-t", str(tmp_path / "bos.json")],
            f"{mark} begins every document; token files never have <s> of the template: --eot 'prepend:<s>' puts <s>"
            " before every document instead",
        ),
        (
            ["-t", str(tmp_path / "bos.json"), "--eot", "prepend:<s>"],
            f"<s> (id {bos.special_tokens['<s>']}) begins every document",
        ),
    ):
        main(["binarize", str(novel), "-o", out, "--force", *more])
        assert capsys.readouterr().out.startswith(f"{out}: {told}\ntrain: ")


def test_the_mark_is_the_special_token_that_eot_names(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    plain, tok = tok.extend(["<s>"]), tok.extend(["<s>", "prepend", "append:<s>"])
    texts = documents(40)
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    (tmp_path / "b.txt").write_text("<s>".join(texts), encoding="utf-8")
    given: dict[str, Any] = {"min_shard_tokens": 0, "split_by": "hash"}
    for name in ("a.jsonl", "b.txt"):  # which the mark divides, too
        pybpe.binarize(plain, tmp_path / name, tmp_path / name[0], name="x", eot="<s>", **given)
    assert tokens_of(tmp_path / "a", "train") == tokens_of(tmp_path / "b", "train")
    for number, (eot, name, mark, place) in enumerate(
        [
            ("<s>", "llmc", "<s>", "prepend"),
            ("<s>", "npy", "<s>", "append"),
            ("append:<s>", "llmc", "<s>", "append"),
            ("prepend", "npy", EOT, "prepend"),
            ("prepend:prepend", "npy", "prepend", "prepend"),
            ("append:append:<s>", "npy", "append:<s>", "append"),
        ]
    ):
        marked, same = tok.replace(end_of_text=mark), (tmp_path / f"same{number}", tmp_path / f"out{number}")
        assert marked.eot_token == tok.special_tokens[mark] and marked == tok
        for made, out, how in ((marked, same[0], place), (tok, same[1], eot)):
            assert (
                pybpe.binarize(made, tmp_path / "a.jsonl", out, format=name, eot=how, **given).settings["eot"] == place
            )
        assert content(same[0]) == content(same[1])
        assert verify(same[1], tok)[1] == []
    tokens = pybpe.encode_files(tok, tmp_path / "a.jsonl", tmp_path / "ids.npy", eot="append:<s>")
    ids = numpy.load(tmp_path / "ids.npy").tolist()
    assert len(ids) == tokens and ids == [
        i for text in texts for i in [*tok.encode_ordinary(text), tok.special_tokens["<s>"]]
    ]
    with pytest.raises(
        pybpe.errors.ArgumentError, match=r"end_of_text must be one of .* special tokens \('<.*, not '</s>'"
    ):
        tok.replace(end_of_text="</s>")
    with pytest.raises(pybpe.errors.ArgumentError, match="eot must be prepend, append, none or .*, not 'none:<s>'"):
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / "bad", eot="none:<s>")
    with pytest.raises(pybpe.errors.ArgumentError, match="eot='<s>': .* name the token in end_of_text"):
        pybpe.prepare(tmp_path / "a.jsonl", tmp_path / "bad", vocab_size=300, eot="<s>")
    assert not (tmp_path / "bad").exists()


def test_token_files_keep_their_mark(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    """`pack`, `mix` and `join` take the mark from the manifest, not from the tokenizer."""
    tok = tok.extend(["<s>"])
    mark, given = tok.special_tokens["<s>"], {"min_shard_tokens": 0, "splits": (1,), "eot": "<s>"}
    for name, texts in {"a": documents(40), "b": documents(60)[40:]}.items():
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(texts))
        pybpe.binarize(tok, tmp_path / f"{name}.jsonl", tmp_path / name, **given)
    pybpe.binarize(tok, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "both", **given)
    pybpe.join(tok, [tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    pybpe.pack(tok, tmp_path / "joined", tmp_path / "rows", sequence_length=64)
    sources = {name: {"data": str(tmp_path / name), "epochs": 1} for name in ("a", "b")}
    pybpe.mix(tok, {"sources": sources}, tmp_path / "mixed", min_shard_tokens=0)
    assert tokens_of(tmp_path / "joined", "train") == tokens_of(tmp_path / "both", "train")
    assert all(row[0] == mark for row in numpy.array(tokens_of(tmp_path / "rows", "train")[:-1]).reshape(-1, 64))
    for name in ("joined", "rows", "mixed"):
        ids, found = tokens_of(tmp_path / name, "train"), Manifest.load(tmp_path / name)
        assert mark in ids and tok.eot_token not in ids and found.split_documents("train") == 60
        assert found.tokenizer["eot"] == mark and verify(tmp_path / name, tok)[1] == []
    pybpe.binarize(tok, tmp_path / "b.jsonl", tmp_path / "other", min_shard_tokens=0, splits=(1,))
    sources["b"]["data"] = str(tmp_path / "other")
    for made in (
        lambda: pybpe.join(tok, [tmp_path / "a", tmp_path / "other"], tmp_path / "bad"),
        lambda: pybpe.mix(tok, {"sources": sources}, tmp_path / "bad"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=f"other: its end-of-text token has id {tok.eot_token}"):
            made()
    with pytest.raises(pybpe.errors.ArgumentError, match="eot='<s>': .* the mark is the one that the sources have"):
        pybpe.mix(tok, {"sources": sources}, tmp_path / "bad", eot="<s>")


def test_text_is_encoded_without_numpy(tmp_path: Path) -> None:
    """Its import takes a tenth of a second and 10 MB."""
    (tmp_path / "a.txt").write_text("aa bb aa\n" * 100, encoding="utf-8")
    program = (
        "import sys, pybpe\n"
        "tok = pybpe.train('a.txt', vocab_size=258, special_tokens=['<|endoftext|>'], progress=False)\n"
        "pybpe.binarize(tok, 'a.txt', 'out', min_shard_tokens=0, progress=False)\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, check=True)
