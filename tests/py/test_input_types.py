"""One reader decides what an input is: by its content under every name, from standard input too, in every command.
What is not text is refused with its type."""

import gzip
import io
import json
import os
import pickle
import random
import sqlite3
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from corpora import small_tokenizer, standard_input
from texts import english

import pybpe
from pybpe.cli import main
from pybpe.errors import FormatError
from pybpe.reading import file_types, input_file
from pybpe.reading.files import corpus_files, open_text
from pybpe.reading.input_file import InputFile
from pybpe.reading.inputs import ReadOptions
from pybpe.reading.streams import ENDINGS, packing_of_content

TEXT = english()[:30_000]
LINES = b"".join(json.dumps({"text": line, "id": 1}).encode() + b"\n" for line in english()[:40_000].splitlines())

# ------------------------------------------------------------------------------------------------------
# Text, JSON lines and rows

NAMES = ("a.jsonl", "a.JSONL", "a.JSONL.gz", "a.jsonl.GZ", "a.ndjson", "a.jsonlines", "a.jl", "a", "a.txt", "a.json")

# Name and content -> what the file is read as.
FORMS = {
    **{(name, LINES): "jsonl" for name in NAMES},
    ("one.txt", LINES.partition(b"\n")[0]): "jsonl",  # a single record with a text
    ("bom.txt", b"\xef\xbb\xbf" + LINES): "jsonl",
    ("long.txt", json.dumps({"text": "x" * 99_999}).encode() + b"\n"): "jsonl",
    ("blank.txt", b"\n\n" + LINES.replace(b"\n", b"\r\n\r\n")): "jsonl",
    ("prose.jsonl", b"no records"): "jsonl",  # its name says what it should be
    ("a.PARQUET", b"PAR1\x15\0"): "parquet",
    ("a.arrow", b"ARROW1\0\0"): "arrow",
    ("prose.txt", b"red green\n"): "text",
    ("empty", b""): "text",
    ("a.json", b'{"text": "a"}'): "text",  # one value, as .json files have
    ("package", b'{"version": 3}'): "text",
    ("a.js", b'{"use strict"}\n{"use it"}\n'): "text",
    ("mixed.md", LINES.partition(b"\n")[0] + b"\nis a record\n"): "text",
    ("pretty.txt", b'{\n  "text": "a"\n}\n'): "text",
    # Four such bytes are no stream of Arrow
    ("x", b"\xff\xff\xff\xff and more text"): "text",
    ("x", b"\xff\xff\xff\xfftext and more text"): "text",
    ("x", b"\xff\xff\xff\xff\n\n\n\n and more text"): "text",
    ("notes.pt", "notas de aula: ação".encode()): "text",
    ("BMW.txt", b"BMW and MZ are makers; RIFF ORC"): "text",
    ("PAR1.txt", b"PAR1 is a place"): "text",
    ("GGUF.txt", b"GGUF is a format"): "text",
    ("log.txt", "a line with a bell \a and a zero \0 of a text: ação".encode()): "text",
    ("latin.txt", "ação, ".encode("cp1252") * 3): "text",
    ("list.txt", b"[1, 2]"): "text",
    ("cut.txt", ("é" * 256)[: 511 // 2 + 1].encode()): "text",
    ("x.json", b'{"a": 1}'): "text",
    ("page.html", b"<!doctype html>"): "text",
    ("GIF.txt", b"GIF89a is a format of 1989"): "text",
    ("FEA.txt", b"FEA1: one"): "text",
    ("PK.txt", b"PK"): "text",
    ("tar.txt", b"x" * 257 + b"ustar"): "text",
}


@pytest.mark.filterwarnings("ignore:.*this file is empty")
def test_the_content_decides_what_a_file_is(tmp_path: Path) -> None:
    for (name, content), form in FORMS.items():
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
        assert [file.form for file in corpus_files(path)] == [form], (name, content[:40])
        if form == "text" or name in ("a", "a.txt", "one.txt", "long.txt"):  # others are records by their names
            assert [file.form for file in corpus_files(path, ReadOptions(documents="file"))] == ["text"], name


def test_a_name_that_does_not_say_jsonl_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    (tmp_path / "b.jsonl").write_bytes(LINES)
    with caplog.at_level("INFO", "pybpe"):
        corpus_files(tmp_path)
    assert len(caplog.messages) == 1 and "a.txt: read as JSON lines" in caplog.messages[0]


@pytest.mark.parametrize("name", ["a.csv", "a.HTML", "a.tsv.gz", "a.xml"])
def test_markup_is_text_and_is_told(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"a,b\n") if name.endswith("gz") else b"<p>a,b\n")
    with caplog.at_level("INFO", "pybpe"):
        assert [file.form for file in corpus_files(tmp_path)] == ["text"]
    assert caplog.messages == [f"{tmp_path / name}: read as plain text, with its tags or commas"]


# What each command that reads a corpus writes about it, or about the file {} of it.
COMMANDS = {
    "count": "count -t tok.json {} --json",
    "train": "train {} --vocab-size 270 -o out.json --quiet",
    "counts": "count {} -o out.counts --quiet",
    "binarize": "binarize -t tok.json {} -o out --splits 1 --quiet --min-shard-tokens 0",
    "prepare": "prepare {} -o out --vocab-size 270 --splits 1 --quiet --min-shard-tokens 0",
    "corpus": "corpus {} -o out.jsonl --quiet --workers 1",
    "inspect": "inspect tok.json {} --json",
    "compare": "compare tok.json --on a={} --json",
    "prune": "prune tok.json {} -o out.json --quiet",
    "extend": "train {} --base tok.json -o out.json --vocab-size 1010 --quiet",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_by_content(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    results = []
    for name in ("a.jsonl", "a", "-"):
        folder = tmp_path / f"in {name}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        small_tokenizer().save("tok.json")
        data = LINES
        Path("stdin" if name == "-" else name).write_bytes(data)
        with standard_input("stdin" if name == "-" else os.devnull):
            code = main([name if word == "{}" else word.format(name) for word in COMMANDS[command].split()])
        assert code == 0
        printed = capfdbinary.readouterr().out
        written = {path.suffix: path.read_bytes() for path in sorted(Path().glob("out*")) if path.is_file()}
        shards = [path.read_bytes() for path in sorted(Path("out").glob("*train*.bin"))]
        results.append((printed, written, shards))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("name", ["a.jsonl", "a", "a.gz", "-"])
def test_encode_refuses_records_unless_they_are_to_be_one_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """count would count their texts only."""
    monkeypatch.chdir(tmp_path)
    tok = small_tokenizer()
    tok.save("tok.json")
    Path("stdin" if name == "-" else name).write_bytes(gzip.compress(LINES) if name == "a.gz" else LINES)
    outcomes = []
    for more in ([], ["--documents", "file"]):
        with standard_input("stdin" if name == "-" else os.devnull):
            outcomes.append(main(["encode", "-t", "tok.json", name, *more]))
    captured = capsys.readouterr()
    shown = "standard input" if name == "-" else name
    assert outcomes == [2, 0] and f"{shown}: JSON lines, not one text" in captured.err
    assert captured.out == " ".join(map(str, tok.encode(LINES))) + "\n"


# ------------------------------------------------------------------------------------------------------
# What is not text


def archive(kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as file:
            file.writestr("x.txt", TEXT)
    else:
        with tarfile.open(fileobj=stream, mode="w:gz" if kind == "tgz" else "w") as file:
            file.addfile(tarfile.TarInfo("x.txt"), io.BytesIO())
    return stream.getvalue()


def database(tmp_path: Path) -> bytes:
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("create table t (x)")
    return (tmp_path / "db").read_bytes()


def array_bytes() -> bytes:
    stream = io.BytesIO()
    numpy.save(stream, numpy.arange(9))
    return stream.getvalue()


def binaries(tmp_path: Path) -> dict[str, tuple[bytes, str]]:
    """Returns name -> content, and the type that the error names."""
    tok = small_tokenizer()
    tok.save(tmp_path / "t.bin")
    tok.save(tmp_path / "t.json")
    pybpe.count_words(iter([TEXT])).save(tmp_path / "c.counts")
    (tmp_path / "t.txt").write_text(TEXT)
    pybpe.binarize(tok, tmp_path / "t.txt", tmp_path / "b", splits=(1,))
    noise = random.Random(3).randbytes(300)
    return {
        "a.jar": (archive("zip"), "an archive or an office document"),
        "unnamed": (archive("zip"), "an archive"),
        "a.docx": (archive("zip"), "a Word document"),
        "a.odt": (archive("zip"), "an OpenDocument text"),
        "a.rtf": (rb"{\rtf1\ansi text}", "a document in RTF"),
        "a.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + noise, "an old Office document"),
        "a.mobi": (b"name" + bytes(56) + b"BOOKMOBI" + noise, "a Kindle book"),
        "a.fb2": (b'<?xml version="1.0"?>\n<FictionBook xmlns="x">', "a book in FB2"),
        "a.tar": (archive("tar"), "an archive"),
        "a.tgz": (archive("tgz"), "an archive"),
        "a.tar.gz": (archive("tgz"), "an archive"),
        "a.7z": (b"7z\xbc\xaf\x27\x1c" + noise, "an archive"),
        "a.rar": (b"Rar!\x1a\x07\x00" + noise, "an archive"),
        "a.png": (b"\x89PNG\r\n\x1a\n" + noise, r"binary data, which begins with b'\\x89PNG"),
        "a.jpg": (b"\xff\xd8\xff\xe0" + noise, "binary data"),
        "a.gif": (b"GIF89a" + noise, "binary data"),
        "a.lz4": (b"\x04\x22\x4d\x18" + noise, "binary data"),
        "a.pdf": (b"%PDF-1.7\n" + noise, "PDF"),
        "python": (Path(sys.executable).read_bytes()[:9999], "binary data"),
        "a.db": (database(tmp_path), "binary data"),
        "arrow.dat": (b"ARROW1\x00\x00" + noise, "Arrow"),
        "stream.dat": (b"\xff\xff\xff\xff\x70\x00\x00\x00" + noise, "Arrow"),
        "a.dat": (b"PAR1\x15" + noise, "parquet"),
        "a.gguf": (b"GGUF\3\0\0\0" + noise, "GGUF"),
        "a.npy": (array_bytes(), "numpy"),
        "a.safetensors": ((80).to_bytes(8, "little") + b'{"x":{}}' + noise, "binary data"),
        "a.pt": (pickle.dumps([TEXT] * 2), "binary data"),
        "zeros": (bytes(999), "binary data"),
        "a.warc": (b"WARC/1.0\r\nWARC-Type: response\r\n", "WARC"),
        "two.gz": (gzip.compress(gzip.compress(b"text")), "compressed twice"),
        "shard.bin": (next((tmp_path / "b").glob("*_train_*.bin")).read_bytes(), "token shard"),
        "tokenizer.bin": ((tmp_path / "t.bin").read_bytes(), "a tokenizer of llm.c"),
        "t.json": ((tmp_path / "t.json").read_bytes(), "tokenizer.json"),
        "c.dat": ((tmp_path / "c.counts").read_bytes(), "word counts"),
        "manifest.json": ((tmp_path / "b" / "manifest.json").read_bytes(), "the manifest of token files"),
        "array.json": (b'\n[\n  {"text": "a"}]', "JSON array"),
    }


def test_what_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    tok = small_tokenizer()
    calls: list[Callable[[Path], object]] = [
        lambda path: pybpe.count_words(path),
        lambda path: pybpe.train(path, vocab_size=300),
        lambda path: pybpe.binarize(tok, path, tmp_path / "out"),
        lambda path: pybpe.prepare(path, tmp_path / "out", vocab_size=300),
        lambda path: pybpe.encode_files(tok, path, tmp_path / "out.npy"),
        lambda path: pybpe.corpus.clean(path, tmp_path / "out.jsonl", workers=1),
    ]
    for name, (data, what) in binaries(tmp_path).items():
        folder = tmp_path / f"in-{name}"
        folder.mkdir()
        (folder / name).write_bytes(data)
        for call in calls if name in ("a.jar", "shard.bin", "t.json", "array.json") else calls[:1]:
            with pytest.raises(FormatError, match=f"{name}: not text, but .*{what}.*: "):
                call(folder / name)
        if "JSON" not in what and name not in ("t.json", "manifest.json"):
            with pytest.raises(FormatError, match="not text, but"):
                open_text(str(folder / name))
            with pytest.raises(FormatError, match="not text, but"):
                with standard_input(str(folder / name)):
                    pybpe.count_words("-")


def test_a_plain_start_is_what_the_whole_look_finds() -> None:
    """`InputFile.look` looks no further at a start that is plain: everything else that it asks must say the same."""
    rng = random.Random(8)
    marks = [
        *file_types._STARTS,
        b"{",
        b"[",
        b"<!doctype html>",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b" ",
        b"\n",
    ]
    marks += ["\u4e2d\u6587".encode(), "\uff08".encode(), "\U0001f600".encode(), b"the ", b"<html>", b'"text": "']
    plain = 0
    for _ in range(4_000):
        head = b"".join(rng.choices(marks, k=rng.randrange(1, 4)))
        head += bytes(rng.randrange(256) for _ in range(rng.choice((0, 0, 1, 40)))) + b"text " * rng.randrange(9)
        others = b"{}" + head + rng.choice((b"\0", b"plain"))
        if list(file_types.plain_starts(others, (0, 2, 2 + len(head), len(others))))[1:] != [True, others[-1:] == b"n"]:
            continue
        plain += 1
        file = InputFile("a.txt", len(head), 1)
        assert packing_of_content(head) is None and not file_types.begins_like_json(head), head
        found, what = file._described(head)
        assert (found._replace(starts_in_utf8=None), what) == (file, None), head
    assert plain > 100
    said = (*ENDINGS, *file_types.ROW_ENDINGS, *file_types._NAMES_OF_RECORDS, ".json")
    assert not any(input_file.says_nothing(ending.upper()) for ending in said)
    assert input_file.says_nothing(".txt")


def test_rows_are_no_single_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1\x15\0")
    (tmp_path / "a.bin").write_bytes(b"PAR1\x15\0")
    small_tokenizer().save(tmp_path / "tok.json")
    for name, told in (("a.parquet", "not one text, but rows"), ("a.bin", "not text, but a parquet file")):
        assert main(["encode", "-t", str(tmp_path / "tok.json"), str(tmp_path / name)]) == 2
        assert told in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------
# Fields of records that pass through


def random_json(rng: random.Random, depth: int) -> str:
    """Returns a JSON value, spelled in ways that a parser does not preserve."""
    kinds = ["18446744073709551616", "-" + "9" * 40, "1e400", "0.10", "1E5", "1.00000000000000000000001", "-0", "true"]
    kinds += ["null", '"\\u00e9\\ud83d\\ude00\\/"', '"\\ud800"', '"],}{[\\"\\\\"', '""', '"a,b : c"', "NaN", "3.14"]
    choice = rng.randrange(len(kinds) + (6 if depth else 0))
    if choice < len(kinds):
        return kinds[choice]
    space = rng.choice(["", " ", "\t"])
    parts = [random_json(rng, depth - 1) for _ in range(rng.randrange(4))]
    if choice % 2:
        return f"[{space}" + f"{space},{space}".join(parts) + f"{space}]"
    return "{" + ",".join(f'{space}"k{i}"{space}:{space}{part}' for i, part in enumerate(parts)) + space + "}"


def test_fields_that_pass_through_stay_exactly_what_they_were(tmp_path: Path) -> None:
    rng = random.Random(11)
    lines, spelled = [], []
    for number in range(150):
        values = {f"f{i}": random_json(rng, 3) for i in range(rng.randrange(5))}
        members = [f'"{key}": {value}' for key, value in values.items()]
        members.insert(
            rng.randrange(len(members) + 1), f'"text" :"text {number}\\n\\nthe same paragraph, long enough to count"'
        )
        lines.append(" {" + ", ".join(members) + "}\t")
        spelled.append(values)
    lines[7] = '{"text": "text 7", "deep": ' + "[" * 900 + "]" * 900 + "}"
    spelled[7] = {"deep": "[" * 900 + "]" * 900}
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for options in ({}, {"dedup_paragraphs": True}, {"normalizer": "NFC", "languages": ()}):
        pybpe.corpus.clean(tmp_path / "x.jsonl", tmp_path / "out.jsonl", workers=1, force=True, **options)  # type: ignore[arg-type]
        found = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(found) == len(lines)
        for line, values in zip(found, spelled):
            for key, value in values.items():
                assert f'"{key}": {value}' in line
            json.loads(line)


def test_a_stream_that_failed_is_not_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(random.Random(0).randbytes(200_000).hex().encode())[:-100])
    stream = open_text(str(path))
    for what in ("damaged before byte", "cannot be read further after an error"):
        with pytest.raises(FormatError, match=what):
            while stream.read(1 << 16):
                pass
    stream.seek(0)
    assert len(stream.read(1000)) == 1000
