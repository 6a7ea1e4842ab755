"""Prepares a corpus for training: filters it, detects languages, and removes personal data and duplicates.

`clean` does all of this in one pass and a short second one. Its parts can also be used alone: Filters.reasons,
detect_language, find_pii and replace_pii, signatures and find_clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .cleaning import clean as clean
    from .duplicates import Banding as Banding
    from .duplicates import find_clusters as find_clusters
    from .duplicates import jaccard as jaccard
    from .duplicates import signatures as signatures
    from .filters import Filters as Filters
    from .pii import Finding as Finding
    from .pii import find_pii as find_pii
    from .pii import replace_pii as replace_pii
    from .report import Report as Report
    from .steps import detect_language as detect_language

if not TYPE_CHECKING:  # a type checker would accept every misspelled name
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "cleaning": "clean",
            "filters": "Filters",
            "duplicates": "Banding find_clusters jaccard signatures",
            "pii": "Finding find_pii replace_pii",
            "report": "Report",
            "steps": "detect_language",
        },
    )
    __all__ = __dir__()
