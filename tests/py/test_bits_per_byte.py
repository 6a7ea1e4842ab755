"""The bytes of text that ids stand for, and bits per byte."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from corpora import EOT
from texts import chinese

import pybpe
from pybpe.errors import ArgumentError


def test_the_bytes_of_each_id(tok: pybpe.Tokenizer) -> None:
    """Against decoding each id, also the ids of bytes that are no character of their own."""
    lengths = tok.byte_lengths()
    assert (lengths.dtype, lengths.shape) == (numpy.int32, (len(tok),))
    assert lengths.tolist() == [
        0 if i in tok.special_tokens.values() else len(tok.decode_single_token_bytes(i)) for i in range(len(tok))
    ]
    text = chinese()[:2000] + EOT + "\x00é\U0001f600"
    assert lengths[tok.encode(text)].sum() == len(text.replace(EOT, "").encode())
    for broken in (b"\xff\xe4\xb8", chinese().encode()[1:100]):  # not UTF-8, and cut inside characters
        assert lengths[tok.encode(broken)].sum() == len(broken)


def test_text_to_readers_counts_and_unused_ids_do_not() -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | {258: b"<b>"}, [], ["<b>", EOT])
    assert tok.byte_lengths()[255:].tolist() == [1, 0, 0, 0, 0]
    visible = pybpe.tokenizer.of_model(replace(tok.model, visible=frozenset(["<b>"])))
    assert visible.byte_lengths()[255:].tolist() == [1, 0, 0, 3, 0]
    text = f"a<b>é{EOT}"
    shown = visible.decode(visible.encode(text), skip_special_tokens=True)
    assert visible.byte_lengths()[visible.encode(text)].sum() == len(shown.encode())


def test_the_table_as_a_file(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "lengths.npy", "byte_lengths")
    found = numpy.load(tmp_path / "lengths.npy")
    assert found.dtype == numpy.int32 and found.tolist() == tok.byte_lengths().tolist()
    for name in ("lengths.txt", "lengths"):
        with pytest.raises(ArgumentError, match=f"{name}: name a file that ends in .npy, or in .pt for PyTorch"):
            tok.save(tmp_path / name, "byte_lengths")
    assert [path.name for path in tmp_path.iterdir()] == ["lengths.npy"]


def test_a_tensor_without_pytorch(tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"pip install 'pybpe\[torch\]'"):
        tok.save(tmp_path / "token_bytes.pt", "byte_lengths")
