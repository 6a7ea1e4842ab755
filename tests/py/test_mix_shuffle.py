"""The parts of a mixture without files: keys, what is drawn, and statistics that only a global shuffle passes."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy
import pytest
from reference import mixing as reference

from pybpe.errors import FormatError
from pybpe.tokens.mix import drawing as drawing_module
from pybpe.tokens.mix.drawing import (
    Documents,
    Drawn,
    Pass,
    draw,
    drawing_keys,
    everything,
    find_documents,
    writing_keys,
)
from pybpe.tokens.mix.shuffling import order_of
from pybpe.tokens.token_files import TokenStream

MARK = 0


# ----------------------------------------------------------------------------------------------------
# Documents in a stream


def stream_of(texts: Sequence[Sequence[int]], eot: str) -> TokenStream:
    marked = [[MARK, *text] if eot == "prepend" else [*text, MARK] for text in texts]
    return TokenStream(numpy.array([i for text in marked for i in text], dtype=numpy.uint16))


def numbered(lengths: Sequence[int]) -> list[list[int]]:
    return [[1 + (at * 7 + i) % 900 for i in range(length)] for at, length in enumerate(lengths)]


@pytest.mark.parametrize("eot", ["prepend", "append"])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_documents_are_found(eot: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_module, "_BLOCK", block)
    rng = random.Random(block)
    for _ in range(15):
        texts = numbered([rng.choice([1, 2, 5, 30]) for _ in range(rng.randint(1, 12))])
        found = find_documents(stream_of(texts, eot), MARK, eot, 1000, str(tmp_path))
        assert len(found) == len(texts) and found.tokens == sum(found.lengths)
        assert found.lengths.tolist() == [len(text) + 1 for text in texts]
        ends = [0, *found.lengths.cumsum().tolist()]
        for first in range(len(texts)):
            for last in range(first + 1, len(texts) + 1):
                ids = found.stream.slice(ends[first], ends[last])
                assert ids.dtype == numpy.uint16
                assert ids.tolist() == [i for text in texts[first:last] for i in [MARK, *text]]


def test_an_empty_stream_has_no_documents(tmp_path: Path) -> None:
    found = find_documents(TokenStream(numpy.empty(0, numpy.uint16)), MARK, "append", 9, str(tmp_path))
    assert len(found) == found.tokens == 0


@pytest.mark.parametrize(
    ("ids", "eot", "message"),
    [
        ([5, 0, 5], "prepend", "token 0: the first token is not the end of text"),
        ([5, 0, 5], "append", "token 3: the last token is not the end of text"),
        ([0, 5, 0, 0, 5], "prepend", "token 2: a document has no tokens"),
        ([0, 5, 0], "prepend", "token 2: a document has no tokens"),
        ([5, 0, 0], "append", "token 2: a document has no tokens"),
        ([0, 5, 1000], "prepend", "token 2: the id 1000 is not in the vocabulary, which ends at 999"),
    ],
)
def test_streams_that_are_not_documents_are_refused(ids: list[int], eot: str, message: str, tmp_path: Path) -> None:
    numpy.array(ids, dtype="<u2").tofile(tmp_path / "x.bin")
    stream = TokenStream(tmp_path / "x.bin", "uint16")
    with pytest.raises(FormatError, match=message):
        find_documents(stream, MARK, eot, 1000, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


# ----------------------------------------------------------------------------------------------------
# Drawing


def drawn_texts(texts: list[list[int]], drawn: Drawn, seed: int, source: str = "x") -> list[tuple[int, int, list[int]]]:
    """Returns what was drawn as the slow version does."""
    found = []
    for of_pass, part in enumerate(drawn.passes):
        keys = drawing_keys(numpy.arange(len(texts)), seed, source, of_pass)
        assert part.chosen(keys).any()
        for number in sorted(part.chosen(keys).nonzero()[0].tolist(), key=lambda number: int(keys[number])):
            size = part.cut[1] if part.cut and part.cut[0] == number else len(texts[number]) + 1
            found.append((of_pass, number, texts[number][: size - 1]))
        assert part.tokens == sum(len(text) + 1 for at, _, text in found if at == of_pass)
    assert drawn.documents == len(found) and drawn.tokens == sum(len(text) + 1 for _, _, text in found)
    assert sum(part.cut is not None for part in drawn.passes) == sum(
        len(ids) < len(texts[number]) for _, number, ids in found
    )
    return found


@pytest.mark.parametrize("bins", [1, 4, 1 << 16])
def test_what_is_drawn_is_what_the_slow_version_draws(bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_module, "_BINS", bins)
    monkeypatch.setattr(drawing_module, "_BLOCK", 7)
    rng = random.Random(bins)
    for seed in range(60):
        texts = numbered([rng.choice([1, 2, 5, 30, 200]) for _ in range(rng.choice([1, 2, 5, 40]))])
        lengths = numpy.array([len(text) + 1 for text in texts], dtype="<u8")
        documents = Documents(stream_of(texts, "prepend"), lengths)
        tolerance, size = rng.choice([2, 10, 64, 1000]), documents.tokens
        for tokens in (0, 1, 2, size, 2 * size, rng.randint(0, size), rng.randint(0, 4 * size)):
            found = drawn_texts(texts, draw(documents, tokens, tolerance, seed, "x"), seed)
            assert found == reference.Source("x", texts, seed).take(tokens, tolerance)
            missing = tokens - sum(len(text) + 1 for _, _, text in found)
            assert 0 <= missing < tolerance


def test_everything_is_each_document_once() -> None:
    texts = numbered([3, 1, 4])
    documents = Documents(stream_of(texts, "append"), numpy.array([4, 2, 5], dtype="<u8"))
    assert everything(documents).passes == (Pass(11, 1 << 64),)
    assert drawn_texts(texts, everything(documents), 0) == [
        (0, number, texts[number])
        for number in sorted(range(3), key=lambda number: reference.key(("draw", 0, "x", 0), number))
    ]
    assert everything(Documents(stream_of([], "append"), numpy.empty(0, dtype="<u8"))) == Drawn((), 0, 0)


# ----------------------------------------------------------------------------------------------------
# Statistics. A statistic is the number of standard deviations by which chi-square exceeds its mean; for a uniform
# shuffle it is below 5, except with a probability of about one in a million.


def global_shuffle(count: int, seed: int) -> list[int]:
    """The order of documents of two sources."""
    half = count // 2
    counts = {"a": half, "b": count - half}
    keys = [writing_keys(numpy.arange(size), seed, "train", source, 0) for source, size in counts.items()]
    first, second = map(numpy.concatenate, zip(*keys))
    return [int(i) for i in order_of(first, second)]


def windowed_shuffle(count: int, seed: int) -> list[int]:
    """What a shuffle buffer does that holds half of the documents."""
    rng = random.Random(seed)
    waiting, found = list(range(count)), []
    while waiting:
        found.append(waiting.pop(rng.randrange(min(len(waiting), count // 2))))
    return found


def excess(counts: Counter[object], cells: int) -> float:
    """How unlikely these counts of equally likely cells are."""
    mean = sum(counts.values()) / cells
    assert mean > 20
    chi_square = sum((count - mean) ** 2 / mean for count in counts.values()) + (cells - len(counts)) * mean
    return (chi_square - (cells - 1)) / sqrt(2 * (cells - 1))


def test_every_order_is_equally_likely() -> None:
    """And so can be reached. The statistic would find a shuffle that is not global."""

    def statistic(shuffle: Callable[[int, int], list[int]]) -> tuple[int, float]:
        found = Counter[object](tuple(shuffle(5, seed)) for seed in range(3000))
        return len(found), excess(found, 120)

    orders, value = statistic(global_shuffle)
    assert orders == 120 and abs(value) < 5
    assert statistic(windowed_shuffle)[1] > 15


def test_every_set_of_documents_is_equally_likely_in_a_part_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_module, "_BINS", 64)
    texts = numbered([9] * 12)
    documents = Documents(stream_of(texts, "prepend"), numpy.full(12, 10, dtype="<u8"))
    pairs: Counter[object] = Counter()
    for seed in range(1000):
        (part,) = draw(documents, 40, 64, seed, "x").passes
        chosen = part.chosen(drawing_keys(numpy.arange(12), seed, "x", 0)).nonzero()[0].tolist()
        assert len(chosen) == 4
        pairs.update((a, b) for a in chosen for b in chosen if a < b)
    assert excess(pairs, 66) < 5


def test_the_order_in_the_output_does_not_follow_the_order_of_drawing() -> None:
    numbers = numpy.arange(20_000)
    drawing = drawing_keys(numbers, 3, "x", 0).argsort().argsort()
    writing = writing_keys(numbers, 3, "train", "x", 0)[0].argsort().argsort()
    assert abs(numpy.corrcoef(drawing, writing)[0, 1]) < 4 / sqrt(len(numbers))
    assert abs(numpy.corrcoef(numbers, writing)[0, 1]) < 4 / sqrt(len(numbers))


def test_passes_share_the_keys_by_their_tokens() -> None:
    drawn = Drawn((Pass(300), Pass(300), Pass(101, 5)), 701, 9)
    keys = numpy.array([0, 1, 2**32 - 1, 2**32, 2**63 + 12345, 2**64 - 1], dtype=numpy.uint64)
    borders = [0, 300 * 2**32 // 701, 600 * 2**32 // 701, 2**32]
    for number, (begin, end) in enumerate(pairwise(borders)):
        wanted = [begin * 2**32 + int(key) * (end - begin) // 2**32 for key in keys]
        assert drawn.spread(number, keys).tolist() == wanted and wanted[-1] < end * 2**32
    assert Drawn((Pass(5),), 5, 1).spread(0, keys).tolist() == keys.tolist()
    assert Drawn((Pass(10**12), Pass(1)), 10**12 + 1, 2).spread(1, keys).tolist()[-1] == 2**64 - 1
