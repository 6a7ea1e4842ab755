"""Makes a page that shows tokens: one HTML file with a text, a vocabulary and a working encoder.

pybpe.viz.write_page("tokens.html", "Hello, world", tok)
pybpe.viz.show("Hello, world", tok)  # in a notebook
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from .. import _binding
from .._version import __version__
from ..arguments import Text, utf8, whole_number
from ..errors import ArgumentError, UnsupportedError
from ..model import Model
from ..pattern import THEN, Pattern
from ..pattern.dialects import REGEX, Writer, parse
from ..pattern.dialects.parse import SCRIPTS
from ..pattern.dialects.tree import ANY, Chars, can_be_empty, without
from ..tokenizer import Tokenizer, Tokenizers, named_tokenizers

__all__ = ["MAX_BYTES", "SAMPLE", "Page", "make_page", "show", "write_page"]

MAX_BYTES = 100_000

# Joined in this order, these files form one script. A file uses only earlier ones.
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

    The page shows the tokens of the text with their ids and bytes, a box to type in, the vocabulary, which you can
    search, the merges of a token, and charts. The same arguments give the same page, byte for byte.

    Args:
        text: str or bytes, which need not be valid UTF-8.
        tokenizers: one, or up to four to compare, as name -> tokenizer or as a list.
        source: the name that the page gives the text, such as the name of a file.
        max_bytes: the number of bytes of the text to show. The page tells if the text has more.
        total_bytes: the number of bytes of the whole text, if `text` is only its beginning.

    Raises:
        ArgumentError: there is no tokenizer, there are more than four, or max_bytes is below 1.
    """
    named = named_tokenizers(tokenizers)
    data = page_data(text, named, source, max_bytes, total_bytes)
    style = _asset("page.css")
    script = encoder_script() + "".join(map(_asset, PAGE_SCRIPTS))
    script = f'(() => {{\n"use strict";\n\n{script}}})();\n'
    title = " · ".join([*filter(None, [source]), *named])
    parts = {
        "policy": _content_policy(style, script),
        "title": html.escape(bytes(utf8(title)).decode()),  # a file's name may not be UTF-8
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
        # The frame may run the page's script and nothing else. The script has no access to the notebook.
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
        ArgumentError: see `make_page`, or height is below 1.
    """
    height = whole_number("height", height, 1)
    return Page(make_page(text, tokenizers, max_bytes=max_bytes), height)


# ----------------------------------------------------------------------------------------------------
# The data of the page, in a form that JSON can hold and encoder.js unpacks.


MAX_TOKENIZERS = 4  # as many as fit side by side


def page_data(
    text: Text, tokenizers: Mapping[str, Tokenizer], source: str, max_bytes: int, total: int | None
) -> dict[str, Any]:
    """Returns all data that the page needs. See `viz.make_page` for the arguments."""
    if not 1 <= len(tokenizers) <= MAX_TOKENIZERS:
        raise ArgumentError(f"a page shows 1 to {MAX_TOKENIZERS} tokenizers, not {len(tokenizers)}")
    data = bytes(utf8(text))
    shown = cut_text(data, whole_number("max_bytes", max_bytes, 1))
    return {
        "unicode": _binding.unicode_version(),
        "classes": packed_classes(),
        "source": source,
        "shown_bytes": len(shown),
        "total_bytes": max(len(data), total or 0),
        "tokenizers": [tokenizer_data(name, tok, shown) for name, tok in tokenizers.items()],
    }


def cut_text(data: bytes, max_bytes: int) -> bytes:
    """Returns the first bytes, without an incomplete character at the end."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(1, max_bytes - 3) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def tokenizer_data(name: str, tok: Tokenizer, text: bytes) -> dict[str, Any]:
    """Returns the data of one tokenizer, including the ids of the text."""
    ids = bytearray()
    for i in tok.encode(text):
        pack(ids, i)
    tokens, merges = packed_vocabulary(tok.model)
    return {
        "name": name,
        "size": tok.vocab_size,
        "tokens": tokens,
        "merges": merges,
        "specials": list(tok.special_tokens.items()),
        "normalizer": tok.model.normalizer,
        "whole_words": tok.model.whole_words,
        "rewrites": tok.model.strips or tok.model.prefix_space,
        "pattern": {**pattern_data(tok.pattern), **_what_the_page_lacks(tok.model)},
        "ids": _ascii(ids),
        "curve": compression_curve(tok, text),
    }


def packed_vocabulary(model: Model) -> tuple[str, str]:
    """Returns the tokens that merges do not make, as (id, length, bytes), and the merges, as (left, right, difference
    from the previous merge's id)."""
    specials = set(model.specials.values())
    by_bytes = {token: i for i, token in enumerate(model.tokens) if i not in specials}
    merged = [by_bytes[model.tokens[left] + model.tokens[right]] for left, right in model.merges]

    # The page builds tokens in the order of merges, so tokens that are used before they are made must be included.
    made: set[int] = set()
    used_early: set[int] = set()
    for (left, right), new in zip(model.merges, merged):
        used_early |= {left, right} - made
        made.add(new)
    tokens, merges, last = bytearray(), bytearray(), 0
    for i, token in enumerate(model.tokens):
        if token and (i not in made or i in used_early):
            pack(tokens, i)
            pack(tokens, len(token))
            tokens += token
    for (left, right), new in zip(model.merges, merged):
        step = new - last  # 0, -1, 1, -2, 2, ... are packed as 0, 1, 2, 3, 4, ...
        for number in (left, right, 2 * step if step >= 0 else -2 * step - 1):
            pack(merges, number)
        last = new
    return _ascii(tokens), _ascii(merges)


def pattern_data(pattern: Pattern) -> dict[str, Any]:
    """Returns the pattern in Python's and JavaScript's syntax. `why` is the reason if JavaScript cannot run it."""
    javascript, why = None, None
    try:
        javascript = javascript_regex(pattern.regex)
    except UnsupportedError as error:
        why = f"its pattern cannot run in a browser: {error}"
    return {
        "name": pattern.name,
        "digits": pattern.digits,
        "regex": pattern.regex,
        "custom": pattern.is_custom,
        "javascript": javascript,
        "why": why,
    }


def _what_the_page_lacks(model: Model) -> dict[str, Any]:
    """Returns no pattern, and the reason, if the page cannot encode with this tokenizer whatever its pattern is."""
    if model.prefix_space:
        return {"javascript": None, "why": "it adds a space before each text (add_prefix_space)"}
    for text, rules in model.matching.items():
        return {"javascript": None, "why": f"its special token {text!r:.80} has {rules.names[0]} on"}
    return {}


def compression_curve(tok: Tokenizer, text: bytes) -> list[tuple[int, int]]:
    """Returns (vocabulary size, number of tokens of the text) without merges, for powers of two, and for the whole
    vocabulary, or an empty list for an empty text."""
    if not text:
        return []
    made = {tok.model.tokens[left] + tok.model.tokens[right] for left, right in tok.model.merges}
    specials = set(tok.special_tokens.values())
    least = sum(1 for i, token in tok.model.vocab.items() if i in specials or token not in made)
    powers = itertools.takewhile(lambda size: size < tok.vocab_size, (1 << bits for bits in itertools.count(8)))
    sizes = sorted({least, *(size for size in powers if size > least)} - {tok.vocab_size})
    points = [(size, tok.prune(vocab_size=size).count(text)) for size in sizes]
    return [*points, (tok.vocab_size, tok.count(text))]


@cache
def packed_classes() -> str:
    """Returns the classes of all code points as the patterns see them, in runs of (length, class)."""
    newline = 64  # this bit is set only in ASCII characters, which the page does not look up
    packed = bytearray()
    for kind, run in itertools.groupby(_binding.unicode_classes()):
        pack(packed, sum(1 for _ in run))
        pack(packed, kind & ~newline)
    return _ascii(packed)


def pack(packed: bytearray, value: int) -> None:
    """Appends an unsigned number to packed data, seven bits per byte, lowest bits first."""
    while value >= 128:
        packed.append(value & 127 | 128)
        value >>= 7
    packed.append(value)


def _ascii(packed: bytearray) -> str:
    return base64.b64encode(packed).decode("ascii")


# ----------------------------------------------------------------------------------------------------
# Translates regular expressions of Python's `regex` package to JavaScript (flag u). Their matches stay the same.
#
# pybpe/pattern/dialects parses the pattern into a tree, and JavaScript is written from it. The differences:
#
#     \s          White_Space; JavaScript's \s includes U+FEFF and lacks U+0085     \p{White_Space}
#     \d \w       by Unicode properties; JavaScript's are ASCII                      \p{Nd} ...
#     .           all but \n; JavaScript's also excludes \r, U+2028 and U+2029       [^\n]
#     $           also matches before a newline that ends the text                   (?=\n?$)
#     X++ (?>X)   possessive and atomic, which JavaScript lacks                      (?=(?<a1>X+))\k<a1>
#     (?i:s)      new in JavaScript in 2024; some letters have a third form          [Ss\u{17f}]
#
# JavaScript never backtracks into a lookahead, so the group that it captured is atomic. pybpe refuses a construct that
# is not known to mean the same, and says why. It also refuses a pattern that can match the empty string, because the
# two engines continue differently after an empty match.


# Browsers have newer versions of Unicode, with more characters.
_UNKNOWN = frozenset(["C", "Cn"])


def javascript_regex(pattern: str) -> str:
    """Returns the source of a JavaScript RegExp with the flag u. Raises UnsupportedError if the pattern cannot be
    translated, or can match the empty string."""
    if THEN in pattern:
        raise UnsupportedError("the pattern has several steps, each of which splits the pieces of the step before it")
    tree = parse(pattern, REGEX)
    if can_be_empty(tree):
        raise UnsupportedError("the pattern can match the empty string")
    return _JavaScript().alternatives(tree)


class _JavaScript(Writer):
    def __init__(self) -> None:
        super().__init__(REGEX, apart=False)
        self._groups = 0

    def possessive(self, base: str, count: str) -> str:
        return self.atomic(base + count)

    def atomic(self, source: str) -> str:
        self._groups += 1
        name = f"a{self._groups}"
        return f"(?:(?=(?<{name}>{source}))\\k<{name}>)"

    def anchor(self, start: bool) -> str:
        return "^" if start else "$"

    def short(self, members: Chars) -> str | None:
        return {ANY: "[^]", without(ANY): "[]"}.get(members)

    def property(self, name: str, negated: bool) -> str:
        if name in _UNKNOWN:
            raise UnsupportedError(f"the pattern has \\p{{{name}}}, which depends on the version of Unicode")
        return f"\\{'P' if negated else 'p'}{{{'Script=' * (name in SCRIPTS)}{name}}}"

    def char(self, point: int) -> str:
        char = chr(point)
        return char if char.isascii() and char.isalnum() else f"\\u{{{point:x}}}"
