"""The files that a model is trained with: text, tokenizer, shards and initial weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from cells import BATCH, LENGTH, Cell, Study
from division import EOT, divide

import pybpe
from llmc_compat.checkpoint import GPT2Config, write_random_checkpoint
from pybpe.tokens.binarization import binarize
from pybpe.tokens.manifest import Manifest

HELD_OUT = 250_000  # bytes
_SETTINGS = {"bpe": {}, "superwords": {"superwords": True}, "whole": {"whole_characters": True}}


class Files(NamedTuple):
    """What to pass to trainer.py, and what the report needs to know."""

    checkpoint: Path
    arguments: list[str]
    steps: int
    facts: dict[str, float]


def prepare_text(folder: Path, file: str) -> None:
    """Writes train.txt, held-out.json, which is a list of documents, and facts about them.

    Raises:
        ValueError: the folder has files made from another text.
    """
    facts = folder / "facts.json"
    source = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    if facts.exists():
        if json.loads(facts.read_text())["source"] != source:
            raise ValueError(f"{folder}: belongs to another text than {file}: use another folder (-o)")
        return
    folder.mkdir(parents=True, exist_ok=True)
    train, held, removed = divide(file, HELD_OUT)
    (folder / "train.txt").write_text(EOT.join(train), encoding="utf-8")
    (folder / "held-out.json").write_text(json.dumps(held), encoding="utf-8")
    sizes = {name: sum(len(block.encode()) for block in blocks) for name, blocks in (("train", train), ("held", held))}
    facts.write_text(json.dumps({"source": source, **sizes, "removed": removed}))


def prepare_cell(folder: Path, study: Study, cell: Cell) -> Files:
    """Makes what is missing of a cell's files, and decides the number of steps."""
    text = folder / cell.text
    tokenizer, shards = _tokens(text, cell.kind, cell.vocab_size)
    density = _bytes_per_token(shards)
    tokens = study.affordable(cell.vocab_size)
    if cell.basis == "text":
        tokens *= _bytes_per_token(_tokens(text, "bpe", cell.vocab_size)[1]) / density
    steps = round(tokens / (BATCH * LENGTH))
    checkpoint = folder / f"{cell.name}.bin"
    shape = GPT2Config.of_depth(
        12, cell.vocab_size, LENGTH, layers=study.layers, heads=max(1, study.channels // 16), channels=study.channels
    )
    write_random_checkpoint(checkpoint, shape, seed=cell.seed)
    arguments = [str(checkpoint), "--tokenizer", str(tokenizer), "--data", str(shards)]
    arguments += ["--held-out", str(text / "held-out.json"), "--steps", str(steps), "--seed", str(cell.seed)]
    seen = steps * BATCH * LENGTH
    return Files(checkpoint, arguments, steps, {"tokens": seen, "bytes": seen * density})


def _tokens(text: Path, kind: str, vocab_size: int) -> tuple[Path, Path]:
    """Returns a tokenizer and the folder of its shards."""
    tokenizer, shards = text / f"{kind}-{vocab_size}.json", text / f"{kind}-{vocab_size}"
    train = str(text / "train.txt")
    if not tokenizer.exists():
        pybpe.train(train, vocab_size=vocab_size, special_tokens=[EOT], progress=False, **_SETTINGS[kind]).save(
            tokenizer
        )
    tok = pybpe.Tokenizer.from_file(tokenizer)
    if tok.vocab_size != vocab_size:
        raise ValueError(f"{train}: gives {tok.vocab_size} tokens, not {vocab_size}: use more text")
    if not (shards / "manifest.json").exists():
        binarize(tok, train, shards, splits=(1, 0, 0), min_shard_tokens=0, progress=False)
    return tokenizer, shards


def _bytes_per_token(shards: Path) -> float:
    manifest = Manifest.load(shards)
    return manifest.text_bytes["train"] / manifest.split_tokens("train")
