"""Token files: finds out how one stores ids, and opens several as one stream of ids, which is never read as a whole.

    llm.c shard     1024 bytes of header (shard.c), then uint16 or uint32
    llmq            1024 bytes of header (formats.py), then int32
    .npy            numpy's header, then an array of one dimension
    anything else   only the ids, as nanoGPT reads them

The first bytes of a file tell which it is. All numbers are little-endian, unless the header of a .npy file says
otherwise.

The ids are read, not memory-mapped. If another program truncates a mapped file, the system kills the process (SIGBUS),
and pages of a map count as memory of the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import numpy
from ..arguments import instance, number_of, param
from ..errors import ArgumentError, FileMissingError, FormatError, file_errors
from ..formats.id_files import LOOK_BYTES, NPY_MAGIC, problem_of_ids, read_npy_header
from ..reading.file_types import LLMQ_MAGIC, llmc_file
from ..reading.files import input_files
from ..reading.inputs import path_list
from ..reading.streams import UnchangedStream, open_unchanged, read_file
from ..support import platform
from ..support.call_paths import check_once
from ..tokenizer import Tokenizer
from .manifest import Manifest, check_size, check_tokenizer, manifest_name
from .output_folder import check_finished

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_MOST_OPEN = 1 << 14
_SAMPLES, _SAMPLE_TOKENS = 64, 1 << 10  # of a fingerprint
_CHECKED_TOKENS = 1 << 20  # the number of ids that are checked against the vocabulary
# Asking for a file's modification time takes longer than reading a window of tokens.
_CHECKED_BYTES = 1 << 16


class TokenFile:
    """The ids of an open token file. Threads may share it, and so may processes that were forked.

    Args:
        path: the file.
        dtype: see TokenStream.
        as_bytes: whether the bytes of the file are the ids, whatever it is.

    Attributes:
        dtype: the dtype of the ids.
        stamp: its size, modification time and inode, which show whether its content is another one.

    Raises:
        FileError, FormatError, ArgumentError: see TokenStream.
    """

    def __init__(self, path: _binding.PathLike, dtype: str | None = None, as_bytes: bool = False) -> None:
        self.path = _binding.path_text(path)
        if os.path.exists(self.path) and not os.path.isfile(self.path) and not os.path.isdir(self.path):
            raise ArgumentError(f"{self.path}: neither a file nor a folder; only a file can be read at any place")
        self._stream = open_unchanged(self.path)
        self._handle, self._unchecked = self._stream.fileno(), 0
        status = self._stream.status
        self.stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
        try:
            layout: tuple[numpy.dtype[Any], int, int] = numpy.dtype("u1"), 0, status.st_size
            self.dtype, self._offset, self._count = layout if as_bytes else _layout(self._stream, self.path, dtype)
        except BaseException:
            self._stream.close()
            raise
        self._item_bytes = self.dtype.itemsize
        # Not __del__: when the interpreter exits, it may run after the modules that it needs are gone.
        weakref.finalize(self, self._stream.close)

    def __len__(self) -> int:
        return self._count

    def read(self, start: int = 0, stop: int | None = None) -> numpy.ndarray[Any, Any]:
        """Returns ids start .. stop, read-only, shape (stop - start,). None means the end.

        Raises:
            FileError: the file cannot be read. FormatError: it was truncated since it was opened, or it was
                overwritten, which is noticed by the time that 64 KiB more have been read.
        """
        size = self._item_bytes
        begin, end = self._offset + start * size, self._offset + (self._count if stop is None else stop) * size
        try:
            data = platform.read_at(self._handle, end - begin, begin)
        except OSError:
            with file_errors(self.path, "cannot be read"):
                raise
        self._unchecked += end - begin
        if len(data) < end - begin or self._unchecked > _CHECKED_BYTES:
            self._check(len(data) < end - begin)
        return numpy.frombuffer(data, self.dtype)

    def _check(self, is_shorter: bool) -> None:
        """Raises FormatError if the file was truncated or overwritten. Bytes may have been appended."""
        self._unchecked = 0
        with file_errors(self.path, "cannot be read"):
            now = os.fstat(self._handle)
        size, modified, _ = self.stamp
        what = "written to"
        if is_shorter or now.st_size < size:
            what = f"truncated from {size} to {now.st_size} bytes"
        elif now.st_size > size or now.st_mtime_ns == modified:
            return
        raise FormatError(
            f"{self.path}: was {what} while it was open; open it again, and replace token files by renaming, not in"
            " place",
            now.st_size,
        )

    def blocks(self, most: int) -> Iterator[numpy.ndarray[Any, Any]]:
        """Yields all ids in blocks of at most `most`. Raises what `read` raises; at the end at the latest."""
        for at in range(0, self._count, most):
            yield self.read(at, min(at + most, self._count))
        self._check(False)


def _layout(stream: UnchangedStream, path: str, dtype: str | None) -> tuple[numpy.dtype[Any], int, int]:
    """Returns the dtype of the ids in a file, the byte where they begin, and their number."""
    start, size = stream.read(LOOK_BYTES), stream.status.st_size
    if start.startswith(NPY_MAGIC) or path.endswith(".npy"):
        header = read_npy_header(stream, path)
        if len(header.shape) != 1 or header.dtype.kind not in "ui":
            what = f"{header.dtype} of shape {header.shape}"
            rows = (
                f"; for rows that are read as a stream, pack with {param(format='llmc')}"
                if len(header.shape) == 2
                else ""
            )
            raise FormatError(f"{path}: {what}, expected a one-dimensional array of integers{rows}")
        return header.dtype, header.offset, header.shape[0]
    if start.startswith(LLMQ_MAGIC):
        return numpy.dtype("<u4"), 1024, _llmq_count(start, size, path)
    known = llmc_file(start)
    if known == "a token shard":
        shard = _binding.Shard(path)  # checks the header against the size
        stream.check_name()  # both are the same file
        return numpy.dtype(f"<u{shard.id_bytes}"), _binding.SHARD_HEADER_BYTES, len(shard)
    if known is not None:  # a pattern such as data/*.bin matches it too, and it would pass for headerless ids
        raise FormatError(f"{path}: {known} of llm.c, not tokens: name only token files", 0)
    if dtype is None and (facts := file_facts([path])[0]) is not None:
        dtype = facts.dtype
    if dtype is None and (problem := problem_of_ids(start)) is not None:
        raise FormatError(
            f"{path}: {problem}: pass {param(dtype='uint32')} or 'uint16' if it holds ids and nothing else", 0
        )
    id_bytes = 4 if dtype == "uint32" else 2
    if size % id_bytes:
        raise FormatError(
            f"{path}: {size} bytes is not a whole number of uint{8 * id_bytes}", size // id_bytes * id_bytes
        )
    return numpy.dtype(f"<u{id_bytes}"), 0, size // id_bytes


def _llmq_count(start: bytes, size: int, path: str) -> int:
    """Returns the number of ids in a token file for llmq, after a check of its header."""
    version, id_bytes, count, _, masked = struct.unpack_from("<5i", start, len(LLMQ_MAGIC))
    if version != 2 or id_bytes != 4:
        raise FormatError(f"{path}: has version {version} and {id_bytes} bytes per id, expected version 2 and 4", 8)
    if masked:
        raise FormatError(f"{path}: has a loss mask, which pybpe does not read", 24)
    if size != 1024 + 4 * count:
        raise FormatError(f"{path}: has {size} bytes, but its header says {count} ids, {1024 + 4 * count} bytes", 16)
    return int(count)


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
        dtype: "uint16" or "uint32", for files without a header. None uses the manifest.json next to the file, or uint16
            if there is none, unless the file looks like uint32, text or an archive. Arrays and other files state their
            dtype, which must be this one.

    Attributes:
        facts: the manifest's facts about every file, or None: see file_facts.
        made_by: the first file whose tokenizer a manifest states, and the fingerprint of that tokenizer, or None.

    Raises:
        FileError, FormatError: a file cannot be opened, or is damaged. The error gives the offset.
        ArgumentError: there are no files, a path is a folder (which may hold several splits), a file is given twice, or
            dtypes differ. Manifests exclude files that they do not list next to them, files of other sizes, a glob
            pattern that matches files of several splits, files of several tokenizers, and another dtype.
    """

    def __init__(self, source: Paths | numpy.ndarray[Any, Any], dtype: str | None = None) -> None:
        if dtype not in (None, "uint16", "uint32"):
            raise ArgumentError(f"{param('dtype')} must be 'uint16', 'uint32' or None, not {dtype!r}")
        self._arguments: tuple[Any, ...]
        self.made_by: tuple[str, str] | None
        self.dtype: numpy.dtype[Any]
        self._read: _Read
        if hasattr(source, "dtype") and not isinstance(source, str):  # a numpy.str_ is a path
            ids = _checked(source, "the array of ids")
            self._read, self._lengths, self.dtype = lambda i, start, stop: ids[start:stop], [len(ids)], ids.dtype
            self._arguments, self.facts, self.made_by = (source, dtype), list[FileFacts | None](), None
        else:
            paths, self.facts = _token_paths(source)
            stated("dtype", dtype, paths, self.facts)
            self.made_by = _made_by(paths, self.facts)
            self._read, self._lengths, self.dtype = _open_files(paths, dtype)
            self._arguments = (paths, dtype)
        self._starts = [0, *accumulate(self._lengths)]
        if dtype is not None and self.dtype.newbyteorder("=") != dtype:
            what = self.paths[0] if self.paths else "the array of ids"
            raise ArgumentError(f"{what}: holds {self.dtype}, not {dtype}: leave out dtype")

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (*self._arguments, self._lengths)

    @property
    def paths(self) -> list[str]:
        """The files, or none if the stream is an array."""
        source = self._arguments[0]
        return source if isinstance(source, list) else []

    @property
    def starts(self) -> list[int]:
        """Where files start, and where the last one ends."""
        return self._starts

    def __len__(self) -> int:
        return self._starts[-1]

    def fingerprint(self) -> str:
        """Returns a hash of the number of tokens, the ids at 64 places (the first, the last, and others evenly between
        them; 1024 ids at every place), and the SHA-256 of the files that a manifest states. So files that pybpe wrote
        differ if one id does. For others, a change between the places is not noticed."""
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
        return f"TokenStream({len(self)} {self.dtype} ids in {number_of(len(self._lengths), 'file')})"

    def slice(self, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns ids start .. stop, shape (stop - start,), where 0 <= start <= stop <= len(self).

        Raises:
            FormatError: a file was truncated or overwritten since it was opened: see TokenFile.
        """
        first = min(bisect_right(self._starts, start), len(self._lengths)) - 1
        begin = start - self._starts[first]
        if stop <= self._starts[first + 1]:
            return self._read(first, begin, stop - self._starts[first])
        pieces = [self._read(first, begin, self._lengths[first])]
        for i in range(first + 1, len(self._lengths)):
            if self._starts[i] >= stop:
                break
            pieces.append(self._read(i, 0, min(stop, self._starts[i + 1]) - self._starts[i]))
        ids = numpy.concatenate(pieces)
        ids.flags.writeable = False
        return ids


class MarksFirst:
    """The tokens of a stream with a mark after every document, as if it came before the document.

    Args:
        stream: the tokens. The last one is a mark.
        mark: the id of the mark.
    """

    def __init__(self, stream: TokenStream, mark: int) -> None:
        self._stream = stream
        self._mark = numpy.array([mark], dtype=stream.dtype)

    def __len__(self) -> int:
        return len(self._stream)

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The dtype of the ids."""
        return self._stream.dtype

    def slice(self, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """See TokenStream."""
        rest = self._stream.slice(max(0, start - 1), max(0, stop - 1))
        return rest if start else numpy.append(self._mark[:stop], rest)


def with_marks_first(stream: TokenStream, mark: int, eot: object) -> TokenStream | MarksFirst:
    """Returns tokens with the documents' marks before them. `eot` is where it is: "prepend" or "append"."""
    return MarksFirst(stream, mark) if eot == "append" else stream


def _reopened(source: Any, dtype: str | None, lengths: list[int]) -> TokenStream:
    """Opens a stream that was pickled."""
    stream = TokenStream(source, dtype)
    for path, before, now in zip(stream.paths, lengths, stream._lengths):
        if before != now:
            raise FormatError(
                f"{path}: had {number_of(before, 'token')} when it was first opened, now {now}: open it again", 0
            )
    return stream


_Read = Callable[[int, int, int], "numpy.ndarray[Any, Any]"]
"""read(i, start, stop) returns ids start .. stop of file i."""


def _open_files(paths: Sequence[str], dtype: str | None) -> tuple[_Read, list[int], numpy.dtype[Any]]:
    """Returns what reads files, their lengths and their dtype. Only the most recently used files stay open. Others are
    opened again when needed, and must be unchanged."""
    stamps, lengths, limit = list[tuple[int, ...]](), list[int](), platform.open_files_limit()

    # A quarter of this process's limit on descriptors.
    @lru_cache(_MOST_OPEN if limit is None else max(4, min(_MOST_OPEN, limit // 4)))
    def opened(i: int) -> TokenFile:
        file = TokenFile(paths[i], dtype)
        if i < len(stamps) and file.stamp != stamps[i]:
            raise FormatError(f"{paths[i]}: was changed or replaced since it was first opened: open it again", 0)
        return file

    found = opened(0).dtype
    for i, path in enumerate(paths):
        file = opened(i)
        if file.dtype != found:
            raise ArgumentError(
                f"{path} holds {file.dtype}, but {paths[0]} {found}: files that are read as"
                " one stream must have one dtype"
            )
        stamps.append(file.stamp)
        lengths.append(len(file))
    return lambda i, start, stop: opened(i).read(start, stop), lengths, found


def _token_paths(source: Paths) -> tuple[list[str], list[FileFacts | None]]:
    """Returns the files, and what manifests say about them. Files come once, and as their manifests have them: tokens
    of another run, or the same ones twice, look like any others."""
    paths, patterns = list[str](), list[str]()
    for given in path_list(source):
        if os.path.isdir(given):
            raise ArgumentError(
                f"{given}: a folder, which may hold several splits; name the files, for example"
                f" {os.path.join(given, '*_train_*.bin')!r}"
            )
        paths += input_files(given)
        patterns += [given] * (len(paths) - len(patterns))
    check_once(paths)
    facts = file_facts(paths, are_listed=True)
    for path, each in zip(paths, facts):
        if each is not None:
            check_size(path, each.bytes)
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


# ----------------------------------------------------------------------------------------------------
# The entry of a manifest about one file


class FileFacts(NamedTuple):
    """The entry of a manifest about one token file."""

    split: str  # the split that it belongs to
    place: int  # which of the split's files it is, from 0
    bytes: int  # its size
    sha256: str  # the SHA-256 of the file
    dtype: str | None  # the dtype of its ids
    row_tokens: int | None  # the tokens per row if it has packed rows, otherwise None
    fingerprint: str | None  # of the tokenizer that made its tokens
    eot_id: int | None  # the id of its <|endoftext|>
    eot: str | None  # where these marks are: "append", "prepend" or "none"


def file_facts(paths: Iterable[str], are_listed: bool = False) -> list[FileFacts | None]:
    """Returns the entry of the manifest next to every file, or None if there is no valid one, or it does not name the
    file. For a link, the manifest may also be next to the file that it leads to, as in a workspace.

    Raises:
        ArgumentError: with `are_listed`, a file whose folder has a manifest, which does not name it, or no manifest,
        because the run that writes to it has not finished.
    """

    @cache
    def of_folder(folder: str) -> dict[str, FileFacts]:
        found = _facts_of_folder(folder)
        if are_listed and not found:
            check_finished(folder)
        return found

    def facts_of(path: str) -> FileFacts | None:
        places = [path, os.path.realpath(path)] if os.path.islink(path) else [path]
        listed = [of_folder(os.path.dirname(place) or ".") for place in places]
        found = (facts.get(os.path.basename(place)) for place, facts in zip(places, listed))
        facts = next(filter(None, found), None)
        if facts is None and are_listed and any(listed):
            raise ArgumentError(
                f"{path}: is not among the token files that the manifest of its folder lists: name those, or keep it"
                " in another folder"
            )
        return facts

    return list(map(facts_of, paths))


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


def _facts_of_folder(folder: str) -> dict[str, FileFacts]:
    try:
        manifest = Manifest.load(folder)
    except FileMissingError:
        return {}
    except FormatError:
        if _is_of_others(os.path.join(folder, manifest_name(folder))):
            return {}
        raise
    settings, tokenizer = manifest.settings, manifest.tokenizer
    common: tuple[Any, ...] = (
        _if_is(str, settings.get("dtype")),
        manifest.packing["sequence_length"] if manifest.packing is not None else None,
        _if_is(str, tokenizer.get("fingerprint")),
        _if_is(int, tokenizer.get("eot")),
        _if_is(str, settings.get("eot")),
    )
    shards = ((split, *each) for split, found in manifest.shards.items() for each in enumerate(found))
    return {shard.file: FileFacts(split, i, shard.bytes, shard.sha256, *common) for split, i, shard in shards}


def _is_of_others(path: str) -> bool:
    """Returns whether a file that is not a manifest of token files is another program's, not a damaged or newer one."""
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError):
        return False
    return not isinstance(content, dict) or "shards" not in content


def _if_is(kind: type, value: object) -> Any:
    return value if isinstance(value, kind) else None
