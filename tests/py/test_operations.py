"""Reading a tokenizer and compiling a pattern take work in proportion to their size: the lines of Python that run are
counted, not seconds."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from corpora import small_tokenizer

import pybpe
from pybpe import automata
from pybpe.dialects.parse import REGEX, parse

SIZES = (250, 500, 1000, 2000)


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


def check_growth(works: list[Callable[[], object]]) -> None:
    works[0]()  # what runs only once
    counts = [lines_run(work) for work in works]
    assert math.log(counts[-1] / counts[0], SIZES[-1] / SIZES[0]) < 1.15, counts


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


PATTERNS: dict[str, Callable[[int], str]] = {
    "a class of characters that do not touch": lambda n: f"[{''.join(chr(0x4E00 + 2 * i) for i in range(n))}]",
    "alternatives": lambda n: "|".join("ab" * (1 + i % 3) for i in range(n)),
    "a count": lambda n: f"a{{{n}}}",
    "a sequence": lambda n: "ab" * n,
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())
def test_patterns(pattern: Callable[[int], str]) -> None:
    check_growth([lambda size=size: automata.compiled.__wrapped__(pattern(size)) for size in SIZES])  # type: ignore[misc]


def test_alternatives_of_characters() -> None:
    check_growth([lambda n=n: parse("|".join(chr(0x4E00 + 2 * i) for i in range(n)), REGEX) for n in SIZES])  # type: ignore[misc]
