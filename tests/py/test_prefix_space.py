"""add_prefix_space: a space before each text between added tokens, exactly as in Hugging Face's library.

test_special_flags.py compares ids."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from pipelines import DIGITS, LLAMA3, sequence, split
from test_special_flags import BYTES_FIRST, PARTS, PREFIX, added, file, random_texts

import pybpe
from pybpe.reading import planning
from pybpe.tokens.verification import verify


def both(text: str) -> tuple[pybpe.Tokenizer, tokenizers.Tokenizer]:
    theirs = tokenizers.Tokenizer.from_str(text)
    return pybpe.Tokenizer.from_hf(theirs), theirs


def test_offsets_of_many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The added spaces may be anywhere in the steps in which spans are computed."""
    ours, theirs = both(file([added("<m>")], PREFIX))
    text = "é<m>word " * 40
    expected = theirs.encode(text, add_special_tokens=False).offsets
    for step in (1, 2, 3, 7):
        monkeypatch.setattr(pybpe.tokenizer.offsets, "_STEP", step)
        assert ours.encode_with_offsets(text).char_spans == expected


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
