"""Files whose documents are rows: parquet and Arrow."""

from __future__ import annotations

from .arrow import ArrowBatches
from .input_file import InputFile
from .parquet import RowGroups
from .row_file import RowFile


def open_rows(file: InputFile, text_key: str) -> RowFile:
    """Opens a file of rows, whose texts are in the column `text_key`.

    Raises:
        MissingExtraError: pyarrow is not installed. FormatError: the file is damaged, or has no such text column.
    """
    return RowGroups(file, text_key) if file.form == "parquet" else ArrowBatches(file, text_key)
