r"""The steps of a tokenizer.json's pre-tokenizer, and the pattern that gives the same words.

Hugging Face runs the steps in order, each on the pieces of the step before it, as a Pattern does its own:

    Split        a regular expression or a string, and a behavior, which says what happens to the matches
    Digits       a Split at \p{N}
    Punctuation  a Split at punctuation
    ByteLevel    with use_regex a Split with GPT-2's pattern; then every byte becomes a character (vocab_merges.py)

A Split has its regular expression under "Regex", in the syntax of Hugging Face's engine. If pybpe's own spelling
differs, it is under "regex" in model.pybpe. A pattern that the engine cannot run is under "PythonRegex". Hugging
Face refuses such a file ("unknown variant").

Version 2.0 of the file has no step ByteLevel: model.byte_level says that every byte becomes a character after the last
step, and GPT-2's pattern is a Split.

The steps after ByteLevel see the characters that stand for bytes. Falcon has such a step: it treats the byte 0xB2 as a
number, because the character of that byte is a superscript two. In a Pattern such a step begins with (?bytes).

Sources: tokenizers/src/pre_tokenizers/{split,digits,punctuation,byte_level}.rs and NormalizedString::split in
tokenizers/src/tokenizer/normalizer.rs, in Hugging Face's repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..arguments import by_caller
from ..errors import ArgumentError, FormatError, UnsupportedError
from ..pattern import OF_BYTES, THEN, Pattern, PatternLike, portable, unnamed

if TYPE_CHECKING:
    from ..pattern.dialects import Dialect

JsonObject = dict[str, Any]


def part(parent: Any, key: str, kind: type, name: str) -> Any:
    """Returns a member of a JSON object. Raises FormatError unless it exists and has this type."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if type(value) is not kind:
        raise FormatError(f"{name}: not a tokenizer.json: {key!r} must be of type {kind.__name__}: {value!r:.60}")
    return value


def type_of(step: Any) -> Any:
    """Returns the type of a pipeline step; if the step is not a JSON object, the step itself."""
    return step.get("type") if isinstance(step, dict) else step


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_PRIVATE = "PythonRegex"
# They drop white space, or turn it into other characters, so decoding would not give the original text.
_LOSSY = ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit", "Metaspace")

# ----------------------------------------------------------------------------------------------------
# Reading


def with_byte_level(pre_tokenizer: Any, name: str) -> JsonObject:
    """Returns a pre-tokenizer of version 2.0 with the ByteLevel that is implied there. Raises FormatError if it has
    one."""
    steps = list(_flat(pre_tokenizer)) if pre_tokenizer is not None else []
    if any(step.get("type") == "ByteLevel" for step in steps):
        raise FormatError(f"{name}: the pre_tokenizer has ByteLevel, for which version 2.0 has model.byte_level")
    return {"type": "Sequence", "pretokenizers": [*steps, {**BYTE_LEVEL, "use_regex": False}]}


def read_pattern(pre_tokenizer: Any, own: str | None, name: str, version: str = "1.0") -> Pattern:
    """Returns the pattern of a pre-tokenizer. `own` is the pattern in pybpe's spelling, if the file has it.
    `read_prefix_space` reads add_prefix_space. Raises FormatError for a step that pybpe does not support, or if no step
    turns the text into bytes."""
    pattern = _of_ours(pre_tokenizer, own, version)
    if pattern is not None:
        return pattern
    steps = list(_flat(pre_tokenizer))
    found: list[Pattern] = []
    in_bytes = False
    for step in steps:
        if step.get("type") != "ByteLevel":
            found.append(_read_step(step, in_bytes, name, version))
            continue
        if in_bytes:
            raise FormatError(f"{name}: the pre_tokenizer has ByteLevel twice, which pybpe does not support")
        in_bytes = True
        found += [Pattern("gpt2")] if step.get("use_regex", True) else []
    if not in_bytes or not found:
        raise FormatError(
            f"{name}: the pre_tokenizer is {[step.get('type') for step in steps]!r:.200}; pybpe supports steps that"
            f" split the text, and one ByteLevel, which splits it with use_regex. {remedy()}"
        )
    return Pattern(THEN.join(step.regex for step in found)) if len(found) > 1 else found[0]


