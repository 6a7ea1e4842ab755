"""Inputs that once gave a result without a part of the text, or with another text, and no error."""

import bz2
import io
import json
import lzma
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from texts import english

import pybpe
from pybpe.inputs import open_text

TEXT = english()[:20_000].encode()


def alone(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


@pytest.mark.parametrize(("ending", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_damage_after_the_first_compressed_stream(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    """bz2 and lzma of the standard library end quietly there."""
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
        damaged[chance.randrange(len(damaged) - (ending == ".bz2"))] ^= 1 << chance.randrange(8)
        path.write_bytes(first + damaged)
        with pytest.raises(pybpe.FormatError, match="damaged before byte"):
            pybpe.count_words(path)
    for rest in (b"more", first[:1], first[: len(first) // 2]):
        path.write_bytes(first + rest)
        with pytest.raises(pybpe.FormatError, match="damaged before byte"):
            pybpe.count_words(path)


def test_an_old_lzma_file_ends_once(tmp_path: Path) -> None:
    path = tmp_path / "x.txt.lzma"
    path.write_bytes(alone(TEXT))
    with open_text(str(path)) as stream:
        assert stream.read() == TEXT
    path.write_bytes(alone(TEXT) + b"more")
    with pytest.raises(pybpe.FormatError, match="damaged before byte"):
        pybpe.count_words(path)
