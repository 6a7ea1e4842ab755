"""The files of a corpus, and how paths, folders, globs and URLs name them: plain text or JSON lines, compressed or not.

Small files are columns of names, sizes and times, because a corpus may have millions, and an object per file would take
longer than its text. Inputs that can be read only once (standard input, pipes, what some web servers send, and Python
objects) are copied to files that can be read again.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, BinaryIO, NamedTuple

from .. import _binding
from .._lazy import hashlib
from ..arguments import is_url, param, refuse_unused, without_secrets
from ..errors import ArgumentError, Error, FormatError, file_errors, note, warn
from ..support.call_paths import check_files_once, check_paths, input_id, is_glob, of_glob
from ..support.output_files import FOLDER, STAGED, make_folder, remove_file, write_all
from ..support.parallel import map_ordered
from ..support.progress import Progress
from .charset import are_utf8, check_encoding, is_crlf, may_be_utf8, seems_utf8
from .corpus_folder import Found, corpus_of_folder, is_of_desktop
from .cuts import PIECE_BYTES
from .documents import CLUSTER
from .file_types import NoText, is_json_name, plain_starts, says_records
from .input_file import (
    InputFile,
    check_text,
    form_of_name,
    needs_text,
    refusal,
    says_nothing,
    tell_of_crlf,
    tell_of_encodings,
    tell_of_records,
)
from .inputs import STDIN, Inputs, ReadOptions, first_of, path_list
from .objects import OBJECT, lines_of
from .streams import JSON_HEAD_BYTES, packing_of_name, without_ending

SMALL_BYTES = 1 << 16  # of a small file: reading a smaller one costs little more than opening it
_AT_ONCE = 256  # files that C reads in one call
_ROOM = 1 << 21  # bytes of them
_GROUP_BYTES = 1 << 20  # of small files that are encoded together


class SmallFiles:
    """Small files of plain text on this machine, as they were when the run began (see InputFile). Iteration yields an
    InputFile for each.

    Attributes:
        paths, sizes, modified: of every file: its path, its size (type Q), and its modification time in ns (type q).
        are_crlf: for every file, 1 if its lines end with \\r\\n, which is read as \\n, otherwise 0.
        folder: as in InputFile.
        size: the sum of the sizes.
    """

    def __init__(
        self, paths: list[str], sizes: array[int], modified: array[int], are_crlf: bytes, folder: str = ""
    ) -> None:
        self.paths, self.sizes, self.modified, self.are_crlf, self.folder = paths, sizes, modified, are_crlf, folder
        self.size = sum(sizes)

    def __iter__(self) -> Iterator[InputFile]:
        for path, size, mtime_ns, crlf in zip(self.paths, self.sizes, self.modified, self.are_crlf):
            yield InputFile(path, size, mtime_ns, folder=self.folder, is_empty=not size, is_crlf=bool(crlf))

    @property
    def path(self) -> str:
        """The path of the first file."""
        return self.paths[0]

    @property
    def fingerprint(self) -> str:
        """A hash of the names, sizes and times."""
        names = "\0".join((*self.paths, self.folder)).encode("utf-8", "surrogateescape")
        columns = bytes(self.sizes) + bytes(self.modified) + self.are_crlf
        return hashlib.blake2b(names + columns, digest_size=16).hexdigest()

    def anchored(self) -> SmallFiles:
        """Returns the same files for a process whose current folder may differ."""
        return SmallFiles(self.paths, self.sizes, self.modified, self.are_crlf, os.getcwd())

    def read(self) -> tuple[memoryview, array[int]]:
        """Returns the text of all files, and the offsets (type Q) between which a file's text is. Raises FileError if a
        file has changed, or cannot be read."""
        paths = [os.path.join(self.folder, path) for path in self.paths] if self.folder else self.paths
        starts = _binding.FileStarts(paths, SMALL_BYTES, self.size, known=True)
        is_unchanged = (starts.sizes, starts.modified) == (self.sizes, self.modified)
        if is_unchanged and not any(self.are_crlf):
            return starts.data, starts.offsets
        parts = []
        for file, (begin, end) in zip(self, pairwise(starts.offsets)):
            if is_unchanged:
                data = bytes(starts.data[begin:end])
                parts.append(data.replace(b"\r", b"") if file.is_crlf else data)
                continue
            with file.open() as stream:  # which names the fault
                parts.append(stream.read())
        return memoryview(b"".join(parts)), array("Q", accumulate(map(len, parts), initial=0))


class Corpus:
    """The files of a corpus, in order. Iteration yields an InputFile for each.

    Args:
        parts: the files, some of them together.
    """

    def __init__(self, parts: Iterable[InputFile | SmallFiles] = ()) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return sum(len(part.paths) for part in self.parts)

    def __iter__(self) -> Iterator[InputFile]:
        for part in self.parts:
            if isinstance(part, SmallFiles):
                yield from part
            else:
                yield part

    @property
    def paths(self) -> Iterator[str]:
        """The path of every file."""
        return chain.from_iterable(part.paths for part in self.parts)

    @property
    def sizes(self) -> Iterator[int | None]:
        """The size of every file as it is stored, or None if that is not known."""
        for part in self.parts:
            yield from part.sizes if isinstance(part, SmallFiles) else (part.size,)

    @property
    def modified(self) -> Iterator[int]:
        """The modification time of every file, in ns."""
        for part in self.parts:
            yield from part.modified if isinstance(part, SmallFiles) else (part.mtime_ns,)

    @property
    def singles(self) -> list[InputFile]:
        """The files that are not among small ones."""
        return [part for part in self.parts if isinstance(part, InputFile)]

    @property
    def crlf(self) -> Iterator[InputFile]:
        """The files whose \\r\\n is read as \\n."""
        for part in self.parts:
            if isinstance(part, InputFile):
                yield from [part] if part.is_crlf else []
            elif any(part.are_crlf):
                yield from (file for file in part if file.is_crlf)

    @property
    def size(self) -> int:
        """The sum of the sizes as they are stored. Standard input and pipes count as 0."""
        return sum(part.size or 0 for part in self.parts)


def look_at(paths: list[str], read: ReadOptions, known: bool) -> Iterator[tuple[InputFile | SmallFiles, NoText | None]]:
    """Yields the results of `InputFile.look` for some local files, in order, many small ones together. C reads the
    starts of many at once, and small ones whole. `known` says that all are regular files or links."""
    at = 0
    may_be_small = read.encoding in (None, "utf-8") and read.documents != "jsonl"
    in_utf8 = True if read.encoding is None else None
    while some := paths[at : at + _AT_ONCE]:
        starts = _binding.FileStarts(some, JSON_HEAD_BYTES, _ROOM, known)
        fit = bisect_right(starts.offsets, _ROOM - JSON_HEAD_BYTES)  # files for which there surely was room
        some, sizes, modified = some[:fit], starts.sizes[:fit], starts.modified[:fit]
        at, offsets = at + len(some), starts.offsets[: fit + 1]
        data = bytes(starts.data[: offsets[-1]])
        small = [
            is_plain and may_be_small and size <= SMALL_BYTES and says_nothing(path[path.rfind(".") :])
            for is_plain, size, path in zip(plain_starts(data, offsets), sizes, some)
        ]
        if in_utf8 and not are_utf8(view := memoryview(data), offsets):
            small = [each and may_be_utf8(view[a:b]) for each, (a, b) in zip(small, pairwise(offsets))]
        others = dict[int, tuple[InputFile, NoText | None]]()
        for i in [i for i, is_small in enumerate(small) if not is_small]:
            others[i] = InputFile.of_start(
                some[i], read.encoding, sizes[i], modified[i], data[offsets[i] : offsets[i + 1]]
            )
            text = InputFile(some[i], sizes[i], modified[i], is_empty=not sizes[i], starts_in_utf8=in_utf8)
            text = text._replace(is_crlf=others[i][0].is_crlf)
            small[i] = may_be_small and sizes[i] <= SMALL_BYTES and others[i] == (text, None)
        sums = list(accumulate(sizes, initial=0))
        are_crlf = bytes(len(some))
        if b"\r" in data and not read.keep_crlf:
            are_crlf = bytes(each and is_crlf(data[a:b]) for each, (a, b) in zip(small, pairwise(offsets)))
        begin = 0
        while begin < len(some):
            if not small[begin]:
                yield others[begin]
                begin += 1
                continue
            most = bisect_right(sums, sums[begin] + _GROUP_BYTES, begin + 2) - 1
            end = next((i for i in range(begin, most) if not small[i]), most)
            yield SmallFiles(some[begin:end], sizes[begin:end], modified[begin:end], are_crlf[begin:end]), None
            begin = end


# ----------------------------------------------------------------------------------------------------
# The files that paths, folders, globs and URLs name

_LOOK_BYTES = 1 << 16  # the number of bytes that are read to check whether an encoding is right
_LOOKS_AT_ONCE = 16
_MOST_SIDE = 1 << 20  # bytes of descriptions next to files of records, unless these have more
_WITH_MARKUP = re.compile(r"(?i)\.(?:csv|tsv|html?|xml)(?:\.\w+)?\Z")
_EXCEPT_OWN = " except pybpe's own (tokens, tokenizers, and what this call writes)"
_NAME_OTHERS = ": name files that exist, or a folder of them"
_outputs: ContextVar[Sequence[str]] = ContextVar("outputs", default=())


@contextmanager
def reading_for(outputs: Iterable[str], needs: bool) -> Iterator[None]:
    """In the block, leaves the outputs of a command out of the folders that it reads, and empty inputs are an error if
    the command needs text."""
    tokens = _outputs.set(list(outputs)), needs_text.set(needs)
    try:
        yield
    finally:
        _outputs.reset(tokens[0])
        needs_text.reset(tokens[1])


def input_files(inputs: Inputs) -> list[str]:
    """Returns the files that paths, globs and folders name, here or at a URL. The files of a glob or folder are sorted.
    A folder gives all files in it and its subfolders, except files whose names begin with a dot, files that pybpe wrote
    there, backups, and pipes, sockets and devices, which could block forever. STDIN is returned unchanged."""
    return [name for _, found, _ in _given(path_list(inputs)) for name in found.kept]


def _given(paths: Iterable[str], outputs: Collection[str] = ()) -> Iterator[tuple[str, Found, bool]]:
    """Yields the files that paths, folders and globs name, after the path, and whether it is the name of a file.
    Neighboring names of files come together, after "", so that they are looked at together."""
    found = ((path, _files_of(path, outputs)) for path in paths)
    for (is_named, _), some in groupby(found, lambda each: (each[1] is None, is_url(each[0]) or each[0] == STDIN)):
        if is_named:
            yield "", Found([path for path, _ in some], [], [], []), True
        else:
            yield from ((path, files, False) for path, files in some if files is not None)


def _files_of(path: str, outputs: Collection[str]) -> Found | None:
    """Returns the files that a folder or glob names, or None for the name of a file."""
    if path == STDIN:
        return None
    if is_url(path):
        from .remote import remote_files

        found, is_named = remote_files(path)
        if is_named:
            return None
    elif os.path.isdir(path):
        found = corpus_of_folder(path, outputs)
    elif is_glob(path):
        found = _files_of_glob(path, outputs)
    else:
        return None
    if not found.kept:
        raise ArgumentError(f"{without_secrets(path)}: no files found{_EXCEPT_OWN if found.own else ''}{_NAME_OTHERS}")
    return found


def _files_of_glob(pattern: str, outputs: Collection[str]) -> Found:
    """Returns the files that a glob names, as if a shell had expanded it: a folder gives its files. If ** matches
    folders, it also matches their contents."""
    found = Found.none()
    for name in sorted(of_glob(pattern)):
        if not os.path.isdir(name):
            found.kept.extend([] if is_of_desktop(os.path.basename(name)) else [name])
        elif "**" not in pattern:
            found.add(corpus_of_folder(name, outputs))
    return found


_Looked = tuple[InputFile | SmallFiles, NoText | None]


def corpus_files(inputs: Inputs, read: ReadOptions | None = None, outputs: Sequence[str] = ()) -> Corpus:
    """Returns the files of a corpus that paths, globs and folders name. Warns about empty files, and about files of a
    folder that it leaves out.

    Args:
        read: the encoding of the files, and their content if their names do not show it.
        outputs: the paths that this run writes, besides the list of skipped records.

    Raises:
        ArgumentError: there are no files, or two of them are one file, or a folder has files of different kinds.
        FileError: a file cannot be read. FormatError: a file is not text.
    """
    read = read or ReadOptions()
    own = {os.path.realpath(path) for path in (*outputs, read.skipped) if path is not None}
    given = path_list(inputs)
    check_paths({"the output": own}, texts={"the input": given})
    own |= set(map(os.path.realpath, _outputs.get()))
    found: list[tuple[str, Corpus]] = []
    left_out, spare = list[str](), list[str]()
    for path, names, is_named in _given(given, own):
        is_folder = not is_named and not is_glob(path)
        look: Callable[[str], _Looked] = partial(InputFile.look, encoding=read.encoding)
        if (first := names.kept[0]) == STDIN or is_url(first):  # a look at a URL waits for a server
            looked: Iterable[_Looked] = map_ordered(look, names.kept, _LOOKS_AT_ONCE if is_url(first) else 1)
        else:
            looked = look_at(names.kept, read, known=is_folder)
        looked = _unarchived(looked, names)
        if is_folder:
            looked = of_records(without_secrets(path), list(looked), read)
        files = Corpus()
        for part, what in looked:
            is_given = is_named and not (isinstance(part, InputFile) and part.inside)
            if what is not None and (is_given or not what.is_own):
                raise refusal(part.path, what)
            if what is not None:
                names.own.append(part.path)
            else:
                files.parts.append(part if isinstance(part, SmallFiles) else _decided(part, read))
        if is_folder:
            _check_cleaned(names.cleaned, files)
        left_out += names.own
        spare += names.spare
        found.append((path, files))
    _check_once(found)
    parts = [part for _, files in found for part in files.parts]
    files = Corpus(parts)
    _tell("left out: it is one of pybpe's own files", "left out: they are pybpe's own files", left_out)
    told = "a backup or an unfinished download, judging by its name"
    _tell(f"left out: {told}", f"left out: each is {told}", spare)
    _check_and_tell(files, read)
    if not parts:
        raise ArgumentError(f"{without_secrets(given[0])}: no files found{_EXCEPT_OWN}{_NAME_OTHERS}")
    return files


def _check_and_tell(files: Corpus, read: ReadOptions) -> None:
    """Warns about files that may not be what the caller expects. Raises FormatError if one is not text."""
    check_text(files)
    empty = Corpus(part for part in files.parts if isinstance(part, InputFile) or 0 in part.sizes)
    _tell("this file is empty", "these files are empty", [file.path for file in empty if file.is_empty])
    _tell_of_utf8(files, read.encoding)
    tell_of_encodings(files.singles, read.encoding)
    tell_of_crlf(files.crlf)
    told = "read as plain text, with its tags or commas"
    _tell(told, told, list(filter(_WITH_MARKUP.search, files.paths)), note)
    if read.documents != "jsonl":
        tell_of_records([it.path for it in files.singles if it.form == "jsonl" and not says_records(it.path)])


def _unarchived(looked: Iterable[_Looked], found: Found) -> Iterator[_Looked]:
    """Yields the results of `look`, with the files in archives instead of these. Adds those that are left out to what
    was found."""
    for part, what in looked:
        if isinstance(part, InputFile) and part.packing == "zip":
            inside, files = part.unarchived()
            if not files:
                raise ArgumentError(f"{part.path}: no files found in this archive")
            found.add(inside._replace(kept=[]))
            yield from files
        else:
            yield part, what


def _decided(part: InputFile, read: ReadOptions, called: str | None = None) -> InputFile:
    return part.in_form(read.documents).decided(read.keep_crlf, called)


def of_records(folder: str, looked: list[_Looked], read: ReadOptions) -> list[_Looked]:
    """Returns the files of a folder that are read. If it has files of records, only those are read, because other files
    there, such as README.md, describe them. Warns about the rest.

    Raises:
        ArgumentError: the rest has text files, which are compressed or named .txt, or is too large for descriptions.
    """
    kept, rest, first, texts = list[_Looked](), Corpus(), "", Corpus()
    for part, what in looked:
        if what is not None and what.is_own:
            kept.append((part, what))
        elif isinstance(part, InputFile) and part.in_form(read.documents).form != "text":
            kept.append((part, what))
            first = first or (part.path if form_of_name(part.path) or is_json_name(part.path) else "")
        else:
            rest.parts.append(part)
            texts.parts += [part] if what is None else []
    side = list(rest.paths)
    if not (first and side) or read.documents == "jsonl":  # which says that all of them are
        return looked
    text = next((path for path in side if packing_of_name(path) or path.lower().endswith(".txt")), None)
    if text is None and texts.size > max(_MOST_SIDE, Corpus(part for part, what in kept if what is None).size):
        text = texts.parts[0].path
    if text is not None:
        ending = os.path.splitext(without_ending(first))[1] + first[len(without_ending(first)) :]
        raise ArgumentError(
            f"{folder}: has files of records, such as {first}, and plain text, such as {text}: pass one glob per kind"
            f" that you want, such as {os.path.join(folder, '**', '*' + ending)!r}"
        )
    told = f"left out: {folder} has files of records, such as {first}, and only those are read"
    _tell(told, told, side)
    return kept


def _check_cleaned(cleaned: Sequence[str], files: Corpus) -> None:
    """Raises ArgumentError if a folder has an output of `corpus.clean` next to other files, which may be its inputs."""
    others = set(files.paths).difference(cleaned) if cleaned else ()
    if others:
        raise ArgumentError(
            f"{cleaned[0]}: `pybpe corpus` wrote this file, maybe from others in this folder, such as {min(others)}:"
            " name the files to read"
        )


def _check_once(found: Sequence[tuple[str, Corpus]]) -> None:
    """Raises ArgumentError if two files are one. Only files of equal sizes and times can be. With files comes the path
    that leads to them; "" if each, or its archive, was named."""
    stamps = [stamp for _, files in found for part in files.parts for stamp in _stamps(part)]
    if len(set(stamps)) == len(stamps):
        return
    counts, at = Counter(stamps), iter(stamps)
    check_files_once(
        (
            file.path,
            path or (file.inside or (file,))[0].path,
            input_id(file.path) if file.remote is None and file.inside is None else file.fingerprint,
        )
        for path, files in found
        for file in files
        if counts[next(at)] > 1
    )


def _stamps(part: InputFile | SmallFiles) -> Iterable[tuple[int, int]]:
    if isinstance(part, SmallFiles):
        return zip(part.sizes, part.modified)
    if part.size is not None:
        return ((part.size, part.mtime_ns),)
    with suppress(OSError):  # standard input may be a file
        status = os.fstat(0) if part.path == STDIN else os.stat(part.path)
        if stat.S_ISREG(status.st_mode):
            return ((status.st_size, status.st_mtime_ns),)
    return ((-1, 0),)


def _tell_of_utf8(files: Iterable[InputFile], encoding: str | None) -> None:
    """Warns about files that seem to be UTF-8, although the caller gave another encoding."""
    if encoding in (None, "utf-8"):
        return
    valid = [file.path for file in files if file.size and _is_utf8_after_all(file, encoding)]
    told = f"to be UTF-8, judging by the start, but {param(encoding=encoding)} was given"
    _tell(f"this file seems {told}", f"these files seem {told}", valid)


def _is_utf8_after_all(file: InputFile, encoding: str) -> bool:
    if file.has_rows or file.packing == "epub":
        return False
    with file._replace(encoding=None).open() as stream:
        return seems_utf8(stream.read(_LOOK_BYTES), encoding)


def _tell(one: str, many: str, paths: Sequence[str], say: Callable[[str], None] = warn) -> None:
    if paths:
        say(f"{first_of(paths)}: {many if paths[1:] else one}")


def text_file(path: str, encoding: str | None = None, keep_crlf: bool = False) -> InputFile:
    """Looks at a file that is read as one text. STDIN is standard input. Accepts JSON of any kind as text.

    Raises:
        FileError: the file cannot be read. FormatError: the file is not text.
    """
    file, what = InputFile.look(path, check_encoding(encoding))
    if what is not None and not what.is_json:
        raise refusal(file.path, what)
    if file.has_rows:
        raise FormatError(f"{file.path}: not one text, but rows ({file.form}), which `pybpe binarize` encodes")
    return file.decided(keep_crlf)


def open_text(path: str, encoding: str | None = None) -> BinaryIO:
    """Opens a file that `text_file` accepts for reading, and decompresses it if needed."""
    return text_file(path, encoding).open()


# ----------------------------------------------------------------------------------------------------
# Inputs that can be read only once


class Staged(NamedTuple):
    """The files to read."""

    files: Corpus
    names: Mapping[str, str] = {}  # the names of staged files in the manifest
    digests: Mapping[str, tuple[object, ...]] = {}  # the fingerprints of staged files, which have their content

    def fingerprint(self, part: InputFile | SmallFiles) -> object:
        """Returns the fingerprint of files: other files with the same names have another one."""
        return self.digests.get(part.path) or part.fingerprint

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of the block call a staged file by its name."""
        try:
            yield
        except Error as error:
            for path, name in self.names.items():
                error.args = tuple(arg.replace(path, name) if isinstance(arg, str) else arg for arg in error.args)
            raise


