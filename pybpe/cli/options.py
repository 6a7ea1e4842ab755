"""Options of commands. Most are fields of dataclasses, which declare an option once: see `option` in arguments.py."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields
from typing import Any

from ..errors import ArgumentError


def add_options(command: Any, kind: type, *names: str, without: Iterable[str] = (), **defaults: Any) -> None:
    """Adds the options that a dataclass declares: all, or the named ones, but not `without`. `defaults` are the
    command's own."""
    for field in fields(kind):
        if field.metadata and field.name not in without and (not names or field.name in names):
            _add_option(command, field, defaults.get(field.name, field.default))


def _add_option(command: Any, field: Field[Any], default: Any) -> None:
    flag = field.metadata.get("flag") or "--" + field.name.replace("_", "-")
    help = field.metadata["help"] + ("" if "(default" in field.metadata["help"] else _default(default))
    if field.type == "bool":
        command.option(flag, help, dest=field.name)
        return
    parse = _UNITS.get(field.metadata.get("unit", "")) or _TYPES.get(str(field.type).removesuffix(" | None"), str)
    more: dict[str, Any] = {"type": parse}
    if "Iterable" in str(field.type):
        more, default = {"action": "append"}, None  # without the option, the function's default
    more |= {"required": True} if default is MISSING else {"default": default}
    command.option(
        f"{flag} {field.metadata['metavar']}", help, path=field.metadata.get("path", ""), dest=field.name, **more
    )


def _default(value: Any) -> str:
    """Returns the text about a default for the help."""
    if value is MISSING or value is None or value is False:
        return ""
    if value == ():
        return " (default: none)"
    if isinstance(value, int) and value % 10**6 == 0 and value:
        return f" (default: {value // 10**6}M)"
    if isinstance(value, (tuple, list)) and isinstance(value[0], str):
        return f" (default: {len(value)} control tokens for documents and chats; the first is {value[0]})"
    return f" (default: {','.join(map(str, value)) if isinstance(value, tuple) else value})"


def _expecting(example: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns a parser of values for argparse, whose errors show an example."""

    def checked(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError(f"expected {example}, not {text!r}") from None

    return checked


def _amount(text: str) -> int:
    """Returns 32000, 32k, 1.5M, 4G or 4B (billion) as a number. The units are powers of 1000."""
    unit = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}.get(text[-1:].lower())
    return int(text) if unit is None else int(float(text[:-1]) * unit)


def _bytes(text: str) -> int:
    if text[-1:] in ("b", "B"):  # which could mean bytes or billions
        raise ValueError
    return _amount(text)


parse_amount = _expecting("a number such as 32000, 32k or 4G", _amount)
parse_bytes = _expecting("bytes such as 500M or 2G", _bytes)
_UNITS = {"bytes": parse_bytes, "depth": _expecting("d6, d12, d24 and so on", lambda text: int(text.removeprefix("d")))}
_TYPES = {
    "int": parse_amount,
    "float": float,
    "Digits": lambda text: int(text) if re.fullmatch("[0-9]{1,8}", text) else text,  # Pattern checks it
    "Sequence[float]": _expecting("numbers such as 8,1,1", lambda text: [float(part) for part in text.split(",")]),
}


def named_files(what: str, entries: Iterable[str]) -> dict[str, list[str]]:
    """Returns name -> files, from arguments NAME=FILE of the option `what`."""
    files: dict[str, list[str]] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not equals or not name or not path:
            raise ArgumentError(f"{what}: expected NAME=FILE, as in en=english.txt, not {entry!r:.80}")
        files.setdefault(name, []).append(path)
    return files
