"""Tokenizers whose merges join tokens that only later merges make, or no merge: Llama 3's and gpt-oss's, where tokens
were added by hand. pybpe refuses what it cannot do with them, and says why."""

import json
from dataclasses import replace

import pytest
from test_hf_import import llama3_family
from tokenizers import Tokenizer as Theirs

import pybpe

BYTES = {i: bytes([i]) for i in range(256)}


def late() -> pybpe.Tokenizer:
    """The merge of ab and cd makes abcd, but only a later merge makes cd."""
    vocab = BYTES | {256: b"ab", 257: b"abcd", 258: b"cd"}
    return pybpe.Tokenizer(vocab, [(b"a", b"b"), (b"ab", b"cd"), (b"c", b"d")])


def never() -> pybpe.Tokenizer:
    """No merge makes xy."""
    return pybpe.Tokenizer(BYTES | {256: b"xy", 257: b"xyz"}, [(b"xy", b"z")])


def test_they_encode() -> None:
    assert late().encode("abcd") == [257] and late().encode("cdab") == [258, 256]
    assert never().encode("xyz") == [120, 121, 122]


@pytest.mark.parametrize(("make", "part"), [(late, "b'cd'"), (never, "b'xy'")])
def test_they_cannot_be_continued(make, part: str) -> None:
    tok = make()
    for call in (
        lambda: pybpe.train(iter(["abab"]), vocab_size=300, base=tok),
        lambda: tok.extend((), iter(["abab"]), vocab_size=300),
        lambda: tok.extend(["<s>"], counts={"abab": 5}, vocab_size=300),
    ):
        with pytest.raises(
            pybpe.errors.ArgumentError, match=rf"base: merges\[\d\] joins {part}, which no earlier merge makes"
        ):
            call()
    assert tok.extend(["<s>"]).encode("<s>") == [tok.vocab_size]


def test_their_first_tokens() -> None:
    with pytest.raises(
        pybpe.errors.ArgumentError, match=r"merges\[1\] joins b'ab' and b'cd', and only a later merge makes"
    ):
        late().prune(vocab_size=258)
    assert late().prune(vocab_size=257).merges == [(b"a", b"b")]
    assert late().prune([257]).encode("abcd") == [257]
    assert never().prune(vocab_size=257).model.vocab[256] == b"xy"  # no merge makes it, so it is present from the start


def test_what_is_taken_whole_teaches_nothing() -> None:
    """A word that is a token, though merges do not make it, is not an example of its parts."""
    model = pybpe.Tokenizer(BYTES | {256: b"ab", 257: b" whole"}, [(b"a", b"b")]).model
    base = pybpe.tokenizer.of_model(replace(model, whole_words=True))
    longer = pybpe.train(base=base, counts={" whole": 1000, "abab": 5}, vocab_size=260)
    assert [longer.model.vocab[i] for i in range(258, longer.vocab_size)] == [b"abab"]


def test_the_family_of_llama_3_says_why() -> None:
    tok = pybpe.Tokenizer.from_hf(Theirs.from_str(json.dumps(llama3_family())))
    with pytest.raises(pybpe.errors.ArgumentError, match="no earlier merge makes"):
        pybpe.train(base=tok, counts={"abc": 2}, vocab_size=tok.vocab_size + 1)
    with pytest.raises(pybpe.errors.ArgumentError, match="only a later merge makes"):
        tok.prune(vocab_size=tok.vocab_size - 1)
