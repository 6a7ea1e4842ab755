"""Compressed inputs and inputs in other encodings: read as a whole, or refused or reported with the place of the fault;
none gives, without a word, a result that lacks a part of the text or has a different text."""

import bz2
import gzip
import json
import lzma
import math
import random
import re
import sys
import warnings
from array import array
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from encodings.aliases import aliases
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import content, small_tokenizer, standard_input
from test_memory import peak_megabytes
from texts import english

import pybpe
from pybpe import _binding
from pybpe.cli import main
from pybpe.errors import FormatError, PybpeWarning
from pybpe.reading.charset import doubt_of, encoding_of
from pybpe.reading.files import corpus_files, open_text
from pybpe.reading.inputs import ReadOptions
from pybpe.tokens.manifest import Manifest

TEXT = english()[:20_000]
BYTES = TEXT.encode()
CHINESE = "这是我们第一次来到这个地方，他说他不知道要怎么去，我也不会。大家都在那里等着你们的时候，天就黑了。" * 9
JAPANESE = (
    "これは私たちが初めてここに来たときの話です。彼は道を知らないと言いました。空が暗くなりました。本を読む。" * 9
)
FRENCH = "C’était la première fois que nous étions là, et il a dit qu’il ne savait pas où aller. À bientôt, garçon!\n"


# ------------------------------------------------------------------------------------------------------
# Compression


def zstd(data: bytes) -> bytes:
    module = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    packed: bytes = module.compress(data, options={module.CompressionParameter.checksum_flag: 1})
    return packed


PACKERS = [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd)]


