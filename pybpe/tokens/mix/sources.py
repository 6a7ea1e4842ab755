"""The sources of a mixture: folders of token files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...errors import FormatError, file_errors
from ...reading.splits import SPLIT_NAMES
from ...tokenizer import Tokenizer
from ..token_files import TokenStream
from ..token_folders import TokenFolder, check_copies
from .drawing import Documents, find_documents
from .recipe import Source


def open_sources(sources: Sequence[Source], tok: Tokenizer, out: str | None = None) -> list[TokenFolder]:
    """Opens all sources. `out` is the output folder, which cannot be a source.

    Raises:
        ArgumentError: two have the same token files. What TokenFolder.open and check_documents raise.
    """
    found = [TokenFolder.open(source.data, tok) for source in sources]
    for data in found:
        data.check_documents(out)
    check_copies(named(sources, found))
    return found


def named(sources: Sequence[Source], opened: Sequence[TokenFolder]) -> list[tuple[str, TokenFolder]]:
    """Returns opened sources with their names in errors."""
    return [(f"sources.{source.name}", data) for source, data in zip(sources, opened)]


def state_of(data: TokenFolder) -> list[object]:
    """Returns the fingerprint of the files of a source. Files that a killed run has made of them are used
    only if it is the same."""
    seen: list[object] = [data.sha256]
    for path in (os.path.join(data.path, name) for name in data.manifest.file_names):
        with file_errors(path, "cannot be examined"):
            status = os.stat(path)
        seen.append((status.st_size, status.st_mtime_ns, status.st_ino))
    return seen


def documents_of(data: TokenFolder, folder: str) -> list[Documents | None]:
    """Finds the documents of all splits. Files without names in `folder` hold their lengths.

    Raises:
        FormatError: the tokens do not match the manifest.
    """
    return [_documents(data, split, folder) for split in SPLIT_NAMES]


def _documents(data: TokenFolder, split: str, folder: str) -> Documents | None:
    path, manifest, _ = data
    expected = (manifest.split_documents(split), manifest.split_tokens(split))
    if not expected[1]:
        return None
    eot, tokenizer = str(manifest.settings["eot"]), manifest.tokenizer
    mark, n_vocab = int(tokenizer["eot"]), int(tokenizer["n_vocab"])  # type: ignore[call-overload]
    stream = TokenStream(data.paths(split), str(manifest.settings.get("dtype")))
    found = find_documents(stream, mark, eot, n_vocab, folder)
    if (len(found), found.tokens) != expected:
        raise FormatError(
            f"{path}: its {split} split has {len(found)} documents in {found.tokens} tokens, but the manifest says"
            f" {expected[0]} in {expected[1]}: write the data again"
        )
    return found