def stage(
    inputs: list[str] | Iterable[Any],
    folder: str,
    read: ReadOptions,
    outputs: Sequence[str],
    columns: Collection[str] | None = (CLUSTER,),
) -> Staged:
    """Returns the files that inputs name. First copies "-" (standard input) and pipes into `folder`, because a split
    may depend on their size, and resuming on their content. So it does with the documents of an object.

    Args:
        inputs: the result of `given_inputs`.
        read, outputs: as in corpus_files.
        columns: the columns that are wanted besides the text, as in Kinds.

    Raises:
        ArgumentError, FileError, FormatError: an input is missing, cannot be read, or is not text.
    """
    files, names, digests = Corpus(), dict[str, str](), dict[str, tuple[object, ...]]()
    if not isinstance(inputs, list):
        if read.encoding is not None:
            refuse_unused("encoding", read.encoding, "only files have one")
        copy, digest = _copy(OBJECT, lines_of(inputs, read, columns), folder, f"{STAGED}0.jsonl")
        note(f"the documents were copied to {copy}, since they may come only once: to resume, pass them again")
        return Staged(Corpus([InputFile.of(copy, "utf-8")]), {copy: OBJECT}, {copy: (OBJECT, digest)})
    for part in corpus_files(inputs, read, outputs).parts:
        if isinstance(part, InputFile) and part.size is None:
            with _stream(part) as stream:
                ending = "".join(re.findall(r"\.[A-Za-z0-9]{1,16}", os.path.basename(part.path))[-2:])
                blocks = _blocks(part.path, stream)
                # Its name ends like the stream's, because the ending shows the content.
                copy, digest = _copy(part.path, blocks, folder, f"{STAGED}{len(names)}{ending}")
            names[copy] = part.path
            found = InputFile.of(copy, part.encoding, called=part.path)
            check_text([found._replace(path=part.path)])
            found = _decided(found, read, called=part.path)
            tell_of_encodings([found._replace(path=part.path)], read.encoding)
            tell_of_crlf([found._replace(path=part.path)])
            digests[copy] = (part.path, digest, found.encoding, found.is_crlf)
            part = found
        files.parts.append(part)
    return Staged(files, names, digests)


