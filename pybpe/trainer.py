"""`train` and `train_bpe`: the functions for training that users call. They take keyword arguments and return a
Tokenizer (or its parts).

The work is in pybpe/training/, on plain data, so that Tokenizer.extend can use it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import _binding
from ._lazy import futures
from .arguments import Text, chosen, instance
from .pattern import Digits, PatternLike
from .reading.inputs import Inputs, ReadOptions
from .reading.pieces import Sample
from .support.parallel import RunOptions
from .tokenizer import Tokenizer, of_model
from .training.counts import Counts
from .training.merging import TrainInput, train_model
from .training.plan import Texts, TrainOptions


def train(
    inputs: Inputs | None = None,
    *,
    vocab_size: int,
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    pattern: PatternLike | None = None,
    min_frequency: int = 0,
    tie_break: str | None = None,
    special_ids: str | None = None,
    max_token_length: int = 255,
    normalizer: str | None = None,
    digits: Digits = None,
    end_of_text: str | None = None,
    base: Tokenizer | None = None,
    like: Tokenizer | None = None,
    superwords: bool = False,
    transition: float | None = None,
    whole_characters: bool = False,
    parity: Texts | None = None,
    parity_per: str = "text",
    counts: Counts | Mapping[Text, int] | None = None,
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    documents: str = "auto",
    on_error: str = "stop",
    skipped: _binding.PathLike | None = None,
    max_documents: int | None = None,
    max_bytes: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: futures.Executor | None = None,
    task_timeout: float | None = None,
    memory_limit: int | None = None,
    checkpoint: _binding.PathLike | None = None,
    progress: bool | None = None,
) -> Tokenizer:
    """Trains a byte-level BPE tokenizer.

    Args:
        inputs: a path, a list or tuple of paths, or any other iterable of str or bytes, of lists of them, or of records
            (dict), such as a dataset of Hugging Face's `datasets`. A path may be a URL (s3, gs, hf, https), a glob, a
            folder (all files in it), or "-" (standard input). No word spans two files or two strings. Compressed files
            (gzip, bzip2, xz, zstd) are decompressed. Every record, as of JSON lines, parquet and Arrow, is separate,
            and no special token is recognized in it. With parity, pass a mapping of languages to such inputs.
        vocab_size: the total number of tokens: 256 bytes, special tokens and merges. Training stops earlier if no
            remaining pair occurs `min_frequency` times.
        special_tokens: strings that become one token. Training does not split them or learn from them. `special_ids`
            decides their ids. If you pass a mapping text -> id, for example another tokenizer's, training must give
            these ids, or you get an error.
        pattern: how text is split into words: "gpt2" (the default), "cl100k", "o200k", "llama3", "qwen2", "nanochat", a
            regular expression for the `regex` package, or the `pattern` of a Tokenizer, which includes its digits.
            Several strings with (?then) between them are steps: a step splits the pieces of the step before it. No
            merge crosses the end of a word.
        min_frequency: the lowest count of a pair that is merged.
        tie_break: which of several equally frequent pairs is merged. "lexicographic" (the default) takes the pair whose
            (left bytes, right bytes) is greatest. "huggingface" takes the pair that Hugging Face's BpeTrainer takes.
            "rustbpe" takes the pair with the lowest ids, like nanochat's trainer.
        special_ids: "first" (the default: special tokens 0..k-1, bytes, merges), "after_bytes" (bytes 0..255, special
            tokens, merges) or "last" (bytes, merges, special tokens).
        max_token_length: the maximum number of bytes of a token. tokenizer.bin can hold at most 255. Hugging Face's
            max_token_length is one more: for the merges of its n, pass max(2, n - 1). rustbpe has no maximum.
        normalizer: None, "NFC" or "NFKC". The tokenizer stores it and applies it when encoding too.
        digits: 1 makes every digit a separate word. "3-from-right" splits numbers into groups of three digits, counted
            from the right, for example 12|345|678. None keeps the pattern's rule.
        end_of_text: the special token that ends a document, which becomes the tokenizer's `eot_token`. None means the
            base's, and otherwise <|endoftext|> or <|end_of_text|>, if it is a special token.
        base: a tokenizer to extend. The result keeps its ids, merges, special tokens, pattern and normalizer. New
            special tokens, and then new tokens, get the ids after the base's. vocab_size counts all of them.
        like: a tokenizer whose settings to use: pattern and digits, normalizer, special tokens with their flags and the
            place of their ids, template, chat template, end of text, prefix space, dropout, and tie_break, if pybpe
            trained it. The result has none of its tokens or merges. (Like train_new_from_iterator of transformers, this
            leaves out added tokens that are not special.) Your `special_tokens` are added to its own. Other explicit
            arguments override its settings.
        superwords: True trains in two stages (SuperBPE). Stage 1 is ordinary BPE. Stage 2 merges across spaces and
            makes tokens such as " of the", of at most four words. The tokenizer gets the pattern of stage 2, even if a
            base has another pattern. With a base, stage 1 extends the base, unless it already has enough tokens.
        transition: the share of vocab_size where stage 2 of superwords begins, or parity. Before it, training is
            ordinary BPE. None is 0.8 for superwords, and 0 for parity.
        whole_characters: True forbids tokens that contain parts of two characters, or a part of a character next to a
            whole character. The tokens of a base are kept.
        parity: a development text for every language of `inputs`: language -> paths, or an iterable of strings. Every
            merge helps the language that costs the most tokens on its development text, because it merges the pair that
            is most frequent in the inputs of this language. If none occurs `min_frequency` times, it helps the next
            language. You cannot use parity with superwords, counts or a checkpoint.
        parity_per: how to compare languages. "text" compares the tokens of the development texts, which must be
            translations of one another, line by line. "character" and "byte" compare tokens per character and per byte.
        counts: word counts to use instead of inputs, from `pybpe.count_words`, or a dictionary word -> count.
        text_key: the key of the text in a JSON record, or its column.
        on_error: what to do at a record that is not valid. "stop" raises an error. "skip" skips it, and warns you at
            the end. If more than half of the records are not valid, the run stops.
        skipped: a file for the list of skipped records, as JSON lines. None writes no list.
        encoding: encoding of the files, such as "gb18030", "utf-16" or "cp1252". None decides for every file: see
            `binarize`.
        keep_crlf: see `binarize`.
        documents: how to read files whose names do not end in .jsonl or .ndjson. "auto" decides by their content,
            "jsonl" reads JSON lines, and any other value of `pybpe.binarize` reads text.
        max_documents, max_bytes: use only a sample of this size. Documents are records, ranges of 1 MiB of plain text,
            smaller or compressed plain files, and the strings of an iterable. pybpe reads files in ranges of 1 MiB, in
            an order that `seed` decides, and an iterable in its own order. It stops at the first safe cut or record
            after max_bytes (of file content). With parity, it takes a sample of this size from every language, and all
            of the development texts.
        seed: random seed for sampling.
        workers: number of threads for counting. None uses all CPUs. The result is the same for any number.
        executor: an executor that counts files, instead of threads: see `pybpe.count_words`.
        task_timeout: as in `pybpe.binarize`.
        memory_limit: approximate number of bytes for counting and merging. None is half of the memory of the machine or
            container. pybpe sorts counts that exceed it into temporary files, with the same result. If merging would
            exceed it (except with parity), you get an error: use a sample.
        checkpoint: a folder where pybpe saves the words of every 1 to 4 GiB that it has counted. After a kill, the
            same call resumes and gives an identical result. If some files have changed, only their part of the corpus
            is counted again. pybpe removes the folder after success. It refuses inputs that it cannot read again, such
            as standard input.
        progress: True shows progress bars, False does not, None shows them if standard error is a terminal.

    Returns:
        The trained Tokenizer. The same input and settings always give the same tokenizer.

    Raises:
        ArgumentError (a ValueError): an argument is invalid, such as a vocab_size below 256 + special tokens.
        FileError (an OSError): an input cannot be read.
        FormatError (a ValueError): a compressed file, a record or a checkpoint is damaged.
        MissingExtraError (an ImportError): a package that reads an input is not installed.
        LimitError (an OverflowError): merging would exceed `memory_limit`.
        WorkerError (a RuntimeError): a process of the executor died.
    """
    given = locals()
    models = {}
    for name, tokenizer in (("base", base), ("like", like)):
        if tokenizer is not None:
            instance(name, tokenizer, Tokenizer, "a Tokenizer, such as Tokenizer.from_file returns")
        models[name] = None if tokenizer is None else tokenizer.model
    options = chosen(TrainOptions, given, **models)
    source = TrainInput(inputs, counts, chosen(ReadOptions, given), chosen(Sample, given))
    return of_model(train_model(source, options, chosen(RunOptions, given), checkpoint))


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
        merges: (left bytes, right bytes) in order. Among equally frequent pairs, training merges the greatest.
    """
    path = _binding.path_text(input_path)  # bytes in a list would be a text
    kw.setdefault("special_ids", "after_bytes")
    kw.setdefault("progress", False)
    tokenizer = train([path], vocab_size=vocab_size, special_tokens=special_tokens, **kw)  # type: ignore[arg-type]
    return tokenizer.model.vocab, tokenizer.merges
