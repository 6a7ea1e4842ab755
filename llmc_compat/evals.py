"""Multiple-choice files such as HellaSwag's, for llm.c's EvalLoader and any tokenizer.

A file is a header of 256 int32,

    [0] 20240522  [1] 1  [2] number of examples  [3] bytes of the longest example

and the examples as uint16,

    65535, bytes of the example, its index, label 0-3, 4, n, n context tokens, then 4 times: n, n tokens

llm.c gives each completion a row of the batch, and calls an example right if the completion with the lowest mean
loss is the labelled one. train_gpt2.cu reads `dev/data/hellaswag/hellaswag_val.bin` when started with `-h 1`.
Source: llm.c, dev/data/data_common.py (write_evalfile), dev/data/hellaswag.py, llmc/dataloader.h (EvalLoader).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from pybpe import Tokenizer, _binding
from pybpe.errors import ArgumentError, FormatError, LimitError
from pybpe.pretokenize import open_input
from pybpe.warning import warn

from .records import Record, read_records

if TYPE_CHECKING:
    import numpy

MAGIC = 20240522
VERSION = 1
COMPLETIONS = 4
DELIMITER = 65535  # so no token may have this id
MAX_EXAMPLES = 65535  # an index is a uint16, and llm.c's writer stops here
MAX_EXAMPLE_BYTES = 65534  # its length is a uint16, and even
HEADER_BYTES = 1024
LLMC_PATH = os.path.join("dev", "data", "hellaswag", "hellaswag_val.bin")

_PREFIX = 6  # uint16 before the context: 65535, bytes, index, label, 4, n


@dataclass(frozen=True)
class Example:
    """One question.

    Attributes:
        context: its tokens, at least one.
        completions: the tokens of the four answers, each at least one.
        label: which answer is right, 0 to 3.
    """

    context: Sequence[int]
    completions: Sequence[Sequence[int]]
    label: int

    @property
    def row_tokens(self) -> int:
        """The tokens of its longest row. llm.c needs a T above that."""
        return len(self.context) + max(map(len, self.completions))

    @property
    def num_bytes(self) -> int:
        """What it takes in a file."""
        return 2 * (_PREFIX + COMPLETIONS + len(self.context) + sum(map(len, self.completions)))

    def problem(self) -> str | None:
        """Why no file can hold it; None if one can."""
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
            return f"takes {self.num_bytes} bytes; an example can have {MAX_EXAMPLE_BYTES}"
        return None


@dataclass(frozen=True)
class EvalFacts:
    """What llm.c needs to serve a file.

    Attributes:
        examples: how many.
        longest_bytes: of the longest example.
        row_tokens: of the longest row.
        highest_id: of all tokens.
        stated_bytes: of the longest example, as the header says; 0 if it says longest_bytes.
        rest_bytes: after the last example.
    """

    examples: int
    longest_bytes: int
    row_tokens: int
    highest_id: int
    stated_bytes: int = 0
    rest_bytes: int = 0

    @classmethod
    def of(cls, examples: Sequence[Example]) -> EvalFacts:
        """The facts of a file with these examples, at least one."""
        return cls(
            len(examples),
            max(example.num_bytes for example in examples),
            max(example.row_tokens for example in examples),
            max(max(map(max, (example.context, *example.completions))) for example in examples),
        )

    @property
    def min_T(self) -> int:
        """The least T with which llm.c does not abort: above every row, and 10 T above the longest example."""
        return max(self.row_tokens, (self.stated_bytes or self.longest_bytes) // 10) + 1


# ----------------------------------------------------------------------------------------------------
# From text


def encode_examples(tok: Tokenizer, source: _binding.PathLike | BinaryIO, *, separator: str = " ") -> Iterator[Example]:
    """The examples of JSON lines, encoded.

    A line is `{"context": str, "completions": [str, str, str, str], "label": 0-3}`; HellaSwag's own names `ctx` and
    `endings` serve as well. As in llm.c's hellaswag.py, context and completions are encoded separately, and a
    completion with a space before it, since that is how a GPT-2 token of a word within a text begins.

    Args:
        tok: special tokens in texts are encoded as ordinary text.
        source: a file (*.gz, *.zst too) or a stream.
        separator: what is put before each completion: " ", or "" for scripts that use no spaces. A PybpeWarning names
            the first record in which "" joins two words.

    Raises:
        FileError. FormatError: a line is not such a record. LimitError: an example is too large for the format, or
        has the id 65535. All name the line.
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
    """Whether the last word of the context and the first of the completion become one word, in a script that has spaces
    between words: those of East and Southeast Asia come after U+0E00 in Unicode."""
    return all(char.isalnum() and char < "\u0e00" for char in (context[-1], completion[:1] or " "))


