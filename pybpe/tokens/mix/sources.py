"""The sources of a mixture: folders of token files, and texts, which are encoded into such folders first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, FormatError, file_errors
from ...reading.documents import Kinds, check_mark
from ...reading.files import Staged, corpus_files
from ...reading.input_file import InputFile
from ...reading.planning import Plan
from ...reading.sample import Sample
from ...reading.splits import SPLIT_NAMES, SplitOptions
from ...reading.streams import file_sha256
from ...support.output_files import remove_folder
from ...support.run_options import RunOptions
from ...tokenizer import Tokenizer
from ..binarization import binarize
from ..encoding import TaskEncoder
from ..finished import call_of, check_different, finished_manifest
from ..formats import FORMATS
from ..manifest import Manifest, manifest_name, split_paths
from ..token_files import TokenStream
from .documents import Documents, find_documents
from .recipe import Source

_FLAT = "llmc, raw, npy or megatron"
_SAMPLE_BYTES = 1 << 26  # of texts, whose tokens are estimated


@dataclass(frozen=True)
class TokenSource:
    """A source whose tokens are there.

    Attributes:
        name: its name.
        folder: where the tokens are.
        manifest: describes them.
        call: distinguishes it from another source with this name: the SHA-256 of the manifest's file, which has the
            hashes of the tokens.
    """

    name: str
    folder: str
    manifest: Manifest
    call: str

    @classmethod
    def of(cls, name: str, folder: str, manifest: Manifest) -> TokenSource:
        """Returns the source in a folder with this manifest."""
        return cls(name, folder, manifest, file_sha256(os.path.join(folder, manifest_name(folder))))

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

    def state(self) -> list[object]:
        """Returns what distinguishes the files from others. What a run that was killed has made of them is used only if
        it is the same."""
        seen: list[object] = [self.call]
        for path in (os.path.join(self.folder, name) for name in self.manifest.file_names):
            with file_errors(path, "cannot be examined"):
                status = os.stat(path)
            seen.append((status.st_size, status.st_mtime_ns, status.st_ino))
        return seen

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
        return self.manifest.split_tokens("train")

    def encoded(self, folder: str, run: RunOptions) -> TokenSource:
        """See TextSource."""
        return self

    def documents(self, folder: str) -> list[Documents | None]:
        """Finds the documents of each split. Files without names in `folder` hold their lengths.

        Raises:
            FormatError: the tokens are not what the manifest says.
        """
        return [self._documents(split, folder) for split in SPLIT_NAMES]

    def _documents(self, split: str, folder: str) -> Documents | None:
        expected = (self.manifest.split_documents(split), self.manifest.split_tokens(split))
        if not expected[1]:
            return None
        eot, tokenizer = str(self.manifest.settings["eot"]), self.manifest.tokenizer
        mark, n_vocab = int(tokenizer["eot"]), int(tokenizer["n_vocab"])  # type: ignore[call-overload]
        stream = TokenStream(split_paths(self.folder, self.manifest, split), str(self.manifest.settings.get("dtype")))
        found = find_documents(stream, mark, eot, n_vocab, folder)
        if (len(found), found.tokens) != expected:
            raise FormatError(
                f"{self.folder}: its {split} split has {len(found)} documents in {found.tokens} tokens, but the"
                f" manifest says {expected[0]} in {expected[1]}: write the data again"
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
        check_mark(kinds, tok.special_tokens, tok.model.matching, self.files)
        if any(file.is_sequential or kinds.kind(file) == "parquet" for file in self.files):
            return None
        encoder = TaskEncoder(tok, kinds, (1.0,), "uint32")
        plan = Plan(self.files, kinds, SplitOptions((1,)), tok._encoder.cutting)
        tokens = size = 0
        for piece in Sample(max_bytes=_SAMPLE_BYTES).pieces(plan, tok._encoder.cut):
            segments = encoder.segments(piece)
            tokens += sum(len(segment.ids) for segment in segments) + len(segments)  # a mark for each
            size += piece.size
        text_bytes = sum(file.size or 0 for file in self.files)
        return round(text_bytes * tokens / max(1, size) * self.splits[0] / sum(self.splits))

    def encoded(self, folder: str, run: RunOptions) -> TokenSource:
        """Encodes the texts into a folder. A run that was killed may have begun to, perhaps with another recipe."""
        read, split = self.source.read, self.source.split
        options: dict[str, Any] = {
            **{"splits": split.splits, "split_by": split.split_by, "min_shard_tokens": 0, "name": "text"},
            **{"documents": read.documents, "text_key": read.text_key, "encoding": read.encoding},
            **{"workers": run.workers, "progress": run.progress},
        }
        try:
            manifest = binarize(self.tok, list(self.source.inputs), folder, **options)
        except ArgumentError:  # if these are tokens of other texts
            remove_folder(folder)
            manifest = binarize(self.tok, list(self.source.inputs), folder, **options)
        return TokenSource.of(self.source.name, folder, manifest)


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
    manifests = (each.manifest if isinstance(each, TokenSource) else None for each in found)
    check_different([(name, each.inputs, manifest) for name, each, manifest in zip(names, found, manifests)])
    return found


def _shares(splits: Sequence[float]) -> list[float]:
    return [share / sum(splits) for share in splits]
