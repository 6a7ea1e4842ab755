"""Shared by the tests of optional features."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster
