"""The added tokens of a tokenizer.json, which are pybpe's special tokens.

Hugging Face finds them in the text before anything else. It ignores their ids in the file: a token in model.vocab keeps
the id that it has there, and the others get the next ids after the vocabulary, in the order of the file. pybpe refuses
a file with different ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .. import byte_level
from ..arguments import is_unicode
from ..errors import FormatError
from ..model import Model
from .json_parts import JsonObject, part

# The key of an entry for a text that shares the id of another special token. Hugging Face has no such tokens, and
# refuses the file because the entry has no id.
_ALIAS = "same_id_as"


def write(model: Model) -> list[JsonObject]:
    """Returns the entries for all special tokens."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    aliases = model.aliases
    by_id = sorted((i, text) for text, i in model.specials.items() if text not in aliases)
    entries: list[JsonObject] = [
        {"id": i, "content": text, **flags, "special": text not in model.visible} for i, text in by_id
    ]
    return entries + [{"content": text, _ALIAS: model.tokens[model.specials[text]].decode()} for text in aliases]


def read_aliases(data: JsonObject, specials: Mapping[str, int], name: str) -> dict[str, int]:
    """Returns text -> id of the added tokens that share the id of another added token."""
    entries = data.get("added_tokens") or []
    found = {part(entry, "content", str, name): part(entry, _ALIAS, str, name) for entry in entries if _ALIAS in entry}
    for text, other in found.items():
        if not text or not is_unicode(text) or text in specials or other not in specials:
            raise FormatError(f"{name}: the added token {text!r:.80} cannot share the id of {other!r:.80}")
    return {text: specials[other] for text, other in found.items()}


def read(data: JsonObject, normalizer: str | None, name: str) -> tuple[dict[str, int], frozenset[str]]:
    """Returns text -> id of all added tokens, in the order of the file, and the texts of those not marked "special"."""
    found: dict[str, tuple[int, bool, bool]] = {}
    for entry in part(data, "added_tokens", list, name) if data.get("added_tokens") is not None else []:
        if isinstance(entry, dict) and _ALIAS in entry:  # see read_aliases
            continue
        text, facts = _read_entry(entry, name)
        if not text:  # Hugging Face ignores it
            continue
        if found.setdefault(text, facts) != facts:
            raise FormatError(f"{name}: the added token {text!r:.80} occurs twice, with different ids or settings")
    specials = {text: i for text, (i, _, _) in found.items()}
    normalized = {text for text, (_, _, is_normalized) in found.items() if is_normalized}
    _refuse_normalized(normalized, set(specials) - normalized, normalizer, name)
    return specials, frozenset(text for text, (_, is_special, _) in found.items() if not is_special)


def _read_entry(entry: Any, name: str) -> tuple[str, tuple[int, bool, bool]]:
    """Returns the text, and (id, special, normalized)."""
    text, number = part(entry, "content", str, name), part(entry, "id", int, name)
    if not is_unicode(text):
        raise FormatError(f"{name}: the added token {text!r:.80} contains a lone surrogate, which is not valid Unicode")
    flags = {}
    for flag in ("single_word", "lstrip", "rstrip", "special", "normalized"):
        flags[flag] = flag in entry and part(entry, flag, bool, name)
    for flag in ("single_word", "lstrip", "rstrip"):
        if flags[flag]:
            raise FormatError(f"{name}: the added token {text!r:.80} has {flag} on, which pybpe does not support")
    return text, (number, flags["special"], flags["normalized"])


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


def follow_in_order(specials: Mapping[str, int]) -> bool:
    """Returns whether the ids ascend in the order of the file."""
    ids = list(specials.values())
    return ids == sorted(ids)


