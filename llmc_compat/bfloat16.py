"""bfloat16, which numpy lacks: the upper half of a float32, stored as uint16."""

from __future__ import annotations

from typing import Any

from pybpe._numpy import numpy


def to_bfloat16(values: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Rounds to nearest, ties to even, as PyTorch and CUDA do.

    Args:
        values: float32, any shape.

    Returns:
        The bits as uint16, in the same shape. Values beyond the largest bfloat16 become infinity; every NaN
            becomes 0x7FC0.
    """
    single = numpy.ascontiguousarray(values, dtype="<f4")
    bits = single.view("<u4")
    # Adding 0x7FFF, or 0x8000 if the last bit kept is 1, carries into that bit exactly when nearest-even rounds
    # up. A NaN could carry into infinity, so NaNs are handled separately.
    rounded: numpy.ndarray[Any, Any] = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype("<u2")
    rounded[numpy.isnan(single)] = 0x7FC0
    return rounded


def from_bfloat16(raw: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Widens bfloat16 bits (uint16) to float32, exactly. The shape is kept."""
    wide: numpy.ndarray[Any, Any] = raw.view("<u2").astype("<u4") << 16
    return wide.view("<f4")
