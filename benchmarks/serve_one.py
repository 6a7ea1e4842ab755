"""Reads batches of tokens with one library: the process that benchmarks/serve.py measures.

    python benchmarks/serve_one.py LIBRARY WORKERS IDS.npy FOLDER BATCHES
    python benchmarks/serve_one.py write:LIBRARY 0 IDS.npy FOLDER      writes IDS.npy in the library's own format first

Each library shuffles, as its users would let it, and gives int64 inputs and targets of B x T tokens in windows that do
not overlap, except nanoGPT's, which are anywhere. Prints the tokens per second of the inputs, after some batches to
warm up.
"""

import os
import sys
import time
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

B, T = 16, 1024
WARM = 100  # batches that are not measured


def batches_pybpe(workers: int, ids: str, folder: str) -> Iterator[Any]:
    from pybpe.loading import create_dataloader

    return rounds(create_dataloader(ids, None, B, T, num_workers=workers))


def batches_pybpe_mixture(workers: int, ids: str, folder: str) -> Iterator[Any]:
    """Three sources: a third of the tokens each."""
    from pybpe.loading import Mixture, create_dataloader

    mixture = Mixture(
        {name: os.path.join(folder, f"{name}.npy") for name in "abc"}, weights={"a": 0.6, "b": 0.3, "c": 0.1}
    )
    return rounds(create_dataloader(mixture, None, B, T, num_workers=workers))


def write_pybpe_mixture(ids: str, folder: str) -> None:
    import numpy

    for name, part in zip("abc", numpy.array_split(numpy.load(ids, mmap_mode="r"), 3)):
        numpy.save(os.path.join(folder, f"{name}.npy"), part)


def batches_nanogpt(workers: int, ids: str, folder: str) -> Iterator[Any]:
    """get_batch of nanoGPT's train.py: opens the map for each batch, against a leak of memory, and stacks windows."""
    import numpy
    import torch

    while True:
        data = numpy.memmap(os.path.join(folder, "raw.bin"), dtype=numpy.uint16, mode="r")
        places = torch.randint(len(data) - T, (B,))
        x = torch.stack([torch.from_numpy(data[i : i + T].astype(numpy.int64)) for i in places])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + T].astype(numpy.int64)) for i in places])
        yield x, y


def write_nanogpt(ids: str, folder: str) -> None:
    import numpy

    numpy.load(ids, mmap_mode="r").tofile(os.path.join(folder, "raw.bin"))


def batches_litdata(workers: int, ids: str, folder: str) -> Iterator[Any]:
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(
        os.path.join(folder, "litdata"), item_loader=TokensLoader(block_size=T + 1), shuffle=True, drop_last=True
    )
    for batch in rounds(StreamingDataLoader(dataset, batch_size=B, num_workers=workers)):
        batch = batch.long()
        yield batch[:, :-1].contiguous(), batch[:, 1:].contiguous()


def write_litdata(ids: str, folder: str) -> None:
    from litdata import TokensLoader, optimize

    optimize(
        fn=_tensors,
        inputs=[ids],
        output_dir=os.path.join(folder, "litdata"),
        chunk_bytes="64MB",
        item_loader=TokensLoader(block_size=T + 1),
        num_workers=1,
    )


def _tensors(ids: str) -> Iterator[Any]:
    import numpy
    import torch

    array = numpy.load(ids, mmap_mode="r")
    for at in range(0, len(array), 1 << 20):
        yield torch.from_numpy(array[at : at + (1 << 20)].astype(numpy.uint16))


def batches_streaming(workers: int, ids: str, folder: str) -> Iterator[Any]:
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    dataset = StreamingDataset(local=os.path.join(folder, "streaming"), shuffle=True, batch_size=B)
    for batch in rounds(DataLoader(dataset, batch_size=B, num_workers=workers, drop_last=True)):
        tokens = batch["tokens"].long()
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def write_streaming(ids: str, folder: str) -> None:
    import numpy
    from streaming import MDSWriter

    array = numpy.load(ids, mmap_mode="r")
    with MDSWriter(out=os.path.join(folder, "streaming"), columns={"tokens": f"ndarray:uint16:{T + 1}"}) as writer:
        for at in range(0, len(array) - T, T):
            writer.write({"tokens": array[at : at + T + 1]})


def rounds(loader: Any) -> Iterator[Any]:
    """Yields the batches of one epoch after another."""
    return chain.from_iterable(repeat(loader))


def measure(library: str, workers: int, ids: str, folder: str, count: int) -> None:
    """Prints the tokens per second."""
    batches = globals()[f"batches_{library}"](workers, ids, folder)
    for _ in range(WARM):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        x, y = next(batches)
        assert tuple(x.shape) == tuple(y.shape) == (B, T) and str(x.dtype) == "torch.int64"
    print(B * T * count / (time.perf_counter() - start))


if __name__ == "__main__":
    if sys.argv[1].startswith("write:"):
        globals()["write_" + sys.argv[1].removeprefix("write:")](*sys.argv[3:])
    else:
        measure(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], int(sys.argv[5]))
        sys.stdout.flush()
        os._exit(0)  # without waiting for worker processes that read ahead
