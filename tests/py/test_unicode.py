"""The generated files of csrc are current, and their Unicode tables equal those of the installed `regex`."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from reference.pretok import load_generator
from selection import one_in

from pybpe._core import ffi, lib

VERSION = ffi.string(lib.pybpe_unicode_version()).decode()


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return load_generator()


@pytest.mark.parametrize("name", one_in(4, ["unicode", "normalize", "special", "known"]))
def test_generated_files_are_current(name: str, root: Path, generator: ModuleType) -> None:
    if name == "unicode" and generator.unicode_version() != VERSION:
        pytest.skip(f"the tables are of Unicode {VERSION}, this `regex` has {generator.unicode_version()}")
    subprocess.run([sys.executable, root / "csrc" / "generate" / f"{name}_generate.py", "--check"], check=True)


def test_classes_of_some_characters(generator: ModuleType) -> None:
    classes = generator.classify()
    samples = {"A": 1, "ǅ": 1, "z": 2, "ʰ": 4, "中": 4, "\u0301": 8, "\u20dd": 8, "7": 16, "½": 16, "Ⅷ": 16}
    samples |= {" ": 32, "\t": 32, "\u3000": 32, "\x85": 32, "\n": 96, "\r": 96, ".": 0, "\0": 0, "😀": 0}
    assert {c: classes[ord(c)] for c in samples} == samples
    assert not any(classes[0xD800:0xE000])
    assert set(classes[0x4E00:0xA000]) == {4}  # csrc/pretok/pretok_block.h treats all of these as letters
