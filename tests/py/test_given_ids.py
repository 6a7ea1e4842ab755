"""Special tokens with given ids keep them, or pybpe refuses them; and vocabularies whose ids have gaps."""

import json
from pathlib import Path

import pytest
import tiktoken

import pybpe
from pybpe.teaching import WordTokenizer

BYTES = {i: bytes([i]) for i in range(256)}
PAD = {"<|pad|>": 299}


def test_a_mapping_of_special_tokens_gives_the_ids() -> None:
    tok = pybpe.Tokenizer(BYTES, [], PAD)
    assert tok.special_tokens == PAD and tok.vocab_size == 300 and tok.encode("a<|pad|>") == [97, 299]
    mixed = pybpe.Tokenizer(BYTES | {256: b"ab", 258: b"<s>"}, [(b"a", b"b")], {"</s>": 257, "<s>": 258, "ab": 270})
    assert mixed.encode("<s>abb</s>") == [258, 270, 98, 257] and mixed.encode_ordinary("ab") == [256]


def test_a_tokenizer_is_remade_of_its_own_parts() -> None:
    """The same holds for a special token with the text of a merged token."""
    for tok in (
        pybpe.Tokenizer(BYTES | {256: b"ab"}, [(b"a", b"b")], {"ab": 300, "<s>": 280}),
        pybpe.train(iter(["abab abab"]), vocab_size=262, special_tokens=["<s>", "</s>"]),
    ):
        assert pybpe.Tokenizer(tok.model.vocab, tok.merges, tok.special_tokens) == tok


@pytest.mark.parametrize(
    ("specials", "message"),
    [
        ({"<x>": 97}, "'<x>' cannot have id 97, which belongs to b'a'"),
        ({"x": 300, "y": 300}, "the special tokens 'x' and 'y' have the same id, 300"),
        ({"<s>": 300}, "'<s>' has id 300, but id 256 in vocab"),
        ({"<x>": -1}, "must be at least 0"),
        ({"<x>": "300"}, "must be an integer"),
        ({"<x>": 15_000_000}, "invalid id 15000000"),
        ({"a": 97}, "there is no token for the byte 0x61"),
        ({"": 300}, "cannot be empty"),
    ],
)
def test_ids_that_cannot_be_given_are_refused(specials: dict, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.Tokenizer(BYTES | {256: b"<s>"}, [], specials)


def test_training_gives_the_ids_of_a_mapping_or_refuses() -> None:
    def train(specials: dict, **how: object) -> dict[str, int]:
        how.setdefault("inputs", iter(["some text, some"]))
        return pybpe.train(vocab_size=260, special_tokens=specials, **how).special_tokens  # type: ignore[arg-type]

    def refused(wanted: int, found: int, **how: object) -> None:
        with pytest.raises(pybpe.errors.ArgumentError, match=f"'<b>' id {wanted}, but training gives it {found}"):
            train({"<a>": 0, "<b>": wanted}, **how)

    assert train({"<b>": 1, "<a>": 0}) == {"<a>": 0, "<b>": 1}
    assert train({"<b>": 257, "<a>": 256}, special_ids="after_bytes") == {"<a>": 256, "<b>": 257}
    assert train({"<b>": 259, "<a>": 258}, special_ids="last") == {"<a>": 258, "<b>": 259}
    refused(299, 1)
    refused(2, 1, counts=pybpe.Counts.from_dict({"some": 2}, special_tokens={"<a>": 0, "<b>": 7}), inputs=None)
    with pytest.raises(pybpe.errors.ArgumentError, match="'<a>' id 258, but training gives it 256"):
        train({"<a>": 258, "<b>": 259}, special_ids="last", min_frequency=100)  # there are fewer tokens
    base = pybpe.Tokenizer(BYTES, [], {"<a>": 256})
    assert train({"<a>": 256, "<b>": 257}, base=base) == {"<a>": 256, "<b>": 257}
    with pytest.raises(pybpe.errors.ArgumentError, match="'<a>' id 0, but training gives it 256"):
        train({"<a>": 0}, base=base)


def test_where_pybpe_chooses_the_ids_a_mapping_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("some text")
    tok = pybpe.Tokenizer(BYTES, [])
    for call in (
        lambda: pybpe.prepare(text, tmp_path / "out", vocab_size=300, special_tokens=PAD),
        lambda: tok.extend(PAD),
        lambda: WordTokenizer.train("some text", PAD),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match="special_tokens is a mapping with ids, but pybpe chooses"):
            call()
    with pytest.raises(pybpe.errors.ArgumentError, match="special_tokens must be a mapping text -> id"):
        tok.save(tmp_path / "t.tiktoken")
        pybpe.Tokenizer.from_tiktoken(tmp_path / "t.tiktoken", pattern="gpt2", special_tokens=["<s>"])  # type: ignore[arg-type]


def test_the_two_files_of_gpt2_take_ids_too(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.json"
    pybpe.Tokenizer(BYTES, [], ["<s>"]).save(tmp_path, "files")
    for given, expected in (
        ({"<s>": 256, "</s>": 300}, {"<s>": 256, "</s>": 300}),
        (["<s>", "</s>"], {"<s>": 256, "</s>": 257}),
    ):
        assert pybpe.Tokenizer.from_file(vocab, special_tokens=given).special_tokens == expected
    with pytest.raises(pybpe.errors.ArgumentError, match="'<s>' has id 256 here, not 300"):
        pybpe.Tokenizer.from_file(vocab, special_tokens={"<s>": 300})
    with pytest.raises(pybpe.errors.FormatError, match="id 97 is used twice"):
        pybpe.Tokenizer.from_file(vocab, special_tokens={"</s>": 97})


def test_what_has_gaps_in_its_ids_is_saved_and_read_again(tmp_path: Path) -> None:
    """Some tokenizers of a few hundred tokens have special tokens at the ids of GPT-4's."""
    theirs = tiktoken.Encoding(
        "small", pat_str=r"\s+|\S+", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={"<s>": 100257}
    )
    for tok in (
        pybpe.Tokenizer(BYTES, [], {"<s>": 100257}, pattern="cl100k"),
        pybpe.Tokenizer.from_tiktoken(theirs),
    ):
        for path in (tmp_path / "t.json", tmp_path / "folder"):
            tok.save(path)
            assert pybpe.Tokenizer.from_file(path) == tok
        assert tok.encode("a<s>") == [97, 100257]
        with pytest.raises(pybpe.errors.LimitError, match="unused"):
            tok.save(tmp_path / "t.bin")


def test_no_tokenizer_has_an_id_that_its_file_could_not_have(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(pybpe.errors.ArgumentError, match="invalid id 15000000"):
        pybpe.Tokenizer(BYTES | {15_000_000: b"ab"}, [])
    pybpe.Tokenizer(BYTES, []).save(path)
    data = json.loads(path.read_text())
    data["model"]["vocab"]["ab"] = 15_000_000
    path.write_text(json.dumps(data))
    with pytest.raises(pybpe.errors.FormatError, match="invalid id 15000000"):
        pybpe.Tokenizer.from_file(path)
