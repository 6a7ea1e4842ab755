"""Parses URLs, and refuses those that pybpe cannot read."""

from __future__ import annotations

import glob
from dataclasses import dataclass, field

from ...errors import ArgumentError
from ...urls import without_secrets

WEB = ("https", "http")
BUCKETS = ("s3", "gs", "hf", "memory")  # memory is fsspec's file system for tests
_OTHER_NAMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "file": "", "huggingface": "hf"}


@dataclass(frozen=True)
class Address:
    """A URL.

    Attributes:
        scheme: "s3", "https" and so on.
        name: the URL without secrets, for messages and files.
        url: the URL to open. It may contain a signature or a password.
    """

    scheme: str
    name: str
    url: str = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parses a URL. Raises ArgumentError if pybpe cannot read it."""
        scheme, name = url.partition("://")[0], without_secrets(url)
        where = name.partition("://")[2]
        if "::" in name:
            raise ArgumentError(f"{name}: pybpe does not read chained URLs: pass the URL of the file itself")
        if scheme not in WEB + BUCKETS:
            raise ArgumentError(f"{name}: {_advice(scheme.lower(), where)}")
        if not where.strip("/"):
            raise ArgumentError(f"{name}: this URL names no file: expected {scheme}://, a name, and a path")
        bucket = url.partition("://")[2].partition("/")[0]
        if scheme in BUCKETS and glob.has_magic(bucket):
            raise ArgumentError(f"{name}: the name of a bucket cannot contain *, ? or [: name one bucket")
        if scheme == "s3" and "@" in bucket:
            raise ArgumentError(
                f"{name}: pybpe does not read keys in an S3 URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        return cls(scheme, name, url)

    @property
    def is_web(self) -> bool:
        """Whether a web server has the file. Such a server does not list files."""
        return self.scheme in WEB


def _advice(scheme: str, where: str) -> str:
    if scheme == "file":
        return f"pass the path itself: /{where.lstrip('/')}"
    known = _OTHER_NAMES.get(scheme, scheme if scheme in WEB + BUCKETS else None)
    if known is not None:
        return f"write {known}://{where}"
    return f"pybpe cannot read {scheme}:// URLs, only s3, gs, hf, https and http: copy the file here first"
