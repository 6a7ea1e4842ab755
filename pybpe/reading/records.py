"""JSON lines: one record per line, whose text is a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..arguments import utf8
from .bad_records import Seen

try:
    from orjson import loads as _fast_loads
except ImportError:
    _decode = json.JSONDecoder().decode

    def _fast_loads(line: bytes) -> Any:  # type: ignore[misc,unused-ignore]
        return _decode(line.decode())  # json.loads would guess the encoding first


def record_texts(lines: memoryview, text_key: str, seen: Seen) -> Iterator[bytes]:
    """Yields the texts of JSON lines that begin at byte `seen.start` of a file. Skips blank lines."""
    for record in records(lines, text_key, seen):
        yield utf8(record[text_key])


def records(lines: memoryview, text_key: str, seen: Seen) -> Iterator[dict[str, Any]]:
    """Yields the complete records, each with a string at `text_key`."""
    return (record for record, _ in record_lines(lines, text_key, seen))


def record_lines(lines: memoryview, text_key: str, seen: Seen) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields the records, each with its line. `seen` notes their number, and those that are not valid."""
    offset, seen.records, seen.bad = seen.start, 0, []  # C may have tried it before
    parts = bytes(lines).split(b"\n")
    for number, line in enumerate(parts):
        if line and not line.isspace():
            seen.records += 1
            record, problem = _record(line, text_key)
            if record is not None:
                yield record, line
            else:
                seen.bad_line(offset, number, problem)
        offset += len(line) + 1
    seen.end, seen.lines = seen.start + len(lines), len(parts) - 1


def _loads(line: bytes) -> Any:
    try:
        return _fast_loads(line)
    except ValueError:  # orjson refuses some values that Python's json accepts: NaN, lone surrogates
        return json.loads(line.decode("utf-8-sig"))


def _record(line: bytes, text_key: str) -> tuple[dict[str, Any] | None, str]:
    """Returns the record of a line; or None, and what is wrong with the line."""
    try:
        record = _loads(line)
    except UnicodeDecodeError as error:
        return None, f"not UTF-8 at its byte {error.start}: if the file has another encoding, pass it (--encoding)"
    except (ValueError, RecursionError) as error:
        return None, f"not JSON ({error})"
    if isinstance(record, dict) and isinstance(record.get(text_key), str):
        return record, ""
    problem = f"expected an object with a string {text_key!r}"
    if isinstance(record, dict) and text_key not in record:
        keys = ", ".join(repr(key[:40]) for key in islice(record, 8))
        problem += f", but its keys are {keys or 'none'}: pass the key of the text in text_key (--text-key)"
    return None, problem
