"""prepare: split first, train the tokenizer on the train split only, then encode all splits.

A tokenizer trained on everything has seen the validation text: its tokens fit that text a little too well,
and the validation loss comes out a little too low.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from .. import _binding
from .._lazy import futures
from ..arguments import chosen, param
from ..model import CONTROL_TOKENS, check_specials
from ..model import end_of_text as end_of_text_of
from ..pattern import Digits, PatternLike
from ..reading.documents import Kinds, check_mark
from ..reading.files import stage
from ..reading.inputs import Inputs, ReadOptions
from ..reading.objects import given_inputs
from ..reading.planning import Plan, SplitOptions
from ..support.parallel import RunOptions
from ..tokenizer import Tokenizer, of_model
from ..training.counting import count_plan
from ..training.merging import TrainInput, train_model
from ..training.plan import TrainOptions, TrainPlan
from .binarization import DatasetOptions, known_of, name_of, write_dataset
from .formats import Layout, OutputOptions
from .manifest import TOKENIZER_NAMES, Manifest, tokenizer_entry
from .output_folder import call_of, made_before, writing_to


def prepare(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = CONTROL_TOKENS,
    end_of_text: str | None = None,
    splits: Sequence[float] = (8, 1, 1),
    split_by: str = "auto",
    val_documents: int | None = None,
    name: str | None = None,
    document_offsets: bool = False,
    provenance: bool = False,
    id_key: str | None = None,
    pattern: PatternLike | None = None,
    digits: Digits = None,
    normalizer: str | None = None,
    min_frequency: int = 0,
    tie_break: str = "lexicographic",
    special_ids: str = "first",
    max_token_length: int = 255,
    superwords: bool = False,
    transition: float | None = None,
    whole_characters: bool = False,
    min_shard_tokens: int | None = None,
    shard_tokens: int = 10**8,
    format: str = "llmc",
    eot: str | None = None,
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    on_error: str = "stop",
    workers: int | None = None,
    executor: futures.Executor | None = None,
    task_timeout: float | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> tuple[Tokenizer, Manifest]:
    """Turns text files into everything that llm.c needs except the model.

    Writes tokenizer.json, tokenizer.bin, the shards of all splits and manifest.json into `out`. If a run is killed,
    make the same call again: it trains again, and then encodes only the missing part.

    Args:
        inputs: a path or URL, or a list of them.
        special_tokens: the special tokens, by default the nine control tokens of the llm.c profile, ids 0-8.
        end_of_text: the special token that ends a document, such as "</s>". None means <|endoftext|> or
            <|end_of_text|>. It separates documents in text files and in the token files. If there is none, pass
            eot="none".
        executor: runs the counting and encoding. The files are the same.
        force: as in `binarize`.
        The other arguments are the same as in `train` and `binarize`.

    Returns:
        The tokenizer and the manifest.

    Raises:
        What `train` and `binarize` raise.
    """
    given = locals()
    training = chosen(TrainOptions, given, special_tokens=check_specials(special_tokens))
    output = chosen(OutputOptions, given)
    output.check_used()
    output.refuse_mark(f"name the token in {param('end_of_text')}")
    options = DatasetOptions(chosen(ReadOptions, given), chosen(SplitOptions, given), output)
    run = chosen(RunOptions, given)
    return prepare_dataset(inputs, _binding.path_text(out), training, options, run, force)


def prepare_dataset(
    inputs: Inputs, folder: str, training: TrainOptions, options: DatasetOptions, run: RunOptions, force: bool
) -> tuple[Tokenizer, Manifest]:
    """Does the work of `prepare`. If the folder has its result, returns that."""
    given = given_inputs(inputs)
    planned = TrainPlan.of(training, options.read)  # refuses now, as merging would later
    counting = planned.count_settings
    mark = end_of_text_of(counting.specials, training.end_of_text)
    options.output.for_vocabulary(training.vocab_size, mark, is_made=False)  # refuses now, not after training
    kinds = options.kinds(mark)
    with writing_to(folder):
        staged = stage(given, folder, options.read, [folder], kinds.columns)
        check_mark(kinds, counting.specials, counting.matching, staged.files)
        options = options.decided(staged.files, kinds, folder)
        counting = replace(counting, read=options.read)
        plan = Plan(staged.files, Kinds(options.read, mark), options.split, counting.cutting)  # needs no origins
        settings = (training, counting.pattern.regex, (counting.read, kinds.mark, counting), options.split)
        name = options.output.name or name_of(inputs, given, staged)
        call, form = call_of((settings, options, name), staged), counting.pattern.regex
        wanted = {"vocab_size": training.vocab_size, "special_tokens": training.specials, "end_of_text": mark}
        wanted |= {"pattern": form, "normalizer": counting.normalizer, **planned.recorded}
        made = made_before(folder, known_of(options, wanted, staged, call), force, staged.files)
        if made is not None:
            return Tokenizer.from_file(os.path.join(folder, TOKENIZER_NAMES[0])), made
        with staged.naming():
            counts = count_plan(plan, counting, run)
        tok = of_model(train_model(TrainInput(counts=counts, read=options.read), training, run))
        options = options.for_tokenizer(tok)
        layout = Layout(tok, options.output, folder, name, staged.names)
        known = known_of(options, tokenizer_entry(tok), staged, call)
        return tok, write_dataset(layout, options, staged, run, known, with_tokenizer=True)
