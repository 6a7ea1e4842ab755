"""The added tokens of a tokenizer.json, which are pybpe's special tokens.

Hugging Face finds them in the text before anything else. It ignores their ids in the file: a token in model.vocab keeps
the id that it has there, and the others get the next ids after the vocabulary, in the order of the file. pybpe refuses
a file with different ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..arguments import is_unicode
from ..errors import ArgumentError, FormatError
from ..model import MOST_IDS, PLAIN, Matching, Model, check_spaces, matcher
from . import vocab_merges
from .pipeline import JsonObject, part

# The key of an entry for a text that shares the id of another special token. Hugging Face has no such tokens, and
# refuses the file because the entry has no id.
_ALIAS = "same_id_as"


def write(model: Model) -> list[JsonObject]:
    """Returns the entries for all special tokens."""
    aliases = model.aliases
    by_id = sorted((i, text) for text, i in model.specials.items() if text not in aliases)
    entries: list[JsonObject] = [
        {
            "id": i,
            "content": text,
            **written_flags(model.matching.get(text, PLAIN)),
            "special": text not in model.visible,
        }
        for i, text in by_id
    ]
    return entries + [{"content": text, _ALIAS: model.tokens[model.specials[text]].decode()} for text in aliases]


def written_flags(rules: Matching) -> JsonObject:
    return {flag: flag in rules.names for flag in ("single_word", "lstrip", "rstrip", "normalized")}


def read_aliases(data: JsonObject, specials: Mapping[str, int], name: str) -> dict[str, int]:
    """Returns text -> id of the added tokens that share the id of another added token."""
    entries = data.get("added_tokens") or []
    found = {part(entry, "content", str, name): part(entry, _ALIAS, str, name) for entry in entries if _ALIAS in entry}
    for text, other in found.items():
        if not text or not is_unicode(text) or text in specials or other not in specials:
            raise FormatError(f"{name}: the added token {text!r:.80} cannot share the id of {other!r:.80}")
    return {text: specials[other] for text, other in found.items()}


class AddedTokens(NamedTuple):
    """The added tokens of a file."""

    specials: dict[str, int]  # text -> id, in the order of the file
    visible: frozenset[str]  # the texts of the tokens that are not marked "special"
    matching: dict[str, Matching]  # the flags of the tokens that have any


def read_decoder(entries: Any, name: str) -> AddedTokens:
    """Returns the tokens of `added_tokens_decoder` in a tokenizer_config.json, which maps ids to such entries."""
    found = part({"added_tokens_decoder": entries or {}}, "added_tokens_decoder", dict, name)
    numbered = [(int(i), entry) for i, entry in found.items() if i.isdecimal() and isinstance(entry, dict)]
    return read({"added_tokens": [{**entry, "id": i} for i, entry in sorted(numbered)]}, None, name)


class _Entry(NamedTuple):
    id: int
    is_special: bool
    rules: Matching


def read(data: JsonObject, normalizer: str | None, name: str) -> AddedTokens:
    """Returns all added tokens."""
    found: dict[str, _Entry] = {}
    for given in part(data, "added_tokens", list, name) if data.get("added_tokens") is not None else []:
        if isinstance(given, dict) and _ALIAS in given:  # see read_aliases
            continue
        text, entry = _read_entry(given, name)
        if not text:  # Hugging Face ignores it
            continue
        if found.setdefault(text, entry) != entry:
            raise FormatError(f"{name}: the added token {text!r:.80} occurs twice, with different ids or settings")
    matching = {text: entry.rules for text, entry in found.items()}
    try:
        if normalizer is not None:
            _check_normalized(matching, normalizer)
        if _is_one_pass(matching):
            matching = {}
        check_spaces(matching, matching)
    except ArgumentError as error:
        raise FormatError(f"{name}: {error}") from None
    return AddedTokens(
        {text: entry.id for text, entry in found.items()},
        frozenset(text for text, entry in found.items() if not entry.is_special),
        {text: rules for text, rules in matching.items() if rules != PLAIN},
    )


def _read_entry(entry: Any, name: str) -> tuple[str, _Entry]:
    """Returns the text of an entry, and what it says."""
    text, number = part(entry, "content", str, name), part(entry, "id", int, name)
    if not is_unicode(text):
        raise FormatError(f"{name}: the added token {text!r:.80} contains a lone surrogate, which is not valid Unicode")
    if not 0 <= number < MOST_IDS:  # Python's hashes of larger numbers can collide, which would take quadratic time
        raise FormatError(f"{name}: the added token {text!r:.80} has id {number}; ids are from 0 to {MOST_IDS - 1}")
    flags = ("lstrip", "rstrip", "single_word", "normalized", "special")
    *rules, is_special = (flag in entry and part(entry, flag, bool, name) for flag in flags)
    return text, _Entry(number, is_special, Matching(*rules))


def check_ids(specials: Mapping[str, int], vocab: Collection[str], name: str) -> None:
    """Raises FormatError unless Hugging Face gives the same ids to the added tokens that `vocab` (model.vocab) lacks.
    `specials` is in the order of the file.

    The ids after the vocabulary start at the number of its tokens. In older versions of Hugging Face's tokenizers they
    follow the highest id of the preceding added tokens, if that is greater. Both must equal the ids in the file.
    """
    missing, highest = 0, -1
    for text, i in specials.items():
        if text not in vocab:
            expected = {len(vocab) + missing, max(len(vocab), highest + 1)}
            missing += 1
            if expected != {i}:
                raise FormatError(
                    f"{name}: the added token {text!r:.80} has id {i}, but Hugging Face ignores that and assigns"
                    f" {' or '.join(map(str, sorted(expected)))}, the next id after model.vocab in the order of the"
                    " file: put the token with its id in model.vocab"
                )
        highest = max(highest, i)


def taken_as_word(model: Model, specials: Iterable[str]) -> str | None:
    """Returns the first of these special tokens whose id Hugging Face may return for a word or byte of a text that does
    not contain the special token itself, or None.

    Hugging Face looks up bytes in model.vocab, and with ignore_merges also words, and returns their ids, even of
    special tokens. pybpe never encodes a byte or word as a special token. A special token whose spelling there equals
    its text, as in ASCII, is found before the text is split into words, unless a normalizer produces it later, or it
    overlaps a "single_word" one, whose text is passed over if a word character is next to it.
    """
    for text in specials:
        try:
            word = vocab_merges.to_bytes(text)
        except KeyError:
            continue
        if len(word) > 1 and not (model.whole_words and model.pattern.word_ends(word) == [len(word)]):
            continue
        if not is_always_found(model, text):
            return text
    return None


def is_always_found(model: Model, text: str) -> bool:
    """Returns whether no word contains the bytes that a special token spells in model.vocab: they are its text, which
    is found before the text is split into words."""
    try:
        is_itself = model.normalizer is None and vocab_merges.to_bytes(text) == text.encode()
    except KeyError:
        return False
    single = [other for other, rules in model.matching.items() if rules.single_word]
    return is_itself and not (single and (first_overlap(single, [text]) or first_overlap([text], single)))


# ----------------------------------------------------------------------------------------------------
# Added tokens with "normalized" on


_COMPOSED = ";K`"  # NFC turns other characters into these: U+037E, U+212A and U+1FEF
_COMPOSING = "<=>"  # NFC joins these, and letters, with some of the marks after them
_LONG = 1 << 9  # characters; looking for the beginnings of others takes time that grows with the square


def _check_normalized(matching: Mapping[str, Matching], normalizer: str) -> None:
    """Raises ArgumentError for tokens that Hugging Face would find elsewhere than pybpe. Hugging Face looks for
    "normalized" ones in the normalized text; pybpe looks for all of them in the original text."""
    for text, rules in matching.items():
        if rules.late and not (normalizer == "NFC" and _is_stable(text) and not rules.single_word):
            raise ArgumentError(
                f"the added token {text!r:.80} has normalized on, and there is a normalizer: pybpe looks for special"
                " tokens in the original text only"
            )


def _is_stable(text: str) -> bool:
    """Returns whether NFC produces a text only from itself, wherever it is. White space composes with nothing."""
    last_composes = text[-1].isalpha() or text[-1] in _COMPOSING
    return text.isascii() and not last_composes and not any(char in _COMPOSED for char in text)


def _is_one_pass(matching: Mapping[str, Matching]) -> bool:
    """Returns whether looking for all tokens at once finds the same as looking for "normalized" ones after the
    others."""
    if any(rules.strips or rules.single_word for rules in matching.values()):
        return False
    late = sorted(text for text, rules in matching.items() if rules.late)
    early = sorted(text for text, rules in matching.items() if not rules.late)
    return not late or not early or not (first_overlap(late, early) or first_overlap(early, late))


def first_overlap(texts: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Returns (text, other) for the first of `texts` that contains one of `others`, or ends with the beginning of one;
    None if there is none. A long text counts as one that does."""
    ordered = sorted(others)
    inside = matcher(ordered, {})
    if inside is None:
        return None
    for text in texts:
        if (found := inside.find(text.encode())) is not None:
            return text, ordered[found[2]]
        if len(text) > _LONG:
            return text, ordered[0]
        for end in (text[i:] for i in range(len(text))):
            at = bisect_left(ordered, end)
            if at < len(ordered) and ordered[at].startswith(end):
                return text, ordered[at]
    return None
