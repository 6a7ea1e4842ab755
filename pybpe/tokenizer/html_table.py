"""Makes the small table that a notebook shows for a tokenizer."""

from __future__ import annotations

import html

from ..model import Model

_SHOWN = 12  # the number of special tokens, and of longest tokens, in the table


def table(model: Model) -> str:
    """Returns the properties of a tokenizer as an HTML table."""
    longest = sorted(model.tokens, key=len, reverse=True)[:_SHOWN]
    specials = [f"{text} = {i}" for text, i in list(model.specials.items())[:_SHOWN]]
    if len(model.specials) > _SHOWN:
        specials.append(f"and {len(model.specials) - _SHOWN} more")
    pattern = model.pattern
    rows = {
        "tokens": f"{len(model.tokens):,}",
        "merges": f"{len(model.merges):,}",
        "pattern": (pattern.name or pattern.regex) + (f", digits={pattern.digits}" if pattern.digits else ""),
        "normalizer": model.normalizer or "none",
        "special tokens": ", ".join(specials) or "none",
        "longest tokens": ", ".join(repr(token.decode("utf-8", "replace")[:40]) for token in longest),
    }
    shown = "text-align: left; white-space: pre-wrap"  # a token may be a run of spaces
    cells = "".join(
        f'<tr><th style="text-align: left">{name}</th><td style="{shown}">{html.escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption>pybpe.Tokenizer</caption>{cells}</table>"
