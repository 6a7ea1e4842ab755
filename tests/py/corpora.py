"""Small corpora and a small tokenizer for tests of datasets, and the tokens in the files that come out."""

import gzip
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from texts import chinese, english

import pybpe
from llmc_compat.shards import read_shard

EOT = "<|endoftext|>"
SPLITS = ("train", "val", "test")


@cache
def small_tokenizer() -> pybpe.Tokenizer:
    """Returns a tokenizer of 1,000 tokens, including <|endoftext|> and <|pad|>."""
    return pybpe.train(iter([english()[:100_000], chinese()]), vocab_size=1000, special_tokens=[EOT, "<|pad|>"])


def documents(count: int) -> list[str]:
    """Returns texts of a few hundred characters each, all different."""
    text = english()
    return [f"Document {i}. " + text[i * 700 : i * 700 + 300 + i % 400] for i in range(count)]


def jsonl(texts: list[str], key: str = "text") -> bytes:
    """Returns JSON lines; every other one contains only escapes."""
    lines = [
        json.dumps({"id": i, key: text}, ensure_ascii=i % 2 == 0 or not text.isprintable())
        for i, text in enumerate(texts)
    ]
    return "\n".join(lines).encode()


def records(path: Path) -> list[dict[str, Any]]:
    """Returns the objects in a file of JSON lines, which may be compressed."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().splitlines()]


def write_corpus(folder: Path) -> list[Path]:
    """Writes files of several kinds to a new folder, and returns their paths."""
    folder.mkdir()
    (folder / "a.txt").write_bytes(EOT.join(documents(80)).encode())
    (folder / "b.jsonl").write_bytes(jsonl(documents(160)[80:]))
    (folder / "c.txt.gz").write_bytes(gzip.compress(english()[300_000:330_000].encode()))
    return sorted(folder.iterdir())


def content(folder: str | Path) -> dict[str, bytes]:
    """Returns all files below a folder."""
    folder = Path(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tokens_of(folder: Path, split: str) -> list[int]:
    """Returns all ids of a split's llm.c shards."""
    return [int(i) for path in sorted(folder.glob(f"*_{split}_*.bin")) for i in read_shard(path)]


def split_of_tokens(ids: list[int], mark: int | None) -> list[list[int]]:
    """Returns the ids between marks."""
    parts: list[list[int]] = [[]]
    for i in ids:
        if i == mark:
            parts.append([])
        else:
            parts[-1].append(i)
    return parts


class Twice(ThreadPoolExecutor):
    """Runs each task twice, as Dask may if a worker dies late, and returns the second result."""

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        return super().submit(lambda: [function(*args, **keywords) for _ in range(2)][1])


@contextmanager
def standard_input(path: str) -> Iterator[None]:
    """Makes a file the standard input of this process, for Python and for the system."""
    saved, python = os.dup(0), sys.stdin
    try:
        with open(path, "rb") as stream:
            os.dup2(stream.fileno(), 0)
        with open(0, closefd=False) as sys.stdin:
            yield
    finally:
        sys.stdin = python
        os.dup2(saved, 0)
        os.close(saved)
