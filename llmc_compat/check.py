"""Checks whether llm.c would train on files: finds faults, their effect on llm.c, and the remedy.

llm.c checks little. On other bad files it aborts, overflows or trains on nonsense. `check` reads tokenizers, shards,
checkpoints and eval files as llm.c would, by themselves and against one another, and the names that are compiled into
llm.c. It finds the files, reads their facts, and gives them to the table of all faults, in check_rules.py.
docs/llmc-check.md lists the faults with llm.c's source lines.
"""

from __future__ import annotations

import filecmp
import glob
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.errors import ArgumentError, Error, FileError, warn
from pybpe.reading.streams import Snapshot, file_sha256, open_input
from pybpe.support.output_files import FOLDER
from pybpe.tokens.manifest import FILE_NAME as MANIFEST_NAME
from pybpe.tokens.manifest import Manifest, ShardRecord
from pybpe.tokens.pack.rows import row_fault
from pybpe.tokens.token_files import TokenFile

from . import chat, check_rules, checkpoint, evals
from .check_rules import BROKEN_LINK, GPT2_TOKENS, HUGE, Fault
from .checkpoint import ITEM_BYTES, Checkpoint, from_file_type
from .evals import COMPLETIONS, LLMC_PATH
from .shards import CPU_BATCH, HEADER_BYTES, Batch, header_numbers

Read = TypeVar("Read")
Facts = dict[str, Any]  # of one file, or of one subject; check_rules.py names them in its messages


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Fault]]:
    """Checks files, or all llm.c files in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run. None means the values of llm.c's CPU trainer. Eval files, which only the
            CUDA trainer reads, are then checked for the model's longest sequence. With a batch, faults that only CUDA
            refuses are errors for float32 models too.

    Returns:
        The files by kind, and the faults. If none is an error, llm.c can train on the files.

    Raises:
        FileError: a path does not exist. ArgumentError: none of the files is an llm.c file.
    """
    faults: list[Fault] = []
    given = [os.fsdecode(path) for path in paths]
    whole = FoundFacts(find_files(given, faults), batch, faults)
    checked = (paths for kind, paths in vars(whole.files).items() if kind != "others")
    if not (any(checked) or faults):
        raise ArgumentError("none of these is an llm.c file: expected tokenizer.bin, shards, evals or a checkpoint")
    for path in given:
        if whole.names.get(path) in UNKNOWN[:2] and not path.endswith(".bin"):  # otherwise, it is a fault
            warn(f"{path}: not checked, because it is not a file of llm.c")
    faults += (fault for kind, path, facts in subjects(whole) for fault in check_rules.faults(kind, path, **facts))
    return whole.files, faults


# ----------------------------------------------------------------------------------------------------
# Finds the files: their kinds, by their first bytes, and their names, because llm.c opens some files by name.


# The names that are compiled into llm.c's trainers.
#
# main in train_gpt2.c     gpt2_124M.bin, gpt2_tokenizer.bin, and the data of tiny Shakespeare, or else of TinyStories
# main in train_gpt2.cu    gpt2_124M_bf16.bin, gpt2_tokenizer.bin, and tiny Shakespeare's, unless -e, -i, -j override
#                          them; with -h 1 HellaSwag's

TOKENIZER_NAME = "gpt2_tokenizer.bin"
MODEL_NAMES = {"fp32": "gpt2_124M.bin", "bf16": "gpt2_124M_bf16.bin"}  # by type. The CPU trainer reads the first
CPU_DATA = os.path.join("dev", "data", "tinyshakespeare", "tiny_shakespeare_{}.bin")
STORIES_DATA = os.path.join("dev", "data", "tinystories", "TinyStories_{}.bin")
TRAINED_ON = ("train", "val")
_SPLIT = re.compile(r".*(?:^|[_-])(train|val|test)(?:[_-].*)?\.bin", re.DOTALL)

PLACES = {
    TOKENIZER_NAME: "a tokenizer",
    **dict.fromkeys(MODEL_NAMES.values(), "a model checkpoint"),
    **{CPU_DATA.format(split): "a token shard" for split in TRAINED_ON},
    LLMC_PATH: "an eval file",
}


def place_of(path: str) -> str | None:
    """Returns the llm.c name that a path ends in, or None."""
    return next((place for place in PLACES if path == place or path.endswith(os.sep + place)), None)


