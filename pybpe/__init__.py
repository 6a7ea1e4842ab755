"""pybpe: train a byte-level BPE tokenizer on your own corpus, turn the corpus into token files, and train
GPT-2 on them with llm.c.

    tok = pybpe.train("novel.txt", vocab_size=20000, special_tokens=["<|endoftext|>"])
    ids = tok.encode("Once upon a time")
    pybpe.binarize(tok, "novel.txt", "out")

A C library (csrc/pybpe.h) does the work. This package calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy

if TYPE_CHECKING:  # the names of _NAMES and _MODULES, for type checkers
    from . import corpus as corpus
    from . import errors as errors
    from . import loading as loading
    from . import viz as viz
    from ._version import __version__ as __version__
    from .analysis.bits_per_byte import BitsPerByte as BitsPerByte
    from .analysis.bits_per_byte import bits_per_byte as bits_per_byte
    from .analysis.comparison import Comparison as Comparison
    from .analysis.comparison import compare as compare
    from .encodings import get_encoding as get_encoding
    from .errors import Error as Error
    from .model import Template as Template
    from .model.remap import padded_vocab_size as padded_vocab_size
    from .tokenizer import Tokenizer as Tokenizer
    from .tokenizer.decoding import DecodeStream as DecodeStream
    from .tokens.binarization import binarize as binarize
    from .tokens.binarization import encode_files as encode_files
    from .tokens.joining import join as join
    from .tokens.manifest import Manifest as Manifest
    from .tokens.mix import MixPlan as MixPlan
    from .tokens.mix import mix as mix
    from .tokens.mix import plan_mix as plan_mix
    from .tokens.pack import pack as pack
    from .tokens.preparation import prepare as prepare
    from .trainer import train as train
    from .trainer import train_bpe as train_bpe
    from .training.counting import count_words as count_words
    from .training.counts import Counts as Counts

# The modules that the names come from.
_NAMES = {
    "_version": "__version__",
    "analysis.bits_per_byte": "BitsPerByte bits_per_byte",
    "analysis.comparison": "Comparison compare",
    "encodings": "get_encoding",
    "errors": "Error",
    "model": "Template",
    "model.remap": "padded_vocab_size",
    "tokenizer": "Tokenizer",
    "tokenizer.decoding": "DecodeStream",
    "tokens.binarization": "binarize encode_files",
    "tokens.joining": "join",
    "tokens.manifest": "Manifest",
    "tokens.mix": "MixPlan mix plan_mix",
    "tokens.pack": "pack",
    "tokens.preparation": "prepare",
    "trainer": "train train_bpe",
    "training.counting": "count_words",
    "training.counts": "Counts",
}
_MODULES = ("corpus", "errors", "loading", "viz")

if not TYPE_CHECKING:  # pragma: no branch (a type checker would accept every misspelled name)
    __getattr__, __dir__ = lazy(__name__, _NAMES, _MODULES)
    __all__ = sorted({*__dir__()}.difference(_MODULES))
