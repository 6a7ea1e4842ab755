"""The order of training: permutations, the shares of processes, resuming. Without PyTorch."""

import itertools
from collections import Counter

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.mixture import permuted

import pybpe
from pybpe.loading.sampling import Iteration, Permutation, ResumableSampler


def permutation(n: int, seed: int = 0, epoch: int = 0) -> list[int]:
    return Permutation(n, seed, epoch).take(numpy.arange(n)).tolist()


@given(st.integers(1, 2**50), st.integers(-(2**70), 2**70), st.integers(0, 9), st.data())
def test_permutations_are_as_defined(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    found = Permutation(n, seed, epoch).take(numpy.array(places, dtype=numpy.int64))
    assert found.tolist() == [permuted(place, n, seed, epoch) for place in places]


def test_permutations_are_permutations_as_defined() -> None:
    for n in (*range(1, 40), 255, 256, 257, 4096, 4097):
        found = permutation(n, n, 1)
        assert sorted(found) == list(range(n))
        assert found[:40] == [permuted(place, n, n, 1) for place in range(min(n, 40))]


def test_the_order_never_changes() -> None:
    """Golden values: a run that resumes with a later version must see the same order."""
    assert permutation(10) == [3, 7, 4, 6, 5, 2, 1, 0, 9, 8]
    assert permutation(10, epoch=1) == [0, 6, 4, 3, 1, 2, 5, 8, 9, 7]
    assert permutation(10, seed=1) == [1, 5, 2, 9, 8, 7, 4, 0, 6, 3]
    assert Permutation(10**12, 42).take(numpy.array([0, 1, 10**12 - 1])).tolist() == [
        407881515817,
        448869431601,
        14900592724,
    ]


def test_all_orders_are_about_equally_likely() -> None:
    counts = Counter(tuple(permutation(4, seed)) for seed in range(1200))
    assert len(counts) == 24
    assert 15 < min(counts.values()) <= max(counts.values()) < 85  # 50 each, deviation 7


def test_neighbours_are_not_neighbours_any_more() -> None:
    order = numpy.array(permutation(10_000, seed=3))
    assert abs(numpy.corrcoef(order[:-1], order[1:])[0, 1]) < 0.03
    assert abs(numpy.corrcoef(order, numpy.arange(10_000))[0, 1]) < 0.03


@given(
    st.integers(0, 50), st.integers(1, 5), st.booleans(), st.booleans(), st.integers(0, 2**70), st.integers(0, 3)
)  # fmt: skip
def test_processes_share_one_order(n: int, world: int, shuffle: bool, drop: bool, seed: int, epoch: int) -> None:
    order = permutation(n, seed, epoch) if shuffle and n else list(range(n))
    shares = []
    for rank in range(world):
        sampler = ResumableSampler(n, shuffle=shuffle, drop_last=drop, seed=seed, rank=rank, num_replicas=world)
        sampler.set_epoch(epoch)
        shares.append(list(sampler))
        assert len(shares[-1]) == len(sampler)
    rounds = [sample for step in zip(*shares, strict=True) for sample in step]
    if drop:
        assert rounds == order[: n // world * world]
    else:
        assert rounds == list(itertools.islice(itertools.cycle(order), len(rounds)))
        assert n <= len(rounds) < n + world


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 4), st.integers(1, 4))
def test_resuming_goes_on_with_any_number_of_processes(n: int, taken: int, before: int, after: int) -> None:
    first = ResumableSampler(n, seed=7, rank=0, num_replicas=before)
    first.set_epoch(2)
    steps = min(taken, len(first))
    seen = [sample for r in range(before) for sample in list(sampler_of(n, r, before, first.state_dict()))[:steps]]
    first.consume(steps)
    rest = [sample for r in range(after) for sample in sampler_of(n, r, after, first.state_dict())]
    order = permutation(n, 7, 2)
    assert sorted(seen) == sorted(order[: steps * before])
    remaining = order[steps * before :]
    assert sorted(rest) == sorted(remaining[: len(remaining) // after * after])


def sampler_of(n: int, rank: int, world: int, state: dict[str, int]) -> ResumableSampler:
    sampler = ResumableSampler(n, seed=7, rank=rank, num_replicas=world)
    sampler.load_state_dict(state)
    sampler.set_epoch(state["epoch"])  # as training loops do; it must not lose the place
    return sampler


def test_an_iteration_resumes_in_its_place() -> None:
    order, sampler = permutation(10, 3), ResumableSampler(10, seed=3)
    assert not sampler.has_begun
    iteration = Iteration(sampler)
    assert sampler.has_begun and [next(iteration) for _ in range(4)] == order[:4]
    state = iteration.state_dict()
    assert state["consumed"] == 4 and [next(iteration) for _ in range(3)] == order[4:7]
    iteration.load_state_dict(state)
    assert iteration.state_dict() == state and list(iteration) == order[4:]
    sampler.set_epoch(1)
    assert not sampler.has_begun
    sampler.load_state_dict({**state, "consumed": 0})
    assert not sampler.has_begun
    sampler.load_state_dict({**state, "consumed": 1})
    assert sampler.has_begun


def test_states_of_something_else_are_refused() -> None:
    sampler = ResumableSampler(10, seed=1)
    good = sampler.state_dict()
    for change, message in [
        ({"seed": 2}, "'seed': 2"),
        ({"samples": 11}, "'samples': 11"),
        ({"shuffle": False}, "'shuffle': False"),
        ({"consumed": 11}, "consumed samples of the state must be at most 10, not 11"),
        ({"consumed": -1}, "must be at least 0, not -1"),
        ({"epoch": "x"}, "epoch of the state must be an integer, not 'x'"),
        ({"epoch": -5}, "epoch of the state must be at least 0, not -5"),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            sampler.load_state_dict({**good, **change})
    with pytest.raises(pybpe.errors.ArgumentError, match="not a state.*samples"):
        sampler.load_state_dict({})
    assert sampler.state_dict() == good
    other = ResumableSampler(10, data={"tokens": "a"})
    other.load_state_dict(other.state_dict())
    with pytest.raises(pybpe.errors.ArgumentError, match="'tokens': 'b'"):
        other.load_state_dict(ResumableSampler(10, data={"tokens": "b"}).state_dict())


def test_what_cannot_be_is_refused() -> None:
    """With a rank alone, every process would train on everything, or all on the share of the first."""
    for rank, world, message in (
        (-1, 2, "rank must be"),
        (2, 2, "rank must be"),
        (0, 0, "rank must be"),
        (0, None, "pass both rank and num_replicas, or neither"),
        (1, None, "pass both rank and num_replicas, or neither"),
        (None, 2, "pass both rank and num_replicas, or neither"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            ResumableSampler(10, rank=rank, num_replicas=world)
    for epoch in (-1, 1.5, "x"):
        with pytest.raises(pybpe.errors.ArgumentError, match="epoch must be"):
            ResumableSampler(10).set_epoch(epoch)  # type: ignore[arg-type]


def test_the_next_iteration_is_a_whole_epoch_again_unless_it_starts_over_at_the_place_of_a_state() -> None:
    sampler = ResumableSampler(10_001, seed=1)
    sampler.load_state_dict({**sampler.state_dict(), "consumed": 9999})
    assert len(list(sampler)) == 2
    sampler.start_over()
    assert len(list(sampler)) == 2
    assert sorted(sampler) == list(range(10_001))  # which is longer than a chunk
    sampler.set_epoch(1)
    sampler.start_over()
    assert len(list(sampler)) == 10_001
