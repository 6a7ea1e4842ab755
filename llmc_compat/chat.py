"""Encodes conversations as training tokens, with the control tokens of the llm.c profile.

A conversation is a JSON line `{"messages": [{"role": ..., "content": ..., "thought": ...}, ...]}`, or the list alone.
Its tokens, with single control tokens in capitals:

    conversation = ENDOFTEXT message...
    message      = IM_START role [THOUGHT text END_THOUGHT] text IM_END
    role         = SYSTEM | USER | ASSISTANT

    ENDOFTEXT <|endoftext|>   IM_START <|im_start|>   IM_END      <|im_end|>     SYSTEM      <|system|>
    USER      <|user|>        THOUGHT  <|thought|>    END_THOUGHT <|/thought|>   ASSISTANT   <|assistant|>

Nothing else comes between them: no newline, no space. `text` is the content or the thought, unchanged and encoded as
ordinary text: `<|im_end|>` written in a message becomes several tokens, never the control token. Only the assistant can
have a thought. If it is absent or null, its tokens are left out. An empty thought keeps them.

The loss mask is 1 for every token that the model should learn to produce: everything after ASSISTANT through IM_END,
including the thought and its control tokens. The model predicts token i from the tokens before it, so with inputs =
tokens[a:b] and targets = tokens[a+1:b+1], the weights of the loss are mask[a+1:b+1].

Files. The tokens are written as llm.c shards, NAME_train_000000.bin and so on. llm.c trains on every token, because it
does not support masks. There is a mask next to every shard, NAME_train_000000.mask: a header of 256 int32,

    [0] 0x4B53414D, the letters MASK  [1] 1  [2] number of tokens

and a uint8, 0 or 1, per token. A mask cannot be mistaken for a shard: `*.bin` does not match its name, and its magic
differs.
"""

from __future__ import annotations

import filecmp
import glob
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.arguments import param
from pybpe.control_tokens import CONTROL_TOKENS_TEMPLATE
from pybpe.errors import ArgumentError, FormatError, LimitError, ShardTooSmallError, file_errors, note, warn
from pybpe.model import END_OF_TEXT
from pybpe.reading.planning import SPLIT_NAMES, SplitOptions, hash_split
from pybpe.reading.streams import read_file
from pybpe.support import platform
from pybpe.support.output_files import (
    make_folder,
    only_writer,
    remove_file,
    remove_folder,
    remove_others,
    unfinished_folder,
)
from pybpe.support.task_results import results_in, write_results
from pybpe.tokens.formats import Layout, OutputOptions
from pybpe.tokens.manifest import check_name, manifest_name
from pybpe.tokens.run import make_here, make_shards
from pybpe.tokens.task_encoder import TYPECODES, Encoded, Segment, Stream, task_data
from pybpe.tokens.token_folders import finished_manifest

from .shards import HEADER_BYTES, Record, header, header_numbers, read_records

ROLES = ("system", "user", "assistant")
MASK_MAGIC = 0x4B53414D
MASK_VERSION = 1
TEMPLATE_NAME = "chat_template.jinja"  # where transformers looks for it in a tokenizer folder

# The same format as text, for Hugging Face's `apply_chat_template`. Encoding that text with control tokens recognized
# gives this module's tokens, unless a message spells a control token: in text, it looks like a real one.
CHAT_TEMPLATE = CONTROL_TOKENS_TEMPLATE

_READ_TOKENS = 1 << 20


