"""Inputs that once gave, without an error, a result that lacked a part of the text or had a different text."""

import bz2
import errno
import gzip
import lzma
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from corpora import small_tokenizer
from texts import english

import pybpe
from pybpe.errors import PybpeWarning
from pybpe.reading.files import corpus_files, input_files, open_text
from pybpe.reading.options import ReadOptions

TEXT = english()[:20_000].encode()


def alone(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


def checked_zstd(data: bytes) -> bytes:
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    packed: bytes = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
    return packed


@pytest.mark.parametrize(
    ("ending", "pack", "header"),
    [(".gz", gzip.compress, 10), (".bz2", bz2.compress, 0), (".xz", lzma.compress, 0), (".zst", checked_zstd, 0)],
)
def test_damage_after_the_first_compressed_stream(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes], header: int
) -> None:
    """The standard library's bz2 and lzma stop there without an error. The header of gzip has no checksum."""
    path = tmp_path / f"x.txt{ending}"
    first, second = pack(TEXT), pack(TEXT[:3000])
    for between in (b"", bytes(512)):
        path.write_bytes(first + between + second + between)
        with open_text(str(path)) as stream:
            assert stream.read() == TEXT + TEXT[:3000]
            stream.seek(len(TEXT) - 5)
            assert stream.read(10) == (TEXT + TEXT)[len(TEXT) - 5 :][:10]
            stream.seek(3)
            assert stream.read(4) == TEXT[3:7]
    chance = random.Random(1)
    for _ in range(30):
        damaged = bytearray(second)
        damaged[chance.randrange(header, len(damaged) - (ending == ".bz2"))] ^= 1 << chance.randrange(8)
        path.write_bytes(first + damaged)
        with pytest.raises(pybpe.errors.FormatError, match="damaged before byte"):
            pybpe.count_words(path)
    for data in (first + b"more", first + first[:1], first[: len(first) // 2], b"not compressed at all"):
        path.write_bytes(data)
        with pytest.raises(pybpe.errors.FormatError, match="damaged before byte"):
            pybpe.count_words(path)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_an_empty_compressed_file(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    """Programs accept an empty file as gzip, and no other."""
    path = tmp_path / f"x.txt{ending}"
    path.write_bytes(pack(b""))
    with open_text(str(path)) as stream:
        assert stream.read() == b""
    path.write_bytes(b"")
    if ending == ".gz":
        with open_text(str(path)) as stream:
            assert stream.read() == b""
    else:
        with pytest.raises(pybpe.errors.FormatError, match="damaged before byte"):
            open_text(str(path))


@pytest.mark.parametrize("size", [1, 1 << 15, (1 << 15) + 1, 1 << 20])
def test_gzip_that_unpacks_to_far_more(tmp_path: Path, size: int) -> None:
    """Steps of decompression end inside long runs, and at the end of the stream."""
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"a" * size))
    for part in (1 << 14, 1 << 15, 70_001):
        with open_text(str(path)) as stream:
            found = [stream.read(part) for _ in range(size // part + 2)]
        assert b"".join(found) == b"a" * size
        assert all(len(some) == part for some in found[: size // part])


def test_an_old_lzma_file_ends_once(tmp_path: Path) -> None:
    path = tmp_path / "x.txt.lzma"
    path.write_bytes(alone(TEXT))
    with open_text(str(path)) as stream:
        assert stream.read() == TEXT
    path.write_bytes(alone(TEXT) + b"more")
    with pytest.raises(pybpe.errors.FormatError, match="damaged before byte"):
        pybpe.count_words(path)


# ------------------------------------------------------------------------------------------------------
# Encodings


@pytest.mark.parametrize(
    ("contents", "warning"),
    [
        ([b"a\xc3", b"\xa9b", b"c"], r"1\.txt: not UTF-8 at byte 1 "),
        ([b"a", b"b\xff", b"\xc3"], r"2\.txt: not UTF-8 at byte 1 "),
        ([b"a", b"b", b"c\xe9"], r"3\.txt: not UTF-8 at byte 1 "),
    ],
)
def test_small_files_that_are_not_utf8(tmp_path: Path, contents: list[bytes], warning: str) -> None:
    """Many small files are checked at once, but the halves of a character in two files are not a character."""
    tok = small_tokenizer()
    for number, content in enumerate(contents, 1):
        (tmp_path / f"{number}.txt").write_bytes(content)
    with pytest.warns(PybpeWarning, match=warning):
        pybpe.binarize(tok, sorted(tmp_path.iterdir()), tmp_path / "out", splits=(1,), min_shard_tokens=0)


def test_a_byte_order_mark_of_the_other_order(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffhello world".encode("utf-16-le"))
    with pytest.raises(pybpe.errors.FormatError, match="at byte 0: it begins with the byte order mark of the other"):
        pybpe.count_words(path, encoding="utf-16-be")
    assert pybpe.count_words(path, encoding="utf-16") == pybpe.count_words(iter(["hello world"]))


FRENCH = "Où est la bibliothèque ? Là-bas, à côté de l’école, près du café.\n"


@pytest.mark.parametrize(
    ("text", "encoding", "is_said"),
    [
        (FRENCH.encode(), "cp1252", True),
        (FRENCH.encode(), "iso8859-1", True),
        ("这是我们第一次来到这个地方".encode(), "gb18030", True),
        (b"plain ASCII is the same in both", "cp1252", False),
        (b"plain ASCII is another text so", "utf-16-le", True),
        ("联通".encode("gbk"), "gbk", False),  # four bytes that happen to be UTF-8
        (FRENCH.encode("cp1252"), "cp1252", False),
        (FRENCH.encode("utf-16-le"), "utf-16-le", False),
        (FRENCH.encode(), "utf-8", False),
        ("\ufeff".encode() + FRENCH.encode(), "utf-8-sig", False),
        ((FRENCH * 2000).encode(), "cp1252", True),  # the look ends in the middle of a character, or not
        ((" " + FRENCH * 2000).encode(), "cp1252", True),
    ],
)
def test_utf8_that_is_read_in_another_encoding(tmp_path: Path, text: bytes, encoding: str, is_said: bool) -> None:
    """A folder may hold both: the files in UTF-8 would become other texts, as "Ã©" for "é"."""
    (tmp_path / "x.txt").write_bytes(text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        corpus_files(tmp_path / "x.txt", ReadOptions(encoding=encoding))
    assert [f"UTF-8, judging by the start, but encoding={encoding!r} was given" in str(w.message) for w in told] == (
        [True] if is_said else []
    )


# ------------------------------------------------------------------------------------------------------
# Kinds


def test_a_text_in_an_old_encoding_is_no_pickle(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("Ça va bien".encode("cp850"))
    assert pybpe.count_words(tmp_path / "x.txt", encoding="cp850") == pybpe.count_words(iter(["Ça va bien"]))


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


# ------------------------------------------------------------------------------------------------------
# Folders and links


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


@pytest.mark.filterwarnings("ignore:.*left out")
def test_globs_give_what_a_shell_would(tmp_path: Path) -> None:
    """'data/*' in quotation marks left out the folders that data/* without them includes."""
    (tmp_path / "sub").mkdir()
    names = [str(tmp_path / name) for name in ("a.txt", "sub/b.txt")]
    for name in names:
        Path(name).write_text("text")
    assert input_files(str(tmp_path / "*")) == names
    assert input_files(str(tmp_path / "**" / "*")) == names  # each once
    assert input_files(str(tmp_path / "s*")) == names[1:]
    tok = small_tokenizer()
    for _ in range(2):
        pybpe.binarize(tok, str(tmp_path / "*"), tmp_path / "out", splits=(1,), min_shard_tokens=0, name="n")
        assert [pybpe.Manifest.load(tmp_path / "out").settings["splits"]] == [[1.0]]
        assert sum(record.documents for record in pybpe.Manifest.load(tmp_path / "out").shards["train"]) == 2


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
    with pytest.raises(pybpe.errors.FileError, match="shut: cannot be read: Permission denied"):
        pybpe.count_words(tmp_path)


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.npy"])
def test_outputs_go_where_a_link_leads_and_never_replace_a_pipe(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.txt").write_text("some words\n")
    tok = small_tokenizer()

    def write(path: Path) -> None:
        if name.endswith(".npy"):
            pybpe.encode_files(tok, tmp_path / "x.txt", path)
        else:
            pybpe.corpus.clean(tmp_path / "x.txt", path, workers=1)

    write(tmp_path / name)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "blob").write_text("old")
    (tmp_path / f"link-{name}").symlink_to("real/blob")
    write(tmp_path / f"link-{name}")
    assert (tmp_path / f"link-{name}").is_symlink()
    assert (tmp_path / "real" / "blob").read_bytes() == (tmp_path / name).read_bytes()
    os.mkfifo(tmp_path / f"pipe-{name}")
    with pytest.raises(pybpe.errors.FileError, match="not a regular file"):
        write(tmp_path / f"pipe-{name}")
    assert (tmp_path / f"pipe-{name}").is_fifo()
