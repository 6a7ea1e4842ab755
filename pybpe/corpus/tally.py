"""Counts what happened to a corpus: counts, histograms, samples. Tallies of parts add up to the tally of the whole."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._numpy import Array, numpy
from ..arguments import utf8

SAMPLES = 8  # per kind
_EXCERPT = 300  # characters


@dataclass
class Tally:
    """Counts, keyed by name: a reason, a kind of personal data, a language, a measure.

    Attributes:
        documents, bytes: counts under "in" (read), "out" (written), or the reason for dropping.
        changes: how often something was replaced or removed inside documents.
        languages: documents per language.
        histograms: measure -> bin -> documents. A bin is named by its lower bound.
        samples: name -> (rank, excerpt); the lowest ranks are kept. Ranks are hashes of the excerpts, so that samples
            are drawn evenly from the whole corpus and are the same in every run.
    """

    documents: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Counter[float]] = field(default_factory=dict)
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
    """Returns the upper end of the bin that begins at `start`; None for the last bin, which is unbounded."""
    if name.startswith(_COUNTS):
        return max(1.0, 2 * start)
    if name.startswith("score ") and not -1 < start < 1:
        return 2 * start if abs(start) < 2.0**1023 else None
    if name == "mean_word_length":
        return start + 1 if start < 30 else None
    return (round(start * 20) + 1) / 20 if start < 1 else None
