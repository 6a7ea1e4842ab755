r"""Custom patterns from and for tiktoken and Hugging Face: the same ids there, or an error that names the problem.

test_dialects.py compares the engines word by word. This file tests the methods that read and write patterns.
"""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from engines import BYTES
from test_dialects import REAL, hostile_texts

import pybpe
from pybpe.errors import PybpeWarning
from pybpe.formats import tokenizer_json
from pybpe.pattern import _PORTABLE, NAMES, Pattern

TEXT = "Hello中文 world's  क्षेत्र می‌خواهم. a²\n\nab\n" * 3


def trained(pattern: str) -> pybpe.Tokenizer:
    """Returns a tokenizer whose merges reveal a wrong cut."""
    return pybpe.train(iter([TEXT]), vocab_size=420, special_tokens=["<s>"], special_ids="last", pattern=pattern)


def ranks() -> dict[bytes, int]:
    """Returns the ranks of bytes, and of merges that join letters and signs."""
    tok = pybpe.train(iter([TEXT]), vocab_size=450, pattern=r"[\s\S]+")
    return {token: i for i, token in tok.model.vocab.items()}


def texts() -> list[str]:
    return [TEXT, "Hello中文", "ab\n", "a b, c", *hostile_texts(random.Random(5), 60)]


# ----------------------------------------------------------------------------------------------------
# tiktoken


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_from_tiktoken_gives_tiktokens_ids(name: str, tmp_path: Path) -> None:
    theirs = tiktoken.Encoding("k", pat_str=REAL[name], mergeable_ranks=ranks(), special_tokens={"<|end|>": 450})
    ours = pybpe.Tokenizer.from_tiktoken(theirs)
    path = tmp_path / "k.tiktoken"
    ours.save(path)
    same = pybpe.Tokenizer.from_file(path, pattern=REAL[name], special_tokens={"<|end|>": 450})
    assert same == ours
    back, hf = ours.to_tiktoken(), ours.to_hf()
    for text in texts():
        ids = theirs.encode(text, allowed_special="all")
        assert ours.encode(text) == ids
        assert back.encode(text, allowed_special="all") == ids
        assert hf.encode(text).ids == ids


@pytest.mark.parametrize("pattern", [r"\w+", r"\w+|\s+", r".+", r"\p{L}+|[^\p{L}]{2,}"])
def test_patterns_that_leave_text_out_are_refused(pattern: str, tmp_path: Path) -> None:
    """tiktoken drops that text, and pybpe would keep it."""
    theirs = tiktoken.Encoding("k", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    with pytest.raises(pybpe.errors.UnsupportedError, match="may leave text unmatched, such as U[+]00"):
        pybpe.Tokenizer.from_tiktoken(theirs)
    ours = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], pattern=pattern)
    for target in (ours.to_tiktoken, lambda: ours.save(tmp_path / "t.tiktoken")):
        with pytest.raises(pybpe.errors.UnsupportedError, match="may leave text unmatched"):
            target()


