"""JSON lines with their positions, so that an error about a record can name its line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, NamedTuple

from pybpe import _binding
from pybpe.errors import FormatError
from pybpe.reading.documents import json_problem
from pybpe.reading.files import open_text
from pybpe.reading.pieces import line_cut, stream_pieces


class Record(NamedTuple):
    """One line: its bytes, its JSON value, and its position."""

    line: bytes
    value: Any
    file: str
    number: int
    offset: int

    def error(self, problem: str) -> FormatError:
        """Returns an error that names this line."""
        return FormatError(f"{self.file}: line {self.number}: {problem}", self.offset)


def read_records(source: _binding.PathLike | BinaryIO) -> Iterator[Record]:
    """Yields the records of JSON lines in a file (*.gz and *.zst are decompressed) or an open stream. Blank lines are
    skipped. Line numbers start at 1.

    Raises:
        FileError. FormatError: a line is not JSON. The error names the line.
    """
    opened: AbstractContextManager[BinaryIO]
    if isinstance(source, (str, bytes, os.PathLike)):
        name = os.fsdecode(source)
        opened = open_text(name)
    else:
        name, opened = str(getattr(source, "name", "input")), nullcontext(source)
    number, offset = 0, 0
    with opened as stream:
        for piece in stream_pieces(stream, line_cut):
            lines = bytes(piece).split(b"\n")
            if not lines[-1]:  # nothing follows the last newline
                lines.pop()
            for line in lines:
                number += 1
                if line and not line.isspace():
                    record = Record(line, None, name, number, offset)
                    try:
                        record = record._replace(value=json.loads(line))
                    except (ValueError, RecursionError) as error:
                        raise record.error(f"not JSON ({json_problem(error)})") from None
                    yield record
                offset += len(line) + 1
