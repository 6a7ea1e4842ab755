"""What is wrong with a folder though each of its files is sound: files that are missing, left over, or of another run.

llm.c takes the shards that a pattern finds, so it does not notice that one is missing, or that one of another corpus
lies between them.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping

from pybpe import Tokenizer
from pybpe.dataset.manifest import Manifest
from pybpe.errors import Error, FormatError

from .faults import MODEL_TYPES, Finding, ShardFacts, TokenizerFacts

TOKENIZER_NAME = "gpt2_tokenizer.bin"  # compiled into llm.c's trainers
CPU_DATA = os.path.join("dev", "data", "tinyshakespeare", "tiny_shakespeare_{}.bin")  # into the one for the CPU
_TRAINED_ON = ("train", "val")
_GPT2_TOKENS = 50257  # with these alone llm.c can make a model itself: -e d12


# ----------------------------------------------------------------------------------------------------
# What the manifest says


def manifest_faults(
    manifests: Iterable[str], tokenizers: Mapping[str, TokenizerFacts], shards: Mapping[str, ShardFacts]
) -> Iterator[Finding]:
    """What differs from a manifest of ours: its shards, and the tokenizer that encoded them."""
    for path in manifests:
        try:
            manifest = Manifest.load(os.path.dirname(path) or ".")
        except FormatError:  # any other program's file of that name
            continue
        yield from _tokenizer_faults(path, manifest, tokenizers)
        if manifest.settings.get("format") == "llmc":
            yield from _shard_faults(path, manifest, shards)


def _tokenizer_faults(path: str, manifest: Manifest, tokenizers: Mapping[str, TokenizerFacts]) -> Iterator[Finding]:
    """Tokenizers that have not encoded the shards."""
    expected = manifest.tokenizer.get("fingerprint")
    for name, facts in tokenizers.items():
        # Without merges and pattern behind the tokens, the fingerprint is not the whole tokenizer's.
        if expected is None or not facts.is_complete:
            continue
        try:
            found = Tokenizer.from_file(name).model.fingerprint()
        except Error as error:
            fault = str(error).removeprefix(f"{name}: ")
            yield Finding(name, fault, "reads its tokens all the same", "save it again with pybpe")
            continue
        if found != expected:
            fault = f"is not the tokenizer that encoded the shards of {path}"
            effect = "trains, but prints its samples as other text"
            yield Finding(name, fault, effect, "copy the tokenizer.bin that was written with the shards")


def _shard_faults(path: str, manifest: Manifest, shards: Mapping[str, ShardFacts]) -> Iterator[Finding]:
    """Shards of the train and val split that are missing, of another length, or none of the manifest's."""
    folder = os.path.dirname(path)
    tokens = {os.path.realpath(name): facts.tokens for name, facts in shards.items()}
    again = "write the shards again, with the command that wrote them"
    for records in (manifest.shards.get(split, []) for split in _TRAINED_ON):
        for record in records:
            name = os.path.join(folder, record.file)
            found = tokens.get(os.path.realpath(name), record.tokens)
            if not os.path.exists(name):
                yield Finding(
                    name,
                    f"is missing, and {path} lists it",
                    "trains on the others alone, or aborts if there is none",
                    again,
                )
            elif found != record.tokens:
                fault = f"{found} tokens, and {path} says {record.tokens}"
                yield Finding(name, fault, "trains on what is there", again)
        listed = {record.file for record in records}
        for prefix in {record.file.removesuffix("000000.bin") for record in records[:1]}:
            for name in sorted(glob.glob(glob.escape(os.path.join(folder, prefix)) + "*.bin")):
                if os.path.basename(name) not in listed:
                    remedy = "move it elsewhere"
                    yield Finding(name, f"is none of the shards that {path} lists", "trains on it as well", remedy)


# ----------------------------------------------------------------------------------------------------
# What llm.c looks for by name


def working_folder_faults(
    folders: Iterable[str], tokenizers: Mapping[str, TokenizerFacts], models: Iterable[str]
) -> Iterator[Finding]:
    """What is missing in a folder that llm.c is to be started in: one that has a tokenizer or data at the places that
    are compiled into llm.c. `models` are those that were found, sound or not."""
    for folder in folders:
        tokenizer = os.path.join(folder, TOKENIZER_NAME)
        data = {split: os.path.join(folder, CPU_DATA.format(split)) for split in _TRAINED_ON}
        has_data = [os.path.lexists(path) for path in data.values()]
        if not os.path.lexists(tokenizer) and any(has_data):
            effect = "prints ids in the place of its samples' text"
            yield Finding(tokenizer, "is missing", effect, "copy the tokenizer.bin that was written with the shards")
        if any(has_data) and not all(has_data):
            missing = data[_TRAINED_ON[has_data.index(False)]]
            yield Finding(missing, "is missing", "looks for TinyStories on the CPU, and aborts", "link a shard there")
        facts = tokenizers.get(tokenizer)
        has_model = any(models) or any(os.path.lexists(os.path.join(folder, name)) for name in MODEL_TYPES)
        if not has_model and facts is not None and facts.vocab_size != _GPT2_TOKENS:
            fault = f"there is no checkpoint for the {facts.vocab_size} tokens of {TOKENIZER_NAME}"
            remedy = f"pybpe llmc checkpoint new -t {tokenizer}"
            yield Finding(folder, fault, "aborts on the CPU, and has no other way to learn V on CUDA", remedy)
