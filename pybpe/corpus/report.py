"""Counts the changes of a corpus, and reports them: as text, JSON, or a self-contained HTML page."""

from __future__ import annotations

import hashlib
import html
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import json_text, number_of, utf8
from .duplicates import Banding
from .filters import Filters

SAMPLES = 8  # per kind
_EXCERPT = 300  # characters


@dataclass
class Tally:
    """Counts, keyed by name: a reason, a kind of personal data, a language, a measure."""

    # documents, bytes: counts under "in" (read), "out" (written), or the reason for dropping
    documents: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    # how often something was replaced or removed inside documents
    changes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)  # documents per language
    # measure -> bin -> documents. A bin is named by its lower bound.
    histograms: dict[str, Counter[float]] = field(default_factory=dict)
    # name -> (rank, excerpt). The lowest ranks are kept. Ranks are hashes of the excerpts, so that samples are drawn
    # evenly from the whole corpus and are the same in every run.
    samples: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def count(self, name: str, documents: int, size: int) -> None:
        """Counts documents of `size` bytes together."""
        if documents:
            self.documents[name] += documents
            self.bytes[name] += size

    def measure(self, name: str, values: Sequence[float] | Array) -> None:
        """Adds values to a histogram. NaN (no value) is skipped."""
        numbers = numpy.asarray(values, dtype=numpy.float64)
        bins, counts = numpy.unique(_bins(name, numbers[~numpy.isnan(numbers)]), return_counts=True)
        self.histograms.setdefault(name, Counter()).update(dict(zip(bins.tolist(), counts.tolist())))

    def sample(self, name: str, text: str) -> None:
        """Offers a text as a sample."""
        excerpt = text[:_EXCERPT].encode("utf-8", "replace").decode("utf-8")
        rank = hashlib.blake2b(utf8(excerpt), digest_size=8).hexdigest()
        kept = self.samples.setdefault(name, [])
        if len(kept) < SAMPLES or rank < kept[-1][0]:
            self.samples[name] = sorted({*kept, (rank, excerpt)})[:SAMPLES]

    def add(self, other: Tally) -> None:
        """Adds the tally of another part."""
        for name in ("documents", "bytes", "changes", "languages"):
            getattr(self, name).update(getattr(other, name))
        for measure, histogram in other.histograms.items():
            self.histograms.setdefault(measure, Counter()).update(histogram)
        for name, samples in other.samples.items():
            self.samples[name] = sorted({*self.samples.get(name, []), *samples})[:SAMPLES]

    def to_json(self) -> dict[str, Any]:
        """Returns the tally as JSON values, names sorted."""
        return {
            **{name: dict(sorted(getattr(self, name).items())) for name in ("documents", "bytes", "changes")},
            "languages": dict(self.languages.most_common()),
            "histograms": {name: sorted(bins.items()) for name, bins in sorted(self.histograms.items())},
            "samples": {name: samples for name, samples in sorted(self.samples.items())},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Tally:
        """Restores a tally from `to_json`."""
        return cls(
            Counter(data["documents"]),
            Counter(data["bytes"]),
            Counter(data["changes"]),
            Counter(data["languages"]),
            {name: Counter(dict(map(tuple, bins))) for name, bins in data["histograms"].items()},
            {name: [(rank, text) for rank, text in samples] for name, samples in data["samples"].items()},
        )


_COUNTS = ("chars", "words", "distinct_words")


def _bins(name: str, values: Array) -> Array:
    """Returns the bins: shares in steps of 0.05, mean word lengths in steps of 1, counts in powers of two. Scores can
    be any numbers: those from -1 to 1 are binned like shares, others in powers of two."""
    powers = numpy.exp2(numpy.where(numpy.isfinite(values), numpy.frexp(values)[1] - 1, 1023))
    shares = numpy.floor(numpy.minimum(values, 1) * 20) / 20
    bins: Array = shares
    if name.startswith("score "):
        bins = numpy.where(abs(values) < 1, shares, numpy.copysign(powers, values))
    elif name.startswith(_COUNTS):
        bins = numpy.where(values >= 1, powers, 0)
    elif name == "mean_word_length":
        bins = numpy.minimum(numpy.trunc(values), 30)
    bins += 0.0  # no negative zero
    return bins


def bin_end(name: str, start: float) -> float | None:
    """Returns the upper end of the bin that begins at `start`, or None for the last bin, which is unbounded."""
    if name.startswith(_COUNTS):
        return max(1.0, 2 * start)
    if name.startswith("score ") and not -1 < start < 1:
        return 2 * start if abs(start) < 2.0**1023 else None
    if name == "mean_word_length":
        return start + 1 if start < 30 else None
    return (round(start * 20) + 1) / 20 if start < 1 else None


_CHANGES = {"paragraph": "paragraph removed", "null": "NaN or infinite numbers that became null"}


class Report:
    """The result of `clean`.

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
        """Kind of replacement or removal inside documents -> count. "null" counts NaN and infinite numbers."""
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
            f"{number_of(self.documents_in, 'document')} in, {self.documents_out} out;"
            f" {self.tally.bytes['in']} bytes of text in, {self.tally.bytes['out']} out"
        ]
        lines += [f"  dropped, {name}: {n} ({n / max(1, self.documents_in):.1%})" for name, n in self.dropped.items()]
        lines += [f"  {_CHANGES.get(name, f'<{name}>')}: {n}" for name, n in self.changes.items()]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Returns the page. Its samples show scrubbed data, so share it only with people who may see the corpus."""
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Corpus report</title><style>{_STYLE}</style>"
        )
        changes = _counts("Replaced or removed inside documents", self.changes)
        languages = _counts("Languages of the documents", dict(self.tally.languages.most_common()))
        found = self.tally.histograms
        hidden = {"chars in"} if "chars" in found else set()  # the filter's own measure shows the same
        histograms = [
            _histogram(self, name, bins) for name, bins in sorted(found.items()) if bins and name not in hidden
        ]
        parts = [
            "<h1>Corpus report</h1>",
            _figures(self),
            _dropped(self),
            _cards("Other changes", [changes, _curve(self), languages]),
            _cards("Measures of the documents", histograms),
            _samples(self),
        ]
        body = "\n".join(filter(None, parts))
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'

    def save(self, path: _binding.PathLike) -> None:
        """Writes the page, or JSON if the name ends in .json, atomically."""
        name = os.fsdecode(path)
        text = json_text(self.to_json(), indent=1) if name.endswith(".json") else self.to_html()
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


def _counts(title: str, counts: dict[str, int]) -> str:
    rows = [[name, f"{n:,}"] for name, n in counts.items()]
    return _card(title, _table(rows, counts.values())) if counts else ""


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
