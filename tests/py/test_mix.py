"""Mixtures: against a slow version on lists of documents, and through what reads the result."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, SPLITS, content, documents, jsonl, split_of_tokens, tokens_of
from reference import mixing as reference

import pybpe
from llmc_compat.check import check
from llmc_compat.shards import Batch
from pybpe.support.locking import FOLDER
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
    "phases": {
        "phases": [
            {"name": "first", "tokens": 9000, "sources": {"a": {"weight": 0.9}, "c": {"weight": 0.1}}},
            {"sources": {"b": {"epochs": 0.5}, "a": {"tokens": 300}}},
            {"name": "last", "tokens": 30_000, "sources": {"b": {"epochs": 1}, "a": {"weight": 1}, "c": {"weight": 1}}},
        ]
    },
}


def recipe_of(name: str, data: Path) -> dict[str, Any]:
    """Returns a recipe with the folders of its sources."""
    recipe = RECIPES[name]
    used = {source for phase in recipe.get("phases", [recipe]) for source in phase["sources"]}
    amounts = recipe.get("sources", {})
    sources = {source: {"data": str(data / source), **amounts.get(source, {})} for source in sorted(used)}
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


@pytest.mark.parametrize("name", ["half", "weights and tokens", "phases"])
def test_what_is_realized_is_within_a_sequence_of_what_is_asked(tok: pybpe.Tokenizer, data: Path, tmp_path: Path,
                                                                name: str) -> None:  # fmt: skip
    recipe = recipe_of(name, data)
    made = pybpe.mix(tok, recipe, tmp_path / "out", sequence_length=T)
    assert made.mixture is not None and made.mixture["seed"] == 0
    sizes = {source: Manifest.load(data / source).split_tokens("train") for source in recipe["sources"]}
    used: Counter[str] = Counter()
    for phase, asked in zip(made.mixture["phases"], reference.asked(recipe, sizes)):
        found = {source: facts["tokens"] for source, facts in phase["sources"].items()}
        assert {source: facts["asked"] for source, facts in phase["sources"].items()} == asked
        assert all(abs(found[source] - asked[source]) < T for source in asked)
        shares = [source for source in asked if source not in recipe.get("sources", {})
                  or "weight" in recipe["sources"][source]]  # fmt: skip
        if "phases" not in recipe:
            assert abs(sum(found[source] - asked[source] for source in shares)) < T
        used.update(found)
    for source, facts in made.mixture["sources"].items():
        assert facts["used"] == used[source] and facts["epochs"] == round(used[source] / sizes[source], 6)
    assert made.split_tokens("train") == sum(used.values())


def test_memory_and_workers_do_not_change_the_bytes(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mixed(name: str, **keywords: Any) -> dict[str, bytes]:
        given = {"sequence_length": T, "shard_tokens": 10_000, **keywords}
        pybpe.mix(tok, recipe_of("phases", data), tmp_path / name, **given)
        return content(tmp_path / name)

    expected = mixed("out", workers=1)
    assert mixed("workers", workers=3) == expected
    assert mixed("seed", seed=1) != expected
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    for memory in (20_000, 300_000):
        assert mixed(str(memory), memory_limit=memory) == expected
    monkeypatch.setattr(shuffling, "_TASK_TOKENS", 100)
    assert mixed("tasks", memory_limit=100_000) == expected


def test_texts_are_encoded_first(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'seed = 3\nsplits = [8, 1, 1]\n[sources.a]\ndata = "{data}/a"\nepochs = 1\n[sources.b]\ninputs = ["b.*"]\n'
        'split_by = "token"\nepochs = 2\n',
        encoding="utf-8",
    )
    (tmp_path / "b.jsonl").write_bytes((data / "b.jsonl").read_bytes())
    pybpe.binarize(tok, tmp_path / "b.jsonl", tmp_path / "b", split_by="token")
    pybpe.mix(tok, recipe, tmp_path / "out", sequence_length=T)
    sources = {"a": texts_of(data / "a", tok), "b": texts_of(tmp_path / "b", tok)}
    expected = reference.mixed(sources, {"sources": {"a": {"epochs": 1}, "b": {"epochs": 2}}}, 3, T)
    assert texts_of(tmp_path / "out", tok) == expected
    assert os.listdir(tmp_path / "out" / FOLDER) == [] if (tmp_path / "out" / FOLDER).exists() else True


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


def test_a_tokenizer_without_an_end_of_text_is_refused(data: Path, tmp_path: Path) -> None:
    nameless = pybpe.train(iter(["other"]), vocab_size=300)
    recipe = {"sources": {"x": {"data": str(data / "a"), "epochs": 1}}}
    for given, message in (({}, "no end of text"), ({"eot": "none"}, "no end of text, which must separate documents")):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.mix(nameless, recipe, tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()
