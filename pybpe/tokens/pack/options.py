"""The options of packed rows."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from ... import _binding
from ...arguments import instance, one_of, option, whole_number
from ...errors import ArgumentError
from ...support.output_files import real_output
from ..finished import Goal
from ..formats import FORMATS, LLMC
from ..options import OutputOptions
from .row_files import ROW_FORMATS

METHODS = ("best-fit", "fill", "concat")


@dataclass(frozen=True)
class RowOptions:
    """The rows to pack token files into. The fields are arguments of `pack`, which errors name.

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
    format: str = LLMC.name
    pad: str | None = None
    seed: int = 0
    shard_tokens: int = 10**8

    def __post_init__(self) -> None:
        if self.packing is None:
            object.__setattr__(self, "packing", METHODS[0])
        one_of("packing", self.packing, METHODS)
        one_of("format", self.format, ROW_FORMATS)
        FORMATS[self.format].check_packages()
        for name, least in (("sequence_length", 2), ("shard_tokens", None), ("seed", None)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))
        whole_number("shard_tokens", self.shard_tokens, self.sequence_length + 1)

    @classmethod
    def of(
        cls, pack: bool, length: int, packing: str | None, format: str = LLMC.name, shard_tokens: int = 10**8
    ) -> RowOptions | None:
        """Returns the options, or None if there is nothing to pack. A format that only packing writes is packed even
        if the caller does not say so, by cutting the text wherever a row is full.

        Raises:
            ArgumentError: there is only `packing`. Otherwise as RowOptions.
        """
        instance("pack", pack, bool, "True or False")
        if not pack and (format not in FORMATS or FORMATS[format].is_flat):
            if packing is not None:
                raise ArgumentError("packing needs pack=True")
            return None
        if not pack and packing is None:
            packing = "concat"
        return cls(length, packing, format, shard_tokens=shard_tokens)

    def least_tokens(self, given: int | None) -> int | None:
        """Returns the argument min_shard_tokens of the token files. Only llm.c needs a minimum."""
        return 0 if given is None and self.format != LLMC.name else given

    def check(self, output: OutputOptions) -> None:
        """Raises ArgumentError if the token files could not be packed, or an argument would have no effect."""
        if output.mode != "prepend":
            raise ArgumentError(
                f"in packed rows, the mark begins each document: pass eot='prepend', not {output.mode!r}"
            )

    def goal(self, out: _binding.PathLike, force: bool, also: object = None) -> Goal:
        """Returns what a call with these rows makes in the end: see finished.py."""
        return Goal(real_output(out), force, also, astuple(self))
