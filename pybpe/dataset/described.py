"""What the manifest.json next to a token file says about the file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from ..errors import FileChangedError
from ..reading.streams import read_file
from .manifest import FILE_NAME


def manifest_dtype(path: str) -> str | None:
    """Returns the dtype that a manifest.json next to a file states, if it describes that file."""
    files, settings = _manifest(os.path.dirname(path))
    dtype = settings.get("dtype") if os.path.basename(path) in files else None
    return dtype if isinstance(dtype, str) else None


def packed_lengths(paths: Iterable[str]) -> list[int | None]:
    """Returns the tokens per row of each file if it has packed rows, as the manifest.json next to it says, or None."""
    folders: dict[str, tuple[set[str], dict[str, Any]]] = {}
    lengths: list[int | None] = []
    for path in paths:
        folder = os.path.dirname(path)
        if folder not in folders:
            folders[folder] = _manifest(folder)
        files, settings = folders[folder]
        packing = settings.get("packing") if os.path.basename(path) in files else None
        length = packing.get("sequence_length") if isinstance(packing, dict) else None
        lengths.append(length if isinstance(length, int) else None)
    return lengths


def _manifest(folder: str) -> tuple[set[str], dict[str, Any]]:
    """Returns the files that the manifest.json of a folder describes, and its settings; nothing if there is none."""
    try:
        manifest = json.loads(read_file(os.path.join(folder, FILE_NAME)))
        files = {shard["file"] for shards in manifest["shards"].values() for shard in shards}
        settings = manifest["settings"]
    except FileChangedError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set(), {}  # no manifest, or not one of ours
    return (files, settings) if isinstance(settings, dict) else (set(), {})
