"""Recipes: what they may contain, what they ask, and what is refused before any work."""

import gzip
import json
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, documents, small_tokenizer
from reference import mixing as reference

import pybpe
from pybpe.cli import main
from pybpe.tokens.mix.amounts import asked_tokens
from pybpe.tokens.mix.recipe import load_recipe


def of(**content: Any) -> dict[str, Any]:
    """Returns a recipe whose sources have folders, if it does not say so."""
    sources = {name: {"data": name, **source} for name, source in content.get("sources", {}).items()}
    return {**content, "sources": sources}


A, B = {"weight": 1}, {"epochs": 2}


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({}, "sources: must be a table with at least one source"),
        ({"sources": {}}, "sources: must be a table with at least one source"),
        ({"source": {"a": {}}}, "source: is unknown here; known are seed, tokens"),
        ({"sources": {"a": 1}}, "sources.a: must be a table"),
        ({"sources": {"a": {"epochs": 1}}}, "sources.a: needs either data"),
        ({"sources": {"a": {"data": "a", "inputs": "b", "epochs": 1}}}, "sources.a: needs either data"),
        ({"sources": {"a": {"data": ["a"], "epochs": 1}}}, "must be paths"),
        ({"sources": {"a": {"inputs": "-", "epochs": 1}}}, "must be paths"),
        ({"sources": {"a": {"inputs": [], "epochs": 1}}}, "inputs is empty"),
        ({"sources": {"a": {"inputs": "a", "epochs": 1, "documents": "page"}}}, "documents must be one of"),
        ({"sources": {"a": {"inputs": "a", "epochs": 1, "split_by": "page"}}}, "split_by must be one of"),
        ({"sources": {"a": {"inputs": "a", "epochs": 1}}, "splits": [0, 1]}, "splits must be"),
        (of(sources={"a": {"epochs": 1, "documents": "line"}}), "sources.a.documents: is only for inputs"),
        (of(sources={"a": B}, splits=[1]), "splits: is only for inputs"),
        (of(sources={"a": {}}), "sources.a: needs one of weight, tokens or epochs, but has none"),
        (of(sources={"a": {"epochs": 1, "weight": 1}}), "but has weight and epochs"),
        (of(sources={"a": {"wieght": 1}}), "sources.a.wieght: is unknown here; known are data, inputs"),
        (of(sources={"a": {"epochs": 0}}), "sources.a.epochs: must be a number above 0, not 0"),
        (of(sources={"a": {"epochs": True}}), "must be a number above 0, not True"),
        (of(sources={"a": {"epochs": float("inf")}}), "must be a number above 0, not inf"),
        (of(sources={"a": {"weight": "all"}}), "must be a number above 0, not 'all'"),
        (of(sources={"a": {"tokens": 1.5}}), "sources.a.tokens: must be an integer above 0, not 1.5"),
        (of(sources={"a": {"tokens": 0}}), "must be an integer above 0, not 0"),
        (of(sources={"a": A}, tokens=0), "tokens: must be an integer above 0"),
        (of(sources={"a": B}, seed=0.5), "seed: must be an integer, not 0.5"),
        (of(sources={"a": B}, seed=True), "seed: must be an integer, not True"),
        (of(sources={"a": {}}, phases={}), "phases: must be a list of tables"),
        (of(sources={"a": {}}, phases=[]), "phases: must be a list of tables"),
        (of(sources={"a": {}}, phases=[{"sources": {}}]), r"phases\[1\].sources: must be a table"),
        (of(sources={"a": {}}, phases=[{"sources": {"b": A}}]), "there is no source 'b'"),
        (of(sources={"a": {}}, phases=[{"sources": {"a": {"data": "a"}}}]), r"phases\[1\].sources.a.data: is unknown"),
        (of(sources={"a": {}}, phases=[{"name": 1, "sources": {"a": B}}]), r"phases\[1\].name: must be a string"),
        (of(sources={"a": {}}, phases=[{"sources": {"a": B}}], tokens=5), "tokens: each phase has its own"),
        (of(sources={"a": B}, phases=[{"sources": {"a": B}}]), "sources.a.epochs: write amounts in the phases"),
        (of(sources={"a": {}, "b": {}}, phases=[{"sources": {"a": B}}]), "sources.b: no phase uses it"),
    ],
)
def test_what_is_not_a_recipe_is_refused(recipe: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=rf"recipe.*{message}"):
        pybpe.mix(small_tokenizer(), recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_toml_are_refused(tmp_path: Path) -> None:
    for content in (b"sources = [", b"\xff\xfe", b"x" * 1000):
        (tmp_path / "recipe.toml").write_bytes(content)
        with pytest.raises(pybpe.errors.FormatError, match="recipe.toml: not a TOML file"):
            load_recipe(tmp_path / "recipe.toml")
    with pytest.raises(pybpe.errors.FileError, match="none.toml"):
        load_recipe(tmp_path / "none.toml")


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "a[1]").mkdir()
    path = tmp_path / "a[1]" / "recipe.toml"
    path.write_text('[sources.x]\ndata = "d"\nepochs = 1\n[sources.y]\ninputs = ["*.txt", "/z.txt"]\nepochs = "all"\n')
    x, y = load_recipe(path).sources
    assert x.data == str(tmp_path / "a[1]" / "d")
    assert y.inputs == (str(tmp_path / "a[[]1]" / "*.txt"), "/z.txt")
    assert load_recipe(path).phases[0].amounts["y"].value == 1
    path.write_text(
        '[sources.x]\ninputs = "https://host/x.txt"\nepochs = 1\n[sources.y]\ninputs = "name.txt"\nepochs = 1\n'
    )
    x, y = load_recipe(path).sources
    assert x.inputs == ("https://host/x.txt",) and y.inputs == (str(tmp_path / "a[1]" / "name.txt"),)
    assert x.split.splits == y.split.splits == (8, 1, 1)


