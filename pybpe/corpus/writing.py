"""The last step: writes the kept documents to the output file, in order, and counts the rest."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from .. import _binding
from .._numpy import Array
from ..errors import ArgumentError
from ..reading.bad_records import Seen, SkippedRecords
from ..reading.unpacking import zstd_module
from ..support.output_files import give_name, output_file
from .decisions import REASONS, Decisions, Part
from .duplicates import without_paragraphs
from .reading import json_line
from .results import Result
from .steps import Steps
from .tally import Tally


def check_name(path: _binding.PathLike) -> str:
    """Returns the path. Raises ArgumentError unless its name ends in a known format."""
    name = _binding.path_text(path)
    if not name.removesuffix(".gz").removesuffix(".zst").endswith((".jsonl", ".ndjson")):
        raise ArgumentError(f"{name}: the output is JSON lines: name it .jsonl, .jsonl.gz or .jsonl.zst")
    if os.path.isdir(name):
        raise ArgumentError(f"{name}: this is a folder; give the name of a file")
    _compressor(name)
    return name


def _compressor(name: str) -> Any:
    if name.endswith(".gz"):
        return zlib.compressobj(wbits=31)  # a gzip header without a timestamp: equal texts give equal bytes
    if name.endswith(".zst"):
        return zstd_module(name).ZstdCompressor()
    return None


def write_list(path: str, folder: str, results: Sequence[Result], names: Mapping[str, str]) -> dict[str, Any]:
    """Writes the list of the records that were skipped, by way of a folder. Returns what a report says about them."""
    temporary = os.path.join(folder, os.path.basename(path))
    with _binding.Output(temporary) as output:
        records = SkippedRecords(output.write, names)
        for result in results:
            for seen in result.header()["seen"]:
                records.add(Seen.of(seen))
    give_name(temporary, output_file(path))
    return {**records.finish(path), "file": path}


def write_output(path: str, folder: str, steps: Steps, decisions: Decisions) -> Tally:
    """Writes the output file. Returns what happened to all documents."""
    tally = Tally()
    names = repeat(None) if steps.near_dedup is None else decisions.cluster_names()
    # A kill leaves nothing next to the output except the folder, which a later run removes.
    temporary = os.path.join(folder, os.path.basename(path))
    compressor = _compressor(path)
    with _binding.Output(temporary) as output:
        for part, clusters in zip(decisions.parts(), names):
            tally.add(Tally.from_json(part.result.header()["tally"]))
            lines = _kept_lines(part, clusters, steps.read.text_key, tally)
            output.write(lines if compressor is None else compressor.compress(lines))
        if compressor is not None:
            output.write(compressor.flush())
    give_name(temporary, output_file(path))
    return tally


def _kept_lines(part: Part, clusters: Sequence[str] | None, key: str, tally: Tally) -> bytes:
    """Returns the lines of the documents of a part that are kept, with the names of their clusters."""
    data, sizes = part.result.section("lines"), part.result.array("sizes", "<i8", 2).copy()
    if clusters is not None or part.drops.any() or part.repeated.any():
        lines, reasons = data.split(b"\n")[:-1], [REASONS[drop] for drop in part.drops.tolist()]
        if part.repeated.any():
            _remove_paragraphs(part, lines, sizes, reasons, key, tally)
        for place, reason in enumerate(reasons):
            if reason:
                tally.count(reason, 1, int(sizes[place, 1]))
                tally.sample(reason, json.loads(lines[place])[key])
        kept = [place for place, reason in enumerate(reasons) if not reason]
        if clusters is not None:  # no record has this field yet, so it can be appended
            lines = [line[:-1] + b', "cluster": "%s"}' % name.encode() for line, name in zip(lines, clusters)]
        data, sizes = b"".join(lines[place] + b"\n" for place in kept), sizes[kept]
    if len(sizes):
        tally.count("out", len(sizes), int(sizes[:, 1].sum()))
        tally.measure("chars out", sizes[:, 0])
    return data


def _remove_paragraphs(
    part: Part, lines: list[bytes], sizes: Array, reasons: list[str], key: str, tally: Tally
) -> None:
    """Removes repeated paragraphs from kept documents: changes `lines`, `sizes` and, if nothing is left, `reasons`."""
    at = 0
    for place, count in enumerate(part.result.array("paragraph_counts", "<i8")[:, 0].tolist()):
        if reasons[place]:
            continue
        repeated = set(part.repeated[at : at + count].nonzero()[0].tolist())
        at += count
        if repeated:
            text, removed = without_paragraphs(json.loads(lines[place])[key], repeated)
            lines[place] = json_line(lines[place], {key: text})[:-1]
            sizes[place] = len(text), len(text.encode())
            reasons[place] = "" if text.strip() else "paragraphs"
            tally.changes["paragraph"] += len(removed)
            for paragraph in removed:
                tally.sample("paragraph", paragraph)
