"""Mixtures of sources, without PyTorch: the order against a slow version, resuming, weights, and refusals."""

import json
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, documents
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import mixture as slow

import pybpe
from pybpe.loading import Mixture, PackedSequences
from pybpe.loading.mixture import MixtureSampler, counts_of, open_sources
from pybpe.loading.torch_data import WindowDataset
from pybpe.tokens.token_files import TokenStream

WINDOWS = {"a": 7, "b": 3, "c": 7}
STARTS = {"a": 0, "b": 7, "c": 10}
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}


def sampler_of(weights: dict[str, float] = WEIGHTS, samples: int = 20, **options: Any) -> MixtureSampler:
    data = {"sequence_length": 8, "sources": {name: [count, None] for name, count in WINDOWS.items()}}
    return MixtureSampler(WINDOWS, weights, samples, data=data, **options)


def flat(order: list[tuple[str, int]]) -> list[int]:
    """Returns the indices of (source, window)."""
    return [STARTS[name] + window for name, window in order]


def epoch_of(sampler: MixtureSampler) -> list[int]:
    """Uses one epoch, as a loader does."""
    found = list(sampler)
    sampler.consume(len(found))
    sampler.set_epoch(sampler.epoch + 1)
    return found


shares = st.sampled_from([0, 1, 2, 0.1, 0.6, 1e-3, 1e12])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(shares, shares, shares), min_size=1, max_size=5),
    st.integers(1, 60),
    st.integers(),
    st.booleans(),
)
def test_every_epoch_is_as_in_the_slow_version(
    schedule: list[tuple[float, ...]], samples: int, seed: int, shuffle: bool
) -> None:
    weights = [dict(zip(WINDOWS, map(float, each))) for each in schedule]
    for each in weights:
        try:
            counts_of(each, samples)
        except (pybpe.errors.ArgumentError, ZeroDivisionError):
            return
    sampler = sampler_of(weights[0], samples, seed=seed, shuffle=shuffle)
    found = []
    for each in weights:
        sampler.set_weights(each)
        found.append(epoch_of(sampler))
    assert found == [flat(order) for order in slow.epochs(WINDOWS, weights, samples, seed, shuffle)]


def test_the_order_never_changes() -> None:
    """Golden values: a run that resumes with a later version must see the same order."""
    sampler = sampler_of()
    assert epoch_of(sampler) == [5, 16, 4, 9, 6, 2, 12, 14, 6, 8, 2, 7, 3, 1, 1, 7, 10, 0, 9, 8]
    assert epoch_of(sampler) == [9, 5, 8, 8, 4, 5, 0, 7, 15, 0, 1, 7, 16, 11, 13, 9, 2, 4, 3, 3]


