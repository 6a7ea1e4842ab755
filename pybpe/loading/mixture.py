"""Several sources of tokens as one data set for training: weights per source, one seeded order, exact resuming.

An epoch has N samples. A source gets its share of them, exact to one sample, and a permutation of the N places, from
the seed and the epoch, decides which places are whose:

    weights a 0.5, b 0.3, c 0.2; N = 10      a a a a a b b b c c  ->  permuted  ->  b a c a a b a c b a

Within a source, windows come in passes: a permutation per pass, from the seed and the source's name. A source continues
in the next epoch where it stopped, whatever the weights are then, so all its windows are used once before any is used
again. So the sample of a step is a function of the seed, the weights of all epochs so far, the epoch and the
step. It can be computed without those before it, and does not depend on the number of processes or workers.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from .._lazy import Array, numpy
from ..arguments import instance, param, shown, whole_number
from ..errors import ArgumentError
from ..support.call_paths import check_once
from ..support.permutation import Permutation
from ..tokenizer import Tokenizer
from ..tokens.formats import FLAT, LLMC
from ..tokens.manifest import Manifest, split_paths
from ..tokens.output_folder import check_finished
from ..tokens.token_files import Paths
from .row_files import PackedRows, packed_rows
from .sampling import ResumableSampler
from .windows import PackedSequences

Weights = Mapping[str, float]


@dataclass(frozen=True)
class Mixture:
    """Sources of tokens that training sees mixed by weight, for `create_dataloader`.

    Attributes:
        sources: name -> a folder that `binarize`, `prepare`, `mix` or `pack` wrote, token files, or an array of ids
            (see PackedSequences). The order of the names does not matter.
        weights: name -> the share of the source in an epoch. Only their ratio counts, and 0 leaves a source out. None
            means the number of its windows, so that an epoch sees every window once. You can change them between epochs
            with `loader.sampler.set_weights(...)`.
        split: the split of folders to read.
        epoch_samples: the number of windows in an epoch, over all processes. None means all windows of all sources.

    Raises:
        ArgumentError: a value is invalid.
    """

    sources: Mapping[str, Paths | numpy.ndarray[Any, Any]]
    weights: Weights | None = None
    split: str = "train"
    epoch_samples: int | None = None

    def __post_init__(self) -> None:
        instance("sources", self.sources, Mapping, "a mapping from names to folders, token files or arrays")
        if not self.sources or not all(isinstance(name, str) for name in self.sources):
            raise ArgumentError(f"{param('sources')} must have names that are strings, not {shown(list(self.sources))}")
        if self.weights is not None:
            checked_weights(self.weights, sorted(self.sources))
        if self.epoch_samples is not None:
            object.__setattr__(self, "epoch_samples", whole_number("epoch_samples", self.epoch_samples, 1))

    def sampler(self, opened: Mapping[str, PackedSequences | PackedRows], **options: Any) -> MixtureSampler:
        """Returns a sampler of the opened sources, with the options of ResumableSampler."""
        windows = {name: len(source) for name, source in opened.items()}
        data = {
            "sequence_length": next(iter(opened.values())).sequence_length,
            "sources": {name: [len(source), source.stream.fingerprint()] for name, source in opened.items()},
        }
        samples = self.epoch_samples or sum(windows.values())
        return MixtureSampler(windows, self.weights or windows, samples, data=data, **options)


def open_sources(
    mixture: Mixture,
    length: int,
    tokenizer: Tokenizer | None,
    dtype: str | None = None,
    columns: Sequence[str] = (),
) -> dict[str, PackedSequences | PackedRows]:
    """Opens the sources of a mixture, sorted by name. Raises ArgumentError for a folder without such a split, without
    ids in a row, or whose run has not finished, a source that is too short, one that another tokenizer made, or two
    sources with one file or with equal tokens."""
    names = sorted(mixture.sources)
    opened = {name: _open(name, mixture, length, dtype, columns) for name in names}
    check_once(path for each in opened.values() for path in each.stream.paths)
    seen: dict[str, str] = {}
    for name, each in opened.items():
        first = seen.setdefault(each.stream.fingerprint(), name)
        if first != name:
            raise ArgumentError(f"{first} and {name} have the same tokens: give each source once")
    made_by = {name: each.stream.made_by[1] for name, each in opened.items() if each.stream.made_by is not None}
    for name, fingerprint in made_by.items():
        first, expected = next(iter(made_by.items()))
        if fingerprint != expected:
            raise ArgumentError(f"{first} and {name} have different tokenizers: encode all sources with one")
    if tokenizer is not None:
        for each in opened.values():
            each.stream.check_tokenizer(tokenizer)
    return opened


def _open(
    name: str, mixture: Mixture, length: int, dtype: str | None, columns: Sequence[str]
) -> PackedSequences | PackedRows:
    source: Any = mixture.sources[name]
    split = mixture.split
    if (rows := packed_rows(source, split, length, columns)) is not None:
        return rows
    is_folder = isinstance(source, (str, os.PathLike)) and os.path.isdir(source)
    windows = PackedSequences(folder_paths(os.fspath(source), split) if is_folder else source, length, dtype=dtype)
    if not len(windows):
        raise ArgumentError(
            f"{name}: {len(windows.stream)} tokens are too few for one window, which needs {length + 1}"
        )
    return windows


def folder_paths(folder: str, split: str = "train") -> list[str]:
    """Returns the token files of one split of a folder. Raises ArgumentError if its files do not hold ids in a row, or
    its run has not finished."""
    check_finished(folder)
    manifest = Manifest.load(folder)
    form, readable = manifest.settings.get("format"), FLAT if manifest.packing is None else (LLMC.name,)
    if form not in readable:
        rows = "" if manifest.packing is None else "packed rows in "
        raise ArgumentError(f"{folder}: its files are {rows}{form}, not {' or '.join(readable)}")
    return split_paths(folder, manifest, split)


# ----------------------------------------------------------------------------------------------------
# The order


def checked_weights(weights: object, names: Sequence[str]) -> dict[str, float]:
    """Returns weights as floats, in the order of `names`. Raises ArgumentError unless there is one number per name,
    0 or more, with at least one above 0."""
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        raise ArgumentError(
            f"{param('weights')} must have a number for each of {', '.join(names)}, not {shown(weights)}"
        )
    found: dict[str, float] = {}
    for name in names:
        try:
            found[name] = float(weights[name])
        except (TypeError, ValueError, OverflowError):
            found[name] = math.nan
        if not 0 <= found[name] < math.inf:
            raise ArgumentError(f"the weight of {name} must be a number from 0, not {shown(weights[name])}")
    if not any(found.values()):
        raise ArgumentError("all weights are 0: one at least must be larger")
    return found


def counts_of(weights: Weights, samples: int) -> list[int]:
    """Returns the number of samples of every source, less than one away from its share. The sum is `samples`.

    Raises:
        ArgumentError: a source whose weight is not 0 would get no sample.

    >>> counts_of({"a": 0.5, "b": 0.3, "c": 0.2}, 11)
    [6, 3, 2]
    """
    exact = {name: Fraction(weight) for name, weight in weights.items()}
    shares = [samples * weight / sum(exact.values()) for weight in exact.values()]
    counts = [math.floor(share) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda i: counts[i] - shares[i])
    for i in by_rest[: samples - sum(counts)]:
        counts[i] += 1
    for name, count in zip(weights, counts):
        if weights[name] and not count:
            raise ArgumentError(
                f"{name} would get none of {samples} samples per epoch: raise its weight or {param('epoch_samples')}"
            )
    return counts


class MixtureSampler(ResumableSampler):
    """The order of a mixture: a sampler that yields indices of windows. The first source has the lowest, and so on.
    `windows` and `weights` are by name, `samples` is an epoch's number over all processes, and `options` are as in
    ResumableSampler. Without shuffling, the samples of the first source come first, in order."""

    def __init__(self, windows: Mapping[str, int], weights: Weights, samples: int, **options: Any) -> None:
        super().__init__(samples, **options)
        self._names, self._windows = list(windows), list(windows.values())
        first = checked_weights(weights, self._names)
        counts_of(first, samples)
        self._schedule: list[tuple[int, dict[str, float]]] = [(0, first)]
        self._settings["weights"] = first
        self._starts = [0, *accumulate(self._windows)]

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the epoch that is in progress or comes next."""
        return dict(self._weights(self.epoch))

    @property
    def counts(self) -> dict[str, int]:
        """The samples of every source in the epoch that is in progress or comes next, over all processes."""
        return dict(zip(self._names, counts_of(self._weights(self.epoch), self.samples)))

    def set_weights(self, weights: Weights) -> None:
        """Sets the weights of the epoch that comes next, and of those after it. An epoch that has begun keeps its own.
        Every process must make the same call.

        Raises:
            ArgumentError: see checked_weights and counts_of.
        """
        found = checked_weights(weights, self._names)
        counts_of(found, self.samples)
        epoch = self.epoch + self.has_begun
        self._schedule = [*(entry for entry in self._schedule if entry[0] < epoch), (epoch, found)]

    def _weights(self, epoch: int) -> dict[str, float]:
        return next(weights for first, weights in reversed(self._schedule) if first <= epoch)

    def _drawn(self, epoch: int) -> list[int]:
        """Returns the samples of every source in all epochs before this one."""
        drawn = [0] * len(self._names)
        ends = [first for first, _ in self._schedule[1:]] + [epoch]
        for (first, weights), end in zip(self._schedule, ends):
            epochs = max(0, min(end, epoch) - first)
            drawn = [before + epochs * count for before, count in zip(drawn, counts_of(weights, self.samples))]
        return drawn

    def at(self, epoch: int, places: Array) -> Array:
        """Returns the samples at some places of an epoch's order: see ResumableSampler."""
        drawn = self._drawn(epoch)
        counts = counts_of(self._weights(epoch), self.samples)
        slots = super().at(epoch, places)
        ends = numpy.cumsum(counts)
        owners = numpy.searchsorted(ends, slots, side="right")
        found = numpy.empty_like(slots)
        for i in numpy.unique(owners).tolist():
            mine = owners == i
            of_source = slots[mine] - int(ends[i] - counts[i])
            found[mine] = self._starts[i] + self._windows_of(i, drawn[i], of_source)
        return found

    def _windows_of(self, i: int, drawn: int, numbers: Array) -> Array:
        """Returns the windows that are samples `drawn` + `numbers` of a source, counted over all epochs."""
        windows = self._windows[i]
        first, rest = divmod(drawn, windows)  # drawn itself may exceed 64 bits
        passes, places = numpy.divmod(numbers + rest, windows)
        if not self._shuffle:
            return places
        text = f"{self._settings['seed']} {self._names[i]}"  # sources with equally many windows differ in order
        seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
        for number in numpy.unique(passes).tolist():
            now = passes == number
            places[now] = Permutation(windows, seed, first + number).take(places[now])
        return places

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of training, and the weights since every epoch that changed them."""
        return {**super().state_dict(), "schedule": [[epoch, dict(weights)] for epoch, weights in self._schedule]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration resume where `state` was taken, with the weights that were set then.

        Raises:
            ArgumentError: `state` was taken with other sources, first weights, seed, or samples per epoch.
        """
        schedule = self._loaded_schedule(state)
        super().load_state_dict(state)
        self._schedule = schedule

    def _loaded_schedule(self, state: Mapping[str, Any]) -> list[tuple[int, dict[str, float]]]:
        try:
            schedule = [(int(epoch), checked_weights(weights, self._names)) for epoch, weights in state["schedule"]]
            epochs = [epoch for epoch, _ in schedule]
            if epochs[0] != 0 or epochs != sorted(set(epochs)):
                raise ValueError("its epochs are out of order")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ArgumentError(f"not a state of this sampler: {error!r}") from None
        for _, weights in schedule:
            counts_of(weights, self.samples)
        return schedule
