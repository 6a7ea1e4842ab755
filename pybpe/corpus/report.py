"""Reports what happened to a corpus: as text, JSON, or a self-contained HTML page."""

from __future__ import annotations

import json
import os
from typing import Any

from .. import _binding
from .filters import Filters
from .minhash import Banding
from .report_page import report_page
from .tally import Tally


class Report:
    """What `clean` returns.

    Attributes:
        tally: the counts, histograms and samples.
        filters: the limits.
        near_dedup: the similarity threshold, or None.
    """

    def __init__(self, tally: Tally, filters: Filters, near_dedup: float | None) -> None:
        self.tally, self.filters, self.near_dedup = tally, filters, near_dedup

    @property
    def documents_in(self) -> int:
        """The number of documents read."""
        return self.tally.documents["in"]

    @property
    def documents_out(self) -> int:
        """The number of documents written."""
        return self.tally.documents["out"]

    @property
    def dropped(self) -> dict[str, int]:
        """Reason -> number of documents, the most frequent first."""
        return {name: n for name, n in self.tally.documents.most_common() if name not in ("in", "out")}

    @property
    def changes(self) -> dict[str, int]:
        """Kind of replacement or removal inside documents -> count."""
        return dict(self.tally.changes.most_common())

    def __repr__(self) -> str:
        return f"Report(documents_in={self.documents_in}, documents_out={self.documents_out}, dropped={self.dropped})"

    def to_json(self) -> dict[str, Any]:
        """Returns all numbers and samples as JSON values."""
        facts: dict[str, Any] = {
            "documents_in": self.documents_in,
            "documents_out": self.documents_out,
            "bytes_in": self.tally.bytes["in"],
            "bytes_out": self.tally.bytes["out"],
            "dropped": self.dropped,
            "changes": self.changes,
            "limits": dict(self.filters.limits()),
            **{name: value for name, value in self.tally.to_json().items() if name not in ("documents", "changes")},
        }
        if self.near_dedup is not None:
            banding = Banding.of(self.near_dedup)
            facts["lsh"] = {"bands": banding.bands, "rows": banding.rows, "curve": banding.curve()}
        return facts

    def __str__(self) -> str:
        lines = [
            f"{self.documents_in} documents in, {self.documents_out} out;"
            f" {self.tally.bytes['in']} bytes of text in, {self.tally.bytes['out']} out"
        ]
        lines += [f"  dropped, {name}: {n} ({self._percent(n)})" for name, n in self.dropped.items()]
        lines += [
            f"  {name} removed: {n}" if name == "paragraph" else f"  <{name}>: {n}" for name, n in self.changes.items()
        ]
        return "\n".join([*lines, *self._curve()])

    def _curve(self) -> list[str]:
        if self.near_dedup is None:
            return []
        banding = Banding.of(self.near_dedup)
        points = ", ".join(f"{s:.1f}: {p:.3f}" for s, p in banding.curve()[2:])
        return [f"  LSH: {banding.bands} bands of {banding.rows} rows; similarity: chance of being compared: {points}"]

    def _percent(self, documents: int) -> str:
        return f"{100 * documents / max(1, self.documents_in):.1f} %"

    def to_html(self) -> str:
        """Returns the page. Its samples show scrubbed data, so share it only with people who may see the corpus."""
        return report_page(self)

    def save(self, path: _binding.PathLike) -> None:
        """Writes the page, or JSON if the name ends in .json, atomically."""
        name = os.fsdecode(path)
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=1) if name.endswith(".json") else self.to_html()
        _binding.write_file(path, text.encode("utf-8", "replace"))
