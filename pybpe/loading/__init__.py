"""Turns token files and documents into batches for training.

windows.py, documents.py      windows of equal length in a stream of ids, and the documents in them
row_files.py                  packed rows in formats that have columns
sampling.py, mixture.py       the order of windows: of one source, and of several
torch_data.py                 datasets and a DataLoader for PyTorch
document_rows.py              documents straight into batches
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from . import documents as documents
    from .document_rows import DocumentRows as DocumentRows
    from .mixture import Mixture as Mixture
    from .torch_data import MixtureDataset as MixtureDataset
    from .torch_data import TokenDataset as TokenDataset
    from .torch_data import create_dataloader as create_dataloader
    from .windows import PackedSequences as PackedSequences

if not TYPE_CHECKING:  # a type checker would accept every misspelled name
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "document_rows": "DocumentRows",
            "mixture": "Mixture",
            "torch_data": "MixtureDataset TokenDataset create_dataloader",
            "windows": "PackedSequences",
        },
        ["documents"],
    )
    __all__ = __dir__()
