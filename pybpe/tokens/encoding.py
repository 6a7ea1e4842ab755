"""Encodes tasks into segments, ids with the split that they belong to: with threads, or the workers of an executor."""

from __future__ import annotations

import string
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain, groupby, islice, pairwise, tee
from operator import itemgetter
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import pickle
from ..arguments import Text
from ..model import END_OF_TEXT, PLAIN
from ..reading.bad_records import Seen
from ..reading.division import add_documents, divide, lent_divider, shares_of
from ..reading.documents import RECORDS, Kinds, overlaps
from ..reading.pieces import PIECE_BYTES
from ..reading.planning import Identity, Piece, Plan, Task, anchored, hashed_tasks, pieces_of
from ..reading.rows import Texts
from ..reading.text_encoding import Doubts
from ..support.parallel import RunOptions, map_ordered
from ..tokenizer import Tokenizer
from ..tokenizer.encoding import AllowedSpecial
from .spool import TYPECODES, Reached, Segment

_LEAST_SIZE = 1 << 10  # the minimum size to count for a piece, since it takes more memory than its text
_SMALL = 1 << 12  # bytes of a piece
_ALONE = -1  # instead of the split of a piece that is not small
_NEUTRAL = string.punctuation.replace("_", "")  # neither white space nor part of a word


class TaskEncoder(NamedTuple):
    """Encodes tasks and pieces. An executor sends this object to its workers."""

    tok: Tokenizer
    kinds: Kinds  # how documents are separated
    splits: Sequence[float]  # the shares, for documents that are split by hash
    dtype: str  # the dtype of the ids, "uint16" or "uint32"
    joins: bool = True  # whether documents get marks between them; otherwise their ids are concatenated

    def task_pieces(self, task: Task) -> Iterator[Piece]:
        """Yields the pieces of a task, in order."""
        return pieces_of(task, self.kinds, self.tok._encoder.cut)

    def segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a piece.

        Raises:
            FormatError: a line is not a record.
        """
        if not piece.divided:
            assert piece.split is not None and isinstance(piece.data, memoryview)
            ids = self._ids(piece.data, "all")
            return [self._segment(piece, piece.split, ids, len(piece.data))]
        mark, records = self.tok.model.eot, piece.kind in RECORDS
        if mark is not None and self.joins and not (self.tok.model.matching and self._mark_matters):
            others: Iterable[str] = [mark] if records else self.tok.special_tokens
            if not any(overlaps(special, mark) for special in others):  # otherwise some marks would not be found
                with lent_divider(self.kinds, mark.encode(), shares_of(piece, self.splits)) as divider:
                    if add_documents(divider, piece):
                        found = self._joined_segments(divider, piece, {mark} if records else "all")
                        if found is not None:
                            return found
        return self._listed_segments(piece)

    def _listed_segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a divided piece whose documents are encoded one by one: one segment per split with
        marks between them, or one per document."""
        found, mark = list[Segment](), self.tok.eot_token
        for split, documents in divide(piece, self.kinds, self.splits):
            ids, ends = self._encode(documents, piece.kind)
            parts = zip((ids[start:end] for start, end in pairwise([0, *ends])), map(len, documents))
            if self.joins and mark is not None:
                joined, size = array(TYPECODES[self.dtype]), 0
                for number, (part, length) in enumerate(parts):
                    if number > 0:
                        joined.append(mark)
                        size += self._mark_bytes
                    joined += part
                    size += length
                found.append(self._segment(piece, split, joined, size))
            elif self.tok.model.changes_text or (mark is not None and _binding.count_id(ids, mark)):
                found += [self._segment(piece, split, part, length) for part, length in parts]
            else:
                found += [Segment(split, part, 0, length, True) for part, length in parts]
        return found

    def _joined_segments(
        self, divider: _binding.Divider, piece: Piece, allowed: AllowedSpecial
    ) -> list[Segment] | None:
        """Returns the segments of a piece whose documents a divider has, encoded with one call per split; None if one
        of its records contains the mark's text, which is not a mark there."""
        found = []
        for place in range(divider.splits):
            text, documents = divider.joined(place)
            if not documents:
                continue
            ids = self._ids(text, allowed)
            segment = self._segment(piece, place if piece.split is None else piece.split, ids, len(text))
            if allowed != "all" and segment.marks != documents - 1:
                return None
            found.append(segment)
        return found

    def _ids(self, text: Text, allowed: AllowedSpecial) -> array[int]:
        """Returns the ids of a text in which some special tokens are recognized."""
        encoder = self.tok._encoder
        return encoder.compact(text, encoder.allowed((), allowed), TYPECODES[self.dtype])

    def _encode(self, documents: Sequence[bytes], kind: str) -> tuple[array[int], Sequence[int]]:
        """Returns the ids of documents, and the index at which those of each one end."""
        encoder, ends = self.tok._encoder, list[int]()
        specials = encoder.allowed((), () if kind in RECORDS else "all")
        found = encoder.compact_batch(documents, specials, TYPECODES[self.dtype])
        if found is not None:
            return found
        ids = array(TYPECODES[self.dtype])
        for document in documents:
            ids += encoder.compact(document, specials, ids.typecode)
            ends.append(len(ids))
        return ids, ends

    def _segment(self, piece: Piece, split: int, ids: array[int], size: int) -> Segment:
        """Returns the size of the text. `size` is the bytes that were encoded, marks included."""
        marks = _binding.count_id(ids, self.tok.eot_token) if self.tok.eot_token is not None else 0
        text_bytes = size - marks * self._mark_bytes
        if self.tok.model.changes_text:
            text_bytes = text_length(self.tok, ids)
        return Segment(split, ids, marks, text_bytes, piece.ends_document)

    @property
    def _mark_matters(self) -> bool:
        """Whether a mark next to a text may change which special tokens are found in it, or the text may change whether
        the mark is found. Only special tokens with flags look at the text next to them."""
        mark = self.tok.model.eot or ""
        rules = self.tok.model.matching.get(mark, PLAIN)
        is_neutral = mark[:1] in _NEUTRAL and mark[-1:] in _NEUTRAL
        return not is_neutral or rules.strips or rules.single_word

    @property
    def _mark_bytes(self) -> int:
        return len((self.tok.model.eot or END_OF_TEXT).encode())


