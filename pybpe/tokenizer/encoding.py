"""Turns text into ids for any model. The methods of Tokenizer share this code.

A text is cut at its special tokens. The parts between them are normalized, split into words with the pattern, and
merged. C does all of this in one call, unless the pattern does not compile.

It encodes long texts in pieces, which it cuts only where a cut does not change any id.
"""

from __future__ import annotations

import array as arrays
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

from .. import _binding
from .._lazy import cached_property, numpy
from ..arguments import Text, param, utf8
from ..errors import ArgumentError
from ..model import Model, matcher, refuse_dropout
from ..normalize import normalize, prepared
from ..reading.pieces import PIECE_BYTES, Cutting, text_pieces
from ..support.parallel import Result, map_ordered, run_interruptibly, worker_count
from .batches import GROUP_BYTES, GROUP_TEXTS, GrowingIds, TextGroup, ascii_or_bytes, text_groups, text_sizes

AllowedSpecial = Literal["all"] | Collection[str]

_FEW_TEXTS = 16  # for which one call each takes less time than gathering them
_ITERABLE_BYTES = 1 << 14  # the amount of text that `iterate` gathers before it encodes
_SHORT_TEXT = 1 << 18  # characters or bytes; texts up to this size are encoded in one call of C
_LONG_PIECE = 4 * PIECE_BYTES  # a text without safe cuts gives longer pieces, which take a long time


