"""Decompression bombs: small files with a large content take little memory, whatever they ask for.

bzip2 has blocks of at most 900 kB, so it cannot ask for much.
"""

import gzip
import json
import lzma
import sys
from pathlib import Path

import pytest
from test_shapes import peak_megabytes

import pybpe
from pybpe.errors import UnsupportedError
from pybpe.reading.unpacking import zstd_module

pytest.importorskip("resource")

CONTENT = json.dumps({"text": "The same words, again and again. " * 100}) + "\n"
SIZE = 192 << 20
LIMIT = 120  # MB; the content would take 192


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_a_small_file_with_a_large_content(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"bomb.jsonl.{ending}"
    fill(path)
    assert path.stat().st_size < SIZE // 50
    assert peak_megabytes("counts", path, "-o", tmp_path / "x.counts", "--workers", 1, "--quiet") < LIMIT


def test_a_dictionary_of_xz_that_takes_too_much_memory(tmp_path: Path) -> None:
    for size, is_read in ((128 << 20, True), (192 << 20, False)):
        path = tmp_path / "large.jsonl.xz"
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size}]
        path.write_bytes(lzma.compress(CONTENT.encode(), filters=filters))
        check(path, is_read)


def test_a_window_of_zstd_that_takes_too_much_memory(tmp_path: Path) -> None:
    pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    for window_log, is_read in ((27, True), (31, False)):
        zstd(tmp_path / "large.jsonl.zst", window_log)
        check(tmp_path / "large.jsonl.zst", is_read)


def check(path: Path, is_read: bool) -> None:
    if is_read:
        assert len(pybpe.count_words(path, workers=1)) > 0
        return
    with pytest.raises(UnsupportedError, match=f"{path}: decompressing takes more than 128 MiB .* decompress it first"):
        pybpe.count_words(path, workers=1)
