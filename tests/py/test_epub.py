"""Books in EPUB are read as the text of their chapters, from a file, a folder, an archive or standard input; and other
files in archives as from a folder."""

import gzip
import io
import random
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from corpora import content, small_tokenizer, standard_input
from texts import english

import pybpe
from pybpe.errors import ArgumentError, FormatError, PybpeWarning
from pybpe.reading import input_file
from pybpe.reading.files import corpus_files, open_text
from pybpe.reading.inputs import ReadOptions

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/a%20b.opf"/></rootfiles></container>'.replace("%20", " ")
PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="css" href="s.css" media-type="text/css"/>
<item id="two" href="text/two.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/chapter%201.xhtml#top" media-type="application/xhtml+xml"/>
</manifest><spine><itemref idref="nav"/><itemref idref="one"/><itemref idref="two"/></spine></package>"""
ONE = """<?xml version="1.0" encoding="utf-8"?><html><head><title>no</title><style>p {}</style></head><body>
<h1>Chapter&#160;1</h1><script>no()</script><script src="x"/><p>A &lt;b&gt; &amp; <b>c</b>,
 <i>d</i>é&nbsp;\u4e2d<ruby>\u6587<rt>no</rt></ruby></p><div>outer<p>inner</p>after<br/>last</div><nav>no</nav>
