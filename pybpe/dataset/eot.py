"""Where <|endoftext|> stands in a stream of tokens.

Texts separate documents in every way: a mark between, before, after, at both ends of a file. Whatever
came, each document that is not empty gets exactly one mark, before it ("prepend") or after it ("append"),
or none at all ("none").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

EOT_MODES = ("prepend", "append", "none")


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode: one of EOT_MODES.
        eot: the id; None only if the texts hold none.
        dtype: of the ids.
    """

    def __init__(self, mode: str, eot: int | None, dtype: numpy.dtype[Any]) -> None:
        import numpy

        self._mode = mode
        self._eot = eot
        self._mark = numpy.array([] if eot is None or mode == "none" else [eot], dtype=dtype)
        self._open = False  # whether the last token belongs to a document that has not ended

    def place(self, ids: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
        """The next tokens of the stream, with the marks where they belong."""
        import numpy

        if not len(ids):
            return ids
        is_mark = ids == self._eot if self._eot is not None else numpy.zeros(len(ids), dtype=bool)
        begins_document = not self._open and not is_mark[0]
        was_open, self._open = self._open, not is_mark[-1]
        if is_mark.any():
            keep = ~is_mark
            if self._mode == "prepend":  # a mark stays where a document begins behind it
                keep[:-1] |= ~is_mark[1:]
            elif self._mode == "append":  # a mark stays where a document ends before it
                keep[1:] |= ~is_mark[:-1]
                keep[0] |= was_open
            ids = ids[keep]
        if begins_document and self._mode == "prepend":
            return numpy.concatenate([self._mark, ids])
        return ids

    def end_document(self) -> numpy.ndarray[Any, Any]:
        """The mark, if any, that the end of a document needs."""
        was_open, self._open = self._open, False
        return self._mark if was_open and self._mode == "append" else self._mark[:0]
