"""Training: texts -> word counts -> merges -> a Tokenizer."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from . import _binding
from .arguments import instance, one_of, whole_number
from .checkpointing import Checkpoint, only_trainer
from .counting import CountSettings
from .counts import Counts, count_inputs
from .errors import ArgumentError, file_errors
from .inputs import Sample, input_files
from .model import MOST_IDS, SPECIAL_IDS, BaseNumbering, Model, check_end_of_text, lay_out, special_ids_of
from .parallel import run_interruptibly
from .pattern import Pattern
from .pretokenize import STDIN, Inputs, Text, is_path_list
from .progress import Progress
from .tokenizer import Tokenizer

_STEP_BUDGET = 1 << 20  # occurrences: some milliseconds


def train(
    inputs: Inputs | None = None,
    *,
    vocab_size: int,
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    pattern: str | None = None,
    min_frequency: int = 0,
    tie_break: str = "lexicographic",
    special_ids: str = "first",
    max_token_length: int = 255,
    normalizer: str | None = None,
    digits: int | None = None,
    end_of_text: str | None = None,
    base: Tokenizer | None = None,
    counts: Counts | Mapping[Text, int] | None = None,
    text_key: str = "text",
    encoding: str | None = None,
    max_documents: int | None = None,
    max_bytes: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    memory_limit: int | None = None,
    checkpoint: _binding.PathLike | None = None,
    progress: bool | None = None,
) -> Tokenizer:
    """Trains a byte-level BPE tokenizer.

    Args:
        inputs: a path, a list or tuple of paths, or any other iterable of texts (str or bytes) or
            of lists of texts. A path may be a glob, a folder, which stands for all files in it, or "-", which is
            standard input. Each file or text is one of its own: no word spans two. What is compressed (gzip, bzip2,
            xz, zstd) is decompressed; of *.jsonl and *.ndjson each record is a text of its own, in which no special
            token is recognised.
        vocab_size: tokens in all: 256 bytes, specials and merges. Training stops earlier when no pair is
            left that occurs `min_frequency` times.
        special_tokens: strings with ids of their own, never split, never learned from. `special_ids` decides the
            ids; of a mapping text -> id, such as another tokenizer's, other ids than these are refused.
        pattern: how text is cut into words: "gpt2" (the default), "cl100k", "o200k", "llama3", "qwen2", or
            a regular expression of the `regex` package. No merge crosses a word's end.
        min_frequency: the least count at which a pair is merged.
        tie_break: of equally frequent pairs, "lexicographic" takes the one whose (left bytes, right bytes)
            is the greatest; "huggingface" takes what Hugging Face's BpeTrainer takes.
        special_ids: "first" (specials 0..k-1, bytes, merges), "after_bytes" (bytes 0..255, specials,
            merges) or "last" (bytes, merges, specials).
        max_token_length: in bytes; 255 is the most that tokenizer.bin holds.
        normalizer: None, "NFC" or "NFKC"; kept in the tokenizer and applied when encoding too.
        digits: 1 makes every digit a word of its own.
        end_of_text: which special token ends a document: the tokenizer's `eot_token`. None means that of the base, else
            <|endoftext|> or <|end_of_text|>, if it is a special token.
        base: a tokenizer to continue: its ids, merges, specials, pattern and normalizer are kept. New
            specials, then new tokens, get the ids behind its own; vocab_size counts all.
        counts: ready word counts instead of inputs: of `pybpe.count_words`, or a dictionary word -> count.
        text_key: where the text of a JSON record is.
        encoding: of the files, such as "gb18030", "utf-16" or "cp1252"; None is UTF-8.
        max_documents, max_bytes: use only a sample of this size. Documents are JSON records, ranges of
            1 MiB of plain text, smaller or compressed plain files, and the texts of an iterable. Files
            are taken in ranges of 1 MiB in an order that `seed` decides, an iterable in its own order. What
            exceeds max_bytes (of file content) is left out from the next safe cut, or record, on.
        seed: what decides which part a sample takes.
        workers: threads for counting; None for all CPUs. The result is the same for any number.
        executor: counts files instead of threads: see `pybpe.count_words`.
        memory_limit: bytes, about, for counting. What exceeds it is sorted into temporary files: slower,
            but with the same result. The distinct words themselves must fit into memory in the end.
        checkpoint: a file that is kept while merges are made. After a kill the same call continues from it
            to the identical result; counting, if that was not done, begins anew. Gone after success.
        progress: True shows bars, False none, None only if standard error is a terminal.

    Returns:
        The trained Tokenizer. The same input and settings give the same one, always.

    Raises:
        ArgumentError (a ValueError): an argument out of range, such as a vocab_size below 256 + specials.
        FileError (an OSError): an input cannot be read.
        FormatError (a ValueError): a compressed file, a JSON record or a checkpoint is damaged.
        MissingExtraError (an ImportError): a .zst file, without the package that reads it.
        WorkerError (a RuntimeError): a process of the executor died.
    """
    merging = _Merging(vocab_size, special_ids, min_frequency, tie_break, max_token_length)
    if (inputs is None) == (counts is None):
        raise ArgumentError("pass either inputs or counts")
    if base is not None:
        instance("base", base, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    sample = Sample(max_documents, max_bytes, seed).checked()
    if counts is not None and not sample.is_all:
        raise ArgumentError("max_documents and max_bytes go with inputs: of ready counts there is no sample")
    ready = counts if isinstance(counts, Counts) else None
    parent = base if base is not None else ready
    plan = _plan(merging, parent, special_tokens, pattern, digits, normalizer, text_key)
    plan = replace(plan, count=replace(plan.count, encoding=encoding))
    check_end_of_text(plan.count.specials, end_of_text)
    if ready is not None:
        _check_counts(ready, plan.count)
    elif counts is not None:
        ready = Counts(Counts.from_dict(counts).words, plan.count)  # type: ignore[arg-type]
    with ExitStack() as held:
        saved = None
        if checkpoint is not None:
            held.enter_context(only_trainer(checkpoint))
            saved = Checkpoint(checkpoint, plan.fingerprint() | _input_fingerprint(inputs, ready, sample))
        if saved is not None and saved.words is not None:
            words = saved.words
        elif ready is not None:
            words = ready.words
        else:
            assert inputs is not None
            words = count_inputs(inputs, plan.count, sample, workers, executor, memory_limit, progress).words
        tok = plan.tokenizer(_merge(plan.without_whole_words(words), plan, saved, progress))
    if end_of_text in (None, tok.model.eot):
        return tok
    return Tokenizer.from_model(replace(tok.model, eos=end_of_text))


def train_bpe(
    input_path: _binding.PathLike, vocab_size: int, special_tokens: Sequence[str], **kw: object
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Trains on one file, with the signature and the ids of Stanford CS336's first assignment.

    Args:
        input_path: a text file.
        vocab_size: tokens in all.
        special_tokens: strings that are never split.
        **kw: further arguments of `train`.

    Returns:
        vocab: id -> bytes; the bytes 0-255, then the specials, then the merged tokens in order.
        merges: (left bytes, right bytes) in order. Of equally frequent pairs the greatest is merged.
    """
    path = _binding.path_text(input_path)  # in a list bytes would be a text
    kw.setdefault("special_ids", "after_bytes")
    kw.setdefault("progress", False)
    tokenizer = train([path], vocab_size=vocab_size, special_tokens=special_tokens, **kw)  # type: ignore[arg-type]
    return tokenizer.vocab, tokenizer.merges