def segments_of(encoder: TaskEncoder, pieces: Iterable[Piece]) -> list[Segment]:
    """Returns the segments of pieces, in order. Small texts, as of compressed files, become one piece, because a call
    to C for each would take longer than the encoding."""
    mark = None if (eot := encoder.tok.model.eot) is None else eot.encode()
    found = list[Segment]()
    for split, some in groupby(pieces, partial(_split_if_small, mark)):
        if split != _ALONE:
            small = list(some)
            ends = array("Q", accumulate((len(piece.text) for piece in small), initial=0))
            texts = Texts([(memoryview(b"".join(piece.text for piece in small)), memoryview(ends))])
            some = iter([small[0]._replace(data=texts, divided=True)])
        found += chain.from_iterable(map(encoder.segments, some))
    return found


def _split_if_small(mark: bytes | None, piece: Piece) -> int | None:
    """Returns the split of a piece that is one small document without marks, or _ALONE."""
    if piece.kind in ("special", "file") and piece.ends_document and isinstance(piece.data, memoryview):
        if 0 < len(piece.data) <= _SMALL and (mark is None or mark not in bytes(piece.data)):
            return piece.split
    return _ALONE


# ----------------------------------------------------------------------------------------------------
# Tasks, by threads or by an executor's workers


class Encoded(NamedTuple):
    """Some work of a run."""

    segments: Sequence[Segment]  # in order
    size: int  # the amount of input read for them, such as bytes of text
    tasks: int = 0  # how many tasks end with them
    doubt: str | None = None  # what to say about a file that is not UTF-8 (see text_encoding.py)
    seen: Sequence[Seen] = ()  # the records of the pieces, in order
    plan: str = ""  # as in Part, if the run can resume after its inputs have changed
    # As in Part: a store adds this and `kept` when it has the tokens of a task that ends.
    splits: Sequence[Reached] = ()
    kept: Any = None


