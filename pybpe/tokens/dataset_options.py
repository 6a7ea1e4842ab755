"""How a corpus becomes token files: the options of `binarize`, `prepare` and `encode_files`, as objects.

Their fields have the names of the public keyword arguments, which errors name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from ..arguments import instance, one_of, option, param, refuse_unused, whole_number
from ..errors import ArgumentError, LimitError, warn
from ..model import named_special, refuse_dropout
from ..reading.documents import Kinds, name_it
from ..reading.files import Corpus
from ..reading.inputs import ReadOptions
from ..reading.rows import pyarrow_parquet
from ..reading.splits import SplitOptions
from ..support.output_files import FOLDER
from ..tokenizer import Tokenizer
from .formats import FLAT, FORMATS, LLMC, Format
from .manifest import check_name, found_manifest
from .task_encoder import EOT_MODES, ID_BYTES, KEEP, Marks

ROW_FORMATS = ("llmc", "npy", "parquet", "webdataset")
_PLACES = EOT_MODES[:2]  # of the mark
METHODS = ("best-fit", "fill")  # of packing


@dataclass(frozen=True)
class OutputOptions:
    """The token files to write.

    Attributes:
        format: one of FLAT.
        eot: where the mark goes, one of EOT_MODES, or the special token that is the mark, or both, as PLACE:TOKEN.
            None, and a token alone, use the format's place.
        dtype: "uint16", "uint32", or "auto": `for_vocabulary` chooses.
        shard_tokens: the maximum number of tokens per shard.
        min_shard_tokens: the minimum. None uses the format's minimum.
        name: the files' name prefix. None uses the first input's name.
        document_offsets: whether a file per split says where documents begin.
        provenance: whether a file per token file says where its documents came from.
        id_key: the key of the ids of records in it.

    Raises:
        ArgumentError: a value is invalid. MissingExtraError: the format needs a package that is not installed.
    """

    format: str = option("llmc", "llmc, raw (nanoGPT), npy, megatron or llmq; pack has formats for rows", "F")
    eot: str | None = option(
        None,
        "where to put the end-of-text token: prepend (default for llmc), append (default for others) or none; or the"
        " special token to put there instead, such as '<|endoftext|>' or 'prepend:<|begin_of_text|>'",
        "WHERE",
    )
    dtype: str = option("auto", "uint16, uint32 or auto", "D")
    shard_tokens: int = option(10**8, "maximum number of tokens per shard, e.g. 50M; shards for llm.c have equal sizes")
    min_shard_tokens: int | None = option(
        None,
        "minimum number of tokens per shard (default: as many as the reader needs, 257 for llmc; 0 allows any number)",
    )
    name: str | None = option(None, "name prefix of the files (default: taken from the first file)", "NAME")
    document_offsets: bool = option(
        False,
        "for raw and npy, also write SPLIT.document_offsets.npy, whose number i is the token where document i begins",
    )
    provenance: bool = option(
        False,
        "also write, for each token file, NAME.provenance (parquet): the input and the record in it that each document"
        " came from",
    )
    id_key: str | None = option(None, "the key of an id in records, or its column, for --provenance", "KEY")

    EOT_MODES: ClassVar[Sequence[str]] = EOT_MODES
    HASHED: ClassVar[bool] = True
    """Whether the manifest has the SHA-256 of shards."""

    def __post_init__(self) -> None:
        if self.format in FORMATS and self.format not in FLAT:
            raise ArgumentError(f"{param(format=self.format)} is for rows, which `pybpe pack` makes from token files")
        one_of("format", self.format, FLAT)
        instance("eot", self.eot, (str, type(None)), "a str")
        instance("document_offsets", self.document_offsets, bool, "True or False")
        instance("provenance", self.provenance, bool, "True or False")
        instance("id_key", self.id_key, (str, type(None)), "a str")
        one_of("dtype", self.dtype, ("auto", "uint16", "uint32"))
        least = whole_number("min_shard_tokens", self.least_tokens, 0)
        most = whole_number("shard_tokens", self.shard_tokens, 1)
        for name, value in (("min_shard_tokens", least), ("shard_tokens", most)):
            object.__setattr__(self, name, value)
        check_name(self.name or "")
        self.form.check_packages()  # fails now, not after an hour of encoding
        if self.provenance:
            pyarrow_parquet(param(provenance=True))
        elif self.id_key is not None:
            refuse_unused("id_key", self.id_key, f"only {param(provenance=True)} has ids")

    def check_used(self) -> None:
        """Raises ArgumentError if the caller gives an option, another value than the default, that has no effect."""
        if self.name is not None and "{name}" not in self.form.file:
            refuse_unused("name", self.name, f"this format has fixed file names ({param(format=self.format)})")
        if self.shard_tokens != 10**8 and not self.form.has_shards:
            refuse_unused(
                "shard_tokens", self.shard_tokens, f"this format has one file per split ({param(format=self.format)})"
            )
        if self.document_offsets and not self.form.offsets:
            some = " and ".join(form.name for form in FORMATS.values() if form.offsets)
            raise ArgumentError(f"{param(document_offsets=True)} is for the formats {some}, not {self.format}")

    @property
    def form(self) -> Format:
        """The format."""
        return FORMATS[self.format]

    @property
    def mode(self) -> str:
        """Where the mark goes."""
        place = (self.eot or "").partition(":")[0]
        return place if self.eot in self.EOT_MODES or place in _PLACES else self.form.eot

    @property
    def mark(self) -> str | None:
        """The special token that is the mark; None for the tokenizer's end of text."""
        if self.eot is None or self.eot in self.EOT_MODES:
            return None
        place, _, token = self.eot.partition(":")
        return token if place in _PLACES else self.eot

    @property
    def ids(self) -> str | None:
        """What is wanted of the origins of documents, as in Kinds."""
        return self.id_key or "" if self.provenance else None

    def marked(self, tok: Tokenizer) -> Tokenizer:
        """Returns the tokenizer with the mark as its end of text. Raises ArgumentError if it is no special token."""
        if self.mark is None:
            return tok
        named_special("eot", self.mark, tok.special_tokens, f"{', '.join(self.EOT_MODES)} or ")
        return tok.replace(end_of_text=self.mark)

    def refuse_mark(self, reason: str) -> None:
        """Raises ArgumentError if the caller names the mark."""
        if self.mark is not None:
            raise ArgumentError(f"{param(eot=self.eot)}: must be one of {', '.join(self.EOT_MODES)} here: {reason}")

    @property
    def least_tokens(self) -> int:
        """The minimum number of tokens per shard."""
        return self.form.min_tokens if self.min_shard_tokens is None else self.min_shard_tokens

    def for_vocabulary(self, n_vocab: int, mark: str | None) -> OutputOptions:
        """Returns the options for a vocabulary of this size, with the dtype chosen. `mark` is its end-of-text token.

        Raises:
            ArgumentError: there is no such token to place. LimitError: an id does not fit in the dtype, or a shard
                would be larger than its readers can read.
        """
        if mark is None and self.mode not in ("none", KEEP):
            others = f"name another special token in {param('eot')}, or pass {param(eot='none')}"
            raise ArgumentError(f"the tokenizer has no end of text: {name_it()}; or {others}")
        if self.dtype == "uint16" and n_vocab > 1 << 16:
            raise LimitError(f"uint16 cannot hold the ids of {n_vocab} tokens: use {param(dtype='uint32')} or 'auto'")
        if self.dtype == "uint16" and self.form.largest_uint16_vocabulary == 0:
            raise ArgumentError(f"{self.format} reads ids of 32 bits: use {param(dtype='uint32')} or 'auto'")
        fitting = "uint16" if n_vocab <= self.form.largest_uint16_vocabulary else "uint32"
        chosen, form = replace(self, dtype=fitting if self.dtype == "auto" else self.dtype), self.form
        largest = form.header_bytes + max(self.shard_tokens, 2 * self.least_tokens) * ID_BYTES[chosen.dtype]
        if form.max_bytes and largest > form.max_bytes:
            raise LimitError(
                f"{param(shard_tokens=self.shard_tokens)} would exceed {form.max_bytes} bytes, beyond which"
                f" {form.reader} cannot read: write more, smaller shards"
            )
        if self.format == LLMC.name and self.dtype == "auto" and fitting == "uint32":
            warn(
                "this vocabulary needs ids of 32 bits: llm.c's train_gpt2 aborts on such shards with 'Bad magic', and"
                f" only its train_llama3.py reads them; {param(dtype='uint32')} asks for them without this warning"
            )
        return chosen

    def settings(self) -> dict[str, Any]:
        """Returns the options as the manifest has them."""
        return {
            "format": self.format,
            "eot": self.mode,
            "dtype": self.dtype,
            "shard_tokens": self.shard_tokens,
            "min_shard_tokens": self.least_tokens,
            **({"document_offsets": True} if self.document_offsets else {}),
            **({"provenance": True} if self.provenance else {}),
            **({"id_key": self.id_key} if self.id_key else {}),
        }