def split_of(path: str) -> str | None:
    """Returns the split in a shard's name (train, val, test), or None."""
    match = _SPLIT.fullmatch(os.path.basename(path))
    return match[1] if match else None


_KINDS = {  # magic -> the field of Files, and the name of the kind in messages
    _binding.TOKENIZER_MAGIC: ("tokenizers", "a tokenizer"),
    **dict.fromkeys(_binding.SHARD_MAGICS.values(), ("shards", "a token shard")),
    checkpoint.MAGIC: ("models", "a model checkpoint"),
    evals.MAGIC: ("evals", "an eval file"),
    chat.MASK_MAGIC: ("masks", "a loss mask"),
    20240327: ("others", "the activations that llm.c's tests compare"),
    20240527: ("others", "the optimizer's state, saved with an llm.c checkpoint"),
    20240803: ("others", "a checkpoint of train_llama3.py"),
}
UNKNOWN = ("an empty file", "a file of another kind", "a file that cannot be read")


@dataclass
class Files:
    """The paths that were found, by kind."""

    tokenizers: list[str] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    evals: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)


FoundFiles = tuple[Files, dict[str, str], list[str]]


def find_files(paths: Iterable[str], faults: list[Fault]) -> FoundFiles:
    """Finds llm.c's files among the paths, and in folders. Returns every file once, even if several links lead to it.
    Also returns every name with its kind, such as "a token shard" or "a folder", the given folders, and the folders in
    them."""
    files, names, folders = Files(), dict[str, str](), list[str]()
    kinds: dict[str, str] = {}  # by real path
    for path in paths:
        given = not os.path.isdir(path)
        for name in [path] if given else _walk(path, names, folders):
            real = os.path.realpath(name)
            if given or os.path.exists(name):
                if real not in kinds:
                    kinds[real] = _sort(name, files, faults, given)
                names[name] = kinds[real]
            else:
                fault, effect = f"links to {real}, which does not exist", "cannot find the file, and aborts"
                faults.append(Fault(name, fault, f"{effect}, except without a tokenizer", "make the link again"))
                names[name] = BROKEN_LINK
    return files, names, folders


def _walk(folder: str, names: dict[str, str], folders: list[str]) -> Iterator[str]:
    """Yields all names in a folder, except folders. Links to folders are followed; no folder is visited twice."""
    visited = {os.path.realpath(folder)}
    for place, inner, entries in os.walk(folder, followlinks=True):
        if os.path.basename(place) == FOLDER:  # of unfinished work, which nobody reads
            inner.clear()
            continue
        folders.append(place)
        names[place] = "a folder"
        yield from (os.path.join(place, name) for name in sorted(entries))
        real = {name: os.path.realpath(os.path.join(place, name)) for name in sorted(inner)}
        inner[:] = [name for name in real if real[name] not in visited]
        visited |= set(real.values())