def test_seeds_and_defaults() -> None:
    recipe = load_recipe(of(sources={"a": B}))
    assert recipe.seed == 0 and recipe.with_seed(None) is recipe
    other = recipe.with_seed(7)
    assert other.seed == 7 and other.content == {**recipe.content, "seed": 7}
    assert load_recipe(of(sources={"a": B}, seed=-3)).seed == -3
    (source,) = recipe.sources
    assert source.max_epochs == 4 and not source.limits_epochs
    (source,) = load_recipe(of(sources={"a": {**B, "max_epochs": 1.5}})).sources
    assert source.max_epochs == 1.5 and source.limits_epochs
    assert load_recipe(of(sources={"a": A}, tokens=1)).phases[0].tokens == 1


def test_the_manifest_gets_json_without_secrets() -> None:
    sources = {"a": {"data": Path("x"), "epochs": 1}, "b": {"inputs": ["https://me:word@host/x.txt"], "epochs": 1}}
    assert load_recipe({"sources": sources}).content == {
        "sources": {"a": {"data": "x", "epochs": 1}, "b": {"inputs": ["https://host/x.txt"], "epochs": 1}}
    }


# ----------------------------------------------------------------------------------------------------
# Amounts


def random_recipe(rng: random.Random) -> dict[str, Any]:
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    phases = []
    for _ in range(rng.randint(1, 3)):
        some = rng.sample(names, rng.randint(1, len(names)))
        phases.append({"sources": {name: _amount(rng) for name in some}})
        if any("weight" in amount for amount in phases[-1]["sources"].values()):
            phases[-1]["tokens"] = rng.randint(5000, 100_000)
    used = {name for phase in phases for name in phase["sources"]}
    return of(sources={name: {} for name in names if name in used}, phases=phases)


def _amount(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["weight", "tokens", "epochs"])
    if kind == "tokens":
        return {kind: rng.choice(["all", rng.randint(1, 1000)])}
    return {kind: rng.choice([1, 2.5, 0.1, 0.3, round(rng.uniform(0.01, 2), 3)])}


def test_random_recipes_ask_what_the_slow_version_asks() -> None:
    rng = random.Random(1)
    fits = 0
    for _ in range(120):
        content = random_recipe(rng)
        sizes = {name: rng.randint(100, 20_000) for name in content["sources"]}
        try:
            found = asked_tokens(load_recipe(content), sizes)
        except pybpe.errors.LimitError:
            continue
        except pybpe.errors.ArgumentError as error:
            assert "already have" in str(error)
            continue
        assert found == reference.asked(content, sizes)
        fits += 1
        for phase, amounts in zip(content["phases"], found):
            assert "tokens" not in phase or sum(amounts.values()) == phase["tokens"]
    assert fits > 25


def test_the_largest_amount_that_is_named_fits_and_one_percent_more_does_not() -> None:
    rng = random.Random(2)
    named = 0
    for _ in range(200):
        content = random_recipe(rng)
        sizes = {name: rng.randint(100, 5000) for name in content["sources"]}
        try:
            asked_tokens(load_recipe(content), sizes)
        except pybpe.errors.LimitError as error:
            found = re.search(r"phase phase (\d): .* the largest tokens that fits is (\d+)", str(error))
            if found is None:
                continue
            phase = content["phases"][int(found[1]) - 1]
            phase["tokens"] = int(found[2])
            only = _only_fault(content, sizes)
            assert only is None or only != int(found[1]), "the named amount must fit"
            phase["tokens"] = int(found[2]) * 101 // 100 + 3
            assert _only_fault(content, sizes) is not None
            named += 1
        except pybpe.errors.ArgumentError:
            continue
    assert named > 12


