"""Prepares a corpus for training: filters it, detects languages, and removes personal data and duplicates.

`clean` does all of this in one pass and a short second one. Its parts can also be used alone: Filters.reasons,
detect_language, find_pii and replace_pii, signatures and find_clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .cleaning import clean
    from .filters import Filters
    from .near_duplicates import Banding, find_clusters, jaccard, signatures
    from .pii import Finding, find_pii, replace_pii
    from .report import Report
    from .steps import detect_language

__all__ = [
    "Banding",
    "Filters",
    "Finding",
    "Report",
    "clean",
    "detect_language",
    "find_clusters",
    "find_pii",
    "jaccard",
    "replace_pii",
    "signatures",
]

if not TYPE_CHECKING:  # a type checker would accept every misspelled name
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "cleaning": "clean",
            "filters": "Filters",
            "near_duplicates": "Banding find_clusters jaccard signatures",
            "pii": "Finding find_pii replace_pii",
            "report": "Report",
            "steps": "detect_language",
        },
    )