class ArrayOptions(OutputOptions):
    """The file that `encode_files` writes: one array, whose manifest is not kept."""

    EOT_MODES = (KEEP, *EOT_MODES)
    HASHED = False


@dataclass(frozen=True)
class DatasetOptions:
    """Everything that determines the token files, except the tokenizer and the inputs."""

    read: ReadOptions
    split: SplitOptions
    output: OutputOptions

    def for_tokenizer(self, tok: Tokenizer) -> DatasetOptions:
        """Returns the options for a tokenizer: see OutputOptions.for_vocabulary."""
        refuse_dropout(tok.model, "cannot write token files")
        return replace(self, output=self.output.for_vocabulary(tok.vocab_size, tok.model.eot))

    def decided(self, files: Corpus, kinds: Kinds, folder: str) -> DatasetOptions:
        """Returns the options with the way of splitting decided: see SplitOptions.decided. `folder` may have token
        files, which are to be replaced."""
        there = found_manifest(folder) if self.split.split_by == "auto" else None
        recorded = None if there is None else there.settings.get("split_by")
        return replace(self, split=self.split.decided(list(files), kinds, recorded))

    def settings(self) -> dict[str, Any]:
        """Returns the options as the manifest has them. A run that resumes must have the same."""
        first = {} if self.split.val_documents is None else {"val_documents": self.split.val_documents}
        return {
            "format": self.output.format,
            **first,
            "splits": list(self.split.splits),
            "split_by": self.split.split_by,
            **self.output.settings(),
            "documents": self.read.documents,
            "text_key": self.read.text_key,
            "encoding": self.read.encoding,
            **({"keep_crlf": True} if self.read.keep_crlf else {}),
        }


