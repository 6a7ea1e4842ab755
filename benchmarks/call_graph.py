"""Counts the Python files and functions of pybpe and llmc_compat that one call enters.

    python benchmarks/call_graph.py [--list join]

Makes a small corpus, calls each function twice with different output folders, and counts in the second call, when all
modules are loaded. Prints a table of the files and functions that are entered, in any thread, and of edges: pairs of
files, if one calls the other directly, not through another library. Then it lists the names of classes that
several files define. --list prints only the files that one call enters, in the order of their first entry.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from measure import table

import llmc_compat
import pybpe
from llmc_compat.workspace import make_workspace

PACKAGES = [Path(package.__path__[0]) for package in (pybpe, llmc_compat)]
OURS = tuple(f"{package}{os.sep}" for package in PACKAGES)
ROOT = PACKAGES[0].parent
MARK = "<|endoftext|>"


def made_text(seed: int) -> str:
    """Returns 400 documents of made-up words, about 200 KB. Some words are much more frequent than others."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("aeiounrstlkm", k=rng.randint(1, 9))) for _ in range(2000)]
    weights = [1 / (i + 1) for i in range(len(words))]
    return MARK.join(" ".join(rng.choices(words, weights, k=rng.randint(20, 160))) + ".\n" for _ in range(400))


def calls(corpus: Path) -> dict[str, Callable[[Path], object]]:
    """Makes inputs in a folder. Returns the calls to measure, which take the output folder."""
    text, folders = corpus / "0.txt", [corpus / "0", corpus / "1"]
    tok = pybpe.train(iter([made_text(0)]), vocab_size=500, special_tokens=[MARK], progress=False)
    for seed, folder in enumerate(folders):
        folder.with_suffix(".txt").write_text(made_text(seed), encoding="utf-8")
        pybpe.binarize(tok, folder.with_suffix(".txt"), folder, progress=False)
    recipe = {"tokens": 20_000, "sources": {f.name: {"data": str(f), "weight": 0.5} for f in folders}}
    use: dict[str, Any] = {"workers": 2, "progress": False}
    model = use | {"layers": 1, "heads": 1, "channels": 16, "sequence_length": 64}
    return {
        "train": lambda out: pybpe.train(text, vocab_size=500, special_tokens=[MARK], **use),
        "binarize": lambda out: pybpe.binarize(tok, text, out, **use),
        "encode_files": lambda out: pybpe.encode_files(tok, text, f"{out}.npy", **use),
        "pack": lambda out: pybpe.pack(tok, folders[0], out, sequence_length=64, progress=False),
        "join": lambda out: pybpe.join(tok, folders, out, progress=False),
        "mix": lambda out: pybpe.mix(tok, recipe, out, progress=False),
        "prepare": lambda out: pybpe.prepare(text, out, vocab_size=500, **use),
        "llmc workspace": lambda out: make_workspace(text, out, vocab_size=500, **model),
    }


def entered(call: Callable[[Path], object], out: Path) -> tuple[list[str], int, int]:
    """Returns the files that the second of two equal calls enters, and the numbers of functions and edges."""
    files: dict[str, None] = {}  # in the order of their first entry
    functions, edges = set(), set()

    def see(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(OURS):
            files[file] = None
            functions.add((file, frame.f_code.co_firstlineno))
            caller = file if frame.f_back is None else frame.f_back.f_code.co_filename
            if caller != file and caller.startswith(OURS):
                edges.add((caller, file))

    call(out.with_suffix(".first"))
    threading.setprofile(see)
    sys.setprofile(see)
    call(out.with_suffix(".second"))
    sys.setprofile(None)
    threading.setprofile(None)
    return [os.path.relpath(file, ROOT) for file in files], len(functions), len(edges)


def repeated_classes() -> list[list[str]]:
    """Returns each name of a class that several files define, and these files."""
    files: dict[str, dict[str, None]] = {}
    for path in sorted(path for package in PACKAGES for path in package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, {})[os.path.relpath(path, ROOT)] = None
    return [[name, ", ".join(found)] for name, found in sorted(files.items()) if len(found) > 1]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="NAME", help="print the files of this call, such as 'llmc workspace'")
    only = parser.parse_args().list
    with tempfile.TemporaryDirectory() as folder:
        found = {name: entered(call, Path(folder, name)) for name, call in calls(Path(folder)).items()}
    if only is None:
        rows = [[name, str(len(files)), *map(str, counts)] for name, (files, *counts) in found.items()]
        print(table(["call", "files", "functions", "edges"], rows))
        repeated = repeated_classes()
        print(f"\n{len(repeated)} names of classes are defined in more than one file:\n")
        print(table(["class", "files"], repeated))
    elif only in found:
        print("\n".join(found[only][0]))
    else:
        parser.error(f"--list: no call {only}: choose from {', '.join(found)}")


if __name__ == "__main__":
    main()