def is_refused_as_damaged(path: Path) -> None:
    with pytest.raises(FormatError, match="damaged before byte"):
        pybpe.count_words(path)


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_compressed_files_are_known_by_their_content(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    expected = pybpe.count_words(iter([TEXT]))
    for name in (f"x.txt{ending}", "x.txt"):
        path = tmp_path / name
        path.write_bytes(pack(BYTES))
        assert pybpe.count_words(path) == expected
        with standard_input(str(path)):
            assert pybpe.count_words("-") == expected
        path.write_bytes(path.read_bytes()[:-9])
        is_refused_as_damaged(path)


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_damage_after_the_first_compressed_stream(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    """The standard library's bz2 and lzma stop there without an error. The header of gzip has no checksum."""
    path = tmp_path / f"x.txt{ending}"
    first, second = pack(BYTES), pack(BYTES[:3000])
    for between in (b"", bytes(512)):
        path.write_bytes(first + between + second + between)
        with open_text(str(path)) as stream:
            assert stream.read() == BYTES + BYTES[:3000]
            stream.seek(len(BYTES) - 5)
            assert stream.read(10) == (BYTES + BYTES)[len(BYTES) - 5 :][:10]
            stream.seek(3)
            assert stream.read(4) == BYTES[3:7]
    chance = random.Random(1)
    for _ in range(30):
        damaged = bytearray(second)
        place = chance.randrange(10 if ending == ".gz" else 0, len(damaged) - (ending == ".bz2"))
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(first + damaged)
        is_refused_as_damaged(path)
    for data in (first + b"more", first + first[:1], first[: len(first) // 2], b"not compressed at all"):
        path.write_bytes(data)
        is_refused_as_damaged(path)


@pytest.mark.parametrize(("ending", "pack"), PACKERS[:3])
def test_an_empty_compressed_file(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    """Programs accept an empty file as gzip, and no other."""
    path = tmp_path / f"x.txt{ending}"
    for data in (pack(b""), b""):
        path.write_bytes(data)
        if not data and ending != ".gz":
            with pytest.raises(FormatError, match="damaged before byte"):
                open_text(str(path))
            continue
        with open_text(str(path)) as stream:
            assert stream.read() == b""


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
    path.write_bytes(lzma.compress(BYTES, lzma.FORMAT_ALONE))
    with open_text(str(path)) as stream:
        assert stream.read() == BYTES
    path.write_bytes(path.read_bytes() + b"more")
    is_refused_as_damaged(path)


def test_zstd_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("backports.zstd", "compression", "backports"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "x.zst").write_bytes(b"")
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"pip install 'pybpe\[zstd\]'"):
        pybpe.count_words(tmp_path / "x.zst")


# ------------------------------------------------------------------------------------------------------
# What is not UTF-8 is said


KOREAN = "우리는 처음으로 이곳에 왔고, 그는 어떻게 가야 하는지 모른다고 말했다. 나도 모른다. 날이 어두워졌다.\n" * 9
RUSSIAN = "Мы впервые пришли сюда, и он сказал, что не знает, как идти дальше. Я тоже не знаю. Стало темно.\n" * 9
TRADITIONAL = "這是我們第一次來到這個地方，他說他不知道要怎麼去，我也不會。大家都在那裡等著你們的時候，天就黑了。\n" * 9
IN_ENCODINGS = [
    (CHINESE, "gb18030"),
    (TRADITIONAL, "big5hkscs"),
    (JAPANESE, "cp932"),
    (JAPANESE, "euc_jp"),
    (KOREAN, "cp949"),
    (RUSSIAN, "cp1251"),
    (RUSSIAN, "koi8-r"),
    (FRENCH * 9, "cp1252"),
    (CHINESE, "utf-16-le"),
    (FRENCH * 9, "utf-16-be"),
]


@pytest.mark.parametrize(("text", "encoding"), IN_ENCODINGS)
def test_the_encoding_of_a_text_is_found(
    tmp_path: Path, text: str, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everywhere: small and large files, compressed ones, standard input, and every command."""
    expected = pybpe.count_words(iter([text])).to_dict()
    data = text.encode(encoding)
    for name, stored in (("x.txt", data), ("x", data), ("x.txt.gz", gzip.compress(data))):
        (tmp_path / name).write_bytes(stored)
        with pytest.warns(PybpeWarning, match=f"{name}: not UTF-8, read as {encoding}, .*encoding='NAME'") as found:
            assert pybpe.count_words(tmp_path / name).to_dict() == expected
        assert len(found) == 1
        with (
            standard_input(str(tmp_path / name)),
            pytest.warns(PybpeWarning, match=f"input: not UTF-8, read as {encoding}"),
        ):
            assert pybpe.count_words("-").to_dict() == expected
        assert pybpe.count_words(tmp_path / name, encoding=encoding).to_dict() == expected
    tok = small_tokenizer()
    tok.save(tmp_path / "tok.json")
    for given in (["encode", "x.txt"], ["encode", "x.txt.gz"], ["viz", "x.txt"], ["count", "x"], ["inspect", "x"]):
        command, path = given[0], str(tmp_path / given[1])
        tokenizer = [str(tmp_path / "tok.json")] if command == "inspect" else ["-t", str(tmp_path / "tok.json")]
        more = ["-o", str(tmp_path / "page.html")] if command == "viz" else []
        out = []
        for encoding_given in ([], ["--encoding", encoding], ["--encoding", "auto"]):
            inputs = [*tokenizer, path] if command == "inspect" else [path, *tokenizer]
            assert main([command, *inputs, *more, *encoding_given]) == 0
            captured = capsys.readouterr()
            out.append(captured.out)
            assert ("read as" in captured.err) == (encoding_given != ["--encoding", encoding])
        assert out[0] == out[1] == out[2] != ""


def test_each_file_of_a_folder_has_its_encoding(tmp_path: Path) -> None:
    """The manifest records the encodings; the files are the same for any number of workers."""
    tok, folder = small_tokenizer(), tmp_path / "in"
    folder.mkdir()
    (folder / "0.txt").write_text(TEXT, encoding="utf-8")
    for number, (text, encoding) in enumerate(IN_ENCODINGS, 2):
        (folder / f"{number}.txt").write_bytes(text.encode(encoding))
    made = []
    with ProcessPoolExecutor(2) as executor:
        for number, run in enumerate(({"workers": 1}, {"workers": 3}, {"executor": executor})):
            with pytest.warns(PybpeWarning, match="not UTF-8, read as"):
                manifest = pybpe.binarize(tok, folder, tmp_path / f"{number}", splits=(1,), min_shard_tokens=0, **run)
            made.append({name: data for name, data in content(tmp_path / f"{number}").items() if "lock" not in name})
    assert made[0] == made[1] == made[2]
    expected = {str(folder / f"{number}.txt"): encoding for number, (_, encoding) in enumerate(IN_ENCODINGS, 2)}
    assert manifest.encodings == expected == Manifest.load(tmp_path / "0").encodings
    texts = [TEXT, *(text for text, _ in IN_ENCODINGS)]
    assert sum(manifest.text_bytes.values()) == sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize(("text", "encoding"), IN_ENCODINGS[:6])
def test_the_encoding_of_a_large_file_is_found(tmp_path: Path, text: str, encoding: str) -> None:
    """Of a large file, parts are looked at, which begin and end anywhere."""
    path, line = tmp_path / "x.txt", text.replace("\n", "")[:301] + "\n"
    path.write_bytes(line.encode(encoding) * (5_000_000 // len(line.encode(encoding))))
    with pytest.warns(PybpeWarning, match=f"read as {encoding}"):
        (file,) = corpus_files(path)
    assert file.encoding == encoding


def test_an_uncertain_encoding_is_refused_with_both_texts(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes("l6     │V:0,  │782 │Shor".encode("gb18030") * 2)
    said = r"x\.txt: not UTF-8 at byte 7: \S+ \(which gives '.*V:0.*'\) or \S+ \(which gives '.*V:0.*'\)\. Pass .*NAME"
    with pytest.raises(FormatError, match=said):
        pybpe.count_words(path)
    path.write_bytes("naïf".encode("cp1252"))
    with pytest.warns(PybpeWarning, match=r"not UTF-8 at byte 2 .* uses these bytes unchanged"):
        pybpe.count_words(path)
    assert pybpe.count_words(path, encoding="cp1252").to_dict() == pybpe.count_words(iter(["naïf"])).to_dict()


def test_a_text_that_begins_as_ascii(tmp_path: Path) -> None:
    """Places all over a large file are looked at. If the rest is found only while reading, the run stops."""
    path, plain = tmp_path / "x.txt", ("only plain words in this part\n" * 40_000).encode()
    path.write_bytes(plain + (CHINESE + "\n").encode("gb18030") * 1000)
    with pytest.warns(PybpeWarning, match="read as gb18030"):
        found = pybpe.count_words(path)
    assert found == pybpe.count_words(path, encoding="gb18030")
    path.write_bytes(plain + CHINESE.encode("gb18030") + b"\n" + plain)
    with pytest.raises(FormatError, match=f"not UTF-8 at byte {len(plain)}, although its start is.*encoding='NAME'"):
        pybpe.count_words(path)
    with pytest.warns(PybpeWarning, match="uses these bytes unchanged"):
        pybpe.count_words(path, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "encoding"), [(JAPANESE, "euc_jp"), (JAPANESE, "cp932"), (KOREAN, "cp949"), (CHINESE, "gb18030")]
)
def test_damaged_text_is_not_read_in_another_encoding(text: str, encoding: str) -> None:
    """It is read in its own, or refused: a few damaged bytes make it invalid there, but may be valid elsewhere."""
    for seed in range(20):
        rng = random.Random(seed)
        data = bytearray(text[: rng.choice((40, 100, 300))].encode(encoding))
        for place in rng.sample(range(len(data)), 1 + seed % 3):
            data[place] = rng.randrange(128, 256)
        try:
            found = encoding_of("x", [bytes(data)], True)
        except FormatError as error:
            assert "not UTF-8" in str(error)
        else:
            assert found == encoding


@pytest.mark.parametrize("text", [CHINESE * 9, FRENCH * 99, RUSSIAN, KOREAN, JAPANESE])
def test_damaged_utf8_stays_utf8(tmp_path: Path, text: str) -> None:
    path, data, rng = tmp_path / "x.txt", bytearray(text.encode()), random.Random(1)
    for place in rng.sample(range(len(data)), 5):
        data[place] = rng.randrange(128, 256)
    path.write_bytes(data)
    with pytest.warns(PybpeWarning, match=r"x\.txt: not UTF-8 at byte \d+ .*damaged"):
        assert sum(map(len, pybpe.count_words(path).to_dict())) > 0
    tok = small_tokenizer()
    with pytest.warns(PybpeWarning, match="unchanged"):
        pybpe.encode_files(tok, path, tmp_path / "ids.npy")
    assert tok.decode_bytes(numpy.load(tmp_path / "ids.npy").tolist()) == data


def test_every_reader_says_it_once_with_the_place(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        good = f"{TEXT}\n".encode() * 20 + "\0\U0001f600".encode()
        (tmp_path / f"{name}.txt").write_bytes(good + b"\xff\xfe wrong \xff\n" * (name != "a"))
    files = sorted(tmp_path.glob("*.txt"))
    tok = small_tokenizer()
    with ProcessPoolExecutor(2) as executor:
        for number, call in enumerate((
            lambda files, out: pybpe.count_words(files, workers=3),
            lambda files, out: pybpe.count_words(files, executor=executor),
            lambda files, out: pybpe.binarize(tok, files, out, workers=3, split_by="token"),
            lambda files, out: pybpe.binarize(tok, files, out, executor=executor, split_by="token"),
            lambda files, out: pybpe.corpus.clean(files, f"{out}.jsonl", workers=2),
        )):  # fmt: skip
            with pytest.warns(PybpeWarning) as found:
                call(files, tmp_path / f"out{number}")
            said = [str(warning.message) for warning in found if "UTF-8" in str(warning.message)]
            assert len(said) == 1 and re.search(rf"[bc]\.txt: not UTF-8 at byte {len(good)} ", said[0])
            call(files[:1], tmp_path / f"good{number}")  # warns of nothing


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
    for number, data in enumerate(contents, 1):
        (tmp_path / f"{number}.txt").write_bytes(data)
    files = sorted(tmp_path.iterdir())
    with pytest.warns(PybpeWarning, match=warning):
        pybpe.binarize(small_tokenizer(), files, tmp_path / "out", splits=(1,), min_shard_tokens=0)


def test_validity_is_what_pythons_codec_says() -> None:
    rng = random.Random(5)
    pieces = [
        b"a" * 40, "é中😀".encode(), b"\xff", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\0",
    ]  # fmt: skip
    for _ in range(1000):
        data = b"".join(rng.choices(pieces, [9, 9, 1, 1, 1, 1, 1, 1], k=rng.randrange(9)))
        try:
            data.decode("utf-8")
            expected = len(data)
        except UnicodeDecodeError as error:
            expected = error.start
        assert _binding.utf8_valid(data) == expected
        assert (doubt_of(data, "x", 1, True) is None) == (expected == len(data))


@pytest.mark.parametrize(
    ("text", "encoding", "is_said"),
    [
        (FRENCH.encode(), "cp1252", True),
        (FRENCH.encode(), "iso8859-1", True),
        (CHINESE[:13].encode(), "gb18030", True),
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
    message = f"UTF-8, judging by the start, but encoding={encoding!r} was given"
    assert [message in str(warning.message) for warning in told] == [True] * is_said


# ------------------------------------------------------------------------------------------------------
# Reading in an encoding


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl"])
def test_every_reader_takes_an_encoding(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok, texts = small_tokenizer(), [CHINESE, FRENCH.replace("’", "'"), TEXT]
    lines = [json.dumps({"text": text}, ensure_ascii=False) if name == "x.jsonl" else text for text in texts]
    plain, wide, packed = (tmp_path / folder / name for folder in "abc")
    for path in (plain, wide, packed):
        path.parent.mkdir()
    plain.write_text("\n".join(lines))
    wide.write_text("\n".join(lines), encoding="gb18030")
    packed.write_bytes(gzip.compress(wide.read_bytes()))
    tok.save(tmp_path / "tok.json")
    results = []
    for path, encoding in ((plain, None), (wide, "gb18030"), (packed, "GB18030")):
        out = path.parent / "out"
        for split_by in ("hash", "token"):
            given: dict[str, Any] = {"split_by": split_by, "name": "n", "min_shard_tokens": 0, "encoding": encoding}
            pybpe.binarize(tok, path, out / split_by, **given)
        pybpe.corpus.clean(path, out / "c.jsonl", encoding=encoding, workers=1)
        for command in ("encode", "count") if name == "x.txt" else ():
            more = ["--encoding", encoding] if encoding else []
            assert main([command, "-t", str(tmp_path / "tok.json"), str(path), *more]) == 0
        files = {file: data for file, data in content(out).items() if not re.search(r"manifest|\.made$", file)}
        results.append((pybpe.count_words(path, encoding=encoding).to_dict(), files, capsys.readouterr().out))
    assert results[0] == results[1] == results[2]


def test_what_does_not_decode_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    for before in (0, 1, 65_535, 65_536, 200_001):
        path.write_bytes(b"a" * before + b"\x81" + b"\xff\n" * 5)
        with pytest.raises(FormatError, match=f"x.txt: not gb18030 at byte {before}: ") as error:
            pybpe.count_words(path, encoding="gb18030")
        assert error.value.offset == before
    path.write_bytes("end".encode("utf-16-le") + b"x")
    with pytest.raises(FormatError, match="not utf-16-le at byte 6: truncated"):
        pybpe.count_words(path, encoding="utf-16-le")
    for wrong in ("utf-9", "base64", "rot13", "", "a\0b"):
        with pytest.raises(pybpe.errors.ArgumentError, match="encoding"):
            pybpe.count_words(path, encoding=wrong)


ALL_ENCODINGS = sorted(
    {*aliases.values(), "idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"} - {"mbcs", "oem"}
)
HOSTILE = (
    b"",
    b"a",
    b"\xff\xfe",
    b"\x00\xd8\x00\xd8",
    b"\\q\\N{x}\\U00110000",
    b"+/v8-\xff~{~}\x1b$B\x80\x0e",
    b"xn--a-\xe9.-",
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pybpe.errors.PybpeWarning")
@pytest.mark.parametrize("encoding", ALL_ENCODINGS)
def test_every_codec_reads_or_gives_an_error_of_pybpe(encoding: str, tmp_path: Path) -> None:
    path, rng = tmp_path / "x.txt", random.Random(8)
    for data in (
        *HOSTILE,
        *(rng.randbytes(rng.randrange(1, 70_000)) for _ in range(4)),
        *(d * 20_000 for d in HOSTILE),
    ):
        path.write_bytes(data)
        for call in (pybpe.count_words, lambda path, encoding: open_text(str(path), encoding).read()):
            try:
                call(path, encoding=encoding)
            except FormatError as error:
                assert str(path) in str(error)
            except pybpe.errors.ArgumentError as error:
                assert str(error).startswith("unknown encoding")


def test_wide_text_without_a_byte_order_mark_says_what_to_pass(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-32"):
        (tmp_path / "x.txt").write_text("a", encoding=f"{encoding}-le")
        with pytest.raises(FormatError, match=f"not {encoding} at byte 0: .*pass {encoding}-le or {encoding}-be|codec"):
            pybpe.count_words(tmp_path / "x.txt", encoding=encoding)


def test_records_in_another_encoding_say_so(tmp_path: Path) -> None:
    for encoding in ("cp1252", "utf-16-le"):
        (tmp_path / "x.jsonl").write_text('{"text": "é"}\n', encoding=encoding)
        with pytest.raises(FormatError, match="pass encoding"):
            pybpe.count_words(tmp_path / "x.jsonl")
        assert pybpe.count_words(tmp_path / "x.jsonl", encoding=encoding).to_dict() == {"é".encode(): 1}


def test_a_text_in_an_old_encoding_is_no_pickle(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("Ça va bien".encode("cp850"))
    assert pybpe.count_words(tmp_path / "x.txt", encoding="cp850") == pybpe.count_words(iter(["Ça va bien"]))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
def test_decoding_takes_no_more_memory_for_a_longer_text(tmp_path: Path) -> None:
    words = ["--encoding", "utf-16", "-o", tmp_path / "x.counts", "--workers", 1, "--quiet", "--force"]
    used = []
    for times in (10, 1000):
        (tmp_path / f"{times}.txt").write_bytes((TEXT * times).encode("utf-16"))
        used.append(peak_megabytes("count", tmp_path / f"{times}.txt", *words))
    assert used[1] < used[0] + 20  # megabytes; the text has 40


# ------------------------------------------------------------------------------------------------------
# Byte order marks


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_shows_the_encoding_and_is_no_text(
    encoding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    tok = small_tokenizer()
    tok.save(tmp_path / "tok.json")
    (tmp_path / "plain").write_text(TEXT)
    (tmp_path / "marked").write_text(TEXT, encoding=encoding)
    with caplog.at_level("INFO", "pybpe"):
        assert pybpe.count_words(tmp_path / "plain") == pybpe.count_words(tmp_path / "marked")
    said = f"marked: read as {encoding.removesuffix('-sig')}, without the byte order mark at the start"
    assert caplog.messages == ([] if encoding == "utf-8" else [str(tmp_path / said)])
    ids, printed = [], []
    for path in (str(tmp_path / "plain"), str(tmp_path / "marked"), "-"):
        if path != "-":
            pybpe.encode_files(tok, path, tmp_path / "ids.npy")
            ids.append((tmp_path / "ids.npy").read_bytes())
        for command in ("count", "encode"):
            with standard_input(str(tmp_path / "marked")):
                assert main([command, "-t", str(tmp_path / "tok.json"), path, "--json"]) == 0
        captured = capsys.readouterr()
        printed.append(captured.out)
    assert captured.err.count("without the byte order mark") == (2 if encoding != "utf-8" else 0)
    assert ids[0] == ids[1] and printed[0] == printed[1] == printed[2]
    lines = "".join(json.dumps({"text": line}) + "\n" for line in TEXT.splitlines())
    (tmp_path / "lines").write_text(lines, encoding=encoding)
    (tmp_path / "a.jsonl").write_text(lines)
    assert pybpe.count_words(tmp_path / "lines") == pybpe.count_words(tmp_path / "a.jsonl")


def test_a_byte_order_mark_of_the_other_order(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffhello world".encode("utf-16-le"))
    with pytest.raises(FormatError, match="at byte 0: it begins with the byte order mark of the other"):
        pybpe.count_words(path, encoding="utf-16-be")
    assert pybpe.count_words(path, encoding="utf-16") == pybpe.count_words(iter(["hello world"]))


def test_binary_data_is_not_utf16(tmp_path: Path) -> None:
    rng = random.Random(3)
    for data in (
        rng.randbytes(20_000),
        array("H", range(2000)).tobytes(),
        array("f", map(math.sin, range(3000))).tobytes(),
    ):
        (tmp_path / "x").write_bytes(b"\0" + data)
        with pytest.raises(FormatError, match=r"not text, but binary data.* if it is text, pass encoding"):
            pybpe.count_words(tmp_path / "x")


# ------------------------------------------------------------------------------------------------------
# Line ends of Windows

LINES = "\n".join(["first line", "", *CHINESE.split("，"), "last"]) + "\n"
LINE_ENDS = {  # content, and whether its \r\n is read as \n
    "whole": (LINES.replace("\n", "\r\n"), True),
    "without an end": (LINES.replace("\n", "\r\n")[:-2], True),
    "longer than a look": (LINES.replace("\n", "\r\n") * 80, True),
    "longer than a start": ("这" * 2500 + "\r\n" + LINES.replace("\n", "\r\n"), True),
    "one other line end": (LINES.replace("\n", "\r\n") * 80 + "\n", False),
    "another first": ("\n" + LINES.replace("\n", "\r\n"), False),
    "a \\r alone": (LINES.replace("\n", "\r\n") + "\rx\r\n", False),
    "a \\r at the end": (LINES.replace("\n", "\r\n") + "\r", False),
    "doubled": (LINES.replace("\n", "\r\r\n"), False),
    "of old Macs": (LINES.replace("\n", "\r"), False),
    "none": ("x", False),
}


@pytest.mark.parametrize(
    ("name", "encoding"),
    [(name, "utf-8") for name in LINE_ENDS]
    + [(name, encoding) for name in ("whole", "one other line end") for encoding in ("utf-8-sig", "utf-16", "gb18030")],
)
def test_line_ends_of_windows(tmp_path: Path, name: str, encoding: str, caplog: pytest.LogCaptureFixture) -> None:
    """A file has one kind of line ends throughout, or is read as it is; however it comes, and in whatever encoding."""
    caplog.set_level("INFO", "pybpe")
    (text, is_converted), tok = LINE_ENDS[name], small_tokenizer()
    expected = text.replace("\r\n", "\n") if is_converted else text
    path, out = tmp_path / "a.txt", tmp_path / "ids.npy"
    path.write_bytes(text.encode(encoding))
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    many = tmp_path / "many"
    many.mkdir()
    (many / "0").write_text("one\n")
    (many / "1").write_bytes(text.encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PybpeWarning)
        for source, before in ((path, ""), (packed, ""), (many, "one\n")):
            caplog.clear()
            pybpe.encode_files(tok, source, out)
            assert tok.decode(numpy.load(out)) == before + expected
            told = [line for line in caplog.messages if r"all lines end with \r\n, read as \n; keep_crlf=True" in line]
            assert len(told) == is_converted
            pybpe.encode_files(tok, source, out, keep_crlf=True)
            assert tok.decode(numpy.load(out)) == before + text
        assert pybpe.count_words(many) == pybpe.count_words(iter(["one\n", expected]))
        assert pybpe.count_words(many, keep_crlf=True) == pybpe.count_words(iter(["one\n", text]))
        with standard_input(str(path)):
            pybpe.encode_files(tok, "-", out)
        assert tok.decode(numpy.load(out)) == expected
        for keep_crlf, wanted in ((False, expected), (True, text)):
            with standard_input(str(path)):
                if name == "one other line end" and not keep_crlf:  # counting reads it only once
                    with pytest.raises(FormatError, match=r"standard input: lines end with .* byte \d+, .*keep_crlf=T"):
                        pybpe.count_words("-")
                else:
                    assert pybpe.count_words("-", keep_crlf=keep_crlf) == pybpe.count_words(iter([wanted]))


def test_line_ends_of_records_stay(tmp_path: Path) -> None:
    """A \\r in a text is not a line end of its file, and each way to divide a text sees it in the same way."""
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a\\r\\nb"}\r\n{"text": "c"}\r\n')
    assert pybpe.count_words(tmp_path / "a.jsonl") == pybpe.count_words(iter(["a\r\nb", "c"]))
    path = tmp_path / "a.txt"
    found = []
    for data in (b"a \n\nb\nc \n\n", b"a \r\n\r\nb\r\nc \r\n\r\n"):
        path.write_bytes(data)
        found.append([pybpe.count_words(path, documents=how).to_dict() for how in ("line", "blank", "file")])
    assert found[0] == found[1]


def test_the_manifest_names_files_with_line_ends_of_windows(tmp_path: Path) -> None:
    """Their token files are the same for any workers, and those of the same text with other line ends."""
    tok, folder = small_tokenizer(), tmp_path / "in"
    folder.mkdir()
    texts = [(LINES * 400, "big.txt"), (TEXT, "small.txt"), ("a\nb\n", "tiny.txt"), ("a\n\r\n", "mixed.txt")]
    made = []
    with ProcessPoolExecutor(2) as executor:
        for number, run in enumerate(({"workers": 1}, {"workers": 3}, {"executor": executor}, {"workers": 1})):
            for text, name in texts:
                data = text.encode() if number == 3 or name == "mixed.txt" else text.replace("\n", "\r\n").encode()
                (folder / name).write_bytes(data)
            manifest = pybpe.binarize(
                tok, folder, tmp_path / f"{number}", split_by="hash", splits=(1, 1), min_shard_tokens=0, **run
            )
            crlf = [str(folder / name) for name in ("big.txt", "small.txt", "tiny.txt")] if number < 3 else []
            assert manifest.crlf == crlf == Manifest.load(tmp_path / f"{number}").crlf
            made.append({name: data for name, data in content(tmp_path / f"{number}").items() if name.endswith(".bin")})
    assert made[0] == made[1] == made[2] == made[3]
    joined = pybpe.join(tok, [tmp_path / "0"], tmp_path / "joined")
    assert list(joined.crlf) == [str(folder / name) for name in ("big.txt", "small.txt", "tiny.txt")]
