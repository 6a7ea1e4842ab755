"""The arguments of functions that read: paths and URLs, and how to read them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _binding
from .._binding import path_text
from ..arguments import instance, is_unicode, is_url, one_of, option, param, shown
from ..errors import ArgumentError
from .charset import check_encoding

Inputs = str | os.PathLike[str] | Iterable[Any]
"""Paths, or an object that gives documents: see objects.py."""
_LIKE_A_URL = re.compile(r"(?:s3|gs|hf|https?):/(?!/)")
STDIN = "-"  # the path of standard input


def first_of(names: Sequence[str]) -> str:
    """Returns the first of some names, and how many there are after it."""
    return f"{names[0]} and {len(names) - 1} more" if names[1:] else names[0]


def is_path_list(inputs: object) -> bool:
    """Returns whether `inputs` names files (one path, or a list or tuple of paths) rather than holding text."""
    if isinstance(inputs, (str, os.PathLike)):
        return True
    return isinstance(inputs, (list, tuple)) and all(isinstance(i, (str, os.PathLike)) for i in inputs)


def path_list(inputs: Inputs) -> list[str]:
    """Returns the paths that `inputs` names. Raises ArgumentError if there are none, and for a set, which has no
    order."""
    if isinstance(inputs, (str, bytes, os.PathLike)):
        inputs = [inputs]
    instance("inputs", inputs, Iterable, "a path or a list of paths")
    if isinstance(inputs, (set, frozenset, Mapping)):
        raise ArgumentError(f"inputs is a {type(inputs).__name__}: pass paths in a list")
    paths = [_file_name(path) for path in inputs]
    if not paths:
        raise ArgumentError("inputs is empty: pass at least one file")
    return paths


def _file_name(path: _binding.PathLike) -> str:
    """Returns a path as a str. Raises ArgumentError if no file can have this name, because it is a text."""
    if isinstance(path, (list, tuple)):
        raise ArgumentError("inputs contains a list: pass paths in one flat list, and texts as iter([...])")
    if isinstance(path, Mapping):
        raise ArgumentError(
            "inputs has records (dict) where paths are expected: pass only paths in a list, or only records"
        )
    name = path if isinstance(path, str) else _binding.path_text(path)
    if is_url(name):
        return _binding.path_text(name)
    if not isinstance(path, str) and _LIKE_A_URL.match(name) and not os.path.lexists(name):
        raise ArgumentError(f"{name}: a Path drops a slash of a URL: pass the URL as a str")
    if _is_no_name(name):
        raise ArgumentError(
            f"expected a path, but {shown(name)} is a text: functions that read documents take iter([text])"
        )
    return _binding.path_text(path)


def _is_no_name(name: str) -> bool:
    """Returns whether a name cannot be meant as a path: no file has it, and it is too long or has line breaks."""
    longest = max(map(len, name.encode("utf-8", "surrogatepass").split(b"/")))
    return (longest > 255 or len(name) > 4096 or "\n" in name or "\r" in name) and not os.path.lexists(name)


# ----------------------------------------------------------------------------------------------------
# How inputs are read

ON_ERROR = ("stop", "skip")
DOCUMENTS = ("auto", "special", "file", "blank", "line", "jsonl")


@dataclass(frozen=True)
class ReadOptions:
    """How inputs are read. The fields have the names of the public keyword arguments, which its errors name.

    Attributes:
        text_key: the key of the text in a JSON record, or its column in parquet and Arrow. "doc.text" is the text of an
            object "doc", unless there is a field with this very name.
        encoding: the encoding of files, by Python's name. None, or "auto", to decide file by file.
        keep_crlf: whether \\r\\n is read as it is in text files that have it throughout, otherwise as \\n.
        documents: one of DOCUMENTS: what separates documents in files whose name does not show it (see documents.py).
        on_error: one of ON_ERROR: what happens at a record that is not valid (see records.py).
        skipped: the file that lists the records that are skipped, or None if the caller decides where the list goes.

    Raises:
        ArgumentError: a value is invalid.
    """

    text_key: str = option(
        "text", "key of a JSON record's text, or its column in parquet and Arrow; doc.text is text in doc", "K"
    )
    encoding: str | None = option(
        None, "encoding of the text, such as utf-8, gb18030 or cp1252; auto (default) decides file by file", "E"
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
    on_error: str = option("stop", "what to do at an invalid JSON record or row: stop, or skip it and list it", "WHAT")
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
        if self.skipped is not None:
            object.__setattr__(self, "skipped", path_text(self.skipped))
            if not self.skips:
                told = "otherwise no records are skipped"
                raise ArgumentError(f"{param('skipped')} needs {param(on_error='skip')}: {told}")
        object.__setattr__(self, "encoding", check_encoding(self.encoding))

    @property
    def skips(self) -> bool:
        """Whether records that are not valid are skipped."""
        return self.on_error == "skip"