def _parse(record: Record) -> tuple[str, list[str], int]:
    """The fields of a line."""
    value = record.value
    if not isinstance(value, dict):
        raise record.error("expected an object with context, completions and label")
    context = value.get("context", value.get("ctx"))
    completions = value.get("completions", value.get("endings"))
    label = value.get("label")
    if not isinstance(context, str) or not context:
        raise record.error("context must be a string that is not empty")
    if not isinstance(completions, list) or not all(isinstance(text, str) and text for text in completions):
        raise record.error("completions must be strings that are not empty")
    if len(completions) != COMPLETIONS:
        raise record.error(f"{len(completions)} completions; llm.c takes exactly {COMPLETIONS}")
    if type(label) is not int or not 0 <= label < COMPLETIONS:
        raise record.error(f"label must be 0, 1, 2 or 3, not {label!r}")
    return context, completions, label


# ----------------------------------------------------------------------------------------------------
# Writing


def write_eval(path: _binding.PathLike, examples: Iterable[Example]) -> EvalFacts:
    """Writes an eval file, atomically. It is held in memory until it is complete: at most 4 GiB, HellaSwag's 4 MB.

    Raises:
        ArgumentError: no example. LimitError: more than 65,535, or one that no file can hold.
    """
    import numpy

    listed = list(islice(examples, MAX_EXAMPLES + 1))
    for index, example in enumerate(listed):
        problem = example.problem() if index < MAX_EXAMPLES else f"is one too many: a file can have {MAX_EXAMPLES}"
        if problem:
            raise LimitError(f"{os.fsdecode(path)}: example {index} {problem}")
    if not listed:
        raise ArgumentError(f"{os.fsdecode(path)}: there is no example; llm.c aborts on a file without any")
    facts = EvalFacts.of(listed)
    header = numpy.zeros(HEADER_BYTES // 4, dtype="<i4")
    header[:4] = MAGIC, VERSION, facts.examples, facts.longest_bytes
    with _binding.Output(path) as output:
        output.write(header)
        for index, example in enumerate(listed):
            output.write(_pack(example, index))
    return facts


def _pack(example: Example, index: int) -> numpy.ndarray[Any, Any]:
    """The uint16 of one example."""
    import numpy

    fields = [DELIMITER, example.num_bytes, index, example.label, COMPLETIONS]
    for part in (example.context, *example.completions):
        fields += [len(part), *part]
    return numpy.array(fields, dtype="<u2")


# ----------------------------------------------------------------------------------------------------
# Reading


def read_eval(path: _binding.PathLike) -> list[Example]:
    """The examples of a file.

    Raises:
        FileError. FormatError: at which byte the file is not what it should be, and what llm.c would do.
    """
    examples, facts = _read_file(path)
    name = os.fsdecode(path)
    if facts.stated_bytes:
        fault = f"the longest example has {facts.longest_bytes} bytes, the header says {facts.stated_bytes}"
        effect = "; llm.c overflows its buffer" if facts.stated_bytes < facts.longest_bytes - 6 else ""
        raise FormatError(f"{name}: {fault}{effect}", 12)
    if facts.rest_bytes:
        raise FormatError(f"{name}: {facts.rest_bytes} bytes follow the last example; llm.c never reads them")
    return examples


def eval_facts(path: _binding.PathLike) -> EvalFacts:
    """What llm.c needs to serve a file, whose header may say too much or too little.

    Raises:
        FileError. FormatError: llm.c cannot serve it.
    """
    return _read_file(path)[1]


def _read_file(path: _binding.PathLike) -> tuple[list[Example], EvalFacts]:
    import numpy

    name = os.fsdecode(path)
    with open_input(path) as stream:
        raw = stream.read()
    if len(raw) < HEADER_BYTES:
        raise FormatError(f"{name}: {len(raw)} bytes are no eval file: its header alone has {HEADER_BYTES}", len(raw))
    magic, version, count, longest = (int(i) for i in numpy.frombuffer(raw, dtype="<i4", count=4))
    if magic != MAGIC or version != VERSION:
        raise FormatError(f"{name}: magic {magic}, version {version}; expected {MAGIC}, {VERSION}; llm.c aborts")
    if count < 1:
        raise FormatError(f"{name}: {count} examples in the header; llm.c aborts", 8)
    if longest < 1:
        raise FormatError(f"{name}: the header says that the longest example has {longest} bytes; llm.c aborts", 12)
    body = numpy.frombuffer(raw, dtype="<u2", offset=HEADER_BYTES, count=(len(raw) - HEADER_BYTES) // 2)
    examples, end = _read_examples(name, body, count)
    facts = EvalFacts.of(examples)
    stated = 0 if longest == facts.longest_bytes else longest
    return examples, replace(facts, stated_bytes=stated, rest_bytes=len(raw) - end)


def _read_examples(name: str, body: numpy.ndarray[Any, Any], count: int) -> tuple[list[Example], int]:
    """`count` examples, and the byte of the file after the last."""
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
    """The example of these uint16; None if they are not exactly one, with this index."""
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
