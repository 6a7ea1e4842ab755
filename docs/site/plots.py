"""Draws the plots of docs/ from the tables of benchmarks/RESULTS.md, and from logs of training, as SVG:
`make plots`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from math import ceil, floor, log2
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTH, GRAY, COLORS = 640, "currentColor", ("#3b82c4", "#d97706")
STYLE = "<style>svg{color:#59636e}@media(prefers-color-scheme:dark){svg{color:#9ea7b3}}</style>"


def table(heading: str) -> list[list[str]]:
    """Returns the cells of the first table under a heading of the results, with its first row."""
    text = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    text = text.split("\n## ", 1)[0].split("\n", 1)[1]
    rows = re.findall(r"^\|(.*)\|$", text.split("|\n\n")[0] + "|", re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows if not set(row) <= set("|-: ")]


def picture(height: int, parts: Iterator[str]) -> str:
    font = 'font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font} fill="{GRAY}">'
    return "\n".join([head, STYLE, *parts, "</svg>\n"])


def label(x: float, y: float, text: str, anchor: str = "start", color: str = GRAY) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(text)}</text>'


def compression() -> Iterator[str]:
    """A line for every language: bytes per token by vocabulary size."""
    head, *rows = table("Compression by vocabulary size")
    sizes = [int(name.replace(",", "")) for name in head[1:]]
    left, bottom, width, height = 50, 250, 480, 220
    yield label(left, 15, "bytes per token")
    for value in range(1, 6):
        y = bottom - height * value / 5
        yield f'<path d="M{left} {y:.1f}h{width}" stroke="{GRAY}" stroke-opacity=".3"/>'
        yield label(left - 8, y + 4, str(value), "end")
    places = [left + width * log2(size / sizes[0]) / log2(sizes[-1] / sizes[0]) for size in sizes]
    for x, name in zip(places, head[1:]):
        yield label(x, bottom + 20, name, "middle")
    yield label(left + width / 2, bottom + 42, "tokens in the vocabulary", "middle")
    for (language, *cells), color in zip(rows, COLORS):
        line = [(x, bottom - height * float(cell) / 5) for x, cell in zip(places, cells)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2.5"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in line)
        apart = 12 if language == rows[-1][0] else -4
        yield label(line[-1][0] + 10, line[-1][1] + apart, language.partition(",")[0], color=color)


def packing() -> Iterator[str]:
    """Two bars for every kind of document and T: the cuts of best-fit and fill as a share of concat's."""
    left, width, top = 230, 300, 40
    yield label(left, 15, "cut documents, as a share of those that concat cuts")
    for percent in (0, 25, 50, 75, 100):
        x = left + width * percent / 100
        yield f'<path d="M{x:.1f} {top - 8}V{top + 30 * 10}" stroke="{GRAY}" stroke-opacity=".3"/>'
        yield label(x, top - 12, f"{percent}%", "middle")
    for number, (name, tokens, padding, _, best, _, fill, concat) in enumerate(
        table("Padding and cuts of packed rows")[1:]
    ):
        y = top + 30 * number
        yield label(left - 8, y + 15, f"{re.sub('[0-9,]+ ', '', name.replace(', ', ' ', 1))}, T = {tokens}", "end")
        for bar, cuts, color in ((0, best, COLORS[0]), (11, fill, COLORS[1])):
            share = int(cuts.replace(",", "")) / int(concat.replace(",", ""))
            yield f'<rect x="{left}" y="{y + bar:.1f}" width="{width * share:.1f}" height="10" fill="{color}"/>'
        yield label(left + width + 10, y + 15, f"pads {padding}")
    for x, method, color in ((left, "best-fit", COLORS[0]), (left + 80, "fill", COLORS[1])):
        yield label(x, top + 30 * 10 + 20, method, color=color)


def losses(log: str, names: tuple[str, str]) -> Iterator[str]:
    """Lines for the validation loss, and for the training loss, which is of one batch each: the mean of ten."""
    text = (ROOT / "docs/site" / log).read_text(encoding="utf-8")
    found = (re.findall(rf"^step (\d+)/\d+ \| {kind} loss ([\d.]+)", text, re.MULTILINE) for kind in ("val", "train"))
    val, each = ([(int(step), float(loss)) for step, loss in points] for points in found)
    groups = (each[at : at + 10] for at in range(0, len(each), 10))
    train = [(group[len(group) // 2][0], sum(loss for _, loss in group) / len(group)) for group in groups]
    left, top, width, height = 44, 10, 580, 250
    values = [loss for _, loss in (*val, *train)]
    low, high, last = floor(min(values)), ceil(max(values)), val[-1][0]
    for value in range(low, high + 1):
        y = top + height * (high - value) / (high - low)
        yield f'<path d="M{left} {y:.1f}h{width}" stroke="{GRAY}" stroke-opacity=".3"/>'
        yield label(left - 8, y + 4, str(value), "end")
    for step in range(0, last, max(100, last // 600 * 100)):
        yield label(left + width * step / last, top + height + 20, str(step), "middle")
    for y, line, color, stroke, name in ((30, val, COLORS[0], 2.5, names[0]), (50, train, GRAY, 1, names[1])):
        places = ((left + width * step / last, top + height * (high - loss) / (high - low)) for step, loss in line)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{stroke}"/>'
        yield label(left + width, y, name, "end", color)


PICTURES: dict[str, tuple[int, Callable[[], Iterator[str]]]] = {
    "compression.svg": (300, compression),
    "packing.svg": (370, packing),
    "loss.svg": (285, partial(losses, "kjv.log", ("validation loss", "training loss"))),
    "loss.zh.svg": (285, partial(losses, "novel.log", ("验证损失", "训练损失"))),
}


def drawn() -> dict[str, str]:
    """Returns file in docs/ -> picture."""
    return {name: picture(height, parts()) for name, (height, parts) in PICTURES.items()}


if __name__ == "__main__":
    for name, content in drawn().items():
        (ROOT / "docs" / name).write_text(content, encoding="utf-8")
