"""Hugging Face folders: their bytes, the conversion back, and refused files. extras/test_huggingface_model.py tests
that transformers reads them."""

import json
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from texts import english

import pybpe
from llmc_compat.chat import CHAT_TEMPLATE
from llmc_compat.checkpoint import Checkpoint, GPT2Config, from_bfloat16, read_checkpoint, to_bfloat16, write_checkpoint
from llmc_compat.convert import checkpoint_from_huggingface, checkpoint_to_huggingface
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.tokenizer import of_model

V, C, L = 400, 6, 2
CONFIG = GPT2Config(V, 512, 12, num_layers=L, num_heads=3, channels=C)


@pytest.fixture(scope="module")
def tok() -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:60_000]]), vocab_size=V, special_tokens=["<|padding|>", "<|endoftext|>"])


@pytest.fixture
def tensors(tmp_path: Path) -> dict[str, numpy.ndarray]:
    """Returns the weights of tmp_path/m.bin, with zeros in the padding as required."""
    rng = numpy.random.default_rng(4)
    tensors = {name: rng.standard_normal(shape, dtype="f4") for name, shape in CONFIG.tensor_shapes().items()}
    tensors["wte"][V:] = 0
    write_checkpoint(tmp_path / "m.bin", CONFIG, tensors)
    return tensors


