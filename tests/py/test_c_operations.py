"""The C library takes work in proportion to its input: the branches that run are counted, not seconds."""

import math
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from vocabularies import SHAPES, tokenizer_of

import pybpe

SIZES = (1000, 8000)
FLAGS = "-std=c11 -O1 -U_FORTIFY_SOURCE".split()
RENAMED = [f"-D{name}=counted_{name}" for name in ("memcpy", "memmove", "memset", "memcmp", "memchr")]
RENAMED += ["-Dgetentropy=fixed_getentropy"]

Count = Callable[..., tuple[int, int]]


@pytest.fixture(scope="module")
def count(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Count:
    """count(seed, "load", path) is (error code, work), as tests/c/count_work.c says."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("counted")
    (folder / "empty.c").write_text("int nothing;\n")
    trace = "-fsanitize-coverage=trace-pc"
    if subprocess.run([compiler, trace, "-c", "empty.c"], cwd=folder, capture_output=True).returncode != 0:
        pytest.skip(f"this gcc lacks {trace}")
    subprocess.run(["make", "amalgamation"], cwd=root, check=True, capture_output=True)
    library, source = root / "build/amalgamation/pybpe.c", root / "tests/c/count_work.c"
    subprocess.run([compiler, *FLAGS, *RENAMED, trace, "-c", library, "-o", folder / "pybpe.o"], check=True)
    program = folder / "count_work"
    includes = f"-I{library.parent}", f"-I{source.parent}"
    subprocess.run(
        [compiler, *FLAGS, *includes, source, folder / "pybpe.o", "-o", program, "-lm", "-pthread"], check=True
    )

    def run(seed: int, *args: str | Path) -> tuple[int, int]:
        environment = {**os.environ, "COUNT_SEED": str(seed), "PYBPE_SIMD": "swar"}  # the same on every machine
        shown = subprocess.run([program, *args], env=environment, check=True, capture_output=True, text=True).stdout
        code, work = map(int, shown.split())
        return code, work

    return run


def check_growth(count: Count, commands: Sequence[Sequence[str | Path]]) -> None:
    """Checks the exponent of the work, as the files grow. With some seeds a key that is looked up often has an unlucky
    place in a hash table of one size; more work than in proportion to the input is more with every seed."""
    sizes = [sum(arg.stat().st_size for arg in command if isinstance(arg, Path)) for command in commands]
    exponents = []
    for seed in range(4):
        found = [count(seed, *command) for command in commands]
        assert {code for code, _ in found} == {0}
        works = [work for _, work in found]
        assert all(work > size / 100 for work, size in zip(works, sizes)), (works, sizes)  # it is counted at all
        exponents.append(math.log(works[-1] / works[0]) / math.log(sizes[-1] / sizes[0]))
        if exponents[-1] < 1.15:
            return
    raise AssertionError((exponents, works, sizes))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def write_strings(path: Path, strings: Sequence[bytes]) -> Path:
    return write(path, b"".join(struct.pack("<I", len(string)) + string for string in strings))


def bare(tok: pybpe.Tokenizer, path: Path) -> Path:
    """Writes a tokenizer.bin without merges, as llm.c's own scripts do."""
    tok.save(path, "bin")
    raw = bytearray(path.read_bytes())
    end = 1024
    for _ in range(tok.vocab_size):
        end += 1 + raw[end]
    raw[16:28] = bytes(12)
    return write(path, raw[:end])


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_reading_a_vocabulary(count: Count, tmp_path: Path, shape: str) -> None:
    tokenizers = {size: tokenizer_of(SHAPES[shape](size)) for size in SIZES}
    for size, tok in tokenizers.items():
        tok.save(tmp_path / f"{size}.bin")
        tok.save(tmp_path / f"{size}.json")
    check_growth(count, [("load", tmp_path / f"{size}.bin") for size in SIZES])
    check_growth(count, [("json", tmp_path / f"{size}.json") for size in SIZES])
    check_growth(count, [("load", bare(tok, tmp_path / f"{size}.bare")) for size, tok in tokenizers.items()])


BYTES = [bytes([byte]) for byte in range(256)]
RANKS: dict[str, Callable[[int], list[bytes]]] = {
    "each one byte longer": lambda n: [b"a" * length for length in range(2, int(math.sqrt(n) * 20))],
    "long tokens that merge almost": lambda n: [
        *(b"a" * (2 << i) for i in range(12)),
        *(b"a" * n + bytes([i]) + b"a" * n for i in range(20)),
    ],
    "long tokens that never merge": lambda n: [random.Random(i).randbytes(n) for i in range(20)],
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", RANKS)
def test_recovering_merges(count: Count, tmp_path: Path, shape: str) -> None:
    """Tokens of any length: a tokenizer.bin has at most 255 bytes in each."""
    paths = [write_strings(tmp_path / str(size), BYTES + RANKS[shape](size)) for size in SIZES]
    check_growth(count, [("recover", path) for path in paths])


@pytest.mark.slow
@pytest.mark.parametrize("open_, close", ["[]", ('{"a":', "}")])
def test_nested_json(count: Count, tmp_path: Path, open_: str, close: str) -> None:
    """Before the vocabulary. Python's parser reads what is nested deeper."""
    paths = [tmp_path / f"{size}.json" for size in SIZES]
    for size, path in zip(SIZES, paths):
        nested = ",".join([open_ * 60 + "0" + close * 60] * (size // 60))
        path.write_text('{"x":[' + nested + '],"model":{"vocab":{"a":0},"merges":[]}}')
    check_growth(count, [("json", path) for path in paths])


STRINGS: dict[str, Callable[[int], list[bytes]]] = {
    "ordinary": lambda n: [b"<|%06d|>" % i for i in range(n)],
    "one prefix": lambda n: [b"<|" + b"a" * 100 + b"%06d|>" % i for i in range(n)],
    "runs": lambda n: [b"a" * length for length in range(1, int(5 * math.sqrt(n)))],
    "one suffix": lambda n: [b"b" + b"a" * length for length in range(1, int(5 * math.sqrt(n)))],
    "spaces inside": lambda n: [b"<|" + b" " * length + b"|>" for length in range(1, int(5 * math.sqrt(n)))],
    "long": lambda n: [b"a" * (i * n) + b"b" * i for i in range(1, 5)],
}
TEXTS: dict[str, Callable[[int], bytes]] = {
    "a run": lambda n: b"a" * n,
    "spaces": lambda n: b" " * n,
    "beginnings": lambda n: b"<|" * (n // 2),
    "long beginnings": lambda n: (b"<|" + b"a" * 99) * (n // 101),
    "beginnings with spaces": lambda n: (b"<|" + b" " * 99) * (n // 101),
    "specials": lambda n: b" <|000001|> " * (n // 12),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "flag"),
    [
        *((shape, 0) for shape in STRINGS),
        *((shape, 1 << i) for shape in ("one prefix", "spaces inside") for i in range(4)),
    ],
)
def test_specials(count: Count, tmp_path: Path, shape: str, flag: int) -> None:
    strings = [write_strings(tmp_path / f"{size}.strings", STRINGS[shape](size)) for size in SIZES]
    for make in TEXTS.values():
        texts = [write(tmp_path / f"{size}.text", make(20 * size)) for size in SIZES]
        check_growth(count, [("specials", path, str(flag), text) for path, text in zip(strings, texts)])


WORDS: dict[str, Callable[[int], bytes]] = {
    "letters": lambda n: bytes(random.Random(1).choices(b"abcdefgh", k=n)),
    "words": lambda n: bytes(random.Random(2).choices(b"abcdefgh ", k=n)),
    "bytes": lambda n: random.Random(3).randbytes(n),
    "two letters": lambda n: b"ab" * (n // 2),
    "digits": lambda n: b"1" * n,
    "newlines": lambda n: b"\n" * n,
    "apostrophes": lambda n: b"'s" * (n // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_encoding(count: Count, tmp_path: Path, shape: str) -> None:
    tokenizer = tmp_path / "tokenizer.bin"
    tokenizer_of(SHAPES[shape](4000), ["<|000001|>"]).save(tokenizer)
    for make in (TEXTS | WORDS).values():
        texts = [write(tmp_path / f"{size}.text", make(50 * size)) for size in SIZES]
        check_growth(count, [("encode", str(tokenizer), text) for text in texts])
