"""Sizes that no honest input has: texts beyond 4 GiB, a million special tokens, one of 10 MB, a word of 300 MB.

    hostile.py

Needs some 10 GB of memory for the text that is really there; without it that part is left out, and said so.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Callable

from operations import plain

import pybpe
from pybpe import _binding

BEYOND = (1 << 32) + 12345


def far_text() -> None:
    """A special token, and a cut, behind 4 GiB of zeros that take no memory."""
    text = mmap.mmap(-1, BEYOND + 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    text[BEYOND : BEYOND + 13] = b"<|endoftext|>"
    text[BEYOND + 20 : BEYOND + 24] = b"a b "
    specials = _binding.Specials({"<|endoftext|>": 7})
    assert specials.find(text, 0) == (BEYOND, BEYOND + 13, 7)
    pretok = _binding.Pretok(_binding.pattern_find("gpt2") or 1)
    cut = _binding.text_cut(pretok, specials, text, 1)
    assert BEYOND <= cut <= BEYOND + 21, cut


def long_text() -> None:
    """More than 4 GiB, encoded in one call: the ids of one unit, again and again."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if available < 12 << 30:
        print("long_text: left out, since it needs 12 GiB of memory")
        return
    unit = b"the words and more\n"
    tok = plain()
    one = tok.encode_to_numpy(unit)
    count = BEYOND // len(unit) + 1
    ids = tok.encode_to_numpy(unit * count)
    assert len(ids) == count * len(one) and (ids.reshape(count, len(one)) == one).all()


def many_specials() -> None:
    """A million of them."""
    tok = plain()
    names = [f"<|{i}|>" for i in range(1_000_000)]
    many = pybpe.Tokenizer(tok.vocab, tok.merges, names)
    text = "a<|999999|>b<|0|><|1000000|>"
    ids = many.encode(text)
    assert many.decode(ids) == text
    assert [many.token_bytes(i).decode() for i in ids if i >= tok.n_vocab] == ["<|999999|>", "<|0|>"]


def long_special() -> None:
    """Of 10 KB, and of 10 MB."""
    tok = plain()
    for size in (10_000, 10_000_000):
        name = "<" + "x" * size + ">"
        special = pybpe.Tokenizer(tok.vocab, tok.merges, [name])
        assert special.encode("a" + name + "b") == [*tok.encode("a"), special.n_vocab - 1, *tok.encode("b")]
        assert special.decode(special.encode(name[:-1])) == name[:-1]


def long_word() -> None:
    """One word of 300 MB, and one of 10 MB in training."""
    tok = plain()
    word = b"ab" * 150_000_000
    assert tok.decode_bytes(tok.encode_to_numpy(word)) == word
    trained = pybpe.train(counts={b"ab" * 5_000_000: 3}, vocab_size=264)
    assert [left + right for left, right in trained.merges] == [b"ab" * 2**i for i in range(7)]  # up to 255 bytes


PARTS: list[Callable[[], None]] = [far_text, many_specials, long_special, long_word, long_text]


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
