"""prepare: it trains on the train split only, as `train` would, and refuses bad arguments before it trains."""

import json
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from corpora import content, small_tokenizer
from texts import english

import pybpe
from pybpe.errors import Error, PybpeWarning, ShardTooSmallError
from pybpe.model import CONTROL_TOKENS
from pybpe.reading.planning import hash_split
from pybpe.tokens import binarization, preparation


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(english()[:20_000], encoding="utf-8")
    return path


@pytest.mark.parametrize("normalizer", [None, "NFC"])
@pytest.mark.parametrize("kind", ["special", "line", "jsonl", "both"])
def test_the_tokenizer_is_that_of_the_train_split(tmp_path: Path, kind: str, normalizer: str | None) -> None:
    """Texts may spell control tokens: pybpe cuts a plain text there, but in a record they are ordinary text."""
    texts = [f"<|user|>{english()[i : i + 90]}<|im_end|>".replace("\n", " ") for i in range(0, 45_000, 90)]
    train_texts = [text for text in texts if hash_split(text.encode(), (2, 1)) == 0]
    assert 200 < len(train_texts) < 400
    for folder, some in (("all", texts), ("train", train_texts)):
        (tmp_path / folder).mkdir()
        if kind in ("jsonl", "both"):
            records = "".join(json.dumps({"text": text}) + "\n" for text in some)
            (tmp_path / folder / "a.jsonl").write_text(records)
        if kind != "jsonl":
            (tmp_path / folder / "b.txt").write_text(("\n" if kind == "line" else "<|endoftext|>").join(some))
    settings: dict[str, Any] = {"vocab_size": 500, "min_frequency": 2, "normalizer": normalizer}
    documents = "line" if kind == "line" else "auto"
    tok, _ = pybpe.prepare(tmp_path / "all" / "*", tmp_path / "out", splits=(2, 1), documents=documents, **settings)
    expected = pybpe.train(tmp_path / "train" / "*", special_tokens=CONTROL_TOKENS, **settings)
    assert tok.merges == expected.merges and tok.model.normalizer == normalizer and tok.vocab_size == 500
    everything = pybpe.train(tmp_path / "all" / "*", special_tokens=CONTROL_TOKENS, **settings)
    assert everything.merges != tok.merges


def test_any_number_of_workers_and_an_executor_make_the_same_files(tmp_path: Path, small_tasks: None) -> None:
    (tmp_path / "in").mkdir()
    texts = [english()[i : i + 200] for i in range(0, 40_000, 200)]
    (tmp_path / "in" / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (tmp_path / "in" / "b.txt").write_text("<|endoftext|>".join(texts[::-1]))
    for workers in (1, 4):
        pybpe.prepare(tmp_path / "in" / "*", tmp_path / f"{workers}", vocab_size=500, workers=workers)
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as processes:
        pybpe.prepare(tmp_path / "in" / "*", tmp_path / "processes", vocab_size=500, executor=processes, workers=2)
    expected = content(tmp_path / "1")
    assert all(content(tmp_path / name) == expected for name in ("4", "processes")) and len(expected) == 6


@pytest.mark.parametrize("settings", [{}, {"vocab_size": 401}, {"pattern": "cl100k"}])
def test_a_run_that_died_while_it_encoded(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    def died(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    settings = {"vocab_size": 400, **settings}
    pybpe.prepare(corpus, tmp_path / "undisturbed", **settings)
    with monkeypatch.context() as patch:
        patch.setattr(binarization, "write_token_files", died)
        with pytest.raises(KeyboardInterrupt):
            pybpe.prepare(corpus, tmp_path / "out", vocab_size=400)
    pybpe.prepare(corpus, tmp_path / "out", **settings)
    assert content(tmp_path / "out") == content(tmp_path / "undisturbed")  # the hidden folder is removed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "csv"}, "format must be one of"),
        ({"split_by": "line"}, "split_by must be one of"),
        ({"vocab_size": 100}, "vocab_size 100 is too small"),
        ({"pattern": "("}, "not a valid regular expression"),
        ({"normalizer": "NFD"}, "normalizer must be"),
        ({"documents": "page"}, "documents must be one of"),
        ({"documents": "special", "special_tokens": ()}, "no end of text"),
        ({"special_tokens": ["</s>"]}, "no end of text"),
        ({"end_of_text": "</s>"}, "not among the special tokens"),
        ({"name": "../corpus"}, "name must be a file-name prefix"),
        ({"shard_tokens": 0}, "shard_tokens must be at least 1"),
        ({"shard_tokens": 1 << 31}, "would exceed 2147483647 bytes, beyond which llm.c"),
        ({"min_shard_tokens": -1}, "min_shard_tokens must be at least 0"),
        ({"format": "webdataset"}, "format='webdataset' is for rows, which `pybpe pack` makes"),
        ({"format": "bin"}, "format must be one of llmc, raw, npy, megatron, llmq, not"),
    ],
)
def test_what_no_training_can_mend_is_refused_before_it(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], message: str
) -> None:
    def count(*_: object, **__: object) -> None:
        raise AssertionError("counted for nothing")

    monkeypatch.setattr(preparation, "count_plan", count)
    with pytest.raises(Error, match=message):
        pybpe.prepare(corpus, tmp_path / "out", **{"vocab_size": 300, **settings})
    assert not (tmp_path / "out").exists()


