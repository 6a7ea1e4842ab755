"""Unicode normalisation before anything else: stored in the tokenizer, the same in training and encoding."""

from __future__ import annotations

import unicodedata
from typing import Literal, cast

from ._binding import NORMALIZERS, Data
from .errors import ArgumentError

_Form = Literal["NFC", "NFKC"]


def check_normalizer(normalizer: str | None) -> None:
    """ArgumentError unless it is None, "NFC" or "NFKC"."""
    if not isinstance(normalizer, (str, type(None))) or normalizer not in NORMALIZERS:
        raise ArgumentError(f"normalizer must be None, 'NFC' or 'NFKC', not {normalizer!r}")


def normalize(data: Data, normalizer: str | None) -> Data:
    """Normalised UTF-8. Bytes that are not valid UTF-8 stay as they are."""
    if normalizer is None:
        return data
    text = bytes(data).decode("utf-8", "surrogateescape")
    return normalize_text(text, normalizer).encode("utf-8", "surrogateescape")


def is_normalized(text: str, normalizer: str) -> bool:
    """Whether `normalize_text` leaves it as it is."""
    return unicodedata.is_normalized(cast(_Form, normalizer), text)


def normalize_text(text: str, normalizer: str | None) -> str:
    """The same for a str."""
    return text if normalizer is None else unicodedata.normalize(cast(_Form, normalizer), text)
