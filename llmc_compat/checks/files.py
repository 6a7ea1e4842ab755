"""Finds the files: the kind of each by its first bytes, and each name, since llm.c opens some files by name."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pybpe import _binding
from pybpe.errors import ArgumentError, FileError
from pybpe.reading.streams import open_input
from pybpe.tokens.manifest import FILE_NAME as MANIFEST_NAME

from .. import chat, checkpoint, evals
from ..evals import LLMC_PATH

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One fault."""

    file: str  # where it is
    fault: str  # what is wrong
    effect: str  # what llm.c does, such as "aborts"
    remedy: str  # how to fix it
    severity: str = ERROR  # "error" if llm.c aborts or trains on nonsense; "warning" if it works, but not as expected

    def __str__(self) -> str:
        mark = "" if self.is_error else "warning: "
        return f"{self.file}: {mark}{self.fault}; llm.c {self.effect}; {self.remedy}"

    @property
    def is_error(self) -> bool:
        """Whether llm.c aborts or trains on nonsense."""
        return self.severity == ERROR

    def unless(self, harmless: object) -> Finding:
        """Returns the finding, downgraded to a warning if it is harmless here."""
        return replace(self, severity=WARNING) if harmless else self

    @classmethod
    def of_error(cls, file: str, error: Exception, remedy: str, effect: str = "aborts") -> Finding:
        """Returns the finding for a file that cannot be read. The error's message may say what llm.c does."""
        fault, _, said = str(error).removeprefix(f"{file}: ").partition("; llm.c ")
        return cls(file, fault, said or effect, remedy)


# The names that are compiled into llm.c's trainers.
#
# main in train_gpt2.c     gpt2_124M.bin, gpt2_tokenizer.bin, and the data of tiny Shakespeare, or else of TinyStories
# main in train_gpt2.cu    gpt2_124M_bf16.bin, gpt2_tokenizer.bin, and tiny Shakespeare's, unless -e, -i, -j override
#                          them; with -h 1 HellaSwag's

TOKENIZER_NAME = "gpt2_tokenizer.bin"
MODEL_NAMES = {"fp32": "gpt2_124M.bin", "bf16": "gpt2_124M_bf16.bin"}  # by type; the CPU trainer reads the first
CPU_DATA = os.path.join("dev", "data", "tinyshakespeare", "tiny_shakespeare_{}.bin")
STORIES_DATA = os.path.join("dev", "data", "tinystories", "TinyStories_{}.bin")
TRAINED_ON = ("train", "val")
_SPLIT = re.compile(r".*(?:^|[_-])(train|val|test)(?:[_-].*)?\.bin", re.DOTALL)

PLACES = {
    TOKENIZER_NAME: "a tokenizer",
    **dict.fromkeys(MODEL_NAMES.values(), "a model checkpoint"),
    **{CPU_DATA.format(split): "a token shard" for split in TRAINED_ON},
    LLMC_PATH: "an eval file",
}


def place_of(path: str) -> str | None:
    """Returns the llm.c name that a path ends in, or None."""
    return next((place for place in PLACES if path == place or path.endswith(os.sep + place)), None)


def split_of(path: str) -> str | None:
    """Returns the split in a shard's name (train, val, test), or None."""
    match = _SPLIT.fullmatch(os.path.basename(path))
    return match[1] if match else None


_KINDS = {  # magic -> the field of Files, and what a message calls the file
    _binding.TOKENIZER_MAGIC: ("tokenizers", "a tokenizer"),
    **dict.fromkeys(_binding.SHARD_MAGICS.values(), ("shards", "a token shard")),
    checkpoint.MAGIC: ("models", "a model checkpoint"),
    evals.MAGIC: ("evals", "an eval file"),
    chat.MASK_MAGIC: ("masks", "a loss mask"),
    20240327: ("others", "the activations that llm.c's tests compare"),
    20240527: ("others", "the optimizer's state, saved with an llm.c checkpoint"),
    20240803: ("others", "a checkpoint of train_llama3.py"),
}
BROKEN_LINK = "a broken link"
UNKNOWN = ("an empty file", "a file of another kind", "a file that cannot be read")


@dataclass
class Files:
    """The paths that were found, by kind."""

    tokenizers: list[str] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    evals: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)


@dataclass
class FoundFiles:
    """Files and names."""

    files: Files = field(default_factory=Files)  # each file once, however many links lead to it
    names: dict[str, str] = field(default_factory=dict)  # every name, with what is there: "a token shard", "a folder"
    folders: list[str] = field(default_factory=list)  # the given folders, and those found in them


def find_files(paths: Iterable[str], findings: list[Finding]) -> FoundFiles:
    """Finds llm.c's files among the paths, and in folders."""
    found = FoundFiles()
    kinds: dict[str, str] = {}  # by real path
    for path in paths:
        given = not os.path.isdir(path)
        for name in [path] if given else _walk(path, found):
            real = os.path.realpath(name)
            if given or os.path.exists(name):
                if real not in kinds:
                    kinds[real] = _sort(name, found.files, findings, given)
                found.names[name] = kinds[real]
            else:
                fault = f"links to {real}, which does not exist"
                findings.append(
                    Finding(
                        name,
                        fault,
                        "cannot find the file, and aborts, except without a tokenizer",
                        "make the link again",
                    )
                )
                found.names[name] = BROKEN_LINK
    return found


def _walk(folder: str, found: FoundFiles) -> Iterator[str]:
    """Yields all names in a folder, except folders. Links to folders are followed; each folder is visited once."""
    seen = {os.path.realpath(folder)}
    for place, inner, names in os.walk(folder, followlinks=True):
        found.folders.append(place)
        found.names[place] = "a folder"
        yield from (os.path.join(place, name) for name in sorted(names))
        real = {name: os.path.realpath(os.path.join(place, name)) for name in sorted(inner)}
        inner[:] = [name for name in real if real[name] not in seen]
        seen |= set(real.values())


def _sort(path: str, files: Files, findings: list[Finding], given: bool) -> str:
    """Files a path under its kind by its magic, and returns what it is. A .bin file of unknown kind is a fault."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        if given:
            raise ArgumentError(f"{path}: neither a file nor a folder")
        return "not a regular file"
    if os.path.basename(path) == MANIFEST_NAME:
        files.manifests.append(path)
        return "a manifest"
    try:
        with open_input(path) as stream:
            first = stream.read(4)
    except FileError as error:
        if given:
            raise
        findings.append(Finding.of_error(path, error, "make it readable"))
        return UNKNOWN[2]
    magic = int.from_bytes(first, "little")
    if magic in _KINDS:
        kind, called = _KINDS[magic]
        getattr(files, kind).append(path)
        return called
    if path.endswith(".bin"):
        findings.append(_unknown(path, magic if first else None, given))
    return UNKNOWN[bool(first)]


def _unknown(path: str, magic: int | None, given: bool) -> Finding:
    """Returns the fault of a .bin file of unknown kind. llm.c opens it only under certain names."""
    fault, remedy = f"magic {magic} is not an llm.c magic number", "if llm.c should read it, write it again"
    if magic is None:
        fault, remedy = "is empty", "write it again"
    elif split_of(path):
        remedy = "if it is a headerless file for nanoGPT, write it again with `pybpe binarize --format llmc`"
    place = place_of(path)
    if place is not None:
        fault = f"{fault}, but llm.c expects {PLACES[place]} under this name"
    is_read = given or place is not None or split_of(path)
    effect = "aborts: 'Bad magic', or end of file" if is_read else "aborts if it reads this file"
    return Finding(path, fault, effect, remedy).unless(not is_read)
