"""BPE dropout: its distribution against all outcomes of small words, and what a tokenizer with it refuses."""

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy
import pytest
from reference.dropout import outcomes
from texts import chinese, english, mixed

import pybpe
from pybpe.cli import main
from pybpe.tokenizer import of_model

# The merges of the figures in Provilkov et al. 2020 and of Hugging Face's own test
UNRELATED = [
    *((b"r", b"e"), (b"a", b"t"), (b"e", b"d"), (b"u", b"n"), (b"at", b"ed"), (b"re", b"l")),
    *((b"rel", b"ated"), (b"un", b"related")),
]
OVERLAPS = [(b"a", b"a"), (b"aa", b"a"), (b"a", b"b"), (b"aa", b"aa"), (b"b", b"a"), (b"ab", b"a")]


def tokenizer(merges: list[tuple[bytes, bytes]], **options: object) -> pybpe.Tokenizer:
    made = dict.fromkeys(left + right for left, right in merges)
    vocab = {i: bytes([i]) for i in range(256)} | {256 + i: token for i, token in enumerate(made)}
    return pybpe.Tokenizer(vocab, merges, **options)


def parts(tok: pybpe.Tokenizer, ids: list[int]) -> tuple[bytes, ...]:
    return tuple(tok.decode_single_token_bytes(i) for i in ids)


def chi_square(found: Counter[tuple[bytes, ...]], expected: dict[tuple[bytes, ...], Fraction]) -> tuple[float, int]:
    """Returns the statistic and its degrees of freedom. Outcomes that are expected less than 10 times are one."""
    total = sum(found.values())
    rare = [outcome for outcome, chance in expected.items() if chance * total < 10]
    cells = [(found[o], float(chance) * total) for o, chance in expected.items() if o not in rare]
    if rare:
        cells.append((sum(found[o] for o in rare), float(sum(expected[o] for o in rare)) * total))
    return sum((n - want) ** 2 / want for n, want in cells if want), len(cells) - 1


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize(
    ("word", "merges"), [(b"aaaaa", OVERLAPS), (b"aabab", OVERLAPS), (b"ab", OVERLAPS), (b"related", UNRELATED)]
)
def test_the_distribution_is_that_of_the_definition(word: bytes, merges: list, rate: Fraction) -> None:
    expected = outcomes(word, merges, rate)
    assert sum(expected.values()) == 1
    tok = tokenizer(merges)
    by_seed = Counter(parts(tok, tok.encode_dropout(word, seed=seed, dropout=float(rate))) for seed in range(20_000))
    assert set(by_seed) <= set(expected)
    statistic, freedom = chi_square(by_seed, expected)
    assert statistic < freedom + 4 * math.sqrt(2 * freedom) + 4


def test_words_of_one_text_are_independent() -> None:
    """All words of a text, and pairs of neighbors, have the distribution of one word."""
    tok = tokenizer(OVERLAPS, pattern="[ab]+| ")
    rate = Fraction(1, 2)
    ids = tok.encode_dropout("aab " * 20_000, seed=5, dropout=0.5)
    words: list[tuple[bytes, ...]] = [()]
    for i in ids:
        if i == ord(" "):
            words.append(())
        else:
            words[-1] += (tok.decode_single_token_bytes(i),)
    expected = outcomes(b"aab", OVERLAPS, rate)
    statistic, freedom = chi_square(Counter(words[:-1]), expected)
    assert statistic < freedom + 4 * math.sqrt(2 * freedom) + 4
    both = {(*a, b" ", *b): p * q for a, p in expected.items() for b, q in expected.items()}
    found = Counter((*a, b" ", *b) for a, b in zip(words[:-1:2], words[1:-1:2]))
    statistic, freedom = chi_square(found, both)
    assert statistic < freedom + 4 * math.sqrt(2 * freedom) + 4


def test_every_rate_decodes_to_the_text() -> None:
    tok = pybpe.train(iter([english()[:50_000]]), vocab_size=700, special_tokens=["<|endoftext|>"])
    text = mixed()[:3000] + "<|endoftext|>" + chinese()[:1000] + " " * 500 + "a" * 3000
    rates = (0.0, 1e-300, 0.01, 0.1, 0.5, 0.9, 0.999, 1 - 2**-53, 1.0)
    found = [tok.encode_dropout(text, seed=7, dropout=rate) for rate in rates]
    assert all(tok.decode(ids) == text and ids.count(tok.eot_token) == 1 for ids in found)
    assert found[0] == found[1] == tok.encode(text) and len(found[-1]) == len(text.encode()) - 12
    assert list(map(len, found)) == sorted(map(len, found))


def test_without_dropout_the_ids_are_those_of_encode() -> None:
    """Also the tokens that only whole words become."""
    tok = tokenizer([(b"a", b"b")])
    model = replace(tok.model, tokens=[*tok.model.tokens, b" xyz", b"<e>"], whole_words=True, specials={"<e>": 258})
    whole = of_model(model)
    ids = [97, 257, 258, 60, 101, 62]
    for each in (whole, whole.replace(dropout=0.5)):
        assert each.encode_dropout("a xyz<e>", seed=1, dropout=0) == whole.encode("a xyz<e>") == ids[:3]
        assert each.encode_dropout("a xyz<e>", seed=1, dropout=0, allowed_special=()) == [97, 257, *ids[3:]]


def test_ids_depend_only_on_the_arguments() -> None:
    """The numbers are fixed: they may not change between machines or versions."""
    tok = tokenizer(OVERLAPS)
    assert tok.encode_dropout("aabab aabab", seed=1, dropout=0.5) == FIXED
    assert tok.replace(dropout=0.5).encode_dropout(b"aabab aabab", seed=1) == FIXED
    assert tok.encode_dropout("aabab aabab", seed=2, dropout=0.5) != FIXED


