"""pybpe: train a byte-level BPE tokenizer on your own corpus, turn the corpus into token files, and train
GPT-2 on them with llm.c.

    tok = pybpe.train("novel.txt", vocab_size=20000, special_tokens=["<|endoftext|>"])
    ids = tok.encode("Once upon a time")
    pybpe.binarize(tok, "novel.txt", "out")

The work is done by a C library (csrc/pybpe.h); this package drives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .counts import Counts, count_words
from .decode_stream import DecodeStream
from .errors import (
    ArgumentError,
    Error,
    FileError,
    FormatError,
    LimitError,
    MissingExtraError,
    OutOfMemoryError,
    UnsupportedError,
    WorkerError,
)
from .padding import padded_vocab_size
from .template import Template
from .tokenizer import Tokenizer
from .trainer import train, train_bpe

if TYPE_CHECKING:
    from .dataset import Manifest, binarize, encode_files, prepare

__all__ = [
    "ArgumentError",
    "Counts",
    "DecodeStream",
    "Error",
    "FileError",
    "FormatError",
    "LimitError",
    "Manifest",
    "MissingExtraError",
    "OutOfMemoryError",
    "Template",
    "Tokenizer",
    "UnsupportedError",
    "WorkerError",
    "__version__",
    "binarize",
    "count_words",
    "encode_files",
    "padded_vocab_size",
    "prepare",
    "train",
    "train_bpe",
]


def __getattr__(name: str) -> Any:
    # The dataset part is loaded when it is first used: a command that only encodes starts faster.
    if name in ("binarize", "encode_files", "prepare", "Manifest"):
        from . import dataset

        return getattr(dataset, name)
    if name == "viz":
        from importlib import import_module

        return import_module(".viz", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
