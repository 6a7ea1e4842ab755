"""The last step: writes the kept documents to the output file, in order, and counts the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _binding
from ..arguments import utf8
from ..reading.bad_records import Seen, SkippedRecords
from ..support.output_files import give_name, output_file
from .decisions import Decisions, Fate
from .duplicates import DIGEST_BYTES
from .output import LineWriter
from .paragraphs import without_paragraphs
from .raw_json import json_line, raw_fields
from .spool import Result, Spool
from .steps import Steps
from .tally import Tally
from .work import integers


def write_list(path: str, spool: Spool, names: Mapping[str, str]) -> dict[str, Any]:
    """Writes the list of the records that were skipped. Returns what a report says about them."""
    temporary = os.path.join(spool.folder, os.path.basename(path))
    with _binding.Output(temporary) as output:
        records = SkippedRecords(output.write, names)
        for result in spool.results():
            for seen in result.header["seen"]:
                records.add(Seen.of(seen))
    give_name(temporary, output_file(path))
    return {**records.finish(path), "file": path}


def write_output(path: str, steps: Steps, spool: Spool, decisions: Decisions) -> Tally:
    """Writes the output file. Returns what happened to all documents."""
    writing = _Writing(steps, decisions)
    # A kill leaves nothing next to the output except the folder, which a later run removes.
    temporary = os.path.join(spool.folder, os.path.basename(path))
    with LineWriter(temporary) as writer:
        for result, fates in decisions.fates():
            writer.write(writing.lines(result, fates))
    give_name(temporary, output_file(path))
    return writing.tally


class _Writing:
    """The position in the corpus."""

    def __init__(self, steps: Steps, decisions: Decisions) -> None:
        self._text_key = steps.read.text_key
        self._paragraphs = steps.dedup_paragraphs
        self._repeated = decisions.paragraphs()
        self._removed: set[int] = set()  # the numbers of paragraphs of this task that are removed
        self._paragraph = 0  # the number of paragraphs in the documents that were kept so far
        self.tally = Tally()

    def lines(self, result: Result, fates: Sequence[Fate]) -> bytes:
        """Returns the lines of a task's kept documents."""
        self.tally.add(Tally.from_json(result.header["tally"]))
        lines = result.section("lines").split(b"\n")[:-1]
        chars, sizes = integers(result.section("sizes")).reshape(-1, 2).T.tolist()
        counts = [0] * len(lines)
        if self._paragraphs:
            counts = (integers(result.section("paragraph_sizes")) // DIGEST_BYTES).tolist()
            kept = sum(count for count, fate in zip(counts, fates) if fate.reason is None)
            self._removed = set(self._repeated.take(self._paragraph + kept)[:, 0].tolist())
        return b"".join(self._document(*row) for row in zip(lines, chars, sizes, counts, fates))

    def _document(self, line: bytes, chars: int, size: int, paragraphs: int, fate: Fate) -> bytes:
        reason, cluster = fate
        if reason is None and self._paragraphs:
            repeated = {i for i in range(paragraphs) if self._paragraph + i in self._removed}
            self._paragraph += paragraphs
            if repeated:
                text = self._without(json.loads(line)[self._text_key], repeated)
                fields: dict[str, Any] = {**raw_fields(line), self._text_key: text}
                line, chars, size = json_line(fields), len(text), len(utf8(text))
                reason = None if text.strip() else "paragraphs"
        if reason is not None:
            self.tally.count(reason, size)
            self.tally.sample(reason, json.loads(line)[self._text_key])
            return b""
        self.tally.count("out", size)
        self.tally.measure("chars out", [chars])
        if cluster is not None:  # no record has this field yet, so it can be appended
            line = line[:-1] + b', "cluster": "' + cluster.encode() + b'"}'
        return line + b"\n"

    def _without(self, text: str, repeated: set[int]) -> str:
        text, removed = without_paragraphs(text, repeated)
        self.tally.changes["paragraph"] += len(removed)
        for paragraph in removed:
            self.tally.sample("paragraph", paragraph)
        return text
