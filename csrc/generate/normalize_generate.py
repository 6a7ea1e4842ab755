"""Writes csrc/unicode/normalize_data.h: how NFC and NFKC decompose, order and compose, as in `tokenizers`.

    python csrc/generate/normalize_generate.py            write the file
    python csrc/generate/normalize_generate.py --check    compare it with what would be written; exit 1 if it differs

A tokenizer.json that names NFC or NFKC must give Hugging Face's ids, so this script asks `tokenizers` about each code
point. It has no function for combining classes. But marks that follow one another show which of two classes is the
higher one, and nothing else of them matters: the classes in the tables are places in that order.

csrc/unicode/normalize.c explains what the tables hold and how they are searched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cmp_to_key
from pathlib import Path

import generated_file
import tokenizers
from tokenizers.normalizers import NFC, NFD, NFKC, NFKD

TARGET = Path(__file__).parents[1] / "unicode" / "normalize_data.h"
UNICODE_VERSION = "9.0.0"  # of the crate unicode-normalization-alignments, whose tables `tokenizers` has
BLOCK = 128  # code points per block: NORMAL_BLOCK_BITS in normalize.c
# Composed by arithmetic: no tables.
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
HANGUL_LATER = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))  # vowels and final consonants
# The flags of a record, as normalize.c names them.
NFC_CHANGES, NFKC_CHANGES, JOINS = 1, 2, 4

nfc, nfd, nfkc, nfkd = (form().normalize_str for form in (NFC, NFD, NFKC, NFKD))

ALL = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000 and i not in HANGUL_SYLLABLES]


def fail(what: str, char: str) -> None:
    """Ends the program: an assumption of normalize.c does not hold."""
    raise SystemExit(f"U+{ord(char):04X}: {what}")


def mark_classes() -> dict[str, int]:
    """Returns each mark's class: 1 for the lowest, and so on."""
    highest = "\u0345"  # the only one of class 240: any other mark moves before it
    marks = [c for c in ALL if nfd(c) == c and nfd("a" + highest + c) == "a" + c + highest and c != highest]

    def compare(left: str, right: str) -> int:
        return int(nfd("a" + left + right) != "a" + left + right) - int(nfd("a" + right + left) != "a" + right + left)

    classes: dict[str, int] = {}
    previous, number = "", 0
    for mark in [*sorted(marks, key=cmp_to_key(compare)), highest]:
        number += not previous or compare(previous, mark) != 0
        classes[mark] = number
        previous = mark
    return classes


def compositions() -> dict[str, dict[str, str]]:
    """Returns first -> second -> what they compose to."""
    found: dict[str, dict[str, str]] = {}
    for char in ALL:
        parts = nfd(char)
        if parts == char or nfc(char) != char:
            continue
        first, second = nfc(parts[:-1]), parts[-1]
        if len(first) != 1 or nfc(first + second) != char:
            fail("is not composed of two characters", char)
        found.setdefault(first, {})[second] = char
    return found


class Sequences:
    """Runs of numbers in one array, each once; 0 stands for none."""

    def __init__(self) -> None:
        self.values = [0]
        self._places: dict[tuple[int, ...], int] = {(): 0}

    def place(self, values: Iterable[int]) -> int:
        """Returns where these values begin."""
        run = tuple(values)
        if run not in self._places:
            self._places[run] = len(self.values)
            self.values += run
        return self._places[run]


Record = tuple[int, int, int, int, int]  # class, flags, and where these begin: canonical, compatible, compositions


class Tables:
    """Everything that the header holds."""

    def __init__(self) -> None:
        self.classes = mark_classes()
        self.pairs = compositions()
        self.joining = {second for seconds in self.pairs.values() for second in seconds} | set(map(chr, HANGUL_LATER))
        self.sequences, self.compositions = Sequences(), Sequences()
        self.records: dict[Record, int] = {(0, 0, 0, 0, 0): 0}
        numbers = {ord(char): self.records.setdefault(self.record(char), len(self.records)) for char in ALL}
        last = max(i for i, number in numbers.items() if number)
        self.limit = (last // BLOCK + 1) * BLOCK
        self.blocks: dict[tuple[int, ...], int] = {}
        self.index = [
            self.blocks.setdefault(tuple(numbers.get(i + k, 0) for k in range(BLOCK)), len(self.blocks))
            for i in range(0, self.limit, BLOCK)
        ]
        if len(self.blocks) > 256 or len(self.records) > 65536 or len(self.sequences.values) > 65536:
            raise SystemExit("the tables do not fit their types")

    def record(self, char: str) -> Record:
        """Returns the record of one character."""
        canonical, compatible = nfd(char), nfkd(char)
        flags = (nfc(char) != char) * NFC_CHANGES + (nfkc(char) != char) * NFKC_CHANGES + (char in self.joining) * JOINS
        for changed, parts in ((NFC_CHANGES, canonical), (NFKC_CHANGES, compatible)):
            if not flags & changed and parts != char and (parts[0] in self.joining or parts[0] in self.classes):
                fail("joins what is before it, though it looks as if it did not", char)
        return (
            self.classes.get(char, 0),
            flags,
            self.sequence(canonical) if canonical != char else 0,
            self.sequence(compatible) if compatible not in (char, canonical) else 0,
            self.composition_list(self.pairs.get(char, {})),
        )

    def sequence(self, parts: str) -> int:
        """Returns where a decomposition begins: its length, then the characters with their classes."""
        return self.sequences.place([len(parts), *(self.classes.get(part, 0) << 24 | ord(part) for part in parts)])

    def composition_list(self, seconds: Mapping[str, str]) -> int:
        """Returns where the compositions with a character begin: how many there are, then pairs."""
        if not seconds:
            return 0
        pairs = (ord(char) for second, whole in sorted(seconds.items()) for char in (second, whole))
        return self.compositions.place([len(seconds), *pairs])


def table(values: Iterable[object]) -> str:
    """Returns the values of a C array, in lines of at most 110 columns."""
    lines, line = [], ""
    for value in values:
        if len(line) + len(f"{value}, ") > 104:
            lines.append(line)
            line = ""
        line += f"{value}, "
    return "\n    ".join(line.rstrip() for line in [*lines, line])


def generate() -> str:
    """Returns the whole file."""
    tables = Tables()
    blocks = [number for block in tables.blocks for number in block]
    records = [f"{{{', '.join(map(str, record))}}}" for record in tables.records]
    return f"""\
/* Generated by csrc/generate/normalize_generate.py from tokenizers {tokenizers.__version__}; do not edit. */
#define NORMAL_UNICODE_VERSION "{UNICODE_VERSION}"
#define NORMAL_LIMIT 0x{tables.limit:X}

static const uint8_t normal_index[] = {{
    {table(tables.index)}
}};

static const uint16_t normal_blocks[] = {{
    {table(blocks)}
}};

static const normal_record normal_records[] = {{
    {table(records)}
}};

static const uint32_t normal_sequences[] = {{
    {table(tables.sequences.values)}
}};

static const uint32_t normal_compositions[] = {{
    {table(tables.compositions.values)}
}};
"""


if __name__ == "__main__":
    sys.exit(generated_file.main(TARGET, f"tokenizers {tokenizers.__version__}", generate))
