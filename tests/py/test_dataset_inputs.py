"""Inputs of binarize: records, folders, compressed files, standard input, documents of all kinds."""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, SPLITS, content, documents, jsonl, records, split_of_tokens, tokens_of
from reference.dataset import documents_of, streams
from texts import chinese, english

import pybpe
from pybpe import _binding, cli
from pybpe.errors import PybpeWarning
from pybpe.loading import DocumentRows
from pybpe.reading import cuts, files, pieces
from pybpe.reading.planning import hash_split
from pybpe.tokens.task_encoder import Segment, TaskEncoder


def hashed(data: bytes) -> int:
    return hash_split(data, (8, 1, 1))


def read(folder: Path) -> list[list[int]]:
    return [tokens_of(folder, split) for split in SPLITS]


@pytest.mark.parametrize(("eot", "suffix"), [("prepend", ""), ("append", ".gz"), ("none", "")])
def test_records_are_ordinary_text(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, eot: str, suffix: str
) -> None:
    texts = [
        *documents(150), f"forged {EOT} and <|pad|>", EOT, "", f"{EOT}{EOT}", chinese()[:900], "\ud800 lone", "\x00",
    ]  # fmt: skip
    path = tmp_path / f"web.jsonl{suffix}"
    data = jsonl(texts)
    path.write_bytes(gzip.compress(data) if suffix else data)
    manifest = pybpe.binarize(tok, path, tmp_path / "out", eot=eot, min_shard_tokens=0, split_by="hash")
    records = [(text.replace("\ud800", "\ufffd"), True) for text in texts if text]
    assert read(tmp_path / "out") == streams(tok, records, hashed, 3, eot)
    assert sum(manifest.split_documents(split) for split in SPLITS) == len(records)
    assert sum(manifest.text_bytes.values()) == sum(len(text.encode()) for text, _ in records)
    ids = [i for stream in read(tmp_path / "out") for i in stream]
    assert ids.count(tok.eot_token) == (0 if eot == "none" else len(records))
    assert tok.special_tokens["<|pad|>"] not in ids


@pytest.mark.parametrize("kind", ["special", "file", "line", "blank", "jsonl"])
def test_documents_stay_whole_and_in_order(tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, kind: str) -> None:
    """In folders of files with one document or many, some of which are compressed."""
    texts = [text.replace("\n\n", " ").replace("\n", " " if kind == "line" else "\n") for text in documents(220)]
    texts[5:8] = [chinese()[:200], "", "<|pad|> is one id here"]
    separator = {"special": EOT, "file": " ", "line": "\r\n", "blank": "\n\r\n\n", "jsonl": ""}[kind]
    ending, form = ("jsonl", "auto") if kind == "jsonl" else ("txt", kind)
    folder, at = tmp_path / "in", 0
    for i, count in enumerate([20] + [1] * 60 + [50] + [1] * 60 + [30]):
        own = texts[at : at + count]
        at += count
        data = jsonl(own) if kind == "jsonl" else separator.join(own).encode()
        path = folder / str(i * 2 // 123) / f"{i:03d}.{ending}{'.gz' * (i % 7 == 0)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if i % 7 == 0 else data)
    (folder / ".hidden").write_text("not read")
    one = tmp_path / f"one.{ending}"
    one.write_bytes(jsonl(texts) if kind == "jsonl" else separator.join(texts).encode())
    ways = [("hash", folder)]
    if kind in ("line", "blank", "jsonl"):  # these documents cannot be cut
        ways.append(("token", one))
    for split_by, source in ways:
        out = tmp_path / f"{split_by}-{source.name}"
        given: dict[str, Any] = {"splits": (6, 3, 1), "split_by": split_by, "min_shard_tokens": 0, "documents": form}
        manifest = pybpe.binarize(tok, source, out, **given)
        paths = sorted(folder.rglob("[0-9]*.*")) if source == folder else [one]
        expected = [(document, kind == "jsonl") for path in paths for document in documents_of(path, kind)]
        assert manifest.shards["train"][0].file == f"{source.stem}_train_000000.bin"
        assert sum(map(manifest.split_documents, SPLITS)) == len(expected)
        if split_by == "hash":
            assert read(out) == streams(tok, expected, lambda data: hash_split(data, (6, 3, 1)), 3, "prepend")
            continue
        assert [i for ids in read(out) for i in ids] == streams(tok, expected, lambda _: 0, 1, "prepend")[0]
        shares = [size / sum(manifest.text_bytes.values()) for size in manifest.text_bytes.values()]
        assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.02)


