"""What a format of token files is, and how a finished shard becomes a file of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import file_errors
from ...folders import give_name, remove_file
from ..manifest import FILE_NAME
from ..spool import read_starts, tokens_path

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_READ_TOKENS = 1 << 20


@dataclass(frozen=True)
class Finished:
    """A shard that is complete, in the files of its spool.

    Attributes:
        base: path of the spool, without ending.
        header_bytes, dtype: of the spool.
        tokens, documents: how many it has; what is behind in the files does not count.
        first_document: the number, in its split, of the document that begins first in it.
        sources: names of the files that it comes from; the spool's sources are indexes.
        split, index: of the shard.
        sequence_length: tokens of a row, for formats that have rows.
    """

    base: str
    header_bytes: int
    dtype: str
    tokens: int
    documents: int
    first_document: int
    sources: Sequence[str]
    split: str
    index: int
    sequence_length: int

    @property
    def tokens_path(self) -> str:
        return tokens_path(self.base)

    @property
    def starts_path(self) -> str:
        return self.base + ".starts"

    def ids(self) -> Array:
        """All ids, memory-mapped, shape (tokens,)."""
        return map_ids(self.tokens_path, self.dtype, self.header_bytes, self.tokens)

    def starts(self, first: int, last: int) -> Array:
        """(token, source) of some of its documents, shape (last - first, 2)."""
        return read_starts(self.starts_path, first, last)


@dataclass(frozen=True)
class Format:
    """A format of token files.

    Attributes:
        name: what users call it.
        file: the name of a file, with places for {name}, {split} and {index}; without one for the index, each
            split is one file of any size.
        eot: where the mark goes if the user does not say.
        min_tokens: the least tokens of a shard if the user does not say.
        header_bytes: how long the header is.
        header: header(tokens, dtype) gives it. None: the file is no header with ids behind; `convert` makes it.
        convert: convert(finished, path) writes the file.
        companion: writes what stands beside a file: companion(finished, path). None: nothing does.
        companion_name: its name for a file's.
        read: read(path, dtype) yields the ids of a file in blocks.
        manifest: the name of the manifest.
        has_rows: whether it holds rows of sequence_length tokens. A shard then has a whole number of them.
        max_bytes: the largest file that its readers can read; 0: any.
        equal_shards: whether the shards of a split are of equal size. They are cut at its end then.
    """

    name: str
    file: str
    read: Callable[[str, str], Iterator[Array]]
    eot: str = "append"
    min_tokens: int = 0
    header_bytes: int = 0
    header: Callable[[int, str], bytes] | None = None
    convert: Callable[[Finished, str], None] | None = None
    companion: Callable[[Finished, str], None] | None = None
    companion_name: Callable[[str], str] | None = None
    max_bytes: int = 0
    manifest: str = FILE_NAME
    has_rows: bool = False
    equal_shards: bool = False

    @property
    def has_shards(self) -> bool:
        """Whether a split may have several files."""
        return "{index" in self.file

    def pattern(self, split: str) -> str:
        """A glob pattern that finds the files of a split, whatever {name} and {index} are."""
        return self.file.replace("{name}", "*").replace("{split}", split).replace("{index:06d}", "*")

    @property
    def is_flat(self) -> bool:
        """Whether the file is a header with the ids behind it."""
        return self.header is not None

    def publish(self, finished: Finished, path: str) -> None:
        """Makes the file of a finished shard, whose spool is gone then. Once it is gone, does nothing: a
        run that died in the middle simply does it again."""
        if not os.path.exists(finished.tokens_path):
            return
        if self.companion is not None:
            self.companion(finished, path)
        if self.convert is not None:
            converted = finished.base + ".converted"
            with file_errors(converted, "cannot be written"):
                self.convert(finished, converted)
            give_name(converted, path)
            remove_file(finished.tokens_path)
        else:
            self._fill_header(finished)
            give_name(finished.tokens_path, path)
        remove_file(finished.starts_path)

    def _fill_header(self, finished: Finished) -> None:
        """Cuts a spool to its size, and gives it its header, unless it is so already: then it need not go to the disk
        once more."""
        assert self.header is not None
        header = self.header(finished.tokens, finished.dtype)
        size = self.header_bytes + finished.tokens * id_bytes(finished.dtype)
        with file_errors(finished.tokens_path, "cannot be written"), open(finished.tokens_path, "r+b") as stream:
            if os.fstat(stream.fileno()).st_size != size:
                stream.truncate(size)
            if stream.read(len(header)) != header:
                stream.seek(0)
                stream.write(header)


def id_bytes(dtype: str) -> int:
    """2 or 4."""
    return 2 if dtype == "uint16" else 4


def map_ids(path: str, dtype: str, offset: int, tokens: int) -> Array:
    """Ids in a file, memory-mapped and read-only, shape (tokens,)."""
    import numpy

    kind = f"<u{id_bytes(dtype)}"
    if tokens == 0:  # an empty file cannot be mapped
        return numpy.empty(0, dtype=kind)
    return numpy.memmap(path, dtype=kind, mode="r", offset=offset, shape=(tokens,)).view(numpy.ndarray)


def read_flat(path: str, dtype: str) -> Iterator[Array]:
    """The ids of a file that is a header, or none, with ids behind, in blocks."""
    from ..token_files import open_tokens

    ids = open_tokens(path, dtype)
    for at in range(0, len(ids), _READ_TOKENS):
        yield ids[at : at + _READ_TOKENS]
