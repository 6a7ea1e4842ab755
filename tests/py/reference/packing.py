"""Best-fit decreasing and exact fit, slowly: the oracles for pybpe/tokens/pack."""

from collections.abc import Sequence


def best_fit_spaces(lengths: Sequence[int], size: int) -> list[int]:
    """Returns the space that each row has left, sorted. Which of several rows with equal space gets a piece does not
    change this."""
    spaces: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [(space, row) for row, space in enumerate(spaces) if space >= length]
        if fitting:
            spaces[min(fitting)[1]] -= length
        else:
            spaces.append(size - length)
    return sorted(spaces)


def fitted(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Returns the lengths in each row if a row begins with the longest left, and takes one, two or three that fill it,
    the nearest pair first, and then the longest third one; otherwise the longest that fits, again and again."""
    left, rows = sorted(lengths, reverse=True), list[list[int]]()
    while left:
        rows.append([left.pop(0)])
        while some := _filling(left, size - sum(rows[-1])) or [n for n in left if n <= size - sum(rows[-1])][:1]:
            rows[-1] += some
            for length in some:
                left.remove(length)
    return rows


def _filling(left: Sequence[int], space: int) -> list[int]:
    """Returns one, two or three of these lengths, from the longest to the shortest, that are `space` together."""
    if space in left:
        return [space]
    for first in [0, *sorted({n for n in left if n < space}, reverse=True)[:16]]:
        rest = list(left)
        if first:
            rest.remove(first)
        pairs = [(a, b) for at, a in enumerate(rest) for b in rest[at + 1 :] if first + a + b == space]
        if pairs:
            return [first] * (first > 0) + list(min(pairs))
    return []


def pieces(documents: Sequence[Sequence[int]], mark: int, size: int) -> list[list[int]]:
    """Returns the documents with their marks, cut into parts that fit into a row."""
    return [[mark, *document[at : at + size - 1]] for document in documents for at in range(0, len(document), size - 1)]


def pieces_of_rows(rows: Sequence[Sequence[int]], mark: int, pad: int) -> list[list[int]]:
    """Returns the pieces in rows, without padding."""
    found: list[list[int]] = []
    for row in rows:
        assert row[0] == mark
        for i in row:
            if i == mark:
                found.append([mark])
            elif i != pad:
                found[-1].append(i)
    return [piece for piece in found if len(piece) > 1]


def columns(parts: Sequence[tuple[Sequence[int], bool]], size: int, pad: int) -> dict[str, list[int]]:
    """Returns the columns of a row, token by token. `parts` are its pieces, with their marks, and whether each is the
    end of its document."""
    found: dict[str, list[int]] = {"input_ids": [], "document_ids": [], "position_ids": [], "loss_mask": []}

    def add(token: int, document: int, position: int, is_target: bool) -> None:
        for column, value in zip(found.values(), (token, document, position, int(is_target))):
            column.append(value)

    for number, (piece, _) in enumerate(parts):
        for position, token in enumerate(piece):
            ends_a_document = number > 0 and parts[number - 1][1]
            add(token, number, position, position > 0 or ends_a_document)
    for position in range(size - len(found["input_ids"])):
        add(pad, -1, position, False)
    return found


def gathered(
    ids: Sequence[int], parts: Sequence[tuple[int, int, int]], shape: tuple[int, int], mark: int | None, pad: int
) -> list[list[int]]:
    """Returns rows of parts (start, length, row), each with this mark, if any, in place of its first id."""
    rows: list[list[int]] = [[] for _ in range(shape[0])]
    for start, length, row in parts:
        rows[row] += [ids[start] if mark is None else mark, *ids[start + 1 : start + length]]
    return [row + [pad] * (shape[1] - len(row)) for row in rows]


def fewest_rows(lengths: Sequence[int], size: int) -> int:
    """Returns the fewest rows that any packing needs, by trying all."""
    best = len(lengths)

    def place(i: int, spaces: list[int]) -> None:
        nonlocal best
        if len(spaces) >= best:
            return
        if i == len(lengths):
            best = len(spaces)
            return
        for row, space in enumerate(spaces):
            if space >= lengths[i] and space not in spaces[:row]:
                place(i + 1, [*spaces[:row], space - lengths[i], *spaces[row + 1 :]])
        place(i + 1, [*spaces, size - lengths[i]])

    place(0, [])
    return best
