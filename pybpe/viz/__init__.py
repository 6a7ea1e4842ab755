"""A page to look at tokens: one HTML file that shows a text, a vocabulary and an encoder at work.

pybpe.viz.write_page("tokens.html", "Hello, world", tok)
"""

from __future__ import annotations

from .page import MAX_BYTES, SAMPLE, make_page, write_page

__all__ = ["MAX_BYTES", "SAMPLE", "make_page", "write_page"]