def read_prefix_space(pre_tokenizer: Any, name: str) -> bool:
    """Returns whether a pre-tokenizer adds a space before every text. Raises FormatError if it adds one before every
    word of another step."""
    steps = list(_flat(pre_tokenizer))
    adding = [i for i, step in enumerate(steps) if step.get("type") == "ByteLevel" and step.get("add_prefix_space")]
    if adding not in ([], [0]):
        raise FormatError(
            f"{name}: the pre_tokenizer has ByteLevel with add_prefix_space after another step, which pybpe does not"
            " support"
        )
    return bool(adding)


def _of_ours(pre_tokenizer: Any, spelled: str | None, version: str) -> Pattern | None:
    """Returns the pattern in pybpe's spelling, if pybpe writes it as exactly this pre-tokenizer."""
    if spelled is None:
        return None
    try:
        pattern = Pattern(spelled)
        if version == "1.0":
            ours = write_pre_tokenizer(pattern, read_prefix_space(pre_tokenizer, ""))
        else:
            ours = with_byte_level(write_splits(pattern, version), "")
        return pattern if ours == pre_tokenizer else None
    except (UnsupportedError, ValueError):
        return None


def _flat(step: Any) -> Iterator[JsonObject]:
    """Yields all steps, without Sequence."""
    nested = step.get("pretokenizers") if isinstance(step, dict) and step.get("type") == "Sequence" else None
    for inner in nested if isinstance(nested, list) else ():
        yield from _flat(inner)
    if not isinstance(nested, list):
        yield step if isinstance(step, dict) else {"type": step}


def _read_step(step: JsonObject, in_bytes: bool, name: str, version: str = "1.0") -> Pattern:
    """Returns the pattern of any step except ByteLevel."""
    kind, behavior, invert = step.get("type"), step.get("behavior"), bool(step.get("invert"))
    if behavior is None and version != "1.0":
        behavior = "Isolated"
    if kind in _LOSSY:
        raise FormatError(
            f"{name}: the pre_tokenizer has {kind}, which does not keep white space as it is; pybpe keeps all text"
        )
    if kind == "Split":
        drops = behavior == "Removed" and invert  # drops unmatched text. Isolated keeps it, as pybpe does
        pattern = (
            _read_regex(step, drops, name, version) if not in_bytes and (drops or behavior == "Isolated") else None
        )
        if pattern is not None:
            return pattern
    from . import step_trees

    if kind == "Split":
        tree = step_trees.of_split(step, name, engine(version))
    elif kind == "Digits":
        tree, behavior = step_trees.NUMBER, "Isolated" if part(step, "individual_digits", bool, name) else "Contiguous"
    elif kind == "Punctuation":
        tree, behavior = step_trees.PUNCTUATION, step.get("behavior", "Isolated")
    else:
        raise FormatError(f"{name}: the pre_tokenizer has {kind!r:.80}, which pybpe does not support")
    node = step_trees.behaving(tree, behavior, invert)
    if node is None:
        raise FormatError(
            f"{name}: the pre_tokenizer's {kind} has behavior {behavior!r:.40} and invert {invert}, which pybpe does"
            " not support for this pattern" + (": it drops text" if behavior == "Removed" else "")
        )
    try:
        return step_trees.pattern(node, in_bytes)
    except UnsupportedError as error:
        after = " after ByteLevel" if in_bytes else ""
        raise FormatError(f"{name}: the pre_tokenizer's {kind}{after}: {error}") from None


def _read_regex(step: JsonObject, drops: bool, name: str, version: str) -> Pattern | None:
    """Returns the pattern of a Split that makes every match a piece, or None if it does not have a regular
    expression."""
    given = step["pattern"] if isinstance(step.get("pattern"), dict) else {}
    regex, private = given.get("Regex"), given.get(_PRIVATE)
    try:
        if isinstance(private, str):
            return Pattern(unnamed(private))
        if isinstance(regex, str):
            return Pattern.builtin(regex) or from_hugging_face(regex, drops, version)
    except (ArgumentError, UnsupportedError) as error:
        raise FormatError(
            f"{name}: the pre_tokenizer splits with {regex or private!r:.80}: {error}. {remedy()}"
        ) from None
    return None


# ----------------------------------------------------------------------------------------------------
# Writing


