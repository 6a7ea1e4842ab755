"""Writes one file of each of pybpe's formats to tests/vectors/versions/VERSION, with what is in it.

    python tests/vectors/versions/make.py

Run it once for each release, and commit the folder; never change a folder of an earlier release. Every later version
must read these files to the same ids: tests/py/test_versions.py.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path

import pybpe
from llmc_compat.evals import Example, write_eval
from pybpe._version import __version__

SPECIALS = ["<|endoftext|>", "<|padding|>", "<|user|>"]
SENTENCES = [
    "The cat sat on the mat, and the dog's 1234567 friends didn't mind.",
    "我能吞下玻璃而不伤身体。今天天气很好，我们去公园散步吧。",
    "Größe, naïve café, Ωμέγα, привет мир! ٣٤٥ हिन्दी 🙂👍🏽",
    "  def f(x):\n\treturn x**2  # comment\r\n\r\n",
    "a<|user|>b <|endoftext|><|pad|> \u00a0\u2003end\u0301",
]
# Every setting that a tokenizer file stores.
TOKENIZERS: dict[str, dict[str, object]] = {
    "gpt2": {},
    "cl100k-nfc": {"pattern": "cl100k", "normalizer": "NFC", "special_ids": "last"},
    "o200k-nfkc": {"pattern": "o200k", "normalizer": "NFKC", "tie_break": "huggingface"},
    "llama3-digits": {"pattern": "llama3", "digits": 1, "special_ids": "after_bytes"},
    "qwen2-right": {"pattern": "gpt2", "digits": "3-from-right"},
    "custom": {"pattern": r"\p{L}+|\p{N}{1,2}|\s+|[^\s\p{L}\p{N}]+"},
    "steps": {"pattern": r"\p{N}(?then)gpt2"},
    "superwords": {"superwords": True},
    "whole-characters": {"whole_characters": True},
}
FORMATS = ("llmc", "raw", "npy", "megatron", "webdataset")


def texts() -> list[str]:
    """Returns documents that are all different."""
    return [" ".join(SENTENCES[(i + j) % 4] for j in range(3)) + f" Document {i}." for i in range(60)]


def probes() -> list[bytes]:
    """Returns the texts whose ids are recorded."""
    return [sentence.encode() for sentence in SENTENCES] + [b"\xff\xfe\x00 caf\xc3", b"", " ".join(SENTENCES).encode()]


def write_tokenizers(folder: Path) -> dict[str, list[list[int]]]:
    """Writes the tokenizers in every format that can represent them, and returns the ids of the probes by file name."""
    ids = {}
    for name, settings in TOKENIZERS.items():
        tok = pybpe.train(iter(texts()), vocab_size=360, special_tokens=SPECIALS, **settings)  # type: ignore[arg-type]
        tok.save(folder / f"{name}.json")
        tok.save(folder / f"{name}.bin")
        ids[name] = [tok.encode(probe) for probe in probes()]
    gpt2 = pybpe.Tokenizer.from_file(folder / "gpt2.json")
    gpt2.save_pretrained(folder / "gpt2-pretrained")
    gpt2.prune(range(300), remap=folder / "remap.npy").save(folder / "pruned.json")
    return ids


def write_data(folder: Path, tok: pybpe.Tokenizer) -> None:
    """Writes token files in every format, packed rows, word counts, and an eval file."""
    source = folder / "documents.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts()))
    for form in FORMATS:
        pybpe.binarize(tok, source, folder / form, format=form, splits=(8, 1, 1), sequence_length=512, workers=1)
    pybpe.pack(tok, folder / "llmc", folder / "packed", sequence_length=256, pad="<|padding|>")
    pybpe.count_words(iter(texts()), special_tokens=SPECIALS).save(folder / "words.counts")
    endings = [tok.encode(" mat"), tok.encode(" dog"), tok.encode(" friends"), tok.encode(" 12")]
    write_eval(folder / "questions.bin", [Example(tok.encode("The cat sat on the"), endings, label=0)])


def main() -> None:
    folder = Path(__file__).parent / __version__
    if folder.exists():
        sys.exit(f"{folder} exists: remove it first if this version is not released yet")
    try:
        folder.mkdir()
        ids = write_tokenizers(folder)
        write_data(folder, pybpe.Tokenizer.from_file(folder / "gpt2.json"))
        content = {"probes": [base64.b64encode(probe).decode() for probe in probes()], "ids": ids}
        (folder / "expected.json").write_text(json.dumps(content) + "\n")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


if __name__ == "__main__":
    main()