def _sort(path: str, files: Files, faults: list[Fault], given: bool) -> str:
    """Files a path by its magic, and returns the name of its kind. A .bin file of unknown kind is a fault."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        if given:
            raise ArgumentError(f"{path}: neither a file nor a folder")
        return "not a regular file"
    if os.path.basename(path) == MANIFEST_NAME:
        files.manifests.append(path)
        return "a manifest"
    try:
        with open_input(path) as stream:
            first = stream.read(4)
    except FileError as error:
        if given:
            raise
        faults.append(Fault.of_error(path, error, "make it readable"))
        return UNKNOWN[2]
    magic = int.from_bytes(first, "little")
    if magic in _KINDS:
        kind, called = _KINDS[magic]
        getattr(files, kind).append(path)
        return called
    if path.endswith(".bin"):
        faults.append(_unknown(path, magic if first else None, given))
    return UNKNOWN[bool(first)]


def _unknown(path: str, magic: int | None, given: bool) -> Fault:
    """Returns the fault of a .bin file of unknown kind. llm.c opens it only under certain names."""
    fault, remedy = f"magic {magic} is not an llm.c magic number", "if llm.c should read it, write it again"
    if magic is None:
        fault, remedy = "is empty", "write it again"
    elif split_of(path):
        remedy = "if it is a headerless file for nanoGPT, write it again with `pybpe binarize --format llmc`"
    place = place_of(path)
    if place is not None:
        fault = f"{fault}, but llm.c expects {PLACES[place]} under this name"
    is_read = given or place is not None or split_of(path)
    effect = "aborts: 'Bad magic', or end of file" if is_read else "aborts if it reads this file"
    return Fault(path, fault, effect, remedy).unless(not is_read)


# ----------------------------------------------------------------------------------------------------
# The facts of a file, as llm.c reads it


_TRAILER_MARK = 0x50425950  # in the header of a tokenizer: our merges and pattern follow the tokens
_BLOCK_ITEMS = 1 << 22


def read_tokenizer(path: str) -> Facts:
    """Raises FileError, FormatError. Only llm.c's part of the file must be right."""
    with Snapshot() as files:
        raw, fingerprint, damage = files.read(path), None, ""
        _, version, V, eot, mark = header_numbers(raw, path, "a tokenizer")[:5]
        tokens, at = list[bytes](), HEADER_BYTES
        while len(tokens) < V and at < len(raw) and 0 < raw[at] < len(raw) - at:
            tokens.append(raw[at + 1 : at + 1 + raw[at]])
            at += 1 + raw[at]
        try:
            fingerprint = Tokenizer.from_file(path).model.fingerprint
        except Error as error:
            if version not in (1, 2) or not 0 < V == len(tokens):
                raise
            damage = str(error).removeprefix(f"{path}: ")
    eot = GPT2_TOKENS - 1 if version == 1 else eot
    end = tokens[eot].decode("utf-8", "replace") if 0 <= eot < V else None
    facts = {"version": version, "V": V, "eot": eot, "end": end, "tokens": tokens}
    return {**facts, "is_ours": mark == _TRAILER_MARK, "fingerprint": fingerprint, "damage": damage}


def read_model(path: str) -> Facts:
    """Raises FileError, FormatError."""
    with Checkpoint(path) as model:
        V, Vp = model.config.vocab_size, model.config.padded_vocab_size
        names = model.config.tensor_shapes()
        largest = {name: _largest(model, model.raw_blocks(name, V if name == "wte" else None)) for name in names}
        padding = _largest(model, [model.raw_rows("wte", V, Vp)] if Vp > V else [])
        where = [name for name in names if largest[name] > HUGE or (name == "wte" and padding == inf)]
        most = inf if padding == inf else max(largest.values())
        types = {name: dtype for dtype, name in MODEL_NAMES.items()}
        facts = {"dtype": model.dtype, "expected": types.get(os.path.basename(path), model.dtype), "padding": padding}
        return {**model.config.by_letter(), **facts, "most": most, "where": ", ".join(where)}


def _largest(model: Checkpoint, blocks: Iterable[numpy.ndarray[Any, Any]]) -> float:
    """Returns the largest magnitude of weights, or inf if one is not finite: without their sign, floats compare like
    their bits as integers, and Inf and NaN above all others."""
    bits = numpy.dtype(f"<u{ITEM_BYTES[model.dtype]}")
    without_sign = bits.type((1 << (8 * bits.itemsize - 1)) - 1)
    found = max((int((block.view(bits) & without_sign).max()) for block in blocks), default=0)
    weight = numpy.array([found], bits).view("<f4" if bits.itemsize == 4 else bits)
    value = float(from_file_type(weight, model.dtype)[0])
    return value if value < inf else inf


def read_shard(path: str, wanted: Collection[int]) -> Facts:
    """Returns which of the wanted ids are in the shard, too. Raises FileError, FormatError."""
    shard = _binding.Shard(path)
    low = high = -1
    present = set[int]()
    for start in range(0, len(shard), _BLOCK_ITEMS):
        ids = shard.read(start, min(_BLOCK_ITEMS, len(shard) - start))
        low, high = int(ids.min()) if low < 0 else min(low, int(ids.min())), max(high, int(ids.max()))
        present |= {i for i in wanted if i not in present and bool((ids == i).any())}
    facts = {"tokens": len(shard), "id_bytes": shard.id_bytes, "size": os.path.getsize(path), "split": split_of(path)}
    return {**facts, "lowest": low, "highest": high, "present": present}


def read_eval(path: str) -> Facts:
    """Raises FileError, FormatError."""
    facts = evals.eval_facts(path)
    return {**vars(facts), "highest": facts.highest_id, "min_T": facts.min_T}


