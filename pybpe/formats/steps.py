r"""The steps of a tokenizer.json's pre-tokenizer, and the pattern that gives the same words.

Hugging Face runs the steps in order, each on the pieces of the step before it, as a Pattern does its own:

    Split        a regular expression or a string, and a behavior, which says what happens to the matches
    Digits       a Split at \p{N}
    Punctuation  a Split at punctuation
    ByteLevel    with use_regex a Split with GPT-2's pattern; then every byte becomes a character (byte_level.py)

A Split has its regular expression under "Regex", in the syntax of Hugging Face's engine. If pybpe's own spelling
differs, it is under "regex" in model.pybpe. A pattern that the engine cannot run is under "PythonRegex", for which
Hugging Face refuses the file ("unknown variant").

The steps after ByteLevel see the characters that stand for bytes. Falcon has such a step: it treats the byte 0xB2 as a
number, because the character of that byte is a superscript two. In a Pattern such a step begins with (?bytes).

Sources: tokenizers/src/pre_tokenizers/{split,digits,punctuation,byte_level}.rs and NormalizedString::split in
tokenizers/src/tokenizer/normalizer.rs, in Hugging Face's repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import ArgumentError, FormatError, UnsupportedError
from ..pattern import OF_BYTES, THEN, Pattern
from ..pattern.dialects import ONIGURUMA, REGEX, translate
from ..pattern.dialects.parse import parse
from ..pattern.dialects.tree import Node, Repeat, alt, chars, intersection, run_of, seq, without
from ..pattern.dialects.write import write
from . import patterns
from .json_parts import JsonObject, part

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_PRIVATE = "PythonRegex"
# Each drops white space, or turns it into other characters, so decoding would not give the original text.
_LOSSY = ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit", "Metaspace")

_NUMBER = chars(properties=["N"])
# Laguna's step: line ends begin a piece. The lookahead has no effect, because the repeat takes all line ends. A
# carriage return without a newline after it is text.
_LINE_ENDS = [parse(regex, ONIGURUMA) for regex in (r"(?:\r?\n)+(?!\r?\n)", r"(?:\r?\n)+")]
_FROM_LINE_ENDS = parse(
    r"(?:\r?\n)+[^\r\n]*(?:\r(?!\n)[^\r\n]*)*|[^\r\n]+(?:\r(?!\n)[^\r\n]*)*|(?:\r(?!\n)[^\r\n]*)+", ONIGURUMA
)
# For Hugging Face, punctuation is ASCII's punctuation and the categories P of Unicode 8 (the crate unicode_categories).
# These characters moved to a category P later:
_LATER = (
    "61D 9FD A76 C77 C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 2E60-2E63 10D6E 10EAD 10ED0 10F55-10F59 10F86-10F89"
    " 113D4-113D5 113D7-113D8 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46"
    " 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8 11F43-11F4F 11FFF 12FF1-12FF2"
    " 16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F"
)


def _ranges(listed: str) -> list[tuple[int, int]]:
    pairs = [item.partition("-") for item in listed.split()]
    return [(int(first, 16), int(last or first, 16)) for first, _, last in pairs]


_PUNCTUATION = intersection(
    [
        without(chars(_ranges(_LATER))),
        chars([*((ord(char), ord(char)) for char in "$+<=>^`|~"), (0x166D, 0x166D), (0x111C9, 0x111C9)], ["P"]),
    ]
)


# ----------------------------------------------------------------------------------------------------
# Reading


def read_pattern(pre_tokenizer: Any, own: str | None, name: str) -> Pattern:
    """Returns the pattern of a pre-tokenizer. `own` is the pattern in pybpe's spelling, if the file has it.
    `read_prefix_space` reads add_prefix_space.

    Raises:
        FormatError: a step does something that pybpe does not support, or no step turns the text into bytes. The
            message says what.
    """
    pattern = _of_ours(pre_tokenizer, own)
    if pattern is not None:
        return pattern
    steps = list(_flat(pre_tokenizer))
    found: list[Pattern] = []
    in_bytes = False
    for step in steps:
        if step.get("type") != "ByteLevel":
            found.append(_read_step(step, in_bytes, name))
            continue
        if in_bytes:
            raise FormatError(f"{name}: the pre_tokenizer has ByteLevel twice, which pybpe does not support")
        in_bytes = True
        found += [Pattern("gpt2")] if step.get("use_regex", True) else []
    if not in_bytes or not found:
        raise FormatError(
            f"{name}: the pre_tokenizer is {[step.get('type') for step in steps]!r:.200}; pybpe supports steps that"
            " split the text, and one ByteLevel, which splits it with use_regex. Pass pattern= if you know a pattern"
            " that gives the same words"
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


def _of_ours(pre_tokenizer: Any, spelled: str | None) -> Pattern | None:
    """Returns the pattern in pybpe's spelling, if pybpe writes it as exactly this pre-tokenizer."""
    if spelled is None:
        return None
    try:
        pattern = Pattern(spelled)
        ours = write_pre_tokenizer(pattern, read_prefix_space(pre_tokenizer, ""))
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


