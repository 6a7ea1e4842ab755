"""Where <|endoftext|> stands in a stream of tokens.

Texts separate documents in every way: a mark between, before, after, at both ends of a file. Whatever
came, each document that is not empty gets exactly one mark, before it ("prepend") or after it ("append"),
or none at all ("none").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

EOT_MODES = ("prepend", "append", "none")


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode: one of EOT_MODES.
        eot: the id; None only if the texts hold none.
        dtype: of the ids.
        is_open: whether the stream stands in a document: to go on where another placer stopped.
    """

    def __init__(self, mode: str, eot: int | None, dtype: str, is_open: bool = False) -> None:
        import numpy

        self._mode = mode
        self._mark = numpy.array([] if eot is None or mode == "none" else [eot], dtype=dtype)
        self.is_open = is_open  # whether the last token belongs to a document that has not ended

    def place(self, ids: Array, marks: Array) -> tuple[Array, Array]:
        """The next tokens of the stream, with the marks where they belong.

        Args:
            ids: shape (n,).
            marks: where in `ids` marks are, ascending.

        Returns:
            The tokens, and where in them documents begin (at its mark, if a document has one before it).
        """
        import numpy

        if not len(ids):
            return ids, marks[:0]
        begins = not self.is_open and not (len(marks) and marks[0] == 0)
        was_open, self.is_open = self.is_open, not (len(marks) and marks[-1] == len(ids) - 1)
        starts, dropped = marks[:0], marks
        if len(marks):
            document_behind = numpy.append(marks[1:], len(ids)) > marks + 1
            document_before = numpy.concatenate([[marks[0] > 0 or was_open], marks[1:] > marks[:-1] + 1])
            if self._mode != "none":
                dropped = marks[~(document_behind if self._mode == "prepend" else document_before)]
            # A document begins at its mark, or behind the mark of the one before, or at what was that.
            starts = marks[document_behind]
            shift = numpy.searchsorted(dropped, starts)
            starts = starts - shift + (1 if self._mode == "append" else 0)
            if self._mode == "append" and len(dropped):
                starts = starts - numpy.isin(marks[document_behind], dropped)
            ids = numpy.delete(ids, dropped) if len(dropped) else ids
        if begins:
            if self._mode == "prepend" and len(self._mark):
                ids, starts = numpy.concatenate([self._mark, ids]), starts + 1
            starts = numpy.concatenate([[0], starts])
        return ids, starts

    def end_document(self) -> Array:
        """The mark, if any, that the end of a document needs."""
        was_open, self.is_open = self.is_open, False
        return self._mark if was_open and self._mode == "append" else self._mark[:0]
