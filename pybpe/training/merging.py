"""Trains a model: counts words, unless the caller passes counts, and merges pairs of tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from .. import _binding
from ..arguments import Text, chosen, param, shown, utf8
from ..errors import ArgumentError, warn
from ..model import Model
from ..pattern import Pattern
from ..reading.documents import Kinds
from ..reading.files import corpus_files, input_files
from ..reading.input_file import InputFile
from ..reading.inputs import STDIN, Inputs, ReadOptions, is_path_list, path_list
from ..reading.objects import texts_of
from ..reading.pieces import Sample, pieces_of
from ..reading.planning import whole
from ..support.call_paths import check_once
from ..support.parallel import RunOptions, run_interruptibly
from ..support.progress import Progress
from .counting import checkpoint_folder, count_inputs
from .counts import Counts, CountSettings
from .plan import Stage, Texts, TrainOptions, TrainPlan, check_texts
from .word_counter import MergingMemory, default_limit, word_lists

TrainWords = _binding.Words | list[_binding.Language]  # with parity, the words of the languages
_STEP_BUDGET = 1 << 20  # occurrences per step, which takes some milliseconds


@dataclass(frozen=True)
class TrainInput:
    """The input of a training run. The fields are arguments of `pybpe.train`, or are made from them."""

    inputs: Inputs | None = None
    counts: Counts | Mapping[Text, int] | None = None
    read: ReadOptions = ReadOptions()
    sample: Sample = Sample()

    def __post_init__(self) -> None:
        if (self.inputs is None) == (self.counts is None):
            raise ArgumentError(f"pass either {param('inputs')} or {param('counts')}, not both or neither")
        if self.counts is not None and not self.sample.is_all:
            raise ArgumentError(
                f"{param('max_documents')} and {param('max_bytes')} need {param('inputs')}: they cannot sample counts"
            )

    def ready_counts(self, plan: TrainPlan) -> Counts | None:
        """Returns the counts that the caller passed, or None. Raises ArgumentError unless this run would have made the
        same counts."""
        if self.counts is None:
            return None
        settings = plan.count_settings
        pattern = self.counts.settings.pattern if isinstance(self.counts, Counts) else None
        if plan.words is not None and pattern != settings.pattern:
            raise ArgumentError(
                f"superwords cross words, so counts of words cannot be used for them: pass {param('inputs')}"
            )
        if not isinstance(self.counts, Counts):
            return Counts(Counts.from_dict(self.counts).words, settings)
        made = self.counts.settings
        if unknown := sorted(set(settings.specials) - set(made.specials)):
            raise ArgumentError(f"the words were counted without the special tokens {unknown}: count again with them")
        if (made.pattern, made.normalizer) != (settings.pattern, settings.normalizer):
            raise ArgumentError(
                "the counts were made with a different pattern or normalizer than the base has: count again with the"
                " base's"
            )
        if (made.matching, made.prefix_space) != (settings.matching, settings.prefix_space):
            flagged = f"special tokens with flags, such as {next(iter(settings.matching), '')!r:.80}"
            what = "add_prefix_space" if settings.prefix_space else flagged
            raise ArgumentError(
                f"the base has {what}, without which words were counted: pass {param('inputs')} instead of"
                f" {param('counts')}"
            )
        return self.counts

    def check_checkpoint(self, plan: TrainPlan) -> None:
        """Raises ArgumentError unless the counting of this input can be saved, and resumed later."""
        if plan.options.parity is not None:
            raise ArgumentError(f"{param('checkpoint')} cannot be used with {param('parity')}: leave one of them out")
        if self.read.skips:
            raise ArgumentError(
                f"{param('checkpoint')} cannot be used with {param(on_error='skip')}: count first, with `pybpe count`"
            )
        if self.counts is not None:
            raise ArgumentError(f"{param('checkpoint')} saves words while they are counted: leave it out with counts")
        if not is_path_list(self.inputs):
            raise ArgumentError(f"{param('checkpoint')}: texts of an iterable cannot be recognized later: pass paths")
        if STDIN in path_list(self.inputs or ()):
            raise ArgumentError("checkpoint: standard input cannot be recognized later: use a file")


def train_model(
    source: TrainInput, options: TrainOptions, run: RunOptions, checkpoint: _binding.PathLike | None = None
) -> Model:
    """Does the work of `pybpe.train`. Warns if the vocabulary has fewer tokens than requested."""
    if options.parity is not None:
        _check_languages(source, options.parity)
    plan = TrainPlan.of(options, source.read, source.counts.settings if isinstance(source.counts, Counts) else None)
    ready = source.ready_counts(plan)
    with ExitStack() as stack:
        folder = None
        if checkpoint is not None:
            source.check_checkpoint(plan)
            folder = stack.enter_context(checkpoint_folder(checkpoint))
        model = plan.model(_merge([_words(source, plan, run, ready, folder)], plan, run.progress))
    if len(model.tokens) < options.vocab_size:
        why = "no other pair of tokens occurs often enough: use more text to get more"
        warn(f"the vocabulary has {len(model.tokens)} tokens, fewer than {options.vocab_size}: {why}")
    return model


def _words(
    source: TrainInput, plan: TrainPlan, run: RunOptions, ready: Counts | None, folder: str | None
) -> TrainWords:
    """Returns the words to learn from: the ready ones, or those of the inputs."""
    options = plan.options
    merging = MergingMemory(run.memory_limit or default_limit(), plan.stages[-1].size)
    words: TrainWords
    if ready is not None:
        merging.check(*ready.words.size)
        words = ready.words
    elif options.parity is None:
        assert source.inputs is not None
        words = count_inputs(source.inputs, plan.count_settings, source.sample, run, folder, merging).words
    else:
        words = count_languages(source, options.parity, options.parity_per, plan.count_settings, run)
    tables = [language.words for language in words] if isinstance(words, list) else [words]
    if plan.stages[-1].size > 256 + plan.numbering.made and not any(map(len, tables)):
        paths = input_files(source.inputs) if source.inputs is not None and is_path_list(source.inputs) else [STDIN]
        if any(path == STDIN or not InputFile.look(path)[0].is_empty for path in paths):
            raise ArgumentError("there is no text to train on, so no tokens can be learned")
    return words  # of files without a byte, there are none: their tokenizer has the bytes and the special tokens


def learned(base: Model, inputs: Inputs | None, given: Mapping[str, Any]) -> Model:
    """Does what `pybpe.train` does with a base and these keyword arguments, but takes and returns plain models. Raises
    TypeError for an argument that `pybpe.train` does not have."""
    kinds = (TrainOptions, ReadOptions, Sample, RunOptions)
    known = {"counts", "checkpoint"}.union(*(each.__dataclass_fields__ for each in kinds)) - {"base", "documents"}
    for name in sorted(given.keys() - known):
        raise TypeError(f"pybpe.train has no argument {name!r}")
    source = TrainInput(inputs, given.get("counts"), chosen(ReadOptions, given), chosen(Sample, given))
    options = chosen(TrainOptions, given, base=base)
    return train_model(source, options, chosen(RunOptions, given), given.get("checkpoint"))


def _merge(held: list[TrainWords], plan: TrainPlan, progress: bool | None) -> list[tuple[int, int, int]]:
    """Returns all merges, the base's included. Empties `held`, which has the words, when the last trainer has copied
    them: they take much memory."""
    earlier, stages = plan.numbering.merges, plan.stages
    merges: list[tuple[int, int, int]] = []
    for stage in stages:
        trainer = run_interruptibly(_trainer, held[0], plan, stage, earlier)
        if stage is stages[-1]:
            held.clear()
        with Progress("merging", stage.size - 256, "merge", progress) as bar:
            is_done = False
            while not is_done:
                is_done = run_interruptibly(trainer.step, _STEP_BUDGET)
                bar.set(trainer.tokens - 256)
        merges = trainer.merges()
        earlier = [(left, right) for left, right, _ in merges]
        del trainer
    return merges


def _trainer(words: TrainWords, plan: TrainPlan, stage: Stage, earlier: list[tuple[int, int]]) -> _binding.Trainer:
    """Returns the trainer of a stage, which continues after the merges `earlier`."""
    if isinstance(words, list) and stage.parity:
        words = [plan.language_without_whole_words(language) for language in words]
    else:
        if isinstance(words, list):  # this stage learns from the words of all languages
            counter = _binding.Counter(None, None)
            for language in words:
                counter.add_words(language.words)
            words = counter.export()
        words = plan.without_whole_words(words if stage.words is None else words_of(words, stage.words))
    return _binding.Trainer(
        words,
        vocab_size=stage.size,
        max_token_length=plan.options.max_token_length,
        min_frequency=plan.options.min_frequency,
        tie_break=plan.options.tie_break,
        base_merges=earlier,
        rules=stage.rules,
    )


def words_of(chunks: _binding.Words, pattern: Pattern) -> _binding.Words:
    """Returns the words in chunks, with their counts."""
    counter = _binding.Counter(pattern.pretok, None)
    if pattern.pretok is not None:
        counter.add_texts(chunks)
        return counter.export()
    counts: dict[bytes, int] = {}
    for chunk, count in chunks.to_dict().items():
        for words in word_lists(pattern, chunk):
            for word in words:
                counts[word] = counts.get(word, 0) + count
    return _binding.Words.from_dict(counts)


# ----------------------------------------------------------------------------------------------------
# Parity-aware training, after Foroutan et al. 2025, "Parity-Aware Byte-Pair Encoding".
#
# A language has text to learn from and a development text. A language costs the tokens of its development text,
# divided by its characters or bytes. The cost of a translation is the number of its tokens itself. In every step, the
# language that costs the most chooses the merge: the pair that is most frequent in the text to learn from.
#
# The authors' program, in the variant that they call base, does the same, with two differences. It stops when the most
# frequent pair of the language is too rare, while pybpe continues with the next language. And it compares only tokens
# of translations. Their hybrid variant is `transition`: ordinary BPE up to this share of the vocabulary.


def _check_languages(source: TrainInput, parity: Texts) -> None:
    """Raises ArgumentError unless the inputs are texts of the languages of `parity`."""
    if source.counts is not None:
        raise ArgumentError(
            f"{param('parity')} needs texts of each language: pass {param('inputs')}, not {param('counts')}"
        )
    if source.read.skips:
        raise ArgumentError(
            f"{param(on_error='skip')} cannot be used with {param('parity')}, which compares texts line by line"
        )
    inputs = source.inputs
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
    source: TrainInput, parity: Texts, per: str, settings: CountSettings, run: RunOptions
) -> list[_binding.Language]:
    """Counts the words of all languages: of the texts to learn from, with `run`, and of the development texts, in this
    process. Raises ArgumentError if a text is empty, or the development texts are not translations, line by line."""
    assert isinstance(source.inputs, Mapping)
    kept = dict[str, Any]()  # text that can be read twice. A list of str would be paths
    for name, texts in parity.items():
        kept[name] = texts if is_path_list(texts) else deque(texts_of(texts, "parity"))
        if is_path_list(texts) and STDIN in path_list(texts):
            raise ArgumentError("parity: a development text is read twice: use a file instead of standard input")
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
        words = count_inputs(source.inputs[name], settings, source.sample, run).words
        measured = count_inputs(texts, settings, Sample(), alone).words
        for argument, found in (("inputs", words), ("parity", measured)):
            if not len(found):
                raise ArgumentError(f"{argument}: {shown(name)} has no text")
        size = 1  # divides the number of tokens
        if per != "text":
            sizes = measured.to_dict().items()
            by_character = per == "character"
            size = sum(n * len(word.decode("utf-8", "surrogateescape") if by_character else word) for word, n in sizes)
        languages.append(_binding.Language(words, measured, size))
    return languages


def _lines(texts: Any, settings: CountSettings) -> int:
    """Returns the number of lines of a text, as `pybpe.compare` counts them: a record is one."""
    if not is_path_list(texts):
        some = (bytes(utf8(text)) for text in texts)
        return sum(text.count(b"\n") + (text[-1:] not in (b"", b"\n")) for text in some)
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
