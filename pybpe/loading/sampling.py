"""The order of the windows of a dataset in training: shuffled by a seed, shared among processes, and
resumable at any batch. This module does not need PyTorch, and the order does not depend on the version of any package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._lazy import numpy
from ..arguments import together, whole_number
from ..errors import ArgumentError
from ..support.permutation import Permutation

_PLACES = 1 << 12  # positions permuted at once
CANNOT_GO_ON = (
    "this iteration cannot continue, because another one has begun, or load_state_dict or set_epoch was called: leave"
    " the loop first"
)


def process_of(rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    """Returns this process's number, and the number of processes. None for both means one process."""
    together(rank=rank, num_replicas=num_replicas)
    rank = 0 if rank is None else whole_number("rank", rank, None)
    num_replicas = 1 if num_replicas is None else whole_number("num_replicas", num_replicas, None)
    if not 0 <= rank < num_replicas:
        raise ArgumentError(f"rank must be from 0 to num_replicas - 1, not {rank} of {num_replicas}")
    return rank, num_replicas


class ResumableSampler:
    """The indices that one process trains on, epoch after epoch: a sampler for PyTorch's DataLoader.

    All processes walk through one order of all samples. Process r takes every `num_replicas`-th sample, starting at the
    r-th. The remainder is dropped, or filled up with samples from the start of the order, so that all processes get the
    same number.

    torchdata's StatefulDataLoader asks an iteration for its state, and counts its batches itself. Any other loader must
    call `consume`, like TokenDataLoader.

    Args:
        count: the number of samples in the dataset.
        shuffle: shuffle anew every epoch, by `seed`, otherwise in order.
        drop_last: drop the remainder instead of filling it up.
        rank, num_replicas: this process's number, and the number of processes. None for both means one process.
        data: the fingerprint of the dataset, by name: strings and numbers. States keep it.

    Raises:
        ArgumentError: a value is invalid, or only one of rank and num_replicas is given.

    Attributes:
        epoch: the epoch of the next iteration. The sampler's user advances it.
        consumed: the number of samples of this epoch, over all processes, that have been used.
        has_begun: whether an iteration of this epoch has begun.
        is_counted: whether a TokenDataLoader counts the batches. Then no other loader may iterate.
    """

    def __init__(
        self,
        count: int,
        *,
        shuffle: bool = True,
        drop_last: bool = True,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "samples": count,
            "shuffle": bool(shuffle),
            "seed": whole_number("seed", seed, None),
            **(data or {}),
        }
        self._count, self._shuffle, self._drop_last = count, shuffle, drop_last
        self._rank, self.num_replicas = process_of(rank, num_replicas)
        self.epoch = self.consumed = 0
        self.has_begun = self.is_counted = False
        self._start = 0  # where the next iteration begins; 0 except after load_state_dict
        self._begun = 0  # where the last one began
        self._current: Iteration | None = None  # the last one, or None after set_epoch and load_state_dict
        self._prepared: Iteration | None = None  # by start_over, for the next call of iter

    @property
    def samples(self) -> int:
        """The number of samples of an epoch, over all processes."""
        return self._count

    def __len__(self) -> int:
        """Returns the number of samples of a whole epoch for one process."""
        return self._end(0) // self.num_replicas

    def _end(self, start: int) -> int:
        """Returns where an epoch that resumes at `start` ends, so that all processes get the same number."""
        left = self._count - start
        shares = left // self.num_replicas if self._drop_last else -(-left // self.num_replicas)
        return start + shares * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        found, self._prepared = self._prepared, None
        if found is None and self.is_counted:
            raise ArgumentError(
                "only the loader of create_dataloader can use its sampler, since it counts samples: for another loader,"
                " such as accelerate's, build DataLoader(dataset, sampler=dataset.sampler()) of a TokenDataset or"
                " MixtureDataset"
            )
        return found or Iteration(self)

    def begin(self, iteration: Iteration) -> range:
        """Begins an iteration. Returns the places of this process's samples in the order of the epoch."""
        start, self._start = self._start, 0
        self.consumed, self._begun, self.has_begun, self._current = start, start, True, iteration
        return range(start + self._rank, self._end(start), self.num_replicas)

    def start_over(self) -> Iteration:
        """Begins an iteration where the last one of this epoch began: at the place of a loaded state. Returns it. The
        next call of `iter` returns it, too."""
        self._start = self._begun
        self._prepared = Iteration(self)
        return self._prepared

    def at(self, epoch: int, places: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
        """Returns the samples at some places of an epoch's order: int64, shape (places,). Places after the end begin
        at the start again."""
        places = places % self._count
        return Permutation(self._count, self._settings["seed"], epoch).take(places) if self._shuffle else places

    def consume(self, samples: int, iteration: Iteration | None = None) -> None:
        """Records that every process has used this many more samples. Raises ArgumentError if `iteration` is no longer
        the last one: its samples would count for another place."""
        if iteration is not None and iteration is not self._current:
            raise ArgumentError(CANNOT_GO_ON)
        self.consumed = min(self._count, self.consumed + samples * self.num_replicas)

    def set_epoch(self, epoch: int) -> None:
        """Goes to the start of another epoch. The current epoch's number has no effect, so that a training loop may
        call this for every epoch, including the one that it resumes."""
        if whole_number("epoch", epoch) != self.epoch:
            self._go_to(epoch, 0)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of training. The batch size and number of processes may differ when it resumes."""
        return {**self._settings, "epoch": self.epoch, "consumed": self.consumed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration resume where `state` was taken.

        Raises:
            ArgumentError: `state` was taken with another dataset, seed or order.
        """
        try:
            found = {key: state[key] for key in self._settings}
            epoch = whole_number("the epoch of the state", state["epoch"])
            consumed = whole_number("the number of consumed samples of the state", state["consumed"], 0, self._count)
        except (KeyError, TypeError) as error:
            raise ArgumentError(f"not a state of this sampler: {error!r}") from None
        if found != self._settings:
            raise ArgumentError(f"the state belongs to {found}, but this loader has {self._settings}")
        self._go_to(epoch, consumed)

    def _go_to(self, epoch: int, consumed: int) -> None:
        self.epoch, self.consumed, self.has_begun = epoch, consumed, consumed > 0
        self._start = self._begun = consumed
        self._current = None


class Iteration(Iterator[int]):
    """One process's samples of one epoch. Its state is the sampler's, at the last sample that it has yielded."""

    def __init__(self, sampler: ResumableSampler) -> None:
        self._sampler = sampler
        self._begin()

    def _begin(self) -> None:
        self._places = self._sampler.begin(self)
        self._epoch, self._first = self._sampler.epoch, self._sampler.consumed
        self._taken = self._at = 0  # samples taken from _places, and from _some
        self._some: list[int] = []

    def __next__(self) -> int:
        if self._at == len(self._some):
            self._fill()
        self._at += 1
        return self._some[self._at - 1]

    def _fill(self) -> None:
        some = self._places[self._taken : self._taken + _PLACES]
        if not some:
            raise StopIteration
        self._some = self._sampler.at(self._epoch, numpy.array(some, dtype=numpy.int64)).tolist()
        self._taken, self._at = self._taken + len(some), 0

    def state_dict(self) -> dict[str, Any]:
        """Returns the sampler's state, as if the loop had used all samples that this iteration yielded."""
        used = self._taken - len(self._some) + self._at
        consumed = min(self._sampler.samples, self._first + used * self._sampler.num_replicas)
        return {**self._sampler.state_dict(), "epoch": self._epoch, "consumed": consumed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes where `state` was taken: see ResumableSampler.load_state_dict."""
        self._sampler.load_state_dict(state)
        self._begin()
