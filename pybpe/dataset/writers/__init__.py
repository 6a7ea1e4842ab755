"""The formats of token files, by name."""

from . import llmc, megatron, npy, parquet, raw, webdataset
from .base import Finished, Format

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT for module in (llmc, raw, npy, megatron, parquet, webdataset)
}

__all__ = ["FORMATS", "Finished", "Format"]
