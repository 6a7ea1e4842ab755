"""What a server says about a remote file, by which a later reader notices that the file has changed."""

from __future__ import annotations

import errno
from typing import NamedTuple

from ...errors import FileError, file_error


class Facts(NamedTuple):
    """What a server says about a file.

    Attributes:
        size: the number of bytes; None if the server does not say.
        tag: the ETag, or the name of the version; "" if the server gives none.
        modified: the time of the last change, as the server writes it; "" if the server gives none.
    """

    size: int | None
    tag: str = ""
    modified: str = ""

    def check(self, name: str, found: Facts) -> None:
        """Raises FileChangedError unless the file is still the same. The tag alone decides, if there is one, because a
        copy with the same content may be newer."""
        if self.size is not None and found.size is not None and self.size != found.size:
            raise changed(name, f"now has {found.size} bytes, but had {self.size}")
        if self.tag or found.tag:
            if self.tag != found.tag:
                raise changed(name, "was written to: its ETag or version differs")
        elif self.modified != found.modified:
            raise changed(name, "was written to: its modification time differs")


def changed(name: str, what: str) -> FileError:
    """Returns the FileChangedError for a remote file."""
    return file_error(
        errno.ESTALE,
        f"{name}: this file changed after this run first looked at it: it {what}. Run again when nothing writes to it",
    )
