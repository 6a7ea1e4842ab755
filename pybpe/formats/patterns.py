"""A pattern on its way to and from other libraries, whose engines read some regular expressions differently.

Every format and object that carries a pattern to Hugging Face asks `for_hugging_face`, and to tiktoken `for_tiktoken`.
The built-in patterns are the same everywhere.

A tokenizer.json has the pattern in a step of its pre-tokenizer:

    {"type": "Split", "pattern": {"Regex": "..."}}          as Hugging Face's engine reads it. If pybpe's own spelling
                                                            differs, it is under "regex" in model.pybpe.
    {"type": "Split", "pattern": {"PythonRegex": "..."}}    nothing that Hugging Face's engine can run: it refuses the
                                                            file ("unknown variant"), and pybpe reads it.
"""

from __future__ import annotations

import re

from ..dialects import ONIGURUMA, REGEX, RUST, translate
from ..errors import ArgumentError, FormatError, UnsupportedError
from ..model import Model, refuse_aliases
from ..pattern import Pattern
from ..warning import warn
from .json_parts import JsonObject

_PRIVATE = "PythonRegex"


def for_hugging_face(pattern: Pattern) -> str:
    """The regular expression with the same words in Hugging Face's engine, Oniguruma.

    Raises:
        UnsupportedError: none is known; it says which part of the pattern is why.
    """
    if not pattern.is_custom:
        return pattern.regex
    try:
        return translate(pattern.regex, REGEX, ONIGURUMA)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"Hugging Face's engine (Oniguruma) may cut other words: {error}; write that part in another way"
        ) from None


def check_for_hugging_face(model: Model) -> None:
    """UnsupportedError if Hugging Face would not give the same ids because of the pattern, or of special tokens that
    share an id. Whatever writes for Hugging Face asks this, but for `save`, which writes a file that it refuses."""
    for_hugging_face(model.pattern)
    refuse_aliases(model, "Hugging Face")


def warn_of_private(model: Model) -> None:
    """Warns if the tokenizer.json is one that Hugging Face refuses."""
    try:
        check_for_hugging_face(model)
    except UnsupportedError as error:
        warn(f"only pybpe can load this tokenizer.json, and Hugging Face refuses it: {error}")


def for_tiktoken(pattern: Pattern) -> str:
    """The regular expression with the same words in tiktoken's engine, fancy-regex.

    Raises:
        UnsupportedError: none is known; it says which part of the pattern is why.
    """
    if not pattern.is_custom:
        return pattern.regex
    try:
        return translate(pattern.regex, REGEX, RUST, whole=True)
    except UnsupportedError as error:
        raise UnsupportedError(f"tiktoken may cut other words: {error}") from None


def from_tiktoken(pattern: str, name: str) -> Pattern:
    """The pattern with the words of tiktoken's, which is a regular expression of its engine, or a built-in name.

    Raises:
        UnsupportedError: none is known; it says why, and calls the source `name`. ArgumentError: no such name.
    """
    known = Pattern.known(pattern)
    if known is not None or re.fullmatch(r"[\w.-]*", pattern):
        return known or Pattern(pattern)
    try:
        return Pattern(translate(pattern, RUST, REGEX, whole=True))
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: pybpe may cut other words than tiktoken: {error}") from None


# ----------------------------------------------------------------------------------------------------
# The step of a tokenizer.json


def write_split(pattern: Pattern) -> JsonObject:
    """The step; one that Hugging Face refuses, if its engine cannot run the pattern."""
    try:
        given = {"Regex": for_hugging_face(pattern)}
    except UnsupportedError:
        given = {_PRIVATE: pattern.regex}
    return {"type": "Split", "pattern": given, "behavior": "Isolated", "invert": False}


def own_spelling(pattern: Pattern) -> str | None:
    """The pattern as pybpe has it, if `write_split` writes it in another way; else None."""
    written = write_split(pattern)["pattern"].get("Regex", pattern.regex)
    return None if written == pattern.regex else pattern.regex


def read_split(split: JsonObject, own: JsonObject | None, name: str) -> Pattern:
    """The pattern of the step. `own` is model.pybpe, if the file has it.

    Raises:
        FormatError: the step does something that pybpe does not; it says what.
    """
    given = split.get("pattern")
    if not isinstance(given, dict) or not any(isinstance(given.get(key), str) for key in ("Regex", _PRIVATE)):
        raise FormatError(f"{name}: the pre_tokenizer splits at {given!r:.80}, which is not a Regex")
    behavior, invert = split.get("behavior"), bool(split.get("invert"))
    drops = behavior == "Removed" and invert  # what is not matched, which Isolated keeps, as pybpe does
    if not drops and (behavior != "Isolated" or invert):
        raise FormatError(
            f"{name}: the pre_tokenizer's Split has behavior {behavior!r} and invert {invert}; pybpe reads Isolated"
        )
    if _PRIVATE in given:
        return _own_pattern(given[_PRIVATE], name)
    return _read_regex(given["Regex"], own, drops, name)


def _own_pattern(regex: str, name: str) -> Pattern:
    """The custom pattern that a file of ours has. FormatError if `Pattern` does not take it as a regular expression."""
    try:
        pattern = Pattern(regex)
    except ArgumentError as error:
        raise FormatError(f"{name}: the pre_tokenizer: {error}") from None
    if pattern.name == regex:
        raise FormatError(f"{name}: the pre_tokenizer splits at {regex!r}, the name of a pattern, not its Regex")
    return pattern


def _read_regex(regex: str, own: JsonObject | None, drops: bool, name: str) -> Pattern:
    known = Pattern.builtin(regex) or _read_own(regex, own, drops, name)
    if known is not None:
        return known
    try:
        return Pattern(translate(regex, ONIGURUMA, REGEX, whole=drops))
    except UnsupportedError as error:
        raise FormatError(
            f"{name}: the pre_tokenizer splits with {regex!r:.80}: {error}; pass pattern= if you know one that gives"
            " the same words (a regular expression is run by Python's regex package)"
        ) from None


def _read_own(regex: str, own: JsonObject | None, drops: bool, name: str) -> Pattern | None:
    """The pattern of a file of ours as pybpe has it; None if this is another one."""
    if own is None or drops:
        return None
    spelled = own.get("regex")
    if not isinstance(spelled, str):  # the same in both engines, or a file of a pybpe that did not look
        return _own_pattern(regex, name)
    pattern = _own_pattern(spelled, name)
    return pattern if write_split(pattern)["pattern"].get("Regex") == regex else None
