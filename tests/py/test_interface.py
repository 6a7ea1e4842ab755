"""The parts that users of the package see first: names, the repr of objects, and types."""

import abc
import copy
import inspect
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

import pybpe
from pybpe import _lazy
from pybpe.cli import main

PROGRAM = """
from pathlib import Path

import pybpe
from pybpe import corpus, loading, viz


def main(path: Path) -> None:
    tok = pybpe.train(path, vocab_size=1000, special_tokens=["<|endoftext|>"])
    ids: list[int] = tok.encode("text", allowed_special={"<|endoftext|>"})
    end: int | None = tok.eot_token
    batch: list[list[int]] = tok.encode_batch([b"bytes", "text"])
    text: str = tok.decode(ids)
    pairs: dict[str, int] = tok.get_vocab()
    total: int = int(tok.encode_to_numpy(text).sum()) + len(batch) + len(pairs) + (end or 0)
    manifest: pybpe.Manifest = pybpe.binarize(tok, [path], "out", splits=(8, 1, 1))
    windows = loading.PackedSequences("out/*_train_*.bin", 16)
    inputs, targets = windows[0]
    report: corpus.Report = corpus.clean(path, "clean.jsonl", filters=corpus.Filters.gopher(min_words=5))
    viz.write_page("page.html", text, {"mine": tok})
    print(total, manifest.tokens, inputs.shape, targets.dtype, report.dropped, pybpe.corpus.KINDS)
"""


def test_a_users_program_is_checked_strictly(root: Path, tmp_path: Path) -> None:
    """With the settings and the cache of `make lint`, because mypy takes a minute to read pybpe anew."""
    pytest.importorskip("mypy")
    wrong = ["trian", "shards", "load"]
    (tmp_path / "program.py").write_text(PROGRAM + "\n\npybpe.trian\npybpe.loading.shards\npybpe.Tokenizer.load\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", f"--config-file={root}/pyproject.toml"]
    command += ["--strict", f"--cache-dir={root}/.mypy_cache", "program.py"]
    environment = {**os.environ, "MYPYPATH": str(root)}  # an editable installation is invisible to mypy
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    lines = [line for line in found.splitlines() if line.startswith("program.py") and "error:" in line]
    assert [name for name in ["KINDS", *wrong] if any(f'"{name}"' in line for line in lines)] == ["KINDS", *wrong], (
        found
    )
    assert len(lines) == 4, found


def test_modules_need_no_import_of_their_own() -> None:
    program = "import pybpe; print(pybpe.corpus.clean.__name__, pybpe.viz.Page.__name__, 'Any' in dir(pybpe))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown == "clean Page False\n"
    assert {"train", "Tokenizer", "corpus", "loading", "viz"} <= set(dir(pybpe))
    assert set(pybpe.__all__) <= set(dir(pybpe)) and set(pybpe.loading.__all__) == set(dir(pybpe.loading))
    for module in (pybpe, pybpe.loading):
        with pytest.raises(AttributeError, match="has no attribute 'trian'"):
            module.trian  # noqa: B018


def test_what_tiktoken_and_hugging_face_know_works_here_too() -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | {258: b"<s>"}, [], ["<s>"])
    for unused in (256, 300, -1):
        for call in (tok.decode_single_token_bytes, tok.id_to_token, lambda i: tok.decode([i])):
            with pytest.raises(KeyError, match=f"^{unused} at position 0 is not an id") as caught:
                call(unused)
            assert isinstance(caught.value, pybpe.errors.ArgumentError)
    batch = [tok.encode("a<s>b"), [], tok.encode("é")]
    for threads in (1, 3, None):
        assert tok.decode_batch(batch, num_threads=threads) == ["a<s>b", "", "é"]
        assert tok.decode_batch(batch, skip_special_tokens=True, num_threads=threads) == ["ab", "", "é"]
    assert tok.decode_batch(iter(batch)) == tok.decode_batch([numpy.array(ids, "u2") for ids in batch])
    assert tok.decode_batch([batch[2][:-1]], errors="ignore") == [""]
    for wrong, message in (((batch, True), "errors must be the name of"), (([[1], [1, 999]],), "999 at position 1")):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            tok.decode_batch(*wrong)  # type: ignore[arg-type]
    assert pybpe.loading.documents.position_ids(numpy.zeros(2, dtype="i4")).tolist() == [0, 1]