def _stream(file: InputFile) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if file.path == STDIN else file.open_stored()


def _blocks(name: str, stream: BinaryIO) -> Iterator[bytes]:
    block = b"begin"
    while block:
        with file_errors(name, "cannot be read"):
            block = stream.read(PIECE_BYTES)
        yield block


def _copy(source: str, blocks: Iterable[bytes], folder: str, name: str) -> tuple[str, str]:
    """Copies an input to a file. Returns its path and a hash of its content. `source` is for errors."""
    total = None
    with suppress(OSError):  # standard input may be a file
        status = os.fstat(0) if source == STDIN else os.stat(source)
        total = status.st_size if stat.S_ISREG(status.st_mode) else None
    copy = os.path.join(make_folder(os.path.join(folder, FOLDER)), name)
    digest, told = hashlib.blake2b(), f"cannot be copied to {copy}"
    with file_errors(source, told):
        target = open(copy, "wb", buffering=0)
    try:
        with target, Progress("copying", total, "B", False) as bar:
            for block in blocks:
                bar.add(len(block))
                digest.update(block)
                with file_errors(source, told):
                    write_all(target, block)
    except BaseException:
        remove_file(copy)
        raise
    os.utime(copy, (0, 0))  # it is as old as any: the hash says whether it is another text
    return copy, digest.hexdigest()
