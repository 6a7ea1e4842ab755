"""Checks each model checkpoint by itself, and each state from which training resumes. llm.c reads checkpoints in
gpt2_build_from_checkpoint (train_gpt2.c, train_gpt2.cu).

llm.c checks the magic, the version, and that no weight is missing. It trusts every size in the header. The effects on
the CPU were observed by running train_gpt2; for CUDA, the code names the places in its source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from math import inf, prod
from pathlib import Path

from ..checkpoint import file_bytes
from ..gpt2_config import Sizes
from ..header import HEADER_BYTES
from .contents import EARLIER_STEP, MODEL_AGAIN, ON_RESUMING, ModelFacts, Seen, StateFacts
from .files import MODEL_NAMES, WARNING, Finding, Run

_VECTOR = {"fp32": 4, "bf16": 8}  # items that a CUDA kernel loads at once (16 bytes)
_HUGE = 1e4  # the weights of a trained GPT-2 are below 100
_SAMPLE_T = 63  # genT - 1: the number of positions gpt2_forward computes for a sample, in steps of T
_TOO_SMALL = {  # a size: its name in llm.c, and what the CPU trainer does if it is 0 or negative
    "max_seq_len": ("maxT", "reads the wrong weights as position embeddings, and trains on nonsense, or aborts"),
    "vocab_size": ("V", "aborts at the first id or sample"),
    "num_layers": ("L", "trains on nonsense without layers, or crashes"),
    "num_heads": ("NH", "crashes or trains on nonsense"),
    "channels": ("C", "trains on nonsense, or aborts"),
    "padded_vocab_size": ("Vp", "computes a loss of nan and aborts, or trains on nonsense"),
}
_NEVER_ZERO = ("wte", "ln1w", "ln2w", "lnfw")

Fault = tuple[str, str, str]
"""A fault, its effect, and the remedy, as in Finding."""


def model_faults(seen: Seen) -> Iterator[Finding]:
    """Yields what is wrong with each checkpoint."""
    for path, facts in seen.models.items():
        yield from (Finding(path, *fault) for fault in _header_faults(os.path.basename(path), facts, seen.run))
        if facts.weights is None:
            continue
        largest, processes = facts.weights.largest, seen.run.batch.processes
        yield from (Finding(path, *fault) for fault in _weight_faults(largest))
        for name in _NEVER_ZERO:
            if largest.get(name) == 0 and any(largest.values()):
                yield Finding(path, f"all of {name} is zero", "trains from it anyway", MODEL_AGAIN, WARNING)
        may_be_for_cpu = facts.dtype == "fp32" and not seen.run.is_cuda  # the CPU accepts what only CUDA refuses
        yield from (Finding(path, *fault).unless(may_be_for_cpu) for fault in _cuda_faults(facts, seen.run))
        if _cannot_be_shared(facts.sizes, processes):
            fault = f"C is {facts.sizes.channels}, not a multiple of {processes} processes"
            remedy = "use -z 0, or a different number of processes"
            yield Finding(path, fault, "aborts on CUDA with -z 1", remedy, WARNING)


def _header_faults(name: str, facts: ModelFacts, run: Run) -> Iterator[Fault]:
    sizes = facts.sizes
    types = {name: dtype for dtype, name in MODEL_NAMES.items()}
    expected = types.get(name, facts.dtype)
    if facts.dtype != expected:
        fault = f"is {facts.dtype}, but llm.c expects {expected} under this name"
        remedy = f"write it with --dtype {expected}, or rename it and pass it with -e"
        yield fault, "aborts: 'Bad version', or 'Precision is configured as'", remedy
    for size, (called, effect) in _TOO_SMALL.items():
        if getattr(sizes, size) < 1:
            yield f"{called} is {getattr(sizes, size)} in its header", effect, MODEL_AGAIN
    if not facts.is_possible:
        return
    implied = file_bytes(sizes, facts.dtype)
    fault = f"{facts.size} bytes, but its header implies {implied}"
    if facts.size < implied:
        yield fault, "aborts, because weights are missing", MODEL_AGAIN
    elif facts.size > implied:
        yield fault, "ignores the extra bytes, and trains on shifted weights if the header is wrong", MODEL_AGAIN
    NH, C, V, Vp = sizes.num_heads, sizes.channels, sizes.vocab_size, sizes.padded_vocab_size
    if C % NH:
        effect = f"trains on nonsense, because {C % NH} channels belong to no head"
        if NH > C:
            effect = "trains on nonsense, because its heads have no channels, or runs out of memory"
        yield f"NH is {NH}, which does not divide C {C}", effect, MODEL_AGAIN
    if Vp < V:
        effect = "reads beyond the logits of each position, and crashes or trains on nonsense"
        yield f"Vp is {Vp}, below V {V}", effect, MODEL_AGAIN
    if run.batch.T > sizes.max_seq_len:
        effect = "reads the wrong weights as position embeddings on the CPU and trains on nonsense, and aborts on CUDA"
        remedy = f"use -t {sizes.max_seq_len}, or a longer --sequence-length"
        yield f"maxT is {sizes.max_seq_len}, but T is {run.batch.T}", effect, remedy


def _weight_faults(largest: dict[str, float]) -> Iterator[Fault]:
    broken = [name for name, value in largest.items() if value == inf]
    huge = [name for name, value in largest.items() if value > _HUGE]
    if not any(largest.values()):
        yield "all weights are zero", "trains on nonsense: its loss never changes", MODEL_AGAIN
    elif broken:
        effect = "computes a loss of nan or inf: aborts on the CPU, or trains on nonsense"
        yield f"has Inf or NaN in {', '.join(broken)}", effect, "use an earlier checkpoint"
    elif huge:
        most = max(largest[name] for name in huge)
        fault = f"has weights up to {most:.0e} in {', '.join(huge)}; a trained GPT-2 has weights below 100"
        effect = "trains on nonsense or aborts, because its loss may become inf or nan"
        yield fault, effect, "use an earlier checkpoint"


def _cuda_faults(facts: ModelFacts, run: Run) -> Iterator[Fault]:
    """Yields what only CUDA refuses. fused_classifier.cuh writes the gradients of V logits and leaves the others
    unchanged. Kernels load 16 bytes at once (Packed128 in cuda_utils.cuh, and matmul_cublaslt)."""
    V, Vp, C, step = facts.sizes.vocab_size, facts.sizes.padded_vocab_size, facts.sizes.channels, _VECTOR[facts.dtype]
    if facts.weights is not None and facts.weights.padding_is_used:
        effect = "uses their logits as gradients on CUDA, so that the gradient norm explodes"
        yield f"rows {V} to {Vp} of wte are not zero", effect, "pybpe llmc checkpoint convert zeroes them"
    effect = "reads unaligned rows on CUDA, and aborts"
    if C % step:
        yield f"C is {C}, not a multiple of {step}", effect, "use a different --channels"
    if Vp % step:
        yield f"Vp is {Vp}, not a multiple of {step}", effect, "pybpe llmc checkpoint convert --pad 128"
    if run.given:
        yield from _batch_faults(run.given.B, run.given.T, C, 512 * step)


def _batch_faults(B: int, T: int, C: int, block: int) -> Iterator[Fault]:
    """Yields B and T that kernels refuse: softmax_forward_kernel5 (attention.cuh), gelu_forward (gelu.cuh)."""
    if T % 4:
        yield f"T is {T}, not a multiple of 4", "aborts on CUDA without cuDNN", f"use -t {max(4, T // 4 * 4)}"
    if B * T * 4 * C % block:
        fault = f"4 x B {B} x T {T} x C {C} is not a multiple of {block}"
        yield fault, "aborts on CUDA in gelu_forward", "use another -b or -t"
    elif T >= _SAMPLE_T and min(T, 256) * 4 * C % block:
        fault = f"4 x {min(T, 256)} positions of a sample x C {C} is not a multiple of {block}"
        yield fault, "aborts on CUDA when it samples", "use another -t, -ge 1, or -s 0"
    if T < _SAMPLE_T:
        fault = f"T is {T}, but samples have {_SAMPLE_T + 1} tokens"
        yield fault, "aborts on CUDA when it samples", f"use -t 64 or more, -g {T + 1}, or -s 0"


def _cannot_be_shared(sizes: Sizes, processes: int) -> bool:
    """Returns whether multi_gpu_async_reduce_gradient in zero.cuh, for -z 1, cannot divide the gradients among the
    processes: it cuts each layer's tensors into equal parts, unless all weights together cannot be so cut."""
    shapes = sizes.tensor_shapes().items()
    parts = (prod(s) // (1 if name in ("wte", "wpe", "lnfw", "lnfb") else sizes.num_layers) for name, s in shapes)
    return processes > 1 and sizes.num_parameters % processes == 0 and any(part % processes for part in parts)


# ----------------------------------------------------------------------------------------------------
# What llm.c's CUDA trainer resumes from with -y 1: DONE_STEP, model_STEP.bin, and each process's state_STEP_RANK.bin.
# It takes the highest STEP of the DONE files (find_max_step in llmc/utils.h), and load_state in train_gpt2.cu requires
# what is checked here. A state is a header of 256 int32,
#
#     [0] 20240527  [1] 1  [2] processes  [3] rank  [4] 1 with master weights  [5] 1 with shuffling  [10] step
#
# then m, v and optionally the master weights as float32, all of them or this rank's part; with shuffling, the number of
# shards as uint64, their order, the samples of a shard as uint64, their order (int32 each), and the state of the
# generator.

_GENERATOR_BYTES = 2520  # sizeof(mt19937_state) in llmc/rand.h
_NAME = re.compile(r"state_(\d{8})_(\d{5})\.bin")


def state_faults(seen: Seen) -> Iterator[Finding]:
    """Yields what would stop a run from resuming."""
    for path, facts in seen.states.items():
        yield from _faults_of_state(path, facts, seen)
    for folder in seen.found.folders:
        yield from _missing_faults(folder, seen.states, seen.run)


def _faults_of_state(path: str, facts: StateFacts, seen: Seen) -> Iterator[Finding]:
    name, given = _NAME.fullmatch(os.path.basename(path)), seen.run.given
    _, version, processes, rank, master, shuffled = facts.header[:6]
    if version != 1:
        yield Finding(path, f"version {version}, expected 1", ON_RESUMING, EARLIER_STEP)
    if name is not None and int(name[2]) != rank:
        fault = f"belongs to process {rank} according to its header"
        yield Finding(path, fault, ON_RESUMING, "rename it for its process")
    if given is not None and given.processes != processes:
        fault = f"was saved by {processes} processes, not {given.processes}"
        yield Finding(path, fault, ON_RESUMING, f"resume with {processes} processes")
    model = None if name is None else seen.models.get(os.path.join(os.path.dirname(path), f"model_{name[1]}.bin"))
    if model is None or not model.is_possible:
        return
    # The optimizer has as many values as the same step's model, whole or split among the processes.
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
