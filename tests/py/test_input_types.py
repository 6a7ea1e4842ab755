"""Inputs that are not UTF-8 text are decompressed, decoded, refused with their type, or reported; and outputs never
become inputs."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import random
import re
import sqlite3
import subprocess
import sys
import tarfile
import threading
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy
import pytest
from corpora import SPLITS, content, small_tokenizer, standard_input, tokens_of
from texts import english

import pybpe
from pybpe import _binding
from pybpe.cli import main
from pybpe.errors import PybpeWarning
from pybpe.reading import file_types, input_file
from pybpe.reading.files import corpus_files, open_text
from pybpe.reading.input_file import InputFile
from pybpe.reading.text_encoding import doubt_of
from pybpe.reading.unpacking import ENDINGS, packing_of_content

TEXT = english()[:30_000]
CHINESE = "这是我们第一次来到这个地方，他说他不知道要怎么去，我也不会。大家都在那里等着你们的时候，天就黑了。" * 9
JAPANESE = (
    "これはわたしたちがはじめてここにきたときのはなしです。かれはしらないといいました。コンピュータをつかう。" * 9
)
FRENCH = (
    "C’était la première fois que nous étions là, et il a dit qu’il ne savait pas où aller. À bientôt, garçon!\n" * 9
)


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
        "a.zip": (archive("zip"), "an archive or an office document"),
        "unnamed": (archive("zip"), "an archive"),
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
        "array.json": (b'\n[\n  {"text": "a"}]', "JSON array"),
    }


def test_what_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    tok = small_tokenizer()
    for name, (data, what) in binaries(tmp_path).items():
        folder = tmp_path / f"in-{name}"
        folder.mkdir()
        (folder / name).write_bytes(data)
        for call in (
            lambda path: pybpe.count_words(path),
            lambda path: pybpe.train(path, vocab_size=300),
            lambda path: pybpe.binarize(tok, path, tmp_path / "out"),
            lambda path: pybpe.prepare(path, tmp_path / "out", vocab_size=300),
            lambda path: pybpe.encode_files(tok, path, tmp_path / "out.npy"),
            lambda path: pybpe.corpus.clean(path, tmp_path / "out.jsonl", workers=1),
        ):
            with pytest.raises(pybpe.errors.FormatError, match=f"{name}: not text, but .*{what}.*: "):
                call(folder / name)
        if "JSON" not in what and name != "t.json":
            with pytest.raises(pybpe.errors.FormatError, match="not text, but"):
                open_text(str(folder / name))
            with pytest.raises(pybpe.errors.FormatError, match="not text, but"):
                with standard_input(str(folder / name)):
                    pybpe.count_words("-")


def test_text_that_looks_like_something_else_is_text(tmp_path: Path) -> None:
    for name, data in {
        "notes.pt": "notas de aula: ação".encode(),
        "BMW.txt": b"BMW and MZ are makers; RIFF ORC",
        "PAR1.txt": b"PAR1 is a place",
        "GGUF.txt": b"GGUF is a format",
        "log.txt": "a line with a bell \a and a zero \0 of a text: ação".encode(),
        "latin.txt": "ação, ".encode("cp1252") * 99,
        "list.txt": b"[1, 2]",
        "cut.txt": ("é" * 256)[: 511 // 2 + 1].encode(),
        "x.json": b'{"a": 1}',
        "page.html": b"<!doctype html>",
        "GIF.txt": b"GIF89a is a format of 1989",
        "FEA.txt": b"FEA1: one",
        "PK.txt": b"PK",
        "tar.txt": b"x" * 257 + b"ustar",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert len(corpus_files(tmp_path / name)) == 1


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_known_by_their_content(tmp_path: Path, pack: object, named: bool) -> None:
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2", lzma.compress: ".xz"}[pack] if named else ""  # type: ignore[index]
    path = tmp_path / f"x.txt{ending}"
    path.write_bytes(pack(TEXT.encode()))  # type: ignore[operator]
    expected = pybpe.count_words(iter([TEXT]))
    assert pybpe.count_words(path) == expected
    with standard_input(str(path)):
        assert pybpe.count_words("-") == expected
    tok = small_tokenizer()
    plain = tmp_path / "plain.txt"
    plain.write_text(TEXT)
    for source in (path, plain):
        pybpe.binarize(tok, source, tmp_path / source.name.partition(".")[0], split_by="token", name="n")
        pybpe.corpus.clean(source, tmp_path / f"{source.name}.jsonl", workers=1)
    for split in SPLITS:
        assert tokens_of(tmp_path / "x", split) == tokens_of(tmp_path / "plain", split)
    assert (tmp_path / f"{path.name}.jsonl").read_bytes() == (tmp_path / "plain.txt.jsonl").read_bytes()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(pybpe.errors.FormatError, match="damaged before byte"):
        pybpe.count_words(path)


# ------------------------------------------------------------------------------------------------------
# Encodings


@pytest.mark.parametrize(
    ("text", "encoding", "place"),
    [(CHINESE, "gb18030", 0), (FRENCH, "cp1252", 1), (CHINESE, "gbk", 0), (JAPANESE, "shift_jis", 0)],
)
def test_text_in_another_encoding_is_said_and_read(tmp_path: Path, text: str, encoding: str, place: int) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode(encoding))
    (tmp_path / "y.txt").write_bytes(text.encode(encoding))
    said = rf"x\.txt: not UTF-8 at byte {place} .*encoding='gb18030' for most Chinese text, 'cp1252' for most Western"
    with pytest.warns(PybpeWarning, match=said) as found:
        pybpe.count_words([path, tmp_path / "y.txt"])
    assert len(found) == 1
    assert pybpe.count_words(path, encoding=encoding) == pybpe.count_words(iter([text]))


def test_utf8_is_read_without_a_word(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path = tmp_path / "x.txt"
    path.write_text(CHINESE + FRENCH + "\0" + "\U0001f600" * 70_000)
    tok = small_tokenizer()
    pybpe.count_words(path)
    pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    pybpe.corpus.clean(path, tmp_path / "out.jsonl", workers=1)
    assert not [warning for warning in recwarn if "UTF-8" in str(warning.message)]


def test_every_reader_says_it_once_with_the_place(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        data = (TEXT + "\n") * 100
        (tmp_path / f"{name}.txt").write_bytes(data.encode() + b"\xff\xfe wrong \xff\n" * (name != "a"))
    files = sorted(tmp_path.glob("*.txt"))
    place = rf"[bc]\.txt: not UTF-8 at byte {100 * len(TEXT.encode() + b'.')} "
    tok = small_tokenizer()
    with ProcessPoolExecutor(2) as executor:
        for call in (
            lambda: pybpe.count_words(files, workers=3),
            lambda: pybpe.count_words(files, executor=executor),
            lambda: pybpe.binarize(tok, files, tmp_path / "out", workers=3, split_by="token"),
            lambda: pybpe.binarize(tok, files, tmp_path / "out2", executor=executor, split_by="token"),
            lambda: pybpe.corpus.clean(files, tmp_path / "out.jsonl", workers=2),
        ):
            with pytest.warns(PybpeWarning) as found:
                call()
            said = [str(warning.message) for warning in found if "UTF-8" in str(warning.message)]
            assert len(said) == 1
            assert re.search(place, said[0])


def test_encoding_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok = small_tokenizer()
    tok.save(tmp_path / "tok.json")
    texts = [CHINESE, FRENCH.replace("’", "'"), TEXT]
    contents = {
        "x.txt": "\n".join(texts),
        "x.jsonl": "\n".join(json.dumps({"text": t}, ensure_ascii=False) for t in texts),
    }
    for name, whole in contents.items():
        for folder, encoding in (("u", "utf-8"), ("g", "gb18030")):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_bytes(whole.encode(encoding))
        (tmp_path / "g" / f"{name}.gz").write_bytes(gzip.compress(whole.encode("gb18030")))
        wanted = tmp_path / "u" / name
        for given in (tmp_path / "g" / name, tmp_path / "g" / f"{name}.gz"):
            assert pybpe.count_words(given, encoding="GBK" if "gz" in name else "gb18030") == pybpe.count_words(wanted)
            for split_by in ("hash", "token", "document"):
                for path, out in ((given, "o1"), (wanted, "o2")):
                    extra = {"force": True, **({"encoding": "gb18030"} if path is given else {})}
                    pybpe.binarize(tok, path, tmp_path / out, split_by=split_by, name="n", min_shard_tokens=0, **extra)
                for split in SPLITS:
                    assert tokens_of(tmp_path / "o1", split) == tokens_of(tmp_path / "o2", split)
            pybpe.corpus.clean(given, tmp_path / "c1.jsonl", encoding="gb18030", workers=1)
            pybpe.corpus.clean(wanted, tmp_path / "c2.jsonl", workers=1)
            assert (tmp_path / "c1.jsonl").read_bytes() == (tmp_path / "c2.jsonl").read_bytes()
    for path, extra in ((tmp_path / "u/x.txt", []), (tmp_path / "g/x.txt", ["--encoding", "gb18030"])):
        for command in (["encode"], ["count"]):
            assert main([*command, "-t", str(tmp_path / "tok.json"), str(path), *extra]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[:2] == lines[2:]


def test_what_does_not_decode_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    for before in (0, 1, 65_535, 65_536, 200_001):
        path.write_bytes(b"a" * before + b"\x81" + b"\xff\n" * 5)
        with pytest.raises(pybpe.errors.FormatError, match=f"x.txt: not gb18030 at byte {before}: ") as error:
            pybpe.count_words(path, encoding="gb18030")
        assert error.value.offset == before
    path.write_bytes("end".encode("utf-16-le") + b"x")
    with pytest.raises(pybpe.errors.FormatError, match="not utf-16-le at byte 6: truncated"):
        pybpe.count_words(path, encoding="utf-16-le")
    for wrong in ("utf-9", "base64", "rot13", "", "a\0b"):
        with pytest.raises(pybpe.errors.ArgumentError, match="encoding"):
            pybpe.count_words(path, encoding=wrong)


def test_validity_is_what_pythons_codec_says() -> None:
    rng = random.Random(5)
    pieces = [
        b"a" * 40, "é中😀".encode(), b"\xff", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\0",
    ]  # fmt: skip
    for _ in range(5000):
        data = b"".join(rng.choices(pieces, [9, 9, 1, 1, 1, 1, 1, 1], k=rng.randrange(9)))
        try:
            data.decode("utf-8")
            expected = len(data)
        except UnicodeDecodeError as error:
            expected = error.start
        assert _binding.utf8_valid(data) == expected
        assert (doubt_of(data, "x", 1) is None) == (expected == len(data))


DECODING = """
import re, sys, pybpe
pybpe.count_words(sys.argv[1], encoding="utf-16", workers=1)
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell the memory of a process")
def test_decoding_takes_no_more_memory_for_a_longer_text(tmp_path: Path) -> None:
    used = []
    for times in (10, 1000):
        path = tmp_path / f"{times}.txt"
        path.write_bytes((TEXT * times).encode("utf-16"))
        found = subprocess.run([sys.executable, "-c", DECODING, path], capture_output=True, text=True, check=True)
        used.append(int(found.stdout))
    assert used[1] < used[0] + 20  # megabytes; the text has 60


