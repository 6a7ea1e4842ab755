"""Vocabularies with gaps: bytes without a token, merges of tokens that no earlier merge makes, and special tokens with
given ids. They give the ids of other libraries, or pybpe refuses them and says why."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers
from pipelines import WITH_REGEX, added
from tokenizers import decoders, models, pre_tokenizers, trainers

import pybpe

BYTES = {i: bytes([i]) for i in range(256)}
CORPUS = ["hello world, hello hell: low é 中文 中", "the lower the hello", "wérld"] * 3


def trained(corpus: list[str] = CORPUS, unk: str | None = None) -> Any:
    """Trains a tokenizer as most tutorials do."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token=unk))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = [*([unk] if unk else []), "<s>", "<ü>"]
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=90, special_tokens=specials))
    return tokenizer


def test_texts_that_need_no_such_byte_have_hugging_faces_ids(tmp_path: Path) -> None:
    theirs = trained()
    theirs.save(str(tmp_path / "t.json"))
    ours = pybpe.Tokenizer.from_file(tmp_path / "t.json")
    assert ours == pybpe.Tokenizer.from_hf(theirs) and 0 in ours.model.lacking_bytes
    lacking = set(ours.model.lacking_bytes)
    rng = random.Random(1)
    pieces = ["hello", " world", "low", " é", "中", "文", "<s>", "<ü>", " the", "x", "ü", "\x00", "é", "w", "\u3000"]
    read = 0
    for _ in range(1500):
        text = "".join(rng.choices(pieces[:9] + pieces[12:14], k=rng.randrange(8)))
        if rng.random() < 0.4:
            text += rng.choice(pieces) + rng.choice(("hello", "<s>hello", "<ü> low<s>"))
        ids = theirs.encode(text).ids
        if lacking.isdisjoint(text.replace("<s>", "").replace("<ü>", "").encode()):
            read += 1
            assert ours.encode(text) == ids and ours.count(text) == len(ids)
            assert ours.encode_to_numpy(text).tolist() == ids
        else:
            for call in (ours.encode, ours.count, ours.encode_to_numpy, lambda text: ours.encode_batch([text])):
                with pytest.raises(pybpe.errors.ArgumentError, match="for which this vocabulary has no token"):
                    call(text)
    assert 700 < read < 1400


def test_the_error_names_the_byte_and_leaves_the_tokenizer_as_it_was() -> None:
    ours = pybpe.Tokenizer.from_hf(trained())
    before = ours.encode("hello world")
    bads = [("xyz", 0x78), ("hello \x00", 0), ("hello" * 50 + "Z" * 100, 0x5A), ("é" * 40 + "ü", 0xBC)]
    for bad, byte in (*bads, ("hello " * 2000 + "x", 0x78)):
        for call in (ours.encode, ours.encode_ordinary, ours.encode_to_numpy, ours.count):
            with pytest.raises(pybpe.errors.ArgumentError, match=f"the byte 0x{byte:02X}, .*initial_alphabet"):
                call(bad)
            assert ours.encode("hello world") == ours.encode(memoryview(b"hello world")) == before
    assert ours.encode("<ü>") == [ours.special_tokens["<ü>"]]
    with pytest.raises(pybpe.errors.ArgumentError, match="0x3C"):
        ours.encode_ordinary("<ü>")
    with pytest.raises(pybpe.errors.ArgumentError, match="0x78"):
        list(ours.encode_iterable(["hello ", "x"]))


def test_other_patterns_and_normalizers() -> None:
    data = json.loads(trained(["a b ab é"]).to_str())
    data["normalizer"] = {"type": "NFC"}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    ours = pybpe.Tokenizer.from_hf(theirs)
    assert ours.encode("ab e\u0301") == theirs.encode("ab é").ids
    with pytest.raises(pybpe.errors.ArgumentError, match="0x65"):
        ours.encode("ab e")
    custom = pybpe.Tokenizer.from_hf(theirs, pattern=r" ?\w+|\W")
    assert custom.encode("a b") == theirs.encode("a b").ids
    with pytest.raises(pybpe.errors.ArgumentError, match="0x65"):
        custom.encode("a e")


