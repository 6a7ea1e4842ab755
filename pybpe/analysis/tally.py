"""Encodes documents with several tokenizers, and counts their tokens.

All tokenizers encode the same texts. The code cuts plain text at every special token of any of them, as at
<|endoftext|> between two documents, and measures only the text between. Special tokens that readers see as text
(Model.visible) do not separate texts; the tokenizers that have them use them. In records nothing is a special token, as
in `binarize`. The white space around a special token that separates texts is text, even if the special token would
take it (lstrip, rstrip).

The code reads files in pieces, which it cuts where a word of every tokenizer begins. So memory does not grow with the
text, and the counts are the counts of the whole text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _binding
from .._lazy import numpy
from ..arguments import Text, utf8
from ..errors import ArgumentError
from ..reading.charset import Doubts
from ..reading.documents import Kinds
from ..reading.files import corpus_files
from ..reading.inputs import Inputs, ReadOptions, is_path_list
from ..reading.objects import texts_of
from ..reading.pieces import Cut, cutter, data_pieces
from ..reading.planning import Piece, pieces_of, text_piece, whole
from ..support.parallel import map_ordered, worker_count
from ..support.progress import Progress
from ..tokenizer import Tokenizer
from ..tokenizer.encoding import segments

if TYPE_CHECKING:
    Counts = numpy.ndarray[Any, numpy.dtype[numpy.int64]]


@dataclass
class TextSize:
    """The size of a text that was measured. It does not depend on the tokenizers and their normalizers."""

    bytes: int = 0  # number of bytes, without special tokens
    characters: int = 0  # number of code points; a byte that is not part of valid UTF-8 counts as one
    words: int = 0  # number of words, which white space separates, as in str.split
    lines: int = 0  # number of lines of plain text, including empty lines; each record counts as one
    special_tokens: int = 0  # number of special tokens that separate the texts

    def __iadd__(self, other: TextSize) -> TextSize:
        self.bytes += other.bytes
        self.characters += other.characters
        self.words += other.words
        self.lines += other.lines
        self.special_tokens += other.special_tokens
        return self


def text_size(text: bytes) -> TextSize:
    """Returns the size of a text without special tokens. Its number of lines is the number of its line ends."""
    decoded = text.decode("utf-8", "surrogateescape")
    return TextSize(len(text), len(decoded), len(decoded.split()), text.count(b"\n"))


@dataclass
class Tally:
    """The size of some texts, and the tokens in them."""

    size: TextSize  # the size of all texts together
    counts: dict[str, Counts]  # tokenizer -> number of occurrences of each id: int64, shape (n_vocab,)


class _Taken(NamedTuple):
    """A piece of text for a thread."""

    piece: Piece
    continues: bool = False
    """Whether the previous piece belongs to the same text."""


class _PieceTally(NamedTuple):
    """The results of a thread for a piece. The fields about its edges tell whether a word, or the last line, may extend
    beyond the piece."""

    size: TextSize
    counts: list[Counts]
    continues: bool
    starts_in_word: bool
    ends_in_word: bool
    ends_in_line: bool
    read: int
    doubt: str | None


class Tallier:
    """Counts tokens of named tokenizers."""

    def __init__(self, tokenizers: Mapping[str, Tokenizer], read: ReadOptions, workers: int | None) -> None:
        self._tokenizers, self._read = tokenizers, read
        self._workers = worker_count(workers)
        self._marks = _binding.Specials.of(_distinct(map(hidden_specials, tokenizers.values())))
        specials = _binding.Specials.of(_distinct(tok.special_tokens for tok in tokenizers.values()))
        cuts = [cutter(tok.pattern, specials, tok.model.normalizer) for tok in tokenizers.values()]
        self._cut = common_cut(cuts + [tok._encoder.cut for tok in tokenizers.values() if tok.model.changes_text])
        self._visible = {name: tok._encoder.allowed((), tok.model.visible) for name, tok in tokenizers.items()}

    def tally(self, inputs: Inputs | Iterable[Text], progress: bool | None) -> Tally:
        """Reads paths, or an iterable of texts."""
        tally = Tally(TextSize(), {name: numpy.zeros(len(tok), numpy.int64) for name, tok in self._tokenizers.items()})
        self._doubts = Doubts()
        items, total = self._items(inputs)
        in_word = in_line = False
        with Progress("measuring", total, "B", progress) as bar:
            for found in map_ordered(self._look, items, self._workers):
                self._doubts.tell(found.doubt)
                tally.size += found.size
                tally.size.words -= found.continues and in_word and found.starts_in_word
                tally.size.lines += in_line and not found.continues
                in_word, in_line = found.ends_in_word, found.ends_in_line
                for name, counts in zip(self._tokenizers, found.counts):
                    tally.counts[name][: len(counts)] += counts
                bar.add(found.read)
        tally.size.lines += in_line
        return tally

    def _items(self, inputs: Any) -> tuple[Iterator[_Taken], int | None]:
        if is_path_list(inputs):
            files, kinds = corpus_files(inputs, self._read), Kinds(self._read)
            pieces = (enumerate(pieces_of(whole(file), kinds, self._cut)) for file in files)
            return (_Taken(piece, number > 0) for some in pieces for number, piece in some), files.known_size
        parts = (enumerate(data_pieces(utf8(text), self._cut)) for text in texts_of(inputs, "on"))
        return (_Taken(text_piece(data), number > 0) for some in parts for number, data in some), None

    def _look(self, item: _Taken) -> _PieceTally:
        piece = item.piece
        if not piece.is_text:
            texts = piece.texts(self._read.text_key)
            size = TextSize()
            for text in texts:
                size += text_size(text)
            size.lines = len(texts)
            return _PieceTally(size, self._counts(texts, True), item.continues, False, False, False, piece.size, None)
        data = bytes(piece.text)
        doubt = piece.doubt(self._doubts.look) if piece.path else None
        parts = list(segments(data, self._marks))
        texts = [text for text, _ in parts]
        size = TextSize(special_tokens=len(parts) - 1)
        for text in texts:
            size += text_size(text)
        size.lines = data.count(b"\n")
        edges = _in_word(texts[0][:4], 0), _in_word(texts[-1][-4:], -1), not data.endswith(b"\n")
        return _PieceTally(size, self._counts(texts, False), item.continues, *edges, len(data), doubt)

    def _counts(self, texts: Sequence[bytes], records: bool) -> list[Counts]:
        """Returns, for each tokenizer, the number of occurrences of each id in texts, up to the highest that occurs."""
        found = []
        for name, tok in self._tokenizers.items():
            try:
                ids, _ = tok._encoder.arrays(texts, None if records else self._visible[name], 1)
            except ArgumentError as error:  # no token for a byte
                raise ArgumentError(f"{name}: {error}") from None
            found.append(numpy.bincount(ids))
        return found


def hidden_specials(tok: Tokenizer) -> list[str]:
    """Returns the special tokens of a tokenizer that readers do not see as text."""
    return [text for text in tok.special_tokens if text not in tok.model.visible]


def common_cut(cuts: Sequence[Cut]) -> Cut:
    """Returns the Cut that finds the first place where all these Cuts allow a cut."""

    def cut(data: _binding.Data, start: int) -> int:
        while True:
            at = start
            for each in cuts:
                at = each(data, at)
            if at == start or at >= len(data):
                return at
            start = at

    return cut if len(cuts) > 1 else cuts[0]


def _distinct(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(lists)))


def _in_word(edge: bytes, index: int) -> bool:
    """Returns whether a text begins (index 0) or ends (-1) inside a word, judging by the 4 bytes at its edge."""
    decoded = edge.decode("utf-8", "surrogateescape")
    return bool(decoded) and not decoded[index].isspace()
