"""Text and token files for PyTorch: datasets of windows, and a DataLoader that resumes.

    loader = create_dataloader("novel.txt", tok, batch_size=8, sequence_length=256)
    for inputs, targets in loader:     # int64, shape (batch_size, sequence_length) each
        ...

PyTorch is optional (pip install 'pybpe[torch]'): this module can be imported without it.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from .._lazy import Array, numpy, pickle
from ..arguments import instance, is_url, param, shown, whole_number, without_secrets
from ..errors import ArgumentError, FileMissingError, MissingExtraError
from ..reading.files import input_files, open_text
from ..reading.input_file import InputFile, refusal
from ..reading.inputs import path_list
from ..support.call_paths import is_glob
from ..tokenizer import Tokenizer
from ..tokens.token_files import Paths, describes_tokens
from .mixture import Mixture, MixtureSampler, folder_paths, open_sources
from .row_files import PackedRows, packed_rows
from .sampling import ResumableSampler
from .windows import PackedSequences

# Other arguments of PyTorch's DataLoader: the ones that create_dataloader takes, and why not the others.
HOOKS = (
    *("collate_fn", "worker_init_fn", "pin_memory", "pin_memory_device"),
    *("timeout", "prefetch_factor", "persistent_workers", "multiprocessing_context"),
)
FUNCTIONS = {"collate_fn", "worker_init_fn"}
_BY_SEED = "the order comes from shuffle and seed, so that training can resume"
REFUSED = {
    "dataset": "it makes the dataset of its source",
    "sampler": _BY_SEED,
    "batch_sampler": _BY_SEED,
    "generator": f"{_BY_SEED}; torch.manual_seed sets the random numbers of workers",
    "in_order": "a state counts batches in their order",
}


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("PyTorch is not installed: pip install 'pybpe[torch]'") from None
    return torch


def torch_class(name: str) -> Any:
    """Returns a class of torch.utils.data, because PyTorch and frameworks check for its subclasses. Without PyTorch,
    returns `object`."""
    try:
        return getattr(_torch().utils.data, name)
    except MissingExtraError:
        return object


class Samples(Sequence[tuple[Any, ...]]):
    """The samples of a batch, without a tensor per sample: item i is (inputs, targets) of sample i. `both` is an int64
    tensor of shape (2, samples, sequence_length), with columns more than 2."""

    def __init__(self, both: Any) -> None:
        self.both = both

    def __len__(self) -> int:
        return len(self.both[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return tuple(self.both[:, index])


def collate(samples: Samples) -> Any:
    """Returns the inputs and the targets of a batch as one tensor, which moves between processes faster than two. The
    collate_fn of `create_dataloader`."""
    return samples.both


class WindowDataset:
    """The windows of several sources by index, as (inputs, targets): first the first source's, and so on. All have the
    same length. The base of the datasets. `gives_samples`: whether a batch is Samples, and not a list. `columns` follow
    inputs and targets."""

    def __init__(self, parts: Sequence[PackedSequences | PackedRows], columns: Sequence[str] = ()) -> None:
        self._parts, self.gives_samples, self._columns = parts, False, tuple(columns)
        self._starts = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def _place(self, index: int) -> tuple[Any, int]:
        """Returns the source of a window, and its index there."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"window {index} is out of range: there are {len(self)}")
        index += len(self) if index < 0 else 0
        part = bisect_right(self._starts, index) - 1
        return self._parts[part], index - self._starts[part]

    def batch(self, indices: Sequence[int]) -> Array:
        """Returns the inputs, the targets and the columns of some windows: int64, shape (2 + columns, indices,
        length)."""
        both = numpy.empty((2 + len(self._columns), len(indices), self._parts[0].sequence_length), dtype=numpy.int64)
        places = list(map(self._place, indices))
        if places:
            ids = numpy.concatenate([part.ids(i) for part, i in places]).reshape(len(places), -1)
            both[0], both[1] = ids[:, :-1], ids[:, 1:]
        for values, name in zip(both[2:], self._columns):
            for row, (part, i) in zip(values, places):
                row[:] = part.more(name, i)
        return both

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Returns inputs, targets and columns, int64 tensors of shape (sequence_length,)."""
        import torch

        return tuple(each[0] for each in torch.from_numpy(self.batch([index])))

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Any, ...]]:
        """The samples of a batch: PyTorch's DataLoader calls this."""
        if type(self).__getitem__ is not WindowDataset.__getitem__:  # a user's class returns something else
            return [self[index] for index in indices]
        import torch

        both = torch.from_numpy(self.batch(indices))
        return Samples(both) if self.gives_samples else list(zip(*map(torch.unbind, both)))


