"""Checks how much text each split will get: with few documents, the shares can be far from those requested.

Whole documents go into splits, by hash or in turn. With thousands of documents, the shares come out as requested. Three
books may come out as 1:1:1 instead of 8:1:1, or leave a split empty. The check runs before anything is encoded, and
stops once there are more than _MOST documents.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import LimitError, warn
from ..reading.bad_records import SkippedRecords
from ..reading.division import document_sizes
from ..reading.documents import Kinds
from ..reading.planning import Plan, pieces_of
from ..reading.splits import SPLIT_NAMES

_MOST = 200  # documents; with more, the shares are close enough, unless a few are far longer than the rest
_FACTOR = 2.0  # warn of a share that is this many times larger or smaller than requested
_REMEDY = "documents stay whole; split_by='token' (--split-by token) divides the text itself"


def check_shares(plan: Plan, kinds: Kinds, splits: Sequence[float], least_tokens: int) -> None:
    """Warns if the text of a few documents is divided in shares far from `splits`.

    Raises:
        LimitError: a split that has a share gets nothing, but needs `least_tokens` tokens.
    """
    if not (plan.hashed or plan.between_documents) or len(splits) == 1:
        return
    found = _text_bytes(plan, kinds, splits)
    if found is None:
        return
    wanted = [share / sum(splits) for share in splits]
    shares = [size / max(1, sum(found)) for size in found]
    names = SPLIT_NAMES[: len(splits)]
    figures = ", ".join(
        f"{100 * share:.0f}% {name} ({100 * want:.0f}%)" for name, share, want in zip(names, shares, wanted)
    )
    for name, size, want in zip(names, found, wanted):
        if want and not size and least_tokens:
            raise LimitError(f"no document falls into the split {name}: the shares would be {figures}; {_REMEDY}")
    if any(not want / _FACTOR <= share <= want * _FACTOR for share, want in zip(shares, wanted)):
        warn(f"the shares of the splits differ from those requested: {figures}; {_REMEDY}")


def _text_bytes(plan: Plan, kinds: Kinds, splits: Sequence[float]) -> list[int] | None:
    """Returns the bytes of text of each split, or None if there are many documents."""
    found = [0] * len(splits)
    documents, records = 0, SkippedRecords()
    for task in plan.tasks():
        for planned in task:
            if planned.split is not None and planned.end is not None:
                found[planned.split] += planned.end - planned.start
                documents += planned.ends_document
                continue
            for piece in pieces_of([planned], kinds, lambda data, start: len(data)):
                for split, count, size in document_sizes(piece, kinds, splits):
                    found[split] += size
                    documents += count
                records.add(piece.seen)
                records.check()
                if documents > _MOST:
                    return None
        if documents > _MOST:
            return None
    return found
