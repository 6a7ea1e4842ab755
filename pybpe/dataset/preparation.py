"""prepare: split first, train the tokenizer on the train split only, then encode all splits.

A tokenizer trained on everything has seen the validation text: its tokens fit that text a little too well,
and the validation loss comes out a little too low.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial

from .. import _binding
from .._version import __version__
from ..model import CONTROL_TOKENS, check_end_of_text, check_specials
from ..model import end_of_text as find_end_of_text
from ..pattern import Pattern
from ..reading.documents import Kinds, check_mark
from ..reading.paths import Inputs, path_list
from ..reading.pieces import Cutting
from ..reading.planning import Plan
from ..reading.splits import checked_splits
from ..reading.staging import stage
from ..support.locking import FOLDER, STAGED, only_writer
from ..support.output_files import make_folder
from ..tokenizer import Tokenizer
from ..trainer import train
from ..training.word_counter import CountSettings
from .binarization import check_settings, name_of, run
from .manifest import Manifest, check_name
from .shares import check_shares
from .train_words import TrainWords, count_train_split


def prepare(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = CONTROL_TOKENS,
    end_of_text: str | None = None,
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
    eot: str | None = None,
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    sequence_length: int = 1024,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> tuple[Tokenizer, Manifest]:
    """Turns text files into everything that llm.c needs except the model.

    Writes tokenizer.json, tokenizer.bin, the shards of all splits and manifest.json into `out`. Called again with the
    same arguments, a run that was killed while encoding resumes; one that was killed while training starts over.

    Args:
        inputs: a path or a list of paths.
        special_tokens: the special tokens; by default the nine control tokens of the llm.c profile, ids 0-8.
        end_of_text: which of them ends a document, such as "</s>"; None means <|endoftext|> or <|end_of_text|>. It
            separates documents in text files and in the token files. If there is none, pass eot="none".
        executor: runs the counting and encoding; the files are the same.
        The other arguments are those of `train` and `binarize`.

    Returns:
        The tokenizer and the manifest.

    Raises:
        What `train` and `binarize` raise.
    """
    given = path_list(inputs)
    splits = checked_splits(splits)
    check_name(name or "")
    specials = {text: i for i, text in enumerate(check_specials(special_tokens))}
    check_end_of_text(specials, end_of_text)
    mark = find_end_of_text(specials, end_of_text)
    settings_for = partial(
        check_settings,
        mark=mark,
        format=format,
        splits=splits,
        split_by=split_by,
        eot=eot,
        dtype="auto",
        shard_tokens=shard_tokens,
        min_shard_tokens=min_shard_tokens,
        sequence_length=sequence_length,
        documents=documents,
        text_key=text_key,
        encoding=encoding,
    )
    merge = partial(
        train,
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        end_of_text=end_of_text,
        min_frequency=min_frequency,
        tie_break=tie_break,
        special_ids=special_ids,
        max_token_length=max_token_length,
    )
    merge(counts={})  # refuses now what it would otherwise refuse after counting
    settings_for(vocab_size)  # and what it would otherwise refuse after training
    kinds = Kinds(documents, text_key, mark)
    cut = Pattern(pattern, digits)
    counting = CountSettings(cut, tuple(specials), normalizer)
    folder = _binding.path_text(out)
    with only_writer(folder):
        staged = stage(given, folder, encoding, [folder], documents)
        check_mark(kinds, specials, staged.files)
        cutting = Cutting.of(cut, specials, normalizer)
        plan = Plan(staged.files, kinds, splits, split_by, cutting)
        check_shares(plan, kinds, splits, settings_for(vocab_size)["min_shard_tokens"])
        words = TrainWords(kinds, tuple(splits), counting)
        count = partial(count_train_split, plan, words, workers, executor, progress)
        identity = (__version__, merge.keywords, cut.regex, words, split_by, staged.identities)
        tok = _trained(folder, identity, lambda: merge(counts=count(), progress=progress))
        name = name or name_of(given, staged)
        settings = settings_for(tok.n_vocab)
        save = partial(_save, tok, folder)
        return tok, run(tok, settings, staged, folder, name, workers, executor, True, progress, beside=save)


def _save(tok: Tokenizer, folder: str) -> None:
    """Writes the tokenizer's files with the first shard: until then, those of an earlier run match the shards there."""
    tok.save(os.path.join(folder, "tokenizer.json"))
    tok.save_bin(os.path.join(folder, "tokenizer.bin"))


def _trained(folder: str, identity: object, train_now: Callable[[], Tokenizer]) -> Tokenizer:
    """Returns this run's tokenizer, or the one that a run trained before it was killed. It is stored with the staged
    inputs (see staging.py), where the journal keeps it until the run ends. `identity` is everything that it depends
    on."""
    digest = hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass")).hexdigest()
    path = os.path.join(folder, FOLDER, f"{STAGED}{digest}.json")
    if os.path.exists(path):
        return Tokenizer.from_file(path)
    tok = train_now()
    make_folder(os.path.dirname(path))
    tok.save(path)
    return tok
