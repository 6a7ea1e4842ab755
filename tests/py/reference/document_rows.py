"""The rows of DocumentRows, made slowly and plainly of lists of ids."""

import hashlib
from collections.abc import Iterator, Sequence

Documents = Sequence[Sequence[int]]
Row = list[int]


def scrambled(value: int) -> int:
    """The finalizer of splitmix64."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def shuffled(count: int, *key: int) -> list[int]:
    start = int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "little")
    return sorted(range(count), key=lambda number: scrambled((start + number) % 2**64))


def filled(documents: Documents, width: int, mark: int) -> list[Row]:
    """The longest document that fits, again and again; if none fits, the beginning of the shortest."""
    rows, waiting = [], []
    for text in documents:
        while len(text) >= width - 1:
            rows.append([mark, *text[: width - 1]])
            text = text[width - 1 :]
        if text:
            waiting.append(text)
    while sum(len(text) + 1 for text in waiting) >= width:
        row: Row = []
        while len(row) < width:
            space = width - len(row)
            fitting = [text for text in waiting if len(text) < space]
            chosen = max(fitting, key=len) if fitting else min(waiting, key=len)
            at = next(number for number, text in enumerate(waiting) if text is chosen)
            del waiting[at]
            row += [mark, *chosen[: space - 1]]
            if not fitting:
                waiting.append(chosen[space - 1 :])
        rows.append(row)
    return rows


def cut(documents: Documents, width: int, mark: int) -> list[Row]:
    ids = [number for text in documents for number in (mark, *text)]
    return [ids[at : at + width] for at in range(0, len(ids) - width + 1, width)]


def split(ids: Sequence[int], mark: int) -> list[Row]:
    """Splits ids that begin with a mark into documents without their marks."""
    found: list[Row] = []
    for number in ids:
        if number == mark:
            found.append([])
        else:
            found[-1].append(number)
    return found


def share_of(tasks: Sequence[Documents], share: tuple[int, int]) -> list[Documents]:
    """The part of one process: every n-th task if there are 16 for each process, otherwise every n-th document."""
    rank, count = share
    if len(tasks) >= 16 * count:
        return list(tasks[rank::count])
    return [[text for i, text in enumerate(task) if (i + n) % count == rank] for n, task in enumerate(tasks)]


def epoch_rows(
    tasks: Sequence[Documents],
    mark: int,
    *,
    sequence_length: int,
    packing: str,
    window: int,
    shuffle: bool,
    seed: int,
    epoch: int = 0,
    share: tuple[int, int] = (0, 1),
) -> Iterator[Row]:
    """Yields the rows of an epoch. `tasks` are the documents of each task, without marks."""
    if shuffle:
        tasks = [tasks[i] for i in shuffled(len(tasks), seed, epoch)]
    width, ids = sequence_length + 1, []
    for number, task in enumerate(share_of(tasks, share)):
        places = enumerate(each for text in task for each in (mark, *text))
        ids += [(number, token, each) for token, each in places]
    while ids:
        key = seed, epoch, *ids[0][:2], 0
        taken = [] if ids[0][2] == mark else [mark]
        while ids and len(taken) < window * width:
            taken.append(ids.pop(0)[2])
        documents = split(taken, mark)
        if shuffle:
            documents = [documents[i] for i in shuffled(len(documents), *key)]
        if packing == "cut":
            yield from cut(documents, width, mark)
        else:
            rows = filled(documents, width, mark)
            yield from (rows[i] for i in shuffled(len(rows), *key))
