"""Mixtures: against a slow version on lists of documents, and through what reads the result."""

from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, SPLITS, content, documents, jsonl, split_of_tokens, tokens_of
from reference import mixing as reference

import pybpe
from llmc_compat.check import check
from llmc_compat.shards import Batch
from pybpe.tokens.formats import FORMATS
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.mix import mixing, shuffling
from pybpe.tokens.verification import dataset_statistics, verify

T = 64


@pytest.fixture(scope="module")
def data(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sources: llm.c's shards, nanoGPT's files, and one with documents from 1 token to 2000."""
    folder = tmp_path_factory.mktemp("mixture")
    texts = documents(330)
    (folder / "a.txt").write_text(EOT.join(texts[:160]), encoding="utf-8")
    (folder / "b.jsonl").write_bytes(jsonl(texts[160:280]))
    (folder / "c.txt").write_text(EOT.join([*texts[280:], "x", "Long. " * 900, "yes"]), encoding="utf-8")
    pybpe.binarize(tok, folder / "a.txt", folder / "a", shard_tokens=9000)
    pybpe.binarize(tok, folder / "b.jsonl", folder / "b", format="raw", dtype="uint32")
    pybpe.binarize(tok, folder / "c.txt", folder / "c", split_by="token", min_shard_tokens=0)
    return folder


def texts_of(folder: Path, tok: pybpe.Tokenizer) -> dict[str, list[list[int]]]:
    """Returns the documents of each split, without marks, in order."""
    manifest = Manifest.load(folder)
    form = FORMATS[str(manifest.settings["format"])]
    found: dict[str, list[list[int]]] = {}
    for split, records in manifest.shards.items():
        ids = [int(i) for r in records for block in form.read(str(folder / r.file), str(manifest.settings["dtype"]))
               for i in block]  # fmt: skip
        found[split] = [part for part in split_of_tokens(ids, tok.eot_token) if part]
    return found


RECIPES: dict[str, dict[str, Any]] = {
    "one source, shuffled": {"sources": {"a": {"epochs": 1}}},
    "half": {"sources": {"a": {"epochs": 0.5}, "c": {"epochs": 0.25}}},
    "repeated": {"sources": {"a": {"epochs": 2.5}, "b": {"tokens": "all"}, "c": {"epochs": 1}}},
    "weights": {"tokens": 30_000, "sources": {"a": {"weight": 0.6}, "b": {"weight": 0.3}, "c": {"weight": 0.1}}},
    "weights and tokens": {"tokens": 20_001, "sources": {"a": {"weight": 3}, "b": {"tokens": 777}, "c": {"weight": 1}}},
    "all": {
        "tokens": 75_000,
        "sources": {"b": {"epochs": 2.5}, "a": {"weight": 1}, "c": {"weight": 1, "max_epochs": 9}},
    },
}


def recipe_of(name: str, data: Path) -> dict[str, Any]:
    """Returns a recipe with the folders of its sources."""
    recipe = RECIPES[name]
    sources = {source: {"data": str(data / source), **amount} for source, amount in recipe["sources"].items()}
    return {**recipe, "sources": sources}


def slow(name: str, data: Path, tok: pybpe.Tokenizer, seed: int, tolerance: int) -> dict[str, list[Any]]:
    recipe = recipe_of(name, data)
    sources = {source: texts_of(data / source, tok) for source in recipe["sources"]}
    return reference.mixed(sources, recipe, seed, tolerance)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize(("tolerance", "memory", "format"), [(2, None, "megatron"), (T, 60_000, "llmc")])
def test_a_mixture_is_that_of_the_slow_version(
    tok: pybpe.Tokenizer,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    tolerance: int,
    memory: int | None,
    format: str,
) -> None:
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    expected = slow(name, data, tok, 5, tolerance)
    given: dict[str, Any] = {"shard_tokens": 10_000} if format == "llmc" else {"format": format, "eot": "append"}
    given |= {"sequence_length": tolerance, "memory_limit": memory}
    pybpe.mix(tok, recipe_of(name, data), tmp_path / "out", seed=5, **given)
    found = texts_of(tmp_path / "out", tok)
    assert {split: found.get(split, []) for split in SPLITS} == {**dict.fromkeys(SPLITS, []), **expected}
    assert verify(tmp_path / "out", tok)[1] == []


@pytest.mark.parametrize("name", ["half", "weights and tokens", "all"])
def test_what_is_realized_is_within_a_sequence_of_what_is_asked(tok: pybpe.Tokenizer, data: Path, tmp_path: Path,
                                                                name: str) -> None:  # fmt: skip
    recipe = recipe_of(name, data)
    made = pybpe.mix(tok, recipe, tmp_path / "out", sequence_length=T)
    assert made.mixture is not None and made.mixture["seed"] == 0
    sizes = {source: Manifest.load(data / source).split_tokens("train") for source in recipe["sources"]}
    asked, facts = reference.asked(recipe, sizes), made.mixture["sources"]
    assert {source: fact["asked"] for source, fact in facts.items()} == asked
    used = {source: fact["used"] for source, fact in facts.items()}
    assert all(abs(used[source] - asked[source]) < T for source in asked)
    shares = [source for source in asked if "weight" in recipe["sources"][source]]
    assert abs(sum(used[source] - asked[source] for source in shares)) < T
    assert all(fact["epochs"] == round(fact["used"] / sizes[source], 6) for source, fact in facts.items())
    assert made.split_tokens("train") == sum(used.values())
    assert made.split_documents("train") == sum(fact["used_documents"] for fact in facts.values())


def test_every_document_is_used_once_before_any_repeats(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    """And the sources keep their shares everywhere."""
    sources = {"a": {"data": str(data / "a"), "epochs": 3.4}, "b": {"data": str(data / "b"), "epochs": 2}}
    pybpe.mix(tok, {"sources": sources}, tmp_path / "out", sequence_length=2)
    found = [tuple(text) for text in texts_of(tmp_path / "out", tok)["train"]]
    for name in sources:
        own = list(map(tuple, texts_of(data / name, tok)["train"]))
        places = [place for place, text in enumerate(found) if text in set(own)]
        used = [found[place] for place in places]
        assert len(set(own)) == len(own)
        for at in range(0, len(used), len(own)):
            assert len(set(used[at : at + len(own)])) == len(used[at : at + len(own)])
        assert used[: len(own)] != used[len(own) : 2 * len(own)]
        half = sum(place < len(found) // 2 for place in places)
        assert abs(half / len(places) - 0.5) < 0.1


def test_memory_does_not_change_the_bytes(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mixed(name: str, **keywords: Any) -> dict[str, bytes]:
        given = {"sequence_length": T, "shard_tokens": 10_000, **keywords}
        pybpe.mix(tok, recipe_of("all", data), tmp_path / name, **given)
        return content(tmp_path / name)

    expected = mixed("out")
    assert mixed("seed", seed=1) != expected
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    for memory in (20_000, 300_000):
        assert mixed(str(memory), memory_limit=memory) == expected
    monkeypatch.setattr(shuffling, "_PART_TOKENS", 100)
    assert mixed("tasks", memory_limit=100_000) == expected


# ----------------------------------------------------------------------------------------------------
# What reads the result, and refusals


def test_llmc_can_train_on_it_packed_too(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    out, packed = tmp_path / "out", tmp_path / "packed"
    pybpe.mix(tok, recipe_of("weights", data), out, sequence_length=T, shard_tokens=10_000)
    tok.save(out / "tokenizer.bin")
    assert [finding for finding in check([out], Batch(4, T))[1] if finding.is_error] == []
    made = pybpe.pack(tok, out, packed, sequence_length=T)
    assert verify(packed, tok)[1] == [] and made.mixture == Manifest.load(out).mixture
    assert dataset_statistics(packed)["train"].documents == Manifest.load(out).split_documents("train")
    assert len(tokens_of(packed, "train")) >= len(tokens_of(out, "train"))


def test_a_tokenizer_without_an_end_of_text_mixes_documents_with_a_mark_that_was_named(tmp_path: Path) -> None:
    nameless, text = pybpe.train(iter(["other"]), vocab_size=300, special_tokens=["<s>"]), tmp_path / "a.jsonl"
    text.write_bytes(jsonl(documents(40)))
    for name, eot in (("bare", "none"), ("marked", "<s>")):
        pybpe.binarize(nameless, text, tmp_path / name, eot=eot, splits=(1,), min_shard_tokens=0)
    recipes = {name: {"sources": {"x": {"data": str(tmp_path / name), "epochs": 1}}} for name in ("bare", "marked")}
    with pytest.raises(pybpe.errors.ArgumentError, match="has no end of text between documents"):
        pybpe.mix(nameless, recipes["bare"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert pybpe.mix(nameless, recipes["marked"], tmp_path / "out").split_documents("train") == 40
