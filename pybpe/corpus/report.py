"""Reports what happened to a corpus: as text, JSON, or a self-contained HTML page."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _binding
from ..arguments import counted
from .filters import Filters
from .near_duplicates import Banding
from .tally import Tally, bin_end


class Report:
    """What `clean` returns.

    Attributes:
        tally: the counts, histograms and samples.
        filters: the limits.
        near_dedup: the similarity threshold, or None.
        skipped: if bad records were skipped: the number of records, how many of them were skipped, and the file that
            lists those. Otherwise None.
    """

    def __init__(
        self, tally: Tally, filters: Filters, near_dedup: float | None, skipped: dict[str, Any] | None = None
    ) -> None:
        self.tally, self.filters, self.near_dedup, self.skipped = tally, filters, near_dedup, skipped

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
        if self.skipped is not None:
            facts["skipped"] = self.skipped
        if self.near_dedup is not None:
            banding = Banding.of(self.near_dedup)
            facts["lsh"] = {"bands": banding.bands, "rows": banding.rows, "curve": banding.curve()}
        return facts

    def __str__(self) -> str:
        lines = [
            f"{counted(self.documents_in, 'document')} in, {self.documents_out} out;"
            f" {self.tally.bytes['in']} bytes of text in, {self.tally.bytes['out']} out"
        ]
        lines += [f"  dropped, {name}: {n} ({self._percent(n)})" for name, n in self.dropped.items()]
        lines += [
            f"  {name} removed: {n}" if name == "paragraph" else f"  <{name}>: {n}" for name, n in self.changes.items()
        ]
        return "\n".join(lines)

    def _percent(self, documents: int) -> str:
        return f"{100 * documents / max(1, self.documents_in):.1f}%"

    def to_html(self) -> str:
        """Returns the page. Its samples show scrubbed data, so share it only with people who may see the corpus."""
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Corpus report</title><style>{_STYLE}</style>"
        )
        parts = [
            "<h1>Corpus report</h1>",
            _figures(self),
            _dropped(self),
            _cards("Other changes", [_changes(self), _curve(self), _languages(self)]),
            _cards("Measures of the documents", _histograms(self)),
            _samples(self),
        ]
        body = "\n".join(filter(None, parts))
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'

    def save(self, path: _binding.PathLike) -> None:
        """Writes the page, or JSON if the name ends in .json, atomically."""
        name = os.fsdecode(path)
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=1) if name.endswith(".json") else self.to_html()
        _binding.write_file(path, text.encode("utf-8", "replace"))


_STYLE = """
:root { --page: #fbfaf7; --card: #fff; --ink: #22242a; --quiet: #5d616b; --line: #e2dfd8;
  --bar: #4a7fb5; --out: #c4574d; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15171c; --card: #1c1f26; --ink: #e6e6e3; --quiet: #a3a8b3; --line: #30343d;
    --bar: #6fa4f5; --out: #e8837a; }
}
body { margin: 0 auto; max-width: 70rem; padding: 1rem 1.25rem 3rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h2 { margin: 2.2rem 0 .6rem; font-size: 1.2rem; } h3 { font-size: 1rem; } p { margin: .2rem 0 .6rem; }
.quiet { color: var(--quiet); }
.figures { display: flex; flex-wrap: wrap; gap: .4rem 2.5rem; margin: 0; }
.figures dt { color: var(--quiet); } .figures dd { margin: 0; font-size: 1.5rem; font-weight: 650; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 1rem;
  align-items: start; }
.card { min-width: 0; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); } .card h3 { margin: 0 0 .3rem; } .card td { white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { color: var(--quiet); font-weight: normal; } td, th { padding: .1rem .8rem .1rem 0; text-align: left; }
.number { text-align: right; white-space: nowrap; } .wide { width: 50%; min-width: 5rem; padding-right: 0; }
.bar { height: .8rem; min-width: 1px; border-radius: 2px; background: var(--bar); } .bar.out { background: var(--out); }
details { margin: .5rem 0; } summary { cursor: pointer; font-weight: 650; }
pre { margin: .5rem 0; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card);
  font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
"""
_TITLES = {
    "chars": "characters",
    "chars in": "characters read",
    "chars out": "characters written",
}


def _figures(report: Report) -> str:
    kept = report.documents_out / max(1, report.documents_in)
    sizes = report.tally.bytes
    facts = [
        ("Documents read", f"{report.documents_in:,}"),
        ("Documents written", f"{report.documents_out:,} ({kept:.1%})"),
        ("Bytes of text read", f"{sizes['in']:,}"),
        ("Bytes of text written", f"{sizes['out']:,} ({sizes['out'] / max(1, sizes['in']):.1%})"),
    ]
    pairs = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="figures">{pairs}</dl>'


def _dropped(report: Report) -> str:
    if not report.dropped:
        return ""
    limits = dict(report.filters.limits())
    rows = [
        [name, f"{limits[name]:g}" if name in limits else "", f"{n:,}", f"{n / max(1, report.documents_in):.1%}"]
        + [f"{report.tally.bytes[name]:,}"]
        for name, n in report.dropped.items()
    ]
    table = _table(rows, report.dropped.values(), ("Reason", "Limit", "Documents", "Share", "Bytes"), outside=True)
    return f'<h2>Why documents were dropped</h2><div class="scroll">{table}</div>'


def _changes(report: Report) -> str:
    if not report.changes:
        return ""
    rows = [[name, f"{n:,}"] for name, n in report.changes.items()]
    return _card("Replaced or removed inside documents", _table(rows, report.changes.values()))


def _curve(report: Report) -> str:
    if report.near_dedup is None:
        return ""
    banding = Banding.of(report.near_dedup)
    rows = [[f"{similarity:.1f}", f"{chance:.3f}"] for similarity, chance in banding.curve()]
    note = (
        f"Similarity of {report.near_dedup:g} or more. Signatures are cut into {banding.bands} bands of"
        f" {banding.rows} rows. The table gives the probability that a pair is compared."
    )
    table = _table(rows, [chance for _, chance in banding.curve()], ("Similarity", "Chance"))
    return _card("Near duplicates", table, note)


def _languages(report: Report) -> str:
    languages = report.tally.languages.most_common()
    if not languages:
        return ""
    rows = [[name, f"{n:,}"] for name, n in languages]
    return _card("Languages of the documents", _table(rows, [n for _, n in languages]))


def _histograms(report: Report) -> list[str]:
    found = report.tally.histograms
    hidden = {"chars in"} if "chars" in found else set()  # the filter's own measure shows the same
    return [_histogram(report, name, bins) for name, bins in sorted(found.items()) if bins and name not in hidden]


def _histogram(report: Report, name: str, bins: dict[float, int]) -> str:
    limits = dict(report.filters.limits())
    least, most = limits.get(f"min_{name}"), limits.get(f"max_{name}")
    rows, outside = [], []
    for start, count in sorted(bins.items()):
        end = bin_end(name, start)
        rows.append([f"{start:g}" if end is None else f"{start:g} to {end:g}", f"{count:,}"])
        outside.append((least is not None and end is not None and end <= least) or (most is not None and start >= most))
    stated = [f"at {word} {limit:g}" for word, limit in (("least", least), ("most", most)) if limit is not None]
    table = _table(rows, [count for _, count in sorted(bins.items())], outside=outside)
    return _card(_TITLES.get(name, name.replace("_", " ")), table, ", ".join(stated))


def _cards(title: str, cards: Sequence[str]) -> str:
    shown = "".join(cards)
    return f'<h2>{title}</h2><div class="cards">{shown}</div>' if shown else ""


def _card(title: str, table: str, note: str = "") -> str:
    stated = f'<p class="quiet">{html.escape(note)}</p>' if note else ""
    return f'<section class="card"><h3>{html.escape(title)}</h3>{stated}{table}</section>'


def _samples(report: Report) -> str:
    groups = [
        f"<details><summary>{html.escape(name)}</summary>"
        + "".join(f"<pre>{html.escape(text)}</pre>" for _, text in samples)
        + "</details>"
        for name, samples in sorted(report.tally.samples.items())
    ]
    return "".join(["<h2>Samples</h2>", *groups]) if groups else ""


def _table(
    rows: Sequence[Sequence[str]],
    values: Iterable[float],
    header: Sequence[str] = (),
    outside: bool | Sequence[bool] = False,
) -> str:
    """Returns a table with a row per value and a bar for it, in another color outside the limits."""
    values = list(values)
    most = max(values, default=0) or 1
    styles = [outside] * len(rows) if isinstance(outside, bool) else outside
    head = "".join(_cell("th", place, text) for place, text in enumerate(header))
    body = [
        "<tr>"
        + "".join(_cell("td", place, text) for place, text in enumerate(row))
        + f'<td class="wide"><div class="bar{" out" * out}" style="width:{100 * value / most:.1f}%"></div></td></tr>'
        for row, value, out in zip(rows, values, styles)
    ]
    return f"<table>{f'<tr>{head}<th></th></tr>' if header else ''}{''.join(body)}</table>"


def _cell(tag: str, place: int, text: str) -> str:
    style = ' class="number"' if place else ""
    return f"<{tag}{style}>{html.escape(text)}</{tag}>"
