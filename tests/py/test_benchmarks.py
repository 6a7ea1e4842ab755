"""Each benchmark starts, and ends well, on a tiny input. extras/test_benchmarks_with_extras.py starts the others."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corpora import small_tokenizer
from texts import english

LIBRARIES = ["--runs", "1", "--libraries"]
COMMANDS = {
    "binarize": ["TEXT", *LIBRARIES, "pybpe_binarize", "pybpe_encode_files", "tiktoken"],
    "encode": ["TEXT", *LIBRARIES, "pybpe", "tokenizers"],
    "train": ["TEXT", "--vocab-size", "300", *LIBRARIES, "pybpe", "tokenizers"],
    "calls": ["TOKENIZER"],
    "merge_loop": ["--words", "3000", "--vocab-size", "300"],
    "pathology": ["build/benchmarks/encode_file", "--runs", "1", "--bytes", "10000"],
    "shapes": [
        *("TEXT", "--gil", "build/benchmarks/gil.so", "--megabytes", "0.03", "--shapes", "documents"),
        *("--commands", "binarize,prepare,corpus,verify,inspect"),
    ],
    "growing_corpus": ["TEXT", "--bytes", "2M"],
    "call_graph": [],
    "scale_simulation": ["--terabytes", "0.01", "--workers", "16"],
}
OTHERS = {
    *("measure", "instructions"),  # parts of the others
    *("binarize_one", "encode_one", "train_one", "serve_one"),  # the others start them
    *("serve", "cluster_costs"),  # in extras
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_runs(name: str, root: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(english()[:100_000], encoding="utf-8")
    small_tokenizer().save(tmp_path / "tok.json")
    given = {"TEXT": str(text), "TOKENIZER": str(tmp_path / "tok.json")}
    for word in COMMANDS[name]:
        if word.startswith("build/") and not (root / word).exists():
            subprocess.run(["make", word], cwd=root, check=True)
    command = [sys.executable, f"benchmarks/{name}.py", *(given.get(word, word) for word in COMMANDS[name])]
    environment = os.environ | {"PATH": ""}  # without valgrind, which takes long
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr
    assert re.search(rb"\| (failed|crashed|not made|>) ", done.stdout) is None, done.stderr


def test_every_benchmark_is_started(root: Path) -> None:
    assert {path.stem for path in (root / "benchmarks").glob("*.py")} == COMMANDS.keys() | OTHERS


# ---------------------------------------------------------------------------------------------------
# The counter of instructions that benchmarks/encode_one.py reads.

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "instructions.py"
SOFTWARE, TASK_CLOCK = 1, 1  # an event that needs no hardware


@pytest.fixture(scope="module")
def instructions() -> Any:
    spec = importlib.util.spec_from_file_location("instructions", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("event", [(), (SOFTWARE, TASK_CLOCK)])
def test_counts_grow_or_are_missing(instructions: Any, event: tuple[int, ...]) -> None:
    counter = instructions.InstructionCounter(*event)
    before = counter.read()
    sum(range(200_000))
    after = counter.read()
    assert (before is None and after is None) or after - before > 50_000


def test_a_system_without_counters(instructions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.platform, "machine", lambda: "unknown")
    assert instructions.InstructionCounter().read() is None
