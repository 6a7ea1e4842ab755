"""Parses URLs, and refuses those that pybpe cannot read."""

from __future__ import annotations

import glob
from dataclasses import dataclass, field

from ...errors import ArgumentError
from ...urls import without_secrets

WEB = ("https", "http")
BUCKETS = ("s3", "gs", "hf")
_OTHER_NAMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "huggingface": "hf"}


@dataclass(frozen=True)
class Address:
    """A URL that pybpe can read.

    Attributes:
        scheme: "s3", "https" and so on.
        name: the URL without secrets, for messages and files.
        url: the URL to open. It may contain a signature or a password.
        bucket, path: what the URL names, in a store.
    """

    scheme: str
    name: str
    url: str = field(repr=False)
    bucket: str = field(repr=False)
    path: str = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parses a URL. Raises ArgumentError if pybpe cannot read it."""
        scheme, _, where = url.partition("://")
        bucket, _, path = where.lstrip("/").partition("/")
        name = without_secrets(url)
        problem = None
        if "::" in name:
            problem = "pybpe does not read chained URLs: pass the URL of the file itself"
        elif scheme not in WEB + BUCKETS:
            problem = _advice(scheme.lower(), name.partition("://")[2])
        elif not bucket:
            problem = f"this URL names no file: expected {scheme}://, a name, and a path"
        elif scheme in BUCKETS and glob.has_magic(bucket):
            problem = "the name of a bucket cannot contain *, ? or [: name one bucket"
        elif scheme == "s3" and "@" in bucket:
            problem = "pybpe does not read keys in an S3 URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if problem is not None:
            raise ArgumentError(f"{name}: {problem}")
        return cls(scheme, name, url, bucket, path)


def _advice(scheme: str, where: str) -> str:
    if scheme == "file":
        return f"pass the path itself: /{where.lstrip('/')}"
    known = _OTHER_NAMES.get(scheme, scheme)
    if known in WEB + BUCKETS:
        return f"write {known}://{where}"
    return f"pybpe cannot read {scheme}:// URLs, only s3, gs, hf, https and http: copy the file here first"
