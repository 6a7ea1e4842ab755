"""Multiple-choice files such as HellaSwag's, for llm.c's EvalLoader, with any tokenizer.

A file is a header of 256 int32,

    [0] 20240522  [1] 1  [2] number of examples  [3] bytes of the longest example

and the examples as uint16,

    65535, bytes of the example, its index, label 0-3, 4, n, n context tokens, then 4 times: n, n tokens

llm.c gives every completion a row of the batch, and counts an example as correct if the completion with the lowest mean
loss is the labeled one. train_gpt2.cu reads `dev/data/hellaswag/hellaswag_val.bin` when started with `-h 1`. Source:
llm.c, dev/data/data_common.py (write_evalfile), dev/data/hellaswag.py, llmc/dataloader.h (EvalLoader).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.arguments import number_of
from pybpe.errors import ArgumentError, FormatError, LimitError, warn
from pybpe.reading.file_types import EVAL_MAGIC
from pybpe.reading.streams import read_file

from .shards import HEADER_BYTES, Record, header, header_numbers, read_records

MAGIC = EVAL_MAGIC
VERSION = 1
COMPLETIONS = 4
DELIMITER = 65535  # so no token may have this id
MAX_EXAMPLES = 65535  # an index is a uint16, and llm.c's writer has this limit
MAX_EXAMPLE_BYTES = 65534  # the length is a uint16, and even
LLMC_PATH = os.path.join("dev", "data", "hellaswag", "hellaswag_val.bin")

_PREFIX = 6  # uint16 before the context: 65535, bytes, index, label, 4, n


@dataclass(frozen=True)
class Example:
    """One question.

    Attributes:
        context: its tokens, at least one.
        completions: the tokens of the four answers, at least one per answer.
        label: which answer is correct, 0 to 3.
    """

    context: Sequence[int]
    completions: Sequence[Sequence[int]]
    label: int

    @property
    def row_tokens(self) -> int:
        """The number of tokens in the longest row. llm.c needs a larger T."""
        return len(self.context) + max(map(len, self.completions))

    @property
    def num_bytes(self) -> int:
        """The size of the example in a file, in bytes."""
        return 2 * (_PREFIX + COMPLETIONS + len(self.context) + sum(map(len, self.completions)))

    def problem(self) -> str | None:
        """Returns why no file can hold the example, or None."""
        if len(self.completions) != COMPLETIONS:
            return f"has {len(self.completions)} completions; llm.c takes exactly {COMPLETIONS}"
        if not 0 <= self.label < COMPLETIONS:
            return f"has the label {self.label}; it must be 0, 1, 2 or 3"
        parts = (self.context, *self.completions)
        if not all(parts):
            return "has an empty context or completion; llm.c needs at least one token in each"
        highest, lowest = max(map(max, parts)), min(map(min, parts))
        if lowest < 0 or highest >= DELIMITER:
            return f"has the token {highest if lowest >= 0 else lowest}; an eval file holds 0 to {DELIMITER - 1}"
        if self.num_bytes > MAX_EXAMPLE_BYTES:
            return f"takes {self.num_bytes} bytes; an example can have at most {MAX_EXAMPLE_BYTES}"
        return None


@dataclass(frozen=True)
class EvalFacts:
    """The batch sizes that llm.c needs for a file.

    Attributes:
        examples: the number of examples.
        longest_bytes: the size of the longest example.
        row_tokens: the number of tokens in the longest row.
        highest_id: the highest token id.
        stated_bytes: the size of the longest example according to the header, or 0 if it equals longest_bytes.
        rest_bytes: the number of bytes after the last example.
    """

    examples: int
    longest_bytes: int
    row_tokens: int
    highest_id: int
    stated_bytes: int = 0
    rest_bytes: int = 0

    @classmethod
    def of(cls, examples: Sequence[Example]) -> EvalFacts:
        """Returns the facts of a file with these examples (at least one)."""
        return cls(
            len(examples),
            max(example.num_bytes for example in examples),
            max(example.row_tokens for example in examples),
            max(max(map(max, (example.context, *example.completions))) for example in examples),
        )

    @property
    def min_T(self) -> int:
        """The smallest T that llm.c accepts: T exceeds every row, and 10 T exceeds the longest example."""
        return max(self.row_tokens, (self.stated_bytes or self.longest_bytes) // 10) + 1


# ----------------------------------------------------------------------------------------------------
# From text


def encode_examples(tok: Tokenizer, source: _binding.PathLike | BinaryIO, *, separator: str = " ") -> Iterator[Example]:
    """Encodes the examples in JSON lines.

    A line is `{"context": str, "completions": [str, str, str, str], "label": 0-3}`. HellaSwag's names `ctx` and
    `endings` also work. As in llm.c's hellaswag.py, context and completions are encoded separately, completions with a
    leading space, because GPT-2's tokens for words inside a text begin with a space.

    Args:
        tok: the tokenizer. Special tokens in the examples are encoded as ordinary text.
        source: a file (also *.gz and *.zst) or a stream.
        separator: the text before a completion: " ", or "" for scripts without spaces. A PybpeWarning names the first
            record where "" joins two words.

    Raises:
        FileError. FormatError: a line is not such a record. LimitError: an example is too large for the format, or
            has the id 65535. All errors name the line.
    """
    warned = False
    for record in read_records(source):
        context, completions, label = _parse(record)
        joined = next((text for text in completions if _joins_words(context, separator + text)), None)
        if joined is not None and not warned:
            warned = True
            warn(
                str(record.error(f"nothing separates {context[-20:]!r} and {joined[:20]!r}"))
                + ": put a space before the completion, or make a space the separator"
            )
        example = Example(
            tok.encode_ordinary(context), [tok.encode_ordinary(separator + text) for text in completions], label
        )
        problem = example.problem()
        if problem:
            raise LimitError(str(record.error(problem)))
        yield example


def _joins_words(context: str, completion: str) -> bool:
    """Returns whether the context's last word and the completion's first word would run together, in a script that puts
    spaces between words (the scripts of East and Southeast Asia start at U+0E00)."""
    return all(char.isalnum() and char < "\u0e00" for char in (context[-1], completion[:1] or " "))


def _parse(record: Record) -> tuple[str, list[str], int]:
    value = record.value
    if not isinstance(value, dict):
        raise record.error("expected an object with context, completions and label")
    context = value.get("context", value.get("ctx"))
    completions = value.get("completions", value.get("endings"))
    label = value.get("label")
    if not isinstance(context, str) or not context:
        raise record.error("context must be a non-empty string")
    if not isinstance(completions, list) or not all(isinstance(text, str) and text for text in completions):
        raise record.error("completions must be non-empty strings")
    if len(completions) != COMPLETIONS:
        raise record.error(f"{len(completions)} completions; llm.c takes exactly {COMPLETIONS}")
    if type(label) is not int or not 0 <= label < COMPLETIONS:
        raise record.error(f"label must be 0, 1, 2 or 3, not {label!r}")
    return context, completions, label


# ----------------------------------------------------------------------------------------------------
# Writing


def write_eval(path: _binding.PathLike, examples: Iterable[Example]) -> EvalFacts:
    """Writes an eval file, atomically. The whole file is held in memory: at most 4 GiB (HellaSwag's is 4 MB).

    Raises:
        ArgumentError: there are no examples. LimitError: there are more than 65,535, or no file can hold one of them.
    """
    listed = list(islice(examples, MAX_EXAMPLES + 1))
    for index, example in enumerate(listed):
        problem = (
            example.problem()
            if index < MAX_EXAMPLES
            else f"is one too many: a file holds at most {MAX_EXAMPLES} examples"
        )
        if problem:
            raise LimitError(f"{os.fsdecode(path)}: example {index} {problem}")
    if not listed:
        raise ArgumentError(f"{os.fsdecode(path)}: there are no examples; llm.c aborts on such a file")
    facts = EvalFacts.of(listed)
    with _binding.Output(path) as output:
        output.write(header(MAGIC, VERSION, facts.examples, facts.longest_bytes))
        for index, example in enumerate(listed):
            fields = [DELIMITER, example.num_bytes, index, example.label, COMPLETIONS]
            for part in (example.context, *example.completions):
                fields += [len(part), *part]
            output.write(numpy.array(fields, dtype="<u2"))
    return facts


# ----------------------------------------------------------------------------------------------------
# Reading


def read_eval(path: _binding.PathLike) -> list[Example]:
    """Reads the examples of a file.

    Raises:
        FileError. FormatError: the file is damaged. The error names the byte, and the effect on llm.c.
    """
    examples, facts = _read_file(path)
    name = os.fsdecode(path)
    if facts.stated_bytes:
        fault = f"the longest example has {facts.longest_bytes} bytes, but the header says {facts.stated_bytes}"
        effect = "; llm.c overflows its buffer" if facts.stated_bytes < facts.longest_bytes - 6 else ""
        raise FormatError(f"{name}: {fault}{effect}", 12)
    if facts.rest_bytes:
        raise FormatError(
            f"{name}: has {number_of(facts.rest_bytes, 'byte')} after the last example, which llm.c never reads"
        )
    return examples


def eval_facts(path: _binding.PathLike) -> EvalFacts:
    """Returns the batch sizes that llm.c needs for a file, even if the header's size of the longest example is wrong.

    Raises:
        FileError. FormatError: llm.c cannot read the file.
    """
    return _read_file(path)[1]


def _read_file(path: _binding.PathLike) -> tuple[list[Example], EvalFacts]:
    name = os.fsdecode(path)
    raw = read_file(path)
    magic, version, count, longest = header_numbers(raw, name, "an eval file")[:4]
    if magic != MAGIC or version != VERSION:
        raise FormatError(f"{name}: magic {magic}, version {version}; expected {MAGIC}, {VERSION}; llm.c aborts")
    if count < 1:
        raise FormatError(f"{name}: the header says that there are {count} examples; llm.c aborts", 8)
    if longest < 1:
        raise FormatError(f"{name}: the header says that the longest example has {longest} bytes; llm.c aborts", 12)
    body = numpy.frombuffer(raw, dtype="<u2", offset=HEADER_BYTES, count=(len(raw) - HEADER_BYTES) // 2)
    examples, end = _read_examples(name, body, count)
    facts = EvalFacts.of(examples)
    stated = 0 if longest == facts.longest_bytes else longest
    return examples, replace(facts, stated_bytes=stated, rest_bytes=len(raw) - end)


def _read_examples(name: str, body: numpy.ndarray[Any, Any], count: int) -> tuple[list[Example], int]:
    """Parses `count` examples. Returns them and the offset after the last one."""
    examples = []
    at = 0
    for index in range(count):
        size = int(body[at + 1]) if at + 1 < len(body) else 0
        fields = body[at : at + size // 2].tolist()
        example = _unpack(fields, index) if 2 * len(fields) == size else None
        if example is None:
            raise FormatError(
                f"{name}: example {index} is cut off or damaged; llm.c aborts or reads past it", HEADER_BYTES + 2 * at
            )
        examples.append(example)
        at += len(fields)
    return examples, HEADER_BYTES + 2 * at


def _unpack(fields: list[int], index: int) -> Example | None:
    """Parses these uint16 as one example. Returns None unless they are exactly one, with this index."""
    if fields[:1] != [DELIMITER] or fields[2:3] != [index] or fields[4:5] != [COMPLETIONS]:
        return None
    parts = []
    at = 5
    for _ in range(1 + COMPLETIONS):
        size = fields[at] if at < len(fields) else 0
        parts.append(fields[at + 1 : at + 1 + size])
        at += 1 + size
    example = Example(parts[0], parts[1:], fields[3])
    return example if at == len(fields) and example.problem() is None else None
