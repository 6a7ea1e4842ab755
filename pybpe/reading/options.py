"""How inputs are read: the options that every function with inputs takes, as one object."""

from __future__ import annotations

from dataclasses import dataclass

from .._binding import PathLike, path_text
from ..arguments import instance, is_unicode, one_of, option, param
from ..errors import ArgumentError
from .text_encoding import check_encoding

ON_ERROR = ("stop", "skip")
DOCUMENTS = ("auto", "special", "file", "blank", "line", "jsonl")


@dataclass(frozen=True)
class ReadOptions:
    """How inputs are read. The fields have the names of the public keyword arguments, which its errors name.

    Attributes:
        text_key: the key of the text in a JSON record, or its column in parquet and Arrow.
        encoding: the encoding of files, by Python's name; None, or "auto", if each file is to show it.
        keep_crlf: whether \\r\\n is read as it is in text files that have it throughout; otherwise as \\n.
        documents: one of DOCUMENTS: what separates documents in files whose name does not show it (see documents.py).
        on_error: one of ON_ERROR: what happens at a record that is not valid (see bad_records.py).
        skipped: the file that lists the records that are skipped; None if the caller decides where the list goes.

    Raises:
        ArgumentError: a value is invalid.
    """

    text_key: str = option("text", "key of a JSON record's text, or its column in parquet and Arrow", "K")
    encoding: str | None = option(
        None, "encoding of the text, such as utf-8, gb18030 or cp1252; auto (default) decides for each file", "E"
    )
    keep_crlf: bool = option(
        False, r"read \r\n as it is; by default it becomes \n in text files in which all lines end with it"
    )
    documents: str = option(
        "auto",
        "what separates documents in text files: special (the end-of-text token, usually <|endoftext|>), blank (blank"
        " lines), line (one document per line) or file (one per file); jsonl reads every file as JSON lines",
        "HOW",
    )
    on_error: str = option(
        "stop", "at a JSON record or row that is not valid: stop, or skip, which skips and lists it", "WHAT"
    )
    skipped: str | None = option(
        None,
        "where --on-error skip lists the records (default: the output's name with .skipped.jsonl after it)",
        "FILE",
        path="writes",
    )

    def __post_init__(self) -> None:
        instance("text_key", self.text_key, str, "a str")
        if not self.text_key:
            raise ArgumentError(f"{param('text_key')} must not be empty")
        if not is_unicode(self.text_key):
            raise ArgumentError(f"{param('text_key')} contains a lone surrogate, which is not valid Unicode")
        instance("keep_crlf", self.keep_crlf, bool, "True or False")
        one_of("documents", self.documents, DOCUMENTS)
        one_of("on_error", self.on_error, ON_ERROR)
        if self.skipped is not None and not self.skips:
            raise ArgumentError(f"{param('skipped')} needs {param(on_error='skip')}: otherwise no records are skipped")
        object.__setattr__(self, "encoding", check_encoding(self.encoding))

    @property
    def skips(self) -> bool:
        """Whether records that are not valid are skipped."""
        return self.on_error == "skip"


def listed(path: PathLike | None) -> str | None:
    """Returns the path of a list of records that are skipped, for ReadOptions."""
    return None if path is None else path_text(path)
