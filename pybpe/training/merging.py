"""Trains a model: counts words, unless the caller passes counts, and merges pairs of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _binding
from ..arguments import Text, chosen, param
from ..errors import ArgumentError, warn
from ..model import Model
from ..reading.files import input_files
from ..reading.input_file import InputFile
from ..reading.inputs import STDIN, Inputs, ReadOptions, is_path_list
from ..reading.sample import Sample
from ..support.parallel import RunOptions, run_interruptibly
from ..support.progress import Progress
from .counting import MergingMemory, checkpoint_folder, count_inputs, default_limit
from .counts import Counts, CountSettings
from .parity import check_inputs, count_languages
from .plan import Stage, TrainPlan
from .superwords import words_of
from .train_options import TrainOptions

TrainWords = _binding.Words | list[_binding.Language]  # with parity, the words of each language
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

    def plan(self, options: TrainOptions) -> TrainPlan:
        """Returns the plan of a training run with these options."""
        if options.parity is not None:
            if self.counts is not None:
                raise ArgumentError(
                    f"{param('parity')} needs texts of each language: pass {param('inputs')}, not {param('counts')}"
                )
            if self.read.skips:
                raise ArgumentError(
                    f"{param(on_error='skip')} cannot be used with {param('parity')}, which compares texts line by line"
                )
            check_inputs(self.inputs, options.parity)
        counted = self.counts.settings if isinstance(self.counts, Counts) else None
        return TrainPlan.of(options, counted, self.read)

    def ready_counts(self, plan: TrainPlan) -> Counts | None:
        """Returns the counts that the caller passed, or None."""
        if self.counts is None:
            return None
        settings = plan.count
        counted = self.counts.settings.pattern if isinstance(self.counts, Counts) else None
        if plan.words is not None and counted != settings.pattern:
            raise ArgumentError(
                f"superwords cross words, so counts of words cannot be used for them: pass {param('inputs')}"
            )
        if not isinstance(self.counts, Counts):
            return Counts(Counts.from_dict(self.counts).words, settings)
        _check_counts(self.counts, settings)
        return self.counts

    @property
    def is_empty(self) -> bool:
        """Whether the inputs are files without a byte: their tokenizer has the bytes and the special tokens."""
        return is_path_list(self.inputs) and all(
            path != STDIN and InputFile.look(path)[0].is_empty for path in input_files(self.inputs or ())
        )

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
        for path in input_files(self.inputs or ()):
            if path == STDIN:
                raise ArgumentError("checkpoint: standard input cannot be recognized later: use a file")
            file = InputFile.look(path)[0]
            if file.size is None:
                what = "is a pipe or device" if file.remote is None else "is sent only as a whole"
                raise ArgumentError(f"checkpoint: {file.path} {what}, which cannot be recognized later: use a file")


def train_model(
    source: TrainInput, options: TrainOptions, run: RunOptions, checkpoint: _binding.PathLike | None = None
) -> Model:
    """Does the work of `pybpe.train`. Warns if the vocabulary has fewer tokens than requested."""
    plan = source.plan(options)
    ready = source.ready_counts(plan)
    if checkpoint is not None:
        source.check_checkpoint(plan)
        with checkpoint_folder(checkpoint) as folder:
            model = plan.model(_merge([_count(source, plan, run, folder=folder)], plan, run.progress))
    else:
        model = plan.model(_merge([_count(source, plan, run, ready)], plan, run.progress))
    if len(model.tokens) < options.vocab_size:
        why = "no other pair of tokens occurs often enough: use more text to get more"
        warn(f"the vocabulary has {len(model.tokens)} tokens, fewer than {options.vocab_size}: {why}")
    return model


def _count(
    source: TrainInput,
    plan: TrainPlan,
    run: RunOptions,
    ready: Counts | None = None,
    folder: str | None = None,
) -> TrainWords:
    options = plan.options
    merging = MergingMemory(run.memory_limit or default_limit(), plan.stages[-1].size)
    counted: TrainWords
    if ready is not None:
        merging.check(*ready.words.size)
        counted = ready.words
    elif options.parity is None:
        assert source.inputs is not None
        counted = count_inputs(source.inputs, plan.count, source.sample, run, folder, merging).words
    else:
        assert isinstance(source.inputs, Mapping)
        counted = count_languages(source.inputs, (options.parity, options.parity_per), plan.count, source.sample, run)
    tables = [language.words for language in counted] if isinstance(counted, list) else [counted]
    wants_merges = plan.stages[-1].size > 256 + plan.numbering.made
    if wants_merges and not any(map(len, tables)) and not source.is_empty:
        raise ArgumentError("there is no text to train on, so no tokens can be learned")
    return counted


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


def _check_counts(counts: Counts, wanted: CountSettings) -> None:
    """Raises ArgumentError unless this training run would have made the same counts."""
    unknown = sorted(set(wanted.specials) - set(counts.settings.specials))
    if unknown:
        raise ArgumentError(f"the words were counted without the special tokens {unknown}: count again with them")
    if (counts.settings.pattern, counts.settings.normalizer) != (wanted.pattern, wanted.normalizer):
        raise ArgumentError(
            "the counts were made with a different pattern or normalizer than the base has: count again with the base's"
        )
    if (counts.settings.matching, counts.settings.prefix_space) != (wanted.matching, wanted.prefix_space):
        flagged = f"special tokens with flags, such as {next(iter(wanted.matching), '')!r:.80}"
        what = "add_prefix_space" if wanted.prefix_space else flagged
        raise ArgumentError(
            f"the base has {what}, without which words were counted: pass {param('inputs')} instead of"
            f" {param('counts')}"
        )


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


def _trainer(counted: TrainWords, plan: TrainPlan, stage: Stage, earlier: list[tuple[int, int]]) -> _binding.Trainer:
    """Returns the trainer of a stage, which continues after the merges `earlier`."""
    words: _binding.Words | Sequence[_binding.Language]
    if isinstance(counted, list) and stage.parity:
        words = [plan.language_without_whole_words(language) for language in counted]
    else:
        if isinstance(counted, list):  # this stage learns from the words of all languages
            counter = _binding.Counter(None, None)
            for language in counted:
                counter.add_words(language.words)
            counted = counter.export()
        words = plan.without_whole_words(counted if stage.words is None else words_of(counted, stage.words))
    return _binding.Trainer(
        words,
        vocab_size=stage.size,
        max_token_length=plan.options.max_token_length,
        min_frequency=plan.options.min_frequency,
        tie_break=plan.options.tie_break,
        base_merges=earlier,
        rules=stage.rules,
    )
