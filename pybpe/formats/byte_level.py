"""GPT-2's way of writing bytes as printable characters, which vocab.json and tokenizer.json use.

Bytes that are printable in Latin-1 represent themselves. The other 68 become U+0100, U+0101, ... in ascending order,
so a space is "Ġ" (U+0120) and a newline is "Ċ". Source: bytes_to_unicode() in OpenAI's GPT-2 encoder.py.
"""

from __future__ import annotations

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]


def _table() -> dict[int, str]:
    table = {byte: chr(byte) for byte in _PRINTABLE}
    others = (byte for byte in range(256) if byte not in table)
    table.update({byte: chr(0x100 + i) for i, byte in enumerate(others)})
    return table


BYTE_TO_CHAR = _table()
CHAR_TO_BYTE = {char: byte for byte, char in BYTE_TO_CHAR.items()}


def to_text(token: bytes) -> str:
    """Returns a token as printable text."""
    return token.decode("latin-1").translate(BYTE_TO_CHAR)


def to_bytes(text: str) -> bytes:
    """Returns the token that printable text spells. Raises KeyError if a character does not represent a byte."""
    return bytes(map(CHAR_TO_BYTE.__getitem__, text))