def test_empty_inputs_are_said(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("" if name != "b" else TEXT)
    with pytest.warns(PybpeWarning, match=r"a and 1 more: these files are empty") as found:
        pybpe.count_words(tmp_path)
    assert len(found) == 1


# ------------------------------------------------------------------------------------------------------
# Outputs among the inputs


@pytest.mark.parametrize("format", ["llmc", "raw", "npy", "megatron", "webdataset"])
def test_outputs_inside_the_input_folder_are_not_read(tmp_path: Path, format: str) -> None:
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "x.txt").write_text(TEXT)
    (data / "sub" / "y.txt").write_text(TEXT[500:20_000])
    tok = small_tokenizer()
    sizes = {"min_shard_tokens": 0} | ({} if format in ("raw", "megatron") else {"shard_tokens": 3000})
    first = pybpe.binarize(tok, data, data / "out", format=format, **sizes)
    before = content(data / "out")
    for _ in range(2):
        again = pybpe.binarize(tok, data, data / "out", format=format, **sizes)
        assert again == first
        assert content(data / "out") == before
    with pytest.warns(PybpeWarning, match=r"left out: they are pybpe"):
        other = pybpe.binarize(tok, data, data / "other", format=format, **sizes)
    assert other.shards == first.shards
    with pytest.raises(pybpe.errors.ArgumentError, match="would replace the input"):
        pybpe.binarize(tok, data, data)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_tokenizers_counts_and_what_a_killed_run_left_are_not_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "x.txt").write_text(TEXT)
    expected = pybpe.count_words(data)
    tok = small_tokenizer()
    tok.save(data / "t.json")
    tok.save(data / "t.bin")
    tok.save_pretrained(data / "pretrained")
    pybpe.train(data, vocab_size=300).save(data / "model")
    expected.save(data / "x.counts")
    (data / ".x.npy.unfinished").mkdir()
    (data / ".x.npy.unfinished" / "array").write_bytes(b"xyz")
    (data / "t.json.123-0.tmp").write_bytes(b"xyz")
    (data / "killed" / ".pybpe-unfinished").mkdir(parents=True)
    (data / "killed" / "train.bin").write_bytes(b"xyz")
    (data / "killed" / "mine.txt").write_bytes(b"unheardof")
    assert pybpe.count_words([str(data)]).to_dict() == {**expected.to_dict(), b"unheardof": 1}
    for _ in range(2):
        pybpe.prepare(data, data / "prepared", vocab_size=300, min_shard_tokens=0)
        pybpe.encode_files(tok, data, data / "ids.npy")
        pybpe.corpus.clean(data, data / "clean.jsonl", workers=1)
        assert pybpe.train(data, vocab_size=300, checkpoint=data / "c") == pybpe.train(data, vocab_size=300)
        (data / "clean.jsonl").unlink()
        (data / "ids.npy").unlink()


