"""Trains small models with many tokenizers, and compares the bits per byte of held-out text.

    make bench-models CORPUS="en=books.txt zh=novels.txt"

The first table has models that differ only in the size of the vocabulary, at equal compute. The second compares BPE,
superwords and whole characters at two sizes: with the same model and compute, and with the same model and text. Each
model is trained once per seed, which sets its initial weights and the order of the text.

The output folder keeps the results, so a run that was killed resumes, and a run with more seeds or sizes trains only
the new models.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from cells import Cell, Study
from prepare import prepare_cell, prepare_text
from report import report

# Whole characters take as many tokens as BPE, so the same compute is the same text.
_BASES = {"superwords": ("compute", "text"), "whole": ("compute",)}
_PREPARING = Lock()  # two models may need the same tokenizer


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", metavar="NAME=FILE")
    parser.add_argument("-o", "--output", default="build/models")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--channels", type=int, default=48)
    parser.add_argument(
        "--tokens", type=float, default=1.66e6, help="set the compute: 6 x parameters without embeddings x tokens"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000, 8000, 16000])
    parser.add_argument("--kinds-at", type=int, nargs="*", default=[8000, 16000], help="sizes to compare kinds at")
    parser.add_argument("--kinds", nargs="+", choices=("superwords", "whole"), default=["superwords", "whole"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rate", type=float, default=3e-3, help="the learning rate of all models")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    study = Study(args.layers, args.channels, int(args.tokens))
    folder = Path(args.output)
    names = {}
    for each in args.texts:
        name, separator, file = each.rpartition("=")
        names[name if separator else "text"] = file
    for name, file in names.items():
        prepare_text(folder / name, file)
    print(report(study, folder, train_all(args, study, folder, names)))


def train_all(
    args: argparse.Namespace, study: Study, folder: Path, names: Iterable[str]
) -> dict[Cell, dict[str, float]]:
    """Returns the results of all models."""
    sizes = sorted({*args.sizes, *args.kinds_at})
    seeds = range(1, args.seeds + 1)
    wanted = [
        Cell(name, kind, size, basis, seed, args.rate)
        for seed in seeds
        for name in names
        for kind, size, basis in [
            *(("bpe", size, "compute") for size in sizes),
            *((kind, size, basis) for size in args.kinds_at for kind in args.kinds for basis in _BASES[kind]),
        ]
    ]
    with ThreadPoolExecutor(args.jobs) as pool:
        return dict(zip(wanted, pool.map(lambda cell: run(folder, study, cell), wanted)))


def run(folder: Path, study: Study, cell: Cell) -> dict[str, float]:
    """Trains a model, unless its result is in the folder, and returns the result."""
    path = folder / "results" / f"{study.name}-{cell.name}.json"
    if path.exists():
        return json.loads(path.read_text())
    with _PREPARING:
        files = prepare_cell(folder, study, cell)
    print(f"{cell.name}: {files.steps} steps", file=sys.stderr, flush=True)
    command = [sys.executable, str(Path(__file__).with_name("trainer.py")), *files.arguments, "--rate", str(cell.rate)]
    # PyTorch frees and allocates large tensors in each step; keeping the memory saves a third of the time.
    kept = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_TOP_PAD_": "200000000"}
    done = subprocess.run(command, env={**os.environ, **kept}, stdout=subprocess.PIPE, check=True)
    files.checkpoint.unlink()
    found = {**json.loads(done.stdout), **files.facts}
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".tmp").write_text(json.dumps(found))
    path.with_suffix(".tmp").rename(path)
    return found


if __name__ == "__main__":
    main()
