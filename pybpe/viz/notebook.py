"""The page from page.py in the frame of a notebook."""

from __future__ import annotations

import html

from ..arguments import Text, whole_number
from ..tokenizer.named import Tokenizers
from .page import MAX_BYTES, make_page


class Page:
    """A page that a notebook shows when it is the value of a cell.

    Attributes:
        html: the self-contained page.
        height: height of the frame, in pixels.
    """

    def __init__(self, html: str, height: int) -> None:
        self.html = html
        self.height = height

    def _repr_html_(self) -> str:
        # The frame may run the page's script and nothing else; the script has no access to the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" title="Tokens"'
            f' style="width: 100%; height: {self.height}px; border: 1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({len(self.html)} characters of HTML; shown in a notebook; pybpe.viz.write_page writes a file)"


def show(text: Text, tokenizers: Tokenizers, *, max_bytes: int = MAX_BYTES, height: int = 600) -> Page:
    """Returns the page of `make_page` for a notebook. Put the call in the last line of a cell.

    Args:
        height: height of the frame, in pixels.

    Raises:
        ArgumentError: as in `make_page`; or height is below 1.
    """
    height = whole_number("height", height, 1)
    return Page(make_page(text, tokenizers, max_bytes=max_bytes), height)