def test_names_of_other_libraries_are_answered_with_ours() -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])
    with pytest.raises(
        AttributeError, match=r"no attribute 'encode_single_token': in pybpe it is token_to_id\(token\)"
    ):
        tok.encode_single_token("a")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        tok.nonsense  # type: ignore[attr-defined]  # noqa: B018
    for owner, name, here in (
        (pybpe, "load", "module 'pybpe' has no attribute 'load': in pybpe it is Tokenizer.from_file(path)"),
        (pybpe, "encoding_for_model", "in pybpe it is get_encoding(name)"),
        (pybpe, "ArgumentError", "in pybpe it is errors, as in pybpe.errors.ArgumentError"),
        (tok, "from_pretrained", "'Tokenizer' object has no attribute 'from_pretrained': in pybpe it"),
        (pybpe.Tokenizer, "from_pretrained", "type object 'Tokenizer' has no attribute 'from_pretrained': in pybpe it"),
        (tok, "n_vocab", "in pybpe it is vocab_size"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(owner, name)
        assert here in str(caught.value)
        assert not hasattr(owner, name) and (owner is pybpe.Tokenizer or name not in dir(owner))


def test_every_hint_names_what_is_there() -> None:
    """The names from other libraries do not exist here, and each hint begins with a name that does."""
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])
    known = {**vars(pybpe.Tokenizer), **dict.fromkeys(dir(pybpe)), **dict.fromkeys(dir(tok))}
    for hint, names in _lazy._OURS.items():
        called = re.findall(r"(?<![\w'<|.])(?:pybpe\.|Tokenizer\.)?(\w+)\(", hint)
        assert set(called) <= {*known, "iter", "list"}, hint
        assert called or set(re.findall(r"\w+", hint)) & set(known), hint
        for name in names.split():
            assert not (hasattr(pybpe, name) and hasattr(tok, name)), name


@pytest.mark.parametrize(
    ("options", "special_ids"),
    [
        ({"pattern": "cl100k", "digits": 1, "normalizer": "NFC"}, "after_bytes"),
        ({"pattern": r"\w+|\s+|[^\w\s]+", "special_tokens": ["<s>", "</s>"], "end_of_text": "</s>"}, "last"),
        ({"pattern": "gpt2", "digits": "3-from-right", "special_tokens": []}, "first"),
    ],
)
def test_training_in_the_likeness_of_a_tokenizer_is_what_the_hint_says(
    options: dict[str, object], special_ids: str
) -> None:
    texts, given = ["a1b22 c333 é\u0301"], {"special_tokens": ["<|endoftext|>", "<x>"], **options}
    tok = pybpe.train(iter(texts), vocab_size=270, special_ids=special_ids, **given)
    with pytest.raises(AttributeError, match="in pybpe it is ") as caught:
        tok.train_new_from_iterator(texts, 270)  # type: ignore[attr-defined]
    code = str(caught.value).split("in pybpe it is ")[1]
    new = eval(code, {"pybpe": pybpe, "tok": tok, "texts": texts, "N": 270})
    assert new == tok and (new.pattern.digits, new.eot_token) == (tok.pattern.digits, tok.eot_token)


