"""JSON lines: one record per line, whose text is a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..arguments import utf8
from ..errors import FormatError
from .unpacking import without_ending

try:
    from orjson import loads as _fast_loads
except ImportError:
    _decode = json.JSONDecoder().decode

    def _fast_loads(line: bytes) -> Any:  # type: ignore[misc,unused-ignore]
        return _decode(line.decode())  # json.loads would guess the encoding first


def has_records(path: str) -> bool:
    """Returns whether a file holds JSON lines, judging by its name."""
    return without_ending(path).endswith((".jsonl", ".ndjson"))


def record_texts(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[bytes]:
    """Yields the texts of JSON lines that begin at byte `offset` of a file. Skips blank lines."""
    for record in records(lines, text_key, path, offset):
        yield utf8(record[text_key])


def records(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[dict[str, Any]]:
    """Yields the complete records, each with a string at `text_key`."""
    return (record for record, _ in record_lines(lines, text_key, path, offset))


def record_lines(lines: memoryview, text_key: str, path: str, offset: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields the records, each with its line."""
    for line in bytes(lines).split(b"\n"):
        if line and not line.isspace():
            yield _record(line, text_key, path, offset), line
        offset += len(line) + 1


def _loads(line: bytes) -> Any:
    try:
        return _fast_loads(line)
    except ValueError:  # orjson refuses some values that Python's json accepts: NaN, lone surrogates
        return json.loads(line.decode("utf-8-sig"))


def _record(line: bytes, text_key: str, path: str, offset: int) -> dict[str, Any]:
    try:
        record = _loads(line)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at its byte {error.start}: if the file has another encoding, pass it (--encoding)"
    except (ValueError, RecursionError) as error:
        problem = f"not JSON ({error})"
    else:
        if isinstance(record, dict) and isinstance(record.get(text_key), str):
            return record
        problem = f"expected an object with a string {text_key!r}"
        if isinstance(record, dict) and text_key not in record:
            keys = ", ".join(repr(key[:40]) for key in islice(record, 8))
            problem += f", but its keys are {keys or 'none'}: pass the key of the text in text_key (--text-key)"
    raise FormatError(f"{path}: the line at byte {offset}: {problem}", offset)
