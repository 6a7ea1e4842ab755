"""manifest.json: what is in a folder of token files, and how it was made."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from .. import _binding
from ..pretokenize import open_input

FILE_NAME = "manifest.json"


@dataclass(frozen=True)
class ShardRecord:
    """One token file.

    Attributes:
        file: its name, in the folder of the manifest.
        tokens: how many it holds.
        bytes: its size.
        sha256: of the whole file, in hex.
    """

    file: str
    tokens: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What is in a folder of token files.

    Attributes:
        settings: the arguments of `binarize` that influence the files.
        tokenizer: n_vocab, pattern, normalizer, and its fingerprint (Model.fingerprint).
        text_bytes: bytes of text that were encoded, by split.
        shards: the files, by split, in order.
    """

    settings: Mapping[str, object]
    tokenizer: Mapping[str, object]
    text_bytes: Mapping[str, int] = field(default_factory=dict)
    shards: Mapping[str, list[ShardRecord]] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """In all splits."""
        return sum(self.split_tokens(split) for split in self.shards)

    def split_tokens(self, split: str) -> int:
        """In one split."""
        return sum(shard.tokens for shard in self.shards[split])

    def save(self, folder: str) -> None:
        """Writes manifest.json into a folder, atomically."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        _binding.write_file(os.path.join(folder, FILE_NAME), text.encode("utf-8"))


def record_shard(path: str, tokens: int) -> ShardRecord:
    """The record of a finished file."""
    return ShardRecord(os.path.basename(path), tokens, os.path.getsize(path), file_sha256(path))


def file_sha256(path: str) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with open_input(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
