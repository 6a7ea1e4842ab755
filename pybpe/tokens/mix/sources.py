"""The sources of a mixture: folders of token files, and texts, which are encoded into such folders first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, FormatError, file_errors
from ...reading.documents import Kinds, check_mark
from ...reading.files import Staged, corpus_files
from ...reading.planning import Plan
from ...reading.sample import Sample
from ...reading.small_files import Corpus
from ...reading.splits import SPLIT_NAMES, SplitOptions
from ...support.output_files import remove_folder
from ...support.parallel import RunOptions
from ...tokenizer import Tokenizer
from ..binarization import binarize
from ..encoding import TaskEncoder
from ..finished import TokenFolder, call_of, check_different
from ..token_files import TokenStream
from .drawing import Documents, find_documents
from .recipe import Source

_SAMPLE_BYTES = 1 << 26  # of texts, whose tokens are estimated


@dataclass(frozen=True)
class TokenSource:
    """A source whose tokens are there: its name, and their folder."""

    name: str
    data: TokenFolder

    @property
    def call(self) -> str:
        """What distinguishes it from another source with this name."""
        return self.data.sha256

    def state(self) -> list[object]:
        """Returns what distinguishes the files from others. What a run that was killed has made of them is used only if
        it is the same."""
        seen: list[object] = [self.call]
        for path in (os.path.join(self.data.path, name) for name in self.data.manifest.file_names):
            with file_errors(path, "cannot be examined"):
                status = os.stat(path)
            seen.append((status.st_size, status.st_mtime_ns, status.st_ino))
        return seen

    @property
    def splits(self) -> Sequence[float]:
        """The shares of the splits."""
        return [float(share) for share in self.data.manifest.settings.get("splits", ())]  # type: ignore[attr-defined]

    @property
    def inputs(self) -> list[str]:
        """The names of what it was made from."""
        return self.data.inputs

    def train_tokens(self) -> int:
        """Returns the number of tokens in the train split."""
        return self.data.manifest.split_tokens("train")

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
        path, manifest, _ = self.data
        expected = (manifest.split_documents(split), manifest.split_tokens(split))
        if not expected[1]:
            return None
        eot, tokenizer = str(manifest.settings["eot"]), manifest.tokenizer
        mark, n_vocab = int(tokenizer["eot"]), int(tokenizer["n_vocab"])  # type: ignore[call-overload]
        stream = TokenStream(self.data.paths(split), str(manifest.settings.get("dtype")))
        found = find_documents(stream, mark, eot, n_vocab, folder)
        if (len(found), found.tokens) != expected:
            raise FormatError(
                f"{path}: its {split} split has {len(found)} documents in {found.tokens} tokens, but the manifest says"
                f" {expected[0]} in {expected[1]}: write the data again"
            )
        return found


@dataclass(frozen=True)
class TextSource:
    """A source that must be encoded."""

    source: Source  # what the recipe says
    files: Corpus
    tok: Tokenizer

    @property
    def call(self) -> str:
        """See TokenSource."""
        return call_of((), Staged(self.files))

    @property
    def splits(self) -> Sequence[float]:
        """See TokenSource."""
        return self.source.split.splits

    @property
    def inputs(self) -> list[str]:
        """See TokenSource."""
        return list(self.files.paths)

    def train_tokens(self) -> int | None:
        """Estimates the number of tokens in the train split from a sample. Returns None if it must be read first."""
        tok, kinds = self.tok, Kinds(self.source.read, self.tok.model.eot)
        check_mark(kinds, tok.special_tokens, tok.model.matching, self.files)
        if any(file.is_sequential or kinds.kind(file) == "parquet" for file in self.files.singles):
            return None
        encoder = TaskEncoder(tok, kinds, (1.0,), "uint32")
        plan = Plan(self.files, kinds, SplitOptions((1,)), tok._encoder.cutting)
        tokens = size = 0
        for piece in Sample(max_bytes=_SAMPLE_BYTES).pieces(plan, tok._encoder.cut):
            segments = encoder.segments(piece)
            tokens += sum(len(segment.ids) for segment in segments) + len(segments)  # a mark for each
            size += piece.size
        return round(self.files.size * tokens / max(1, size) * self.splits[0] / sum(self.splits))

    def encoded(self, folder: str, run: RunOptions) -> TokenSource:
        """Encodes the texts into a folder. A run that was killed may have begun to, perhaps with another recipe."""
        read, split = self.source.read, self.source.split
        options: dict[str, Any] = {
            **{"splits": split.splits, "split_by": split.split_by, "min_shard_tokens": 0, "name": "text"},
            **{"documents": read.documents, "text_key": read.text_key, "encoding": read.encoding},
            **{"workers": run.workers, "progress": run.progress},
        }
        try:
            binarize(self.tok, list(self.source.inputs), folder, **options)
        except ArgumentError:  # if these are tokens of other texts
            remove_folder(folder)
            binarize(self.tok, list(self.source.inputs), folder, **options)
        return TokenSource(self.source.name, TokenFolder.open(folder, self.tok))


def open_sources(sources: Sequence[Source], tok: Tokenizer, out: str | None = None) -> list[TokenSource | TextSource]:
    """Opens all sources, before anything is encoded. `out` is the output folder, which cannot be a source.

    Raises:
        ArgumentError: two have the same text, or other splits: a document that one holds out could be trained on
            through the other. What TokenFolder.open and check_documents raise.
    """
    found: list[TokenSource | TextSource] = []
    for source in sources:
        if source.data is not None:
            data = TokenFolder.open(source.data, tok)
            data.check_documents(out)
            found.append(TokenSource(source.name, data))
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
    manifests = (each.data.manifest if isinstance(each, TokenSource) else None for each in found)
    check_different([(name, each.inputs, manifest) for name, each, manifest in zip(names, found, manifests)])
    return found


def _shares(splits: Sequence[float]) -> list[float]:
    return [share / sum(splits) for share in splits]
