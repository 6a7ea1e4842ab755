"""Notices that two data sets were made from the same text, whose documents would then occur twice in what is made of
both: by the identity of the files, not by how their paths are written, and by what the manifests say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import ArgumentError
from ..reading.paths import STDIN
from ..support.call_paths import identity
from ..urls import is_url
from .manifest import Manifest


def check_disjoint(parts: Sequence[tuple[str, Iterable[str]]]) -> None:
    """Raises ArgumentError if two parts were made from the same file.

    Args:
        parts: the name of each, and the names of its inputs.
    """
    seen: dict[object, str] = {}
    for name, inputs in parts:
        for path in inputs:
            if path == STDIN:  # another text each time: `check_contents` compares what was made of it
                continue
            other = seen.setdefault(path if is_url(path) else identity(path) or path, name)
            if other != name:
                raise ArgumentError(
                    f"{other} and {name}: both were made from {path}, so its documents would occur twice."
                    " If these are different files, give them different paths"
                )


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
