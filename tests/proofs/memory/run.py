#!/usr/bin/env python3
"""Runs the proofs about memory: tests/proofs/memory/*.c, which prove.h describes.

    run.py             takes each proof with CBMC, for each size up to its bound; then puts the faults of faults.txt
                       into csrc, one at a time, and requires that CBMC, or random draws, find each
    run.py --draw      takes each proof with random draws, under sanitizers
    run.py NAME...     only these files or proofs, such as json or json.string

CBMC: `apt install cbmc` on Debian 13, Ubuntu 24.04 and later; https://github.com/diffblue/cbmc otherwise.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CSRC = HERE.parents[2] / "csrc"
HEADERS = CSRC.parent / "llmc_compat" / "include"
DEFINITIONS = [f"-I{HEADERS}"]
CHECKS = (
    "--bounds-check --pointer-check --pointer-overflow-check --pointer-primitive-check --signed-overflow-check "
    "--undefined-shift-check --div-by-zero-check --memory-leak-check --unwinding-assertions --malloc-may-fail "
    "--malloc-fail-null --drop-unused-functions --object-bits 10 --slice-formula"
).split()
# Functions without a body return anything, and change nothing.
UNKNOWN = {"nondet_u64"}
_STRINGS = r'(?:,\s+((?:"[^"]*"\s*)+))?'
_PROOF = re.compile(r"(PROOF|DRAWN)\(\s*(\w+), (\d+), (\d+), (\d+)" + _STRINGS + _STRINGS + r"\)")


@dataclass(frozen=True)
class Proof:
    """A function `prove_NAME` of a C file, the sizes for which it is run.

    Attributes:
        turns: how often a loop may turn, minus the size.
        loops: loops that may turn more often, as `function.number:turns`, separated by commas.
        stubs: functions that others replace, as `function:stub`, separated by spaces.
        is_drawn: CBMC has not finished it, so it runs it only if the proof is named.
    """

    source: Path
    name: str
    least: int
    most: int
    turns: int
    loops: str
    stubs: str
    is_drawn: bool

    @property
    def label(self) -> str:
        """The name of the file and of the proof."""
        return f"{self.source.stem}.{self.name}"


@dataclass(frozen=True)
class Verdict:
    """What CBMC says: how many properties it checked, and what was wrong, if anything."""

    properties: int
    complaint: str


def proofs_of(source: Path) -> list[Proof]:
    """Returns the proofs that a C file lists in PROOFS, as PROOF(...) or DRAWN(...).

    A proof may be listed as both, with the sizes that CBMC takes and larger ones: this returns the former.
    """
    found = _PROOF.findall(source.read_text(encoding="utf-8"))
    proofs = [
        Proof(source, name, int(least), int(most), int(turns), _joined(loops), _joined(stubs), kind == "DRAWN")
        for kind, name, least, most, turns, loops, stubs in found
    ]
    drawn_first = sorted(proofs, key=lambda proof: not proof.is_drawn)
    return list({proof.name: proof for proof in drawn_first}.values())


def _joined(literals: str) -> str:
    """Returns what string literals next to each other mean in C."""
    return "".join(re.findall(r'"([^"]*)"', literals))


def with_stubs(proof: Proof, definitions: list[str], folder: str) -> list[str]:
    """Compiles a proof for CBMC and replaces functions by stubs. Returns the arguments that name the result."""
    compiled, replaced = f"{folder}/compiled.gb", f"{folder}/replaced.gb"
    calls = [argument for stub in proof.stubs.split() for argument in ("--replace-calls", stub)]
    subprocess.run(["goto-cc", *definitions, str(proof.source), "-o", compiled], capture_output=True, check=True)
    subprocess.run(["goto-instrument", *calls, compiled, replaced], capture_output=True, check=True)
    return [replaced]


def check(proof: Proof, size: int, csrc: Path = CSRC) -> Verdict:
    """Runs CBMC for one size."""
    definitions = [f"-DPROVE=prove_{proof.name}", f"-DPROVE_SIZE={size}", f"-I{csrc}", *DEFINITIONS]
    loops = ["--unwindset", proof.loops] if proof.loops else []
    with tempfile.TemporaryDirectory() as folder:
        source = with_stubs(proof, definitions, folder) if proof.stubs else [*definitions, str(proof.source)]
        done = subprocess.run(
            ["cbmc", *CHECKS, "--unwind", str(proof.turns + size), *loops, *source],
            capture_output=True,
            text=True,
            check=False,
        )
    failed = re.findall(r"^\[[^\n]*FAILURE$", done.stdout, re.MULTILINE)
    unknown = set(re.findall(r"no body for (?:function|callee) (\w+)", done.stdout + done.stderr)) - UNKNOWN
    total = re.search(r"of (\d+) failed", done.stdout)
    if done.returncode == 0 and total and not failed and not unknown:
        return Verdict(int(total[1]), "")
    complaint = "\n".join([*failed, *(f"no body for {name}" for name in sorted(unknown))])
    return Verdict(0, complaint or (done.stdout + done.stderr)[-2000:])


def prove(proof: Proof) -> bool:
    """Runs CBMC for each size, and prints a line."""
    start = time.monotonic()
    most = 0
    for size in range(proof.least, proof.most + 1):
        verdict = check(proof, size)
        if verdict.complaint:
            print(f"FAILED  {proof.label}, size {size}:\n{verdict.complaint}", flush=True)
            return False
        most = max(most, verdict.properties)
    seconds = time.monotonic() - start
    print(f"proved  {proof.label}, sizes {proof.least} to {proof.most}: {most} properties, {seconds:.0f} s", flush=True)
    return True


def find_fault(line: str, proofs: dict[str, Proof]) -> bool:
    """Puts a fault into a copy of csrc and of the drop-in headers. CBMC must then fail at the given size, or
    random draws of a proof that CBMC has not finished.
    """
    label, size, file, old, new = line.replace("\\n", "\n").split(" | ")
    with tempfile.TemporaryDirectory() as folder:
        csrc = Path(folder) / "csrc"
        shutil.copytree(CSRC, csrc)
        shutil.copytree(HEADERS / "llmc", csrc / "llmc", dirs_exist_ok=True)
        source = (csrc / file).read_text(encoding="utf-8")
        if source.count(old) != 1:
            print(f"FAILED  faults.txt: {file} must have this once: {old}", flush=True)
            return False
        (csrc / file).write_text(source.replace(old, new), encoding="utf-8")
        proof = proofs[label]
        if proof.is_drawn:
            found = not draw(proof.source, csrc, quiet=True)
        else:
            found = "FAILURE" in check(proof, int(size), csrc).complaint
    print(f"{'found ' if found else 'MISSED'}  {label}: {file}: {old} -> {new}", flush=True)
    return found


def draw(source: Path, csrc: Path = CSRC, quiet: bool = False) -> bool:
    """Compiles the proofs of a C file, and runs them with random draws."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / source.stem)
        compiler = os.environ.get("CC", "cc").split()
        flags = ["-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        warnings = [
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Werror",
            "-Wno-unused-function",
            "-Wno-clobbered",
            "-Wno-maybe-uninitialized",
        ]
        subprocess.run(
            [*compiler, *flags, *warnings, f"-I{csrc}", *DEFINITIONS, "-o", program, str(source)], check=True
        )
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
        return subprocess.run([program], env=environment, check=False, capture_output=quiet).returncode == 0


def main() -> int:
    """Runs what the command line asks for; returns 1 if anything failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    sources = sorted(HERE.glob("*.c"))
    proofs = {p.label: p for source in sources for p in proofs_of(source)}
    chosen = [p for p in proofs.values() if not arguments.names or {p.label, p.source.stem} & set(arguments.names)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        if arguments.draw:
            return 0 if all(pool.map(draw, sorted({p.source for p in chosen}))) else 1
        if shutil.which("cbmc") is None:
            print("The model checker cbmc is missing, so the proofs about memory are not made: apt install cbmc")
            return 0
        results = list(pool.map(prove, [p for p in chosen if not p.is_drawn or p.label in arguments.names]))
        faults = [f for f in (HERE / "faults.txt").read_text(encoding="utf-8").splitlines() if " | " in f]
        labels = {p.label for p in chosen}
        wanted = [fault for fault in faults if fault.split(" | ")[0] in labels]
        results += list(pool.map(lambda fault: find_fault(fault, proofs), wanted))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
