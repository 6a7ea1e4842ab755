"""Documents straight into training: rows of parquet and Arrow, in PyTorch's DataLoader, and resumed by torchdata's."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pyarrow = pytest.importorskip("pyarrow")

from corpora import documents, jsonl, small_tokenizer  # noqa: E402
from pyarrow import feather, parquet  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import pybpe  # noqa: E402
from pybpe.loading import DocumentRows  # noqa: E402

HOW: dict[str, Any] = {"batch_size": 3, "sequence_length": 50, "window": 20, "seed": 5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_bytes(jsonl(documents(60)))
    return tmp_path / "a.jsonl"


def some(loader: Any, count: int = 30) -> list[Any]:
    return [batch.tolist() for batch in islice(loader, count)]


def test_rows_of_tables_are_those_of_json_lines(path: Path, tmp_path: Path) -> None:
    table = pyarrow.table({"text": documents(60)})
    parquet.write_table(table, tmp_path / "one.parquet")
    parquet.write_table(table, tmp_path / "many.parquet", row_group_size=7)
    feather.write_feather(table, tmp_path / "a.feather")
    expected = some(DocumentRows(small_tokenizer(), path, **HOW))
    for name in ("one.parquet", "many.parquet", "a.feather"):
        assert some(DocumentRows(small_tokenizer(), tmp_path / name, **HOW)) == expected, name


def test_worker_processes_share_the_documents(path: Path) -> None:
    def share(rank: int, count: int) -> DocumentRows:
        return DocumentRows(small_tokenizer(), path, rank=rank, num_replicas=count, **HOW)

    batch = next(iter(DataLoader(share(1, 2), batch_size=None)))
    assert batch.dtype == torch.int64 and batch.tolist() == some(share(1, 2), 1)[0]
    pairs = zip(some(share(2, 4), 15), some(share(3, 4), 15), strict=True)
    loader = DataLoader(share(1, 2), batch_size=None, num_workers=2)
    assert some(loader) == [batch for pair in pairs for batch in pair]


def test_torchdata_resumes_worker_processes(path: Path) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def loader(workers: int = 2, **more: Any) -> Any:
        rows = DocumentRows(small_tokenizer(), path, **HOW, **more)
        return stateful.StatefulDataLoader(rows, batch_size=None, num_workers=workers)

    first = loader()
    batches = iter(first)
    some(batches, 7)
    state, expected = first.state_dict(), some(batches, 9)
    again = loader()
    again.load_state_dict(state)
    assert some(again, 9) == expected
    first = loader(0)
    next(iter(first))
    other = loader(0, rank=0, num_replicas=2)
    other.load_state_dict(first.state_dict())
    with pytest.raises(pybpe.errors.ArgumentError, match="a StatefulDataLoader needs as many processes and workers"):
        next(iter(other))


def test_worker_processes_go_on_from_the_states_of_other_processes(path: Path) -> None:
    def share(rank: int, count: int) -> DocumentRows:
        return DocumentRows(small_tokenizer(), path, rank=rank, num_replicas=count, **HOW)

    begun = [share(rank, 3) for rank in range(3)]
    for rows in begun:
        some(rows, 2)
    states = [rows.state_dict() for rows in begun]
    resumed = [share(0, 2), share(1, 2), share(0, 1)]
    for rows in resumed:
        rows.load_state_dict(states)
    pairs = zip(some(resumed[0], 15), some(resumed[1], 15), strict=True)
    loader = DataLoader(resumed[2], batch_size=None, num_workers=2)
    assert some(loader) == [batch for pair in pairs for batch in pair]
