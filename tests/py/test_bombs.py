"""Decompression bombs: small files with a large content take little memory, whatever they ask for.

bzip2 has blocks of at most 900 kB, so it cannot ask for much.
"""

import gzip
import json
import lzma
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from test_memory import peak_megabytes

import pybpe
from pybpe.cli.coding import _read_ids
from pybpe.errors import FormatError, UnsupportedError
from pybpe.reading.streams import zstd_module
from pybpe.tokens.token_files import TokenFile

pytest.importorskip("resource")

CONTENT = json.dumps({"text": "The same words, again and again. " * 100}) + "\n"
SIZE = 48 << 20
LIMIT = 60  # MB; the command takes about 27, and the content would take 50 more


def zstd(path: Path, window_log: int = 0) -> None:
    module = zstd_module(str(path))
    with module.open(path, "wt", options={module.CompressionParameter.window_log: window_log}) as stream:
        stream.writelines(CONTENT for _ in range(SIZE // len(CONTENT)))


def fill(path: Path) -> None:
    if path.suffix == ".zst":
        pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
        return zstd(path)
    with gzip.GzipFile(path, "w", 1) if path.suffix == ".gz" else lzma.LZMAFile(path, "w", preset=0) as stream:
        for _ in range(SIZE // len(CONTENT)):
            stream.write(CONTENT.encode())


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_a_small_file_with_a_large_content(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"bomb.jsonl.{ending}"
    fill(path)
    assert path.stat().st_size < SIZE // 50
    assert peak_megabytes("count", path, "-o", tmp_path / "x.counts", "--workers", 1, "--quiet") < LIMIT


def test_a_dictionary_or_window_that_takes_too_much_memory(tmp_path: Path) -> None:
    pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    xz, packed = tmp_path / "large.jsonl.xz", tmp_path / "large.jsonl.zst"
    for size, window_log, is_read in ((128 << 20, 27, True), (192 << 20, 31, False)):
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size}]
        xz.write_bytes(lzma.compress(CONTENT.encode(), filters=filters))
        zstd(packed, window_log)
        for path in (xz, packed):
            if is_read:
                assert len(pybpe.count_words(path, workers=1)) > 0
                continue
            message = f"{path}: decompressing takes more than 128 MiB .* decompress it first"
            with pytest.raises(UnsupportedError, match=message):
                pybpe.count_words(path, workers=1)


# ------------------------------------------------------------------------------------------------------
# Contents that do not fit in memory

ADDRESS_SPACE = 500 << 20  # Python and numpy with one thread take about 300 MiB of it


def limited(*words: object) -> tuple[int, str]:
    """Runs a command with little memory. Returns its exit code and what it said."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    command = [sys.executable, "-m", "pybpe", *map(str, words), "--workers", "1", "--quiet"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    done = subprocess.run(command, preexec_fn=limit, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def write_long_record(path: Path) -> None:
    """Writes a record of 256 MiB."""
    zeros = gzip.compress(b"a" * (1 << 24), 9)
    path.write_bytes(gzip.compress(b'{"text": "') + zeros * 16 + gzip.compress(b'"}\n'))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
@pytest.mark.parametrize("command", ["count", "corpus"])
def test_a_record_that_does_not_fit_in_memory(tmp_path: Path, command: str) -> None:
    """Memory grows with the longest record: the limit of the system (`ulimit -v`) is the user's."""
    path, out = tmp_path / "bomb.jsonl.gz", tmp_path / ("out.jsonl" if command == "corpus" else "out.counts")
    write_long_record(path)
    assert path.stat().st_size < 2 << 20
    code, said = limited(command, path, "-o", out, *(["--min-chars", 1] if command == "corpus" else []))
    assert code == 2 and said == "pybpe: there is not enough memory\n"
    assert os.listdir(tmp_path) == [path.name]


# ------------------------------------------------------------------------------------------------------
# Headers and numbers that promise much

DEEP = 200_000
HEAD = b'{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, '
JSON_BOMBS = {
    "lists": b'{"model": ' + b"[" * DEEP,
    "objects": HEAD + b'"x": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "normalizers": HEAD + b'"normalizer": ' + b'{"type": "Sequence", "normalizers": [' * DEEP + b"]}" * DEEP + b"}",
    "steps": HEAD + b'"pre_tokenizer": ' + b'{"type": "Sequence", "pretokenizers": [' * DEEP + b"]}" * DEEP + b"}",
    "digits": HEAD.replace(b'"a": 0', b'"a": ' + b"9" * 10**6) + b'"x": 0}',
    "exponent": HEAD.replace(b'"a": 0', b'"a": 1e999999999') + b'"x": 0}',
    "id": HEAD.replace(b'"a": 0', b'"a": 4294967295') + b'"x": 0}',
    "large id": HEAD.replace(b'"a": 0', b'"a": 999999999') + b'"x": 0}',
    "added id": HEAD.replace(b"[]", b'[{"id": 999999999999, "content": "x"}]', 1) + b'"x": 0}',
    "groups": HEAD
    + b'"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "'
    + b"(" * DEEP
    + b")" * DEEP
    + b'"}}}',
    "counts": HEAD
    + b'"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "'
    + b"(?:(?:a{9999}b){9999}c){9999}"
    + b'"}}}',
}


@pytest.mark.parametrize("name", JSON_BOMBS)
def test_a_tokenizer_that_is_nested_deeply_or_has_huge_numbers(tmp_path: Path, name: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(JSON_BOMBS[name])
    tracemalloc.start()
    try:
        with pytest.raises(pybpe.errors.Error, match=r"tokenizer\.json: |the pattern has more than"):
            pybpe.Tokenizer.from_file(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", ["(4611686018427387904,)", "(4294967296, 4294967296)", "(-1,)", "(3, -5)"])
def test_an_array_that_promises_a_huge_shape(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "x.npy"
    fields = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(fields).to_bytes(2, "little") + fields + bytes(64))
    for read in (TokenFile, lambda path: list(_read_ids(str(path), 2))):
        with pytest.raises(FormatError, match=r"x\.npy: damaged, or not an array .* its header promises the shape"):
            read(path)


@pytest.mark.parametrize(
    "pattern",
    [
        "a{99999999}",
        "(?:a{9999}b){9999}",
        "(?:(?:a{2,}b){999,}c){999}",
        "(?:" + "a" * 1000 + "){9999}",
        r"(?:a{9999}b){9999}(?P<c>a)(?P=c)",  # with a reference, which pybpe does not parse
    ],
)
def test_a_pattern_that_repeats_too_much(pattern: str) -> None:
    """The package `regex` writes repetitions out. It would take minutes or days, and Ctrl-C would not stop it."""
    with pytest.raises(pybpe.errors.ArgumentError, match="has more than 2000000 characters when"):
        pybpe.pattern.Pattern(pattern)


# Not nested: their product does not matter.
MANY_COUNTS = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{40}|[0-9-]{4}.{6}|(?s:.)"


@pytest.mark.filterwarnings("ignore:the pattern")
def test_a_pattern_may_repeat_often() -> None:
    for pattern in (
        r"\d{4}-\d{2}-\d{2}|(?s:.)",
        r"a{9999}|\d+-\d+-\d+|(?s:.)",
        r"(?:[0-9-]{0,99}){1,99}|b",
        MANY_COUNTS,
    ):
        assert pybpe.pattern.Pattern(pattern).word_ends(b"2026-11-23b") == [10, 11]
