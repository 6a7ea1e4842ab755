"""How a text becomes ids, step by step: the result of `Tokenizer.explain`. It applies the rules of BPE as they are
defined, without a cache or a clever search, so it is slow, and short enough to learn from."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .. import _binding
from ..arguments import number_of
from ..errors import LimitError
from ..model import Model
from ..normalize import prepared

LONGEST_WORD = 2000  # bytes. The time and the memory for a word grow with the square of its length

# The colors of tokens on the page of pybpe.viz: its ink, and --c0 to --c5.
_INK, *_COLORS = "#22242a", "#dfeafb", "#fde7d3", "#dcf1df", "#f6e0ee", "#fbf1c4", "#e4e2f8"


class Step(NamedTuple):
    """One step of a word.

    Attributes:
        rule: "bytes", the start: one id per byte, "merge", or the rule that makes one id of the whole
            word without merges: "special token", or "whole word" (see Model.whole_words).
        rank: the place of the merge in `Tokenizer.merges`, or None.
        ids: the ids of the word after the step.
    """

    rule: str
    rank: int | None
    ids: tuple[int, ...]


class Word(NamedTuple):
    """A word, which the merges are applied to separately, or a special token.

    Attributes:
        text: its bytes: normalized, and with the space that was added before it (see Model.prefix_space).
        steps: the steps, in order. The first one is the start.
    """

    text: bytes
    steps: tuple[Step, ...]


class Explanation:
    """The steps of a tokenizer on a text. `str` and `print` show it as text. A notebook shows it in color.

    Attributes:
        words: the words and special tokens of the text, in order.
    """

    def __init__(self, words: Sequence[Word], tokens: Sequence[bytes]) -> None:
        self.words = tuple(words)
        self._tokens = tokens

    @property
    def ids(self) -> list[int]:
        """The ids of the text, as `encode` returns them."""
        return [i for word in self.words for i in word.steps[-1].ids]

    def __repr__(self) -> str:
        return f"Explanation({number_of(len(self.words), 'word')}; print shows them)"

    def __str__(self) -> str:
        """The words with their ids, and below a word one line per step."""
        return "\n".join(line for word in self.words for line in self._lines(word))

    def _lines(self, word: Word) -> Iterator[str]:
        yield f"{shown_token(word.text)}: {' '.join(map(str, word.steps[-1].ids))}"
        for step in word.steps:
            tokens = " ".join(shown_token(self._tokens[i]) for i in step.ids)
            yield f"{_label(step):>15}  {tokens}"

    def to_html(self) -> str:
        """Returns the same as a part of an HTML page, in the colors of the page that `pybpe.viz` makes. It needs no
        style or script of the page. A token has the color of its first byte, and its id as a title."""
        rows = "".join(self._rows(word) for word in self.words)
        return f'<table style="font-family: monospace; white-space: pre">{rows}</table>'

    _repr_html_ = to_html

    def _rows(self, word: Word) -> str:
        rows = f'<tr><th colspan="2" style="text-align: left">{html.escape(shown_token(word.text))}</th></tr>'
        for step in word.steps:
            chips = "".join(self._chips(step.ids))
            rows += f'<tr><td>{_label(step)}</td><td style="text-align: left">{chips}</td></tr>'
        return rows

    def _chips(self, ids: Sequence[int]) -> Iterator[str]:
        start = 0
        for i in ids:
            style = f"background: {_COLORS[start % len(_COLORS)]}; color: {_INK}; margin: 1px; padding: 1px 4px"
            yield f'<span style="{style}" title="{i}">{html.escape(shown_token(self._tokens[i]))}</span>'
            start += len(self._tokens[i])


def _label(step: Step) -> str:
    return step.rule if step.rank is None else f"merge {step.rank}"


def shown_token(token: bytes) -> str:
    """Returns a token as Python writes it: 'text', or b'bytes' if it is not UTF-8."""
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)


def explain(model: Model, data: bytes, specials: _binding.Specials | None) -> Explanation:
    """Returns the steps from a text to its ids. `specials` matches the special tokens to look for. Raises LimitError
    for a word of more than LONGEST_WORD bytes."""
    special_ids = set(model.specials.values())
    known = {token: i for i, token in enumerate(model.tokens) if i not in special_ids}
    merges = {pair: rank for rank, pair in reversed(list(enumerate(model.merges)))}
    words, begin = [], 0
    for start, end, special in [
        *(specials.find_all(data) if specials is not None else ()),
        (len(data), len(data), None),
    ]:
        segment, at = bytes(prepared(data[begin:start], model.normalizer, model.prefix_space)), 0
        for stop in model.pattern.word_ends(segment):
            if stop - at > LONGEST_WORD:
                raise LimitError(
                    f"the word {shown_token(segment[at : at + 20])}... has {stop - at} bytes: explain shows at most"
                    f" {LONGEST_WORD} of a word, so pass a shorter text"
                )
            words.append(Word(segment[at:stop], tuple(_steps(segment[at:stop], known, merges, model))))
            at = stop
        if special is not None:
            words.append(Word(data[start:end], (Step("special token", None, (special,)),)))
        begin = end
    return Explanation(words, model.tokens)


def _steps(
    word: bytes, known: Mapping[bytes, int], merges: Mapping[tuple[int, int], int], model: Model
) -> Iterator[Step]:
    """Yields the steps of a word: merges the pair with the lowest rank, the leftmost of them, until there is none."""
    if model.whole_words and word in known:
        yield Step("whole word", None, (known[word],))
        return
    ids = [known[bytes([byte])] for byte in word]
    yield Step("bytes", None, tuple(ids))
    while found := [(merges[pair], at) for at, pair in enumerate(zip(ids, ids[1:])) if pair in merges]:
        rank, at = min(found)
        ids[at : at + 2] = [known[model.tokens[ids[at]] + model.tokens[ids[at + 1]]]]
        yield Step("merge", rank, tuple(ids))
