"""Notices that two data sets were made from the same text, whose documents would then occur twice in what is made of
both: by the identity of the files, not by how their paths are written, and by what the manifests say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, FormatError
from ..reading.paths import STDIN
from ..support.call_paths import identity
from ..urls import is_url
from .manifest import Manifest

Range = tuple[str, int, float]
"""A file, and where what was read of it starts and ends."""


def inputs_of(manifest: Manifest) -> list[list[Any]]:
    """Returns the inputs of a folder: for each file, its name, and the start and end of what was read."""
    joined = manifest.settings.get("joined")
    if isinstance(joined, list):
        return [entry for folder in joined for entry in folder["inputs"]]
    ranges: dict[str, list[Any]] = {}
    for records in manifest.shards.values():
        for path, start, end in (source for record in records for source in record.sources):
            known = ranges.setdefault(path, [path, start, end])
            known[1:] = min(known[1], start), max(known[2], end)
    return list(ranges.values())


def ranges_of(folder: str, manifest: Manifest) -> list[Range]:
    """Returns the inputs of a folder. Raises FormatError if the manifest is damaged."""
    try:
        return [(str(path), int(start), int(end)) for path, start, end in inputs_of(manifest)]
    except (ValueError, TypeError, KeyError, OverflowError):  # OverflowError: 1e400 as a number
        raise FormatError(f"{folder}: the sources in its manifest are damaged") from None


def check_disjoint(parts: Sequence[tuple[str, Sequence[Range]]]) -> None:
    """Raises ArgumentError if two parts have the same text of a file.

    Args:
        parts: the name of each, and what it was made from.
    """
    seen: dict[object, list[tuple[float, float, str]]] = {}
    for name, inputs in parts:
        for path, start, end in inputs:
            if path == STDIN:  # another text each time: `check_contents` compares what was made of it
                continue
            others = seen.setdefault(path if is_url(path) else identity(path) or path, [])
            for first, last, other in others:
                if other != name and start < last and first < end:
                    raise ArgumentError(
                        f"{other} and {name}: both were made from {path}, so its documents would occur twice."
                        " If these are different files, give them different paths"
                    )
            others.append((start, end, name))


def check_contents(parts: Sequence[tuple[str, Manifest]]) -> None:
    """Raises ArgumentError if two folders have the same token files, because they are copies or were made from the same
    text.

    Args:
        parts: the name of each, and its manifest.
    """
    seen: dict[object, str] = {}
    for name, manifest in parts:
        files = tuple(record.sha256 for records in manifest.shards.values() for record in records)
        other = seen.setdefault(files, name) if manifest.tokens else name
        if other != name:
            raise ArgumentError(f"{other} and {name}: both have the same tokens, so their documents would occur twice")
