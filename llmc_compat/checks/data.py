"""Checks each tokenizer, shard, loss mask and eval file by itself.

llm.c reads tokenizers in tokenizer_init (llmc/tokenizer.h), shards in dataloader_load_shard_ and, with -h 1 on CUDA, an
eval file in EvalLoader (llmc/dataloader.h).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from llmc_compat import chat
from llmc_compat.evals import COMPLETIONS, EvalFacts
from llmc_compat.shards import Batch
from pybpe import Tokenizer, _binding
from pybpe.arguments import counted
from pybpe.errors import Error
from pybpe.model import END_OF_TEXT

from .contents import EVAL_AGAIN, GPT2_TOKENS, SHARD_AGAIN, TOKENIZER_AGAIN, Seen, ShardFacts, TokenizerFacts
from .files import WARNING, Finding, Run, split_of


def data_faults(seen: Seen) -> Iterator[Finding]:
    """Yields what is wrong with each of these files."""
    for path, tokenizer in seen.tokenizers.items():
        yield from _tokenizer_faults(path, tokenizer)
    for path, shard in seen.shards.items():
        yield from _shard_faults(path, shard, seen.run)
    for path, examples in seen.evals.items():
        longest = max([0, *(model.sizes.max_seq_len for model in seen.models.values())])  # the largest T they allow
        yield from _eval_faults(path, examples, seen.run.given or Batch(COMPLETIONS, longest or examples.min_T))


def _tokenizer_faults(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    yield from _end_faults(path, facts)
    first: dict[bytes, int] = {}
    twice = next((i for i, token in enumerate(facts.tokens) if first.setdefault(token, i) != i), None)
    if twice is not None:  # one of them is probably in another's place
        fault = f"tokens {first[facts.tokens[twice]]} and {twice} are the same"
        yield Finding(
            path, fault, "prints the same text for both", f"if that is not intended, {TOKENIZER_AGAIN}", WARNING
        )
    if facts.rest and not facts.is_complete:
        fault = f"{facts.rest} bytes follow the {facts.vocab_size} tokens"
        effect = "ignores them; tokens are missing if the header's count is too small"
        yield Finding(path, fault, effect, TOKENIZER_AGAIN, WARNING)
    if facts.is_complete:  # pybpe writes a checksum after the merges and the pattern
        try:
            Tokenizer.from_file(path)
        except Error as error:
            fault, effect = str(error).removeprefix(f"{path}: "), "still reads its tokens, and prints samples with them"
            yield Finding(path, fault, effect, "save it again with pybpe")


def _end_faults(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    """Checks the end-of-text token, from which samples start."""
    expected = END_OF_TEXT.encode()  # pybpe's own files may use another name; they have a checksum
    if facts.version == 1 and facts.vocab_size != GPT2_TOKENS:
        fault = f"version 1 with {facts.vocab_size} tokens"
        yield Finding(path, fault, f"aborts, because it assumes {GPT2_TOKENS}", "save it as version 2")
    elif not 0 <= facts.eot < facts.vocab_size:
        fault = f"the end-of-text id is {facts.eot}, but there are only {facts.vocab_size} tokens"
        effect = "aborts when it starts a sample from it, unless the model has this id"
        yield Finding(path, fault, effect, f"train the tokenizer with the special token {END_OF_TEXT}")
    elif not facts.is_complete and expected in facts.tokens and facts.tokens[facts.eot] != expected:
        found = facts.tokens[facts.eot].decode("utf-8", "replace")
        fault = f"the end-of-text id is {facts.eot}, which is {found!r}, not {END_OF_TEXT}"
        yield Finding(path, fault, "starts its samples from that token", TOKENIZER_AGAIN, WARNING)


def _shard_faults(path: str, facts: ShardFacts, run: Run) -> Iterator[Finding]:
    if facts.id_bytes != 2:
        effect = "aborts with 'Bad magic' (only its train_llama3.py reads uint32)"
        yield Finding(path, "uint32 tokens", effect, "use a vocabulary of at most 65536 tokens, and dtype uint16")
    if (size := os.path.getsize(path)) > _binding.SHARD_MAX_BYTES:
        effect = "aborts at the first batch beyond 2 GiB, because it seeks with a 32-bit int"
        yield Finding(path, f"{size} bytes", effect, "write smaller shards: --shard-tokens")
    is_read = split_of(path) != "test" or not facts.tokens  # llm.c never opens a test split by itself
    if facts.tokens < run.batch.min_tokens and is_read:
        fault = f"{counted(facts.tokens, 'token')}, but {run.batch.needs()} are needed"
        yield Finding(path, fault, "aborts", run.batch.largest_fit(facts.tokens))
    if facts.tokens > 1 and facts.lowest == facts.highest:
        fault = f"all {facts.tokens} tokens are the id {facts.lowest}"
        yield Finding(path, fault, "trains on this id alone, which is nonsense", SHARD_AGAIN)


def _eval_faults(path: str, facts: EvalFacts, batch: Batch) -> Iterator[Finding]:
    yield from _size_faults(path, facts)
    if batch.B < COMPLETIONS:
        fault = f"B is {batch.B}, but an example takes {COMPLETIONS} rows"
        yield Finding(path, fault, "aborts with -h 1", f"use -b {COMPLETIONS} or more, or -h 0")
    if batch.T < facts.min_T:
        fault = f"its longest example needs T {facts.min_T}, but T is {batch.T}"
        yield Finding(
            path, fault, "aborts with -h 1", f"use -t {facts.min_T} or more, leave long examples out, or -h 0"
        )
    each = -(-facts.examples // batch.processes)
    if facts.examples < batch.processes or each * (batch.processes - 1) > facts.examples:
        fault = f"{facts.examples} examples, {each} per process, leave none for the last of {batch.processes} processes"
        effect = "reads past the end and aborts with -h 1"
        yield Finding(path, fault, effect, "use fewer processes, a different number of examples, or -h 0")


def _size_faults(path: str, facts: EvalFacts) -> Iterator[Finding]:
    """Yields wrong sizes. llm.c allocates a buffer of the size in the header, and reads each example into the buffer,
    except the first 6 bytes."""
    longest = facts.longest_bytes
    stated = facts.stated_bytes or longest
    fault = f"the longest example has {longest} bytes, but the header says {stated}"
    if stated < longest - 6:
        yield Finding(path, fault, "overflows its buffer with -h 1", EVAL_AGAIN)
    elif stated != longest:
        yield Finding(path, fault, f"aborts with -h 1 if T is below {facts.min_T}", EVAL_AGAIN, WARNING)
    if facts.rest_bytes:
        fault = f"{facts.rest_bytes} bytes follow the {facts.examples} examples that its header counts"
        yield Finding(path, fault, "never reads them", EVAL_AGAIN, WARNING)


def mask_faults(seen: Seen) -> Iterator[Finding]:
    """Yields loss masks that cannot be read, or that do not match the shard next to them."""
    by_mask = {os.path.realpath(chat.mask_path(path)): facts for path, facts in seen.shards.items()}
    effect, remedy = "does not read this file, but programs that read it fail", "write both again with pybpe llmc chat"
    for path in seen.found.files.masks:
        try:
            count = len(chat.read_mask(path))
        except Error as error:
            yield Finding(path, str(error).removeprefix(f"{path}: "), effect, remedy)
            continue
        shard = by_mask.get(os.path.realpath(path))
        if shard is not None and shard.tokens != count:
            fault = f"has {count} values, but its shard has {counted(shard.tokens, 'token')}"
            yield Finding(path, fault, effect, remedy)