def taken_as_word(model: Model, specials: Iterable[str]) -> str | None:
    """Returns the first of these special tokens whose id Hugging Face may return for a word or byte of a text that does
    not contain the special token itself, or None.

    Hugging Face looks up bytes in model.vocab, and with ignore_merges also words, and returns their ids, even those of
    special tokens. pybpe never encodes a byte or word as a special token. A special token whose spelling there equals
    its text, as in ASCII, is found before the text is split into words, unless a normalizer produces it later.
    """
    for text in specials:
        try:
            word = byte_level.to_bytes(text)
        except KeyError:
            continue
        if model.normalizer is None and word == text.encode():
            continue
        if len(word) == 1 or (model.whole_words and model.pattern.word_ends(word) == [len(word)]):
            return text
    return None


# ----------------------------------------------------------------------------------------------------
# Added tokens with "normalized" on


def _refuse_normalized(normalized: Collection[str], raw: Collection[str], normalizer: str | None, name: str) -> None:
    """Refuses the tokens for which the order of matching makes a difference. Hugging Face looks for added tokens in the
    original text, then for "normalized" ones in the normalized text; pybpe looks for both in the original text."""
    for text in sorted(normalized):
        # NFC turns no character into ASCII white space, and ASCII white space composes with no character.
        if normalizer is not None and not (normalizer == "NFC" and not text.strip(" \t\r\n")):
            raise FormatError(
                f"{name}: the added token {text!r:.80} has normalized on, and there is a normalizer: pybpe looks for"
                " special tokens in the original text only"
            )
    if not normalized or not raw:
        return
    clash = first_overlap(sorted(normalized), sorted(raw)) or first_overlap(sorted(raw), sorted(normalized))
    if clash is not None:
        raise FormatError(
            f"{name}: the added tokens {clash[0]!r:.80} and {clash[1]!r:.80} overlap, and normalized is on for only one"
            " of them: pybpe looks for all at once"
        )


def first_overlap(texts: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Returns (text, other) for the first of `texts` that contains one of `others`, or ends with the beginning of one;
    None if there is none. The time is proportional to the length of all texts."""
    beginnings = _Beginnings(others)
    for text in texts:
        node = 0
        for char in text:
            node = beginnings.after(node, char)
            if beginnings.whole[node]:
                return text, beginnings.whole[node]
        if node:
            return text, beginnings.of[node]
    return None


class _Beginnings:
    """All beginnings of some texts, as an Aho-Corasick automaton. After it has read a text, it is at the node of the
    longest beginning that the text ends with. Node 0 is the empty beginning.

    Attributes:
        of: for each node, one of the texts that begin with it.
        whole: for each node, one of the texts that it ends with; "" if there is none.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._next: dict[int, int] = {}  # node << 21 | character -> node
        self.of, self.whole = [""], [""]
        edges: list[tuple[int, str]] = [(0, "")]  # of each node: its parent, and the character after it
        for text in texts:
            node = 0
            for char in text:
                child = self._next.setdefault(node << 21 | ord(char), len(edges))
                if child == len(edges):
                    edges.append((node, char))
                    self.of.append(text)
                    self.whole.append("")
                node = child
            self.whole[node] = text
        self._link(edges)

    def _link(self, edges: list[tuple[int, str]]) -> None:
        """Finds, for each node, the longest other node that it ends with. Processes shorter nodes first."""
        self._shorter = [0] * len(edges)
        children: list[list[int]] = [[] for _ in edges]
        for node, (parent, _) in enumerate(edges[1:], 1):
            children[parent].append(node)
        waiting = deque(children[0])
        while waiting:
            node = waiting.popleft()
            waiting += children[node]
            parent, char = edges[node]
            if parent:
                self._shorter[node] = self.after(self._shorter[parent], char)
            self.whole[node] = self.whole[node] or self.whole[self._shorter[node]]

    def after(self, node: int, char: str) -> int:
        """Returns the node that follows a node and a character."""
        while node and node << 21 | ord(char) not in self._next:
            node = self._shorter[node]
        return self._next.get(node << 21 | ord(char), 0)
