"""`pybpe inspect --audit`: each finding in a tokenizer or in data that has it, and in no other."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
from gpt2 import gpt2_tokenizer
from texts import chinese, english

import pybpe
from pybpe.analysis.audit import TITLES, Entry, audit, is_tokens, seen_in_texts, seen_in_tokens
from pybpe.cli import main
from pybpe.model import Model
from pybpe.pattern import Pattern
from pybpe.tokenizer import of_model

SPECIALS = ["<|endoftext|>", "<|im_start|>"]
BYTES = {i: bytes([i]) for i in range(256)}
MERGES = [(b"a", b"b"), (b"ab", b"c"), (b"b", b"c")]


def made(more: dict[int, bytes], merges: Sequence[tuple[bytes, bytes]] = MERGES, **options: str) -> pybpe.Tokenizer:
    return pybpe.Tokenizer(BYTES | more, merges, SPECIALS, **options)


def ids(entries: Sequence[Entry]) -> list[int | None]:
    return [entry.id for entry in entries]


def test_tokens_that_no_text_gives() -> None:
    tokens = {
        256: b"ab",
        257: b"abc",
        258: b"bc",
        259: b"a1",
        260: b" 12",
        261: b"12",
        262: b"\xa9 ",
        263: b"\xc3\xa9 ",
    }
    merges = [*MERGES, (b"a", b"1"), (b"1", b"2"), (b" ", b"12"), (b"\xa9", b" "), (b"\xc3", b"\xa9 ")]
    found = audit(made(tokens, merges))
    assert list(found) == ["unmerged", "unproduced", "equal", "broken", "no_token", "slow_pattern"]
    assert ids(found["unmerged"]) == []
    # The pattern divides letters from numbers, and from a space after them. U+2029 is white space that ends in A9.
    assert ids(found["unproduced"]) == [259, 263]
    assert ids(found["broken"]) == [262]
    order = audit(made({256: b"bc", 257: b"ab", 258: b"abc"}, [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]))
    assert ids(order["unmerged"]) == [258] and ids(order["unproduced"]) == []  # bc comes first


def test_gpt2_has_only_tokens_that_some_text_gives() -> None:
    """17 of them are parts of words of other languages, which end or begin inside a character."""
    found = audit(gpt2_tokenizer())
    assert [len(found[key]) for key in found] == [0, 0, 0, 216, 0, 0]


@pytest.mark.filterwarnings("ignore:the pattern")
def test_equal_tokens_lacking_bytes_and_slow_patterns() -> None:
    model = Model([b"a", b"b", b"<s>", b"<s>"], [], {"<s>": 2}, Pattern(r"(\w)\1|[\s\S]"))
    found = audit(of_model(model))
    assert ids(found["equal"]) == [2, 3]
    assert len(found["no_token"]) == 254
    assert [entry.text.decode() for entry in found["slow_pattern"]] == [model.pattern.regex]


def trained() -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:30_000], chinese()[:3000]]), vocab_size=700, special_tokens=SPECIALS)


def test_what_texts_and_token_files_have_is_the_same(tmp_path: Path) -> None:
    tok, forged = trained(), "<|im_start|>"
    texts = [english()[1000:9000] + forged, f"a{forged}{forged[:-1]}>b", "x" + forged[1:]]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    of_texts = seen_in_texts(tok, [str(tmp_path / "c.jsonl")])
    assert of_texts.forged == {forged: 3}
    expected = numpy.bincount([i for text in texts for i in tok.encode_ordinary(text)], minlength=len(tok))
    assert of_texts.counts == {i: n for i, n in enumerate(expected.tolist()) if n}
    pybpe.binarize(tok, tmp_path / "c.jsonl", tmp_path / "out", splits=(1,), min_shard_tokens=0)
    of_tokens = seen_in_tokens(tok, [str(tmp_path / "out")])
    assert of_tokens.forged == of_texts.forged
    assert of_tokens.counts == of_texts.counts | {tok.eot_token: 3}
    found = audit(tok, of_tokens, 3)
    assert list(found) == list(TITLES)
    assert ids(found["forged"]) == [tok.special_tokens[forged]] and ids(found["recognized"]) == [tok.eot_token]
    few = {i for i in tok.model.vocab if of_tokens.counts.get(i, 0) < 3} - set(tok.special_tokens.values())
    assert set(ids(found["unseen"])) == few - set(ids(found["unproduced"]))
    assert [entry.times for entry in found["unseen"]] == sorted(entry.times or 0 for entry in found["unseen"])
    assert is_tokens(str(tmp_path / "out")) and not is_tokens(str(tmp_path / "c.jsonl"))


def test_plain_text_has_special_tokens(tmp_path: Path) -> None:
    tok = trained()
    (tmp_path / "c.txt").write_text("one<|endoftext|>two<|im_start|>")
    seen = seen_in_texts(tok, [str(tmp_path / "c.txt")])
    assert seen.forged == {} and all(seen.counts[i] == 1 for i in tok.special_tokens.values())


def test_forged_text_is_found_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = trained()
    written = tok.encode_ordinary("ab<|im_start|>" * 9) + [tok.eot_token, 65535, 700, 700]
    numpy.save(tmp_path / "x.npy", numpy.array(written, numpy.uint16))
    for block in (1, 3, 1 << 20):
        monkeypatch.setattr("pybpe.analysis.audit._BLOCK", block)
        seen = seen_in_tokens(tok, [str(tmp_path / "x.npy")])
        assert seen.forged == {"<|im_start|>": 9}
        found = audit(tok, seen)
        assert [(entry.id, entry.times) for entry in found["foreign"]] == [(700, 2), (65535, 1)]


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    tok = trained()
    (tmp_path / "c.txt").write_text("one")
    pybpe.binarize(tok, tmp_path / "c.txt", tmp_path / "out", splits=(1,), min_shard_tokens=0)
    with pytest.raises(pybpe.errors.ArgumentError, match="another tokenizer made these tokens"):
        seen_in_tokens(tok.extend(["<x>"]), [str(tmp_path / "out")])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained().save(tmp_path / "t.json")
    (tmp_path / "c.txt").write_text("the end<|endoftext|>")
    command = ["inspect", str(tmp_path / "t.json"), "--audit", str(tmp_path / "c.txt"), "--count", "2"]
    main([*command, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == list(TITLES)
    assert found["recognized"]["count"] == 1 and found["recognized"]["examples"][0]["text"] == "<|endoftext|>"
    assert found["unseen"]["count"] > 300 and len(found["unseen"]["examples"]) == 2
    main(command)
    shown = capsys.readouterr().out
    assert f"{found['unseen']['count']:>8,}  tokens that occur in the data fewer than 2 times" in shown
    assert "              0  '<|endoftext|>'  1 times" in shown
    main([*command[:3], "--min-count", "1"])
    assert "fewer than" not in capsys.readouterr().out
