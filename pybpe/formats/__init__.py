"""Tokenizer files, one format per module. any_format.py reads and writes all of them.

    tokenizer_json.py      tokenizer.json; pre_tokenizer.py and step_trees.py read and write how it splits text
    vocab_merges.py        vocab.json and merges.txt, and how these and tokenizer.json spell tokens
    pretrained.py          folders of transformers, and objects of tokenizers and transformers
    tiktoken.py, nanochat.py, gguf.py
    id_files.py            files that have only ids

C reads and writes tokenizer.bin.

pybpe's own formats have a version, a number that begins at 1. It is raised when an older pybpe would read the new files
to a different result. A reader accepts its own version and all older ones. A file without the field has version 1.

To add a format: a module here, its name in _FORMATS, its ending in _ENDINGS and its mark in `read` of any_format.py,
and a round trip in tests/py/test_formats.py. Refuse with UnsupportedError a tokenizer that the format cannot represent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._lazy import lazy
from .._version import __version__
from ..errors import FormatError

if TYPE_CHECKING:
    from . import any_format as any_format
    from . import gguf as gguf
    from . import nanochat as nanochat
    from . import pretrained as pretrained
    from . import tiktoken as tiktoken
else:
    __getattr__, _ = lazy(__name__, {}, ("any_format", "gguf", "nanochat", "pretrained", "tiktoken"))


VERSION_KEY = "version"


def check_version(found: object, known: int, what: str, offset: int = 0) -> None:
    """Raises FormatError if a file's version is not one from 1 to `known`, the newest that this pybpe reads. `what`
    names the file and its format, "PATH: this manifest". `offset` is where the version is in the file, in bytes."""
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise FormatError(
            f"{what} has the version {found!r:.40}, which no pybpe writes: it is damaged or was edited", offset
        )
    if found > known:
        raise FormatError(
            f"{what} has version {found}, which a newer pybpe made; pybpe {__version__} reads versions up to {known}:"
            " update pybpe",
            offset,
        )


def check_version_of(content: Mapping[str, Any], known: int, what: str) -> None:
    """Does the same for a JSON object with the member "version"."""
    check_version(content.get(VERSION_KEY, 1), known, what)
