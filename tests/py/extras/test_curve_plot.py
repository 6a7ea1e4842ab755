"""The compression curve as a picture."""

from pathlib import Path

import pytest
from corpora import documents

from pybpe import cli
from pybpe.analysis import usage as curve

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_train_plots_its_sizes(tmp_path: Path, ending: str, start: bytes) -> None:
    (tmp_path / "a.txt").write_text("\n".join(documents(50)), encoding="utf-8")
    picture = tmp_path / f"c.{ending}"
    args = ["train", tmp_path / "a.txt", "--sizes", "300,400", "--plot", picture, "-o", tmp_path / "c.json", "--quiet"]
    assert cli.main(list(map(str, args))) == 0
    first = picture.read_bytes()
    assert first.startswith(start)
    assert cli.main(list(map(str, args))) == 0 and picture.read_bytes() == first
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", f"c.{ending}", "c.json"}


def test_two_scales(tmp_path: Path) -> None:
    points = [
        curve.CurvePoint(8000, 3.5, 2 * 8000 * 768),
        curve.CurvePoint(16000, 4.0, 2 * 16000 * 768),
    ]
    curve.plot(points, str(tmp_path / "x.svg"))
    text = (tmp_path / "x.svg").read_text()
    assert all(f"<!-- {label} -->" in text for label in ("8,000", "16,000", "bytes per token", "vocabulary"))
