"""The vocabulary of a GGUF file, for llama.cpp. The package gguf writes it. pybpe does not read such files.

It has the tokens, spelled as in vocab_merges.py, the merges, the special tokens, and the name of the rules that
llama.cpp splits text into words (`pre`). Sources: llama.cpp, conversion/base.py (the fields), src/llama-vocab.cpp and
src/unicode.cpp (the rules, and the refusals here), at its commit 0c1e570.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import _binding
from ..errors import MissingExtraError, UnsupportedError
from ..model import Model
from ..pattern import Pattern
from ..reading.streams import read_file
from .pretrained import chat_template, roles
from .tokenizer_json import taken_as_word
from .vocab_merges import token_names

# Patterns -> the `pre` whose rules give the same words. Only llama-bpe takes a word that is a token as that token.
_PRE = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", r"\p{N}(?then)gpt2": "smollm"}
_MERGES_ALL = {"llama-bpe": "smaug-bpe"}  # the same rules without that
_NEAR = {
    "cl100k": ". It uses llama3's rules for cl100k, which differ in white space at the end of a text: a copy that has"
    " the pattern llama3 can be exported with them",
    "o200k": ". Its rules for o200k differ in combining marks, and in the case of letters outside ASCII",
}
# llama.cpp makes a token whose text is in a list of its own a control token. They all look like this.
_LIKE_CONTROL = re.compile(rb"[<\[].*[A-Za-z].*[>\]\[]", re.DOTALL)
_ALIGNMENT = 32
_UNUSED = "[PAD{}]"  # as llama.cpp's own converter names an unused id


def write(model: Model, path: _binding.PathLike) -> None:
    """Writes a file with only the vocabulary. Raises the errors of `new_writer`."""
    _binding.write_file(path, header(new_writer(model)))


def new_writer(model: Model) -> Any:
    """Returns a gguf.GGUFWriter for a GPT-2, which has the fields of the vocabulary. Raises UnsupportedError if
    llama.cpp would give other ids, or end texts at another token."""
    pre = _pre(model)
    names = token_names(model)
    _check(model, pre, names)
    try:
        from gguf import GGUFWriter, TokenType
    except ImportError:
        raise MissingExtraError("gguf is not installed: pip install 'pybpe[gguf]'") from None
    types = [TokenType.NORMAL if name else TokenType.UNUSED for name in names]
    for text, i in model.specials.items():
        types[i] = TokenType.USER_DEFINED if text in model.visible else TokenType.CONTROL
    writer = GGUFWriter(None, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([name or _UNUSED.format(i) for i, name in enumerate(names)])
    writer.add_token_types(types)
    writer.add_token_merges([f"{names[left]} {names[right]}" for left, right in model.merges])
    ends = dict.fromkeys(("bos_token", "eos_token"), str(model.eot))  # llama.cpp takes id 11 for one that is not there
    for role, text in {**ends, **roles(model)}.items():
        if (add := getattr(writer, f"add_{role}_id", None)) is not None:  # others have no field
            add(model.specials[text])
    writer.add_add_bos_token(False)
    if template := chat_template(model):
        writer.add_chat_template(template)
    return writer


def header(writer: Any) -> bytes:
    """Returns the part of a file before the tensors, up to where the first one begins."""
    with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
        path = os.path.join(folder, "header")
        writer.write_header_to_file(Path(path))
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        data = read_file(path)
    return data + padding(len(data))


def padding(size: int) -> bytes:
    """Returns the zeros between this number of bytes and the next tensor."""
    return bytes(-size % _ALIGNMENT)


def _pre(model: Model) -> str:
    pre = next((pre for pattern, pre in _PRE.items() if model.pattern == Pattern(pattern)), None)
    if pre is None:
        raise UnsupportedError(
            f"llama.cpp has no rules that split text as the pattern {model.pattern}; it has rules for {', '.join(_PRE)}"
            + _NEAR.get(model.pattern.name or "", "")
        )
    if not (unreached := model.unreached()) or model.whole_words == (pre in _MERGES_ALL):
        return pre
    if not model.whole_words:
        return _MERGES_ALL[pre]
    raise UnsupportedError(
        f"llama.cpp merges every word with the pattern {model.pattern}, and merges do not make token {unreached[0]},"
        f" {model.tokens[unreached[0]]!r:.80}: it has no ignore_merges there"
    )


def _check(model: Model, pre: str, names: list[str]) -> None:
    """Raises UnsupportedError if llama.cpp would read the tokenizer differently."""
    specials = model.specials
    ids = set(specials.values())
    unused = {_UNUSED.format(i) for i, name in enumerate(names) if not name}
    control = (i for i, token in enumerate(model.tokens) if _LIKE_CONTROL.search(token) and i not in ids)
    found: dict[str, object] = {
        "needs a token that ends a text, and otherwise takes id 11: add the special token <|endoftext|>": (
            model.eot is None
        ),
        "refuses a vocabulary without merges": not model.merges,
        "leaves out bytes that have no token; this tokenizer lacks {:#04x}": next(iter(model.lacking_bytes), None),
        "cuts off a text at a NUL: the special token {!r:.80}": next((text for text in specials if "\0" in text), None),
        "finds longer special tokens first, not those that begin first: {!r:.170}": _overlap(specials),
        "may take token {} for a special token": next(control, None),
        "may return the special token {!r:.80} for a word": taken_as_word(
            replace(model, whole_words=pre in _MERGES_ALL), specials
        ),
        "needs a name for an unused id, and a token has it already: {}": next(iter(unused.intersection(names)), None),
    }
    for problem, what in found.items():
        if what is not None and what is not False:
            raise UnsupportedError(f"llama.cpp {problem.format(what)}")


def _overlap(specials: Collection[str]) -> tuple[str, str] | None:
    """Returns a special token that ends with the beginning of another one that is not shorter, and that one."""
    sizes = {text: len(text.encode()) for text in specials}
    for text in specials:
        rest = set(text[1:])
        for other in specials:
            if other[0] in rest and other != text and sizes[other] >= sizes[text]:
                if any(other.startswith(text[i:]) for i in range(1, len(text))):
                    return text, other
    return None
