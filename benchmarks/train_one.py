"""Trains one tokenizer with one library: the process that benchmarks/train.py measures.

python benchmarks/train_one.py LIBRARY CORPUS VOCAB_SIZE
"""

import sys
from collections.abc import Iterator

GPT2_REGEX = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def documents(path: str, size: int = 1 << 20) -> Iterator[str]:
    """Yields the corpus in pieces that end at a line, for libraries that take an iterator."""
    with open(path, encoding="utf-8", newline="") as stream:
        while lines := stream.readlines(size):
            yield "".join(lines)


def train_pybpe(path: str, vocab_size: int) -> None:
    import pybpe

    pybpe.train(path, vocab_size=vocab_size, progress=False)


def train_pybpe_superwords(path: str, vocab_size: int) -> None:
    import pybpe

    pybpe.train(path, vocab_size=vocab_size, superwords=True, progress=False)


def train_tokenizers(path: str, vocab_size: int) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([path], trainer)


def train_rustbpe(path: str, vocab_size: int) -> None:
    import rustbpe

    rustbpe.Tokenizer().train_from_iterator(documents(path), vocab_size, pattern=GPT2_REGEX)


def train_gigabpe(path: str, vocab_size: int) -> None:
    import gigabpe

    gigabpe.train_bpe([path], vocab_size=vocab_size, pretokenizer="bytelevel")


def train_gigatoken(path: str, vocab_size: int) -> None:
    import gigatoken

    gigatoken.train_bpe(gigatoken.TextFileSource([path]), vocab_size, [])


def train_bpeasy(path: str, vocab_size: int) -> None:
    import bpeasy

    bpeasy.train_bpe(documents(path), GPT2_REGEX, 255, vocab_size)


if __name__ == "__main__":
    globals()[f"train_{sys.argv[1]}"](sys.argv[2], int(sys.argv[3]))
