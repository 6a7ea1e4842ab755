"""Recipes: what they may contain, what they ask, and what is refused before any work."""

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
from pybpe.tokens.mix.recipe import asked_tokens, load_recipe


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
        ({"sources": {"a": {"epochs": 1}}}, "sources.a: needs data, a folder that binarize wrote"),
        ({"sources": {"a": {"data": ["a"], "epochs": 1}}}, "data must be a path"),
        (
            {"sources": {"a": {"inputs": "b", "epochs": 1}}},
            "sources.a.inputs: is unknown here; known are data, max_epochs",
        ),
        (of(sources={"a": {}}), "sources.a: needs one of weight, tokens or epochs, but has none"),
        (of(sources={"a": {"epochs": 1, "weight": 1}}), "but has weight and epochs"),
        (of(sources={"a": {"wieght": 1}}), "sources.a.wieght: is unknown here; known are data, max_epochs"),
        (of(sources={"a": {"epochs": 0}}), "sources.a.epochs: must be a number above 0, not 0"),
        (of(sources={"a": {"epochs": True}}), "must be a number above 0, not True"),
        (of(sources={"a": {"epochs": float("inf")}}), "must be a number above 0, not inf"),
        (of(sources={"a": {"weight": "all"}}), "must be a number above 0, not 'all'"),
        (of(sources={"a": {"tokens": 1.5}}), "sources.a.tokens: must be an integer above 0, not 1.5"),
        (of(sources={"a": {"tokens": 0}}), "must be an integer above 0, not 0"),
        (of(sources={"a": A}, tokens=0), "tokens: must be an integer above 0"),
        (of(sources={"a": B}, seed=0.5), "seed: must be an integer, not 0.5"),
        (of(sources={"a": B}, seed=True), "seed: must be an integer, not True"),
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
    path.write_text('[sources.x]\ndata = "d"\nepochs = 1\n[sources.y]\ndata = "/z"\nepochs = "all"\n')
    x, y = load_recipe(path).sources
    assert x.data == str(tmp_path / "a[1]" / "d")
    assert y.data == "/z" and (y.kind, y.amount) == ("epochs", 1)


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
    assert load_recipe(of(sources={"a": A}, tokens=1)).tokens == 1


def test_the_manifest_gets_json() -> None:
    given = {"sources": {"a": {"data": Path("x"), "epochs": 1}}}
    assert load_recipe(given).content == {"sources": {"a": {"data": "x", "epochs": 1}}}


# ----------------------------------------------------------------------------------------------------
# Amounts


