"""Runs the guide's commands that change llm.c's own scripts, if LLMC is the folder of llm.c's source."""

import os
import re
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(params=["docs/llm.c.md", "docs/llm.c.zh.md"])
def commands(root: Path, request: pytest.FixtureRequest) -> str:
    """Returns the `sed` commands of the guide, with the path of llm.c instead of the guide's."""
    source = os.environ.get("LLMC")
    if source is None:
        pytest.skip("LLMC is not set to the folder of llm.c's source")
    page = (root / request.param).read_text(encoding="utf-8")
    found = re.findall(r"^sed (?:[^\n]*\\\n)*[^\n]*$", page, re.M)
    assert len(found) == 2
    return "steps=00000123\n" + "\n".join(found).replace("path/to/llm.c", source)


def test_the_guide_changes_llm_cs_scripts(commands: str, tmp_path: Path) -> None:
    subprocess.run(["sh", "-ec", commands], cwd=tmp_path, check=True)
    script = (tmp_path / "run.sh").read_text()
    for wanted in (
        "DONE_00000123",
        '"data/corpus_train_*.bin"',
        '"data/corpus_val_*.bin"',
        "-e gpt2_124M_bf16.bin",
        "-d 524288",
    ):
        assert wanted in script
    assert not re.search(r"^make|fineweb10B/|18865\"|d12| \./", script, re.M)
    trainer = (tmp_path / "train_gpt2.py").read_text()
    assert trainer.count("vocab_size=32768") == 4 and "vocab_size=50257" not in trainer