@pytest.mark.parametrize(("kind", "eot"), [("special", "prepend"), ("file", "append"), ("special", "none")])
def test_long_documents_are_not_held_as_a_whole(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch, kind: str, eot: str
) -> None:
    monkeypatch.setattr(pieces, "stream_pieces", partial(cuts.stream_pieces, piece_bytes=5000))
    monkeypatch.setattr(cuts, "_CUT_WINDOW", 500)
    held = []
    segments = TaskEncoder.segments

    def spy(self: TaskEncoder, block: pieces.Piece) -> list[Segment]:
        held.append(len(block.data))
        return segments(self, block)

    monkeypatch.setattr(TaskEncoder, "segments", spy)
    folder = tmp_path / "in"
    folder.mkdir()
    short, text = documents(60), english()
    separator = EOT if kind == "special" else " "
    (folder / "a.txt").write_text(text[:150_000])
    (folder / "b.txt").write_text(separator.join([*short[:20], text[7:100_000], *short[20:40], text[90:190_000], ""]))
    (folder / "c.txt.gz").write_bytes(gzip.compress(text[50:120_000].encode()))
    (folder / "d.txt").write_text(separator.join([text[30:80_000], *short[40:]]))
    expected = [(document, False) for path in sorted(folder.iterdir()) for document in documents_of(path, kind)]
    out = tmp_path / "out"
    manifest = pybpe.binarize(tok, folder, out, documents=kind, eot=eot, split_by="hash", min_shard_tokens=0)
    assert read(out) == streams(tok, expected, hashed, 3, eot)
    if eot != "none":
        assert sum(manifest.split_documents(split) for split in SPLITS) == len(expected)
    assert max(held) < 60_000


@pytest.mark.parametrize("split_by", ["token", "hash"])
def test_a_compressed_text_is_split_as_a_plain_one(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, split_by: str
) -> None:
    (tmp_path / "x.txt").write_text(english()[:100_000])
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress((tmp_path / "x.txt").read_bytes()))
    for ending in ("txt", "txt.gz"):
        pybpe.binarize(tok, tmp_path / f"x.{ending}", tmp_path / ending, split_by=split_by)
    assert read(tmp_path / "txt") == read(tmp_path / "txt.gz")


def test_standard_input_is_read_like_a_file(
    tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = EOT.join(documents(150)).encode()
    (tmp_path / "stdin.txt").write_bytes(text)
    pybpe.binarize(tok, tmp_path / "stdin.txt", tmp_path / "file", split_by="hash")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    manifest = pybpe.binarize(tok, "-", tmp_path / "pipe", split_by="hash")
    assert read(tmp_path / "file") == read(tmp_path / "pipe")
    assert manifest.inputs == [("-", len(text))]
    names = set(os.listdir(tmp_path / "pipe"))
    assert names == {"manifest.json", *(f"stdin_{split}_000000.bin" for split in SPLITS)}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(jsonl(documents(150)))))
    pybpe.binarize(tok, "-", tmp_path / "records", documents="jsonl", split_by="hash")
    assert read(tmp_path / "records") == read(tmp_path / "file")


def test_pipes_are_read_once(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    text = english()[:50_000].encode()
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"cat > '{tmp_path / 'pipe'}'"], stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        with writer.stdin as stream:
            stream.write(text)
        pybpe.binarize(tok, tmp_path / "pipe", tmp_path / "out", name="x")
    assert b"".join(tok.decode_bytes(ids[1:]) for ids in read(tmp_path / "out")) == text


