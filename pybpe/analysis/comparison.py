"""Compares tokenizers on documents in several languages, or of several kinds: `pybpe.compare`."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _binding
from .._lazy import numpy
from ..arguments import Text, instance, is_unicode, number_of, param, shown, utf8
from ..errors import ArgumentError, warn
from ..reading.charset import Doubts
from ..reading.cuts import Cut, cutter, data_pieces
from ..reading.documents import Kinds
from ..reading.files import corpus_files
from ..reading.inputs import STDIN, Inputs, ReadOptions, is_path_list, path_list
from ..reading.objects import check_object, lines_of, records_first, texts_of
from ..reading.pieces import Piece, pieces_of, record_pieces, text_piece
from ..reading.planning import progress_total, whole
from ..support.parallel import map_ordered, worker_count
from ..support.progress import Progress
from ..tokenizer import Tokenizer, Tokenizers, named_tokenizers
from ..tokenizer.encoding import segments
from . import table
from .measures import RARE, efficiency, gini, renyi_entropy, zipf

if TYPE_CHECKING:
    Counts = numpy.ndarray[Any, numpy.dtype[numpy.int64]]

ALL = "all"  # the name of all documents together

# The columns that show TokenizerMeasures: title, attribute, format.
_COLUMNS = (
    ("tokens", "tokens", ",d"),
    ("bytes/token", "bytes_per_token", ".3f"),
    ("tokens/word", "tokens_per_word", ".3f"),
    ("tokens/char", "tokens_per_character", ".3f"),
    ("Renyi", "renyi_efficiency", ".3f"),
    ("used", "used_share", ".1%"),
    ("never", "never", ",d"),
    ("rare", "rare", ",d"),
    ("not UTF-8", "not_utf8_share", ".1%"),
    ("Zipf", "zipf_slope", ".2f"),
)


@dataclass
class TextSize:
    """The size of a text that was measured. It does not depend on the tokenizers and their normalizers."""

    bytes: int = 0  # number of bytes, without special tokens
    characters: int = 0  # number of code points. A byte that is not part of valid UTF-8 counts as one
    words: int = 0  # number of words, which white space separates, as in str.split
    lines: int = 0  # number of lines of plain text, including empty lines. A record counts as one
    special_tokens: int = 0  # number of special tokens that separate the documents

    def __iadd__(self, other: TextSize) -> TextSize:
        self.bytes += other.bytes
        self.characters += other.characters
        self.words += other.words
        self.lines += other.lines
        self.special_tokens += other.special_tokens
        return self


@dataclass(frozen=True)
class VocabularyFacts:
    """Facts about a vocabulary that do not depend on a text."""

    ordinary: int  # number of tokens that can occur in a text: all except special tokens
    special: int  # number of special tokens
    not_utf8: int  # number of ordinary tokens of several bytes that are not valid UTF-8, such as parts of characters
    unreachable: int  # number of ordinary tokens that are UTF-8, but that encoding their own text does not give


@dataclass(frozen=True)
class TokenizerMeasures:
    """Measures of a tokenizer on a text. A measure that is undefined for the text is None."""

    tokens: int  # number of tokens of the text
    # bytes_per_token, tokens_per_word, tokens_per_character: TextSize says how they count
    bytes_per_token: float | None
    tokens_per_word: float | None
    tokens_per_character: float | None
    renyi_efficiency: float | None  # Renyi entropy (alpha = 2.5) of the tokens, divided by log2(all ordinary tokens)
    renyi_efficiency_used: float | None  # the same entropy, divided by log2(ordinary tokens that occur)
    used: int  # number of ordinary tokens that occur
    used_share: float  # `used` as a share of all ordinary tokens
    never: int  # number of ordinary tokens that do not occur
    rare: int  # number of ordinary tokens that occur, but fewer than 100 times
    not_utf8_share: float | None  # share of the text's tokens that are not valid UTF-8 on their own
    # zipf_slope, zipf_r2: the line that fits log(count) over log(rank): see pybpe.analysis.measures.zipf
    zipf_slope: float | None
    zipf_r2: float | None


@dataclass(frozen=True)
class Fairness:
    """How differently a tokenizer treats languages."""

    # language -> the number of its tokens divided by the first language's. None if they are not translations.
    parity: dict[str, float] | None
    gini_tokens: float | None  # Gini coefficient of the tokens of the languages. None if they are not translations.
    # gini_per_character, gini_per_byte: Gini coefficient of the tokens per character, and per byte
    gini_per_character: float
    gini_per_byte: float


@dataclass(frozen=True)
class Comparison:
    """The result of `pybpe.compare`. print() shows it as a table.

    Attributes:
        texts: language -> TextSize.
        vocabularies: tokenizer -> VocabularyFacts.
        measures: tokenizer -> language, or "all" -> TokenizerMeasures.
        fairness: tokenizer -> Fairness. Empty if there is only one language.
        parallel: whether the text has the same number of lines in all languages. pybpe then assumes that they are
            translations of each other.
        samples: a number or a piece of code -> tokenizer -> its tokens, as text. A tokenizer that has no token for one
            of the bytes is missing.
        notes: facts that a reader of the numbers should know.
    """

    texts: dict[str, TextSize]
    vocabularies: dict[str, VocabularyFacts]
    measures: dict[str, dict[str, TokenizerMeasures]]
    fairness: dict[str, Fairness]
    parallel: bool
    samples: dict[str, dict[str, list[str]]]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data, with fractions rounded to 6 digits."""
        plain: dict[str, Any] = _rounded(asdict(self))
        return plain

    def __str__(self) -> str:
        blocks = self._tables()
        for sample, found in self.samples.items():
            if "\n" in sample:
                width = max(map(len, found), default=0)
                blocks.append("\n".join(f"{name:>{width}}  {_cut(tokens)}" for name, tokens in found.items()))
        blocks.append("\n".join(f"note: {note}" for note in self.notes))
        return "\n\n".join(filter(None, blocks))

    def _tables(self) -> list[str]:
        sizes = [
            (name, *(f"{n:,}" for n in (size.bytes, size.characters, size.words, size.lines)))
            for name, size in self.texts.items()
        ]
        facts = [
            (name, *(f"{n:,}" for n in vars(vocabulary).values())) for name, vocabulary in self.vocabularies.items()
        ]
        tables = [
            table(["text", "bytes", "characters", "words", "lines"], sizes),
            table(["vocabulary", "tokens", "special", "not UTF-8", "unreachable"], facts),
        ]
        for language in (*self.texts, *((ALL,) if len(self.texts) > 1 else ())):
            rows = [
                (name, *(_shown(getattr(found[language], field), form) for _, field, form in _COLUMNS))
                for name, found in self.measures.items()
            ]
            tables.append(table([f"on {language}", *(title for title, _, _ in _COLUMNS)], rows))
        if self.fairness:
            tables.append(self._fairness())
        numbers = [
            (sample, *(_cut(pieces.get(name, ["-"])) for name in self.measures))
            for sample, pieces in self.samples.items()
            if "\n" not in sample
        ]
        return [*tables, table(["sample", *self.measures], numbers, left=True)]

    def _fairness(self) -> str:
        titles = ["fairness", "Gini/char", "Gini/byte"]
        titles += ["Gini", *(f"parity {language}" for language in self.texts)] if self.parallel else []
        rows: list[list[str]] = []
        for name, facts in self.fairness.items():
            rows.append([name, _shown(facts.gini_per_character, ".3f"), _shown(facts.gini_per_byte, ".3f")])
            if facts.parity is not None:
                rows[-1] += [_shown(facts.gini_tokens, ".3f"), *(f"{ratio:.2f}" for ratio in facts.parity.values())]
        return table(titles, rows)


