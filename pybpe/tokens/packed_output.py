"""Encodes and packs in one call: token files go into a hidden folder next to the output, and from there into rows.

    .OUT.tokens.unfinished/data     llm.c's shards; a killed run resumes from them
    OUT                             the packed rows, which get their name when they are complete

The hidden folder is removed at the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from .. import _binding
from ..arguments import instance, one_of, option, whole_number
from ..errors import ArgumentError, file_errors
from ..support.locking import only_writer
from ..support.output_files import real_output
from ..tokenizer import Tokenizer
from .finished import Goal, hidden_folder
from .formats import FORMATS
from .formats.flat import LLMC
from .manifest import Manifest
from .options import OutputOptions
from .pack import METHODS, ROW_FORMATS, pack


@dataclass(frozen=True)
class RowOptions:
    """The rows to pack token files into. The fields are keyword arguments, which errors name.

    Attributes:
        sequence_length: tokens per row.
        packing: one of METHODS; None means the first.
        format: one of ROW_FORMATS.

    Raises:
        ArgumentError: a value is invalid. MissingExtraError: the format needs a package that is not installed.
    """

    sequence_length: int = option(1024, "tokens per packed row", "T")
    packing: str | None = option(
        None,
        "how to pack: best-fit (default) cuts only documents longer than a row, and pads rows; fill also cuts documents"
        " to fill the rows that would be short; concat cuts wherever a row is full",
        "HOW",
    )
    format: str = "llmc"

    def __post_init__(self) -> None:
        whole_number("sequence_length", self.sequence_length, 2)
        one_of("packing", self.method, METHODS)
        one_of("format", self.format, ROW_FORMATS)
        ROW_FORMATS[self.format].check_packages()

    @classmethod
    def of(cls, pack: bool, length: int, packing: str | None, format: str = "llmc") -> RowOptions | None:
        """Returns the options, or None if there is nothing to pack. A format that only packing writes is packed even
        if the caller does not say so, by cutting the text wherever a row is full.

        Raises:
            ArgumentError: there is only `packing`. Otherwise as RowOptions.
        """
        instance("pack", pack, bool, "True or False")
        if pack:
            return cls(length, packing, format)
        if format in FORMATS and not FORMATS[format].is_flat:
            return cls(length, packing or "concat", format)
        if packing is not None:
            raise ArgumentError("packing needs pack=True")
        return None

    def least_tokens(self, given: int | None) -> int | None:
        """Returns the argument min_shard_tokens of the token files. Only llm.c needs a minimum."""
        return 0 if given is None and self.format != LLMC.name else given

    def check(self, output: OutputOptions) -> None:
        """Raises ArgumentError if the token files could not be packed, or an argument would have no effect."""
        if output.mode != "prepend":
            raise ArgumentError(
                f"in packed rows, the mark begins each document: pass eot='prepend', not {output.mode!r}"
            )

    def goal(self, out: _binding.PathLike, shard_tokens: int, force: bool, also: object = None) -> Goal:
        """Returns what a call with these rows makes in the end: see finished.py."""
        rows = (self.sequence_length, self.method, self.format, None, 0, shard_tokens)
        return Goal(real_output(out), force, also, rows)

    @property
    def method(self) -> str:
        """How pieces are placed."""
        return METHODS[0] if self.packing is None else self.packing


def write_and_pack(
    goal: Goal,
    rows: RowOptions,
    shard_tokens: int,
    write: Callable[[str], tuple[Tokenizer, Manifest]],
    progress: bool | None,
) -> Manifest:
    """Writes token files and packs them into the folder of the goal.

    Args:
        goal: what `rows.goal` returned.
        write: writes token files into a folder and returns the tokenizer and their manifest; or, if the goal is
            complete, the manifest there.

    Raises:
        As `write` and `pack`.
    """
    folder = hidden_folder(goal.folder)
    with only_writer(os.path.dirname(folder), temporary=True):
        try:
            tok, made = write(folder)
        finally:
            with suppress(OSError):  # it is not empty, so a rerun resumes
                os.rmdir(folder)
        if made.packing is None:
            made = pack(
                tok,
                folder,
                goal.folder,
                sequence_length=rows.sequence_length,
                packing=rows.method,
                format=rows.format,
                shard_tokens=shard_tokens,
                force=goal.force,
                progress=progress,
            )
        with file_errors(folder, "cannot be removed"):
            if os.path.exists(folder):
                shutil.rmtree(folder)
    return made
