"""Checks what `pybpe llmc check` says about llm.c: runs llm.c on every faulty folder of tests/py/llmc_faults.py.

    LLMC=path/to/llm.c .venv/bin/python tests/llmc_verdicts.py [REGEX]

Compiles train_gpt2.c, unmodified, and llmc_loaders.c around llm.c's dataloader.h, in a folder that is removed
afterward. For each fault it compares what happens (an exit code, a signal, another loss) with the table and with the
effect that `check` names. Downloads nothing; without LLMC, prints a message and does nothing else. Effects that need a
GPU are not tested: docs/llmc-check.md names the lines of llm.c's source.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "py"))

from llmc_faults import (  # noqa: E402
    ABORTS,
    EVAL_PLACE,
    EVALS,
    FAULTS,
    HANGS,
    NONSENSE,
    RUNS,
    SAME,
    TRAIN,
    Row,
    make_sound,
    tokens,
)

from llmc_compat.check import check  # noqa: E402
from llmc_compat.shards import Batch  # noqa: E402

SAYS = {  # what an effect must say to cover an outcome
    ABORTS: "abort|crash|memory|finds no such file|overflows|may not find it",
    NONSENSE: "nonsense|prints|trains|validates|sample|starts|loss",
    HANGS: "waits",
    SAME: "",
}
TRAINS, EVALUATES = "data/corpus_train_*.bin", EVALS
LOADERS = {  # what the loaders of the CUDA trainer do: the arguments of llmc_loaders, and the outcome
    "sound": ("shards", TRAINS, 4, 64, 2, RUNS),
    "sound evals": ("evals", EVALUATES, 4, 64, 1, RUNS),
    "a shard of another run": ("shards", TRAINS, 4, 64, 1, RUNS),
    "a tokenizer among shards": ("shards", TRAINS, 4, 64, 1, ABORTS),
    "a folder among shards": ("shards", TRAINS, 4, 64, 1, ABORTS),
    "eval magic": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "eval version": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "eval without examples": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "eval cut off": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "eval buffer 0": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "eval delimiter": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "eval label": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "long examples": ("evals", EVALUATES, 4, 64, 1, ABORTS),
    "HellaSwag's place": ("evals", EVAL_PLACE, 4, 64, 1, ABORTS),
}
FITS = (  # which batches the loaders serve: what `check` says for the same B, T and processes must agree
    *(
        ("shards", "data/corpus_val_*.bin", B, T, n)
        for B, T, n in ((4, 64, 12), (4, 64, 13), (1, 3320, 1), (1, 3321, 1))
    ),
    *(("evals", EVALUATES, B, T, n) for B in (3, 4, 8) for T in (3, 4, 64) for n in (1, 3, 4, 5, 6, 7)),
)


def compile_all(llmc: Path, out: Path) -> None:
    """Compiles with llm.c's own flags; the loaders under AddressSanitizer, which detects accesses outside buffers."""
    fast = ["cc", "-Ofast", "-w", str(llmc / "train_gpt2.c"), "-lm", "-o", str(out / "train_gpt2")]
    checked = ["cc", "-O1", "-g", "-w", "-fsanitize=address", f"-I{llmc}", str(TESTS / "llmc_loaders.c"), "-lm"]
    for command in (fast, [*checked, "-o", str(out / "llmc_loaders")]):
        subprocess.run(command, check=True)


_SHAPE = re.compile(rb"\(took .*?\)|^(?:\w*vocab_size|num_\w+): .*$", re.MULTILINE)  # of the model, not of its losses


