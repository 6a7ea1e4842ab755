"""Converts patterns to and from other libraries, whose engines read some regular expressions differently.

Every format and object that contains a pattern for Hugging Face uses `for_hugging_face`; for tiktoken, `for_tiktoken`.
The built-in patterns are the same everywhere.

A tokenizer.json has the pattern in a step of its pre-tokenizer:

    {"type": "Split", "pattern": {"Regex": "..."}}          in the syntax of Hugging Face's engine. If pybpe's own
                                                            spelling differs, it is under "regex" in model.pybpe.
    {"type": "Split", "pattern": {"PythonRegex": "..."}}    for a pattern that Hugging Face's engine cannot run. It
                                                            refuses the file ("unknown variant"); pybpe reads it.

steps.py reads and writes the sequence of all steps.
"""

from __future__ import annotations

import re

from ..dialects import ONIGURUMA, REGEX, RUST, translate
from ..errors import ArgumentError, FormatError, UnsupportedError
from ..pattern import OF_BYTES, Pattern, PatternLike, portable
from . import byte_steps
from .json_parts import JsonObject

_PRIVATE = "PythonRegex"


def for_hugging_face(pattern: Pattern) -> str:
    """Returns a regular expression that gives the same words in Hugging Face's engine, Oniguruma. That of a built-in
    pattern does so in transformers.js too. The pattern must have one step.

    Raises:
        UnsupportedError: no such expression is known. The message says which part of the pattern is the reason.
    """
    if not pattern.is_custom:
        return portable(pattern.regex)
    try:
        if pattern.regex.startswith(OF_BYTES):
            return byte_steps.to_hugging_face(pattern.regex)
        return translate(pattern.regex, REGEX, ONIGURUMA)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"Hugging Face's engine (Oniguruma) may split text differently: {error}; write that part in another way"
        ) from None


def check_for_hugging_face(pattern: Pattern) -> None:
    """Raises UnsupportedError if Hugging Face may split text differently. Everything that writes for Hugging Face calls
    this, except `save`, which then writes a file that Hugging Face refuses."""
    for step in pattern.steps or (pattern,):
        for_hugging_face(step)


def for_tiktoken(pattern: Pattern) -> str:
    """Returns a regular expression that gives the same words in tiktoken's engine, fancy-regex.

    Raises:
        UnsupportedError: no such expression is known. The message says which part of the pattern is the reason.
    """
    if not pattern.is_custom:
        return pattern.regex
    if pattern.steps:
        raise UnsupportedError(
            f"tiktoken splits text with one regular expression; this pattern has {len(pattern.steps)} steps, each of"
            " which splits the pieces of the step before it"
        )
    try:
        return translate(pattern.regex, REGEX, RUST, whole=True)
    except UnsupportedError as error:
        raise UnsupportedError(f"tiktoken may split text differently: {error}") from None


def from_tiktoken(pattern: PatternLike, name: str) -> Pattern:
    """Returns the pattern that gives the same words as tiktoken's: a regular expression for its engine, or a built-in
    name.

    Raises:
        UnsupportedError: no such pattern is known. The message says why, and calls the source `name`.
        ArgumentError: there is no such built-in name.
    """
    if isinstance(pattern, Pattern):
        return pattern
    known = Pattern.known(pattern)
    if known is not None or re.fullmatch(r"[\w.-]*", pattern):
        return known or Pattern(pattern)
    try:
        return Pattern(translate(pattern, RUST, REGEX, whole=True))
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: pybpe may split text differently from tiktoken: {error}") from None


# ----------------------------------------------------------------------------------------------------
# The pre-tokenizer step of a tokenizer.json


def write_split(pattern: Pattern) -> JsonObject:
    """Returns the step. Raises UnsupportedError if Hugging Face's engine cannot run the pattern."""
    return _isolated({"Regex": for_hugging_face(pattern)})


def private_split(pattern: Pattern) -> JsonObject:
    """Returns a step that Hugging Face refuses, for a pattern that its engine cannot run."""
    return _isolated({_PRIVATE: pattern.regex})


def _isolated(given: JsonObject) -> JsonObject:
    return {"type": "Split", "pattern": given, "behavior": "Isolated", "invert": False}


def own_spelling(pattern: Pattern) -> str | None:
    """Returns the pattern in pybpe's spelling if the pre-tokenizer has another spelling that does not imply it;
    otherwise None."""
    try:
        is_same = not pattern.is_custom or not pattern.steps and for_hugging_face(pattern) == pattern.regex
    except UnsupportedError:
        return None
    return None if is_same else pattern.regex


def unnamed(regex: str) -> str:
    """Returns the regular expression, in a group if it could be taken for the name of a pattern."""
    return f"(?:{regex})" if re.fullmatch(r"[\w.-]*", regex) else regex


def splits_plainly(split: JsonObject) -> bool:
    """Returns whether a Split makes a piece of each match of a regular expression."""
    behavior, invert, given = split.get("behavior"), bool(split.get("invert")), split.get("pattern")
    by_regex = isinstance(given, dict) and any(isinstance(given.get(key), str) for key in ("Regex", _PRIVATE))
    return by_regex and (behavior == "Isolated" or (behavior == "Removed" and invert))


def read_split(split: JsonObject, own: JsonObject | None, name: str) -> Pattern:
    """Returns the pattern of a step that `splits_plainly`. `own` is model.pybpe, if the file has it.

    Raises:
        FormatError: the step does something that pybpe does not support. The message says what.
    """
    given = split["pattern"]
    drops = split.get("behavior") == "Removed"  # drops unmatched text; Isolated keeps it, as pybpe does
    if _PRIVATE in given:
        return _own_pattern(given[_PRIVATE], name)
    return _read_regex(given["Regex"], own, drops, name)


def _own_pattern(regex: str, name: str) -> Pattern:
    """Returns the custom pattern in a file that pybpe wrote. Raises FormatError if it is not a valid regular
    expression."""
    try:
        pattern = Pattern(regex)
    except ArgumentError as error:
        raise FormatError(f"{name}: the pre_tokenizer: {error}") from None
    if pattern.name == regex:
        raise FormatError(
            f"{name}: the pre_tokenizer splits with {regex!r:.80}, which is the name of a pattern, not a regular"
            " expression"
        )
    return pattern


def _read_regex(regex: str, own: JsonObject | None, drops: bool, name: str) -> Pattern:
    known = Pattern.builtin(regex) or _read_own(regex, own, drops, name)
    if known is not None:
        return known
    try:
        return Pattern(unnamed(translate(regex, ONIGURUMA, REGEX, whole=drops)))
    except UnsupportedError as error:
        raise FormatError(
            f"{name}: the pre_tokenizer splits with {regex!r:.80}: {error}; pass pattern= if you know one that gives"
            " the same words (Python's regex package runs it)"
        ) from None


def _read_own(regex: str, own: JsonObject | None, drops: bool, name: str) -> Pattern | None:
    """Returns the pattern of a file in pybpe's spelling; None if pybpe did not write the file."""
    if own is None or drops:
        return None
    spelled = own.get("regex")
    if not isinstance(spelled, str):  # the spelling is the same in both engines, or an old pybpe wrote the file
        return _own_pattern(regex, name)
    pattern = _own_pattern(spelled, name)
    try:
        return pattern if not pattern.steps and for_hugging_face(pattern) == regex else None
    except UnsupportedError:
        return None
