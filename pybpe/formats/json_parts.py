"""Members of JSON objects, with the type that they must have."""

from __future__ import annotations

from typing import Any

from ..errors import FormatError

JsonObject = dict[str, Any]


def part(parent: Any, key: str, kind: type, name: str) -> Any:
    """A member of a JSON object. FormatError unless it is there and of this type."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if type(value) is not kind:
        raise FormatError(f"{name}: not a tokenizer.json: {key!r} is no {kind.__name__}: {value!r:.60}")
    return value
