"""Bits per byte: the loss of a language model in a unit that does not depend on its tokenizer.

    bits per byte = sum of -ln p(token) / ln 2 / bytes of text that the tokens stand for

Both sums are over the same tokens, and the text may end inside a character. Special
tokens stand for no text: by default they are in neither sum, as in nanochat's evaluate_bpb.
"""

from __future__ import annotations

import math
import numbers
import os
from dataclasses import dataclass

from .._lazy import Array, numpy
from ..arguments import instance, number_of, param, whole_number
from ..errors import ArgumentError
from ..tokenizer import Tokenizer
from ..tokenizer.decoding import first_unknown
from ..tokens.token_files import Paths, TokenStream

_IGNORED = -1  # nanochat's ignore_index
_LEAST_LOSS = -1e-3  # -ln 1, with the rounding of 16-bit floats
_BLOCK = 1 << 20  # tokens


@dataclass(frozen=True)
class BitsPerByte:
    """The result of `bits_per_byte`. To combine batches or processes, add their `nats` and their `text_bytes`, and
    divide once. The mean of the figures of batches is a different number.

    Attributes:
        nats: the sum of the losses.
        text_bytes: the bytes of text that the tokens stand for.
        tokens: the number of tokens whose losses are in `nats`.
        special_tokens: the number of special tokens that the model predicted.
        counts_special: whether their losses are in `nats`.
    """

    nats: float
    text_bytes: int
    tokens: int
    special_tokens: int
    counts_special: bool

    @property
    def value(self) -> float:
        """The bits per byte."""
        return self.nats / math.log(2) / self.text_bytes

    def __str__(self) -> str:
        special = f"{number_of(self.special_tokens, 'special token')} {'' if self.counts_special else 'not '}counted"
        return (
            f"{self.value:.6f} bits per byte: {self.nats:.6g} nats in {number_of(self.tokens, 'token')},"
            f" {number_of(self.text_bytes, 'byte')} of text, {special}"
        )


