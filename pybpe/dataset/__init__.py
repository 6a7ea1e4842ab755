"""Token files for pre-training: from texts to shards, split, counted and hashed."""

from .binarization import binarize
from .manifest import Manifest, ShardRecord
from .preparation import prepare

__all__ = ["Manifest", "ShardRecord", "binarize", "prepare"]