@settings(max_examples=40)
@given(st.integers(0, 20), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_resuming_continues_with_any_number_of_processes(taken: int, before: int, after: int, shuffle: bool) -> None:
    def ready(**ranks: int) -> MixtureSampler:
        sampler = sampler_of(seed=5, shuffle=shuffle, **ranks)
        sampler.set_epoch(1)
        sampler.set_weights({"a": 1, "b": 1, "c": 0})
        return sampler

    order = list(ready())
    ranks = [ready(rank=rank, num_replicas=before) for rank in range(before)]
    steps = min(taken, len(ranks[0]))
    seen = [list(sampler)[:steps] for sampler in ranks]
    for sampler in ranks:
        sampler.consume(steps)
    states = [json.loads(json.dumps(sampler.state_dict())) for sampler in ranks]
    assert states == states[:1] * before  # every process has the same state
    rest = []
    for rank in range(after):
        sampler = sampler_of(seed=5, shuffle=shuffle, rank=rank, num_replicas=after)
        sampler.load_state_dict(states[0])
        sampler.set_epoch(1)  # as training loops do
        rest.append(list(sampler))
    assert [i for step in zip(*seen, strict=True) for i in step] == order[: steps * before]
    found = [i for step in zip(*rest, strict=True) for i in step]
    assert found == order[steps * before :][: len(found)] and 20 - steps * before - len(found) < after


def test_weights_of_an_epoch_that_has_begun_stay() -> None:
    sampler, undisturbed = sampler_of(), sampler_of()
    next(iter(sampler))
    sampler.set_weights({"a": 0, "b": 0, "c": 1})
    assert sampler.weights == WEIGHTS
    assert epoch_of(sampler) == epoch_of(undisturbed)
    assert sampler.counts == {"a": 0, "b": 0, "c": 20}
    assert {index for index in epoch_of(sampler)} == set(range(10, 17))
    sampler.set_weights(WEIGHTS)  # before the epoch begins
    assert sampler.counts == {"a": 10, "b": 6, "c": 4}
    sampler.set_epoch(0)
    assert list(sampler) == list(sampler_of())


def test_states_of_something_else_are_refused() -> None:
    sampler = sampler_of()
    good = sampler.state_dict()
    schedule = [[0, {**WEIGHTS}]]
    for change, message in [
        ({"sequence_length": 9}, "'sequence_length': 9"),
        ({"weights": {"a": 1, "b": 1, "c": 1}}, "'weights'"),
        ({"sources": {"a": [7, None], "b": [3, "00"], "c": [7, None]}}, "'00'"),
        ({"schedule": []}, "not a state"),
        ({"schedule": [[1, WEIGHTS]]}, "out of order"),
        ({"schedule": [*schedule, [3, WEIGHTS], [2, WEIGHTS]]}, "out of order"),
        ({"schedule": [[0, {"a": 1}]]}, "a number for each of a, b, c"),
        ({"schedule": [[0, {"a": 1, "b": 1, "c": 1e-9}]]}, "would get none"),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            sampler.load_state_dict({**good, **change})
    with pytest.raises(pybpe.errors.ArgumentError, match="not a state.*schedule"):
        sampler.load_state_dict({})
    assert sampler.state_dict() == good


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": 1, "b": 1}, "for each of a, b, c"),
        ({"a": 1, "b": 1, "c": 1, "d": 1}, "for each of a, b, c"),
        ([1, 1, 1], "for each of a, b, c"),
        ({"a": 1, "b": -1, "c": 1}, "weight of b .* not -1"),
        ({"a": float("nan"), "b": 1, "c": 1}, "weight of a"),
        ({"a": 1, "b": 1, "c": float("inf")}, "weight of c"),
        ({"a": 1, "b": "x", "c": 1}, "weight of b"),
        ({"a": 0, "b": 0, "c": 0}, "all weights are 0"),
        ({"a": 1, "b": 1, "c": 0.001}, "c would get none of 20 samples"),
    ],
)
def test_weights_that_cannot_be(weights: Any, message: str) -> None:
    sampler = sampler_of()
    before = sampler.state_dict()
    for call in (sampler.set_weights, sampler_of):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            call(weights)
    assert sampler.state_dict() == before


# ----------------------------------------------------------------------------------------------------
# Sources


