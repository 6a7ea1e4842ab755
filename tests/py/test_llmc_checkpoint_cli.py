"""pybpe llmc checkpoint, run as a user runs it."""

import json
import subprocess
from pathlib import Path

import numpy
import pytest
from commands import pybpe_command
from texts import english

import pybpe
from llmc_compat.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from llmc_compat.gpt2_config import GPT2Config
from llmc_compat.initialization import write_random_checkpoint
from llmc_compat.summary import summarize

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
        *("--pad", 64, "--dtype", "bf16", "--seed", 3, "--json"),
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
        found = summarize(model)
    assert (found["wpe"].mean, found["wpe"].min, found["wpe"].max, found["wpe"].nonfinite) == (2.5, 1, 4, 4)
    assert found["wpe"].std == pytest.approx(numpy.std([1, 2, 3, 4]))
    assert (found["lnfb"].mean, found["lnfb"].std, found["lnfb"].nonfinite) == (0, 0, 2)
    assert (found["wte"].max, found["wte"].shape) == (1, (3, 2))
    shown = inspect(tmp_path / "m.bin").stdout.splitlines()
    assert [line.split()[0] for line in shown if "are not finite" in line] == ["wpe", "lnfb"]


def test_bad_input_is_one_line_and_exit_code_2(folder: Path, tmp_path: Path) -> None:
    old, new, model, out = folder / "old.bin", folder / "new.bin", folder / "m.bin", tmp_path / "x.bin"
    cases = {
        "--depth: expected d6": ("new", "-t", old, "-o", out, "--depth", "big"),
        "depth must be one of": ("new", "-t", old, "-o", out, "--depth", "d7"),
        "multiple of num_heads": ("new", "-t", old, "-o", out, "--heads", 5),
        "at least 1": ("new", "-t", old, "-o", out, "--sequence-length", 0),
        "pad must be a multiple of 8, as CUDA requires, not 4": ("new", "-t", old, "-o", out, "--pad", 4),
        "seed must be": ("new", "-t", old, "-o", out, "--seed", -1),
        "dtype must be": ("new", "-t", old, "-o", out, "--dtype", "fp16"),
        "new.bin": ("new", "-t", old, "-o", new / "x.bin"),
        "the tokenizer has 500 tokens": ("convert", model, "--from", new, "--to", old, "-o", out),
        "magic 20240328": ("convert", old, "--from", old, "--to", new, "-o", out),
        "the tokenizer has 500": ("convert", model, "-t", new, "-o", tmp_path / "hf"),
        "give --from and --to": ("convert", model, "-o", out),
        "or none of them": ("convert", tmp_path, "-t", old, "-o", out),
        "--dtype is for a folder": ("convert", model, "-t", old, "-o", tmp_path / "hf", "--dtype", "bf16"),
        "--pad is for a checkpoint": ("convert", model, "-t", old, "-o", tmp_path / "hf", "--pad", 64),
        "config.json": ("convert", tmp_path, "-o", out),
    }
    for message, args in cases.items():
        result = run(*args, code=2)
        assert message in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr
    assert not list(tmp_path.iterdir())
