"""Executors for commands that can use one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError, WorkerError

if TYPE_CHECKING:
    from concurrent.futures import Executor


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """Yields the executor for a Dask scheduler's workers; None without an address.

    Raises:
        MissingExtraError: Dask is not installed. WorkerError: no scheduler answers at the address.
    """
    if address is None:
        yield None
        return
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise MissingExtraError("--dask needs Dask: pip install 'pybpe[dask]'") from None
    import asyncio  # takes longer to load than everything else that the command line needs at startup

    try:
        asyncio.run(_reach(distributed, address))
    except (OSError, ValueError) as error:
        raise WorkerError(f"{address}: no Dask scheduler answers: {error}") from None
    with distributed.Client(address, set_as_default=False) as client:
        yield client.get_executor()


async def _reach(distributed: Any, address: str) -> None:
    """Tests the connection. A Client that cannot connect prints a traceback a minute later, when it is deleted."""
    security = distributed.Security().get_connection_args("client")
    connection = await distributed.comm.connect(address, **security)
    await connection.close()
