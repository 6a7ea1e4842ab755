"""Makes the tables of RESULTS.md that follow a mark, and plots, from what benchmarks printed: `make bench-plots`.

benchmarks/logs has the output of fresh.py, binarize.py and encode.py, after lines that say when and where they ran.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from math import log2
from pathlib import Path

from measure import table

ROOT = Path(__file__).resolve().parents[1]
RESULTS, LOGS = ROOT / "benchmarks/RESULTS.md", ROOT / "benchmarks/logs"
TEXTS = {"en.txt": "English", "code.txt": "code", "zh.txt": "Chinese", "mixed.txt": "mixed"}
VOCABULARIES = {"gpt2": "gpt2", "cl100k_base": "cl100k"}
OURS, THEIRS = "#3b82c4", "#d97706"
_draw = runpy.run_path(str(ROOT / "docs/site/plots.py"))

Cells = dict[tuple[str, str], dict[str, tuple[float, str]]]


def tables(log: str) -> list[list[list[str]]]:
    """Returns the cells of all tables of a log, without the lines below their heads."""
    found: list[list[list[str]]] = [[]]
    for line in (LOGS / log).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            found += [[]] if found[-1] else []
        elif not set(line) <= set("|-: "):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return [each for each in found if each]


def fresh() -> Cells:
    """Returns (text, vocabulary) -> slice -> how many times as fast pybpe was as the faster other library, and its
    MB/s."""
    cells: Cells = {(text, name): {} for text in TEXTS for name in VOCABULARIES}
    for rows in tables("fresh.txt"):
        for ratio, text, name, part, ours, *_ in rows[1:]:
            cells[text, name][part] = float(ratio), ours
    return cells


def named(key: tuple[str, str]) -> list[str]:
    return [TEXTS[key[0]], VOCABULARIES[key[1]]]


def fresh_table() -> str:
    cells = fresh()
    parts = [row[3] for rows in tables("fresh.txt") for row in rows[1:]]
    order = ["first 100 kB", "to 1 MB", "to 3 MB", "to 10 MB", "first MB, 10 kB", "1 kB", "10 kB", "100 kB"]
    assert {*parts} == {*order}
    rows = []
    for key, of in cells.items():
        found = [of[part] for part in order]
        rows.append(named(key) + [f"{f'**{x:.2f}**' if x < 1 else f'{x:.2f}'} ({ours})" for x, ours in found])
    return table(["text", "vocabulary", *order[:4], "first MB", *(f"documents of {x}" for x in order[5:])], rows)


def fresh_losses() -> str:
    """Says which cells another library won."""
    cells = [(x, *named(key), part) for key, of in fresh().items() for part, (x, _) in of.items()]
    lost = [f"{' '.join(names)} {ratio:.2f}" for ratio, *names in sorted(cells) if ratio < 1]
    slow = sum(ratio < 1.5 for ratio, *_ in cells)
    return f"Of {len(cells)} cells, {slow} miss the target, 1.5. Another library wins {len(lost)}: {', '.join(lost)}."


def whole_table() -> str:
    """Whole processes by size of the file."""
    sizes = {"1 MB": tables("binarize-1MB.txt")[0], "10 MB": tables("binarize-10MB.txt")[0]}
    rows = {row[0]: [row[0]] for row in sizes["10 MB"][1:]}
    for found in sizes.values():
        for library, seconds, _, cpu, memory in found[1:]:
            if library in rows:
                rows[library] += [seconds, cpu, memory]
    head = [
        f"{size}: {what}" if what == "seconds" else what for size in sizes for what in ("seconds", "CPU s", "peak MB")
    ]
    return table(["library", *head], sorted(rows.values(), key=lambda row: row[-3]))


def text_at(x: float, y: float, text: str, anchor: str = "start", color: str = "currentColor") -> str:
    return str(_draw["label"](x, y, text, anchor, color))


def fresh_plot() -> Iterator[str]:
    """A row of dots for each text and vocabulary: how many times as fast, by amount of text."""
    left, width, top, least, most = 150, 440, 62, 0.5, 16
    yield text_at(
        10, 16, "pybpe relative to the faster of gigatoken and tokenizers 1.0.0rc3 in each part of a new text"
    )

    def place(ratio: float) -> float:
        return left + width * log2(max(ratio, least) / least) / log2(most / least)

    cells = fresh()
    for value in (0.5, 1, 2, 4, 8, 16):
        strong = "1" if value == 1 else ".25"
        line = f"M{place(value):.1f} {top - 12}v{26 * len(cells)}"
        yield f'<path d="{line}" stroke="currentColor" stroke-opacity="{strong}"/>'
        yield text_at(place(value), top - 18, f"{value:g}", "middle")
    for row, (key, of) in enumerate(cells.items()):
        y = top + 26 * row
        yield text_at(left - 10, y + 4, ", ".join(named(key)), "end")
        for size, part in ((4, "first 100 kB"), (5.5, "to 1 MB"), (7, "to 3 MB"), (8.5, "to 10 MB")):
            ratio = of[part][0]
            color = THEIRS if ratio < 1 else OURS
            yield f'<circle cx="{place(ratio):.1f}" cy="{y}" r="{size}" fill="{color}" fill-opacity=".7"/>'
    bottom = top + 26 * len(cells) + 8
    yield text_at(left, bottom, "larger dots: first 100 kB, to 1 MB, to 3 MB, to 10 MB")


def speed_plot() -> Iterator[str]:
    """Two bars for every text: MB/s of pybpe and of gigatoken with GPT-2's vocabulary, in one pass."""
    rows = [row for row in tables("pass.txt")[0][1:] if "," not in row[0]]
    left, width, top = 100, 440, 40
    yield text_at(left, 15, "100 MB of new text, GPT-2's vocabulary, one thread: MB/s")
    for number, (name, ours, theirs, *_) in enumerate(rows):
        y = top + 34 * number
        yield text_at(left - 8, y + 16, name, "end")
        for bar, value, color in ((0, ours, OURS), (12, theirs, THEIRS)):
            length = width * int(value) / 500
            yield f'<rect x="{left}" y="{y + bar}" width="{length:.1f}" height="11" fill="{color}"/>'
            yield text_at(left + length + 6, y + bar + 10, value)
    for x, library, color in ((left, "pybpe", OURS), (left + 80, "gigatoken", THEIRS)):
        yield text_at(x, top + 34 * len(rows) + 16, library, color=color)


def drawn() -> dict[str, str]:
    """Returns file -> content, for all files that this makes."""
    results = RESULTS.read_text(encoding="utf-8")
    made = {
        "fresh-losses": fresh_losses(),
        "fresh": fresh_table(),
        "pass": table(*((rows := tables("pass.txt")[0])[0], rows[1:])),
        "whole": whole_table(),
    }
    for name, content in made.items():
        before, rest = results.split(f"<!-- {name} -->\n\n", 1)
        after = rest.split("\n\n", 1)[1]
        results = f"{before}<!-- {name} -->\n\n{content}\n\n{after}"
    return {
        "benchmarks/RESULTS.md": results,
        "docs/speed.svg": _draw["picture"](205, speed_plot()),
        "benchmarks/fresh.svg": _draw["picture"](290, fresh_plot()),
    }


if __name__ == "__main__":
    for name, content in drawn().items():
        (ROOT / name).write_text(content, encoding="utf-8")
