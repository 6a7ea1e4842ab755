"""Converts patterns to and from other libraries, whose engines read some regular expressions differently.

Every format and object that contains a pattern for Hugging Face uses `for_hugging_face`; for tiktoken, `for_tiktoken`.
The built-in patterns are the same everywhere, so only functions for other patterns import the dialects.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..arguments import by_caller
from ..errors import UnsupportedError
from ..pattern import OF_BYTES, Pattern, PatternLike, portable, unnamed

if TYPE_CHECKING:
    from ..pattern.dialects import Dialect


def engine(version: str) -> Dialect:
    """Returns the dialect of the regular expressions in a tokenizer.json of this version. Version 1.0 of the library
    tokenizers, which writes version 2.0, has fancy-regex; the versions before it have Oniguruma."""
    from ..pattern.dialects import ONIGURUMA, RUST

    return ONIGURUMA if version == "1.0" else RUST


def for_hugging_face(pattern: Pattern, version: str = "1.0") -> str:
    """Returns a regular expression that gives the same words in Hugging Face's engine. That of a built-in pattern does
    so in transformers.js too. The pattern must have one step. UnsupportedError names the part of the pattern for which
    no such expression is known."""
    if not pattern.is_custom:
        return portable(pattern.regex)
    from ..pattern.dialects import REGEX, translate

    try:
        if pattern.regex.startswith(OF_BYTES):
            from .step_trees import of_characters

            return of_characters(pattern.regex)
        return translate(pattern.regex, REGEX, engine(version))
    except UnsupportedError as error:
        raise UnsupportedError(
            f"Hugging Face's engine ({'Oniguruma' if version == '1.0' else 'fancy-regex'}) may split text differently:"
            f" {error}; write that part in another way"
        ) from None


def from_hugging_face(regex: str, drops: bool, version: str) -> Pattern:
    """Returns the pattern that gives the same words as a regular expression for Hugging Face's engine, or raises
    UnsupportedError. With `drops`, Hugging Face drops what does not match, so the pattern must match all text."""
    from ..pattern.dialects import REGEX, translate

    return Pattern(unnamed(translate(regex, engine(version), REGEX, whole=drops)))


def check_for_hugging_face(pattern: Pattern) -> None:
    """Raises UnsupportedError if Hugging Face may split text differently. Everything that writes for Hugging Face calls
    this, except `save`, which then writes a file that Hugging Face refuses."""
    for step in pattern.steps or (pattern,):
        for_hugging_face(step)


def remedy() -> str:
    """Returns what to do about a file whose pattern pybpe cannot use."""
    how = by_caller("Pass pattern", "Give it another (`pybpe export TOK --pattern P -o NEW`)")
    return f"{how} if you know one that gives the same words"


def for_tiktoken(pattern: Pattern) -> str:
    """Returns a regular expression that gives the same words in tiktoken's engine, fancy-regex, or raises
    UnsupportedError."""
    if not pattern.is_custom:
        return pattern.regex
    if pattern.steps:
        raise UnsupportedError(
            f"tiktoken splits text with one regular expression; this pattern has {len(pattern.steps)} steps, each of"
            " which splits the pieces of the step before it"
        )
    from ..pattern.dialects import REGEX, RUST, translate

    try:
        return translate(pattern.regex, REGEX, RUST, whole=True)
    except UnsupportedError as error:
        raise UnsupportedError(f"tiktoken may split text differently: {error}") from None


def from_tiktoken(pattern: PatternLike, name: str) -> Pattern:
    """Returns the pattern that gives the same words as tiktoken's: a regular expression for its engine, or a built-in
    name. UnsupportedError calls the source `name`."""
    if isinstance(pattern, Pattern):
        return pattern
    known = Pattern.known(pattern)
    if known is not None or re.fullmatch(r"[\w.-]*", pattern):
        return known or Pattern(pattern)
    from ..pattern.dialects import REGEX, RUST, translate

    try:
        return Pattern(translate(pattern, RUST, REGEX, whole=True))
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: pybpe may split text differently from tiktoken: {error}") from None