def _only_fault(content: dict[str, Any], sizes: dict[str, int]) -> int | None:
    """Returns the number of the phase that a refusal names, or None."""
    try:
        asked_tokens(load_recipe(content), sizes)
    except pybpe.errors.LimitError as error:
        found = re.search(r"phase phase (\d)", str(error))
        return int(found[1]) if found else -1
    return None


def test_impossible_amounts_are_refused() -> None:
    def refused(kind: type[pybpe.Error], message: str, **content: Any) -> None:
        with pytest.raises(kind, match=message):
            asked_tokens(load_recipe(of(**content)), dict.fromkeys(content["sources"], 1000))

    refused(pybpe.errors.ArgumentError, "add tokens to the recipe", sources={"a": A})
    refused(
        pybpe.errors.ArgumentError, "1000 tokens together, not 999: remove", sources={"a": {"epochs": 1}}, tokens=999
    )
    refused(pybpe.errors.ArgumentError, "already have 2000 tokens", sources={"a": A, "b": B}, tokens=2000)
    refused(pybpe.errors.LimitError, "the largest tokens that fits is 4000", sources={"a": A}, tokens=4001)
    refused(pybpe.errors.LimitError, "the largest amount of it that fits is 4000", sources={"a": {"tokens": 4001}})
    refused(pybpe.errors.LimitError, "that fits is 1000", sources={"a": {"epochs": 1.001, "max_epochs": 1}})
    sources = {"a": {"weight": 0.3}, "b": {"weight": 0.7, "max_epochs": 1}}
    refused(
        pybpe.errors.LimitError, "source b has 1000 tokens, and 7000 .* fits is 1429", sources=sources, tokens=10_000
    )
    assert asked_tokens(load_recipe(of(sources={"a": {"epochs": 100}})), {"a": 10}) == [{"a": 1000}]
    phases = [{"sources": {"a": A, "b": A}, "tokens": 20_000}, {"sources": {"b": {"tokens": 3000}}}]
    refused(pybpe.errors.LimitError, "phase 1: the source a .* fits is 2000", sources={"a": {}, "b": {}}, phases=phases)
    phases = [{"sources": {"a": A}, "tokens": 20_000}, {"sources": {"b": {"tokens": 5}}}]
    refused(
        pybpe.errors.LimitError,
        "phase 1: the source a has 1000 tokens, and 20000 are .* fits is 4000",
        sources={"a": {}, "b": {}},
        phases=phases,
    )
    phases = [{"sources": {"b": {"tokens": 5000}}}, {"sources": {"a": A, "b": A}, "tokens": 20_000}]
    refused(pybpe.errors.LimitError, "times as many: raise", sources={"a": {}, "b": {}}, phases=phases)
    for first, advice in ((4000, "times as many: raise"), (3999, "the largest amount of it that fits is 1 token;")):
        phases = [{"sources": {"a": {"tokens": first}}}, {"sources": {"a": {"tokens": 100}}}]
        refused(pybpe.errors.LimitError, advice, sources={"a": {}}, phases=phases)
    assert asked_tokens(load_recipe(of(sources={"a": {"tokens": 1}})), {"a": 10}) == [{"a": 1}]
    with pytest.raises(pybpe.errors.LimitError, match="the source a has no tokens"):
        asked_tokens(load_recipe(of(sources={"a": B})), {"a": 0})
    assert Fraction("0.1") == load_recipe(of(sources={"a": {"epochs": 0.1}})).phases[0].amounts["a"].value


# ----------------------------------------------------------------------------------------------------
# Plans


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = documents(300)
    (tmp_path / "text.txt").write_text(EOT.join(texts[:150]), encoding="utf-8")
    (tmp_path / "b.txt").write_text(EOT.join(texts[150:]), encoding="utf-8")
    pybpe.binarize(small_tokenizer(), tmp_path / "b.txt", tmp_path / "data")
    small_tokenizer().save(tmp_path / "tok.json")
    (tmp_path / "recipe.toml").write_text(
        'tokens = 50_000\nsplits = [8, 1, 1]\n[sources.data]\ndata = "data"\nepochs = 1.5\n'
        '[sources.text]\ninputs = "text.txt"\nweight = 1\n'
    )
    return tmp_path


def test_a_plan_estimates_texts(folder: Path) -> None:
    tok = small_tokenizer()
    plan = pybpe.plan_mix(tok, folder / "recipe.toml")
    manifest = pybpe.Manifest.load(folder / "data")
    data, text = plan.sources["data"], plan.sources["text"]
    assert data.tokens == manifest.split_tokens("train") and not data.is_estimate and round(data.epochs, 4) == 1.5
    exact = pybpe.binarize(tok, folder / "text.txt", folder / "exact").split_tokens("train")
    assert text.is_estimate and abs(text.tokens - exact) < 0.15 * exact
    assert plan.tokens == 50_000 and plan.phases == [("train", {"data": data.asked, "text": text.asked})]
    assert not (folder / "mixed").exists()


