"""Moves a trained model to another vocabulary, and keeps the weights of shared tokens.

Only wte, the embedding of tokens (which is the output layer as well), depends on the vocabulary. A token that both
tokenizers have keeps its row. Every other token starts as the mean of the old rows, so it enters the softmax as an
average token. A random row could take a large share of the probability (John Hewitt, "Initializing New Word Embeddings
for Pretrained Language Models", 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.model.remap import NEW, old_ids
from pybpe.support.call_paths import check_paths

from .checkpoint import Checkpoint, from_file_type, to_file_type, write_blocks
from .gpt2_config import GPT2Config, padded_rows

_MEAN, _ZERO = NEW, -2  # a row's source, if it is not an old row
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Resized:
    """What `resize_checkpoint` wrote.

    Attributes:
        config, dtype: the new checkpoint's shape and type.
        copied: the number of tokens whose rows were copied.
        averaged: the number of tokens that got the mean row.
    """

    config: GPT2Config
    dtype: str
    copied: int
    averaged: int


def resize_checkpoint(
    source: _binding.PathLike, old: Tokenizer, new: Tokenizer, out: _binding.PathLike, *, pad_vocab: int = 128
) -> Resized:
    """Converts the checkpoint `source`, trained with the tokenizer `old`, to the tokenizer `new`.

    Rows of ordinary tokens with the same bytes, and of specials with the same text, are copied. Other tokens get the
    mean of all old rows, and the padding is zero. Everything else, type and maxT included, is unchanged. The file is
    written atomically. Only the old wte is held in memory, not the whole model.

    Args:
        pad_vocab: the new Vp is the smallest multiple of this above V.

    Raises:
        ArgumentError: `old` and the model differ in their number of tokens, or `out` is `source`.
        FileError, FormatError: `source` cannot be read.
    """
    check_paths({"out": [_binding.path_text(out)]}, {"the model": [_binding.path_text(source)]})
    with Checkpoint(source, warns=True) as model:
        model.check_vocab_size(old.vocab_size)
        config = replace(
            model.config, vocab_size=new.vocab_size, padded_vocab_size=padded_rows(new.vocab_size, pad_vocab)
        )
        origins = numpy.full(config.padded_vocab_size, _ZERO, dtype=numpy.int64)
        origins[: new.vocab_size] = old_ids(old.model, new.model)
        write_blocks(out, config, model.dtype, _blocks(model, origins))
        averaged = int((origins == _MEAN).sum())
        return Resized(config, model.dtype, new.vocab_size - averaged, averaged)


def _blocks(model: Checkpoint, origins: numpy.ndarray[Any, Any]) -> Iterator[numpy.ndarray[Any, Any]]:
    wte = model.raw_rows("wte", 0, model.config.vocab_size)
    sums = [from_file_type(rows, model.dtype).sum(axis=0, dtype=numpy.float64) for rows in _row_blocks(wte)]
    mean = to_file_type(numpy.sum(sums, axis=0) / len(wte), model.dtype)
    for part in _row_blocks(origins):
        rows = wte[numpy.maximum(part, 0)]
        rows[part == _MEAN] = mean
        rows[part == _ZERO] = 0
        yield rows
    for name in model.config.tensor_shapes():
        if name != "wte":
            yield from model.raw_blocks(name)


def _row_blocks(rows: numpy.ndarray[Any, Any]) -> Iterator[numpy.ndarray[Any, Any]]:
    for start in range(0, len(rows), _BLOCK_ROWS):
        yield rows[start : start + _BLOCK_ROWS]
