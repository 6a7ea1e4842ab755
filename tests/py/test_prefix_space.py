"""add_prefix_space: a space before each text between added tokens, exactly as in Hugging Face's library."""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from pipelines import DIGITS, LLAMA3, WITH_REGEX, WITHOUT_REGEX, sequence, split
from test_special_flags import NAMES, PARTS, added, file, random_texts, random_tokens

import pybpe
from pybpe.reading import pieces, planning
from pybpe.tokenizer.encoding import TextEncoder
from pybpe.tokens.verification import verify

PREFIX = {**WITH_REGEX, "add_prefix_space": True}
BYTES_FIRST = {**WITHOUT_REGEX, "add_prefix_space": True}
PRE_TOKENIZERS = [
    PREFIX,
    sequence(PREFIX),
    sequence(PREFIX, DIGITS),
    sequence(BYTES_FIRST, split("Ġ", "MergedWithNext")),
    sequence(PREFIX, {**DIGITS, "individual_digits": False}, split("[0-9][0-9][0-9]")),
]


def both(text: str) -> tuple[pybpe.Tokenizer, tokenizers.Tokenizer]:
    theirs = tokenizers.Tokenizer.from_str(text)
    return pybpe.Tokenizer.from_hf(theirs), theirs


Case = tuple[pybpe.Tokenizer, tokenizers.Tokenizer, list[str]]


