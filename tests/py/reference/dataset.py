"""The token streams of a corpus, by definition: whole documents in memory, one after another."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pybpe

EOT = "<|endoftext|>"


def documents_of(path: Path, kind: str) -> list[str]:
    """Returns the documents of a file."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "surrogateescape")
    if kind == "jsonl":
        found = [json.loads(line)["text"] for line in text.split("\n") if line.strip()]
    elif kind == "special":
        found = text.split(EOT)
    elif kind == "line":
        found = [line.removesuffix("\r") for line in text.split("\n")]
    elif kind == "blank":
        found = [part.strip("\r\n") for part in re.split(r"\n(?:\r?\n)+", text)]
    else:
        found = [text]
    return [document for document in found if document]


def streams(
    tok: pybpe.Tokenizer, documents: list[tuple[str, bool]], split_of: Callable[[bytes], int], splits: int, eot: str
) -> list[list[int]]:
    """Returns the ids of each split.

    Args:
        documents: each with whether it is ordinary text, in which no special token is recognized.
        split_of: the split of a document.
        eot: "prepend", "append" or "none".
    """
    found: list[list[int]] = [[] for _ in range(splits)]
    for text, ordinary in documents:
        data = text.encode("utf-8", "surrogateescape")
        ids = tok.encode_ordinary(data) if ordinary else tok.encode(data)
        mark = [] if eot == "none" else [tok.eot_token]
        found[split_of(data)] += mark + ids if eot == "prepend" else ids + mark
    return found
