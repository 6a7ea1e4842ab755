"""Known failures of other tokenizers, one test each."""

import io
import json
import os
import pickle
import struct
import tarfile
import threading
from pathlib import Path

import numpy
import pytest
from texts import english

import pybpe
from llmc_compat import checkpoint, convert
from pybpe import _binding
from pybpe.tokens.formats import FORMATS
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.token_files import TokenFile

PATTERNS = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat")


@pytest.fixture(scope="module")
def tok() -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:50_000]]), vocab_size=600, special_tokens=["<|endoftext|>"])


def tokenizer_bin(vocab_size: int, body: bytes, eot: int = 0) -> bytes:
    return struct.pack("<4I", 20240328, 2, vocab_size, eot).ljust(1024, b"\0") + body


# ------------------------------------------------------------------------------------------------------
# Sizes in files


def test_sentencepiece_cve_2026_1260_a_huge_piece(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    """A piece longer than a buffer of fixed size overflowed it. Here a token may have any length, in each format that
    can represent it, and a length that extends past the end of the file is refused."""
    huge = b"x" * 200_000
    tok.save(tmp_path / "tok.json")
    data = json.loads((tmp_path / "tok.json").read_bytes())
    data["model"]["vocab"][huge.decode()] = len(data["model"]["vocab"])
    data["model"]["ignore_merges"] = True  # a word that is a token is taken as it is
    (tmp_path / "huge.json").write_text(json.dumps(data))
    with_huge = pybpe.Tokenizer.from_file(tmp_path / "huge.json")
    assert with_huge.encode(huge) == [tok.vocab_size] and with_huge.decode_bytes([tok.vocab_size]) == huge
    with pytest.raises(pybpe.errors.LimitError, match="200000 bytes"):
        with_huge.save(tmp_path / "huge.bin")
    for length in (0, 2, 255):
        body = b"".join(bytes([1, i]) for i in range(255)) + bytes([length, 255])
        (tmp_path / "x.bin").write_bytes(tokenizer_bin(256, body))
        with pytest.raises(pybpe.errors.FormatError, match=r"x\.bin"):
            pybpe.Tokenizer.from_file(tmp_path / "x.bin")


@pytest.mark.parametrize("vocab_size", [2**31 - 1, 2**31, 2**32 - 1, 2**30, 2**29, 257, 0])
def test_llama_cpp_cve_2025_49847_a_vocabulary_size_or_token_length_that_turns_negative(
    vocab_size: int, tmp_path: Path
) -> None:
    """Sizes were cast to int32 before they were compared. Here they are compared with the file's size first."""
    body = b"".join(bytes([1, i]) for i in range(256))
    path = tmp_path / "x.bin"
    path.write_bytes(tokenizer_bin(vocab_size, body))
    with pytest.raises(pybpe.errors.FormatError, match=r"x\.bin"):
        pybpe.Tokenizer.from_file(path)
    path.write_bytes(tokenizer_bin(256, body, eot=vocab_size))
    if vocab_size == 2**32 - 1:  # this value means that there is no end of text
        assert pybpe.Tokenizer.from_file(path).eot_token is None
    else:
        with pytest.raises(pybpe.errors.FormatError, match=r"x\.bin"):
            pybpe.Tokenizer.from_file(path)


def test_llama_cpp_cve_2025_53630_sizes_whose_sum_wraps(tmp_path: Path) -> None:
    """The sizes of tensors were added up in size_t, wrapped, and too little was allocated."""
    for shape in ((2**31 - 1,) * 6, (1, 2**31 - 1, 1, 1, 2**31 - 1, 2**31 - 1), (2**16,) * 3 + (2**15, 2**16, 2**17)):
        (tmp_path / "m.bin").write_bytes(struct.pack("<8i", 20240326, 3, *shape).ljust(5120, b"\0"))
        with pytest.raises(pybpe.Error, match=r"m\.bin"):
            checkpoint.Checkpoint(tmp_path / "m.bin")
    for shape in ([2**63, 2], [2**32, 2**32], [2**64 + 1], [2**62, 4]):
        text = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
        (tmp_path / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
        with pytest.raises(pybpe.errors.FormatError, match=r"w\.safetensors"):
            convert.SafetensorsFile(tmp_path / "w.safetensors")


# llm.c's heap overflow of the eval loader, which trusts the header's size of the longest example: test_llmc_evals.py.
# llm.c's uninitialized eot_token when tokenizer.bin is missing: missing_file in tests/c/test_llmc_headers.c.


# ------------------------------------------------------------------------------------------------------
# Numbers


def test_hugging_face_tokenizers_overflow_of_pair_counts() -> None:
    """Pair counts were int32: frequent pairs became negative, and were never merged."""
    counts = {"ab": 2**31 - 1, "xab": 2**31 - 1, "yab": 2**33, "cd": 2**32 + 1, "ef": 2**32, "gh": 5}
    for tie_break in ("lexicographic", "huggingface"):
        tok = pybpe.train(counts=counts, vocab_size=256 + 6, tie_break=tie_break, min_frequency=6)
        assert tok.merges == [(b"a", b"b"), (b"y", b"ab"), (b"c", b"d"), (b"e", b"f"), (b"x", b"ab")]
    most = pybpe.train(counts={"ab": 2**62, "cd": 2**62 - 1}, vocab_size=258)
    assert most.merges == [(b"a", b"b"), (b"c", b"d")]
    for too_many in ({"ab": 2**64 - 1, "cd": 2}, {"ab" * 4: 2**62}):
        with pytest.raises(pybpe.errors.LimitError, match=r"2\^64"):
            pybpe.train(counts=too_many, vocab_size=258)


def test_size_t_cast_to_int(tmp_path: Path) -> None:
    """Lengths beyond 2^31 became negative. A sparse shard of 8 GiB is read at both ends; `make soak` encodes a text of
    more than 4 GiB (tests/faults/hostile.py)."""
    count = (1 << 31) - 1
    path = tmp_path / "x.bin"
    with open(path, "wb") as stream:
        stream.write(struct.pack("<3i", 20240801, 7, count).ljust(1024, b"\0"))
        stream.truncate(1024 + 4 * count)
        stream.seek(-8, 2)
        stream.write(struct.pack("<2I", 7, 9))
    shard = _binding.Shard(path)
    assert len(shard) == count
    assert list(shard.read(count - 2, 2)) == [7, 9] and list(shard.read(0, 2)) == [0, 0]


# ------------------------------------------------------------------------------------------------------
# Long and hostile texts


def test_tiktoken_stack_overflow_and_quadratic_pretokenizers(tok: pybpe.Tokenizer) -> None:
    """Many characters without a border made a regular expression recurse until the stack was gone, and runs of one
    kind took quadratic time: hours for these, which take a second. Here a thread has 256 KiB of stack."""
    n = 300_000
    units = ["a", " ", "\n", "^", "9", b"\xff", "a ", "\r\n", " \n", "'s", "'S", "a'", "\u4f60", "e\u0301", "Aa"]
    runs = [unit if isinstance(unit, bytes) else unit.encode() for unit in units]
    texts = [run * (n // len(run)) for run in runs]
    texts += [b" " * n + b"a", b"\n " * (n // 2) + b"x", b"<|endoftext" * (n // 10)]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for pattern in PATTERNS:
                other = pybpe.Tokenizer(tok.model.vocab, tok.merges, ["<|endoftext|>"], pattern=pattern)
                for text in texts:
                    assert other.decode_bytes(other.encode_to_numpy(text)) == text
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not failures


# ------------------------------------------------------------------------------------------------------
# Files that would execute something, or write elsewhere. The linter names each place in the source that could: see
# pyproject.toml.


def test_archives_are_read_without_being_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    data = io.BytesIO()
    numpy.save(data, numpy.arange(5, dtype="u2"))
    with tarfile.open(path, "w") as tar:
        for name in ("../escaped.input_ids.npy", "/tmp/pybpe-escaped.input_ids.npy"):
            member = tarfile.TarInfo(name)
            member.size = len(data.getvalue())
            tar.addfile(member, io.BytesIO(data.getvalue()))
    before = sorted(tmp_path.parent.iterdir())
    assert [block.tolist() for block in FORMATS["webdataset"].read(str(path), "uint16")] == [[0, 1, 2, 3, 4]] * 2
    assert sorted(tmp_path.parent.iterdir()) == before and sorted(tmp_path.iterdir()) == [path]
    assert not os.path.exists("/tmp/pybpe-escaped.input_ids.npy")


class Payload:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._path,)


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    numpy.save(tmp_path / "objects.npy", numpy.array([Payload(mark)], dtype=object), allow_pickle=True)
    with pytest.raises(pybpe.errors.FormatError):
        TokenFile(tmp_path / "objects.npy").read()
    payload = pickle.dumps(Payload(mark))
    for name in ("tok.json", "tok.bin", "x.counts", "manifest.json"):
        (tmp_path / name).write_bytes(payload)
    for read in (
        lambda: pybpe.Tokenizer.from_file(tmp_path / "tok.json"),
        lambda: pybpe.Tokenizer.from_file(tmp_path / "tok.bin"),
        lambda: pybpe.Counts.load(tmp_path / "x.counts"),
        lambda: Manifest.load(tmp_path),
    ):
        with pytest.raises(pybpe.errors.FormatError):
            read()
    assert not mark.exists()
