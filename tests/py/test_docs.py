"""The code in the README and on every page of docs/ runs, and the README links to every page."""

import shutil
import subprocess
from pathlib import Path

import pytest
from pages import blocks, run_page
from texts import chinese, english

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.name for page in PAGES]


@pytest.fixture(scope="module")
def downloads() -> Path:
    """Returns a folder with the packages that a page tells its reader to download."""
    subprocess.run(["make", "--silent", ".venv/texts/stamp"], cwd=ROOT, check=True)
    return ROOT / ".venv" / "texts"


@pytest.fixture
def folder(tmp_path: Path, downloads: Path) -> Path:
    """Writes the files that pages may use: novel.txt (Chinese), corpus.txt (English), out/corpus.txt as `make demo`
    does, and the packages that `pip download` gets."""
    (tmp_path / "out").mkdir()
    for package in downloads.glob("*.whl"):
        shutil.copy(package, tmp_path)
    (tmp_path / "novel.txt").write_text(chinese(), encoding="utf-8", newline="")
    for name in ("corpus.txt", "out/corpus.txt"):
        (tmp_path / name).write_text(english(), encoding="utf-8", newline="")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_code_of_the_page_runs(page: Path, folder: Path) -> None:
    if page.name == "remote.md":
        pytest.importorskip("obstore")  # as in `make test-extras`
    assert run_page(page, folder) == sum(block.language in ("python", "sh") for block in blocks(page))


def test_the_readme_names_every_page() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert f"]({page.relative_to(ROOT)})" in readme, f"{page.name} is not in the README's list of documentation"


def test_a_page_that_is_not_true_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for code in (
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```sh\nfalse | true\n```\n",
        "```python\n1 / 0\n```\n",
    ):
        page.write_text(code)
        with pytest.raises((AssertionError, ZeroDivisionError)):
            run_page(page, tmp_path)
    page.write_text("```python\nx = 1\nprint(x)\n```\n```text\n1\n```\n\n```\nno code\n```\n\n```sh\necho 2\n```\n")
    assert run_page(page, tmp_path) == 2
