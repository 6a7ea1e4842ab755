"""numpy, imported when something of it is first used: many commands never need it, and importing it takes longer than
they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as numpy

    Array = numpy.ndarray[Any, Any]
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy as module

            value = getattr(module, name)
            setattr(self, name, value)  # which is found without __getattr__ from now on
            return value

    numpy = _Numpy()
    Array = Any
