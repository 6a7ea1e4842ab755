"""Checks each model checkpoint by itself. llm.c reads them in gpt2_build_from_checkpoint (train_gpt2.c, train_gpt2.cu).

llm.c checks the magic, the version, and that no weight is missing. It trusts every size in the header. The effects on
the CPU were observed by running train_gpt2; for CUDA, the code names the places in its source.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, BinaryIO

from llmc_compat.batch import Batch
from llmc_compat.checkpoint import HEADER_BYTES, ITEM_BYTES, VERSIONS, from_file_type
from llmc_compat.gpt2_config import GPT2Config
from pybpe._numpy import numpy
from pybpe.errors import FormatError
from pybpe.reading.streams import open_unchanged, read_items

from .finding import WARNING, Finding, Run
from .names import MODEL_NAMES

REMEDY = "write it again with pybpe llmc workspace or checkpoint"

_BLOCK_ITEMS = 1 << 22
_VECTOR = {"fp32": 4, "bf16": 8}  # items that a CUDA kernel loads at once (16 bytes)
_HUGE = 1e4  # the weights of a trained GPT-2 are below 100
_SIZES = {  # what the CPU trainer does if a size is 0 or negative
    "max_seq_len": "reads the wrong weights as position embeddings, and trains on nonsense, or aborts",
    "vocab_size": "aborts at the first id or sample",
    "num_layers": "trains on nonsense without layers, or crashes",
    "num_heads": "crashes or trains on nonsense",
    "channels": "trains on nonsense, or aborts",
    "padded_vocab_size": "computes a loss of nan and aborts, or trains on nonsense",
}
_NAMES = {
    "max_seq_len": "maxT",
    "vocab_size": "V",
    "num_layers": "L",
    "num_heads": "NH",
    "channels": "C",
    "padded_vocab_size": "Vp",
}
_NEVER_ZERO = ("wte", "ln1w", "ln2w", "lnfw")


@dataclass(frozen=True)
class Weights:
    """What the tensors hold.

    Attributes:
        largest: the largest magnitude of each tensor; inf for Inf and NaN.
        padding_is_used: whether a row of wte beyond V has a nonzero weight.
    """

    largest: dict[str, float] = field(default_factory=dict)
    padding_is_used: bool = False


@dataclass(frozen=True)
class ModelFacts:
    """What a checkpoint holds.

    Attributes:
        dtype: "fp32" or "bf16".
        sizes: the header's sizes, in file order, by their names in GPT2Config.
        size: the file's size, in bytes.
        weights: None unless the file's size matches the header.
    """

    dtype: str
    sizes: dict[str, int]
    size: int
    weights: Weights | None

    @property
    def V(self) -> int:
        """The number of tokens."""
        return self.sizes["vocab_size"]

    @property
    def Vp(self) -> int:
        """The number of rows of wte in the file."""
        return self.sizes["padded_vocab_size"]

    @property
    def maxT(self) -> int:
        """The number of positions."""
        return self.sizes["max_seq_len"]

    @property
    def C(self) -> int:
        """The number of channels."""
        return self.sizes["channels"]

    @property
    def expected_size(self) -> int:
        """The file size that these sizes imply."""
        return HEADER_BYTES + ITEM_BYTES[self.dtype] * weight_count(self.sizes)

    @property
    def is_possible(self) -> bool:
        """Whether each size is at least 1."""
        return min(self.sizes.values()) > 0


def tensor_shapes(sizes: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Returns the tensors of a checkpoint with these sizes, consistent or not."""
    plain = GPT2Config(1, 1, sizes["max_seq_len"], sizes["num_layers"], 1, sizes["channels"]).tensor_shapes()
    return {**plain, "wte": (sizes["padded_vocab_size"], sizes["channels"])}


def weight_count(sizes: dict[str, int]) -> int:
    """What llm.c prints as num_parameters."""
    return sum(map(prod, tensor_shapes(sizes).values()))


