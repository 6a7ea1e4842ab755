"""Makes a workspace from a corpus: a folder where unmodified llm.c starts training.

llm.c's CPU trainer has its paths compiled in, so everything is placed where it looks, relative to the folder:

    gpt2_124M.bin                                   the model (fp32; gpt2_124M_bf16.bin for bf16)
    gpt2_tokenizer.bin                              the tokenizer
    dev/data/tinyshakespeare/tiny_shakespeare_*.bin links to the first shards, which the CPU trainer reads
    data/                                           all shards, tokenizer.json, manifest.json
    programs/, Makefile                             train.c and write.c: `make train`, `make write`
    README.md                                       the commands, computed for this data
    pybpe-workspace.json                            which files are ours: see PlacedFiles

The folder may be llm.c's own, where README.md and Makefile are llm.c's: ours are README.pybpe.md and pybpe.mk there.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import pybpe
from pybpe import _binding
from pybpe.arguments import chosen, param
from pybpe.errors import ArgumentError, Error, LimitError, ShardTooSmallError, file_errors
from pybpe.model import CONTROL_TOKENS, check_specials
from pybpe.model import end_of_text as find_end_of_text
from pybpe.pattern import Digits, PatternLike
from pybpe.reading.documents import name_it
from pybpe.reading.files import reading_for
from pybpe.reading.input_file import needs_text
from pybpe.reading.inputs import Inputs, ReadOptions
from pybpe.reading.planning import SplitOptions
from pybpe.reading.streams import file_sha256, open_unchanged, read_file
from pybpe.support import platform
from pybpe.support.output_files import (
    FOLDER,
    LOCK,
    give_name,
    make_folder,
    only_writer,
    remove_entry,
    remove_file,
    remove_work,
)
from pybpe.support.parallel import RunOptions
from pybpe.tokens.binarization import DatasetOptions
from pybpe.tokens.formats import OutputOptions
from pybpe.tokens.manifest import TOKENIZER_NAMES, manifest_name
from pybpe.tokens.output_folder import is_unfinished, token_file
from pybpe.tokens.preparation import prepare_dataset
from pybpe.training.plan import TrainOptions, TrainPlan

from .check import CPU_DATA, MODEL_NAMES, TOKENIZER_NAME, check
from .checkpoint import GPT2Config, ModelOptions, file_bytes, laptop_tokens, read_header, write_random_checkpoint
from .evals import COMPLETIONS, LLMC_PATH
from .shards import CPU_BATCH, Batch

MAX_VOCAB_SIZE = 65536
RECORD = "pybpe-workspace.json"
PROGRAMS = "programs"
NAME = "corpus"  # the shards' name prefix
_T_STEP = 64  # CUDA needs multiples of 4. Its kernels favor larger ones
_DEFAULT_B = 4  # train_gpt2.cu's


@dataclass(frozen=True)
class Workspace:
    """The result of `make_workspace`.

    Attributes:
        folder: the workspace.
        tokenizer, manifest, config: its parts.
        dtype: the model's type.
        readme, makefile: the names of these files. makefile is None if the model is not for the CPU.
        changed: the files that were made, replaced or removed: none if an equal call had made all of them. "data"
            stands for all token files.
    """

    folder: str
    tokenizer: pybpe.Tokenizer
    manifest: pybpe.Manifest
    config: GPT2Config
    dtype: str
    readme: str = "README.md"
    makefile: str | None = None
    changed: Sequence[str] = ()

    @property
    def model_name(self) -> str:
        """The checkpoint's file."""
        return MODEL_NAMES[self.dtype]

    def shards(self, split: str) -> str:
        """The pattern that llm.c uses to find the shards of a split."""
        return f"data/{NAME}_{split}_*.bin"

    @property
    def smallest_shard(self) -> int:
        """The tokens of the smallest shard that llm.c reads."""
        return min(record.tokens for split in ("train", "val") for record in self.manifest.shards[split])


