"""The files for nanochat and autoresearch: a folder with tokenizer.pkl, a pickled tiktoken.Encoding, and
token_bytes.pt, a tensor of PyTorch with the number of bytes of every id, for bits per byte.

Sources: nanochat/tokenizer.py and scripts/tok_train.py of karpathy/nanochat; prepare.py of karpathy/autoresearch.
"""

from __future__ import annotations

import io
import os

from .. import _binding
from .._lazy import numpy, pickle
from ..errors import ArgumentError, MissingExtraError, UnsupportedError
from ..model import Model
from . import tiktoken

# The first one begins every document.
SPECIAL_TOKENS = (
    "<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>", "<|python_start|>",
    "<|python_end|>", "<|output_start|>", "<|output_end|>",
)  # fmt: skip
_AUTORESEARCH = ("<|reserved_0|>", "<|reserved_1|>", "<|reserved_2|>", "<|reserved_3|>")


def write(model: Model, folder: _binding.PathLike) -> None:
    """Writes the folder. Raises UnsupportedError if nanochat needs other special tokens, or begins documents with
    another one than this tokenizer, or as in `tiktoken.to_encoding`."""
    name = _binding.path_text(folder)
    begin = _beginning(model)
    if model.eot not in (None, begin):
        raise UnsupportedError(
            f"nanochat begins documents with {begin}, and this tokenizer ends them with {model.eot!r:.80}"
        )
    encoding, lengths = pickle.dumps(tiktoken.to_encoding(model, "rustbpe")), _lengths(model, ".pt")
    _binding.write_file(os.path.join(name, "token_bytes.pt"), lengths)
    _binding.write_file(os.path.join(name, "tokenizer.pkl"), encoding)


def _beginning(model: Model) -> str:
    """Returns the special token that begins a document in nanochat, or in autoresearch."""
    for needed in (SPECIAL_TOKENS, _AUTORESEARCH):
        if model.specials.keys() >= set(needed):
            return needed[0]
    lacking = [text for text in SPECIAL_TOKENS if text not in model.specials]
    raise UnsupportedError(
        f"nanochat needs the special tokens {' '.join(lacking)}, which this tokenizer lacks (and autoresearch needs"
        f" {' '.join(_AUTORESEARCH)}): train with them"
    )


def write_lengths(model: Model, path: _binding.PathLike) -> None:
    """Writes how many bytes of text every id stands for, as an array (.npy) or as a tensor of PyTorch (.pt)."""
    ending = os.path.splitext(_binding.path_text(path))[1]
    if ending not in (".npy", ".pt"):
        raise ArgumentError(f"{os.fsdecode(path)}: name a file that ends in .npy, or in .pt for PyTorch")
    _binding.write_file(path, _lengths(model, ending))


def _lengths(model: Model, ending: str) -> memoryview:
    buffer = io.BytesIO()
    if ending == ".npy":
        numpy.save(buffer, model.byte_lengths())
        return buffer.getbuffer()
    try:
        import torch
    except ImportError:
        raise MissingExtraError("a .pt file needs PyTorch: pip install 'pybpe[torch]'; .npy does not") from None
    torch.save(torch.from_numpy(model.byte_lengths()), buffer)
    return buffer.getbuffer()