@dataclass(frozen=True)
class _Merging:
    """The arguments of the merge loop, checked."""

    vocab_size: int
    special_ids: str
    min_frequency: int
    tie_break: str
    max_token_length: int

    def __post_init__(self) -> None:
        for name, least, most in (
            ("vocab_size", None, MOST_IDS),  # the least depends on the special tokens: see _Plan
            ("min_frequency", 0, (1 << 64) - 1),
            ("max_token_length", 1, (1 << 32) - 1),
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))
        one_of("tie_break", self.tie_break, _binding.TIE_BREAKS)
        one_of("special_ids", self.special_ids, SPECIAL_IDS)


@dataclass(frozen=True)
class _Plan:
    """Everything that the result depends on but the text.

    Attributes:
        merging: the arguments of the merge loop.
        count: how words are counted; its specials are those of the base and the new ones.
        new_specials: the specials that the base lacks.
        base: the tokenizer that is continued.
        wanted_ids: those of the specials that the caller gave with their ids.
    """

    merging: _Merging
    count: CountSettings
    new_specials: Sequence[str]
    base: Tokenizer | None
    wanted_ids: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.base is None:
            least = 256 + len(self.new_specials)
            parts = f"256 bytes + {len(self.new_specials)} special tokens"
        else:
            least = self.base.n_vocab + len(self.new_specials)
            parts = f"{self.base.n_vocab} tokens of the base + {len(self.new_specials)} new special tokens"
        if self.merging.vocab_size < least:
            raise ArgumentError(f"vocab_size {self.merging.vocab_size} is too small: the least is {least} ({parts})")
        self._check_ids(self._planned_ids())
        self.numbering  # noqa: B018  a base that cannot be continued is refused now, not after counting

    def _planned_ids(self) -> dict[str, int]:
        """The ids of the specials, if training makes as many tokens as it may."""
        starts = {"first": 0, "after_bytes": 256, "last": self.merging.vocab_size - len(self.new_specials)}
        start = starts[self.merging.special_ids] if self.base is None else self.base.n_vocab
        ids = {} if self.base is None else self.base.special_tokens
        return ids | {text: start + i for i, text in enumerate(self.new_specials)}

    def _check_ids(self, ids: Mapping[str, int]) -> None:
        """ArgumentError unless the specials have the ids that the caller wants."""
        for text, wanted in self.wanted_ids.items():
            if ids[text] != wanted:
                raise ArgumentError(
                    f"special_tokens gives {text!r:.80} the id {wanted}, but training gives it {ids[text]}: pass a list"
                    " of the strings, and choose special_ids"
                )

    @cached_property
    def numbering(self) -> BaseNumbering | None:
        """The base as a trainer sees it."""
        return None if self.base is None else BaseNumbering(self.base.model)

    @property
    def base_merges(self) -> list[tuple[int, int]]:
        return [] if self.numbering is None else self.numbering.merges

    @property
    def merged_size(self) -> int:
        """The trainer's vocab_size: bytes and merged tokens."""
        size = self.merging.vocab_size - len(self.new_specials)
        if self.base is None or self.numbering is None:
            return size
        return 256 + self.numbering.made + size - self.base.n_vocab

    def without_whole_words(self, words: _binding.Words) -> _binding.Words:
        """The words that the base does not take as they are: nothing is to be learned from those that it does."""
        if self.base is None or not self.base.model.whole_words:
            return words
        whole = {self.base.model.tokens[i] for i in self.base.model.unreached()}
        return _binding.Words.from_dict({word: n for word, n in words.to_dict().items() if word not in whole})

    def fingerprint(self) -> dict[str, object]:
        """The plan as JSON holds it."""
        return {
            **vars(self.merging),
            "pattern": self.count.pattern.regex,
            "special_tokens": list(self.count.specials),
            "normalizer": self.count.normalizer,
            "text_key": self.count.text_key,
            "encoding": self.count.encoding,
            "base": None if self.base is None else self.base.model.fingerprint(),
        }

    def tokenizer(self, merged: Sequence[tuple[int, int, int]]) -> Tokenizer:
        """The tokenizer of what the trainer made."""
        if self.numbering is None:
            parts = lay_out(merged, self.new_specials, self.merging.special_ids, self.merging.tie_break)
        else:
            parts = self.numbering.extend(merged, self.new_specials)
        self._check_ids(parts[2])  # with special_ids="last" they depend on how many tokens there are
        training = {name: getattr(self.merging, name) for name in ("tie_break", "min_frequency", "max_token_length")}
        if self.base is None:
            return Tokenizer.from_model(Model(*parts, self.count.pattern, self.count.normalizer, training))
        tokens, merges, specials = parts
        model = replace(self.base.model, tokens=tokens, merges=merges, specials=specials, training=training)
        return Tokenizer.from_model(model)


