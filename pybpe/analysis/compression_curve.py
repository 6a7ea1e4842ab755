"""The compression curve: how much each vocabulary size compresses, and how many parameters it adds to a model."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .. import _binding
from ..errors import ArgumentError, MissingExtraError
from ..model import refuse_dropout
from ..tokenizer import Tokenizer
from ..training.counts import Counts
from .tables import Table

PLOTS = (".png", ".svg", ".pdf")
_DATES = {".svg": "Date", ".pdf": "CreationDate"}  # the metadata that would differ from run to run


class CurvePoint(NamedTuple):
    """One vocabulary size."""

    vocab_size: int  # number of tokens
    bytes_per_token: float  # average over the counted text
    embedding_parameters: int  # parameters of a model's input and output embeddings together: 2 * vocab_size * hidden


def compression_curve(tokenizer: Tokenizer, counts: Counts, sizes: Iterable[int], hidden: int) -> list[CurvePoint]:
    """Returns one point for each size, ascending. A size above the tokenizer's is reduced to it."""
    refuse_dropout(tokenizer.model, "cannot count tokens")
    words = counts.to_dict()
    size = sum(len(word) * count for word, count in words.items())
    points = []
    for vocab_size in sorted({min(wanted, len(tokenizer)) for wanted in sizes}):
        encoder = _binding.Encoder(tokenizer.prune(vocab_size=vocab_size).model.to_vocab())
        tokens = sum(len(encoder.encode_words(word, [len(word)])) * count for word, count in words.items())
        points.append(CurvePoint(vocab_size, size / tokens if tokens else 0.0, 2 * vocab_size * hidden))
    return points


def table(points: Sequence[CurvePoint]) -> Table:
    """Returns the curve as a table. "fewer tokens" compares a row with the one above it."""
    found = Table("", ["vocabulary", "bytes/token", "fewer tokens", "embedding parameters"])
    before = 0.0
    for point in points:
        gain = f"{1 - before / point.bytes_per_token:.1%}" if before else ""
        before = point.bytes_per_token
        found.add(f"{point.vocab_size:,}", f"{before:.3f}", gain, f"{point.embedding_parameters:,}")
    return found


def plot(points: Sequence[CurvePoint], path: str) -> None:
    """Draws the curve to a file, atomically. The file's name ends in .png, .svg or .pdf. The size axis is linear: on a
    logarithmic axis the curve of most texts is nearly straight, and does not show where it flattens."""
    figure, axes = new_figure()
    sizes = [point.vocab_size for point in points]
    lines = axes.plot(sizes, [point.bytes_per_token for point in points], marker="o", label="bytes per token")
    axes.set(xlabel="vocabulary", ylabel="bytes per token")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    right = axes.twinx()
    parameters = [point.embedding_parameters / 1e6 for point in points]
    lines += right.plot(sizes, parameters, linestyle="--", color="gray", label="embedding parameters (right)")
    right.set_ylabel("embedding parameters, millions")
    right.set_ylim(bottom=0)
    axes.legend(handles=lines, loc="lower right")
    save_figure(figure, path)


def new_figure() -> tuple[Any, Any]:
    """Returns an empty figure and its axes, of matplotlib."""
    figure, axes = _pyplot().subplots(figsize=(7, 4), layout="constrained")
    return figure, axes


def save_figure(figure: Any, path: str) -> None:
    """Writes a figure to a file, atomically. The same figure gives the same bytes."""
    drawing = io.BytesIO()
    ending = os.path.splitext(path)[1]
    figure.savefig(drawing, format=ending[1:], metadata={_DATES[ending]: None} if ending in _DATES else None)
    _binding.write_file(path, drawing.getbuffer())


def check_plot(path: str) -> None:
    """Raises an error if `plot` cannot draw to this file, so that a run fails now and not after an hour of training."""
    if os.path.splitext(path)[1] not in PLOTS:
        raise ArgumentError(f"{path}: the name of a plot must end in one of {', '.join(PLOTS)}")
    _pyplot()


def _pyplot() -> Any:
    """Returns matplotlib.pyplot, set up to draw to files only."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("plotting needs matplotlib: pip install 'pybpe[plot]'") from None
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "pybpe"  # otherwise the ids inside the file are random
    from matplotlib import pyplot

    return pyplot
