r"""The steps of a tokenizer.json's pre-tokenizer, and the pattern that gives the same words.

Hugging Face runs the steps in order, each on the pieces of the step before it, as a Pattern does its own:

    Split        a regular expression or a string, and a behavior, which says what happens to the matches
    Digits       a Split at \p{N}
    Punctuation  a Split at punctuation
    ByteLevel    with use_regex a Split with GPT-2's pattern; then every byte becomes a character (vocab_merges.py)

A Split has its regular expression under "Regex", in the syntax of Hugging Face's engine. If pybpe's own spelling
differs, it is under "regex" in model.pybpe. A pattern that the engine cannot run is under "PythonRegex", for which
Hugging Face refuses the file ("unknown variant").

Version 2.0 of the file has no step ByteLevel: model.byte_level says that every byte becomes a character after the last
step, and GPT-2's pattern is a Split.

The steps after ByteLevel see the characters that stand for bytes. Falcon has such a step: it treats the byte 0xB2 as a
number, because the character of that byte is a superscript two. In a Pattern such a step begins with (?bytes).

Sources: tokenizers/src/pre_tokenizers/{split,digits,punctuation,byte_level}.rs and NormalizedString::split in
tokenizers/src/tokenizer/normalizer.rs, in Hugging Face's repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import ArgumentError, FormatError, UnsupportedError
from ..pattern import OF_BYTES, THEN, Pattern, unnamed
from . import patterns
from .pipeline import JsonObject, part

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_PRIVATE = "PythonRegex"
# Each drops white space, or turns it into other characters, so decoding would not give the original text.
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
            f" split the text, and one ByteLevel, which splits it with use_regex. {patterns.remedy()}"
        )
    return Pattern(THEN.join(step.regex for step in found)) if len(found) > 1 else found[0]


def read_prefix_space(pre_tokenizer: Any, name: str) -> bool:
    """Returns whether a pre-tokenizer adds a space before each text. Raises FormatError if it adds one before each word
    of another step."""
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
        drops = behavior == "Removed" and invert  # drops unmatched text; Isolated keeps it, as pybpe does
        pattern = (
            _read_regex(step, drops, name, version) if not in_bytes and (drops or behavior == "Isolated") else None
        )
        if pattern is not None:
            return pattern
    from . import step_trees

    if kind == "Split":
        tree = step_trees.of_split(step, name, patterns.engine(version))
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
    """Returns the pattern of a Split that makes a piece of each match, or None if it does not have a regular
    expression."""
    given = step["pattern"] if isinstance(step.get("pattern"), dict) else {}
    regex, private = given.get("Regex"), given.get(_PRIVATE)
    try:
        if isinstance(private, str):
            return Pattern(unnamed(private))
        if isinstance(regex, str):
            return Pattern.builtin(regex) or patterns.from_hugging_face(regex, drops, version)
    except (ArgumentError, UnsupportedError) as error:
        raise FormatError(
            f"{name}: the pre_tokenizer splits with {regex or private!r:.80}: {error}. {patterns.remedy()}"
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
    return _split({"Regex": patterns.for_hugging_face(step, version)})


def _split(pattern: JsonObject) -> JsonObject:
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def own_spelling(pattern: Pattern, version: str) -> str | None:
    """Returns the pattern in pybpe's spelling if the pre-tokenizer has another spelling that does not imply it;
    otherwise None."""
    try:
        is_same = (
            not pattern.is_custom or not pattern.steps and patterns.for_hugging_face(pattern, version) == pattern.regex
        )
    except UnsupportedError:
        return None
    return None if is_same else pattern.regex
