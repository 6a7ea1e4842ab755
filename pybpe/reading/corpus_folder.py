"""Finds the files of a folder that make up a corpus: all except hidden files, backups, unfinished downloads, and files
that pybpe wrote there.

The output folder may be inside the input folder, as in `pybpe binarize data -o data/out`. The output must not become
input when the same command runs again, even after a kill. So pybpe leaves these out:

- the outputs of this run, and everything inside them;
- the files that a manifest.json of `pybpe binarize` lists, the manifest, and the tokenizer next to it;
- token files next to the hidden folder of a run that was killed;
- unfinished files, which have temporary names.

It also leaves out tokenizers, token shards and similar files if their content shows their kind (file_types.py).

A folder with files of records, as a hub of datasets has it, is read without the files next to them: see `of_records`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..errors import ArgumentError, FormatError, file_error, file_errors, warn
from ..support.output_files import CLEANED, FOLDER, PARTS, receipt_name
from .inputs import first_of

_LOST = "lost+found"  # a folder of the file system that only the superuser can read. It has no text
_MANIFESTS = ("manifest.json", "_manifest.json")
_TOKENIZER_FILES = frozenset(
    ("tokenizer.json", "tokenizer.bin", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    + ("vocab.json", "merges.txt", "chat_template.jinja", "meta.pkl")
)
TOKEN_FILE = re.compile(
    r"(?:.*_)?(?:train|val|test)(?:_\d+)?\.(?:bin|npy|idx|parquet|tar|mask|document_offsets\.npy|provenance)"
)
_STATE, _INFO, _DICT = "state.json", "dataset_info.json", "dataset_dict.json"  # of Hugging Face's datasets
_UNFINISHED = re.compile(r".*\.\d+-\d+\.tmp")
_OF_DESKTOPS = ("thumbs.db", "desktop.ini")  # which Windows writes into folders that somebody looks at
_SPARE = ("~", ".bak", ".part", ".partial", ".crdownload")  # how editors and browsers name copies and downloads


class Place(NamedTuple):
    """A folder, here or at a URL.

    Attributes:
        prefix: its path, with a separator at the end.
        folders, names: the names of the folders and of the other files in it.
        content: returns the content of the file with a path.
        written: which of these names are outputs of this run, or unfinished.
    """

    prefix: str
    folders: set[str]
    names: list[str]
    content: Callable[[str], bytes]
    written: Collection[str] = ()


class Found(NamedTuple):
    """The files in some folders.

    Attributes:
        kept: the files of the corpus.
        own: files that were left out because pybpe wrote them.
        spare: backups and unfinished downloads, which were left out, too.
        cleaned: the files of `kept` that `corpus.clean` wrote.
    """

    kept: list[str]
    own: list[str]
    spare: list[str]
    cleaned: list[str]

    @classmethod
    def none(cls) -> Found:
        """Returns an object that takes more files."""
        return cls([], [], [], [])

    def add(self, other: Found) -> None:
        """Adds files that were found elsewhere."""
        for mine, more in zip(self, other):
            mine += more


def corpus_of(places: Iterable[Place]) -> Found:
    """Returns the files in some folders, sorted. Files of a dataset of Hugging Face's `datasets` have the order of the
    dataset. Hidden files are not among them."""
    found = Found.none()
    kept = found.kept
    order = dict[str, tuple[str, int]]()  # the place of a file in the order, if its name does not decide it
    for place in places:
        prefix, listed = place.prefix, _saved_dataset(place)
        for number, name in enumerate(listed or ()):
            order[prefix + name] = (prefix + min(listed or ()), number)
        own = _own_files(place)
        hidden = set(filter(is_hidden, place.names))
        for name in place.names if listed is None else listed:
            if name in hidden:
                continue
            to = found.own if name in own else found.spare if name.lower().endswith(_SPARE) else kept
            to.append(prefix + name)
            if hidden and to is kept and not hidden.isdisjoint((receipt_name(name), CLEANED)):
                found.cleaned.append(prefix + name)
    kept.sort(key=(lambda path: order.get(path, (path, 0))) if order else None)
    return Found(kept, *map(sorted, found[1:]))


def places_of(folder: str, found: Sequence[str], content: Callable[[str], bytes]) -> list[Place]:
    """Returns a folder that is not on this machine's disk, and the folders in it.

    Args:
        folder: its URL, or the path of an archive.
        found: the paths of all files in it.
        content: as in Place.
    """
    places = dict[str, Place]()
    for path in found:
        *folders, name = path.split("/")
        prefix = f"{folder}/"
        for each in folders:
            places.setdefault(prefix, Place(prefix, set(), [], content)).folders.add(each)
            prefix += f"{each}/"
        places.setdefault(prefix, Place(prefix, set(), [], content)).names.append(name)
    return [place for prefix, place in places.items() if "/." not in prefix[len(folder) :]]


def corpus_of_folder(folder: str, outputs: Collection[str] = ()) -> Found:
    """Like `corpus_of`, for a folder of this machine and its subfolders. Like grep -r and tar, it does not
    follow links to folders, because they may lead anywhere. It warns if one leads out of the folder, and of pipes
    and devices, which it leaves out.

    Args:
        folder: the path of the folder.
        outputs: the real paths of the files and folders that this run writes.

    Raises:
        FileError: a folder cannot be read.
    """
    return corpus_of(_places(folder, outputs))


def _places(folder: str, outputs: Collection[str]) -> Iterator[Place]:
    links, pipes, waiting, real = list[str](), list[str](), [folder], os.path.realpath(folder)
    while waiting:
        path = waiting.pop()
        inside = os.path.normpath(os.path.join(real, os.path.relpath(path, folder)))
        written = {os.path.basename(output) for output in outputs if os.path.dirname(output) == inside}
        place = Place(os.path.join(path, ""), set(), [], _content, written)
        for entry in _entries(path):
            name = entry.name
            if name.endswith(".tmp") and _UNFINISHED.fullmatch(name):
                written.add(name)
            if entry.is_file(follow_symlinks=False):  # the entry shows it: no need to look at the file
                place.names.append(name)
            elif os.path.isdir(entry.path):
                place.folders.add(name)
                if not is_hidden(name) and name not in written:
                    (links if entry.is_symlink() else waiting).append(entry.path)
            elif os.path.isfile(entry.path) or not os.path.exists(entry.path):  # a link to nothing: opening it raises
                place.names.append(name)
            elif not is_hidden(name) and name not in written:
                pipes.append(entry.path)
        if FOLDER in place.folders and os.path.isdir(os.path.join(path, FOLDER, PARTS)):
            raise ArgumentError(f"{path}: the `pybpe corpus` that writes to this folder has not ended: run it again")
        yield place
    away = [link for link in sorted(links) if not f"{os.path.realpath(link)}/".startswith(f"{real}/")]
    if away:
        warn(f"{first_of(away)}: pybpe does not follow this link to a folder: to read it too, pass its own path")
    if pipes:
        warn(f"{first_of(sorted(pipes))}: left out: a pipe or device. To read it too, pass its own path")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        if os.path.basename(folder) == _LOST:
            return []
        raise file_error(error.errno or 0, f"{folder}: cannot be read: {error.strerror}") from None


def is_hidden(name: str) -> bool:
    """Returns whether a file or folder is skipped because of its name."""
    return name.startswith(".") or is_of_desktop(name)


def is_of_desktop(name: str) -> bool:
    """Returns whether a desktop wrote a file, which has no text of the user."""
    return name.lower() in _OF_DESKTOPS


def _own_files(place: Place) -> Collection[str]:
    """Returns the names of the files in a folder that pybpe wrote."""
    own = set(place.written)
    for manifest in _MANIFESTS:
        if manifest in place.names:
            own.update(_listed(place, manifest))
    if FOLDER in place.folders:
        own.update(filter(TOKEN_FILE.fullmatch, place.names))
    if own - set(place.written) or "tokenizer_config.json" in place.names:
        own |= _TOKENIZER_FILES
    return own


def _content(path: str) -> bytes:
    with file_errors(path, "cannot be read"), open(path, "rb") as stream:
        return stream.read()


def _listed(place: Place, manifest: str) -> Iterator[str]:
    """Yields the manifest and the files that it lists, or nothing if pybpe did not write it."""
    try:
        found = json.loads(place.content(place.prefix + manifest).decode("utf-8", "surrogateescape"))
        if found["tokenizer"]["fingerprint"] and found["settings"]:
            records = [record for split in found["shards"].values() for record in split] + found["files"]
            yield from [str(record["file"]) for record in records] + [manifest]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return


def _saved_dataset(place: Place) -> list[str] | None:
    """Returns the names of the data files in a folder that `Dataset.save_to_disk` of Hugging Face's `datasets` wrote,
    in the order of the dataset, or None for any other folder:

        state.json           {"_data_files": [{"filename": "data-00000-of-00002.arrow"}, ...], ...}: the order
        dataset_info.json    the features
        data-*.arrow         Arrow streams
        cache-*.arrow        files that `datasets` keeps there later: not part of the dataset

    `DatasetDict.save_to_disk` makes a folder with dataset_dict.json and one such folder per split.

    Raises:
        ArgumentError: the folder has several splits, or the rows are in another order than in the files.
        FormatError: state.json is damaged.
    """
    prefix, names = place.prefix, place.names
    if _DICT in names:
        return _of_splits(place)
    if _STATE not in names or _INFO not in names:
        return None
    try:
        state = json.loads(place.content(prefix + _STATE))
        files = [str(entry["filename"]) for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"{prefix}{_STATE}: not the state of a Hugging Face dataset, or damaged") from None
    if state.get("_indices_data_files") or state.get("_indices_files"):
        problem = "this dataset selects or reorders rows of its files: save it again after flatten_indices()"
        raise ArgumentError(f"{prefix}: {problem}")
    if any("/" in name or name in ("", ".", "..") for name in files):
        raise FormatError(f"{prefix}{_STATE}: the name of a data file is not in this folder")
    if missing := sorted(set(files) - set(names)):
        raise FormatError(f"{prefix}{missing[0]}: this file, which {_STATE} lists, is missing")
    return files


def _of_splits(place: Place) -> list[str] | None:
    try:
        splits = json.loads(place.content(place.prefix + _DICT))["splits"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(splits, list) or not all(isinstance(split, str) for split in splits):
        return None
    if len(splits) > 1:
        raise ArgumentError(
            f"{place.prefix}: this folder has the splits {', '.join(splits)} of a dataset: pass the folder of each that"
            f" you want, such as {place.prefix}{splits[0]}"
        )
    return [name for name in place.names if name != _DICT]
