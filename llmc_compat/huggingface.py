"""Converts llm.c checkpoints to Hugging Face folders for `transformers`, and back.

The differences:

- transformers' GPT-2 multiplies from the left (its Conv1D stores weights as (in, out)), llm.c from the right, so the
  four matrices of a layer are transposed.
- llm.c stores the tensors of all layers together; transformers stores them one by one.
- wte has V rows, not Vp. llm.c's softmax is over V; in transformers the zero rows of the padding would be logits of
  0, take part in the softmax, and be sampled as ids that no tokenizer has.
- The output layer is wte (tied), so it is not stored twice.

Sources: llm.c, train_gpt2.py (write_tensors) and dev/eval/export_hf.py; transformers, models/gpt2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.errors import ArgumentError, FormatError
from pybpe.formats import export, pretrained
from pybpe.reading.streams import read_file
from pybpe.support.call_paths import check_paths
from pybpe.tokens.manifest import FILE_NAMES

from .checkpoint import Checkpoint, check_dtype, tell_of_nan, to_file_type, write_blocks
from .gpt2_config import GPT2Config, StoredTensor, padded_rows
from .safetensors_file import SafetensorsFile, write_safetensors

WEIGHTS_NAME = "model.safetensors"
CONFIG_NAME = "config.json"
# The names under which programs look for a model in a folder, and of what describes token files.
MODEL_FILES = (WEIGHTS_NAME, f"{WEIGHTS_NAME}.index.json", "pytorch_model.bin", CONFIG_NAME, *FILE_NAMES)
_DTYPES = {"fp32": ("F32", "float32"), "bf16": ("BF16", "bfloat16")}
_PREFIX = "transformer."
_ROLES = ("bos_token", "eos_token", "pad_token")

# llm.c's name -> transformers' name; and the matrices that are transposed there.
_OF_THE_MODEL = {"wte": "wte.weight", "wpe": "wpe.weight", "lnfw": "ln_f.weight", "lnfb": "ln_f.bias"}
_OF_A_LAYER = {"ln1": "ln_1", "qkv": "attn.c_attn", "attproj": "attn.c_proj",
               "ln2": "ln_2", "fc": "mlp.c_fc", "fcproj": "mlp.c_proj"}  # fmt: skip
_TRANSPOSED = frozenset(("qkvw", "attprojw", "fcw", "fcprojw"))

# What llm.c computes, in config.json's terms. Any other value is a different model.
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


# ----------------------------------------------------------------------------------------------------
# To Hugging Face


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
        held = export.held(tokenizer.model, "pretrained")
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


# ----------------------------------------------------------------------------------------------------
# From Hugging Face


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
