"""The formats of token files, by name. Most are a header and the ids; pack/rows.py writes those with rows.

Megatron-LM has two files: NAME.bin holds the ids, NAME.idx says where documents are in it. The index, little-endian, as
megatron/core/datasets/indexed_dataset.py reads it: "MMIDIDX\\0\\0"; u64 version 1; u8 type of the ids (8: uint16, 4:
int32); u64 sequences; u64 documents + 1; then int32 lengths, int64 byte offsets of the sequences, int64 document
borders, which are sequence numbers from 0. A document is one sequence here.

llmq (github.com/IST-DASLab/llmq, src/training/dataloader.cpp and scripts/tokenize_data.py) has a header of 256 int32:
"BIN.TOK\\n". Version 2; bytes per id, always 4; the number of ids; the size of the vocabulary; 1 if a mask of one bit
per id follows the ids, which this module does not write. Then the ids as int32.

To add a format: a Format in FORMATS (a file that is a header and the ids needs only `header` and `read`), the help of
--format in options.py, the docstring of `binarize`, the ending of its files in corpus_folder.py (or a folder would be
read as text), and docs/file-formats.md. Test it against the library that reads it in test_dataset_formats.py, and with
kills and failing system calls: its name in test_resume.py, test_executors.py and tests/faults/operations.py.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from .. import _binding
from .._lazy import Array, numpy, pickle, tarfile
from ..errors import FormatError, LimitError
from ..formats.id_files import NPY_HEADER_BYTES, npy_blocks, npy_header, read_npy_header
from ..reading.file_types import LLMQ_MAGIC
from ..reading.rows import pyarrow_parquet
from ..reading.streams import open_unchanged
from ..tokenizer import Tokenizer
from .manifest import FILE_NAME, HIDDEN_NAME, ShardRecord
from .task_encoder import ID_BYTES
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
        of_tokenizer: a file that describes the tokenizer, if there is one: its name, and what returns its content.
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
    file = pyarrow_parquet(path).ParquetFile(path)
    for batch in file.iter_batches(1024, columns=["input_ids"]):
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
    min_tokens=2 * 1024 + 1,  # llmq leaves out the last sequence of each file. Its T is 1024 by default
    max_bytes=1024 + 4 * (2**31 - 1),  # the number of ids is an int
    reader="llmq",
    largest_uint16_vocabulary=0,
)

FORMATS: dict[str, Format] = {form.name: form for form in (LLMC, RAW, NPY, MEGATRON, LLMQ, PARQUET, WEBDATASET)}
FLAT = tuple(name for name, form in FORMATS.items() if form.header is not None)  # a header followed by the ids
