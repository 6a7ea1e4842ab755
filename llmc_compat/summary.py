"""Summarizes the weights of a checkpoint: enough to see whether it was trained, and whether training diverged."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from pybpe._numpy import numpy

from .checkpoint import Checkpoint, from_file_type


@dataclass(frozen=True)
class TensorSummary:
    """A summary of one tensor; for wte, without the padding.

    Attributes:
        shape: the shape in the file, padding included.
        mean, std, min, max: over the finite weights; 0 if there are none.
        nonfinite: the number of weights that are infinite or NaN, a sign that training diverged.
    """

    shape: tuple[int, ...]
    mean: float
    std: float
    min: float
    max: float
    nonfinite: int


def summarize(model: Checkpoint) -> dict[str, TensorSummary]:
    """Summarizes every tensor of a checkpoint by name, in file order. Reads in blocks.

    Raises:
        FormatError: the file was truncated in the meantime.
    """
    return {name: _summarize(model, name) for name in model.config.tensor_shapes()}


def _summarize(model: Checkpoint, name: str) -> TensorSummary:
    shape = model.config.tensor_shapes()[name]
    count = nonfinite = 0
    total = squares = 0.0
    least, greatest = numpy.inf, -numpy.inf
    for raw in model.raw_blocks(name, model.config.vocab_size if name == "wte" else shape[0]):
        weights = from_file_type(raw, model.dtype).astype(numpy.float64)
        finite = weights[numpy.isfinite(weights)]
        nonfinite += weights.size - finite.size
        if finite.size:
            count += finite.size
            total += float(finite.sum())
            squares += float(numpy.square(finite).sum())
            least, greatest = min(least, float(finite.min())), max(greatest, float(finite.max()))
    if not count:
        return TensorSummary(shape, 0.0, 0.0, 0.0, 0.0, nonfinite)
    mean = total / count
    return TensorSummary(shape, mean, sqrt(max(0.0, squares / count - mean**2)), least, greatest, nonfinite)
