"""No two paths of one call may lead to the same file: an output would replace an input, a tokenizer or another output,
and the text of an input given twice would be there twice.

The command line passes all paths of a command to `check_paths` before the command opens any of them, and the functions
of the package pass theirs. Whatever reads a corpus passes all its files to `check_files_once`.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..arguments import is_url, shown, without_secrets
from ..errors import ArgumentError, file_errors

Paths = Mapping[str, Iterable[str]]  # the caller's name for them -> paths


def check_paths(writes: Paths, reads: Paths | None = None, texts: Paths | None = None) -> None:
    """Raises ArgumentError if an output is also an input, or two outputs are one file: by identity, so that links and
    other spellings do not matter. Standard input and output ("-"), URLs and devices such as /dev/null are not compared.

    The outputs in `writes` may not exist yet. `reads` are tokenizers, models, recipes: a folder stands for itself and
    the files in it. `texts` are corpora: a glob stands for its files, and a folder only for itself, since an output may
    be inside it, which a call leaves out of its corpus."""
    outputs: dict[object, tuple[str, str]] = {}
    for name, path in _each(writes):
        file = file_id(path)
        if file in outputs:
            raise ArgumentError(
                f"{path}: {outputs[file][0]} and {name} would write the same file: choose another output"
            )
        if file is not None:
            outputs[file] = name, path
    if not any(isinstance(file, tuple) for file in outputs):
        return  # none of them exists, so no input is one
    for name, path in (*_each(reads or {}, with_content), *_each(texts or {}, _files_of_glob)):
        if (found := outputs.get(input_id(path))) is not None:
            output, written = found
            raise ArgumentError(f"{written}: {output} would replace {name}, {path}: choose another output")


def check_once(paths: Iterable[str]) -> None:
    """Raises ArgumentError if two files that a call reads are one file."""
    check_files_once((path, path, input_id(path)) for path in paths)


def check_files_once(files: Iterable[tuple[str, str, object]]) -> None:
    """Like `check_once`. A file has its path, the input that leads to it, such as its folder, and its
    `input_id`."""
    seen: dict[object, tuple[str, str]] = {}
    for path, given, file in files:
        if file not in seen:
            seen[file] = path, given
            continue
        other, of_other = seen[file]
        if (path, given) == (other, of_other):
            raise ArgumentError(f"{without_secrets(given)}: given twice: give each input once")
        if given == of_other:
            fault = f"the same file as {other}, in the same input, {without_secrets(given)}: remove one of the two"
            raise ArgumentError(f"{path}: {fault}, or name the files to read")
        one, another = (
            name if name in (way, without_secrets(way)) else f"{name} (in {without_secrets(way)})"
            for name, way in ((path, given), (other, of_other))
        )
        raise ArgumentError(f"{one}: the same file as {another}: give each input once")


def input_id(path: str) -> object:
    """Returns a key that all names of an input share: "-" is the file or pipe that standard input reads."""
    try:
        found = os.fstat(0) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return path
    return found.st_dev, found.st_ino


def _each(paths: Paths, files: Callable[[str], Iterable[str]] = lambda path: (path,)) -> Iterator[tuple[str, str]]:
    for name, some in paths.items():
        for path in some:
            if path != "-" and not is_url(path):
                yield from ((name, file) for file in files(path))


def with_content(folder: str) -> list[str]:
    """Returns a folder and its content, or a file."""
    if not os.path.isdir(folder):
        return [folder]
    with file_errors(folder, "cannot be read"), os.scandir(folder) as entries:
        return [folder, *(entry.path for entry in entries)]


def _files_of_glob(path: str) -> list[str]:
    return [found for found in of_glob(path) if not os.path.isdir(found)] if is_glob(path) else [path]


def is_glob(path: str) -> bool:
    """Returns whether a path is a glob, and not the name of a file."""
    return glob.has_magic(path) and not os.path.exists(path)


def of_glob(pattern: str) -> list[str]:
    """Returns the files and folders that a glob matches. Raises ArgumentError if it names too many folders."""
    try:
        return glob.glob(pattern, recursive=True)
    except RecursionError:
        raise ArgumentError(f"{shown(pattern)}: this glob names too many folders") from None


def file_id(path: str) -> object:
    """Returns a key that all names of a file share, or None for a device or pipe, which no output replaces."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    kept = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return (found.st_dev, found.st_ino) if kept else None
