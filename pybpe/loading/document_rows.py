"""Documents straight into training: reads text of any form, encodes them in threads, and packs them into rows. Writes
no files.

    tasks     ranges of the inputs, in an order from the seed and the epoch; a process has every n-th of them
    window    the documents that come next, as many as fill `window` rows; the last one is cut there
    rows      the documents of a window, in an order from the seed, packed

The rows of a window depend only on the place where it begins, and on the options. So a state has this place, and how
many rows of the window have been taken: to resume, one task is read again, and the window is packed again.

Another number of processes can go on from the states of all. The rest of a process's epoch is a part, which
one of the new processes reads to its end. So no document of an epoch is read twice, and none is left out:

    2 processes, in epoch 1      0: part 0 of 2, from a place on     1: part 1 of 2, from a place on
    3 processes go on            0: part 0, then epoch 2, 0 of 3     1: part 1, then epoch 2     2: epoch 2, 2 of 3
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import instance, one_of, param, whole_number
from ..errors import ArgumentError, warn
from ..model import refuse_dropout
from ..reading.charset import Doubts
from ..reading.cuts import PIECE_BYTES
from ..reading.documents import Kinds, check_mark, name_it
from ..reading.files import Staged, corpus_files, stage
from ..reading.inputs import Inputs, ReadOptions
from ..reading.objects import given_inputs
from ..reading.planning import TASK_BYTES, Plan, SplitOptions, Task
from ..reading.records import SkippedRecords
from ..support.output_files import temporary_folder
from ..support.parallel import RunOptions
from ..support.permutation import shuffled_numbers
from ..support.task_results import hashed
from ..tokenizer import Tokenizer
from ..tokens.task_encoder import TYPECODES, Encoded, EotPlacer, Marks, TaskEncoder
from .sampling import CANNOT_GO_ON, process_of
from .torch_data import this_process, torch_class

METHODS = ("fill", "cut")
_TASKS = 1024  # in a corpus, unless they would be smaller than a piece, or larger than binarize's
_MOST_APART = 1 << 16  # epochs of the processes of a run
_LEAST_TASKS = 16  # per process. If there are fewer, every process reads all, and takes every n-th document


class RowPlace(NamedTuple):
    """A place in the part of an epoch that one process reads."""

    epoch: int
    number: int  # which part it is
    of: int  # the number of parts
    task: int = 0  # this, in the order of the part, and `token`: where a window begins
    token: int = 0
    rows: int = 0  # how many rows of the window have been taken


class Left(NamedTuple):
    """The documents that a process has not read yet."""

    parts: tuple[RowPlace, ...] = ()  # the rest of the one that it has begun, and those that it has taken over
    epoch: int = 0  # after them, it reads its share of this epoch and of all later ones


class DocumentRows(torch_class("IterableDataset")):  # type: ignore[misc]
    """Documents as batches of packed rows: int64 arrays of shape (batch_size, sequence_length + 1). Inputs are
    `rows[:, :-1]`, targets `rows[:, 1:]`. `tok.eot_token` begins every document.

    Iteration continues where the last one stopped. With PyTorch, this is an IterableDataset: pass it to a DataLoader
    with batch_size=None. You need no worker processes, because threads encode. If there are some, they share the
    documents.

    Args:
        tok, inputs, documents, text_key, encoding, keep_crlf: see `pybpe.binarize`. A stream that can be read only
            once, such as standard input, is refused. The documents of an object are copied to a temporary file. To
            resume in another process, pass the same ones.
        sequence_length: tokens per row, without the last target.
        packing: with "fill", a row takes the longest documents of the window that fit. When none fits, the shortest is
            cut, and its rest goes to another row, after an end of text of its own. A document that is longer than a row
            becomes full rows and a rest. With "cut", documents follow one another, and are cut where a row is full.
        window: rows that are packed together. Tokens of a window that do not fill a row at its end are dropped.
        shuffle: shuffle the tasks of the corpus (ranges of 2 to 16 MiB, or whole compressed files), and the documents
            of a window, by `seed` and the epoch. Without it, windows come in the order of the inputs.
        repeat: with True, epochs follow one another without end. With False, an iteration ends with its epoch, whose
            last batch may be smaller, and the next iteration is the next epoch.
        rank, num_replicas: this process's number, and the number of processes. None for both asks torch.distributed.
        on_error: "skip" skips records that are not valid, and warns you at the end of an epoch. See `pybpe.binarize`.
        workers: the number of threads. 1 encodes when you ask for a batch. None means all CPUs, or 1 in a worker
            process.

    Raises:
        ArgumentError: an argument is not valid, or, in an iteration, this process has too little text for one row, or
            most records are not valid. UnsupportedError: the tokenizer has dropout. FileError, FormatError: a file
            cannot be read, has changed, or has a record that is not valid.
    """

    def __init__(
        self,
        tok: Tokenizer,
        inputs: Inputs,
        *,
        batch_size: int,
        sequence_length: int,
        packing: str = "fill",
        window: int = 1024,
        shuffle: bool = True,
        seed: int = 0,
        repeat: bool = True,
        rank: int | None = None,
        num_replicas: int | None = None,
        documents: str = "auto",
        text_key: str = "text",
        encoding: str | None = None,
        keep_crlf: bool = False,
        on_error: str = "stop",
        workers: int | None = None,
    ) -> None:
        instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
        refuse_dropout(tok.model, "cannot make rows that a state could make again")
        if tok.eot_token is None:
            raise ArgumentError(f"the tokenizer has no end of text to begin documents: {name_it()}")
        one_of("packing", packing, METHODS)
        self._tok, self._mark, self._dtype = tok, tok.eot_token, tok.model.dtype
        self._batch_size = whole_number("batch_size", batch_size, 1)
        self._width = whole_number("sequence_length", sequence_length, 1) + 1
        self._packing, self._shuffle, self._repeat = packing, bool(shuffle), bool(repeat)
        self._window, self._seed = whole_number("window", window, 1, 1 << 32), whole_number("seed", seed, None)
        self._workers = RunOptions(workers).workers
        if rank is None and num_replicas is None:
            rank, num_replicas = this_process()
        self._rank, self._replicas = process_of(rank, num_replicas)
        if not repeat and self._replicas > 1:
            raise ArgumentError(
                f"{param(repeat=False)} with {self._replicas} processes: they get different numbers of rows, and would"
                " wait for one another at the end: count batches instead"
            )
        read = ReadOptions(text_key, encoding, keep_crlf, documents, on_error)
        staged = self._staged(inputs, read)
        self._kinds, self._files = Kinds(read, tok.model.eot), staged.files
        for file in self._files.singles:
            if file.size is None:
                raise ArgumentError(f"{file.path}: can be read only once: copy it to a file first")
        check_mark(self._kinds, tok.special_tokens, tok.model.matching, self._files)
        self._doubts, self._left, self._shared = Doubts(), Left(), list[RowPlace]()
        self._settings: dict[str, Any] = {
            "inputs": hashed([staged.fingerprint(part) for part in self._files.parts], asdict(read)),
            "tokenizer": tok.model.fingerprint,
            "end_of_text": tok.model.eot,
            "sequence_length": self._width - 1,
            **{"packing": packing, "window": self._window, "shuffle": self._shuffle, "seed": self._seed},
        }

    def _staged(self, inputs: Inputs, read: ReadOptions) -> Staged:
        """Returns the files to read. The documents of an object are copied to a temporary file of this process."""
        given = given_inputs(inputs)
        if isinstance(given, list):
            return Staged(corpus_files(given, read))
        return stage(given, temporary_folder(self), read, ())

    @property
    def epoch(self) -> int:
        """The epoch, from 0, of the last row; before the first row of an iteration, the epoch of that row."""
        left = self._own_left()
        return left.parts[0].epoch if left.parts else left.epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes to the start of another epoch. The current epoch's number has no effect."""
        if whole_number("epoch", epoch) != self.epoch:
            self._left, self._shared = Left((), epoch), []

    def state_dict(self) -> dict[str, Any]:
        """Returns the place after the last batch, as numbers and strings. Every process has its own."""
        left = self._own_left()
        return {
            **self._settings,
            "share": list(self._share()),
            "parts": [list(part) for part in left.parts],
            "epoch": left.epoch,
        }

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Makes the next iteration resume where `state` was taken. The batch size and `workers` may differ.

        Args:
            state: the state of this process, or a list of the states of all processes. With a list, the number of
                processes may differ. Then every process must get the whole list, and every document of an epoch is
                still read exactly once. If there are more processes than states, some begin the next epoch at
                once, and a warning says so.

        Raises:
            ArgumentError: `state` is from other inputs, another tokenizer, other options or another process, or the
                list lacks the state of a process.
        """
        if isinstance(state, Mapping):
            left, share = self._of_state(state)
            if share != self._share():
                raise ArgumentError(
                    f"the state is of process {share[0]} of {share[1]}, and this is {self._share()[0]} of"
                    f" {self._share()[1]}: pass the states of all processes in a list (a StatefulDataLoader needs as"
                    " many processes and workers as before)"
                )
            self._left, self._shared = left, []
            return
        instance("state", state, (list, tuple), "a state, or a list of the states of all processes")
        found = {share: left for left, share in map(self._of_state, state)}
        count = max((share[1] for share in found), default=0)
        missing = {(number, count) for number in range(count)}.symmetric_difference(found)
        if not found or missing or len(found) < len(state):
            raise ArgumentError(f"{len(state)} states are not one of each process: pass one of each of the {count}")
        last = max(left.epoch for left in found.values())
        if last - min(left.epoch for left in found.values()) > _MOST_APART:
            raise ArgumentError("the states are from epochs too far apart to belong to one run")
        parts = [part for left in found.values() for part in left.parts]
        for share, left in found.items():
            parts += [RowPlace(epoch, *share) for epoch in range(left.epoch, last)]
        if (idle := self._replicas - len(parts)) > 0:
            warn(
                f"{idle} of {self._replicas} processes begin epoch {last} at once, because the states are of"
                f" {len(found)}, each of which leaves its rest to one process"
            )
        self._left, self._shared = Left((), last), sorted(parts)

    def _of_state(self, state: Mapping[str, Any]) -> tuple[Left, tuple[int, int]]:
        """Returns the documents that the process of a state has not read yet, and its share."""
        try:
            wrong = [
                f"{name} {state[name]!r}, not {value!r}"
                for name, value in self._settings.items()
                if state[name] != value
            ]
            number, count, epoch = (whole_number("a state", each) for each in (*state["share"], state["epoch"]))
            parts = tuple(RowPlace(*(whole_number("a state", each) for each in part)) for part in state["parts"])
            if number >= count or not all(part.number < part.of and part.epoch <= epoch for part in parts):
                raise ValueError(f"share {number} of {count}, parts {parts}")
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"not a state of DocumentRows: {error!r}") from None
        if wrong:
            raise ArgumentError(f"the state does not belong to these documents and options: it has {'; '.join(wrong)}")
        return Left(parts, epoch), (number, count)

    def _own_left(self) -> Left:
        """Returns the documents that this process has not read yet. Of the parts that a list of states has, it takes
        its share. A worker of a DataLoader does this itself: only it knows its number."""
        if not self._shared:
            return self._left
        number, count = self._share()
        return Left(tuple(self._shared[number::count]), self._left.epoch)

    def _share(self) -> tuple[int, int]:
        """Returns the number of this process, and how many there are, with the workers of DataLoaders."""
        worker = _worker()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return self._rank * count + number, self._replicas * count

    def __iter__(self) -> Iterator[Array]:
        shape = self._batch_size, self._width
        batch, filled, epoch = numpy.empty(shape, dtype=numpy.int64), 0, self.epoch
        for left, rows, order in self._windows():
            at = 0
            while at < len(order):
                some = order[at : at + self._batch_size - filled]
                batch[filled : filled + len(some)] = rows[some]
                at, filled = at + len(some), filled + len(some)
                if filled == self._batch_size:
                    yield from self._given(batch, _after(left, at))
                    batch, filled = numpy.empty(shape, dtype=numpy.int64), 0
        if filled:
            yield from self._given(batch[:filled], _after(left, at))
        parts = tuple(part for part in self._left.parts if part.epoch > epoch)
        self._left = Left(parts, max(self._left.epoch, epoch + (not parts)))

    def _given(self, batch: Array, after: Left) -> Iterator[Array]:
        """Yields a batch, after which this is left. Raises ArgumentError if something else is by then."""
        self._left = after
        yield batch
        if self._left is not after:
            raise ArgumentError(CANNOT_GO_ON)

    def _windows(self) -> Iterator[tuple[Left, Array, Array]]:
        """Yields, window by window, the rest at its start, its rows, and their order, without the rows that were
        taken."""
        self._left, self._shared = self._own_left(), []
        (parts, epoch), share = self._left, self._share()
        plan = Plan(self._files, self._kinds, SplitOptions((1,)), self._tok._encoder.cutting)
        plan.task_bytes = min(max(self._files.size // _TASKS, PIECE_BYTES), TASK_BYTES)
        tasks = list(plan.loose_tasks())
        while True:
            if not parts:
                parts, epoch = (RowPlace(epoch, *share),), epoch + 1
            start, parts = parts[0], parts[1:]
            taken, any_rows = start.rows, False
            for place, window in self._windows_of(start, self._documents(start, plan, tasks)):
                rows, order = self._packed(window, place)
                yield Left((place._replace(rows=taken), *parts), epoch), rows, order[taken:]
                taken, any_rows = 0, any_rows or len(rows) > 0
            if not any_rows and start == RowPlace(start.epoch, *share):
                raise ArgumentError(
                    f"process {share[0]} of {share[1]} has too few documents for one row of {self._width} ids: pass"
                    f" more text, a shorter {param('sequence_length')} or fewer processes; or say what separates the"
                    f" documents of text files ({param(documents='blank')} or 'line')"
                )
            if not self._repeat and not any(part.epoch == start.epoch for part in parts):
                return

    def _documents(self, start: RowPlace, plan: Plan, tasks: Sequence[Task]) -> Iterator[tuple[int, Array, Array]]:
        """Yields the documents of a part from a task on, in chunks: the number of the task, the ids that follow those
        before, with marks, and where documents begin."""
        share = start.number, start.of
        order = shuffled_numbers(len(tasks), self._seed, start.epoch) if self._shuffle else numpy.arange(len(tasks))
        by_task = len(tasks) >= _LEAST_TASKS * share[1]
        mine = (order[share[0] :: share[1]] if by_task else order)[start.task :].tolist()
        workers = self._workers if _worker() is None else self._workers or 1
        encoder = TaskEncoder(self._tok, self._kinds, (1.0,), Marks("prepend", self._mark, self._dtype.name))
        records, placer = SkippedRecords(), EotPlacer("prepend", self._mark)
        task, begun = start.task, 0
        fixed = (plan.fixed(tasks[number], plan.task_bytes) for number in mine)
        for found in encoder.encode(workers, fixed, self._doubts):
            self._doubts.tell(found.doubt)
            for notes in found.notes:
                records.add(notes)
            ids, starts = self._placed(placer, found)
            first, begun = task + begun - share[0], begun + len(starts)
            yield task, *((ids, starts) if by_task else _every(ids, starts, first, share[1]))
            if found.ends_task:
                records.check()
                task, begun = task + 1, 0
        records.finish(None)

    def _placed(self, placer: EotPlacer, found: Encoded) -> tuple[Array, Array]:
        """Returns the ids of some segments, with a mark before every document, and where documents begin."""
        ids, marks = array(TYPECODES[self._dtype.name]), 0
        for segment in found.segments:
            if ids:
                ids.extend(segment.ids)
            else:
                ids = segment.ids  # most often the only one
            if segment.ends_document:
                ids.append(self._mark)
            marks += segment.marks + segment.ends_document
        if found.ends_task:
            ids.append(self._mark)
        placed, starts = placer.place(ids, marks + found.ends_task)
        return numpy.asarray(placed, self._dtype), numpy.asarray(starts, numpy.int64)

    def _windows_of(
        self, start: RowPlace, chunks: Iterator[tuple[int, Array, Array]]
    ) -> Iterator[tuple[RowPlace, _Window]]:
        """Yields the places and the documents of the windows of a part, from the one at `start`."""
        window = _Window(self._window * self._width, self._dtype, self._mark)
        place, task, token = start, start.task, 0
        for number, ids, starts in chunks:
            if number != task:
                task, token = number, 0
            at = min(max(0, start.token - token), len(ids)) if task == start.task else 0
            while at < len(ids):
                if not window.filled:
                    place = RowPlace(*start[:3], task, token + at)
                at = window.take(ids, starts, at)
                if window.filled == window.room:
                    yield place, window
            token += len(ids)
        if window.filled:
            yield place, window

    def _packed(self, window: _Window, place: RowPlace) -> tuple[Array, Array]:
        """Empties a window. Returns its rows, and their order. The window must not be filled before these are used."""
        ids, starts, lengths = window.emptied()
        key = place.epoch, place.task, place.token, place.rows
        if self._shuffle:
            order = shuffled_numbers(len(starts), self._seed, *key)
            starts, lengths = starts[order], lengths[order]
        if self._packing == "fill":  # whose first rows have the longest documents
            rows = _binding.fill_rows(ids, starts, lengths, self._width)
            return rows, shuffled_numbers(len(rows), self._seed, *key)
        if self._shuffle:
            pairs = zip(starts.tolist(), (starts + lengths).tolist())
            ids = numpy.concatenate([ids[start:end] for start, end in pairs])
        rows = ids[: len(ids) // self._width * self._width].reshape(-1, self._width)
        return rows, numpy.arange(len(rows))


class _Window:
    """The documents of a window: `filled` of at most `room` ids, at least 2. `mark` begins every document, and the rest
    of one from the window before."""

    def __init__(self, room: int, dtype: numpy.dtype[Any], mark: int) -> None:
        self._ids, self._starts, self._mark = numpy.empty(room, dtype=dtype), list[Array](), mark
        self.room, self.filled = room, 0

    def take(self, ids: Array, starts: Array, at: int) -> int:
        """Takes ids from `at` on, as many as there is room for. Returns where the rest begins."""
        if not self.filled and ids[at] != self._mark:
            self._ids[0], self._starts, self.filled = self._mark, [numpy.zeros(1, dtype=numpy.int64)], 1
        some = ids[at : at + self.room - self.filled]
        first, last = numpy.searchsorted(starts, (at, at + len(some))).tolist()
        self._starts.append(starts[first:last] + (self.filled - at))
        self._ids[self.filled : self.filled + len(some)] = some
        self.filled += len(some)
        return at + len(some)

    def emptied(self) -> tuple[Array, Array, Array]:
        """Empties the window. Returns its ids, valid until `take` is called, and where the documents start, and their
        lengths: uint64, shape (documents,)."""
        starts, filled = numpy.concatenate(self._starts), self.filled
        self._starts, self.filled = [], 0
        lengths = numpy.diff(starts, append=filled)
        return self._ids[:filled], starts.astype(numpy.uint64), lengths.astype(numpy.uint64)


def _after(left: Left, rows: int) -> Left:
    """Returns what is left after more rows of the window that is at its start."""
    first, *others = left.parts
    return Left((first._replace(rows=first.rows + rows), *others), left.epoch)


def _every(ids: Array, starts: Array, first: int, count: int) -> tuple[Array, Array]:
    """Returns the ids of every count-th document, and where these begin. `first` is the number of the first document
    that begins here. Those whose number `count` divides are returned."""
    lengths = numpy.diff(starts, prepend=0, append=len(ids))  # the rest of the document before comes first
    kept = (numpy.arange(len(lengths)) + first - 1) % count == 0
    ends = numpy.cumsum(lengths * kept)
    return ids[numpy.repeat(kept, lengths)], (ends - lengths)[1:][kept[1:]]


def _worker() -> Any:
    """Returns PyTorch's facts about a worker process of a DataLoader; elsewhere None."""
    torch = sys.modules.get("torch")
    return None if torch is None else torch.utils.data.get_worker_info()
