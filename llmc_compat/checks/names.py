"""The names that are compiled into llm.c's trainers.

main in train_gpt2.c     gpt2_124M.bin, gpt2_tokenizer.bin, and the data of tiny Shakespeare, or else of TinyStories
main in train_gpt2.cu    gpt2_124M_bf16.bin, gpt2_tokenizer.bin, and tiny Shakespeare's, unless -e, -i, -j override
them;
                         with -h 1 HellaSwag's
"""

from __future__ import annotations

import os
import re

from llmc_compat.evals import LLMC_PATH

TOKENIZER_NAME = "gpt2_tokenizer.bin"
MODEL_NAMES = {"fp32": "gpt2_124M.bin", "bf16": "gpt2_124M_bf16.bin"}  # by type; the CPU trainer reads the first
CPU_DATA = os.path.join("dev", "data", "tinyshakespeare", "tiny_shakespeare_{}.bin")
STORIES_DATA = os.path.join("dev", "data", "tinystories", "TinyStories_{}.bin")
EVAL_PLACE = LLMC_PATH
TRAINED_ON = ("train", "val")
_SPLIT = re.compile(r".*(?:^|[_-])(train|val|test)(?:[_-].*)?\.bin", re.DOTALL)

PLACES = {
    TOKENIZER_NAME: "a tokenizer",
    **dict.fromkeys(MODEL_NAMES.values(), "a model checkpoint"),
    **{data.format(split): "a token shard" for data in (CPU_DATA, STORIES_DATA) for split in TRAINED_ON},
    EVAL_PLACE: "an eval file",
}


def place_of(path: str) -> str | None:
    """Returns the llm.c name that a path ends in, or None."""
    return next((place for place in PLACES if path == place or path.endswith(os.sep + place)), None)


def split_of(path: str) -> str | None:
    """Returns the split in a shard's name (train, val, test), or None."""
    match = _SPLIT.fullmatch(os.path.basename(path))
    return match[1] if match else None
