"""Folders that `Dataset.save_to_disk` of Hugging Face's `datasets` wrote:

    state.json           {"_data_files": [{"filename": "data-00000-of-00002.arrow"}, ...], ...}: the order of the
                         dataset
    dataset_info.json    the features
    data-*.arrow         Arrow streams
    cache-*.arrow        what `datasets` keeps there later: not part of the dataset

`DatasetDict.save_to_disk` makes a folder with dataset_dict.json and such a folder for each split.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from ..errors import ArgumentError, FormatError

_STATE, _INFO, _DICT = "state.json", "dataset_info.json", "dataset_dict.json"


def saved_dataset(place: str, names: Sequence[str], content: Callable[[str], bytes]) -> list[str] | None:
    """Returns the names of the data files in a folder that `datasets` saved, in the order of the dataset; None for any
    other folder.

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
