"""Texts and token files for PyTorch: a dataset of sliding windows, and a DataLoader that resumes.

    loader = create_dataloader("novel.txt", tok, batch_size=8, max_length=256, stride=256)
    for inputs, targets in loader:     # int64, shape (batch_size, max_length) each
        ...

PyTorch is optional (pip install 'pybpe[torch]'): this module can be imported without it.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..arguments import shown
from ..errors import ArgumentError, FileMissingError, MissingExtraError
from ..reading.files import input_files, open_text
from ..reading.records import has_records
from ..tokenizer import Tokenizer
from .packing import PackedSequences
from .sampling import ResumableSampler
from .token_files import Paths, TokenStream

if TYPE_CHECKING:
    import numpy

_CHECKED_TOKENS = 1 << 20  # the number of ids of a file that are checked against the vocabulary
_LIKE_A_NAME = re.compile(r"(?=\S{1,255}$)(?:[\w~.*-]*/\S*|\S+\.[A-Za-z]\w{0,5}(?:\.(?:gz|bz2|xz|zst))?)")
_LONGEST_PATTERN = 250  # characters; a longer string is text, even with stars and question marks


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("PyTorch is not installed: pip install 'pybpe[torch]'") from None
    return torch


def _loader_base() -> Any:
    """Returns DataLoader, since frameworks check for its subclasses. Without PyTorch, no loader is ever made."""
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        return object
    return DataLoader


class TokenDataset:
    """Sliding windows over a text or over token files, as (inputs, targets), for PyTorch's DataLoader.

    Window i holds the tokens i * stride .. i * stride + max_length; its targets are shifted by one token. Only
    full windows count: range(0, len(ids) - max_length, stride), as tutorials write it.

    Args:
        path_or_text: the name of a file if there is one of that name, a glob pattern that matches files, a list
            of names, an array of ids; otherwise the text itself, unless it looks like a file name.
            Files named *.bin and *.npy hold tokens and are memory-mapped (see TokenStream); others hold text, which
                is encoded in memory, each file as one document, with <|endoftext|> between them. For more text than
                fits in memory, use `pybpe.binarize` first.
        tokenizer: encodes the text. It may be None for token files; if given, their first million ids must be in its
            vocabulary.
        max_length: tokens per window.
        stride: tokens between the starts of two windows; None means max_length.
        dtype: the dtype of token files without a header: see TokenStream.

    Raises:
        MissingExtraError: PyTorch is not installed.
        ArgumentError: there are too few tokens for one window, or an id is not in the tokenizer.
        FileError, FormatError: see TokenStream.
    """

    def __init__(
        self,
        path_or_text: Paths | bytes | numpy.ndarray[Any, Any],
        tokenizer: Tokenizer | None,
        max_length: int,
        stride: int | None = None,
        *,
        dtype: str | None = None,
    ) -> None:
        _torch()
        tokens = _tokens(path_or_text, tokenizer)
        self.packed = PackedSequences(tokens, max_length, stride, dtype=dtype)
        if tokenizer is not None:
            _check_ids(self.packed.stream, tokenizer)
        if not len(self.packed):
            raise ArgumentError(
                f"{len(self.packed.stream)} tokens are too few for one window, which needs {max_length + 1}"
            )

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Inputs and targets, each an int64 tensor of shape (max_length,)."""
        import numpy
        import torch

        inputs, targets = self.packed[index]
        return torch.from_numpy(inputs.astype(numpy.int64)), torch.from_numpy(targets.astype(numpy.int64))


