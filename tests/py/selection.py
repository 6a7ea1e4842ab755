"""Which cases of a test are quick enough for `make test`; `make test-all` runs all of them."""

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """Marks all values for `parametrize` as slow except the first and each `step`-th after it."""
    params = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*param, marks=[pytest.mark.slow] if i % step else []) for i, param in enumerate(params)]
