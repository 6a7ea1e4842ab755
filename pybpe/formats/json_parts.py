"""Reads members of JSON objects and checks their types."""

from __future__ import annotations

from typing import Any

from ..errors import FormatError

JsonObject = dict[str, Any]


def part(parent: Any, key: str, kind: type, name: str) -> Any:
    """Returns a member of a JSON object. Raises FormatError unless it exists and has this type."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if type(value) is not kind:
        raise FormatError(f"{name}: not a tokenizer.json: {key!r} must be of type {kind.__name__}: {value!r:.60}")
    return value