# ------------------------------------------------------------------------------------------------------
# Texts where paths are expected, and the other way round


def test_a_text_for_a_path_is_said_in_few_words(tmp_path: Path) -> None:
    tok = small_tokenizer()
    texts = [TEXT, "[a]*" * 5000, "*/" * 1500, "x" * 300, "two\nlines", "NUL\0"]
    for text in texts:
        for call in (
            lambda text: pybpe.train(text, vocab_size=300),
            lambda text: pybpe.train([text, "b"], vocab_size=300),
            lambda text: pybpe.count_words(text),
            lambda text: pybpe.binarize(tok, text, tmp_path / "out"),
            lambda text: pybpe.prepare(text, tmp_path / "out", vocab_size=300),
            lambda text: pybpe.encode_files(tok, [text], tmp_path / "out.npy"),
            lambda text: pybpe.corpus.clean(text, tmp_path / "out.jsonl"),
        ):
            with pytest.raises(pybpe.errors.ArgumentError) as error:
                call(text)
            assert len(str(error.value)) < 300
    with pytest.raises(FileNotFoundError, match=r"hello world: .*pass iter\(\[text\]\)"):
        pybpe.train(["hello world", "hello you"], vocab_size=300)
    with pytest.raises(FileNotFoundError, match=r"data\.txt: cannot be opened: No such file or directory$"):
        pybpe.train("data.txt", vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="inputs contains a list"):
        pybpe.binarize(tok, [["a", "b"]], tmp_path / "out")


