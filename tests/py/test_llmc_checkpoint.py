"""llm.c checkpoints: the bytes of the file, bfloat16, the random start, every way in which a file can be wrong; the
command; and moving a checkpoint to another tokenizer."""

import json
import math
import os
import struct
import subprocess
import warnings
from pathlib import Path

import numpy
import pytest
from commands import pybpe_command
from texts import english

import pybpe
from llmc_compat.checkpoint import (
    Checkpoint,
    GPT2Config,
    from_bfloat16,
    read_checkpoint,
    summarize,
    to_bfloat16,
    write_checkpoint,
    write_random_checkpoint,
)
from llmc_compat.convert import checkpoint_from_huggingface, checkpoint_to_huggingface, resize_checkpoint

TINY = GPT2Config(vocab_size=300, padded_vocab_size=384, max_seq_len=16, num_layers=2, num_heads=2, channels=8)


def random_tensors(config: GPT2Config, seed: int = 0) -> dict[str, numpy.ndarray]:
    """Fills every tensor with unique values, padding included."""
    rng = numpy.random.default_rng(seed)
    return {name: rng.standard_normal(shape, dtype=numpy.float32) for name, shape in config.tensor_shapes().items()}


# ------------------------------------------------------------------------------------------------------
# bfloat16


def bfloat16_by_definition(bits: int) -> int:
    """Returns the bfloat16 nearest to a float32, by comparing both neighbors exactly; ties go to the even one."""
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    if math.isnan(value):
        return 0x7FC0
    low = bits >> 16
    if bits & 0xFFFF == 0:
        return low

    def as_float(half: int) -> float:
        if half & 0x7FFF == 0x7F80:  # the next step after the largest finite value, if the exponent were unbounded
            return math.copysign(2.0**128, -1.0 if half & 0x8000 else 1.0)
        return float(struct.unpack("<f", struct.pack("<I", half << 16))[0])

    below, above = abs(value - as_float(low)), abs(as_float(low + 1) - value)
    if below == above:
        return low if low % 2 == 0 else low + 1
    return low if below < above else low + 1


def test_bfloat16_rounds_to_nearest_even() -> None:
    # The low half around every tie and end, under high halves that are zero, subnormal, ordinary, odd, the largest.
    halves = [0x0000, 0x0001, 0x007F, 0x0080, 0x3F80, 0x3F81, 0x42FF, 0x7F7E, 0x7F7F]
    ends = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    bits = [sign | half << 16 | low for sign in (0, 1 << 31) for half in halves for low in ends]
    bits += numpy.random.default_rng(1).integers(0, 1 << 32, 5000).tolist()
    bits += [0x7F800000, 0xFF800000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000]  # infinities and NaNs
    values = numpy.array(bits, dtype="<u4").view("<f4")
    assert to_bfloat16(values).tolist() == [bfloat16_by_definition(b) for b in bits]


def test_bfloat16_is_widened_exactly() -> None:
    raw = numpy.arange(1 << 16, dtype="<u2")
    wide = from_bfloat16(raw)
    assert wide.view("<u4").tolist() == [half << 16 for half in range(1 << 16)]
    back = to_bfloat16(wide)
    nan = numpy.isnan(wide)
    assert (back[~nan] == raw[~nan]).all() and (back[nan] == 0x7FC0).all()


def test_bfloat16_keeps_the_shape_of_any_array() -> None:
    values = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
    for view in (values, values.T, values[:, ::2], values[:0]):
        assert (from_bfloat16(to_bfloat16(view)) == view).all() and to_bfloat16(view).shape == view.shape


# ------------------------------------------------------------------------------------------------------
# The file


