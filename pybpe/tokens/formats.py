"""The formats of token files, by name, and options. Most are a header and the ids; pack/rows.py writes those with rows.

Megatron-LM has two files: NAME.bin holds the ids, NAME.idx says where documents are in it. The index, little-endian, as
megatron/core/datasets/indexed_dataset.py reads it: "MMIDIDX\\0\\0"; u64 version 1; u8 type of the ids (8: uint16, 4:
int32); u64 sequences; u64 documents + 1; then int32 lengths, int64 byte offsets of the sequences, int64 document
borders, which are sequence numbers from 0. A document is one sequence here.

llmq (github.com/IST-DASLab/llmq, src/training/dataloader.cpp and scripts/tokenize_data.py) has a header of 256 int32:
"BIN.TOK\\n". Version 2; bytes per id, always 4; the number of ids; the size of the vocabulary; 1 if a mask of one bit
per id follows the ids, which this module does not write. Then the ids as int32.

To add a format: a Format in FORMATS (a file that is a header and the ids needs only `header` and `read`), the help of
OutputOptions.format, the docstring of `binarize`, the ending of its files in corpus_folder.py (or a folder would be
read as text), and docs/file-formats.md. Test it against the library that reads it in test_dataset_formats.py, and with
kills and failing system calls: its name in test_resume.py, test_executors.py and tests/faults/operations.py.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from .. import _binding
from .._lazy import Array, numpy, pickle, tarfile
from ..arguments import can_pass, instance, one_of, option, param, refuse_unused, whole_number
from ..errors import ArgumentError, FormatError, LimitError, warn
from ..formats.id_files import NPY_HEADER_BYTES, npy_blocks, npy_header, read_npy_header
from ..model import named_special
from ..reading.documents import name_it
from ..reading.file_types import LLMQ_MAGIC
from ..reading.rows import parquet_batches, pyarrow_parquet
from ..reading.streams import open_unchanged
from ..support.output_files import FOLDER
from ..tokenizer import Tokenizer
from .manifest import FILE_NAME, HIDDEN_NAME, ShardRecord, check_name
from .task_encoder import EOT_MODES, ID_BYTES, KEEP, Marks
from .token_files import TokenFile

_MIN_TOKENS = 257  # B*T + 1 of llm.c's CPU trainer, whose B is 4 and T 64
_READ_TOKENS = 1 << 20
_LLMC_VERSIONS = {2: 1, 4: 7}  # by bytes per id
_MEGATRON_MAGIC = b"MMIDIDX\0\0"
_MEGATRON_TYPES = {"uint16": 8, "uint32": 4}
_BLOCK = 1 << 16  # documents processed at once


@dataclass(frozen=True)
class Format:
    """A format of token files.

    Attributes:
        name: its name for users.
        file: the name of a file, with placeholders {name}, {split} and {index}. Without {index}, a split is one file
            of any size.
        read: read(path, dtype) yields the ids of a file in blocks.
        header: header(tokens, dtype, n_vocab) returns the bytes before the ids. None means that the file has rows,
            which only `pack` writes.
        header_bytes: the size of the header.
        eot: where the mark goes by default.
        min_tokens: the default minimum number of tokens per shard.
        max_bytes: the largest file that its readers can read; 0 means any size.
        reader: the program whose limits these are.
        equal_shards: whether the shards of a split have equal size.
        largest_uint16_vocabulary: the most tokens of a vocabulary whose ids readers expect as uint16, 0 if never.
        manifest: the name of the manifest.
        index: index(blocks, dtype, record, folder) writes another file for a split, which has one token file, and
            returns its name. None means that there is no such file. blocks() yields where documents begin. `record` is
            of the token file.
        offsets: the name of the file that says where the documents of a split begin, if the caller asks for it, or
            "" if there is none. Its numbers (int64) count the tokens of all files of the split, and the last is
            their sum.
        of_tokenizer: a file that describes the tokenizer, if there is one: its name, and a function for its content.
        check_packages: raises MissingExtraError if a package is not installed.
    """

    name: str
    file: str
    read: Callable[[str, str], Iterator[Array]]
    header: Callable[[int, str, int], bytes] | None = None
    header_bytes: int = 0
    eot: str = "append"
    min_tokens: int = 0
    max_bytes: int = 0
    reader: str = "llm.c"
    equal_shards: bool = False
    largest_uint16_vocabulary: int = 1 << 16
    manifest: str = FILE_NAME
    index: Callable[[Callable[[], Iterator[Array]], str, ShardRecord, str], str] | None = None
    offsets: str = ""
    of_tokenizer: tuple[str, Callable[[Tokenizer], bytes]] | None = None
    check_packages: Callable[[], object] = lambda: None

    @property
    def has_shards(self) -> bool:
        """Whether a split may have several files."""
        return "{index" in self.file

    def pattern(self, split: str) -> str:
        """Returns a glob pattern that matches the files of a split, whatever {name} and {index} are."""
        return self.file.replace("{name}", "*").replace("{split}", split).replace("{index:06d}", "*")


def _read_flat(path: str, dtype: str) -> Iterator[Array]:
    return TokenFile(path, dtype).blocks(_READ_TOKENS)


def llmc_header(tokens: int, dtype: str, n_vocab: int) -> bytes:
    """Returns the header of a shard of llm.c."""
    size = ID_BYTES[dtype]
    fields = struct.pack("<3i", _binding.SHARD_MAGICS[size], _LLMC_VERSIONS[size], tokens)
    return fields.ljust(_binding.SHARD_HEADER_BYTES, b"\0")


LLMC = Format(
    name="llmc",
    file="{name}_{split}_{index:06d}.bin",
    read=_read_flat,
    header=llmc_header,
    header_bytes=_binding.SHARD_HEADER_BYTES,
    eot="prepend",
    min_tokens=_MIN_TOKENS,
    max_bytes=_binding.SHARD_MAX_BYTES,
    equal_shards=True,
)


def _read_npy(path: str, dtype: str) -> Iterator[Array]:
    """Yields the ids of a file in blocks. For packed rows, they are an array of two dimensions."""
    with open_unchanged(path) as stream:
        header = read_npy_header(stream, path)
        if header.by_columns:
            raise FormatError(f"{path}: stores its rows by columns (Fortran order): save it in C order")
        if len(header.shape) not in (1, 2) or header.dtype.kind not in "ui":
            what = f"{header.dtype} of shape {header.shape}"
            raise FormatError(f"{path}: {what}, expected an array of integers with one or two dimensions")
        yield from npy_blocks(stream, header, path, _READ_TOKENS)


NPY = Format(
    name="npy",
    file="{name}_{split}_{index:06d}.npy",
    read=_read_npy,
    header=lambda tokens, dtype, n_vocab: npy_header(tokens, ID_BYTES[dtype]),
    offsets="{name}_{split}.document_offsets.npy",
    header_bytes=NPY_HEADER_BYTES,
)


def _meta(tok: Tokenizer) -> bytes:
    """Returns meta.pkl as nanoGPT's data/shakespeare_char/prepare.py writes it: vocab_size, itos and stoi.

    nanoGPT's sample.py encodes a prompt character by character through stoi, and joins strings of itos. A token that is
    not valid UTF-8 by itself is U+FFFD in itos, and is not in stoi.
    """
    texts = {i: token.decode("utf-8", "replace") for i, token in tok.model.vocab.items()}
    exact = {text: i for i, text in texts.items() if text.encode("utf-8") == tok.model.vocab[i]}
    return pickle.dumps({"vocab_size": tok.vocab_size, "itos": texts, "stoi": exact}, protocol=4)


RAW = Format(
    name="raw",
    file="{split}.bin",
    read=_read_flat,
    header=lambda tokens, dtype, n_vocab: b"",
    offsets="{split}.document_offsets.npy",
    of_tokenizer=("meta.pkl", _meta),
)


def _write_index(blocks: Callable[[], Iterator[Array]], dtype: str, record: ShardRecord, folder: str) -> str:
    count, name = record.documents, record.file.removesuffix(".bin") + ".idx"
    with _binding.Output(os.path.join(folder, name)) as output:
        output.write(_MEGATRON_MAGIC + struct.pack("<QBQQ", 1, _MEGATRON_TYPES[dtype], count, count + 1))
        for starts in _with_ends(blocks(), record.tokens):
            lengths = numpy.diff(starts)
            if len(lengths) and int(lengths.max()) > 2**31 - 1:
                raise LimitError(
                    f"{record.file}: a document has {lengths.max()} tokens, but Megatron's index allows 2^31 - 1"
                )
            output.write(lengths.astype("<i4"))
        for starts in _with_ends(blocks(), record.tokens):
            output.write((starts[:-1] * ID_BYTES[dtype]).astype("<i8"))
        for at in range(0, count + 1, _BLOCK):
            output.write(numpy.arange(at, min(at + _BLOCK, count + 1), dtype="<i8"))
    return name


def write_offsets(path: str, blocks: Iterator[Array], documents: int, tokens: int) -> None:
    """Writes the file that says where the documents of a split begin: see Format.offsets."""
    header = io.BytesIO()
    described = {"descr": "<i8", "fortran_order": False, "shape": (documents + 1,)}
    numpy.lib.format.write_array_header_1_0(header, described)
    with _binding.Output(path) as output:
        output.write(header.getvalue())
        for starts in blocks:
            output.write(starts.astype("<i8"))
        output.write(numpy.array([tokens], dtype="<i8"))


def _with_ends(blocks: Iterator[Array], tokens: int) -> Iterator[Array]:
    """Yields where documents begin, in blocks that have the end of their last document too."""
    last = numpy.empty(0, dtype=numpy.int64)
    for starts in blocks:
        found = numpy.concatenate([last, starts])
        if len(found) > 1:
            yield found
        last = found[-1:]
    yield numpy.append(last, tokens)


MEGATRON = Format(
    name="megatron",
    file="{name}_{split}.bin",
    read=_read_flat,
    header=lambda tokens, dtype, n_vocab: b"",
    index=_write_index,
    largest_uint16_vocabulary=65499,  # Megatron itself uses uint16 below 65500
)


def _read_parquet(path: str, dtype: str) -> Iterator[Array]:
    for batch in parquet_batches(path, 1024, ["input_ids"]):
        yield batch.column(0).flatten().to_numpy()


PARQUET = Format(
    name="parquet",
    file="{name}_{split}_{index:06d}.parquet",
    read=_read_parquet,
    manifest=HIDDEN_NAME,
    check_packages=partial(pyarrow_parquet, "format='parquet'"),
)


def _read_webdataset(path: str, dtype: str) -> Iterator[Array]:
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.name.endswith(".input_ids.npy"):
                data = tar.extractfile(member)
                assert data is not None
                yield numpy.load(io.BytesIO(data.read()), allow_pickle=False)


WEBDATASET = Format(name="webdataset", file="{name}_{split}_{index:06d}.tar", read=_read_webdataset)

LLMQ = Format(
    name="llmq",
    file="{name}_{split}_{index:06d}.bin",
    read=_read_flat,
    header=lambda tokens, dtype, n_vocab: (LLMQ_MAGIC + struct.pack("<5i", 2, 4, tokens, n_vocab, 0)).ljust(
        1024, b"\0"
    ),
    header_bytes=1024,
    min_tokens=2 * 1024 + 1,  # llmq leaves out the last sequence of a file. Its T is 1024 by default
    max_bytes=1024 + 4 * (2**31 - 1),  # the number of ids is an int
    reader="llmq",
    largest_uint16_vocabulary=0,
)

FORMATS: dict[str, Format] = {form.name: form for form in (LLMC, RAW, NPY, MEGATRON, LLMQ, PARQUET, WEBDATASET)}
FLAT = tuple(name for name, form in FORMATS.items() if form.header is not None)  # a header followed by the ids


# ----------------------------------------------------------------------------------------------------
# Options, which are the arguments of public functions. Errors name them

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
        "also write NAME.provenance (parquet) for every token file: the inputs and records of its documents",
    )
    id_key: str | None = option(None, "for --provenance, the key or column of a record's id", "KEY")

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
        if self.id_key == "":
            raise ArgumentError(f"{param('id_key')} must not be empty")
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
        """The special token that is the mark, or None for the tokenizer's end of text."""
        if self.eot is None or self.eot in self.EOT_MODES:
            return None
        place, _, token = self.eot.partition(":")
        return token if place in _PLACES else self.eot

    def with_mark(self, tok: Tokenizer) -> Tokenizer:
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

    def for_vocabulary(self, n_vocab: int, mark: str | None, is_made: bool = True) -> OutputOptions:
        """Returns the options for a vocabulary of this size, with the dtype chosen. `mark` is its end-of-text token. If
        training may make a smaller one (`is_made` is False), gives no warning.

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
        if self.format == LLMC.name and self.dtype == "auto" and fitting == "uint32" and is_made:
            asked = f"; {param(dtype='uint32')} asks for them without this warning" if can_pass("dtype") else ""
            warn(
                "this vocabulary needs ids of 32 bits: llm.c's train_gpt2 aborts on such shards with 'Bad magic', and"
                f" only its train_llama3.py reads them{asked}"
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
            **({} if self.id_key is None else {"id_key": self.id_key}),
        }


class ArrayOptions(OutputOptions):
    """The file that `encode_files` writes: one array, whose manifest is not kept."""

    EOT_MODES = (KEEP, *EOT_MODES)
    HASHED = False


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