def random_recipe(rng: random.Random) -> dict[str, Any]:
    sources = {name: _amount(rng) for name in ["a", "b", "c"][: rng.randint(1, 3)]}
    weighted = any("weight" in amount for amount in sources.values())
    return of(sources=sources, **({"tokens": rng.randint(5000, 100_000)} if weighted else {}))


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
        assert "tokens" not in content or sum(found.values()) == content["tokens"]
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
            found = re.search(r"the largest tokens that fits is (\d+)", str(error))
            if found is None:
                continue
            asked_tokens(load_recipe({**content, "tokens": int(found[1])}), sizes)
            with pytest.raises(pybpe.errors.LimitError):
                asked_tokens(load_recipe({**content, "tokens": int(found[1]) * 101 // 100 + 3}), sizes)
            named += 1
        except pybpe.errors.ArgumentError:
            continue
    assert named > 12


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
    sources = {"a": A, "b": {"tokens": 5000}}
    refused(pybpe.errors.LimitError, "source b .* the largest amount of it that fits", sources=sources, tokens=9000)
    refused(pybpe.errors.LimitError, "times as many: raise", sources={"a": {**A, "max_epochs": 1e-4}}, tokens=2)
    assert asked_tokens(load_recipe(of(sources={"a": {"epochs": 100}})), {"a": 10}) == {"a": 1000}
    assert asked_tokens(load_recipe(of(sources={"a": {"tokens": 1}})), {"a": 10}) == {"a": 1}
    with pytest.raises(pybpe.errors.LimitError, match="the source a has no tokens"):
        asked_tokens(load_recipe(of(sources={"a": B})), {"a": 0})
    assert Fraction("0.1") == load_recipe(of(sources={"a": {"epochs": 0.1}})).sources[0].amount


# ----------------------------------------------------------------------------------------------------
# Plans


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = documents(300)
    for name, some in (("text", texts[:150]), ("data", texts[150:])):
        (tmp_path / f"{name}.txt").write_text(EOT.join(some), encoding="utf-8")
        pybpe.binarize(small_tokenizer(), tmp_path / f"{name}.txt", tmp_path / name)
    small_tokenizer().save(tmp_path / "tok.json")
    (tmp_path / "recipe.toml").write_text(
        'tokens = 50_000\n[sources.data]\ndata = "data"\nepochs = 1.5\n[sources.text]\ndata = "text"\nweight = 1\n'
    )
    return tmp_path


def test_a_plan_is_exact(folder: Path) -> None:
    tok = small_tokenizer()
    plan = pybpe.plan_mix(tok, folder / "recipe.toml")
    data, text = plan.sources["data"], plan.sources["text"]
    assert data.tokens == pybpe.Manifest.load(folder / "data").split_tokens("train") and round(data.epochs, 4) == 1.5
    assert text.tokens == pybpe.Manifest.load(folder / "text").split_tokens("train") and plan.tokens == 50_000
    assert not (folder / "mixed").exists()
    mixture = pybpe.mix(tok, folder / "recipe.toml", folder / "mixed").mixture
    assert mixture is not None
    for name, source in mixture["sources"].items():
        assert source["asked"] == plan.sources[name].asked and source["tokens"] == plan.sources[name].tokens


def test_sources_with_the_same_text_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(EOT.join(documents(50)), encoding="utf-8")
    (tmp_path / "b.txt").write_text(EOT.join(documents(80)[50:]), encoding="utf-8")
    tok = small_tokenizer()
    pybpe.binarize(tok, "./a.txt", "folder", min_shard_tokens=0)
    pybpe.binarize(tok, tmp_path / "a.txt", "again", min_shard_tokens=0)
    pybpe.binarize(tok, "b.txt", "others", splits=(9, 1), min_shard_tokens=0)
    pybpe.binarize(tok, "b.txt", "equal", splits=(80, 10, 10), min_shard_tokens=0)
    for a, b, message in (
        ("folder", "again", "documents would occur twice"),
        ("folder", "./folder", "documents would occur twice"),
    ):
        recipe = {"sources": {"a": {"epochs": 1, "data": a}, "b": {"epochs": 1, "data": b}}}
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.mix(tok, recipe, "out")
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.plan_mix(tok, recipe)
    assert not (tmp_path / "out").exists()
    for other in ("equal", "others"):  # with other splits, but other documents
        pybpe.plan_mix(tok, {"sources": {"a": {"data": "folder", "epochs": 1}, "b": {"data": other, "epochs": 1}}})


def test_an_impossible_recipe_is_refused_before_any_work(folder: Path) -> None:
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("50_000", "500_000"))
    for call in (lambda: pybpe.mix(small_tokenizer(), recipe, folder / "out"),
                 lambda: pybpe.plan_mix(small_tokenizer(), recipe)):  # fmt: skip
        with pytest.raises(pybpe.errors.LimitError, match="the largest tokens that fits"):
            call()
    assert not (folder / "out").exists()


def test_the_command_line_plans_mixes_and_compares(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mix", str(folder / "recipe.toml"), "-t", str(folder / "tok.json")]
    assert main([*command, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "50000 tokens:\nsource data: " in shown and "are used 1.5 times\nsource text: " in shown
    assert main([*command, "--dry-run", "--json"]) == 0
    assert round(json.loads(capsys.readouterr().out)["sources"]["data"]["epochs"], 4) == 1.5
    assert main(command) == 2
    assert "-o" in capsys.readouterr().err
    assert main([*command, "-o", str(folder / "out"), "--seed", "4", "--sequence-length", "64"]) == 0
    shown = capsys.readouterr().out
    assert "source data: " in shown and " asked, " in shown
    assert main(["inspect", str(folder / "out")]) == 0
    assert "source data: " in capsys.readouterr().out
    assert main(["inspect", str(folder / "out"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["mixture"]
    assert facts["seed"] == 4 and round(facts["sources"]["data"]["epochs"], 2) == 1.5
    assert abs(sum(source["used"] for source in facts["sources"].values()) - 50_000) < 128