def make_workspace(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    vocab_size: int = 20000,
    special_tokens: Sequence[str] = CONTROL_TOKENS,
    end_of_text: str | None = None,
    special_ids: str = "first",
    pattern: PatternLike | None = None,
    digits: Digits = None,
    normalizer: str | None = None,
    min_frequency: int = 0,
    max_token_length: int = 255,
    tie_break: str = "lexicographic",
    superwords: bool = False,
    transition: float | None = None,
    whole_characters: bool = False,
    depth: int | None = None,
    layers: int | None = None,
    heads: int | None = None,
    channels: int | None = None,
    sequence_length: int | None = None,
    dtype: str = "fp32",
    pad_vocab: int = 128,
    seed: int = 42,
    splits: Sequence[float] = (8, 1, 1),
    split_by: str = "auto",
    val_documents: int | None = None,
    shard_tokens: int = 10**8,
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    workers: int | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> Workspace:
    """Splits a corpus, trains a tokenizer on the train split, encodes all splits, and writes a random model.

    Args:
        inputs: as in `pybpe.prepare`.
        vocab_size: the number of tokens. A short text may give fewer.
        special_tokens, end_of_text, special_ids, pattern, digits, normalizer, min_frequency, max_token_length,
        tie_break, superwords, transition, whole_characters: the tokenizer's options, as in `pybpe.prepare`. One special
            token must be the end of text.
        depth: a model of llm.c's table (6, 12, 24, ...). layers, heads and channels override its values. None means a
            model that two cores train in half an hour. With "bf16" it means 12.
        sequence_length: maxT, at least 64 for the CPU trainer. None means 1024, or 256 without a depth.
        dtype: "fp32" (CPU, or CUDA built with PRECISION=FP32) or "bf16" (CUDA as built by default).
        pad_vocab: Vp is the smallest multiple of this above V. It must be a multiple of 8, for CUDA.
        seed: the random seed for the model's weights.
        splits, split_by, val_documents, shard_tokens, documents, text_key, encoding, keep_crlf, workers, progress: as
            in `pybpe.binarize`. The train and val splits are required.
        force: True replaces a workspace of other inputs or settings, trained models included. Otherwise the call makes
            only missing files, and files that an earlier call made for another model and nobody has changed since. It
            refuses to replace anything else.

    Raises:
        LimitError: a split is too small for one batch. The error gives the largest B and T that fit.
        ArgumentError, FileError.
    """
    arguments = locals()
    model = chosen(ModelOptions, arguments)
    training = chosen(TrainOptions, arguments, special_tokens=check_specials(special_tokens))
    read, split = chosen(ReadOptions, arguments), chosen(SplitOptions, arguments)
    output = OutputOptions(shard_tokens=shard_tokens, min_shard_tokens=CPU_BATCH.min_tokens, name=NAME)
    _check(training, read, split, model)
    folder = _binding.path_text(out)
    with only_writer(folder):
        placed = PlacedFiles(folder, RECORD, force)
        if not force:
            _check_place(folder, placed)
        options, run = DatasetOptions(read, split, output), RunOptions(workers, progress=progress)
        if os.path.exists(os.path.join(folder, manifest_name(folder))):
            raise ArgumentError(f"{folder}: has token files, so it cannot become a workspace: use another folder")
        data = os.path.join(folder, "data")
        before = _modified(data)
        try:
            with reading_for([folder], needs_text.get()):
                tok, manifest = prepare_dataset(inputs, data, training, options, run, force)
        except ShardTooSmallError as error:
            with only_writer(data, temporary=True):
                remove_work(data)  # no option of this call could use it
            needed = f"{error.tokens} tokens, but {CPU_BATCH.needs()} are needed"
            fit = CPU_BATCH.largest_fit(error.tokens)
            raise LimitError(f"{error.path}: {needed}; llm.c aborts; {fit}: use more text") from None
        model = model.for_text(tok.vocab_size, manifest.split_tokens("train"))
        workspace = Workspace(folder, tok, manifest, model.config(tok.vocab_size), dtype)
        try:
            workspace = _write_rest(workspace, seed, force, placed)
        except Error:
            remove_work(folder)
            raise
        changed = ["data"] if before != _modified(data) else []
        return replace(workspace, changed=(*changed, *placed.changed))


def _modified(folder: str) -> int | None:
    """Returns when the manifest of a folder was written, or None if there is none."""
    path = os.path.join(folder, manifest_name(folder))
    return os.stat(path).st_mtime_ns if os.path.exists(path) else None


def _check_place(folder: str, placed: PlacedFiles) -> None:
    """Raises ArgumentError, before any work, if a new workspace would replace something."""
    data = os.path.join(folder, "data")
    if is_unfinished(data) or os.path.exists(os.path.join(data, manifest_name(data))):
        return
    programs = (f"{PROGRAMS}/{name}" for name in ("train.c", "write.c", "generate.h"))
    names = (*MODEL_NAMES.values(), TOKENIZER_NAME, *TOKENIZER_NAMES, *programs)
    found = next((name for name in names if not placed.is_free(name)), None)
    for name in map(CPU_DATA.format, ("train", "val")):
        path = os.path.join(folder, name)
        found = found or (name if os.path.exists(path) and not os.path.islink(path) else None)
    found = found or token_file(folder)
    if found is not None:
        raise ArgumentError(f"{folder}: has {found}: choose another folder, or replace it with {param(force=True)}")


def _write_rest(workspace: Workspace, seed: int, force: bool, placed: PlacedFiles) -> Workspace:
    """Makes everything but the data that is missing or of another call. Returns the workspace with the names that were
    free. Raises LimitError if llm.c could not train in it, and ArgumentError, before it changes anything."""
    folder, tok, config, dtype = workspace.folder, workspace.tokenizer, workspace.config, workspace.dtype
    placed.place(TOKENIZER_NAME, workspace.manifest.tokenizer["fingerprint"], tok.save)
    placed.place(
        workspace.model_name,
        (config, dtype, seed),
        lambda path: write_random_checkpoint(path, config, dtype=dtype, seed=seed),
    )
    names = {TOKENIZER_NAME, *MODEL_NAMES.values()}
    stale = [
        name
        for name in names - {TOKENIZER_NAME, workspace.model_name}
        if os.path.isfile(path := os.path.join(folder, name)) and not _fits(path, config)
    ]
    for name in stale:
        if not (force or placed.is_own(name)):
            told = "is a model of another vocabulary, or damaged: move it away, or remove it with"
            raise ArgumentError(f"{os.path.join(folder, name)}: {told} {param(force=True)}")
    if dtype == "fp32":
        makefile = "Makefile" if placed.is_free("Makefile", _makefile(workspace, "Makefile")) else "pybpe.mk"
        workspace = replace(workspace, makefile=makefile)
        for name, content in {makefile: _makefile(workspace, makefile), **_programs()}.items():
            _place(placed, name, content)
    content = readme(workspace).encode("utf-8")
    workspace = replace(workspace, readme="README.md" if placed.is_free("README.md", content) else "README.pybpe.md")
    _place(placed, workspace.readme, content)
    _link_cpu_data(folder, workspace.manifest, force)
    placed.finish()
    for name in stale:
        placed.remove(name)
    for finding in check([folder])[1]:  # there may be files that have nothing to do with the workspace
        place = os.path.relpath(finding.file, folder)
        if finding.is_error and (place in names or place.split(os.sep)[0] in ("data", "dev")):
            again = "" if force else f". To make everything again, pass {param(force=True)}"
            raise LimitError(f"llm.c cannot train in this workspace: {finding}{again}")
    return workspace


def _place(placed: PlacedFiles, name: str, content: bytes) -> None:
    placed.place(name, content, lambda path: _binding.write_file(path, content))


def _fits(path: str, config: GPT2Config) -> bool:
    with suppress(Error), open_unchanged(path) as stream:
        sizes, dtype, size = read_header(stream, path)
        return sizes.vocab_size == config.vocab_size and size == file_bytes(sizes, dtype)
    return False


def _makefile(workspace: Workspace, name: str) -> bytes:
    steps = max(200, laptop_tokens(workspace.manifest.split_tokens("train")) // 1024)
    text = (Path(__file__).parent / PROGRAMS / "Makefile").read_text("utf-8").replace("@STEPS@", str(steps))
    return (text if name == "Makefile" else text.replace("make train", f"make -f {name} train")).encode()


def _programs() -> dict[str, bytes]:
    """Returns the contents of the programs' files, by name."""
    here, contents = Path(__file__).parent, dict[str, bytes]()
    for folder, place in ((here / PROGRAMS, PROGRAMS), (here / "include", f"{PROGRAMS}/include")):
        for path in sorted(folder.rglob("*.[ch]")):
            contents[f"{place}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return contents


def _check(training: TrainOptions, read: ReadOptions, split: SplitOptions, model: ModelOptions) -> None:
    """Refuses bad arguments before training, if they can be seen then."""
    if model.sequence_length is not None and model.sequence_length < CPU_BATCH.T:
        raise ArgumentError(
            f"{param('sequence_length')} must be at least {CPU_BATCH.T}, llm.c's T on the CPU, not"
            f" {model.sequence_length}"
        )
    if training.vocab_size > MAX_VOCAB_SIZE:
        raise ArgumentError(f"{param('vocab_size')} must be at most {MAX_VOCAB_SIZE}, for llm.c's uint16 shards")
    if find_end_of_text(training.specials, training.end_of_text) is None:
        raise ArgumentError(f"no special token is the end of text, which starts llm.c's samples: {name_it()}")
    if len(split.splits) < 2 or split.splits[1] <= 0:
        raise ArgumentError(
            f"{param('splits')} must give the val split a share, since llm.c validates on it: {split.splits}"
        )
    TrainPlan.of(training, read)
    model.config(training.vocab_size)


def _link_cpu_data(folder: str, manifest: pybpe.Manifest, force: bool) -> None:
    """Makes relative links, so that the workspace can be moved."""
    place = make_folder(os.path.join(folder, os.path.dirname(CPU_DATA)))
    with file_errors(place, "links cannot be made"):
        for split in ("train", "val"):
            link = os.path.join(folder, CPU_DATA.format(split))
            shard = os.path.join(folder, "data", manifest.shards[split][0].file)
            target = os.path.join("..", "..", "..", "data", manifest.shards[split][0].file)
            if os.path.islink(link) and os.readlink(link) == target:
                continue
            is_own = os.path.islink(link) and os.path.dirname(os.readlink(link)) == os.path.dirname(target)
            if not (force or is_own) and os.path.exists(link) and not filecmp.cmp(link, shard, shallow=False):
                raise ArgumentError(
                    f"{link}: is something else: choose another folder, or replace it with {param(force=True)}"
                )
            new = f"{link}.{os.getpid()}.tmp"
            remove_file(new)  # left by a killed run with the same process number
            platform.make_link(target, new)
            try:
                platform.replace_file(new, link)
            except OSError:
                os.unlink(new)
                raise
        platform.sync_folder(place)


# ----------------------------------------------------------------------------------------------------
# Files that a command puts into the user's folder, such as a workspace. It replaces only files that it made itself.
#
# A record in the folder has the SHA-256 of every content that the command gave a file, and a hash of what that content
# depended on. So an equal call knows, without making a large file again:
#
#     the file                                  the call
#     is not there                              makes it
#     was made by an equal call                 leaves it
#     was made by another call, is unchanged    replaces it
#     is something else: trained, edited        raises ArgumentError, unless its caller passes force=True
#
# The record is written before a file gets its name. So a kill leaves no file that the next call would not know.


class PlacedFiles:
    """The files of a folder whose lock the caller holds.

    Args:
        folder: the folder.
        record: the name of the record in it.
        force: True replaces other files, too.

    Attributes:
        changed: the names of the files that this call made, replaced or removed.
    """

    def __init__(self, folder: str, record: str, force: bool) -> None:
        self._folder, self._record, self._force = folder, os.path.join(folder, record), force
        self.changed: list[str] = []
        self._now: dict[str, tuple[str, str]] = {}  # name -> both, of the files of this call
        self._made: dict[str, dict[str, str]] = {}  # name -> SHA-256 -> hash of the inputs of the content
        with suppress(OSError, ValueError, TypeError), open(self._record, "rb") as stream:
            made = json.load(stream)["files"]  # a damaged record is as good as none: then contents are compared
            self._made = {str(name): {str(sha): str(of) for sha, of in found.items()} for name, found in made.items()}
        self._hidden = make_folder(os.path.join(folder, FOLDER))
        for name in set(os.listdir(self._hidden)) - {LOCK}:  # left by a kill
            remove_entry(os.path.join(self._hidden, name))

    def is_own(self, name: str) -> bool:
        """Returns whether a file is as an earlier call made it."""
        path = os.path.join(self._folder, name)
        return name in self._made and os.path.isfile(path) and file_sha256(path) in self._made[name]

    def is_free(self, name: str, content: bytes | None = None) -> bool:
        """Returns whether a file with this content, or any, may be made or replaced without `force`."""
        path = os.path.join(self._folder, name)
        if not os.path.lexists(path) or self.is_own(name):
            return True
        return content is not None and os.path.isfile(path) and read_file(path) == content

    def place(self, name: str, depends_on: object, write: Callable[[str], object]) -> None:
        """Makes a file, unless an equal call has made it. `finish` gives it its name.

        Args:
            name: its path in the folder.
            depends_on: the inputs of its content. Its `repr` is the same in every process.
            write: writes the content to a path with the last part of `name`.

        Raises:
            ArgumentError: something else has this name.
        """
        path, made = os.path.join(self._folder, name), self._made.get(name, {})
        key = hashlib.sha256(repr(depends_on).encode("utf-8", "surrogateescape")).hexdigest()
        there = file_sha256(path) if os.path.isfile(path) else None
        if there is None or made.get(there) != key:
            new = os.path.join(self._hidden, os.path.basename(name))
            write(new)
            sha = file_sha256(new)
            if there != sha:
                if os.path.isdir(path) or os.path.islink(path):
                    raise ArgumentError(f"{path}: is a folder or a link: move it away")
                if not self._force and not self.is_free(name):
                    raise ArgumentError(
                        f"{path}: is not what pybpe made: move it away, choose another folder, or replace it with"
                        f" {param(force=True)}"
                    )
                self.changed.append(name)
            there = sha
        self._now[name] = there, key

    def finish(self) -> None:
        """Gives the files their names, and forgets contents that no file has anymore."""
        both = {name: {**self._made.get(name, {}), sha: key} for name, (sha, key) in self._now.items()}
        self._save({**self._made, **both})
        for name in self.changed:
            make_folder(os.path.dirname(path := os.path.join(self._folder, name)))
            give_name(os.path.join(self._hidden, os.path.basename(name)), path)
        for name in set(os.listdir(self._hidden)) - {LOCK}:  # equal to the old content
            remove_entry(os.path.join(self._hidden, name))
        others = {name: file_sha256(os.path.join(self._folder, name)) for name in self._made.keys() - self._now.keys()
                  if self.is_own(name)}  # fmt: skip
        self._save(
            {name: {sha: key} for name, (sha, key) in self._now.items()}
            | {name: {sha: self._made[name][sha]} for name, sha in others.items()}
        )

    def remove(self, name: str) -> None:
        """Removes a file. The caller asks before whether it may."""
        remove_file(os.path.join(self._folder, name))
        self.changed.append(name)

    def _save(self, made: dict[str, dict[str, str]]) -> None:
        if made != self._made:
            text = json.dumps({"version": 1, "files": made}, indent=1, sort_keys=True)
            with file_errors(self._record, "cannot be written"):
                _binding.write_file(self._record, text.encode())
            self._made = made


# ----------------------------------------------------------------------------------------------------
# README.md: the commands that train in the workspace, computed for its data


def next_command(folder: str) -> str | None:
    """Returns the command that comes next in a workspace, or None for any other folder. It is for a person."""
    if is_unfinished(os.path.join(folder, "data")):
        return f"{folder}: not complete: run the same `pybpe llmc workspace` command again"
    there = [name for name in ("pybpe.mk", "Makefile", "trained.bin") if os.path.isfile(os.path.join(folder, name))]
    if not os.path.isfile(os.path.join(folder, RECORD)):
        return None
    if there[:1] not in (["pybpe.mk"], ["Makefile"]):
        return f"next: the commands for a GPU in {os.path.join(folder, 'README.md')}"
    make = ("" if os.path.samefile(folder, ".") else f"cd {shlex.quote(folder)} && ") + "make"
    make += " -f pybpe.mk" if there[0] == "pybpe.mk" else ""
    if "trained.bin" not in there:
        return f"next: {make} train LLMC=path/to/llm.c"
    return f'next: {make} write PROMPT="Once upon a time" (or continue training: {make} train)'


def gpu_batch(workspace: Workspace, processes: int = 1) -> Batch:
    """Returns a batch that fits in every shard: the longest T that the model and the shards allow,
    in steps of 64, and train_gpt2.cu's B (4, over all processes) or a smaller one that fits."""
    room = (workspace.smallest_shard - 1) // processes
    T = min(workspace.config.max_seq_len, room) // _T_STEP * _T_STEP
    return Batch(max(1, min(_DEFAULT_B // processes, room // T)), T, processes)


def readme(workspace: Workspace) -> str:
    """Returns the README's text."""
    config, manifest, model = workspace.config, workspace.manifest, workspace.model_name
    shards, trained = manifest.shards["train"], manifest.split_tokens("train")
    is_fp32 = workspace.dtype == "fp32"
    tokens = ", ".join(f"{split} {manifest.split_tokens(split)}" for split in manifest.shards)
    first = f" over the first of {len(shards)} shards, the only one that it reads," if len(shards) > 1 else ""
    is_llmcs = workspace.makefile != "Makefile"
    make = f"make -f {workspace.makefile}" if is_llmcs else "make"
    get_llmc = "LLMC=." if is_llmcs else "git clone https://github.com/karpathy/llm.c ../llm.c\nLLMC=../llm.c"
    on_cpu = f"""```sh
{make} train LLMC=$LLMC                 # trains trained.bin. Stop it at any time: the same command continues
{make} write PROMPT="Once upon a time"  # continues this text
```

`make train` compiles programs/train.c, which includes llm.c's train_gpt2.c. `{make} train ARGS=-h` lists its options.
You can also run llm.c's own program here, but it takes 41 steps and saves nothing:

```sh
make -C $LLMC train_gpt2    # builds it
OMP_NUM_THREADS=$(nproc) $LLMC/train_gpt2
```

B is 4 and T is 64, both compiled in. One epoch{first} takes {(shards[0].tokens - 1) // (CPU_BATCH.min_tokens - 1)} \
steps, but the trainer runs 41. The first loss is near ln({config.vocab_size}) = {log(config.vocab_size):.2f}."""
    batch, two = gpu_batch(workspace), gpu_batch(workspace, processes=2)
    commands = [
        f"$LLMC/train_gpt2cu -i '{workspace.shards('train')}' -j '{workspace.shards('val')}' -e {model} -b {each.B}"
        f" -t {each.T} -h 0"
        for each in (batch, two)
    ]
    steps = [trained // (each.min_tokens - 1) for each in (batch, two)]  # per epoch, as train_gpt2.cu computes it
    return f"""# An llm.c workspace, made by pybpe

- tokenizer: {config.vocab_size} tokens, padded to {config.padded_vocab_size} in the model; end-of-text id \
{workspace.tokenizer.eot_token}
- tokens: {tokens}
- model: {config.num_parameters} random parameters ({workspace.dtype}), {config.num_layers} layers, \
{config.num_heads} heads, {config.channels} channels, sequence length {config.max_seq_len}

Run everything from this folder. First, get llm.c's source code (`make train` compiles what it needs of it):

```sh
{get_llmc}
```

## CPU

{on_cpu if is_fp32 else "The CPU trainer reads only fp32: make the workspace with `--dtype fp32`."}

## One GPU

```sh
make -C $LLMC train_gpt2cu{" PRECISION=FP32" if is_fp32 else ""}
{commands[0]}
```

One epoch is {steps[0]} steps, after which the trainer stops. With T = {batch.T}, the shards allow \
B up to {(workspace.smallest_shard - 1) // batch.T}. Raise `-b` as far as the GPU's memory allows.

## Several GPUs

Build in the same way on a machine with MPI and NCCL. For two GPUs:

```sh
mpirun -np 2 {commands[1]}
```

One epoch is {steps[1]} steps. Every shard must have at least processes x B x T + 1 tokens, here {two.needs()}.

## Flags

- `-h 0` skips HellaSwag, because llm.c's own file of questions has GPT-2's ids. To evaluate with `-h 1` and `-b`
  {COMPLETIONS} or more, make `{LLMC_PATH}` in this folder with `pybpe llmc eval`.
- `-v` sets how often the validation loss is computed, not the vocabulary. The vocabulary comes from the header of
  {model}, and no flag sets it.
- `-o log -n 1000` saves a checkpoint every 1000 steps and after the last one. The same command with `-y 1` resumes from
  the last checkpoint. With a larger `-x` (the number of steps), it trains longer.
- `-e` names the model to start from. A descriptor such as `d12` would create a model with GPT-2's vocabulary.

`pybpe llmc check . -b B -t T -n PROCESSES` checks whether these files work with another batch size.
"""
