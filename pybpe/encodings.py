"""Loads OpenAI's encodings by name: from tiktoken's cache, or else from OpenAI's server, as tiktoken does.

The content of a file is used only if it has the SHA-256 that tiktoken's source requires. The pattern and the special
tokens are never read from a file. They are in the table below. So a damaged file, or another vocabulary under the right
name, is never used.

pybpe does not ask tiktoken, if it is installed: it has the same cache and the same server.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from . import _binding
from ._lazy import hashlib, tempfile
from .arguments import by_caller, instance, shown
from .control_tokens import END_OF_TEXT
from .errors import ArgumentError, file_error, warn
from .formats import tiktoken
from .model import Model
from .pattern import Pattern
from .reading.streams import read_file
from .tokenizer import Tokenizer, of_model

_SERVER = "https://openaipublic.blob.core.windows.net"
_TIMEOUT = 10.0  # seconds without an answer
_MOST_BYTES = 1 << 24  # of a file. The largest one has 3.6 MB


class _Encoding(NamedTuple):
    files: Mapping[str, str]  # a path on the server -> SHA-256. These files have all of their ranks
    # pattern, specials: how it splits text, and special token -> id. An id of several decodes to the first of them.
    pattern: str
    specials: Mapping[str, int]


_R50K = {
    "/encodings/r50k_base.tiktoken": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "/gpt-2/encodings/main/encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
_P50K = {"/encodings/p50k_base.tiktoken": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"}
_CL100K = {"/encodings/cl100k_base.tiktoken": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"}
_O200K = {"/encodings/o200k_base.tiktoken": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"}
_OF_O200K = {END_OF_TEXT: 199999, "<|endofprompt|>": 200018}
_HARMONY = {
    "<|startoftext|>": 199998,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}
_RESERVED = sorted(set(range(200000, 201088)).difference(_HARMONY.values()))
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_ENCODINGS = {
    "gpt2": _Encoding(_R50K, "gpt2", {END_OF_TEXT: 50256}),
    "r50k_base": _Encoding(_R50K, "gpt2", {END_OF_TEXT: 50256}),
    "p50k_base": _Encoding(_P50K, "gpt2", {END_OF_TEXT: 50256}),
    "p50k_edit": _Encoding(_P50K, "gpt2", {END_OF_TEXT: 50256, **dict(zip(_FIM, range(50281, 50284)))}),
    "cl100k_base": _Encoding(
        _CL100K,
        "cl100k",
        {END_OF_TEXT: 100257, **dict(zip(_FIM, range(100258, 100261))), "<|endofprompt|>": 100276},
    ),
    "o200k_base": _Encoding(_O200K, "o200k", _OF_O200K),
    "o200k_harmony": _Encoding(
        _O200K, "o200k", {**_OF_O200K, **_HARMONY, **{f"<|reserved_{i}|>": i for i in _RESERVED}}
    ),
}
_OTHER_NAMES = {"gpt-2": "gpt2", "r50k": "r50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}
NAMES = (*_ENCODINGS, *_OTHER_NAMES)


def get_encoding(name: str) -> Tokenizer:
    """Returns OpenAI's encoding with this name: "gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base",
    "o200k_base" or "o200k_harmony".

    The vocabulary comes from tiktoken's cache: the folder that TIKTOKEN_CACHE_DIR names, or "data-gym-cache" in the
    folder of temporary files. If it is not there, pybpe downloads it from OpenAI's server, as tiktoken does, and puts
    it there. Its SHA-256 is always checked.

    Raises:
        ArgumentError: there is no encoding with this name.
        FileError: the vocabulary cannot be downloaded. The message says which file is needed, and where to put it.
    """
    instance("name", name, str, "a str such as 'gpt2'")
    known = _ENCODINGS.get(_OTHER_NAMES.get(name, name))
    if known is None:
        raise ArgumentError(f"there is no encoding {shown(name)}: use one of {', '.join(_ENCODINGS)}")
    folder = _cache_folder()
    data = _cached(folder, known) if folder else None
    return of_model(_model(data or _downloaded(folder, name, known), known, f"the encoding {name!r}"))


def _cache_folder() -> str:
    """Returns the folder of tiktoken's cache, or "" if the user wants none."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    return os.path.join(tempfile.gettempdir(), "data-gym-cache") if folder is None else folder


def _key(path: str) -> str:
    """Returns the name in tiktoken's cache of a file on the server."""
    return hashlib.sha1(f"{_SERVER}{path}".encode(), usedforsecurity=False).hexdigest()


def _cached(folder: str, known: _Encoding) -> bytes | None:
    """Returns the content of one of an encoding's files, if the cache has it."""
    for path, sha256 in known.files.items():
        file = os.path.join(folder, _key(path))
        if os.path.isfile(file):  # reading a pipe could wait forever
            with suppress(OSError):  # such as one of another user
                data = read_file(file)
                if hashlib.sha256(data).hexdigest() == sha256:
                    return data
    return None


def _downloaded(folder: str, name: str, known: _Encoding) -> bytes:
    """Downloads the first of an encoding's files, and puts it into the cache, if there is one."""
    from http.client import HTTPException  # these two take 40 ms
    from urllib.request import urlopen

    path, sha256 = next(iter(known.files.items()))
    url, key = f"{_SERVER}{path}", _key(path)
    try:
        with urlopen(url, timeout=_TIMEOUT) as response:
            data: bytes = response.read(_MOST_BYTES)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise OSError("what came is damaged or another file: its SHA-256 is wrong")
    except (OSError, HTTPException) as error:
        reason = " ".join(str(getattr(error, "reason", error)).split())
        instead = by_caller("pass its tokenizer.json to Tokenizer.from_file", "use its tokenizer.json")
        raise file_error(
            errno.EIO,
            f"{name} is not in tiktoken's cache, and {url} cannot be downloaded ({reason:.100}): save that file as"
            f" {key} in a folder, and set TIKTOKEN_CACHE_DIR to this folder, or {instead}",
        ) from None
    if folder:
        try:
            os.makedirs(folder, exist_ok=True)
            _binding.write_file(os.path.join(folder, key), data)
        except OSError as error:
            warn(
                f"{name} will be downloaded again next time, because it cannot be put into tiktoken's cache ({error}):"
                " set TIKTOKEN_CACHE_DIR to a folder that can be written"
            )
    return data


def _model(data: bytes, known: _Encoding, title: str) -> Model:
    """Returns the encoding from the content of one of its files."""
    pattern = Pattern(known.pattern)
    if data[:1] == b"{":  # encoder.json
        rules = _binding.VocabRules(known.specials.values(), known.specials[END_OF_TEXT], pattern.number, None)
        spans = (0, len(data), len(data), len(data) + 2)  # its merges are the list that is appended
        vocab = _binding.Vocab.from_json(data + b"[]", spans, known.specials, rules)
        vocab = _binding.Vocab.new(vocab.parts[0], None, rules)
        return Model(*vocab.parts, dict(known.specials), pattern)
    texts = {i: text.encode() for text, i in reversed([*known.specials.items()])}
    return tiktoken.from_text(data, known.specials, pattern, title, texts.__getitem__)
