"""The steps that handle each document by itself, run by worker processes, one task at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

from .. import _binding
from .._numpy import Array, numpy
from ..normalize import normalize_text
from ..reading.planning import Task
from .duplicates import DIGEST_BYTES, digest, normalized, paragraph_digests
from .measures import characters
from .near_duplicates import PERMUTATIONS, Banding, band_keys
from .pii import find_pii, replace_pii
from .reading import Batch, batches, json_line
from .report import Tally
from .results import packed
from .steps import Steps, detect_language

_RESULT_BYTES = 1 << 22  # of lines and signatures; how results are divided does not change the output
_AROUND = 40  # characters shown on each side of a replacement
_Change = tuple[int, str, dict[str, Any]]  # the place of a document, its new text, and new fields of its record


@dataclass(frozen=True)
class Work:
    """What a worker does."""

    steps: Steps

    def run(self, task: Task) -> Iterator[bytes]:
        """Yields a task's results in the form of results.py: lines, and for each line the data for finding duplicates.
        There is one for each _RESULT_BYTES, because a compressed file is one task, however long its text is."""
        found = _Found(self.steps)
        for batch in batches(task, self.steps.kinds):
            found.note(batch)
            if len(batch.texts):
                self._batch(batch, found)
            if found.size >= _RESULT_BYTES:
                yield found.packed()
                found = _Found(self.steps)
        yield found.packed()

    def collected(self, task: Task) -> bytes:
        """Returns a task's results, one after another."""
        return b"".join(self.run(task))

    def write(self, order: tuple[str, Task]) -> None:
        """Writes a task's results, one after another, to a file that appears complete or not at all."""
        path, task = order
        with _binding.Output(path) as output:
            for result in self.run(task):
                output.write(result)

    def _batch(self, batch: Batch, found: _Found) -> None:
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

    def _changed(self, batch: Batch, step: Callable[[Sequence[bytes]], Iterator[_Change]]) -> Batch:
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
        self._read: dict[str, Any] = {"read": 0, "doubts": [], "seen": []}
        self._lines: list[memoryview] = []
        self._sizes = [numpy.empty((0, 2), dtype="<i8")]
        self._digests: list[bytes] = []
        self._signatures = [numpy.empty((0, PERMUTATIONS), dtype="<u4")]
        self._paragraphs: list[bytes] = []

    def note(self, batch: Batch) -> None:
        """Notes what was read for a batch."""
        self._read["read"] += batch.size
        if batch.doubt is not None:
            self._read["doubts"].append(batch.doubt)
        if batch.seen.end:  # there were records
            self._read["seen"].append(batch.seen.plain())

    def add(self, texts: _binding.Strings, lines: _binding.Strings, chars: Array) -> None:
        """Adds documents, with their numbers of characters."""
        steps = self._steps
        self._lines.append(lines.data)
        self._sizes.append(numpy.stack([chars, numpy.diff(numpy.frombuffer(texts.offsets, "<i8"))], axis=1))
        self.size += len(lines.data)
        if steps.dedup == "normalized":
            self._digests += [digest(normalized(text.decode())) for text in texts.list()]
        elif steps.dedup is not None or steps.near_dedup is not None:
            self._digests += map(digest, texts.list())
        if steps.near_dedup is not None and len(texts):
            self._signatures.append(_binding.minhash_texts(texts, characters()))
            self.size += self._signatures[-1].nbytes
        if steps.dedup_paragraphs:
            self._paragraphs += [paragraph_digests(text.decode()) for text in texts.list()]

    def packed(self) -> bytes:
        """Returns the result."""
        signatures, sizes = numpy.concatenate(self._signatures), numpy.concatenate(self._sizes)
        lines, near = b"".join(self._lines), self._steps.near_dedup
        if near is not None and b'"cluster"' in lines:  # from an earlier run; cleaning.py adds the new one
            each = [line + b"\n" for line in lines.split(b"\n")[:-1]]
            lines = b"".join(json_line(line, {}, "cluster") if b'"cluster"' in line else line for line in each)
        header = {"tally": self.tally.to_json(), "documents": len(sizes), **self._read}
        counts = numpy.array([len(digests) // DIGEST_BYTES for digests in self._paragraphs], dtype="<i8")
        sections = {
            "digests": b"".join(self._digests),
            "bands": b"" if near is None else band_keys(Banding.of(near), signatures).tobytes(),
            "signatures": signatures.tobytes(),
            "paragraph_counts": counts.tobytes(),
            "paragraphs": b"".join(self._paragraphs),
            "sizes": sizes.tobytes(),
            "lines": lines,
        }
        return packed(header, sections)
