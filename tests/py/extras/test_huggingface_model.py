"""llm.c checkpoints in transformers and back: logits equal a forward pass in numpy. test_transformers.py compares the
ids of folders."""

import json
from pathlib import Path

import numpy
import pytest
from reference import gpt2_forward
from texts import chinese, english

import pybpe
from llmc_compat.checkpoint import GPT2Config, write_checkpoint
from llmc_compat.convert import checkpoint_from_huggingface, checkpoint_to_huggingface

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors")

SPECIALS = ["<|endoftext|>", "<|padding|>", "<|im_start|>"]


def tokenizer() -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:60_000] + chinese()[:5000]]), vocab_size=600, special_tokens=SPECIALS)


def make_model(path: Path, tok: pybpe.Tokenizer, dtype: str = "fp32", std: float = 0.4) -> None:
    """Returns weights large enough for every part of the model to affect the logits; no two layers are equal."""
    config = GPT2Config(tok.vocab_size, 640, max_seq_len=32, num_layers=3, num_heads=4, channels=24)
    rng = numpy.random.default_rng(9)
    tensors = {name: rng.normal(0, std, shape).astype("f4") for name, shape in config.tensor_shapes().items()}
    tensors["wte"][tok.vocab_size :] = 0
    write_checkpoint(path, config, tensors, dtype=dtype)


def logits(model: object, ids: list[int]) -> numpy.ndarray:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double().numpy()  # type: ignore[operator]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_logits_are_those_of_the_definition(tmp_path: Path, dtype: str) -> None:
    tok = tokenizer()
    make_model(tmp_path / "m.bin", tok, dtype)
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    assert model.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    assert type(model).__name__ == "GPT2LMHeadModel" and not model.training
    ids = tok.encode(english()[1000:1200])[:32]
    expected = gpt2_forward.logits(tmp_path / "m.bin", ids)
    found = logits(model.double(), ids)  # bfloat16 weights are exact in float64
    assert found.shape == expected.shape == (32, tok.vocab_size) and expected.std() > 0.5
    assert numpy.abs(found - expected).max() < 1e-9


def test_nothing_is_missing_and_the_ends_are_set(tmp_path: Path) -> None:
    tok = tokenizer()
    make_model(tmp_path / "m.bin", tok)
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    model, info = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr()
    assert (model.config.bos_token_id, model.config.eos_token_id, model.config.pad_token_id) == (0, 0, 1)
    assert all(module.p == 0 for module in model.modules() if isinstance(module, torch.nn.Dropout))
    made = model.generate(torch.tensor([[0]]), max_new_tokens=20, do_sample=False)[0].tolist()
    greedy = [0]
    while len(greedy) < len(made):
        greedy.append(int(gpt2_forward.logits(tmp_path / "m.bin", greedy)[-1].argmax()))
    assert made == greedy and len(made) > 5


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_model_of_transformers_moves_to_llmc(tmp_path: Path, dtype: str) -> None:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=300, n_positions=20, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).to(getattr(torch, dtype)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.4)
    model.save_pretrained(tmp_path / "hf")
    checkpoint_from_huggingface(tmp_path / "hf", tmp_path / "m.bin")
    ids = list(range(5, 25))
    found = gpt2_forward.logits(tmp_path / "m.bin", ids)
    assert numpy.abs(found - logits(model.double(), ids)).max() < 1e-9


def test_the_package_safetensors_reads_what_we_write(tmp_path: Path) -> None:
    tok = tokenizer()
    for dtype in ("fp32", "bf16"):
        make_model(tmp_path / "m.bin", tok, dtype)
        checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / dtype)
    with safetensors.safe_open(tmp_path / "fp32" / "model.safetensors", "pt") as wide:
        with safetensors.safe_open(tmp_path / "bf16" / "model.safetensors", "pt") as narrow:
            assert wide.metadata() == narrow.metadata() == {"format": "pt"}
            assert sorted(wide.keys()) == sorted(narrow.keys()) and len(wide.keys()) == 4 + 3 * 12
            for name in wide.keys():  # noqa: SIM118  not a dict
                # PyTorch's rounding to bfloat16 is the oracle for ours.
                assert torch.equal(wide.get_tensor(name).bfloat16(), narrow.get_tensor(name))


def test_the_package_refuses_the_same_damage(tmp_path: Path) -> None:
    """Our reader accepts a header exactly if the package does. The test changes one number at a time."""
    tok = tokenizer()
    make_model(tmp_path / "m.bin", tok)
    checkpoint_to_huggingface(tmp_path / "m.bin", tok, tmp_path / "hf")
    path = tmp_path / "hf" / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = "transformer.h.1.mlp.c_fc.bias"
    for key, value in (("shape", [95]), ("shape", [96, 2]), ("data_offsets", [0, 1]), ("dtype", "F16")):
        text = json.dumps({**header, name: {**header[name], key: value}}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
        with pytest.raises(safetensors.SafetensorError):
            safetensors.safe_open(path, "pt")
        with pytest.raises(pybpe.errors.FormatError, match=name):
            checkpoint_from_huggingface(tmp_path / "hf", tmp_path / "back.bin")
