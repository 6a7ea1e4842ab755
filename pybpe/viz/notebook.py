"""What notebooks show: a tokenizer as a small table, and the page from page.py in a frame."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from ..arguments import whole_number
from ..pretokenize import Text
from .page import MAX_BYTES, Tokenizers, make_page

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

_SHOWN = 12  # special tokens, and longest tokens, in a table


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
        # The frame may run the page's script and do nothing else; it has no access to the notebook.
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


def table(tokenizer: Tokenizer) -> str:
    """Returns the properties of a tokenizer as an HTML table."""
    longest = sorted(tokenizer.vocab.values(), key=len, reverse=True)[:_SHOWN]
    specials = [f"{text} = {i}" for text, i in list(tokenizer.special_tokens.items())[:_SHOWN]]
    if len(tokenizer.special_tokens) > _SHOWN:
        specials.append(f"and {len(tokenizer.special_tokens) - _SHOWN} more")
    pattern = tokenizer.pattern
    rows = {
        "tokens": f"{tokenizer.n_vocab:,}",
        "merges": f"{len(tokenizer.model.merges):,}",
        "pattern": (pattern.name or pattern.regex) + (", single digits" if pattern.digits else ""),
        "normalizer": tokenizer.normalizer or "none",
        "special tokens": ", ".join(specials) or "none",
        "longest tokens": ", ".join(repr(token.decode("utf-8", "replace")[:40]) for token in longest),
    }
    cells = "".join(
        f'<tr><th style="text-align: left">{name}</th><td style="text-align: left">{html.escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption>pybpe.Tokenizer</caption>{cells}</table>"