class Part(NamedTuple):
    """What a run has done up to the end of some task: a line of its log (run.py)."""

    tasks: int  # the number of finished tasks
    plan: str  # their hash: see `hashed_tasks`
    skipped: Mapping[str, Any]  # the fields of a SkipState: the records so far, bad ones included
    splits: Sequence[Reached]  # how far each split has come
    kept: Any = None  # what the store must know to find the tokens, as JSON values
    listed: str = ""  # the lines about records that were skipped since the part before


class EncodingJob(NamedTuple):
    """The work of binarize: the tasks of a plan, what encodes them, and what distinguishes files from others with the
    same names."""

    plan: Plan
    encoder: TaskEncoder
    identity: Identity

    def encoded(self, first: int, options: RunOptions, doubts: Doubts) -> Iterator[Encoded]:
        """Yields the tokens of all tasks from number `first`. Raises WorkerError if a worker died and the executor
        cannot continue."""
        found, done = tee(islice(self.hashed(), first, None))
        tasks = map(itemgetter(0), found)
        if options.executor is not None:
            from ..support.remote import map_by_executor

            call = partial(run_task, pickle.dumps(self.encoder))
            results: Iterator[Encoded] = map(itemgetter(1), map_by_executor(call, map(anchored, tasks), options))
        else:
            results = run_local(self.encoder, tasks, options.workers, doubts)
        for result in results:
            yield result._replace(plan=next(done)[1]) if result.tasks else result

    def hashed(self, threads: int = 1) -> Iterator[tuple[Task, str]]:
        """Yields each task with the hash of all tasks up to it. `threads` is as in Plan.tasks."""
        return hashed_tasks(self.plan.tasks(threads), self.identity)


def run_local(encoder: TaskEncoder, tasks: Iterable[Task], workers: int | None, doubts: Doubts) -> Iterator[Encoded]:
    """Runs tasks with threads, which share a task piece by piece."""

    def items() -> Iterator[tuple[list[Piece], int]]:
        for task in tasks:
            for some in _groups(encoder.task_pieces(task)):
                yield some, 0
            yield [], 1

    return map_ordered(partial(_encode, encoder, doubts), items(), workers)


def _encode(encoder: TaskEncoder, doubts: Doubts, item: tuple[Sequence[Piece], int]) -> Encoded:
    some, tasks = item
    segments = segments_of(encoder, some)  # which also notes the records
    size, doubt, seen = 0, None, list[Seen]()
    for piece in some:
        size, doubt = size + piece.size, doubt or piece.doubt(doubts.look)
        if piece.seen.end:
            seen.append(piece.seen)
    return Encoded(segments, size, tasks, doubt, seen)


def _groups(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Groups small pieces together: one group is one thread's unit of work."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += max(piece.size, _LEAST_SIZE)
        if size >= PIECE_BYTES // 2:
            yield group
            group, size = [], 0
    if group:
        yield group


def run_task(pickled: bytes, task: Task) -> Encoded:
    """Runs a task in a worker."""
    segments: list[Segment] = []
    seen: list[Seen] = []
    size, doubt = 0, None
    for result in task_results(_encoder(pickled), task):
        segments += result.segments
        seen += result.seen
        size += result.size
        doubt = doubt or result.doubt
    return Encoded(segments, size, 1, doubt, seen)


def task_results(encoder: TaskEncoder, task: Task) -> Iterator[Encoded]:
    """Yields the results of a task's pieces, in groups."""
    for some in _groups(encoder.task_pieces(task)):
        yield _encode(encoder, Doubts(), (some, 0))


@lru_cache(maxsize=2)
def _encoder(pickled: bytes) -> TaskEncoder:
    """Unpickles the encoder once per worker, not once per task."""
    return pickle.loads(pickled)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------
# Sizes of texts


def text_length(tok: Tokenizer, ids: array[int] | memoryview) -> int:
    """Returns the bytes of text that ids of type H or I represent; <|endoftext|> counts as 0."""
    length = tok._decoder.length(ids)
    if tok.eot_token is not None:
        length -= _binding.count_id(ids, tok.eot_token) * len(tok.decode_single_token_bytes(tok.eot_token))
    return length
