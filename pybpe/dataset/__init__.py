"""Token files for pre-training: turns texts into shards (split, counted and hashed), and shards into batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import documents as documents
    from .array_output import encode_files
    from .binarization import binarize
    from .joining import join
    from .manifest import Manifest, ShardRecord
    from .packed_rows import pack
    from .packing import PackedSequences
    from .preparation import prepare
    from .serving import Mixture
    from .torch_data import MixtureDataset, TokenDataset, create_dataloader

__all__ = [
    "Manifest",
    "Mixture",
    "MixtureDataset",
    "PackedSequences",
    "ShardRecord",
    "TokenDataset",
    "binarize",
    "create_dataloader",
    "documents",
    "encode_files",
    "join",
    "pack",
    "prepare",
]


# Where each name comes from. Modules are loaded on first use; PyTorch alone takes seconds.
_HOMES = {
    "Manifest": "manifest",
    "Mixture": "serving",
    "MixtureDataset": "torch_data",
    "PackedSequences": "packing",
    "ShardRecord": "manifest",
    "TokenDataset": "torch_data",
    "binarize": "binarization",
    "create_dataloader": "torch_data",
    "encode_files": "array_output",
    "join": "joining",
    "pack": "packed_rows",
    "prepare": "preparation",
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
