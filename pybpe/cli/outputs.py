"""What a command may replace: a file of the kind that it writes there itself. Anything else needs --force."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

_HEAD_BYTES = 4096
_TOKENIZER, _ARRAY, _PAGE, _IDS, _DATA = "a tokenizer", "a numpy array", "a page", "ids", "other data"
_BY_FLAG = {"remap": {_ARRAY}, "plot": {"a picture"}, "report": {_PAGE, "a report"}, "skipped": {"a list of records"}}
_BY_COMMAND = {
    **dict.fromkeys(("train", "prune"), {_TOKENIZER}),
    "export": {_TOKENIZER, "a GGUF vocabulary"},
    **dict.fromkeys(("viz", "compare"), {_PAGE}),
    "new": {"a checkpoint"},
    "convert": {"a checkpoint", "a GGUF model"},
    "count": {"a counts file"},
    "encode": {_ARRAY, _IDS, _DATA},
    "eval": {"an eval file"},
}
_CHECKED_ELSEWHERE = frozenset(("checkpoint",))  # resuming refuses any other file
_MARKS = (
    (b"\x93NUMPY", _ARRAY),
    (b"pybpecnt", "a counts file"),
    (b"GGUF\3\0\0\0" + bytes(8), "a GGUF vocabulary"),  # no tensors
    (b"GGUF\3\0\0\0", "a GGUF model"),
    (b'<!doctype html>\n<html lang="en">', _PAGE),
    (b"\x89PNG", "a picture"),
    (b"%PDF-", "a picture"),
    (b"<?xml", "a picture"),
    (b'{"file": ', "a list of records"),
    (b'{\n "documents_in":', "a report"),
)
_RANKS = re.compile(rb"[A-Za-z0-9+/]+=* \d+\n")
_NUMBERS = re.compile(rb"[\[\]\d,\s]+")


def check_replaced(args: argparse.Namespace, writes: dict[str, str], load: Callable[[str], Tokenizer]) -> list[str]:
    """Looks at the outputs of a command (flag -> path) that exist already. Returns what to say of them when it has
    replaced them. Raises ArgumentError for a file of another kind than the command writes, or a tokenizer next to token
    files that another tokenizer made, unless there is --force."""
    replaced: list[str] = []
    for flag, path in writes.items():
        dest = flag.lstrip("-")
        if dest in _CHECKED_ELSEWHERE or not os.path.isfile(path) or not os.path.getsize(path):
            continue
        kind = _kind(path)
        allowed = _BY_FLAG.get(dest) or _BY_COMMAND.get(args.parser.prog.split()[-1], set())
        if kind not in allowed and not args.force:
            raise ArgumentError(
                f"{path}: {flag} would replace {kind}, which this command does not write: choose another output, or"
                " pass --force"
            )
        replaced.append(f"{path}: replaced {kind}")
    if args.writes_tokenizer and not args.force:
        _check_token_files(args, load)
    return replaced


def _kind(path: str) -> str:
    from ..reading.file_types import llmc_file, no_text

    with open(path, "rb") as stream:
        head = stream.read(_HEAD_BYTES)
    found = next((kind for mark, kind in _MARKS if head.startswith(mark)), None) or llmc_file(head)
    if found is not None:
        return found
    what = no_text(head, path)
    if (what is not None and what.what == "a tokenizer.json") or _RANKS.match(head):
        return _TOKENIZER
    if _NUMBERS.fullmatch(head):
        return _IDS
    return "a text" if what is None and b"\0" not in head else _DATA


def _check_token_files(args: argparse.Namespace, load: Callable[[str], Tokenizer]) -> None:
    """Raises ArgumentError if a tokenizer is written next to token files of another one, which nothing could decode
    then."""
    from ..tokens.manifest import Manifest, manifest_name

    folder = args.output if os.path.isdir(args.output) else os.path.dirname(args.output) or "."
    if args.output == "-" or not os.path.exists(os.path.join(folder, manifest_name(folder))):
        return
    theirs = Manifest.load(folder).tokenizer.get("fingerprint")
    is_copy = args.parser.prog.endswith(" export") and load(args.tokenizer).model.fingerprint == theirs
    if not is_copy:
        raise ArgumentError(
            f"{folder}: has token files that another tokenizer made, and this one cannot decode: choose another"
            " folder, or pass --force"
        )
