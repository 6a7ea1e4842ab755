"""Writes the regular expressions that C knows besides the built-in patterns: compiled, for csrc/pretok/known.c, and as
the steps of a tokenizer.json have them, for csrc/vocab/tokenizer_json_steps.c. They are the steps of every row of
docs/models.md that says "exact".

    python csrc/generate/known_generate.py            write the files
    python csrc/generate/known_generate.py --check    compare them with what would be written; exit 1 if they differ

pybpe itself reads and compiles the steps (pybpe/formats/pre_tokenizer.py, pybpe/pattern/automata.py), so C and Python
agree. Most classes of characters are the same for all characters of a general category (unicode.h); the others are
listed.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import generated_file
import regex

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "py")]

from pipelines import CONTIGUOUS, DIGITS, EXACT  # noqa: E402

from pybpe import _binding  # noqa: E402
from pybpe.errors import FormatError  # noqa: E402
from pybpe.formats.pre_tokenizer import _read_step  # noqa: E402
from pybpe.pattern import OF_BYTES, Pattern, automata  # noqa: E402

CATEGORIES = (0, 1, 2, 4, 8, 16, 32, 96)  # the values of pybpe_unicode_class, in the order of known_category
CODE_POINTS = 0x110000
ALWAYS = [DIGITS, {**DIGITS, "individual_digits": False}, CONTIGUOUS, {**CONTIGUOUS, "behavior": "Isolated"}]


def listed_steps() -> Iterator[tuple[dict[str, Any], bool]]:
    """Yields the steps other than ByteLevel, each with whether it comes after one."""
    for step in ALWAYS:
        yield step, False
        yield step, True
    for pre_tokenizer, _ in EXACT.values():
        in_bytes = False
        for step in pre_tokenizer.get("pretokenizers", [pre_tokenizer]):
            if step["type"] == "ByteLevel":
                in_bytes = True
            else:
                yield step, in_bytes
                if step["type"] == "Split":
                    yield {**step, "behavior": "Removed", "invert": True}, in_bytes


def read_step(step: dict[str, Any], in_bytes: bool, version: str = "1.0") -> Pattern | None:
    """Returns the pattern of a step, or None if pybpe refuses it or C has it built in."""
    try:
        pattern = _read_step(step, in_bytes, "", version)
    except FormatError:
        return None
    return pattern if pattern.is_custom else None


def known_steps() -> dict[tuple[str, str, bool, str, bool], tuple[str, bool]]:
    """Returns the regular expressions by what a tokenizer.json says: type, behavior, invert, regex, after ByteLevel;
    each with whether this holds in version 2.0 too."""
    found: dict[tuple[str, str, bool, str, bool], tuple[str, bool]] = {}
    for step, in_bytes in listed_steps():
        pattern = read_step(step, in_bytes)
        if pattern is None:
            continue
        kind, text = step["type"], step.get("pattern", {}).get("Regex", "")
        behavior = step.get("behavior") or ("Isolated" if step["individual_digits"] else "Contiguous")
        in_2 = in_bytes or read_step(step, in_bytes, "2.0") == pattern
        found[kind, behavior, step.get("invert", False), text, in_bytes] = pattern.regex, in_2
    return found


def tables_of(expression: str) -> tuple[list[tuple[int, int]], int, list[int]]:
    """Returns the ranges, the number of classes, and the rows of a compiled regular expression."""
    with mock.patch.object(_binding.Pretok, "from_automaton") as made:
        automata.compiled.__wrapped__(expression.removeprefix(OF_BYTES), expression.startswith(OF_BYTES))
    ranges, classes, rows, _ = made.call_args.args
    return ranges, classes, list(rows)


Run = tuple[int, int, int, int]  # first and last code point, class, category


def runs_of(ranges: list[tuple[int, int]], categories: bytes) -> list[Run]:
    """Returns the longest runs of characters with one class and one category."""
    starts = dict(ranges)
    firsts = {0, *starts, *(match.start() for match in re.finditer(rb"(?s)(.)\1*", categories))}
    found, number = [], 0
    for first, end in pairwise([*sorted(firsts), CODE_POINTS]):
        number = starts.get(first, number)
        found.append((first, end - 1, number, categories[first]))
    return found


def exceptions(runs: list[Run]) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Returns the class of each category, and (first, last, class) of the characters whose class is another one."""
    counts = Counter((category, number) for _, _, number, category in runs)
    usual = dict.fromkeys(CATEGORIES, 0)
    for (category, number), _ in reversed(counts.most_common()):
        usual[category] = number
    found: list[tuple[int, int, int]] = []
    joins = False  # whether the characters since the last exception have its class too
    for first, last, number, category in runs:
        joins = joins and number == found[-1][2]
        if number != usual[category]:
            found[-1:] = [(found[-1][0], last, number)] if joins else [*found[-1:], (first, last, number)]
            joins = True
    return list(usual.values()), found


def lines(values: list[str]) -> str:
    return ",\n    ".join(", ".join(values[i : i + 12]) for i in range(0, len(values), 12))


def generate_patterns() -> str:
    categories = _binding.unicode_classes()
    ranges: list[str] = []
    rows: list[str] = []
    patterns: list[str] = []
    for expression in dict.fromkeys(spelled for spelled, _ in known_steps().values()):
        all_ranges, classes, own_rows = tables_of(expression)
        usual, others = exceptions(runs_of(all_ranges, categories))
        numbers = ", ".join(map(str, usual))
        patterns.append(
            f"{{{quoted(expression)},\n     {{{numbers}}}, {classes}, {len(own_rows) // (classes + 2)},"
            f" {int(expression.startswith(OF_BYTES))}, {len(others)}, {len(ranges)}, {len(rows)}}}"
        )
        ranges += [f"{{{first}, {number}, {last}}}" for first, last, number in others]
        rows += map(str, own_rows)
    separator = ",\n    "
    return f"""\
/* Generated by csrc/generate/known_generate.py from regex {regex.__version__}; do not edit. */
static const known_range KNOWN_RANGES[] = {{
    {lines(ranges)}
}};

static const uint16_t KNOWN_ROWS[] = {{
    {lines(rows)}
}};

static const known_pattern KNOWN_PATTERNS[] = {{
    {separator.join(patterns)}
}};
"""


def quoted(text: str) -> str:
    """Returns a string literal of C, in ASCII. No escape can take a character after it."""
    parts = (f"\\{byte:03o}" if byte >= 0x80 else json.dumps(chr(byte))[1:-1] for byte in text.encode())
    return f'"{"".join(parts)}"'


def generate_steps() -> str:
    entries = [
        f'{{"{kind}", "{behavior}", {int(bool(invert))}, {int(in_bytes)}, {int(not in_2)}, {quoted(text)},'
        f"\n     {quoted(spelled)}}}"
        for (kind, behavior, invert, text, in_bytes), (spelled, in_2) in known_steps().items()
    ]
    separator = ",\n    "
    return f"""\
/* Generated by csrc/generate/known_generate.py from regex {regex.__version__}; do not edit. */
static const known_step KNOWN_STEPS[] = {{
    {separator.join(entries)}
}};
"""


if __name__ == "__main__":
    package = f"regex {regex.__version__}"
    targets = {"pretok/known_data.h": generate_patterns, "vocab/tokenizer_json_data.h": generate_steps}
    sys.exit(max(generated_file.main(ROOT / "csrc" / name, package, make) for name, make in targets.items()))
