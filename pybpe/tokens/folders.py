"""Folders of finished token files, from which `join`, `mix` and `pack` make others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import ArgumentError, FormatError
from ..reading.paths import STDIN
from ..reading.streams import file_sha256
from ..support.call_paths import identity
from ..tokenizer import Tokenizer
from ..urls import is_url
from .finished import finished_manifest
from .formats import FORMATS
from .manifest import Manifest, ShardRecord, manifest_name, split_paths


class TokenFolder(NamedTuple):
    """A folder of finished token files.

    Attributes:
        path: the folder.
        manifest: what is in it.
        sha256: of the manifest's file, which has the hashes of the tokens.
    """

    path: str
    manifest: Manifest
    sha256: str

    @classmethod
    def open(cls, path: str, tok: Tokenizer) -> TokenFolder:
        """Opens a folder.

        Raises:
            ArgumentError: as finished_manifest; or the folder has packed rows. FileError, FormatError: there is no
            manifest, or it is damaged.
        """
        manifest = finished_manifest(path, tok)
        if manifest.packing is not None:
            raise ArgumentError(f"{path}: has packed rows: name the folder that they were made from")
        return cls(path, manifest, file_sha256(os.path.join(path, manifest_name(path))))

    @property
    def inputs(self) -> list[str]:
        """The names of what it was made from."""
        return [name for name, _ in self.manifest.inputs]

    def paths(self, split: str) -> list[str]:
        """Returns the token files of a split, in order.

        Raises:
            ArgumentError, FileError, FormatError: as split_paths, and as `checked`.
        """
        split_paths(
            self.path, self.manifest, split
        )  # a file that is missing or too short is named before others are read
        return [self.checked(record) for record in self.manifest.shards[split]]

    def checked(self, record: ShardRecord) -> str:
        """Returns the path of a token file. Raises FormatError if the hash of its content is not the manifest's: other
        token files must not be made from damaged ones, and their own manifest would hide it."""
        path = os.path.join(self.path, record.file)
        if file_sha256(path) != record.sha256:
            raise FormatError(f"{path}: does not match its manifest: `pybpe verify` says more; make the folder again")
        return path

    def check_documents(self, out: str | None) -> None:
        """Raises ArgumentError unless the folder has the documents of its inputs, each with a mark, or if it is the
        output folder `out`."""
        settings = self.manifest.settings
        form = FORMATS.get(str(settings.get("format")))
        if out is not None and os.path.realpath(self.path) == os.path.realpath(out):
            raise ArgumentError(f"{self.path}: this is also the output folder: choose another output")
        if self.manifest.mixture is not None:
            raise ArgumentError(f"{self.path}: is a mixture: name all of its sources in one recipe")
        if form is None or not form.is_flat:
            told = "expected llmc, raw, npy or megatron"
            raise ArgumentError(f"{self.path}: has files of the format {settings.get('format')}, {told}")
        if settings.get("eot") not in ("prepend", "append") or self.manifest.tokenizer.get("eot") is None:
            raise ArgumentError(f"{self.path}: has no end of text between documents: write it with eot='prepend'")


def check_different(parts: Sequence[tuple[str, Iterable[str], Manifest | None]]) -> None:
    """Raises ArgumentError if two parts were made from the same file, or have the same token files, because they are
    copies or were made from the same text: documents would occur twice in what is made of both.

    Args:
        parts: the name of each, the names of its inputs, and its manifest if it has one.
    """
    seen: dict[object, int] = {}
    for number, (name, inputs, _) in enumerate(parts):
        for path in inputs:
            if path == STDIN:  # another text each time: the token files tell
                continue
            other = seen.setdefault(path if is_url(path) else identity(path) or path, number)
            if other != number:
                raise ArgumentError(
                    f"{parts[other][0]} and {name}: both were made from {path}, so its documents would occur"
                    " twice. If these are different files, give them different paths"
                )
    for number, (name, _, manifest) in enumerate(parts):
        if manifest is not None and manifest.tokens:
            files = tuple(record.sha256 for records in manifest.shards.values() for record in records)
            other = seen.setdefault(files, number)
            if other != number:
                told = "both have the same tokens, so their documents would occur twice"
                raise ArgumentError(f"{parts[other][0]} and {name}: {told}")
