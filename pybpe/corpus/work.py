"""The steps that handle each document by itself, run by worker processes, one task at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import _binding
from .._numpy import numpy
from ..arguments import utf8
from ..normalize import normalize_text
from ..reading.bad_records import Seen
from ..reading.planning import Task
from .duplicates import digest, normalized
from .language import detect_language
from .minhash import signatures_of_bytes
from .paragraphs import paragraph_digests
from .pii import find_pii, replace_pii
from .raw_json import json_line, respelled
from .reading import Document, batches
from .spool import pack
from .steps import Steps
from .tally import Tally

_RESULT_BYTES = 1 << 22  # of lines; how results are divided does not change the output
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
        tally, kept, read, told = Tally(), _Kept(), 0, 0
        for batch, size in batches(task, self.steps.kinds, doubts, seen):
            read += size
            if batch:
                self._batch(batch, tally, kept)
            if kept.bytes >= _RESULT_BYTES:
                yield _packed(tally, kept, read, doubts[told:], seen)
                tally, kept, read, told = Tally(), _Kept(), 0, len(doubts)
                seen.clear()
        yield _packed(tally, kept, read, doubts[told:], seen)

    def _batch(self, batch: Sequence[Document], tally: Tally, kept: _Kept) -> None:
        texts = [normalize_text(document.text, self.steps.normalizer) for document in batch]
        tally.measure("chars in", map(len, texts))
        for document in batch:
            tally.count("in", len(utf8(document.text)))
        reasons = self._filtered(texts, tally)
        stay: list[tuple[str, dict[str, Any]]] = []
        for document, text, reason in zip(batch, texts, reasons):
            extra: dict[str, Any] = {}
            reason = reason or self._language(text, tally, extra) or self._scored(text, tally)
            if reason is not None:
                tally.count(reason, len(utf8(text)))
                tally.sample(reason, text)
                continue
            text = self._scrubbed(text, tally)
            key = self.steps.read.text_key
            spelled = respelled(document.fields[key], text) if text is document.text else text
            fields = {**document.fields, key: spelled, **extra}
            if self.steps.near_dedup is not None:
                fields.pop("cluster", None)  # from an earlier run; writing.py adds the new one
            stay.append((text, fields))
        if stay:
            kept.add(self.steps, stay)

    def _filtered(self, texts: Sequence[str], tally: Tally) -> list[str | None]:
        if not self.steps.filters.limits():
            return [None] * len(texts)
        reasons, measures = self.steps.filters.judge(texts)
        for name, values in measures.items():
            tally.measure(name, values.tolist())
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

    def _scrubbed(self, text: str, tally: Tally) -> str:
        findings = find_pii(text, self.steps.scrub_pii) if self.steps.scrub_pii else []
        for kind, start, end in findings:
            tally.changes[kind] += 1
            tally.sample(kind, text[max(0, start - _AROUND) : end + _AROUND])
        return replace_pii(text, findings) if findings else text


def _packed(tally: Tally, kept: _Kept, read: int, doubts: Sequence[str], seen: Sequence[Seen]) -> bytes:
    header: dict[str, Any] = {
        "tally": tally.to_json(),
        "read": read,
        "documents": len(kept.lines),
        "doubts": list(doubts),
        "seen": [some.plain() for some in seen],
    }
    return pack(header, kept.sections())


class _Kept:
    """The documents of a result that are kept, and the data for finding duplicates. `bytes` is the size of the
    lines."""

    def __init__(self) -> None:
        self.bytes = 0
        self.lines: list[bytes] = []
        self.sizes: list[tuple[int, int]] = []
        self.digests: list[bytes] = []
        self.signatures: list[bytes] = []
        self.paragraphs: list[bytes] = []

    def add(self, steps: Steps, stay: Sequence[tuple[str, dict[str, Any]]]) -> None:
        texts = [text for text, _ in stay]
        encoded = [utf8(text) for text in texts]
        lines = [json_line(fields) for _, fields in stay]
        self.lines += lines
        self.bytes += sum(map(len, lines))
        self.sizes += [(len(text), len(data)) for text, data in zip(texts, encoded)]
        if steps.dedup is not None or steps.near_dedup is not None:
            self.digests += map(digest, map(normalized, texts) if steps.dedup == "normalized" else encoded)
        if steps.near_dedup is not None:
            self.signatures.append(signatures_of_bytes(encoded).tobytes())
        if steps.dedup_paragraphs:
            self.paragraphs += map(paragraph_digests, texts)

    def sections(self) -> dict[str, bytes]:
        return {
            "digests": b"".join(self.digests),
            "signatures": b"".join(self.signatures),
            "paragraph_sizes": _integers(list(map(len, self.paragraphs))),
            "paragraphs": b"".join(self.paragraphs),
            "sizes": _integers([size for sizes in self.sizes for size in sizes]),
            "lines": b"".join(line + b"\n" for line in self.lines),
        }


def _integers(values: Sequence[int]) -> bytes:
    return numpy.array(values, dtype="<i8").tobytes()


def integers(data: bytes) -> numpy.ndarray[Any, Any]:
    """Returns the numbers of a section, int64."""
    return numpy.frombuffer(data, dtype="<i8")


def run_task(pickled: bytes, task: Task) -> bytes:
    """Runs a task in a worker. Returns its results, one after another."""
    return b"".join(_work(pickled).run(task))


def run_task_to(pickled: bytes, order: tuple[str, Task]) -> None:
    """Runs a task in a worker on this machine, which writes the results to a file."""
    path, task = order
    write_results(path, _work(pickled).run(task))


def write_results(path: str, results: Iterable[bytes]) -> None:
    """Writes results, one after another, to a file that appears complete or not at all."""
    with _binding.Output(path) as output:
        for result in results:
            output.write(result)


@lru_cache(maxsize=2)
def _work(pickled: bytes) -> Work:
    return pickle.loads(pickled)  # type: ignore[no-any-return]
