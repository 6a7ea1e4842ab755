"""Dividing pieces into documents in C gives what Python's parser and splitter give, or leaves the piece to Python."""

import json
import random
import re
from collections.abc import Iterator
from itertools import compress

import pytest

from pybpe import _binding
from pybpe.arguments import utf8
from pybpe.corpus.reading import json_line
from pybpe.reading import planning
from pybpe.reading.documents import mark_matcher
from pybpe.reading.records import RecordNotes, valid_records

SHARES = [(1.0,), (8.0, 1.0, 1.0), (1.0, 0.0, 2.0), (0.1, 0.2, 0.7)]
MARK = "<|endoftext|>"
STRINGS = ["", "a", 'q"\\/', "\n\r\t\b\f", "é", "中文", "😀", "\x7f\x00\x1f", "<|endoftext|>", "x" * 300, "\ufeff"]
VALUES = [0, -1.5e300, 10**40, True, None, float("nan"), float("-inf"), [], {}, [[{}], {"a": [1, "]}"]}], "s"]


def read(kind: str, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the documents of a piece, and what decides the split of each."""
    if kind == "jsonl":
        for record, _ in valid_records(memoryview(data), "text", RecordNotes("file", 0, False)):
            document, cluster = bytes(utf8(record["text"])), record.get("pybpe_cluster")
            yield document, bytes(utf8(cluster)) if isinstance(cluster, str) else document
        return
    if kind == "blank":
        found = [document.strip(b"\r\n") for document in re.split(rb"\r?\n(?:\r?\n)+", data)]
    elif kind == "line":
        found = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    else:
        found = data.split(MARK.encode())
    yield from zip(found, found)


def expected(kind: str, data: bytes, shares: tuple[float, ...]) -> list[list[bytes]]:
    """Divides in Python, one document at a time."""
    found: list[list[bytes]] = [[] for _ in shares]
    for document, cluster in read(kind, data):
        if document:
            found[planning.hash_split(cluster, shares) if len(shares) > 1 else 0].append(document)
    return found


def divided(kind: str, data: bytes, shares: tuple[float, ...]) -> list[list[bytes]] | None:
    """Divides in C. Returns None if C leaves the piece to Python."""
    separator = b"\xff|\xff"  # does not occur in the texts
    marks = mark_matcher(MARK)
    divider = _binding.Divider(separator, marks, "text", planning.last_hashes(shares))
    if not divider.divide(kind, data):
        return None
    joined = [divider.joined(split) for split in range(len(shares))]
    found = [bytes(text).split(separator) if count else [] for text, count in joined]
    assert [count for _, count in joined] == list(map(len, found))
    return found


@pytest.mark.parametrize("kind", ["line", "blank", "special"])
def test_texts(kind: str) -> None:
    rng = random.Random(kind)
    parts = [
        b"\n", b"\r\n", b"\n\n", b"\r", b" ", b"word", b"\xc3\xa9", b"\xff", MARK.encode(), MARK[:-1].encode(), b"",
    ]  # fmt: skip
    for size in range(400):
        data = b"".join(rng.choices(parts, k=size % 40))
        shares = rng.choice(SHARES)
        assert divided(kind, data, shares) == expected(kind, data, shares), data


def line_of(rng: random.Random) -> bytes:
    """Returns a random record, written in one of the ways in which programs write them."""
    fields = [("text", rng.choice(STRINGS) + rng.choice(STRINGS)), (rng.choice(["", "id", "<a>"]), rng.choice(VALUES))]
    if rng.random() < 0.3:
        fields.append(("pybpe_cluster", rng.choice([*STRINGS, 7, None])))
    rng.shuffle(fields)
    text = json.dumps(dict(fields), ensure_ascii=rng.random() < 0.5, separators=rng.choice([None, (",", ":")]))
    if rng.random() < 0.1:
        text = text[:-1] + ', "text": "again"}'
    space = " \t\r"
    return rng.choice(["", *space]).encode() + text.encode() + rng.choice(["", *space]).encode()


def test_records_are_not_left_to_python() -> None:
    rng = random.Random(1)
    for _ in range(300):
        data, shares = b"\n".join([*(line_of(rng) for _ in range(8)), b"", b" \r"]), rng.choice(SHARES)
        assert divided("jsonl", data, shares) == expected("jsonl", data, shares), data


def test_records_for_cleaning_are_those_of_python() -> None:
    """Whatever C accepts, damaged or not: the texts, the records in one form, and their number."""
    rng = random.Random(5)
    letters = b'"\\{}[]:,u0123dD89abeE+-.nNtfI \t\n\r\x00\x1f\x7f\x80\xc3'
    accepted = 0
    for number in range(1200):
        data = bytearray(b"\n".join([*(line_of(rng) for _ in range(rng.randrange(3))), b" \r" * rng.randrange(2)]))
        for _ in range(number % 3 if data else 0):
            data[rng.randrange(len(data))] = rng.choice(letters)
        without = rng.choice([None, "pybpe_cluster"])
        if (found := _binding.read_records(bytes(data), "text", without is not None)) is not None:
            accepted += 1
            seen = RecordNotes("x", 0, False)
            pairs = [
                (utf8(record["text"]), line)
                for record, line in valid_records(memoryview(bytes(data)), "text", seen)
                if record["text"]
            ]
            lines = [json_line(line, {"text": text.decode()}, without) for text, line in pairs]
            got = found.texts.list(), found.lines.list(), found.records, found.line_ends
            assert got == ([text for text, _ in pairs], lines, seen.records, seen.lines), bytes(data)
    assert accepted > 400


def test_records_of_texts_are_those_of_python() -> None:
    texts = [first + second for first in STRINGS for second in STRINGS]
    lines = _binding.write_records(_binding.Strings([text.encode() for text in texts]), b'"text"')
    assert lines is not None
    assert lines.list() == [(json.dumps({"text": text}, ensure_ascii=False) + "\n").encode() for text in texts]


def test_records_that_are_kept() -> None:
    rng = random.Random(3)
    fields = [{"text": rng.choice(STRINGS), **({"id": i} if i % 2 else {})} for i in range(40)]
    lines = [(json.dumps(each, ensure_ascii=False) + "\n").encode() for each in fields]
    keeps, clusters = bytes(rng.choice([0, 0, 1, 2]) for _ in lines), rng.randbytes(16 * len(lines))
    texts = _binding.Strings(lines)
    assert bytes(_binding.keep_records(texts, keeps, None)) == b"".join(compress(lines, keeps))
    found = bytes(_binding.keep_records(texts, keeps, clusters)).splitlines()
    named = [{**each, "pybpe_cluster": clusters[16 * i : 16 * i + 16].hex()} for i, each in enumerate(fields)]
    assert found == [json.dumps(each, ensure_ascii=False).encode() for each in compress(named, keeps)]


def test_damaged_records_are_never_accepted_otherwise() -> None:
    """Whatever C accepts, Python accepts, with the same documents."""
    rng = random.Random(2)
    letters = b'"\\{}[]:,u0123dD89abeE+-.nNtfI \t\n\r\x00\x0b\x0c\x1f\x7f\x80\xc3\xed\xa0'
    accepted = 0
    for _ in range(1200):
        data = bytearray(b"\n".join(line_of(rng) for _ in range(rng.randrange(1, 3))))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(2)] = bytes([rng.choice(letters)]) * rng.randrange(3)
        found = divided("jsonl", bytes(data), (8.0, 1.0, 1.0))
        if found is not None:
            accepted += 1
            assert found == expected("jsonl", bytes(data), (8.0, 1.0, 1.0)), bytes(data)
    assert accepted > 90


@pytest.mark.parametrize("shares", [*SHARES, (3.0, 0.0, 0.0), (1e-9, 1.0), (0.9, 0.05, 0.05)])
def test_the_last_hashes_are_those_of_the_splits(shares: tuple[float, ...]) -> None:
    last = planning.last_hashes(shares)
    rng = random.Random(3)
    numbers = [n for limit in last for n in range(limit - 3, limit + 4) if 0 <= n < 2**64]
    for number in [*numbers, 0, 2**64 - 1, *(rng.getrandbits(64) for _ in range(2000))]:
        first = next((split for split, limit in enumerate(last) if number <= limit), 0)
        assert first == planning._split_of_hash(number, shares)
