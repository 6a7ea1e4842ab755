"""Python warnings, for what callers should know although nothing failed. The command line prints each as one line."""

from __future__ import annotations

import functools
import os
import warnings


class PybpeWarning(UserWarning):
    """The class of all warnings of this package, for `warnings.filterwarnings`."""


def warn(message: str) -> None:
    """Issues a warning that shows the first place outside the package: the caller's."""
    import sys

    ours = (os.path.dirname(__file__) + os.sep, functools.__file__)  # cached_property calls from functools
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, PybpeWarning, stacklevel=level)
