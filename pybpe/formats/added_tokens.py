"""The added tokens of a tokenizer.json: our specials.

Hugging Face finds them in the text before anything else is done with it. Their ids are not what the file says: a token
that model.vocab has keeps the id that it has there, and each other one gets the next id after the vocabulary, in the
order of the file. Here a file whose ids are other ones is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..arguments import is_unicode
from ..errors import FormatError
from ..model import Model
from . import byte_level
from .json_parts import JsonObject, part

# The key of an entry for a text that shares the id of another one. Hugging Face has no such tokens, and refuses the
# file, since the entry has no id.
_ALIAS = "same_id_as"


def write(model: Model) -> list[JsonObject]:
    """The entries for all specials."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    aliases = model.aliases
    by_id = sorted((i, text) for text, i in model.specials.items() if text not in aliases)
    entries: list[JsonObject] = [
        {"id": i, "content": text, **flags, "special": text not in model.visible} for i, text in by_id
    ]
    return entries + [{"content": text, _ALIAS: model.tokens[model.specials[text]].decode()} for text in aliases]


def read_aliases(data: JsonObject, specials: Mapping[str, int], name: str) -> dict[str, int]:
    """The added tokens that share the id of another one, text -> id."""
    entries = data.get("added_tokens") or []
    found = {part(entry, "content", str, name): part(entry, _ALIAS, str, name) for entry in entries if _ALIAS in entry}
    for text, other in found.items():
        if not text or not is_unicode(text) or text in specials or other not in specials:
            raise FormatError(f"{name}: the added token {text!r:.80} cannot have the id of {other!r:.80}")
    return {text: specials[other] for text, other in found.items()}


def read(data: JsonObject, normalizer: str | None, name: str) -> tuple[dict[str, int], frozenset[str]]:
    """All added tokens, text -> id, in the order of the file, and those that are not "special"."""
    found: dict[str, tuple[int, bool, bool]] = {}
    for entry in part(data, "added_tokens", list, name) if data.get("added_tokens") is not None else []:
        if isinstance(entry, dict) and _ALIAS in entry:  # see read_aliases
            continue
        text, facts = _read_entry(entry, name)
        if not text:  # Hugging Face passes over it
            continue
        if found.setdefault(text, facts) != facts:
            raise FormatError(f"{name}: the added token {text!r:.80} is there twice, with two ids or settings")
    specials = {text: i for text, (i, _, _) in found.items()}
    normalized = {text for text, (_, _, is_normalized) in found.items() if is_normalized}
    _refuse_normalized(normalized, set(specials) - normalized, normalizer, name)
    return specials, frozenset(text for text, (_, is_special, _) in found.items() if not is_special)


def _read_entry(entry: Any, name: str) -> tuple[str, tuple[int, bool, bool]]:
    """The text, and (id, special, normalized)."""
    text, number = part(entry, "content", str, name), part(entry, "id", int, name)
    if not is_unicode(text):
        raise FormatError(f"{name}: the added token {text!r:.80} holds a lone surrogate: not valid Unicode")
    flags = {}
    for flag in ("single_word", "lstrip", "rstrip", "special", "normalized"):
        flags[flag] = flag in entry and part(entry, flag, bool, name)
    for flag in ("single_word", "lstrip", "rstrip"):
        if flags[flag]:
            raise FormatError(f"{name}: the added token {text!r:.80} has {flag} on, which pybpe does not do")
    return text, (number, flags["special"], flags["normalized"])


def check_ids(specials: Mapping[str, int], vocab: Collection[str], name: str) -> None:
    """FormatError unless Hugging Face gives the added tokens that `vocab`, model.vocab, lacks these ids too. `specials`
    is in the order of the file.

    The ids after the vocabulary start at the number of its tokens. In older versions of Hugging Face's tokenizers they
    follow the highest id of the added tokens before, if that is greater. Both must give the file's.
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
                    " file: put the token and the right id into model.vocab"
                )
        highest = max(highest, i)


def follow_in_order(specials: Mapping[str, int]) -> bool:
    """Whether the ids ascend in the order of the file."""
    ids = list(specials.values())
    return ids == sorted(ids)


def taken_as_word(model: Model, specials: Iterable[str]) -> str | None:
    """The first of these specials that a text can have as a word, or as a byte, where the special itself was not found;
    else None.

    Hugging Face looks bytes up in model.vocab, and with ignore_merges words too, specials included, and gives their id;
    here neither ever becomes a special. A special that is spelled as it is read, as ASCII is, is found before there are
    words, unless a normalizer makes it afterwards.
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
# Normalized ones


def _refuse_normalized(normalized: Collection[str], raw: Collection[str], normalizer: str | None, name: str) -> None:
    """Hugging Face looks for added tokens in the text as it is, then for the "normalized" ones in the normalised
    text; we look for all at once, in the text as it is. Refuses those for which that makes a difference."""
    for text in sorted(normalized):
        # Under NFC, ASCII white space comes of nothing else, and joins with nothing.
        if normalizer is not None and not (normalizer == "NFC" and not text.strip(" \t\r\n")):
            raise FormatError(
                f"{name}: the added token {text!r:.80} has normalized on, and there is a normalizer: pybpe looks for"
                " special tokens in the text as it is"
            )
    if not normalized or not raw:
        return
    clash = first_overlap(sorted(normalized), sorted(raw)) or first_overlap(sorted(raw), sorted(normalized))
    if clash is not None:
        raise FormatError(
            f"{name}: the added tokens {clash[0]!r:.80} and {clash[1]!r:.80} overlap, and normalized is on for one of"
            " them only: pybpe looks for all at once"
        )


def first_overlap(texts: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """The first of `texts` that holds one of `others`, or ends with the beginning of one, and that one. Takes time in
    proportion to the length of all."""
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
    """All beginnings of some texts, as an Aho-Corasick automaton: the node after a text is the longest beginning with
    which that text ends. Node 0 is the empty one.

    Attributes:
        of: for each node, one of the texts that begin so.
        whole: for each node, one of the texts with which it ends; "" if there is none.
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
        """Finds for each node the longest other one with which it ends; shorter nodes first."""
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
        """The node after another one and a character."""
        while node and node << 21 | ord(char) not in self._next:
            node = self._shorter[node]
        return self._next.get(node << 21 | ord(char), 0)
