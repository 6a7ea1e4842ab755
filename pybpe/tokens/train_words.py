"""Counts the words of the train split, which `prepare` trains on, locally or with an executor's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ..reading.division import add_documents, divide, dividers, shares_of
from ..reading.documents import RECORDS, Kinds
from ..reading.input_file import InputFile, known_total
from ..reading.planned_pieces import PlannedPiece, planned_pieces
from ..reading.planning import Plan, Task, anchored
from ..support.progress import Progress
from ..support.remote import Workers
from ..support.run_options import RunOptions
from ..training.counting import Counted, count_by_executor
from ..training.counts import Counts, CountTable
from ..training.word_counter import CountSettings, WordCounter
from .workers import PENDING


@dataclass(frozen=True)
class TrainWords:
    """Counts the words of tasks. An executor sends this object to its workers.

    Attributes:
        kinds: how documents are separated.
        splits: the shares, for documents that are split by hash.
        settings: how words are counted.
    """

    kinds: Kinds
    splits: Sequence[float]
    settings: CountSettings

    def count(
        self,
        files: Sequence[InputFile],
        tasks: Callable[[], Iterable[Task]],
        workers: int | None,
        progress: bool | None,
    ) -> Counted:
        """Counts with threads. The texts of records are counted separately, since special tokens in them are plain
        text, in training as in encoding.

        Args:
            files: the files that the tasks read.
            tasks: returns them.
            workers, progress: as in `pybpe.train`.
        """
        records = [file for file in files if self.kinds.kind(file) in RECORDS]
        others = [file for file in files if self.kinds.kind(file) not in RECORDS]
        counter = WordCounter(self.settings, workers)
        try:
            if others:
                texts = chain.from_iterable(self._texts(tasks(), records=False))
                counter.add_texts(texts, progress, total=self.total(others))
            if records:
                counter.add_records(self._texts(tasks(), records=True), progress, self.total(records))
            return Counted(Counts(counter.finish(), self.settings), counter.bytes_seen)
        finally:
            counter.close()

    def total(self, files: Iterable[InputFile]) -> int | None:
        """Returns about how many bytes of these files are in the train split."""
        total = known_total(files)
        return None if total is None else int(total * self.splits[0] / sum(self.splits))

    def _texts(self, tasks: Iterable[Task], records: bool) -> Iterator[Sequence[bytes]]:
        """Yields batches of the train split's texts: either those of records, or all others, joined by the mark."""
        cut = self.settings.cutting.cut
        join = self.kinds.mark is not None and not records
        for task in tasks:
            ranges = [planned for planned in task if (self.kinds.kind(planned.file) in RECORDS) == records]
            for piece in planned_pieces(ranges, self.kinds, cut):
                if piece.split not in (None, 0):
                    continue
                if not piece.divided:
                    yield [bytes(piece.data)]  # type: ignore[arg-type]
                    continue
                joined = self._joined(piece) if join else None
                if joined is not None:
                    yield [joined]
                    continue
                for split, documents in divide(piece, self.kinds, self.splits):
                    if split == 0:
                        yield [self.kinds.mark_bytes.join(documents)] if join else documents

    def _joined(self, piece: PlannedPiece) -> bytes | None:
        """Returns the documents of the train split with the mark between them; None if Python must divide the piece."""
        free = dividers(self.kinds.mark_bytes, self.kinds.mark, self.kinds.text_key, shares_of(piece, self.splits))
        with free.take() as divider:
            return bytes(divider.joined(0)[0]) if add_documents(divider, piece) else None


def count_train_split(plan: Plan, words: TrainWords, run: RunOptions) -> Counts:
    """Returns the words of a corpus's train split; any executor gives the same. Arguments and errors are those of
    `binarize`."""
    if run.executor is None:
        return words.count(plan.files, plan.tasks, run.workers, run.progress).counts
    limit = PENDING if run.workers is None else 2 * run.workers
    with Progress("counting", words.total(plan.files), "B", run.progress) as bar:
        tasks = map(anchored, plan.tasks())
        table = CountTable(words.settings)
        count_by_executor(partial(count_task, words), tasks, table, Workers.of(run), bar, limit)
        return table.counts()


def count_task(words: TrainWords, task: Task) -> Counted:
    """Counts a task in a worker."""
    return words.count([planned.file for planned in task], lambda: [task], 1, False)
