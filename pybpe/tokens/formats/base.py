"""Defines a format of token files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..._numpy import Array
from ...tokenizer import Tokenizer
from ..manifest import FILE_NAME, Facts
from ..spool import SpoolFiles

READ_TOKENS = 1 << 20


@dataclass(frozen=True)
class Finished:
    """A split that is complete, in one file.

    Attributes:
        files: its spool.
        facts: its tokens and documents.
    """

    files: SpoolFiles
    facts: Facts

    @property
    def dtype(self) -> str:
        """The dtype of its ids."""
        return self.files.dtype


@dataclass(frozen=True)
class Format:
    """A format of token files.

    Attributes:
        name: its name for users.
        file: the name of a file, with placeholders {name}, {split} and {index}; without {index}, each split is one file
            of any size.
        eot: where the mark goes by default.
        min_tokens: the default minimum number of tokens per shard.
        header_bytes: the size of the header.
        header: header(tokens, dtype) returns it. None means that the file has rows, which only `pack` writes.
        companion: companion(finished, path) writes a file that accompanies a shard. None means there is no such file.
        companion_name: returns its name, given the shard's.
        read: read(path, dtype) yields the ids of a file in blocks.
        manifest: the name of the manifest.
        max_bytes: the largest file that its readers can read; 0 means any size.
        equal_shards: whether the shards of a split have equal size.
        largest_uint16_vocabulary: the most tokens of a vocabulary whose ids readers expect as uint16.
        of_tokenizer: a file that describes the tokenizer, if there is one: its name, and what returns its content.
        check_packages: raises MissingExtraError if a package is not installed.
    """

    name: str
    file: str
    read: Callable[[str, str], Iterator[Array]]
    eot: str = "append"
    min_tokens: int = 0
    header_bytes: int = 0
    header: Callable[[int, str], bytes] | None = None
    companion: Callable[[Finished, str], None] | None = None
    companion_name: Callable[[str], str] | None = None
    max_bytes: int = 0
    manifest: str = FILE_NAME
    equal_shards: bool = False
    largest_uint16_vocabulary: int = 1 << 16
    of_tokenizer: tuple[str, Callable[[Tokenizer], bytes]] | None = None
    check_packages: Callable[[], object] = lambda: None

    @property
    def has_shards(self) -> bool:
        """Whether a split may have several files."""
        return "{index" in self.file

    def pattern(self, split: str) -> str:
        """Returns a glob pattern that matches the files of a split, whatever {name} and {index} are."""
        return self.file.replace("{name}", "*").replace("{split}", split).replace("{index:06d}", "*")

    @property
    def is_flat(self) -> bool:
        """Whether the file is a header followed by the ids."""
        return self.header is not None


def read_flat(path: str, dtype: str) -> Iterator[Array]:
    """Yields the ids of a file, after its header if it has one, in blocks."""
    from ..token_file import TokenFile

    yield from TokenFile(path, dtype).blocks(READ_TOKENS)
