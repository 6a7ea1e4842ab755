"""`pybpe compare`: measures of several tokenizers on the same texts, against tests/py/reference/measures.py."""

import gzip
import json
import random
import warnings
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from commands import refusal
from corpora import EOT, jsonl
from reference import measures as oracle
from test_odd_vocabularies import trained
from texts import chinese, english, mixed, random_bytes

import pybpe
from pybpe.analysis import comparison, measures
from pybpe.cli import main
from pybpe.errors import PybpeWarning
from pybpe.reading import charset, cuts, pieces

NFKC = ("ﬁ", "①", "e\u0301", "\ufb2a", "ｱ", "㍿")  # what normalizers change


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, pybpe.Tokenizer]:
    """Returns tokenizers that differ in everything that determines how a text is encoded."""
    text = [english()[:40_000], chinese()[:8000], mixed()[:20_000]]
    gpt2 = pybpe.train(iter(text), vocab_size=900, special_tokens=[EOT])
    return {
        "gpt2": gpt2,
        "cl100k": pybpe.train(iter(text), vocab_size=700, pattern="cl100k", special_tokens=["<|im_end|>"]),
        "nfkc": pybpe.train(iter(text), vocab_size=600, pattern="o200k", normalizer="NFKC", digits=1),
        "custom": pybpe.train(iter(text), vocab_size=600, pattern=r"\p{L}+|\d{1,3}|[^\p{L}\d]+"),
    }


def close(ours: float | None, expected: float | Fraction | None) -> bool:
    if ours is None or expected is None:
        return ours is None and expected is None
    return ours == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


# ------------------------------------------------------------------------------------------------------
# formulas


def count_lists() -> list[list[int]]:
    rng = random.Random(1)
    lists = [[0, 0], [1], [7, 0, 0], [3, 3, 3], [1, 10**12], [5, 4, 3, 2, 1], [0] * 50 + [1]]
    lists += [
        [rng.choice([0, 1, 1, 2, rng.randrange(1, 10**6)]) for _ in range(rng.randrange(1, 60))] for _ in range(200)
    ]
    return [counts if len(counts) > 1 else [*counts, 0] for counts in lists]


@pytest.mark.parametrize("alpha", [0.5, 2.0, 2.5, 3.0])
def test_renyi_entropy(alpha: float) -> None:
    for counts in count_lists():
        assert close(measures.renyi_entropy(numpy.array(counts), alpha), oracle.renyi_entropy(counts, alpha))
    assert measures.renyi_entropy(numpy.array([1] * 64), alpha) == pytest.approx(6)


def test_efficiency() -> None:
    assert measures.efficiency(None, 5) is measures.efficiency(0.0, 1) is None
    assert measures.efficiency(1.0, 2) == 1 and measures.efficiency(1.5, 8) == 0.5
    assert measures.RARE == 100  # as published


