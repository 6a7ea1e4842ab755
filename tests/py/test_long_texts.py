"""Texts of every kind and length: buffers, pieces, threads, chunks of ids, and decoding one by one."""

import array
import mmap
import random
import sys
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from gpt2 import gpt2_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import chinese, english, mixed

import pybpe
from pybpe.arguments import utf8
from pybpe.reading import cuts as cuts_module
from pybpe.reading.cuts import PIECE_BYTES, text_pieces
from pybpe.tokenizer import decoding

SPECIALS = ["<|endoftext|>", "<|im_start|>"]
GPT2 = gpt2_tokenizer()


@pytest.fixture(scope="module")
def custom() -> pybpe.Tokenizer:
    """Returns a tokenizer whose pattern Python runs."""
    return pybpe.train(iter([english()[:50_000]]), vocab_size=400, pattern=r"\w+|\W+", special_tokens=SPECIALS)


@pytest.fixture(scope="module")
def long_text() -> str:
    """Returns a text of more than two pieces, with specials, in all scripts."""
    parts = [english(), "<|endoftext|>", chinese(), mixed()]
    random.Random(1).shuffle(parts)
    text = "".join(parts)
    return text * (1 + 5_000_000 // len(text))


# ----------------------------------------------------------------------------------------------------
# Buffers


def test_whatever_has_bytes_is_a_text(custom: pybpe.Tokenizer, tmp_path: Path) -> None:
    data = mixed()[:5000].encode() + b"\xff<|endoftext|>\x00"
    path = tmp_path / "text"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        buffers = [bytearray(data), memoryview(data), memoryview(data).cast("b"), mapped, array.array("B", data)]
        buffers += [numpy.frombuffer(data, numpy.uint8), memoryview(b"x" + data + b"y")[1:-1]]
        for tok in (GPT2, custom):
            expected = tok.encode(data)
            for buffer in buffers:
                assert tok.encode(buffer) == expected
                assert tok.encode_to_numpy(buffer).tolist() == expected
                assert tok.encode_to_numpy(buffer, num_threads=2).tolist() == expected
                assert tok.count(buffer) == len(expected)
                assert tok.encode_with_offsets(buffer).ids == expected
            assert tok.encode_batch(buffers) == [expected] * len(buffers)
            assert tok.encode_batch_to_numpy(buffers)[0].tolist() == expected * len(buffers)
            assert list(tok.encode_iterable(iter([bytearray(data), memoryview(data)]))) == tok.encode(data * 2)


def test_what_is_no_text_is_refused() -> None:
    matrix, strided = numpy.zeros((2, 2), numpy.uint8), numpy.zeros(8, numpy.uint8)[::2]
    for function in (GPT2.encode, GPT2.encode_ordinary, GPT2.encode_to_numpy, GPT2.count, GPT2.encode_with_offsets):
        for bad in (numpy.arange(4), matrix, strided, array.array("I", [1])):
            with pytest.raises(pybpe.errors.ArgumentError, match="str or bytes.*items of format"):
                function(bad)
        for other in (None, 1, ["a"], object()):
            with pytest.raises(pybpe.errors.ArgumentError, match="str or bytes"):
                function(other)
    for one in ("text", b"text", bytearray(b"text")):
        for batch in (GPT2.encode_batch, GPT2.encode_batch_to_numpy):
            with pytest.raises(pybpe.errors.ArgumentError, match="not one"):
                batch(one)


def test_big_inputs_are_not_copied(tmp_path: Path) -> None:
    data = b"word " * 4_000_000
    path = tmp_path / "big"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = numpy.frombuffer(data, numpy.uint8)
        GPT2.count(mapped)
        tracemalloc.start()
        for buffer in (data, view, mapped, data.decode()):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            assert GPT2.count(buffer) == 4_000_000 + 1
            assert tracemalloc.get_traced_memory()[1] - before < 4 * PIECE_BYTES, type(buffer)
        tracemalloc.stop()
        del buffer


# ----------------------------------------------------------------------------------------------------
# Pieces and threads


def test_long_texts_in_every_way(long_text: str) -> None:
    data = long_text.encode()
    expected = [i for piece in text_pieces(data, GPT2._encoder.cut, 10_000) for i in GPT2.encode(piece)]
    assert GPT2.encode(long_text) == GPT2.encode(data) == expected
    for threads in (1, 2, 3, None):
        for text in (long_text, data):
            ids = GPT2.encode_to_numpy(text, num_threads=threads)
            assert ids.dtype == numpy.uint16 and ids.tolist() == expected
    assert GPT2.encode_batch([long_text, "a"]) == [expected, GPT2.encode("a")]
    assert GPT2.count(long_text) == GPT2.count(data) == len(expected)
    assert GPT2.decode(expected) == long_text
    assert GPT2.decode_bytes(numpy.array(expected, dtype=numpy.uint16)) == data


class Loud(str):
    """A str that lies about its text."""

    def encode(self, *_: object) -> bytes:
        return b"wrong"

    def isascii(self) -> bool:
        return not str.isascii(self)

    def __len__(self) -> int:
        return 3


@pytest.mark.slow
def test_no_str_grows(long_text: str) -> None:
    """CPython would keep the UTF-8 of a str that is not ASCII, as long as the str."""
    lone = long_text[:300_000] + "\udc80 lone \ud800"
    for text in ("".join(filter(str.isascii, long_text)), long_text[1:], lone, long_text[:400_000]):
        expected = GPT2.encode(utf8(text))
        size = sys.getsizeof(text)
        for threads in (1, 2):
            assert GPT2.encode_to_numpy(text, num_threads=threads).tolist() == expected
            assert GPT2.encode_batch([text], num_threads=threads) == [expected]
            assert GPT2.encode_batch_to_numpy([text, "a"], num_threads=threads)[0].tolist()[: len(expected)] == expected
        assert GPT2.count(text) == len(expected)
        assert sys.getsizeof(text) == size


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_of_every_kind_of_text(long_text: str, threads: int | None) -> None:
    texts: list[str | bytes] = [
        "ascii <|endoftext|> text", "", "中文 é", b"bytes \xff", "b" * 5000, bytearray(b"array"),
    ]  # fmt: skip
    texts += ["", " "] * 1000 + ["<|endoftext|>"] * 700 + [Loud("loud <|endoftext|>"), Loud("中"), long_text[:400_000]]
    for some in (texts, [*texts, "lone \udc80"], ["中文"] * 2000, ["ascii"] * 2000, [b"\xe4\xb8"] * 2000, []):
        exact = [bytes(utf8(text)) for text in some]
        expected = [GPT2.encode(data) for data in exact]
        for _ in range(3):
            ids, row_offsets = GPT2.encode_batch_to_numpy(some, num_threads=threads)
            assert [ids[a:b].tolist() for a, b in zip(row_offsets, row_offsets[1:])] == expected
            assert ids.dtype == numpy.uint16 and row_offsets.dtype == numpy.int64
        assert GPT2.encode_batch(some, num_threads=threads) == expected
        assert GPT2.encode_batch(iter(some), num_threads=threads) == expected


@given(
    text=st.text(st.sampled_from("ab .\n中é😀\ud83d\ude00\udc80\u3000'1"), max_size=300),
    part=st.integers(1, 9),
    block=st.integers(8, 40),
)
def test_pieces_of_a_str_are_those_of_its_bytes(text: str, part: int, block: int) -> None:
    """Each piece begins at a cut, none is lost, and the halves of surrogate pairs stay together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts_module, "_PART_CHARACTERS", part)
        pieces = [bytes(piece) for piece in text_pieces(text, GPT2._encoder.cut, block)]
    assert b"".join(pieces) == utf8(text)
    assert [i for piece in pieces for i in GPT2.encode(piece)] == GPT2.encode(text)


def test_a_disallowed_special_far_inside(long_text: str) -> None:
    at = long_text.index("<|endoftext|>")
    clean = long_text.replace("<|endoftext|>", "")
    text = clean[:4_000_000] + "<|endoftext|>"
    place = len(text[:-13].encode())
    assert at >= 0
    for function in (GPT2.encode, GPT2.encode_to_numpy, GPT2.count, lambda text, **kw: GPT2.encode_batch([text], **kw)):
        with pytest.raises(pybpe.errors.ArgumentError, match=f"<.endoftext.>' at byte {place};"):
            function(text, allowed_special=set(), disallowed_special="all")
    assert GPT2.count(clean, disallowed_special="all", allowed_special=set()) == GPT2.count(clean)


def test_encode_iterable_does_not_look_for_a_cut_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    cut = GPT2._encoder.cut

    def counting(data, start):
        nonlocal looked_at
        looked_at += len(data) - start
        return cut(data, start)

    monkeypatch.setattr(GPT2._encoder, "cut", counting)
    text = "a" * 300_000
    assert list(GPT2.encode_iterable(text[i : i + 10] for i in range(0, len(text), 10))) == GPT2.encode(text)
    assert looked_at < 10 * len(text)


# ----------------------------------------------------------------------------------------------------
# Decoding


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "CHUNK", 16)


DTYPES = ["uint16", "uint32", "int32", "int64", "uint64", "int16"]


@pytest.mark.usefixtures("small_chunks")
def test_ids_in_chunks() -> None:
    text = mixed()[:2000]
    ids = [i for i in GPT2.encode(text) if i < 1 << 15]
    data = b"".join(GPT2.decode_single_token_bytes(i) for i in ids)
    strided = numpy.repeat(numpy.array(ids, dtype=numpy.uint16), 2)[::2]
    forms = [ids, tuple(ids), iter(ids), array.array("H", ids), array.array("q", ids), strided]
    forms += [numpy.array(ids, dtype=dtype) for dtype in DTYPES]
    for form in forms:
        assert GPT2.decode_bytes(form) == data
    for form in forms[3:]:
        assert GPT2.decode(form) == data.decode("utf-8", "replace")
    assert GPT2.decode(ids, errors="surrogateescape") == data.decode("utf-8", "surrogateescape")
    with pytest.raises(UnicodeDecodeError) as ours:
        GPT2.decode(ids, errors="strict")
    with pytest.raises(UnicodeDecodeError) as pythons:
        data.decode("utf-8")
    assert str(ours.value) == str(pythons.value)
    assert GPT2.decode([]) == GPT2.decode(numpy.empty(0, numpy.uint16)) == ""
    assert GPT2.decode_bytes([]) == b"" and GPT2.decode_bytes([0]) == b"!"


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("position", [0, 15, 16, 40])
@pytest.mark.parametrize("bad", [50257, 60000, -1, 1 << 40, "x", 1.5, None])
def test_unknown_ids_are_named_with_their_position(position: int, bad: object) -> None:
    ids: list = [5] * 41
    ids[position] = bad
    forms: list = [ids, tuple(ids)]
    if isinstance(bad, int):
        forms += [numpy.array(ids), array.array("q", ids)]
        forms += [numpy.array(ids, dtype=numpy.uint16)] if 0 <= bad < 1 << 16 else []
    skipping = partial(GPT2.decode, skip_special_tokens=True)
    for function in (GPT2.decode, skipping, GPT2.decode_bytes, GPT2.decode_with_offsets):
        for form in (*forms, iter(ids)):
            with pytest.raises(pybpe.errors.ArgumentError, match=rf"^{bad!r} at position {position} is not an id"):
                function(form)
    with pytest.raises(pybpe.errors.ArgumentError, match=rf"^{bad!r} at position 0 "):
        GPT2.decode_single_token_bytes(bad)
    stream = GPT2.decode_stream()
    with pytest.raises(pybpe.errors.ArgumentError, match=rf"^{bad!r} at position {position} "):
        [stream.push(i) for i in ids]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "ids must be a list"),
        (5, "ids must be a list"),
        (numpy.array(5), "ids must be a list|ids in one dimension"),
        (numpy.zeros((2, 2), numpy.uint16), "ids in one dimension"),
        (numpy.zeros(3), "0.0 at position 0"),
        ([1, 10**5000], "too long to show at position 1"),
    ],
    ids=["None", "int", "array-of-one", "matrix", "float", "huge"],
)
def test_what_holds_no_ids(bad: Any, message: str) -> None:
    for decode in (GPT2.decode, GPT2.decode_bytes, GPT2.decode_with_offsets):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            decode(bad)
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        GPT2.decode(bad, skip_special_tokens=True)


@settings(max_examples=40)
@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_a_stream_gives_what_decode_gives(data: bytes) -> None:
    """Tests valid text and arbitrary bytes, in tokens of one byte and in longer ones."""
    for ids in (GPT2.encode_ordinary(data), [GPT2.token_to_id(data[i : i + 1]) for i in range(len(data))]):
        for errors in ("replace", "surrogateescape", "ignore"):
            stream = GPT2.decode_stream(errors)
            parts = [stream.push(i) for i in ids]
            parts.append(stream.flush())
            assert "".join(parts) == GPT2.decode(ids, errors) == data.decode("utf-8", errors)
        assert GPT2.decode(ids, "surrogateescape").encode("utf-8", "surrogateescape") == data


def test_a_stream_goes_on_after_a_bad_id() -> None:
    stream = GPT2.decode_stream()
    first, second, third = (GPT2.token_to_id(bytes([byte])) for byte in "中".encode())
    assert stream.push(first) == stream.push(second) == ""
    with pytest.raises(pybpe.errors.ArgumentError, match="position 2"):
        stream.push(60_000)
    assert stream.push(third) == "中" and stream.flush() == ""
    assert stream.push(numpy.uint16(first)) == "" and stream.flush() == "\ufffd" and stream.flush() == ""
