"""Makes a page that shows tokens: one HTML file with a text, a vocabulary and a working encoder.

pybpe.viz.write_page("tokens.html", "Hello, world", tok)
pybpe.viz.show("Hello, world", tok)  # in a notebook
"""

from __future__ import annotations

from .page import MAX_BYTES, SAMPLE, Page, make_page, show, write_page

__all__ = ["MAX_BYTES", "SAMPLE", "Page", "make_page", "show", "write_page"]
