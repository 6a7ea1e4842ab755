"""Folders and globs of remote files. They mean the same as on a local disk (see files.py), and give the same order."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

from ..corpus_folder import is_hidden, own_files
from ..saved_dataset import saved_dataset
from . import buckets
from .address import Address
from .buckets import Entry
from .remote_file import RemoteFile


def remote_files(url: str) -> tuple[list[str], list[str], bool]:
    """Returns the URLs of the files that a URL, folder or glob names, sorted; those of files that pybpe wrote; and
    whether `url` is the name of a file.

    Raises:
        ArgumentError: pybpe cannot read such URLs. FileError: the store cannot be read.
    """
    address = Address.parse(url)
    if address.is_web:
        return [url], [], True
    pattern = glob.has_magic(_parts(address)[-1])
    if pattern and not buckets.exists(address):
        return (*_matches(address), False)
    if not buckets.is_folder(address):
        return [url], [], True
    return (*_sorted(_walk(_child(address, ""))), False)


def _parts(address: Address) -> tuple[str, str]:
    """Returns the part of a URL that names the bucket, and the path."""
    scheme, _, where = address.url.partition("://")
    bucket, _, path = where.lstrip("/").partition("/")
    return f"{scheme}://{bucket}", path


def _child(folder: Address, name: str) -> Address:
    """Returns the address of a name in a folder; of the folder without the / at its end, if the name is ""."""
    url = folder.url.rstrip("/") + (f"/{name}" if name else "")
    return replace(folder, url=url, name=url)


class _Found(NamedTuple):
    """A file in a folder: its URL, whether pybpe wrote it, and its place in the order."""

    url: str
    is_own: bool
    place: tuple[str, int]


def _sorted(found: Iterator[_Found]) -> tuple[list[str], list[str]]:
    files = sorted(found, key=lambda file: file.place)
    return [file.url for file in files if not file.is_own], [file.url for file in files if file.is_own]


def _walk(folder: Address) -> Iterator[_Found]:
    """Yields the files of a folder and its subfolders. Skips hidden ones."""
    inside = buckets.entries(folder)
    folders = [entry.name for entry in inside if entry.is_folder]
    names = [entry.name for entry in inside if not entry.is_folder]
    content = partial(_content, folder)
    own = own_files(folders, names, content)
    listed = saved_dataset(folder.name, names, content)
    for number, name in enumerate(names if listed is None else listed):
        if not is_hidden(name):
            url = _child(folder, name).url
            yield _Found(url, name in own, (url, 0) if listed is None else (_child(folder, min(listed)).url, number))
    for name in folders:
        if not is_hidden(name):
            yield from _walk(_child(folder, name))


def _content(folder: Address, name: str) -> bytes:
    _, stream = RemoteFile.look(_child(folder, name).url)
    return b"" if stream is None else stream.read()


# ----------------------------------------------------------------------------------------------------
# Globs


def _matches(address: Address) -> tuple[list[str], list[str]]:
    bucket, path = _parts(address)
    found = set(_expanded(replace(address, url=bucket, name=bucket), path.split("/")))
    kept, left_out = list[str](), list[str]()
    end = "/" if path.endswith("/") else ""  # Python's glob sorts the names with it
    for place, is_folder in sorted(found, key=lambda each: each[0].url + end):
        if not is_folder:
            kept.append(place.url)
        elif "**" not in path:  # otherwise it matches the files in all subfolders already
            inside, own = _sorted(_walk(place))
            kept += inside
            left_out += own
    return kept, left_out


def _expanded(folder: Address, parts: list[str]) -> Iterator[tuple[Address, bool]]:
    """Yields what a glob matches below a folder, and whether each is a folder. `parts` are the names between the / of
    the glob."""
    part, rest = parts[0], parts[1:]
    if part == "":
        yield from _expanded(folder, rest) if rest else iter([(folder, True)])
    elif part == "**":
        yield from _expanded_anywhere(folder, rest)
    elif glob.has_magic(part) or not rest:
        for entry in buckets.entries(folder):
            if _is_match(entry, part) and (entry.is_folder or not rest):
                place = _child(folder, entry.name)
                yield from _expanded(place, rest) if rest else iter([(place, entry.is_folder)])
    else:
        yield from _expanded(_child(folder, part), rest)


def _expanded_anywhere(folder: Address, rest: list[str]) -> Iterator[tuple[Address, bool]]:
    """Yields what matches `rest` in a folder or any of its subfolders; all files if `rest` is empty."""
    if rest:
        yield from _expanded(folder, rest)
    for entry in buckets.entries(folder):
        if not is_hidden(entry.name):
            place = _child(folder, entry.name)
            if entry.is_folder:
                yield from _expanded_anywhere(place, rest)
            elif not rest:
                yield place, False


def _is_match(entry: Entry, pattern: str) -> bool:
    if not glob.has_magic(pattern):
        return entry.name == pattern
    return fnmatchcase(entry.name, pattern) and (pattern.startswith(".") or not is_hidden(entry.name))
