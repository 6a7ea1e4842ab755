"""Suggesting a vocabulary size: the published laws, each number of the curve, and what is refused."""

import gzip
import json
import math
import random
from pathlib import Path

import pytest
from corpora import small_tokenizer
from texts import english

import pybpe
from pybpe.analysis import advice
from pybpe.cli import main


@pytest.mark.parametrize(
    ("parameters", "channels", "derivative", "parametric"),
    [(3e9, 3200, 43, 37), (7e9, 4096, 67, 60), (13e9, 5120, 91, 81), (30e9, 6048, 154, 142), (70e9, 8192, 231, 218)],
)
def test_the_laws_give_table_1_of_the_paper(parameters: float, channels: int, derivative: int, parametric: int) -> None:
    """In thousands of tokens: approach 2, and approach 3 with the compute that is best for a model of this size."""
    compute = (parameters / math.exp(-2.4846510161625193)) ** 2

    def loss(size: int) -> float:
        embeddings = size * channels
        return advice.loss_law(parameters, embeddings, compute / (6 * (parameters + embeddings)))

    assert abs(advice.power_law(parameters, channels) / 1000 - derivative) < 1
    assert abs(min(range(10_000, 400_000, 250), key=loss) / 1000 - parametric) < 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advise") / "corpus.txt"
    path.write_text(english()[:150_000], encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def found(corpus: Path) -> pybpe.Advice:
    return pybpe.advise(corpus, params=1_000_000, channels=128, tokens=20_000_000, progress=False)


def test_each_number_of_the_curve(found: pybpe.Advice) -> None:
    assert [p.vocab_size for p in found.points[:5]] == [1000, 1500, 2000, 3000, 4000]
    assert (found.parameters, found.channels, found.compute) == (1_000_000, 128, 6 * 1e6 * 20e6)
    before = 0.0
    for point in found.points:
        assert point.embeddings == point.vocab_size * 128
        assert point.tokens == pytest.approx(found.compute / 6 / (1_000_000 + point.embeddings))
        assert point.bytes == pytest.approx(point.tokens * point.bytes_per_token)
        assert point.compute_per_byte == pytest.approx(6 * (1e6 + point.embeddings) / point.bytes_per_token)
        characters = point.bytes * advice.papers_tokens_per_character(point.vocab_size)
        assert point.loss == pytest.approx(advice.loss_law(1e6, point.embeddings, characters))
        assert before < point.bytes_per_token < 7
        assert 0 <= point.frequent <= 1
        before = point.bytes_per_token
    by_size = {point.vocab_size: point for point in found.points}
    assert by_size[found.estimates["cheapest"]].compute_per_byte == min(p.compute_per_byte for p in found.points)
    assert by_size[found.estimates["loss law"]].loss == min(p.loss for p in found.points)
    assert len(found.reasons) == 5
    assert "held out" in found.reasons[0] and "extrapolate" in found.reasons[4]


@pytest.mark.parametrize(
    ("model", "cheapest", "loss", "largest", "answer", "reason"),
    [
        ((3e9, 3200), 12_000, 16_000, 64_000, 16_000, "The answer is near the middle one."),  # power law: 43,000
        ((1e9, 2048), 12_000, 1_500, 64_000, 12_000, "The answer is near the middle one."),  # 26,000
        ((1e6, 128), 1_500, 3_000, 16_000, 8_000, "below 8,000"),  # 900
        ((1e6, 128), 1_500, 3_000, 6_000, 6_000, "no more than the answer"),
    ],
)
def test_the_middle_estimate_is_chosen_but_at_least_8000(
    model: tuple[int, int], cheapest: int, loss: int, largest: int, answer: int, reason: str
) -> None:
    points = [
        advice.AdvicePoint(size, 4.0, 1, 1.0, 1.0, abs(size - cheapest), abs(size - loss), 1.0)
        for size in advice.SIZES
        if size <= largest
    ]
    told = advice._advice(points, advice._Model(*model), 1e9, True)
    assert told.estimates["cheapest"] == cheapest and told.estimates["loss law"] == loss
    assert told.vocab_size == answer and reason in told.reasons[3]


@pytest.mark.parametrize(
    ("params", "tokens", "is_shown"),
    [(10**6, 20 * 10**6, False), (10**8, 10**10, True), (10**8, 10**6, False), (10**12, 10**13, False)],
)
def test_losses_outside_the_range_of_the_law_are_not_shown(
    corpus: Path, params: int, tokens: int, is_shown: bool
) -> None:
    told = pybpe.advise(corpus, params=params, tokens=tokens, progress=False)
    assert ("  loss" in str(told)) is is_shown is ("losses are not shown" not in told.reasons[4])
    assert all((point["loss"] is not None) is is_shown for point in told.to_dict()["points"])


def test_amounts_can_be_billions_and_the_answer_is_not_quiet(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(corpus), "--params", "7B", "--tokens", "1.5b", "--quiet"]) == 0
    assert "next to 7G others" in capsys.readouterr().out
    tok = corpus.with_name("tok.json")
    small_tokenizer().save(tok)
    assert main(["count", "-t", str(tok), "--text", "ab", "--quiet"]) == 0
    assert "2 bytes" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["advise", str(corpus), "--params", "7B", "--tokens", "1B", "--max-bytes", "500B"])
    assert "expected bytes such as 500M or 2G" in capsys.readouterr().err