def _cut(tokens: Sequence[str]) -> str:
    """Returns tokens with bars between them, and line ends and tabs as in Python."""
    return "|".join(repr(token)[1:-1] for token in tokens)


def _shown(value: float | None, form: str) -> str:
    """Returns a number in a format, or "-" for None."""
    return "-" if value is None else format(value, form)


def _rounded(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_rounded(value) for value in data]
    if isinstance(data, float) and data and math.isfinite(data):
        return float(f"{data:.6g}")
    return data


_LONG_WORD = 20  # characters. Texts whose words are longer on average do not separate words with spaces

NUMBERS = ("42", "365", "2024", "65536", "1234567", "1,234,567", "3.14159", "-273.15", "0x7fff", "2024-02-29", "12:30")
CODE = (
    "12345 + 67890 = 80235",
    "def area(r):\n    return 3.14 * r**2  # circle\n",
    "for (int i = 0; i < n; i++) {\n\ttotal += a[i];\n}\n",
    '{"name": "x_1", "values": [1, 2.5, null]}',
    "https://example.com/a?q=1",
)


def compare(
    tokenizers: Tokenizers,
    on: Mapping[str, Inputs | Iterable[Text]],
    *,
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    workers: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Measures tokenizers on the same documents: compression, fertility, fairness between languages, use of the
    vocabulary.

    docs/comparing.md explains the measures. Sizes are measured before any normalizer. The special tokens of all the
    tokenizers separate plain text, and count neither as text nor as tokens. Templates are not applied.

    Args:
        tokenizers: one or more, as name -> tokenizer or as a list.
        on: a mapping from a language, or any other name for a kind of text, to its documents: paths (see
            `pybpe.train`), or an iterable of strings.
        text_key: the key, or the column, of the text in a record.
        encoding: encoding of the files. None decides for every file: see `pybpe.binarize`.
        keep_crlf: see `pybpe.binarize`.
        workers: number of threads. None uses all CPUs. The result is the same for any number.
        progress: whether to show a progress bar. None shows it on a terminal.

    Returns:
        The Comparison. print() shows it as tables.

    Raises:
        ArgumentError: there is no tokenizer or no text, a name is invalid, or a tokenizer has no token for a byte.
        FileError, FormatError: as in `pybpe.train`.
    """
    named = named_tokenizers(tokenizers)
    if not named:
        raise ArgumentError(f"{param('tokenizers')} is empty: pass at least one tokenizer")
    _check_languages(on)
    tallier = Tallier(named, ReadOptions(text_key, encoding, keep_crlf), workers)
    tallies = {}
    for language, inputs in on.items():
        tallies[language] = tallier.tally(inputs, progress)
        if not (size := tallies[language][0]).bytes:
            except_for = f" but {number_of(size.special_tokens, 'special token')}" if size.special_tokens else ""
            raise ArgumentError(f"on: {shown(language)} has no text{except_for}: there is nothing to measure")
    texts = {language: size for language, (size, _) in tallies.items()}
    parallel = len(texts) > 1 and len({size.lines for size in texts.values()}) == 1
    if len(texts) > 1 and not parallel:
        lines = ", ".join(f"{language} has {size.lines}" for language, size in texts.items())
        warn(
            f"the texts are not translations of each other, line by line ({lines} lines): differences between languages"
            " may come from what the texts say"
        )
    vocabularies = {name: _Vocabulary(tok) for name, tok in named.items()}
    return Comparison(
        texts=texts,
        vocabularies={name: vocabulary.facts for name, vocabulary in vocabularies.items()},
        measures={name: _all_measures(name, vocabulary, tallies) for name, vocabulary in vocabularies.items()},
        fairness={name: _fairness(name, tallies, parallel) for name in named if len(texts) > 1},
        parallel=parallel,
        samples={sample: _pieces(named, sample) for sample in NUMBERS + CODE},
        notes=_notes(named, vocabularies, texts, tallies),
    )


def _check_languages(on: object) -> None:
    instance("on", on, Mapping, "a mapping of names to texts, such as {'en': 'english.txt'}")
    assert isinstance(on, Mapping)
    if not on:
        raise ArgumentError("on is empty: pass at least one text, such as {'en': 'english.txt'}")
    stdin = 0
    for name, inputs in on.items():
        instance("the name of a text", name, str, "a str")
        if not name or name == ALL or not name.isprintable() or not is_unicode(name):
            raise ArgumentError(f"on: {shown(name)} cannot be the name of a text: use another one, such as 'en'")
        stdin += path_list(inputs).count(STDIN) if is_path_list(inputs) else 0
    if stdin > 1:
        raise ArgumentError("on: standard input (-) can be read only once")


class _Vocabulary:
    """A tokenizer's ordinary tokens: their ids, ascending, and the ids of tokens that are not valid UTF-8."""

    def __init__(self, tok: Tokenizer) -> None:
        hidden = {tok.special_tokens[text] for text in hidden_specials(tok)}
        self.ordinary = [i for i in tok.model.vocab if i not in hidden]
        self.broken = [i for i in self.ordinary if not is_utf8(tok.model.vocab[i])]
        self.facts = VocabularyFacts(
            ordinary=len(self.ordinary),
            special=len(hidden),
            not_utf8=sum(1 for i in self.broken if len(tok.model.vocab[i]) > 1),
            unreachable=len(unreachable(tok, sorted(set(self.ordinary) - set(self.broken)))),
        )


def is_utf8(token: bytes) -> bool:
    """Returns whether the bytes of a token are valid UTF-8 on their own."""
    return _binding.utf8_valid(token) == len(token)


def unreachable(tok: Tokenizer, ids: list[int]) -> list[int]:
    """Returns the ids that encoding the text of their token does not give."""
    lacking = set(tok.model.lacking_bytes)
    simple = [i for i in ids if lacking.isdisjoint(tok.model.vocab[i])]
    visible = tok._encoder.allowed((), tok.model.visible)
    found, starts = tok._encoder.arrays([tok.model.vocab[i] for i in simple], visible, 1)
    reached = {i for i, start, end in zip(simple, starts, starts[1:]) if end - start == 1 and found[start] == i}
    reached |= {i for i in ids if not lacking.isdisjoint(tok.model.vocab[i]) and _is_reached(tok, i)}
    return [i for i in ids if i not in reached]


def _is_reached(tok: Tokenizer, i: int) -> bool:
    try:
        return tok.encode(tok.model.vocab[i], allowed_special=tok.model.visible) == [i]
    except ArgumentError:  # no token for a byte
        return False


def _all_measures(name: str, vocabulary: _Vocabulary, tallies: Mapping[str, Tally]) -> dict[str, TokenizerMeasures]:
    measures = {language: _measures(vocabulary, size, counts[name]) for language, (size, counts) in tallies.items()}
    total = TextSize()
    for size, _ in tallies.values():
        total += size
    measures[ALL] = _measures(vocabulary, total, sum(counts[name] for _, counts in tallies.values()))  # type: ignore[arg-type]
    return measures


def _measures(vocabulary: _Vocabulary, size: TextSize, by_id: Counts) -> TokenizerMeasures:
    counts = by_id[vocabulary.ordinary]
    tokens, used = int(counts.sum()), int((counts > 0).sum())
    entropy = renyi_entropy(counts)
    zipf_slope, zipf_r2 = zipf(counts)
    return TokenizerMeasures(
        tokens=tokens,
        bytes_per_token=_ratio(size.bytes, tokens),
        tokens_per_word=_ratio(tokens, size.words),
        tokens_per_character=_ratio(tokens, size.characters),
        renyi_efficiency=efficiency(entropy, len(counts)),
        renyi_efficiency_used=efficiency(entropy, used),
        used=used,
        used_share=used / len(counts),
        never=len(counts) - used,
        rare=int(((counts > 0) & (counts < RARE)).sum()),
        not_utf8_share=_ratio(int(by_id[vocabulary.broken].sum()), tokens),
        zipf_slope=zipf_slope,
        zipf_r2=zipf_r2,
    )


def _ratio(amount: int, of: int) -> float | None:
    return amount / of if of else None


def _fairness(name: str, tallies: Mapping[str, Tally], parallel: bool) -> Fairness:
    tokens = {language: int(counts[name].sum()) for language, (_, counts) in tallies.items()}
    sizes = [size for size, _ in tallies.values()]
    first = next(iter(tokens.values()))
    return Fairness(
        parity={language: count / first for language, count in tokens.items()} if parallel else None,
        gini_tokens=gini(list(tokens.values())) if parallel else None,
        gini_per_character=gini([count / size.characters for count, size in zip(tokens.values(), sizes)]),
        gini_per_byte=gini([count / size.bytes for count, size in zip(tokens.values(), sizes)]),
    )


def _pieces(tokenizers: Mapping[str, Tokenizer], sample: str) -> dict[str, list[str]]:
    found = {}
    for name, tok in tokenizers.items():
        if set(tok.model.lacking_bytes).isdisjoint(sample.encode()):
            ids = tok.encode(sample, allowed_special=tok.model.visible)
            found[name] = [tok.id_to_token(i) for i in ids]
    return found


def _notes(
    tokenizers: Mapping[str, Tokenizer],
    vocabularies: Mapping[str, _Vocabulary],
    texts: Mapping[str, TextSize],
    tallies: Mapping[str, Tally],
) -> list[str]:
    notes = []
    first_of: dict[Tokenizer, str] = {}
    for name, tok in tokenizers.items():
        if tok in first_of:
            notes.append(f"{name} and {first_of[tok]} are equal: they give the same ids for every text")
        first_of.setdefault(tok, name)
        if tok.model.normalizer is not None:
            notes.append(
                f"{name} changes the text first ({tok.model.normalizer}). Bytes, characters and words are counted"
                " before that change"
            )
        if tok.model.prefix_space:
            notes.append(f"{name} adds a space before each text that does not begin with one")
        if tok.model.template is not None:
            notes.append(f"{name} has a template that adds tokens around a text. These tokens are not counted")
        tokens = sum(int(counts[name].sum()) for _, counts in tallies.values())
        if tokens < RARE * vocabularies[name].facts.ordinary:
            notes.append(
                f"{name}: the {tokens:,} tokens of these texts are too few for each of its"
                f" {vocabularies[name].facts.ordinary:,} tokens to occur {RARE} times. Use more text to find those that"
                " are rare or never occur"
            )
    for language, size in texts.items():
        if size.special_tokens:
            marks = number_of(size.special_tokens, "special token")
            verb = "separates" if size.special_tokens == 1 else "separate"
            notes.append(f"{language}: {marks} {verb} its texts. No measure includes them")
        if size.characters > _LONG_WORD * size.words:
            notes.append(f"{language}: its words have {size.characters / max(1, size.words):.0f} characters on average:"
                         " it does not separate words with spaces, so tokens per word says little")  # fmt: skip
    return notes


# ----------------------------------------------------------------------------------------------------
# Encodes documents with several tokenizers, and counts their tokens.
#
# All tokenizers encode the same documents. The code cuts plain text at every special token of any of them, as at
# <|endoftext|> between two documents, and measures only the text between. Special tokens that readers see as text
# (Model.visible) do not separate documents. The tokenizers that have them use them. In records nothing is a special
# token, as in `binarize`. The white space around a special token that separates documents is text, even if the special
# token would take it (lstrip, rstrip).
#
# The code reads files in pieces, which it cuts where a word of every tokenizer begins. So memory does not grow with the
# text, and the counts are the counts of the whole text.


def text_size(text: bytes) -> TextSize:
    """Returns the size of a text without special tokens. Its number of lines is the number of its line ends."""
    decoded = text.decode("utf-8", "surrogateescape")
    return TextSize(len(text), len(decoded), len(decoded.split()), text.count(b"\n"))


# The size of some documents together, and tokenizer -> number of occurrences per id: int64, shape (n_vocab,).
Tally = tuple[TextSize, dict[str, "Counts"]]


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
        """Reads paths, or an iterable of documents."""
        size = TextSize()
        counts = {name: numpy.zeros(len(tok), numpy.int64) for name, tok in self._tokenizers.items()}
        self._doubts = Doubts()
        items, total = self._items(inputs)
        in_word = in_line = False
        with Progress("measuring", total, "B", progress) as bar:
            for found in map_ordered(self._look, items, self._workers):
                self._doubts.tell(found.doubt)
                size += found.size
                size.words -= found.continues and in_word and found.starts_in_word
                size.lines += in_line and not found.continues
                in_word, in_line = found.ends_in_word, found.ends_in_line
                for total_counts, some in zip(counts.values(), found.counts):
                    total_counts[: len(some)] += some
                bar.add(found.read)
        size.lines += in_line
        return size, counts

    def _items(self, inputs: Any) -> tuple[Iterator[tuple[Piece, bool]], int | None]:
        """Returns pieces of text for threads, and whether each belongs to the text of the one before it, and the total
        number of bytes, if it is known."""
        if is_path_list(inputs):
            files, kinds = corpus_files(inputs, self._read), Kinds(self._read)
            pieces = (enumerate(pieces_of(whole(file), kinds, self._cut)) for file in files)
            total = progress_total(files, self._read.text_key)
            return ((piece, number > 0) for some in pieces for number, piece in some), total
        check_object(inputs, "on")
        are_records, inputs = records_first(inputs)
        if are_records:
            return ((piece, False) for piece in record_pieces(lines_of(inputs, self._read), self._read)), None
        parts = (enumerate(data_pieces(utf8(text), self._cut)) for text in texts_of(inputs, "on"))
        return ((text_piece(data), number > 0) for some in parts for number, data in some), None

    def _look(self, item: tuple[Piece, bool]) -> _PieceTally:
        piece, continues = item
        if not piece.is_text:
            texts = piece.texts(self._read.text_key)
            size = TextSize()
            for text in texts:
                size += text_size(text)
            size.lines = len(texts)
            return _PieceTally(size, self._counts(texts, True), continues, False, False, False, piece.size, None)
        data = bytes(piece.text)
        doubt = piece.doubt(self._doubts.look) if piece.path else None
        parts = list(segments(data, self._marks))
        texts = [text for text, _ in parts]
        size = TextSize(special_tokens=len(parts) - 1)
        for text in texts:
            size += text_size(text)
        size.lines = data.count(b"\n")
        edges = _in_word(texts[0][:4], 0), _in_word(texts[-1][-4:], -1), not data.endswith(b"\n")
        return _PieceTally(size, self._counts(texts, False), continues, *edges, len(data), doubt)

    def _counts(self, texts: Sequence[bytes], records: bool) -> list[Counts]:
        """Returns, for every tokenizer, how often its ids occur, up to the highest id that occurs."""
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


# ----------------------------------------------------------------------------------------------------
# The differences between two tokenizers


_SHOWN_DIFFERENCES = 1000


def differences(a: Tokenizer, b: Tokenizer) -> dict[str, Any]:
    """Returns the differences between two tokenizers, as plain data.

    Returns:
        "equal": whether they give the same ids for every text. "settings": name -> [value in a, value in b] where they
        differ. "only_in_a", "only_in_b": tokens, ordinary or special. "other_ids": [token, id in a, id in b].
        "first_merge": [rank, merge of a, merge of b] where the lists first differ, or None. Tokens are shown as text,
        with U+FFFD for bytes that are not UTF-8.
    """
    left, right = _tokens(a), _tokens(b)
    return {
        "equal": a.model.fingerprint == b.model.fingerprint,
        "settings": _settings(a, b),
        "only_in_a": [_key_text(key) for key in left if key not in right],
        "only_in_b": [_key_text(key) for key in right if key not in left],
        "other_ids": [[_key_text(key), i, right[key]] for key, i in left.items() if right.get(key, i) != i],
        "first_merge": _first_merge(a, b),
    }


def _tokens(tokenizer: Tokenizer) -> dict[tuple[bool, bytes], int]:
    """Returns (is special, bytes) -> id."""
    specials = set(tokenizer.special_tokens.values())
    return {(i in specials, token): i for i, token in tokenizer.model.vocab.items()}


def _key_text(key: tuple[bool, bytes]) -> str:
    return key[1].decode("utf-8", "replace")


def _settings(a: Tokenizer, b: Tokenizer) -> dict[str, list[Any]]:
    def facts(tokenizer: Tokenizer) -> dict[str, Any]:
        model = tokenizer.model
        return {
            "vocab_size": tokenizer.vocab_size,
            "merges": len(model.merges),
            "pattern": model.pattern,
            "normalizer": model.normalizer,
            "whole_words": model.whole_words,
            "dropout": model.dropout,
            "eot_token": model.eot,
            "template": str(model.template) if model.template is not None else None,
            "prefix_space": model.prefix_space,
            "matching": {text: rules.names for text, rules in model.matching.items()},
        }

    left, right = facts(a), facts(b)
    different = {name: [value, right[name]] for name, value in left.items() if right[name] != value}
    if "pattern" in different:  # patterns are equal if their regular expressions are, even if their names differ
        different["pattern"] = list(map(str, different["pattern"]))
    return different


def _first_merge(a: Tokenizer, b: Tokenizer) -> list[Any] | None:
    for rank, (one, other) in enumerate(zip_longest(a.merges, b.merges)):
        if one != other:
            shown = [[part.decode("utf-8", "replace") for part in pair] if pair else None for pair in (one, other)]
            return [rank, *shown]
    return None


def differences_on(a: Tokenizer, b: Tokenizer, text: bytes) -> dict[str, Any]:
    """Compares how two tokenizers encode a text.

    Returns:
        "tokens_a", "tokens_b": the numbers of tokens. "different": [byte offset, tokens of a, tokens of b] for up to
        1000 places where the token boundaries differ, with tokens as text, or None if the tokenizers decode to
        different texts, for example because of their normalizers.
    """
    ids_a, ids_b = a.encode(text), b.encode(text)
    facts: dict[str, Any] = {"tokens_a": len(ids_a), "tokens_b": len(ids_b), "different": None}
    text = a.decode_bytes(ids_a)
    if text == b.decode_bytes(ids_b):
        ends = _ends(a, ids_a), _ends(b, ids_b)
        found: list[Any] = []
        for start, end in pairwise([0, *sorted(set(ends[0]) & set(ends[1]))]):
            left, right = (some[bisect_right(some, start) : bisect_right(some, end)] for some in ends)
            if left != right and len(found) < _SHOWN_DIFFERENCES:
                found.append([start, _texts_between(text, start, left), _texts_between(text, start, right)])
        facts["different"] = found
    return facts


def _ends(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    return list(accumulate(len(tokenizer.model.tokens[i]) for i in ids))


def _texts_between(text: bytes, start: int, ends: list[int]) -> list[str]:
    return [text[a:b].decode("utf-8", "replace") for a, b in zip([start, *ends], ends)]
