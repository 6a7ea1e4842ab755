"""Folders and globs of remote files. They mean the same as on a local disk (see files.py), and give the same order."""

from __future__ import annotations

import glob
from bisect import bisect_left
from collections import defaultdict
from fnmatch import fnmatchcase

from ..corpus_folder import is_hidden, own_files, saved_dataset
from .address import WEB, Address
from .objects import is_object, names
from .remote_file import RemoteFile


def remote_files(url: str) -> tuple[list[str], list[str], bool]:
    """Returns the URLs of the files that a URL, folder or glob names, sorted; those of files that pybpe wrote; and
    whether `url` is the name of a file.

    Raises:
        ArgumentError: pybpe cannot read such URLs. FileError: the store cannot be read.
    """
    address = Address.parse(url)
    if address.scheme in WEB or (not url.endswith("/") and is_object(address)):
        return [url], [], True
    parts = [part for part in address.path.split("/") if part]
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    folder = "/".join((f"{address.scheme}://{address.bucket}", *parts[:fixed]))
    found = sorted(names(Address.parse(folder)))
    if parts[fixed:]:
        return (*_of_glob(folder, found, parts[fixed:], "/" if url.endswith("/") else ""), False)
    if not found and not url.endswith("/"):
        return [url], [], True  # opening it raises an error
    return (*_of_folder(folder, found), False)


def _of_folder(folder: str, found: list[str]) -> tuple[list[str], list[str]]:
    """Returns the files of a folder that make up a corpus, and those that pybpe wrote. `found` has the paths of all
    files in it."""
    inside = defaultdict[str, tuple[list[str], set[str]]](lambda: ([], set()))  # the files and folders in each folder
    for path in found:
        place = folder
        *folders, name = path.split("/")
        for each in folders:
            inside[place][1].add(each)
            place += f"/{each}"
        if not any(map(is_hidden, folders)):
            inside[place][0].append(name)
    files = list[tuple[str, int, str, bool]]()
    for place, (here, folders_here) in inside.items():

        def content(name: str, place: str = place) -> bytes:
            _, stream = RemoteFile.look(f"{place}/{name}")
            return b"" if stream is None else stream.read()

        own = own_files(list(folders_here), here, content)
        listed = saved_dataset(place, here, content)
        first = None if listed is None else f"{place}/{min(listed, default='')}"
        for number, name in enumerate(here if listed is None else listed):
            if not is_hidden(name):
                files.append((first or f"{place}/{name}", number, f"{place}/{name}", name in own))
    files.sort()
    return [url for *_, url, is_own in files if not is_own], [url for *_, url, is_own in files if is_own]


def _of_glob(folder: str, found: list[str], pattern: list[str], end: str) -> tuple[list[str], list[str]]:
    """Returns what `_of_folder` does, for the files and folders that a glob matches. `found` is sorted. `end` is "/" if
    the glob matches only folders."""
    folders = {path[:at] for path in found for at, char in enumerate(path) if char == "/"}
    places = {path + end: path in folders for path in (*folders, *([] if end else found))}
    kept, left_out = list[str](), list[str]()
    for place, is_folder in sorted(places.items()):
        if not _matches(place.strip("/").split("/"), pattern):
            continue
        place = place.rstrip("/")
        if not is_folder:
            kept.append(f"{folder}/{place}")
        elif "**" not in pattern:  # otherwise it matches the files in all subfolders already
            inside = found[bisect_left(found, f"{place}/") : bisect_left(found, f"{place}0")]  # 0 follows /
            of_folder, own = _of_folder(f"{folder}/{place}", [path[len(place) + 1 :] for path in inside])
            kept += of_folder
            left_out += own
    return kept, left_out


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or bool(parts and not is_hidden(parts[0]) and _matches(parts[1:], pattern))
    return bool(parts) and _fits(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _fits(name: str, pattern: str) -> bool:
    if not glob.has_magic(pattern):
        return name == pattern
    return fnmatchcase(name, pattern) and (pattern.startswith(".") or not is_hidden(name))
