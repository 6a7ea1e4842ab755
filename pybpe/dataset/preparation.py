"""prepare: split first, train the tokenizer on the train split only, then encode all splits.

A tokenizer trained on everything has seen the validation text: its tokens fit that text a little too well,
and the validation loss comes out a little too low.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .. import _binding
from ..model import CONTROL_TOKENS, END_OF_TEXT
from ..pattern import Pattern
from ..pretokenize import Inputs, cutter, path_list
from ..tokenizer import Tokenizer
from ..trainer import train
from .binarization import binarize
from .manifest import Manifest
from .shards import make_folder
from .splits import check_splits, corpus_units


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
    paths = path_list(inputs)
    check_splits(splits)
    specials = {text: i for i, text in enumerate(special_tokens)}
    cut = cutter(Pattern(pattern, digits), _binding.Specials(specials) if specials else None)
    eot = END_OF_TEXT.encode() if END_OF_TEXT in specials else None
    units = corpus_units(paths, cut, splits, split_by, eot)
    tok = train(
        (bytes(unit.data) for unit in units if unit.split == 0),
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        pattern=pattern,
        digits=digits,
        normalizer=normalizer,
        min_frequency=min_frequency,
        tie_break=tie_break,
        special_ids=special_ids,
        max_token_length=max_token_length,
        workers=workers,
        progress=progress,
    )
    folder = make_folder(out)
    tok.save(os.path.join(folder, "tokenizer.json"))
    tok.save_bin(os.path.join(folder, "tokenizer.bin"))
    manifest = binarize(
        tok,
        paths,
        folder,
        splits=splits,
        split_by=split_by,
        eot=None if eot else "none",
        name=name,
        min_shard_tokens=min_shard_tokens,
        shard_tokens=shard_tokens,
        workers=workers,
        progress=progress,
    )
    return tok, manifest
