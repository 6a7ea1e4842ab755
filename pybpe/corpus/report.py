"""What happened to a corpus, for people: as text, JSON, or a page of HTML that needs no other file."""

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
        near_dedup: the similarity, or None.
    """

    def __init__(self, tally: Tally, filters: Filters, near_dedup: float | None) -> None:
        self.tally, self.filters, self.near_dedup = tally, filters, near_dedup

    @property
    def documents_in(self) -> int:
        """How many documents were read."""
        return self.tally.documents["in"]

    @property
    def documents_out(self) -> int:
        """How many documents were written."""
        return self.tally.documents["out"]

    @property
    def dropped(self) -> dict[str, int]:
        """Reason -> documents, the most frequent first."""
        return {name: n for name, n in self.tally.documents.most_common() if name not in ("in", "out")}

    @property
    def changes(self) -> dict[str, int]:
        """What was replaced or removed inside documents -> how often."""
        return dict(self.tally.changes.most_common())

    def __repr__(self) -> str:
        return f"Report(documents_in={self.documents_in}, documents_out={self.documents_out}, dropped={self.dropped})"

    def to_json(self) -> dict[str, Any]:
        """All numbers and samples, as JSON holds it."""
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
        return [f"  LSH: {banding.bands} bands of {banding.rows} rows; similarity: chance to be compared: {points}"]

    def _percent(self, documents: int) -> str:
        return f"{100 * documents / max(1, self.documents_in):.1f} %"

    def to_html(self) -> str:
        """A page with everything. Samples of what was scrubbed show it: it is for whoever may see the corpus."""
        return report_page(self)

    def save(self, path: _binding.PathLike) -> None:
        """Writes the page; JSON if the name ends in .json. Atomically."""
        name = os.fsdecode(path)
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=1) if name.endswith(".json") else self.to_html()
        _binding.write_file(path, text.encode("utf-8", "replace"))