class TokenDataset(WindowDataset):
    """Windows of token files, of files of text or of ids, as (inputs, targets), for PyTorch's DataLoader.

    Window i holds the tokens i * stride .. i * stride + sequence_length, and its targets are shifted by one token. Only
    full windows count: range(0, len(ids) - sequence_length, stride), as in tutorials.

    Args:
        source: a path, a glob pattern, a list of them, or an array of ids. For a text in memory, pass
            `tok.encode_to_numpy(text)`. Files named *.bin and *.npy hold tokens (see TokenStream). Others hold text,
            which is encoded in memory, one document per file, with <|endoftext|> between them. For more text than fits
            in memory, use `pybpe.binarize` first. A folder that `binarize`, `prepare`, `mix` or `pack` wrote means the
            token files of its train split.
        tokenizer: encodes files of text. It may be None for tokens. Otherwise it must be the one in the manifest next
            to the files, and their first million ids must be in its vocabulary.
        sequence_length: tokens per window.
        stride: tokens between the starts of two windows. None means sequence_length, so that windows do not overlap.
        dtype: the dtype of token files without a header: see TokenStream.
        columns: of a folder that `pack` wrote as npy, parquet or webdataset, what follows inputs and targets, as more
            tensors of the same shape: some of "document_ids", "position_ids" and "loss_mask". The mask is 1 for targets
            to learn from, and 0 for the last target of a row. Parquet is copied to temporary files first.

    Raises:
        MissingExtraError: PyTorch is not installed.
        ArgumentError: there are too few tokens for one window, or another tokenizer made the tokens.
        FileError, FormatError: see TokenStream.
    """

    def __init__(
        self,
        source: Paths | numpy.ndarray[Any, Any],
        tokenizer: Tokenizer | None,
        sequence_length: int,
        stride: int | None = None,
        *,
        dtype: str | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        _torch()
        rows = packed_rows(source, "train", sequence_length, columns)
        self.packed = rows or PackedSequences(tokens_of(source, tokenizer), sequence_length, stride, dtype=dtype)
        if rows is not None and stride not in (None, rows.stride):
            raise ArgumentError(f"rows do not overlap: pass {param(stride=None)}, not {stride}")
        if tokenizer is not None:
            self.packed.stream.check_tokenizer(tokenizer)
        if not len(self.packed):
            raise ArgumentError(
                f"{len(self.packed.stream)} tokens are too few for one window, which needs {sequence_length + 1}"
            )
        super().__init__([self.packed], columns)

    def sampler(self, **options: Any) -> ResumableSampler:
        """Returns a sampler of the windows, whose states belong to these tokens and windows. It has the options of
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
        sequence_length: tokens per window. Windows do not overlap. In folders that `pack` wrote, they are the rows.
        dtype: the dtype of token files without a header: see TokenStream.
        columns: as in TokenDataset, if all sources have them.

    Raises:
        MissingExtraError: PyTorch is not installed. Otherwise see Mixture and PackedSequences.
    """

    def __init__(
        self,
        mixture: Mixture,
        tokenizer: Tokenizer | None,
        sequence_length: int,
        *,
        dtype: str | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        _torch()
        self._mixture, self._opened = mixture, open_sources(mixture, sequence_length, tokenizer, dtype, columns)
        super().__init__(list(self._opened.values()), columns)

    def sampler(self, **options: Any) -> MixtureSampler:
        """Returns a sampler of the mixture; options as in ResumableSampler."""
        return self._mixture.sampler(self._opened, **options)


class TokenDataLoader(torch_class("DataLoader")):  # type: ignore[misc]
    """A DataLoader whose order comes from a seed, and which resumes at any batch.

    An iteration is one epoch. The next iteration is the next epoch, in a different order. An iteration that is left
    early starts over where it began: at the start of the epoch, or at the place of a loaded state. Save `state_dict()`
    with a model to resume with the batch after the last one that the loop received, whatever worker processes had read
    ahead.

    Create one with `create_dataloader`.
    """

    sampler: ResumableSampler
    _iterator: Any  # PyTorch's, if workers stay

    def __init__(self, dataset: WindowDataset, **options: Any) -> None:
        sampler = options.get("sampler")
        if not isinstance(sampler, ResumableSampler):
            raise ArgumentError(
                f"the sampler of create_dataloader, not {type(sampler).__name__}, shares the windows among processes:"
                " tell the framework not to replace it (Lightning: Trainer(use_distributed_sampler=False))"
            )
        super().__init__(dataset, **options)
        sampler.is_counted = True

    def __iter__(self) -> Iterator[Any]:
        iteration = self.sampler.start_over()
        if not all(worker.is_alive() for worker in getattr(self._iterator, "_workers", ())):
            self._iterator = None  # Ctrl-C ends workers, too, and PyTorch would wait for them
        try:
            for batch in super().__iter__():
                self.sampler.consume(self.batch_size, iteration)  # a batch with fewer is the last one of an epoch
                yield tuple(batch) if self.collate_fn is collate else batch
        except (Exception, KeyboardInterrupt):
            self._iterator = None  # as above, if one was killed
            raise
        self.sampler.consume(0, iteration)
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
    source: Paths | numpy.ndarray[Any, Any] | Mixture,
    tokenizer: Tokenizer | None,
    batch_size: int = 4,
    sequence_length: int = 256,
    stride: int | None = None,
    shuffle: bool = True,
    drop_last: bool = True,
    num_workers: int = 0,
    *,
    dtype: str | None = None,
    columns: Sequence[str] = (),
    seed: int = 0,
    rank: int | None = None,
    num_replicas: int | None = None,
    **options: Any,
) -> TokenDataLoader:
    """A DataLoader of (inputs, targets), two int64 tensors of shape (batch_size, sequence_length), and of `columns`.

    Args:
        source, tokenizer, sequence_length, stride, dtype, columns: see TokenDataset. The windows of a Mixture do not
            overlap. There, `tokenizer` is only checked, and may be None.
        batch_size: windows per batch and process.
        shuffle: shuffle anew every epoch, by `seed`. Without it, the sources of a mixture come one after another.
        drop_last: drop the last batch if it is not full. With False and several processes, some windows from the start
            of the order may come again at the end, one per process at most: all processes need the same number.
        num_workers: processes that read ahead. 0 reads in this process, which is much faster: only the tokens of a
            batch are read, so there is little to read ahead, and every worker's batch is copied between processes.
            Workers are started by "forkserver" (on Windows by "spawn"), never by copying a process that may have
            threads, and stay for all epochs. `multiprocessing_context` and `persistent_workers` change that. As always
            in Python, a script must then start its work under `if __name__ == "__main__":`.
        seed: the random seed for the order, which is the same in all processes and all versions of all packages, and
            does not depend on the number of processes and workers.
        rank, num_replicas: this process's number, and the number of processes. None asks torch.distributed. Without it,
            there is one process. Pass both, or neither.
        options: other arguments of torch.utils.data.DataLoader: collate_fn, worker_init_fn, pin_memory,
            pin_memory_device, timeout, prefetch_factor, persistent_workers and multiprocessing_context. A collate_fn
            gets a list of (inputs, targets), each of shape (sequence_length,). A batch is whatever it returns.

    Raises:
        ArgumentError: there is not one full batch, or a mixture has a stride, or an option is not one of these, or
            PyTorch refuses it, or only one of rank and num_replicas is given. Otherwise as TokenDataset and Mixture.
    """
    batch_size, num_workers = whole_number("batch_size", batch_size, 1), whole_number("num_workers", num_workers)
    options = _checked_options(options, num_workers)
    if rank is None and num_replicas is None:
        rank, num_replicas = this_process()
    dataset: TokenDataset | MixtureDataset
    if isinstance(source, Mixture):
        if stride not in (None, sequence_length):
            raise ArgumentError(f"the windows of a mixture do not overlap: pass {param(stride=None)}, not {stride}")
        dataset = MixtureDataset(source, tokenizer, sequence_length, dtype=dtype, columns=columns)
    else:
        dataset = TokenDataset(source, tokenizer, sequence_length, stride, dtype=dtype, columns=columns)
    dataset.gives_samples = options["collate_fn"] is collate
    sampler = dataset.sampler(shuffle=shuffle, drop_last=drop_last, seed=seed, rank=rank, num_replicas=num_replicas)
    options |= {"batch_size": batch_size, "num_workers": num_workers, "drop_last": drop_last}
    try:
        loader = TokenDataLoader(dataset, sampler=sampler, **options)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"PyTorch's DataLoader refuses these arguments: {error}") from None
    if num_workers and loader.multiprocessing_context.get_start_method() != "fork":
        _check_sendable(options)
    if not len(loader):
        raise ArgumentError(
            f"{sampler.samples} windows are too few for one batch of {batch_size} for each of {sampler.num_replicas}"
            f" processes: use a smaller {param('batch_size')} or {param('stride')}, or {param(drop_last=False)}"
        )
    return loader