def test_a_size_that_training_cannot_reach_brings_no_warning_of_32_bits(corpus: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tok, _ = pybpe.prepare(
            corpus, tmp_path / "out", vocab_size=70_000, min_shard_tokens=0, special_tokens=CONTROL_TOKENS
        )
    assert tok.vocab_size < 1 << 16 and not any("32 bits" in str(each.message) for each in caught)


def test_a_run_that_fails_leaves_the_tokenizer_that_fits_the_shards(corpus: Path, tmp_path: Path) -> None:
    pybpe.prepare(corpus, tmp_path / "out", vocab_size=400)
    before = content(tmp_path / "out")
    with pytest.raises(pybpe.errors.LimitError):
        pybpe.prepare(corpus, tmp_path / "out", vocab_size=300, min_shard_tokens=10**6, force=True)
    found = content(tmp_path / "out")
    assert {name: data for name, data in found.items() if not name.startswith(".pybpe-unfinished/")} == before
    assert pybpe.prepare(corpus, tmp_path / "out", vocab_size=400) and content(tmp_path / "out") == before  # given up


# ------------------------------------------------------------------------------------------------------
# Few documents


def books(folder: Path, count: int) -> Path:
    folder.mkdir()
    for i in range(count):
        (folder / f"{i}.txt").write_text(english()[i * 30_000 : (i + 1) * 30_000], encoding="utf-8")
    return folder


def test_shares_that_come_out_otherwise_are_said_with_figures(tmp_path: Path) -> None:
    """Uses three books whose hashes put one into each split."""
    (tmp_path / "in").mkdir()
    for split in range(3):
        text = english()[split * 30_000 :][:30_000]
        endings = (f"{text}{number}" for number in range(1000))
        book = next(text for text in endings if hash_split(text.encode(), (8.0, 1.0, 1.0)) == split)
        (tmp_path / "in" / f"{split}.txt").write_text(book, encoding="utf-8")
    for call in (
        lambda: pybpe.prepare(tmp_path / "in" / "*", tmp_path / "out", vocab_size=400, split_by="hash"),
        lambda: pybpe.binarize(small_tokenizer(), tmp_path / "in", tmp_path / "out2", split_by="hash"),
    ):
        with pytest.warns(
            PybpeWarning, match=r"33% train \(80%\), 33% val \(10%\), 33% test \(10%\); .*split_by='token'"
        ):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pybpe.prepare(tmp_path / "in" / "*", tmp_path / "out3", vocab_size=400)


def test_a_split_without_a_document_is_refused(tmp_path: Path) -> None:
    for call in (
        lambda: pybpe.prepare(books(tmp_path / "a", 2), tmp_path / "out", vocab_size=400, split_by="hash"),
        lambda: pybpe.binarize(small_tokenizer(), books(tmp_path / "b", 2), tmp_path / "out", split_by="hash"),
    ):
        with pytest.raises(pybpe.errors.ShardTooSmallError, match="would have 0 tokens, .*split_by='token'"):
            call()
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".pybpe-unfinished"]
    with pytest.warns(PybpeWarning, match="differ from those requested"):  # allowed if asked for
        pybpe.binarize(small_tokenizer(), tmp_path / "a", tmp_path / "empty", min_shard_tokens=0, split_by="hash")


def test_shares_far_from_those_requested_are_said(tmp_path: Path) -> None:
    """However many documents there are: one can take much of the text, as can a cluster of near duplicates."""
    long = next(f"{i} " * 9000 for i in range(1000) if hash_split((f"{i} " * 9000).encode(), (8.0, 1.0, 1.0)) == 1)
    for count, told in ((20, 1), (250, 1), (3000, 0)):
        texts = [long if told else "", *(f"{i} " * 20 for i in range(count))]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            given: dict[str, Any] = {"split_by": "hash", "min_shard_tokens": 0}
            pybpe.binarize(small_tokenizer(), tmp_path / "a.jsonl", tmp_path / str(count), **given)
        assert sum("shares of the splits differ" in str(each.message) for each in caught) == told


