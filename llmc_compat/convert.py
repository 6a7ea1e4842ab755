"""Converts llm.c checkpoints: to another vocabulary, to Hugging Face's format and back, and to GGUF."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, BinaryIO, TypeGuard

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.errors import ArgumentError, FormatError
from pybpe.formats import any_format, gguf, pretrained
from pybpe.model.remap import NEW, old_ids
from pybpe.reading.streams import open_unchanged, read_file, read_items
from pybpe.support.call_paths import check_paths
from pybpe.tokens.manifest import FILE_NAMES

from .checkpoint import (
    Checkpoint,
    GPT2Config,
    StoredTensor,
    check_dtype,
    from_bfloat16,
    from_file_type,
    padded_rows,
    tell_of_nan,
    to_file_type,
    write_blocks,
)

# ----------------------------------------------------------------------------------------------------
# To another vocabulary, with the weights of shared tokens
#
# Only wte, the embedding of tokens (which is the output layer as well), depends on the vocabulary. A token that both
# tokenizers have keeps its row. Every other token starts as the mean of the old rows, so it enters the softmax as an
# average token. A random row could take a large share of the probability (John Hewitt, "Initializing New Word
# Embeddings for Pretrained Language Models", 2021).


_MEAN, _ZERO = NEW, -2  # a row's source, if it is not an old row
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Resized:
    """The result of `resize_checkpoint`.

    Attributes:
        config, dtype: the new checkpoint's shape and type.
        copied: the number of tokens whose rows were copied.
        averaged: the number of tokens that got the mean row.
    """

    config: GPT2Config
    dtype: str
    copied: int
    averaged: int


def resize_checkpoint(
    source: _binding.PathLike, old: Tokenizer, new: Tokenizer, out: _binding.PathLike, *, pad_vocab: int = 128
) -> Resized:
    """Converts the checkpoint `source`, trained with the tokenizer `old`, to the tokenizer `new`.

    Rows of ordinary tokens with the same bytes, and of specials with the same text, are copied. Other tokens get the
    mean of all old rows, and the padding is zero. Everything else, type and maxT included, is unchanged. The file is
    written atomically. Only the old wte is held in memory, not the whole model.

    Args:
        pad_vocab: the new Vp is the smallest multiple of this above V.

    Raises:
        ArgumentError: `old` and the model differ in their number of tokens, or `out` is `source`.
        FileError, FormatError: `source` cannot be read.
    """
    check_paths({"out": [_binding.path_text(out)]}, {"the model": [_binding.path_text(source)]})
    with Checkpoint(source, warns=True) as model:
        model.check_vocab_size(old.vocab_size)
        config = replace(
            model.config, vocab_size=new.vocab_size, padded_vocab_size=padded_rows(new.vocab_size, pad_vocab)
        )
        origins = numpy.full(config.padded_vocab_size, _ZERO, dtype=numpy.int64)
        origins[: new.vocab_size] = old_ids(old.model, new.model)
        write_blocks(out, config, model.dtype, _resized_blocks(model, origins))
        averaged = int((origins == _MEAN).sum())
        return Resized(config, model.dtype, new.vocab_size - averaged, averaged)


def _resized_blocks(model: Checkpoint, origins: numpy.ndarray[Any, Any]) -> Iterator[numpy.ndarray[Any, Any]]:
    wte = model.raw_rows("wte", 0, model.config.vocab_size)
    sums = [from_file_type(rows, model.dtype).sum(axis=0, dtype=numpy.float64) for rows in _row_blocks(wte)]
    mean = to_file_type(numpy.sum(sums, axis=0) / len(wte), model.dtype)
    for part in _row_blocks(origins):
        rows = wte[numpy.maximum(part, 0)]
        rows[part == _MEAN] = mean
        rows[part == _ZERO] = 0
        yield rows
    for name in model.config.tensor_shapes():
        if name != "wte":
            yield from model.raw_blocks(name)


def _row_blocks(rows: numpy.ndarray[Any, Any]) -> Iterator[numpy.ndarray[Any, Any]]:
    for start in range(0, len(rows), _BLOCK_ROWS):
        yield rows[start : start + _BLOCK_ROWS]


# ----------------------------------------------------------------------------------------------------
# Hugging Face folders, for `transformers`
#
# The differences:
#
# - transformers' GPT-2 multiplies from the left (its Conv1D stores weights as (in, out)), llm.c from the right, so the
#   four matrices of a layer are transposed.
# - llm.c stores the tensors of all layers together. transformers stores them one by one.
# - wte has V rows, not Vp. llm.c's softmax is over V. In transformers the zero rows of the padding would be logits of
#   0, take part in the softmax, and be sampled as ids that no tokenizer has.
# - The output layer is wte (tied), so it is not stored twice.
#
# Sources: llm.c, train_gpt2.py (write_tensors) and dev/eval/export_hf.py; transformers, models/gpt2.


WEIGHTS_NAME = "model.safetensors"
CONFIG_NAME = "config.json"
# Names that programs look for in a folder of a model, or of token files.
MODEL_FILES = (WEIGHTS_NAME, f"{WEIGHTS_NAME}.index.json", "pytorch_model.bin", CONFIG_NAME, *FILE_NAMES)
_DTYPES = {"fp32": ("F32", "float32"), "bf16": ("BF16", "bfloat16")}
_PREFIX = "transformer."
_ROLES = ("bos_token", "eos_token", "pad_token")

# llm.c's name -> transformers' name, and the matrices that are transposed there.
_OF_THE_MODEL = {"wte": "wte.weight", "wpe": "wpe.weight", "lnfw": "ln_f.weight", "lnfb": "ln_f.bias"}
_OF_A_LAYER = {"ln1": "ln_1", "qkv": "attn.c_attn", "attproj": "attn.c_proj",
               "ln2": "ln_2", "fc": "mlp.c_fc", "fcproj": "mlp.c_proj"}  # fmt: skip
_TRANSPOSED = frozenset(("qkvw", "attprojw", "fcw", "fcprojw"))

# llm.c's model, in config.json's terms. Any other value is a different model.
_FIXED = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def _parts(config: GPT2Config) -> Iterator[StoredTensor]:
    for part in config.parts(_OF_THE_MODEL, "h.{}.", _OF_A_LAYER):
        yield part._replace(shape=part.shape[::-1]) if part.source in _TRANSPOSED else part


def checkpoint_to_huggingface(source: _binding.PathLike, tokenizer: Tokenizer, out: _binding.PathLike) -> GPT2Config:
    """Writes a folder that transformers' AutoModelForCausalLM and AutoTokenizer load.

    The folder gets model.safetensors (in the checkpoint's dtype), config.json, and the files that
    `Tokenizer.save_pretrained` writes. The longest sequence of the model is their model_max_length. Files are written
    atomically. One tensor is in memory at a time.

    Args:
        source: an llm.c checkpoint.
        tokenizer: the one it was trained with.
        out: the folder, created if needed.

    Returns:
        The shape of the model.

    Raises:
        ArgumentError: the tokenizer and the model differ in their number of tokens. FileError, FormatError: `source`
            cannot be read. UnsupportedError: as in `Tokenizer.save_pretrained`.
    """
    with Checkpoint(source, warns=True) as model:
        model.check_vocab_size(tokenizer.vocab_size)
        held = any_format.held(tokenizer.model, "pretrained")
        pretrained.write(held, out, settings={"model_max_length": model.config.max_seq_len})
        folder = os.fsdecode(out)
        parts = list(_parts(model.config))
        shapes = {_PREFIX + part.name: part.shape for part in parts}
        rows = ((part, model.raw_rows(part.source, part.start, part.stop)) for part in parts)
        blocks = (numpy.ascontiguousarray(x[0].T) if part.source in _TRANSPOSED else x for part, x in rows)
        write_safetensors(os.path.join(folder, WEIGHTS_NAME), _DTYPES[model.dtype][0], shapes, blocks)
        text = json.dumps(_model_config(tokenizer, model), indent=2) + "\n"
        _binding.write_file(os.path.join(folder, CONFIG_NAME), text.encode())
        return model.config


def _model_config(tokenizer: Tokenizer, model: Checkpoint) -> dict[str, Any]:
    config, roles = model.config, pretrained.roles(tokenizer.model)
    ids = {f"{role}_id": tokenizer.special_tokens.get(roles.get(role, "")) for role in _ROLES}
    return {
        "architectures": ["GPT2LMHeadModel"],
        **_FIXED,
        "vocab_size": config.vocab_size,
        "n_positions": config.max_seq_len,
        "n_embd": config.channels,
        "n_layer": config.num_layers,
        "n_head": config.num_heads,
        "n_inner": None,
        **{f"{part}_pdrop": 0.0 for part in ("resid", "embd", "attn")},  # llm.c has no dropout
        **ids,
        "torch_dtype": _DTYPES[model.dtype][1],
    }


def checkpoint_from_huggingface(
    folder: _binding.PathLike, out: _binding.PathLike, *, dtype: str = "fp32", pad_vocab: int = 128
) -> GPT2Config:
    """Writes the GPT-2 in a folder (config.json and model.safetensors) as an llm.c checkpoint, atomically.

    This lets llm.c continue training OpenAI's weights from Hugging Face. Weights may be float64, float32, float16 or
    bfloat16. One llm.c tensor is in memory at a time.

    Args:
        dtype: the checkpoint's type, "fp32" or "bf16".
        pad_vocab: Vp is the smallest multiple of this above V.

    Returns:
        The shape of the model.

    Raises:
        FileError. FormatError: config.json describes a model that llm.c does not compute, or the weights do not match
        it. The error names the key or tensor.
    """
    check_dtype(dtype)
    check_paths({"out": [os.fsdecode(out)]}, {"the folder": [os.fsdecode(folder)]})
    config = _read_config(os.path.join(os.fsdecode(folder), CONFIG_NAME), pad_vocab)
    with SafetensorsFile(_weights_path(os.fsdecode(folder))) as weights:
        prefix = _PREFIX if _PREFIX + "wte.weight" in weights.entries else ""  # OpenAI's own files have no prefix
        blocks = (to_file_type(block, dtype) for block in _blocks(weights, config, prefix))
        write_blocks(out, config, dtype, blocks)
    return config


def _blocks(weights: SafetensorsFile, config: GPT2Config, prefix: str) -> Iterator[numpy.ndarray[Any, Any]]:
    told = False
    for part in _parts(config):
        tensor = weights.tensor(prefix + part.name, part.shape)
        told = told or tell_of_nan(weights.path, part.name, tensor)
        yield tensor.T if part.source in _TRANSPOSED else tensor
        if part.source == "wte":
            yield numpy.zeros((config.padded_vocab_size - config.vocab_size, config.channels), dtype=numpy.float32)


def _weights_path(folder: str) -> str:
    path = os.path.join(folder, WEIGHTS_NAME)
    if not os.path.exists(path) and os.path.isdir(folder):
        raise FormatError(
            f"{path}: this file does not exist; if the weights are in another format or in parts, load them with"
            " transformers and save them with save_pretrained(folder, max_shard_size='100GB')"
        )
    return path


def _read_config(path: str, pad_vocab: int) -> GPT2Config:
    try:
        data = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("model_type") != "gpt2":
        kind = data.get("model_type") if isinstance(data, dict) else None
        raise FormatError(f"{path}: the model_type is {kind!r}; llm.c's checkpoints hold only gpt2 models")
    for key, value in _FIXED.items():
        if data.get(key, value) != value:
            raise FormatError(f"{path}: {key} is {data[key]!r}; llm.c supports only {value!r}")
    V, T, C, L, NH = (_size(data, key, path) for key in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head"))
    if data.get("n_inner") not in (None, 4 * C):
        raise FormatError(f"{path}: n_inner is {data['n_inner']!r}; llm.c requires 4 x n_embd = {4 * C}")
    try:
        return GPT2Config(V, padded_rows(V, pad_vocab), T, L, NH, C)
    except ArgumentError as error:
        raise FormatError(f"{path}: {error}") from None


def _size(data: dict[str, Any], key: str, path: str) -> int:
    value = data.get(key)
    if type(value) is not int or value < 1:
        raise FormatError(f"{path}: {key} is {value!r}; it must be an integer of at least 1")
    return value


# ----------------------------------------------------------------------------------------------------
# safetensors, Hugging Face's file format for weights
#
# A file is a little-endian u64 n, n bytes of JSON, and the data of all tensors, end to end:
#
#     {"__metadata__": {...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
#
# Source: github.com/huggingface/safetensors, README.md. The safetensors package is not used here (the tests compare
# with it), because its numpy interface lacks bfloat16, holds the whole model in memory, and does not write atomically.


_MAX_HEADER_BYTES = 100_000_000  # the format's own limit
_MAX_DIMENSIONS = 8
_METADATA = "__metadata__"

# Weight types -> the numpy dtypes that read them.
_NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


Entry = tuple[str, tuple[int, ...], int]  # a tensor's type, shape, and where it begins after the header


def write_safetensors(
    path: _binding.PathLike,
    dtype: str,
    shapes: Mapping[str, tuple[int, ...]],
    blocks: Iterable[numpy.ndarray[Any, Any]],
) -> None:
    """Writes tensors of one type, "F32", or "BF16" with blocks of uint16, atomically, without holding more than one
    block. The blocks are contiguous, and together they are all tensors in the order of `shapes`."""
    header: dict[str, Any] = {_METADATA: {"format": "pt"}}  # transformers refuses a file without this
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + prod(shape) * _ITEM_BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    with _binding.Output(path) as output:
        output.write(len(text).to_bytes(8, "little") + text)
        for block in blocks:
            output.write(block)


class SafetensorsFile:
    """An open file of weights: `entries` by name, and the tensors, read on demand. A context manager. FormatError says
    which tensor of the header is damaged, or does not match the file's size."""

    def __init__(self, path: _binding.PathLike) -> None:
        self.path = os.fsdecode(path)
        self._stream = open_unchanged(path)
        try:
            self._data, self.entries = _read_header(self._stream, self.path)
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> SafetensorsFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)

    def tensor(self, name: str, shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
        """Returns a tensor as float32. Raises FormatError if there is no such tensor, it has a different shape, or its
        type is not a type of weights."""
        if name not in self.entries:
            raise FormatError(f"{self.path}: the tensor {name!r} is missing; a GPT-2 of this size has it")
        dtype, found, start = self.entries[name]
        if found != shape:
            raise FormatError(f"{self.path}: {name} has the shape {found}; config.json implies {shape}")
        if dtype not in _NUMPY_TYPES:
            raise FormatError(f"{self.path}: {name} is {dtype}; weights must be {', '.join(_NUMPY_TYPES)}")
        self._stream.seek(self._data + start)
        raw = read_items(self._stream, _NUMPY_TYPES[dtype], prod(shape))
        if raw.size < prod(shape):
            raise FormatError(f"{self.path}: the file ended inside {name}: it was truncated while being read")
        return (from_bfloat16(raw) if dtype == "BF16" else raw.astype("<f4", copy=False)).reshape(shape)


def _read_header(stream: BinaryIO, path: str) -> tuple[int, dict[str, Entry]]:
    size = os.fstat(stream.fileno()).st_size
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
        raise FormatError(f"{path}: not a safetensors file: it has {size} bytes, but its header would have {length}")
    try:
        header = json.loads(stream.read(length))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not a safetensors file: its header is not JSON ({error})", 8) from None
    if not isinstance(header, dict):
        raise FormatError(f"{path}: not a safetensors file: its header is not a JSON object", 8)
    header.pop(_METADATA, None)
    data = 8 + length
    return data, {name: _entry(path, name, value, size - data) for name, value in header.items()}


def _entry(path: str, name: str, value: Any, data_bytes: int) -> Entry:
    fields = value if isinstance(value, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if isinstance(dtype, str) and _are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2:
        start, end = offsets
        item = _ITEM_BYTES.get(dtype)
        if start <= end <= data_bytes and (item is None or end - start == prod(shape) * item):
            return dtype, tuple(shape), start
    raise FormatError(
        f"{path}: the header's entry for {name!r} is damaged, or the {data_bytes} bytes after the header are", 8
    )


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    """Returns whether this is a list of sizes that `prod` can multiply quickly. A million sizes would take minutes."""
    return isinstance(value, list) and len(value) <= _MAX_DIMENSIONS and all(type(i) is int and i >= 0 for i in value)


# ----------------------------------------------------------------------------------------------------
# To GGUF files of a GPT-2, for llama.cpp, with the vocabulary of the tokenizer
#
# GGUF stores matrices as llm.c does, (out, in), and every layer has its own tensors. wte has V rows, not Vp:
# one per token. It is also the output layer. Of a bfloat16 checkpoint, the matrices stay bfloat16. Vectors and wpe
# become float32, as llama.cpp requires. Sources: llama.cpp, conversion/gpt2.py, conversion/base.py (prepare_tensors),
# src/models/gpt2.cpp.


# llm.c's name -> llama.cpp's name.
_IN_GGUF = {"wte": "token_embd.weight", "wpe": "position_embd.weight",
            "lnfw": "output_norm.weight", "lnfb": "output_norm.bias"}  # fmt: skip
_IN_GGUF_LAYER = {"ln1": "attn_norm", "qkv": "attn_qkv", "attproj": "attn_output",
                  "ln2": "ffn_norm", "fc": "ffn_up", "fcproj": "ffn_down"}  # fmt: skip


def _item_bytes(tensor: StoredTensor, dtype: str) -> int:
    """Returns the size of a weight of the file, for a checkpoint of this type."""
    return 2 if dtype == "bf16" and len(tensor.shape) > 1 and tensor.source != "wpe" else 4


def checkpoint_to_gguf(source: _binding.PathLike, tokenizer: Tokenizer, out: _binding.PathLike) -> GPT2Config:
    """Writes a GGUF file that llama.cpp runs, atomically. One tensor is in memory at a time.

    Args:
        source: an llm.c checkpoint.
        tokenizer: the one it was trained with.
        out: the file, usually *.gguf.

    Returns:
        The shape of the model.

    Raises:
        ArgumentError: the tokenizer and the model differ in their number of tokens, or `out` is `source`. FileError,
            FormatError: `source` cannot be read. UnsupportedError: llama.cpp would not give the tokenizer's ids. The
            message says why. MissingExtraError: gguf is not installed.
    """
    check_paths({"out": [_binding.path_text(out)]}, {"the model": [_binding.path_text(source)]})
    with Checkpoint(source, warns=True) as model:
        config = model.config
        model.check_vocab_size(tokenizer.vocab_size)
        writer = gguf.new_writer(any_format.held(tokenizer.model, "gguf"))
        from gguf import GGMLQuantizationType, LlamaFileType

        writer.add_context_length(config.max_seq_len)
        writer.add_embedding_length(config.channels)
        writer.add_block_count(config.num_layers)
        writer.add_feed_forward_length(4 * config.channels)
        writer.add_head_count(config.num_heads)
        writer.add_layer_norm_eps(1e-5)
        writer.add_file_type(LlamaFileType.MOSTLY_BF16 if model.dtype == "bf16" else LlamaFileType.ALL_F32)
        tensors = list(config.parts(_IN_GGUF, "blk.{}.", _IN_GGUF_LAYER))
        for tensor in tensors:
            size = _item_bytes(tensor, model.dtype)
            kind = GGMLQuantizationType.F32 if size == 4 else GGMLQuantizationType.BF16
            writer.add_tensor_info(tensor.name, tensor.shape, None, prod(tensor.shape) * size, kind)
        with _binding.Output(out) as output:
            output.write(gguf.header(writer))
            for tensor in tensors:
                rows = model.raw_rows(tensor.source, tensor.start, tensor.stop)
                data = rows if _item_bytes(tensor, model.dtype) == rows.itemsize else from_file_type(rows, model.dtype)
                output.write(data)
                output.write(gguf.padding(data.nbytes))
        return config