def _read_step(step: JsonObject, in_bytes: bool, name: str) -> Pattern:
    """Returns the pattern of any step except ByteLevel."""
    kind, behavior, invert = step.get("type"), step.get("behavior"), bool(step.get("invert"))
    if kind in _LOSSY:
        raise FormatError(
            f"{name}: the pre_tokenizer has {kind}, which does not keep white space as it is; pybpe keeps all text"
        )
    if kind == "Split":
        drops = behavior == "Removed" and invert  # drops unmatched text; Isolated keeps it, as pybpe does
        pattern = _read_regex(step, drops, name) if not in_bytes and (drops or behavior == "Isolated") else None
        if pattern is not None:
            return pattern
        tree = _read_tree(step, name)
    elif kind == "Digits":
        tree, behavior = _NUMBER, "Isolated" if part(step, "individual_digits", bool, name) else "Contiguous"
    elif kind == "Punctuation":
        tree, behavior = _PUNCTUATION, step.get("behavior", "Isolated")
    else:
        raise FormatError(f"{name}: the pre_tokenizer has {kind!r:.80}, which pybpe does not support")
    node = _behaving(tree, behavior, invert)
    if node is None:
        raise FormatError(
            f"{name}: the pre_tokenizer's {kind} has behavior {behavior!r:.40} and invert {invert}, which pybpe does"
            " not support for this pattern" + (": it drops text" if behavior == "Removed" else "")
        )
    try:
        return Pattern(patterns.of_bytes(node) if in_bytes else spelling(node))
    except UnsupportedError as error:
        raise FormatError(f"{name}: the pre_tokenizer's {kind} after ByteLevel: {error}") from None


def _read_regex(step: JsonObject, drops: bool, name: str) -> Pattern | None:
    """Returns the pattern of a Split that makes a piece of each match, or None if it does not have a regular
    expression."""
    given = step["pattern"] if isinstance(step.get("pattern"), dict) else {}
    regex, private = given.get("Regex"), given.get(_PRIVATE)
    try:
        if isinstance(private, str):
            return Pattern(patterns.unnamed(private))
        if isinstance(regex, str):
            known = Pattern.builtin(regex)
            return known or Pattern(patterns.unnamed(translate(regex, ONIGURUMA, REGEX, whole=drops)))
    except (ArgumentError, UnsupportedError) as error:
        raise FormatError(
            f"{name}: the pre_tokenizer splits with {regex or private!r:.80}: {error}; pass pattern= if you know one"
            " that gives the same words (Python's regex package runs it)"
        ) from None
    return None


def spelling(node: Node) -> str:
    """Returns a tree as a pattern."""
    return patterns.unnamed(write(node, REGEX))


def _read_tree(step: JsonObject, name: str) -> Node:
    given = step["pattern"] if isinstance(step.get("pattern"), dict) else {}
    string, regex = given.get("String"), given.get("Regex")
    if isinstance(string, str) and string:
        return seq([chars([(ord(char), ord(char))]) for char in string])
    if not isinstance(regex, str):
        raise FormatError(f"{name}: the pre_tokenizer splits with {given!r:.80}, which is not a Regex or a String")
    try:
        return parse(regex, ONIGURUMA)
    except UnsupportedError as error:
        raise FormatError(f"{name}: the pre_tokenizer splits with {regex!r:.80}: {error}") from None


def _behaving(tree: Node, behavior: Any, invert: bool) -> Node | None:
    """Returns a tree that matches the pieces that a Split makes with this behavior; None if no such tree is known.

    Behaviors other than Isolated join matches that touch each other, or join matches and the text between them. If the
    matches are runs of one set of characters, or of line ends, a regular expression gives the same pieces.
    """
    if behavior == "Isolated":  # invert only exchanges matches and the text between them
        return tree
    if behavior == "MergedWithNext" and not invert and tree in _LINE_ENDS:
        return _FROM_LINE_ENDS
    run = run_of(tree)
    if run is None or behavior not in ("Contiguous", "MergedWithPrevious", "MergedWithNext"):
        return None
    if behavior == "Contiguous":
        return Repeat(run.members, 1, None)
    if run.most not in (1, None):
        return None
    others = without(run.members)
    gap = Repeat(others, 0, None)
    parts = [gap, tree] if (behavior == "MergedWithPrevious") != invert else [tree, gap]
    return alt([seq(parts), Repeat(others, 1, None)])


# ----------------------------------------------------------------------------------------------------
# Writing


def write_pre_tokenizer(pattern: Pattern, prefix_space: bool = False) -> JsonObject:
    """Returns the pre-tokenizer. If Hugging Face's engine cannot run the pattern, Hugging Face refuses the result.

    Raises:
        UnsupportedError: a space is added before texts, and ByteLevel, which adds it, cannot be the first step.
    """
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
    return {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0]


def _written(pattern: Pattern) -> list[JsonObject]:
    """Returns the steps. Raises UnsupportedError if Hugging Face's engine cannot run a step."""
    steps = list(pattern.steps or (pattern,))
    of_bytes = [step for step in steps if step.regex.startswith(OF_BYTES)]
    before = steps[: len(steps) - len(of_bytes)]
    use_regex = bool(before) and before[-1] == Pattern("gpt2")
    written = [_write_step(step) for step in (before[:-1] if use_regex else before)]
    return [*written, {**BYTE_LEVEL, "use_regex": use_regex}, *map(_write_step, of_bytes)]


def _write_step(step: Pattern) -> JsonObject:
    if step.regex == spelling(_NUMBER):
        return {"type": "Digits", "individual_digits": True}
    if step.regex == spelling(Repeat(_PUNCTUATION, 1, None)):
        return {"type": "Punctuation", "behavior": "Contiguous"}
    return _split({"Regex": patterns.for_hugging_face(step)})


def _split(pattern: JsonObject) -> JsonObject:
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def own_spelling(pattern: Pattern) -> str | None:
    """Returns the pattern in pybpe's spelling if the pre-tokenizer has another spelling that does not imply it;
    otherwise None."""
    try:
        is_same = not pattern.is_custom or not pattern.steps and patterns.for_hugging_face(pattern) == pattern.regex
    except UnsupportedError:
        return None
    return None if is_same else pattern.regex
