"""Token files for pre-training: from texts to shards, split, counted and hashed; and from shards to batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .array_output import encode_files
from .binarization import binarize
from .manifest import Manifest, ShardRecord
from .packing import PackedSequences
from .preparation import prepare

if TYPE_CHECKING:
    from .torch_data import TokenDataset, create_dataloader

__all__ = [
    "Manifest",
    "PackedSequences",
    "ShardRecord",
    "TokenDataset",
    "binarize",
    "create_dataloader",
    "encode_files",
    "prepare",
]


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to load, so it is loaded when something first needs it.
    if name in ("TokenDataset", "create_dataloader"):
        from . import torch_data

        return getattr(torch_data, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
