"""One split as a row of shards: a new file every so many tokens, none too small for its reader.

A shard is closed when it is full, but published, under its name and with a record in the manifest, at the next
checkpoint: until then a run that dies may need the shard's tokens to go on (journal.py).
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import ShardTooSmallError
from .encoding import Segment
from .eot import EotPlacer
from .hashing import Hasher, file_sha256
from .manifest import ShardRecord
from .spool import Spool
from .writers import Finished, Format
from .writers.base import id_bytes


@dataclass(frozen=True)
class Layout:
    """What is the same for all splits of a call.

    Attributes:
        format: of the files.
        folder: where they go.
        unfinished: the folder of spools.
        name: {name} in the format's file names.
        dtype: "uint16" or "uint32".
        eot: one of EOT_MODES.
        mark: the id of the mark; None if the tokenizer has none.
        shard_tokens, min_shard_tokens: the size of a shard, and its least size.
        sequence_length: tokens of a row, for formats that have rows.
        text_length: bytes of the text that ids stand for, marks being none.
        source_names: how the manifest calls files that have other names on disk.
        hashed: whether the manifest has the SHA-256 of shards.
    """

    format: Format
    folder: str
    unfinished: str
    name: str
    dtype: str
    eot: str
    mark: int | None
    shard_tokens: int
    min_shard_tokens: int
    sequence_length: int
    text_length: Callable[[memoryview], int]
    source_names: dict[str, str]
    hashed: bool

    def path(self, split: str, index: int) -> str:
        """The file of a shard."""
        return os.path.join(self.folder, self.format.file.format(name=self.name, split=split, index=index))

    def spool(self, split: str, index: int) -> str:
        """The spool of a shard."""
        return os.path.join(self.unfinished, f"{split}-{index:06d}")


@dataclass
class Facts:
    """What is known of the tokens of a shard, or of some that will be one."""

    tokens: int = 0
    documents: int = 0
    text_bytes: int = 0
    sources: list[list[Any]] = field(default_factory=list)

    def add(self, tokens: int, documents: int, text_bytes: int, source: tuple[str, int, int]) -> None:
        """Some more, of one source: the last of `sources` afterwards."""
        self.tokens += tokens
        self.documents += documents
        self.text_bytes += text_bytes
        path, start, end = source
        if self.sources and self.sources[-1][0] == path and self.sources[-1][2] == start:
            self.sources[-1][2] = end
        elif not self.sources or self.sources[-1] != [path, start, end]:
            self.sources.append([path, start, end])


@dataclass
class SplitState:
    """A split at a checkpoint, as JSON holds it.

    Attributes:
        records: of published shards.
        closed: facts of shards that are complete but not published.
        open: facts of the open shard.
        beyond: facts of the tokens that the open shard has beyond its size.
        documents_before: how many documents began before the open shard.
        in_document: see EotPlacer.is_open.
        finished: whether the last shard is closed.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    closed: list[Facts] = field(default_factory=list)
    open: Facts = field(default_factory=Facts)
    beyond: Facts = field(default_factory=Facts)
    documents_before: int = 0
    in_document: bool = False
    finished: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SplitState:
        """What to_json gave."""
        facts = {key: Facts(**data[key]) for key in ("open", "beyond")}
        return cls(**{**data, **facts, "closed": [Facts(**closed) for closed in data["closed"]]})


def file_names(layout: Layout, split: str, state: SplitState) -> list[str]:
    """The files of a split's shards that are published, or closed, which the next checkpoint publishes; with what
    belongs to them."""
    count = len(state.records) + len(state.closed)
    names = [os.path.basename(layout.path(split, index)) for index in range(count)]
    companion = layout.format.companion_name
    return names if companion is None else [*names, *map(companion, names)]


