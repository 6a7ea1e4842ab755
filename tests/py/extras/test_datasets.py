"""The package datasets keeps the results of `map` under a hash of the function, for which dill pickles it."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("datasets")

import pybpe  # noqa: E402
from pybpe.tokenizer import of_model  # noqa: E402

HASHES = """
import sys
from datasets.fingerprint import Hasher
import pybpe
from pybpe.like_tiktoken import Encoding
from pybpe.like_transformers import PreTrainedTokenizerFast

tok = pybpe.Tokenizer.from_file(sys.argv[1])
plain = pybpe.train(iter(["some text"]), vocab_size=266)
made = [tok, Encoding(plain), PreTrainedTokenizerFast.from_pybpe(tok), tok.encode, lambda text: tok.encode(text)]
hashes = [Hasher.hash(each) for each in made]
tok.encode("a b" * 100), tok.merges, tok.decode([1, 2]), hash(tok), made[1].encode("a b"), made[2]("a b")
assert [Hasher.hash(each) for each in made] == hashes
print(hashes)
"""


def test_hashes_are_stable(tmp_path: Path) -> None:
    specials = [f"<{name}>" for name in "abcdef"]
    tok = pybpe.train(iter(["some text"]), vocab_size=266, special_tokens=specials)
    of_model(replace(tok.model, visible=frozenset(specials))).save(tmp_path / "tok.json")
    command = [sys.executable, "-c", HASHES, str(tmp_path / "tok.json")]
    found = {
        subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
