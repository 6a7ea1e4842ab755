"""Token shards in C: every damaged byte of a small shard, and the limits of the writer."""

import os
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest

from pybpe._core import ffi, lib

MAGIC = {2: (20240520, 1), 4: (20240801, 7)}


def path_bytes(path: str | Path) -> Any:
    return ffi.new("char[]", os.fsencode(path))


class CoreError(RuntimeError):
    """A pybpe_error."""

    def __init__(self, err: Any) -> None:
        super().__init__(ffi.string(err.msg).decode())
        self.code = err.code
        self.offset = err.offset


def call(function: Any, *arguments: Any) -> None:
    err = ffi.new("pybpe_error *")
    code = function(*arguments, err)
    if code != lib.PYBPE_OK:
        assert code == err.code
        raise CoreError(err)


def header(count: int, id_bytes: int) -> bytes:
    return struct.pack("<3i", *MAGIC[id_bytes], count).ljust(1024, b"\0")


def shard_bytes(tokens: list[int], id_bytes: int) -> bytes:
    return header(len(tokens), id_bytes) + struct.pack(f"<{len(tokens)}{'H' if id_bytes == 2 else 'I'}", *tokens)


def write_shard(path: Path, tokens: list[int], id_bytes: int) -> None:
    path.write_bytes(shard_bytes(tokens, id_bytes))


def open_shard(path: Path) -> Any:
    out = ffi.new("pybpe_shard **")
    call(lib.pybpe_shard_open, out, path_bytes(path), ffi.NULL)
    return ffi.gc(out[0], lib.pybpe_shard_free)


def open_memory(data: bytes) -> Any:
    """The shard and the bytes that it borrows."""
    out = ffi.new("pybpe_shard **")
    borrowed = ffi.from_buffer(data)
    call(lib.pybpe_shard_open_mem, out, borrowed, len(data), ffi.NULL)
    return ffi.gc(out[0], lib.pybpe_shard_free), borrowed


def read(shard: Any, start: int, n: int) -> list[int]:
    ids = ffi.new("uint32_t[]", max(1, n))
    call(lib.pybpe_shard_read, shard, start, n, ids)
    return list(ids)[:n]


class Writer:
    def __init__(self, path: Path, kind: int) -> None:
        out = ffi.new("pybpe_shard_writer **")
        call(lib.pybpe_shard_writer_new, out, path_bytes(path), kind, ffi.NULL)
        self.handle = out[0]

    def write(self, tokens: list[int], id_bytes: int) -> None:
        ids = array("H" if id_bytes == 2 else "I", tokens)
        call(lib.pybpe_shard_writer_write, self.handle, ffi.from_buffer(ids), id_bytes, len(tokens))

    def finish(self) -> None:
        call(lib.pybpe_shard_writer_finish, self.handle)


# ------------------------------------------------------------------------------------------------------
# Reading


@pytest.mark.parametrize("id_bytes", [2, 4])
def test_files_and_memory_read_the_same(tmp_path: Path, id_bytes: int) -> None:
    top = 2 ** (8 * id_bytes)
    tokens = [i * 2654435761 % top for i in range(50_000)] + [0, top - 1]
    write_shard(tmp_path / "s.bin", tokens, id_bytes)
    memory, borrowed = open_memory(shard_bytes(tokens, id_bytes))
    for shard in (open_shard(tmp_path / "s.bin"), memory):
        assert lib.pybpe_shard_count(shard) == len(tokens)
        assert lib.pybpe_shard_id_bytes(shard) == id_bytes
        assert read(shard, 0, len(tokens)) == tokens
        for start, n in [(0, 0), (1, 1), (49_999, 3), (len(tokens), 0), (16_383, 32_769)]:
            assert read(shard, start, n) == tokens[start : start + n]
        for start, n in [(len(tokens), 1), (len(tokens) + 1, 0), (0, len(tokens) + 1), (2**64 - 1, 2)]:
            with pytest.raises(CoreError, match="were requested") as caught:
                call(lib.pybpe_shard_read, shard, start, n, ffi.NULL)
            assert caught.value.code == lib.PYBPE_ERR_VALUE
    del borrowed


