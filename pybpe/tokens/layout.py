"""Where the token files of a run go, and what they are: what all of its splits share."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..support.locking import FOLDER
from ..tokenizer import Tokenizer
from .encoding import text_length
from .formats import Format
from .options import OutputOptions
from .spool import SpoolFiles


@dataclass(frozen=True)
class Layout:
    """The token files of a run.

    Attributes:
        tok: the tokenizer.
        output: the options of the files, for this tokenizer.
        folder: where the files go.
        name: {name} in the format's file names.
        source_names: the manifest's names for files that have other names on disk.
        call: the hash of the call that writes them.
    """

    tok: Tokenizer
    output: OutputOptions
    folder: str
    name: str
    source_names: dict[str, str]
    call: str = ""

    @property
    def form(self) -> Format:
        """The format of the files."""
        return self.output.form

    @property
    def unfinished(self) -> str:
        """The hidden folder, for unfinished work."""
        return os.path.join(self.folder, FOLDER)

    def text_length(self, ids: memoryview) -> int:
        """Returns the bytes of text that ids represent, without marks."""
        return text_length(self.tok, ids)

    def path(self, split: str, index: int) -> str:
        """Returns the file of a shard."""
        return os.path.join(self.folder, self.form.file.format(name=self.name, split=split, index=index))

    def spool(self, split: str) -> SpoolFiles:
        """Returns the spool of a split."""
        return SpoolFiles(os.path.join(self.unfinished, split), self.form.header_bytes, self.output.dtype)

    def cut_path(self, split: str, index: int) -> str:
        """Returns the file of a shard until it gets its name. The first shard is what is left of the spool."""
        return self.spool(split).tokens_path if index == 0 else os.path.join(self.unfinished, f"{split}-{index:06d}")

    def header(self, tokens: int) -> bytes:
        """Returns the header of a shard."""
        assert self.form.header is not None
        return self.form.header(tokens, self.output.dtype)

    def file_names(self, split: str, count: int) -> list[str]:
        """Returns the names of a split's shards, with their companion files."""
        names = [os.path.basename(self.path(split, index)) for index in range(count)]
        companion = self.form.companion_name
        return names if companion is None else [*names, *map(companion, names)]
