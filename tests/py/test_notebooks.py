"""The notebooks run, cell by cell in plain Python, and print what is stored in them."""

import contextlib
import io
import json
from pathlib import Path

import pytest

BOOKS = sorted((Path(__file__).resolve().parents[2] / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_a_notebook_prints_what_it_shows(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads(book.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for number, cell in enumerate(cells, 1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("".join(cell["source"]), f"{book.name}, cell {number}", "exec"), names)
        (output,) = cell["outputs"]
        assert printed.getvalue() == "".join(output["text"])
