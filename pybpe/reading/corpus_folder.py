"""Finds the files of a folder that make up a corpus: all except hidden files and files that pybpe wrote there.

The output folder may be inside the input folder, as in `pybpe binarize data -o data/out`. The output must not become
input when the same command runs again, even after a kill. So pybpe leaves these out:

- the outputs of this run, and everything inside them;
- the files that a manifest.json of `pybpe binarize` lists, the manifest, and the tokenizer next to it;
- token files next to the hidden folder of a run that was killed;
- unfinished files, which have temporary names.

It also leaves out tokenizers, token shards and similar files if their content shows what they are (file_types.py).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from ..errors import ArgumentError, FormatError, file_error, file_errors, warn
from ..support.locking import FOLDER
from .paths import first_of

_LOST = "lost+found"  # a folder of the file system that only the superuser can read; it has no text
_MANIFESTS = ("manifest.json", "_manifest.json")
_TOKENIZER_FILES = frozenset(
    ("tokenizer.json", "tokenizer.bin", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    + ("vocab.json", "merges.txt", "chat_template.jinja", "meta.pkl")
)
TOKEN_FILE = re.compile(r"(?:.*_)?(?:train|val|test)(?:_\d+)?\.(?:bin|npy|idx|parquet|tar|mask)")
_STATE, _INFO, _DICT = "state.json", "dataset_info.json", "dataset_dict.json"  # of Hugging Face's datasets
_UNFINISHED = re.compile(r".*\.\d+-\d+\.tmp")


def corpus_of_folder(folder: str, outputs: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Returns the files of a folder and its subfolders, sorted, and those that were left out. Files of a dataset of
    Hugging Face's `datasets` have the order of the dataset. Like grep -r and tar, it
    does not follow links to folders, because they may lead anywhere. It warns if one leads out of the folder.

    Args:
        folder: the path of the folder.
        outputs: the real paths of the files and folders that this run writes.

    Raises:
        FileError: a folder cannot be read.
    """
    kept, left_out = list[str](), list[str]()
    real = os.path.realpath(folder)
    links = list[str]()
    order = dict[str, tuple[str, int]]()  # the place of a file in the order, if its name does not decide it
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        entries = _entries(place)
        folders = {entry.name for entry in entries if _is_folder(entry)}
        plain = {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
        names = [entry.name for entry in entries if entry.name not in folders]
        listed = saved_dataset(place, names, partial(_content, place))
        if listed is not None:
            names = listed
            for number, name in enumerate(listed):
                order[os.path.join(place, name)] = (os.path.join(place, min(listed)), number)
        written = {entry.name for entry in entries if entry.name.endswith(".tmp") and _UNFINISHED.fullmatch(entry.name)}
        if outputs:
            inside = os.path.normpath(os.path.join(real, os.path.relpath(place, folder)))
            written |= {os.path.basename(path) for path in outputs if os.path.dirname(path) == inside}
        for entry in entries:
            if entry.name in folders and not is_hidden(entry.name) and entry.name not in written:
                (links if entry.is_symlink() else waiting).append(os.path.join(place, entry.name))
        own = {*own_files(folders, names, partial(_content, place)), *written}
        before = os.path.join(place, "")
        for name in names:
            if is_hidden(name):
                continue
            if name in own:
                left_out.append(before + name)
            elif name in plain or _is_kept(before + name):
                kept.append(before + name)
    _tell_of_links(sorted(links), real)
    kept.sort(key=(lambda path: order.get(path, (path, 0))) if order else None)
    return kept, sorted(left_out)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Returns what is in a folder. It shows what is a plain file, which takes far less time than looking at each."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        if os.path.basename(folder) == _LOST:
            return []
        raise file_error(error.errno or 0, f"{folder}: cannot be read: {error.strerror}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Returns whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_kept(path: str) -> bool:
    """Returns whether a link or a special file of a folder is part of the corpus: it leads to a file, or nowhere, so
    that opening it raises an error."""
    return os.path.isfile(path) or not os.path.exists(path)


def _tell_of_links(links: Sequence[str], real: str) -> None:
    away = [link for link in links if not f"{os.path.realpath(link)}/".startswith(f"{real}/")]
    if away:
        warn(f"{first_of(away)}: pybpe does not follow this link to a folder: to read it too, pass its own path")


def is_hidden(name: str) -> bool:
    """Returns whether a file or folder is skipped because of its name."""
    return name.startswith(".")


def own_files(folders: Collection[str], names: Sequence[str], content: Callable[[str], bytes]) -> Collection[str]:
    """Returns the names in a folder that belong to files that pybpe wrote.

    Args:
        folders, names: the names of the folders and files in the folder.
        content: returns the content of one of these files.
    """
    own: set[str] = set()
    for manifest in _MANIFESTS:
        if manifest in names:
            own |= set(_listed(manifest, content))
    if FOLDER in folders:
        own |= {name for name in names if TOKEN_FILE.fullmatch(name)}
    if own or "tokenizer_config.json" in names:
        own |= {name for name in names if name in _TOKENIZER_FILES}
    return own


def _content(place: str, name: str) -> bytes:
    path = os.path.join(place, name)
    with file_errors(path, "cannot be read"), open(path, "rb") as stream:
        return stream.read()


def _listed(manifest: str, content: Callable[[str], bytes]) -> Iterator[str]:
    """Yields the files that a manifest lists, and the manifest; nothing if pybpe did not write it."""
    try:
        found = json.loads(content(manifest).decode("utf-8", "surrogateescape"))
        if found["tokenizer"]["fingerprint"] and found["settings"]:
            records = [record for split in found["shards"].values() for record in split] + found["files"]
            yield from [str(record["file"]) for record in records] + [manifest]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return


def saved_dataset(place: str, names: Sequence[str], content: Callable[[str], bytes]) -> list[str] | None:
    """Returns the names of the data files in a folder that `Dataset.save_to_disk` of Hugging Face's `datasets` wrote,
    in the order of the dataset; None for any other folder:

        state.json           {"_data_files": [{"filename": "data-00000-of-00002.arrow"}, ...], ...}: the order
        dataset_info.json    the features
        data-*.arrow         Arrow streams
        cache-*.arrow        what `datasets` keeps there later: not part of the dataset

    `DatasetDict.save_to_disk` makes a folder with dataset_dict.json and such a folder for each split.

    Args:
        place: the folder, for errors.
        names: the names of the files in it.
        content: returns the content of one of these files.

    Raises:
        ArgumentError: the folder has several splits, or the rows are in another order than in the files.
        FormatError: state.json is damaged.
    """
    if _DICT in names:
        return _of_splits(place, names, content)
    if _STATE not in names or _INFO not in names:
        return None
    try:
        state = json.loads(content(_STATE))
        files = [str(entry["filename"]) for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"{place}/{_STATE}: not the state of a Hugging Face dataset, or damaged") from None
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise ArgumentError(
            f"{place}: this dataset selects or reorders rows of its files: save it again after flatten_indices()"
        )
    if any("/" in name or name in ("", ".", "..") for name in files):
        raise FormatError(f"{place}/{_STATE}: the name of a data file is not in this folder")
    if missing := sorted(set(files) - set(names)):
        raise FormatError(f"{place}: {missing[0]}, which {_STATE} lists, is missing")
    return files


def _of_splits(place: str, names: Sequence[str], content: Callable[[str], bytes]) -> list[str] | None:
    try:
        splits = json.loads(content(_DICT))["splits"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(splits, list) or not all(isinstance(split, str) for split in splits):
        return None
    if len(splits) > 1:
        raise ArgumentError(
            f"{place}: this folder has the splits {', '.join(splits)} of a dataset: pass the folder of each that you"
            f" want, such as {place}/{splits[0]}"
        )
    return [name for name in names if name != _DICT]
