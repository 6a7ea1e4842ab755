"""Keeps the tokens of a run on this machine: in one growing file per split (spool.py), from which shards are cut.

    spool    [header room][ shard 0 | shard 1 | shard 2 ]
    copied                                    [ shard 2 ]    then cut from the spool; then shard 1, ...
    left     [header room][ shard 0 ]                        becomes the first file

Shards are cut from the last to the first, a few at a time, so that the disk needs room for only these and the first is
not copied. A split that fits in one shard is never copied. Their SHA-256 is computed on the way.

When all splits are cut, the shards get their names, the first of a split before the others. So as long as the spool is
there, a file with the name of a shard is not this run's; and when it is gone, all shards have been cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from ..errors import file_errors
from ..reading.splits import SPLIT_NAMES
from ..reading.streams import file_sha256
from ..reading.text_encoding import Doubts
from ..support.output_files import give_name
from ..support.parallel import map_ordered, worker_count
from ..support.progress import Progress
from ..support.run_options import RunOptions
from .assembly import TextMarks, copy_stretches, facts_before, file_bytes, records_of, shards_of
from .encoding import Encoded
from .manifest import Facts, Records
from .options import Layout
from .parts import Part
from .spool import SplitWriter, size_of

_MOST_AT_ONCE = 4  # shards


class AppendStore:
    """Where a run keeps its tokens until they are shards.

    Args:
        layout: where the files go.
        splits: the number of splits.
        encoded: encoded(first, options, doubts) yields the tokens of all tasks from number `first`, which depend on
            nothing else.
    """

    def __init__(
        self, layout: Layout, splits: int, encoded: Callable[[int, RunOptions, Doubts], Iterator[Encoded]]
    ) -> None:
        self._layout, self.names, self._encoded = layout, SPLIT_NAMES[:splits], encoded
        self._marks = [TextMarks() for _ in self.names]
        self._splits: list[SplitWriter] = []

    def note(self, part: Part) -> None:
        """Notes a part that is done. All parts are noted, in order, an earlier run's too."""
        for marks, reached in zip(self._marks, part.splits):
            marks.add(reached.tokens, reached.text_bytes)

    def has(self, part: Part) -> bool:
        """Returns whether the tokens up to a part are still there. Another program may have removed some."""
        pairs = zip(self.names, part.splits)
        return all(self._layout.spool(split).hold(reached.tokens, reached.documents) for split, reached in pairs)

    def steps(self, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Encoded]:
        """Does the work after the last part."""
        mode, eot = self._layout.output.mode, self._layout.tok.eot_token
        for split, reached in zip(self.names, last.splits):
            self._splits.append(SplitWriter(self._layout.spool(split), mode, eot, reached))
        for found in self._encoded(last.tasks, options, doubts):
            for segment in found.segments:
                self._splits[segment.split].add(segment)
            yield found._replace(splits=[split.reached for split in self._splits]) if found.tasks else found

    def sync(self) -> None:
        """Writes all tokens to disk."""
        for split in self._splits:
            split.sync()

    def close(self) -> None:
        """Closes all files."""
        for split in self._splits:
            split.close()

    # ------------------------------------------------------------------------------------------------
    # Shards

    def shards(self, last: Part) -> list[list[Facts]]:
        """Returns the facts of each split's shards. Raises ShardTooSmallError, LimitError."""
        found = []
        for split, reached, marks in zip(self.names, last.splits, self._marks):
            before = partial(facts_before, self._layout.tok, self._layout.spool(split), reached.documents, marks)
            found.append(shards_of(self._layout, split, Facts(*reached[:3]), before))
        return found

    def can_assemble(self, shards: Sequence[Sequence[Facts]]) -> bool:
        """Returns whether an earlier run has left what `make` and `publish` need."""
        return all(self._can_assemble(split, found) for split, found in zip(self.names, shards))

    def _can_assemble(self, split: str, shards: Sequence[Facts]) -> bool:
        layout, last = self._layout, len(shards)
        sizes = [file_bytes(layout, facts) for facts in shards]
        if not os.path.exists(layout.cut_path(split, 0)):
            return sizes == list(map(size_of, self._published(split, last)))
        while last > 1 and size_of(layout.cut_path(split, last - 1)) == sizes[last - 1]:
            last -= 1
        tokens, documents = (sum(getattr(facts, name) for facts in shards[:last]) for name in ("tokens", "documents"))
        return layout.spool(split).hold(tokens, documents if layout.form.index is not None else 0)

    def _published(self, split: str, count: int) -> list[str]:
        """Returns where the shards of a split are whose first one has its name."""
        pairs = ((self._layout.cut_path(split, index), self._layout.path(split, index)) for index in range(count))
        return [hidden if os.path.exists(hidden) else path for hidden, path in pairs]

    def make(self, shards: Sequence[Sequence[Facts]], options: RunOptions) -> Records:
        """Makes the shards. If killed, resumes when called again. Returns their records by split."""
        records = {}
        with Progress("writing shards", sum(map(len, shards)), "shard", options.progress) as bar:
            for split, found in zip(self.names, shards):
                if os.path.exists(self._layout.cut_path(split, 0)):
                    digests = self._cut(split, [facts.tokens for facts in found], bar)
                else:  # a killed run has begun to publish them
                    digests = [self._digest(path) for path in self._published(split, len(found))]
                records[split] = records_of(self._layout, split, found, digests)
        return records

    def _digest(self, path: str, end: int | None = None) -> str:
        return file_sha256(path, end) if self._layout.output.HASHED else ""

    def _cut(self, split: str, sizes: Sequence[int], bar: Progress) -> list[str]:
        """Cuts the spool of a split into shards of these sizes. Returns the SHA-256 of each, or ""."""
        layout, output = self._layout, self._layout.output
        spool = layout.cut_path(split, 0)
        ends = [layout.form.header_bytes + output.id_bytes * end for end in accumulate(sizes)]
        with file_errors(spool, "cannot be written"), open(spool, "r+b") as stream:
            stream.write(layout.header(sizes[0]))

        def make(index: int) -> str:
            path = layout.cut_path(split, index)
            if index == 0 or os.path.exists(path):
                return self._digest(path, ends[0] if index == 0 else None)
            stretch = (spool, ends[index - 1], ends[index])
            return copy_stretches([stretch], path + ".copy", path, layout.header(sizes[index]), output.HASHED)

        digests: list[str] = []
        count = min(worker_count(None), _MOST_AT_ONCE)
        for last in range(len(sizes), 0, -count):
            first = max(0, last - count)
            digests = [*map_ordered(make, range(first, last), count), *digests]
            with file_errors(spool, "cannot be shortened"):
                if os.path.getsize(spool) > ends[max(first - 1, 0)]:
                    os.truncate(spool, ends[max(first - 1, 0)])
            bar.add(last - first)
        return digests

    def publish(self, shards: Sequence[Sequence[Facts]]) -> None:
        """Gives the shards their names. If killed, resumes when called again."""
        for split, found in zip(self.names, shards):
            for index, facts in enumerate(found):
                hidden, path = self._layout.cut_path(split, index), self._layout.path(split, index)
                if os.path.exists(hidden):
                    if self._layout.form.index is not None:
                        self._layout.form.index(self._layout.spool(split), facts, path)
                    give_name(hidden, path)
