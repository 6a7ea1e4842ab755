"""Which window each step of an epoch gets, when several sources are mixed by weight.

An epoch has N samples. Each source gets its share of them, exact to one sample, and a permutation of the N places, from
the seed and the epoch, decides which places are whose:

    weights a 0.5, b 0.3, c 0.2; N = 10      a a a a a b b b c c  ->  permuted  ->  b a c a a b a c b a

Within a source, windows come in passes: a permutation per pass, from the seed and the source's name. A source continues
in the next epoch where it stopped, whatever the weights are then, so each of its windows is used once before any is
used again. So the sample of each step is a function of the seed, the weights of all epochs so far, the epoch and the
step. It can be computed without those before it, and does not depend on the number of processes or workers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

from ..._numpy import Array, numpy
from ...arguments import shown
from ...errors import ArgumentError
from ...support.permutation import Permutation
from ..sampling import ResumableSampler

Weights = Mapping[str, float]


class Described(NamedTuple):
    """A source of a mixture.

    Attributes:
        name: its name.
        windows: the number of its windows, at least 1.
        sha256: a hash of its tokens, if a manifest has those of its files; otherwise None.
    """

    name: str
    windows: int
    sha256: str | None = None


def checked_weights(weights: object, names: Sequence[str]) -> dict[str, float]:
    """Returns weights as floats, in the order of `names`.

    Raises:
        ArgumentError: they are not one number for each name, from 0, of which one at least is above 0.
    """
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        raise ArgumentError(f"weights must have a number for each of {', '.join(names)}, not {shown(weights)}")
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
    """Returns the samples of each source. They add up to `samples`; each is less than one sample away from its share.

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
                f"{name} would get none of {samples} samples per epoch: raise its weight or epoch_samples"
            )
    return counts


class MixtureSampler(ResumableSampler):
    """The order of a mixture: a sampler that yields indices of `Windows`.

    Args:
        sources: in the order of the windows.
        weights: see checked_weights.
        samples: the number of samples per epoch, over all processes.
        length: tokens per window.
        options: shuffle, drop_last, seed, rank, num_replicas: see ResumableSampler. Without shuffling, the samples of
            the first source come first, in order.
    """

    def __init__(
        self, sources: Sequence[Described], weights: Weights, samples: int, length: int, **options: Any
    ) -> None:
        super().__init__(samples, **options)
        self._sources = sources
        self._names = [source.name for source in sources]
        first = checked_weights(weights, self._names)
        counts_of(first, samples)
        self._schedule: list[tuple[int, dict[str, float]]] = [(0, first)]
        self._identity["sequence_length"] = length
        self._identity["sources"] = {source.name: [source.windows, source.sha256] for source in sources}
        self._identity["weights"] = first
        self._starts = [0, *accumulate(source.windows for source in sources)]

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the epoch that is in progress or comes next."""
        return dict(self._weights(self.epoch))

    @property
    def counts(self) -> dict[str, int]:
        """The samples of each source in the epoch that is in progress or comes next, over all processes."""
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
        """Returns the samples of each source in all epochs before this one."""
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
        windows = self._sources[i].windows
        first, rest = divmod(drawn, windows)  # drawn itself may exceed 64 bits
        passes, places = numpy.divmod(numbers + rest, windows)
        if not self._shuffle:
            return places
        for number in numpy.unique(passes).tolist():
            now = passes == number
            places[now] = Permutation(windows, self._seed_of(i), first + number).take(places[now])
        return places

    def _seed_of(self, i: int) -> int:
        """Returns a seed for one source: sources with equally many windows must not have the same order."""
        text = f"{self._identity['seed']} {self._names[i]}"
        return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of training, and the weights since each epoch in which they changed."""
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
