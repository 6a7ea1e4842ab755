"""Packs numbers and bytes in a compact form that bytes.js reads: LEB128 in base64."""

from __future__ import annotations

import base64


class Packer:
    """Collects numbers and bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def number(self, value: int) -> None:
        """Appends an unsigned number, seven bits per byte, lowest bits first."""
        while value >= 128:
            self._bytes.append(value & 127 | 128)
            value >>= 7
        self._bytes.append(value)

    def signed(self, value: int) -> None:
        """Appends a signed number: 0, -1, 1, -2, 2, ... are packed as 0, 1, 2, 3, 4, ..."""
        self.number(2 * value if value >= 0 else -2 * value - 1)

    def take(self, data: bytes) -> None:
        """Appends bytes unchanged; the reader must know how many there are."""
        self._bytes += data

    def base64(self) -> str:
        """Returns everything as ASCII text."""
        return base64.b64encode(self._bytes).decode("ascii")