@pytest.fixture(scope="module")
def data(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of each format of plain ids, and one of packed rows."""
    folder = tmp_path_factory.mktemp("mixture")
    (folder / "c.txt").write_text(EOT.join(documents(120)), encoding="utf-8")
    for form in ("llmc", "raw", "npy", "megatron"):
        pybpe.binarize(tok, folder / "c.txt", folder / form, format=form, splits=(2, 1))
    pybpe.pack(tok, folder / "llmc", folder / "packed", sequence_length=32, shard_tokens=5000)
    return folder


def test_folders_give_the_windows_of_their_files(tok: pybpe.Tokenizer, data: Path) -> None:
    names = ["llmc", "raw", "npy", "megatron", "packed"]
    opened = {name: open_sources(Mixture({name: data / name}), 32, tok)[name] for name in names}
    assert list(open_sources(Mixture({name: data / name for name in names[1:3]}), 32, tok)) == ["npy", "raw"]
    for name in names:
        manifest = pybpe.Manifest.load(data / name)
        paths = [data / name / record.file for record in manifest.shards["train"]]
        expected = PackedSequences(paths, 32)
        assert [window.inputs.tolist() for window in opened[name]] == [each.inputs.tolist() for each in expected]
    hashes = {name: source.stream.fingerprint() for name, source in opened.items()}
    assert hashes.pop("raw") == hashes["megatron"] and len(set(hashes.values())) == len(names) - 1  # the same ids
    val = open_sources(Mixture({"raw": str(data / "raw")}, split="val"), 32, None)["raw"]
    assert val.stream.paths == [str(data / "raw" / "val.bin")]


def test_batches_are_int64_inputs_and_targets(data: Path) -> None:
    ids = numpy.arange(100, dtype=numpy.uint32)
    parts = [PackedSequences(data / "raw" / "val.bin", 32), PackedSequences(ids, 32)]
    windows = WindowDataset(parts)
    inputs, targets = windows.batch([len(parts[0]), 0, -1])
    assert inputs.dtype == targets.dtype == numpy.int64 and inputs.shape == targets.shape == (3, 32)
    assert inputs[0].tolist() == list(range(32)) and targets[0].tolist() == list(range(1, 33))
    assert inputs[1].tolist() == parts[0][0].inputs.tolist() and targets[1].tolist() == parts[0][0].targets.tolist()
    assert inputs[2].tolist() == list(range(64, 96)) and len(windows) == len(parts[0]) + 3
    for index in (len(windows), -len(windows) - 1):
        with pytest.raises(IndexError):
            windows.batch([index])


def test_sources_that_cannot_be_mixed_are_refused(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    other = pybpe.train(iter(["other"]), vocab_size=300, special_tokens=[EOT])
    pybpe.binarize(other, data / "c.txt", tmp_path / "other")
    pybpe.pack(tok, data / "llmc", tmp_path / "rows", sequence_length=32, format="webdataset")
    pybpe.pack(tok, data / "llmc", tmp_path / "columns", sequence_length=32, format="npy")
    (tmp_path / "link.bin").symlink_to(data / "raw" / "val.bin")
    unfinished = tmp_path / "unfinished"
    pybpe.binarize(tok, data / "c.txt", unfinished, format="raw")
    (unfinished / ".pybpe-unfinished").mkdir(exist_ok=True)
    (unfinished / ".pybpe-unfinished" / "tasks" / "settings").mkdir(parents=True)
    (unfinished / "manifest.json").unlink()
    ids = numpy.arange(9)
    for sources, options, length, message in (
        ({}, {}, 8, "names that are strings"),
        ({1: ids}, {}, 8, "names that are strings"),
        ([ids], {}, 8, "a mapping from names"),
        ({"a": ids}, {"weights": {"b": 1}}, 8, "for each of a"),
        ({"a": ids}, {"epoch_samples": 0}, 8, "epoch_samples"),
        ({"a": ids}, {}, 9, "a: 9 tokens are too few for one window, which needs 10"),
        ({"a": data / "raw"}, {"split": "test"}, 8, "has no split test; it has train, val"),
        ({"a": data / "packed"}, {}, 64, "packed rows of 32"),
        ({"b": tmp_path / "other"}, {}, 32, "other/c_train_000000.bin: another tokenizer made these tokens"),
        ({"a": tmp_path / "rows"}, {}, 64, "rows: has packed rows of 32 tokens: open it with sequence_length=32"),
        ({"a": tmp_path / "columns"}, {}, 64, "columns: has packed rows of 32 tokens"),
        ({"a": ids, "b": ids}, {}, 4, "a and b have the same tokens: give each source once"),
        (
            {"a": data / "raw" / "val.bin", "b": tmp_path / "link.bin"},
            {},
            32,
            "link.bin: the same file as .*val.bin: give each",
        ),
        ({"a": data / "llmc", "b": data / "llmc" / "c_train_000000.bin"}, {}, 32, "000000.bin: given twice"),
        ({"a": unfinished}, {}, 32, "has not finished"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            open_sources(Mixture(sources, **options), length, tok)  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="a and c have different tokenizers"):
        open_sources(Mixture({"a": data / "llmc", "b": numpy.arange(99), "c": tmp_path / "other"}), 32, None)
    with pytest.raises(FileNotFoundError):
        open_sources(Mixture({"a": tmp_path / "nothing.bin"}), 8, None)


def test_a_pickled_stream_notices_other_lengths(tmp_path: Path) -> None:
    path = tmp_path / "raw.bin"
    numpy.arange(100, dtype=numpy.uint16).tofile(path)
    pickled = pickle.dumps(PackedSequences(path, 8))
    assert pickle.loads(pickled)[3].inputs.tolist() == list(range(24, 32))
    numpy.arange(90, dtype=numpy.uint16).tofile(tmp_path / "new")
    os.replace(tmp_path / "new", path)
    with pytest.raises(pybpe.errors.FormatError, match="had 100 tokens when it was first opened, now 90"):
        pickle.loads(pickled)


def test_a_forked_process_reads_the_files(tmp_path: Path) -> None:
    path = tmp_path / "raw.bin"
    numpy.arange(100, dtype=numpy.uint16).tofile(path)
    stream = TokenStream(path)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=lambda: results.put(stream.slice(3, 6).tolist()))
    process.start()
    process.join(20)
    alive = process.is_alive()
    process.kill()
    assert not alive and results.get() == [3, 4, 5]
