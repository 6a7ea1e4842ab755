"""The files that paths, folders, globs and URLs name: plain text or JSON lines, compressed or not. Inputs that can be
read only once (standard input, pipes, and what some web servers send) are copied to files that can be read again."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import BinaryIO, NamedTuple

from .._lazy import hashlib
from ..arguments import is_url, param, without_secrets
from ..errors import ArgumentError, FormatError, file_errors, note, warn
from ..support.call_paths import check_once, check_paths, identity, is_glob, of_glob
from ..support.locking import FOLDER, STAGED
from ..support.output_files import make_folder
from ..support.parallel import map_ordered
from .corpus_folder import corpus_of_folder
from .file_types import NoText, says_records
from .input_file import InputFile, check_text, needs_text, refusal, tell_of_records, told_of_mark
from .options import ReadOptions
from .paths import STDIN, Inputs, first_of, path_list
from .pieces import PIECE_BYTES
from .small_files import KEPT_BYTES, Corpus, SmallFiles, look_at
from .text_encoding import check_encoding, seems_utf8

_LOOK_BYTES = 1 << 16  # the number of bytes that are read to check whether an encoding is right
_LOOKS_AT_ONCE = 16
_WITH_MARKUP = re.compile(r"(?i)\.(?:csv|tsv|html?|xml)(?:\.\w+)?\Z")
_EXCEPT_OWN = " except pybpe's own (tokens, tokenizers, and what this call writes)"
_outputs: ContextVar[Sequence[str]] = ContextVar("outputs", default=())


@contextmanager
def reading_for(outputs: Iterable[str], needs: bool) -> Iterator[None]:
    """In the block, leaves the outputs of a command out of the folders that it reads; and empty inputs are an error if
    the command needs text."""
    tokens = _outputs.set(list(outputs)), needs_text.set(needs)
    try:
        yield
    finally:
        _outputs.reset(tokens[0])
        needs_text.reset(tokens[1])


def input_files(inputs: Inputs) -> list[str]:
    """Returns the files that paths, globs and folders name, here or at a URL. The files of a glob or folder are sorted.
    A folder gives all files in it and its subfolders, except those whose names begin with a dot, those that pybpe wrote
    there, and pipes, sockets and devices, which could block forever. STDIN is returned unchanged."""
    return [name for path in path_list(inputs) for name in _files_of(path)[0]]


def _files_of(path: str, outputs: Collection[str] = ()) -> tuple[list[str], list[str], bool]:
    """Returns the files that a path, folder or glob names; those that were left out; and whether `path` is the name of
    a file."""
    left_out: list[str] = []
    if is_url(path):
        from .remote import remote_files

        found, left_out, is_named = remote_files(path)
        if is_named:
            return found, [], True
    elif path != STDIN and os.path.isdir(path):
        found, left_out = corpus_of_folder(path, outputs)
    elif path != STDIN and is_glob(path):
        found, left_out = _files_of_glob(path, outputs)
    else:
        return [path], [], True
    if not found:
        raise ArgumentError(f"{without_secrets(path)}: no files found{_EXCEPT_OWN if left_out else ''}")
    return found, left_out, False


def _files_of_glob(pattern: str, outputs: Collection[str]) -> tuple[list[str], list[str]]:
    """Returns the files that a glob names, as if a shell had expanded it: a folder gives its files. If ** matches
    folders, it also matches their contents."""
    kept, left_out = list[str](), list[str]()
    for name in sorted(of_glob(pattern)):
        if not os.path.isdir(name):
            kept.append(name)
        elif "**" not in pattern:
            found, left = corpus_of_folder(name, outputs)
            kept += found
            left_out += left
    return kept, left_out


def corpus_files(inputs: Inputs, read: ReadOptions | None = None, outputs: Sequence[str] = ()) -> Corpus:
    """Returns the files of a corpus that paths, globs and folders name. Warns about empty files, about files that two
    of the paths lead to, and about files of a folder that it leaves out because they hold tokens or a tokenizer.

    Args:
        read: the encoding of the files, and what they hold if their names do not show it.
        outputs: the paths that this run writes, besides the list of skipped records.

    Raises:
        ArgumentError: there are no files, or two of the paths are one file. FileError: a file cannot be read.
        FormatError: a file is not text.
    """
    read = read or ReadOptions()
    own = {os.path.realpath(path) for path in (*outputs, read.skipped) if path is not None}
    given = path_list(inputs)
    check_paths({"the output": own}, texts={"the input": given})
    check_once(given)
    own |= set(map(os.path.realpath, _outputs.get()))
    parts: list[InputFile | SmallFiles] = []
    left_out, twice = list[str](), list[str]()
    room = KEPT_BYTES
    owners: dict[object, int] = {}  # which of the paths leads to a file; links inside a folder are its own affair
    for number, path in enumerate(given):
        names, left, is_named = _files_of(path, own)
        left_out += left
        look: Callable[[str], tuple[InputFile, NoText | None]] = partial(InputFile.look, encoding=read.encoding)
        looked: Iterable[tuple[InputFile | SmallFiles, NoText | None]]
        if is_named or is_url(path):  # each look at a URL waits for a server
            looked = map_ordered(look, names, _LOOKS_AT_ONCE if is_url(path) else 1)
        else:
            looked = look_at(names, read, room, known=os.path.isdir(path))
        found = Corpus()
        for part, what in looked:
            if what is not None and (is_named or not what.is_own):
                raise refusal(part.path, what)
            if what is not None:
                left_out.append(part.path)
            else:
                room -= len(part.data or b"") if isinstance(part, SmallFiles) else 0
                found.parts.append(part if isinstance(part, SmallFiles) else part.in_form(read.documents))
        for name, size in zip(found.paths, found.sizes) if len(given) > 1 and not is_url(path) else ():
            if size is not None and owners.setdefault(identity(name), number) != number:
                twice.append(name)
        parts += found.parts
    files = Corpus(parts)
    _tell("left out: it is one of pybpe's own files", "left out: they are pybpe's own files", left_out)
    check_text(files)
    empty = Corpus(part for part in parts if isinstance(part, InputFile) or 0 in part.sizes)
    _tell("this file is empty", "these files are empty", [file.path for file in empty if file.is_empty])
    _tell_of_utf8(files, read.encoding)
    tell_of_marks(files.singles, read.encoding)
    told = "read as plain text, with its tags or commas"
    _tell(told, told, list(filter(_WITH_MARKUP.search, files.paths)), note)
    tell_of_records(
        [
            file.path
            for file in files.singles
            if file.form == "jsonl" and not says_records(file.path) and read.documents != "jsonl"
        ]
    )
    _tell("read twice: two of the inputs lead to it", "read twice: two of the inputs lead to them", twice)
    if not parts:
        raise ArgumentError(f"{without_secrets(given[0])}: no files found{_EXCEPT_OWN}")
    return files


def _tell_of_utf8(files: Iterable[InputFile], encoding: str | None) -> None:
    """Warns about files that seem to be UTF-8, although the caller gave another encoding."""
    if encoding is None:
        return
    valid = [file.path for file in files if file.size and _is_utf8_after_all(file, encoding)]
    told = f"to be UTF-8, judging by the start, but {param(encoding=encoding)} was given"
    _tell(f"this file seems {told}", f"these files seem {told}", valid)


def tell_of_marks(files: Sequence[InputFile], encoding: str | None) -> None:
    """Says which files begin with a byte order mark, if the caller does not give an encoding."""
    marked = {} if encoding else {file.path: file.encoding for file in files if file.has_mark}
    for told in sorted({told_of_mark(name) for name in marked.values()}):
        _tell(told, told, [path for path, name in marked.items() if told_of_mark(name) == told], note)


def _is_utf8_after_all(file: InputFile, encoding: str) -> bool:
    if file.has_rows:
        return False
    with file._replace(encoding=None).open() as stream:
        return seems_utf8(stream.read(_LOOK_BYTES), encoding)


def _tell(one: str, many: str, paths: Sequence[str], say: Callable[[str], None] = warn) -> None:
    if paths:
        say(f"{first_of(paths)}: {many if paths[1:] else one}")


def text_file(path: str, encoding: str | None = None) -> InputFile:
    """Looks at a file that is read as one text. STDIN is standard input. Accepts JSON of any kind as text.

    Raises:
        FileError: the file cannot be read. FormatError: the file is not text.
    """
    file, what = InputFile.look(path, check_encoding(encoding))
    if what is not None and not what.is_json:
        raise refusal(file.path, what)
    if file.has_rows:
        raise FormatError(f"{file.path}: not one text, but rows ({file.form}), which `pybpe binarize` encodes")
    return file


def open_text(path: str, encoding: str | None = None) -> BinaryIO:
    """Opens a file that `text_file` accepts for reading, and decompresses it if needed."""
    return text_file(path, encoding).open()


# ----------------------------------------------------------------------------------------------------
# Inputs that can be read only once


class Staged(NamedTuple):
    """The files to read."""

    files: Corpus
    names: Mapping[str, str] = {}  # the names of staged files in the manifest
    digests: Mapping[str, tuple[object, ...]] = {}  # what distinguishes each of them from others, as an identity does

    def identity(self, part: InputFile | SmallFiles) -> object:
        """Returns what distinguishes files from others with the same names, for runs that resume."""
        return self.digests.get(part.path) or part.identity


def stage(inputs: Sequence[str], folder: str, read: ReadOptions, outputs: Sequence[str]) -> Staged:
    """Returns the files that inputs name. First copies "-" (standard input) and pipes into `folder`, because a split
    may depend on their size, and resuming on their content. `read` and `outputs` are as in corpus_files.

    Raises:
        ArgumentError, FileError, FormatError: an input is missing, cannot be read, or is not text.
    """
    files, names, digests = Corpus(), dict[str, str](), dict[str, tuple[object, ...]]()
    for part in corpus_files(inputs, read, outputs).parts:
        if isinstance(part, InputFile) and part.size is None:
            copy, digest = _copy(part, folder, len(names))
            names[copy], digests[copy] = part.path, (part.path, digest, part.encoding)
            found = InputFile.of(copy, part.encoding, called=part.path)
            check_text([found._replace(path=part.path)])
            part = found.in_form(read.documents)
        files.parts.append(part)
    return Staged(files, names, digests)


def _copy(file: InputFile, folder: str, number: int) -> tuple[str, str]:
    """Copies a stream to a file. Its name ends like the stream's name, since the ending shows what it holds. Returns
    its path and a hash of its content."""
    ending = "".join(re.findall(r"\.[A-Za-z0-9]{1,16}", os.path.basename(file.path))[-2:])
    copy = os.path.join(make_folder(os.path.join(folder, FOLDER)), f"{STAGED}{number}{ending}")
    digest = hashlib.blake2b()
    name = file.path
    source = sys.stdin.buffer if name == STDIN else file.open_stored()
    try:
        with file_errors(name, f"cannot be copied to {copy}"), open(copy, "wb") as target:
            while block := source.read(PIECE_BYTES):
                digest.update(block)
                target.write(block)
    finally:
        if name != STDIN:
            source.close()
    return copy, digest.hexdigest()
