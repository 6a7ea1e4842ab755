"""Books in EPUB are read as the text of their chapters, from a file, a folder or standard input."""

import io
import random
import zipfile
from pathlib import Path

import pytest
from corpora import content, small_tokenizer, standard_input
from texts import english

import pybpe
from pybpe.errors import FormatError, PybpeWarning
from pybpe.reading.files import open_text
from pybpe.reading.unpacking import unpacked

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
    with pytest.raises(FormatError, match="x: a book must be a file, not a pipe"):
        unpacked("x", "epub", pipe).read()


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
    monkeypatch.setattr("pybpe.reading.epub._MOST_BYTES", 1000)
    (tmp_path / "a.epub").write_bytes(epub(b" " * 100_000))
    with pytest.raises(FormatError, match="two.xhtml has more than 64 MiB"):
        pybpe.count_words(tmp_path / "a.epub")
