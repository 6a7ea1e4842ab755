"""Opens token files as one stream of ids, which is never read as a whole. See token_file.py for the kinds of files."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

from .._numpy import numpy
from ..arguments import counted, instance
from ..errors import ArgumentError, FormatError
from ..reading.files import input_files
from ..reading.paths import path_list
from ..support import platform
from ..tokenizer import Tokenizer
from .described import FileFacts, check_tokenizer, file_facts, stated
from .token_file import TokenFile

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_MOST_OPEN = 1 << 14
_SAMPLES, _SAMPLE_TOKENS = 64, 1 << 10  # of a fingerprint
_CHECKED_TOKENS = 1 << 20  # the number of ids that are checked against the vocabulary


class TokenStream:
    """The ids of several files, one after another, as if they were one array.

    A slice of files stays as it is when a file changes later. Do not change the files in place while they are open:
    slicing a file where it was cut off raises an error, and so does slicing a file that was overwritten, after at most
    64 KiB of the new content. Replacing a file by renaming
    another one over it, and appending to a file, are safe: the stream has the old ids. A stream is pickled as its
    paths: another process opens the files again, and raises FormatError if their lengths are no longer the same.

    Args:
        source: a path, a glob pattern (its files sorted, as llm.c reads shards), several of them, or an array
            of integers, shape (tokens,).
        dtype: "uint16" or "uint32", for files without a header; None uses the manifest.json next to the file, or uint16
            if there is none, unless the file looks like uint32, text or an archive. Arrays and other files state their
            dtype, which must be this one.

    Attributes:
        facts: what the manifest next to each file says about it, or None: see file_facts.
        made_by: the first file whose tokenizer a manifest states, and the fingerprint of that tokenizer; or None.

    Raises:
        FileError, FormatError: a file cannot be opened, or is damaged; the error gives the offset.
        ArgumentError: there are no files, a path is a folder (which may hold several splits), or dtypes differ. What
            manifests say excludes a glob pattern that matches files of several splits, files of several tokenizers, and
            another dtype.
    """

    def __init__(self, source: Paths | numpy.ndarray[Any, Any], dtype: str | None = None) -> None:
        if dtype not in (None, "uint16", "uint32"):
            raise ArgumentError(f"dtype must be 'uint16', 'uint32' or None, not {dtype!r}")
        self._arguments: tuple[Any, ...]
        self.made_by: tuple[str, str] | None
        if hasattr(source, "dtype"):
            self._parts: _Array | _Files = _Array(_checked(source, "the array of ids"))
            self._arguments, self.facts, self.made_by = (source, dtype), list[FileFacts | None](), None
        else:
            paths, self.facts = _token_paths(source)
            stated("dtype", dtype, paths, self.facts)
            self.made_by = _made_by(paths, self.facts)
            self._parts = _Files(paths, dtype)
            self._arguments = (paths, dtype)
        self._starts = [0, *accumulate(self._parts.lengths)]
        self.dtype: numpy.dtype[Any] = self._parts.dtype
        if dtype is not None and self.dtype.newbyteorder("=") != dtype:
            what = self.paths[0] if self.paths else "the array of ids"
            raise ArgumentError(f"{what}: holds {self.dtype}, not {dtype}: leave out dtype")

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (*self._arguments, self._parts.lengths)

    @property
    def paths(self) -> list[str]:
        """The files; none if the stream is an array."""
        source = self._arguments[0]
        return source if isinstance(source, list) else []

    @property
    def starts(self) -> list[int]:
        """Where each file starts, and where the last one ends."""
        return self._starts

    def __len__(self) -> int:
        return self._starts[-1]

    def fingerprint(self) -> str:
        """Returns a hash of the number of tokens, the ids at 64 places (the first, the last, and others evenly between
        them; 1024 ids at each), and the SHA-256 of each file that a manifest states. So files that pybpe wrote differ
        if one id does; for others, a change between the places is not noticed."""
        digest = hashlib.sha256(repr((len(self), [facts.sha256 for facts in self.facts if facts])).encode())
        last = max(0, len(self) - _SAMPLE_TOKENS)
        for start in sorted({last * i // (_SAMPLES - 1) for i in range(_SAMPLES)}):
            ids = self.slice(start, min(start + _SAMPLE_TOKENS, len(self)))
            digest.update(ids.astype("<u8").tobytes())
        return digest.hexdigest()

    def check_tokenizer(self, tok: Tokenizer) -> None:
        """Raises ArgumentError if a manifest says that another tokenizer made a file, or if one of the first million
        ids is not in the vocabulary."""
        instance("tokenizer", tok, Tokenizer, "a Tokenizer or None")
        if self.made_by is not None:
            check_tokenizer(*self.made_by, tok)
        ids = self.slice(0, min(len(self), _CHECKED_TOKENS))
        wrong = (ids < 0) | (ids >= tok.vocab_size)
        if wrong.any():
            place = int(wrong.argmax())
            raise ArgumentError(
                f"token {place} has the id {ids[place]}, but the ids of the tokenizer are 0 to {tok.vocab_size - 1}:"
                " another tokenizer wrote this file, or it holds another dtype"
            )

    def __repr__(self) -> str:
        return f"TokenStream({len(self)} {self.dtype} ids in {counted(len(self._parts.lengths), 'file')})"

    def slice(self, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns ids start .. stop, shape (stop - start,), where 0 <= start <= stop <= len(self).

        Raises:
            FormatError: a file was truncated or overwritten since it was opened: see TokenFile.
        """
        first = min(bisect_right(self._starts, start), len(self._parts.lengths)) - 1
        begin = start - self._starts[first]
        if stop <= self._starts[first + 1]:
            return self._parts.read(first, begin, stop - self._starts[first])
        pieces = [self._parts.read(first, begin, self._parts.lengths[first])]
        for i in range(first + 1, len(self._parts.lengths)):
            if self._starts[i] >= stop:
                break
            pieces.append(self._parts.read(i, 0, min(stop, self._starts[i + 1]) - self._starts[i]))
        ids = numpy.concatenate(pieces)
        ids.flags.writeable = False
        return ids


