"""Documents that callers pass as Python objects, not as paths: the items of an iterable or of a column of a data frame,
records (dict), and datasets of Hugging Face's `datasets`.

A str or a path that a caller passes alone, or in a list or tuple, names a file. A str that any other object gives, such
as a generator, is a text. Strings and records are documents like the records of JSON lines: special tokens in them are
ordinary text, and one that is missing (None, or NaN as in pandas) is a record that is not valid.

Such an object may give its documents only once, and no worker can have it. So `stage` in files.py copies them to JSON
lines first. A dataset that is whole Arrow files of this machine is read from these.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from numbers import Real
from typing import Any

from ..arguments import instance, param, shown
from ..errors import ArgumentError, FormatError
from .inputs import Inputs, ReadOptions, path_list
from .records import field_path, record_line, tell_nulls

OBJECT = "<documents>"  # instead of the name of a file, in manifests and errors
_BATCH = 1000  # rows of a dataset that are decoded at once
_LINES = 1 << 20  # bytes of JSON lines that are yielded at once


def given_inputs(inputs: Inputs) -> list[str] | Iterable[Any]:
    """Returns the paths that `inputs` name, or an object that gives documents. Raises ArgumentError for anything
    else."""
    if isinstance(inputs, (str, bytes, os.PathLike)):
        return path_list(inputs)
    if isinstance(inputs, (list, tuple)) and not (inputs and all(isinstance(each, Mapping) for each in inputs)):
        return path_list(inputs)
    check_object(inputs)
    if _is_dataset(inputs):
        return _arrow_files(inputs) or inputs
    first, items = _first(inputs)
    if isinstance(first, os.PathLike):
        return path_list(items)
    _check_first(first)
    return items


def _first(inputs: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """Returns the first item of an object, or None, and all items."""
    items = iter(inputs)
    some = list(islice(items, 1))
    return (some[0] if some else None), chain(some, items)


def records_first(inputs: Iterable[Any]) -> tuple[bool, Iterable[Any]]:
    """Returns whether an object gives records, judging by the first one, and an object that gives the same."""
    if _is_dataset(inputs):
        return True, inputs
    first, items = _first(inputs)
    return isinstance(first, Mapping), items


def check_object(inputs: object, name: str = "inputs") -> None:
    """Raises ArgumentError for an object that gives no documents, or whose items are probably something else."""
    kind = type(inputs).__name__
    if isinstance(inputs, Mapping):
        keys = ", ".join(map(repr, list(inputs)[:8]))
        raise ArgumentError(
            f"{name} is a {kind} with the keys {keys or '(none)'}: pass one of its values, or a list of paths"
        )
    if isinstance(inputs, (set, frozenset)):
        raise ArgumentError(f"{name} is a {kind}: pass paths in a list, or texts as iter(...)")
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError(f"{name} is one {kind} object: pass a path, or texts as iter([...])")
    if hasattr(inputs, "columns"):
        raise ArgumentError(f"{name} is a {kind}: pass the column that has the texts, such as {name}['text']")
    instance(name, inputs, Iterable, "a path, paths or an iterable of texts")


def texts_of(inputs: Iterable[Any], name: str = "inputs") -> Iterator[Any]:
    """Returns the documents of an object, which may also hold lists of them, like the batches that Hugging Face's
    trainers take. Raises ArgumentError as `check_object`, and if they are names of files."""
    check_object(inputs, name)
    return _flat(inputs, name)


def _flat(inputs: Iterable[Any], name: str) -> Iterator[Any]:
    items = chain.from_iterable(each if isinstance(each, (list, tuple)) else (each,) for each in inputs)
    for number, item in enumerate(items):
        if number == 0:
            _check_first(item, name)
        yield item.as_py() if hasattr(item, "as_py") else item  # of pyarrow


def _check_first(item: object, name: str = "inputs") -> None:
    if isinstance(item, str) and os.path.isfile(item):
        told = "which is a file: pass paths in a list (if it is a text, pass it as bytes)"
        raise ArgumentError(f"{name} gives {shown(item)}, {told}")


def lines_of(inputs: Iterable[Any], read: ReadOptions, columns: Collection[str] | None = ()) -> Iterator[bytes]:
    """Yields the documents of an object as JSON lines, many at a time.

    Args:
        read: how records are read. Unless bad ones are skipped, they are refused here.
        columns: the fields of records that are wanted besides the text, None for all.

    Raises:
        ArgumentError: an item is no document, or there are none. FormatError: a document is not valid.
    """
    key, number, lines, size, nulls = read.text_key, -1, list[bytes](), 0, 0
    for number, item in enumerate(_rows(inputs, key, columns) if _is_dataset(inputs) else texts_of(inputs)):
        place, is_record = f"inputs: item {number}", isinstance(item, Mapping)
        path = field_path(item, key) if is_record else (key,)
        if path is not None:
            wanted = item if columns is None or not is_record else {*item} & {path[0], *columns}
            fields = {name: item[name] for name in item if name in wanted} if is_record else {}
            *outer, last = path
            inner = fields
            for name in outer:
                inner[name] = inner = dict(inner[name])
            inner[last] = text = _text(inner[last] if is_record else item, place)
            if not isinstance(text, (str, type(None))) and not is_record:
                raise ArgumentError(f"{place} is a {type(item).__name__}, expected a str: {shown(item)}")
            if not isinstance(text, str) and not read.skips:
                raise FormatError(f"{place}: its text is {shown(text)}, expected a str")
        else:
            if not read.skips:
                keys = ", ".join(map(repr, list(item)[:8])) or "none"
                raise FormatError(
                    f"{place}: has no {key!r}: its keys are {keys}: pass the key of the text in {param('text_key')}"
                )
            fields = dict.fromkeys(item)
        line, count = record_line(place, fields)
        lines.append(line)
        size, nulls = size + len(line), nulls + count
        if size >= _LINES:
            yield b"".join(lines)
            lines, size = [], 0
    if number < 0:
        told = "" if _is_dataset(inputs) else ": an iterator that was read before has none left"
        raise ArgumentError(f"inputs has no documents{told}")
    yield b"".join(lines)
    tell_nulls("inputs", nulls)


def _text(value: Any, place: str) -> Any:
    """Returns a text as a str, or None if it is missing; anything else as it is."""
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, Real) and value != value):
        return None
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{place}: not UTF-8 at its byte {error.start}: pass it as a str") from None


# ----------------------------------------------------------------------------------------------------
# Hugging Face's datasets


def _is_dataset(inputs: object) -> bool:
    """Returns whether an object is a Dataset or an IterableDataset of Hugging Face's `datasets`."""
    return hasattr(inputs, "column_names") and callable(getattr(inputs, "iter", None))


