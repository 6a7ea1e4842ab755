"""Fuzzes what Python reads, with atheris: `make fuzz-python`.

The first byte chooses the reader, the rest is the file or the text. A reader may only raise pybpe.Error; a
splitter must cut as the `regex` package does.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pybpe", "llmc_compat"]):
    import pybpe
    from llmc_compat import check
    from pybpe.pattern import Pattern
    from pybpe.pretokenize import utf8

import regex

FILE = Path(tempfile.mkdtemp()) / "input"
PATTERNS = [Pattern(name, digits) for name in ("gpt2", "cl100k", "o200k", "llama3", "qwen2") for digits in (None, 1)]


def as_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """A reader of the input as a file of this name."""

    def run(data: bytes) -> None:
        path = FILE.with_name(name)
        path.write_bytes(data)
        try:
            read(path)
        except pybpe.Error as error:
            assert str(error) and "\n" not in str(error)

    return run


def words(data: bytes) -> None:
    """The words of every pattern in C are those of its regular expression."""
    text = data.decode("utf-8", "ignore")
    encoded = utf8(text)
    for pattern in PATTERNS:
        found = pattern.word_ends(bytes(encoded))
        expected, end = [], 0
        for word in regex.findall(pattern.regex, text):
            end += len(word.encode())
            expected.append(end)
        assert list(found) == expected, (pattern, text)


TARGETS: list[Callable[[bytes], None]] = [
    as_file("tokenizer.json", pybpe.Tokenizer.from_file),
    as_file("ranks.tiktoken", lambda path: pybpe.Tokenizer.from_tiktoken(path, pattern="gpt2")),
    as_file("words.counts", pybpe.Counts.load),
    as_file("any.bin", lambda path: check.check([path])),
    as_file("texts.jsonl", lambda path: pybpe.count_words(path, workers=1, progress=False)),
    words,
]


def one_input(data: bytes) -> None:
    """See the top."""
    if data:
        TARGETS[data[0] % len(TARGETS)](data[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
