"""Numbers and bytes in a compact form that bytes.js reads: LEB128 in base64."""

from __future__ import annotations

import base64


class Packer:
    """Gathers numbers and bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def number(self, value: int) -> None:
        """An unsigned number, seven bits a byte, the lowest first."""
        while value >= 128:
            self._bytes.append(value & 127 | 128)
            value >>= 7
        self._bytes.append(value)

    def signed(self, value: int) -> None:
        """A signed number: 0, -1, 1, -2, 2, ... are packed as 0, 1, 2, 3, 4, ..."""
        self.number(2 * value if value >= 0 else -2 * value - 1)

    def take(self, data: bytes) -> None:
        """Bytes as they are; the reader must know how many."""
        self._bytes += data

    def base64(self) -> str:
        """All of it as ASCII text."""
        return base64.b64encode(self._bytes).decode("ascii")