Described = tuple[str, Manifest]  # a manifest of shards for llm.c, with its path


def read_manifest(path: str) -> Described | None:
    """Returns None if its token files are not for llm.c. Raises FileError, FormatError."""
    manifest = Manifest.load(os.path.dirname(path) or ".")
    return (path, manifest) if manifest.settings.get("format") == "llmc" else None


def _records(described: Described) -> Iterator[tuple[str, ShardRecord, str]]:
    """Yields the splits, records and paths of shards."""
    path, manifest = described
    for split, records in manifest.shards.items():
        yield from ((split, each, os.path.join(os.path.dirname(path), each.file)) for each in records)


class FoundFacts:
    """Everything that was found: for each kind of file, path -> facts. Files that cannot be read become faults."""

    def __init__(self, found: FoundFiles, given: Batch | None, faults: list[Fault]) -> None:
        def read(paths: Iterable[str], reader: Callable[[str], Read | None], *told: str) -> dict[str, Read]:
            known: dict[str, Read] = {}
            for path in paths:
                try:
                    known |= {} if (facts := reader(path)) is None else {path: facts}
                except Error as error:
                    faults.extend([Fault.of_error(path, error, *told)] if told else [])
            return known

        self.files, self.names, self.folders = found
        self.given, self.batch = given, given or CPU_BATCH
        self.tokenizers = read(self.files.tokenizers, read_tokenizer, *check_rules.TOKENIZER_DAMAGED)
        ends = {facts["eot"] for facts in self.tokenizers.values()}
        self.models = read(self.files.models, read_model, *check_rules.MODEL_DAMAGED)
        self.shards = read(self.files.shards, lambda path: read_shard(path, ends), *check_rules.SHARD_DAMAGED)
        self.evals = read(self.files.evals, read_eval, *check_rules.EVAL_DAMAGED)
        read(self.files.masks, chat.read_mask, *check_rules.MASK_DAMAGED)
        beside = {os.path.dirname(os.path.realpath(path)) for path in self.files.shards}
        known = [path for path in self.files.manifests if os.path.dirname(os.path.realpath(path)) in beside]
        others = [path for path in self.files.manifests if path not in known]  # maybe another program's
        manifests = read(known, read_manifest, *check_rules.MANIFEST_DAMAGED) | read(others, read_manifest)
        self.manifests, self.files.manifests = list(manifests.values()), list(manifests)
        # The folders that llm.c is started in: those with something at one of its names
        has = (any(os.path.lexists(os.path.join(path, name)) for name in PLACES) for path in self.folders)
        self.roots = [path for path, is_root in zip(self.folders, has) if is_root]

    def parts(self) -> Iterator[FoundFacts]:
        """Yields groups of files that belong together: all files, or, if llm.c is started in several folders, one group
        per folder."""

        def owner(path: str) -> str:
            return max((root for root in self.roots if path.startswith(os.path.join(root, ""))), key=len, default="")

        for root in [*self.roots, ""] if len(self.roots) > 1 else []:
            part = copy(self)
            for kind in ("tokenizers", "models", "shards", "evals"):
                setattr(part, kind, {path: facts for path, facts in vars(self)[kind].items() if owner(path) == root})
            part.manifests = [each for each in self.manifests if owner(each[0]) == root]
            yield part
        if len(self.roots) < 2:
            yield self


# ----------------------------------------------------------------------------------------------------
# The subjects of the rules, with their facts: single files, files together, names that llm.c opens, folders


Subjects = Iterator[tuple[str, str, Facts]]
_NUMBERED = re.compile(r"(.*?)\d+\.bin", re.DOTALL)


def subjects(whole: FoundFacts) -> Subjects:
    """Yields the kind, the path and the facts of every subject."""
    known = _known_splits(whole)
    yield from _files(whole)
    for part in whole.parts():
        yield from _together(part)
        yield from _encoders(part, known)
    yield from _packed(whole)
    yield from _patterns(whole)
    yield from _places(whole)
    yield from _splits(whole, known)
    for root in whole.roots:
        yield from _lacking(whole, root)