def _checked_options(options: Mapping[str, Any], num_workers: int) -> dict[str, Any]:
    """Returns the arguments of DataLoader that a caller passes, and our defaults of others."""
    own = inspect.signature(_torch().utils.data.DataLoader).parameters
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in REFUSED:
            if name not in own or value is not own[name].default:  # PyTorch's own default asks for nothing
                raise ArgumentError(f"create_dataloader does not take {param(**{name: value})}: {REFUSED[name]}")
        elif name not in HOOKS:
            known = ", ".join([*list(inspect.signature(create_dataloader).parameters)[:-1], *HOOKS])
            raise ArgumentError(f"create_dataloader has no argument {param(**{name: value})}: it takes {known}")
        elif name in FUNCTIONS and value is not None and not callable(value):
            raise ArgumentError(f"{param(name)} must be a function, not {shown(value)}")
        elif value is not None:
            given[name] = value
    if not num_workers:
        if given.get("timeout"):
            raise ArgumentError(f"{param('timeout')} needs {param('num_workers')}: this process reads batches itself")
        return {"collate_fn": collate, **given}
    if "prefetch_factor" in given:
        given["prefetch_factor"] = whole_number("prefetch_factor", given["prefetch_factor"], 1)
    # fork would copy locks that other threads hold, and Python warns
    safe = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    return {"collate_fn": collate, "multiprocessing_context": safe, "persistent_workers": True, **given}


