"""Normalization by Hugging Face's `tokenizers`, which accepts only valid Unicode, so invalid bytes are kept apart."""

import re

from tokenizers import normalizers

_FORMS = {name: getattr(normalizers, name)().normalize_str for name in ("NFC", "NFKC")}


def normalized(data: bytes, form: str) -> bytes:
    """Returns the normalized text. Bytes that are not UTF-8 are unchanged."""
    pieces = re.split("([\udc80-\udcff])", data.decode("utf-8", "surrogateescape"))
    done = (_FORMS[form](piece) if i % 2 == 0 else piece for i, piece in enumerate(pieces))
    return "".join(done).encode("utf-8", "surrogateescape")