@pytest.mark.parametrize("id_bytes", [2, 4])
def test_every_truncation_and_extension_is_refused(tmp_path: Path, id_bytes: int) -> None:
    whole = shard_bytes([5, 6, 7], id_bytes)
    for n in [*range(len(whole)), len(whole) + 1, len(whole) + id_bytes]:
        data = (whole + b"\0\0\0\0")[:n]
        with pytest.raises(CoreError) as caught:
            open_memory(data)
        assert caught.value.code == lib.PYBPE_ERR_FORMAT
        assert caught.value.offset == min(n, len(whole))  # the file is too short or too long
        if n % 97 == 0 or n > 1000:
            (tmp_path / "s.bin").write_bytes(data)
            with pytest.raises(CoreError, match=r"s\.bin: ") as caught:
                open_shard(tmp_path / "s.bin")
            assert caught.value.code == lib.PYBPE_ERR_FORMAT


@pytest.mark.parametrize("id_bytes", [2, 4])
def test_every_flipped_bit_of_the_header_is_refused_or_meaningless(id_bytes: int) -> None:
    whole = shard_bytes([5, 6, 7], id_bytes)
    for bit in range(8 * 1024):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        if bit < 96:  # magic, version, count
            with pytest.raises(CoreError) as caught:
                open_memory(bytes(data))
            assert caught.value.code == lib.PYBPE_ERR_FORMAT
            if bit < 64:
                assert caught.value.offset == bit // 32 * 4
        else:  # llm.c reads no other field
            shard, borrowed = open_memory(bytes(data))
            assert read(shard, 0, 3) == [5, 6, 7]
            del borrowed


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"", "FORMAT", "0 bytes are not a token shard: the header alone has 1024"),
        (b"\1\0" * 600, "FORMAT", "magic 65537 at offset 0, expected 20240520 .*'Bad magic'"),
        (header(0, 2)[:4] + b"\2" + header(0, 2)[5:], "FORMAT", "version 2 at offset 4, expected 1; llm.c aborts"),
        (header(-1, 2), "FORMAT", "token count -1 at offset 8 is negative"),
        (header(2**31 - 1, 4), "FORMAT", "1024 bytes, expected 8589935612 for the 2147483647 tokens"),
    ],
)
def test_messages(tmp_path: Path, data: bytes, code: str, message: str) -> None:
    (tmp_path / "s.bin").write_bytes(data)
    with pytest.raises(CoreError, match=r"s\.bin: " + message) as caught:
        open_shard(tmp_path / "s.bin")
    assert caught.value.code == getattr(lib, "PYBPE_ERR_" + code)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "fifo", Path("/dev/null"), Path("x" * 5000)):
        with pytest.raises(CoreError) as caught:
            open_shard(path)
        assert caught.value.code == lib.PYBPE_ERR_IO


def test_beyond_2_gib(tmp_path: Path) -> None:
    # A sparse file: llm.c's (int) seek cannot reach its end, this reader can.
    count = 2**30 + 5000
    path = tmp_path / "s.bin"
    path.write_bytes(header(count, 2))
    with open(path, "r+b") as file:
        file.truncate(1024 + 2 * count)
        file.seek(1024 + 2 * (count - 1))
        file.write(b"\x39\x30")
    shard = open_shard(path)
    assert lib.pybpe_shard_count(shard) == count
    assert read(shard, count - 3, 3) == [0, 0, 12345]


def test_a_file_truncated_while_open(tmp_path: Path) -> None:
    path = tmp_path / "s.bin"
    write_shard(path, list(range(5000)), 2)
    shard = open_shard(path)
    os.truncate(path, 4000)
    assert read(shard, 0, 10) == list(range(10))
    with pytest.raises(CoreError, match="ends at offset 4000") as caught:
        read(shard, 1000, 4000)
    assert (caught.value.code, caught.value.offset) == (lib.PYBPE_ERR_FORMAT, 4000)


# ------------------------------------------------------------------------------------------------------
# Writing