def test_few_documents_are_split_by_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A note says so, and the manifest records it. Token files that are replaced keep their way of splitting."""
    tok, given = small_tokenizer(), {"min_shard_tokens": 0, "name": "x"}
    with caplog.at_level("INFO", "pybpe"):
        made = pybpe.binarize(tok, books(tmp_path / "in", 3), tmp_path / "auto", **given)
    assert [
        message
        for message in caplog.messages
        if "3 documents, too few to give each split whole ones, so pybpe cuts" in message
    ]
    assert made.settings["split_by"] == "token" and made.text_bytes["val"] > 0.08 * sum(made.text_bytes.values())
    pybpe.binarize(tok, tmp_path / "in", tmp_path / "token", split_by="token", **given)
    assert content(tmp_path / "auto") == content(tmp_path / "token")
    pybpe.binarize(tok, tmp_path / "in", tmp_path / "auto", split_by="token", **given)  # is an equal call
    assert pybpe.binarize(tok, tmp_path / "in", tmp_path / "one", splits=(1,), **given).settings["split_by"] == "hash"
    for count, way in ((199, "token"), (200, "hash")):
        lines = [json.dumps({"text": f"{i} words " * 20}) for i in range(count)]
        (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n\n{")
        skipping = {**given, "on_error": "skip"}
        with pytest.warns(PybpeWarning, match="skipped"):
            fresh = pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / str(count), **skipping)
        with pytest.warns(PybpeWarning, match="skipped"):
            grown = pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / "199", force=True, **skipping)
        assert fresh.settings["split_by"] == way and grown.settings["split_by"] == "token"
    (tmp_path / "b.txt").write_text("<|endoftext|>".join(f"text {i}" for i in range(300)))
    assert pybpe.binarize(tok, tmp_path / "b.txt", tmp_path / "marks", **given).settings["split_by"] == "hash"


def test_one_text_is_cut_in_order_and_a_note_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A hash could give it only to one split. Its note does not promise to keep it whole."""
    tok, given = small_tokenizer(), {"min_shard_tokens": 0, "name": "x"}
    (tmp_path / "a.txt").write_text("some words " * 1000)
    for way, told in (("auto", "1 document, too few to give"), ("hash", "1 document, so pybpe cuts it in order")):
        caplog.clear()
        with caplog.at_level("INFO", "pybpe"):
            made = pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / way, split_by=way, **given)
        assert sum(told in message for message in caplog.messages) == 1
        assert "keep documents whole" not in caplog.text and all(made.text_bytes.values())
    (tmp_path / "a.jsonl").write_text('{"text": "one record"}\n')  # which may get more
    caplog.clear()
    with caplog.at_level("INFO", "pybpe"), pytest.warns(PybpeWarning, match="shares of the splits differ|empty"):
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / "records", split_by="hash", **given)
    assert "cuts it in order" not in caplog.text


def test_one_huge_text_among_many_is_split_by_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever its hash would put it, if the other splits then had too little, or that split too much."""
    tok, given = small_tokenizer(), {"min_shard_tokens": 0, "name": "x"}
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(250):
        (folder / f"{i:03}.txt").write_text(f"text {i} " * 20)
    texts = {
        split: next(
            f"{i} " * size for i in range(1000) if hash_split((f"{i} " * size).encode(), (8.0, 1.0, 1.0)) == split
        )
        for split, size in ((0, 1000), (1, 9000), (2, 9000))
    }
    for huge, way in (
        ("x", "hash"),
        (texts[0], "hash"),
        (texts[0] * 60, "token"),
        (texts[1], "token"),
        (texts[2], "token"),
    ):
        for joined in (False, True):
            path = folder / "huge.txt"
            path.write_text("short<|endoftext|>" * joined + huge + "<|endoftext|>last" * joined)
            caplog.clear()
            with caplog.at_level("INFO", "pybpe"):
                made = pybpe.binarize(tok, folder, tmp_path / "out", **given)
            told = [each for each in caplog.messages if "huge.txt: one document is so large that" in each]
            assert (made.settings["split_by"], len(told)) == (way, way == "token")
            (tmp_path / "out").rename(tmp_path / f"out{len(list(tmp_path.iterdir()))}")
    with pytest.warns(PybpeWarning, match="the shares of the splits differ"):
        pybpe.binarize(tok, folder, tmp_path / "out", split_by="hash", **given)


def test_more_text_is_only_advised_where_no_other_split_would_do(tmp_path: Path) -> None:
    for words, advice in (
        (1200, r"use other splits .*, or use split_by='token', or allow"),
        (100, "add more text, or allow"),
    ):
        (tmp_path / "a.txt").write_text("word " * words)
        with pytest.raises(ShardTooSmallError, match=f"needs at least 257 in every shard: {advice}"):
            pybpe.binarize(small_tokenizer(), tmp_path / "a.txt", tmp_path / "out")


def test_one_novel_needs_no_option(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(english()[:40_000], encoding="utf-8")
    manifest = pybpe.prepare(tmp_path / "a.txt", tmp_path / "out", vocab_size=400)[1]
    assert manifest.settings["split_by"] == "token" and min(map(manifest.split_tokens, manifest.shards)) > 1000
