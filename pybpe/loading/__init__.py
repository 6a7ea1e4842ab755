"""Turns token files and texts into batches for training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import documents as documents
    from .document_rows import DocumentRows
    from .mixture import Mixture
    from .torch_data import MixtureDataset, TokenDataset, create_dataloader
    from .windows import PackedSequences

__all__ = [
    "DocumentRows",
    "Mixture",
    "MixtureDataset",
    "PackedSequences",
    "TokenDataset",
    "create_dataloader",
    "documents",
]


# Where each name comes from. Modules are loaded on first use; PyTorch alone takes seconds.
_HOMES = {
    "DocumentRows": "document_rows",
    "Mixture": "mixture",
    "MixtureDataset": "torch_data",
    "PackedSequences": "windows",
    "TokenDataset": "torch_data",
    "create_dataloader": "torch_data",
}


if not TYPE_CHECKING:  # a type checker would accept every misspelled name

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _HOMES:
            return getattr(import_module("." + _HOMES[name], __name__), name)
        if name == "documents" or name in _HOMES.values():
            return import_module("." + name, __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__all__)