def test_batches_of_texts_are_texts() -> None:
    texts = ["one two", "two three", "three", "four four"]
    expected = pybpe.count_words(iter(texts))
    assert pybpe.count_words(iter([texts[:2], texts[2:]])) == expected
    assert pybpe.count_words([texts[:3], tuple(texts[3:])]) == expected
    assert pybpe.count_words((text for text in [texts[0], texts[1:]]), max_documents=4) == expected
    sample = pybpe.count_words(iter([texts[:2], texts[2:]]), max_documents=3)
    assert sample == pybpe.count_words(iter(texts[:3]))
    assert pybpe.train(iter([texts]), vocab_size=262) == pybpe.train(iter(texts), vocab_size=262)


# ------------------------------------------------------------------------------------------------------
# encode_files and encode, by the name of the output


def test_encode_files_gives_the_ids_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybpe.reading.planning.TASK_BYTES", 5000)
    tok = small_tokenizer()
    text = "<|endoftext|>" + TEXT.replace(". ", "<|endoftext|>") + "<|endoftext|><|endoftext|>\n<|pad|>x"
    path = tmp_path / "x.txt"
    path.write_text(text)
    (tmp_path / "y.txt").write_text(text)
    for inputs, expected in ((path, text), ([path, tmp_path / "y.txt"], text * 2)):
        count = pybpe.encode_files(tok, inputs, tmp_path / "ids.npy")
        ids = numpy.load(tmp_path / "ids.npy")
        assert len(ids) == count and tok.decode(ids) == expected
        assert ids.tolist() == tok.encode(text) * (len(expected) // len(text))
        assert pybpe.encode_files(tok, inputs, tmp_path / "ids.bin") == count
        assert numpy.fromfile(tmp_path / "ids.bin", tok.model.dtype).tolist() == ids.tolist()
    records = ["a b", "c<|endoftext|>", "d"]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"text": record}) + "\n" for record in records))
    for eot, mark in (("none", []), ("append", [tok.eot_token])):
        pybpe.encode_files(tok, tmp_path / "x.jsonl", tmp_path / "ids.npy", eot=eot)
        expected_ids = [i for record in records for i in [*tok.encode_ordinary(record), *mark]]
        assert numpy.load(tmp_path / "ids.npy").tolist() == expected_ids
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ids.bin", "ids.npy", "x.jsonl", "x.txt", "y.txt"]
    with pytest.raises(pybpe.errors.ArgumentError, match="must end in .npy, or in .bin"):
        pybpe.encode_files(tok, path, tmp_path / "ids.txt")
    with pytest.raises(pybpe.errors.ArgumentError, match="keeps texts whole"):
        pybpe.encode_files(tok, path, tmp_path / "ids.npy", documents="line")


