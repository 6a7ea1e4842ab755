"""Makes the page: one HTML file with everything in it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from .. import _binding
from .._version import __version__
from ..arguments import Text, instance, shown, utf8
from ..errors import ArgumentError
from ..tokenizer import Tokenizer
from .data import page_data

MAX_BYTES = 100_000

Tokenizers = Tokenizer | Mapping[str, Tokenizer] | Sequence[Tokenizer]

# These form one script in this order: each uses the ones before it.
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

    The page shows the text in tokens, their ids and bytes, a box to type in, the vocabulary with a search, how each
    token is merged, and charts. The same arguments give the same page, byte for byte.

    Args:
        text: str, or any bytes.
        tokenizers: one, or up to four to compare, as name -> tokenizer or as a list.
        source: what the page calls the text, such as a file's name.
        max_bytes: how many bytes of the text to show; the page says if there are more.
        total_bytes: how many bytes the text has, if `text` is only its beginning.

    Raises:
        ArgumentError: there is no tokenizer, or more than four; or max_bytes is below 1.
    """
    named = _named(tokenizers)
    data = page_data(text, named, source, max_bytes, total_bytes)
    style = _asset("page.css")
    script = encoder_script() + "".join(map(_asset, PAGE_SCRIPTS))
    script = f'(() => {{\n"use strict";\n\n{script}}})();\n'
    title = " · ".join([*filter(None, [source]), *named])
    parts = {
        "policy": _policy(style, script),
        "title": html.escape(bytes(utf8(title)).decode()),  # a file's name may contain what UTF-8 cannot encode
        "version": html.escape(__version__),
        "style": style,
        "data": _json_in_html(data),
        "script": script,
    }
    # One pass, so that inserted text is not searched for placeholders.
    return re.sub(r"@@(\w+)@@", lambda place: parts[place[1]], _asset("page.html"))


def _named(tokenizers: Tokenizers) -> dict[str, Tokenizer]:
    """Returns the tokenizers by the names that the page shows."""
    if isinstance(tokenizers, Tokenizer):
        tokenizers = {"tokenizer": tokenizers}
    if isinstance(tokenizers, (list, tuple)):
        tokenizers = {f"tokenizer {number}": tok for number, tok in enumerate(tokenizers, 1)}
    if not isinstance(tokenizers, Mapping):
        raise ArgumentError(
            f"tokenizers must be a Tokenizer, a list of them, or a mapping of names to them, not {shown(tokenizers)}"
        )
    for name, tok in tokenizers.items():
        instance("the name of a tokenizer", name, str, "a str")
        instance(f"tokenizers[{shown(name)}]", tok, Tokenizer, "a Tokenizer")
    return dict(tokenizers)


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
    """Returns the part of the page's script that encodes. It needs no browser."""
    return "".join(map(_asset, ENCODER_SCRIPTS))


@cache
def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _json_in_html(data: object) -> str:
    """Returns JSON that cannot end the script element, or begin a comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(style: str, script: str) -> str:
    """Returns a content security policy that allows this style and this script, and nothing else."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )
