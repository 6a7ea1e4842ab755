"""encode_files: a corpus as one array in a .npy file."""

from __future__ import annotations

import os
from concurrent.futures import Executor

from .. import _binding
from ..errors import ArgumentError
from ..folders import give_name, make_folder
from ..pretokenize import Inputs
from ..tokenizer import Tokenizer
from .binarization import binarize
from .journal import FOLDER


def encode_files(
    tok: Tokenizer,
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    eot: str = "none",
    dtype: str = "auto",
    documents: str = "auto",
    text_key: str = "text",
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> int:
    """Encodes a corpus into one array, in parallel, in memory that does not grow with it.

    Tokens go straight into the file; there is no other copy of them. An interrupted run goes on where it was when
    the same is called again.

    Args:
        out: a .npy file. `numpy.load(out, mmap_mode="r")` opens it: shape (tokens,), uint16 or uint32.
        eot: where <|endoftext|> goes: "none", "prepend" (before each document) or "append".
        The other arguments are those of `binarize`.

    Returns:
        How many tokens it holds.

    Raises:
        What `binarize` raises.
    """
    path = os.fsdecode(out)
    if not path.endswith(".npy"):
        raise ArgumentError(f"{path}: must end in .npy")
    folder = make_folder(f"{path}.unfinished")
    manifest = binarize(
        tok,
        inputs,
        folder,
        format="npy",
        splits=(1,),
        eot=eot,
        dtype=dtype,
        shard_tokens=1 << 62,
        documents=documents,
        text_key=text_key,
        name="array",
        workers=workers,
        executor=executor,
        progress=progress,
    )
    (record,) = manifest.shards["train"]
    give_name(os.path.join(folder, record.file), path)
    for name in os.listdir(folder):
        if name != FOLDER:
            os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    return record.tokens
