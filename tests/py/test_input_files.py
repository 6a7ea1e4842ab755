"""Which files a call reads: folders, patterns, links, pipes, standard input, empty files; outputs never become inputs.
And where outputs go."""

import codecs
import errno
import gzip
import json
import os
import random
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import content, small_tokenizer, standard_input
from texts import english

import pybpe
from pybpe.cli import main
from pybpe.corpus import clean
from pybpe.errors import ArgumentError, FileError, FormatError, PybpeWarning
from pybpe.reading.file_types import plain_starts
from pybpe.reading.files import SmallFiles, corpus_files, input_files
from pybpe.reading.input_file import InputFile
from pybpe.reading.inputs import ReadOptions

TEXT = english()[:30_000]

# ------------------------------------------------------------------------------------------------------
# Folders, patterns and links


@pytest.mark.filterwarnings("ignore:.*left out")
def test_folders_and_globs_give_what_a_shell_would(tmp_path: Path) -> None:
    """Sorted and recursive: 'data/*' in quotation marks includes the folders that data/* without them includes."""
    for name, text in {"b.txt": "bb", "a/z.txt": "zz", "a/.hidden": "hidden", ".git/x.txt": "git"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    both = [str(tmp_path / "a/z.txt"), str(tmp_path / "b.txt")]
    for inputs in (tmp_path, str(tmp_path / "*"), str(tmp_path / "**/*"), str(tmp_path / "**/*.txt")):
        assert input_files(inputs) == both
    assert input_files([str(tmp_path / "*.txt")]) == both[1:]
    assert input_files(str(tmp_path / "a*")) == both[:1]
    tok = small_tokenizer()
    for _ in range(2):
        pybpe.binarize(tok, str(tmp_path / "*"), tmp_path / "out", splits=(1,), min_shard_tokens=0, name="n")
        assert sum(record.documents for record in pybpe.Manifest.load(tmp_path / "out").shards["train"]) == 2
    os.mkfifo(tmp_path / "a" / "pipe")  # no process writes to it, so reading would wait forever
    assert pybpe.count_words(tmp_path).to_dict() == {b"bb": 1, b"zz": 1}
    (tmp_path / "a" / "link").symlink_to("missing")
    with pytest.raises(FileNotFoundError, match="a/link"):
        pybpe.count_words(tmp_path)
    (tmp_path / "odd[1].txt").write_text("odd")
    assert pybpe.count_words(tmp_path / "odd[1].txt").to_dict() == {b"odd": 1}
    with pytest.raises(ArgumentError, match="nothing"):
        input_files(str(tmp_path / "nothing*"))


def test_pipes_in_a_folder_are_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    os.mkfifo(tmp_path / ".hidden")
    assert input_files(tmp_path) == [str(tmp_path / "a.txt")]
    os.mkfifo(tmp_path / "p.txt")
    with pytest.warns(PybpeWarning, match="p.txt: left out: a pipe or device. To read it too, pass its own path"):
        assert input_files(tmp_path) == [str(tmp_path / "a.txt")]


def test_links_to_folders_are_not_followed_and_said(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    for folder in (data / "sub", data / "notes.unfinished", other):
        folder.mkdir(parents=True)
        (folder / "x.txt").write_text(f"from {folder.name}")
    (data / "sub" / "loop").symlink_to("..")
    names = [str(data / name) for name in ("notes.unfinished/x.txt", "sub/x.txt")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert input_files(data) == names
    (data / "linked").symlink_to("../other")
    with pytest.warns(PybpeWarning, match="linked: pybpe does not follow this link to a folder"):
        assert input_files(data) == names


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """os.walk skips such a folder silently. The superuser may read everything, so the test simulates the error."""
    for name in ("open", "shut", "lost+found"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("text")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if os.path.basename(path) in refused:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    refused = ["lost+found"]
    assert len(input_files(tmp_path)) == 2
    refused.append("shut")
    with pytest.raises(FileError, match="shut: cannot be read: Permission denied"):
        pybpe.count_words(tmp_path)


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


CHINESE = "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\n" * 300
OF_MANY = {
    "plain.txt": TEXT[:3000].encode(),
    "no-ending": b"a b c",
    "empty.txt": b"",
    "crlf.txt": b"one\r\ntwo\r\n",
    "crlf-late.txt": b"a\r\n" * 4000 + b"b\n",
    "crlf-long.txt": b"a line\r\n" * 8000,
    "controls.txt": b"a\x00\x01b\x1b[0m" + b"a" * 600,
    "late-zeros.txt": b"a b " * 2000 + bytes(20_000),
    "damaged.txt": b"\x80\x80 a",
    "late-gb18030.txt": b"one line of ASCII\n" * 300 + CHINESE.encode("gb18030"),
    "gb18030.txt": CHINESE.encode("gb18030"),
    "utf16.txt": TEXT[:500].encode("utf-16"),
    "utf16-without-mark.txt": TEXT[:500].encode("utf-16-le"),
    "mark.txt": codecs.BOM_UTF8 + b"text",
    "wide.txt": "\uff01".encode(),
    "tags.html": b"<p>text</p>",
    "page.html": b"<!DOCTYPE html>\n<html><p>text</p></html>",
    "report.html": b'<!doctype html>\n<html lang="en"><head><title>Corpus report</title></head></html>',
    "book.xml": b'\n<?xml version="1.0"?>\n<FictionBook>text</FictionBook>',
    "feed.xml": b'<?xml version="1.0"?>\n<rss>text</rss>',
    "braces.c": b"{ int x; }",
    "lines.txt": b'{"text": "a"}\n{"text": "b"}\n',
    "records.jsonl": b'{"text": "a"}\n',
    "packed.txt.gz": gzip.compress(TEXT[:1000].encode(), mtime=0),
    "packed-crlf.txt": gzip.compress(b"a\r\n", mtime=0),
    "list.json": b'{"a": 1}',
    "most.txt": b"x" * (1 << 16),
    "large.txt": b"x\n" * (1 << 15) + b"y",
    "large-crlf.txt": b"x\r\n" * (1 << 15),
}


@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
@pytest.mark.parametrize("seed", range(8))
def test_files_of_a_list_are_seen_together_as_each_alone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighboring names of files are looked at together. What is found is what a look at each one finds."""
    rng = random.Random(seed)
    for name, data in OF_MANY.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / f"{tmp_path.name}.target")
    (tmp_path.parent / f"{tmp_path.name}.target").write_text("linked")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.txt").write_text("in a folder")
    (tmp_path / "picture.png").write_bytes(SIDE["picture.png"])
    for number in range(200):
        (tmp_path / f"{number}.txt").write_text(TEXT[number : number + rng.randrange(300)])
    names = [*OF_MANY, *(f"{number}.txt" for number in range(200))]
    paths = [str(tmp_path / name) for name in (*names, "link.txt", "pipe", "sub/x.txt", "missing.txt", "picture.png")]

    def alone(path: str, read: ReadOptions) -> InputFile | str:
        try:
            return InputFile.of(path, read.encoding).in_form(read.documents).decided(read.keep_crlf)
        except pybpe.Error as error:
            return str(error)

    for encoding, documents, keep_crlf in product((None, "utf-8", "cp1252"), ("auto", "file", "jsonl"), (False, True)):
        read = ReadOptions(encoding=encoding, documents=documents, keep_crlf=keep_crlf)
        wanted = {path: alone(path, read) for path in rng.sample(paths, rng.randrange(2, len(paths)))}
        good = [path for path, file in wanted.items() if isinstance(file, InputFile)]
        for path, file in wanted.items():
            if isinstance(file, str):
                with pytest.raises(pybpe.Error, match=re.escape(file)):
                    corpus_files([*good[:9], path, *good[9:]], read)
        found = corpus_files([path.replace("sub/x.txt", "sub") for path in good], read)
        assert list(found) == [wanted[path] for path in good] and list(found.paths) == good
        monkeypatch.setattr("pybpe.reading.files._ROOM", rng.choice((1 << 16, 1 << 17, 1 << 21)))
    monkeypatch.undo()
    plain = [str(tmp_path / f"{number}.txt") for number in range(200)]
    (part,) = corpus_files(plain).parts
    assert isinstance(part, SmallFiles)
    assert plain_starts(b"<p>a<?xml", (0, 4, 9)) == [True, False]  # HTML, too, is recognized without a closer look
    with pytest.raises(ArgumentError, match=re.escape(f"{plain[7]}: given twice")):
        corpus_files([*plain, plain[7]])


# ------------------------------------------------------------------------------------------------------
# What is next to the texts in a folder

SIDE = {
    "README.md": b"# Data\n",
    "LICENSE": b"Free",
    "data/a.parquet.sha256": b"0123 a.parquet\n",
    "data/.b.parquet.crc": b"crc",
    "data/_SUCCESS": b"",
    "dataset_infos.json": b'{"default": {"features": {}}}',
    "picture.png": b"\x89PNG\r\n\x1a\n\0\0",
}


@pytest.mark.parametrize("name", ["data/a.jsonl", "data/a.jsonl.gz", "a.json", "data/a.parquet", "a.arrow"])
def test_a_folder_of_records_is_read_without_what_describes_it(name: str, tmp_path: Path) -> None:
    records, path = [{"text": "one"}, {"text": "two"}], tmp_path / name
    (tmp_path / "data").mkdir()
    if path.suffix in (".parquet", ".arrow"):
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_pylist(records)
        if path.suffix == ".parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        else:
            with pyarrow.ipc.new_file(path, table.schema) as file:
                file.write(table)
    else:
        data = "".join(json.dumps(record) + "\n" for record in records).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    for side, data in SIDE.items():
        (tmp_path / side).write_bytes(data)
    told = f"LICENSE and 5 more: left out: {tmp_path} has files of records, such as {path}, and only those are read"
    with pytest.warns(PybpeWarning, match=re.escape(told)):
        assert list(corpus_files(tmp_path).paths) == [str(path)]
    (tmp_path / "more.txt").write_text("three")
    with pytest.raises(
        ArgumentError, match=re.escape(f"such as {path}, and plain text, such as {tmp_path}/more.txt: pass")
    ):
        pybpe.count_words(tmp_path)
    (tmp_path / "more.txt").rename(tmp_path / "more.py")
    with pytest.warns(PybpeWarning, match="LICENSE and 6 more: left out"):
        pybpe.count_words(tmp_path)
    (tmp_path / "code.py").write_text("x = 1\n" * 200_000)
    with pytest.raises(ArgumentError, match=re.escape(f"**/*{''.join(path.suffixes)}'")):
        pybpe.count_words(tmp_path)
    (tmp_path / "more.py").rename(tmp_path / "more.txt")
    globs = [f"{tmp_path}/*.txt", str(tmp_path / name)]
    assert pybpe.count_words(globs).to_dict() == {b"one": 1, b"two": 1, b"three": 1}


def test_files_of_desktops_backups_and_unfinished_downloads_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    for name in ("Thumbs.db", "desktop.ini", ".DS_Store", "._x.txt", "sub/THUMBS.DB"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\0\1binary")
    for inputs in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/**"):
        assert list(corpus_files(inputs).paths) == [str(tmp_path / "x.txt")]
    for name in ("x.txt~", "y.bak", "z.txt.part", "z.txt.crdownload"):
        (tmp_path / name).write_text("spare")
    with pytest.warns(PybpeWarning, match="x.txt~ and 3 more: left out: each is a backup or an unfinished download"):
        assert list(corpus_files(tmp_path).paths) == [str(tmp_path / "x.txt")]
    assert pybpe.count_words(tmp_path / "y.bak").to_dict() == {b"spare": 1}


# ------------------------------------------------------------------------------------------------------
# Empty files, and texts where paths are expected

MAKERS = {
    "train": ["--vocab-size", "300", "-o", "out.json"],
    "count": ["-o", "out.counts"],
    "corpus": ["-o", "out.jsonl"],
    "prepare": ["--vocab-size", "300", "-o", "out"],
    "binarize": ["-t", "tok.json", "-o", "out"],
    "prune": ["-o", "out.json"],
}
EMPTY = {"a.txt": b"", "a.txt.gz": gzip.compress(b""), "marked.txt": codecs.BOM_UTF8, "wide.txt": codecs.BOM_UTF16_LE}


@pytest.mark.parametrize(
    ("command", "name"),
    [*(("count", name) for name in [*EMPTY, "pipe"]), *product(MAKERS, ["folder", "-"])],
)
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


@pytest.mark.parametrize("command", MAKERS)
@pytest.mark.parametrize("line", ['{"text": ""}\n', "\n \n"])
def test_nothing_is_made_of_records_without_text(
    command: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(line * 3)
    small_tokenizer().save("tok.json")
    for more in [[]] if command != "binarize" else [["--format", form] for form in ("llmc", "npy", "megatron", "raw")]:
        given = ["tok.json", "a.jsonl"] if command == "prune" else ["a.jsonl"]
        assert main([command, *given, *MAKERS[command], *more]) == 2
        assert re.search("there is no text (in the inputs|to train on)|the files have no text", capsys.readouterr().err)
        assert not [path for path in Path().rglob("*out*") if path.is_file()]


def test_functions_say_that_nothing_came_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n')
    nothing: tuple[Any, ...] = (iter(["a", "b"]), iter([""]), tmp_path / "a.jsonl")
    assert list(nothing[0])
    for inputs in nothing:
        with pytest.raises(ArgumentError, match="there is no text to train on"):
            pybpe.train(inputs, vocab_size=300)
    assert len(pybpe.train(iter([]), vocab_size=256)) == 256  # as requested
    with pytest.raises(ArgumentError, match="there is no text to train on"):
        pybpe.train(counts={}, vocab_size=300)
    with pytest.warns(PybpeWarning, match="there is no text in the inputs, so there are no words"):
        assert len(pybpe.count_words(iter([]))) == 0
    with pytest.warns(PybpeWarning, match="the vocabulary has 259 tokens, fewer than 300: no other pair"):
        pybpe.train(iter(["abc abc"]), vocab_size=300)
    with pytest.warns(PybpeWarning, match="the vocabulary has 256 tokens, fewer than 300: no other pair"):
        pybpe.train(iter(["a b c"]), vocab_size=300, min_frequency=10)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.warns(PybpeWarning) as told:
        vocab, merges = pybpe.train_bpe(tmp_path / "empty", 300, ["<|a|>"])
    assert (len(vocab), merges) == (257, []) and len(told) == 2
    (tmp_path / "b.txt").write_text("short")
    with pytest.warns(PybpeWarning, match=r"o\.jsonl: is empty, because no document was kept"):
        pybpe.corpus.clean(tmp_path / "b.txt", tmp_path / "o.jsonl", filters=pybpe.corpus.Filters(min_chars=99))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.jsonl.zst", "a.parquet", "a.arrow", "a", "a.json"])
def test_a_pointer_of_git_lfs_is_no_text(name: str, tmp_path: Path) -> None:
    """Nor any other file, such as a tokenizer: its text is small, and the file is elsewhere."""
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n")
    for call in (pybpe.count_words, pybpe.Tokenizer.from_file):
        with pytest.raises(FormatError, match="a pointer of Git LFS, not the file itself: run `git lfs pull`"):
            call(path)
    path.rename(tmp_path / "manifest.json")
    with pytest.raises(FormatError, match="manifest.json: a pointer of Git LFS"):
        pybpe.Manifest.load(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="names are Unicode there")
def test_names_that_are_not_utf8_lead_back_to_the_file(tmp_path: Path) -> None:
    folder, name = os.fsencode(tmp_path), b"caf\xe9.jsonl"
    with open(os.path.join(folder, name), "wb") as stream:
        stream.write(b'{"text": "one"}\n{"text": 1}\n{"text": "two"}\n')
    path = os.fsdecode(os.path.join(folder, name))
    with pytest.warns(PybpeWarning, match="1 of 3 records"):
        pybpe.binarize(small_tokenizer(), path, tmp_path / "o", on_error="skip", splits=(1,), min_shard_tokens=0)
    manifest, skipped = (
        json.loads((tmp_path / "o" / name).read_bytes()) for name in ("manifest.json", "skipped.jsonl")
    )
    assert os.fsencode(manifest["inputs"][0][0]) == os.fsencode(skipped["file"]) == os.path.join(folder, name)
    assert pybpe.Manifest.load(tmp_path / "o").inputs == [(path, 44)]
    with pytest.warns(PybpeWarning, match="1 of 3 records"):
        report = pybpe.corpus.clean(path, path + ".out.jsonl", on_error="skip", workers=1)
    report.save(tmp_path / "r.json")
    facts = json.loads((tmp_path / "r.json").read_bytes())
    assert os.fsencode(facts["skipped"]["file"]) == os.fsencode(path + ".out.jsonl.skipped.jsonl")
    with pytest.warns(PybpeWarning, match="1 of 3 records"):
        pybpe.train(path, vocab_size=257, on_error="skip", skipped=tmp_path / "list")
    assert os.fsencode(json.loads((tmp_path / "list").read_bytes())["file"]) == os.path.join(folder, name)


def test_errors_name_standard_input_and_not_its_copy(tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"text": "a"}\n' * 9 + '{"text": "a\n')
    calls = (
        lambda: pybpe.binarize(small_tokenizer(), "-", tmp_path / "a", documents="jsonl", progress=False),
        lambda: pybpe.prepare("-", tmp_path / "b", vocab_size=300, documents="jsonl", progress=False),
        lambda: clean("-", tmp_path / "c.jsonl", documents="jsonl", progress=False),
    )
    for call in calls:
        with standard_input(str(tmp_path / "in")), pytest.raises(FormatError, match="^-: the line at byte 126: not"):
            call()


def test_a_complete_call_makes_no_object_per_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for name in "abcdefgh":
        (tmp_path / "in" / f"{name}.txt").write_text(f"text {name}")
    objects, iterate = list[InputFile](), SmallFiles.__iter__

    def counted(some: SmallFiles) -> Iterator[InputFile]:
        for file in iterate(some):
            objects.append(file)
            yield file

    tok, given = small_tokenizer(), {"splits": (1,), "min_shard_tokens": 0}
    made = pybpe.binarize(tok, tmp_path / "in", tmp_path / "o", **given)
    monkeypatch.setattr(SmallFiles, "__iter__", counted)
    assert pybpe.binarize(tok, tmp_path / "in", tmp_path / "o", **given) == made
    assert len(objects) < 8
    os.utime(tmp_path / "in" / "b.txt", (2**32, 2**32))
    with pytest.raises(ArgumentError, match="was written before .*b.txt changed"):
        pybpe.binarize(tok, tmp_path / "in", tmp_path / "o", **given)


def test_standard_input_again_is_complete(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("some text")
    given = {"splits": (1,), "min_shard_tokens": 0}
    for _ in range(2):
        with standard_input(str(tmp_path / "a.txt")), caplog.at_level("INFO", "pybpe"):
            made = pybpe.binarize(small_tokenizer(), "-", tmp_path / "o", **given)
    assert f"{tmp_path}/o: already complete (1 shards, {made.tokens} tokens)" in caplog.messages
    (tmp_path / "a.txt").write_text("other text")
    with standard_input(str(tmp_path / "a.txt")), pytest.raises(ArgumentError, match="1 input that is changed, -"):
        pybpe.binarize(small_tokenizer(), "-", tmp_path / "o", **given)


def test_empty_inputs_are_said(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("" if name != "b" else TEXT)
    with pytest.warns(PybpeWarning, match=r"a and 1 more: these files are empty") as found:
        pybpe.count_words(tmp_path)
    assert len(found) == 1


def test_files_that_say_that_they_are_empty(tmp_path: Path) -> None:
    """Files in /proc do this, for example."""
    path = Path("/proc/version")
    if not path.exists() or path.stat().st_size:
        pytest.skip("no such file here")
    text = path.read_text()
    assert pybpe.count_words(path) == pybpe.count_words(iter([text]))
    tok = small_tokenizer()
    pybpe.encode_files(tok, path, tmp_path / "o.npy")
    assert tok.decode(numpy.load(tmp_path / "o.npy").tolist()) == text


def test_a_text_for_a_path_is_said_in_few_words(tmp_path: Path) -> None:
    tok = small_tokenizer()
    for text in (TEXT, "[a]*" * 5000, "*/" * 1500, "x" * 300, "two\nlines", "NUL\0"):
        for call in (
            lambda text: pybpe.train(text, vocab_size=300),
            lambda text: pybpe.train([text, "b"], vocab_size=300),
            lambda text: pybpe.count_words(text),
            lambda text: pybpe.binarize(tok, text, tmp_path / "out"),
            lambda text: pybpe.prepare(text, tmp_path / "out", vocab_size=300),
            lambda text: pybpe.encode_files(tok, [text], tmp_path / "out.npy"),
            lambda text: pybpe.corpus.clean(text, tmp_path / "out.jsonl"),
        ):
            with pytest.raises(ArgumentError) as error:
                call(text)
            assert len(str(error.value)) < 300
    with pytest.raises(FileNotFoundError, match=r"hello world: .*pass iter\(\[text\]\)"):
        pybpe.train(["hello world", "hello you"], vocab_size=300)
    with pytest.raises(FileNotFoundError, match=r"data\.txt: cannot be opened: No such file or directory$"):
        pybpe.train("data.txt", vocab_size=300)
    with pytest.raises(ArgumentError, match="inputs contains a list"):
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
# Outputs among the inputs


@pytest.mark.parametrize("format", ["llmc", "megatron"])
def test_outputs_inside_the_input_folder_are_not_read(tmp_path: Path, format: str) -> None:
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "x.txt").write_text(TEXT)
    (data / "sub" / "y.txt").write_text(TEXT[500:20_000])
    tok = small_tokenizer()
    sizes = {"min_shard_tokens": 0} | ({} if format in ("raw", "megatron") else {"shard_tokens": 3000})
    first = pybpe.binarize(tok, data, data / "out", format=format, **sizes)
    before = content(data / "out")
    assert pybpe.binarize(tok, data, data / "out", format=format, **sizes) == first
    assert content(data / "out") == before
    with pytest.warns(PybpeWarning, match=r"left out: they are pybpe"):
        other = pybpe.binarize(tok, data, data / "other", format=format, **sizes)
    assert other.shards == first.shards
    with pytest.raises(ArgumentError, match="would replace the input"):
        pybpe.binarize(tok, data, data)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_tokenizers_counts_reports_and_what_a_killed_run_left_are_not_read(tmp_path: Path) -> None:
    """Whatever their names are, and whichever call wrote them."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "x.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in TEXT.splitlines()) + "{\n")
    given = {"on_error": "skip", "skipped": data / "bad.jsonl"}
    with pytest.warns(PybpeWarning, match=f"1 of {len(TEXT.splitlines()) + 1} records are not valid"):
        report = pybpe.corpus.clean(data, tmp_path / "o.jsonl", **given)  # type: ignore[arg-type]
    for name in ("report.json", "report.html", "other.json"):
        report.save(data / name)
    (data / "x.jsonl").write_text((data / "x.jsonl").read_text()[:-2])
    expected = pybpe.count_words(data)
    tok = small_tokenizer()
    tok.save(data / "t.json")
    tok.save(data / "t.bin")
    tok.save(data / "t.tiktoken")
    assert main(["viz", str(data / "x.jsonl"), "-t", str(data / "t.json"), "-o", str(data / "page.html")]) == 0
    tok.save_pretrained(data / "pretrained")
    pybpe.train(data, vocab_size=300).save(data / "model")
    expected.save(data / "x.counts")
    for name in (".x.npy.unfinished", "killed/.pybpe-unfinished"):
        (data / name).mkdir(parents=True)
    for name in (".x.npy.unfinished/array", "t.json.123-0.tmp", "killed/train.bin"):
        (data / name).write_bytes(b"xyz")
    (data / "killed" / "mine.jsonl").write_text('{"text": "unheardof"}')
    assert pybpe.count_words([str(data)]).to_dict() == {**expected.to_dict(), b"unheardof": 1}
    for _ in range(2):
        pybpe.prepare(data, data / "prepared", vocab_size=300, min_shard_tokens=0)
        pybpe.encode_files(tok, data / "killed", data / "ids.npy")
        assert pybpe.train(data, vocab_size=300, checkpoint=data / "c") == pybpe.train(data, vocab_size=300)
        assert pybpe.corpus.clean(data, data / "clean.jsonl").documents_in == report.documents_in + 1
        (data / "clean.jsonl").unlink()
        (data / "ids.npy").unlink()


def test_a_cleaned_corpus_next_to_its_inputs_is_refused(tmp_path: Path) -> None:
    raw, made = tmp_path / "raw", tmp_path / "made"
    raw.mkdir()
    for name in ("a", "b"):
        (raw / f"{name}.jsonl").write_text(f'{{"text": "{name}"}}\n')
        pybpe.corpus.clean(raw / f"{name}.jsonl", made / f"{name}.jsonl", workers=1)
    assert pybpe.count_words(made).to_dict() == {b"a": 1, b"b": 1}
    pybpe.corpus.clean(raw, raw / "c.jsonl", workers=1)
    for call in (pybpe.count_words, lambda inputs: pybpe.corpus.clean(inputs, tmp_path / "d.jsonl")):
        told = f"{raw}/c.jsonl: `pybpe corpus` wrote this file, maybe from others in this folder, such as {raw}/a.jsonl"
        with pytest.raises(ArgumentError, match=re.escape(told)):
            call(raw)
    assert pybpe.count_words(raw / "*.jsonl").to_dict() == {b"a": 2, b"b": 2}  # as the caller says


@pytest.mark.filterwarnings("ignore:.*left out")
def test_an_output_among_the_inputs_is_not_read_again_and_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its content does not show that it is pybpe's."""
    (tmp_path / "a.txt").write_bytes(b"".join(b"One sentence, number %d of many.\n" % n for n in range(200)))
    words = ["corpus", tmp_path, "-o", tmp_path / "b.jsonl", "--report", tmp_path / "b.json", "--quiet", "--force"]
    written = []
    for _ in range(2):
        assert main([*map(str, words)]) == 0
        written.append((tmp_path / "b.jsonl").read_bytes())
    assert written[0] == written[1]
    (tmp_path / "b.jsonl").unlink()
    with caplog.at_level("INFO", "pybpe"):
        pybpe.corpus.clean(tmp_path, tmp_path / "b.jsonl")
        pybpe.corpus.clean(tmp_path / "a.txt", tmp_path / "b.jsonl", force=True)
    told = f"is in {tmp_path}, which this call reads: a call with another output refuses this folder then"
    assert [message for message in caplog.messages if "is in" in message] == [f"{tmp_path}/b.jsonl: {told}"]


# ------------------------------------------------------------------------------------------------------
# Names of outputs


def test_the_folder_of_an_output_is_made(tmp_path: Path) -> None:
    tok = small_tokenizer()
    text = tmp_path / "x.txt"
    text.write_text(TEXT)
    tok.save(tmp_path / "a/b/tok.json")
    tok.save(tmp_path / "c/tok.bin")
    pybpe.count_words(iter([TEXT])).save(tmp_path / "d/x.counts")
    pybpe.encode_files(tok, text, tmp_path / "e/f/ids.npy")
    pybpe.corpus.clean(text, tmp_path / "g/h/out.jsonl", workers=1)
    for words in (["train", text, "--vocab-size", 300, "--quiet", "-o", tmp_path / "i/j/tok.json"],
                  ["encode", "-t", tmp_path / "c/tok.bin", text, "-o", tmp_path / "k/ids"]):  # fmt: skip
        assert main([*map(str, words)]) == 0
    for name in ("a/b/tok.json", "c/tok.bin", "d/x.counts", "e/f/ids.npy", "g/h/out.jsonl", "i/j/tok.json", "k/ids"):
        assert (tmp_path / name).stat().st_size > 0
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="folder"):
        tok.save(tmp_path / "file" / "tok.json")


@pytest.mark.parametrize("character", ["n", "é", "名"])
def test_names_as_long_as_the_file_system_takes(tmp_path: Path, character: str) -> None:
    tok = small_tokenizer()

    def name(ending: str) -> Path:
        return tmp_path / (character * ((255 - len(ending)) // len(character.encode())) + ending)

    (tmp_path / "x.txt").write_text(TEXT)
    tok.save(name(".json"))
    tok.save(name(".bin"))
    pybpe.encode_files(tok, tmp_path / "x.txt", name(".npy"))
    pybpe.corpus.clean(tmp_path / "x.txt", name(".jsonl"), workers=1)
    assert len(list(tmp_path.iterdir())) == 6
    assert pybpe.Tokenizer.from_file(name(".json")) == pybpe.Tokenizer.from_file(name(".bin"))


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.npy"])
def test_outputs_go_where_a_link_leads_and_never_replace_a_pipe(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.txt").write_text("some words\n")

    def write(path: Path) -> None:
        if name.endswith(".npy"):
            pybpe.encode_files(small_tokenizer(), tmp_path / "x.txt", path)
        else:
            pybpe.corpus.clean(tmp_path / "x.txt", path, workers=1, force=True)

    write(tmp_path / name)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "blob").write_text("old")
    (tmp_path / f"link-{name}").symlink_to("real/blob")
    write(tmp_path / f"link-{name}")
    assert (tmp_path / f"link-{name}").is_symlink()
    assert (tmp_path / "real" / "blob").read_bytes() == (tmp_path / name).read_bytes()
    os.mkfifo(tmp_path / f"pipe-{name}")
    with pytest.raises(FileError, match="not a regular file"):
        write(tmp_path / f"pipe-{name}")
    assert (tmp_path / f"pipe-{name}").is_fifo()


# ------------------------------------------------------------------------------------------------------
# encode_files and encode


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
    with pytest.raises(ArgumentError, match="must end in .npy, or in .bin"):
        pybpe.encode_files(tok, path, tmp_path / "ids.txt")
    with pytest.raises(ArgumentError, match="keeps texts whole"):
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