def test_sources_with_the_same_text_or_other_splits_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(EOT.join(documents(50)), encoding="utf-8")
    (tmp_path / "b.txt").write_text(EOT.join(documents(80)[50:]), encoding="utf-8")
    (tmp_path / "hard.txt").hardlink_to("a.txt")
    tok = small_tokenizer()
    pybpe.binarize(tok, "./a.txt", "folder", min_shard_tokens=0)
    pybpe.binarize(tok, "b.txt", "others", splits=(9, 1), min_shard_tokens=0)
    pybpe.binarize(tok, "b.txt", "equal", splits=(80, 10, 10), min_shard_tokens=0)
    text, shared = {"inputs": "a.txt"}, "documents would occur twice"
    for a, b, message in (
        (text, {"inputs": "a*.txt"}, shared),
        (text, {"inputs": "hard.txt"}, shared),
        (text, {"data": "folder"}, shared),
        ({"data": "folder"}, {"data": "./folder"}, shared),
        ({"inputs": ["a.txt", "./hard.txt"]}, {"inputs": "b.txt"}, "./hard.txt: the same file as a.txt"),
        ({"data": "folder"}, {"data": "others"}, "their splits differ"),
        (text, {"data": "others"}, "their splits differ"),
    ):
        recipe = {"sources": {"a": {"epochs": 1, **a}, "b": {"epochs": 1, **b}}}
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.mix(tok, recipe, "out")
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.plan_mix(tok, recipe)
    assert not (tmp_path / "out").exists()
    pybpe.plan_mix(tok, {"sources": {"a": {"data": "folder", "epochs": 1}, "b": {"data": "equal", "epochs": 1}}})


@pytest.mark.parametrize("documents", ["file", "blank", "line"])
def test_many_small_files_are_estimated(folder: Path, documents: str) -> None:
    tok = small_tokenizer()
    (folder / "many").mkdir()
    for number in range(300):
        (folder / "many" / f"{number}.txt").write_text(f"{number} line\n\nanother line\n" * (number % 7 + 1))
    recipe = {"sources": {"x": {"inputs": str(folder / "many"), "documents": documents, "epochs": 1}}, "splits": [1]}
    plan = pybpe.plan_mix(tok, recipe)
    exact = pybpe.binarize(tok, folder / "many", folder / "e", splits=(1,), documents=documents).tokens
    assert abs(plan.sources["x"].tokens - exact) < 0.15 * exact


def test_an_impossible_recipe_is_refused_before_its_texts_are_encoded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybpe.tokens.mix.sources.binarize", None)
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("50_000", "500_000"))
    for call in (lambda: pybpe.mix(small_tokenizer(), recipe, folder / "out"),
                 lambda: pybpe.plan_mix(small_tokenizer(), recipe)):  # fmt: skip
        with pytest.raises(pybpe.errors.LimitError, match=r"largest tokens that fits .*estimated from samples: text"):
            call()
    assert not (folder / "out").exists()


def test_compressed_texts_have_no_plan(folder: Path) -> None:
    (folder / "t.txt.gz").write_bytes(gzip.compress((folder / "text.txt").read_bytes()))
    recipe = {"sources": {"x": {"inputs": str(folder / "t.txt.gz"), "epochs": 1}}, "splits": [1]}
    with pytest.raises(pybpe.errors.ArgumentError, match=r"sources.x: .*compressed.* not known before it is read"):
        pybpe.plan_mix(small_tokenizer(), recipe)
    assert pybpe.mix(small_tokenizer(), recipe, folder / "out").split_documents("train") == 150


def test_the_command_line_plans_mixes_and_compares(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mix", str(folder / "recipe.toml"), "-t", str(folder / "tok.json")]
    assert main([*command, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "source data: " in shown and "used 1.5 times" in shown and "source text: about" in shown
    assert main([*command, "--dry-run", "--json"]) == 0
    assert round(json.loads(capsys.readouterr().out)["sources"]["data"]["epochs"], 4) == 1.5
    assert main(command) == 2
    assert "-o" in capsys.readouterr().err
    assert main([*command, "-o", str(folder / "out"), "--seed", "4", "--sequence-length", "64"]) == 0
    shown = capsys.readouterr().out
    assert "phase train, 50000 tokens asked:" in shown and "source data: " in shown
    assert main(["inspect", str(folder / "out")]) == 0
    assert "source data: " in capsys.readouterr().out
    assert main(["inspect", str(folder / "out"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["mixture"]
    assert facts["seed"] == 4 and round(facts["sources"]["data"]["epochs"], 2) == 1.5
    assert abs(sum(part["tokens"] for part in facts["phases"][0]["sources"].values()) - 50_000) < 128
