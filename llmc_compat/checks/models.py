"""Checks each model checkpoint by itself. llm.c reads them in gpt2_build_from_checkpoint (train_gpt2.c, train_gpt2.cu).

llm.c checks the magic, the version, and that no weight is missing. It trusts every size in the header. The effects on
the CPU were observed by running train_gpt2; for CUDA, the code names the places in its source.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf, prod

from llmc_compat.checkpoint import file_bytes
from llmc_compat.gpt2_config import Sizes

from .contents import MODEL_AGAIN, ModelFacts, Seen
from .files import MODEL_NAMES
from .finding import WARNING, Finding, Run

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
        yield from _faults(path, facts, seen.run)


def _faults(path: str, facts: ModelFacts, run: Run) -> Iterator[Finding]:
    for header_fault in _header_faults(os.path.basename(path), facts, run):
        yield Finding(path, *header_fault)
    if facts.weights is None:
        return
    for weight_fault in _weight_faults(facts.weights.largest):
        yield Finding(path, *weight_fault)
    for name in _NEVER_ZERO:
        if facts.weights.largest.get(name) == 0 and any(facts.weights.largest.values()):
            yield Finding(path, f"all of {name} is zero", "trains from it anyway", MODEL_AGAIN, WARNING)
    may_be_for_cpu = facts.dtype == "fp32" and not run.is_cuda  # the CPU accepts what only CUDA refuses
    for cuda_fault in _cuda_faults(facts, run):
        yield Finding(path, *cuda_fault).unless(may_be_for_cpu)
    processes = run.batch.processes
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