@pytest.mark.parametrize("special", ["<<", "x<|end", "x<|endoftext|>", "<|endoftext|>x", ">y", "end", "<|"])
def test_specials_that_overlap_the_mark_never_join_documents(tmp_path: Path, special: str) -> None:
    tok = pybpe.train(iter([english()[:5000]]), vocab_size=400, special_tokens=[EOT, special])
    texts = ["a<", "b", "x", "yx", "y", "<<", "<|end", "oftext|>", "x<", special, "a" + special[:1], special[1:] + "b"]
    texts = [text for text in texts * 3 if text and EOT not in text.replace(special, "")]
    expected = streams(tok, [(text, False) for text in texts], lambda _: 0, 1, "prepend")
    for kind, between in (("line", "\n"), ("blank", "\n\n")):
        (tmp_path / "x.txt").write_text(between.join(texts))
        pybpe.binarize(tok, tmp_path / "x.txt", tmp_path / kind, splits=(1,), documents=kind, min_shard_tokens=0)
        assert [tokens_of(tmp_path / kind, "train")] == expected


def test_text_key_and_bad_kinds(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_bytes(jsonl(documents(60), "content"))
    pybpe.binarize(tok, tmp_path / "x.ndjson", tmp_path / "out", text_key="content", splits=(1,))
    assert len(split_of_tokens(tokens_of(tmp_path / "out", "train"), tok.eot_token)) == 61
    with pytest.raises(pybpe.errors.ArgumentError, match="documents must be one of auto, special"):
        pybpe.binarize(tok, tmp_path / "x.ndjson", tmp_path / "out", documents="chapters")
    bare = pybpe.train(iter([english()[:5000]]), vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="has no end of text"):
        pybpe.binarize(bare, tmp_path / "x.ndjson", tmp_path / "out", documents="special", eot="none")
    pybpe.binarize(bare, tmp_path / "x.ndjson", tmp_path / "bare", text_key="content", eot="none", splits=(1,))
    expected = streams(bare, [(text, True) for text in documents(60)], lambda _: 0, 1, "none")
    assert [tokens_of(tmp_path / "bare", "train")] == expected


@pytest.mark.parametrize("normalizer", ["NFC", "NFKC"])
def test_records_are_normalised_one_by_one(tmp_path: Path, normalizer: str) -> None:
    texts = ["\u0338 begins with a mark that joins '>'", "ﬁne", "e\u0301", *documents(20)]
    tok = pybpe.train(iter(texts), vocab_size=400, special_tokens=[EOT], normalizer=normalizer)
    (tmp_path / "x.jsonl").write_bytes(jsonl(texts))
    pybpe.binarize(tok, tmp_path / "x.jsonl", tmp_path / "out", splits=(1,))
    expected = streams(tok, [(text, True) for text in texts], lambda _: 0, 1, "prepend")
    assert [tokens_of(tmp_path / "out", "train")] == expected
    (tmp_path / "x.txt").write_bytes(EOT.join(texts).encode())
    manifest = pybpe.binarize(tok, tmp_path / "x.txt", tmp_path / "text", splits=(1,))
    assert [tokens_of(tmp_path / "text", "train")] == expected
    text = "".join(unicodedata.normalize(normalizer, text) for text in texts)
    assert manifest.text_bytes == {"train": len(text.encode())}


# ------------------------------------------------------------------------------------------------------
# What ends a document


@pytest.mark.parametrize(
    ("specials", "named", "mark"),
    [
        ([EOT, "<|end_of_text|>"], None, EOT),
        (["<|end_of_text|>", "<|pad|>"], None, "<|end_of_text|>"),
        (["</s>", "<s>"], "</s>", "</s>"),
        ([EOT, "</s>"], "</s>", "</s>"),
    ],
)
def test_documents_end_with_the_tokenizers_end_of_text_however_they_are_split(
    tmp_path: Path, specials: list[str], named: str | None, mark: str
) -> None:
    """Other marks are plain text, or special tokens that do not end documents."""
    tok = pybpe.train(iter(documents(20)), vocab_size=400, special_tokens=specials, end_of_text=named)
    assert tok.special_tokens[mark] == tok.eot_token
    texts = [f"{text} {EOT if mark != EOT else '</s>'} more" for text in documents(40)]
    (tmp_path / "a.txt").write_text(mark.join(texts), encoding="utf-8")
    for number, (splits, split_by) in enumerate(product([(1,), (1, 0), (8, 1, 1)], ["hash", "token"])):
        given: dict[str, Any] = {"splits": splits, "split_by": split_by, "min_shard_tokens": 0}
        manifest = pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / f"{number}", **given)
        whole = 1 if split_by != "token" else len(splits)  # borders of "token" may divide a document
        assert 40 <= sum(map(manifest.split_documents, manifest.shards)) < 40 + whole
        if split_by != "token":
            streams = [tokens_of(tmp_path / f"{number}", name) for name in manifest.shards]
            found = [tok.decode(part) for ids in streams for part in split_of_tokens(ids, tok.eot_token) if part]
            assert sorted(found) == sorted(texts)
    for name in ("tok.json", "tok.bin"):
        tok.save(tmp_path / name)
        assert pybpe.Tokenizer.from_file(tmp_path / name).eot_token == tok.eot_token