def test_compression_is_that_of_text_that_was_not_learned_from(tmp_path: Path) -> None:
    """Words of random letters cannot be learned from other words, so held-out text compresses badly."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(6000)]
    (tmp_path / "random.txt").write_text(" ".join(words), encoding="utf-8")
    curve = pybpe.advise(tmp_path / "random.txt", params=10**6, tokens=10**6, progress=False).points
    tok = pybpe.train(tmp_path / "random.txt", vocab_size=curve[-1].vocab_size)
    text = " ".join(words)
    assert curve[-1].bytes_per_token < 0.8 * len(text) / tok.count(text)


def test_a_compressed_file_is_measured_on_itself_and_says_so(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    told = pybpe.advise(tmp_path / "corpus.txt.gz", params=1_000_000, tokens=20_000_000, progress=False)
    assert "the training text itself" in told.reasons[0]
    tok = pybpe.train(corpus, vocab_size=1000)
    text = corpus.read_bytes()
    assert told.points[0].bytes_per_token == pytest.approx(len(text) / tok.count(text))


def test_the_channels_follow_from_the_parameters_or_the_other_way_round(corpus: Path) -> None:
    for parameters, channels in ((85_000_000, 768), (30_000_000, 512), (1, 64)):
        assert advice._model(parameters, None, None).channels == channels
    assert advice._model(None, 12, 768).parameters == 12 * 12 * 768**2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "describe the model"),
        ({"params": 10**6, "layers": 2}, "describe the model"),
        ({"layers": 2}, "layers needs channels"),
        ({"params": 0}, "params must be at least 1"),
        ({"params": 10**6, "channels": 0}, "channels must be at least 1"),
        ({"params": 10**6, "tokens": 0}, "tokens must be at least 1"),
        ({"params": 10**6, "max_bytes": 0}, "max_bytes must be at least 1"),
        ({"params": "30M"}, "params must be an integer"),
    ],
)
def test_bad_arguments_are_refused(corpus: Path, arguments: dict, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.advise(corpus, **{"tokens": 10**6, "progress": False} | arguments)


def test_inputs_that_cannot_be_divided_or_counted_are_refused(tmp_path: Path) -> None:
    given = {"params": 10**6, "tokens": 10**6, "progress": False}
    for inputs in (iter(["a text"]), "-"):
        with pytest.raises(pybpe.errors.ArgumentError, match="pass paths"):
            pybpe.advise(inputs, **given)
    (tmp_path / "short.txt").write_text("a b c")
    with pytest.raises(pybpe.errors.ArgumentError, match="use more text"):
        pybpe.advise(tmp_path / "short.txt", **given)
    with pytest.raises(pybpe.errors.FileError):
        pybpe.advise(tmp_path / "absent.txt", **given)


def test_the_command_line(
    corpus: Path, found: pybpe.Advice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["advise", str(corpus), "--params", "1M", "--channels", "128", "--tokens", "20M"]
    assert main([*given, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["vocab_size"] == found.vocab_size and told["estimates"] == found.estimates
    assert told["points"][0]["bytes_per_token"] == pytest.approx(found.points[0].bytes_per_token)
    assert main(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"vocab_size {found.vocab_size:,}" and lines[1:6] == found.reasons
    assert main([*given, "--plot", str(tmp_path / "curve.txt")]) != 0
    assert main(["advise", str(corpus), "--tokens", "20M"]) != 0
    assert "describe the model" in capsys.readouterr().err
