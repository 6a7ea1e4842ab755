"""Texts and token files for PyTorch: datasets of windows, and a DataLoader that resumes.

    loader = create_dataloader("novel.txt", tok, batch_size=8, sequence_length=256, stride=256)
    for inputs, targets in loader:     # int64, shape (batch_size, sequence_length) each
        ...

PyTorch is optional (pip install 'pybpe[torch]'): this module can be imported without it.
"""

from __future__ import annotations

import glob
import inspect
import multiprocessing
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from .._lazy import Array, numpy
from ..arguments import instance, is_url, param, shown, whole_number, without_secrets
from ..errors import ArgumentError, FileMissingError, MissingExtraError
from ..reading.files import input_files, open_text
from ..reading.input_file import InputFile, refusal
from ..tokenizer import Tokenizer
from ..tokens.manifest import describes_tokens
from ..tokens.token_files import Paths
from .mixture import Mixture, MixtureSampler, folder_paths, open_sources
from .sampling import ResumableSampler
from .windows import PackedSequences

_LIKE_A_NAME = re.compile(r"(?=\S{1,255}$)(?:[\w~.*-]*/\S*|\S+\.[A-Za-z]\w{0,5}(?:\.(?:gz|bz2|xz|zst))?)")
_LONGEST_PATTERN = 250  # characters; a longer string is text, even with stars and question marks


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("PyTorch is not installed: pip install 'pybpe[torch]'") from None
    return torch


def torch_class(name: str) -> Any:
    """Returns a class of torch.utils.data, since PyTorch and frameworks check for its subclasses; without PyTorch,
    `object`."""
    try:
        return getattr(_torch().utils.data, name)
    except MissingExtraError:
        return object


class Samples(Sequence[tuple[Any, Any]]):
    """The samples of a batch: item i is (inputs, targets) of sample i. `both` is an int64 tensor of shape (2, samples,
    sequence_length)."""

    def __init__(self, both: Any) -> None:
        self.both = both

    def __len__(self) -> int:
        return len(self.both[0])

    def __getitem__(self, index: Any) -> Any:
        return self.both[0, index], self.both[1, index]


def collate(samples: Sequence[Any]) -> Any:
    """Returns the inputs and the targets of a batch, without another copy. The collate_fn of `create_dataloader`. One
    tensor moves between processes faster than two."""
    if isinstance(samples, Samples):
        return samples.both
    from torch.utils.data import default_collate

    return default_collate(list(samples))


