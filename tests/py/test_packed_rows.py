"""Packed rows of ids in memory: against a slow best fit, and against the documents that went in."""

import random
from collections.abc import Sequence

import numpy
import pytest
from reference.packing import best_fit_spaces, columns, fewest_rows, fitted, gathered, pieces, pieces_of_rows

import pybpe
from pybpe import _binding
from pybpe.tokens.formats import METHODS
from pybpe.tokens.pack import spans
from pybpe.tokens.pack.rows import COLUMNS, columns_of
from pybpe.tokens.pack.spans import best_fit, chunks, groups, place, refit, row_count, shuffled, spans_of
from pybpe.tokens.token_files import TokenStream

MARK, PAD = 0, 1


# ----------------------------------------------------------------------------------------------------
# Best fit


def rows_are_best_fit(lengths: Sequence[int], size: int) -> None:
    rows = best_fit(numpy.array(lengths, dtype=numpy.int64), size)
    used = numpy.bincount(rows, weights=lengths).astype(int) if len(lengths) else numpy.zeros(0, dtype=int)
    assert sorted((size - used).tolist()) == best_fit_spaces(lengths, size)


def test_random_and_equal_lengths_fit_as_in_the_slow_version() -> None:
    rng = random.Random(1)
    for _ in range(300):
        size = rng.choice([1, 2, 3, 7, 8, 16, 33, 100])
        longest = rng.choice([size, -(-size // 2), -(-size // 5)])
        rows_are_best_fit([rng.randint(1, longest) for _ in range(rng.choice([0, 1, 2, 5, 40, 150]))], size)
        rows_are_best_fit([rng.choice([1, size // 2 or 1, min(size // 2 + 1, size), size - 1 or 1, size])] * 50, size)


def refitted(lengths: Sequence[int], size: int) -> int:
    """Returns the number of rows after best fit and refit, when they are right."""
    values = numpy.array(lengths, dtype=numpy.int64)
    before = best_fit(values, size)
    rows = refit(values, before, size)
    used = numpy.bincount(rows, weights=values).astype(int)
    assert used.max() <= size and used.min() > 0 and rows.max() <= before.max()
    assert rows.max() < before.max() or (rows == before).all()
    kept = numpy.bincount(before, weights=values)[before] == size
    if rows.max() < before.max():  # pieces of full rows are together as before
        assert len(set(zip(before[kept].tolist(), rows[kept].tolist()))) == len(set(before[kept].tolist()))
    return int(rows.max()) + 1


def test_refit_never_needs_more_rows_than_best_fit() -> None:
    rng = random.Random(4)
    for _ in range(400):
        size = rng.choice([1, 2, 3, 7, 16, 33, 100, 256])
        longest = rng.choice([size, -(-size // 2), -(-size // 5)])
        refitted([rng.randint(1, longest) for _ in range(rng.choice([1, 2, 5, 40, 300]))], size)


def test_refit_finds_the_fewest_rows_of_few_pieces() -> None:
    """Not always, since no fast method does, but more often than best fit."""
    rng = random.Random(5)
    best = fits = both = 0
    for _ in range(120):
        size = rng.choice([20, 50, 100])
        lengths = [rng.randint(size // 8, size // 2) for _ in range(11)]
        fewest, found = fewest_rows(lengths, size), refitted(lengths, size)
        assert found >= fewest
        fits += len(best_fit_spaces(lengths, size)) == fewest
        best += found == fewest
        both += 1
    assert fits < best <= both
    lengths = []
    for _ in range(300):  # short pieces that leave gaps after best fit: each row is one of a few sums of three
        a = rng.randint(60, 120)
        b = rng.randint(40, 190 - a)
        lengths += [a, b, 256 - a - b]
    assert refitted(lengths, 256) < len(best_fit_spaces(lengths, 256))


def test_whole_texts_are_in_the_rows_of_the_slow_version() -> None:
    rng = random.Random(7)
    for _ in range(150):
        size = rng.choice([1, 3, 8, 60, 63, 64, 65, 128, 200])
        lengths = [rng.randint(1, rng.choice([size, -(-size // 3)])) for _ in range(rng.choice([0, 1, 4, 12, 30]))]
        rows = _binding.fit_rows(numpy.array(lengths, dtype=numpy.int64), size)
        found: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
        for length, row in sorted(zip(lengths, rows)):
            found[row].append(length)
        assert found == [sorted(row) for row in fitted(lengths, size)]
    for wrong in (0, 9):
        with pytest.raises(ValueError, match="text 1 is empty, or too long for a row"):
            _binding.fit_rows(numpy.array([8, wrong]), 8)


def test_two_and_three_pieces_fill_rows_exactly() -> None:
    for lengths in ([6, 4, 4, 3, 3], [4, 3, 3, 4, 3, 3], [5, 4, 4, 3, 2, 2]):
        assert refitted(lengths, 10) == 2


def test_the_size_of_groups_never_changes() -> None:
    """Packing that resumes with a later version must make the same groups."""
    assert (spans._GROUP_TOKENS, spans._GROUP_ROWS) == (1 << 23, 256)


def test_a_stream_must_begin_with_a_mark() -> None:
    with pytest.raises(pybpe.errors.FormatError, match="the first token is 5, not the mark 0"):
        next(groups(TokenStream(numpy.array([5, 0, 5])), MARK, 4))


# ----------------------------------------------------------------------------------------------------
# Rows of made-up documents: every token is different, so each is found again


def numbered(lengths: Sequence[int]) -> list[list[int]]:
    found, at = [], 2
    for length in lengths:
        found.append(list(range(at, at + length)))
        at += length
    return found


def packed(texts: list[list[int]], size: int, method: str) -> tuple[list[list[int]], int]:
    """Returns the rows, and the number of groups."""
    ids = numpy.array([i for text in texts for i in [MARK, *text]], dtype=numpy.uint32)
    rows: list[list[int]] = []
    number = -1
    for number, group in enumerate(groups(TokenStream(ids), MARK, size)):
        placed = shuffled(place(group.documents, size, method), 7, number)
        for _, some in chunks(placed, size, 0, 10**9):
            (found,) = columns_of(group.ids, some, size, MARK, PAD, has_all=False).values()
            rows += found.tolist()
    return rows, number + 1


ADVERSARIAL = {
    "none": lambda size: [],
    "all are rows": lambda size: [size - 1] * 20,
    "all are one longer": lambda size: [size] * 20,
    "all are one shorter": lambda size: [max(1, size - 2)] * 20,
    "all of one token": lambda size: [1] * 100,
    "all are a little more than half": lambda size: [max(1, size // 2)] * 31,
    "huge": lambda size: [3, 700, 2, 700],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("size", [2, 3, 17])
def test_every_token_is_in_one_row_in_order(method: str, name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for group_tokens in (400, 1 << 20):
        monkeypatch.setattr(spans, "_GROUP_TOKENS", group_tokens)
        monkeypatch.setattr(spans, "_GROUP_ROWS", 4)
        rows_are_right(numbered(ADVERSARIAL[name](size)), size, method)


def test_random_documents_are_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_GROUP_ROWS", 3)
    rng = random.Random(2)
    for _ in range(50):
        monkeypatch.setattr(spans, "_GROUP_TOKENS", rng.choice([1, 100, 1000]))
        size = rng.choice([2, 3, 5, 16, 40])
        lengths = [rng.choice([1, size - 1, size, rng.randint(1, 4 * size)]) for _ in range(rng.randint(0, 60))]
        rows_are_right(numbered(lengths), size, rng.choice(METHODS))


def rows_are_right(texts: list[list[int]], size: int, method: str) -> None:
    rows, number = packed(texts, size, method)
    assert all(len(row) == size for row in rows)
    found = sorted(pieces_of_rows(rows, MARK, PAD), key=lambda piece: piece[1])
    assert [i for piece in found for i in piece[1:]] == [i for text in texts for i in text]
    if method == "best-fit":
        assert found == pieces(texts, MARK, size)
    else:  # each row cuts one document at most; one row of a group is short, others lack one token
        of_documents = {text[0] for text in texts}
        cuts = sum(piece[1] not in of_documents for piece in found)
        long = sum(len(text) // (size - 1) for text in texts)
        assert cuts <= len(rows) + (long if method == "fill" else 0)
        assert sum(row.count(PAD) > 1 for row in rows) <= number
    if number == 1 and method == "best-fit":
        assert len(rows) <= len(best_fit_spaces([len(piece) for piece in pieces(texts, MARK, size)], size))


# ----------------------------------------------------------------------------------------------------
# Columns


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_as_in_the_slow_version(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_GROUP_ROWS", 3)
    monkeypatch.setattr(spans, "_CHUNK_TOKENS", 50)
    rng = random.Random(8)
    for _ in range(20):
        monkeypatch.setattr(spans, "_GROUP_TOKENS", rng.choice([1, 100, 1000]))
        size = rng.choice([2, 3, 5, 16, 40])
        lengths = [rng.choice([1, size - 1, size, 3 * size, rng.randint(1, 9)]) for _ in range(rng.randint(0, 40))]
        texts = [list(range(1000 * i + 2, 1000 * i + 2 + length)) for i, length in enumerate(lengths)]
        last = {text[-1] for text in texts}
        ids = numpy.array([i for text in texts for i in [MARK, *text]], dtype=numpy.uint32)
        per_shard, before, begins = rng.choice([1, 3, 10**9]), 0, 0
        for number, group in enumerate(groups(TokenStream(ids), MARK, size)):
            placed = shuffled(place(group.documents, size, method), 7, number)
            for shard, some in chunks(placed, size, before, per_shard):
                found = columns_of(group.ids, some, size, MARK, PAD)
                begins += int(some["begins"].sum())
                assert tuple(found) == COLUMNS
                assert [str(column.dtype) for column in found.values()] == ["uint32", "int32", "int32", "uint8"]
                assert int(some["length"].sum()) == (found["document_ids"] >= 0).sum()
                assert {row // per_shard for row in range(before, before + len(found["input_ids"]))} == {shard}
                before += len(found["input_ids"])
                for i, row in enumerate(found["input_ids"].tolist()):
                    parts = [(piece, piece[-1] in last) for piece in pieces_of_rows([row], MARK, PAD)]
                    assert {name: column[i].tolist() for name, column in found.items()} == columns(parts, size, PAD)
        assert begins == len(texts)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_parts_are_gathered_as_in_the_slow_version(dtype: str) -> None:
    rng = random.Random(3)
    for _ in range(200):
        ids = numpy.array([rng.randrange(1 << 16) for _ in range(rng.randint(1, 40))], dtype=dtype)
        shape, parts = (rng.randint(1, 5), rng.randint(1, 20)), []
        for row in range(shape[0]):
            room = shape[1]
            while room and rng.random() < 0.7:
                length = rng.randint(1, min(room, len(ids)))
                parts.append((rng.randint(0, len(ids) - length), length, row))
                room -= length
        arrays = [numpy.array([part[i] for part in parts], dtype=rng.choice(["i8", "u8"])) for i in range(3)]
        mark: dict[str, int] = rng.choice([{}, {"mark": 7}])
        (found,) = _binding.gather_rows(ids, *arrays, shape, **mark, pad=9)
        assert found.dtype == dtype and found.shape == shape
        assert found.tolist() == gathered(ids.tolist(), parts, shape, mark.get("mark"), 9)


def test_a_part_beyond_the_ids_is_refused() -> None:
    """What another program left in a file must not be read as an address."""
    ids, row = numpy.zeros(5, dtype=numpy.uint16), numpy.zeros(1, dtype=numpy.int64)
    for start, length in [(3, 3), (-1, 2), (0, -1), (0, 0), (1 << 62, 1)]:
        with pytest.raises(pybpe.errors.ArgumentError, match="part 0 is empty, beyond the ids, or too long"):
            _binding.gather_rows(ids, numpy.array([start]), numpy.array([length]), row, (1, 10))


def test_a_spare_row_is_a_mark_and_padding() -> None:
    spare = spans_of(numpy.zeros(2), numpy.ones(2), False, False, numpy.arange(2))
    found = columns_of(numpy.array([7], dtype=numpy.uint16), spare, 5, MARK, PAD)
    assert [str(column.dtype) for column in found.values()] == ["uint16", "int32", "int32", "uint8"]
    assert row_count(spare) == 2
    expected = columns([([MARK], False)], 5, PAD)
    assert {name: column.tolist() for name, column in found.items()} == {
        name: [row] * 2 for name, row in expected.items()
    }
