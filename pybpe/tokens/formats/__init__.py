"""The formats of token files, by name."""

from .base import Finished, Format
from .flat import LLMC, NPY, RAW
from .megatron import FORMAT as MEGATRON
from .rows import PARQUET, WEBDATASET

FORMATS: dict[str, Format] = {form.name: form for form in (LLMC, RAW, NPY, MEGATRON, PARQUET, WEBDATASET)}

__all__ = ["FORMATS", "Finished", "Format"]