FIXED = [97, 97, 260, 98, 32, 97, 97, 98, 97, 98]


def test_a_text_in_parts_gives_the_ids_of_the_whole() -> None:
    """C knows where a part begins, so the ids do not depend on how a text is divided."""
    tok = pybpe.train(iter([english()[:50_000]]), vocab_size=700, special_tokens=["<|endoftext|>"])
    text = english()[:20_000].encode()
    encoder = tok._encoder._plain_encoder
    whole = encoder.encode_dropout(text, 0.2, 9, 0)
    at = tok._encoder.cut(text, 9000)
    assert 9000 <= at < len(text)
    assert encoder.encode_dropout(text[:at], 0.2, 9, 0) + encoder.encode_dropout(text[at:], 0.2, 9, at) == whole
    assert tok.encode_dropout(text, seed=9, dropout=0.2) == whole


@pytest.mark.filterwarnings("ignore:the pattern")
def test_normalizers_special_tokens_and_patterns_that_do_not_compile() -> None:
    text = "e\u0301te\u0301 <s> e\u0301te\u0301 " * 20
    for options in ({"normalizer": "NFC"}, {"pattern": r" ?\p{L}+(?<!\d)|\s+|[^\s\p{L}]+"}, {"pattern": "cl100k"}):
        tok = pybpe.train(iter([text]), vocab_size=275, special_tokens=["<s>"], **options)
        ids = tok.encode_dropout(text, seed=3, dropout=0.3)
        assert tok.decode(ids) == tok.decode(tok.encode(text))
        assert ids.count(tok.special_tokens["<s>"]) == 20
        assert tok.encode_dropout(text, seed=3, dropout=0.0) == tok.encode(text)
        plain = tok.encode_dropout(text, seed=3, dropout=0.0, allowed_special=())
        assert plain == tok.encode_ordinary(text)


def test_what_needs_one_result_is_refused(tmp_path: Path) -> None:
    tok = pybpe.train(iter(["one two three"]), vocab_size=260, special_tokens=["<|endoftext|>"]).replace(dropout=0.1)
    corpus = tmp_path / "c.txt"
    corpus.write_text("one two")
    calls = [
        lambda: tok.encode("one"),
        lambda: tok.encode_ordinary("one"),
        lambda: tok.encode_batch(["one"]),
        lambda: list(tok.encode_iterable(["one"])),
        lambda: tok.encode_to_numpy("one"),
        lambda: tok.encode_batch_to_numpy(["one"]),
        lambda: tok.encode_with_offsets("one"),
        lambda: tok.count("one"),
        lambda: pybpe.binarize(tok, corpus, tmp_path / "out"),
    ]
    for call in calls:
        with pytest.raises(pybpe.errors.UnsupportedError, match=r"replace\(dropout=0\)"):
            call()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.txt"]
    assert tok.decode(tok.replace(dropout=0).encode("one")) == "one"


@pytest.mark.parametrize("dropout", [-0.1, 1.1, float("nan"), "0.1", True, None, [0.1]])
def test_bad_dropout_is_refused(dropout: object, tmp_path: Path) -> None:
    tok = tokenizer(OVERLAPS)
    with pytest.raises(pybpe.errors.ArgumentError, match=r"dropout"):
        tok.encode_dropout("ab", seed=1, dropout=dropout)
    with pytest.raises(pybpe.errors.ArgumentError, match="dropout must be"):
        tok.replace(dropout=dropout)
    if dropout is None:
        return
    path = tmp_path / "t.json"
    tok.save(path)
    file = json.loads(path.read_bytes())
    file["model"]["dropout"] = dropout
    path.write_text(json.dumps(file))
    with pytest.raises(pybpe.errors.FormatError, match="dropout is"):
        pybpe.Tokenizer.from_file(path)


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.0, "1", None])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="seed must be"):
        tokenizer(OVERLAPS).encode_dropout("ab", seed=seed, dropout=0.1)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok = pybpe.train(iter([english()[:50_000]]), vocab_size=700, special_tokens=["<|endoftext|>"])
    path, text = tmp_path / "t.json", english()[:3000]
    tok.save(path)
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    command = ["encode", "-t", str(path), str(tmp_path / "text.txt"), "--json"]
    assert main([*command, "--dropout", "0.2", "--seed", "3"]) == 0
    assert json.loads(capsys.readouterr().out) == tok.encode_dropout(text, seed=3, dropout=0.2)
    tok.replace(dropout=0.2).save(path)
    assert main([*command, "--seed", "3"]) == 0
    assert json.loads(capsys.readouterr().out) == tok.encode_dropout(text, seed=3, dropout=0.2)
    assert main([*command, "--dropout", "0"]) == 0
    assert json.loads(capsys.readouterr().out) == tok.encode(text)
    for output in ("ids.npy", "ids.bin"):
        assert main([*command[:-1], "--seed", "3", "-o", str(tmp_path / output)]) == 0
        ids = numpy.load(tmp_path / output) if output == "ids.npy" else numpy.fromfile(tmp_path / output, "<u2")
        assert ids.tolist() == tok.encode_dropout(text, seed=3, dropout=0.2)
    assert main(command) == 2
    assert "--seed" in capsys.readouterr().err
    assert main([*command, "--dropout", "0", "--seed", "3"]) == 2
    assert "--seed is for dropout" in capsys.readouterr().err
    assert main([*command, "--dropout", "2", "--seed", "3"]) == 2