def test_constructs_that_tiktoken_reads_in_its_own_way_are_refused() -> None:
    for pattern in (r"a\Z|[\s\S]", r"(?x: a)|[\s\S]", r"(?i:\p{L})|[\s\S]"):
        theirs = tiktoken.Encoding("k", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
        with pytest.raises(pybpe.errors.UnsupportedError, match=r"the encoding 'k': .*regular expression engines|flag"):
            pybpe.Tokenizer.from_tiktoken(theirs)


# ----------------------------------------------------------------------------------------------------
# Hugging Face


CUSTOM = [
    r"\w+|\W+", r"\S+$|\S|\s+", r"\b\w|\w+|\W", r"(?im:^hello)|\S+|\s", r"\p{N}{1,3}+|\S|\s+", r"[^\W\d_]+|[\s\S]",
    r"\w+",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:the pattern")
@pytest.mark.parametrize("pattern", CUSTOM)
def test_hugging_face_gives_the_ids_of_custom_patterns(pattern: str, tmp_path: Path) -> None:
    tok = trained(pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tok.save(tmp_path / "t.json")
    tok.save_pretrained(tmp_path / "folder")
    tok.save(tmp_path / "exported", "pretrained")
    paths = [tmp_path / "t.json", tmp_path / "folder" / "tokenizer.json", tmp_path / "exported" / "tokenizer.json"]
    theirs = [tok.to_hf(), *(tokenizers.Tokenizer.from_file(str(path)) for path in paths)]
    again = [pybpe.Tokenizer.from_file(path) for path in paths]
    assert all(copy == tok and copy.pattern.regex == pattern for copy in again)
    assert "regex" not in again[0].model.training
    foreign = pybpe.Tokenizer.from_hf(tok.to_hf())  # Hugging Face keeps nothing under "pybpe"
    for text in texts():
        ids = tok.encode(text)
        assert foreign.encode(text) == ids
        for one in theirs:
            assert one.encode(text).ids == ids, (text, pattern)


@pytest.mark.filterwarnings("ignore:the pattern")
@pytest.mark.parametrize("pattern", [r"\X", r"(?:cat){e<=1}|[\s\S]", r"(?V1)[a--b]|[\s\S]", "(?i:é)|[^é]"])
def test_a_pattern_that_hugging_face_cannot_run(pattern: str, tmp_path: Path) -> None:
    """Only pybpe reads the file: Hugging Face refuses it, and `save` warns."""
    tok = trained(pattern)
    with pytest.warns(PybpeWarning, match="only pybpe can load this tokenizer.json"):
        tok.save(tmp_path / "t.json")
    again = pybpe.Tokenizer.from_file(tmp_path / "t.json")
    assert again == tok and again.pattern.regex == pattern and again.encode(TEXT) == tok.encode(TEXT)
    with pytest.raises(Exception, match="PythonRegex"):
        tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    for target in (
        tok.to_hf,
        lambda: tok.save_pretrained(tmp_path / "folder"),
        lambda: tok.save(tmp_path / "folder", "pretrained"),
    ):
        with pytest.raises(pybpe.errors.UnsupportedError, match=r"Oniguruma.* at character \d+; write that part"):
            target()
    assert not (tmp_path / "folder").exists()


def changed(pattern: str, tmp_path: Path, **step: object) -> Path:
    """Writes a tokenizer.json with this pattern, unchanged."""
    data = tokenizer_json.to_object(trained(r"\w+|\W+").model)
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    data["pre_tokenizer"]["pretokenizers"][0] = split | step
    del data["model"]["pybpe"]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.filterwarnings("ignore:the pattern")
@pytest.mark.parametrize("pattern", [r"\w+|\W+", r"\p{N}{1,2}+|^\S|\S+$|[\s\S]", r"(?m:.)\h?|a{2}?b", r"[\w&&[^\d]]+"])
def test_a_pattern_of_hugging_face_is_read_as_it_is_run_there(pattern: str, tmp_path: Path) -> None:
    path = changed(pattern, tmp_path)
    ours, theirs = pybpe.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))
    for text in texts():
        assert ours.encode(text) == theirs.encode(text).ids == pybpe.Tokenizer.from_hf(theirs).encode(text)


def test_text_that_hugging_face_drops(tmp_path: Path) -> None:
    dropping = {"behavior": "Removed", "invert": True}
    path = changed(r"\w+|\W", tmp_path, **dropping)
    ours, theirs = pybpe.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))
    for text in texts():
        assert ours.encode(text) == theirs.encode(text).ids
    with pytest.raises(pybpe.errors.FormatError, match=r"tokenizer.json: .* may leave text unmatched"):
        pybpe.Tokenizer.from_file(changed(r"\w+", tmp_path, **dropping))


# ----------------------------------------------------------------------------------------------------
# Spellings of the built-in patterns


def test_pattern_knows_the_spellings_of_named_patterns(tmp_path: Path) -> None:
    for name in NAMES:
        assert Pattern(Pattern(name).regex).name == name
        assert Pattern(Pattern(name, 1).regex) == Pattern(name, 1)
        assert Pattern(Pattern(name).regex, digits=1) == Pattern(name, 1)
    tok = pybpe.train(iter(["aa bb"]), vocab_size=257, pattern=Pattern("gpt2").regex)
    assert tok.pattern.name == "gpt2"
    tok.save(tmp_path, "files")


# ----------------------------------------------------------------------------------------------------
# Built-in patterns in a tokenizer.json

BUILT_IN = [Pattern(name, digits) for name in NAMES for digits in (None, 1, "3-from-right")]


@pytest.mark.parametrize("pattern", BUILT_IN, ids=str)
def test_a_built_in_pattern_is_written_for_every_reader_and_recognized(pattern: Pattern) -> None:
    tok = pybpe.train(iter([TEXT]), vocab_size=420, pattern=pattern)
    text = tok.to_hf().to_str()
    data = json.loads(text)
    written = str(data["pre_tokenizer"])
    assert "++" not in written  # JavaScript reads \s++ as another pattern
    assert "(?i:[" not in written  # transformers.js rewrites only the other spelling
    assert "{1,2}" not in written  # which tokenizers 1.0.0-rc.3 takes for {1,3}
    step = data["pre_tokenizer"].get("pretokenizers", [{}])[0].get("pattern")
    regexes = {pattern.regex}  # of this version, and of OpenAI, Meta or an older pybpe
    for part, other in _PORTABLE.items():
        regexes |= {regex.replace(part, other) for regex in regexes}
    for regex in sorted(regexes) if step else ():
        data["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": regex}
        assert tokenizer_json.loads(json.dumps(data), "x").pattern == pattern
    assert step is None or step["Regex"] in regexes
    theirs = tokenizers.Tokenizer.from_str(text)
    for sample in (*texts(), "a  ", " \n x  \n ", "\n\n  "):
        assert theirs.encode(sample).ids == tok.encode(sample)
