"""The fields of a JSON record as they are spelled, so that fields which pass through are unchanged: large integers,
decimals of any length, escapes.

A record is one line that is known to be a JSON object. Nothing recurses, however deeply its values are nested.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_BETWEEN = re.compile(r"[\s,:]*")
_SCALAR = re.compile(_STRING + r"|[^\s,\]}]+")
_BRACKET = re.compile(_STRING + r"|[\[\]{}]")


class Raw(NamedTuple):
    """A JSON value as it is spelled in the input."""

    json: str


def raw_fields(line: bytes) -> dict[str, Raw]:
    """Returns the fields of a record. If a name is repeated, the last one counts, as in Python's json module."""
    text = line.decode("utf-8-sig")
    at = text.index("{") + 1
    fields: dict[str, Raw] = {}
    while text[at := _end(_BETWEEN, text, at)] != "}":
        end = _end(_SCALAR, text, at)
        key = json.loads(text[at:end])
        at = _end(_BETWEEN, text, end)
        end = _value_end(text, at)
        fields[key] = Raw(text[at:end])
        at = end
    return fields


def respelled(value: object, text: str) -> Raw | str:
    """Returns a string as `json_line` takes it: as it is spelled in the input, if that is how json_line would spell it.
    Copying is much faster than escaping.

    Args:
        value: the field with this text as raw_fields returns it, or anything else.
        text: the text.
    """
    if isinstance(value, Raw) and "\\u" not in value.json and "\\/" not in value.json:
        return value
    return text


def _value_end(text: str, at: int) -> int:
    if text[at] not in "[{":
        return _end(_SCALAR, text, at)
    depth = 0
    for found in _BRACKET.finditer(text, at):
        depth += (found[0] in "[{") - (found[0] in "]}")  # a string contains neither
        if depth == 0:
            return found.end()
    return len(text)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def json_line(fields: dict[str, Any]) -> bytes:
    """Returns a record as a JSON line, without the newline."""
    members = (
        f"{_dumped(key)}: {value.json if isinstance(value, Raw) else _dumped(value)}" for key, value in fields.items()
    )
    return ("{" + ", ".join(members) + "}").encode()


def _dumped(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can represent
        return json.dumps(value)
    return text