class TokenDataLoader(_loader_base()):  # type: ignore[misc]
    """A DataLoader whose order comes from a seed, and which resumes at any batch.

    Each iteration is one epoch; the next iteration is the next epoch, in a different order. An iteration that is left
    early starts over. Save `state_dict()` with a model to resume with the batch after the last one that the loop
    received, whatever worker processes had read ahead.

    Create one with `create_dataloader`.
    """

    sampler: ResumableSampler

    def __iter__(self) -> Iterator[Any]:
        for inputs, targets in super().__iter__():
            self.sampler.consume(len(inputs))
            yield inputs, targets
        self.sampler.set_epoch(self.sampler.epoch + 1)

    @property
    def epoch(self) -> int:
        """The epoch, from 0, that is in progress or comes next."""
        return self.sampler.epoch

    def state_dict(self) -> dict[str, int]:
        """See ResumableSampler.state_dict. Every process has the same state."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """See ResumableSampler.load_state_dict."""
        self.sampler.load_state_dict(state)


def create_dataloader(
    path_or_text: Paths | bytes | numpy.ndarray[Any, Any],
    tokenizer: Tokenizer | None,
    batch_size: int = 4,
    max_length: int = 256,
    stride: int | None = 128,
    shuffle: bool = True,
    drop_last: bool = True,
    num_workers: int = 0,
    *,
    seed: int = 0,
    rank: int | None = None,
    num_replicas: int | None = None,
    **options: Any,
) -> TokenDataLoader:
    """A DataLoader of (inputs, targets), int64 tensors of shape (batch_size, max_length).

    Args:
        path_or_text, tokenizer, max_length, stride: see TokenDataset.
        batch_size: windows per batch and process.
        shuffle: shuffle anew each epoch, by `seed`.
        drop_last: drop the last batch if it is not full.
        num_workers: processes that read ahead. 0 reads in this process, which is much faster: token files are
            memory-mapped, so there is little to read ahead, and every worker's batch is copied between processes.
        seed: the random seed for the order, which is the same in all processes and all versions of all packages.
        rank, num_replicas: this process's number, and the number of processes. None asks torch.distributed; without it,
            there is one process.
        options: other arguments of torch.utils.data.DataLoader, such as pin_memory.

    Raises:
        ArgumentError: there is not one full batch. Otherwise as TokenDataset.
    """
    dataset = TokenDataset(path_or_text, tokenizer, max_length, stride)
    if rank is None or num_replicas is None:
        rank, num_replicas = _this_process()
    sampler = ResumableSampler(
        len(dataset), shuffle=shuffle, drop_last=drop_last, seed=seed, rank=rank, num_replicas=num_replicas
    )
    loader = TokenDataLoader(
        dataset, batch_size=batch_size, sampler=sampler, drop_last=drop_last, num_workers=num_workers, **options
    )
    if not len(loader):
        raise ArgumentError(
            f"{len(dataset)} windows are too few for one batch of {batch_size} for each of {num_replicas} processes:"
            " use a smaller batch_size or stride, or drop_last=False"
        )
    return loader


def _this_process() -> tuple[int, int]:
    distributed = _torch().distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


# ----------------------------------------------------------------------------------------------------
# Sources of tokens


def _tokens(source: Any, tokenizer: Tokenizer | None) -> Any:
    """Returns an argument for TokenStream: paths of token files, or an array of ids."""
    if hasattr(source, "dtype"):
        return source
    if isinstance(source, (str, bytes)) and not _names_files(source):
        if isinstance(source, str) and _LIKE_A_NAME.fullmatch(source):
            raise FileMissingError(
                f"{shown(source)}: there is no such file; to pass a text that looks like this, encode it first"
            )
        return _need(tokenizer).encode_to_numpy(source)
    paths = input_files(source)
    are_tokens = {path.endswith((".bin", ".npy")) for path in paths}
    if len(are_tokens) > 1:
        raise ArgumentError("some files hold tokens (*.bin, *.npy) and others text: pass files of one kind")
    return paths if True in are_tokens else _encoded(paths, _need(tokenizer))


def _names_files(source: str | bytes) -> bool:
    """Returns whether a string is a file's name, or a glob pattern that matches a file, and not text."""
    if isinstance(source, bytes):
        return False
    if os.path.exists(source):
        return True
    return len(source) <= _LONGEST_PATTERN and "\0" not in source and bool(glob.glob(source, recursive=True))


def _need(tokenizer: Tokenizer | None) -> Tokenizer:
    if tokenizer is None:
        raise ArgumentError("a text needs a tokenizer; only token files (*.bin, *.npy) do not need one")
    return tokenizer


def _encoded(paths: list[str], tokenizer: Tokenizer) -> numpy.ndarray[Any, Any]:
    import numpy

    parts: list[numpy.ndarray[Any, Any]] = []
    for path in paths:
        if has_records(path):
            raise ArgumentError(
                f"{path}: JSON lines are not supported here; convert them to token files with pybpe.binarize"
            )
        if parts and tokenizer.eot_token is not None:
            parts.append(numpy.array([tokenizer.eot_token], dtype=tokenizer.dtype))
        parts.append(tokenizer.encode_to_numpy(_read(path)))
    return numpy.concatenate(parts)


def _read(path: str) -> bytes:
    data = bytearray()
    block = memoryview(bytearray(1 << 20))
    with open_text(path) as stream:
        while got := stream.readinto(block):  # type: ignore[attr-defined]
            data += block[:got]
    return bytes(data)


def _check_ids(stream: TokenStream, tokenizer: Tokenizer) -> None:
    ids = stream.slice(0, min(len(stream), _CHECKED_TOKENS))
    too_large = ids >= tokenizer.n_vocab
    if too_large.any():
        place = int(too_large.argmax())
        raise ArgumentError(
            f"token {place} has the id {ids[place]}, but the tokenizer has only {tokenizer.n_vocab}: another"
            " tokenizer wrote this file, or it holds another dtype"
        )