def _plan(
    merging: _Merging,
    parent: Tokenizer | Counts | None,
    special_tokens: Sequence[str] | Mapping[str, int],
    pattern: str | None,
    digits: int | None,
    normalizer: str | None,
    text_key: str,
) -> _Plan:
    """The plan of a training. What the parent, a base or counts, decides must not be asked for otherwise."""
    given_ids = special_ids_of(special_tokens)
    wanted = {text: i for text, i in given_ids.items() if i is not None}
    specials = sorted(wanted, key=wanted.__getitem__) if wanted else list(given_ids)
    if parent is None:
        cut = Pattern("gpt2" if pattern is None else pattern, digits)
        return _Plan(merging, CountSettings(cut, tuple(specials), normalizer, text_key), specials, None, wanted)
    base = parent if isinstance(parent, Tokenizer) else None
    given = parent if isinstance(parent, Tokenizer) else parent.settings
    if pattern is not None or digits is not None:
        if Pattern(given.pattern.name or "gpt2" if pattern is None else pattern, digits) != given.pattern:
            raise ArgumentError(f"pattern: it is that of the base or the counts, {given.pattern!r}; leave it out")
    if normalizer not in (None, given.normalizer):
        raise ArgumentError(f"normalizer: it is that of the base or the counts, {given.normalizer!r}; leave it out")
    if base is None:
        settings = CountSettings(given.pattern, tuple(specials), given.normalizer, text_key)
        return _Plan(merging, settings, specials, None, wanted)
    if merging.special_ids != "first":
        raise ArgumentError("special_ids does not go with base: all ids of the base stay, new specials come behind")
    new = [text for text in specials if text not in base.special_tokens]
    settings = CountSettings(base.pattern, (*base.special_tokens, *new), base.normalizer, text_key)
    return _Plan(merging, settings, new, base, wanted)