def start(command: list[str], folder: Path) -> tuple[str, str, str]:
    """Returns the outcome, what the program printed, and its last line."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "ASAN_OPTIONS": "detect_leaks=0"}
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=20, env=settings, check=False)
    except subprocess.TimeoutExpired:
        return HANGS, "", ""
    text = _SHAPE.sub(b"", done.stdout).decode("latin-1")
    words = (done.stderr.decode("latin-1").strip() or text.strip()).splitlines()[:1]
    return RUNS if done.returncode == 0 else ABORTS, text, f"exit code {done.returncode}: {''.join(words)}"


class Comparison:
    """The valid folder, what llm.c printed there, and the number of disagreements."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.sound = make_sound(folder)
        self.expected = start([str(programs / "train_gpt2")], self.sound)[1]
        self.wrong = 0

    def fresh(self, damage: Callable[[Path], object]) -> Path:
        """Makes a copy of the valid folder with a fault."""
        work = self.folder / "faulty"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.sound, work, symlinks=True)
        damage(work)
        return work

    def report(self, name: str, agrees: bool, words: str) -> None:
        self.wrong += not agrees
        print(f"{'agrees' if agrees else 'WRONG '}  {name}: {words}", flush=True)

    def trainer(self, name: str, row: Row) -> None:
        """Runs train_gpt2 in a faulty folder."""
        work = self.fresh(row.damage)
        findings = [finding for finding in check([work])[1] if finding.file == str(work / row.file)]
        outcome, text, words = start([str(self.programs / "train_gpt2")], work)
        if outcome == RUNS:
            outcome = SAME if text == self.expected else NONSENSE
        effects = [finding.effect for finding in findings]
        says = row.severity == "none" or row.cpu == RUNS or any(re.search(SAYS[outcome], effect) for effect in effects)
        both = any(re.search(SAYS[ABORTS], effect) and re.search(SAYS[NONSENSE], effect) for effect in effects)
        runs = row.cpu == RUNS and outcome in (SAME, NONSENSE)
        expected = outcome == row.cpu or runs or (both and {outcome, row.cpu} <= {ABORTS, NONSENSE})
        self.report(name, expected and says, f"{outcome} ({words}); check: {effects}")

    def loader(self, name: str, row: Row | None) -> None:
        """Runs the loaders of the CUDA trainer."""
        *command, expected = LOADERS[name]
        work = self.fresh(row.damage if row else lambda _: None)
        outcome, text, words = start([str(self.programs / "llmc_loaders"), *map(str, command)], work)
        found = text if "\n" in expected else outcome
        effects = [finding.effect for finding in check([work])[1]]
        says = outcome == RUNS or any(re.search(SAYS[ABORTS], effect) for effect in effects)
        self.report(f"{name}, {command[0]}", found == expected and says, f"{outcome} ({words}); check: {effects}")

    def fit(self, what: str, pattern: str, B: int, T: int, processes: int) -> None:
        """Checks that the loaders return a batch exactly if `check` finds no fault."""

        def more(work: Path) -> None:
            for i, count in enumerate((9001, 9001, 8900)):
                tokens(f"more/a_train_{i:06}.bin", count)(work)

        work = self.fresh(more)
        outcome, _, words = start(
            [str(self.programs / "llmc_loaders"), what, pattern, *map(str, (B, T, processes))], work
        )
        findings = check(work.glob(pattern), Batch(B, T, processes))[1]
        name = f"{what} {pattern} -b {B} -t {T} -n {processes}"
        self.report(
            name, (outcome == ABORTS) == bool(findings), f"{outcome} ({words}); check: {len(findings)} findings"
        )

    def large(self) -> None:
        """Tests a sparse shard of more than 2 GiB."""

        def damage(work: Path) -> None:
            count = (1 << 30) + 70_000
            with open(work / TRAIN, "wb") as stream:
                stream.write(struct.pack("<3i", 20240520, 1, count))
                stream.truncate(1024 + 2 * count)

        work = self.fresh(damage)
        outcome, _, words = start([str(self.programs / "llmc_loaders"), "shards", TRAINS, "64", "1024", "1"], work)
        effects = [f.effect for f in check([work / TRAIN], Batch(64, 1024))[1] if "GiB" in f.effect]
        self.report(
            "a shard beyond 2 GiB", outcome == ABORTS and bool(effects), f"{outcome} ({words}); check: {effects}"
        )


def main() -> int:
    path = os.environ.get("LLMC")
    if not path:
        print("skipped: LLMC=path/to/llm.c is not set")
        return 0
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder) / "programs"
        programs.mkdir()
        compile_all(Path(path).resolve(), programs)
        comparison = Comparison(programs, Path(folder))
        for name, row in FAULTS.items():
            if wanted.search(name):
                comparison.trainer(name, row)
        for name in filter(wanted.search, LOADERS):
            comparison.loader(name, FAULTS.get(name))
        for case in FITS if wanted.search("fit") else ():
            comparison.fit(*case)
        if wanted.search("large"):
            comparison.large()
    print(f"{comparison.wrong} wrong")
    return 1 if comparison.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
