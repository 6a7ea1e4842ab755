"""Parity-aware training, after Foroutan et al. 2025, "Parity-Aware Byte-Pair Encoding".

A language has text to learn from and a development text. A language costs the tokens of its development text,
divided by its characters or bytes. The cost of a translation is the number of its tokens itself. In every step, the
language that costs the most chooses the merge: the pair that is most frequent in the text to learn from.

The authors' program, in the variant that they call base, does the same, with two differences. It stops when the most
frequent pair of the language is too rare, while pybpe continues with the next language. And it compares only tokens of
translations. Their hybrid variant is `transition`: ordinary BPE up to this share of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import instance, is_unicode, param, shown, utf8
from ..errors import ArgumentError
from ..reading.documents import Kinds
from ..reading.files import corpus_files
from ..reading.inputs import STDIN, ReadOptions, is_path_list, path_list
from ..reading.objects import texts_of
from ..reading.planning import pieces_of, whole
from ..reading.sample import Sample
from ..support.call_paths import check_once
from ..support.parallel import RunOptions
from .counting import count_inputs
from .counts import CountSettings

UNITS = ("text", "character", "byte")

Texts = Mapping[str, Any]  # as for `inputs` of pybpe.train: Inputs | Iterable[Text]


def check_texts(name: str, texts: object) -> None:
    """Raises ArgumentError unless `texts` maps the names of languages to paths or texts."""
    instance(name, texts, Mapping, "a mapping of languages to texts, such as {'en': 'en.txt', 'zh': 'zh.txt'}")
    assert isinstance(texts, Mapping)
    if len(texts) < 2:
        raise ArgumentError(f"{param(name)} has {len(texts)} languages: there must be at least 2")
    for language in texts:
        instance(f"the name of a language in {name}", language, str, "a str")
        if not language or not language.isprintable() or not is_unicode(language):
            raise ArgumentError(f"{name}: {shown(language)} cannot be the name of a language: use one such as 'en'")


def check_inputs(inputs: object, parity: Texts) -> None:
    """Raises ArgumentError unless `inputs` are texts of the languages of `parity`."""
    check_texts("with parity, inputs", inputs)
    assert isinstance(inputs, Mapping)
    for language in sorted(inputs.keys() ^ parity.keys()):
        lacking, other = ("parity", "inputs") if language in inputs else ("inputs", "parity")
        raise ArgumentError(f"{lacking} lacks the language {language!r} of {other}: both need text of each language")
    texts = [*inputs.values(), *parity.values()]
    if sum(path_list(each).count(STDIN) for each in texts if is_path_list(each)) > 1:
        raise ArgumentError("standard input (-) can be read only once")
    check_once(path for each in inputs.values() if is_path_list(each) for path in path_list(each))


def count_languages(
    inputs: Texts, options: tuple[Texts, str], settings: CountSettings, sample: Sample, run: RunOptions
) -> list[_binding.Language]:
    """Counts the words of all languages: of `sample` of the texts to learn from, with `run`, and of the whole
    development texts, in this process. `options` are the values of the arguments `parity` and `parity_per`. Raises
    ArgumentError if a text is empty, or the development texts are not translations, line by line."""
    parity, per = options
    kept = {name: _readable_twice(texts) for name, texts in parity.items()}
    if per == "text":
        lines = {name: _lines(texts, settings) for name, texts in kept.items()}
        if len(set(lines.values())) > 1:
            counts = ", ".join(f"{name} has {count}" for name, count in lines.items())
            raise ArgumentError(
                f"{param('parity')}: the development texts are not translations of each other, line by line ({counts}"
                f" lines): use translations, or compare languages by {param(parity_per='character')} or 'byte'"
            )
    alone = replace(run, executor=None, memory_limit=None)
    languages = []
    for name, texts in kept.items():
        words = count_inputs(inputs[name], settings, sample, run).words
        measured = count_inputs(texts, settings, Sample(), alone).words
        for argument, found in (("inputs", words), ("parity", measured)):
            if not len(found):
                raise ArgumentError(f"{argument}: {shown(name)} has no text")
        languages.append(_binding.Language(words, measured, _size(measured, per)))
    return languages


def _readable_twice(texts: Any) -> Any:
    if is_path_list(texts):
        if STDIN in path_list(texts):
            raise ArgumentError("parity: a development text is read twice: use a file instead of standard input")
        return texts
    return _Listed(list(texts_of(texts, "parity")))


class _Listed:
    """Texts in memory, which can be read twice. A plain list of str would be paths."""

    def __init__(self, texts: list[Any]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[Any]:
        return iter(self._texts)


def _size(words: _binding.Words, per: str) -> int:
    """Returns the divisor of the tokens of a development text."""
    if per == "text":
        return 1
    characters = per == "character"
    return sum(
        (len(word.decode("utf-8", "surrogateescape")) if characters else len(word)) * count
        for word, count in words.to_dict().items()
    )


def _lines(texts: Any, settings: CountSettings) -> int:
    """Returns the number of lines of a text, as `pybpe.compare` counts them: a record is one."""
    if not is_path_list(texts):
        return sum(_text_lines(bytes(utf8(text))) for text in texts)
    lines, key, cut = 0, settings.read.text_key, settings.cutting.cut
    for file in corpus_files(texts, settings.read):
        ends_in_line = False
        for piece in pieces_of(whole(file), Kinds(ReadOptions(key)), cut):
            if not piece.is_text:
                piece.texts(key)
                lines += piece.notes.records
            else:
                data = bytes(piece.text)
                lines += data.count(b"\n")
                ends_in_line = not data.endswith(b"\n")
        lines += ends_in_line
    return lines


def _text_lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") if text else 0)
