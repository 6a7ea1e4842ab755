"""Reading a tokenizer and compiling a pattern take work in proportion to their size: the lines of Python that run are
counted, not seconds. A call of C counts as one: test_c_operations.py counts what the C library does."""

import base64
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from corpora import small_tokenizer
from vocabularies import SHAPES, tokenizer_of

import pybpe
from pybpe.errors import UnsupportedError
from pybpe.pattern import automata
from pybpe.pattern.dialects.parse import REGEX, parse

SIZES = (250, 2000)


def lines_run(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def check_growth(works: Sequence[Callable[[], object]], sizes: Sequence[int] = SIZES) -> None:
    works[0]()  # what runs only once
    counts = [lines_run(work) for work in works]
    assert math.log(counts[-1] / counts[0], sizes[-1] / sizes[0]) < 1.15, (counts, sizes)


@pytest.mark.parametrize("flag", ["plain", "lstrip", "rstrip", "single_word", "normalized"])
def test_added_tokens(tmp_path: Path, flag: str) -> None:
    path = tmp_path / "tokenizer.json"
    small_tokenizer().save(path)
    model = json.loads(path.read_text())
    first = 1 + max(model["model"]["vocab"].values(), default=0)
    works: list[Callable[[], object]] = []
    for size in SIZES:
        added = [
            {"id": first + i, "content": f"<|{i}|>", "special": True}
            | {name: name == flag for name in ("lstrip", "rstrip", "single_word", "normalized")}
            for i in range(size)
        ]
        larger = tmp_path / f"{size}.json"
        larger.write_text(json.dumps(model | {"added_tokens": added}))
        works.append(lambda larger=larger: pybpe.Tokenizer.from_file(larger))  # type: ignore[misc]
    check_growth(works)


def save_unusual(tok: pybpe.Tokenizer, folder: Path) -> None:
    """Writes a tokenizer.json that C leaves to Python."""
    path = folder / "tokenizer.json"
    tok.save(path)
    path.write_text(path.read_text().replace('"model"', '"m\\u006fdel"'))


def save_ranks(tok: pybpe.Tokenizer, folder: Path, *first: bytes) -> None:
    """Writes ranks, with these tokens right after the bytes."""
    tokens = tok.model.tokens
    ranked = [*tokens[:256], *first, *tokens[256:]]
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ranked))
    (folder / "x.tiktoken").write_bytes(b"".join(lines))


def save_ranks_late(tok: pybpe.Tokenizer, folder: Path) -> None:
    """No merge makes the first token, so Python, not C, looks for the parts of those after it."""
    save_ranks(tok, folder, b"never made")


# How a tokenizer is saved to a folder, and what is loaded
FORMATS: dict[str, tuple[Callable[[pybpe.Tokenizer, Path], object], str]] = {
    "tokenizer.bin": (lambda tok, folder: tok.save(folder / "tokenizer.bin"), "tokenizer.bin"),
    "tokenizer.json": (lambda tok, folder: tok.save(folder / "tokenizer.json"), "tokenizer.json"),
    "unusual tokenizer.json": (save_unusual, "tokenizer.json"),
    "vocab.json and merges.txt": (lambda tok, folder: tok.save(folder, "files"), "vocab.json"),
    "ranks": (save_ranks, "x.tiktoken"),
    "late ranks": (save_ranks_late, "x.tiktoken"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_loaders(tmp_path: Path, shape: str, name: str) -> None:
    save, file = FORMATS[name]
    options: dict[str, Any] = {"special_tokens": {}, "pattern": "gpt2"} if file == "x.tiktoken" else {}
    works, sizes = [], []
    for size in SIZES:
        folder = tmp_path / str(size)
        folder.mkdir()
        save(tokenizer_of(SHAPES[shape](size)), folder)
        works.append(lambda path=folder / file: pybpe.Tokenizer.from_file(path, **options))
        sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
    check_growth(works, sizes)


GROUPS: dict[str, Callable[[int], str]] = {
    "plain": lambda n: "(?:" * n + "a" + ")" * n,
    "optional": lambda n: "(?:a" * n + ")?" * n + "b",
    "alternatives": lambda n: "(?:a|" * n + "b" + ")" * n,
}


@pytest.mark.parametrize("pattern", GROUPS.values(), ids=GROUPS.keys())
def test_nested_groups(pattern: Callable[[int], str]) -> None:
    depths = (10, 80)
    check_growth([lambda n=n: automata.compiled.__wrapped__(pattern(n)) for n in depths], depths)  # type: ignore[misc]

    def refuse(depth: int) -> None:
        with pytest.raises(UnsupportedError, match="the groups of the pattern are nested too deeply"):
            automata.compiled.__wrapped__(pattern(depth))

    refuse(100_000)
    assert lines_run(lambda: refuse(400_000)) < 2 * lines_run(lambda: refuse(100_000))


COUNTS: dict[str, Callable[[int], str]] = {
    "two levels": lambda n: f"(?:a{{1,{n}}}){{1,{n}}}b",
    "three levels": lambda n: f"(?:(?:a{{1,{n}}}){{1,{n}}}){{1,{n}}}b",
    "many levels": lambda n: "(?:" * n + "a" + "){1,2}" * n + "b",
    "exact": lambda n: f"(?:a{{{n}}}b?){{{n}}}",
    "alternatives": lambda n: "(?:" + "|".join(f"a{{1,{n + i}}}" for i in range(10)) + f"){{1,{n}}}b",
    "one after the other": lambda n: f"a{{1,{n}}}" * n + "b",
    "many classes": lambda n: f"(?:[{''.join(chr(0x4E00 + 2 * i) for i in range(100))}]{{1,{n}}}|b){{1,{n}}}c",
}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", COUNTS.values(), ids=COUNTS.keys())
def test_counts_of_counts(pattern: Callable[[int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their product is bounded: what would take longer is refused, within a fixed number of steps."""
    most = automata._MOST_WORK // 20  # to count lines takes long
    monkeypatch.setattr(automata, "_MOST_WORK", most)
    refused = 0

    def compile_(n: int) -> None:
        nonlocal refused
        try:
            automata.compiled.__wrapped__(pattern(n))
        except UnsupportedError:
            refused += 1

    for n in (4, 9, 30, 99):
        assert lines_run(lambda n=n: compile_(n)) < 20 * most  # type: ignore[misc]
    assert 0 < refused < 4


PATTERNS: dict[str, Callable[[int], str]] = {
    "a class of characters that do not touch": lambda n: f"[{''.join(chr(0x4E00 + 2 * i) for i in range(n))}]",
    "alternatives": lambda n: "|".join("ab" * (1 + i % 3) for i in range(n)),
    "a count": lambda n: f"a{{{n}}}",
    "a sequence": lambda n: "ab" * n,
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())
def test_patterns(pattern: Callable[[int], str]) -> None:
    sizes = (100, 800)
    check_growth([lambda size=size: automata.compiled.__wrapped__(pattern(size)) for size in sizes], sizes)  # type: ignore[misc]


def test_alternatives_of_characters() -> None:
    check_growth([lambda n=n: parse("|".join(chr(0x4E00 + 2 * i) for i in range(n)), REGEX) for n in SIZES])  # type: ignore[misc]
