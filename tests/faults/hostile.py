"""Tests extreme sizes: texts beyond 4 GiB, files of more than 2^31 tokens, counts beyond 2^33, a million special
tokens, a special token of 10 MB, a word of 3 GB.

    hostile.py [PART...]

Parts that need more memory than is available are skipped, with a message.
"""

from __future__ import annotations

import mmap
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from operations import plain

import pybpe
from llmc_compat.shards import write_shard
from pybpe import _binding
from pybpe.loading import PackedSequences

BEYOND = (1 << 32) + 12345
HUGE = 1_500_000_000  # times two bytes


def far_text() -> None:
    """A special token, and a cut, after 4 GiB of zeros that take no memory."""
    text = mmap.mmap(-1, BEYOND + 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    text[BEYOND : BEYOND + 13] = b"<|endoftext|>"
    text[BEYOND + 20 : BEYOND + 24] = b"a b "
    specials = _binding.Specials({"<|endoftext|>": 7})
    assert specials.find(text, 0) == (BEYOND, BEYOND + 13, 7)
    pretok = _binding.Pretok(_binding.pattern_find("gpt2") or 1)
    cut = _binding.text_cut(pretok, specials, text, 1)
    assert BEYOND <= cut <= BEYOND + 21, cut


def has_memory(part: str, gib: int) -> bool:
    """Returns whether this much memory is free; prints a line if not."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    enough = int(lines["MemAvailable"].split()[0]) >= gib << 20
    if not enough:
        print(f"{part}: skipped: it needs {gib} GiB of memory")
    return enough


def long_text() -> None:
    """Encodes more than 4 GiB in one call; the result must be the ids of one unit, repeated."""
    if not has_memory("long_text", 12):
        return
    unit = b"the words and more\n"
    tok = plain()
    one = tok.encode_to_numpy(unit)
    count = BEYOND // len(unit) + 1
    ids = tok.encode_to_numpy(unit * count)
    assert len(ids) == count * len(one) and (ids.reshape(count, len(one)) == one).all()


def many_specials() -> None:
    """Tests a million special tokens."""
    tok = plain()
    names = [f"<|{i}|>" for i in range(1_000_000)]
    many = pybpe.Tokenizer(tok.model.vocab, tok.merges, names)
    text = "a<|999999|>b<|0|><|1000000|>"
    ids = many.encode(text)
    assert many.decode(ids) == text
    assert [many.decode_single_token_bytes(i).decode() for i in ids if i >= tok.vocab_size] == ["<|999999|>", "<|0|>"]


def long_special() -> None:
    """Tests special tokens of 10 KB and 10 MB."""
    tok = plain()
    for size in (10_000, 10_000_000):
        name = "<" + "x" * size + ">"
        special = pybpe.Tokenizer(tok.model.vocab, tok.merges, [name])
        assert special.encode("a" + name + "b") == [*tok.encode("a"), special.vocab_size - 1, *tok.encode("b")]
        assert special.decode(special.encode(name[:-1])) == name[:-1]


def long_word() -> None:
    """Encodes one word of 300 MB, and trains on one of 10 MB."""
    tok = plain()
    word = b"ab" * 150_000_000
    assert tok.decode_bytes(tok.encode_to_numpy(word)) == word
    trained = pybpe.train(counts={b"ab" * 5_000_000: 3}, vocab_size=264)
    assert [left + right for left, right in trained.merges] == [b"ab" * 2**i for i in range(7)]  # up to 255 bytes


def huge_word() -> None:
    """Encodes and counts one word of 3 GB. With less memory, encoding, counting and training must raise errors."""
    for work, gib, free, expected in [
        (encode_huge, 28, 5, "right"),  # most of it is never touched
        (count_huge, 14, 14, "right"),
        (encode_huge, 8, 5, "MemoryError"),
        (count_huge, 6, 6, "MemoryError"),
        (train_huge, 10, 5, "OutOfMemoryError"),
    ]:
        if has_memory(work.__name__, free):
            outcome = in_a_process(work, gib)
            print(f"  {work.__name__}, in {gib} GiB of address space: {outcome}", flush=True)
            assert outcome.startswith(expected), outcome


def in_a_process(work: Callable[[], None], gib: int) -> str:
    """Does some work in an address space of this many GiB. Returns "right", or the error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        outcome = "right"
        try:
            resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
            work()
        except pybpe.errors.OutOfMemoryError as error:
            outcome = f"OutOfMemoryError: {error}"
        except MemoryError as error:  # Python's or numpy's own
            outcome = f"MemoryError: {error}"
        except BaseException as error:
            outcome = repr(error)
        os.write(writing, outcome.encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.close(writing)
    outcome = os.read(reading, 1000).decode() or f"status {status}"
    return outcome


def encode_huge() -> None:
    tok = pybpe.train(counts={b"ab" * 64: 1}, vocab_size=263)
    ids = tok.encode_to_numpy(HUGE * b"ab")
    assert len(ids) == HUGE * 2 // 128 and (ids == ids[0]).all()


def count_huge() -> None:
    word = HUGE * b"ab"
    counts = pybpe.count_words([word, b" a"], workers=1)
    assert len(counts) == 2


def train_huge() -> None:
    tok = pybpe.train(counts={HUGE * b"ab": 1}, vocab_size=264)
    assert len(tok.merges) == 7


def many_tokens() -> None:
    """Reads sparse files of more than 2^31 tokens, without a header, since a shard's header has an int32 count."""
    import numpy

    count = (1 << 31) + 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.bin")
        with open(path, "wb") as stream:
            stream.truncate(2 * count)
            stream.seek(-6, 2)
            stream.write(numpy.array([7, 8, 9], dtype="<u2").tobytes())
        packed = PackedSequences(path, 1024, stride=1)
        assert len(packed) == count - 1024
        last = packed[-1]
        assert last.targets[-3:].tolist() == [7, 8, 9] and not last.targets[:-3].any() and not packed[0].targets.any()
        try:
            write_shard(Path(folder, "y.bin"), numpy.memmap(path, dtype="<u2", mode="r"))
        except pybpe.errors.LimitError:
            pass
        else:
            raise AssertionError("a shard of more than 2^31 tokens")
        assert [found.name for found in Path(folder).iterdir()] == ["x.bin"]


def large_counts() -> None:
    """Adds up counts beyond 2^33 from parts, with both tie-breaking rules."""
    part = pybpe.Counts.from_dict({" ab": 1 << 33, " cd": (1 << 33) + 1, " ef": 5})
    total = pybpe.Counts.merge([part] * 4)
    assert total.to_dict() == {b" ab": 1 << 35, b" cd": (1 << 35) + 4, b" ef": 20}
    for tie_break in ("lexicographic", "huggingface"):
        tok = pybpe.train(counts=total, vocab_size=262, tie_break=tie_break)
        assert {left + right for left, right in tok.merges[:2]} <= {b"cd", b" c", b" cd"}


PARTS: list[Callable[[], None]] = [
    far_text, many_tokens, large_counts, many_specials, long_special, long_word, long_text, huge_word,
]  # fmt: skip


def main() -> int:
    """See above."""
    for part in PARTS:
        if sys.argv[1:] and part.__name__ not in sys.argv[1:]:
            continue
        start = time.monotonic()
        part()
        print(f"{part.__name__}: {time.monotonic() - start:.1f} s", flush=True)
    print("hostile: 0 problems")
    return 0


if __name__ == "__main__":
    sys.exit(main())
