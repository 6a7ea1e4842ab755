"""The benchmarks that need extras start, and end well, on a tiny input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from texts import english


def output(root: Path, tmp_path: Path, name: str, *arguments: str) -> str:
    """Returns what a benchmark prints about a short text."""
    text = tmp_path / "text.txt"
    text.write_text(english()[:400_000], encoding="utf-8")
    command = [sys.executable, f"benchmarks/{name}.py", str(text), *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_costs_of_a_cluster_are_what_the_simulation_reads(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    costs = output(root, tmp_path, "cluster_costs", "--tasks", "20", "--scratch", str(tmp_path))
    (tmp_path / "costs.json").write_text(costs)
    command = [sys.executable, "benchmarks/scale_simulation.py", "--costs", str(tmp_path / "costs.json")]
    subprocess.run(
        [*command, "--terabytes", "0.01", "--workers", "16"], cwd=root, check=True, stdout=subprocess.DEVNULL
    )
    assert json.loads(costs)["noop_rate"] > 0


def test_loaders_of_batches(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    libraries = ["--libraries", "pybpe_mixture", "nanogpt"]
    shown = output(root, tmp_path, "serve", "--runs", "1", "--batches", "9", *libraries)
    assert shown.count("\n| pybpe") == 2 and "| failed" not in shown


def test_a_study_of_models(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    size = ["--layers", "1", "--channels", "16", "--tokens", "30000", "--seeds", "1"]
    sizes = ["--sizes", "400", "--kinds-at", "400", "--kinds", "whole", "-o", str(tmp_path / "out")]
    assert "400" in output(root, tmp_path, "models/study", *size, *sizes)
