"""Possible faults of a tokenizer or of data: tokens that a model would never or hardly see in training, special
tokens that a text forged, ids that the tokenizer does not have.

A token that occurs in the vocabulary and not in the data keeps its first embedding: a glitch
token, such as GPT-2's " SolidGoldMagikarp".
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from .. import _binding
from .._lazy import Array, numpy
from ..errors import ArgumentError
from ..reading.charset import Doubts
from ..reading.cuts import cutter
from ..reading.documents import Kinds
from ..reading.files import corpus_files
from ..reading.inputs import ReadOptions
from ..reading.pieces import Piece, pieces_of
from ..reading.planning import progress_total, whole
from ..support.parallel import map_ordered, worker_count
from ..support.progress import Progress
from ..tokenizer import Tokenizer
from ..tokens.manifest import Manifest, check_tokenizer, manifest_name
from ..tokens.token_files import TokenStream
from ..tokens.verification import shard_blocks
from .comparison import common_cut, is_utf8, unreachable

_BLOCK = 1 << 22  # tokens of a file without a manifest that are read at once
_AROUND = ("", " ", "a", "1", ".", "\n", "中", "\u0301")  # the text that a token may be found in


class Entry(NamedTuple):
    """One token of a finding."""

    id: int | None  # None for a byte or a pattern
    text: bytes  # its bytes. Of an id that the tokenizer does not have, none
    times: int | None = None  # how often it occurs, if that was counted


class Seen(NamedTuple):
    """The occurrences of every token in data."""

    counts: Mapping[int, int]  # id -> number of occurrences. Of special tokens, those that are recognized
    forged: Mapping[str, int]  # special token -> number of occurrences of its text that are not recognized


TITLES = {
    "unmerged": "tokens that merging their bytes does not give",
    "unproduced": "other tokens that no text was found to give",
    "unseen": "tokens that occur in the data fewer than {least} times, so that a model hardly learns them",
    "equal": "tokens with the bytes of another token",
    "broken": "tokens of several bytes that are not UTF-8",
    "no_token": "bytes without a token",
    "slow_pattern": "patterns that backtrack, so a text may take more than linear time",
    "forged": "special tokens whose text occurs in the data as ordinary text",
    "recognized": "special tokens that occur in the data",
    "foreign": "ids in the data that the tokenizer does not have",
}


def audit(tok: Tokenizer, seen: Seen | None = None, least: int = 1) -> dict[str, list[Entry]]:
    """Returns the possible faults of a tokenizer: finding (see TITLES) -> its tokens, the most suspect first.

    Args:
        seen: the tokens of it that data has. None leaves out the findings about data.
        least: the number of occurrences below which a token counts as unseen.
    """
    vocab, specials = tok.model.vocab, set(tok.special_tokens.values())
    ordinary = [i for i in vocab if i not in specials]
    unmerged = [] if tok.model.whole_words else tok.model.unreached()
    # Encoding gives these neither for the bytes of the token nor for a text around them: for every string of _AROUND
    # before and after it, with a character completed that the token contains only in part.
    lacking = set(tok.model.lacking_bytes)
    unproduced = [
        i
        for i in unreachable(tok, sorted(set(ordinary).difference(unmerged)))
        if not lacking.isdisjoint(tok.model.vocab[i]) or not _occurs(tok, i, tok.model.vocab[i])
    ]
    twice = {text for text, number in Counter(vocab.values()).items() if number > 1}
    found = {
        "unmerged": [Entry(i, vocab[i]) for i in unmerged],
        "unproduced": [Entry(i, vocab[i]) for i in unproduced],
        "equal": [Entry(i, text) for i, text in vocab.items() if text in twice],
        "broken": [Entry(i, vocab[i]) for i in ordinary if len(vocab[i]) > 1 and not is_utf8(vocab[i])],
        "no_token": [Entry(None, bytes([byte])) for byte in tok.model.lacking_bytes],
        "slow_pattern": [Entry(None, tok.pattern.regex.encode())] if tok.pattern.pretok is None else [],
    }
    if seen is None:
        return found
    counts = seen.counts
    never = {*unmerged, *unproduced}
    rare = [Entry(i, vocab[i], counts.get(i, 0)) for i in ordinary if i not in never and counts.get(i, 0) < least]
    # A word that a merge made in training and the data lacks is more suspect than a part of one, or of a character.
    rare.sort(
        key=lambda entry: (
            entry.times,
            not is_utf8(entry.text),
            -sum(map(str.isalpha, entry.text.decode("utf-8", "replace"))),
            entry.id,
        )
    )
    found["unseen"] = rare
    found["forged"] = [Entry(tok.special_tokens[text], text.encode(), n) for text, n in seen.forged.items() if n]
    found["recognized"] = [Entry(i, vocab[i], counts[i]) for i in sorted(specials) if counts.get(i)]
    found["foreign"] = [Entry(i, b"", n) for i, n in sorted(counts.items()) if i not in vocab]
    return {finding: found[finding] for finding in TITLES}


# ----------------------------------------------------------------------------------------------------
# Tokens that no text gives


def _occurs(tok: Tokenizer, i: int, token: bytes) -> bool:
    head = token[: next((at for at, byte in enumerate(token) if byte & 0xC0 != 0x80), len(token))]
    start = max((at for at in range(len(token)) if token[at] >= 0xC0), default=len(token))
    tail = token[start:] if not is_utf8(token[start:]) else b""
    starts, ends = _completions()
    before = [*starts.get(head, [])] if head else [text.encode() for text in _AROUND]
    after = [*ends.get(tail, [])] if tail else [text.encode() for text in _AROUND]
    for first, last in product(before or [b""], after or [b""]):
        try:
            if i in tok.encode(first + token + last, allowed_special=tok.model.visible):
                return True
        except ArgumentError:  # no token for a byte of the text around it
            continue
    return False


@cache
def _completions() -> tuple[dict[bytes, set[bytes]], dict[bytes, set[bytes]]]:
    """Returns, for the last bytes of a character, bytes before them that make it a letter or another character, and for
    the first bytes, bytes after them: other ones next to them, which they may merge with before a token does."""
    starts: dict[bytes, set[bytes]] = {}
    ends: dict[bytes, set[bytes]] = {}
    known: set[tuple[bytes, bytes, bool, bool]] = set()
    for char in map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x20000))):
        encoded = char.encode()
        for cut in range(1, len(encoded)):
            start, end = encoded[:cut], encoded[cut:]
            for edge, rest, near, of in ((start, end, end[:1], ends), (end, start, start[-1:], starts)):
                if (kind := (edge, near, char.isalpha(), of is ends)) not in known:
                    known.add(kind)
                    of.setdefault(edge, set()).add(rest)
    return starts, ends


# ----------------------------------------------------------------------------------------------------
# The contents of data


def is_tokens(path: str) -> bool:
    """Returns whether a path names token files: their folder, or files that end in .bin or .npy."""
    return path.endswith((".bin", ".npy")) or os.path.isfile(os.path.join(path, manifest_name(path)))


def seen_in_texts(
    tok: Tokenizer,
    files: Sequence[str],
    text_key: str = "text",
    encoding: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Seen:
    """Returns the occurrences of every token in files. Plain text may have special tokens. In records their text is
    ordinary. The arguments and errors are the same as in `compare`."""
    encoder, names = tok._encoder, list(tok.special_tokens)
    finder, doubts, read = _binding.Specials.of(names), Doubts(), ReadOptions(text_key, encoding)
    corpus, kinds = corpus_files(files, read), Kinds(read)
    cuts = [cutter(tok.pattern, encoder.specials, tok.model.normalizer, tok.model.prefix_space), encoder.cut]

    def look(piece: Piece) -> tuple[Array, Counter[str], str | None, int]:
        if piece.is_text:
            text = bytes(piece.text)
            ids, _ = encoder.arrays([text], encoder.specials, 1)
            return numpy.bincount(ids), Counter(), piece.doubt(doubts.look) if piece.path else None, len(text)
        texts = piece.texts(text_key)
        ids, _ = encoder.arrays(texts, None, 1)
        found = (finder.find_all(text) for text in texts) if finder is not None else ()
        return numpy.bincount(ids), Counter(names[place[2]] for places in found for place in places), None, piece.size

    pieces = (piece for file in corpus for piece in pieces_of(whole(file), kinds, common_cut(cuts)))
    counts, forged = numpy.zeros(tok.vocab_size, numpy.int64), Counter[str]()
    with Progress("counting", progress_total(corpus, text_key), "B", progress) as bar:
        for some, found, doubt, size in map_ordered(look, pieces, worker_count(workers)):
            doubts.tell(doubt)
            counts[: len(some)] += some
            forged += found
            bar.add(size)
    return Seen(_by_id(counts), forged)


def _by_id(counts: Array) -> dict[int, int]:
    return {i: int(counts[i]) for i in numpy.flatnonzero(counts).tolist()}


def seen_in_tokens(tok: Tokenizer, paths: Sequence[str]) -> Seen:
    """Returns the occurrences of every token in token files. A special token is forged where ordinary tokens give its
    text.

    Raises:
        ArgumentError: another tokenizer made the files. FileError, FormatError: a file is missing or damaged.
    """
    size, specials, names = tok.vocab_size, set(tok.special_tokens.values()), list(tok.special_tokens)
    finder, most = _binding.Specials.of(names), max((len(name.encode()) for name in names), default=1) - 1
    is_ordinary = numpy.zeros(size + 1, bool)
    is_ordinary[[i for i in tok.model.vocab if i not in specials]] = True
    # The id of a byte that no special token has takes the place of all other ids.
    all_names = "".join(names).encode()
    apart = next(i for i, text in tok.model.vocab.items() if len(text) == 1 and text not in all_names)
    counts, forged, foreign = numpy.zeros(size + 1, numpy.int64), Counter[str](), Counter[int]()
    for blocks in _token_files(tok, paths):
        last = b""
        for block in blocks:
            ids = numpy.minimum(block, size)
            counts += numpy.bincount(ids, minlength=size + 1)
            for i, count in zip(*numpy.unique(block[block >= size], return_counts=True)):
                foreign[int(i)] += int(count)
            text = last + tok.decode_bytes(numpy.where(is_ordinary[ids], ids, apart))
            found = finder.find_all(text) if finder is not None else ()
            forged += Counter(names[number] for _, end, number in found if end > len(last))
            last = text[max(0, len(text) - most) :]
    return Seen(_by_id(counts[:size]) | foreign, forged)


def _token_files(tok: Tokenizer, paths: Sequence[str]) -> Iterator[Iterator[Array]]:
    """Yields, file by file, the ids in blocks."""
    for path in paths:
        folder = os.path.join(path, "")
        if not os.path.isdir(folder):
            stream = TokenStream(path)
            if stream.made_by is not None:
                check_tokenizer(*stream.made_by, tok)
            yield (stream.slice(at, min(at + _BLOCK, len(stream))) for at in range(0, len(stream), _BLOCK))
            continue
        manifest = Manifest.load(folder)
        check_tokenizer(path, manifest.tokenizer["fingerprint"], tok)
        for shards in manifest.shards.values():
            yield from (shard_blocks(folder, shard, manifest) for shard in shards)
