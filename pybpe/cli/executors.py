"""Executors that commands can be told to use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module

from ..errors import MissingExtraError, WorkerError


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask scheduler's workers; None without an address.

    Raises:
        MissingExtraError: Dask is not installed. WorkerError: no scheduler answers there.
    """
    if address is None:
        yield None
        return
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise MissingExtraError("--dask needs a package: pip install 'pybpe[dask]'") from None
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise WorkerError(f"{address}: no Dask scheduler answers there: {error}") from None
    with client:
        yield client.get_executor()
