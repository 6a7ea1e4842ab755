"""Unicode normalization, the first step of training and encoding. The tokenizer stores its normalizer, so that both
apply the same one.

The C library has the tables of Hugging Face's tokenizers. So a tokenizer gives the same ids in both libraries, and with
every version of Python. (The tables of `unicodedata` are newer, and differ between versions of Python.)
"""

from __future__ import annotations

from . import _binding
from ._binding import NORMALIZERS, Data
from .arguments import param
from .errors import ArgumentError
from .support.parallel import run_interruptibly

_LONG = 1 << 22  # bytes. Shorter texts take milliseconds


def check_normalizer(normalizer: str | None) -> None:
    """Raises ArgumentError unless the normalizer is None, "NFC" or "NFKC"."""
    if not isinstance(normalizer, (str, type(None))) or normalizer not in NORMALIZERS:
        raise ArgumentError(f"{param('normalizer')} must be NFC or NFKC, not {normalizer!r}")


def normalize(data: Data, normalizer: str | None) -> Data:
    """Returns normalized UTF-8. Bytes that are not valid UTF-8 do not change."""
    if normalizer is None:
        return data
    if len(data) > _LONG:
        return run_interruptibly(_binding.normalize, data, normalizer)
    return _binding.normalize(data, normalizer)


def prepared(data: Data, normalizer: str | None, prefix_space: bool) -> Data:
    """Returns a text between special tokens as the pattern sees it: normalized, and if `prefix_space` with a space
    before it, unless it is empty or begins with one, as add_prefix_space does in Hugging Face's library."""
    data = normalize(data, normalizer)
    return b" " + bytes(data) if prefix_space and len(data) and bytes(data[:1]) != b" " else data


def normalize_text(text: str, normalizer: str | None) -> str:
    """Returns a normalized str. Lone surrogates do not change."""
    if normalizer is None or text.isascii():
        return text
    return bytes(normalize(text.encode("utf-8", "surrogatepass"), normalizer)).decode("utf-8", "surrogatepass")