def test_prepare_marks_documents_with_the_token_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("</s>".join(documents(40)), encoding="utf-8")
    names = {"special_tokens": ["<s>", "</s>"], "end_of_text": "</s>", "split_by": "hash"}
    tok, manifest = pybpe.prepare(tmp_path / "a.txt", tmp_path / "out", vocab_size=400, **names)
    assert tok.eot_token == tok.special_tokens["</s>"]
    assert sum(map(manifest.split_documents, manifest.shards)) == 40
    tok, manifest = pybpe.prepare(tmp_path / "a.txt", tmp_path / "none", vocab_size=400, special_tokens=(), eot="none")
    assert tok.eot_token is None and manifest.settings["eot"] == "none"


def test_a_mark_that_is_none_for_this_tokenizer_is_said(tmp_path: Path) -> None:
    tok = pybpe.train(iter(documents(20)), vocab_size=400, special_tokens=["</s>"], end_of_text="</s>")
    (tmp_path / "a.txt").write_text(EOT.join(documents(40)), encoding="utf-8")
    with pytest.warns(PybpeWarning, match="a.txt: has <.endoftext.>, but only '</s>' separates documents"):
        pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,))


@pytest.mark.parametrize("other", [f"{EOT}{EOT}", f"x{EOT}", f"{EOT}>", "<<", ">>"])
def test_special_tokens_that_overlap_the_mark(tmp_path: Path, other: str) -> None:
    """In "<<|endoftext|>", the tokenizer finds "<<", but a search for the mark alone finds the mark."""
    tok = pybpe.train(iter(documents(20)), vocab_size=400, special_tokens=[EOT, other])
    (tmp_path / "a.txt").write_text(EOT.join(documents(40)), encoding="utf-8")
    if other == ">>":  # begins inside a mark: the mark begins earlier, for both
        pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,))
        return
    with pytest.raises(pybpe.errors.ArgumentError, match="overlaps the end of text"):
        pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,))
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,), documents="file")


