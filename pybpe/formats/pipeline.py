"""The parts of a tokenizer.json around its model: normalizer, decoder, post-processor. The
pre-tokenizer is in steps.py, the added tokens are in added_tokens.py.

Each part that pybpe reads means exactly the same as in Hugging Face. pybpe refuses any other part, and the error names
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from ..errors import ArgumentError, FormatError, UnsupportedError
from ..model.template import Template, TemplatePiece

JsonObject = dict[str, Any]


def part(parent: Any, key: str, kind: type, name: str) -> Any:
    """Returns a member of a JSON object. Raises FormatError unless it exists and has this type."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if type(value) is not kind:
        raise FormatError(f"{name}: not a tokenizer.json: {key!r} must be of type {kind.__name__}: {value!r:.60}")
    return value


NORMALIZERS = ("NFC", "NFKC")


# ----------------------------------------------------------------------------------------------------
# Normalizer


def type_of(step: Any) -> Any:
    """Returns the type of a pipeline step; if the step is not a JSON object, the step itself."""
    return step.get("type") if isinstance(step, dict) else step


def read_normalizer(normalizer: Any, name: str) -> str | None:
    if normalizer is None:
        return None
    kind, steps = type_of(normalizer), None
    if kind == "Sequence" and isinstance(normalizer, dict):
        steps = normalizer.get("normalizers")
    if isinstance(steps, list) and len(steps) < 2:
        return read_normalizer(next(iter(steps), None), name)
    if not isinstance(kind, str) or kind not in NORMALIZERS:
        raise FormatError(f"{name}: the normalizer is {kind!r}; pybpe supports NFC and NFKC")
    return str(kind)


# ----------------------------------------------------------------------------------------------------
# Post-processor: our template


def write_post_processor(template: Template | None, specials: Mapping[str, int]) -> JsonObject | None:
    if template is None:
        return None
    return {
        "type": "TemplateProcessing",
        "single": [_write_piece(piece) for piece in template.single],
        "pair": [_write_piece(piece) for piece in template.pair],
        "special_tokens": {
            text: {"id": text, "ids": [specials[text]], "tokens": [text]} for text in template.special_tokens
        },
    }


def _write_piece(piece: TemplatePiece) -> JsonObject:
    kind = "Sequence" if piece.is_sequence else "SpecialToken"
    return {kind: {"id": piece.text, "type_id": piece.type_id}}


_MOST_TYPES = 256


def write_runs(template: Template | None, specials: Mapping[str, int]) -> JsonObject | None:
    """Returns the post-processor in version 2.0, which has runs of ids in the place of names. Raises UnsupportedError
    for a template that Hugging Face refuses there."""
    if template is None:
        return None
    pieces = (*template.single, *template.pair)
    if [piece.text for piece in template.pair if piece.is_sequence] != ["A", "B"] or any(
        piece.type_id >= _MOST_TYPES for piece in pieces
    ):
        raise UnsupportedError(
            f"version 2.0 of tokenizer.json cannot hold the template {str(template)!r:.200}: $A must come before $B,"
            f" and types are below {_MOST_TYPES}"
        )
    single, pair = (_write_runs(pieces, specials) for pieces in (template.single, template.pair))
    return {"type": "TemplateProcessing", "single": single, "pair": pair}


def _write_runs(pieces: Iterable[TemplatePiece], specials: Mapping[str, int]) -> list[JsonObject]:
    found: list[JsonObject] = []
    for (text, type_id), run in groupby(pieces, lambda piece: (piece.text if piece.is_sequence else "", piece.type_id)):
        what: JsonObject = {"seq": text} if text else {"ids": [specials[piece.text] for piece in run]}
        found.append({**what, "type_id": type_id} if type_id else what)
    return found


def _read_runs(pieces: Iterable[Any], specials: Mapping[str, int], name: str) -> tuple[TemplatePiece, ...]:
    """Returns the pieces of a template in version 2.0."""
    texts = {i: text for text, i in specials.items()}
    found: list[TemplatePiece] = []
    for piece in pieces:
        type_id = piece.get("type_id", 0) if isinstance(piece, dict) else None
        if type(type_id) is not int or not 0 <= type_id < _MOST_TYPES or ("seq" in piece) == ("ids" in piece):
            raise FormatError(f"{name}: expected seq or ids, and a type_id below {_MOST_TYPES}, found {piece!r:.80}")
        if "seq" in piece:
            found.append(TemplatePiece(part(piece, "seq", str, name), True, type_id))
            continue
        for i in part(piece, "ids", list, name):
            if type(i) is not int or i not in texts:
                raise FormatError(f"{name}: {i!r:.80} is not the id of an added token")
            found.append(TemplatePiece(texts[i], False, type_id))
    return tuple(found)