class ChatFormat:
    """Encodes conversations with a tokenizer that has the control tokens.

    Args:
        tok: a tokenizer with the eight special tokens of the grammar.

    Raises:
        ArgumentError: a special token is missing.
    """

    def __init__(self, tok: Tokenizer) -> None:
        self._tok = tok
        self._end_of_text = self._control(END_OF_TEXT)
        self._im_start, self._im_end = self._control("<|im_start|>"), self._control("<|im_end|>")
        self._thought, self._end_thought = self._control("<|thought|>"), self._control("<|/thought|>")
        self._roles = {role: self._control(f"<|{role}|>") for role in ROLES}

    def _control(self, text: str) -> int:
        ids = self._tok.special_tokens
        if text not in ids:
            raise ArgumentError(
                f"the tokenizer has no special token {text}; train it with the nine of llm.c's profile, as"
                " `pybpe prepare` and `pybpe llmc workspace` do"
            )
        return ids[text]

    def encode(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = False) -> list[int]:
        """Returns the tokens of a conversation.

        Args:
            messages: dictionaries with `role` (system, user or assistant), `content`, and optionally `thought`.
            add_generation_prompt: end with IM_START ASSISTANT, so that the model writes the reply.

        Raises:
            ArgumentError: a message is malformed. The error names it.
        """
        ids = [self._end_of_text]
        for number, message in enumerate(messages, 1):
            problem = _problem(message)
            if problem:
                raise ArgumentError(f"message {number}: {problem}")
            ids += [self._im_start, self._roles[message["role"]]]
            if message.get("thought") is not None:
                ids += [self._thought, *self._tok.encode_ordinary(message["thought"]), self._end_thought]
            ids += [*self._tok.encode_ordinary(message["content"]), self._im_end]
        if add_generation_prompt:
            ids += [self._im_start, self._roles["assistant"]]
        return ids

    def loss_mask(self, ids: numpy.ndarray[Any, Any], inside: bool = False) -> tuple[numpy.ndarray[Any, Any], bool]:
        """Returns the loss mask: which tokens the model should learn to produce.

        Args:
            ids: tokens in order, shape (n,), any integer dtype: whole conversations, or part of a stream.
            inside: whether this part begins inside an assistant's message, as returned for the part before it.

        Returns:
            The mask, uint8, shape (n,), and `inside` for the next part.
        """
        # The state is 1 between ASSISTANT and IM_END. A token's mask is the state set by the last of these two before
        # it. `maximum.accumulate` of their positions finds that one.
        starts, ends = ids == self._roles["assistant"], ids == self._im_end
        places = numpy.where(starts | ends, numpy.arange(1, len(ids) + 1), 0)
        last = numpy.maximum.accumulate(numpy.concatenate([[0], places]))
        states = numpy.concatenate([[inside], starts])[last]
        return states[:-1].astype(numpy.uint8), bool(states[-1])


def _problem(message: Any) -> str | None:
    if not isinstance(message, Mapping):
        return "expected an object with role and content"
    role, thought = message.get("role"), message.get("thought")
    if role not in ROLES:
        return f"role must be system, user or assistant, not {role!r}"
    if not isinstance(message.get("content"), str):
        return "content must be a string"
    if thought is not None and not isinstance(thought, str):
        return "thought must be a string"
    if thought is not None and role != "assistant":
        return f"a {role} message cannot have a thought; only the assistant's can"
    return None


def _messages(record: Record) -> list[Any]:
    messages = record.value.get("messages") if isinstance(record.value, dict) else record.value
    if not isinstance(messages, list) or not messages:
        raise record.error('expected {"messages": [...]} with at least one message, or the list alone')
    return messages


_FIELDS = frozenset(("role", "content", "thought", "weight"))
_OF_CONVERSATION = frozenset(("tools", "functions"))  # others, such as "id", do not affect the model


def _left_out(record: Record) -> list[str]:
    """Returns the fields of a conversation that are not empty and that the grammar cannot represent."""
    messages = _messages(record)
    found = {key for message in messages for key, value in message.items() if value} - _FIELDS
    if any(message.get("weight", 1) != 1 for message in messages):  # 0: the model must not learn the message
        found.add("weight")
    if isinstance(record.value, dict):
        found |= {key for key in _OF_CONVERSATION if record.value.get(key)}
    return sorted(found)


# ----------------------------------------------------------------------------------------------------
# Data sets


@dataclass(frozen=True)
class ChatData:
    """Describes the files of `write_chat`.

    Attributes:
        conversations: the number of conversations.
        tokens: the number of tokens in every split.
        trained_tokens: how many of those have mask 1.
        shards: the token files of every split. Their masks are next to them (`mask_path`).
    """

    conversations: int
    tokens: dict[str, int]
    trained_tokens: dict[str, int]
    shards: dict[str, list[str]]


