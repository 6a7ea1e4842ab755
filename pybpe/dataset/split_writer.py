"""Writes one split as a series of shards, none of them too small for its readers.

A shard is closed when it is full. It is published, under its name and with a record in the manifest, at the next
checkpoint: until then, a killed run may need the shard's tokens to resume (journal.py).

If shards must have equal size, a split is one spool until its end, which is then cut (equal_shards.py).
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..reading.splits import SPLIT_NAMES
from ..support.locking import FOLDER
from ..tokenizer import Tokenizer
from .encoding import Segment, text_length
from .eot import EotPlacer
from .equal_shards import check_least, checked_sizes, cut_shards, shard_facts
from .hashing import Hasher, file_sha256
from .manifest import Facts, ShardRecord
from .options import OutputOptions
from .spool import Spool, SpoolFiles
from .writers import Finished, Format

_MARK_TOKENS = 1 << 20


@dataclass(frozen=True)
class Layout:
    """What all splits of a run share.

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
        """The folder of spools."""
        return os.path.join(self.folder, FOLDER)

    def text_length(self, ids: memoryview) -> int:
        """Returns the bytes of text that ids represent, without marks."""
        return text_length(self.tok, ids)

    def path(self, split: str, index: int) -> str:
        """Returns the file of a shard."""
        return os.path.join(self.folder, self.form.file.format(name=self.name, split=split, index=index))

    def spool(self, split: str, index: int) -> SpoolFiles:
        """Returns the spool of a shard."""
        base = os.path.join(self.unfinished, f"{split}-{index:06d}")
        return SpoolFiles(base, self.form.header_bytes, self.output.dtype)

    def header(self, tokens: int) -> bytes:
        """Returns the header of a flat shard."""
        assert self.form.header is not None
        return self.form.header(tokens, self.output.dtype)


