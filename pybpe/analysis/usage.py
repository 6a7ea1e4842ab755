"""Measures a tokenizer on counted words: the tokens it uses, and its compression by script and by vocabulary size."""

from __future__ import annotations

import io
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from .. import _binding
from ..errors import ArgumentError, MissingExtraError
from ..model import refuse_dropout
from ..tokenizer import Tokenizer
from ..training.counts import Counts
from . import table

_SCRIPT_NAMES = {"CJK": "Han", "FULLWIDTH": "Latin", "HALFWIDTH": "Katakana", "MODIFIER": "Latin"}


@dataclass
class Amount:
    """An amount of text, and the number of its tokens."""

    bytes: int = 0
    characters: int = 0
    tokens: int = 0

    @property
    def bytes_per_token(self) -> float:
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_character(self) -> float:
        return self.tokens / self.characters if self.characters else 0.0

    @property
    def facts(self) -> dict[str, float]:
        """The bytes, and the compression, as plain data."""
        compression = {"bytes_per_token": self.bytes_per_token, "tokens_per_character": self.tokens_per_character}
        return {"bytes": self.bytes, **{name: round(value, 3) for name, value in compression.items()}}


@dataclass
class Usage:
    """How a tokenizer encodes words."""

    counts: list[int]  # the number of occurrences per id
    scripts: dict[str, Amount] = field(default_factory=dict)  # script (see `script_of`) -> amount of its words
    total: Amount = field(default_factory=Amount)  # the amount of all words

    @property
    def unused(self) -> list[int]:
        """The ids that never occur."""
        return [i for i, count in enumerate(self.counts) if not count]


def measure(tokenizer: Tokenizer, words: Mapping[bytes, int]) -> Usage:
    """Returns the usage of a tokenizer on words that its pattern split (word -> count, as from `Counts.to_dict`)."""
    refuse_dropout(tokenizer.model, "cannot count tokens")
    encoder = _binding.Encoder(tokenizer.model.to_vocab())
    usage = Usage([0] * tokenizer.vocab_size)
    for word, count in words.items():
        ids = encoder.encode_words(word, [len(word)])
        for i in ids:
            usage.counts[i] += count
        text = word.decode("utf-8", "replace")
        for amount in (usage.total, usage.scripts.setdefault(script_of(text), Amount())):
            amount.bytes += count * len(word)
            amount.characters += count * len(text)
            amount.tokens += count * len(ids)
    usage.scripts = dict(sorted(usage.scripts.items(), key=lambda entry: -entry[1].bytes))
    return usage


def script_of(word: str) -> str:
    """Returns the script of a word's first letter, such as "Latin" or "Han"; for a word without letters "numbers",
    "white space" or "symbols".

    >>> [script_of(word) for word in (" the", "中文", " 42", "!?")]
    ['Latin', 'Han', 'numbers', 'symbols']
    """
    letter = next(filter(str.isalpha, word), None)
    if letter is not None:
        return _script_of_letter(letter)
    if any(map(str.isnumeric, word)):
        return "numbers"
    return "white space" if word.isspace() else "symbols"


@lru_cache(maxsize=1 << 16)
def _script_of_letter(letter: str) -> str:
    """Returns a letter's script, which begins its Unicode name: CYRILLIC SMALL LETTER A."""
    first = unicodedata.name(letter, "UNNAMED").split(" ")[0].split("-")[0]
    return _SCRIPT_NAMES.get(first, first.capitalize())


# ----------------------------------------------------------------------------------------------------
# The compression curve: how much a vocabulary size compresses, and how many parameters it adds to a model

PLOTS = (".png", ".svg", ".pdf")
_DATES = {".svg": "Date", ".pdf": "CreationDate"}  # the metadata that would differ from run to run


class CurvePoint(NamedTuple):
    """One vocabulary size."""

    vocab_size: int  # number of tokens
    bytes_per_token: float  # average over the counted text
    embedding_parameters: int  # parameters of a model's input and output embeddings together: 2 * vocab_size * hidden


def compression_curve(tokenizer: Tokenizer, counts: Counts, sizes: Iterable[int], hidden: int) -> list[CurvePoint]:
    """Returns a point for every size, ascending. A size above the tokenizer's is reduced to it."""
    refuse_dropout(tokenizer.model, "cannot count tokens")
    words = counts.to_dict()
    size = sum(len(word) * count for word, count in words.items())
    points = []
    for vocab_size in sorted({min(wanted, len(tokenizer)) for wanted in sizes}):
        encoder = _binding.Encoder(tokenizer.prune(vocab_size=vocab_size).model.to_vocab())
        tokens = sum(len(encoder.encode_words(word, [len(word)])) * count for word, count in words.items())
        points.append(CurvePoint(vocab_size, size / tokens if tokens else 0.0, 2 * vocab_size * hidden))
    return points


def curve_table(points: Sequence[CurvePoint]) -> str:
    """Returns the curve as a table. "fewer tokens" compares a row with the one above it."""
    rows, before = list[list[str]](), 0.0
    for point in points:
        gain = f"{1 - before / point.bytes_per_token:.1%}" if before else ""
        before = point.bytes_per_token
        rows.append([f"{point.vocab_size:,}", f"{before:.3f}", gain, f"{point.embedding_parameters:,}"])
    return table(["vocabulary", "bytes/token", "fewer tokens", "embedding parameters"], rows)


def plot(points: Sequence[CurvePoint], path: str) -> None:
    """Draws the curve to a file, atomically. The same curve gives the same bytes. The file's name ends in .png, .svg or
    .pdf. The size axis is linear: on a logarithmic axis most curves are nearly straight, and does not show
    where it flattens."""
    figure, axes = _pyplot().subplots(figsize=(7, 4), layout="constrained")
    sizes = [point.vocab_size for point in points]
    lines = axes.plot(sizes, [point.bytes_per_token for point in points], marker="o", label="bytes per token")
    axes.set(xlabel="vocabulary", ylabel="bytes per token")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    right = axes.twinx()
    parameters = [point.embedding_parameters / 1e6 for point in points]
    lines += right.plot(sizes, parameters, linestyle="--", color="gray", label="embedding parameters (right)")
    right.set_ylabel("embedding parameters, millions")
    right.set_ylim(bottom=0)
    axes.legend(handles=lines, loc="lower right")
    drawing = io.BytesIO()
    ending = os.path.splitext(path)[1]
    figure.savefig(drawing, format=ending[1:], metadata={_DATES[ending]: None} if ending in _DATES else None)
    _binding.write_file(path, drawing.getbuffer())


def check_plot(path: str) -> None:
    """Raises an error if `plot` cannot draw to this file, so that a run fails now and not after an hour of training."""
    if os.path.splitext(path)[1] not in PLOTS:
        raise ArgumentError(f"{path}: the name of a plot must end in one of {', '.join(PLOTS)}")
    _pyplot()


def _pyplot() -> Any:
    """Returns matplotlib.pyplot, set up to draw to files only."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("plotting needs matplotlib: pip install 'pybpe[plot]'") from None
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "pybpe"  # otherwise the ids inside the file are random
    from matplotlib import pyplot

    return pyplot
