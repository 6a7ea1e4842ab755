"""The steps that handle single documents, run by worker processes, one task at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from typing import Any

from .. import _binding
from .._lazy import Array, numpy
from ..normalize import normalize_text
from ..support.task_results import Order, packed
from .duplicates import counted_paragraphs, normalized
from .measures import characters
from .near_duplicates import Banding
from .pii import find_pii, replace_pii
from .reading import DocumentBatch, batches, json_line
from .report import Tally
from .steps import CONFIDENCE, LANGUAGE, Steps, detect_language

_RESULT_BYTES = 1 << 22  # of lines and signatures. How results are divided does not change the output
_AROUND = 40  # characters shown on each side of a replacement
_Change = tuple[int, str, dict[str, Any]]  # the place of a document, its new text, and new fields of its record


@dataclass(frozen=True)
class Work:
    """The work of a worker."""

    steps: Steps

    def results(self, order: Order) -> Iterator[_binding.Data]:
        """Yields a task's results in the form of task_results.py, in parts: lines, and the data for finding duplicates
        of every line. There is one result per _RESULT_BYTES, because a compressed file is one task, however long its
        text is."""
        found, kinds = _Found(self.steps), self.steps.kinds
        for batch in batches(order.task, kinds, no_cluster=self.steps.near_dedup is not None):
            found.note(batch)
            if len(batch.texts):
                self._batch(batch, found)
            if found.size >= _RESULT_BYTES:
                yield from found.packed()
                found = _Found(self.steps)
        yield from found.packed()

    def _batch(self, batch: DocumentBatch, found: _Found) -> None:
        steps, tally = self.steps, found.tally
        tally.count("in", len(batch.texts), len(batch.texts.data))
        if (normalizer := steps.normalizer) is not None:
            batch = self._changed(
                batch,
                lambda texts: ((i, normalize_text(text.decode(), normalizer), {}) for i, text in enumerate(texts)),
            )
        reasons, measures, chars = steps.filters.judge(batch.texts)
        tally.measure("chars in", chars)
        for name, values in measures.items():
            tally.measure(name, values)
        if steps.languages or steps.scorers or steps.scrub_pii:
            batch = self._changed(batch, partial(self._looked_at, reasons, chars, tally))
        texts, lines = batch.texts, batch.lines
        if reasons:
            kept = numpy.ones(len(chars), dtype=bool)
            all_texts, all_lines = texts.list(), lines.list()
            for place, reason in sorted(reasons.items()):
                kept[place] = False
                tally.count(reason, 1, len(all_texts[place]))
                tally.sample(reason, all_texts[place].decode())
            texts, lines = (_binding.Strings(list(compress(some, kept))) for some in (all_texts, all_lines))
            chars = chars[kept]
        found.add(texts, lines, chars)

    def _changed(self, batch: DocumentBatch, step: Callable[[Sequence[bytes]], Iterator[_Change]]) -> DocumentBatch:
        """Returns a batch with other texts at some places, and with more fields in their records."""
        texts, lines = batch.texts.list(), batch.lines.list()
        for place, text, extra in step(texts):
            data = text.encode()
            if data != texts[place]:
                texts[place] = data
                extra = {self.steps.read.text_key: text, **extra}
            if extra:
                lines[place] = json_line(lines[place], extra)
        return batch._replace(texts=_binding.Strings(texts), lines=_binding.Strings(lines))

    def _looked_at(
        self, reasons: dict[int, str], chars: Array, tally: Tally, texts: Sequence[bytes]
    ) -> Iterator[_Change]:
        """Looks at the texts without a reason to be dropped. Adds to the reasons, or yields what is to change, and
        updates the numbers of characters."""
        for place in [place for place in range(len(texts)) if place not in reasons]:
            text, extra = texts[place].decode(), dict[str, Any]()
            if reason := self._language(text, tally, extra) or self._scored(text, tally):
                reasons[place] = reason
                continue
            text = self._scrubbed(text, tally)
            chars[place] = len(text)
            yield place, text, extra

    def _language(self, text: str, tally: Tally, extra: dict[str, Any]) -> str | None:
        if not self.steps.languages:
            return None
        language, confidence = detect_language(text)
        tally.languages[language] += 1
        extra |= {LANGUAGE: language, CONFIDENCE: round(confidence, 4)}
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

    def _scrubbed(self, text: str, tally: Tally) -> str:
        findings = find_pii(text, self.steps.scrub_pii) if self.steps.scrub_pii else []
        for kind, start, end in findings:
            tally.changes[kind] += 1
            tally.sample(kind, text[max(0, start - _AROUND) : end + _AROUND])
        return replace_pii(text, findings)


class _Found:
    """The documents of a result that are kept, and the data for finding duplicates."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.tally = Tally()
        self.size = 0  # of the result in bytes, approximately
        self._read: dict[str, Any] = {"read": 0, "doubts": [], "notes": []}
        self._fields: set[str] = set()  # those that the condition names and some record has
        self._documents = 0
        self._bands: list[Array] = []
        names = ("digests", "only", "bands", "signatures", "paragraph_counts", "paragraphs", "sizes", "lines")
        self._sections: dict[str, list[_binding.Data]] = {name: [] for name in names}

    def note(self, batch: DocumentBatch) -> None:
        """Notes the documents that were read for a batch."""
        self._read["read"] += batch.size
        self._fields.update(batch.fields)
        for name in ("in", "where"):
            self.tally.count(name, len(batch.others), len(batch.others.data))
        for text in batch.others.list():
            self.tally.sample("where", text.decode())
        if batch.doubt is not None:
            self._read["doubts"].append(batch.doubt)
        if batch.notes.end:  # there were records
            self._read["notes"].append(batch.notes.plain())

    def add(self, texts: _binding.Strings, lines: _binding.Strings, chars: Array) -> None:
        """Adds documents, with their numbers of characters."""
        steps, sections = self._steps, self._sections
        self._documents += len(texts)
        lengths = (numpy.diff(numpy.frombuffer(some.offsets, "<i8")) for some in (texts, lines))
        sections["sizes"].append(numpy.stack([chars, *lengths], axis=1).data)
        sections["lines"].append(lines.data)
        self.size += len(lines.data)
        if steps.dedup == "normalized":
            same = _binding.Strings([normalized(text.decode()).encode() for text in texts.list()])
            sections["digests"].append(_binding.digest_texts(same))
        elif steps.dedup is not None or steps.near_dedup is not None:
            sections["digests"].append(_binding.digest_texts(texts))
        if steps.near_dedup is not None:
            only = numpy.empty(len(texts), dtype="<u8")
            signatures = _binding.minhash_texts(texts, characters(), only)
            self._bands.append(_binding.cut_signatures(signatures, *Banding.of(steps.near_dedup)))
            sections["only"].append(only.data)
            sections["signatures"].append(signatures.data)
            self.size += signatures.nbytes
        if steps.dedup_paragraphs:
            paragraphs = [counted_paragraphs(text.decode()) for text in texts.list()]
            sections["paragraph_counts"].append(numpy.array([*map(len, paragraphs)], dtype="<i8").data)
            digests = _binding.digest_texts(_binding.Strings([*chain.from_iterable(paragraphs)]))
            sections["paragraphs"].append(digests)

    def packed(self) -> list[_binding.Data]:
        """Returns the result, in parts."""
        if self._bands:
            self._sections["bands"] = [numpy.concatenate(self._bands, axis=1).data]
        header = {"tally": self.tally.to_json(), "documents": self._documents, **self._read}
        header["fields"] = sorted(self._fields)
        return packed(header, self._sections)