def bits_per_byte(
    tok: Tokenizer, ids: Paths | Array, losses: float | Array, *, limit: int | None = None, count_special: bool = False
) -> BitsPerByte:
    """Returns the number of bits that a model needs for a byte of text, from its losses.

    `tok.byte_lengths` has the bytes of tokens. A part of a character counts with its own bytes. If there is a
    normalizer, they are the bytes of the normalized text.

    Args:
        ids: the tokens that the model predicted, an array of integers. -1 leaves out a prediction. You can also pass
            one or several token files, which are one stream. Then the model predicted all its tokens but the first.
        losses: -ln p of these tokens, an array of floats with the shape of `ids`, for example from torch's
            cross_entropy(..., reduction="none"). For files, the shape does not matter. If there are as many losses as
            tokens, the first token has one too. You can also pass one number, the mean over these tokens. (The mean of
            the means of unequal batches is different.) Losses must be in nats. If yours are in bits, multiply them by
            ln 2.
        limit: the number of predictions, if the evaluation stopped before the end of `ids`.
        count_special: True adds the losses of special tokens, which tell where documents end. False leaves special
            tokens out. A mean cannot leave them out.

    Raises:
        ArgumentError: `losses` does not fit `ids`, or has a value that is not finite, or negative. Or an id is not in
            the vocabulary, or, according to a manifest, another tokenizer made a file, or files are in another order.
            Or a mean includes special tokens, or there is no text. FileError, FormatError: a file cannot be read, or is
            damaged.

    >>> tok = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"hi"}, [(b"h", b"i")], ["<s>"])
    >>> bits_per_byte(tok, numpy.array([256, 33, 257]), numpy.array([2.0, 1.0, 9.0]) * math.log(2)).value
    1.0
    """
    mean, each = (float(losses), None) if isinstance(losses, numbers.Real) else (None, _floats(losses))
    if isinstance(ids, numpy.ndarray):
        stream, start = TokenStream(ids.reshape(-1)), 0
    else:
        stream = TokenStream(ids)
        stream.check_tokenizer(tok)
        # A model that read a split has its losses in the order of the manifest.
        last: dict[tuple[str, str], tuple[int, str]] = {}
        for path, facts in zip(stream.paths, stream.facts):
            if facts is not None:
                split = os.path.dirname(os.path.realpath(path)), facts.split
                before, name = last.get(split, (-1, ""))
                if before > facts.place:
                    raise ArgumentError(f"{path}: comes before {name} in its manifest: give the files in that order")
                last[split] = facts.place, path
        start = 0 if each is not None and each.size == len(stream) else 1
    count = max(0, len(stream) - start)
    if limit is not None:
        count = whole_number("limit", limit, 1, count)
    if each is not None:
        _check_fit(ids, each, count, limit)
        each = each.reshape(-1)
    lengths = tok.byte_lengths()
    known = lengths > 0
    known[list(tok.model.hidden_ids)] = True
    nats, text_bytes, tokens, special = 0.0, 0, 0, 0
    for at in range(0, count, _BLOCK):
        end, position = min(at + _BLOCK, count), start + at
        block, some = stream.slice(position, start + end), None if each is None else each[at:end]
        predicted = block != _IGNORED
        wrong = (block < _IGNORED) | (block >= len(known))
        places = numpy.where(predicted & ~wrong, block, 0).astype(numpy.int64)
        wrong |= predicted & ~known[places]
        if wrong.any():
            first = int(wrong.argmax())
            raise first_unknown([block[first].item()], position + first, len(known), tok.model.tokens)
        sizes = numpy.where(predicted, lengths[places], 0)
        has_loss = predicted if count_special or some is None else sizes > 0
        text_bytes += int(sizes.sum(dtype=numpy.int64))
        tokens += int(has_loss.sum())
        special += int((predicted & (sizes == 0)).sum())
        if some is not None:
            no_loss = predicted & ~(numpy.isfinite(some) & (some >= _LEAST_LOSS))
            if no_loss.any():
                first = int(no_loss.argmax())
                raise ArgumentError(
                    f"losses: {some[first]} for the token at position {position + first}, not a loss: pass -ln p of"
                    " each token, which is not negative; an id of -1 leaves out a token"
                )
            nats += float(some[has_loss].sum(dtype=numpy.float64))
    if mean is not None and special and not count_special:
        raise ArgumentError(
            f"the mean includes the losses of {number_of(special, 'special token')}, which cannot be left out: pass"
            f" {param(count_special=True)}, or the loss of each token"
        )
    nats = nats if mean is None else mean * tokens
    if not (math.isfinite(nats) and nats >= 0):
        raise ArgumentError(f"the losses add up to {nats:g}: pass -ln p of each token, which is not negative")
    if not text_bytes:
        raise ArgumentError("no token stands for text, so there are no bytes to divide by")
    return BitsPerByte(nats, text_bytes, tokens, special, count_special)


def _floats(losses: object) -> Array:
    instance("losses", losses, numpy.ndarray, "a number, or a numpy array of floats")
    assert isinstance(losses, numpy.ndarray)
    if losses.dtype.kind != "f":
        raise ArgumentError(f"{param('losses')} must be floats, not {losses.dtype}")
    return losses


def _check_fit(ids: object, losses: Array, count: int, limit: int | None) -> None:
    """Raises ArgumentError unless there are as many losses as the `count` tokens that the model predicted."""
    if isinstance(ids, numpy.ndarray) and limit is None and losses.shape != ids.shape:
        raise ArgumentError(
            f"losses of shape {losses.shape} do not fit ids of shape {ids.shape}: pass the tokens that the model"
            " predicted, such as ids[:, 1:]"
        )
    if losses.size != count:
        what = "these are the losses of other tokens"
        if 0 < losses.size < count:
            what = f"if it stopped before the end, pass {param(limit=losses.size)}; otherwise {what}"
        raise ArgumentError(
            f"there are losses for {number_of(losses.size, 'token')}, and the model predicted {count}: {what}"
        )