def write_pre_tokenizer(pattern: Pattern, prefix_space: bool = False) -> JsonObject:
    """Returns the pre-tokenizer. If Hugging Face's engine cannot run the pattern, Hugging Face refuses the result.
    Raises UnsupportedError if a space is added before texts, and ByteLevel, which adds it, cannot be the first step."""
    try:
        steps = _written(pattern)
    except UnsupportedError:
        steps = [_split({_PRIVATE: pattern.regex}), {**BYTE_LEVEL, "use_regex": False}]
    if prefix_space:
        if steps[0]["type"] != "ByteLevel":
            raise UnsupportedError(
                f"tokenizer.json cannot hold add_prefix_space with the pattern {pattern.name or pattern.regex!r:.80}:"
                " only with gpt2, because Hugging Face would add a space before each word"
            )
        steps = [{**steps[0], "add_prefix_space": True}, *steps[1:]]
    return _joined(steps)


def write_splits(pattern: Pattern, version: str) -> JsonObject:
    """Returns the pre-tokenizer in version 2.0, which has no ByteLevel. Raises UnsupportedError if a step reads bytes,
    or Hugging Face's engine cannot run it."""
    steps = pattern.steps or (pattern,)
    of_bytes = next((step.regex for step in steps if step.regex.startswith(OF_BYTES)), None)
    if of_bytes is not None:
        raise UnsupportedError(f"version {version} of tokenizer.json has no step that reads bytes: {of_bytes!r:.80}")
    return _joined([_write_step(step, version) for step in steps])


def _joined(steps: list[JsonObject]) -> JsonObject:
    return {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0]


def _written(pattern: Pattern) -> list[JsonObject]:
    """Returns the steps. Raises UnsupportedError if Hugging Face's engine cannot run a step."""
    steps = list(pattern.steps or (pattern,))
    of_bytes = [step for step in steps if step.regex.startswith(OF_BYTES)]
    before = steps[: len(steps) - len(of_bytes)]
    use_regex = bool(before) and before[-1] == Pattern("gpt2")
    written = [_write_step(step) for step in (before[:-1] if use_regex else before)]
    return [*written, {**BYTE_LEVEL, "use_regex": use_regex}, *map(_write_step, of_bytes)]


def _write_step(step: Pattern, version: str = "1.0") -> JsonObject:
    if step.is_custom:
        from . import step_trees

        if (named := step_trees.named(step)) is not None:
            return named
    return _split({"Regex": for_hugging_face(step, version)})


def _split(pattern: JsonObject) -> JsonObject:
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def own_spelling(pattern: Pattern, version: str) -> str | None:
    """Returns the pattern in pybpe's spelling if the pre-tokenizer has another spelling that does not imply it,
    otherwise None."""
    try:
        is_same = not pattern.is_custom or not pattern.steps and for_hugging_face(pattern, version) == pattern.regex
    except UnsupportedError:
        return None
    return None if is_same else pattern.regex


# ----------------------------------------------------------------------------------------------------
# Patterns to and from other libraries, whose engines read some regular expressions differently. Every format and object
# that contains a pattern for Hugging Face uses `for_hugging_face`, for tiktoken, `for_tiktoken`. The built-in patterns
# are the same everywhere, so only functions for other patterns import the dialects.


def engine(version: str) -> Dialect:
    """Returns the dialect of the regular expressions in a tokenizer.json of this version. Version 1.0 of the library
    tokenizers, which writes version 2.0, has fancy-regex. The versions before it have Oniguruma."""
    from ..pattern.dialects import ONIGURUMA, RUST

    return ONIGURUMA if version == "1.0" else RUST


def for_hugging_face(pattern: Pattern, version: str = "1.0") -> str:
    """Returns a regular expression that gives the same words in Hugging Face's engine. For a built-in pattern, it also
    does so in transformers.js. The pattern must have one step. If a part of it has no such expression, UnsupportedError
    names the part."""
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
    UnsupportedError. With `drops`, Hugging Face drops text that does not match, so the pattern must match all text."""
    from ..pattern.dialects import REGEX, translate

    return Pattern(unnamed(translate(regex, engine(version), REGEX, whole=drops)))


def check_for_hugging_face(pattern: Pattern) -> None:
    """Raises UnsupportedError if Hugging Face may split text differently. Everything that writes for Hugging Face calls
    this, except `save`, which then writes a file that Hugging Face refuses."""
    for step in pattern.steps or (pattern,):
        for_hugging_face(step)


def remedy() -> str:
    """Returns the remedy for a file whose pattern pybpe cannot use."""
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