@dataclass(frozen=True)
class RowOptions:
    """The rows to pack token files into. The fields are arguments of `pack`, which errors name.

    Raises:
        ArgumentError: a value is invalid. MissingExtraError: the format needs a package that is not installed.
    """

    sequence_length: int = option(1024, "tokens per packed row", "T")
    packing: str = option(
        METHODS[0],
        "how to pack: best-fit (default) cuts only documents longer than a row, and pads rows; fill also cuts documents"
        " to fill the rows that would be short",
        "HOW",
    )
    format: str = option(
        LLMC.name,
        "llmc, or with the columns input_ids, document_ids, position_ids and loss_mask: npy, parquet or webdataset",
        "F",
    )
    pad: str | None = option(
        None,
        "the special token for padding (default: <|padding|> or <|pad|> if there is one, otherwise end of text)",
        "S",
    )
    seed: int = option(0, "random seed for the order")
    shard_tokens: int = 10**8

    def __post_init__(self) -> None:
        one_of("packing", self.packing, METHODS)
        one_of("format", self.format, ROW_FORMATS)
        FORMATS[self.format].check_packages()
        length = whole_number("sequence_length", self.sequence_length, 2)
        for name, least in (("sequence_length", 2), ("shard_tokens", length + 1), ("seed", None)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))


class Layout(NamedTuple):
    """Where the token files of a run go, and the facts that all of its splits share."""

    tok: Tokenizer
    output: OutputOptions  # the options of the files, for this tokenizer
    folder: str  # where the files go
    name: str  # {name} in the format's file names
    source_names: Mapping[str, str]  # the manifest's names for files that have other names on disk

    @property
    def marks(self) -> Marks:
        """Where the marks go."""
        return Marks(self.output.mode, self.tok.eot_token, self.output.dtype)

    @property
    def unfinished(self) -> str:
        """The hidden folder, for unfinished work."""
        return os.path.join(self.folder, FOLDER)

    def path(self, split: str, index: int) -> str:
        """Returns the file of a shard."""
        return os.path.join(self.folder, self.output.form.file.format(name=self.name, split=split, index=index))