def test_the_command_writes_what_the_name_says(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    tok = small_tokenizer()
    tok.save(tmp_path / "tok.json")
    (tmp_path / "x.txt").write_text(TEXT)
    encode = ["encode", "-t", str(tmp_path / "tok.json"), str(tmp_path / "x.txt"), "-o"]
    for name in ("ids.bin", "ids.npy", "ids.txt"):
        assert main([*encode, str(tmp_path / name)]) == 0
        assert main(["decode", "-t", str(tmp_path / "tok.json"), str(tmp_path / name)]) == 0
        assert capfdbinary.readouterr().out.decode() == TEXT
    pybpe.encode_files(tok, tmp_path / "x.txt", tmp_path / "same.bin")
    assert (tmp_path / "same.bin").read_bytes() == (tmp_path / "ids.bin").read_bytes()
    assert [int(word) for word in (tmp_path / "ids.txt").read_text().split()] == tok.encode(TEXT)
    assert main([*encode, str(tmp_path / "ids.bin"), "--json"]) == 2
    (tmp_path / "odd.bin").write_bytes(b"\x81\x00\x81")
    assert main(["decode", "-t", str(tmp_path / "tok.json"), str(tmp_path / "odd.bin")]) == 2
    assert b"3 bytes is not a whole number of uint16" in capfdbinary.readouterr().err


def test_parquet_with_two_columns_of_one_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(pybpe.errors.FormatError, match="2 columns are named 'text'"):
        pybpe.binarize(small_tokenizer(), tmp_path / "x.parquet", tmp_path / "out")


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
    for number in range(400):
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
        pybpe.corpus.clean(tmp_path / "x.jsonl", tmp_path / "out.jsonl", workers=1, **options)  # type: ignore[arg-type]
        found = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(found) == len(lines)
        for line, values in zip(found, spelled):
            for key, value in values.items():
                assert f'"{key}": {value}' in line
            json.loads(line)


def test_records_in_another_encoding_say_so(tmp_path: Path) -> None:
    for encoding in ("cp1252", "utf-16-le"):
        (tmp_path / "x.jsonl").write_text('{"text": "é"}\n', encoding=encoding)
        with pytest.raises(pybpe.errors.FormatError, match="--encoding"):
            pybpe.count_words(tmp_path / "x.jsonl")
        assert pybpe.count_words(tmp_path / "x.jsonl", encoding=encoding).to_dict() == {"é".encode(): 1}


# ------------------------------------------------------------------------------------------------------
# Names of outputs


def test_the_folder_of_an_output_is_made(tmp_path: Path) -> None:
    tok = small_tokenizer()
    (tmp_path / "x.txt").write_text(TEXT)
    tok.save(tmp_path / "a/b/tok.json")
    tok.save(tmp_path / "c/tok.bin")
    pybpe.count_words(iter([TEXT])).save(tmp_path / "d/x.counts")
    pybpe.encode_files(tok, tmp_path / "x.txt", tmp_path / "e/f/ids.npy")
    pybpe.corpus.clean(tmp_path / "x.txt", tmp_path / "g/h/out.jsonl", workers=1)
    train = ["train", str(tmp_path / "x.txt"), "--vocab-size", "300", "--quiet", "-o"]
    assert main([*train, str(tmp_path / "i/j/tok.json")]) == 0
    assert (
        main(["encode", "-t", str(tmp_path / "c/tok.bin"), str(tmp_path / "x.txt"), "-o", str(tmp_path / "k/ids")]) == 0
    )
    for name in ("a/b/tok.json", "c/tok.bin", "d/x.counts", "e/f/ids.npy", "g/h/out.jsonl", "i/j/tok.json", "k/ids"):
        assert (tmp_path / name).stat().st_size > 0
    (tmp_path / "file").write_text("")
    with pytest.raises(pybpe.errors.FileError, match="folder"):
        tok.save(tmp_path / "file" / "tok.json")


@pytest.mark.parametrize("character", ["n", "é", "名"])
def test_names_as_long_as_the_file_system_takes(tmp_path: Path, character: str) -> None:
    tok = small_tokenizer()
    size = len(character.encode())

    def name(ending: str) -> Path:
        return tmp_path / (character * ((255 - len(ending)) // size) + ending)

    (tmp_path / "x.txt").write_text(TEXT)
    tok.save(name(".json"))
    tok.save(name(".bin"))
    pybpe.encode_files(tok, tmp_path / "x.txt", name(".npy"))
    pybpe.corpus.clean(tmp_path / "x.txt", name(".jsonl"), workers=1)
    assert len(list(tmp_path.iterdir())) == 5
    assert pybpe.Tokenizer.from_file(name(".json")) == pybpe.Tokenizer.from_file(name(".bin"))


SHARDS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from pybpe.loading import PackedSequences
packed = PackedSequences(sys.argv[1] + "/*.npy", 5)
total = sum(int(window.inputs.sum()) for window in packed)
assert total == sum(int(packed[i].inputs.sum()) for i in range(len(packed) - 1, -1, -1))
print(total, len(packed))
"""


def test_more_token_files_than_a_process_may_have_open(tmp_path: Path) -> None:
    for number in range(150):
        numpy.save(tmp_path / f"{number:03}.npy", numpy.full(10, number, dtype=numpy.uint16))
    command = [sys.executable, "-c", SHARDS, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True)
    ids = [number for number in range(150) for _ in range(10)]
    windows = (len(ids) - 1) // 5
    assert found.stdout.split() == [str(sum(ids[: 5 * windows])), str(windows)], found.stderr


def test_a_token_file_that_was_replaced_is_not_read_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybpe.tokens.token_files._MOST_OPEN", 4)
    for number in range(9):
        numpy.save(tmp_path / f"{number}.npy", numpy.full(10, number, dtype=numpy.uint16))
    packed = pybpe.loading.PackedSequences(str(tmp_path / "*.npy"), 5)
    numpy.save(tmp_path / "other", numpy.full(10, 77, dtype=numpy.uint16))
    os.replace(tmp_path / "other.npy", tmp_path / "0.npy")
    assert packed[len(packed) - 1].inputs[0] == 8
    with pytest.raises(pybpe.errors.FormatError, match=r"0\.npy: was changed or replaced since it was first opened"):
        packed[0]


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
    for _ in range(20_000):
        head = b"".join(rng.choices(marks, k=rng.randrange(1, 4)))
        head += bytes(rng.randrange(256) for _ in range(rng.choice((0, 0, 1, 40)))) + b"text " * rng.randrange(9)
        others = b"{}" + head + rng.choice((b"\0", b"plain"))
        if list(file_types.plain_starts(others, (0, 2, 2 + len(head), len(others))))[1:] != [True, others[-1:] == b"n"]:
            continue
        plain += 1
        file = InputFile("a.txt", len(head), 1)
        assert packing_of_content(head) is None and not file_types.begins_like_json(head), head
        assert file._described(head) == (file, None), head
    assert plain > 500
    said = (*ENDINGS, *file_types.ROW_ENDINGS, *file_types._NAMES_OF_RECORDS, ".json")
    assert not any(input_file._says_nothing(ending.upper()) for ending in said)
    assert input_file._says_nothing(".txt")


@pytest.mark.parametrize("name", ["pipe", "p?pe"])
def test_looking_at_a_pipe_leaves_its_writer_waiting(name: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"text",), daemon=True)
    writer.start()
    writer.join(0.1)  # until it waits
    (file,) = corpus_files([str(tmp_path / name)])
    writer.join(0.1)
    assert file.size is None and writer.is_alive()
    assert pipe.read_bytes() == b"text"
    writer.join()
