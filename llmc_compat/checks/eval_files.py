"""Checks each eval file by itself. With -h 1, the CUDA trainer reads one in EvalLoader (llmc/dataloader.h)."""

from __future__ import annotations

from collections.abc import Iterator

from llmc_compat.batch import Batch
from llmc_compat.evals import COMPLETIONS, EvalFacts

from .finding import WARNING, Finding

REMEDY = "write it again with pybpe llmc eval"


def eval_faults(path: str, facts: EvalFacts, batch: Batch) -> Iterator[Finding]:
    """Yields what is wrong with an eval file for a batch."""
    yield from _header_faults(path, facts)
    if batch.B < COMPLETIONS:
        fault = f"B is {batch.B}, but an example takes {COMPLETIONS} rows"
        yield Finding(path, fault, "aborts with -h 1", f"use -b {COMPLETIONS} or more, or -h 0")
    if batch.T < facts.min_T:
        fault = f"its longest example needs T {facts.min_T}, but T is {batch.T}"
        yield Finding(
            path, fault, "aborts with -h 1", f"use -t {facts.min_T} or more, leave long examples out, or -h 0"
        )
    each = -(-facts.examples // batch.processes)
    if facts.examples < batch.processes or each * (batch.processes - 1) > facts.examples:
        fault = f"{facts.examples} examples, {each} per process, leave none for the last of {batch.processes} processes"
        effect = "reads past the end and aborts with -h 1"
        yield Finding(path, fault, effect, "use fewer processes, a different number of examples, or -h 0")


def _header_faults(path: str, facts: EvalFacts) -> Iterator[Finding]:
    """Yields wrong sizes. llm.c allocates a buffer of the size in the header, and reads each example into the buffer,
    except the first 6 bytes."""
    longest = facts.longest_bytes
    stated = facts.stated_bytes or longest
    fault = f"the longest example has {longest} bytes, but the header says {stated}"
    if stated < longest - 6:
        yield Finding(path, fault, "overflows its buffer with -h 1", REMEDY)
    elif stated != longest:
        yield Finding(path, fault, f"aborts with -h 1 if T is below {facts.min_T}", REMEDY, WARNING)
    if facts.rest_bytes:
        fault = f"{facts.rest_bytes} bytes follow the {facts.examples} examples that its header counts"
        yield Finding(path, fault, "never reads them", REMEDY, WARNING)
