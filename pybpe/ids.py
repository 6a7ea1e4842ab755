"""What callers give as ids, as C reads it: unsigned integers of 2 or 4 bytes, in chunks.

A chunk is a few milliseconds of work, so that Ctrl-C is answered between two of them.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._binding import IdBuffer
from .arguments import instance, shown
from .errors import ArgumentError, UnknownIdError

if TYPE_CHECKING:
    import numpy

CHUNK = 1 << 18  # ids


def id_chunks(ids: Iterable[int], vocab_size: int, position: int = 0) -> Iterator[IdBuffer]:
    """The ids in chunks of CHUNK, the last one shorter. Arrays that C can read as they are, are not copied. `position`
    is what an error calls the place of the first.

    Raises:
        ArgumentError: an item that cannot be an id, with its position. (Ids that are numbers but not in the
            vocabulary are left to C.)
    """
    if isinstance(ids, (list, tuple)):
        return _list_chunks(ids, vocab_size, position)
    try:
        view = memoryview(ids)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # no buffer; or, of numpy, one of times, which has no items for C
        view = None
    if view is None or view.ndim == 1 and view.format == "O":
        instance("ids", ids, Iterable, "a list, an array or another iterable of integers")
        return _list_chunks(list(ids), vocab_size, position)
    if view.ndim != 1:
        raise ArgumentError(f"expected ids in one dimension, not an array of shape {view.shape}")
    if view.format in ("H", "I") and view.c_contiguous:
        return (IdBuffer(view[i : i + CHUNK]) for i in range(0, len(view), CHUNK))
    return _array_chunks(view, vocab_size, position)


def _list_chunks(ids: Sequence[int], vocab_size: int, position: int) -> Iterator[IdBuffer]:
    for start in range(0, len(ids), CHUNK):
        part = ids[start : start + CHUNK] if len(ids) > CHUNK else ids
        try:
            numbers = array("I", part)
        except (OverflowError, TypeError):
            raise first_unknown(part, position + start, vocab_size) from None
        yield IdBuffer(numbers)


def _array_chunks(ids: memoryview, vocab_size: int, position: int) -> Iterator[IdBuffer]:
    """Of an array of other integers: signed, wider, narrower, or with gaps between them."""
    import numpy

    whole: numpy.ndarray[Any, Any] = numpy.asarray(ids)
    for start in range(0, len(whole), CHUNK):
        part = whole[start : start + CHUNK]
        if part.dtype.kind not in "iub" or bool(((part < 0) | (part >= vocab_size)).any()):
            raise first_unknown(part.tolist(), position + start, vocab_size)
        yield IdBuffer(part.astype(numpy.uint32))


def first_unknown(ids: Iterable[Any], start: int, vocab_size: int, unused: Sequence[bytes] = ()) -> ArgumentError:
    """The error for the first item that is no id. `start` is the position of the first one; `unused` the tokens,
    of which an empty one is an id that is not in use."""
    for position, i in enumerate(ids, start):
        try:
            known = 0 <= operator.index(i) < vocab_size
        except TypeError:
            known = False
        if not known or (unused and not unused[i]):
            return UnknownIdError(
                f"{shown(i)} at position {position} is not an id of this vocabulary (0 to {vocab_size - 1})"
                + (", where it is unused" if known else "")
            )
    return ArgumentError("the ids were changed by another thread while they were decoded")
