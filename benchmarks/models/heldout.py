"""The bits per byte of held-out text.

A document is encoded whole, with the end-of-text token before it. A *window* is a range of its tokens that the model
sees at once; the tokens at its beginning are only context, the losses of the others count. Each token counts once:

    tokens   0       T/2       T       3T/2      2T
             [counted . counted]
                     [context . counted]
                                [context . counted]

Windows of T tokens, as in training, give every vocabulary the same number of tokens as context: those with longer
tokens then see more text. Windows of N bytes give all of them the same text as context.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy
import torch
from model import GPT2

import pybpe

_BATCH = 8


class Window(NamedTuple):
    """Tokens start to stop of a document are the input, and the losses of the targets counted to stop count."""

    start: int
    counted: int
    stop: int


def bits_per_byte(
    model: GPT2, tok: pybpe.Tokenizer, documents: Sequence[str], length: int, context_bytes: int | None = None
) -> float:
    """Returns the bits that the model needs per byte of the documents.

    Args:
        length: the most tokens in a window, as in training.
        context_bytes: divide the documents into windows of so many bytes, instead of windows of `length` tokens.

    Raises:
        ValueError: a window of `context_bytes` has more than `length` tokens.
    """
    nats, size = 0.0, 0
    for document in documents:
        ids = numpy.array([tok.eot_token, *tok.encode_ordinary(document)])
        if context_bytes is None:
            windows = windows_of_tokens(len(ids) - 1, length)
        else:
            widths = [len(tok.decode_bytes([int(i)])) for i in ids[1:]]
            windows = windows_of_bytes(numpy.cumsum([0, *widths[:-1]]), context_bytes)
        nats += _nats(model, ids, list(windows), length)
        size += len(document.encode())
    return nats / math.log(2) / size


def windows_of_tokens(count: int, length: int) -> Iterable[Window]:
    """Yields windows of at most `length` tokens, in which the second half counts, and all of the first one."""
    half = length // 2
    yield Window(0, 0, min(length, count))
    for stop in range(length + half, count + half, half):
        yield Window(stop - length, stop - half, min(stop, count))


def windows_of_bytes(starts: numpy.ndarray, size: int) -> Iterable[Window]:
    """Yields windows of tokens whose first bytes, at the offsets `starts`, are in a range of `size` bytes; those in its
    second half count, and all of the first range."""
    half = size // 2
    for counted in range(0, int(starts[-1]) + 1, half):
        start, first, stop = numpy.searchsorted(starts, (counted - half, counted, counted + half))
        if first < stop:
            yield Window(int(start), int(first), int(stop))


@torch.no_grad()
def _nats(model: GPT2, ids: numpy.ndarray, windows: list[Window], length: int) -> float:
    total = 0.0
    for i in range(0, len(windows), _BATCH):
        batch = windows[i : i + _BATCH]
        inputs = torch.zeros(len(batch), length, dtype=torch.int64)
        targets, counts = torch.zeros_like(inputs), torch.zeros(inputs.shape, dtype=torch.bool)
        for row, (start, counted, stop) in enumerate(batch):
            if stop - start > length:
                raise ValueError(f"a window has {stop - start} tokens, more than {length}: use fewer bytes of context")
            inputs[row, : stop - start] = torch.from_numpy(ids[start:stop])
            targets[row, : stop - start] = torch.from_numpy(ids[start + 1 : stop + 1])
            counts[row, counted - start : stop - start] = True
        total += float(model.losses(inputs, targets, counts).sum(dtype=torch.float64))
    return total
