"""Copies inputs that can be read only once (standard input, pipes, and what some web servers send) to files that can be
read again."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import file_errors
from ..support.locking import FOLDER, STAGED
from ..support.output_files import make_folder
from .files import corpus_files, in_form
from .input_file import InputFile, check_text
from .options import ReadOptions
from .paths import STDIN
from .pieces import PIECE_BYTES


@dataclass
class Staged:
    """The files to read.

    Attributes:
        files: the files, in order.
        names: the names of staged files in the manifest.
        identities: what distinguishes each file from another file with the same name.
    """

    files: list[InputFile] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    identities: list[tuple[object, ...]] = field(default_factory=list)


def stage(inputs: Sequence[str], folder: str, read: ReadOptions, outputs: Sequence[str]) -> Staged:
    """Returns the files that inputs name. First copies "-" (standard input) and pipes into `folder`, because a split
    may depend on their size, and resuming on their content. `read` and `outputs` are as in corpus_files.

    Raises:
        ArgumentError, FileError, FormatError: an input is missing, cannot be read, or is not text.
    """
    staged = Staged()
    for file in corpus_files(inputs, read, outputs):
        if file.size is None:
            copy, digest = _copy(file, folder, len(staged.names))
            staged.names[copy] = file.path
            found = InputFile.of(copy, file.encoding, called=file.path)
            check_text([found._replace(path=file.path)])
            staged.files.append(in_form(found, read))
            staged.identities.append((file.path, digest, file.encoding))
        else:
            staged.files.append(file)
            staged.identities.append(file.identity)
    return staged


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
