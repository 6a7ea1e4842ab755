"""Places <|endoftext|> in a stream of tokens.

Input texts may have a mark between documents, before them, after them, or at both ends of a file. Whatever the
input has, each non-empty document gets exactly one mark, before it ("prepend") or after it ("append"), or none at
all ("none").
"""

from __future__ import annotations

from array import array

from .. import _binding

EOT_MODES = ("prepend", "append", "none")
_SHORT = 1 << 10  # ids
KEEP = "keep"  # encode_files only: the ids are those of the text, marks included


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode: one of EOT_MODES, or KEEP.
        eot: the id of the mark; None only if the texts hold no marks.
        is_open: whether the stream is inside a document, for resuming where another placer stopped.
    """

    def __init__(self, mode: str, eot: int | None, is_open: bool = False) -> None:
        self._mode = "none" if eot is None else mode
        self._eot = _binding.NO_ID if eot is None else eot
        self.is_open = is_open  # whether the last token belongs to a document that has not ended

    def place(self, ids: array[int], marks: int) -> tuple[array[int] | memoryview, array[int] | memoryview]:
        """Returns the next tokens of the stream, with the marks where they belong.

        Args:
            ids: an array of type H or I.
            marks: the number of marks among them.

        Returns:
            The tokens, and where in them documents begin (at the mark, if it comes first), of type Q.
        """
        if self._mode == KEEP:
            self.is_open |= len(ids) > 0
            return ids, array("Q")
        if not marks and (self.is_open or not ids):  # nothing to do, as for most pieces of long documents
            return ids, array("Q")
        if not marks and len(ids) <= _SHORT:  # one document begins: most of a call to C would be Python
            self.is_open = True
            return (array(ids.typecode, (self._eot, *ids)) if self._mode == "prepend" else ids), array("Q", (0,))
        placed, starts, self.is_open = _binding.place_marks(ids, self._eot, marks, self._mode, self.is_open)
        return placed, starts

    def end_document(self, typecode: str) -> array[int]:
        """Returns the mark, if any, that the end of a document needs, as an array of the given type."""
        was_open, self.is_open = self.is_open, False
        return array(typecode, [self._eot] if was_open and self._mode == "append" else [])