@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
@pytest.mark.parametrize("given", [{}, {"documents": "file"}, {"split_by": "token", "splits": (9, 1)}])
def test_small_files_that_are_read_together(
    tok: pybpe.Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, object],
) -> None:
    """Many small files at once, or each by itself: token files, rows of documents, and counts are the same."""
    tok.save(tmp_path / "tok.json")
    rng, corpus = random.Random(7), tmp_path / "corpus"
    corpus.mkdir()
    parts = [
        *(text.encode() for text in documents(40)),
        b"\x80\x80 a",
        b"half \xe4\xb8",
        EOT.encode(),
        b"<|pad|>",
        b"\x1b[0m",
        b"<p>",
        b"\r\n",
    ]
    begins = [b"", b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b'{"text": "in a record"}\n{"text": "b"}']
    for number in range(150):
        begin = rng.choice(begins) if rng.random() < 0.1 else b""
        data = b"".join(rng.choices(parts, k=rng.randrange(4)))
        if begin == b"\xff\xfe":
            data = data.decode("utf-8", "ignore").encode("utf-16-le")
        elif begin[:1] == b"{":
            data = b""
        name, content = f"{number:04}.txt", begin + data
        if rng.random() < 0.1:
            name, content = f"{name}.gz", gzip.compress(content)
        (corpus / name).write_bytes(content)
    results = []

    class Unread(_binding.FileStarts):
        """As if somebody wrote to some files while C read them."""

        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            for number in range(0, len(self.sizes), 7):
                self.sizes[number] = self.UNREAD
                start, end = self.offsets[number : number + 2]
                self.data[start:end] = bytes(end - start)

    # Many are read together, few, or each by itself; and some are not read at first. They are in a folder, or named.
    folder, named = [str(corpus)], sorted(map(str, corpus.iterdir()))
    for small, group, inputs in (
        (1 << 16, 1 << 20, folder),
        (1 << 16, 4000, named),
        (0, 1 << 20, named),
        (1 << 16, 1 << 21, folder),
    ):
        if group == 1 << 21:
            monkeypatch.setattr(_binding, "FileStarts", Unread)
        monkeypatch.setattr(files, "SMALL_BYTES", small)
        monkeypatch.setattr(files, "_GROUP_BYTES", group)
        parts = files.corpus_files(inputs).parts
        together = [part for part in parts if isinstance(part, files.SmallFiles) and part.size]
        assert (sum(len(part.paths) for part in together) > 75) == (small > 0)
        assert all(part.size <= group or len(part.paths) == 1 for part in together)
        out = tmp_path / f"out{small + group}"
        pybpe.binarize(tok, inputs, out, name="x", min_shard_tokens=0, progress=False, **given)  # type: ignore[arg-type]
        written = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
        pybpe.encode_files(tok, inputs, out / "ids.npy", progress=False)
        ids = (out / "ids.npy").read_bytes()
        words = pybpe.count_words(inputs, special_tokens=[EOT], progress=False).to_dict()
        rows = DocumentRows(tok, inputs, batch_size=1 << 12, sequence_length=16, repeat=False)
        capsys.readouterr()
        assert cli.main(["count", "-t", str(tmp_path / "tok.json"), *inputs, "--json"]) == 0
        results.append((written, ids, words, [batch.tolist() for batch in rows], capsys.readouterr().out))
    assert all(result == results[0] for result in results) and len(results[0][0]) > 1


# ------------------------------------------------------------------------------------------------------
# Documents that are Python objects


def shards(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in content(folder).items() if name.endswith(".bin")}


