"""URLs among paths: recognizes them, shows them without their secrets, and refuses them as outputs."""

from __future__ import annotations

import os
import re

from .errors import ArgumentError

# At least two characters, because C:// is a drive of Windows. A text with several lines is not a URL.
_URL = r"(?:\w+::)?[A-Za-z][A-Za-z0-9+.-]+://[^\r\n]*"
_WEB = ("http", "https")


def is_url(path: str) -> bool:
    """Returns whether a path is a URL, such as s3://bucket/key."""
    return "://" in path and re.fullmatch(_URL, path) is not None


def without_secrets(url: str) -> str:
    """Returns a URL as messages, manifests and logs show it. A query may be a signature, and what is before an @ in
    the address of a server is a password, so neither is shown. Paths that are not URLs are returned unchanged."""
    if not is_url(url):
        return url
    scheme, _, rest = url.partition("://")
    if scheme.lower() in _WEB:
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    server, slash, path = rest.partition("/")
    return f"{scheme}://{server.rpartition('@')[2]}{slash}{path}"


def refuse_as_output(path: str | bytes) -> None:
    """Raises ArgumentError if an output is a URL. Without this check, `s3://bucket` would become a local folder."""
    if is_url(name := os.fsdecode(path)):
        raise ArgumentError(
            f"{without_secrets(name)}: pybpe writes only to local files: choose a local output, and copy it there"
            " afterward"
        )