def _check_counts(counts: Counts, wanted: CountSettings) -> None:
    """ArgumentError unless the counts are what this training would have counted."""
    unknown = sorted(set(wanted.specials) - set(counts.settings.specials))
    if unknown:
        raise ArgumentError(f"the words were counted without regard to the special tokens {unknown}: count with them")
    if (counts.settings.pattern, counts.settings.normalizer) != (wanted.pattern, wanted.normalizer):
        raise ArgumentError("the counts were made with another pattern or normalizer than the base has")


def _input_fingerprint(inputs: Inputs | None, counts: Counts | None, sample: Sample) -> dict[str, object]:
    """What tells one input from another: of files their names, sizes and times."""
    if counts is not None:
        return {"counts": counts.fingerprint()}
    if inputs is None or not is_path_list(inputs):
        raise ArgumentError("checkpoint: texts of an iterable cannot be recognised later; pass paths or counts")
    files = []
    for path in input_files(inputs):
        if path == STDIN:
            raise ArgumentError("checkpoint: standard input cannot be recognised later; use a file")
        with file_errors(path, "cannot be opened"):
            status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise ArgumentError(f"checkpoint: {path} is a pipe or device, which cannot be recognised later; use a file")
        files.append([os.path.abspath(path), status.st_size, status.st_mtime_ns])
    return {"inputs": files, "sample": list(sample)}


def _merge(
    words: _binding.Words, plan: _Plan, saved: Checkpoint | None, progress: bool | None
) -> list[tuple[int, int, int]]:
    """All merges, those of the base and of a checkpoint included."""
    skip = len(plan.base_merges)
    if saved is not None:
        run_interruptibly(saved.start, words)
    merges_so_far = plan.base_merges + (saved.merges if saved is not None else [])
    trainer = run_interruptibly(
        partial(
            _binding.Trainer,
            words,
            vocab_size=plan.merged_size,
            max_token_length=plan.merging.max_token_length,
            min_frequency=plan.merging.min_frequency,
            tie_break=plan.merging.tie_break,
            base_merges=merges_so_far,
        )
    )
    with Progress("merging", plan.merged_size - 256, "merge", progress) as bar:
        while not run_interruptibly(trainer.step, _STEP_BUDGET):
            bar.set(trainer.tokens - 256)
            if saved is not None:
                saved.update(trainer, skip)
    if saved is not None:
        saved.remove()
    return trainer.merges()
