"""One reader decides what an input is: by its content under every name, from standard input too, in every command."""

import codecs
import gzip
import json
import os
import re
import threading
from pathlib import Path

import pytest
from corpora import small_tokenizer, standard_input
from texts import english

import pybpe
from pybpe.cli import main
from pybpe.loading.torch_data import tokens_of
from pybpe.reading.files import corpus_files
from pybpe.reading.options import ReadOptions

LINES = b"".join(json.dumps({"text": line, "id": 1}).encode() + b"\n" for line in english()[:200_000].splitlines())
TEXT = english()[:30_000]
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
}


@pytest.mark.filterwarnings("ignore:.*this file is empty")
def test_the_content_decides_what_a_file_is(tmp_path: Path) -> None:
    for (name, content), form in FORMS.items():
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
        assert corpus_files(path)[0].form == form, (name, content[:40])
        if form == "text" or name in ("a", "a.txt", "one.txt", "long.txt"):  # others are records by their names
            assert corpus_files(path, ReadOptions(documents="file"))[0].form == "text", name


def test_a_name_that_does_not_say_jsonl_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    (tmp_path / "b.jsonl").write_bytes(LINES)
    with caplog.at_level("INFO", "pybpe"):
        corpus_files(tmp_path)
    assert len(caplog.messages) == 1 and "a.txt: read as JSON lines" in caplog.messages[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_shows_the_encoding_and_is_no_text(
    encoding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    tok = small_tokenizer()
    tok.save(tmp_path / "tok.json")
    (tmp_path / "plain").write_text(TEXT)
    (tmp_path / "marked").write_text(TEXT, encoding=encoding)
    with caplog.at_level("INFO", "pybpe"):
        counts = [pybpe.count_words(tmp_path / name) for name in ("plain", "marked")]
    said = f"marked: read as {encoding.removesuffix('-sig')}, without the byte order mark at the start"
    assert [str(tmp_path / said)] == caplog.messages
    ids, printed = [], []
    for name in ("plain", "marked"):
        pybpe.encode_files(tok, tmp_path / name, tmp_path / "ids.npy")
        ids.append((tmp_path / "ids.npy").read_bytes())
        for command in ("count", "encode"):
            assert main([command, "-t", str(tmp_path / "tok.json"), str(tmp_path / name), "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert counts[0] == counts[1] and ids[0] == ids[1] and printed[0] == printed[1]
    (tmp_path / "lines").write_bytes(LINES.decode().encode(encoding))
    (tmp_path / "a.jsonl").write_bytes(LINES)
    assert pybpe.count_words(tmp_path / "lines") == pybpe.count_words(tmp_path / "a.jsonl")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_shows_the_encoding_of_standard_input(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_tokenizer().save(tmp_path / "tok.json")
    (tmp_path / "stdin").write_text(TEXT, encoding=encoding)
    printed = []
    for path in (str(tmp_path / "stdin"), "-"):
        for command in ("count", "encode"):
            with standard_input(str(tmp_path / "stdin")):
                assert main([command, "-t", str(tmp_path / "tok.json"), path, "--json"]) == 0
        captured = capsys.readouterr()
        printed.append((captured.out, captured.err))
    assert printed[0][0] == printed[1][0]
    assert printed[1][1].count("without the byte order mark") == (2 if encoding != "utf-8" else 0)


@pytest.mark.parametrize("name", ["a.csv", "a.HTML", "a.tsv.gz", "a.xml"])
def test_markup_is_text_and_is_told(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"a,b\n") if name.endswith("gz") else b"<p>a,b\n")
    with caplog.at_level("INFO", "pybpe"):
        assert corpus_files(tmp_path)[0].form == "text"
    assert caplog.messages == [f"{tmp_path / name}: read as plain text, with its tags or commas"]


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff", b"\xff\xff\xff\xfftext", b"\xff\xff\xff\xff\n\n\n\n"])
def test_four_bytes_are_no_arrow_stream(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(head + b" and more text")
    assert corpus_files(tmp_path / "x")[0].form == "text"


def test_what_a_command_writes_into_its_input_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"".join(b"One sentence, number %d of many.\n" % n for n in range(200)))
    words = ["corpus", tmp_path, "-o", tmp_path / "b.jsonl", "--report", tmp_path / "b.json", "--quiet", "--force"]
    written = []
    for _ in range(2):
        assert main([*map(str, words)]) == 0
        written.append((tmp_path / "b.jsonl").read_bytes())
    assert written[0] == written[1]


def test_rows_are_no_single_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1\x15\0")
    (tmp_path / "a.bin").write_bytes(b"PAR1\x15\0")
    small_tokenizer().save(tmp_path / "tok.json")
    for name, told in (("a.parquet", "not one text, but rows"), ("a.bin", "not text, but a parquet file")):
        assert main(["encode", "-t", str(tmp_path / "tok.json"), str(tmp_path / name)]) == 2
        assert told in capsys.readouterr().err


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
    "advise": "advise {} --json --tokens 1M --params 10M",
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
        if command == "advise" and name == "-":  # it reads its files twice
            assert code == 2
            continue
        assert code == 0
        printed = capfdbinary.readouterr().out
        written = {path.suffix: path.read_bytes() for path in sorted(Path().glob("out*")) if path.is_file()}
        shards = [path.read_bytes() for path in sorted(Path("out").glob("*train*.bin"))]
        results.append((printed, written, shards))
    assert all(result == results[0] for result in results)


def test_utf16_without_a_mark_is_refused(tmp_path: Path) -> None:
    """Its zeros would become tokens. With the encoding, it is read."""
    path, text = tmp_path / "a.txt", "a text of some length, most of which is ASCII: é"
    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(pybpe.errors.FormatError, match=f"not text, but {encoding} without a byte order mark"):
            pybpe.count_words(path)
        assert pybpe.count_words(path, encoding=encoding) == pybpe.count_words(iter([text]))
        path.write_bytes("short".encode(encoding))  # too short to know which
        with pytest.raises(
            pybpe.errors.FormatError, match=r"not text, but binary data.* in which encoding \(--encoding"
        ):
            pybpe.count_words(path)


MAKERS = {
    "train": ["--vocab-size", "300", "-o", "out.json"],
    "count": ["-o", "out.counts"],
    "corpus": ["-o", "out.jsonl"],
    "prepare": ["--vocab-size", "300", "-o", "out"],
    "binarize": ["-t", "tok.json", "-o", "out"],
    "prune": ["-o", "out.json"],
}
EMPTY = {"a.txt": b"", "a.txt.gz": gzip.compress(b""), "marked.txt": codecs.BOM_UTF8, "wide.txt": codecs.BOM_UTF16_LE}


@pytest.mark.parametrize("command", MAKERS)
@pytest.mark.parametrize("name", [*EMPTY, "folder", "-", "pipe"])
def test_a_command_refuses_an_empty_input(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for file, data in EMPTY.items():
        (Path() if name == file else Path("folder")).joinpath(file).write_bytes(data)
    small_tokenizer().save("tok.json")
    if name == "pipe":
        os.mkfifo(name)
        threading.Thread(target=lambda: Path(name).write_bytes(b""), daemon=True).start()
    first = ["tok.json"] if command == "prune" else []
    with standard_input(os.devnull):
        assert main([command, *first, name, *MAKERS[command]]) == 2
    shown = {"-": "standard input", "folder": "folder/a.txt and 3 more"}.get(name, name)
    assert re.search(rf"{re.escape(shown)}: th(is|ese) files? (is|are) empty, so", capsys.readouterr().err)
    assert not [path for path in Path().rglob("out*") if path.is_file()]


def test_a_list_of_special_tokens_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("a b a b")
    words = ["train", str(tmp_path / "a.txt"), "--vocab-size", "258", "--special-token", "<a>,<b>"]
    assert main([*words, "-o", str(tmp_path / "tok.json")]) == 0
    assert "--special-token '<a>,<b>' is one token" in capsys.readouterr().err


def test_reports_and_lists_in_a_folder_are_not_read(tmp_path: Path) -> None:
    """D2: whatever their names are, and whichever call wrote them."""
    folder = tmp_path / "d"
    folder.mkdir()
    lines = [json.dumps({"text": f"text {i}"}) for i in range(5)]
    (folder / "a.jsonl").write_text("\n".join([*lines, "{", ""]))
    with pytest.warns(pybpe.errors.PybpeWarning, match="1 of 6 records are not valid"):
        report = pybpe.corpus.clean(folder, tmp_path / "o.jsonl", on_error="skip", skipped=folder / "bad.jsonl")
    for name in ("report.json", "report.html", "other.json"):
        report.save(folder / name)
    with (
        pytest.warns(pybpe.errors.PybpeWarning, match="left out: they are pybpe's own files"),
        pytest.warns(pybpe.errors.PybpeWarning, match="1 of 6 records are not valid"),
    ):
        again = pybpe.corpus.clean(folder, tmp_path / "again.jsonl", on_error="skip")
    assert again.documents_in == report.documents_in == 5


def test_an_output_among_the_inputs_is_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its content does not show that it is pybpe's."""
    (tmp_path / "a.jsonl").write_bytes(LINES)
    with caplog.at_level("INFO", "pybpe"):
        pybpe.corpus.clean(tmp_path, tmp_path / "clean.jsonl")
        pybpe.corpus.clean(tmp_path / "a.jsonl", tmp_path / "clean.jsonl")
    told = f"clean.jsonl: is in {tmp_path}, which this call reads: a call with another output would read it too"
    assert [message for message in caplog.messages if "is in" in message] == [f"{tmp_path}/{told}"]


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


def test_the_command_line_names_its_flag_for_wide_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.encode("utf-16-le"))
    assert main(["count", "-t", "gpt2", str(tmp_path / "a.txt")]) == 2
    assert "read it with --encoding utf-16-le, or convert it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["manifest.json", "tokenizer.json"])
def test_what_describes_tokens_is_no_text(name: str, tmp_path: Path) -> None:
    tok = small_tokenizer()
    (tmp_path / "a.txt").write_text(TEXT)
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", min_shard_tokens=0, progress=False)
    tok.save(tmp_path / "out/tokenizer.json")
    for use in (pybpe.count_words, lambda path: tokens_of(path, tok)):
        with pytest.raises(
            pybpe.errors.FormatError, match=f"{name}: not text, but (the manifest of token files|a tokenizer)"
        ):
            use(tmp_path / "out" / name)
