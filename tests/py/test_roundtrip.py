"""The full round trip: Python writes, C reads. The compiled decode test recovers the exact corpus."""

import gzip
import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from gpt2 import gpt2_tokenizer
from texts import chinese, english, mixed, random_bytes

import pybpe
from llmc_compat import demo
from pybpe.model import CONTROL_TOKENS

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
    tok = pybpe.train(corpus, vocab_size=1200, special_tokens=CONTROL_TOKENS, min_frequency=2)
    tok.save(tmp_path / "tokenizer.bin")
    manifest = pybpe.binarize(tok, corpus, tmp_path / "out", split_by="token", shard_tokens=20_000)
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


@pytest.mark.parametrize("damage", ["magic", "short", "long", "id", "missing"])
def test_the_c_program_refuses_damaged_files_in_one_line(
    c_program: Callable[[str], Path], tmp_path: Path, damage: str
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(TEXTS["english"])
    tok = pybpe.train(corpus, vocab_size=300, special_tokens=CONTROL_TOKENS)
    tok.save(tmp_path / "tokenizer.bin")
    pybpe.binarize(tok, corpus, tmp_path / "out", split_by="token")
    shard = tmp_path / "out" / "corpus_val_000000.bin"
    data = bytearray(shard.read_bytes())
    if damage == "magic":
        data[0] ^= 1
    elif damage == "short":
        del data[-1:]
    elif damage == "long":
        data += b"\0\0"
    elif damage == "id":
        data[2000:2002] = b"\xff\xff"
    shard.write_bytes(data)
    if damage == "missing":
        shard.unlink()
    result = subprocess.run(
        [c_program("decode_test"), tmp_path / "tokenizer.bin", shard], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1 and "corpus_val_000000.bin" in result.stderr


def test_the_demo_runs_on_a_corpus_of_the_user(c_program: Callable[[str], Path], tmp_path: Path) -> None:
    corpus = tmp_path / "novel {1}.txt"
    corpus.write_text(chinese() * 3, encoding="utf-8")
    command = [sys.executable, "-m", "llmc_compat.demo", "--corpus", str(corpus), "--vocab-size", "700"]
    command += ["--out", str(tmp_path / "out"), "--decode-test", str(c_program("decode_test"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "equal" in result.stdout and "padded to 64: 704, to 128: 768" in result.stdout
    corpus.unlink()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_the_demo_takes_several_files_and_marks_between_documents(
    c_program: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(chinese() + "<|endoftext|>" + chinese(seed=2), encoding="utf-8")
    (tmp_path / "b c.txt").write_text(english()[:200_000], encoding="utf-8")
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(english()[200_000:300_000].encode()))
    (tmp_path / "e.jsonl").write_text('{"text": "record"}\n')
    command = [sys.executable, "-m", "llmc_compat.demo", "--vocab-size", "700", "--out", "out"]
    command += ["--decode-test", str(c_program("decode_test"))]

    def run_demo(corpus: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, "--corpus", corpus], cwd=tmp_path, capture_output=True, text=True)

    result = run_demo("a.txt 'b c.txt' d.txt.gz")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 files, joined" in result.stdout and ": equal" in result.stdout
    assert "source .venv/bin/activate" in result.stdout
    assert ": equal" in run_demo("b c.txt").stdout
    for corpus in ("a.txt missing.txt", "a.txt e.jsonl", "it's"):
        result = run_demo(corpus)
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result.stderr


SOURCES = {
    "a.py": '"""About a."""\nclass C:\n    """About C."""\n    def no(self): pass\n    async def f(self): "About f."\n',
    "b/c.py": 'x = """no docstring"""\n\n\ndef g():\n    """About g."""\n',
    "other_version.py": '"""Not Python"""\nprint "x"\n',
    "doctest.py": '"""A test."""\n',
    "site-packages/d.py": '"""Another package."""\n',
}


def test_without_a_corpus_the_demo_uses_the_docstrings_of_python(
    c_program: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, source in SOURCES.items():
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / name).write_text(source)
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"stdlib": str(tmp_path / "lib")})
    out = str(tmp_path / "out")

    def run_demo(decode_test: Path) -> tuple[int, str]:
        command = ["demo", "--vocab-size", "500", "--out", out, "--decode-test", str(decode_test)]
        monkeypatch.setattr(sys, "argv", command)
        return demo.main(), capsys.readouterr().out

    code, shown = run_demo(c_program("decode_test"))
    assert code == 0 and "corpus: pydoc's topics" in shown and ": equal" in shown
    corpus = (tmp_path / "out" / "corpus.txt").read_text(encoding="utf-8")
    assert corpus.startswith(topics["assert"] + "\n\n")
    assert corpus.endswith("\n\nAbout a.\n\nAbout C.\n\nAbout f.\n\nAbout g.\n")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho sha256 0123\n")
    program.chmod(0o755)
    code, shown = run_demo(program)
    assert code == 1 and ": DIFFERENT" in shown
    program.write_text("#!/bin/sh\necho damaged >&2; exit 1\n")
    code, shown = run_demo(program)
    assert code == 1 and "the C program failed: damaged\n" in shown
