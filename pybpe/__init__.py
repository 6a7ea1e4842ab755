"""pybpe: train a byte-level BPE tokenizer on your own corpus, turn the corpus into token files, and train
GPT-2 on them with llm.c.

    tok = pybpe.train("novel.txt", vocab_size=20000, special_tokens=["<|endoftext|>"])
    ids = tok.encode("Once upon a time")
    pybpe.binarize(tok, "novel.txt", "out")

A C library (csrc/pybpe.h) does the work; this package calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import corpus as corpus
    from . import errors as errors
    from . import loading as loading
    from . import teaching as teaching
    from . import viz as viz
    from .analysis.advice import Advice, advise
    from .analysis.comparison import compare
    from .analysis.comparison_result import Comparison
    from .decoding import DecodeStream
    from .encodings import get_encoding
    from .errors import (
        ArgumentError,
        Error,
        FileError,
        FormatError,
        LimitError,
        MissingExtraError,
        OutOfMemoryError,
        UnknownIdError,
        UnsupportedError,
        WorkerError,
    )
    from .padding import padded_vocab_size
    from .template import Template
    from .tokenizer import Tokenizer
    from .tokens.array_output import encode_files
    from .tokens.binarization import binarize
    from .tokens.joining import join
    from .tokens.manifest import Manifest
    from .tokens.mix import MixPlan, mix, plan_mix
    from .tokens.pack import pack
    from .tokens.preparation import prepare
    from .trainer import train, train_bpe
    from .training.counting import count_words
    from .training.counts import Counts

__all__ = [
    "Advice",
    "ArgumentError",
    "Comparison",
    "Counts",
    "DecodeStream",
    "Error",
    "FileError",
    "FormatError",
    "LimitError",
    "Manifest",
    "MissingExtraError",
    "MixPlan",
    "OutOfMemoryError",
    "Template",
    "Tokenizer",
    "UnknownIdError",
    "UnsupportedError",
    "WorkerError",
    "__version__",
    "advise",
    "binarize",
    "compare",
    "count_words",
    "encode_files",
    "get_encoding",
    "join",
    "mix",
    "pack",
    "padded_vocab_size",
    "plan_mix",
    "prepare",
    "train",
    "train_bpe",
]


# Where each name comes from. Python loads a module at its first use, so a program that encodes never loads the trainer.
_HOMES = {
    "Advice": "analysis.advice",
    "ArgumentError": "errors",
    "Comparison": "analysis.comparison_result",
    "Counts": "training.counts",
    "DecodeStream": "decoding",
    "Error": "errors",
    "FileError": "errors",
    "FormatError": "errors",
    "LimitError": "errors",
    "Manifest": "tokens.manifest",
    "MissingExtraError": "errors",
    "MixPlan": "tokens.mix",
    "OutOfMemoryError": "errors",
    "Template": "template",
    "Tokenizer": "tokenizer",
    "UnknownIdError": "errors",
    "UnsupportedError": "errors",
    "WorkerError": "errors",
    "advise": "analysis.advice",
    "binarize": "tokens.binarization",
    "compare": "analysis.comparison",
    "count_words": "training.counting",
    "encode_files": "tokens.array_output",
    "get_encoding": "encodings",
    "join": "tokens.joining",
    "mix": "tokens.mix",
    "pack": "tokens.pack",
    "padded_vocab_size": "padding",
    "plan_mix": "tokens.mix",
    "prepare": "tokens.preparation",
    "train": "trainer",
    "train_bpe": "trainer",
}


_MODULES = ("corpus", "errors", "loading", "teaching", "viz")

if not TYPE_CHECKING:  # pragma: no branch (a type checker would accept every misspelled name)

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _HOMES:
            return getattr(import_module("." + _HOMES[name], __name__), name)
        if name in _MODULES or name in _HOMES.values():
            return import_module("." + name, __name__)
        from .other_libraries import unknown_attribute

        raise unknown_attribute(f"module {__name__!r}", name)

    def __dir__() -> list[str]:
        return sorted([*__all__, *_MODULES])
