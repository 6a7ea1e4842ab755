"""One remote file as a run first saw it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import BinaryIO

from . import buckets, web
from .address import Address
from .facts import Facts
from .stream import PART_BYTES, RangedStream, WholeStream

_HEAD_BYTES = 1 << 16  # what the first request asks for: enough to recognize the file


@dataclass(frozen=True)
class RemoteFile:
    """A remote file as it was when the run began. It can be sent to workers on other machines, which need the same
    access to it.

    Attributes:
        address: its URL.
        facts: what the server said about it.
        is_divisible: whether it can be read in ranges. A web server may send only the whole file.
    """

    address: Address
    facts: Facts
    is_divisible: bool = True

    @classmethod
    def look(cls, url: str) -> tuple[RemoteFile, BinaryIO | None]:
        """Looks at a file. Returns it, and a stream of it; None if it can be read only once.

        Raises:
            ArgumentError: pybpe cannot read such URLs. FileError: the file cannot be read. MissingExtraError: a package
            is not installed. FormatError: the server sends a web page instead.
        """
        address = Address.parse(url)
        if not address.is_web:
            file = cls(address, buckets.look(address))
            return file, file.open()
        found = web.look(address, _HEAD_BYTES)
        file = cls(address, found.facts, found.is_divisible)
        return file, file.open(head=found.head) if found.is_divisible else None

    @property
    def name(self) -> str:
        """The URL without secrets."""
        return self.address.name

    @property
    def size(self) -> int | None:
        """The number of bytes; None if the file can be read only once, from its start."""
        return self.facts.size if self.is_divisible else None

    @property
    def identity(self) -> tuple[object, ...]:
        """What distinguishes this file from others, for runs that resume. The query of a URL belongs to it, as a hash,
        only if the server gives neither an ETag nor a time: a new signature of the same file changes nothing."""
        query = self.address.url if not (self.facts.tag or self.facts.modified) else ""
        return (self.name, *self.facts, hashlib.blake2b(query.encode(), digest_size=16).hexdigest() if query else "")

    def open(self, start: int = 0, end: int | None = None, head: bytes = b"") -> BinaryIO:
        """Opens the file at an offset.

        Args:
            start: the position of the stream.
            end: where the reader will stop, if it is known.
            head: the first bytes, if they are known.

        Raises:
            FileChangedError: the file has changed since the run looked at it. As a context manager, the stream also
                raises this error after the block, if the file has changed meanwhile.
        """
        source = self._source
        if isinstance(source, web.WebSource) and not self.is_divisible:
            return WholeStream(source, bool(self.facts.tag or self.facts.modified))  # type: ignore[return-value]
        size = self.facts.size or 0
        in_bucket = not self.address.is_web
        if in_bucket and size > PART_BYTES:  # a small file is checked once, after it was read
            source.check_now()
        return RangedStream(source, size, start, end, head=head, checks=in_bucket)  # type: ignore[return-value]

    def check_now(self) -> None:
        """Raises FileChangedError if the file has changed."""
        self._source.check_now()

    @property
    def _source(self) -> web.WebSource | buckets.BucketSource:
        if self.address.is_web:
            return web.WebSource(self.address, self.facts)
        return buckets.BucketSource(self.address, self.facts)