OBJECTS: dict[str, Callable[[list[str]], Any]] = {
    "generator": lambda texts: (text for text in texts),
    "records": lambda texts: [{"other": object(), "text": text} for text in texts],
    "records of a generator": lambda texts: ({"text": text} for text in texts),
    "bytes": lambda texts: (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode() for text in texts
    ),
    "array": lambda texts: numpy.array(texts, dtype=object),
    "batches": lambda texts: iter([texts[:10], texts[10:]]),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_documents_of_an_object_are_those_of_json_lines(tok: pybpe.Tokenizer, tmp_path: Path, kind: str) -> None:
    texts = [*documents(60), f"a {EOT} b", "\x00\r\n", "a\ud800b", ""]
    path, given = tmp_path / "a.jsonl", {"name": "data", "min_shard_tokens": 0, "split_by": "hash"}
    path.write_bytes(jsonl(texts))
    pybpe.binarize(tok, path, tmp_path / "file", **given)
    made = pybpe.binarize(tok, OBJECTS[kind](texts), tmp_path / "object", **given)
    assert shards(tmp_path / "object") == shards(tmp_path / "file")
    assert [name for name, _ in made.inputs] == ["<documents>"]
    assert pybpe.binarize(tok, OBJECTS[kind](texts), tmp_path / "object", **given).call == made.call
    with pytest.raises(
        pybpe.errors.ArgumentError,
        match="has token files of another call. This call has 1 input that is changed, <documents>",
    ):
        pybpe.binarize(tok, OBJECTS[kind](texts[1:]), tmp_path / "object", **given)
    for name, inputs in (("file", path), ("object", OBJECTS[kind](texts))):
        pybpe.encode_files(tok, inputs, tmp_path / f"{name}.npy")
        pybpe.prepare(
            inputs if name == "file" else OBJECTS[kind](texts), tmp_path / f"prepared {name}", vocab_size=300, **given
        )
        fields = {"text_key": "text", "dedup": "exact"}
        keeps = kind != "records"  # which has an object
        if keeps:
            pybpe.corpus.clean(
                inputs if name == "file" else OBJECTS[kind](texts), tmp_path / f"{name}.clean.jsonl", **fields
            )
            found = [record["text"] for record in records(tmp_path / f"{name}.clean.jsonl")]
            assert found == [text.replace("\ud800", "\ufffd") for text in texts if text]
    assert (tmp_path / "file.npy").read_bytes() == (tmp_path / "object.npy").read_bytes()
    assert (
        content(tmp_path / "prepared file")["tokenizer.json"] == content(tmp_path / "prepared object")["tokenizer.json"]
    )
    assert shards(tmp_path / "prepared file") == shards(tmp_path / "prepared object")
    if kind.startswith("records"):  # in which special tokens are text
        assert pybpe.train(OBJECTS[kind](texts), vocab_size=300) == pybpe.train(path, vocab_size=300)


WRONG: list[tuple[Any, str]] = [
    (iter([]), "inputs has no documents: an iterator that was read before has none left"),
    (iter(["", ""]), "there is no text in the inputs"),
    (iter(["a", 5]), "inputs: item 1 is a int, expected a str: 5"),
    (iter(["a", None]), "inputs: item 1: its text is None, expected a str"),
    (iter(["a", float("nan")]), "inputs: item 1: its text is None"),
    (iter([{"text": 5}]), "inputs: item 0: its text is 5"),
    (iter([{"content": "a"}]), "inputs: item 0: has no 'text': its keys are 'content': pass .* text_key"),
    (iter([b"a", b"\xff"]), "inputs: item 1: not UTF-8 at its byte 0"),
    ({"train": ["a"]}, "inputs is a dict with the keys 'train': pass one of its values"),
    (numpy.rec.fromrecords([("a",)], names="text"), "inputs: item 0 is a record, expected a str"),
    (bytearray(b"a"), "inputs is one bytearray object"),
    (5, "inputs must be a path, paths or an iterable of texts, not int"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG)
def test_objects_that_are_no_documents_are_refused(
    tok: pybpe.Tokenizer, tmp_path: Path, inputs: Any, message: str
) -> None:
    with pytest.raises((pybpe.errors.ArgumentError, pybpe.errors.FormatError), match=message):
        pybpe.binarize(tok, inputs, tmp_path / "out", split_by="hash")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "input-lock"]


def test_names_of_files_are_no_texts(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(documents(30)))
    for call in (partial(pybpe.binarize, tok, out=tmp_path / "out"), partial(pybpe.train, vocab_size=300)):
        with pytest.raises(pybpe.errors.ArgumentError, match="which is a file: pass paths in a list"):
            call(str(each) for each in [path])
    assert pybpe.binarize(tok, tmp_path.glob("*.jsonl"), tmp_path / "out", splits=(1,)).inputs[0][0] == str(path)


def test_a_text_that_is_missing_is_skipped_like_a_null(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    given: dict[str, Any] = {"on_error": "skip", "splits": (1,), "min_shard_tokens": 0}
    with pytest.warns(PybpeWarning, match="2 of 5 records are not valid, such as <documents>: line 2"):
        made = pybpe.binarize(tok, iter(["a", None, "b", float("nan"), "c"]), tmp_path / "out", **given)
    assert made.skipped == {"records": 5, "skipped": 2, "file": "skipped.jsonl"}
    assert [record["line"] for record in records(tmp_path / "out" / "skipped.jsonl")] == [2, 4]


def test_the_text_of_a_record_may_be_in_an_object(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    given: dict[str, Any] = {"text_key": "doc.text", "splits": (1,), "min_shard_tokens": 0, "name": "x"}
    rows = [{"id": number, "doc": {"text": text, "n": 1}} for number, text in enumerate(documents(20))]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = [pybpe.binarize(tok, each, tmp_path / f"{number}", **given).shards
            for number, each in enumerate((tmp_path / "a.jsonl", rows, iter(rows)))]  # fmt: skip
    assert made[0] == made[1] == made[2] and made[0]["train"]
    with pytest.warns(PybpeWarning, match="1 of 21 records"):
        pybpe.binarize(tok, [*rows, {"id": 1}], tmp_path / "skip", on_error="skip", **given)
    assert "its keys are 'id'" in records(tmp_path / "skip" / "skipped.jsonl")[0]["reason"]


def test_an_error_of_the_object_itself_is_not_changed(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise FileNotFoundError("mine")

    with pytest.raises(FileNotFoundError, match="^mine$"):
        pybpe.binarize(tok, texts(), tmp_path / "out")