def write_chat(
    tok: Tokenizer,
    sources: Iterable[_binding.PathLike | BinaryIO],
    out: _binding.PathLike,
    *,
    name: str = "chat",
    splits: Sequence[float] = (8, 1, 1),
    shard_tokens: int = 10**8,
    min_shard_tokens: int = 257,
    force: bool = False,
) -> ChatData:
    """Encodes conversations into shards with loss masks, and writes the chat template next to them.

    All files get their names at the end, so a bad line leaves an earlier run's files as they were. Shards of an earlier
    run that this run does not replace are removed, because llm.c would read them too.

    Args:
        tok: a tokenizer with the special tokens of the grammar.
        sources: JSON lines, as files (also *.gz and *.zst) or streams.
        out: the output folder, created if needed.
        name: the files' name prefix.
        splits: the shares of train, val and test. The hash of a conversation's line chooses its split.
        shard_tokens, min_shard_tokens: as in `pybpe.binarize`.
        force: True replaces shards with this name that have other tokens. Otherwise pybpe keeps them and raises an
            error.

    Raises:
        FileError, ArgumentError. FormatError: a line is not a conversation. The error names it. LimitError: a split
            is too small for llm.c.
    """
    chat = ChatFormat(tok)
    check_name(name)
    options = SplitOptions(splits)
    output = OutputOptions(shard_tokens=shard_tokens, min_shard_tokens=min_shard_tokens, name=name)
    folder = _binding.path_text(out)
    layout = Layout(tok, output.for_vocabulary(tok.vocab_size, tok.model.eot), folder, name, {})
    hidden = unfinished_folder(os.path.join(folder, name))  # a folder may have other token files
    if not force and os.path.exists(os.path.join(folder, manifest_name(folder))):
        try:
            finished_manifest(folder, tok)
        except ArgumentError as error:  # another tokenizer made the token files
            raise ArgumentError(f"{error}: choose another folder, or pass {param(force=True)}") from None
    with only_writer(folder), _emptied(hidden):
        found = _encoded(layout, chat, sources, options.splits)
        conversations, shards = _write_shards(layout, hidden, found, len(options.names))
        trained = {split: _write_masks(chat, paths) for split, paths in shards.items()}
        tokens = {split: sum(len(_binding.Shard(path)) for path in paths) for split, paths in shards.items()}
        _binding.write_file(os.path.join(hidden, TEMPLATE_NAME), CHAT_TEMPLATE.encode())
        _publish(layout, hidden, force)
    named = {split: [os.path.join(folder, os.path.basename(path)) for path in some] for split, some in shards.items()}
    return ChatData(conversations, tokens, trained, named)


def _write_shards(
    layout: Layout, hidden: str, found: Iterator[Encoded], splits: int
) -> tuple[int, dict[str, list[str]]]:
    """Writes the shards into the hidden folder. Returns the number of conversations, and the paths by split."""
    results = os.path.join(hidden, "results")
    write_results(results, task_data(found, splits, layout.marks))
    streams = [Stream(layout.marks) for _ in range(splits)]
    conversations = 0
    for _, facts in results_in(results):
        conversations += facts["size"]
        for stream, counts in zip(streams, facts["splits"]):
            stream.take(counts)
    try:
        made = make_shards(layout, streams, [results], hidden, make_here, progress=False)
    except ShardTooSmallError as error:
        least = layout.output.least_tokens
        told = f"{os.path.basename(error.path)}: would have {error.tokens} tokens, and llm.c needs {least}"
        remedy = f"add conversations, or use other {param('splits')}, or a smaller {param('min_shard_tokens')}"
        raise LimitError(f"{layout.folder}: {told}: {remedy}") from None
    remove_file(results)
    paths = {split: [os.path.join(hidden, record.file) for record in some] for split, some in made.items()}
    return conversations, paths


