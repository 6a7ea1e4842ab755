"""The last step: writes the kept documents to the output file, in order, and counts the rest."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _binding
from ..arguments import utf8
from ..errors import ArgumentError
from ..reading.bad_records import Seen, SkippedRecords
from ..reading.unpacking import zstd_module
from ..support.output_files import give_name, output_file
from .decisions import REASONS, Decisions, Fates
from .duplicates import without_paragraphs
from .reading import Document, json_line
from .spool import Result
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


def write_output(path: str, folder: str, text_key: str, decisions: Decisions) -> Tally:
    """Writes the output file. Returns what happened to all documents."""
    tally = Tally()
    # A kill leaves nothing next to the output except the folder, which a later run removes.
    temporary = os.path.join(folder, os.path.basename(path))
    compressor = _compressor(path)
    with _binding.Output(temporary) as output:
        for result, fates in decisions.fates():
            tally.add(Tally.from_json(result.header()["tally"]))
            lines = _kept_lines(result, fates, text_key, tally)
            output.write(lines if compressor is None else compressor.compress(lines))
        if compressor is not None:
            output.write(compressor.flush())
    give_name(temporary, output_file(path))
    return tally


def _kept_lines(result: Result, fates: Fates, key: str, tally: Tally) -> bytes:
    """Returns the lines of the documents of a result that are kept."""
    data, sizes = result.section("lines"), result.array("sizes", "<i8", 2).tolist()
    if fates.drops.any() or fates.repeated.any() or fates.clusters:
        lines, reasons = data.split(b"\n")[:-1], [REASONS[drop] for drop in fates.drops.tolist()]
        if fates.repeated.any():
            _remove_paragraphs(result, fates, lines, sizes, reasons, key, tally)
        for reason, line, (_, size) in zip(reasons, lines, sizes):
            if reason:
                tally.count(reason, 1, size)
                tally.sample(reason, json.loads(line)[key])
        kept = [place for place, reason in enumerate(reasons) if not reason]
        lines, sizes = [lines[place] for place in kept], [sizes[place] for place in kept]
        if fates.clusters:  # no record has this field yet, so it can be appended
            names = (fates.clusters[place].encode() for place in kept)
            lines = [line[:-1] + b', "cluster": "' + name + b'"}' for line, name in zip(lines, names)]
        data = b"".join(line + b"\n" for line in lines)
    if sizes:
        tally.count("out", len(sizes), sum(size for _, size in sizes))
        tally.measure("chars out", [chars for chars, _ in sizes])
    return data


def _remove_paragraphs(
    result: Result,
    fates: Fates,
    lines: list[bytes],
    sizes: list[list[int]],
    reasons: list[str],
    key: str,
    tally: Tally,
) -> None:
    """Removes repeated paragraphs from kept documents: changes `lines`, `sizes` and, if nothing is left, `reasons`."""
    at = 0
    for place, count in enumerate(result.array("paragraph_counts", "<i8").tolist()):
        if reasons[place]:
            continue
        repeated = set(fates.repeated[at : at + count].nonzero()[0].tolist())
        at += count
        if repeated:
            record = json.loads(lines[place])
            text, removed = without_paragraphs(record[key], repeated)
            document = Document(text, utf8(text), lines[place], record[key])
            lines[place] = json_line(document, key, {}, None)
            sizes[place] = [len(text), len(document.data)]
            reasons[place] = "" if text.strip() else "paragraphs"
            tally.changes["paragraph"] += len(removed)
            for paragraph in removed:
                tally.sample("paragraph", paragraph)
