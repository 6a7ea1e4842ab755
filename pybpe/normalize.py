"""Unicode normalization before anything else: stored in the tokenizer, the same in training and encoding.

The C library has the tables, which are those of Hugging Face's tokenizers. So a tokenizer gives the same ids as there,
with every version of Python. (`unicodedata` has newer tables, other ones in each version.)
"""

from __future__ import annotations

from . import _binding
from ._binding import NORMALIZERS, Data
from .errors import ArgumentError
from .parallel import run_interruptibly

_LONG = 1 << 22  # bytes; shorter texts take milliseconds


def check_normalizer(normalizer: str | None) -> None:
    """ArgumentError unless it is None, "NFC" or "NFKC"."""
    if not isinstance(normalizer, (str, type(None))) or normalizer not in NORMALIZERS:
        raise ArgumentError(f"normalizer must be None, 'NFC' or 'NFKC', not {normalizer!r}")


def normalize(data: Data, normalizer: str | None) -> Data:
    """Normalized UTF-8. Bytes that are not valid UTF-8 stay as they are."""
    if normalizer is None:
        return data
    if len(data) > _LONG:
        return run_interruptibly(_binding.normalize, data, normalizer)
    return _binding.normalize(data, normalizer)


def normalize_text(text: str, normalizer: str | None) -> str:
    """The same for a str. Lone surrogates stay as they are."""
    if normalizer is None or text.isascii():
        return text
    return bytes(normalize(text.encode("utf-8", "surrogatepass"), normalizer)).decode("utf-8", "surrogatepass")


def is_normalized(text: str, normalizer: str) -> bool:
    """Whether `normalize_text` leaves it as it is."""
    return normalize_text(text, normalizer) == text