def loaded(seed: int, count: int, normalizer: str | None = None) -> list[Case]:
    """Returns random tokenizers that pybpe accepts, with texts."""
    rng = random.Random(seed)
    found: list[Case] = []
    while len(found) < count:
        tokens = random_tokens(rng) if rng.random() < 0.7 else [added("<m>"), added("<n>", lstrip=True)]
        try:
            ours, theirs = both(file(tokens, rng.choice(PRE_TOKENIZERS), normalizer))
        except pybpe.errors.FormatError as error:
            assert "begins with white space" in str(error) or "there is a normalizer" in str(error)
            continue
        assert ours.model.prefix_space
        found.append((ours, theirs, random_texts(rng, list(ours.special_tokens), 30)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("normalizer", [None, "NFC", "NFKC"])
def test_ids_and_offsets_are_those_of_hugging_face(normalizer: str | None) -> None:
    again = 0
    for ours, theirs, texts in loaded(1, 60, normalizer):
        texts += ["", " ", "a", "\u00a0a", "\n", "\u3000 x", "\u2000x", "é", "e\u0301 x"]
        encodings = theirs.encode_batch(texts, add_special_tokens=False)
        expected = [encoding.ids for encoding in encodings]
        assert ours.encode_batch(texts) == expected
        ids, rows = ours.encode_batch_to_numpy(texts, 2)
        assert [ids[a:b].tolist() for a, b in pairwise(rows)] == expected
        for text, encoding in zip(texts, encodings, strict=True):
            assert ours.encode(text) == encoding.ids == ours.encode_to_numpy(text).tolist(), text
            assert ours.count(text) == len(encoding.ids)
            assert ours.decode(encoding.ids) == theirs.decode(encoding.ids, skip_special_tokens=False)
            again += ours.model.encodes_again(encoding.ids)
            if ours.model.encodes_again(encoding.ids):
                assert ours.encode(ours.decode_bytes(encoding.ids)) == encoding.ids, text
            spans = ours.encode_with_offsets(text)
            assert spans.ids == encoding.ids
            if normalizer is None:
                assert spans.char_spans == encoding.offsets, text
            assert all(a[1] == b[0] for a, b in pairwise(spans.byte_spans))
        pair = ours.encode(texts[0], texts[1])
        assert pair == theirs.encode(texts[0], texts[1], add_special_tokens=False).ids
        joined = "".join(texts)
        assert list(ours.encode_iterable(texts)) == theirs.encode(joined, add_special_tokens=False).ids
    assert again > 300


def test_offsets_of_many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The added spaces may be anywhere in the steps in which spans are computed."""
    ours, theirs = both(file([added("<m>")], PREFIX))
    text = "é<m>word " * 40
    expected = theirs.encode(text, add_special_tokens=False).offsets
    for step in (1, 2, 3, 7):
        monkeypatch.setattr(pybpe.tokenizer.offsets, "_STEP", step)
        assert ours.encode_with_offsets(text).char_spans == expected


@pytest.mark.slow
@pytest.mark.parametrize("normalizer", [None, "NFC"])
def test_pieces_of_any_size_give_the_ids_of_the_whole(normalizer: str | None) -> None:
    cuts = 0
    for tok, _, texts in loaded(2, 60, normalizer):
        for pattern in (None, "gpt2", "cl100k", r"[^\n]*\n|[^\n]+", r"\s+|\S+", r"(?bytes)[\xa0-\xff]"):
            model = tok.model if pattern is None else pybpe.Tokenizer.from_hf(tok.to_hf(), pattern=pattern).model
            assert model.prefix_space
            encoder = TextEncoder(model, model.to_vocab())
            for sample in [*texts[:6], "".join(texts)]:
                data = sample.encode()
                ends = [*dict.fromkeys(encoder.cut(data, at) for at in range(1, len(data))), len(data)]
                parts = [data[a:b] for a, b in pairwise([0, *ends])]
                found = [encoder.encode(part, encoder.specials) for part in parts]
                assert sum(found, []) == encoder.encode(data, encoder.specials), (pattern, parts)
                cuts += len(parts)
    assert cuts > 5000


@pytest.mark.slow
def test_long_texts_with_threads() -> None:
    ours, theirs = both(file([added("<mask>", lstrip=True), added("  ", normalized=True)], PREFIX))
    block = f" start {''.join(random_texts(random.Random(3), ['<mask>', '  ', 'lorem ipsum', '中文'], 300))} end"
    long = "x" + block * 700
    start, rest = (theirs.encode(text, add_special_tokens=False).ids for text in ("x", block))
    expected = start + rest * 700
    assert len(long.encode()) > 2 * pieces.PIECE_BYTES
    assert ours.encode(long) == expected == ours.encode_to_numpy(long, num_threads=4).tolist()
    assert ours.encode_batch([long, "x"], 2) == [expected, ours.encode("x")] and ours.count(long) == len(expected)


GIVEN: dict[str, tuple[list[dict[str, Any]], str | None]] = {
    "GPT-2 with add_prefix_space": ([added("<|endoftext|>")], None),
    "RoBERTa with add_prefix_space, Blenderbot": ([*map(added, ["<s>", "</s>"]), added("<mask>", lstrip=True)], None),
    "ModernBERT with add_prefix_space": (
        [*(added(text, normalized=True) for text in NAMES), added("[CLS]"), added("[MASK]", lstrip=True)],
        "NFC",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_published_tokenizers(name: str, tmp_path: Path) -> None:
    tokens, normalizer = GIVEN[name]
    ours, theirs = both(file(tokens, PREFIX, normalizer))
    ours.save(tmp_path / "t.json")
    ours.save_pretrained(tmp_path / "folder")
    saved = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    again = [pybpe.Tokenizer.from_file(tmp_path / name) for name in ("t.json", "folder")]
    assert again == [ours, ours]
    texts = random_texts(random.Random(name), [token["content"] for token in tokens[:3] + tokens[-2:]], 300)
    for text, encoding in zip(texts, theirs.encode_batch(texts, add_special_tokens=False), strict=True):
        assert ours.encode(text) == encoding.ids == again[0].encode(text), text
        assert saved.encode(text, add_special_tokens=False).ids == encoding.ids
        assert ours.to_hf().encode(text, add_special_tokens=False).ids == encoding.ids


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for pre_tokenizer in (sequence(DIGITS, PREFIX), sequence(split(LLAMA3), BYTES_FIRST)):
        path.write_text(file([added("<m>")], pre_tokenizer))
        for pattern in (None, "gpt2"):
            with pytest.raises(pybpe.errors.FormatError, match="add_prefix_space after another step"):
                pybpe.Tokenizer.from_file(path, pattern=pattern)
    tok, _ = both(file([added("<m>")], PREFIX))
    path.write_text(file([added("<m>")], PREFIX))
    other = pybpe.Tokenizer.from_file(path, pattern="llama3")
    assert other.encode("ab") == other.encode(" ab")
    with pytest.raises(pybpe.errors.UnsupportedError, match="add_prefix_space with the pattern 'llama3'"):
        other.save(path)
    plain, _ = both(file([added("<m>")]))
    assert plain != tok and plain.encode(" ab") == tok.encode("ab") != plain.encode("ab")


def test_a_folder_with_another_setting_is_refused(tmp_path: Path) -> None:
    for tok, wrong in ((both(file([], PREFIX))[0], None), (both(file([]))[0], True)):
        tok.save_pretrained(tmp_path)
        config = tmp_path / "tokenizer_config.json"
        facts = json.loads(config.read_text())
        assert pybpe.Tokenizer.from_file(tmp_path) == tok
        config.write_text(json.dumps(facts | {"add_prefix_space": wrong}))
        with pytest.raises(pybpe.errors.FormatError, match="add_prefix_space is .* make them equal"):
            pybpe.Tokenizer.from_file(tmp_path)


# ----------------------------------------------------------------------------------------------------
# Corpora


EOT = "<|endoftext|>"


@pytest.mark.parametrize("others", [[], [added("  ", normalized=True)], [added("word", single_word=True)]])
def test_documents(others: list[dict[str, Any]], tmp_path: Path) -> None:
    tok, theirs = both(file([added(EOT), *others], PREFIX))
    texts = random_texts(random.Random(4), ["word", "  ", "x"], 300)
    texts = [line for text in texts if (line := text.replace("\n", "").replace("\r", ""))]
    mark = tok.special_tokens[EOT]
    joined = [i for text in texts for i in [mark, *theirs.encode(text, add_special_tokens=False).ids]]
    options: dict[str, Any] = {"format": "raw", "splits": (1,), "eot": "prepend", "progress": False}
    for name, content, documents in (
        ("lines", "\n".join(texts), "line"),
        ("blank", "\n\n".join(texts), "blank"),
        ("marked", EOT.join(texts), "special"),
    ):
        path = tmp_path / f"{name}.txt"
        path.write_text(content, encoding="utf-8")
        pybpe.binarize(tok, path, tmp_path / name, documents=documents, **options)
        assert np.fromfile(tmp_path / name / "train.bin", dtype=np.uint16).tolist() == joined, name
        assert verify(tmp_path / name, tok)[1] == []


def test_a_text_that_is_cut_between_splits(tmp_path: Path) -> None:
    """The parts of one text get no more spaces than the whole."""
    tok, theirs = both(file([added(EOT)], PREFIX))
    text = "".join(random.Random(5).choices([*PARTS, " ab", "\n"], k=4000)).replace(EOT, "")
    path = tmp_path / "t.txt"
    path.write_text(text, encoding="utf-8")
    pybpe.binarize(
        tok, path, tmp_path / "out", format="raw", splits=(5, 3, 2), split_by="token", eot="none", progress=False
    )
    found = [np.fromfile(tmp_path / "out" / f"{name}.bin", dtype=np.uint16) for name in ("train", "val", "test")]
    assert all(map(len, found))
    assert np.concatenate(found).tolist() == theirs.encode(text, add_special_tokens=False).ids


def test_training_that_extends_adds_the_space_too(tmp_path: Path) -> None:
    tok, _ = both(file([added("<m>")], PREFIX))
    plain, _ = both(file([added("<m>")]))
    path, records = tmp_path / "t.txt", tmp_path / "t.jsonl"
    path.write_text("qz<m>qz<m>qz")
    records.write_text('{"text": "qz"}\n{"text": "qz"}\n')
    for inputs, spelled in (
        (str(path), " qz<m> qz<m> qz"),
        (iter(["qz<m>qz<m>qz"]), " qz<m> qz<m> qz"),
        (str(records), " qz<m> qz"),
    ):
        longer = tok.extend(inputs=inputs, vocab_size=tok.vocab_size + 2, progress=False)
        expected = plain.extend(inputs=iter([spelled]), vocab_size=tok.vocab_size + 2, progress=False)
        assert longer.merges == expected.merges and longer.model.prefix_space
        assert longer.encode("qz") == [longer.token_to_id(" qz")]
    with pytest.raises(pybpe.errors.ArgumentError, match="the base has add_prefix_space"):
        tok.extend(counts=pybpe.count_words(iter(["a"]), special_tokens=["<m>"]), vocab_size=tok.vocab_size + 1)


def test_a_plan_cuts_texts_as_binarize_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is cut elsewhere gets more spaces than one that is not, and so more tokens."""
    monkeypatch.setattr(planning, "TASK_BYTES", 64)
    tok, _ = both(file([added("<|endoftext|>")], PREFIX, None))
    (tmp_path / "a.txt").write_text(" a,b;c d,e" * 300)
    recipe = {"sources": {"x": {"inputs": str(tmp_path / "a.txt"), "epochs": 1}}, "splits": [1]}
    exact = pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1,)).tokens
    assert abs(pybpe.plan_mix(tok, recipe).tokens - exact) < 0.02 * exact