def test_words_that_are_taken_whole_need_no_bytes() -> None:
    vocab = {"a": 0, "b": 1, "ab": 2, "xy": 3, "xyz": 4, "Ġ": 5}
    for ignore_merges in (True, False):
        data = {
            "version": "1.0",
            "added_tokens": [added(6, "<s>")],
            "pre_tokenizer": WITH_REGEX,
            "decoder": WITH_REGEX,
            "model": {"type": "BPE", "vocab": vocab, "merges": ["a b"], "ignore_merges": ignore_merges},
        }
        theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
        ours = pybpe.Tokenizer.from_hf(theirs)
        assert ours.model.unreached() == [3, 4]
        assert ours.encode("ab ab<s>") == theirs.encode("ab ab<s>").ids
        if ignore_merges:
            assert ours.encode("xy<s>xyz<s>ab") == theirs.encode("xy<s>xyz<s>ab").ids
        for text in ("xyxy", "ab x", "xy x", "x"):
            with pytest.raises(pybpe.errors.ArgumentError, match="0x78"):
                ours.encode(text)


def test_what_can_be_done_with_them(tmp_path: Path) -> None:
    theirs = trained(unk="[UNK]")
    ours = pybpe.Tokenizer.from_hf(theirs)
    for name in ("t.json", "folder"):
        ours.save(tmp_path / name)
        assert pybpe.Tokenizer.from_file(tmp_path / name) == ours
    ours.save(tmp_path / "files", "files")
    again = pybpe.Tokenizer.from_file(tmp_path / "files/vocab.json", special_tokens=ours.special_tokens)
    assert again.encode("hello<s>") == ours.encode("hello<s>")
    for text in ("hello xyz", "zz<s>"):  # Hugging Face treats other bytes as it does with its own file
        assert ours.to_hf().encode(text).ids == theirs.encode(text).ids
    small = ours.prune([ours.encode("hello")[0]])
    assert small.vocab_size < ours.vocab_size and len(small.encode("hello")) == 1
    assert ours.prune(vocab_size=ours.vocab_size - 1).encode("low")
    with pytest.raises(pybpe.errors.LimitError, match=r"t\.bin: no token is the single byte 0x00"):
        ours.save(tmp_path / "t.bin")
    with pytest.raises(pybpe.errors.UnsupportedError, match="a token for each byte; this tokenizer lacks"):
        ours.to_tiktoken()
    with pytest.raises(pybpe.errors.ArgumentError, match="base: there is no token for the byte 0x00"):
        ours.extend((), iter(["hello"]), vocab_size=200)
    with pytest.raises(pybpe.errors.ArgumentError, match="there is no token for the byte 0x00"):
        pybpe.Tokenizer(ours.model.vocab, ours.merges)


# ---------------------------------------------------------------------------------------------------
# Special tokens with given ids, and ids with gaps

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
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match="special_tokens is a mapping with ids, but pybpe chooses"):
            call()
    with pytest.raises(pybpe.errors.ArgumentError, match="special_tokens must be a mapping text -> id"):
        tok.save(tmp_path / "t.tiktoken")
        pybpe.Tokenizer.from_file(tmp_path / "t.tiktoken", pattern="gpt2", special_tokens=["<s>"])  # type: ignore[arg-type]


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
    """Some small tokenizers have special tokens at the ids of large ones."""
    theirs = tiktoken.Encoding(
        "small", pat_str=r"\s+|\S+", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={"<s>": 3000}
    )
    for tok in (pybpe.Tokenizer(BYTES, [], {"<s>": 3000}, pattern="cl100k"), pybpe.Tokenizer.from_tiktoken(theirs)):
        for path in (tmp_path / "t.json", tmp_path / "folder"):
            tok.save(path)
            assert pybpe.Tokenizer.from_file(path) == tok
        assert tok.encode("a<s>") == [97, 3000]
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


# ---------------------------------------------------------------------------------------------------
# Merges that join tokens which only later merges make, or no merge, as in Llama 3 and gpt-oss: tokens were added by
# hand


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
