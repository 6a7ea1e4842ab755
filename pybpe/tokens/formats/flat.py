"""Formats whose files are a header and the ids: llm.c, numpy, and nanoGPT, which has no header."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ... import _binding
from ..._numpy import Array
from ...errors import FormatError
from ...formats.id_files import NPY_HEADER_BYTES, npy_blocks, npy_header, read_npy_header
from ...reading.streams import open_unchanged
from ...tokenizer import Tokenizer
from ..spool import id_bytes
from .base import READ_TOKENS, Format, read_flat

MIN_TOKENS = 257  # B*T + 1 of llm.c's CPU trainer, whose B is 4 and T 64
_VERSIONS = {2: 1, 4: 7}  # by bytes per id


def llmc_header(tokens: int, dtype: str) -> bytes:
    """Returns the header of a shard of llm.c."""
    size = id_bytes(dtype)
    return struct.pack("<3i", _binding.SHARD_MAGICS[size], _VERSIONS[size], tokens).ljust(
        _binding.SHARD_HEADER_BYTES, b"\0"
    )


LLMC = Format(
    name="llmc",
    file="{name}_{split}_{index:06d}.bin",
    read=read_flat,
    eot="prepend",
    min_tokens=MIN_TOKENS,
    header_bytes=_binding.SHARD_HEADER_BYTES,
    header=llmc_header,
    max_bytes=_binding.SHARD_MAX_BYTES,
    equal_shards=True,
)


def _read_npy(path: str, dtype: str) -> Iterator[Array]:
    """Yields the ids of a file in blocks; those of packed rows are an array of two dimensions."""
    with open_unchanged(path) as stream:
        header = read_npy_header(stream, path)
        if header.by_columns:
            raise FormatError(f"{path}: stores its rows by columns (Fortran order): save it in C order")
        if len(header.shape) not in (1, 2) or header.dtype.kind not in "ui":
            what = f"{header.dtype} of shape {header.shape}"
            raise FormatError(f"{path}: {what}, expected an array of integers with one or two dimensions")
        yield from npy_blocks(stream, header, path, READ_TOKENS)


NPY = Format(
    name="npy",
    file="{name}_{split}_{index:06d}.npy",
    read=_read_npy,
    header_bytes=NPY_HEADER_BYTES,
    header=lambda tokens, dtype: npy_header(tokens, id_bytes(dtype)),
)


def _meta(tok: Tokenizer) -> bytes:
    """Writes meta.pkl as nanoGPT's data/shakespeare_char/prepare.py writes it: vocab_size, itos and stoi.

    nanoGPT's sample.py encodes a prompt character by character through stoi, and joins texts of itos. A token that is
    not valid UTF-8 by itself is U+FFFD in itos, and is not in stoi.
    """
    import pickle

    texts = {i: token.decode("utf-8", "replace") for i, token in tok.model.vocab.items()}
    exact = {text: i for i, text in texts.items() if text.encode("utf-8") == tok.model.vocab[i]}
    return pickle.dumps({"vocab_size": tok.vocab_size, "itos": texts, "stoi": exact}, protocol=4)


RAW = Format(
    name="raw",
    file="{split}.bin",
    read=read_flat,
    header=lambda tokens, dtype: b"",
    of_tokenizer=("meta.pkl", _meta),
)