class SplitWriter:
    """Writes the tokens of one split.

    A shard is closed at `shard_tokens` only when `min_shard_tokens` more have come, so the last one is never
    too small: it is up to so much longer instead.

    Args:
        layout: what the splits share.
        split: the split's name.
        state: where to go on; the spools are there then.
    """

    def __init__(self, layout: Layout, split: str, state: SplitState) -> None:
        self._layout, self._split, self._state = layout, split, state
        self._placer = EotPlacer(layout.eot, layout.mark, state.in_document)
        self._reserve = max(1, layout.min_shard_tokens)  # so many beyond a shard's size close it
        self._hasher = Hasher()
        self._hashes: dict[int, Future[str]] = {}  # of closed shards, by number
        self.publish()
        self._spool = self._open(state.open.tokens + state.beyond.tokens, state.open.documents + state.beyond.documents)

    @property
    def records(self) -> list[ShardRecord]:
        """Of the published shards."""
        return [ShardRecord(**record) for record in self._state.records]

    @property
    def state(self) -> SplitState:
        """As of now: only that of the last checkpoint goes with what is on disk."""
        return self._state

    @property
    def has_ready(self) -> bool:
        """Whether closed shards can be published without waiting for their hashes."""
        return bool(self._state.closed) and all(digest.done() for digest in self._hashes.values())

    @property
    def written_bytes(self) -> int:
        """All so far."""
        state = self._state
        tokens = sum(facts.tokens for facts in (*state.closed, state.open, state.beyond))
        published: int = sum(record["bytes"] for record in state.records)
        return published + tokens * id_bytes(self._layout.dtype)

    @property
    def _index(self) -> int:
        """The number of the open shard."""
        return len(self._state.records) + len(self._state.closed)

    def _open(self, tokens: int = 0, documents: int = 0) -> Spool:
        layout = self._layout
        base = layout.spool(self._split, self._index)
        return Spool(base, layout.format.header_bytes, layout.dtype, tokens, documents)

    # ------------------------------------------------------------------------------------------------
    # Tokens

    def add(self, segment: Segment) -> None:
        """Appends a segment, with marks where they belong."""
        ids, starts = self._placer.place(segment.ids, segment.marks)
        path, start, end = segment.source
        source = (self._layout.source_names.get(path, path), start, end)
        self._write(ids, starts, segment.text_bytes, source)
        if segment.ends_document:
            self._write(self._placer.end_document(self._spool.typecode), array("Q"), 0, source)

    def _write(
        self, given: array[int] | memoryview, starts: array[int], text_bytes: int, source: tuple[str, int, int]
    ) -> None:
        state, size = self._state, max(self._layout.shard_tokens, self._layout.min_shard_tokens)
        ids = memoryview(given)
        while len(ids):
            room = len(ids)
            facts = state.open
            if self._layout.format.has_shards:
                if state.open.tokens < size:
                    room = size - state.open.tokens
                else:
                    room, facts = self._reserve - state.beyond.tokens, state.beyond
            part, ids = ids[:room], ids[room:]
            first = bisect_left(starts, len(part))
            part_bytes = self._layout.text_length(part) if len(ids) else text_bytes
            facts.add(len(part), first, part_bytes, source)
            self._spool.append(part, starts[:first], len(facts.sources) - 1)
            starts, text_bytes = array("Q", [at - len(part) for at in starts[first:]]), text_bytes - part_bytes
            if state.beyond.tokens == self._reserve:
                self._close()

    def _close(self) -> None:
        """The open shard is full. What it has beyond its size begins the next one."""
        state = self._state
        ids, starts, sources = self._spool.tail(state.open.tokens, state.open.documents)
        if self._layout.hashed and self._layout.format.is_flat:
            self._hash(self._header())
        else:
            self._spool.sync()
        self._spool.close()
        state.closed.append(state.open)
        state.documents_before += state.open.documents
        state.open, state.beyond = state.beyond, Facts()
        self._spool = self._open()
        self._spool.append_documents(ids, starts, sources)

    def _header(self) -> bytes:
        """That of the open shard, which is full and flat."""
        assert self._layout.format.header is not None
        return self._layout.format.header(self._state.open.tokens, self._layout.dtype)

    def _hash(self, header: bytes) -> None:
        """Starts hashing the open shard."""
        size = len(header) + self._state.open.tokens * id_bytes(self._layout.dtype)
        self._hashes[self._index] = self._hasher.start(self._spool.tokens_path, header, size)

    # ------------------------------------------------------------------------------------------------
    # Checkpoints

    def finish(self) -> None:
        """Closes the last shard, unless that is done.

        Raises:
            ShardTooSmallError: the split has fewer than min_shard_tokens tokens.
        """
        state, layout = self._state, self._layout
        if state.finished:
            return
        for source in state.beyond.sources:
            state.open.add(0, 0, 0, (source[0], source[1], source[2]))
        for name in ("tokens", "documents", "text_bytes"):
            setattr(state.open, name, getattr(state.open, name) + getattr(state.beyond, name))
        state.beyond = Facts()
        if state.open.tokens < layout.min_shard_tokens:
            path = layout.path(self._split, self._index)
            raise ShardTooSmallError(
                f"{path}: would have {state.open.tokens} tokens, and llm.c needs at"
                f" least {layout.min_shard_tokens} in every shard; give more text or another split, or allow it with"
                " min_shard_tokens=0",
                path,
                state.open.tokens,
            )
        if state.open.tokens or not self._index:
            if layout.format.is_flat:
                header = self._header()
                if layout.hashed:
                    self._hash(header)
                self._spool.fill_header(header)
            state.closed.append(state.open)
            state.documents_before += state.open.documents
            state.open = Facts()
            self._spool.sync()
            self._spool.close()
        state.finished = True

    def sync(self) -> SplitState:
        """All tokens so far are on disk. Returns the state that goes with them."""
        if not self._spool.is_closed:
            self._spool.sync()
        for digest in self._hashes.values():
            digest.result()
        self._state.in_document = self._placer.is_open
        return self._state

    def publish(self) -> None:
        """Gives closed shards their names. The journal must know them."""
        state, layout = self._state, self._layout
        before = state.documents_before - sum(facts.documents for facts in state.closed)
        while state.closed:
            facts, index = state.closed[0], len(state.records)
            path = layout.path(self._split, index)
            digest = self._hashes[index].result() if index in self._hashes else None  # it reads the spool
            layout.format.publish(self._finished(facts, index, before), path)
            record = ShardRecord(
                os.path.basename(path),
                facts.tokens,
                os.path.getsize(path),
                digest or (file_sha256(path) if layout.hashed else ""),
                facts.documents,
                facts.text_bytes,
                facts.sources,
            )
            state.records.append(vars(record))
            state.closed.pop(0)
            self._hashes.pop(index, None)
            before += facts.documents

    def _finished(self, facts: Facts, index: int, first_document: int) -> Finished:
        layout = self._layout
        return Finished(
            layout.spool(self._split, index),
            layout.format.header_bytes,
            layout.dtype,
            facts.tokens,
            facts.documents,
            first_document,
            [source[0] for source in facts.sources],
            self._split,
            index,
            layout.sequence_length,
        )

    def close(self) -> None:
        """Leaves the files."""
        self._hasher.close()
        self._spool.close()
