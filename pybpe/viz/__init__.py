"""Makes a page that shows tokens: one HTML file with a text, a vocabulary and a working encoder.

pybpe.viz.write_page("tokens.html", "Hello, world", tok)
pybpe.viz.show("Hello, world", tok)  # in a notebook
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib import resources

from .. import _binding
from .._version import __version__
from ..arguments import Text, utf8, whole_number
from ..tokenizer import Tokenizers, named_tokenizers
from .data import page_data

__all__ = ["MAX_BYTES", "SAMPLE", "Page", "make_page", "show", "write_page"]

MAX_BYTES = 100_000

# Joined in this order, these files form one script. Each of them uses those before it.
ENCODER_SCRIPTS = ("bytes.js", "pretokenizer.js", "encoder.js")
PAGE_SCRIPTS = ("display.js", "tokens.js", "details.js", "vocabulary.js", "charts.js", "main.js")

SAMPLE = """\
Byte pair encoding starts from bytes and merges the most frequent pair, again and again.
The tokenizer doesn't know words: it's 1 vocabulary, 2 rules and 30,000 merges.

def greet(name):
\treturn f"Hello, {name}!"  # two spaces, a tab

你好，世界。 こんにちは。 안녕하세요. Привет, мир! مرحبا بالعالم नमस्ते 👩\u200d🚀 café e\u0301
"""


def make_page(
    text: Text,
    tokenizers: Tokenizers,
    *,
    source: str = "",
    max_bytes: int = MAX_BYTES,
    total_bytes: int | None = None,
) -> str:
    """Returns a page that shows how tokenizers encode a text, as self-contained HTML: it needs no network or library.

    The page shows the tokens of the text with their ids and bytes, a box to type in, the vocabulary, which can be
    searched, how each token is merged, and charts. The same arguments give the same page, byte for byte.

    Args:
        text: str or bytes, which need not be valid UTF-8.
        tokenizers: one, or up to four to compare, as name -> tokenizer or as a list.
        source: the name that the page gives the text, such as the name of a file.
        max_bytes: the number of bytes of the text to show; the page says if the text has more.
        total_bytes: the number of bytes of the whole text, if `text` is only its beginning.

    Raises:
        ArgumentError: there is no tokenizer, or more than four; or max_bytes is below 1.
    """
    named = named_tokenizers(tokenizers)
    data = page_data(text, named, source, max_bytes, total_bytes)
    style = _asset("page.css")
    script = encoder_script() + "".join(map(_asset, PAGE_SCRIPTS))
    script = f'(() => {{\n"use strict";\n\n{script}}})();\n'
    title = " · ".join([*filter(None, [source]), *named])
    parts = {
        "policy": _content_policy(style, script),
        "title": html.escape(bytes(utf8(title)).decode()),  # a file's name may contain what UTF-8 cannot encode
        "version": html.escape(__version__),
        "style": style,
        "data": _json_in_html(data),
        "script": script,
    }
    # In one pass, because inserted text may look like a placeholder.
    return re.sub(r"@@(\w+)@@", lambda place: parts[place[1]], _asset("page.html"))


def write_page(
    path: _binding.PathLike,
    text: Text,
    tokenizers: Tokenizers,
    *,
    source: str = "",
    max_bytes: int = MAX_BYTES,
    total_bytes: int | None = None,
) -> None:
    """Writes the page of `make_page`, atomically.

    Raises:
        ArgumentError: as in `make_page`. FileError: the file cannot be written.
    """
    page = make_page(text, tokenizers, source=source, max_bytes=max_bytes, total_bytes=total_bytes)
    _binding.write_file(path, page.encode("utf-8"))


def encoder_script() -> str:
    """Returns the part of the page's script that encodes. It runs in any JavaScript engine, not only in a browser."""
    return "".join(map(_asset, ENCODER_SCRIPTS))


@cache
def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _json_in_html(data: object) -> str:
    """Returns JSON that cannot end the script element, or begin a comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _content_policy(style: str, script: str) -> str:
    """Returns a policy that allows this style and this script, and nothing else."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


# ----------------------------------------------------------------------------------------------------
# The page in the frame of a notebook


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
