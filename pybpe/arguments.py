"""Checks of what callers pass: a value of the wrong kind gets one line that names the argument, not a failure deep
inside."""

from __future__ import annotations

import operator
from collections.abc import Collection

from .errors import ArgumentError


def shown(value: object) -> str:
    """A value in an error message, cut if it is long."""
    try:
        text = repr(value.item() if hasattr(value, "item") else value)  # 5 rather than np.int64(5)
    except ValueError:  # an integer of thousands of digits, which Python does not print
        return f"a {type(value).__name__} too long to be shown"
    return text if len(text) <= 80 else text[:77] + "..."


def whole_number(name: str, value: object, least: int | None = 0, most: int | None = None) -> int:
    """An integer of Python or numpy as an int, from `least` to `most` (None: any); ArgumentError for anything else."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{name} must be an integer, not {shown(value)}") from None
    if least is not None and number < least:
        raise ArgumentError(f"{name} must be at least {least}, not {shown(number)}")
    if most is not None and number > most:
        raise ArgumentError(f"{name} must be at most {most}, not {shown(number)}")
    return number


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold a text: it has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def one_of(name: str, value: object, choices: Collection[str]) -> None:
    """ArgumentError unless the value is one of the strings."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")


def instance(name: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """ArgumentError unless the value is of a class; `expected` says in words what it should be."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be {expected}, not {type(value).__name__}: {shown(value)}")