def test_zipf() -> None:
    for counts in count_lists():
        slope, r2 = measures.zipf(numpy.array(counts))
        expected_slope, expected_r2 = oracle.zipf(counts)
        assert close(slope, expected_slope) and close(r2, expected_r2), counts
    slope, r2 = measures.zipf(numpy.array([10**12 // rank for rank in range(1, 1000)]))
    assert slope == pytest.approx(-1, abs=1e-6) and r2 == pytest.approx(1, abs=1e-6)


def test_gini() -> None:
    rng = random.Random(2)
    for _ in range(200):
        costs = [Fraction(rng.randrange(1, 1000), rng.randrange(1, 1000)) for _ in range(rng.randrange(1, 20))]
        assert close(measures.gini(list(map(float, costs))), oracle.gini(costs))


# ------------------------------------------------------------------------------------------------------
# whole comparisons


def write_texts(folder: Path) -> dict[str, tuple[list[Path], list[list[bytes]], int]]:
    """Kinds of texts: their files, the separate texts in each file, and how many lines they have."""
    marked = f"{english()[:9000]}{EOT}{english()[9000:9500]}<|im_end|>{EOT}\n{chinese()[:3000]}".encode()
    broken = (
        random_bytes(4000, 3).translate(None, bytes(range(9)))
        + mixed()[:9000].encode()
        + b"\xe4\xb8 end \xf0\x9f\x98"
        + b"word" * 400
        + b"\n\n\n"
    )
    strange = "".join(random.Random(4).choices([*NFKC, " ", "a", "\u3000", "\n", "中"], k=5000)).encode()
    records = [english()[:700], "", f"forged {EOT} mark", "中文" * 90, "\ud800 lone"]
    (folder / "marked.txt").write_bytes(marked)
    (folder / "broken.txt.gz").write_bytes(gzip.compress(broken))
    (folder / "strange.txt").write_bytes(strange)
    (folder / "records.jsonl").write_bytes(jsonl(records))
    specials = [EOT, "<|im_end|>"]
    utf8 = [text.replace("\ud800", "\ufffd").encode() for text in records]

    def lines(data: bytes) -> int:
        return len(data.split(b"\n")) - data.endswith(b"\n")

    return {
        "marked": ([folder / "marked.txt"], [oracle.parts(marked, specials)], lines(marked)),
        "odd": (
            [folder / "broken.txt.gz", folder / "strange.txt"],
            [oracle.parts(broken, specials), oracle.parts(strange, specials)],
            lines(broken) + lines(strange),
        ),
        "records": ([folder / "records.jsonl"], [utf8], len(records)),
    }


def check(found: pybpe.Comparison, name: str, tok: pybpe.Tokenizer, on: str, texts: list[bytes], visible: bool) -> None:
    """Compares all measures of a tokenizer on a text with the reference."""
    by_id = oracle.token_counts(tok, texts, visible)
    ids = oracle.ordinary(tok)
    counts = [by_id[i] for i in ids]
    size, characters, words = oracle.size(texts)
    ours, tokens, used = found.measures[name][on], sum(counts), sum(1 for count in counts if count)
    assert sum(by_id.values()) == tokens == ours.tokens
    assert (found.texts[on].bytes, found.texts[on].characters, found.texts[on].words) == (size, characters, words)
    assert close(ours.bytes_per_token, Fraction(size, tokens))
    assert close(ours.tokens_per_word, Fraction(tokens, words) if words else None)
    assert close(ours.tokens_per_character, Fraction(tokens, characters))
    entropy = oracle.renyi_entropy(counts, 2.5)
    assert entropy is not None
    assert close(ours.renyi_efficiency, entropy / numpy.log2(len(ids)))
    assert close(ours.renyi_efficiency_used, entropy / numpy.log2(used) if used > 1 else None)
    assert (ours.used, ours.never) == (used, len(ids) - used) and close(ours.used_share, Fraction(used, len(ids)))
    assert ours.rare == sum(1 for count in counts if 0 < count < 100)
    broken = sum(by_id[i] for i in ids if b"\xef\xbf\xbd" not in tok.model.vocab[i] and "\ufffd" in tok.id_to_token(i))
    assert close(ours.not_utf8_share, Fraction(broken, tokens))
    slope, r2 = oracle.zipf(counts)
    assert close(ours.zipf_slope, slope) and close(ours.zipf_r2, r2)


@pytest.mark.parametrize("block", [64, 1000, 1 << 21])
def test_files_in_pieces_of_any_size(
    tokenizers: dict[str, pybpe.Tokenizer], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "stream_pieces", partial(cuts.stream_pieces, piece_bytes=block))
    monkeypatch.setattr(charset, "_ENOUGH", 1 << 30)  # all of so small a piece may be damaged
    texts = write_texts(tmp_path)
    with pytest.warns(PybpeWarning):
        found = pybpe.compare(tokenizers, {name: files for name, (files, _, _) in texts.items()}, workers=2)
    for language, (_, documents, lines) in texts.items():
        flat = [text for file in documents for text in file]
        assert found.texts[language].lines == lines
        assert found.texts[language].special_tokens == (0 if language == "records" else len(flat) - len(documents))
        for name, tok in tokenizers.items():
            check(found, name, tok, language, flat, language != "records")


def test_texts_in_memory_are_separate(tokenizers: dict[str, pybpe.Tokenizer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "data_pieces", partial(cuts.data_pieces, piece_bytes=100))
    texts: list[Any] = ["one", "two", english()[:5000], b"three", "", "four\n", "\n", f"x{EOT}y", ["in", "lists"]]
    found = pybpe.compare(tokenizers, {"all texts": iter(texts)})
    flat = [t if isinstance(t, bytes) else t.encode() for t in [*texts[:-1], "in", "lists"]]
    separate = [part for text in flat for part in oracle.parts(text, [EOT])]
    for name, tok in tokenizers.items():
        check(found, name, tok, "all texts", separate, True)
    assert found.texts["all texts"].lines == sum(len(text.split(b"\n")) - text.endswith(b"\n") for text in flat if text)


def test_all_texts_together(tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    a, b = [english()[:4000]], [chinese()[:900], english()[:70]]
    with pytest.warns(PybpeWarning, match="not translations"):
        apart = pybpe.compare(tokenizers, {"a": iter(a), "b": iter(b)})
    together = pybpe.compare(tokenizers, {"ab": iter(a + b)})
    for name in tokenizers:
        assert apart.measures[name]["all"] == together.measures[name]["all"] == together.measures[name]["ab"]


def test_any_number_of_workers_gives_the_same(tokenizers: dict[str, pybpe.Tokenizer], tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(mixed() * 40, newline="")
    found = [pybpe.compare(tokenizers, {"t": [tmp_path / "t.txt"]}, workers=n) for n in (1, 2, 5)]
    assert found[0] == found[1] == found[2]


def test_special_tokens_that_readers_see_are_text(tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    tok = tokenizers["gpt2"].extend(["<tab>"])
    seen = pybpe.tokenizer.of_model(replace(tok.model, visible=frozenset(["<tab>"])))
    text = f"a<tab>b{EOT}c<tab>"
    found = pybpe.compare({"seen": seen, "gpt2": tokenizers["gpt2"]}, {"t": iter([text])})
    assert found.measures["seen"]["t"].tokens == len(seen.encode("a<tab>b")) + len(seen.encode("c<tab>")) == 5
    assert found.texts["t"].bytes == len(text) - len(EOT) and found.texts["t"].special_tokens == 1
    assert found.vocabularies["seen"].special == 1 and found.vocabularies["seen"].ordinary == seen.vocab_size - 1


def test_unreachable_tokens() -> None:
    base = {i: bytes([i]) for i in range(256)}
    merges = [(b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"1", b" "), (b"\xe4", b"\xb8")]
    tok = pybpe.Tokenizer(base | {256 + i: a + b for i, (a, b) in enumerate(merges)}, merges, ["<s>"])
    found = pybpe.compare(tok, {"t": iter(["abc"])}).vocabularies["tokenizer"]
    # "abc" becomes ab + c because that merge comes first, and a word never continues after a space.
    assert (found.unreachable, found.not_utf8, found.ordinary, found.special) == (2, 1, 261, 1)


def test_parallel_texts(tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    texts = {"en": "Hello world.\nThank you.\n", "zh": "你好，世界。\n谢谢。\n", "de": "Hallo Welt.\nDanke.\n"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pybpe.compare(tokenizers, {language: iter([text]) for language, text in texts.items()})
    assert found.parallel
    for name, tok in tokenizers.items():
        tokens = {language: len(tok.encode(text)) for language, text in texts.items()}
        fair = found.fairness[name]
        assert fair.parity == pytest.approx({language: count / tokens["en"] for language, count in tokens.items()})
        assert close(fair.gini_tokens, oracle.gini([Fraction(count) for count in tokens.values()]))
        per_character = [Fraction(tokens[language], len(text)) for language, text in texts.items()]
        per_byte = [Fraction(tokens[language], len(text.encode())) for language, text in texts.items()]
        assert close(fair.gini_per_character, oracle.gini(per_character))
        assert close(fair.gini_per_byte, oracle.gini(per_byte))
    assert "parity de" in str(found)


def test_without_parallel_texts_there_is_no_parity(tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    with pytest.warns(PybpeWarning, match=r"line by line \(en has 1, zh has 2 lines\)"):
        found = pybpe.compare(tokenizers, {"en": iter(["Hello"]), "zh": iter(["你好\n谢谢"])})
    assert all(fair.parity is None and fair.gini_tokens is None for fair in found.fairness.values())
    assert "parity" not in str(found)
    assert pybpe.compare(tokenizers, {"en": iter(["Hello"])}).fairness == {}


def test_samples(tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    found = pybpe.compare(tokenizers, {"en": iter(["Hello"])})
    for sample, cut in found.samples.items():
        assert set(cut) == set(tokenizers) and all("".join(tokens) == sample for tokens in cut.values())
    assert found.samples["1234567"]["nfkc"] == list("1234567")


def test_notes(tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    toks = {"a": tokenizers["gpt2"], "b": tokenizers["gpt2"], "n": tokenizers["nfkc"]}
    toks["t"] = toks["a"].replace(template=f"$A {EOT}")
    found = pybpe.compare(toks, {"zh": iter([chinese()[:2000], f"a{EOT}b"])})
    text = "\n".join(found.notes)
    assert "b and a are equal" in text and "t and a" not in text
    assert "n changes the text first (NFKC)" in text and "t has a template" in text
    assert "zh: 1 special token separates" in text and "does not separate words with spaces" in text
    assert "too few for each of its 899 tokens" in text
    assert found.measures["t"] == found.measures["a"]
    tiny = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
    assert pybpe.compare(tiny, {"en": iter(["a b " * 10_000])}).notes == []


def test_white_space_only_has_no_words() -> None:
    tiny = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
    found = pybpe.compare([tiny], {"blank": iter(["\n\n"])})
    measured = found.measures["tokenizer 1"]["blank"]
    assert measured.tokens_per_word is None and measured.zipf_slope is None and measured.renyi_efficiency == 0
    assert measured.renyi_efficiency_used is None and "-" in str(found)


def test_a_vocabulary_without_some_bytes() -> None:
    tok = pybpe.Tokenizer.from_hf(trained())
    found = pybpe.compare({"hf": tok}, {"t": iter(["hello world"])})
    assert found.samples["42"] == {} and "42" in str(found)
    with pytest.raises(pybpe.errors.ArgumentError, match="^hf: .*for which this vocabulary has no token"):
        pybpe.compare({"hf": tok}, {"t": iter(["xyz"])})


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ({}, "on is empty"),
        (["a.txt"], "on must be a mapping"),
        ({"all": "a.txt"}, "'all' cannot be the name"),
        ({"": "a.txt"}, "cannot be the name"),
        ({"a\n": "a.txt"}, "cannot be the name"),
        ({1: "a.txt"}, "must be a str"),
        ({"en": b"text"}, "on is one bytes object"),
        ({"en": {"a": 1}}, "on is a dict with the keys"),
        ({"en": 3}, "on must be a path"),
        ({"en": "-", "zh": ["-"]}, "only once"),
        ({"en": iter([])}, "'en' has no text"),
        ({"en": iter([EOT, ""])}, "'en' has no text but 1 special token:"),
    ],
)
def test_wrong_arguments(tokenizers: dict[str, pybpe.Tokenizer], on: Any, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.compare(tokenizers, on)
    with pytest.raises(pybpe.errors.ArgumentError):
        pybpe.compare({}, {"en": iter(["a"])})


# ------------------------------------------------------------------------------------------------------
# the command line


@pytest.fixture
def files(tokenizers: dict[str, pybpe.Tokenizer], tmp_path: Path) -> Path:
    tokenizers["gpt2"].save(tmp_path / "a.json")
    tokenizers["cl100k"].save(tmp_path / "b.json")
    (tmp_path / "en.txt").write_text(english()[:3000])
    (tmp_path / "zh.jsonl").write_bytes(jsonl([chinese()[:500]], "content"))
    return tmp_path


def test_command(files: Path, capsys: pytest.CaptureFixture[str], tokenizers: dict[str, pybpe.Tokenizer]) -> None:
    argv = ["compare", str(files / "a.json"), str(files / "b.json"), "--on", f"en={files}/en.txt"]
    argv += ["--on", f"zh={files}/*.jsonl", "--text-key", "content", "--workers", "1"]
    assert main(argv) == 0
    shown = capsys.readouterr()
    names = {"a.json": tokenizers["gpt2"], "b.json": tokenizers["cl100k"]}
    with pytest.warns(PybpeWarning):
        expected = pybpe.compare(names, {"en": files / "en.txt", "zh": [files / "zh.jsonl"]}, text_key="content")
    assert shown.out == f"{expected}\n" and "not translations" in shown.err
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected.to_dict()
    assert asdict(expected).keys() == expected.to_dict().keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--on en", "--on: expected NAME=FILE"),
        ("--on =en.txt", "--on: expected NAME=FILE"),
        ("--on en=missing.txt", "missing.txt: cannot be opened"),
        ("--on en=a.json", "a.json: not text"),
        ("", "--on"),
        ("--on en=zh.jsonl", "'text'"),
        ("a.json --on en=en.txt", "given twice"),
    ],
)
def test_command_refuses(files: Path, options: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    assert message in refusal(f"compare a.json {options}")
    assert (files / "en.txt").read_text() == english()[:3000]


def test_records_of_an_object_are_measured_as_those_of_a_file(
    tokenizers: dict[str, pybpe.Tokenizer], tmp_path: Path
) -> None:
    texts = [english()[:3000], f"a{EOT}b", "", chinese()[:500]]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    found = pybpe.compare(tokenizers, {"records": ({"text": text} for text in texts)})
    expected = pybpe.compare(tokenizers, {"records": tmp_path / "a.jsonl"})
    assert found.measures == expected.measures and found.samples == expected.samples