@dataclass
class SplitState:
    """The state of a split at a checkpoint, as JSON values.

    Attributes:
        records: the records of published shards.
        closed: facts of shards that are complete but not published.
        open: facts of the open shard.
        beyond: facts of the tokens that the open shard has beyond its size.
        marks: tokens of the split so far and the bytes of their text, every now and then, if its shards have equal
            size.
        in_document: see EotPlacer.is_open.
        finished: whether the last shard is closed.
        uncut: whether the shards in `closed` must still be cut from the first one's spool.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    closed: list[Facts] = field(default_factory=list)
    open: Facts = field(default_factory=Facts)
    beyond: Facts = field(default_factory=Facts)
    marks: list[list[int]] = field(default_factory=list)
    in_document: bool = False
    finished: bool = False
    uncut: bool = False

    def since(self, saved: Saved) -> dict[str, Any]:
        """Returns what has changed since another checkpoint, as plain data: everything, except the beginnings of the
        two lists that only grow."""
        return {
            "records": self.records[saved.records :],
            "marks": self.marks[saved.marks :],
            "closed": [vars(facts) for facts in self.closed],
            "open": vars(self.open),
            "beyond": vars(self.beyond),
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def apply(self, change: dict[str, Any]) -> None:
        """Makes a change that `since` returned."""
        self.records += change["records"]
        self.marks += change["marks"]
        self.closed = [Facts(**closed) for closed in change["closed"]]
        self.open = Facts(**change["open"])
        self.beyond = Facts(**change["beyond"])
        for name in _PLAIN:
            setattr(self, name, change[name])

    def amounts(self) -> list[tuple[int, int]]:
        """Returns the tokens and the bytes of text of each part."""
        records = [(record["tokens"], record["text_bytes"]) for record in self.records]
        return records + [(facts.tokens, facts.text_bytes) for facts in (*self.closed, self.open, self.beyond)]

    @property
    def index(self) -> int:
        """The number of the open shard."""
        return len(self.records) + len(self.closed)


_PLAIN = ("in_document", "finished", "uncut")  # the fields that are one value


class Saved(NamedTuple):
    """How much of a state a checkpoint has: the numbers of records and of marks."""

    records: int
    marks: int

    @classmethod
    def of(cls, state: SplitState) -> Saved:
        """Returns this for a state that has just been saved."""
        return cls(len(state.records), len(state.marks))


def has_spools(layout: Layout, split: str, state: SplitState) -> bool:
    """Returns whether the spools on disk still have the tokens of a state: those of the open shard, and those of the
    closed ones, unless they have been published."""
    open_files, facts = layout.spool(split, state.index), (state.open, state.beyond)
    tokens, documents = sum(some.tokens for some in facts), sum(some.documents for some in facts)
    if not open_files.hold(tokens, documents):
        return False
    first = len(state.records)
    closed = [first] if state.uncut else range(first, state.index)
    paths = ((layout.spool(split, index).tokens_path, layout.path(split, index)) for index in closed)
    return all(os.path.exists(spool) or os.path.exists(shard) for spool, shard in paths)


def are_published(layout: Layout, state: SplitState) -> bool:
    """Returns whether the published shards of a state are there."""
    for record in state.records:
        try:
            if os.path.getsize(os.path.join(layout.folder, record["file"])) != record["bytes"]:
                return False
        except OSError:
            return False
    return True


def spool_names(layout: Layout, states: Sequence[SplitState]) -> set[str]:
    """Returns the names of the files that spools of these states may have."""
    found = set()
    for split, state in zip(SPLIT_NAMES, states):
        numbers = {*range(len(state.records), state.index + 1), *([0] if layout.form.equal_shards else [])}
        found |= {os.path.basename(name) for number in numbers for name in layout.spool(split, number).paths}
    return found


def file_names(layout: Layout, split: str, state: SplitState, first: int = 0) -> list[str]:
    """Returns the files of a split's published and closed shards (the next checkpoint publishes the latter) from number
    `first`, with their companion files."""
    names = [os.path.basename(layout.path(split, index)) for index in range(first, state.index)]
    companion = layout.form.companion_name
    return names if companion is None else [*names, *map(companion, names)]


class SplitWriter:
    """Writes the tokens of one split.

    Shards of equal size have at most `shard_tokens` tokens. Others are closed at `shard_tokens`, but only after
    `min_shard_tokens` more have arrived, so that the last shard is never too small; it may be that much longer instead.

    Args:
        layout: the settings that the splits share.
        split: the split's name.
        state: where to resume; if given, the spools exist.
    """

    def __init__(self, layout: Layout, split: str, state: SplitState) -> None:
        self._layout, self._split, self._state = layout, split, state
        self._placer = EotPlacer(layout.output.mode, layout.tok.eot_token, state.in_document)
        self._full, self._reserve = layout.output.full_tokens, layout.output.reserve_tokens
        self._hasher = Hasher()
        self._hashes: dict[int, Future[str]] = {}  # of closed shards, by number
        self.publish()
        self._spool = self._open(state.open.tokens + state.beyond.tokens, state.open.documents + state.beyond.documents)

    @property
    def records(self) -> list[ShardRecord]:
        """The records of the published shards."""
        return [ShardRecord(**record) for record in self._state.records]

    @property
    def has_ready(self) -> bool:
        """Whether closed shards can be published without waiting for their hashes."""
        return bool(self._state.closed) and all(digest.done() for digest in self._hashes.values())

    @property
    def spare_bytes(self) -> int:
        """The most disk space that the split needs beyond its tokens."""
        largest = max((facts.tokens for facts in self._state.closed), default=0) if self._state.uncut else 0
        return largest * self._layout.output.id_bytes

    @property
    def written_bytes(self) -> int:
        """The number of tokens so far."""
        state = self._state
        tokens = sum(facts.tokens for facts in (*state.closed, state.open, state.beyond))
        published: int = sum(record["bytes"] for record in state.records)
        return published + tokens * self._layout.output.id_bytes

    def _open(self, tokens: int = 0, documents: int = 0) -> Spool:
        return Spool(self._layout.spool(self._split, self._state.index), tokens, documents)

    # ------------------------------------------------------------------------------------------------
    # Tokens

    def add(self, segment: Segment) -> None:
        """Appends a segment, with marks where they belong."""
        ids, starts = self._placer.place(segment.ids, segment.marks)
        self._write(ids, starts, segment.text_bytes)
        if segment.ends_document and (mark := self._placer.end_document(self._spool.files.typecode)):
            self._write(mark, array("Q"), 0)

    def _write(self, given: array[int] | memoryview, starts: array[int] | memoryview, text_bytes: int) -> None:
        state, layout = self._state, self._layout
        ids = memoryview(given)
        while len(ids):
            room = len(ids)
            facts = state.open
            if layout.form.has_shards and not layout.form.equal_shards:
                if state.open.tokens < self._full:
                    room = self._full - state.open.tokens
                else:
                    room, facts = self._reserve - state.beyond.tokens, state.beyond
            part, ids = ids[:room], ids[room:]
            first = bisect_left(starts, len(part))
            part_bytes = layout.text_length(part) if len(ids) else text_bytes
            facts.add(len(part), first, part_bytes)
            self._spool.append(part, starts[:first])
            if layout.form.equal_shards and facts.tokens >= _MARK_TOKENS * (len(state.marks) + 1):
                state.marks.append([facts.tokens, facts.text_bytes])
            if len(ids):
                starts, text_bytes = array("Q", [at - len(part) for at in starts[first:]]), text_bytes - part_bytes
            if state.beyond.tokens == self._reserve:
                self._close()

    def _close(self) -> None:
        """Closes the open shard, which is full. Its tokens beyond its size begin the next one."""
        state = self._state
        ids, starts = self._spool.tail(state.open.tokens, state.open.documents)
        if self._layout.output.HASHED:
            self._hash(self._state.index, state.open.tokens)
        else:
            self._spool.sync()
        self._spool.close()
        state.closed.append(state.open)
        state.open, state.beyond = state.beyond, Facts()
        self._spool = self._open()
        self._spool.append(ids, starts)

    def _hash(self, index: int, tokens: int) -> None:
        """Starts hashing a flat shard that is full."""
        if not self._spool.is_closed:
            self._spool.flush()
        header = self._layout.header(tokens)
        size = len(header) + tokens * self._layout.output.id_bytes
        self._hashes[index] = self._hasher.start(self._tokens_path(index), header, size)

    def _tokens_path(self, index: int) -> str:
        return self._layout.spool(self._split, index).tokens_path

    # ------------------------------------------------------------------------------------------------
    # Checkpoints

    def finish(self) -> None:
        """Closes the last shard, unless it is closed already.

        Raises:
            ShardTooSmallError: the split has fewer than min_shard_tokens tokens.
        """
        state, layout = self._state, self._layout
        if state.finished:
            return
        state.open.add(state.beyond.tokens, state.beyond.documents, state.beyond.text_bytes)
        state.beyond = Facts()
        check_least(layout.path(self._split, self._state.index), state.open.tokens, layout.output.least_tokens)
        if layout.form.equal_shards:
            self._plan_shards()
        elif state.open.tokens or not self._state.index:
            self._close_last()
        state.finished = True

    def _close_last(self) -> None:
        state, layout = self._state, self._layout
        if layout.output.HASHED:
            self._hash(self._state.index, state.open.tokens)
        self._spool.fill_header(layout.header(state.open.tokens))
        self._leave_spool([state.open])

    def _plan_shards(self) -> None:
        """Closes the spool that has all tokens; it is cut later unless they fit in one shard."""
        state, layout = self._state, self._layout
        sizes = checked_sizes(layout.path(self._split, 0), state.open.tokens, layout.output)
        if len(sizes) == 1:
            self._close_last()
            return
        shards = shard_facts(state.open, sizes, self._spool, state.marks, layout.text_length)
        self._leave_spool(shards)
        state.uncut = True

    def _leave_spool(self, closed: list[Facts]) -> None:
        """Marks the split's tokens as complete."""
        state = self._state
        state.closed += closed
        state.open = Facts()
        self._spool.sync()
        self._spool.close()

    def cut(self) -> bool:
        """Cuts a finished split into its shards, if needed. The journal must already record that it is finished.

        Returns:
            Whether there was anything to do.
        """
        state, layout = self._state, self._layout
        if not state.uncut:
            return False
        sizes = [facts.tokens for facts in state.closed]
        for index in cut_shards(self._tokens_path, layout.header, layout.output.id_bytes, sizes):
            if layout.output.HASHED:
                self._hash(index, sizes[index])
        state.uncut = False
        return True

    def sync(self) -> None:
        """Syncs all tokens so far to disk, which the state then matches."""
        if not self._spool.is_closed:
            self._spool.sync()
        for digest in self._hashes.values():
            digest.result()
        self._state.in_document = self._placer.is_open

    def publish(self) -> None:
        """Gives closed shards their names. The journal must already record them."""
        state, layout = self._state, self._layout
        if state.uncut:
            return
        while state.closed:
            facts, index = state.closed[0], len(state.records)
            path = layout.path(self._split, index)
            digest = self._hashes[index].result() if index in self._hashes else None  # it reads the spool
            layout.form.publish(Finished(layout.spool(self._split, index), facts), path)
            record = ShardRecord(
                os.path.basename(path),
                facts.tokens,
                os.path.getsize(path),
                digest or (file_sha256(path) if layout.output.HASHED else ""),
                facts.documents,
                facts.text_bytes,
            )
            state.records.append(vars(record))
            state.closed.pop(0)
            self._hashes.pop(index, None)

    def close(self) -> None:
        """Closes the files."""
        self._hasher.close()
        self._spool.close()
