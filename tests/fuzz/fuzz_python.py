"""Fuzzes the readers in Python, with atheris: `make fuzz-python`.

The first byte chooses the reader, the rest is the file or the text. The files are of the formats that
tests/faults/corrupt.py damages: a reader may only raise pybpe.Error, and what it accepts must prove itself valid. A
splitter must cut as the `regex` package does, and what C reads of a tokenizer.json must be what Python reads.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

with atheris.instrument_imports(include=["pybpe", "llmc_compat"]):
    import corrupt
    import shim
    from c_tokenizer import CTokenizer

    import pybpe
    from llmc_compat import check
    from pybpe.arguments import utf8
    from pybpe.formats import tokenizer_json
    from pybpe.pattern import NAMES, Pattern

import regex

PATTERNS = [Pattern(name, digits) for name in NAMES for digits in (None, 1)]


def as_file(folder: str, name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Returns a function that reads the input as a file with this name."""
    path = Path(tempfile.mkdtemp(dir=folder)) / name

    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            read(path)
        except pybpe.Error as error:
            assert str(error) and "\n" not in str(error)

    return run


def words(data: bytes) -> None:
    """Checks that every pattern in C splits the text into the words of its regular expression."""
    text = data.decode("utf-8", "ignore")
    encoded = utf8(text)
    for pattern in PATTERNS:
        found = pattern.word_ends(bytes(encoded))
        expected, end = [], 0
        for word in regex.findall(pattern.regex, text):
            end += len(word.encode())
            expected.append(end)
        assert list(found) == expected, (pattern, text)


def both_json_readers(data: bytes) -> None:
    """Checks that C, alone or for Python, and the Python reader read the same from a tokenizer.json."""
    found = tokenizer_json._loads_quickly(data, "input", None)
    try:
        alone = CTokenizer(data).vocab
    except pybpe.errors.FormatError:
        alone = None
    if found is None and alone is None:
        return
    expected = tokenizer_json.from_object(json.loads(data), "input")
    if found is not None:
        assert (list(found.tokens), list(found.merges)) == (list(expected.tokens), list(expected.merges))
        assert found.fingerprint == expected.fingerprint
    if alone is not None:
        assert (alone.tokens(), alone.merges()) == (list(expected.tokens), list(expected.merges))
        assert (alone.pattern[1], alone.normalizer) == (expected.pattern.custom, expected.normalizer)


def targets(folder: str) -> list[Callable[[bytes], None]]:
    """Returns the readers in the order of seeds.py. Their files are in the folder."""
    corrupt.make_samples(Path(tempfile.mkdtemp(dir=folder)))  # some readers need a valid file next to theirs
    formats = corrupt.FORMATS.values()
    readers = [as_file(folder, f"input{form.ending}".removeprefix("input/"), form.read) for form in formats]
    return [*readers, words, both_json_readers, as_file(folder, "any.bin", lambda path: check.check([path]))]


def fuzz(folder: str) -> None:
    """Does not return: libFuzzer ends the process."""
    warnings.simplefilter("ignore")
    chosen = targets(folder)

    def one_input(data: bytes) -> None:
        if data:
            chosen[data[0] % len(chosen)](data[1:])

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


def main() -> int:
    """Runs the fuzzer in a separate process, because a process that libFuzzer ends cannot clean up."""
    with tempfile.TemporaryDirectory(dir=shim.fast_folder()) as folder:
        child = os.fork()
        if child == 0:
            fuzz(folder)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
