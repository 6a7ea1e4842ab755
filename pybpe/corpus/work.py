"""The steps that handle each document by itself, run by worker processes, one task at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _binding
from .._numpy import numpy
from ..normalize import normalize_text
from ..reading.bad_records import Seen
from .duplicates import DIGEST_BYTES, digest, normalized, paragraph_digests
from .language import detect_language
from .near_duplicates import PERMUTATIONS, Banding, band_keys, signatures_of_bytes
from .pii import find_pii, replace_pii
from .reading import Document, Task, batches, json_line
from .spool import pack
from .steps import Steps
from .tally import Tally

_RESULT_BYTES = 1 << 22  # of lines and signatures; how results are divided does not change the output
_AROUND = 40  # characters shown on each side of a replacement


@dataclass(frozen=True)
class Work:
    """What a worker does."""

    steps: Steps

    def run(self, task: Task) -> Iterator[bytes]:
        """Yields a task's results in spool.py's form: lines, and for each line the data for finding duplicates. There
        is one for each _RESULT_BYTES, because a compressed file is one task, however long its text is."""
        doubts: list[str] = []
        seen: list[Seen] = []
        found, told = _Found(self.steps), 0
        for batch, size in batches(task, self.steps.kinds, doubts, seen):
            found.read += size
            if batch:
                self._batch(batch, found)
            if found.size >= _RESULT_BYTES:
                yield found.packed(doubts[told:], seen)
                found, told = _Found(self.steps), len(doubts)
                seen.clear()
        yield found.packed(doubts[told:], seen)

    def collected(self, task: Task) -> bytes:
        """Returns a task's results, one after another."""
        return b"".join(self.run(task))

    def write(self, order: tuple[str, Task]) -> None:
        """Writes a task's results, one after another, to a file that appears complete or not at all."""
        path, task = order
        with _binding.Output(path) as output:
            for result in self.run(task):
                output.write(result)

    def _batch(self, batch: Sequence[Document], found: _Found) -> None:
        steps, tally = self.steps, found.tally
        tally.count("in", len(batch), sum(len(document.data) for document in batch))
        if steps.normalizer is not None:
            batch = [document.with_text(normalize_text(document.text, steps.normalizer)) for document in batch]
        tally.measure("chars in", [len(document.text) for document in batch])
        for document, reason in zip(batch, self._filtered(batch, tally)):
            extra: dict[str, Any] = {}
            reason = reason or self._language(document.text, tally, extra) or self._scored(document.text, tally)
            if reason is not None:
                tally.count(reason, 1, len(document.data))
                tally.sample(reason, document.text)
                continue
            found.add(self._scrubbed(document, tally), extra)
        found.add_signatures()

    def _filtered(self, batch: Sequence[Document], tally: Tally) -> Sequence[str | None]:
        if not self.steps.filters.limits():
            return [None] * len(batch)
        reasons, measures = self.steps.filters.judge([document.data for document in batch])
        for name, values in measures.items():
            tally.measure(name, values)
        return reasons

    def _language(self, text: str, tally: Tally, extra: dict[str, Any]) -> str | None:
        if not self.steps.languages:
            return None
        language, confidence = detect_language(text)
        tally.languages[language] += 1
        extra |= {"language": language, "language_confidence": round(confidence, 4)}
        if language not in self.steps.languages:
            return "language"
        return "language_confidence" if confidence < self.steps.min_confidence else None

    def _scored(self, text: str, tally: Tally) -> str | None:
        for scorer in self.steps.scorers:
            score = scorer.score(text)
            tally.measure(f"score {scorer.name}", [score])
            if score > scorer.max_score:
                return f"score {scorer.name}"
        return None

    def _scrubbed(self, document: Document, tally: Tally) -> Document:
        text = document.text
        findings = find_pii(text, self.steps.scrub_pii) if self.steps.scrub_pii else []
        for kind, start, end in findings:
            tally.changes[kind] += 1
            tally.sample(kind, text[max(0, start - _AROUND) : end + _AROUND])
        return document.with_text(replace_pii(text, findings)) if findings else document


class _Found:
    """The documents of a result that are kept, and the data for finding duplicates.

    Attributes:
        tally: what happened to the documents.
        read: the number of bytes of input.
        size: the number of bytes of the result, approximately.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.tally = Tally()
        self.read = self.size = 0
        self._new: list[bytes] = []  # the texts of documents without signatures
        self._lines: list[bytes] = []
        self._sizes: list[tuple[int, int]] = []
        self._digests: list[bytes] = []
        self._signatures = [numpy.empty((0, PERMUTATIONS), dtype=numpy.uint32)]
        self._paragraphs: list[bytes] = []

    def add(self, document: Document, extra: dict[str, Any]) -> None:
        """Adds a document, with more fields for its record."""
        steps, text, data = self._steps, document.text, document.data
        # A cluster is from an earlier run; writing.py adds the new one.
        without = None if steps.near_dedup is None else "cluster"
        line = json_line(document, steps.read.text_key, extra, without)
        self._lines.append(line)
        self._sizes.append((len(text), len(data)))
        self.size += len(line)
        if steps.dedup is not None or steps.near_dedup is not None:
            self._digests.append(digest(normalized(text) if steps.dedup == "normalized" else data))
        if steps.near_dedup is not None:
            self._new.append(data)
        if steps.dedup_paragraphs:
            self._paragraphs.append(paragraph_digests(text))

    def add_signatures(self) -> None:
        """Adds the signatures of the documents that were added."""
        if self._new:
            self._signatures.append(signatures_of_bytes(self._new))
            self.size += self._signatures[-1].nbytes
            self._new.clear()

    def packed(self, doubts: Sequence[str], seen: Sequence[Seen]) -> bytes:
        """Returns the result."""
        signatures = numpy.concatenate(self._signatures)
        header: dict[str, Any] = {
            "tally": self.tally.to_json(),
            "read": self.read,
            "documents": len(self._lines),
            "doubts": list(doubts),
            "seen": [some.plain() for some in seen],
        }
        near = self._steps.near_dedup
        sections = {
            "digests": b"".join(self._digests),
            "bands": b"" if near is None else band_keys(Banding.of(near), signatures).tobytes(),
            "signatures": signatures.tobytes(),
            "paragraph_counts": _integers([len(digests) // DIGEST_BYTES for digests in self._paragraphs]),
            "paragraphs": b"".join(self._paragraphs),
            "sizes": _integers([size for sizes in self._sizes for size in sizes]),
            "lines": b"".join(line + b"\n" for line in self._lines),
        }
        return pack(header, sections)


def _integers(values: Sequence[int]) -> bytes:
    return numpy.array(values, dtype="<i8").tobytes()