class TextEncoder:
    """Encodes texts with one model. Immutable except for caches; threads may share it.

    Attributes:
        specials: the matcher for all special tokens, or None.
        cutting, cut: find the places at which a text can be cut without changing its ids.
        short: functions for short texts and lists, with all special tokens.
    """

    def __init__(self, model: Model, vocab: _binding.Vocab) -> None:
        self._model = model
        self._vocab, self._pretok = vocab, model.pattern.pretok if model.pattern.is_custom else None
        self._direct = model.pattern.pretok is not None  # C does it all
        self._any_encoder = _binding.Encoder(vocab, self._pretok, prepares=self._direct)
        self._encoder = cast("_binding.Encoder", _NoEncoder(model)) if model.dropout else self._any_encoder
        self.specials = matcher(model.specials, model.matching)
        what = model.pattern, model.specials, self.specials, model.normalizer, model.prefix_space
        self.cutting = Cutting.of(*what)
        self.cut = self.cutting.cut
        encodes = self._direct and not model.dropout
        self.short = self._any_encoder.short_calls(self.specials, model.id_bytes, encodes)
        self._matchers: dict[frozenset[str], _binding.Specials | None] = {}

    @cached_property
    def _plain_encoder(self) -> _binding.Encoder:
        """The encoder of texts as the pattern sees them."""
        return self._any_encoder if self._any_encoder.growth == 1 else _binding.Encoder(self._vocab, self._pretok)

    # ------------------------------------------------------------------------------------------------
    # One text. `specials` matches the special tokens to look for.

    def encode(self, text: Text, specials: _binding.Specials | None) -> list[int]:
        """Returns the ids of a text."""
        if self._direct and isinstance(text, (str, bytes)) and len(text) <= _SHORT_TEXT:  # short texts must be fast
            return self._encoder.encode(utf8(text), specials)
        ids: list[int] = []
        for piece in text_pieces(text, self.cut):
            ids += self._encode_piece(piece, specials)
        return ids

    def with_dropout(self, text: Text, specials: _binding.Specials | None, rate: float, seed: int) -> list[int]:
        """Returns the ids of a text with merges left out at random."""
        ids: list[int] = []
        place = 0  # in the normalized text
        for segment, special in segments(bytes(utf8(text)), specials):
            data = self._prepared(segment)
            start = 0
            for end in [len(data)] if self._direct else self._model.pattern.word_ends(data):
                word = data[start:end]
                ids += _interruptibly(self._plain_encoder.encode_dropout, word, rate, seed, place + start)
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
                yield from self._encode_piece(bytes(pending[:at]), specials)
                del pending[:at]
                enough = _ITERABLE_BYTES
            else:  # there is no cut; looking again after each text would take quadratic time
                enough = 2 * len(pending)
        yield from self._encode_piece(bytes(pending), specials)

    def array(
        self, text: Text, specials: _binding.Specials | None, dtype: Any, num_threads: int | None
    ) -> numpy.ndarray[Any, Any]:
        """Returns the ids as an array of shape (tokens,)."""
        if num_threads is not None:
            num_threads = worker_count(num_threads, "num_threads")
        size = len(text) if isinstance(text, (str, bytes)) else len(utf8(text))
        ids = GrowingIds(dtype, size)
        if num_threads == 1 or size <= PIECE_BYTES:
            for piece in text_pieces(text, self.cut):
                ids.took(self._encode_into(piece, specials, ids.room(self._encoder.growth * len(piece))))
        else:
            for part in self._parts(text, specials, dtype, worker_count(num_threads)):
                ids.append(part)
        return ids.result()

    def compact(self, text: Text, specials: _binding.Specials | None, typecode: str) -> arrays.array[int]:
        """Returns the ids as an array of type H or I, for callers that do not need numpy, which takes a tenth of a
        second to import."""
        found = arrays.array(typecode)
        for piece in text_pieces(text, self.cut):
            if self._direct:
                part = _interruptibly(self._encoder.encode_array, piece, specials, typecode)
            else:
                part = arrays.array(typecode, self._encode_piece(piece, specials))
            if found:
                found.extend(part)
            else:
                found = part
        return found

    def compact_batch(
        self, texts: Sequence[bytes], specials: _binding.Specials | None, typecode: str
    ) -> tuple[arrays.array[int], arrays.array[int]] | None:
        """Encodes short texts with one call. Returns all ids, as an array of type H or I, and the index at which those
        of each text end; None if this tokenizer needs a call for each text."""
        return self._encoder.encode_texts(texts, specials, typecode) if self._direct else None

    def _parts(
        self, text: Text, specials: _binding.Specials | None, dtype: Any, num_threads: int
    ) -> Iterator[numpy.ndarray[Any, Any]]:
        """Yields the ids of a text in parts, each valid until the next is requested. A few buffers serve all parts,
        because fresh memory would cost a fifth of the time."""
        spare: list[numpy.ndarray[Any, Any]] = []

        def encode(piece: _binding.Data) -> tuple[numpy.ndarray[Any, Any], int]:
            try:
                buffer = spare.pop()  # not after a test whether there is one: another thread may take it meanwhile
            except IndexError:
                buffer = numpy.empty(2 * PIECE_BYTES, dtype=dtype)
            if len(buffer) < self._encoder.growth * len(piece):
                buffer = numpy.empty(self._encoder.growth * len(piece), dtype=dtype)
            return buffer, self._encode_into(piece, specials, buffer)

        for buffer, count in map_ordered(encode, text_pieces(text, self.cut), num_threads):
            yield buffer[:count]
            spare.append(buffer)

    def count(self, text: Text, specials: _binding.Specials | None) -> int:
        """Returns the number of ids of a text."""
        if not self._direct:
            return sum(len(self._encode_piece(piece, specials)) for piece in text_pieces(text, self.cut))
        return sum(_interruptibly(self._encoder.count, piece, specials) for piece in text_pieces(text, self.cut))

    def normalized(self, text: Text, specials: _binding.Specials | None) -> bytes:
        """Returns the text in which tokens have offsets: `text`, normalized between its special tokens."""
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
        that number may differ from the length of the token. A special token may take white space; the first token of a
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

    def _encode_piece(self, piece: _binding.Data, specials: _binding.Specials | None) -> list[int]:
        if self._direct:
            return _interruptibly(self._encoder.encode, piece, specials)
        ids: list[int] = []
        for segment, special in segments(bytes(piece), specials):
            data = self._prepared(segment)
            ids += self._encoder.encode_words(data, self._model.pattern.word_ends(data))
            if special is not None:
                ids.append(special)
        return ids

    def _prepared(self, segment: bytes) -> bytes:
        """Returns a text between special tokens as the pattern sees it."""
        return bytes(prepared(segment, self._model.normalizer, self._model.prefix_space))

    def _encode_into(
        self, piece: _binding.Data, specials: _binding.Specials | None, ids: numpy.ndarray[Any, Any]
    ) -> int:
        """Writes the ids to the start of an array with room for them. Returns the number of ids."""
        if self._direct:
            return _interruptibly(self._encoder.encode_into, piece, specials, ids)
        found = self._encode_piece(piece, specials)
        ids[: len(found)] = found
        return len(found)

    # ------------------------------------------------------------------------------------------------
    # Many texts

    def batch(
        self, texts: Sequence[Text], specials: _binding.Specials | None, num_threads: int | None
    ) -> list[list[int]]:
        """Returns the ids of each text, computed by threads."""

        def encode(group: TextGroup) -> tuple[int, list[list[int]]]:
            return group.first, self._group_lists(group, specials)

        num_threads = worker_count(num_threads, "num_threads")
        if self._is_small(texts):
            if len(texts) <= _FEW_TEXTS and specials is self.specials:
                return [self.short.encode(text) or self.encode(text, specials) for text in texts]
            return self._group_lists(TextGroup(0, texts), specials)
        sizes = text_sizes(texts)
        rows: list[list[int]] = [[] for _ in texts]
        for first, found in map_ordered(encode, self._groups(texts, sizes, num_threads), num_threads):
            for i, ids in enumerate(found, first):
                if rows[i]:  # a long text comes in pieces
                    rows[i] += ids
                else:
                    rows[i] = ids
        return rows

    def batch_arrays(
        self, texts: Sequence[Text], specials: _binding.Specials | None, dtype: Any, num_threads: int | None
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Returns the ids of all texts in one array, and the index at which each text begins."""
        num_threads = worker_count(num_threads, "num_threads")
        if self._is_small(texts):
            found = GrowingIds(dtype, sum(map(len, texts)))  # type: ignore[arg-type]
            ids, ends = self._encode_short(texts, specials, found.room)
            found.took(len(ids))
            return found.result(), numpy.concatenate([[0], ends])
        sizes = text_sizes(texts)
        found = GrowingIds(dtype, int(sizes.sum()))
        room = found.room if num_threads == 1 else partial(numpy.empty, dtype=dtype)
        row_offsets = numpy.zeros(len(texts) + 1, dtype=numpy.int64)

        def encode(group: TextGroup) -> tuple[int, numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
            return group.first, *self._group_arrays(group, specials, room)

        for first, ids, ends in map_ordered(encode, self._groups(texts, sizes, num_threads), num_threads):
            row_offsets[first + 1 : first + 1 + len(ends)] = found.count + ends  # a later piece of a text overwrites it
            if num_threads == 1:
                found.took(len(ids))
            else:
                found.append(ids)
        return found.result(), row_offsets

    def _is_small(self, texts: Sequence[Text]) -> bool:
        """Returns whether one call of C encodes the texts in less time than it takes to divide them among threads."""
        try:
            return self._direct and len(texts) <= GROUP_TEXTS and sum(map(len, texts)) <= GROUP_BYTES  # type: ignore[arg-type]
        except TypeError:  # a buffer without a length, or not a text
            return False

    def _groups(self, texts: Sequence[Text], sizes: numpy.ndarray[Any, Any], num_threads: int) -> Iterator[TextGroup]:
        """Yields items of work, each for one thread: many short texts, or a piece of a long text."""
        for group in text_groups(texts, sizes, _SHORT_TEXT, num_threads):
            if group.is_long:
                yield from (TextGroup(group.first, [piece], True) for piece in text_pieces(group.texts[0], self.cut))
            else:
                yield group

    def _group_lists(self, group: TextGroup, specials: _binding.Specials | None) -> list[list[int]]:
        """Returns the ids of each text."""
        if not self._direct or group.is_long:
            return [self.encode(text, specials) for text in group.texts]
        room = partial(numpy.empty, dtype=numpy.uint32)
        return self._encoder.lists(*self._encode_short(group.texts, specials, room))

    def _group_arrays(
        self,
        group: TextGroup,
        specials: _binding.Specials | None,
        room: Callable[[int], numpy.ndarray[Any, Any]],
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Returns the ids of texts at the start of the array that room(number of ids) returns, and the index at which
        each text ends there."""
        if self._direct and not group.is_long:
            return self._encode_short(group.texts, specials, room)
        texts = list(map(utf8, group.texts))
        ids = room(self._encoder.growth * sum(map(len, texts)))
        ends = numpy.empty(len(texts), dtype=numpy.int64)
        count = 0
        for i, text in enumerate(texts):
            count += self._encode_into(text, specials, ids[count:])
            ends[i] = count
        return ids[:count], ends

    def _encode_short(
        self,
        texts: Sequence[Text],
        specials: _binding.Specials | None,
        room: Callable[[int], numpy.ndarray[Any, Any]],
    ) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """See _binding.Encoder.encode_batch."""
        return self._encoder.encode_batch(ascii_or_bytes(texts), specials, room)

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
            found = _interruptibly(forbidden.find, piece)
            if found is not None:
                start, end, number = found
                special = self._text_of(number, bytes(piece[start:end]))
                raise ArgumentError(
                    f"the text contains the disallowed special token {special!r} at byte {begin + start};"
                    f" pass it in {param('allowed_special')}, or use {param(disallowed_special=())} to encode it as"
                    " text"
                )
            begin += len(piece)

    def _text_of(self, number: int, matched: bytes) -> str:
        """Returns the special token that a match is of. It may include white space next to the token."""
        texts = [text for text, i in self._model.specials.items() if i == number and text.encode() in matched]
        return max(texts, key=len)

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


class _NoEncoder:
    """Stands in for the encoder of a tokenizer with dropout, whose ids depend on a seed."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        refuse_dropout(self._model, "encoding needs a seed")
        raise AttributeError(name)


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
    """Yields the texts between special tokens, each with the id of the special token after it; the last has None."""
    begin = 0
    for start, end, special in specials.find_all(data) if specials is not None else ():
        yield data[begin:start], special
        begin = end
    yield data[begin:], None


def _interruptibly(function: Callable[..., Result], piece: _binding.Data, *args: object) -> Result:
    """Calls function(piece, *args). Ctrl-C works at once, even if the piece is long."""
    return run_interruptibly(function, piece, *args) if len(piece) > _LONG_PIECE else function(piece, *args)