# Sources: tokenizers/src/processors/{roberta,bert}.rs.
_FIXED_TEMPLATES = {
    "RobertaProcessing": ("{cls} $A {sep}", "{cls} $A {sep} {sep} $B {sep}"),
    "BertProcessing": ("{cls} $A {sep}", "{cls} $A {sep} $B:1 {sep}:1"),
}


def read_post_processor(processor: Any, specials: Mapping[str, int], name: str, version: str) -> Template | None:
    """Returns the template, or None. Ignores ByteLevel, which only trims offsets."""
    if processor is None:
        return None
    if version != "1.0" and type_of(processor) != "TemplateProcessing":
        raise FormatError(f"{name}: the post_processor is {type_of(processor)!r:.80}; {version} has TemplateProcessing")
    is_list = type_of(processor) == "Sequence" and isinstance(processor, dict)
    steps = part(processor, "processors", list, f"{name}: post_processor") if is_list else [processor]
    others = [step for step in steps if not _only_trims(step)]
    if not others:
        return None
    kinds = [type_of(step) for step in others]
    if len(kinds) == 1 and kinds[0] in list(_FIXED_TEMPLATES):  # in a damaged file, a type may be unhashable
        return _fixed_template(kinds[0], others[0], specials, f"{name}: post_processor")
    if kinds != ["TemplateProcessing"]:
        raise FormatError(
            f"{name}: the post_processor is {kinds}; pybpe supports ByteLevel and one of TemplateProcessing,"
            " RobertaProcessing and BertProcessing"
        )
    return _read_template(others[0], specials, name, version)


def _fixed_template(kind: str, processor: JsonObject, specials: Mapping[str, int], name: str) -> Template:
    """Returns the template of a processor that only says which tokens it uses."""
    tokens: dict[str, str] = {}
    for role in ("cls", "sep"):
        given = processor.get(role)
        if not (isinstance(given, list) and len(given) == 2 and specials.get(str(given[0]), -1) == given[1]):
            raise FormatError(f"{name}: {kind}: {role} is {given!r:.80}, which is not an added token with its id")
        tokens[role] = str(given[0])
    single, pair = ([piece.format(**tokens) for piece in spelled.split()] for spelled in _FIXED_TEMPLATES[kind])
    return Template.parse(single, pair)


def _only_trims(step: Any) -> bool:
    """Returns whether a step is ByteLevel, which Hugging Face recognizes by its members."""
    return type_of(step) == "ByteLevel" and isinstance(step, dict) and type(step.get("add_prefix_space")) is bool


def _read_template(processor: JsonObject, specials: Mapping[str, int], name: str, version: str) -> Template | None:
    name = f"{name}: post_processor"
    pieces = [part(processor, key, list, name) for key in ("single", "pair")]
    try:
        if version == "1.0":
            template = Template(*(tuple(_read_piece(piece, name) for piece in each) for each in pieces))
        else:
            template = Template(*(_read_runs(each, specials, name) for each in pieces))
        template.check(specials)
    except ArgumentError as error:
        raise FormatError(f"{name}: {error}") from None
    given = part(processor, "special_tokens", dict, name) if version == "1.0" else {}
    for text in template.special_tokens if version == "1.0" else ():
        ids = part(given.get(text), "ids", list, name)
        if ids != [specials[text]]:
            raise FormatError(f"{name}: {text!r} has the ids {ids}; pybpe uses its own id, {specials[text]}")
    return template if template != Template.parse("$A") else None  # transformers writes "$A" for no template


def _read_piece(piece: Any, name: str) -> TemplatePiece:
    for kind in ("Sequence", "SpecialToken"):
        if isinstance(piece, dict) and kind in piece:
            inner = piece[kind]
            text, type_id = part(inner, "id", str, name), part(inner, "type_id", int, name)
            return TemplatePiece(text, kind == "Sequence", type_id)
    raise FormatError(f"{name}: expected a Sequence or a SpecialToken, found {piece!r:.80}")
