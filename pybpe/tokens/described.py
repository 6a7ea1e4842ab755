"""What the manifest.json next to a token file says about the file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from ..errors import ArgumentError, FileChangedError
from ..reading.streams import read_file
from ..tokenizer import Tokenizer
from .manifest import manifest_name


class FileFacts(NamedTuple):
    """What a manifest says about one token file.

    Attributes:
        split: the split that it belongs to.
        sha256: the SHA-256 of the file.
        dtype: the dtype of its ids.
        row_tokens: the tokens per row if it has packed rows; otherwise None.
        fingerprint: that of the tokenizer that made its tokens.
        eot_id: the id of its <|endoftext|>.
        eot: where these marks are: "append", "prepend" or "none".
    """

    split: str
    sha256: str | None
    dtype: str | None
    row_tokens: int | None
    fingerprint: str | None
    eot_id: int | None
    eot: str | None


def file_facts(paths: Iterable[str]) -> list[FileFacts | None]:
    """Returns what the manifest.json next to each file says about it; None if there is none, or it does not name the
    file. For a link, the manifest may also be next to the file that it leads to, as in a workspace."""
    of_folder = cache(_facts_of_folder)

    def facts_of(path: str) -> FileFacts | None:
        return of_folder(os.path.dirname(path)).get(os.path.basename(path))

    return [facts_of(path) or (facts_of(os.path.realpath(path)) if os.path.islink(path) else None) for path in paths]


def stated(argument: str, given: Any, paths: Iterable[str], facts: Iterable[FileFacts | None]) -> Any:
    """Returns the value of an argument that is an attribute of FileFacts: what manifests state, otherwise `given`.

    Raises:
        ArgumentError: two of these values differ.
    """
    for path, each in zip(paths, facts):
        value = None if each is None else getattr(each, argument)
        if None not in (given, value) and given != value:
            raise ArgumentError(f"{path}: the manifest says {argument}={value!r}, not {given!r}")
        given = given if value is None else value
    return given


def describes_tokens(folder: str) -> bool:
    """Returns whether a folder has the manifest of token files."""
    return bool(_facts_of_folder(folder))


def check_tokenizer(name: str, fingerprint: object, tok: Tokenizer) -> None:
    """Raises ArgumentError unless a tokenizer has the fingerprint that a manifest states for `name`. Dropout changes
    nothing about token files, which are written without it."""
    model = tok.replace(dropout=0).model if tok.model.dropout else tok.model
    if fingerprint != model.fingerprint():
        raise ArgumentError(f"{name}: another tokenizer made these tokens: its fingerprint in the manifest differs")


def _facts_of_folder(folder: str) -> dict[str, FileFacts]:
    """Returns what the manifest.json of a folder says about each of its token files; nothing if there is none."""
    try:
        manifest = json.loads(read_file(os.path.join(folder, manifest_name(folder))))
        settings, tokenizer = manifest["settings"], manifest["tokenizer"]
        packing = settings.get("packing")
        row_tokens = packing.get("sequence_length") if isinstance(packing, dict) else None
        common = (
            _if_is(str, settings.get("dtype")),
            _if_is(int, row_tokens),
            _if_is(str, tokenizer.get("fingerprint")),
            _if_is(int, tokenizer.get("eot")),
            _if_is(str, settings.get("eot")),
        )
        return {
            shard["file"]: FileFacts(split, _if_is(str, shard.get("sha256")), *common)
            for split, shards in manifest["shards"].items()
            for shard in shards
        }
    except FileChangedError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}  # no manifest, or not one of ours


def _if_is(kind: type, value: object) -> Any:
    return value if isinstance(value, kind) else None
