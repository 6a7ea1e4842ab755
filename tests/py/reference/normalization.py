"""Normalization by Hugging Face's `tokenizers`. It takes valid Unicode only, so it gets what is between other bytes."""

import re

from tokenizers import normalizers

_FORMS = {name: getattr(normalizers, name)().normalize_str for name in ("NFC", "NFKC")}


def normalized(data: bytes, form: str) -> bytes:
    """The normalized text. Bytes that are not UTF-8 stay as they are."""
    pieces = re.split("([\udc80-\udcff])", data.decode("utf-8", "surrogateescape"))
    done = (_FORMS[form](piece) if i % 2 == 0 else piece for i, piece in enumerate(pieces))
    return "".join(done).encode("utf-8", "surrogateescape")
