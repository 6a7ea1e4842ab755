"""Training: texts -> word counts -> merges -> a Tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import _binding
from .errors import ArgumentError
from .model import SPECIAL_IDS, Model, check_specials, lay_out
from .normalize import check_normalizer
from .pattern import Pattern
from .pretokenize import Inputs, Text, WordCounter, is_path_list, path_list
from .progress import Progress
from .tokenizer import Tokenizer

_STEP_BUDGET = 1 << 20  # occurrences: some milliseconds, so that Ctrl-C is answered at once


def train(
    inputs: Inputs,
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    pattern: str = "gpt2",
    min_frequency: int = 0,
    tie_break: str = "lexicographic",
    special_ids: str = "first",
    max_token_length: int = 255,
    normalizer: str | None = None,
    digits: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Tokenizer:
    """Trains a byte-level BPE tokenizer.

    Args:
        inputs: a path, a list or tuple of paths, or any other iterable of texts (str or bytes). Each file
            or text is one of its own: no word spans two.
        vocab_size: tokens in all: 256 bytes, specials and merges. Training stops earlier when no pair is
            left that occurs `min_frequency` times.
        special_tokens: strings with ids of their own, never split, never learned from.
        pattern: how text is cut into words: "gpt2", "cl100k", "o200k", "llama3", "qwen2", or a regular
            expression of the `regex` package. No merge crosses a word's end.
        min_frequency: the least count at which a pair is merged.
        tie_break: of equally frequent pairs, "lexicographic" takes the one whose (left bytes, right bytes)
            is the greatest; "huggingface" takes what Hugging Face's BpeTrainer takes.
        special_ids: "first" (specials 0..k-1, bytes, merges), "after_bytes" (bytes 0..255, specials,
            merges) or "last" (bytes, merges, specials).
        max_token_length: in bytes; 255 is the most that tokenizer.bin holds.
        normalizer: None, "NFC" or "NFKC"; kept in the tokenizer and applied when encoding too.
        digits: 1 makes every digit a word of its own.
        workers: threads for counting; None for all CPUs. The result is the same for any number.
        progress: True shows bars, False none, None only if standard error is a terminal.

    Returns:
        The trained Tokenizer. The same input and settings give the same one, always.

    Raises:
        ArgumentError (a ValueError): an argument out of range, such as a vocab_size below 256 + specials.
        FileError (an OSError): an input cannot be read.
    """
    specials = check_specials(special_tokens)
    merged_size = _check_arguments(vocab_size, specials, min_frequency, tie_break, special_ids, max_token_length)
    check_normalizer(normalizer)
    cut = Pattern(pattern, digits)
    counter = WordCounter(cut, specials, normalizer, workers)
    _count(counter, inputs, progress)
    trainer = _binding.Trainer(
        counter.finish(),
        vocab_size=merged_size,
        max_token_length=max_token_length,
        min_frequency=min_frequency,
        tie_break=tie_break,
    )
    _merge(trainer, merged_size, progress)
    tokens, merges, special_map = lay_out(trainer.merges(), specials, special_ids)
    training = {"tie_break": tie_break, "min_frequency": min_frequency, "max_token_length": max_token_length}
    return Tokenizer.from_model(Model(tokens, merges, special_map, cut, normalizer, training))


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
    kw.setdefault("special_ids", "after_bytes")
    kw.setdefault("progress", False)
    tokenizer = train([input_path], vocab_size=vocab_size, special_tokens=special_tokens, **kw)  # type: ignore[arg-type,list-item]
    return tokenizer.vocab, tokenizer.merges


def _check_arguments(
    vocab_size: int,
    specials: Sequence[str],
    min_frequency: int,
    tie_break: str,
    special_ids: str,
    max_token_length: int,
) -> int:
    """Returns how many tokens are not specials."""
    least = 256 + len(specials)
    if vocab_size < least:
        raise ArgumentError(
            f"vocab_size {vocab_size} is too small: the least is {least} (256 bytes + {len(specials)} special tokens)"
        )
    if vocab_size > 1 << 24:
        raise ArgumentError(f"vocab_size {vocab_size} is too large: the most is {1 << 24}")
    if not 0 <= min_frequency < 1 << 64:
        raise ArgumentError(f"min_frequency must be 0 or more, not {min_frequency}")
    if not 1 <= max_token_length < 1 << 32:
        raise ArgumentError(f"max_token_length must be 1 or more, not {max_token_length}")
    if tie_break not in _binding.TIE_BREAKS:
        raise ArgumentError(f"tie_break must be one of {', '.join(_binding.TIE_BREAKS)}, not {tie_break!r}")
    if special_ids not in SPECIAL_IDS:
        raise ArgumentError(f"special_ids must be one of {', '.join(SPECIAL_IDS)}, not {special_ids!r}")
    return vocab_size - len(specials)


def _count(counter: WordCounter, inputs: Inputs, progress: bool | None) -> None:
    if is_path_list(inputs):
        counter.add_files(path_list(inputs), progress)
        return
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or texts in a list, as [text]")
    texts: Iterable[Text] = inputs  # type: ignore[assignment]
    counter.add_texts(texts, progress)


def _merge(trainer: _binding.Trainer, merged_size: int, progress: bool | None) -> None:
    with Progress("merging", merged_size - 256, "merge", progress) as bar:
        while not trainer.step(_STEP_BUDGET):
            bar.set(trainer.tokens - 256)
