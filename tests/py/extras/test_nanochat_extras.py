"""nanochat: the merges of rustbpe, and the folder that nanochat reads, against the way in which nanochat makes both."""

import json
import pickle
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

rustbpe = pytest.importorskip("rustbpe")
tiktoken = pytest.importorskip("tiktoken")
torch = pytest.importorskip("torch")

from texts import CORNER_TEXTS, chinese, english, mixed  # noqa: E402

import pybpe  # noqa: E402
from pybpe.formats.nanochat import SPECIAL_TOKENS  # noqa: E402

# Of nanochat/tokenizer.py and prepare.py.
SPLIT_PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"""
    r"""\s+(?!\S)|\s+"""
)
RESERVED = tuple(f"<|reserved_{i}|>" for i in range(4))  # autoresearch's
CODE = "".join(path.read_text("utf-8", "ignore") for path in sorted(Path(json.__file__).parent.glob("*.py")))
TEXTS = {"english": english(), "chinese": chinese(20_000), "code": CODE, "mixed": mixed(100_000)}


def theirs(texts: Iterable[str], vocab_size: int, specials: tuple[str, ...]) -> "tiktoken.Encoding":
    """As RustBPETokenizer.train_from_iterator in nanochat/tokenizer.py, and as autoresearch's prepare.py."""
    trainer = rustbpe.Tokenizer()
    trainer.train_from_iterator(iter(texts), vocab_size - len(specials), pattern=SPLIT_PATTERN)
    ranks = {bytes(token): rank for token, rank in trainer.get_mergeable_ranks()}
    special_tokens = {name: len(ranks) + i for i, name in enumerate(specials)}
    return tiktoken.Encoding("rustbpe", pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens=special_tokens)


def ours(texts: Iterable[str], vocab_size: int, specials: tuple[str, ...]) -> pybpe.Tokenizer:
    given = {"special_tokens": specials, "special_ids": "last", "pattern": "nanochat", "tie_break": "rustbpe"}
    return pybpe.train(iter(texts), vocab_size=vocab_size, max_token_length=1 << 20, **given)


@pytest.mark.parametrize(("name", "specials"), [*((name, SPECIAL_TOKENS) for name in TEXTS), ("code", RESERVED)])
def test_the_folder(name: str, specials: tuple[str, ...], tmp_path: Path) -> None:
    texts = TEXTS[name].split("\n\n")
    expected, tok = theirs(texts, 4000, specials), ours(texts, 4000, specials)
    tok.save(tmp_path, "nanochat")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["token_bytes.pt", "tokenizer.pkl"]
    found = pickle.loads((tmp_path / "tokenizer.pkl").read_bytes())
    assert found._mergeable_ranks == expected._mergeable_ranks and found._special_tokens == expected._special_tokens
    assert found.n_vocab == expected.n_vocab and found.name == "rustbpe"
    for text in CORNER_TEXTS:
        assert found.encode_ordinary(text) == expected.encode_ordinary(text) == tok.encode_ordinary(text)
    lengths = torch.load(tmp_path / "token_bytes.pt")  # as get_token_bytes does
    special = set(expected._special_tokens.values())
    sizes = [0 if i in special else len(expected.decode_single_token_bytes(i)) for i in range(expected.n_vocab)]
    assert lengths.dtype == torch.int32 and lengths.tolist() == sizes


def test_merges_of_many_small_corpora() -> None:
    rng = random.Random(3)
    for _ in range(300):
        letters = rng.choice(["ab", "aab1", "中文字ab", "abcdefgh ", "a'sé1 .\n", "\x00\x7f ~ÿ"])
        texts = ["".join(rng.choices(letters, k=rng.randrange(90))) for _ in range(8)]
        size = 256 + rng.randrange(60)
        tokens = {bytes(token): i for i, token in enumerate(ours(texts, size, ()).model.tokens)}
        assert tokens == theirs(texts, size, ())._mergeable_ranks
