"""Keeps the tokens of a run in one growing file per split, on this machine: see spool.py and assembly.py."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import partial

from ..reading.splits import SPLIT_NAMES
from ..reading.text_encoding import Doubts
from ..support.progress import Progress
from ..support.run_options import RunOptions
from .assembly import MOST_AT_ONCE, TextMarks, can_assemble, cut, facts_before, publish, shards_of
from .encoding import Segment
from .eot import EotPlacer
from .layout import Layout
from .manifest import Facts, Records
from .options import OutputOptions
from .parts import Part, Reached, Step
from .spool import Spool, SpoolFiles
from .workers import Work


class SplitWriter:
    """Appends segments to a spool, with marks where they belong.

    Args:
        output: the options of the token files, for the tokenizer.
        eot: the id of the mark.
        files: the spool.
        reached: what the spool has already.
    """

    def __init__(self, output: OutputOptions, eot: int | None, files: SpoolFiles, reached: Reached) -> None:
        self._placer = EotPlacer(output.mode, eot, reached.in_document)
        self.spool = Spool(files, reached.tokens, reached.documents)
        self._text_bytes = reached.text_bytes

    def add(self, segment: Segment) -> None:
        """Appends a segment."""
        self.spool.append(*self._placer.place(segment.ids, segment.marks))
        self._text_bytes += segment.text_bytes
        if segment.ends_document and (mark := self._placer.end_document(self.spool.files.typecode)):
            self.spool.append(mark, array("Q"))

    @property
    def reached(self) -> Reached:
        """How far the split has come."""
        return Reached(self.spool.tokens, self.spool.documents, self._text_bytes, self._placer.is_open)


class AppendStore:
    """A Store: see parts.py.

    Args:
        layout: where the files go.
        splits: the number of splits.
    """

    def __init__(self, layout: Layout, splits: int) -> None:
        self._layout, self.names = layout, SPLIT_NAMES[:splits]
        self._marks = [TextMarks() for _ in self.names]
        self._splits: list[SplitWriter] = []

    def note(self, part: Part) -> None:
        """See Store."""
        for marks, reached in zip(self._marks, part.splits):
            marks.add(reached.tokens, reached.text_bytes)

    def has(self, part: Part) -> bool:
        """See Store."""
        pairs = zip(self.names, part.splits)
        return all(self._layout.spool(split).hold(reached.tokens, reached.documents) for split, reached in pairs)

    def can_assemble(self, shards: Sequence[Sequence[Facts]]) -> bool:
        """See Store."""
        return all(can_assemble(self._layout, split, found) for split, found in zip(self.names, shards))

    def steps(self, work: Work, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Step]:
        """See Store."""
        output, eot = self._layout.output, self._layout.tok.eot_token
        for split, reached in zip(self.names, last.splits):
            self._splits.append(SplitWriter(output, eot, self._layout.spool(split), reached))
        for result in work.results(last.tasks, options, doubts):
            for segment in result.segments:
                self._splits[segment.split].add(segment)
            splits = [split.reached for split in self._splits] if result.ends_task else None
            yield Step(result.size, result.doubt, result.seen, 1, result.plan, splits)

    @property
    def written_bytes(self) -> int:
        """See Store."""
        return sum(split.spool.tokens for split in self._splits) * self._layout.output.id_bytes

    def spare_bytes(self, shards: Sequence[Sequence[Facts]]) -> int:
        """See Store."""
        copied = (sum(facts.tokens for facts in some[1:][-MOST_AT_ONCE:]) for some in shards)
        return max(copied, default=0) * self._layout.output.id_bytes

    def sync(self) -> None:
        """See Store."""
        for split in self._splits:
            split.spool.sync()

    def shards(self, last: Part) -> list[list[Facts]]:
        """See Store."""
        found = []
        for split, reached, marks in zip(self.names, last.splits, self._marks):
            before = partial(facts_before, self._layout, self._layout.spool(split), reached.documents, marks)
            found.append(shards_of(self._layout, split, Facts(*reached[:3]), before))
        return found

    def make(self, shards: Sequence[Sequence[Facts]], options: RunOptions) -> Records:
        """See Store."""
        with Progress("writing shards", sum(map(len, shards)), "shard", options.progress) as bar:
            return {split: cut(self._layout, split, found, bar.add) for split, found in zip(self.names, shards)}

    def publish(self, shards: Sequence[Sequence[Facts]]) -> None:
        """See Store."""
        for split, found in zip(self.names, shards):
            publish(self._layout, split, found)

    def close(self) -> None:
        """See Store."""
        for split in self._splits:
            split.spool.close()
