"""Opens the sources of a mixture: folders of token files, and texts, which are encoded into such folders first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import ArgumentError, FormatError, file_errors
from ...reading.files import corpus_files
from ...reading.input_file import InputFile
from ...reading.options import ReadOptions
from ...reading.splits import SPLIT_NAMES
from ...reading.staging import Staged
from ...reading.streams import file_sha256
from ...support.output_files import remove_folder
from ...support.run_options import RunOptions
from ...tokenizer import Tokenizer
from ..binarization import binarize
from ..finished import call_of, check_contents, check_disjoint, finished_manifest
from ..formats import FORMATS
from ..manifest import Manifest, manifest_name, split_paths
from ..token_files import TokenStream
from .documents import Documents, Marking, find_documents
from .recipe import Source

_FLAT = "llmc, raw, npy or megatron"


@dataclass(frozen=True)
class Opened:
    """A source whose tokens are there.

    Attributes:
        name: its name.
        folder: where the tokens are.
        manifest: describes them.
        sha256: the SHA-256 of the manifest's file, which has those of the tokens.
        state: a hash of that, and of the sizes and times of the files. What a run that was killed has made of them is
            used only if it is the same.
    """

    name: str
    folder: str
    manifest: Manifest
    sha256: str
    state: str

    @classmethod
    def of(cls, name: str, folder: str, manifest: Manifest) -> Opened:
        """Looks at the files of a source."""
        sha256 = file_sha256(os.path.join(folder, manifest_name(folder)))
        seen: list[object] = [sha256]
        for file in manifest.file_names:
            with file_errors(os.path.join(folder, file), "cannot be examined"):
                status = os.stat(os.path.join(folder, file))
            seen.append((status.st_size, status.st_mtime_ns, status.st_ino))
        return cls(name, folder, manifest, sha256, hashlib.sha256(repr(seen).encode()).hexdigest())

    def split_tokens(self, split: str) -> int:
        """Returns the number of tokens in a split, which the source may not have."""
        return self.manifest.split_tokens(split) if split in self.manifest.shards else 0

    def split_documents(self, split: str) -> int:
        """Returns the number of documents in a split."""
        return self.manifest.split_documents(split) if split in self.manifest.shards else 0

    def documents(self, folder: str) -> list[Documents | None]:
        """Finds the documents of each split. Files without names in `folder` hold their lengths.

        Raises:
            FormatError: the tokens are not what the manifest says.
        """
        return [self._documents(split, folder) for split in SPLIT_NAMES]

    def _documents(self, split: str, folder: str) -> Documents | None:
        if not self.split_tokens(split):
            return None
        eot, tokenizer = str(self.manifest.settings["eot"]), self.manifest.tokenizer
        marking = Marking(int(tokenizer["eot"]), eot, int(tokenizer["n_vocab"]))  # type: ignore[call-overload]
        stream = TokenStream(split_paths(self.folder, self.manifest, split), str(self.manifest.settings.get("dtype")))
        found = find_documents(stream, marking, folder)
        if len(found) != self.split_documents(split) or found.tokens != self.split_tokens(split):
            raise FormatError(
                f"{self.folder}: its {split} split has {len(found)} documents in {found.tokens} tokens, but the"
                f" manifest says {self.split_documents(split)} in {self.split_tokens(split)}: write the data again"
            )
        return found


def open_folder(source: Source, tok: Tokenizer) -> Opened:
    """Opens a folder that binarize wrote.

    Raises:
        ArgumentError: it cannot be a source, for example because another tokenizer made it.
    """
    folder = source.data
    assert folder is not None
    manifest = finished_manifest(folder, tok)
    settings = manifest.settings
    form = FORMATS.get(str(settings.get("format")))
    if settings.get("packing") is not None:
        raise ArgumentError(f"{folder}: has packed rows: name the folder that they were made from")
    if settings.get("mixture") is not None:
        raise ArgumentError(f"{folder}: is a mixture already: name the folders that it was made from")
    if form is None or not form.is_flat:
        raise ArgumentError(f"{folder}: has files of the format {settings.get('format')}: a source must be {_FLAT}")
    if settings.get("eot") not in ("prepend", "append") or tok.eot_token is None:
        raise ArgumentError(f"{folder}: has no end of text between documents: write it with eot='prepend'")
    return Opened.of(source.name, folder, manifest)


def check_sources(sources: Sequence[Source], tok: Tokenizer, out: str | None = None) -> None:
    """Looks at all sources, before anything is encoded.

    Raises:
        ArgumentError: two have the same text, or other splits: a document that one holds out could be trained on
            through the other. What `open_folder` raises.
    """
    first: tuple[str, list[float]] | None = None
    parts: list[tuple[str, Sequence[str]]] = []
    folders: list[tuple[str, Manifest]] = []
    for source in sources:
        name = f"sources.{source.name}"
        if source.data is not None:
            manifest = open_folder(source, tok).manifest
            shares = [float(share) for share in manifest.settings.get("splits", ())]  # type: ignore[attr-defined]
            parts.append((name, [path for path, _ in manifest.inputs]))
            folders.append((name, manifest))
        else:
            shares = list(source.split.splits)
            files = corpus_files(source.inputs, source.read, () if out is None else [out])
            parts.append((name, [file.location for file in files]))
        shares = [share / sum(shares) for share in shares]
        if first is None:
            first = name, shares
        elif first[1] != shares:
            raise ArgumentError(
                f"{first[0]} and {name}: their splits differ, so a document that one holds out may be trained on"
                " through the other: make both with the same splits"
            )
    check_disjoint(parts)
    check_contents(folders)


def open_sources(sources: Sequence[Source], tok: Tokenizer, out: str, staging: str, run: RunOptions) -> list[Opened]:
    """Opens all sources. First checks all folders, then encodes texts into `staging`.

    Args:
        sources: those of the recipe.
        tok: the tokenizer.
        out: the output folder, which cannot be a source.
        staging: encoded texts go into folders whose paths begin with this. A run that was killed resumes there.
        run: how to use the machine.
    """
    folders = {source.name: _not(out, open_folder(source, tok)) for source in sources if source.data is not None}
    return [
        folders[source.name] if source.data is not None else _encoded(source, tok, f"{staging}{number}", run)
        for number, source in enumerate(sources)
    ]


def source_states(sources: Sequence[Source], out: str) -> tuple[list[str], list[InputFile]]:
    """Returns what distinguishes each source from another one with the same name; and the files with texts."""
    states, texts = list[str](), list[InputFile]()
    for source in sources:
        if source.data is not None:
            states.append(file_sha256(os.path.join(source.data, manifest_name(source.data))))
        else:
            files = corpus_files(source.inputs, source.read, [out])
            states.append(call_of((), Staged(files, {}, [file.identity for file in files])))
            texts += files
    return states, texts


def _not(out: str, source: Opened) -> Opened:
    if os.path.realpath(source.folder) == os.path.realpath(out):
        raise ArgumentError(f"{source.folder}: this is both a source and the output: choose another output")
    return source


def _encoded(source: Source, tok: Tokenizer, folder: str, run: RunOptions) -> Opened:
    """Encodes a source into a folder. A run that was killed may have begun to, perhaps with another recipe."""
    read: ReadOptions = source.read

    def encode() -> Manifest:
        return binarize(
            tok,
            list(source.inputs),
            folder,
            format="llmc",
            splits=source.split.splits,
            split_by=source.split.split_by,
            eot="prepend",
            min_shard_tokens=0,
            documents=read.documents,
            text_key=read.text_key,
            encoding=read.encoding,
            name="text",
            workers=run.workers,
            progress=run.progress,
        )

    try:
        manifest = encode()
    except ArgumentError:  # if these are tokens of other texts
        remove_folder(folder)
        manifest = encode()
    return Opened.of(source.name, folder, manifest)