@pytest.mark.parametrize("id_bytes", [2, 4])
@pytest.mark.parametrize("kind", ["UINT16", "UINT32", "RAW_UINT16", "RAW_UINT32"])
def test_written_files_are_the_format(tmp_path: Path, kind: str, id_bytes: int) -> None:
    size = 2 if kind.endswith("16") else 4
    tokens = [i * 40503 % 65536 for i in range(100_000)]
    writer = Writer(tmp_path / "s.bin", getattr(lib, "PYBPE_SHARD_" + kind))
    at = 0
    for n in (0, 1, 2, 31_999, 1, 33_000, 0, 40_000):  # across the ends of the writer's buffer
        writer.write(tokens[at : at + n], id_bytes)
        at += n
    assert os.listdir(tmp_path) != ["s.bin"]
    writer.finish()
    assert os.listdir(tmp_path) == ["s.bin"]
    expected = shard_bytes(tokens[:at], size)
    assert (tmp_path / "s.bin").read_bytes() == expected[1024 if kind.startswith("RAW") else 0 :]


def test_an_id_that_does_not_fit_writes_nothing_of_its_call(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "s.bin", lib.PYBPE_SHARD_UINT16)
    writer.write([1, 2], 4)
    with pytest.raises(CoreError, match=r"s\.bin: id 65536 at index 2 does not fit uint16") as caught:
        writer.write([3, 65535, 65536, 4], 4)
    assert (caught.value.code, caught.value.offset) == (lib.PYBPE_ERR_LIMIT, 2)
    writer.write([65535], 4)
    writer.finish()
    assert read(open_shard(tmp_path / "s.bin"), 0, 3) == [1, 2, 65535]
    assert lib.pybpe_shard_count(open_shard(tmp_path / "s.bin")) == 3


def test_two_gib_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    for kind, size in ((lib.PYBPE_SHARD_UINT16, 2), (lib.PYBPE_SHARD_UINT32, 4)):
        writer = Writer(tmp_path / "s.bin", kind)
        most = (lib.PYBPE_SHARD_MAX_BYTES - 1024) // size
        for n in (most + 1, 2**64 - 1):
            with pytest.raises(CoreError, match="would exceed 2 GiB") as caught:
                call(lib.pybpe_shard_writer_write, writer.handle, ffi.NULL, size, n)
            assert caught.value.code == lib.PYBPE_ERR_LIMIT
        writer.write([1], 2)
        with pytest.raises(CoreError, match="would exceed 2 GiB"):
            call(lib.pybpe_shard_writer_write, writer.handle, ffi.NULL, size, most)
        writer.finish()
        assert lib.pybpe_shard_count(open_shard(tmp_path / "s.bin")) == 1


def test_arguments_of_the_writer(tmp_path: Path) -> None:
    for kind in (-1, 0, 5):
        with pytest.raises(CoreError, match="not a pybpe_shard_format"):
            Writer(tmp_path / "s.bin", kind)
    writer = Writer(tmp_path / "s.bin", lib.PYBPE_SHARD_UINT16)
    for id_bytes in (0, 1, 3, 8):
        with pytest.raises(CoreError, match="must be 2 or 4"):
            call(lib.pybpe_shard_writer_write, writer.handle, ffi.NULL, id_bytes, 0)
    lib.pybpe_shard_writer_discard(writer.handle)
    lib.pybpe_shard_writer_discard(ffi.NULL)
    assert os.listdir(tmp_path) == []


def test_the_old_file_stays_until_finish(tmp_path: Path) -> None:
    path = tmp_path / "s.bin"
    path.write_bytes(b"old")
    writer = Writer(path, lib.PYBPE_SHARD_UINT16)
    writer.write(list(range(65536)), 4)
    lib.pybpe_shard_writer_discard(writer.handle)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["s.bin"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    # A limit on the size of files simulates a full disk: both fail the write.
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / "s.bin"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        writer = Writer(path, lib.PYBPE_SHARD_UINT16)
        with pytest.raises(CoreError, match=r"s\.bin: cannot be written at offset 100000") as caught:
            writer.write([7] * 65536, 2)
        assert caught.value.code == lib.PYBPE_ERR_IO
        with pytest.raises(CoreError, match="an earlier write failed"):
            writer.finish()  # must not complete a shard that lacks tokens
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["s.bin"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "s.bin", tmp_path, Path("/dev/full")):
        with pytest.raises(CoreError) as caught:
            Writer(path, lib.PYBPE_SHARD_UINT16)
        assert caught.value.code == lib.PYBPE_ERR_IO
