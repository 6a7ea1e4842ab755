"""GGUF files: every field and tensor is what the tokenizer and the checkpoint have, and what llama.cpp would read
differently is refused."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import pytest
from commands import pybpe_program as run
from gpt2 import bytes_to_unicode
from test_formats import variants
from texts import chinese, english

import pybpe
from llmc_compat.checkpoint import GPT2Config, read_checkpoint, write_checkpoint
from llmc_compat.convert import checkpoint_to_gguf
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.formats.pretrained import chat_template
from pybpe.pattern import Pattern
from pybpe.tokenizer import of_model

gguf = pytest.importorskip("gguf")

PRE = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", r"\p{N}(?then)gpt2": "smollm"}
END = "<|endoftext|>"
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5


@cache
def trained(pattern: str = "gpt2", **options: Any) -> pybpe.Tokenizer:
    corpus = [english()[:30_000], chinese()[:3000]]
    return pybpe.train(iter(corpus), vocab_size=500, special_tokens=CONTROL_TOKENS, pattern=pattern, **options)


def fields(path: Path) -> dict[str, Any]:
    """Returns the fields of a file, without those that only the reader makes up."""
    found = {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items()}
    return {name: value for name, value in found.items() if not name.startswith("GGUF.")}


def vocabulary(tok: pybpe.Tokenizer, pre: str) -> dict[str, Any]:
    """Returns the fields that a file must have, for a tokenizer with the control tokens."""
    spelled = bytes_to_unicode()

    def text(token: bytes) -> str:
        return "".join(spelled[byte] for byte in token)

    specials = {i: name for name, i in tok.special_tokens.items()}
    tokens = [tok.decode_single_token_bytes(i) for i in range(len(tok))]
    return {
        "general.architecture": "gpt2",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [specials.get(i, text(token)) for i, token in enumerate(tokens)],
        "tokenizer.ggml.token_type": [CONTROL if i in specials else NORMAL for i in range(len(tok))],
        "tokenizer.ggml.merges": [f"{text(left)} {text(right)}" for left, right in tok.merges],
        "tokenizer.ggml.bos_token_id": tok.eot_token,
        "tokenizer.ggml.eos_token_id": tok.eot_token,
        "tokenizer.ggml.padding_token_id": tok.special_tokens["<|padding|>"],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": chat_template(tok.model),
    }


@pytest.mark.parametrize("special_ids", ["first", "last"])
@pytest.mark.parametrize("pattern", PRE)
def test_the_file_has_the_vocabulary(tmp_path: Path, pattern: str, special_ids: str) -> None:
    tok = trained(pattern, special_ids=special_ids)
    tok.save(tmp_path / "v.gguf", "gguf")
    assert fields(tmp_path / "v.gguf") == vocabulary(tok, PRE[pattern])
    with pytest.raises(pybpe.errors.FormatError, match=r"v\.gguf: this is a GGUF model, not a tokenizer"):
        pybpe.Tokenizer.from_file(tmp_path / "v.gguf")


def small(specials: list[str], more: list[bytes] = [], first: int = 0, **changes: Any) -> pybpe.Tokenizer:  # noqa: B006
    """Returns the bytes from `first` on, "ab", more tokens that no merge makes, an unused id, and special tokens."""
    tokens = [bytes([byte]) for byte in range(first, 256)] + [b"ab", *more, b""]
    names = {name: len(tokens) + i for i, name in enumerate(specials)}
    merges = [(ord("a") - first, ord("b") - first)]
    plain = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, []).model
    tokens += [name.encode() for name in specials]
    return of_model(replace(plain, **{"tokens": tokens, "merges": merges, "specials": names, **changes}))


def test_token_types_and_words_that_are_tokens(tmp_path: Path) -> None:
    for whole, pre in ((True, "llama-bpe"), (False, "smaug-bpe")):
        tok = small([END, "</s>"], [b"xyz"], pattern=Pattern("llama3"), whole_words=whole,
                    visible=frozenset(["</s>"]), eos="</s>", chat_template="{{ messages }}")  # fmt: skip
        tok.save(tmp_path / "v.gguf", "gguf")
        found = fields(tmp_path / "v.gguf")
        assert found["tokenizer.ggml.tokens"][256:] == ["ab", "xyz", "[PAD258]", END, "</s>"]
        assert found["tokenizer.ggml.token_type"] == [NORMAL] * 258 + [UNUSED, CONTROL, USER_DEFINED]
        assert (found["tokenizer.ggml.pre"], found["tokenizer.ggml.eos_token_id"]) == (pre, 260)
        assert found["tokenizer.chat_template"] == "{{ messages }}"


def test_roles_of_a_configuration(tmp_path: Path) -> None:
    config = {"bos_token": "<s>", "pad_token": END, "cls_token": "<s>", "image_token": "<s>", "unk_token": None}
    for more, ids in (({}, (258, 259, 259)), ({"bos_token": None, "eos_token": "<s>"}, (258, 258, 259))):
        tok = small(["<s>", END], config={**config, **more}, eos=more.get("eos_token"))
        tok.save(tmp_path / "v.gguf", "gguf")
        found = fields(tmp_path / "v.gguf")
        assert tuple(found[f"tokenizer.ggml.{role}_token_id"] for role in ("bos", "eos", "padding")) == ids


REFUSED: dict[str, Callable[[], pybpe.Tokenizer]] = {
    r"pattern cl100k; .* the pattern llama3": lambda: trained("cl100k"),
    r"pattern o200k; .* outside ASCII": lambda: trained("o200k"),
    r"pattern gpt2 with digits 1; it has .* \\p\{N\}\(\?then\)gpt2$": lambda: trained(digits=1),
    r"token 257, b'xyz': it has no ignore_merges": lambda: small([END], [b"xyz"], whole_words=True),
    r"needs a token that ends a text, and otherwise takes id 11": lambda: small(["<s>"]),
    r"without merges": lambda: small([END], merges=[]),
    r"lacks 0x00": lambda: small([END], first=1),
    r"NUL: the special token '<\\x00>'": lambda: small([END, "<\0>"]),
    r"first: \('<ab>', 'ab>cd'\)": lambda: small([END, "<ab>", "ab>cd"]),
    r"may take token 257 for": lambda: small([END], [b"<EOT>"]),
    r"special token 'Ġx' for a word": lambda: small([END, "Ġx"], pattern=Pattern("llama3")),
    r"has it already: \[PAD257\]": lambda: small([END, "[PAD257]"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_llama_cpp_reads_differently_is_refused(tmp_path: Path, message: str) -> None:
    (tmp_path / "v.gguf").write_bytes(b"old")
    with pytest.raises(pybpe.errors.UnsupportedError, match=message):
        REFUSED[message]().save(tmp_path / "v.gguf", "gguf")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("v.gguf", b"old")]


def test_what_is_near_to_the_refused_is_written(tmp_path: Path) -> None:
    """One special token may begin with another, or end with the beginning of a shorter one."""
    near = [small([END, "<a>", "<a>b", "b>", "ccc<a"]), small([END], [b"<EOT", b"[1]"])]
    for tok in (*near, small([END, "<s>"], pattern=Pattern("llama3"))):
        tok.save(tmp_path / "v.gguf", "gguf")
        assert len(fields(tmp_path / "v.gguf")["tokenizer.ggml.tokens"]) == len(tok)


def test_each_feature_is_held_or_refused(tmp_path: Path) -> None:
    refused = {"pattern", "normalizer", "whole_words", "prefix_space", "matching", "specials", "dropout", "template"}
    for key, tok in variants().items():
        if key in refused:
            with pytest.raises(pybpe.errors.UnsupportedError, match="cannot hold|llama.cpp"):
                tok.save(tmp_path / f"{key}.gguf", "gguf")
        else:
            tok.save(tmp_path / f"{key}.gguf", "gguf")
            found = fields(tmp_path / f"{key}.gguf")
            assert found["tokenizer.chat_template"] == chat_template(tok.model), key
            assert found["tokenizer.ggml.eos_token_id"] == tok.eot_token, key


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"^gguf is not installed: pip install 'pybpe\[gguf\]'$"):
        trained().save(tmp_path / "v.gguf", "gguf")


def write_model(folder: Path, dtype: str = "fp32") -> None:
    """Writes random weights, also in the padding, and their tokenizer."""
    config = GPT2Config(len(trained()), 512, max_seq_len=20, num_layers=2, num_heads=3, channels=6)
    rng = numpy.random.default_rng(1)
    made = {name: rng.standard_normal(shape, dtype="f4") for name, shape in config.tensor_shapes().items()}
    write_checkpoint(folder / "m.bin", config, made, dtype=dtype)
    trained().save(folder / "t.json")


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_file_has_the_model(tmp_path: Path, dtype: str) -> None:
    write_model(tmp_path, dtype)
    checkpoint_to_gguf(tmp_path / "m.bin", trained(), tmp_path / "m.gguf")
    sizes = {"context_length": 20, "embedding_length": 6, "block_count": 2, "feed_forward_length": 24}
    facts = {f"gpt2.{key}": value for key, value in sizes.items()} | {"gpt2.attention.head_count": 3}
    found = fields(tmp_path / "m.gguf")
    assert found.pop("gpt2.attention.layer_norm_epsilon") == pytest.approx(1e-5)
    assert found == vocabulary(trained(), "gpt-2") | facts | {"general.file_type": {"fp32": 0, "bf16": 32}[dtype]}
    t = read_checkpoint(tmp_path / "m.bin")[1]
    expected = {"token_embd.weight": t["wte"][: len(trained())], "position_embd.weight": t["wpe"]}
    expected |= {"output_norm.weight": t["lnfw"], "output_norm.bias": t["lnfb"]}
    parts = {"attn_norm": "ln1", "attn_qkv": "qkv", "attn_output": "attproj",
             "ffn_norm": "ln2", "ffn_up": "fc", "ffn_down": "fcproj"}  # fmt: skip
    for theirs, ours in parts.items():
        for i in range(2):
            expected[f"blk.{i}.{theirs}.weight"] = t[ours + "w"][i]
            expected[f"blk.{i}.{theirs}.bias"] = t[ours + "b"][i]
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        is_short = dtype == "bf16" and expected[name].ndim == 2 and name != "position_embd.weight"
        data = tensor.data.view("<u2").astype("<u4") << 16 if is_short else tensor.data
        assert tensor.tensor_type.name == ("BF16" if is_short else "F32"), name
        assert tensor.shape.tolist() == list(expected[name].shape[::-1]), name  # ggml gives the innermost size first
        assert numpy.array_equal(data.view("<f4"), expected[name]), name


def test_what_the_commands_replace(tmp_path: Path) -> None:
    write_model(tmp_path)
    with pytest.raises(pybpe.errors.ArgumentError, match="V is 500, but the tokenizer has 259 tokens"):
        checkpoint_to_gguf(tmp_path / "m.bin", small([END]), tmp_path / "m.gguf")
    with pytest.raises(pybpe.errors.ArgumentError, match="out would replace the model"):
        checkpoint_to_gguf(tmp_path / "m.bin", trained(), tmp_path / "m.bin")
    assert {path.name for path in tmp_path.iterdir()} == {"m.bin", "t.json"}
    for _ in range(2):
        run("export", tmp_path / "t.json", "--format", "gguf", "-o", tmp_path / "v.gguf")
        run("llmc", "checkpoint", "convert", tmp_path / "m.bin", "-t", tmp_path / "t.json", "-o", tmp_path / "m.gguf")
    assert fields(tmp_path / "v.gguf") == vocabulary(trained(), "gpt-2")
    assert len(gguf.GGUFReader(tmp_path / "m.gguf").tensors) == 4 + 2 * 12
    result = run("export", tmp_path / "t.json", "--format", "gguf", "-o", tmp_path / "m.gguf", code=2)
    assert b"m.gguf: has something else than this call makes" in result.stderr
