"""The folder that nanochat reads: what is refused. extras/test_nanochat_extras.py reads the folder."""

import sys
from pathlib import Path

import pytest

import pybpe
from pybpe.formats.nanochat import SPECIAL_TOKENS

TEXT = "In 1984 the café had 12345 visitors. " * 9


def train(specials: tuple[str, ...] = SPECIAL_TOKENS, **options: object) -> pybpe.Tokenizer:
    given = {"pattern": "nanochat", "tie_break": "rustbpe", "special_ids": "last", **options}
    return pybpe.train(iter([TEXT]), vocab_size=290, special_tokens=specials, **given)


@pytest.mark.parametrize(
    ("tok", "message"),
    [
        (
            train(("<|bos|>",)),
            r"needs the special tokens <\|user_start\|> .*<\|output_end\|>, which this tokenizer lacks",
        ),
        (train(normalizer="NFC"), "nanochat cannot hold the normalizer NFC"),
        (
            train(end_of_text="<|user_end|>"),
            r"begins documents with <\|bos\|>, and this tokenizer ends them with '<\|us",
        ),
        (train((*SPECIAL_TOKENS, "<|bos|>x")), "begins with another one"),
    ],
)
def test_what_nanochat_cannot_hold(tok: pybpe.Tokenizer, message: str, tmp_path: Path) -> None:
    with pytest.raises(pybpe.errors.UnsupportedError, match=message):
        tok.save(tmp_path / "out", "nanochat")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["torch", "tiktoken"])
def test_a_missing_package(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(pybpe.errors.MissingExtraError, match="pip install"):
        train().save(tmp_path / "out", "nanochat")
    assert not list(tmp_path.iterdir())


def test_nanochats_regex_is_the_pattern() -> None:
    """As tokenizer.py of nanochat writes it, and as prepare.py of autoresearch does."""
    regex = (
        r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"""
        r"""\s+(?!\S)|\s+"""
    )
    tok = train(pattern=regex)
    assert tok.pattern.name == "nanochat" and tok == train()
    assert pybpe.Tokenizer.from_tiktoken(tok.to_tiktoken()).pattern == tok.pattern