def _reopened(source: Any, dtype: str | None, lengths: list[int]) -> TokenStream:
    """Opens a stream that was pickled."""
    stream = TokenStream(source, dtype)
    for path, before, now in zip(stream.paths, lengths, stream._parts.lengths):
        if before != now:
            raise FormatError(
                f"{path}: had {counted(before, 'token')} when it was first opened, now {now}: open it again", 0
            )
    return stream


class _Array:
    """An array in memory, as a stream's only part."""

    def __init__(self, array: numpy.ndarray[Any, Any]) -> None:
        self._array = array
        self.lengths, self.dtype = [len(array)], array.dtype

    def read(self, i: int, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns some of the ids: a view of the array."""
        return self._array[start:stop]


class _Files:
    """Token files by number. Only the most recently used files stay open. Others are opened again when needed, and must
    be unchanged."""

    def __init__(self, paths: Sequence[str], dtype: str | None) -> None:
        self._paths, self._dtype = paths, dtype
        self._most = _most_open()
        self._open: OrderedDict[int, TokenFile] = OrderedDict()
        self._lock, self._process = Lock(), os.getpid()
        self._seen: list[tuple[int, ...]] = []
        self.lengths: list[int] = []
        for i, path in enumerate(paths):
            file = TokenFile(path, dtype)
            if not i:
                self.dtype = file.dtype
            if file.dtype != self.dtype:
                raise ArgumentError(
                    f"{path} holds {file.dtype}, but {paths[0]} {self.dtype}: files that are read as"
                    " one stream must have one dtype"
                )
            self._seen.append(file.identity)
            self.lengths.append(len(file))
            self._keep(i, file)

    def read(self, i: int, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns ids start .. stop of one file."""
        if self._process != os.getpid():  # this process was forked, perhaps while a thread held the lock
            self._lock, self._process = Lock(), os.getpid()
            self._open = OrderedDict()
        with self._lock:
            file = self._open.get(i)
            if file is None:
                file = self._open_again(i)
            self._keep(i, file)
        return file.read(start, stop)

    def _keep(self, i: int, file: TokenFile) -> None:
        self._open[i] = file
        self._open.move_to_end(i)
        while len(self._open) > self._most:
            self._open.popitem(last=False)

    def _open_again(self, i: int) -> TokenFile:
        file = TokenFile(self._paths[i], self._dtype)
        if file.identity != self._seen[i]:
            raise FormatError(f"{self._paths[i]}: was changed or replaced since it was first opened: open it again", 0)
        return file


def _most_open() -> int:
    """Returns how many files may stay open: a quarter of this process's limit on descriptors."""
    limit = platform.open_files_limit()
    return _MOST_OPEN if limit is None else max(4, min(_MOST_OPEN, limit // 4))


def _token_paths(source: Paths) -> tuple[list[str], list[FileFacts | None]]:
    """Returns the files, and what manifests say about them."""
    paths, patterns = list[str](), list[str]()
    for given in path_list(source):
        if os.path.isdir(given):
            raise ArgumentError(
                f"{given}: a folder, which may hold several splits; name the files, for example"
                f" {os.path.join(given, '*_train_*.bin')!r}"
            )
        paths += input_files(given)
        patterns += [given] * (len(paths) - len(patterns))
    facts = file_facts(paths)
    splits: dict[str, str] = {}
    for pattern, each in zip(patterns, facts):
        if each is not None and splits.setdefault(pattern, each.split) != each.split:
            raise ArgumentError(
                f"{pattern}: matches files of the splits {splits[pattern]} and {each.split}: pass a pattern for one"
                " split, or a list of patterns to join them"
            )
    return paths, facts


def _made_by(paths: Sequence[str], facts: Sequence[FileFacts | None]) -> tuple[str, str] | None:
    """Returns the first file whose tokenizer a manifest states, and its fingerprint. Raises ArgumentError if manifests
    state several tokenizers."""
    made: tuple[str, str] | None = None
    for path, each in zip(paths, facts):
        if each is not None and each.fingerprint is not None:
            made = made or (path, each.fingerprint)
            if made[1] != each.fingerprint:
                raise ArgumentError(f"{made[0]} and {path} have different tokenizers: encode both with one")
    return made


def _checked(array: Any, name: str) -> numpy.ndarray[Any, Any]:
    instance(name, array, numpy.ndarray, "a numpy array")
    if array.ndim != 1 or array.dtype.kind not in "ui":
        raise FormatError(f"{name}: {array.dtype} of shape {array.shape}, expected a one-dimensional array of integers")
    return array  # type: ignore[no-any-return]
