"""Training: from texts to word counts to merges to a Tokenizer."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from .. import _binding
from ..arguments import Text, instance, one_of, whole_number
from ..errors import ArgumentError, file_errors
from ..model import MOST_IDS, SPECIAL_IDS, BaseNumbering, Model, check_end_of_text, lay_out, special_ids_of
from ..pattern import Pattern
from ..reading.files import input_files
from ..reading.paths import STDIN, Inputs, is_path_list
from ..reading.sample import Sample
from ..support.parallel import run_interruptibly
from ..support.progress import Progress
from ..tokenizer import Tokenizer
from .checkpoint import Checkpoint, only_trainer
from .counts import Counts, count_inputs
from .word_counter import CountSettings

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
        inputs: a path, a list or tuple of paths, or any other iterable of texts (str or bytes) or of lists of texts.
            A path may be a glob, a folder (all files in it), or "-" (standard input). Each file or text is separate:
            no word spans two. Compressed files (gzip, bzip2, xz, zstd) are decompressed. In *.jsonl and *.ndjson each
            record is a separate text, in which no special token is recognized.
        vocab_size: the total number of tokens: 256 bytes, special tokens and merges. Training stops earlier if no
            remaining pair occurs `min_frequency` times.
        special_tokens: strings with their own ids, never split and never learned from. `special_ids` decides the ids.
            A mapping text -> id, such as another tokenizer's, raises an error if training would give other ids.
        pattern: how text is split into words: "gpt2" (the default), "cl100k", "o200k", "llama3", "qwen2", or a regular
            expression for the `regex` package. No merge crosses the end of a word.
        min_frequency: the lowest count at which a pair is merged.
        tie_break: which of several equally frequent pairs is merged: "lexicographic" takes the one whose (left bytes,
            right bytes) is greatest; "huggingface" takes the one that Hugging Face's BpeTrainer takes.
        special_ids: "first" (special tokens 0..k-1, bytes, merges), "after_bytes" (bytes 0..255, special tokens,
            merges) or "last" (bytes, merges, special tokens).
        max_token_length: in bytes; tokenizer.bin holds at most 255.
        normalizer: None, "NFC" or "NFKC". It is stored in the tokenizer and also applied when encoding.
        digits: 1 makes every digit a separate word.
        end_of_text: the special token that ends a document: the tokenizer's `eot_token`. None means that of the base,
            otherwise <|endoftext|> or <|end_of_text|>, if it is a special token.
        base: a tokenizer to extend. Its ids, merges, special tokens, pattern and normalizer are kept. New special
            tokens, then new tokens, get the ids after its own; vocab_size counts all of them.
        counts: word counts to use instead of inputs, from `pybpe.count_words`, or a dictionary word -> count.
        text_key: the key of the text in a JSON record.
        encoding: encoding of the files, such as "gb18030", "utf-16" or "cp1252"; None is UTF-8.
        max_documents, max_bytes: use only a sample of this size. Documents are JSON records, ranges of 1 MiB of plain
            text, smaller or compressed plain files, and the texts of an iterable. Files are taken in ranges of 1 MiB,
            in an order that `seed` decides; an iterable is taken in its own order. What exceeds max_bytes (of file
            content) is dropped, starting at the next safe cut or record.
        seed: random seed for sampling.
        workers: number of threads for counting; None for all CPUs. The result is the same for any number.
        executor: counts files instead of threads: see `pybpe.count_words`.
        memory_limit: approximate number of bytes for counting. Counts that exceed it are sorted into temporary files,
            which is slower, but gives the same result. The distinct words must fit in memory at the end.
        checkpoint: a file in which to save progress while merging. After a kill, the same call resumes from it and
            gives an identical result. (Counting, if it was not finished, starts over.) Removed after success.
        progress: True shows progress bars, False does not, None shows them if standard error is a terminal.

    Returns:
        The trained Tokenizer. The same input and settings always give the same one.

    Raises:
        ArgumentError (a ValueError): an argument is invalid, such as a vocab_size below 256 + special tokens.
        FileError (an OSError): an input cannot be read.
        FormatError (a ValueError): a compressed file, a JSON record or a checkpoint is damaged.
        MissingExtraError (an ImportError): the package that reads .zst files is not installed.
        WorkerError (a RuntimeError): a process of the executor died.
    """
    merging = _Merging(vocab_size, special_ids, min_frequency, tie_break, max_token_length)
    if (inputs is None) == (counts is None):
        raise ArgumentError("pass either inputs or counts")
    if base is not None:
        instance("base", base, Tokenizer, "a Tokenizer, such as Tokenizer.from_file returns")
    sample = Sample(max_documents, max_bytes, seed).checked()
    if counts is not None and not sample.is_all:
        raise ArgumentError("max_documents and max_bytes need inputs: they cannot sample counts")
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
        vocab_size: the total number of tokens.
        special_tokens: strings that are never split.
        **kw: further arguments of `train`.

    Returns:
        vocab: id -> bytes: the bytes 0-255, then the special tokens, then the merged tokens in order.
        merges: (left bytes, right bytes) in order. Among equally frequent pairs the greatest is merged.
    """
    path = _binding.path_text(input_path)  # bytes in a list would be a text
    kw.setdefault("special_ids", "after_bytes")
    kw.setdefault("progress", False)
    tokenizer = train([path], vocab_size=vocab_size, special_tokens=special_tokens, **kw)  # type: ignore[arg-type]
    return tokenizer.vocab, tokenizer.merges


@dataclass(frozen=True)
class _Merging:
    """The checked arguments of the merge loop."""

    vocab_size: int
    special_ids: str
    min_frequency: int
    tie_break: str
    max_token_length: int

    def __post_init__(self) -> None:
        for name, least, most in (
            ("vocab_size", None, MOST_IDS),  # the minimum depends on the special tokens: see _Plan
            ("min_frequency", 0, (1 << 64) - 1),
            ("max_token_length", 1, (1 << 32) - 1),
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))
        one_of("tie_break", self.tie_break, _binding.TIE_BREAKS)
        one_of("special_ids", self.special_ids, SPECIAL_IDS)


@dataclass(frozen=True)
class _Plan:
    """Everything except the text that the result depends on.

    Attributes:
        merging: the arguments of the merge loop.
        count: how words are counted; its special tokens are those of the base and the new ones.
        new_specials: the special tokens that the base lacks.
        base: the tokenizer that is extended.
        wanted_ids: the ids that the caller gave for special tokens.
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
            raise ArgumentError(f"vocab_size {self.merging.vocab_size} is too small: the minimum is {least} ({parts})")
        self._check_ids(self._planned_ids())
        self.numbering  # noqa: B018  refuses a base that cannot be extended now, not after counting

    def _planned_ids(self) -> dict[str, int]:
        """Returns the ids of the special tokens, if training makes as many tokens as it may."""
        starts = {"first": 0, "after_bytes": 256, "last": self.merging.vocab_size - len(self.new_specials)}
        start = starts[self.merging.special_ids] if self.base is None else self.base.n_vocab
        ids = {} if self.base is None else self.base.special_tokens
        return ids | {text: start + i for i, text in enumerate(self.new_specials)}

    def _check_ids(self, ids: Mapping[str, int]) -> None:
        """Raises ArgumentError unless the special tokens have the ids that the caller wants."""
        for text, wanted in self.wanted_ids.items():
            if ids[text] != wanted:
                raise ArgumentError(
                    f"special_tokens gives {text!r:.80} id {wanted}, but training gives it {ids[text]}: pass a list of"
                    " the strings, and choose special_ids"
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
        """Returns the words that are not single tokens of the base. There is nothing to learn from those that are."""
        if self.base is None or not self.base.model.whole_words:
            return words
        whole = {self.base.model.tokens[i] for i in self.base.model.unreached()}
        return _binding.Words.from_dict({word: n for word, n in words.to_dict().items() if word not in whole})

    def fingerprint(self) -> dict[str, object]:
        """Returns the plan in types that JSON can hold."""
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
        """Returns the tokenizer with the merges that the trainer made."""
        if self.numbering is None:
            parts = lay_out(merged, self.new_specials, self.merging.special_ids, self.merging.tie_break)
        else:
            parts = self.numbering.extend(merged, self.new_specials)
        self._check_ids(parts[2])  # with special_ids="last" the ids depend on the number of tokens
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
    """Returns the plan of a training run. Raises ArgumentError if a setting contradicts the parent (base or counts)."""
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
            raise ArgumentError(f"pattern: the base or the counts already have {given.pattern!r}: leave it out")
    if normalizer not in (None, given.normalizer):
        raise ArgumentError(f"normalizer: the base or the counts already have {given.normalizer!r}: leave it out")
    if base is None:
        settings = CountSettings(given.pattern, tuple(specials), given.normalizer, text_key)
        return _Plan(merging, settings, specials, None, wanted)
    if merging.special_ids != "first":
        raise ArgumentError("special_ids cannot be used with base: new special tokens follow the ids of the base")
    new = [text for text in specials if text not in base.special_tokens]
    settings = CountSettings(base.pattern, (*base.special_tokens, *new), base.normalizer, text_key)
    return _Plan(merging, settings, new, base, wanted)


def _check_counts(counts: Counts, wanted: CountSettings) -> None:
    """Raises ArgumentError unless this training run would have made the same counts."""
    unknown = sorted(set(wanted.specials) - set(counts.settings.specials))
    if unknown:
        raise ArgumentError(f"the words were counted without the special tokens {unknown}: count again with them")
    if (counts.settings.pattern, counts.settings.normalizer) != (wanted.pattern, wanted.normalizer):
        raise ArgumentError("the counts were made with a different pattern or normalizer than the base has")


def _input_fingerprint(inputs: Inputs | None, counts: Counts | None, sample: Sample) -> dict[str, object]:
    """Returns what identifies the input: for files their names, sizes and times."""
    if counts is not None:
        return {"counts": counts.fingerprint()}
    if inputs is None or not is_path_list(inputs):
        raise ArgumentError("checkpoint: texts of an iterable cannot be recognized later: pass paths or counts")
    files = []
    for path in input_files(inputs):
        if path == STDIN:
            raise ArgumentError("checkpoint: standard input cannot be recognized later: use a file")
        with file_errors(path, "cannot be opened"):
            status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise ArgumentError(f"checkpoint: {path} is a pipe or device, which cannot be recognized later: use a file")
        files.append([os.path.abspath(path), status.st_size, status.st_mtime_ns])
    return {"inputs": files, "sample": list(sample)}


def _merge(
    words: _binding.Words, plan: _Plan, saved: Checkpoint | None, progress: bool | None
) -> list[tuple[int, int, int]]:
    """Returns all merges, including those of the base and of a checkpoint."""
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
