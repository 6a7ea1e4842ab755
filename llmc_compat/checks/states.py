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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from llmc_compat.checkpoint import HEADER_BYTES
from pybpe._numpy import numpy
from pybpe.errors import FormatError
from pybpe.reading.streams import open_unchanged

from .finding import Finding, Run
from .models import ModelFacts, weight_count

MAGIC = 20240527
REMEDY = "resume from an earlier step: remove the DONE file of this one"

_GENERATOR_BYTES = 2520  # sizeof(mt19937_state) in llmc/rand.h
_NAME = re.compile(r"state_(\d{8})_(\d{5})\.bin")
_ABORTS = "aborts when it resumes with -y 1"


@dataclass(frozen=True)
class StateFacts:
    """The header of a state, and the size of the file."""

    header: tuple[int, ...]
    size: int


def read_state(path: str) -> StateFacts | None:
    """Reads a state; returns None if the file is of another kind. Raises FileError, FormatError."""
    with open_unchanged(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        raw = stream.read(HEADER_BYTES)
    header = tuple(int(i) for i in numpy.frombuffer(raw, "<i4", len(raw) // 4))
    if header[:1] != (MAGIC,):
        return None
    if len(header) < HEADER_BYTES // 4:
        raise FormatError(f"{path}: too short for a state: {size} bytes; llm.c {_ABORTS}")
    return StateFacts(header, size)


def state_faults(
    states: Mapping[str, StateFacts], models: Mapping[str, ModelFacts], folders: Iterable[str], run: Run
) -> Iterator[Finding]:
    """Yields what would stop a run from resuming."""
    for path, facts in states.items():
        yield from _header_faults(path, facts, run)
        yield from _size_fault(path, facts, models)
    for folder in folders:
        yield from _missing_faults(folder, states, run)


def _header_faults(path: str, facts: StateFacts, run: Run) -> Iterator[Finding]:
    name = _NAME.fullmatch(os.path.basename(path))
    version, processes, rank = facts.header[1:4]
    if version != 1:
        yield Finding(path, f"version {version}, expected 1", _ABORTS, REMEDY)
    if name is not None and int(name[2]) != rank:
        yield Finding(path, f"belongs to process {rank} according to its header", _ABORTS, "rename it for its process")
    if run.given is not None and run.given.processes != processes:
        fault = f"was saved by {processes} processes, not {run.given.processes}"
        yield Finding(path, fault, _ABORTS, f"resume with {processes} processes")


def _size_fault(path: str, facts: StateFacts, models: Mapping[str, ModelFacts]) -> Iterator[Finding]:
    """Checks the size: the optimizer's values are those of the same step's model, whole or split among the
    processes."""
    name = _NAME.fullmatch(os.path.basename(path))
    model = None if name is None else models.get(os.path.join(os.path.dirname(path), f"model_{name[1]}.bin"))
    if model is None or not model.is_possible:
        return
    _, _, processes, _, master, shuffled = facts.header[:6]
    least = weight_count(model.sizes) // max(1, processes)
    expected = HEADER_BYTES + 4 * least * (3 if master == 1 else 2) + (_GENERATOR_BYTES + 24 if shuffled == 1 else 0)
    if facts.size < expected:
        yield Finding(path, f"{facts.size} bytes, expected {expected} or more", _ABORTS, REMEDY)


def _missing_faults(folder: str, states: Mapping[str, StateFacts], run: Run) -> Iterator[Finding]:
    """Yields the first missing file of the last step."""
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
        yield Finding(missing, f"is missing, but DONE_{step:08} says that the step is complete", _ABORTS, REMEDY)