def parse(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """Reads a safetensors file by its definition. Returns the type, shape and data of each tensor."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    assert length % 8 == 0
    body = data[8 + length :]
    ends = sorted(entry["data_offsets"] for entry in header.values())
    assert [start for start, _ in ends] == [0, *(end for _, end in ends[:-1])] and ends[-1][1] == len(body)
    return {
        name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])]) for name, entry in header.items()
    }


def test_the_weights_are_where_transformers_wants_them(
    tmp_path: Path, tok: pybpe.Tokenizer, tensors: dict[str, numpy.ndarray]
) -> None:
    assert checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf") == CONFIG
    found = parse(tmp_path / "hf" / "model.safetensors")
    expected = {"wte.weight": tensors["wte"][:V], "wpe.weight": tensors["wpe"]}
    for i in range(L):
        expected |= {
            f"h.{i}.ln_1.weight": tensors["ln1w"][i],
            f"h.{i}.ln_1.bias": tensors["ln1b"][i],
            f"h.{i}.attn.c_attn.weight": tensors["qkvw"][i].T,  # Conv1D: (in, out)
            f"h.{i}.attn.c_attn.bias": tensors["qkvb"][i],
            f"h.{i}.attn.c_proj.weight": tensors["attprojw"][i].T,
            f"h.{i}.attn.c_proj.bias": tensors["attprojb"][i],
            f"h.{i}.ln_2.weight": tensors["ln2w"][i],
            f"h.{i}.ln_2.bias": tensors["ln2b"][i],
            f"h.{i}.mlp.c_fc.weight": tensors["fcw"][i].T,
            f"h.{i}.mlp.c_fc.bias": tensors["fcb"][i],
            f"h.{i}.mlp.c_proj.weight": tensors["fcprojw"][i].T,
            f"h.{i}.mlp.c_proj.bias": tensors["fcprojb"][i],
        }
    expected |= {"ln_f.weight": tensors["lnfw"], "ln_f.bias": tensors["lnfb"]}
    assert found == {
        f"transformer.{name}": ("F32", list(tensor.shape), tensor.tobytes()) for name, tensor in expected.items()
    }


def test_the_json_files_say_what_llmc_computes(
    tmp_path: Path, tok: pybpe.Tokenizer, tensors: dict[str, numpy.ndarray]
) -> None:
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    assert sorted(os.listdir(tmp_path / "hf")) == [
        *("config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")
    ]
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    sizes = {"vocab_size": V, "n_positions": 12, "n_embd": C, "n_layer": L, "n_head": 3, "n_inner": None}
    maths = {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}
    ids = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    names = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "torch_dtype": "float32"}
    assert config.items() >= {**sizes, **maths, **ids, **dropout}.items() and all(config[k] == names[k] for k in names)
    tokenizer = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
    assert tokenizer["bos_token"] == tokenizer["eos_token"] == "<|endoftext|>"
    assert (tokenizer["pad_token"], tokenizer["model_max_length"]) == ("<|padding|>", 12)
    assert pybpe.Tokenizer.from_file(tmp_path / "hf" / "tokenizer.json").model == tok.model


def test_a_tokenizer_decides_which_tokens_the_json_files_name(
    tmp_path: Path, tensors: dict[str, numpy.ndarray]
) -> None:
    plain = pybpe.train(iter([english()[:60_000]]), vocab_size=V)
    checkpoint_to_huggingface(tmp_path / "m.bin", plain, tmp_path / "plain")
    facts = json.loads((tmp_path / "plain" / "tokenizer_config.json").read_text())
    assert not facts.keys() & {"bos_token", "eos_token", "pad_token"}
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert config["eos_token_id"] is None and "chat_template" not in facts
    talking = pybpe.train(iter([english()[:60_000]]), vocab_size=V, special_tokens=CONTROL_TOKENS)
    checkpoint_to_huggingface(tmp_path / "m.bin", talking, tmp_path / "talking")
    facts = json.loads((tmp_path / "talking" / "tokenizer_config.json").read_text())
    assert facts["chat_template"] == CHAT_TEMPLATE


def test_the_folder_has_the_tokenizer_that_save_pretrained_writes(
    tmp_path: Path, tensors: dict[str, numpy.ndarray]
) -> None:
    specials = ["<s>", "<|pad|>", *CONTROL_TOKENS]
    tok = pybpe.train(iter([english()[:60_000]]), vocab_size=V, special_tokens=specials)
    model = replace(tok.model, prefix_space=True, chat_template="{{ messages }}")
    tok = of_model(model).replace(template="<s> $A")
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    tok.save_pretrained(tmp_path / "tok")
    for path in (tmp_path / "tok").iterdir():
        written = json.loads(path.read_text()) | (
            {"model_max_length": 12} if path.name == "tokenizer_config.json" else {}
        )
        assert json.loads((tmp_path / "hf" / path.name).read_text()) == written
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["bos_token_id"] == 0
    read = pybpe.Tokenizer.from_file(tmp_path / "hf")
    assert read == tok and read.model.chat_template == "{{ messages }}"


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_there_and_back_is_the_same_file(
    tmp_path: Path, tok: pybpe.Tokenizer, tensors: dict[str, numpy.ndarray], dtype: str
) -> None:
    write_checkpoint(tmp_path / "m.bin", CONFIG, tensors, dtype=dtype)
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    code = {"fp32": "F32", "bf16": "BF16"}[dtype]
    assert {entry[0] for entry in parse(tmp_path / "hf" / "model.safetensors").values()} == {code}
    assert checkpoint_from_huggingface(tmp_path / "hf", tmp_path / "back.bin", dtype=dtype) == CONFIG
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "m.bin").read_bytes()
    checkpoint_from_huggingface(tmp_path / "hf", tmp_path / "other.bin", dtype="bf16", pad_vocab=64)
    with Checkpoint(tmp_path / "other.bin") as model:
        assert (model.config.padded_vocab_size, model.dtype) == (448, "bf16")


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the header of the folder's safetensors file, in place, its data untouched."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


@pytest.fixture
def hf(tmp_path: Path, tok: pybpe.Tokenizer, tensors: dict[str, numpy.ndarray]) -> Path:
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    return tmp_path / "hf"


def test_openais_names_have_no_prefix_and_more_tensors(tmp_path: Path, hf: Path) -> None:
    def change(header: dict[str, Any]) -> None:
        for name in [name for name in header if name != "__metadata__"]:
            header[name.removeprefix("transformer.")] = header.pop(name)
        header["h.0.attn.bias"] = {"dtype": "U8", "shape": [1, 1, 2, 2], "data_offsets": [0, 4]}  # a mask

    rewrite(hf, change)
    checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "m.bin").read_bytes()


@pytest.mark.parametrize(("code", "dtype"), [("F16", "<f2"), ("F64", "<f8"), ("BF16", "<u2")])
def test_weights_of_other_types_are_read(
    tmp_path: Path, hf: Path, tensors: dict[str, numpy.ndarray], code: str, dtype: str
) -> None:
    header: dict[str, Any] = {}
    body = b""
    for name, (_, shape, data) in parse(hf / "model.safetensors").items():
        values = numpy.frombuffer(data, dtype="<f4")
        data = (to_bfloat16(values) if code == "BF16" else values.astype(dtype)).tobytes()
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    (hf / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    for name, tensor in read_checkpoint(tmp_path / "back.bin")[1].items():
        rounded = from_bfloat16(to_bfloat16(tensors[name])) if code == "BF16" else tensors[name].astype(dtype)
        assert numpy.array_equal(tensor, rounded.astype("f4")), name


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "llama", "'llama'"),
        ("activation_function", "relu", "activation_function is 'relu'"),
        ("layer_norm_epsilon", 1e-6, "layer_norm_epsilon is 1e-06"),
        ("tie_word_embeddings", False, "tie_word_embeddings"),
        ("scale_attn_by_inverse_layer_idx", True, "scale_attn_by_inverse_layer_idx"),
        ("n_inner", 25, "n_inner is 25; llm.c requires 4 x n_embd = 24"),
        ("n_layer", None, "n_layer is None"),
        ("n_layer", 3, "the tensor 'transformer.h.2.ln_1.weight' is missing"),
        ("n_layer", 1 << 40, "L is 1099511627776"),
        ("n_head", 4, "NH is 4, which does not divide"),
        ("vocab_size", 401, r"shape \(400, 6\); config.json implies \(401, 6\)"),
        ("vocab_size", True, "vocab_size is True"),
        ("n_embd", 10**6, "shape"),
    ],
)
def test_a_model_that_llmc_lacks_is_refused(tmp_path: Path, hf: Path, key: str, value: object, message: str) -> None:
    config = json.loads((hf / "config.json").read_text())
    if key == "n_embd":
        config["n_head"] = 1
    (hf / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(pybpe.errors.FormatError, match=message) as caught:
        checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    assert str(hf) in str(caught.value) and not (tmp_path / "back.bin").exists()


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_damaged_config_is_an_error(tmp_path: Path, hf: Path, text: bytes) -> None:
    (hf / "config.json").write_bytes(text)
    with pytest.raises(pybpe.errors.FormatError, match=r"config\.json"):
        checkpoint_from_huggingface(hf, tmp_path / "back.bin")


WPE = "transformer.wpe.weight"


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h[WPE].update(shape=[72]),
        lambda h: h[WPE].update(dtype="I32"),
        lambda h: h[WPE].update(dtype="F16"),  # there would be twice as many bytes
        lambda h: h[WPE].update(dtype=None),
        lambda h: h[WPE].update(shape=[12, -6]),
        lambda h: h[WPE].update(shape=[1 << 40, 1 << 40]),
        lambda h: h[WPE].update(shape=[12.0, 6.0]),
        lambda h: h[WPE].update(shape=[12, 6, *[1] * 7]),
        lambda h: h[WPE].update(data_offsets=[0]),
        lambda h: h[WPE].update(data_offsets=[288, 0]),
        lambda h: h[WPE].update(data_offsets=[1 << 60, (1 << 60) + 288]),
        lambda h: h.update({WPE: 7}),
        lambda h: h.pop(WPE),
    ],
)
def test_a_damaged_tensor_is_named(tmp_path: Path, hf: Path, change: Callable[[dict[str, Any]], object]) -> None:
    rewrite(hf, change)
    with pytest.raises(pybpe.errors.FormatError, match=WPE):
        checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    assert not (tmp_path / "back.bin").exists()


def test_a_file_cut_anywhere_is_an_error(tmp_path: Path, hf: Path) -> None:
    path = hf / "model.safetensors"
    data = path.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    for size in (0, 7, 8, 9, header - 1, header, header + 1, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(pybpe.errors.FormatError, match=r"model\.safetensors"):
            checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    for start in (b"\xff" * 8, (1 << 40).to_bytes(8, "little")):
        path.write_bytes(start + data[8:])
        with pytest.raises(pybpe.errors.FormatError, match="not a safetensors file"):
            checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    for text, message in ((b"[]", "not a JSON object"), (b"{]", "its header is not JSON")):
        path.write_bytes((2).to_bytes(8, "little") + text)
        with pytest.raises(pybpe.errors.FormatError, match=message):
            checkpoint_from_huggingface(hf, tmp_path / "back.bin")


def test_missing_files_are_named(tmp_path: Path, hf: Path) -> None:
    (hf / "model.safetensors").unlink()
    with pytest.raises(pybpe.errors.FormatError, match="save_pretrained"):
        checkpoint_from_huggingface(hf, tmp_path / "back.bin")
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        checkpoint_from_huggingface(tmp_path / "none", tmp_path / "back.bin")


def test_another_tokenizer_is_refused(tmp_path: Path, tok: pybpe.Tokenizer, tensors: dict[str, numpy.ndarray]) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="V is 400, but the tokenizer has 399 tokens"):
        checkpoint_to_huggingface(tmp_path / "m.bin", tok.prune(vocab_size=399), tmp_path / "hf")
    assert not (tmp_path / "hf").exists()
