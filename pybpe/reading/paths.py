"""The paths and URLs that callers pass."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from .. import _binding
from ..arguments import instance, is_url, shown
from ..errors import ArgumentError

Inputs = str | os.PathLike[str] | Iterable[str | bytes | os.PathLike[str]]
_LIKE_A_URL = re.compile(r"(?:s3|gs|hf|https?):/(?!/)")
STDIN = "-"  # the path of standard input


def first_of(names: Sequence[str]) -> str:
    """Returns the first of some names, and how many there are after it."""
    return f"{names[0]} and {len(names) - 1} more" if names[1:] else names[0]


def is_path_list(inputs: object) -> bool:
    """Returns whether `inputs` names files (one path, or a list or tuple of paths) rather than holding texts."""
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
        raise ArgumentError("inputs contains a list: pass paths in one flat list, and texts to train on as iter([...])")
    if isinstance(path, Mapping):
        raise ArgumentError(
            "inputs gives records (dict), as a Hugging Face dataset does, not paths: save them in a file that pybpe"
            " reads, with dataset.to_parquet('x.parquet') or to_json('x.jsonl')"
        )
    name = path if isinstance(path, str) else _binding.path_text(path)
    if is_url(name):
        return _binding.path_text(name)
    if not isinstance(path, str) and _LIKE_A_URL.match(name) and not os.path.lexists(name):
        raise ArgumentError(f"{name}: a Path drops a slash of a URL: pass the URL as a str")
    if _is_no_name(name):
        raise ArgumentError(
            f"expected a path, but {shown(name)} is a text: `train` and `count_words` take texts as iter([text]);"
            " all other functions read files"
        )
    return _binding.path_text(path)


def _is_no_name(name: str) -> bool:
    """Returns whether a name cannot be meant as a path: no file has it, and it is too long or has line breaks."""
    longest = max(len(part.encode("utf-8", "surrogatepass")) for part in name.split("/"))
    return (longest > 255 or len(name) > 4096 or bool(set(name) & set("\n\r"))) and not os.path.lexists(name)