def _files(whole: FoundFacts) -> Subjects:
    batch, given = whole.batch, whole.given
    run = {"B": batch.B, "T": batch.T, "batch": batch, "needs": batch.needs()}
    for path, facts in whole.models.items():
        step = {"fp32": 4, "bf16": 8}[facts["dtype"]]  # items that a CUDA kernel loads at once (16 bytes)
        for_cpu = facts["dtype"] == "fp32" and given is None  # the CPU accepts files that only CUDA refuses
        yield "model", path, facts | run | {"step": step, "block": 512 * step, "for_cpu": for_cpu, "given": given}
    for path, facts in whole.tokenizers.items():
        yield "tokenizer", path, facts
    for path, facts in whole.shards.items():
        yield "shard", path, facts | run | {"fit": batch.largest_fit(facts["tokens"])}
    longest = max((model["maxT"] for model in whole.models.values()), default=None)  # the largest T that they allow
    for path, facts in whole.evals.items():
        asked = given or Batch(COMPLETIONS, longest or facts["min_T"])
        each = -(-facts["examples"] // asked.processes)
        yield "eval", path, facts | {"B": asked.B, "T": asked.T, "n": asked.processes, "each": each}


def _together(part: FoundFacts) -> Subjects:
    by_V = {facts["V"]: path for path, facts in reversed(part.tokenizers.items())}  # one fault per V is enough
    for path, facts in {**part.shards, **part.evals}.items():
        for V, other in reversed(by_V.items()):
            yield "ids and tokenizer", path, {"id": facts["highest"], "other": other, "V": V}
        for other, model in part.models.items():
            yield "ids and model", path, {"id": facts["highest"], "other": other, "V": model["V"]}
    for path, model in part.models.items():
        for V, other in reversed(by_V.items()):
            yield "model and tokenizer", path, {"V": model["V"], "other": other, "tokens": V}
    trained = [facts for facts in part.shards.values() if facts["split"] == "train"]
    for path, facts in part.tokenizers.items():
        yield "tokenizer and train shards", path, {**facts, "shards": trained}


def _encoders(part: FoundFacts, known: dict[str, str]) -> Subjects:
    """Tokenizers and shards with the manifests that say which ones belong together."""
    shards = {os.path.realpath(path): facts["tokens"] for path, facts in part.shards.items()}
    for described in part.manifests:
        at, manifest = described
        wanted = manifest.tokenizer.get("fingerprint")
        for path, facts in part.tokenizers.items():
            yield "tokenizer and manifest", path, {**facts, "manifest": at, "wanted": wanted}
        for split, record, path in _records(described):
            found = {"manifest": at, "found": shards.get(os.path.realpath(path)), "exists": os.path.exists(path)}
            if split in TRAINED_ON:
                yield "shard of a manifest", path, {**found, "tokens": record.tokens, "sha256": record.sha256}
    custom = [path for path, facts in part.tokenizers.items() if facts["V"] != GPT2_TOKENS]
    unknown = [os.path.dirname(path) for path in shards if path not in known]
    unknown = [folder for folder in unknown if not os.path.exists(os.path.join(folder, MANIFEST_NAME))]
    if custom and unknown and len(unknown) == len(shards):
        yield "unknown tokenizer", max(unknown, key=unknown.count), {"tokenizer": custom[0]}


def _packed(whole: FoundFacts) -> Subjects:
    known = {os.path.realpath(path) for path in whole.shards}
    for described in whole.manifests:
        at, manifest = described
        if (packing := manifest.packing) is not None:
            size, mark = packing["sequence_length"], manifest.tokenizer["eot"]
            yield "rows and T", at, {"size": size, "T": whole.batch.T, "harmless": whole.given is None}
            for path in (path for _, _, path in _records(described) if os.path.realpath(path) in known):
                with suppress(Error):  # reported already
                    blocks = TokenFile(path).blocks(1 << 20)
                    yield "rows", path, {"wrong": row_fault(blocks, size, mark)}  # type: ignore[arg-type]


def _patterns(whole: FoundFacts) -> Subjects:
    """Returns other files that llm.c's patterns for shards match: the same name and another number."""
    manifests = [(each[0], {os.path.realpath(path) for _, _, path in _records(each)}) for each in whole.manifests]
    of_train = (path for path in whole.shards if split_of(path) != "test")
    for prefix in dict.fromkeys(match[1] for path in of_train if (match := _NUMBERED.fullmatch(path))):
        paths = sorted(glob.glob(f"{glob.escape(prefix)}*.bin"))
        real = set(map(os.path.realpath, paths))
        manifest, listed = next((each for each in manifests if each[1] & real), (None, set()))
        for path in paths:
            if os.path.realpath(path) not in listed:
                pattern = f"{os.path.basename(prefix)}*.bin"
                yield "beside shards", path, {"there": whole.names.get(path), "pattern": pattern, "manifest": manifest}


def _places(whole: FoundFacts) -> Subjects:
    """Names of files that are not of the kind that llm.c expects. Files of unknown kind are reported already."""
    for path, there in whole.names.items():
        expected = PLACES.get(place_of(path) or "", there)
        is_told = there in UNKNOWN and not os.path.islink(path)
        if there not in (expected, BROKEN_LINK) and not is_told:
            when = " with -h 1" if expected == "an eval file" else ""
            yield "place", path, {"there": there, "expected": expected, "when": when}


def _known_splits(whole: FoundFacts) -> dict[str, str]:
    """Returns the splits of the shards that manifests list, and of copies of them, by real path."""
    records = [
        (split, each, os.path.realpath(path)) for made in whole.manifests for split, each, path in _records(made)
    ]
    found = {path: split for split, _, path in records}
    hashes, sizes = {each.sha256: split for split, each, _ in records}, {each.bytes for _, each, _ in records}
    for path in {os.path.realpath(path) for path in whole.shards} - found.keys():
        if os.path.getsize(path) in sizes and (sha256 := file_sha256(path)) in hashes:
            found[path] = hashes[sha256]
    return found


def _splits(whole: FoundFacts, known: dict[str, str]) -> Subjects:
    """The names of the train and val data, which may lead to one shard, to copies, or to another split."""
    by_real = {os.path.realpath(path): path for path in whole.shards}
    for root, data in ((root, data) for root in whole.folders for data in (CPU_DATA, STORIES_DATA)):
        paths = {split: os.path.join(root, data.format(split)) for split in TRAINED_ON}
        real = {split: by_real.get(os.path.realpath(path)) for split, path in paths.items() if os.path.exists(path)}
        a, b = real.get("train"), real.get("val")
        if a and b and filecmp.cmp(a, b, shallow=False):
            yield "same data", paths["val"], {"train": paths["train"]}
            continue
        for split, shard in real.items():
            target = os.path.realpath(shard) if shard else ""
            facts = {"split": split, "of": known.get(target) or split_of(target)}
            yield "data of a split", paths[split], {**facts, "verb": "trains" if split == "train" else "validates"}


def _lacking(whole: FoundFacts, root: str) -> Subjects:
    """Yields the files that llm.c needs and the folder lacks. On CUDA, flags can name other data and models."""

    def has(*names: str) -> list[str]:
        return [name for name in names if os.path.lexists(os.path.join(root, name))]

    data = {split: [text.format(split) for text in (CPU_DATA, STORIES_DATA)] for split in TRAINED_ON}
    models, shards = has(*MODEL_NAMES.values()), has(*data["train"], *data["val"])
    tokenizer, cuda = os.path.join(root, TOKENIZER_NAME), whole.given is not None
    if not os.path.exists(tokenizer) and (models or shards):
        yield "no tokenizer", tokenizer, {}
    missing = [os.path.join(root, names[0]) for names in data.values() if not has(*names)]
    if missing and (shards or models):
        yield "no data", missing[0], {"harmless": cuda or not (shards or MODEL_NAMES["fp32"] in models)}
    inside = next((path for path in whole.models if path.startswith(os.path.join(root, ""))), None)
    facts, model = whole.tokenizers.get(tokenizer), os.path.join(root, MODEL_NAMES["fp32"])
    if models:
        return
    if inside is not None:
        dtype, shown = whole.models[inside]["dtype"], os.path.relpath(inside, root)
        more = {"other": shown, "remedy": f"link {inside} there", "harmless": cuda or dtype != "fp32" or not shards}
        yield "no model", os.path.join(root, MODEL_NAMES[dtype]), more
    elif facts is not None and facts["V"] != GPT2_TOKENS:
        yield "no model for the tokenizer", root, {"V": facts["V"], "tokenizer": tokenizer, "model": model}
    elif shards:
        yield "no model", model, {"other": "d12 or similar", "remedy": "put a checkpoint there", "harmless": cuda}
