"""workspace: from a corpus to a folder in which unmodified llm.c starts training.

llm.c's CPU trainer has its paths compiled in, so everything lies where it looks, seen from the folder:

    gpt2_124M.bin                                   the model (fp32; gpt2_124M_bf16.bin for bf16)
    gpt2_tokenizer.bin                              the tokenizer
    dev/data/tinyshakespeare/tiny_shakespeare_*.bin links to the first shards, which the CPU trainer reads
    data/                                           all shards, tokenizer.json, manifest.json
    README.md                                       the commands, computed for this data
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import pybpe
from pybpe import _binding
from pybpe.dataset.folders import make_folder
from pybpe.errors import ArgumentError, LimitError
from pybpe.model import CONTROL_TOKENS
from pybpe.pretokenize import Inputs

from .batch import CPU_BATCH
from .check import check
from .checkpoint import check_dtype
from .faults import too_small
from .gpt2_config import GPT2Config
from .initialization import write_random_checkpoint

CUDA_B = 4  # train_gpt2.cu's default
MODEL_NAMES = {"fp32": "gpt2_124M.bin", "bf16": "gpt2_124M_bf16.bin"}
TOKENIZER_NAME = "gpt2_tokenizer.bin"
CPU_DATA = os.path.join("dev", "data", "tinyshakespeare", "tiny_shakespeare_{}.bin")


@dataclass(frozen=True)
class Workspace:
    """What was made.

    Attributes:
        folder: where.
        tokenizer, manifest, config: the parts.
        name: of the shards.
        dtype: of the model.
    """

    folder: str
    tokenizer: pybpe.Tokenizer
    manifest: pybpe.Manifest
    config: GPT2Config
    name: str
    dtype: str


def make_workspace(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    vocab_size: int = 20000,
    special_tokens: Sequence[str] = CONTROL_TOKENS,
    pattern: str = "gpt2",
    min_frequency: int = 2,
    depth: int = 12,
    layers: int | None = None,
    heads: int | None = None,
    channels: int | None = None,
    context: int = 1024,
    dtype: str = "fp32",
    pad: int = 128,
    seed: int = 42,
    splits: Sequence[float] = (8, 1, 1),
    split_by: str = "hash",
    workers: int | None = None,
    progress: bool | None = None,
) -> Workspace:
    """Splits a corpus, trains a tokenizer on the train split, encodes all, and writes a random model for it.

    Args:
        inputs, special_tokens, pattern, min_frequency, splits, split_by, workers, progress: as in
            `pybpe.prepare`.
        vocab_size: tokens; fewer come out if the text is too short for so many.
        depth: a model of llm.c's table (6, 12, 24, ...); layers, heads and channels change parts of it.
        context: maxT, at least 64 for the CPU trainer.
        dtype: "fp32" (CPU, or CUDA built with PRECISION=FP32) or "bf16" (CUDA as built by default).
        pad: Vp is the least multiple of this above V.
        seed: of the model's weights.

    Raises:
        LimitError: a split is too small for one batch; it says the largest B and T that fit.
        ArgumentError, FileError.
    """
    check_dtype(dtype)
    if context < CPU_BATCH.T:
        raise ArgumentError(f"context must be at least {CPU_BATCH.T}, llm.c's T on the CPU, not {context}")
    if END_TOKEN not in special_tokens:
        raise ArgumentError(f"special_tokens must have {END_TOKEN}: llm.c starts its samples from it")
    shape: dict[str, int | None] = {"layers": layers, "heads": heads, "channels": channels}
    GPT2Config.of_depth(depth, vocab_size, context, pad, **shape)  # refused now, not after training
    folder = make_folder(out)
    data = make_folder(os.path.join(folder, "data"))
    name = "corpus"
    tok, manifest = pybpe.prepare(
        inputs,
        data,
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        pattern=pattern,
        min_frequency=min_frequency,
        splits=splits,
        split_by=split_by,
        name=name,
        min_shard_tokens=0,
        workers=workers,
        progress=progress,
    )
    _check_sizes(manifest)
    config = GPT2Config.of_depth(depth, tok.n_vocab, context, pad, **shape)
    tok.save_bin(os.path.join(folder, TOKENIZER_NAME))
    write_random_checkpoint(os.path.join(folder, MODEL_NAMES[dtype]), config, dtype=dtype, seed=seed)
    _link_cpu_data(folder, manifest)
    workspace = Workspace(folder, tok, manifest, config, name, dtype)
    _binding.write_file(os.path.join(folder, "README.md"), readme(workspace).encode("utf-8"))
    _, findings = check([folder], CPU_BATCH)
    if findings:
        raise LimitError(f"the workspace is not fit for llm.c: {findings[0]}")
    return workspace


END_TOKEN = CONTROL_TOKENS[0]


def _check_sizes(manifest: pybpe.Manifest) -> None:
    for split in ("train", "val"):
        for record in manifest.shards.get(split, []):
            if record.tokens < CPU_BATCH.min_tokens:
                raise LimitError(f"the {split} split: {too_small(record.tokens, CPU_BATCH)}")


def _link_cpu_data(folder: str, manifest: pybpe.Manifest) -> None:
    """Relative links, so that the workspace can be moved."""
    make_folder(os.path.join(folder, os.path.dirname(CPU_DATA)))
    for split in ("train", "val"):
        if manifest.shards.get(split):
            link = os.path.join(folder, CPU_DATA.format(split))
            target = os.path.join("..", "..", "..", "data", manifest.shards[split][0].file)
            if os.path.lexists(link):
                os.unlink(link)
            os.symlink(target, link)


def cuda_batch(workspace: Workspace) -> tuple[int, int]:
    """B and T for one GPU: T as long as the context and the data allow, B llm.c's default or what fits."""
    smallest = min(r.tokens for split in ("train", "val") for r in workspace.manifest.shards.get(split, []))
    T = min(workspace.config.max_seq_len, smallest - 1)
    return min(CUDA_B, max(1, (smallest - 1) // T)), T


def readme(workspace: Workspace) -> str:
    """The README.md of a workspace."""
    config, manifest = workspace.config, workspace.manifest
    B, T = cuda_batch(workspace)
    train = manifest.split_tokens("train")
    model = MODEL_NAMES[workspace.dtype]
    cuda = f"train_gpt2cu -i 'data/{workspace.name}_train_*.bin' -j 'data/{workspace.name}_val_*.bin' -e {model}"
    build = "make train_gpt2cu" + (" PRECISION=FP32" if workspace.dtype == "fp32" else "")
    lines = [
        "# A llm.c workspace, made by pybpe",
        "",
        f"- tokenizer: {config.vocab_size} tokens, padded to {config.padded_vocab_size} in the model;"
        f" end of text is id {workspace.tokenizer.eot_token}",
        "- tokens: " + ", ".join(f"{split} {manifest.split_tokens(split)}" for split in manifest.shards),
        f"- model: {config.num_parameters} random parameters ({workspace.dtype}), {config.num_layers} layers,"
        f" {config.num_heads} heads, {config.channels} channels, context {config.max_seq_len}",
        "",
        "Run everything from this folder; `LLMC` is where llm.c was built.",
        "",
        "## CPU",
        "",
    ]
    if workspace.dtype == "fp32":
        lines += [
            "```sh",
            "OMP_NUM_THREADS=$(nproc) $LLMC/train_gpt2    # built with: make train_gpt2",
            "```",
            "",
            f"B is 4 and T 64, compiled in: {train // CPU_BATCH.min_tokens} steps are one epoch; it does 40. The"
            f" first loss is near ln({config.vocab_size}).",
        ]
    else:
        lines.append("The CPU trainer reads fp32 only: make the workspace with `--dtype fp32`.")
    lines += [
        "",
        "## One GPU",
        "",
        "```sh",
        f"$LLMC/{cuda} -b {B} -t {T} -h 0    # built with: {build}",
        "```",
        "",
        f"{max(1, train // (B * T))} steps are one epoch.",
        "",
        "## Several GPUs",
        "",
        "```sh",
        f"mpirun -np 2 $LLMC/{cuda} -b {max(1, B // 2)} -t {T if B > 1 else max(1, T // 2)} -h 0",
        "```",
        "",
        "Every shard must hold processes x B x T + 1 tokens.",
        "",
        "## Flags",
        "",
        "- `-h 0`: no HellaSwag, whose file is made for GPT-2's own vocabulary.",
        "- `-v` is how often the validation loss is computed. It is not the vocabulary: that comes from the header",
        f"  of {model}, and no flag sets it.",
        "- `-e` names the model to start from; a descriptor such as `d12` would make one with GPT-2's vocabulary.",
        "",
        "`pybpe llmc check . -b B -t T -n PROCESSES` tells whether these files serve another batch.",
    ]
    return "\n".join(lines) + "\n"
