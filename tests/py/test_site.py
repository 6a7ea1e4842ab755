"""The documentation site has every page, and its reference has every public name. `make docs` checks the rest."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"
NAVIGATION = re.findall(r"^ +- [^:#]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
MADE = {"readme.md", "contributing.md", "changelog.md", "results.md", "reference/cli.md", "reference/c.md"}


def described(page: Path) -> list[str]:
    """Returns the names whose docstrings a page of the reference shows."""
    return re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_navigation_has_every_page() -> None:
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(NAVIGATION) == sorted(pages | MADE)


@pytest.mark.parametrize("name", ["pybpe", "pybpe.loading", "pybpe.corpus", "pybpe.viz"])
def test_the_reference_has_every_public_name(name: str) -> None:
    shown = {path for page in REFERENCE.glob("*.md") for path in described(page)}
    shown_names = {path.rpartition(".")[2] for path in shown}
    errors = set(vars(importlib.import_module("pybpe.errors"))) if "pybpe.errors" in shown else set()
    public = set(importlib.import_module(name).__all__) - {"__version__"}
    assert public - shown_names - errors == set()


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.name)
def test_the_names_of_the_reference_exist(page: Path) -> None:
    for path in described(page):
        parent, _, name = path.rpartition(".")
        module = importlib.import_module(parent)
        assert hasattr(module, name) or importlib.import_module(path), path
