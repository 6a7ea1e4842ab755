"""Checks what llm.c's CUDA trainer resumes from with -y 1: DONE_STEP, model_STEP.bin, and each process's
state_STEP_RANK.bin.

It takes the highest STEP of the DONE files (find_max_step in llmc/utils.h), and load_state in train_gpt2.cu requires
what is checked here. A state is a header of 256 int32,

    [0] 20240527  [1] 1  [2] processes  [3] rank  [4] 1 with master weights  [5] 1 with shuffling  [10] step

then m, v and optionally the master weights as float32, all of them or this rank's part; with shuffling, the number of
shards as uint64, their order, the samples of a shard as uint64, their order (int32 each), and the state of the
generator.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from llmc_compat.header import HEADER_BYTES

from .contents import EARLIER_STEP, ON_RESUMING, ModelFacts, Seen, StateFacts
from .finding import Finding, Run

_GENERATOR_BYTES = 2520  # sizeof(mt19937_state) in llmc/rand.h
_NAME = re.compile(r"state_(\d{8})_(\d{5})\.bin")


def state_faults(seen: Seen) -> Iterator[Finding]:
    """Yields what would stop a run from resuming."""
    for path, facts in seen.states.items():
        yield from _header_faults(path, facts, seen.run)
        yield from _size_fault(path, facts, seen.models)
    for folder in seen.found.folders:
        yield from _missing_faults(folder, seen.states, seen.run)


def _header_faults(path: str, facts: StateFacts, run: Run) -> Iterator[Finding]:
    name = _NAME.fullmatch(os.path.basename(path))
    version, processes, rank = facts.header[1:4]
    if version != 1:
        yield Finding(path, f"version {version}, expected 1", ON_RESUMING, EARLIER_STEP)
    if name is not None and int(name[2]) != rank:
        yield Finding(
            path, f"belongs to process {rank} according to its header", ON_RESUMING, "rename it for its process"
        )
    if run.given is not None and run.given.processes != processes:
        fault = f"was saved by {processes} processes, not {run.given.processes}"
        yield Finding(path, fault, ON_RESUMING, f"resume with {processes} processes")


def _size_fault(path: str, facts: StateFacts, models: Mapping[str, ModelFacts]) -> Iterator[Finding]:
    """Checks the size: the optimizer has as many values as the same step's model, whole or split among the
    processes."""
    name = _NAME.fullmatch(os.path.basename(path))
    model = None if name is None else models.get(os.path.join(os.path.dirname(path), f"model_{name[1]}.bin"))
    if model is None or not model.is_possible:
        return
    _, _, processes, _, master, shuffled = facts.header[:6]
    least = model.sizes.num_parameters // max(1, processes)
    expected = HEADER_BYTES + 4 * least * (3 if master == 1 else 2) + (_GENERATOR_BYTES + 24 if shuffled == 1 else 0)
    if facts.size < expected:
        yield Finding(path, f"{facts.size} bytes, expected {expected} or more", ON_RESUMING, EARLIER_STEP)


def _missing_faults(folder: str, states: Mapping[str, StateFacts], run: Run) -> Iterator[Finding]:
    steps = [int(digits) for path in Path(folder).glob("DONE_*") if (digits := path.name[5:]).isdecimal()]
    if not steps:
        return
    step = max(steps)
    first = states.get(os.path.join(folder, f"state_{step:08}_{0:05}.bin"))
    processes = run.given.processes if run.given else first.header[2] if first else 1
    states_of_step = (f"state_{step:08}_{rank:05}.bin" for rank in range(processes))
    needed = (os.path.join(folder, name) for name in chain([f"model_{step:08}.bin"], states_of_step))
    missing = next((path for path in needed if not os.path.lexists(path)), None)
    if missing is not None:
        yield Finding(
            missing, f"is missing, but DONE_{step:08} says that the step is complete", ON_RESUMING, EARLIER_STEP
        )
