"""prepare: split first, train the tokenizer on the train split only, then encode all splits.

A tokenizer trained on everything has seen the validation text: its tokens fit that text a little too well,
and the validation loss comes out a little too low.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from .. import _binding
from ..counting import CountSettings, WordCounter
from ..counts import Counts
from ..folders import make_folder
from ..model import CONTROL_TOKENS, END_OF_TEXT, check_specials
from ..pattern import Pattern
from ..pretokenize import Inputs, path_list
from ..tokenizer import Tokenizer
from ..trainer import train
from .binarization import check_settings, name_of, run
from .encoding import divide
from .kinds import RECORDS, Kinds
from .manifest import Manifest, check_name
from .planning import Cutting, Plan
from .reading import blocks
from .staging import stage


def prepare(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = CONTROL_TOKENS,
    splits: Sequence[float] = (8, 1, 1),
    split_by: str = "hash",
    name: str | None = None,
    pattern: str = "gpt2",
    digits: int | None = None,
    normalizer: str | None = None,
    min_frequency: int = 2,
    tie_break: str = "lexicographic",
    special_ids: str = "first",
    max_token_length: int = 255,
    min_shard_tokens: int | None = None,
    shard_tokens: int = 10**8,
    format: str = "llmc",
    documents: str = "auto",
    text_key: str = "text",
    sequence_length: int = 1024,
    workers: int | None = None,
    progress: bool | None = None,
) -> tuple[Tokenizer, Manifest]:
    """From text files to everything that llm.c needs but the model.

    Writes tokenizer.json, tokenizer.bin, the shards of all splits and manifest.json into `out`.

    Args:
        inputs: a path or a list of paths.
        special_tokens: default: the nine control tokens of llm.c's profile, ids 0-8.
        The other arguments are those of `train` and `binarize`.

    Returns:
        The tokenizer and the manifest.

    Raises:
        What `train` and `binarize` raise.
    """
    given = path_list(inputs)
    check_name(name or "")
    specials = {text: i for i, text in enumerate(check_specials(special_tokens))}
    has_mark = END_OF_TEXT in specials
    settings_for = partial(
        check_settings,
        has_mark=has_mark,
        format=format,
        splits=splits,
        split_by=split_by,
        eot=None if has_mark else "none",
        dtype="auto",
        shard_tokens=shard_tokens,
        min_shard_tokens=min_shard_tokens,
        sequence_length=sequence_length,
        documents=documents,
        text_key=text_key,
    )
    merge = partial(
        train,
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        min_frequency=min_frequency,
        tie_break=tie_break,
        special_ids=special_ids,
        max_token_length=max_token_length,
        progress=progress,
    )
    settings_for(vocab_size)  # refuses now what it would refuse after the training
    merge(counts={})  # and what it would refuse after the counting
    kinds = Kinds(documents, text_key, has_mark)
    cut = Pattern(pattern, digits)
    counting = CountSettings(cut, tuple(specials), normalizer)
    folder = make_folder(out)
    staged = stage(given, folder)
    cutting = Cutting.of(cut, _binding.Specials(specials) if specials else None, specials)
    plan = Plan(staged.paths, kinds, splits, split_by, cutting)
    tok = merge(counts=_count(plan, kinds, splits, cutting, counting, workers, progress))
    tok.save(os.path.join(folder, "tokenizer.json"))
    tok.save_bin(os.path.join(folder, "tokenizer.bin"))
    name = name or name_of(given, staged)
    settings = settings_for(tok.n_vocab)
    return tok, run(tok, settings, staged, folder, name, workers, None, True, progress)


def _count(
    plan: Plan,
    kinds: Kinds,
    splits: Sequence[float],
    cutting: Cutting,
    settings: CountSettings,
    workers: int | None,
    progress: bool | None,
) -> Counts:
    """The words of the train split. The texts of records are counted for themselves, since special tokens in them are
    plain text, in training as in encoding."""
    counter = WordCounter(settings, workers)
    try:
        are_records = {kinds.kind(path) in RECORDS for path in plan.paths}
        if False in are_records:
            counter.add_texts(chain.from_iterable(_texts(plan, kinds, splits, cutting, records=False)), progress)
        if True in are_records:
            counter.add_records(_texts(plan, kinds, splits, cutting, records=True), progress)
        return Counts(counter.finish(), settings)
    finally:
        counter.close()


def _texts(
    plan: Plan, kinds: Kinds, splits: Sequence[float], cutting: Cutting, records: bool
) -> Iterator[Sequence[bytes]]:
    """The texts of the train split, some at a time: those of records, or all others, joined by <|endoftext|>."""
    for task in plan.tasks():
        parts = [part for part in task if (kinds.kind(part.path) in RECORDS) == records]
        for block in blocks(parts, kinds, cutting.cut):
            if block.split not in (None, 0):
                continue
            if not block.divided:
                yield [bytes(block.data)]  # type: ignore[arg-type]
                continue
            for split, documents in divide(block, kinds, splits):
                if split == 0:
                    yield [END_OF_TEXT.encode().join(documents)] if kinds.has_mark and not records else documents
