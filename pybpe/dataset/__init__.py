"""Token files for pre-training: from texts to shards, split, counted and hashed; and from shards to batches."""

from .binarization import binarize
from .manifest import Manifest, ShardRecord
from .packing import PackedSequences
from .preparation import prepare

__all__ = ["Manifest", "PackedSequences", "ShardRecord", "binarize", "prepare"]
