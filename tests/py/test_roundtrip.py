"""The full round trip: Python writes, C reads. The compiled decode test recovers the exact corpus."""

import gzip
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from gpt2 import gpt2_tokenizer
from texts import chinese, english, mixed, random_bytes

import pybpe
from llmc_compat.shards import write_shard
from pybpe.model import CONTROL_TOKENS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import demo  # noqa: E402

TEXTS = {
    "english": english().encode(),
    "chinese": chinese().encode(),
    "mixed": mixed().encode(),
    "invalid": random_bytes(30_000, 3).translate(None, bytes(range(9))),
    "nuls": b"a word and \x00 or \x00b another; " * 700,
    "no newline": b"word " * 3000 + b"end",
    "one line": english().replace("\n", " ").encode() * 2,
}


def decode_in_c(program: Path, tokenizer: Path, shards: list[Path], skip: int | None) -> str:
    command = [str(program), str(tokenizer), *map(str, shards), "--sentences", "2"]
    if skip is not None:
        command += ["--skip-id", str(skip)]
    result = subprocess.run(command, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode("utf-8", "replace")


@pytest.mark.filterwarnings("ignore:.*uses these bytes unchanged")
@pytest.mark.parametrize("name", TEXTS)
def test_c_decodes_what_python_wrote(c_program: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(TEXTS[name])
    read = {"encoding": "utf-8"}  # even if it is invalid
    tok = pybpe.train(corpus, vocab_size=1200, special_tokens=CONTROL_TOKENS, min_frequency=2, **read)
    tok.save(tmp_path / "tokenizer.bin")
    manifest = pybpe.binarize(tok, corpus, tmp_path / "out", split_by="token", shard_tokens=20_000, **read)
    shards = [tmp_path / "out" / r.file for records in manifest.shards.values() for r in records]
    output = decode_in_c(c_program("decode_test"), tmp_path / "tokenizer.bin", shards, tok.eot_token)
    assert hashlib.sha256(TEXTS[name]).hexdigest() in output.split()


def test_c_decodes_gpt2(c_program: Callable[[str], Path], tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(TEXTS["english"])
    tok = gpt2_tokenizer()
    for version in ("bin1", "bin"):
        tok.save(tmp_path / "tokenizer.bin", version)
        manifest = pybpe.binarize(tok, corpus, tmp_path / "out", split_by="token")
        shards = [tmp_path / "out" / r.file for records in manifest.shards.values() for r in records]
        output = decode_in_c(c_program("decode_test"), tmp_path / "tokenizer.bin", shards, 50256)
        assert hashlib.sha256(TEXTS["english"]).hexdigest() in output.split()


def test_the_c_program_refuses_damaged_files_in_one_line(c_program: Callable[[str], Path], tmp_path: Path) -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], CONTROL_TOKENS)
    tok.save(tmp_path / "tokenizer.bin")
    shard = tmp_path / "shard.bin"
    write_shard(shard, tok.encode_to_numpy(TEXTS["english"][:5000]))
    good = shard.read_bytes()
    bad_id = good[:2000] + b"\xff\xff" + good[2002:]
    for data in (b"\0" + good[1:], good[:-1], good + b"\0\0", bad_id, None):
        shard.unlink() if data is None else shard.write_bytes(data)
        command = [c_program("decode_test"), tmp_path / "tokenizer.bin", shard]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 1
        assert len(result.stderr.strip().splitlines()) == 1 and "shard.bin" in result.stderr


# ----------------------------------------------------------------------------------------------------
# make demo

Demo = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_demo(
    c_program: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Demo:
    """Runs the demo in tmp_path, and returns its exit status and what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(corpus: str = "", program: Path | None = None) -> tuple[int, str, str]:
        command = ["demo", "--corpus", corpus, "--vocab-size", "700", "--out", "out"]
        monkeypatch.setattr(sys, "argv", [*command, "--decode-test", str(program or c_program("decode_test"))])
        return demo.main(), *capsys.readouterr()

    return run


def test_the_demo_takes_files_of_the_user(run_demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(chinese() + "<|endoftext|>" + chinese(seed=2), encoding="utf-8")
    (tmp_path / "b {1}.txt").write_text(english()[:200_000], encoding="utf-8")
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(english()[200_000:300_000].encode()))
    (tmp_path / "e.jsonl").write_text('{"text": "record"}\n')
    code, shown, _ = run_demo("a.txt 'b {1}.txt' d.txt.gz")
    assert code == 0 and "3 files, joined" in shown and "byte for byte equal" in shown
    assert "source .venv/bin/activate" in shown and "bytes per token\n" in shown
    assert "byte for byte equal" in run_demo("b {1}.txt")[1]
    for corpus in ("missing.txt", "a.txt missing.txt", "a.txt e.jsonl", "it's"):
        code, _, error = run_demo(corpus)
        assert code == 2 and len(error.splitlines()) == 1, error


def test_without_a_corpus_the_demo_uses_the_topics_of_pydoc(run_demo: Demo, tmp_path: Path) -> None:
    code, shown, _ = run_demo()
    assert code == 0 and "corpus: pydoc's topics" in shown and "byte for byte equal" in shown
    assert re.search(r"cut into tokens:\n  \w+\|.*\|.*\n", shown) and "GPT-2's 50,257 tokens" in shown
    assert (tmp_path / "out" / "corpus.txt").read_text(encoding="utf-8").startswith(topics["assert"] + "\n\n")
    program = tmp_path / "program"
    for command, expected in (
        ("echo sha256 0123", "DIFFERENT from the corpus"),
        ("echo damaged >&2; exit 1", "the C program failed: damaged\n"),
    ):
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(0o755)
        code, shown, _ = run_demo(program=program)
        assert code == 1 and expected in shown
