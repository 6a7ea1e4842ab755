"""Compares the losses of the stand-in and of llm.c: the same checkpoint, shards and optimizer.

    make check-models LLMC=path CORPUS=file

Compiles the train_gpt2.c at LLMC unmodified, as its Makefile does for CPUs, and runs it in a workspace of pybpe's. It
trains 41 steps of 4 x 64 tokens, and validates before every tenth. Exits with 1 if a loss differs by more than 0.001.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

import torch
from model import GPT2, adamw

from llmc_compat.shards import DataLoader
from llmc_compat.workspace import make_workspace

TOLERANCE = 1e-3
B, T, STEPS, VALIDATED = 4, 64, 41, 5  # fixed in train_gpt2.c


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmc", help="a checkout of llm.c")
    parser.add_argument("corpus")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        make_workspace(
            args.corpus,
            folder,
            vocab_size=2000,
            documents="file",
            layers=3,
            heads=3,
            channels=48,
            sequence_length=T,
            split_by="token",
        )
        theirs, ours = losses_of_llmc(args.llmc, Path(folder)), losses_of_stand_in(Path(folder))
    worst = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))
    for step in (0, 10, 20, 30, 40):
        print(f"step {step}: llm.c {theirs[step]:.6f}, stand-in {ours[step]:.6f}")
    print(f"{len(ours)} losses, largest difference {worst:.6f}")
    if worst > TOLERANCE:
        raise SystemExit(1)


def losses_of_llmc(source: str, folder: Path) -> list[float]:
    """Returns the losses of the 41 steps, then the validation losses."""
    program = folder / "train_gpt2"
    flags = ["-Ofast", "-march=native", "-fopenmp", "-DOMP"]
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, *flags, f"{source}/train_gpt2.c", "-lm", "-o", program], check=True)
    found = subprocess.run([program], cwd=folder, check=True, stdout=subprocess.PIPE).stdout.decode(errors="replace")
    trained = re.findall(r"^step \d+: train loss (\S+)", found, re.MULTILINE)
    return [float(loss) for loss in (*trained, *re.findall(r"^val loss (\S+)", found, re.MULTILINE))]


def losses_of_stand_in(folder: Path) -> list[float]:
    """Returns the same losses, of the stand-in."""
    shards = str(folder / "dev/data/tinyshakespeare/tiny_shakespeare_{}.bin")
    model = GPT2(folder / "gpt2_124M.bin")
    optimizer = adamw(model, beta2=0.999, weight_decay=0.0)
    for group in optimizer.param_groups:
        group["lr"] = 1e-4
    source = DataLoader(shards.format("train"), B, T, should_shuffle=True)
    trained, validated = [], []
    for step in range(STEPS):
        if step % 10 == 0:
            validated.append(_validation_loss(model, shards.format("val")))
        loss = _loss(model, source)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trained.append(loss.item())
    return trained + validated


@torch.no_grad()
def _validation_loss(model: GPT2, path: str) -> float:
    source = DataLoader(path, B, T)
    return sum(_loss(model, source).item() for _ in range(VALIDATED)) / VALIDATED


def _loss(model: GPT2, source: DataLoader) -> torch.Tensor:
    inputs, targets = (torch.from_numpy(ids.astype("int64")) for ids in source.next_batch())
    return model.losses(inputs, targets).mean()


if __name__ == "__main__":
    main()
