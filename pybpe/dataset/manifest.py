"""manifest.json: what is in a folder of token files, and how it was made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import _binding
from ..errors import ArgumentError, FormatError
from ..pretokenize import open_input
from .hashing import file_sha256

FILE_NAME = "manifest.json"
HIDDEN_NAME = "_manifest.json"  # beside parquet: readers of whole folders skip names that begin so
FILE_NAMES = (FILE_NAME, HIDDEN_NAME)


def manifest_name(folder: str) -> str:
    """What the manifest of a folder is called; FILE_NAME if there is none."""
    has_hidden = os.path.exists(os.path.join(folder, HIDDEN_NAME))
    return HIDDEN_NAME if has_hidden and not os.path.exists(os.path.join(folder, FILE_NAME)) else FILE_NAME


@dataclass(frozen=True)
class FileRecord:
    """A file beside the token files.

    Attributes:
        file: its name, in the folder of the manifest.
        bytes: its size.
        sha256: of the whole file, in hex.
    """

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ShardRecord:
    """One token file.

    Attributes:
        file, bytes, sha256: as in FileRecord.
        tokens: how many it holds.
        documents: how many begin in it.
        text_bytes: of the text that its tokens stand for, without marks.
        sources: (file, start, end) of what was read for it: bytes, of the unpacked text if the file is
            compressed; rows of a parquet file. Where documents are split by hash, those of other splits
            lie between.
    """

    file: str
    tokens: int
    bytes: int
    sha256: str
    documents: int = 0
    text_bytes: int = 0
    sources: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True, repr=False)
class Manifest:
    """What is in a folder of token files.

    Attributes:
        settings: the arguments of `binarize` that influence the files.
        tokenizer: n_vocab, pattern, normalizer, the id of <|endoftext|>, and its fingerprint (Model.fingerprint).
        text_bytes: bytes of text that were encoded, without marks, by split.
        shards: the token files, by split, in order.
        files: what else belongs to them, such as Megatron's indexes.
    """

    settings: Mapping[str, object]
    tokenizer: Mapping[str, object]
    text_bytes: Mapping[str, int] = field(default_factory=dict)
    shards: Mapping[str, list[ShardRecord]] = field(default_factory=dict)
    files: list[FileRecord] = field(default_factory=list)

    def __repr__(self) -> str:
        splits = (
            f"{split}: {self.split_tokens(split)} tokens, {self.split_documents(split)} documents, {len(found)} files"
            for split, found in self.shards.items()
        )
        return f"Manifest({'; '.join(splits)})"

    @property
    def tokens(self) -> int:
        """In all splits."""
        return sum(self.split_tokens(split) for split in self.shards)

    def split_tokens(self, split: str) -> int:
        """In one split."""
        return sum(shard.tokens for shard in self.shards[split])

    def split_documents(self, split: str) -> int:
        """In one split."""
        return sum(shard.documents for shard in self.shards[split])

    @property
    def file_names(self) -> list[str]:
        """All files that it describes."""
        shards = [record.file for records in self.shards.values() for record in records]
        return shards + [record.file for record in self.files]

    def to_json(self) -> bytes:
        """The content of manifest.json."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        return text.encode("utf-8", "surrogateescape")

    @classmethod
    def load(cls, folder: _binding.PathLike) -> Manifest:
        """Reads the manifest.json of a folder, or the _manifest.json beside parquet.

        Raises:
            FileError: there is none. FormatError: it is no manifest, or names a file outside its folder.
        """
        name = _binding.path_text(folder)
        path = os.path.join(name, manifest_name(name))
        with open_input(path) as stream:
            data = stream.read()
        try:
            content = json.loads(data.decode("utf-8", "surrogateescape"))
            shards = {s: [ShardRecord(**record) for record in found] for s, found in content["shards"].items()}
            files = [FileRecord(**record) for record in content.get("files", [])]
            manifest = cls(content["settings"], content["tokenizer"], content["text_bytes"], shards, files)
            _check_types(manifest)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"{path}: not a manifest of token files ({type(error).__name__}: {error})") from None
        for name in manifest.file_names:
            if not is_plain_name(name):
                raise FormatError(f"{path}: names the file {name!r}, which is not in its folder")
        return manifest


def _check_types(manifest: Manifest) -> None:
    records: list[ShardRecord | FileRecord] = [*manifest.files]
    for shards in manifest.shards.values():
        records += shards
    for record in records:
        numbers = [value for key, value in vars(record).items() if key not in ("file", "sha256", "sources")]
        if not all(isinstance(value, int) and value >= 0 for value in numbers) or not isinstance(record.sha256, str):
            raise ValueError(f"the record of {record.file!r} is not right")
    if not all(isinstance(part, dict) for part in (manifest.settings, manifest.tokenizer, manifest.text_bytes)):
        raise ValueError("settings, tokenizer and text_bytes must be objects")
    if not all(isinstance(size, int) and size >= 0 for size in manifest.text_bytes.values()):
        raise ValueError("text_bytes must be numbers")


def is_plain_name(name: object) -> bool:
    """Whether it names a file in the folder itself: a manifest from elsewhere must not lead out of it."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        return False
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # surrogates that stand for no byte
        return False
    return True


def check_name(name: str) -> None:
    """ArgumentError unless token files can be called so: it is the beginning of their names."""
    if not isinstance(name, str) or not is_plain_name(name + "_"):
        raise ArgumentError(f"name is the beginning of file names, which / cannot be in, not {name!r}")


def record_shard(path: str, tokens: int) -> ShardRecord:
    """The record of a finished token file of which no more is known."""
    return ShardRecord(os.path.basename(path), tokens, os.path.getsize(path), file_sha256(path))


def record_file(path: str) -> FileRecord:
    """The record of a finished file."""
    return FileRecord(os.path.basename(path), os.path.getsize(path), file_sha256(path))
