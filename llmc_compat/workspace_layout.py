"""A workspace: a folder in which unmodified llm.c starts training.

llm.c's CPU trainer has its paths compiled in, so everything is placed where it looks, relative to the folder:

    gpt2_124M.bin                                   the model (fp32; gpt2_124M_bf16.bin for bf16)
    gpt2_tokenizer.bin                              the tokenizer
    dev/data/tinyshakespeare/tiny_shakespeare_*.bin links to the first shards, which the CPU trainer reads
    data/                                           all shards, tokenizer.json, manifest.json
    README.md                                       the commands, computed for this data
"""

from __future__ import annotations

from dataclasses import dataclass

import pybpe

from .checks.names import MODEL_NAMES
from .gpt2_config import GPT2Config

NAME = "corpus"  # the shards' name prefix


@dataclass(frozen=True)
class Workspace:
    """What `make_workspace` made.

    Attributes:
        folder: the workspace.
        tokenizer, manifest, config: its parts.
        dtype: the model's type.
    """

    folder: str
    tokenizer: pybpe.Tokenizer
    manifest: pybpe.Manifest
    config: GPT2Config
    dtype: str

    @property
    def model_name(self) -> str:
        """The checkpoint's file."""
        return MODEL_NAMES[self.dtype]

    def shards(self, split: str) -> str:
        """The pattern by which llm.c finds the shards of a split."""
        return f"data/{NAME}_{split}_*.bin"