def _encoded(
    layout: Layout,
    chat: ChatFormat,
    sources: Iterable[_binding.PathLike | BinaryIO],
    splits: Sequence[float],
) -> Iterator[Encoded]:
    """Yields the tokens of conversations, one by one."""
    told, typecode = False, TYPECODES[layout.output.dtype]
    for record in (record for source in sources for record in read_records(source)):
        try:
            ids = chat.encode(_messages(record))
        except ArgumentError as error:
            raise record.error(str(error)) from None
        if not told and (fields := _left_out(record)):
            told = True
            names = ", ".join(repr(field[:40]) for field in fields[:5])
            warn(
                f"{record.file}: line {record.number}: the shards cannot represent {names}: left out here and in"
                " all other conversations"
            )
        yield Encoded([Segment(hash_split(record.line, splits), array(typecode, ids), 1, 0, True)], 1)


@contextmanager
def _emptied(folder: str) -> Iterator[None]:
    """Creates an empty folder, and removes it afterward."""
    remove_folder(folder)  # left by a killed run
    make_folder(folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(layout: Layout, hidden: str, force: bool) -> None:
    """Renames all files into place, and removes an earlier run's leftovers, which llm.c would read too. Raises
    ArgumentError if there are any, unless `force`. Files of a run that was killed meanwhile are equal, and so none."""
    folder, written = layout.folder, os.listdir(hidden)
    stem = glob.escape(os.path.join(folder, layout.name))
    older = {
        os.path.basename(path) for path in glob.glob(f"{stem}_*_{'[0-9]' * 6}.*") if path.endswith((".bin", ".mask"))
    }
    same = set(filecmp.cmpfiles(hidden, folder, written, shallow=False)[0])
    older |= {name for name in written if os.path.lexists(os.path.join(folder, name))}
    if not (force or older <= same):
        told = f"has other files than this call makes, such as {min(older - same)}: choose another folder or name"
        raise ArgumentError(f"{folder}: {told}, or replace them with {param(force=True)}")
    if same == set(written):
        note(f"{folder}: already complete")
    with file_errors(folder, "cannot be written"):
        for file in written:
            platform.replace_file(os.path.join(hidden, file), os.path.join(folder, file))
        platform.sync_folder(folder)
    for split in SPLIT_NAMES:
        for ending in ("bin", "mask"):
            remove_others(folder, f"{glob.escape(layout.name)}_{split}_{'[0-9]' * 6}.{ending}", written)


def _write_masks(chat: ChatFormat, paths: Iterable[str]) -> int:
    """Writes a mask next to every shard of a split. Returns the number of tokens that are trained on."""
    inside = False
    trained = 0
    for path in paths:
        shard = _binding.Shard(path)
        with _binding.Output(mask_path(path)) as output:
            output.write(header(MASK_MAGIC, MASK_VERSION, len(shard)))
            for start in range(0, len(shard), _READ_TOKENS):
                ids = shard.read(start, min(_READ_TOKENS, len(shard) - start))
                mask, inside = chat.loss_mask(ids, inside)
                output.write(mask)
                trained += int(mask.sum())
    return trained


# ----------------------------------------------------------------------------------------------------
# Masks


def mask_path(shard: str) -> str:
    """Returns the path of a shard's mask: .mask instead of .bin."""
    return os.path.splitext(shard)[0] + ".mask"


def read_mask(path: _binding.PathLike) -> numpy.ndarray[Any, Any]:
    """Reads a mask: uint8, shape (tokens,).

    Raises:
        FileError. FormatError: the file is not a mask, its size differs from what its header says, or it holds values
            other than 0 and 1.
    """
    name = os.fsdecode(path)
    raw = read_file(path)
    magic, version, count = header_numbers(raw, name, "a mask")[:3]
    if (magic, version) != (MASK_MAGIC, MASK_VERSION):
        raise FormatError(f"{name}: magic {magic}, version {version}; expected {MASK_MAGIC}, {MASK_VERSION}")
    if len(raw) != HEADER_BYTES + count:
        raise FormatError(f"{name}: {len(raw)} bytes, but {count} tokens need {HEADER_BYTES + count}", 8)
    mask = numpy.frombuffer(raw, dtype=numpy.uint8, offset=HEADER_BYTES)
    wrong = numpy.flatnonzero(mask > 1)
    if len(wrong):
        place = HEADER_BYTES + int(wrong[0])
        raise FormatError(f"{name}: value {raw[place]} at byte {place}; a mask holds only 0 and 1", place)
    return mask
