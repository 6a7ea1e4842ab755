"""Trains one model and prints the bits per byte of held-out text, as JSON.

    python trainer.py CHECKPOINT --tokenizer tokenizer.json --data FOLDER --held-out FILE --steps 1000

CHECKPOINT is a model of llm.c with random weights, FOLDER the output of `pybpe binarize`, and FILE a JSON list of
documents. The optimizer has the settings of llm.c's scripts/run_gpt2_124M.sh: AdamW with beta2 0.95 and weight decay
0.1, and gradients clipped to a norm of 1. The learning rate rises for 5% of the steps and falls to 10% along a cosine.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from heldout import bits_per_byte
from model import GPT2, adamw

import pybpe
from pybpe.loading import Mixture, create_dataloader

WARM_UP, FLOOR = 0.05, 0.1


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--held-out", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--context-bytes", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    started = time.process_time()
    model = GPT2(args.checkpoint)
    loss = train(model, batches(args.data, args.batch, args.length, args.seed), args.steps, args.rate)
    trained = time.process_time()
    tok = pybpe.Tokenizer.from_file(args.tokenizer)
    documents = json.loads(Path(args.held_out).read_text(encoding="utf-8"))
    found = {
        "loss": loss,
        "bits_per_byte": bits_per_byte(model, tok, documents, args.length),
        "bits_per_byte_same_context": bits_per_byte(model, tok, documents, args.length, args.context_bytes),
        "cpu_seconds": [trained - started, time.process_time() - trained],
    }
    print(json.dumps(found))


def batches(folder: str, batch: int, length: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields inputs and targets without end: windows of the token files in random order, each once per epoch."""
    loader = create_dataloader(Mixture({"text": folder}), None, batch, length, seed=seed)
    while True:
        yield from loader


def train(model: GPT2, source: Iterator[tuple[torch.Tensor, torch.Tensor]], steps: int, rate: float) -> float:
    """Trains in place, and returns the mean training loss of the last tenth of the steps, in nats per token."""
    optimizer = adamw(model, beta2=0.95, weight_decay=0.1)
    last = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule(step, steps)
        inputs, targets = next(source)
        loss = model.losses(inputs, targets).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}/{steps} loss {loss.item():.4f}", file=sys.stderr, flush=True)
        if step >= 0.9 * steps:
            last.append(loss.item())
    return sum(last) / len(last)


def schedule(step: int, steps: int) -> float:
    """Returns the factor of the learning rate."""
    rising = max(1, round(WARM_UP * steps))
    if step < rising:
        return (step + 1) / rising
    falling = (step - rising) / max(1, steps - rising)
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * falling))


if __name__ == "__main__":
    main()
