"""The tables of the study, in Markdown, for benchmarks/RESULTS.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean

from cells import BATCH, LENGTH, Cell, Study

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import machine, table

Results = Mapping[Cell, Mapping[str, float]]
_BASES = {"compute": "same compute", "text": "same text"}


def report(study: Study, folder: Path, results: Results) -> str:
    """Returns the tables of all texts: one of the sizes with BPE, one of the kinds."""
    head = (
        f"{study.layers} layers, {study.channels} channels: {study.parameters:,} parameters without embeddings."
        f" Compute of {study.tokens:,} tokens without embeddings: {study.compute:.3g} operations per model."
        f" Batches of {BATCH} x {LENGTH} tokens.\n{machine()}"
    )
    parts = [head]
    for text in dict.fromkeys(cell.text for cell in results):
        facts = json.loads((folder / text / "facts.json").read_text())
        parts.append(
            f"{text}: {facts['train']:,} bytes to train on, {facts['held']:,} held out; {facts['removed']:,} bytes were"
            " removed because they occur in both."
        )
        of_text = {cell: found for cell, found in results.items() if cell.text == text}
        parts += [f"{text}, by size:", sizes(of_text)]
        if any(cell.kind != "bpe" for cell in of_text):
            parts += [f"{text}, by kind:", kinds(of_text)]
    return "\n\n".join(parts)


def sizes(results: Results) -> str:
    """Returns the table of BPE at all sizes."""
    rows = []
    for size in sorted({cell.vocab_size for cell in results}):
        found = [each for cell, each in results.items() if (cell.kind, cell.vocab_size) == ("bpe", size)]
        rows.append([f"{size:,}", *_columns(found)])
    return table(["vocabulary", *_HEADER], rows)


def kinds(results: Results) -> str:
    """Returns the table of BPE, superwords and whole characters."""
    compared = {cell.vocab_size for cell in results if cell.kind != "bpe"}
    rows = []
    for key in sorted({(c.vocab_size, c.kind, c.basis) for c in results if c.vocab_size in compared}):
        found = [each for cell, each in results.items() if (cell.vocab_size, cell.kind, cell.basis) == key]
        rows.append([f"{key[0]:,}", key[1], _BASES[key[2]], *_columns(found)])
    return table(["vocabulary", "kind", "basis", *_HEADER], rows)


_HEADER = ("tokens", "text", "bytes/token", "bits/byte, each seed", "mean", "same context, mean")


def _columns(found: list[Mapping[str, float]]) -> list[str]:
    tokens, size = found[0]["tokens"], found[0]["bytes"]
    losses = [each["bits_per_byte"] for each in found]
    return [
        f"{tokens / 1e3:,.0f}k",
        f"{size / 1e6:.2f} MB",
        f"{size / tokens:.2f}",
        " ".join(f"{loss:.3f}" for loss in losses),
        f"{mean(losses):.3f}",
        f"{mean(each['bits_per_byte_same_context'] for each in found):.3f}",
    ]