<pre>  kept
   as is</pre></body></html>"""
TEXT = "Chapter\xa01\nA <b> & c, dé\xa0\u4e2d\u6587\nouter\ninner\nafter\nlast\n  kept\n   as is\n"


def epub(two: bytes = b"<p>end</p>", **changes: bytes) -> bytes:
    files = {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": CONTAINER.encode(),
        "OEBPS/a b.opf": PACKAGE.encode(),
        "OEBPS/nav.xhtml": b"<p>no</p>",
        "OEBPS/text/chapter 1.xhtml": ONE.encode(),
        "OEBPS/text/two.xhtml": two,
        **changes,
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, data in files.items():
            file.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def test_a_book_is_the_text_of_its_chapters(tmp_path: Path) -> None:
    for name in ("a.epub", "unnamed"):
        path = tmp_path / name
        path.write_bytes(epub())
        with open_text(str(path)) as stream:
            assert stream.read().decode() == TEXT + "\nend\n"
            stream.seek(3)
            assert stream.read(4) == TEXT.encode()[3:7]
    expected = pybpe.count_words(iter([TEXT + "\nend\n"]))
    with standard_input(str(tmp_path / "a.epub")):
        tok = small_tokenizer()
        pybpe.encode_files(tok, "-", tmp_path / "ids.npy")
    pybpe.encode_files(tok, tmp_path / "a.epub", tmp_path / "same.npy")
    assert (tmp_path / "ids.npy").read_bytes() == (tmp_path / "same.npy").read_bytes()
    assert pybpe.count_words(tmp_path / "a.epub") == expected
    assert pybpe.count_words(tmp_path / "a.epub", encoding="gb18030") == expected
    pybpe.encode_files(tok, tmp_path / "a.epub", tmp_path / "same.npy", encoding="gb18030")
    assert (tmp_path / "ids.npy").read_bytes() == (tmp_path / "same.npy").read_bytes()
    pipe = io.BytesIO(epub())
    pipe.seekable = lambda: False  # type: ignore[method-assign]
    assert input_file._unpacked("x", "epub", pipe).read().decode() == TEXT + "\nend\n"


def test_a_shelf_becomes_token_files(tmp_path: Path) -> None:
    """A folder as people have it: texts in several encodings, a book, and what desktops leave there."""
    shelf, text = tmp_path / "shelf", english()[:20_000]
    (shelf / "more").mkdir(parents=True)
    chinese = "这是我们第一次来到这个地方，他说他不知道要怎么去，我也不会。大家都在那里等着，天就黑了。\n" * 60
    traditional = "這是我們第一次來到這個地方，他說他不知道要怎麼去，我也不會。大家都在那裡等著，天就黑了。\n" * 60
    (shelf / "a.txt").write_text(text, encoding="utf-8")
    (shelf / "b.txt").write_bytes(chinese.encode("gb18030"))
    (shelf / "more" / "c.txt").write_bytes(traditional.encode("big5hkscs"))
    (shelf / "d.epub").write_bytes(epub("".join(f"<p>{line}</p>" for line in text.split("\n") if line).encode()))
    for name in ("Thumbs.db", "desktop.ini", ".DS_Store", "._a.txt"):
        (shelf / name).write_bytes(b"\0\1\2")
    with pytest.warns(PybpeWarning, match="read as (gb18030|big5hkscs)"):
        tok, manifest = pybpe.prepare(shelf, tmp_path / "out", vocab_size=700)
    assert [Path(path).name for path, _ in manifest.inputs] == ["a.txt", "b.txt", "d.epub", "c.txt"]
    assert sorted(manifest.encodings.values()) == ["big5hkscs", "gb18030"]
    assert manifest.settings["split_by"] == "token" and all(manifest.text_bytes.values())
    size = len(text.encode()) + len((chinese + traditional).encode())
    assert size < sum(manifest.text_bytes.values()) < size + len(text.encode()) + 300
    with pytest.warns(PybpeWarning, match="read as"):
        pybpe.binarize(tok, shelf, tmp_path / "again", workers=1, name="shelf")
    files = content(tmp_path / "out")
    assert all(files[name] == data for name, data in content(tmp_path / "again").items() if name.endswith("0.bin"))


def test_a_book_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    reference = b'<encryption><x><CipherReference URI="OEBPS/text/two.xhtml"/></x></encryption>'
    changes: dict[str, bytes] = {
        "META-INF/encryption.xml": reference,
        "META-INF/container.xml": b"<x/>",
        "OEBPS/a b.opf": PACKAGE.replace('idref="one"', 'idref="none"').encode(),
        "OEBPS/nav.xhtml": b"",
    }
    for name, data in changes.items():
        path.write_bytes(epub(**{name: data}))
        problem = "encrypted" if "encryption" in name else "not a valid EPUB, or damaged"
        if name != "OEBPS/nav.xhtml":
            with pytest.raises(FormatError, match=f"a.epub: .*{problem}"):
                pybpe.count_words(path)
    whole, rng = epub(), random.Random(4)
    for size in (60, 300, len(whole) - 30):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match="a.epub: not a valid EPUB, or damaged: "):
            pybpe.count_words(path)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.randrange(60, len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            pybpe.count_words(path)
        except FormatError as error:
            assert len(str(error).splitlines()) == 1


def test_a_chapter_that_unpacks_to_far_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybpe.reading.zips._MOST_BYTES", 1000)
    (tmp_path / "a.epub").write_bytes(epub(b" " * 100_000))
    with pytest.raises(FormatError, match="two.xhtml has more than 64 MiB"):
        pybpe.count_words(tmp_path / "a.epub")


# ----------------------------------------------------------------------------------------------------
# Archives


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_an_archive_is_read_as_the_folder_in_it(tmp_path: Path) -> None:
    """The same texts in the same order, documents and splits, however they are packed; a book in it, too."""
    text = english()
    chinese = "这是我们第一次来到这个地方，他说他不知道要怎么去，我也不会。大家都在那里等着，天就黑了。\n" * 60
    files = {
        "b.txt": text[:30_000].encode(),
        "a/long.txt": (text * 3).encode(),
        "a/中.txt": chinese.encode("gb18030"),
        "a/windows.txt": text[:5000].replace("\n", "\r\n").encode(),
        "c.epub": epub(),
        "d.txt.gz": gzip.compress(text[:300].encode()),
        "empty.txt": b"",
        "z.txt": b"the last\n",
    }
    folder = tmp_path / "shelf"
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    skipped = {
        "__MACOSX/._b.txt": b"\0",
        ".git/x": b"x",
        "a/Thumbs.db": b"\0",
        "a/": b"",
        "tokenizer.bin": b"",
        "x~": b"x",
    }
    tok, made = small_tokenizer(), []
    tok.save(tmp_path / "tokenizer.bin")
    skipped["tokenizer.bin"] = (tmp_path / "tokenizer.bin").read_bytes()
    archives = [zipped(tmp_path / f"{method}.zip", skipped | files, method) for method in (0, 8)]
    (tmp_path / "in").mkdir()
    archives[1].rename(tmp_path / "in" / "A.ZIP")
    for split_by in ("hash", "token"):
        made.clear()
        for source in (folder, archives[0], tmp_path / "in", tmp_path / "in" / "*.ZIP"):
            out = tmp_path / f"out{len(made)}-{split_by}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PybpeWarning)
                manifest = pybpe.binarize(
                    tok, source, out, documents="file", split_by=split_by, splits=(1, 1), min_shard_tokens=0, name="x"
                )
            assert [Path(path).name for path, _ in manifest.inputs] == [Path(name).name for name in sorted(files)]
            assert [Path(path).name for path in manifest.crlf] == ["windows.txt"]
            made.append({name: data for name, data in content(out).items() if name.endswith(".bin")})
        assert made[0] == made[1] == made[2] == made[3]
    with ProcessPoolExecutor(1) as executor, warnings.catch_warnings():
        warnings.simplefilter("ignore", PybpeWarning)
        pybpe.encode_files(tok, archives[0], tmp_path / "ids.npy", executor=executor)
        pybpe.encode_files(tok, folder, tmp_path / "same.npy")
    assert (tmp_path / "ids.npy").read_bytes() == (tmp_path / "same.npy").read_bytes()


def test_an_archive_that_cannot_be_read(tmp_path: Path) -> None:
    """One line that names the file in it."""
    path, packed = tmp_path / "a.zip", io.BytesIO(epub())
    lzma_ok = zipped(tmp_path / "lzma.zip", {"a.txt": b"text" * 99}, zipfile.ZIP_LZMA)
    for files, told in (
        ({"a.txt": b"text", "b.png": b"\x89PNG\r\n\x1a\n\0\0"}, "a.zip/b.png: not text, but binary data"),
        (
            {"in.zip": zipped(tmp_path / "b.zip", {"c.txt": b"text"}).read_bytes()},
            "a.zip/in.zip: .* in another: unpack",
        ),
        ({"x.docx": packed.getvalue().replace(b"mimetypeapp", b"mimetypeApp")}, "a.zip/x.docx: .* a Word document"),
        ({"x.parquet": b"PAR1\x15\0"}, "a.zip/x.parquet: .*"),
        ({}, "a.zip: no files found in this archive"),
    ):
        zipped(path, files)
        with pytest.raises((FormatError, ArgumentError), match=told):
            pybpe.count_words(path)
    with pytest.raises(FormatError, match="lzma.zip/a.txt: compressed with method 14 of zip, not with deflate: unpack"):
        pybpe.count_words(lzma_ok)
    data = bytearray(zipped(path, {"a.txt": b"text"}, zipfile.ZIP_STORED).read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="a.zip/a.txt: encrypted: only an archive without a password"):
        pybpe.count_words(path)
    with pytest.raises(FormatError, match="a.zip: a zip archive, which may have several files: unpack it"):
        open_text(str(path))
    with pytest.raises(ArgumentError, match="a.zip: given twice"):
        pybpe.count_words([zipped(path, {"a.txt": b"text", "b.txt": b"text"}), path])


@pytest.mark.parametrize(
    "names, encoding, is_found",
    [
        ("第一章 第二章/第三回", "gbk", True),
        ("三國演義 水滸傳第一回", "big5", True),
        ("日本語の本 源氏物語", "shift_jis", True),
        ("第一章", "utf-8", True),
        ("café naïve", "cp437", True),
        ("война анна", "cp866", False),
    ],
)
def test_names_in_an_archive_of_a_windows_of_east_asia(
    tmp_path: Path, names: str, encoding: str, is_found: bool
) -> None:
    wanted = sorted(f"{name}.txt" for name in names.split())
    stored = [name.encode(encoding) for name in wanted]
    data = zipped(
        tmp_path / "a.zip", {chr(65 + at) * len(name): b"text" for at, name in enumerate(stored)}
    ).read_bytes()
    for at, name in enumerate(stored):
        data = data.replace(bytes([65 + at]) * len(name), name)
    (tmp_path / "a.zip").write_bytes(data)
    paths = [path.partition("a.zip/")[2] for path in corpus_files([str(tmp_path / "a.zip")], ReadOptions()).paths]
    assert sorted(paths) == (wanted if is_found else sorted(name.decode("cp437") for name in stored))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_archive(tmp_path: Path, method: int) -> None:
    """It gives the text, or an error in one line that names it."""
    path, rng = tmp_path / "a.zip", random.Random(5)
    whole = zipped(path, {"a.txt": english()[:2000].encode(), "b.txt": b"text\n" * 20}, method).read_bytes()
    expected, refused = pybpe.count_words(path), 0
    for number in range(300):
        damaged = bytearray(whole)
        if number % 3:
            damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        else:
            del damaged[rng.randrange(len(whole)) :]
        path.write_bytes(damaged)
        try:
            found = pybpe.count_words(path)
        except (FormatError, ArgumentError) as error:
            assert len(str(error).splitlines()) == 1 and "a.zip" in str(error)
            refused += 1
        else:
            assert found == expected
    assert refused > 150
