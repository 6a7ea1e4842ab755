"""How special tokens are matched: the flags of Hugging Face's added tokens.

csrc/special/special_rules.c explains what they mean. Most special tokens have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from .. import _binding
from ..errors import ArgumentError


class Matching(NamedTuple):
    """The flags of one special token."""

    lstrip: bool = False  # a match includes the white space before the token
    rstrip: bool = False  # a match includes the white space after the token
    single_word: bool = False  # a word character next to the token prevents a match
    # Looked for only between the matches of the others, in each part of the text as in a separate text. Hugging Face
    # calls it "normalized".
    late: bool = False

    @property
    def strips(self) -> bool:
        """Whether a match may include white space that the token does not have."""
        return self.lstrip or self.rstrip

    @property
    def names(self) -> list[str]:
        """The flags that are on, as Hugging Face calls them."""
        names = {"lstrip": self.lstrip, "rstrip": self.rstrip, "single_word": self.single_word, "normalized": self.late}
        return [name for name, is_on in names.items() if is_on]

    @property
    def flags(self) -> int:
        """The flags as C takes them."""
        return sum(_binding.SPECIAL_FLAGS[name] for name in self.names)


PLAIN = Matching()


def matcher(specials: Mapping[str, int] | Iterable[str], matching: Mapping[str, Matching]) -> _binding.Specials | None:
    """Returns the C matcher of special tokens, with the flags in `matching`, or None if there are none. Raises
    ArgumentError if two of them would match the same white space."""
    return _binding.Specials.of(specials, {text: rules.flags for text, rules in matching.items()})


def check_spaces(specials: Collection[str], matching: Mapping[str, Matching]) -> None:
    """Raises ArgumentError if one special token begins with white space that another one with rstrip may take."""
    spaced = {matching.get(text, PLAIN).late: text for text in specials if text[:1].isspace()}
    for text, rules in matching.items():
        if rules.rstrip and rules.late in spaced:
            raise ArgumentError(
                f"the special token {text!r:.80} has rstrip on, and {spaced[rules.late]!r:.80} begins with white space:"
                " pybpe supports only one of them"
            )
