"""Best-fit decreasing, slowly: the oracle for pybpe/dataset/packed_rows."""

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
