"""llm.c checkpoints: the bytes of the file, bfloat16, the random start, and every way in which a file can be wrong."""

import math
import struct
from pathlib import Path

import numpy
import pytest

import pybpe
from llmc_compat.bfloat16 import from_bfloat16, to_bfloat16
from llmc_compat.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from llmc_compat.gpt2_config import GPT2Config
from llmc_compat.initialization import write_random_checkpoint

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
def test_what_was_written_is_read_back(tmp_path: Path, dtype: str) -> None:
    tensors = random_tensors(TINY)
    write_checkpoint(tmp_path / "m.bin", TINY, tensors, dtype=dtype)
    config, read = read_checkpoint(tmp_path / "m.bin")
    with Checkpoint(tmp_path / "m.bin") as model:
        assert config == TINY == model.config and model.dtype == dtype
    assert list(read) == list(TINY.tensor_shapes())
    for name, tensor in read.items():
        expected = tensors[name] if dtype == "fp32" else from_bfloat16(to_bfloat16(tensors[name]))
        assert tensor.dtype == numpy.float32 and numpy.array_equal(tensor, expected), name


def test_an_open_checkpoint_gives_parts(tmp_path: Path) -> None:
    tensors = random_tensors(TINY)
    write_checkpoint(tmp_path / "m.bin", TINY, tensors)
    with Checkpoint(tmp_path / "m.bin") as model:
        assert (model.config, model.dtype) == (TINY, "fp32")
        assert numpy.array_equal(model.rows("fcw", 1, 2), tensors["fcw"][1:2])
        assert model.rows("wte", 384, 384).shape == (0, 8)
        assert numpy.array_equal(model.tensor("lnfb"), tensors["lnfb"])
        for name, tensor in tensors.items():
            assert numpy.array_equal(numpy.concatenate(list(model.raw_blocks(name))), tensor)
        for name, start, stop in (("wte", 0, 385), ("wte", -1, 2), ("wte", 3, 2), ("lm_head", 0, 1)):
            with pytest.raises(pybpe.errors.ArgumentError, match=name):
                model.rows(name, start, stop)


def test_blocks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmc_compat.checkpoint._BLOCK_ITEMS", 100)
    tensors = random_tensors(TINY)
    write_checkpoint(tmp_path / "m.bin", TINY, tensors, dtype="bf16")
    with Checkpoint(tmp_path / "m.bin") as model:
        blocks = list(model.raw_blocks("wte"))
        part = list(model.raw_blocks("wte", 30))
    assert [len(block) for block in blocks] == [12] * 32
    assert numpy.array_equal(numpy.concatenate(blocks), to_bfloat16(tensors["wte"]))
    assert [len(block) for block in part] == [12, 12, 6]


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
        (header(V=0), SIZE, "at least 1", 8),
        (header(L=-2), SIZE, "at least 1", 8),
        (header(NH=3), SIZE, "multiple of num_heads", 8),
        (header(Vp=299), SIZE, "at least V", 8),
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


def test_other_files_are_errors(tmp_path: Path) -> None:
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


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed, dtype in (("a", 7, "fp32"), ("b", 7, "fp32"), ("c", 8, "fp32"), ("d", 7, "bf16")):
        write_random_checkpoint(tmp_path / name, TINY, seed=seed, dtype=dtype)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b and a != c
    _, wide = read_checkpoint(tmp_path / "a")
    _, narrow = read_checkpoint(tmp_path / "d")
    for name, tensor in wide.items():
        assert numpy.array_equal(narrow[name], from_bfloat16(to_bfloat16(tensor))), name


def test_the_bytes_do_not_depend_on_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_random_checkpoint(tmp_path / "a", TINY)
    monkeypatch.setattr("llmc_compat.initialization._BLOCK", 101)
    write_random_checkpoint(tmp_path / "b", TINY)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_depths_are_llmcs() -> None:
    config = GPT2Config.of_depth(12, 50257)
    assert config == GPT2Config(50257, 50304, 1024, 12, 12, 768) and config.num_parameters == 124475904
    assert GPT2Config.of_depth(6, 20032, 64, 64, layers=1, heads=4, channels=8) == GPT2Config(20032, 20096, 64, 1, 4, 8)
    with pytest.raises(pybpe.errors.ArgumentError, match="depth must be one of 6, 12"):
        GPT2Config.of_depth(7, 300)
    with pytest.raises(pybpe.errors.ArgumentError, match="int32"):
        GPT2Config.of_depth(12, 1 << 31)
