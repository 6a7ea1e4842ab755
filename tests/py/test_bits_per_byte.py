"""The bytes of text that ids stand for, and bits per byte."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from corpora import EOT, documents, jsonl
from texts import chinese

import pybpe
from llmc_compat.shards import read_shard
from pybpe.analysis import bits_per_byte
from pybpe.cli import main
from pybpe.errors import ArgumentError
from pybpe.tokens.verification import verify


def test_the_bytes_of_each_id(tok: pybpe.Tokenizer) -> None:
    """Against decoding each id, also the ids of bytes that are no character of their own."""
    lengths = tok.byte_lengths()
    assert (lengths.dtype, lengths.shape) == (numpy.int32, (len(tok),))
    assert lengths.tolist() == [
        0 if i in tok.special_tokens.values() else len(tok.decode_single_token_bytes(i)) for i in range(len(tok))
    ]
    text = chinese()[:2000] + EOT + "\x00é\U0001f600"
    assert lengths[tok.encode(text)].sum() == len(text.replace(EOT, "").encode())
    for broken in (b"\xff\xe4\xb8", chinese().encode()[1:100]):  # not UTF-8, and cut inside characters
        assert lengths[tok.encode(broken)].sum() == len(broken)


def test_text_to_readers_counts_and_unused_ids_do_not() -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | {258: b"<b>"}, [], ["<b>", EOT])
    assert tok.byte_lengths()[255:].tolist() == [1, 0, 0, 0, 0]
    visible = pybpe.tokenizer.of_model(replace(tok.model, visible=frozenset(["<b>"])))
    assert visible.byte_lengths()[255:].tolist() == [1, 0, 0, 3, 0]
    text = f"a<b>é{EOT}"
    shown = visible.decode(visible.encode(text), skip_special_tokens=True)
    assert visible.byte_lengths()[visible.encode(text)].sum() == len(shown.encode())


def test_the_table_as_a_file(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "lengths.npy", "byte_lengths")
    found = numpy.load(tmp_path / "lengths.npy")
    assert found.dtype == numpy.int32 and found.tolist() == tok.byte_lengths().tolist()
    for name in ("lengths.txt", "lengths"):
        with pytest.raises(ArgumentError, match=f"{name}: name a file that ends in .npy, or in .pt for PyTorch"):
            tok.save(tmp_path / name, "byte_lengths")
    assert [path.name for path in tmp_path.iterdir()] == ["lengths.npy"]


def test_a_tensor_without_pytorch(tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"pip install 'pybpe\[torch\]'"):
        tok.save(tmp_path / "token_bytes.pt", "byte_lengths")


# ----------------------------------------------------------------------------------------------------
# Bits per byte


def oracle(tok: pybpe.Tokenizer, ids: list[int], losses: list[float], count_special: bool = False) -> float:
    """The definition, token by token, with exact sums."""
    special = set(tok.special_tokens.values())
    pairs = [(i, loss) for i, loss in zip(ids, losses, strict=True) if i != -1]
    nats = math.fsum(loss for i, loss in pairs if count_special or i not in special)
    return nats / math.log(2) / sum(len(tok.decode_single_token_bytes(i)) for i, _ in pairs if i not in special)


def random_run(tok: pybpe.Tokenizer, shape: tuple[int, ...]) -> tuple[numpy.ndarray, numpy.ndarray]:
    random = numpy.random.default_rng(7)
    return random.integers(-1, len(tok), shape), random.exponential(3.0, shape).astype(numpy.float32)


@pytest.mark.parametrize("count_special", [False, True])
def test_random_ids_against_the_definition(
    tok: pybpe.Tokenizer, monkeypatch: pytest.MonkeyPatch, count_special: bool
) -> None:
    monkeypatch.setattr(bits_per_byte, "_BLOCK", 1000)
    ids, losses = random_run(tok, (50, 101))
    wanted = oracle(tok, ids.ravel().tolist(), losses.ravel().tolist(), count_special)
    found = pybpe.bits_per_byte(tok, ids, losses, count_special=count_special)
    special = numpy.isin(ids, list(tok.special_tokens.values())).sum()
    assert found.value == pytest.approx(wanted, rel=1e-12)
    assert (found.special_tokens, found.tokens) == (special, (ids >= 0).sum() - (0 if count_special else special))
    for name in ("uint16", "uint64"):
        unsigned = numpy.where(ids < 0, 97, ids).astype(name)
        assert pybpe.bits_per_byte(tok, unsigned, losses).text_bytes == tok.byte_lengths()[unsigned].sum()
    # Batches are combined by adding sums. The mean of their figures is something else.
    parts = [pybpe.bits_per_byte(tok, *some, count_special=count_special) for some in zip(ids, losses, strict=True)]
    together = sum(part.nats for part in parts) / math.log(2) / sum(part.text_bytes for part in parts)
    assert together == pytest.approx(wanted, rel=1e-12)
    assert abs(sum(part.value for part in parts) / len(parts) - wanted) > 1e-3


def test_a_mean_loss_is_weighted_by_its_tokens(tok: pybpe.Tokenizer) -> None:
    ids, losses = random_run(tok, (1000,))
    losses = losses.astype(float)
    mean = losses[ids >= 0].mean()
    assert pybpe.bits_per_byte(tok, ids, float(mean), count_special=True).value == pytest.approx(
        oracle(tok, ids.tolist(), losses.tolist(), True), rel=1e-12
    )
    ids[numpy.isin(ids, list(tok.special_tokens.values()))] = 97
    mean = losses[ids >= 0].mean()
    assert pybpe.bits_per_byte(tok, ids, numpy.float64(mean)).value == pytest.approx(
        oracle(tok, ids.tolist(), losses.tolist()), rel=1e-12
    )


@pytest.mark.parametrize("eot", ["prepend", "none"])
def test_each_byte_of_a_shard_counts_once(tok: pybpe.Tokenizer, tmp_path: Path, eot: str) -> None:
    """The lengths of the ids of a shard add up to its bytes of text, also where shards begin inside documents and where
    records hold what looks like special tokens; over all shards, these are the bytes of the documents."""
    texts = [*documents(60), f"forged {EOT} <|pad|>", chinese()[:5000]]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    manifest = pybpe.binarize(
        tok, tmp_path / "a.jsonl", tmp_path / "out", splits=(1,), shard_tokens=3000, eot=eot, min_shard_tokens=0
    )
    assert len(manifest.shards["train"]) > 3
    lengths, total = tok.byte_lengths(), 0
    for record in manifest.shards["train"]:
        ids = read_shard(tmp_path / "out" / record.file)
        assert lengths[ids].sum() == record.text_bytes
        total += record.text_bytes
    assert total == sum(len(text.encode()) for text in texts)
    assert verify(tmp_path / "out", tok)[1] == []
    files = sorted((tmp_path / "out").glob("*.bin"))
    ids = numpy.concatenate([read_shard(path) for path in files])
    losses = numpy.ones(len(ids) - 1, dtype=numpy.float32)
    found = pybpe.bits_per_byte(tok, files, losses)
    assert found == pybpe.bits_per_byte(tok, ids[1:], losses)
    assert found.text_bytes == total - lengths[ids[0]]
    assert pybpe.bits_per_byte(tok, files, numpy.ones(len(ids))).text_bytes == total
    assert pybpe.bits_per_byte(tok, files, losses[:64], limit=64) == pybpe.bits_per_byte(tok, ids[1:65], losses[:64])
    assert pybpe.bits_per_byte(tok, files, 1.0, limit=64, count_special=True).nats == 64
    other = pybpe.train(iter(["other"]), vocab_size=len(tok) + 50, special_tokens=[EOT], min_frequency=0)
    with pytest.raises(ArgumentError, match="another tokenizer made these tokens"):
        pybpe.bits_per_byte(other, files, losses)
    with pytest.raises(ArgumentError, match="000001.bin: comes before .*000002.bin in its manifest"):
        pybpe.bits_per_byte(tok, [files[0], files[2], files[1]], 1.0, count_special=True)
    with pytest.raises(ArgumentError, match="000000.bin: given twice"):
        pybpe.bits_per_byte(tok, [files[0], files[0]], 1.0, count_special=True)


def test_what_does_not_fit_is_refused(tok: pybpe.Tokenizer) -> None:
    gaps = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | {258: b"<b>"}, [], ["<b>"])
    ids, losses = numpy.array([97, 98, 258, 99]), numpy.ones(4)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: pybpe.bits_per_byte(gaps, ids, losses[1:]), r"losses of shape \(3,\) do not fit ids of shape \(4,\)"),
        (lambda: pybpe.bits_per_byte(gaps, ids, losses.reshape(2, 2)), r"shape \(2, 2\) do not fit"),
        (
            lambda: pybpe.bits_per_byte(gaps, ids, losses[1:], limit=2),
            "losses for 3 tokens, .* predicted 2: these are the losses",
        ),
        (lambda: pybpe.bits_per_byte(gaps, ids, losses[1:], limit=4), "if it stopped before the end, pass limit=3"),
        (lambda: pybpe.bits_per_byte(gaps, ids, losses, limit=5), "limit must be at most 4"),
        (lambda: pybpe.bits_per_byte(gaps, ids, ids), "losses must be floats, not int64"),
        (lambda: pybpe.bits_per_byte(gaps, ids, [1.0] * 4), "losses must be a number, or a numpy array"),  # type: ignore[arg-type]
        (lambda: pybpe.bits_per_byte(gaps, ids, -losses), "losses: -1.0 .* not a loss: pass -ln p"),
        (lambda: pybpe.bits_per_byte(gaps, ids, math.nan, count_special=True), "add up to nan"),
        (lambda: pybpe.bits_per_byte(gaps, ids, -1.0, count_special=True), "add up to -4: pass -ln p"),
        (lambda: pybpe.bits_per_byte(gaps, ids, 1.0), "the mean includes the losses of 1 special token"),
        (lambda: pybpe.bits_per_byte(gaps, ids[2:3], losses[:1]), "no token stands for text"),
        (lambda: pybpe.bits_per_byte(gaps, ids[:0], losses[:0]), "no token stands for text"),
    ]
    for bad in (257, 259, -2):  # unused, and not in the vocabulary
        cases.append(
            (lambda bad=bad: pybpe.bits_per_byte(gaps, numpy.array([97, bad]), losses[:2]), f"{bad} at position 1")
        )
    huge = numpy.array([97, 2**64 - 1], dtype=numpy.uint64)  # -1 if it wrapped
    cases.append((lambda: pybpe.bits_per_byte(gaps, huge, losses[:2]), f"{2**64 - 1} at position 1"))
    for value in (math.nan, math.inf, -100.0):
        wrong = numpy.where(ids == 98, value, losses)
        cases.append((lambda wrong=wrong: pybpe.bits_per_byte(gaps, ids, wrong), f"{value} .*position 1, not a loss"))
        masked = numpy.where(ids == 98, -1, ids)  # what is left out may have any loss
        assert pybpe.bits_per_byte(gaps, masked, wrong).value == pytest.approx(1 / math.log(2))
    for call, message in cases:
        with pytest.raises(ArgumentError, match=message):
            call()


def test_the_command(tok: pybpe.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = numpy.array(tok.encode(documents(1)[0] + EOT + "é"), dtype=numpy.uint16)
    losses = numpy.linspace(0.5, 6, len(ids) - 1)
    tok.save(tmp_path / "tok.json")
    numpy.save(tmp_path / "ids.npy", ids)
    numpy.save(tmp_path / "losses.npy", losses.reshape(-1, 1))
    (tmp_path / "losses.txt").write_text("\n".join(map(repr, losses.tolist())))
    given = ["bpb", "-t", str(tmp_path / "tok.json"), str(tmp_path / "ids.npy"), "--json", "--losses"]
    wanted = oracle(tok, ids[1:].tolist(), losses.tolist())
    for name in ("losses.npy", "losses.txt"):
        assert main([*given, str(tmp_path / name)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["bits_per_byte"] == pytest.approx(wanted, rel=1e-12) and found["special_tokens"] == 1
    assert main([*given[:-2], "--losses", "2", "--count-special", "--limit", "9"]) == 0
    shown = capsys.readouterr().out
    size = int(tok.byte_lengths()[ids[1:10]].sum())
    value = f"{18 / math.log(2) / size:.6f}"
    assert shown == f"{value} bits per byte: 18 nats in 9 tokens, {size} bytes of text, 0 special tokens counted\n"
    (tmp_path / "words.txt").write_text("1.5 two")
    for name, message in (("words.txt", "expected a .npy file, or numbers: "), ("none.npy", "cannot be opened")):
        assert main([*given, str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert main([*given, "2"]) == 2
    assert "pass --count-special, or the loss of each token" in capsys.readouterr().err
