"""Each benchmark starts, and ends well, on a tiny input. extras/test_benchmarks_with_extras.py starts the others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import small_tokenizer
from texts import english

LIBRARIES = ["--runs", "1", "--libraries"]
COMMANDS = {
    "binarize": ["TEXT", *LIBRARIES, "pybpe_binarize", "pybpe_encode_files", "tiktoken"],
    "encode": ["TEXT", "--sizes", "50k", "100k", "--threads", "1", "2", *LIBRARIES, "pybpe", "tokenizers"],
    "train": ["TEXT", "--vocab-size", "300", *LIBRARIES, "pybpe", "tokenizers"],
    "fresh": ["TEXT", "--vocabularies", "TOKENIZER", *LIBRARIES, "pybpe", "tokenizers_1"],
    "calls": ["TOKENIZER", "--rounds", "1"],
    "merge_loop": ["--words", "3000", "--vocab-size", "300"],
    "pathology": ["build/benchmarks/encode_file", "--runs", "1", "--bytes", "10000"],
    "shapes": [
        *("TEXT", "--gil", "build/benchmarks/gil.so", "--megabytes", "0.03", "--shapes", "documents"),
        *("--commands", "binarize,prepare,corpus,verify,inspect,pack,mix"),
    ],
    "growing_corpus": ["TEXT", "--bytes", "2M"],
    "call_graph": [],
    "text_encodings": ["FOLDER", "--each", "1"],
    "scale_simulation": ["--terabytes", "0.01", "--workers", "16"],
}
OTHERS = {
    *("measure", "instructions"),  # parts of the others
    *("binarize_one", "encode_one", "train_one", "serve_one"),  # the others start them
    *("serve", "cluster_costs"),  # in extras
    "plots",  # in test_docs.py
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_runs(name: str, root: Path, tmp_path: Path) -> None:
    text = tmp_path / "en.txt"
    text.write_text(english()[:100_000], encoding="utf-8")
    small_tokenizer().save(tmp_path / "tok.json")
    given = {"TEXT": str(text), "FOLDER": str(tmp_path), "TOKENIZER": str(tmp_path / "tok.json")}
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
