"""Checks that every run produces the same bytes: determinism.py [RUNS]. Each run is a separate process, with a
different hash seed, number of workers and instruction set. tests/py/test_determinism.py compares compilers."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.fspath(Path(__file__).parents[1] / "py"))

PROGRAM = """
import sys, pybpe
corpus, out, workers, tie_break = sys.argv[1:]
pybpe.prepare(corpus, out, vocab_size=8000, tie_break=tie_break, workers=int(workers), progress=False)
"""


def digest(corpus: Path, out: Path, workers: int, tie_break: str, environment: dict[str, str]) -> str:
    """Returns a digest of all files that preparing the corpus produces."""
    command = [sys.executable, "-c", PROGRAM, corpus, out, str(workers), tie_break]
    subprocess.run(command, check=True, env=os.environ | environment)
    total = hashlib.sha256()
    for path in sorted(out.iterdir()):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def main() -> int:
    """See above; the exit code is 1 if two runs differ."""
    from texts import chinese, english, mixed

    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = random.Random(4)
    differing = 0
    for tie_break in ("lexicographic", "huggingface"):
        digests = set()
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder) / "corpus.txt"
            corpus.write_text((english() + chinese(20_000) + mixed(200_000)) * 4, encoding="utf-8")
            for i in range(runs):
                environment = {
                    "PYTHONHASHSEED": str(rng.randrange(2**32)),
                    "PYBPE_SIMD": rng.choice(["avx512", "avx2", "neon", "swar"]),
                }
                digests.add(digest(corpus, Path(folder) / str(i), rng.choice([1, 2, 3, 8]), tie_break, environment))
        print(f"{tie_break}: {runs} runs, {len(digests)} different: {' '.join(sorted(digests))}", flush=True)
        differing += len(digests) != 1
    return differing != 0


if __name__ == "__main__":
    sys.exit(main())