def _check_sendable(options: Mapping[str, Any]) -> None:
    """Raises ArgumentError if a function cannot be sent to worker processes."""
    for name in FUNCTIONS & options.keys():
        try:
            pickle.dumps(options[name])
        except Exception as error:  # of any type, even of the object's own
            raise ArgumentError(
                f"{param(name)} cannot be sent to worker processes ({error}): define it at the top of a module, or pass"
                f" {param(multiprocessing_context='fork')}"
            ) from None


def this_process() -> tuple[int, int]:
    """Returns the number of this process, and how many there are, as torch.distributed says."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


# ----------------------------------------------------------------------------------------------------
# The sources that create_dataloader accepts: token files, files of text, which are encoded in memory, and ids


def tokens_of(source: Any, tokenizer: Tokenizer | None) -> Any:
    """Returns an argument for TokenStream: paths of token files, or an array of ids."""
    if hasattr(source, "dtype") and not isinstance(source, str):  # a numpy.str_ is a path
        return source
    if isinstance(source, str) and not (is_url(source) or is_glob(source) or os.path.exists(source)):
        raise FileMissingError(
            f"{shown(source)}: there is no such file; for a text, pass its ids: tok.encode_to_numpy(text)"
        )
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) and describes_tokens(os.fspath(source)):
        return folder_paths(os.fspath(source))
    source = path_list(source)
    paths = input_files(source)
    are_tokens = {without_secrets(path).endswith((".bin", ".npy")) for path in paths}
    if len(are_tokens) > 1:
        raise ArgumentError("some files hold tokens (*.bin, *.npy) and others text: pass files of one kind")
    return source if True in are_tokens else _encoded(paths, _need(tokenizer))


def _need(tokenizer: Tokenizer | None) -> Tokenizer:
    if tokenizer is None:
        raise ArgumentError("files of text need a tokenizer; only tokens (*.bin, *.npy, ids) do not need one")
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
