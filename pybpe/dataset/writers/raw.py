"""nanoGPT: only the ids, one file per split; and meta.pkl, which its sample.py uses to decode."""

from __future__ import annotations

from ...tokenizer import Tokenizer
from .base import Format, read_flat

META_NAME = "meta.pkl"

FORMAT = Format(name="raw", file="{split}.bin", read=read_flat, header=lambda tokens, dtype: b"")


def meta(tok: Tokenizer) -> bytes:
    """Writes meta.pkl as nanoGPT's data/shakespeare_char/prepare.py writes it: vocab_size, itos and stoi.

    nanoGPT's sample.py encodes a prompt character by character through stoi, and joins texts of itos. A token that is
    not valid UTF-8 by itself is U+FFFD in itos, and is not in stoi.
    """
    import pickle

    texts = {i: token.decode("utf-8", "replace") for i, token in tok.vocab.items()}
    exact = {text: i for i, text in texts.items() if text.encode("utf-8") == tok.vocab[i]}
    return pickle.dumps({"vocab_size": tok.n_vocab, "itos": texts, "stoi": exact}, protocol=4)
