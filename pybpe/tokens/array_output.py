"""encode_files: encodes a corpus as one array, in a .npy file or a headerless file of ids."""

from __future__ import annotations

import os
from concurrent.futures import Executor

from .. import _binding
from ..arguments import instance
from ..errors import ArgumentError
from ..reading.options import ReadOptions
from ..reading.paths import Inputs, path_list
from ..reading.splits import SplitOptions
from ..reading.staging import stage
from ..support.locking import FOLDER, only_writer
from ..support.output_files import give_name, output_file, unfinished_folder
from ..support.run_options import RunOptions
from ..tokenizer import Tokenizer
from .binarization import Job, write_dataset
from .eot import KEEP
from .options import ArrayOptions, DatasetOptions


def encode_files(
    tok: Tokenizer,
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    eot: str = KEEP,
    dtype: str = "auto",
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    task_timeout: float | None = None,
) -> int:
    """Encodes a corpus into one array, in parallel. Memory use does not grow with the corpus.

    Tokens are written straight to the file; there is no other copy of them. An interrupted run resumes when called
    again with the same arguments.

    Args:
        out: a .npy file, which `numpy.load(out, mmap_mode="r")` opens: shape (tokens,), uint16 or uint32; or a .bin
            file, which has only the ids, little-endian: `numpy.fromfile(out, tok.model.dtype)` reads it.
        eot: "keep": the ids of a text file are `tok.encode` of its text, special tokens included, and `tok.decode`
            gives the text back; records are concatenated. The other values set what goes between documents, whatever
            the input had there: "none" for nothing, or the tokenizer's end of text, "prepend" (before each) or
            "append" (after each).
        The other arguments are those of `binarize`.

    Returns:
        The number of tokens written.

    Raises:
        What `binarize` raises.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    path = _binding.path_text(out)
    if not path.endswith((".npy", ".bin")):
        raise ArgumentError(f"{path}: must end in .npy, or in .bin for a headerless file of ids")
    if eot == KEEP and documents in ("blank", "line"):
        raise ArgumentError(f"eot='keep' keeps texts whole: with documents={documents!r} pass 'prepend' or 'append'")
    output = ArrayOptions("npy" if path.endswith(".npy") else "raw", eot, dtype, 1 << 62, 0)
    options = DatasetOptions(ReadOptions(text_key, encoding, documents), SplitOptions((1,)), output).for_tokenizer(tok)
    run = RunOptions(workers, executor, progress=progress, task_timeout=task_timeout)
    given = path_list(inputs)
    path = output_file(path)
    folder = unfinished_folder(path)
    with only_writer(folder, temporary=True):
        staged = stage(given, folder, options.read, [path])
        manifest = write_dataset(Job(tok, options, staged, folder, "array"), run, resume=True)
        (record,) = manifest.shards["train"]
        give_name(os.path.join(folder, record.file), path)
        for name in os.listdir(folder):
            if name != FOLDER:
                os.unlink(os.path.join(folder, name))
    return record.tokens
