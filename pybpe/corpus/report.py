"""What happened to a corpus, for people: as text, JSON, or a page of HTML that needs no other file."""

from __future__ import annotations

import html
import json
import os
from typing import Any

from .. import _binding
from .filters import Filters
from .minhash import Banding
from .tally import Tally

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } td.wide { width: 20rem; }
.bar { background: #4a7fb5; height: .8rem; } .bar.dropped { background: #c66; }
pre { background: #f5f5f3; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #191919; color: #ddd; } pre { background: #262626; } }
"""


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
        """A page with everything. All that comes from the corpus is escaped. Samples of what was scrubbed show it:
        such a page is for whoever may see the corpus."""
        parts = [f"<h1>Corpus report</h1><pre>{html.escape(str(self))}</pre>", self._reasons_html()]
        parts += [_histogram_html(name, bins) for name, bins in sorted(self.tally.histograms.items())]
        if self.tally.languages:
            parts.append(_bars_html("Languages", [(n, c) for n, c in self.tally.languages.most_common()]))
        parts.append("<h2>Samples</h2>")
        for name, samples in sorted(self.tally.samples.items()):
            parts.append(f"<h3>{html.escape(name)}</h3>")
            parts += [f"<pre>{html.escape(text)}</pre>" for _, text in samples]
        head = f'<meta charset="utf-8"><title>Corpus report</title><style>{_STYLE}</style>'
        return f'<!doctype html>\n<html lang="en">{head}\n<body>' + "\n".join(parts) + "</body></html>\n"

    def _reasons_html(self) -> str:
        limits = dict(self.filters.limits())
        rows = [(f"{name} {limits[name]}" if name in limits else name, n) for name, n in self.dropped.items()]
        return _bars_html("Dropped documents", rows, "bar dropped") if rows else ""

    def save(self, path: _binding.PathLike) -> None:
        """Writes the page; JSON if the name ends in .json. Atomically."""
        name = os.fsdecode(path)
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=1) if name.endswith(".json") else self.to_html()
        _binding.write_file(path, text.encode("utf-8", "replace"))


def _histogram_html(name: str, bins: dict[float, int]) -> str:
    rows = [(f"{start:g}", count) for start, count in sorted(bins.items())]
    return _bars_html(f"{name}, from", rows)


def _bars_html(title: str, rows: list[tuple[str, int]], style: str = "bar") -> str:
    most = max((count for _, count in rows), default=1)
    lines = [
        f'<tr><td>{html.escape(label)}</td><td class="number">{count}</td>'
        f'<td class="wide"><div class="{style}" style="width:{100 * count / most:.1f}%"></div></td></tr>'
        for label, count in rows
    ]
    return f"<h2>{html.escape(title)}</h2><table>{''.join(lines)}</table>"
