"""Tables of text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pybpe


@dataclass
class Table:
    """A table."""

    heading: str  # what the table shows
    titles: list[str]  # the titles of the columns
    left: bool = False  # whether all columns are aligned to the left; otherwise to the right
    rows: list[list[str]] = field(default_factory=list)  # the cells of each row, one per title

    def add(self, *cells: str) -> None:
        """Adds a row."""
        self.rows.append(list(cells))

    def __str__(self) -> str:
        rows = [self.titles, *self.rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        side = "<" if self.left else ">"
        return "\n".join("  ".join(f"{c:{side}{w}}" for c, w in zip(row, widths)).rstrip() for row in rows)


def as_text(tables: Iterable[Table], code: Iterable[Mapping[str, Sequence[str]]], notes: Iterable[str]) -> str:
    """Returns tables, samples of code (tokenizer -> tokens) and notes as text."""
    blocks = list(map(str, tables))
    for found in code:
        width = max(map(len, found), default=0)
        blocks.append("\n".join(f"{name:>{width}}  {cut(tokens)}" for name, tokens in found.items()))
    blocks.append("\n".join(f"note: {note}" for note in notes))
    return "\n\n".join(filter(None, blocks))


def cut(tokens: Sequence[str]) -> str:
    """Returns tokens with bars between them, and line ends and tabs as in Python."""
    return "|".join(repr(token)[1:-1] for token in tokens)


# ----------------------------------------------------------------------------------------------------
# A page that shows a comparison of tokenizers, which needs no network and no script

_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
div { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid #8888; text-align: right; }
table { font-variant-numeric: tabular-nums; }
tr > :first-child, .text th, .text td { text-align: left; }
.text th, .text td { font-family: ui-monospace, monospace; white-space: pre-wrap; }
b { font-weight: 400; padding: 0 1px; margin-right: 2px; border-radius: 2px; background: #7aa7e055; }
b:nth-of-type(2n) { background: #e0a87a55; }
dt { font-weight: 600; }
"""

_MEANING = {
    "bytes/token": "Compression: the average number of bytes that a token represents.",
    "tokens/word, tokens/char": "Fertility: the average number of tokens per word and per character. White space"
    " separates words.",
    "Renyi": "Renyi efficiency with alpha = 2.5: how evenly the vocabulary is used, from 0 to 1.",
    "used, never, rare": "Ordinary tokens that occur, do not occur, or occur fewer than 100 times. A model learns"
    " little about the last two kinds.",
    "not UTF-8": "Tokens that are not valid UTF-8, such as part of a character: the number in the vocabulary, without"
    " single bytes, and the share of the text's tokens, including single bytes.",
    "unreachable": "Tokens that encoding their own text does not produce.",
    "Zipf": "The slope of log(count) over log(rank).",
    "Gini, parity": "Gini: how unequal the costs of the languages are; 0 means that all cost the same. Parity: the"
    " number of tokens relative to the first language.",
}


def page(title: str, tables: Iterable[Table], code: Iterable[Mapping[str, Sequence[str]]], notes: Iterable[str]) -> str:
    """Returns the page. The same comparison gives the same page, byte for byte."""
    remarks = "".join(f"<li>{_escaped(note)}</li>" for note in notes)
    meanings = "".join(f"<dt>{_escaped(name)}</dt><dd>{_escaped(text)}</dd>" for name, text in _MEANING.items())
    parts = [
        f"<h1>{_escaped(title)}</h1>",
        f"<h2>Notes</h2><ul>{remarks}</ul>" if remarks else "",
        *map(_section, tables),
        _samples(code),
        f"<h2>What the columns mean</h2><dl>{meanings}</dl>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{pybpe.viz.content_policy(_STYLE, None)}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="pybpe {_escaped(pybpe.__version__)}">\n<link rel="icon" href="data:,">\n'
        f"<title>{_escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _section(table: Table) -> str:
    head = "".join(f"<th>{_escaped(title)}</th>" for title in table.titles)
    body = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    kind = ' class="text"' if table.left else ""
    return f"<h2>{_escaped(table.heading)}</h2><div><table{kind}><tr>{head}</tr>{body}</table></div>"


def _samples(code: Iterable[Mapping[str, Sequence[str]]]) -> str:
    """Returns samples of code with their tokens in alternating colors."""
    rows = "".join(
        f"<tr><td>{_escaped(name)}</td><td>{''.join(f'<b>{_escaped(token)}</b>' for token in tokens)}</td></tr>"
        for found in code
        for name, tokens in found.items()
    )
    return f'<h2>Code</h2><div><table class="text">{rows}</table></div>'


def _escaped(text: str) -> str:
    """Returns text for HTML. Characters that UTF-8 cannot represent, as in the name of a file, become "?"."""
    return html.escape(text.encode("utf-8", "replace").decode())
