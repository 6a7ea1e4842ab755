"""Token files for pre-training: from texts to shards, split, counted and hashed."""

from .binarize import binarize
from .manifest import Manifest, ShardRecord

__all__ = ["Manifest", "ShardRecord", "binarize"]