def test_the_bytes_are_those_that_llmc_reads(tmp_path: Path) -> None:
    tensors = random_tensors(TINY)
    V, Vp, T, L, NH, C = 300, 384, 16, 2, 2, 8
    order = [
        *(("wte", Vp * C), ("wpe", T * C), ("ln1w", L * C), ("ln1b", L * C), ("qkvw", L * 3 * C * C)),
        *(("qkvb", L * 3 * C), ("attprojw", L * C * C), ("attprojb", L * C), ("ln2w", L * C), ("ln2b", L * C)),
        *(("fcw", L * 4 * C * C), ("fcb", L * 4 * C), ("fcprojw", L * C * 4 * C), ("fcprojb", L * C)),
        *(("lnfw", C), ("lnfb", C)),
    ]
    assert TINY.num_parameters == sum(size for _, size in order)
    for dtype, version in (("fp32", 3), ("bf16", 5)):
        write_checkpoint(tmp_path / "m.bin", TINY, tensors, dtype=dtype)
        data = (tmp_path / "m.bin").read_bytes()
        assert struct.unpack("<256i", data[:1024]) == (20240326, version, T, V, L, NH, C, Vp, *[0] * 248)
        offset = 1024
        for name, size in order:
            flat = tensors[name].ravel()
            expected = flat.tobytes() if dtype == "fp32" else to_bfloat16(flat).tobytes()
            assert data[offset : offset + len(expected)] == expected, name
            assert len(expected) == size * (4 if dtype == "fp32" else 2)
            offset += len(expected)
        assert offset == len(data)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_what_was_written_is_read_back(tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole, in rows, and in blocks of a bounded size."""
    monkeypatch.setattr("llmc_compat.checkpoint._BLOCK_ITEMS", 100)
    tensors = random_tensors(TINY)
    write_checkpoint(tmp_path / "m.bin", TINY, tensors, dtype=dtype)
    raw = tensors if dtype == "fp32" else {name: to_bfloat16(tensor) for name, tensor in tensors.items()}
    wide = raw if dtype == "fp32" else {name: from_bfloat16(tensor) for name, tensor in raw.items()}
    config, read = read_checkpoint(tmp_path / "m.bin")
    assert config == TINY and list(read) == list(TINY.tensor_shapes())
    with Checkpoint(tmp_path / "m.bin") as model:
        assert (model.config, model.dtype) == (TINY, dtype)
        for name, tensor in read.items():
            assert tensor.dtype == numpy.float32 and numpy.array_equal(tensor, wide[name]), name
            assert numpy.array_equal(model.tensor(name), wide[name])
            assert numpy.array_equal(numpy.concatenate(list(model.raw_blocks(name))), raw[name])
        assert numpy.array_equal(model.rows("fcw", 1, 2), wide["fcw"][1:2])
        assert model.rows("wte", 384, 384).shape == (0, 8)
        assert [len(block) for block in model.raw_blocks("wte")] == [12] * 32
        assert [len(block) for block in model.raw_blocks("wte", 30)] == [12, 12, 6]
        for name, start, stop in (("wte", 0, 385), ("wte", -1, 2), ("wte", 3, 2), ("lm_head", 0, 1)):
            with pytest.raises(pybpe.errors.ArgumentError, match=name):
                model.rows(name, start, stop)


def header(**changes: int) -> bytes:
    fields = {"magic": 20240326, "version": 3, "maxT": 16, "V": 300, "L": 2, "NH": 2, "C": 8, "Vp": 384}
    return struct.pack("<256i", *{**fields, **changes}.values(), *[0] * 248)


SIZE = 1024 + 4 * TINY.num_parameters


@pytest.mark.parametrize(
    ("start", "size", "message", "offset"),
    [
        (b"", 0, "0 bytes", 0),
        (header()[:1023], 1023, "1023 bytes", 1023),
        (header(magic=20240520), SIZE, "magic 20240520", 0),
        (header(version=2), SIZE, "version 2", 4),
        (header(V=0), SIZE, "V is 0", 8),
        (header(L=-2), SIZE, "L is -2", 8),
        (header(NH=3), SIZE, "does not divide C", 8),
        (header(Vp=299), SIZE, "Vp is 299, below V 300", 8),
        (header(), SIZE - 1, f"{SIZE - 1} bytes, but its header implies {SIZE}", SIZE - 1),
        (header(), 1024, f"1024 bytes, but its header implies {SIZE}", 1024),
        (header(), SIZE + 4, f"{SIZE + 4} bytes, but its header implies {SIZE}", SIZE),
        (header(version=5), SIZE, f"{SIZE} bytes", 1024 + 2 * TINY.num_parameters),
    ],
)
def test_a_wrong_file_is_named_with_the_place(
    tmp_path: Path, start: bytes, size: int, message: str, offset: int
) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(start + bytes(size - len(start)))
    for read in (Checkpoint, read_checkpoint):
        with pytest.raises(pybpe.errors.FormatError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value) and caught.value.offset == offset
    with pytest.raises(FileNotFoundError, match=r"none\.bin"):
        Checkpoint(tmp_path / "none.bin")
    with pytest.raises(pybpe.errors.FileError):
        Checkpoint(tmp_path)


def test_wrong_arguments_write_nothing(tmp_path: Path) -> None:
    tensors = random_tensors(TINY)
    wrong = {
        "dtype must be": (tensors, "fp16"),
        "lnfb must have the shape": ({name: t for name, t in tensors.items() if name != "lnfb"}, "fp32"),
        "wpe must have the shape": (tensors | {"wpe": tensors["wpe"].T}, "fp32"),
    }
    for message, (given, dtype) in wrong.items():
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            write_checkpoint(tmp_path / "m.bin", TINY, given, dtype=dtype)
    with pytest.raises(pybpe.errors.ArgumentError, match="dtype must be"):
        write_random_checkpoint(tmp_path / "m.bin", TINY, dtype="int8")
    with pytest.raises(pybpe.errors.ArgumentError, match="seed must be at least 0"):
        write_random_checkpoint(tmp_path / "m.bin", TINY, seed=-1)
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------
# The random start


def test_the_initialisation_is_gpt2s(tmp_path: Path) -> None:
    config = GPT2Config(
        vocab_size=1000, padded_vocab_size=1024, max_seq_len=256, num_layers=3, num_heads=2, channels=64
    )
    write_random_checkpoint(tmp_path / "m.bin", config)
    _, tensors = read_checkpoint(tmp_path / "m.bin")
    assert not tensors["wte"][1000:].any() and tensors["wte"][:1000].all()
    tensors["wte"] = tensors["wte"][:1000]
    for name, tensor in tensors.items():
        if name.endswith("b"):
            assert not tensor.any(), name
        elif name.startswith("ln"):
            assert (tensor == 1).all(), name
        else:
            std = 0.02 / math.sqrt(6) if name in ("attprojw", "fcprojw") else 0.02
            n = tensor.size
            # Six standard errors of a normal sample's mean and standard deviation.
            assert abs(tensor.mean(dtype=float)) < 6 * std / math.sqrt(n), name
            assert abs(tensor.std(dtype=float) - std) < 6 * std / math.sqrt(2 * n), name
            assert abs((numpy.abs(tensor) < std).mean() - 0.6827) < 6 * 0.4655 / math.sqrt(n), name  # it is normal
    weights = numpy.concatenate([tensors[name].ravel() for name in ("wte", "wpe", "qkvw", "fcw")])
    assert len(numpy.unique(weights)) > 0.99 * len(weights)  # no tensor repeats another


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of the blocks; the weights in bf16 are the rounded ones."""
    for name, seed, dtype in (("a", 7, "fp32"), ("c", 8, "fp32"), ("d", 7, "bf16")):
        write_random_checkpoint(tmp_path / name, TINY, seed=seed, dtype=dtype)
    monkeypatch.setattr("llmc_compat.checkpoint._BLOCK_ITEMS", 101)
    write_random_checkpoint(tmp_path / "b", TINY, seed=7)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b and a != c
    _, wide = read_checkpoint(tmp_path / "a")
    _, narrow = read_checkpoint(tmp_path / "d")
    for name, tensor in wide.items():
        assert numpy.array_equal(narrow[name], from_bfloat16(to_bfloat16(tensor))), name


def test_depths_are_llmcs() -> None:
    config = GPT2Config.of_depth(12, 50257)
    assert config == GPT2Config(50257, 50304, 1024, 12, 12, 768) and config.num_parameters == 124475904
    assert GPT2Config.of_depth(6, 20032, 64, 64, layers=1, heads=4, channels=8) == GPT2Config(20032, 20096, 64, 1, 4, 8)
    with pytest.raises(pybpe.errors.ArgumentError, match="depth must be one of 6, 12"):
        GPT2Config.of_depth(7, 300)
    with pytest.raises(pybpe.errors.ArgumentError, match="V is 2147483648"):
        GPT2Config.of_depth(12, 1 << 31)


# ------------------------------------------------------------------------------------------------------
# pybpe llmc checkpoint, run as a user runs it.


SHAPE = ("--layers", 2, "--heads", 2, "--channels", 8, "--sequence-length", 16)


def run(*args: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    return pybpe_command("llmc", "checkpoint", *args, code=code)


def inspect(*args: object) -> subprocess.CompletedProcess[str]:
    return pybpe_command("inspect", *args)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tokenizers, and a model for the first."""
    folder = tmp_path_factory.mktemp("checkpoint")
    for name, size, start in (("old", 400, 0), ("new", 500, 60_000)):
        tok = pybpe.train(iter([english()[start : start + 60_000]]), vocab_size=size, special_tokens=["<|endoftext|>"])
        tok.save(folder / f"{name}.bin")
    run("new", "-t", folder / "old.bin", "-o", folder / "m.bin", *SHAPE)
    return folder


def test_new_is_the_apis_file(folder: Path, tmp_path: Path) -> None:
    write_random_checkpoint(tmp_path / "api.bin", GPT2Config(400, 512, 16, 2, 2, 8))
    assert (folder / "m.bin").read_bytes() == (tmp_path / "api.bin").read_bytes()
    write_random_checkpoint(tmp_path / "api.bin", GPT2Config(400, 448, 16, 2, 2, 8), dtype="bf16", seed=3)
    made = run(
        *("new", "-t", folder / "old.bin", "-o", tmp_path / "b.bin", *SHAPE),
        *("--pad-vocab", 64, "--dtype", "bf16", "--seed", 3, "--json"),
    )
    assert (tmp_path / "b.bin").read_bytes() == (tmp_path / "api.bin").read_bytes()
    facts = json.loads(made.stdout)
    assert (facts["vocab_size"], facts["padded_vocab_size"], facts["dtype"]) == (400, 448, "bf16")


def test_resize_says_what_was_kept(folder: Path, tmp_path: Path) -> None:
    made = run(
        *("convert", folder / "m.bin", "--from", folder / "old.bin", "--to", folder / "new.bin"),
        *("-o", tmp_path / "r.bin", "--json"),
    )
    facts = json.loads(made.stdout)
    assert facts["copied"] + facts["averaged"] == facts["vocab_size"] == 500 and facts["copied"] > 257
    old, new = read_checkpoint(folder / "m.bin")[1], read_checkpoint(tmp_path / "r.bin")[1]
    assert numpy.array_equal(old["wte"][:257], new["wte"][:257])  # <|endoftext|> and the bytes


def test_to_hugging_face_and_back(folder: Path, tmp_path: Path) -> None:
    made = run("convert", folder / "m.bin", "-t", folder / "old.bin", "-o", tmp_path / "hf")
    assert "400 tokens (padded to 512), 2 layers, 2 heads, 8 channels, sequence length 16" in made.stdout
    run("convert", tmp_path / "hf", "-o", tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == (folder / "m.bin").read_bytes()


def test_show_tells_every_tensor(folder: Path) -> None:
    facts = json.loads(inspect(folder / "m.bin", "--json").stdout)
    _, tensors = read_checkpoint(folder / "m.bin")
    assert list(facts["tensors"]) == list(tensors) and facts["parameters"] == sum(t.size for t in tensors.values())
    for name, shown in facts["tensors"].items():
        tensor = (tensors[name][:400] if name == "wte" else tensors[name]).astype(float)
        expected = [tensor.mean(), tensor.std(), tensor.min(), tensor.max()]
        assert numpy.allclose([shown[key] for key in ("mean", "std", "min", "max")], expected, rtol=1e-9, atol=1e-12)
        assert shown["shape"] == list(tensors[name].shape) and shown["nonfinite"] == 0
    text = inspect(folder / "m.bin").stdout
    assert "fcprojw" in text and "2 x 8 x 32" in text and "not finite" not in text


def test_weights_that_broke_are_counted(tmp_path: Path) -> None:
    config = GPT2Config(2, 3, 4, 1, 1, 2)
    tensors = {name: numpy.ones(shape, dtype="f4") for name, shape in config.tensor_shapes().items()}
    tensors["wpe"][:2] = numpy.nan, numpy.inf
    tensors["wpe"][2:] = [[1, 2], [3, 4]]
    tensors["lnfb"][:] = numpy.nan
    tensors["wte"][2] = 9  # padding, left out
    write_checkpoint(tmp_path / "m.bin", config, tensors)
    with Checkpoint(tmp_path / "m.bin") as model:
        found = {name: summarize(model, name) for name in ("wpe", "lnfb", "wte")}
    assert [found["wpe"][key] for key in ("mean", "min", "max", "nonfinite")] == [2.5, 1, 4, 4]
    assert found["wpe"]["std"] == pytest.approx(numpy.std([1, 2, 3, 4]))
    assert [found["lnfb"][key] for key in ("mean", "std", "nonfinite")] == [0, 0, 2]
    assert (found["wte"]["max"], found["wte"]["shape"]) == (1, (3, 2))
    shown = inspect(tmp_path / "m.bin").stdout.splitlines()
    assert [line.split()[0] for line in shown if "are not finite" in line] == ["wpe", "lnfb"]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("value", [numpy.nan, -numpy.inf, 1e30])
def test_a_conversion_tells_of_weights_that_broke(tmp_path: Path, dtype: str, value: float) -> None:
    tok = pybpe.train(iter(["a b"]), vocab_size=257, special_tokens=["<|endoftext|>"])
    config = GPT2Config(257, 384, 64, 1, 1, 8)
    tensors = random_tensors(config)
    tensors["lnfb"][3] = tensors["ln1w"][0, 0] = value
    write_checkpoint(tmp_path / "m.bin", config, tensors, dtype=dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resize_checkpoint(tmp_path / "m.bin", tok, tok, tmp_path / "r.bin")
        checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
        checkpoint_from_huggingface(tmp_path / "hf", tmp_path / "back.bin")
    told = [str(each.message) for each in caught if "infinite or NaN" in str(each.message)]
    assert len(told) == (0 if value == 1e30 else 3) and all("ln_1" in each or "ln1w" in each for each in told)


def test_bad_input_is_one_line_and_exit_code_2(folder: Path, tmp_path: Path) -> None:
    old, new, model, out = folder / "old.bin", folder / "new.bin", folder / "m.bin", tmp_path / "x.bin"
    cases = {
        "--depth: expected d6": ("new", "-t", old, "-o", out, "--depth", "big"),
        "depth must be one of": ("new", "-t", old, "-o", out, "--depth", "d7"),
        "does not divide C": ("new", "-t", old, "-o", out, "--heads", 5),
        "at least 1": ("new", "-t", old, "-o", out, "--sequence-length", 0),
        "pad-vocab must be a multiple of 8, as CUDA requires, not 4": ("new", "-t", old, "-o", out, "--pad-vocab", 4),
        "seed must be": ("new", "-t", old, "-o", out, "--seed", -1),
        "dtype must be": ("new", "-t", old, "-o", out, "--dtype", "fp16"),
        "new.bin": ("new", "-t", old, "-o", new / "x.bin"),
        "the tokenizer has 500 tokens": ("convert", model, "--from", new, "--to", old, "-o", out),
        "magic 20240328": ("convert", old, "--from", old, "--to", new, "-o", out),
        "the tokenizer has 500": ("convert", model, "-t", new, "-o", tmp_path / "hf"),
        "use --from and --to": ("convert", model, "-o", out),
        "or none of them": ("convert", tmp_path, "-t", old, "-o", out),
        "--dtype is for a folder": ("convert", model, "-t", old, "-o", tmp_path / "hf", "--dtype", "bf16"),
        "--pad-vocab is for a checkpoint": ("convert", model, "-t", old, "-o", tmp_path / "hf", "--pad-vocab", 64),
        "config.json": ("convert", tmp_path, "-o", out),
    }
    for message, args in cases.items():
        result = run(*args, code=2)
        assert message in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------
# Moving a checkpoint to another tokenizer, compared with a reference that computes each row by its definition.


SPECIALS = ["<|endoftext|>", "<|im_start|>", "é<|x|>"]


@pytest.fixture(scope="module")
def old() -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:60_000]]), vocab_size=500, special_tokens=SPECIALS, special_ids="last")


@pytest.fixture(scope="module")
def new() -> pybpe.Tokenizer:
    """Shares some tokens with `old` and two specials; one of its own is an ordinary token of `old`."""
    text = english()[60_000:120_000] + "Grüße aus Köln! " * 500
    return pybpe.train(iter([text]), vocab_size=700, special_tokens=["<|endoftext|>", "é<|x|>", "<|pad|>", " the"])


def model(tmp_path: Path, tok: pybpe.Tokenizer, dtype: str) -> dict[str, numpy.ndarray]:
    """Writes a model for the tokenizer as tmp_path/old.bin, with every weight unique, padding included."""
    config = GPT2Config(tok.vocab_size, tok.vocab_size + 20, 10, num_layers=2, num_heads=2, channels=6)
    rng = numpy.random.default_rng(5)
    tensors = {name: rng.normal(0.1, 1, shape).astype("f4") for name, shape in config.tensor_shapes().items()}
    write_checkpoint(tmp_path / "old.bin", config, tensors, dtype=dtype)
    return read_checkpoint(tmp_path / "old.bin")[1]


def reference_row(i: int, new: pybpe.Tokenizer, old: pybpe.Tokenizer, wte: numpy.ndarray) -> list[float]:
    """Returns row i of the new wte, by a search through all old tokens; the mean is summed exactly."""
    by_id = {j: text for text, j in old.special_tokens.items()}
    names = {j: text for text, j in new.special_tokens.items()}
    for j in range(old.vocab_size):
        if i in names or j in by_id:
            if names.get(i, "no special") == by_id.get(j):
                return wte[j].tolist()
        elif new.decode_single_token_bytes(i) == old.decode_single_token_bytes(j):
            return wte[j].tolist()
    return [math.fsum(column) / old.vocab_size for column in wte[: old.vocab_size].T.tolist()]


@pytest.mark.parametrize(("dtype", "back"), [("fp32", False), ("bf16", False), ("fp32", True)])
def test_rows_follow_their_tokens(
    tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer, dtype: str, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ " the" is a special token of one and an ordinary token of the other: a new token in both directions."""
    monkeypatch.setattr("llmc_compat.convert._BLOCK_ROWS", 111)  # so that blocks end everywhere
    if back:
        old, new = new, old
    before = model(tmp_path, old, dtype)
    resized = resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "new.bin")
    config, after = read_checkpoint(tmp_path / "new.bin")
    size, padded = (500, 512) if back else (700, 768)
    assert config == resized.config == GPT2Config(size, padded, 10, 2, 2, 6)
    with Checkpoint(tmp_path / "new.bin") as made:
        assert made.dtype == resized.dtype == dtype
    expected = numpy.zeros((padded, 6), dtype=numpy.float32)
    for i in range(size):
        expected[i] = reference_row(i, new, old, before["wte"])
    if dtype == "bf16":
        expected = from_bfloat16(to_bfloat16(expected))
    assert numpy.array_equal(after.pop("wte"), expected)
    for name, tensor in after.items():
        assert numpy.array_equal(tensor, before[name]), name
    mean = (expected[:size] == expected[new.token_to_id(" the")]).all(axis=1)
    assert (resized.copied, resized.averaged) == (size - mean.sum(), mean.sum())
    assert resized.copied > 350 and resized.averaged > 50  # the case is not trivial


def test_another_old_tokenizer_is_refused(tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer) -> None:
    model(tmp_path, old, "fp32")
    with pytest.raises(pybpe.errors.ArgumentError, match="V is 500, but the tokenizer has 700 tokens"):
        resize_checkpoint(tmp_path / "old.bin", new, old, tmp_path / "new.bin")
    with pytest.raises(pybpe.errors.ArgumentError, match="multiple"):
        resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "new.bin", pad_vocab=0)
    with pytest.raises(pybpe.errors.ArgumentError, match="choose another output"):
        resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "old.bin")
    assert os.listdir(tmp_path) == ["old.bin"]
