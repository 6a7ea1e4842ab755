"""Shards: llm.c's have equal sizes, so that llm.c can resume in any of them; those of other formats are filled."""

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import tokens_of

import pybpe
from llmc_compat.shards import read_shard, write_shard
from pybpe.support import task_results
from pybpe.tokens import run, task_encoder
from pybpe.tokens.run import shard_sizes
from pybpe.tokens.verification import verify

# ------------------------------------------------------------------------------------------------------
# Sizes


def sizes_are_right(tokens: int, most: int, least: int) -> None:
    sizes = shard_sizes(tokens, most, least)
    assert sum(sizes) == tokens and min(sizes) >= min(least, tokens)
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 1 or min(sizes) % 2 == 1
    for sample in range(2, max(sizes) + 2, 2):  # what llm.c divides by
        assert len({(size - 1) // sample for size in sizes}) == 1
    if most >= 20 * least:
        assert max(sizes) <= most


def test_every_split_has_shards_with_equally_many_samples() -> None:
    for tokens in range(1, 120):
        for most in (1, 2, 3, 7, 10, 16, 50, 200):
            for least in (1, 2, 5, 9):
                if tokens >= least:
                    sizes_are_right(tokens, most, least)
    rng = random.Random(1)
    for _ in range(100):
        least = rng.choice([0, 1, 257, 300])
        sizes_are_right(rng.randrange(max(least, 1), 20_000), rng.randrange(257, 2000), least)


def test_shards_are_near_the_size_that_was_asked_for() -> None:
    assert shard_sizes(10**8, 10**8, 257) == [10**8]
    assert shard_sizes(3 * 10**8, 10**8, 257) == [10**8] * 3
    assert shard_sizes(10**8 + 2, 10**8, 257) == [50_000_001] * 2
    assert shard_sizes(10**8 + 3, 10**8, 257) == [50_000_002, 50_000_001]
    assert shard_sizes(0, 10, 0) == [0]
    rng = random.Random(2)
    for _ in range(1000):
        tokens = rng.randrange(10**9, 10**12)
        count = len(shard_sizes(tokens, 10**8, 257))
        assert count <= -(-tokens // 10**8) + 12


# ------------------------------------------------------------------------------------------------------
# binarize


@pytest.mark.parametrize("shard_tokens", [300, 7777])
def test_no_token_is_lost(
    tok: pybpe.Tokenizer, marked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_tokens: int
) -> None:
    monkeypatch.setattr(task_encoder, "_RESULT_TOKENS", 3000)
    options: dict[str, Any] = {"shard_tokens": shard_tokens, "eot": "prepend", "min_shard_tokens": 257}
    lengths = [len(tok.decode_single_token_bytes(i)) if i != tok.eot_token else 0 for i in range(tok.vocab_size)]
    whole = pybpe.binarize(tok, marked, tmp_path / "one")
    llmc = pybpe.binarize(tok, marked, tmp_path / "llmc", **options)
    npy = pybpe.binarize(tok, marked, tmp_path / "npy", format="npy", **options)
    for split in whole.shards:
        expected = tokens_of(tmp_path / "one", split)
        sizes = [record.tokens for record in llmc.shards[split]]
        assert tokens_of(tmp_path / "llmc", split) == expected and sizes == shard_sizes(
            len(expected), shard_tokens, 257
        )
        filled = npy.shards[split]
        assert numpy.concatenate([numpy.load(tmp_path / "npy" / record.file) for record in filled]).tolist() == expected
        assert all(record.tokens == shard_tokens for record in filled[:-1])
        assert 257 <= filled[-1].tokens < shard_tokens + 257
        for made, ending in ((llmc, "bin"), (npy, "npy")):
            names = [record.file for record in made.shards[split]]
            assert names == [f"corpus_{split}_{i:06d}.{ending}" for i in range(len(names))]
        for record in llmc.shards[split]:
            ids = read_shard(tmp_path / "llmc" / record.file)
            assert (ids == tok.eot_token).sum() == record.documents
            assert record.text_bytes == sum(lengths[i] for i in ids)
    assert verify(tmp_path / "llmc", tok)[1] == []


def test_a_shard_reads_only_its_part_of_a_result(
    tok: pybpe.Tokenizer, marked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the time is the same for any number of shards. A part that was damaged meanwhile is noticed."""
    sizes = list[int]()
    read, make_shard = task_results._read, run.make_shard
    monkeypatch.setattr(task_results, "_read", lambda *place: sizes.append(place[2]) or read(*place))
    given: dict[str, Any] = {"splits": (1,), "shard_tokens": 300}
    records = pybpe.binarize(tok, marked, tmp_path / "out", **given).shards["train"]
    assert len(records) > 50 and sum(sizes) < 3 * sum(record.bytes for record in records)

    def damage(order: run.ShardOrder) -> str:
        section = next(part for part in order.parts if not isinstance(part, bytes))
        with open(section.path, "r+b") as file:
            file.seek(section.at + section.size - 1)
            file.write(b"\xff")
        return make_shard(order)

    monkeypatch.setattr(run, "make_shard", damage)
    with pytest.raises(pybpe.errors.FormatError, match="damaged: run the same command again"):
        pybpe.binarize(tok, marked, tmp_path / "damaged", **given)


def test_shards_beyond_what_llmc_can_seek_are_refused(tok: pybpe.Tokenizer, marked: Path, tmp_path: Path) -> None:
    with pytest.raises(pybpe.errors.LimitError, match="beyond which llm.c cannot read"):
        pybpe.binarize(tok, marked, tmp_path / "out", min_shard_tokens=600_000_000)


# ------------------------------------------------------------------------------------------------------
# Resuming


@pytest.fixture(scope="module")
def programs(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs tests/c/llmc_resume.c with the drop-in headers, and with llm.c's own if LLMC is the folder of its source."""
    subprocess.run(["make", "build/libpybpe.a"], cwd=root, check=True, capture_output=True)
    folder = tmp_path_factory.mktemp("programs")
    found = []
    own = os.environ.get("LLMC")
    ours = [f"-I{root}/csrc", f"-I{root}/llmc_compat/include"]
    for name, include in [("ours", ours), *([("llmc", [f"-I{own}"])] if own else [])]:
        command = ["cc", "-O2", *include, root / "tests/c/llmc_resume.c"]
        libraries = [root / "build/libpybpe.a"] if name == "ours" else []
        subprocess.run([*command, *libraries, "-lm", "-pthread", "-o", folder / name], check=True, capture_output=True)
        found.append(folder / name)
    return found


def resumes(program: Path, pattern: str, B: int, T: int, processes: int) -> str:
    command = [program, pattern, str(B), str(T), str(processes)]
    return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("shard_tokens", [3001, 8999])
def test_llmc_resumes_at_every_step(
    tok: pybpe.Tokenizer, marked: Path, tmp_path: Path, programs: list[Path], shard_tokens: int
) -> None:
    pybpe.binarize(tok, marked, tmp_path, shard_tokens=shard_tokens)
    for processes, B, T in ((1, 3, 20), (2, 4, 64), (8, 3, 20)):
        for program in programs:
            shown = resumes(program, f"{tmp_path}/corpus_train_*.bin", B, T, processes)
            assert shown.endswith(" resumed, 0 aborts, 0 other batches\n")
            assert int(shown.split()[0]) > 20
    ids = numpy.concatenate([read_shard(path) for path in sorted(tmp_path.glob("corpus_train_*.bin"))])
    for i, part in enumerate((ids[:6000], ids[6000:12_000], ids[12_000:14_440])):
        write_shard(tmp_path / f"short_{i}.bin", part)
    for program in programs:  # a short last shard is seen
        assert " 0 aborts" not in resumes(program, f"{tmp_path}/short_*.bin", 4, 64, 1)
