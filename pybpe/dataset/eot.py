"""Where <|endoftext|> stands in a stream of tokens.

Texts separate documents in every way: a mark between, before, after, at both ends of a file. Whatever
came, each document that is not empty gets exactly one mark, before it ("prepend") or after it ("append"),
or none at all ("none").
"""

from __future__ import annotations

from array import array

from .. import _binding

EOT_MODES = ("prepend", "append", "none")
KEEP = "keep"  # of encode_files: the ids are those of the text, marks included


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode: one of EOT_MODES, or KEEP.
        eot: the id; None only if the texts hold none.
        is_open: whether the stream stands in a document: to go on where another placer stopped.
    """

    def __init__(self, mode: str, eot: int | None, is_open: bool = False) -> None:
        self._mode = "none" if eot is None else mode
        self._eot = _binding.NO_ID if eot is None else eot
        self.is_open = is_open  # whether the last token belongs to a document that has not ended

    def place(self, ids: array[int], marks: int) -> tuple[array[int] | memoryview, array[int]]:
        """The next tokens of the stream, with the marks where they belong.

        Args:
            ids: of type H or I.
            marks: how many of them are marks.

        Returns:
            The tokens, and where in them documents begin (at its mark, if a document has one before it), of type Q.
        """
        if (
            self._mode == KEEP or not marks and (self.is_open or not ids)
        ):  # nothing to do: most pieces of long documents
            return ids, array("Q")
        placed, starts, self.is_open = _binding.place_marks(ids, self._eot, marks, self._mode, self.is_open)
        return placed, starts

    def end_document(self, typecode: str) -> array[int]:
        """The mark, if any, that the end of a document needs; an array of a type."""
        was_open, self.is_open = self.is_open, False
        return array(typecode, [self._eot] if was_open and self._mode == "append" else [])
