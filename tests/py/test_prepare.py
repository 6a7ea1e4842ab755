"""prepare: what it refuses, and that it does so before it trains."""

from pathlib import Path
from typing import Any

import pytest
from texts import english

import pybpe
from pybpe.dataset import preparation
from pybpe.errors import Error


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(english()[:20_000], encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "csv"}, "format must be one of"),
        ({"split_by": "line"}, "split_by must be one of"),
        ({"splits": (0, 1)}, "splits must be"),
        ({"documents": "page"}, "documents must be one of"),
        ({"documents": "special", "special_tokens": ()}, "no <.endoftext.> to separate"),
        ({"name": "../corpus"}, "name is the beginning of file names"),
        ({"shard_tokens": 0}, "shard_tokens must be at least 1"),
        ({"shard_tokens": 1 << 31}, "would pass 2 GiB"),
        ({"min_shard_tokens": -1}, "min_shard_tokens must be at least 0"),
        ({"format": "webdataset", "sequence_length": 0}, "sequence_length must be at least 1"),
    ],
)
def test_what_no_training_can_mend_is_refused_before_it(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], message: str
) -> None:
    def train(*_: object, **__: object) -> None:
        raise AssertionError("trained for nothing")

    monkeypatch.setattr(preparation, "train", train)
    with pytest.raises(Error, match=message):
        pybpe.prepare(corpus, tmp_path / "out", **{"vocab_size": 300, **settings})
    assert not (tmp_path / "out").exists()
