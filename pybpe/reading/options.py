"""How inputs are read: the options that every function with inputs takes, as one object."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import instance, is_unicode, one_of
from ..errors import ArgumentError
from .text_encoding import check_encoding

DOCUMENTS = ("auto", "special", "file", "blank", "line", "jsonl")


@dataclass(frozen=True)
class ReadOptions:
    """How inputs are read. The fields have the names of the public keyword arguments, which its errors name.

    Attributes:
        text_key: the key of the text in a JSON record, or its column in parquet and Arrow.
        encoding: the encoding of files, by Python's name; None is UTF-8.
        documents: one of DOCUMENTS: what separates documents in files whose name does not show it (see documents.py).

    Raises:
        ArgumentError: a value is invalid.
    """

    text_key: str = "text"
    encoding: str | None = None
    documents: str = "auto"

    def __post_init__(self) -> None:
        instance("text_key", self.text_key, str, "a str")
        if not is_unicode(self.text_key):
            raise ArgumentError("text_key contains a lone surrogate, which is not valid Unicode")
        one_of("documents", self.documents, DOCUMENTS)
        object.__setattr__(self, "encoding", check_encoding(self.encoding))
