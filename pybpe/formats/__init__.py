"""Tokenizer files, one format per module: tokenizer.json, vocab.json + merges.txt, tokenizer.bin (in C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import export as export
    from . import gguf as gguf
    from . import load as load
    from . import nanochat as nanochat
    from . import pretrained as pretrained
    from . import tiktoken as tiktoken
else:

    def __getattr__(name: str) -> Any:
        """Loads a module at its first use: most programs need one format."""
        from importlib import import_module

        if name not in ("export", "gguf", "load", "nanochat", "pretrained", "tiktoken"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f".{name}", __name__)