def _is_transformed(dataset: Any) -> bool:
    """Returns whether a function of the user makes the rows."""
    return (getattr(dataset, "format", None) or {}).get("type") == "custom"


def _arrow_files(dataset: Any) -> list[str]:
    """Returns the Arrow files of this machine that hold exactly a dataset, in order. Returns none for anything else:
    some rows of a file, rows in another order, columns with other names."""
    table, files = getattr(dataset, "data", None), list[str]()
    if getattr(dataset, "_indices", table) is not None or _is_transformed(dataset):
        return []
    for blocks in getattr(table, "blocks", [[table]]):
        for block in blocks:  # of columns. `replays` are the changes since it was a file; one kind keeps the rows
            path, replays = getattr(block, "path", ""), getattr(block, "replays", [None])
            changed = any(not replay or replay[0] != "replace_schema_metadata" for replay in replays)
            if len(blocks) > 1 or changed or not os.path.isfile(path):
                return []
            files.append(path)
    return files if len(set(files)) == len(files) else []


def _rows(dataset: Any, key: str, columns: Collection[str] | None) -> Iterator[dict[str, Any]]:
    """Yields the rows of a dataset, with the columns that are wanted if their names are known."""
    if not _is_transformed(dataset):
        dataset, names = dataset.with_format(None), dataset.column_names
        if names is not None and columns is not None and key in names:  # others may be pictures
            dataset = dataset.select_columns([name for name in names if name in (key, *columns)])
    for batch in dataset.iter(_BATCH):
        for values in zip(*batch.values()):
            yield dict(zip(batch, values))
