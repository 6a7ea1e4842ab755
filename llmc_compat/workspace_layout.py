"""A workspace: a folder in which unmodified llm.c starts training.

llm.c's CPU trainer has its paths compiled in, so everything is placed where it looks, relative to the folder:

    gpt2_124M.bin                                   the model (fp32; gpt2_124M_bf16.bin for bf16)
    gpt2_tokenizer.bin                              the tokenizer
    dev/data/tinyshakespeare/tiny_shakespeare_*.bin links to the first shards, which the CPU trainer reads
    data/                                           all shards, tokenizer.json, manifest.json
    README.md                                       the commands, computed for this data
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import pybpe

from .batch import CPU_BATCH, Batch
from .checks.files import MODEL_NAMES
from .evals import COMPLETIONS, LLMC_PATH
from .gpt2_config import GPT2Config

NAME = "corpus"  # the shards' name prefix
_T_STEP = 64  # CUDA needs multiples of 4; its kernels favor larger ones
_DEFAULT_B = 4  # train_gpt2.cu's


@dataclass(frozen=True)
class Workspace:
    """What `make_workspace` made.

    Attributes:
        folder: the workspace.
        tokenizer, manifest, config: its parts.
        dtype: the model's type.
    """

    folder: str
    tokenizer: pybpe.Tokenizer
    manifest: pybpe.Manifest
    config: GPT2Config
    dtype: str

    @property
    def model_name(self) -> str:
        """The checkpoint's file."""
        return MODEL_NAMES[self.dtype]

    def shards(self, split: str) -> str:
        """The pattern by which llm.c finds the shards of a split."""
        return f"data/{NAME}_{split}_*.bin"


# ----------------------------------------------------------------------------------------------------
# README.md: the commands that train in the workspace, computed for its data


def gpu_batch(workspace: Workspace, processes: int = 1) -> Batch:
    """Returns a batch for which every shard is large enough: the longest T that the model and the shards allow,
    in steps of 64, or the length of packed rows; and train_gpt2.cu's B (4, over all processes) or what fits."""
    room = (_smallest_shard(workspace) - 1) // processes
    T = _row_length(workspace) or min(workspace.config.max_seq_len, room) // _T_STEP * _T_STEP
    return Batch(max(1, min(_DEFAULT_B // processes, room // T)), T, processes)


def _row_length(workspace: Workspace) -> int | None:
    """Returns the tokens per row if the shards have packed rows."""
    packing = workspace.manifest.packing
    return None if packing is None else int(packing["sequence_length"])


def _smallest_shard(workspace: Workspace) -> int:
    shards = workspace.manifest.shards
    return min(record.tokens for split in ("train", "val") for record in shards[split])


def readme(workspace: Workspace) -> str:
    """Returns the README's text."""
    parts = (_head(workspace), _cpu(workspace), _gpu(workspace), _gpus(workspace), _flags(workspace))
    return "\n\n".join(parts) + "\n"


def _head(workspace: Workspace) -> str:
    config, manifest = workspace.config, workspace.manifest
    tokens = ", ".join(f"{split} {manifest.split_tokens(split)}" for split in manifest.shards)
    return f"""# An llm.c workspace, made by pybpe

- tokenizer: {config.vocab_size} tokens, padded to {config.padded_vocab_size} in the model; end-of-text id \
{workspace.tokenizer.eot_token}
- tokens: {tokens}
- model: {config.num_parameters} random parameters ({workspace.dtype}), {config.num_layers} layers, \
{config.num_heads} heads, {config.channels} channels, sequence length {config.max_seq_len}

Run everything from this folder. `LLMC` is the folder where llm.c was built."""


def _cpu(workspace: Workspace) -> str:
    if workspace.dtype != "fp32":
        return "## CPU\n\nThe CPU trainer reads only fp32: make the workspace with `--dtype fp32`."
    shards = workspace.manifest.shards["train"]
    samples = (shards[0].tokens - 1) // (CPU_BATCH.B * CPU_BATCH.T)
    first = f" over the first of {len(shards)} shards, the only one that it reads," if len(shards) > 1 else ""
    V = workspace.config.vocab_size
    return f"""## CPU

```sh
OMP_NUM_THREADS=$(nproc) $LLMC/train_gpt2    # built with: make train_gpt2
```

B is 4 and T is 64, both compiled in. One epoch{first} takes {samples} steps; the trainer runs 41. The first loss is \
near ln({V}) = {log(V):.2f}.{_cpu_rows(workspace)}"""


def _cpu_rows(workspace: Workspace) -> str:
    """Returns a warning if the CPU trainer's sequences are not the packed rows."""
    length = _row_length(workspace)
    if length in (None, CPU_BATCH.T):
        return ""
    return (
        f"\n\nThe shards have packed rows of {length} tokens: the CPU trainer's sequences begin inside them. To train"
        f" on rows there, use `--sequence-length {CPU_BATCH.T}`, or set T to {length} in train_gpt2.c."
    )


def _train_command(workspace: Workspace, batch: Batch) -> str:
    train, val = workspace.shards("train"), workspace.shards("val")
    return f"$LLMC/train_gpt2cu -i '{train}' -j '{val}' -e {workspace.model_name} -b {batch.B} -t {batch.T} -h 0"


def _steps(workspace: Workspace, batch: Batch) -> int:
    """Returns the number of steps per epoch, as train_gpt2.cu computes it."""
    return workspace.manifest.split_tokens("train") // (batch.processes * batch.B * batch.T)


def _gpu(workspace: Workspace) -> str:
    batch = gpu_batch(workspace)
    build = "make train_gpt2cu" + (" PRECISION=FP32" if workspace.dtype == "fp32" else "")
    return f"""## One GPU

```sh
{_train_command(workspace, batch)}    # built with: {build}
```

One epoch is {_steps(workspace, batch)} steps, after which the trainer stops. With T = {batch.T}, the shards allow \
B up to {(_smallest_shard(workspace) - 1) // batch.T}; raise `-b` as far as the GPU's memory allows."""


def _gpus(workspace: Workspace) -> str:
    batch = gpu_batch(workspace, processes=2)
    return f"""## Several GPUs

Build in the same way on a machine with MPI and NCCL. For two GPUs:

```sh
mpirun -np 2 {_train_command(workspace, batch)}
```

One epoch is {_steps(workspace, batch)} steps. Every shard must hold at least processes x B x T + 1 tokens, here \
{batch.needs()}."""


def _flags(workspace: Workspace) -> str:
    return f"""## Flags

- `-h 0` skips HellaSwag, because llm.c's own file of questions has GPT-2's ids. To evaluate with `-h 1` and `-b`
  {COMPLETIONS} or more, make `{LLMC_PATH}` in this folder with `pybpe llmc eval`.
- `-v` sets how often the validation loss is computed, not the vocabulary. The vocabulary comes from the header of
  {workspace.model_name}, and no flag sets it.
- `-o log -n 1000` saves a checkpoint every 1000 steps and after the last one. The same command with `-y 1` resumes from
  the last checkpoint; with a larger `-x` (the number of steps) it trains longer.
- `-e` names the model to start from; a descriptor such as `d12` would create a model with GPT-2's vocabulary.

`pybpe llmc check . -b B -t T -n PROCESSES` checks whether these files work with another batch size."""
