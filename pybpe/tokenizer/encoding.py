"""Turns text into ids for any model. The methods of Tokenizer share this code.

A text is cut at its special tokens. The parts between them are normalized, split into words with the pattern, and
merged. C does all of this, for many texts in one call, unless the pattern does not compile. Lists, arrays and counts
are views of the ids that C wrote: `TextEncoder._view` is the one way to all of them. Only short texts have another
(csrc/python/short_calls.h).

Long texts are encoded in pieces, cut only where a cut does not change any id. Groups of short texts, and pieces, are
items of work for threads.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from .. import _binding
from .._binding import Ids
from .._lazy import Array, cached_property, numpy
from ..arguments import Text, instance, param, utf8
from ..errors import ArgumentError
from ..model import Model, matcher, refuse_dropout
from ..normalize import normalize, prepared
from ..reading.cuts import PIECE_BYTES, Cutting, text_pieces
from ..support.parallel import map_ordered, run_interruptibly, worker_count

AllowedSpecial = Literal["all"] | Collection[str]
View = TypeVar("View")

_FEW_TEXTS = 16  # fewer texts: separate calls take less time than gathering them
_ITERABLE_BYTES = 1 << 14  # the amount of text that `iterate` gathers before it encodes
_LONG_PIECE = 4 * PIECE_BYTES  # a text without safe cuts gives longer pieces, which take a long time
_GROUP_BYTES = 1 << 18  # enough work to be worth handing to a thread. Longer texts are in groups of their pieces
_GROUP_TEXTS = 1 << 13
_MOST_GROUPS = 8  # per thread, if there are several: a group takes 20 microseconds of Python, in which others may wait
_MOST_EXPECTED = 1 << 28  # ids

_TextGroup = tuple[int, Sequence[Text]]  # consecutive texts of a batch, or a piece of one, and the index of the first


class _Workload(NamedTuple):
    """Texts, divided into items of work for threads."""

    groups: Iterable[_TextGroup]
    size: int  # the characters or bytes of all texts
    threads: int  # 0: one item that takes less time than to hand it to a thread


class TextEncoder:
    """Encodes texts with one model. Immutable except for caches. Threads may share it.

    Attributes:
        specials: the matcher for all special tokens, or None.
        cutting, cut: find the places where a text can be cut without changing its ids.
        short: functions for short texts and lists, with all special tokens.
    """

    def __init__(self, model: Model, vocab: _binding.Vocab) -> None:
        self._model = model
        self._vocab, self._pretok = vocab, model.pattern.pretok if model.pattern.is_custom else None
        self._direct = model.pattern.pretok is not None  # C does it all
        self._encoder = _binding.Encoder(vocab, self._pretok, prepares=self._direct)
        self.specials = matcher(model.specials, model.matching)
        what = model.pattern, model.specials, self.specials, model.normalizer, model.prefix_space
        self.cutting = Cutting.of(*what)
        self.cut = self.cutting.cut
        encodes = self._direct and not model.dropout
        self.short = self._encoder.short_calls(self.specials, model.id_bytes, encodes)
        self._matchers: dict[frozenset[str], _binding.Specials | None] = {}

    @cached_property
    def _plain_encoder(self) -> _binding.Encoder:
        """The encoder of texts as the pattern sees them."""
        return self._encoder if self._encoder.growth == 1 else _binding.Encoder(self._vocab, self._pretok)

    # ------------------------------------------------------------------------------------------------
    # Ids, and views of them. `specials` matches the special tokens to look for.

    def _divide(self, texts: Sequence[Text], num_threads: int | None) -> _Workload:
        """Divides texts into items of work for threads: one, if a call of C takes less time than dividing them."""
        if num_threads is not None:
            worker_count(num_threads, "num_threads")
        try:
            size = sum(map(len, texts))  # type: ignore[arg-type]
        except TypeError:  # a buffer without a length, or not a text
            size = sum(len(utf8(text)) for text in texts)
        if self._direct and size <= _GROUP_BYTES and len(texts) <= _GROUP_TEXTS:
            return _Workload(((0, texts),), size, 0)
        threads = worker_count(num_threads)
        if len(texts) == 1:
            return _Workload(self._pieces(texts, 0), size, threads if size > PIECE_BYTES else 1)
        return _Workload(self._groups(texts, threads), size, threads)

    def _groups(self, texts: Sequence[Text], threads: int) -> Iterator[_TextGroup]:
        try:
            sizes = numpy.fromiter(map(len, texts), numpy.int64, len(texts))  # type: ignore[arg-type]
        except TypeError:
            sizes = numpy.fromiter((len(utf8(text)) for text in texts), numpy.int64, len(texts))
        ends = numpy.cumsum(sizes)
        share = int(sizes.sum()) // (1 if threads == 1 else _MOST_GROUPS * threads)
        group_bytes = min(max(share, _GROUP_BYTES), 4 * _GROUP_BYTES)
        first = 0
        for stop in (*numpy.flatnonzero(sizes > _GROUP_BYTES).tolist(), len(texts)):
            while first < stop:
                until = int(numpy.searchsorted(ends, ends[first] - sizes[first] + group_bytes))
                until = min(max(until, first + 1), first + _GROUP_TEXTS, stop)
                yield first, texts[first:until]
                first = until
            if stop < len(texts):
                yield from self._pieces(texts, stop)
                first = stop + 1

    def _pieces(self, texts: Sequence[Text], i: int) -> Iterator[_TextGroup]:
        return ((i, (piece,)) for piece in text_pieces(texts[i], self.cut))

    def _views(
        self,
        work: _Workload,
        specials: _binding.Specials | None,
        id_bytes: int,
        view: Callable[[Ids], View],
        room: Callable[[int], Array] | None = None,
    ) -> Iterable[tuple[int, View]]:
        """Returns the index of the first text of every group, and view(the ids of its texts), which a thread calls. The
        arguments are as in _binding.Encoder.encode."""

        def encode(group: _TextGroup) -> tuple[int, View]:
            first, some = group
            return first, self._view(some, specials, id_bytes, view, room)

        return map_ordered(encode, work.groups, work.threads) if work.threads > 1 else map(encode, work.groups)

    def _view(
        self,
        texts: Sequence[Text],
        specials: _binding.Specials | None,
        id_bytes: int,
        view: Callable[[Ids], View],
        room: Callable[[int], Array] | None = None,
    ) -> View:
        """Encodes several short texts, or one text or piece. All ids come from here, except in short calls."""
        refuse_dropout(self._model, "encoding needs a seed")
        if not self._direct:
            rows = [self._split_and_encode(text, specials) for text in texts]
            return self._encoder.of_lists(rows, id_bytes, view, room)
        if len(texts) != 1:
            return self._encoder.encode(_ascii_or_bytes(texts), specials, id_bytes, view, room)
        data = utf8(texts[0])
        return _interruptibly(len(data), self._encoder.encode, (data,), specials, id_bytes, view, room)  # type: ignore[no-any-return]

    def _split_and_encode(self, text: Text, specials: _binding.Specials | None) -> list[int]:
        """Returns the ids of a text whose pattern Python's regex package runs."""
        ids: list[int] = []
        for segment, special in segments(bytes(utf8(text)), specials):
            data = self._prepared(segment)
            ids += self._encoder.encode_words(data, self._model.pattern.word_ends(data))
            if special is not None:
                ids.append(special)
        return ids

    def encode(self, text: Text, specials: _binding.Specials | None) -> list[int]:
        """Returns the ids of a text."""
        if isinstance(text, (str, bytes)) and len(text) <= _GROUP_BYTES:  # the same, sooner
            return self._view((text,), specials, 4, Ids.lists)[0]
        return self._lists((text,), specials, 1)[0]

    def batch(
        self, texts: Sequence[Text], specials: _binding.Specials | None, num_threads: int | None
    ) -> list[list[int]]:
        """Returns the ids of every text, computed by threads."""
        few = len(texts) <= _FEW_TEXTS and specials is self.specials
        if few and self._divide(texts, num_threads).threads == 0:
            return [self.short.encode(text) or self.encode(text, specials) for text in texts]
        return self._lists(texts, specials, num_threads)

    def _lists(
        self, texts: Sequence[Text], specials: _binding.Specials | None, num_threads: int | None
    ) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in texts]
        for first, found in self._views(self._divide(texts, num_threads), specials, 4, Ids.lists):
            if len(found) == 1 and rows[first]:  # a piece of a long text
                rows[first] += found[0]
            else:
                rows[first : first + len(found)] = found
        return rows

    def arrays(
        self, texts: Sequence[Text], specials: _binding.Specials | None, num_threads: int | None
    ) -> tuple[Array, Array]:
        """Returns the ids of all texts in one array, and the indexes where texts begin."""
        work, dtype = self._divide(texts, num_threads), self._model.dtype
        if work.threads == 0:
            return self._view(texts, specials, dtype.itemsize, partial(Ids.arrays, dtype=dtype))
        found, spare = GrowingIds(dtype, work.size), list[Array]()
        row_offsets = numpy.zeros(len(texts) + 1, dtype=numpy.int64)

        def room(size: int) -> Array:
            """A few buffers serve all groups, because fresh memory would cost a fifth of the time."""
            try:
                buffer = spare.pop()  # not after a test whether there is one: another thread may take it meanwhile
            except IndexError:
                buffer = numpy.empty(2 * PIECE_BYTES, dtype)
            return buffer if len(buffer) >= size else numpy.empty(size, dtype)

        def view(ids: Ids) -> tuple[Array, int, Array]:
            return ids.room, ids.total(), ids.numpy_ends()

        groups = self._views(work, specials, dtype.itemsize, view, found.room if work.threads == 1 else room)
        for first, (ids, count, ends) in groups:
            row_offsets[first + 1 : first + 1 + len(ends)] = found.count + ends  # a later piece of a text overwrites it
            if work.threads == 1:
                found.took(count)
            else:
                found.append(ids[:count])
                spare.append(ids)
        return found.result(), row_offsets

    def text_array(self, text: Text, specials: _binding.Specials | None, num_threads: int | None) -> Array:
        """Returns the ids of a text in an array."""
        if not isinstance(text, (str, bytes)) or len(text) > _GROUP_BYTES:
            return self.arrays((text,), specials, num_threads)[0]
        if num_threads is not None:
            worker_count(num_threads, "num_threads")
        dtype = self._model.dtype
        return self._view((text,), specials, dtype.itemsize, partial(Ids.array, dtype=dtype))

    def compact(self, text: Text, specials: _binding.Specials | None, typecode: str) -> array[int]:
        """Returns the ids of a text as an array of type H or I."""
        found, view = array(typecode), partial(Ids.compact, typecode=typecode)
        for _, (ids, _) in self._views(self._divide((text,), 1), specials, found.itemsize, view):
            if found:
                found.extend(ids)
            else:
                found = ids
        return found

    def compact_batch(
        self, texts: Sequence[bytes], specials: _binding.Specials | None, typecode: str
    ) -> tuple[array[int], array[int]]:
        """Encodes short texts with one call. Returns all ids, as an array of type H or I, and the indices where the
        texts end among them."""
        return self._view(texts, specials, array(typecode).itemsize, partial(Ids.compact, typecode=typecode))

    def count(self, text: Text, specials: _binding.Specials | None) -> int:
        """Returns the number of ids of a text."""
        return sum(count for _, count in self._views(self._divide((text,), 1), specials, 0, Ids.total))

    def with_dropout(self, text: Text, specials: _binding.Specials | None, rate: float, seed: int) -> list[int]:
        """Returns the ids of a text with merges left out at random."""
        ids: list[int] = []
        place = 0  # in the normalized text
        for segment, special in segments(bytes(utf8(text)), specials):
            data = self._prepared(segment)
            start = 0
            for end in [len(data)] if self._direct else self._model.pattern.word_ends(data):
                word = data[start:end]
                ids += _interruptibly(len(word), self._plain_encoder.encode_dropout, word, rate, seed, place + start)
                start = end
            place += len(data)
            if special is not None:
                ids.append(special)
                place += len(self._model.tokens[special])
        return ids

    def iterate(self, texts: Iterable[Text], specials: _binding.Specials | None) -> Iterator[int]:
        """Yields the ids of all texts joined, gathering text only up to the next cut."""
        pending = bytearray()
        enough = _ITERABLE_BYTES
        for text in whole_characters(texts):
            pending += utf8(text)
            if len(pending) < enough:
                continue
            at = self.cut(pending, max(1, len(pending) // 2))
            if at < len(pending):
                yield from self.encode(bytes(pending[:at]), specials)
                del pending[:at]
                enough = _ITERABLE_BYTES
            else:  # there is no cut. Looking again after every text would take quadratic time
                enough = 2 * len(pending)
        yield from self.encode(bytes(pending), specials)

    def normalized(self, text: Text, specials: _binding.Specials | None) -> bytes:
        """Returns the text that offsets of tokens refer to: `text`, normalized between its special tokens."""
        data = bytes(utf8(text))
        if self._model.normalizer is None:
            return data
        parts, begin = [], 0
        for start, end, _ in specials.find_all(data) if specials is not None else ():
            parts += [bytes(normalize(data[begin:start], self._model.normalizer)), data[start:end]]
            begin = end
        return b"".join([*parts, bytes(normalize(data[begin:], self._model.normalizer))])

    def matched_lengths(self, text: Text, ids: Sequence[int], specials: _binding.Specials | None) -> Mapping[int, int]:
        """Returns the number of bytes of text that ids represent, by their index in `ids`, the ids of the text, where
        that number may differ from the length of the token. A special token may take white space. The first token of a
        text between special tokens may have a space that was added."""
        if not self._model.strips and not self._model.prefix_space:
            return {}
        data, begin, first = bytes(utf8(text)), 0, 0
        found: dict[int, int] = {}
        special_ids = set(self._model.specials.values())
        places = (place for place, i in enumerate(ids) if i in special_ids)
        for place, (start, end, _) in zip(places, specials.find_all(data) if specials is not None else ()):
            found |= self._first_length(data[begin:start], ids, first)
            found[place] = end - start
            begin, first = end, place + 1
        return found | self._first_length(data[begin:], ids, first)

    def _first_length(self, segment: bytes, ids: Sequence[int], first: int) -> dict[int, int]:
        """Returns the number of bytes of a segment that its first id represents, if a space was added before it."""
        if not self._model.prefix_space or len(self._prepared(segment)) == len(
            normalize(segment, self._model.normalizer)
        ):
            return {}
        return {first: len(self._model.tokens[ids[first]]) - 1}

    def _prepared(self, segment: bytes) -> bytes:
        """Returns a text between special tokens as the pattern sees it."""
        return bytes(prepared(segment, self._model.normalizer, self._model.prefix_space))

    # ------------------------------------------------------------------------------------------------
    # Which special tokens to look for

    def allowed(
        self, texts: Iterable[Text], allowed: AllowedSpecial, disallowed: AllowedSpecial = ()
    ) -> _binding.Specials | None:
        """Returns the matcher for the allowed special tokens.

        Raises:
            ArgumentError: a text contains a disallowed special token, or a string is not a special token.
        """
        if allowed == "all" and not disallowed:
            return self.specials
        allowed = self._special_set(allowed)
        all_others = disallowed == "all"
        disallowed = self._special_set(disallowed)
        forbidden = self._special_subset(disallowed - allowed if all_others else disallowed)
        if forbidden is not None:
            for text in texts:
                self._refuse_specials(text, forbidden)
        return self._special_subset(allowed)

    def _refuse_specials(self, text: Text, forbidden: _binding.Specials) -> None:
        begin = 0
        for piece in text_pieces(text, self.cut):  # no special token spans two pieces
            found = _interruptibly(len(piece), forbidden.find, piece)
            if found is not None:
                start, end, number = found
                texts = [
                    text
                    for text, i in self._model.specials.items()
                    if i == number and text.encode() in bytes(piece[start:end])
                ]
                special = max(texts, key=len)
                raise ArgumentError(
                    f"the text contains the disallowed special token {special!r} at byte {begin + start};"
                    f" pass it in {param('allowed_special')}, or use {param(disallowed_special=())} to encode it as"
                    " text"
                )
            begin += len(piece)

    def _special_set(self, specials: AllowedSpecial) -> frozenset[str]:
        if specials == "all":
            return frozenset(self._model.specials)
        if isinstance(specials, str) or not isinstance(specials, Iterable):
            raise ArgumentError(f"expected 'all' or a set of special tokens, not {specials!r}")
        wanted = list(specials)  # which may be an iterator
        unknown = [text for text in wanted if not isinstance(text, str) or text not in self._model.specials]
        if unknown:
            raise ArgumentError(f"not special tokens of this tokenizer: {unknown}")
        return frozenset(wanted)

    def _special_subset(self, texts: frozenset[str]) -> _binding.Specials | None:
        if texts not in self._matchers:
            ids = {text: self._model.specials[text] for text in texts}
            flags = {text: rules for text, rules in self._model.matching.items() if text in texts}
            self._matchers[texts] = matcher(ids, flags)
        return self._matchers[texts]


def whole_characters(texts: Iterable[Text]) -> Iterator[Text]:
    """Yields the texts so that no surrogate pair is split between two of them. Their bytes are then the same as in the
    joined text."""
    half = ""
    for text in texts:
        if isinstance(text, str):
            text = half + text
            half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
            yield text[: len(text) - len(half)]
        else:
            if half and len(utf8(text)):
                yield half
                half = ""
            yield text
    yield half


def segments(data: bytes, specials: _binding.Specials | None) -> Iterator[tuple[bytes, int | None]]:
    """Yields the texts between special tokens, with the id of the special token that follows, or None at the end."""
    begin = 0
    for start, end, special in specials.find_all(data) if specials is not None else ():
        yield data[begin:start], special
        begin = end
    yield data[begin:], None


def text_list(texts: Iterable[Text]) -> list[Text]:
    """Returns the texts of a batch as a list. Raises ArgumentError if the caller passed one text instead of several."""
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise ArgumentError(f"expected a sequence of texts, not one {type(texts).__name__}: pass [text]")
    instance("texts", texts, Iterable, "a sequence of texts")
    return list(texts)


def _ascii_or_bytes(texts: Sequence[Text]) -> list[str | bytes]:
    """Returns the texts as a new list where every str is ASCII, which is the same in UTF-8. The others are bytes.
    Does not trust a subclass of str."""
    try:
        if all(map(str.isascii, texts)):  # type: ignore[arg-type]
            return list(texts)  # type: ignore[arg-type]
        return [text if str.isascii(text) else str.encode(text) for text in texts]  # type: ignore[arg-type, misc]
    except (TypeError, UnicodeEncodeError):  # bytes, surrogates
        return [bytes(utf8(text)) for text in texts]


class GrowingIds:
    """An array of ids that grows at its end.

    Attributes:
        count: the number of ids.
    """

    def __init__(self, dtype: numpy.dtype[Any], expected: int) -> None:
        """`expected` is a guess of the number of ids. Memory that is not touched costs nothing, but the system may
        refuse a large amount of it."""
        self.count = 0
        self._ids = numpy.empty(min(expected, _MOST_EXPECTED), dtype=dtype)

    def room(self, size: int) -> Array:
        """Returns the free end of the array, with room for at least `size` ids."""
        need = self.count + size
        if need > len(self._ids):
            grown = numpy.empty(max(need, 2 * self.count), dtype=self._ids.dtype)
            grown[: self.count] = self._ids[: self.count]
            self._ids = grown
        return self._ids[self.count :]

    def took(self, count: int) -> None:
        """Says that the room begins with `count` ids."""
        self.count += count

    def append(self, ids: Array) -> None:
        """Adds a copy of some ids."""
        self.room(len(ids))[: len(ids)] = ids
        self.took(len(ids))

    def result(self) -> Array:
        """Returns all ids. The object must not be used any more, and no view of its room may be left."""
        self._ids.resize(self.count, refcheck=False)
        return self._ids


def _interruptibly(size: int, function: Callable[..., View], *args: object) -> View:
    """Calls function(*args), which handles `size` bytes. Ctrl-C works at once, even if these are many."""
    return run_interruptibly(function, *args) if size > _LONG_PIECE else function(*args)


# ----------------------------------------------------------------------------------------------------
# Finds the spans of tokens in their text, in bytes and in characters.
#
# A token of byte-level BPE may begin or end inside a character. Its character span then includes that character, so the
# spans of two adjacent tokens may overlap by one character.


Span = tuple[int, int]


class EncodingWithOffsets(NamedTuple):
    """Ids, and the spans of their tokens in the text.

    Attributes:
        ids: the ids that `Tokenizer.encode` returns.
        byte_spans: (start, end) in the text's UTF-8. They are contiguous.
        char_spans: (start, end) in characters. A span includes every character that has a byte in the token.
    """

    ids: list[int]
    byte_spans: list[Span]
    char_spans: list[Span]


_STEP = 1 << 16  # tokens processed at once, which takes some milliseconds. Ctrl-C works between steps


def spans(
    ids: Sequence[int],
    token_offsets: numpy.ndarray[Any, Any],
    data: bytes | memoryview,
    matched: Mapping[int, int],
) -> tuple[list[Span], list[Span]]:
    """Returns the spans of ids in bytes and in characters.

    A continuation byte belongs to the character before it. So in text that is not UTF-8 this counts lead bytes and
    single bytes. `token_offsets`, of shape (n_vocab + 1,), says where the tokens of id 0, 1, ... begin in all of them
    joined. `data` are the bytes that the ids spell. `matched` maps the index of an id to the number of bytes that it
    represents in `data`, if not its own. A space that was added has none. In characters, it has the span of the
    character after it, as in Hugging Face's library."""
    places = sorted(matched)
    text = numpy.frombuffer(data, dtype=numpy.uint8)
    byte_spans: list[Span] = []
    char_spans: list[Span] = []
    start = characters = 0  # the byte offset of the step, and the number of characters that begin before it
    for first in range(0, len(ids), _STEP):
        numbers = numpy.array(ids[first : first + _STEP], dtype=numpy.int64)
        lengths = token_offsets[numbers + 1] - token_offsets[numbers]
        for place in places[bisect_left(places, first) : bisect_left(places, first + _STEP)]:
            lengths[place - first] = matched[place]
        bounds = numpy.concatenate(([0], numpy.cumsum(lengths, dtype=numpy.int64)))
        is_first = (text[start : start + bounds[-1]] & 0xC0) != 0x80
        step = _between(bounds + start)
        byte_spans += step
        if characters < start or not is_first.all():  # otherwise every byte so far is a character
            before = numpy.concatenate(([characters], characters + numpy.cumsum(is_first, dtype=numpy.int64)))
            step = _between(before[bounds])
            inside = ~numpy.append(is_first, True)[bounds[:-1]]  # a token without bytes may begin at the end
            for i in numpy.flatnonzero(inside).tolist():  # the token begins inside a character
                step[i] = (max(0, step[i][0] - 1), step[i][1])
            characters = int(before[-1])
        else:
            characters += len(is_first)
        for i in numpy.flatnonzero(lengths == 0).tolist():
            step[i] = (step[i][0], step[i][0] + 1)
        char_spans += step
        start += int(bounds[-1])
    return byte_spans, char_spans


def _between(bounds: numpy.ndarray[Any, Any]) -> list[Span]:
    places = bounds.tolist()
    return list(zip(places, places[1:]))


def char_starts(tokens: Sequence[bytes]) -> list[int]:
    """Returns the indexes of the characters where tokens begin, like tiktoken's decode_with_offsets."""
    starts = []
    count = 0
    for token in tokens:
        starts.append(max(0, count - (0x80 <= token[0] < 0xC0)))
        count += sum(1 for byte in token if not 0x80 <= byte < 0xC0)
    return starts
