"""The sources of a mixture: folders of token files, and texts, which are encoded into such folders first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ...errors import ArgumentError, FormatError, file_errors
from ...reading.documents import Kinds, check_mark
from ...reading.files import Staged, corpus_files
from ...reading.input_file import InputFile
from ...reading.planning import Piece, Plan
from ...reading.splits import SPLIT_NAMES, SplitOptions
from ...reading.streams import file_sha256
from ...support.output_files import remove_folder
from ...support.run_options import RunOptions
from ...tokenizer import Tokenizer
from ..binarization import binarize
from ..encoding import TaskEncoder
from ..finished import call_of, check_contents, check_disjoint, finished_manifest
from ..formats import FORMATS
from ..manifest import Manifest, manifest_name, split_paths
from ..token_files import TokenStream
from .documents import Documents, find_documents
from .recipe import Source

_FLAT = "llmc, raw, npy or megatron"
_FILES = 64  # most files from which pieces are encoded
_PIECES = 4  # least pieces, if the corpus has as many
_TASKS = 1000  # most tasks of a file from which pieces are taken

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class TokenSource:
    """A source whose tokens are there.

    Attributes:
        name: its name.
        folder: where the tokens are.
        manifest: describes them.
        sha256: the SHA-256 of the manifest's file, which has the hashes of the tokens.
        state: a hash of that, and of the sizes and times of the files. What a run that was killed has made of them is
            used only if it is the same.
    """

    name: str
    folder: str
    manifest: Manifest
    sha256: str
    state: str

    @classmethod
    def of(cls, name: str, folder: str, manifest: Manifest) -> TokenSource:
        """Looks at the files of a source."""
        sha256 = file_sha256(os.path.join(folder, manifest_name(folder)))
        seen: list[object] = [sha256]
        for file in manifest.file_names:
            with file_errors(os.path.join(folder, file), "cannot be examined"):
                status = os.stat(os.path.join(folder, file))
            seen.append((status.st_size, status.st_mtime_ns, status.st_ino))
        return cls(name, folder, manifest, sha256, hashlib.sha256(repr(seen).encode()).hexdigest())

    @classmethod
    def of_folder(cls, name: str, folder: str, tok: Tokenizer, out: str | None = None) -> TokenSource:
        """Opens a folder that binarize wrote.

        Raises:
            ArgumentError: it cannot be a source, for example because another tokenizer made it.
        """
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
        if out is not None and os.path.realpath(folder) == os.path.realpath(out):
            raise ArgumentError(f"{folder}: this is both a source and the output: choose another output")
        return cls.of(name, folder, manifest)

    @property
    def call(self) -> str:
        """A hash of what distinguishes the source from another one with the same name."""
        return self.sha256

    @property
    def splits(self) -> Sequence[float]:
        """The shares of the splits."""
        return [float(share) for share in self.manifest.settings.get("splits", ())]  # type: ignore[attr-defined]

    @property
    def inputs(self) -> list[str]:
        """The names of what it was made from."""
        return [name for name, _ in self.manifest.inputs]

    def train_tokens(self) -> int:
        """Returns the number of tokens in the train split."""
        return self.split_tokens("train")

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
        mark, n_vocab = int(tokenizer["eot"]), int(tokenizer["n_vocab"])  # type: ignore[call-overload]
        stream = TokenStream(split_paths(self.folder, self.manifest, split), str(self.manifest.settings.get("dtype")))
        found = find_documents(stream, mark, eot, n_vocab, folder)
        if len(found) != self.split_documents(split) or found.tokens != self.split_tokens(split):
            raise FormatError(
                f"{self.folder}: its {split} split has {len(found)} documents in {found.tokens} tokens, but the"
                f" manifest says {self.split_documents(split)} in {self.split_tokens(split)}: write the data again"
            )
        return found


@dataclass(frozen=True)
class TextSource:
    """A source that must be encoded.

    Attributes:
        source: what the recipe says.
        files: its files.
        tok: the tokenizer.
    """

    source: Source
    files: Sequence[InputFile]
    tok: Tokenizer

    @property
    def call(self) -> str:
        """See TokenSource."""
        return call_of((), Staged(list(self.files), {}, [file.identity for file in self.files]))

    @property
    def splits(self) -> Sequence[float]:
        """See TokenSource."""
        return self.source.split.splits

    @property
    def inputs(self) -> list[str]:
        """See TokenSource."""
        return [file.location for file in self.files]

    def train_tokens(self) -> int | None:
        """Estimates the number of tokens in the train split from a sample. Returns None if it must be read first."""
        tok, kinds = self.tok, Kinds(self.source.read, self.tok.model.eot)
        files = [file for file in self.files if file.size]
        check_mark(kinds, tok.special_tokens, tok.model.matching, files)
        if any(file.is_sequential or kinds.kind(file) == "parquet" for file in files):
            return None
        encoder = TaskEncoder(tok, kinds, (1.0,), "uint32")
        tokens = size = 0
        for piece in _sample(files, encoder):
            segments = encoder.segments(piece)
            tokens += sum(len(segment.ids) for segment in segments) + len(segments)  # a mark for each
            size += piece.end - piece.start
        shares, text_bytes = self.splits, sum(file.size or 0 for file in files)
        return round(text_bytes * tokens / max(1, size) * shares[0] / sum(shares))

    def encoded(self, folder: str, run: RunOptions) -> TokenSource:
        """Encodes the texts into a folder. A run that was killed may have begun to, perhaps with another recipe."""
        source, read = self.source, self.source.read

        def encode() -> Manifest:
            return binarize(
                self.tok,
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
        return TokenSource.of(source.name, folder, manifest)


def _sample(files: Sequence[InputFile], encoder: TaskEncoder) -> Iterator[Piece]:
    """Yields the first pieces of some tasks of some files, spread over the corpus."""
    some, cutting = _spread(files, _FILES), encoder.tok._encoder.cutting
    for file in some:
        tasks = list(islice(Plan([file], encoder.kinds, SplitOptions((1,)), cutting).tasks(), _TASKS))
        for task in _spread(tasks, max(1, _PIECES // len(some))):
            yield from islice(encoder.task_pieces(task), 1)


def _spread(items: Sequence[_Item], most: int) -> Sequence[_Item]:
    """Returns at most so many items, at equal distances."""
    return items[:: max(1, -(-len(items) // most))]


def open_sources(sources: Sequence[Source], tok: Tokenizer, out: str | None = None) -> list[TokenSource | TextSource]:
    """Opens all sources, before anything is encoded. `out` is the output folder, which cannot be a source.

    Raises:
        ArgumentError: two have the same text, or other splits: a document that one holds out could be trained on
            through the other. What TokenSource.of_folder raises.
    """
    found: list[TokenSource | TextSource] = []
    for source in sources:
        if source.data is not None:
            found.append(TokenSource.of_folder(source.name, source.data, tok, out))
        else:
            files = corpus_files(source.inputs, source.read, () if out is None else [out])
            found.append(TextSource(source, files, tok))
    names = [f"sources.{source.name}" for source in sources]
    for name, other in zip(names, found):
        if _shares(other.splits) != _shares(found[0].splits):
            raise ArgumentError(
                f"{names[0]} and {name}: their splits differ, so a document that one holds out may be trained on"
                " through the other: make both with the same splits"
            )
    check_disjoint([(name, each.inputs) for name, each in zip(names, found)])
    check_contents([(name, each.manifest) for name, each in zip(names, found) if isinstance(each, TokenSource)])
    return found


def _shares(splits: Sequence[float]) -> list[float]:
    return [share / sum(splits) for share in splits]