def test_what_is_given_beside_like_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, object] = {"pattern": "cl100k", "digits": 1, "normalizer": "NFC", "tie_break": "huggingface"}
    like = pybpe.train(iter(["a"]), vocab_size=258, special_tokens=["<a>", "<b>"], end_of_text="<b>", **given)
    like = like.replace(template="<a> $A", chat_template="{{ x }}", dropout=0.5)
    text = "a1b22 c333 e\u0301 abc abd " * 3
    kept = replace(pybpe.train(iter([text]), vocab_size=264, like=like).model, tokens=(), merges=(), training={})
    assert kept == replace(like.model, tokens=(), merges=(), training={})

    given = {"pattern": "gpt2", "normalizer": "NFKC", "tie_break": "lexicographic", "special_ids": "last"}
    plain = pybpe.train(iter([text]), vocab_size=264, special_tokens=["<a>", "<b>", "<c>"], end_of_text="<c>", **given)
    new = pybpe.train(
        iter([text]), vocab_size=264, like=like, special_tokens=["<c>", "<b>"], end_of_text="<c>", **given
    )
    assert new.special_tokens == {"<a>": 261, "<b>": 262, "<c>": 263}
    assert new.replace(template=None, chat_template=None, dropout=0).model == replace(plain.model, chat_template="")

    like.save(tmp_path / "like.json")
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    command = ["train", str(tmp_path / "text.txt"), "--like", str(tmp_path / "like.json"), "-o"]
    assert main([*command, str(tmp_path / "new.json"), "--vocab-size", "270"]) == 0
    assert pybpe.Tokenizer.from_file(tmp_path / "new.json") == pybpe.train(iter([text]), vocab_size=270, like=like)
    assert main([*command, str(tmp_path / "more.json"), "--sizes", "260,270"]) == 2
    assert "--sizes cannot be used with --like" in capsys.readouterr().err


def test_what_like_refuses(tok: pybpe.Tokenizer) -> None:
    superwords = pybpe.train(iter(["a b"]), vocab_size=258, superwords=True)
    for options, message in (
        ({"base": tok, "like": tok}, "like cannot be used with base"),
        ({"like": superwords}, "has superwords, so it does not record the pattern of words"),
        ({"like": tok, "special_tokens": {"<x>": 0}}, "pybpe chooses the ids here"),
        ({"like": "tok.json"}, "like must be a Tokenizer"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.train(iter(["a b"]), vocab_size=5000, **options)
    new = pybpe.train(iter(["a b a b"]), vocab_size=259, like=superwords, pattern="gpt2", superwords=True)
    assert new.pattern == superwords.pattern


def test_answers_do_not_get_in_the_way() -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])
    assert pickle.loads(pickle.dumps(pybpe.Tokenizer)) is pybpe.Tokenizer
    assert copy.deepcopy(pybpe.Tokenizer) is pybpe.Tokenizer
    assert "vocab" in inspect.signature(pybpe.Tokenizer).parameters and inspect.getdoc(pybpe.Tokenizer)
    assert isinstance(tok, pybpe.Tokenizer) and not isinstance(3, pybpe.Tokenizer)

    class Abstract(abc.ABC):
        @abc.abstractmethod
        def size(self) -> int: ...

    class Mine(pybpe.Tokenizer, Abstract):
        def size(self) -> int:
            return len(self)

    mine = Mine(tok.model.vocab, tok.merges, ["<|endoftext|>"])
    assert mine.size() == 257
    with pytest.raises(AttributeError, match="'Mine' object has no attribute 'encode_special': in pybpe"):
        mine.encode_special  # type: ignore[attr-defined]  # noqa: B018


def test_objects_say_what_they_are(tmp_path: Path) -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<|endoftext|>"])
    assert repr(tok) == "Tokenizer(vocab_size=257, merges=0, specials=1, pattern='gpt2')"
    stream = tok.decode_stream()
    stream.push(65)
    assert repr(stream) == f"DecodeStream(after 1 id of {tok!r})"
    windows = pybpe.loading.PackedSequences(numpy.arange(8, dtype=numpy.uint16), 3)
    assert repr(windows) == "PackedSequences(2 windows, sequence_length=3, stride=3)"
    assert repr(windows.stream) == "TokenStream(8 uint16 ids in 1 file)"
    (tmp_path / "a.txt").write_text("a text " * 100)
    manifest = pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", splits=(1, 1), split_by="token")
    assert f"; val: {manifest.split_tokens('val')} tokens, " in repr(manifest) and len(repr(manifest)) < 200