class WindowDataset:
    """The windows of several sources by index, as (inputs, targets): first the first source's, and so on. All have the
    same length. The base of the datasets."""

    def __init__(self, parts: Sequence[PackedSequences]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def _ids(self, index: int) -> Array:
        if not -len(self) <= index < len(self):
            raise IndexError(f"window {index} is out of range: there are {len(self)}")
        index += len(self) if index < 0 else 0
        part = bisect_right(self._starts, index) - 1
        return self._parts[part].ids(index - self._starts[part])

    def batch(self, indices: Sequence[int]) -> Array:
        """Returns the inputs and the targets of some windows: int64, shape (2, indices, length)."""
        both = numpy.empty((2, len(indices), self._parts[0].sequence_length), dtype=numpy.int64)
        if len(indices):
            ids = numpy.concatenate(list(map(self._ids, indices))).reshape(len(indices), -1)
            both[0], both[1] = ids[:, :-1], ids[:, 1:]
        return both

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Inputs and targets, each an int64 tensor of shape (sequence_length,)."""
        import torch

        inputs, targets = torch.from_numpy(self.batch([index]))
        return inputs[0], targets[0]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Any, Any]]:
        """The samples of a batch: PyTorch's DataLoader calls this."""
        if type(self).__getitem__ is not WindowDataset.__getitem__:  # a user's class returns something else
            return [self[index] for index in indices]
        import torch

        return Samples(torch.from_numpy(self.batch(indices)))


class TokenDataset(WindowDataset):
    """Sliding windows over a text or over token files, as (inputs, targets), for PyTorch's DataLoader.

    Window i holds the tokens i * stride .. i * stride + sequence_length; its targets are shifted by one token. Only
    full windows count: range(0, len(ids) - sequence_length, stride), as tutorials write it.

    Args:
        path_or_text: the name of a file if there is one of that name, a glob pattern that matches files, a list
            of names, an array of ids; otherwise the text itself, unless it looks like a file name.
            Files named *.bin and *.npy hold tokens (see TokenStream); others hold text, which
            is encoded in memory, each file as one document, with <|endoftext|> between them. For more text than
            fits in memory, use `pybpe.binarize` first. A folder that `binarize`, `prepare`, `mix` or `pack` wrote means
            the token files of its train split.
        tokenizer: encodes the text. It may be None for token files; if given, it must be the one that the manifest next
            to the files states, and their first million ids must be in its vocabulary.
        sequence_length: tokens per window.
        stride: tokens between the starts of two windows; None means sequence_length.
        dtype: the dtype of token files without a header: see TokenStream.

    Raises:
        MissingExtraError: PyTorch is not installed.
        ArgumentError: there are too few tokens for one window, or another tokenizer made the tokens.
        FileError, FormatError: see TokenStream.
    """

    def __init__(
        self,
        path_or_text: Paths | bytes | numpy.ndarray[Any, Any],
        tokenizer: Tokenizer | None,
        sequence_length: int,
        stride: int | None = None,
        *,
        dtype: str | None = None,
    ) -> None:
        _torch()
        tokens = tokens_of(path_or_text, tokenizer)
        self.packed = PackedSequences(tokens, sequence_length, stride, dtype=dtype)
        if tokenizer is not None:
            self.packed.stream.check_tokenizer(tokenizer)
        if not len(self.packed):
            raise ArgumentError(
                f"{len(self.packed.stream)} tokens are too few for one window, which needs {sequence_length + 1}"
            )
        super().__init__([self.packed])

    def sampler(self, **options: Any) -> ResumableSampler:
        """Returns a sampler of the windows, whose states belong to these tokens and windows; options as in
        ResumableSampler."""
        packed = self.packed
        data = {"windows": [packed.sequence_length, packed.stride], "tokens": packed.stream.fingerprint()}
        return ResumableSampler(len(self), data=data, **options)


class MixtureDataset(WindowDataset):
    """The windows of all sources of a mixture, as (inputs, targets): first the first source's by
    name, and so on.

    Args:
        mixture: the sources.
        tokenizer: None, or the tokenizer that made the tokens, which is checked.
        sequence_length: tokens per window. Windows do not overlap; of folders that `pack` wrote, they are the rows.

    Raises:
        MissingExtraError: PyTorch is not installed. Otherwise see Mixture and PackedSequences.
    """

    def __init__(self, mixture: Mixture, tokenizer: Tokenizer | None, sequence_length: int) -> None:
        _torch()
        self._mixture, self._opened = mixture, open_sources(mixture, sequence_length, tokenizer)
        super().__init__(list(self._opened.values()))

    def sampler(self, **options: Any) -> MixtureSampler:
        """Returns a sampler of the mixture; options as in ResumableSampler."""
        return self._mixture.sampler(self._opened, **options)


class TokenDataLoader(torch_class("DataLoader")):  # type: ignore[misc]
    """A DataLoader whose order comes from a seed, and which resumes at any batch.

    Each iteration is one epoch; the next iteration is the next epoch, in a different order. An iteration that is left
    early starts over where it began: at the start of the epoch, or at the place of a loaded state. Save `state_dict()`
    with a model to resume with the batch after the last one that the loop received, whatever worker processes had read
    ahead.

    Create one with `create_dataloader`.
    """

    sampler: ResumableSampler

    def __iter__(self) -> Iterator[Any]:
        self.sampler.start_over()
        for inputs, targets in super().__iter__():
            self.sampler.consume(len(inputs))
            yield inputs, targets
        self.sampler.set_epoch(self.sampler.epoch + 1)

    @property
    def epoch(self) -> int:
        """The epoch, from 0, that is in progress or comes next."""
        return self.sampler.epoch

    def state_dict(self) -> dict[str, Any]:
        """See ResumableSampler.state_dict. Every process has the same state."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See ResumableSampler.load_state_dict."""
        self.sampler.load_state_dict(state)


def create_dataloader(
    path_or_text: Paths | bytes | numpy.ndarray[Any, Any] | Mixture,
    tokenizer: Tokenizer | None,
    batch_size: int = 4,
    sequence_length: int = 256,
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
    """A DataLoader of (inputs, targets), int64 tensors of shape (batch_size, sequence_length) each.

    Args:
        path_or_text, tokenizer, sequence_length, stride: see TokenDataset. A Mixture of several sources, whose windows
            do not overlap, needs stride=None; there, `tokenizer` is only checked, and may be None.
        batch_size: windows per batch and process.
        shuffle: shuffle anew each epoch, by `seed`. Without it, the sources of a mixture follow each other.
        drop_last: drop the last batch if it is not full.
        num_workers: processes that read ahead. 0 reads in this process, which is much faster: only the tokens of a
            batch are read, so there is little to read ahead, and every worker's batch is copied between processes.
            Workers are started by "forkserver" (on Windows by "spawn"), never by copying a process that may have
            threads, and stay for all epochs; `multiprocessing_context` and `persistent_workers` change that. As always
            in Python, a script must then start its work under `if __name__ == "__main__":`.
        seed: the random seed for the order, which is the same in all processes and all versions of all packages, and
            does not depend on the number of processes and workers.
        rank, num_replicas: this process's number, and the number of processes. None asks torch.distributed; without it,
            there is one process. Pass both, or neither.
        options: other arguments of torch.utils.data.DataLoader, such as pin_memory.

    Raises:
        ArgumentError: there is not one full batch; a mixture has a stride; an option is not one of DataLoader, or one
            that this function sets; only one of rank and num_replicas is given. Otherwise as TokenDataset and Mixture.
    """
    _check_options(options)
    batch_size, num_workers = whole_number("batch_size", batch_size, 1), whole_number("num_workers", num_workers)
    if rank is None and num_replicas is None:
        rank, num_replicas = this_process()
    order: dict[str, Any] = {
        "shuffle": shuffle,
        "drop_last": drop_last,
        "seed": seed,
        "rank": rank,
        "num_replicas": num_replicas,
    }
    dataset: TokenDataset | MixtureDataset
    if isinstance(path_or_text, Mixture):
        if stride not in (None, sequence_length):
            raise ArgumentError(f"the windows of a mixture do not overlap: pass {param(stride=None)}, not {stride}")
        dataset = MixtureDataset(path_or_text, tokenizer, sequence_length)
    else:
        dataset = TokenDataset(path_or_text, tokenizer, sequence_length, stride)
    sampler = dataset.sampler(**order)
    if num_workers:  # fork would copy locks that other threads hold, and Python warns
        safe = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        options = {"multiprocessing_context": safe, "persistent_workers": True, **options}
    options = {"collate_fn": collate, **options}
    loader = TokenDataLoader(
        dataset, batch_size=batch_size, sampler=sampler, drop_last=drop_last, num_workers=num_workers, **options
    )
    if not len(loader):
        raise ArgumentError(
            f"{sampler.samples} windows are too few for one batch of {batch_size} for each of {sampler.num_replicas}"
            f" processes: use a smaller {param('batch_size')} or {param('stride')}, or {param(drop_last=False)}"
        )
    return loader


def _check_options(options: Mapping[str, Any]) -> None:
    known = set(inspect.signature(_torch().utils.data.DataLoader).parameters) - {"dataset", "sampler", "batch_sampler"}
    for name, value in options.items():
        if name not in known:
            own = ", ".join(list(inspect.signature(create_dataloader).parameters)[:-1])
            raise ArgumentError(
                f"create_dataloader has no argument {param(**{name: value})}: it takes {own}, and the arguments of"
                " PyTorch's DataLoader except dataset, sampler and batch_sampler, which it makes"
            )


def this_process() -> tuple[int, int]:
    """Returns the number of this process, and how many there are, as torch.distributed says."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


# ----------------------------------------------------------------------------------------------------
# What create_dataloader accepts as one source: texts, which are encoded in memory, files of either, and ids


def tokens_of(source: Any, tokenizer: Tokenizer | None) -> Any:
    """Returns an argument for TokenStream: paths of token files, or an array of ids."""
    if hasattr(source, "dtype"):
        return source
    if isinstance(source, (str, bytes)) and not _names_files(source):
        if isinstance(source, str) and _LIKE_A_NAME.fullmatch(source):
            raise FileMissingError(
                f"{shown(source)}: there is no such file; to pass a text that looks like this, encode it first"
            )
        return _need(tokenizer).encode_to_numpy(source)
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) and describes_tokens(os.fspath(source)):
        return folder_paths(os.fspath(source))
    paths = input_files(source)
    are_tokens = {without_secrets(path).endswith((".bin", ".npy")) for path in paths}
    if len(are_tokens) > 1:
        raise ArgumentError("some files hold tokens (*.bin, *.npy) and others text: pass files of one kind")
    return source if True in are_tokens else _encoded(paths, _need(tokenizer))


def _names_files(source: str | bytes) -> bool:
    """Returns whether a string is a file's name, or a glob pattern that matches a file, and not text."""
    if isinstance(source, bytes):
        return False
    if os.path.exists(source) or (is_url(source) and not re.search(r"\s", source)):
        return True
    return len(source) <= _LONGEST_PATTERN and "\0" not in source and bool(glob.glob(source, recursive=True))


def _need(tokenizer: Tokenizer | None) -> Tokenizer:
    if tokenizer is None:
        raise ArgumentError("a text needs a tokenizer; only token files (*.bin, *.npy) do not need one")
    instance("tokenizer", tokenizer, Tokenizer, "a Tokenizer or None")
    return tokenizer


def _encoded(paths: list[str], tokenizer: Tokenizer) -> numpy.ndarray[Any, Any]:
    parts: list[numpy.ndarray[Any, Any]] = []
    for path in paths:
        name = without_secrets(path)
        file, what = InputFile.look(path)
        if what is not None and what.is_own:
            raise refusal(name, what)
        if file.form == "jsonl":
            raise ArgumentError(f"{name}: JSON lines are not supported here: use DocumentRows, or pybpe.binarize")
        if parts and tokenizer.eot_token is not None:
            parts.append(numpy.array([tokenizer.eot_token], dtype=tokenizer.model.dtype))
        parts.append(tokenizer.encode_to_numpy(_read(path)))
    return numpy.concatenate(parts)


def _read(path: str) -> bytes:
    data = bytearray()
    block = memoryview(bytearray(1 << 20))
    with open_text(path) as stream:
        while got := stream.readinto(block):  # type: ignore[attr-defined]
            data += block[:got]
    return bytes(data)