def read_model(path: str) -> ModelFacts:
    """Raises FileError, FormatError."""
    with open_unchanged(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        raw = stream.read(HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            raise FormatError(
                f"{path}: too short for a checkpoint: {len(raw)} bytes, but the header alone has {HEADER_BYTES}"
            )
        _, version, maxT, V, L, NH, C, Vp = (int(i) for i in numpy.frombuffer(raw, dtype="<i4", count=8))
        dtype = next((dtype for dtype, number in VERSIONS.items() if number == version), None)
        if dtype is None:
            raise FormatError(f"{path}: version {version}, expected 3 (fp32) or 5 (bf16); llm.c aborts", 4)
        sizes = dict(zip(_SIZES, (maxT, V, L, NH, C, Vp)))
        facts = ModelFacts(dtype, sizes, size, None)
        if not facts.is_possible or size != facts.expected_size:
            return facts
        return ModelFacts(dtype, sizes, size, _read_weights(stream, facts))


def _read_weights(stream: BinaryIO, facts: ModelFacts) -> Weights:
    """Reads the weights. Raises FormatError if the file was truncated in the meantime."""
    largest = {}
    padding = 0.0
    for name, shape in tensor_shapes(facts.sizes).items():
        used = min(facts.V, facts.Vp) * facts.C if name == "wte" else prod(shape)
        largest[name] = _largest(stream, facts.dtype, used)
        if name == "wte":
            padding = _largest(stream, facts.dtype, prod(shape) - used)
            largest[name] = max(largest[name], padding if padding == float("inf") else 0.0)
    return Weights(largest, padding > 0)


def _largest(stream: BinaryIO, dtype: str, count: int) -> float:
    """Returns the largest magnitude of the next weights, or inf if one is not finite.

    Without their sign, floats compare like their bits as integers; Inf and NaN compare above all others.
    """
    bits = numpy.dtype(f"<u{ITEM_BYTES[dtype]}")
    without_sign = bits.type((1 << (8 * bits.itemsize - 1)) - 1)
    found = bits.type(0)
    for start in range(0, count, _BLOCK_ITEMS):
        block = read_items(stream, bits, min(_BLOCK_ITEMS, count - start))
        if len(block) < min(_BLOCK_ITEMS, count - start):
            raise FormatError("was truncated while being read")
        found = max(found, (block & without_sign).max())
    value = float(from_file_type(_as_file_type(found, dtype), dtype)[0])
    return value if value < float("inf") else float("inf")


def _as_file_type(bits: Any, dtype: str) -> numpy.ndarray[Any, Any]:
    raw = numpy.array([bits])
    return raw.view("<f4") if dtype == "fp32" else raw


# ----------------------------------------------------------------------------------------------------
# The CPU and CUDA


def model_faults(path: str, facts: ModelFacts, run: Run) -> Iterator[Finding]:
    """Yields what is wrong with a checkpoint."""
    yield from _type_fault(path, facts)
    yield from _size_faults(path, facts)
    if facts.is_possible:
        yield from _bytes_fault(path, facts)
        yield from _heads_fault(path, facts)
        yield from _rows_fault(path, facts)
        yield from _context_fault(path, facts, run)
    if facts.weights is not None:
        yield from _weight_faults(path, facts.weights)
        yield from _padding_fault(path, facts, run)
        yield from _cuda_faults(path, facts, run)
        yield from _share_fault(path, facts, run)


def _type_fault(path: str, facts: ModelFacts) -> Iterator[Finding]:
    types = {name: dtype for dtype, name in MODEL_NAMES.items()}
    expected = types.get(os.path.basename(path), facts.dtype)
    if facts.dtype != expected:
        fault = f"is {facts.dtype}, but llm.c expects {expected} under this name"
        remedy = f"write it with --dtype {expected}, or rename it and pass it with -e"
        yield Finding(path, fault, "aborts: 'Bad version', or 'Precision is configured as'", remedy)


def _size_faults(path: str, facts: ModelFacts) -> Iterator[Finding]:
    for name, value in facts.sizes.items():
        if value < 1:
            yield Finding(path, f"{_NAMES[name]} is {value} in its header", _SIZES[name], REMEDY)


def _bytes_fault(path: str, facts: ModelFacts) -> Iterator[Finding]:
    difference = facts.size - facts.expected_size
    fault = f"{facts.size} bytes, but its header implies {facts.expected_size}"
    if difference < 0:
        yield Finding(path, fault, "aborts, because weights are missing", REMEDY)
    elif difference > 0:
        effect = "ignores the extra bytes, and trains on shifted weights if the header is wrong"
        yield Finding(path, fault, effect, REMEDY)


def _heads_fault(path: str, facts: ModelFacts) -> Iterator[Finding]:
    NH, C = facts.sizes["num_heads"], facts.C
    if C % NH:
        effect = f"trains on nonsense, because {C % NH} channels belong to no head"
        if NH > C:
            effect = "trains on nonsense, because its heads have no channels, or runs out of memory"
        yield Finding(path, f"NH is {NH}, which does not divide C {C}", effect, REMEDY)


def _rows_fault(path: str, facts: ModelFacts) -> Iterator[Finding]:
    if facts.Vp < facts.V:
        effect = "reads beyond the logits of each position, and crashes or trains on nonsense"
        yield Finding(path, f"Vp is {facts.Vp}, below V {facts.V}", effect, REMEDY)


def _context_fault(path: str, facts: ModelFacts, run: Run) -> Iterator[Finding]:
    T = run.batch.T
    if T > facts.maxT:
        effect = "reads the wrong weights as position embeddings on the CPU and trains on nonsense, and aborts on CUDA"
        remedy = f"use -t {facts.maxT}, or a longer --sequence-length"
        yield Finding(path, f"maxT is {facts.maxT}, but T is {T}", effect, remedy)


def _weight_faults(path: str, weights: Weights) -> Iterator[Finding]:
    largest = weights.largest
    broken = [name for name, value in largest.items() if value == float("inf")]
    huge = [name for name, value in largest.items() if value > _HUGE]
    if not any(largest.values()):
        yield Finding(path, "all weights are zero", "trains on nonsense: its loss never changes", REMEDY)
        return
    if broken:
        effect = "computes a loss of nan or inf: aborts on the CPU, or trains on nonsense"
        yield Finding(path, f"has Inf or NaN in {', '.join(broken)}", effect, "use an earlier checkpoint")
    elif huge:
        most = max(largest[name] for name in huge)
        fault = f"has weights up to {most:.0e} in {', '.join(huge)}; those of a trained GPT-2 are below 100"
        effect = "trains on nonsense or aborts, because its loss may become inf or nan"
        yield Finding(path, fault, effect, "use an earlier checkpoint")
    for name in _NEVER_ZERO:
        if largest.get(name) == 0:
            yield Finding(path, f"all of {name} is zero", "trains from it anyway", REMEDY, WARNING)


# ----------------------------------------------------------------------------------------------------
# CUDA only. A float32 run may be on the CPU, which accepts these; then they are warnings.


def _for_cuda_alone(facts: ModelFacts, run: Run) -> bool:
    return facts.dtype == "bf16" or run.is_cuda


def _padding_fault(path: str, facts: ModelFacts, run: Run) -> Iterator[Finding]:
    """fused_classifier.cuh writes the gradients of V logits and leaves the others unchanged."""
    if facts.weights and facts.weights.padding_is_used:
        fault = f"rows {facts.V} to {facts.Vp} of wte are not zero"
        effect = "uses their logits as gradients on CUDA, so that the gradient norm explodes"
        finding = Finding(path, fault, effect, "pybpe llmc checkpoint convert zeroes them")
        yield finding.unless(not _for_cuda_alone(facts, run))


def _cuda_faults(path: str, facts: ModelFacts, run: Run) -> Iterator[Finding]:
    for fault, effect, remedy in _kernel_faults(facts, run):
        yield Finding(path, fault, effect, remedy).unless(not _for_cuda_alone(facts, run))


def _kernel_faults(facts: ModelFacts, run: Run) -> Iterator[tuple[str, str, str]]:
    """Yields what violates the kernels' assumption of 16-byte loads (Packed128 in cuda_utils.cuh, and
    matmul_cublaslt)."""
    step = _VECTOR[facts.dtype]
    effect = "reads unaligned rows on CUDA, and aborts"
    if facts.C % step:
        yield f"C is {facts.C}, not a multiple of {step}", effect, "use a different --channels"
    if facts.Vp % step:
        yield f"Vp is {facts.Vp}, not a multiple of {step}", effect, "pybpe llmc checkpoint convert --pad 128"
    if run.given:
        yield from _batch_faults(facts, run.given, step)


def _batch_faults(facts: ModelFacts, batch: Batch, step: int) -> Iterator[tuple[str, str, str]]:
    """Yields B and T that kernels refuse: softmax_forward_kernel5 (attention.cuh), gelu_forward (gelu.cuh)."""
    B, T, block = batch.B, batch.T, 512 * step
    if T % 4:
        yield f"T is {T}, not a multiple of 4", "aborts on CUDA without cuDNN", f"use -t {max(4, T // 4 * 4)}"
    if B * T * 4 * facts.C % block:
        fault = f"4 x B {B} x T {T} x C {facts.C} is not a multiple of {block}"
        yield fault, "aborts on CUDA in gelu_forward", "use another -b or -t"
    elif T >= _SAMPLE_T and min(T, 256) * 4 * facts.C % block:
        fault = f"4 x {min(T, 256)} positions of a sample x C {facts.C} is not a multiple of {block}"
        yield fault, "aborts on CUDA when it samples", "use another -t, -ge 1, or -s 0"
    if T < _SAMPLE_T:
        fault = f"T is {T}, but samples have {_SAMPLE_T + 1} tokens"
        yield fault, "aborts on CUDA when it samples", f"use -t 64 or more, -g {T + 1}, or -s 0"


_SAMPLE_T = 63  # genT - 1: the number of positions gpt2_forward computes, in steps of T


def _share_fault(path: str, facts: ModelFacts, run: Run) -> Iterator[Finding]:
    """Yields what multi_gpu_async_reduce_gradient in zero.cuh cannot divide among the processes."""
    processes = run.batch.processes
    if processes > 1 and _cannot_be_shared(facts, processes):
        fault = f"C is {facts.C}, not a multiple of {processes} processes"
        remedy = "use -z 0, or a different number of processes"
        yield Finding(path, fault, "aborts on CUDA with -z 1", remedy, WARNING)


def _cannot_be_shared(facts: ModelFacts, processes: int) -> bool:
    """Checks what -z 1 needs: it cuts each layer's tensors into equal parts, unless all weights together cannot be so
    cut."""
    layers = facts.sizes["num_layers"]
    shapes = tensor_shapes(facts.sizes)
    parts = (prod(s) // (1 if name in ("wte", "wpe", "lnfw", "lnfb") else layers) for name, s in shapes.items())
    return weight_count(facts.sizes) % processes == 0 and any(part % processes for part in parts)
