"""verify: checks that files match their manifest, and that their tokens represent text; and stats: measures them."""

from __future__ import annotations

import errno
import glob
import os
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import number_of
from ..errors import ArgumentError, Error, FormatError, file_error
from ..reading.planning import SPLIT_NAMES
from ..reading.streams import file_sha256
from ..tokenizer import Tokenizer
from .formats import FORMATS, LLMC
from .manifest import (
    OTHER_TOKENIZER,
    FileRecord,
    Manifest,
    ShardRecord,
    manifest_name,
    named_folder,
    tokenizer_entry,
    with_mark,
)
from .output_folder import check_finished
from .pack.rows import row_fault
from .task_encoder import ID_BYTES

_SAMPLES = 4  # blocks per shard with a document that is decoded and encoded again
_SAMPLE_TOKENS = 4096
_END_TOKENS = 64  # at the end of a truncated document, encoding may differ
PERCENTILES = (0, 10, 50, 90, 99, 100)


@dataclass(frozen=True)
class Problem:
    """One problem: a file and its fault."""

    file: str
    fault: str

    def __str__(self) -> str:
        return f"{self.file}: {self.fault}"


def verify(folder: _binding.PathLike, tok: Tokenizer | None = None) -> tuple[Manifest, list[Problem]]:
    """Checks a folder of token files against its manifest.

    Checks the size and SHA-256 of every file, and that the manifest does not contradict itself. Token files that the
    manifest does not list are problems too, since programs that find shards by a pattern read them. With a tokenizer,
    it also checks that the tokenizer is the manifest's, that every id is in the vocabulary, that all files have the
    stated numbers of documents and of bytes of text, with marks where the manifest says, and that some documents encode
    again to the ids that they were decoded from. In packed rows, which may cut documents anywhere, it checks instead
    that every row begins with the mark.

    Args:
        folder: the folder with manifest.json, or one file in it, to check only that one.
        tok: the tokenizer. None uses tokenizer.json from the folder, if there is one.

    Returns:
        The manifest and the problems. An empty list means that all is well.

    Raises:
        FileError, FormatError: there is no manifest, or it is invalid or names a file outside its folder.
        ArgumentError: the manifest does not list the file, or a run has begun to replace the files.
    """
    name, only = named_folder(folder)
    check_finished(name)
    if only is not None and not os.path.exists(os.path.join(name, manifest_name(name))):
        told = "not one of pybpe's token files: its folder has no manifest.json"
        raise file_error(errno.ENOENT, f"{os.fsdecode(folder)}: {told}")
    manifest = Manifest.load(name)
    if only is not None:
        if only not in manifest.file_names:
            raise ArgumentError(f"{os.fsdecode(folder)}: the manifest in this folder does not list this file")
        shards = {split: [each for each in found if each.file == only] for split, found in manifest.shards.items()}
        manifest = replace(manifest, shards=shards, files=[each for each in manifest.files if each.file == only])
    problems: list[Problem] = []
    if tok is None and os.path.exists(os.path.join(name, "tokenizer.json")):
        tok = Tokenizer.from_file(os.path.join(name, "tokenizer.json"))
    if tok is not None:
        tok = tok.replace(dropout=0) if tok.model.dropout else tok  # it changes nothing about token files
        if tok.model.fingerprint != manifest.tokenizer.get("fingerprint"):
            problems.append(Problem("manifest.json", OTHER_TOKENIZER))
            tok = None
        else:
            tok = with_mark(tok, manifest)
    if only is None:
        problems += [Problem("manifest.json", fault) for fault in _contradictions(manifest, tok)]
        problems += _unlisted(name, manifest)
    for record in manifest.files:
        problems += _file_problems(name, record)
    for split, records in manifest.shards.items():
        seen: list[_Marks] = []
        for shard in records:
            found = list(_file_problems(name, shard)) or list(_row_problems(name, shard, manifest))
            problems += found
            if not found and tok is not None:
                problems += _token_problems(name, shard, manifest, tok, seen)
        if seen and only is None and len(seen) == len(records):
            problems += _mark_problems(split, manifest, seen)
    return manifest, problems


def _contradictions(manifest: Manifest, tok: Tokenizer | None) -> Iterator[str]:
    """Yields what in a manifest contradicts itself, or the tokenizer."""
    settings, shards = manifest.settings, manifest.shards
    form, dtype = FORMATS.get(str(settings.get("format"))), str(settings.get("dtype"))
    if form is None or dtype not in ID_BYTES:
        yield f"the format {settings.get('format')!r:.40} or the dtype {dtype!r:.40} is unknown"
        return
    shares: Sequence[object] = settings.get("splits") or ()  # type: ignore[assignment]
    for number, split in enumerate(SPLIT_NAMES if shares else ()):
        if split not in shards if number < len(shares) else shards.get(split):
            yield f"the settings give {len(shares)} splits, which {split} contradicts"
    flat = form.header is not None and (manifest.packing is None or form is LLMC)  # otherwise, rows have columns
    for split, records in shards.items():
        if split not in SPLIT_NAMES:
            yield f"has the split {split!r:.40}; there are only {', '.join(SPLIT_NAMES)}"
        text_bytes = sum(record.text_bytes for record in records)
        if text_bytes != manifest.text_bytes.get(split, 0):
            yield f"{split} has {text_bytes} bytes of text in its files, and {manifest.text_bytes.get(split, 0)} in all"
        for index, record in enumerate(records):
            expected = form.file.format(name=manifest.name, split=split, index=index)
            if record.file.partition(".")[0] != expected.partition(".")[0]:
                yield f"{split}: its file {index} is {record.file!r:.80}, but must be {expected!r:.80}"
            if flat and record.bytes != form.header_bytes + record.tokens * ID_BYTES[dtype]:
                yield f"{record.file}: {record.tokens} tokens in {dtype} do not have {record.bytes} bytes"
    for split in manifest.text_bytes.keys() - shards.keys():
        yield f"has bytes of text of {split!r:.40}, but no files"
    for key, ours in tokenizer_entry(tok).items() if tok is not None else ():
        if manifest.tokenizer.get(key) != ours:
            yield f"the tokenizer's {key} is {ours!r:.80}, but the manifest says {manifest.tokenizer.get(key)!r:.80}"


class _Marks(NamedTuple):
    first: bool  # whether its first token is one
    last: bool  # whether its last token is one
    marks: int
    before_text: int  # how many are right before a token that is neither a mark nor padding


def _mark_problems(split: str, manifest: Manifest, seen: Sequence[_Marks]) -> Iterator[Problem]:
    """Yields the contradictions of the marks in all shards of a split."""
    records, eot, packing = manifest.shards[split], manifest.settings.get("eot"), manifest.packing
    if packing is not None:  # all documents, and the parts after the cuts in them
        parts = manifest.split_documents(split) + (packing["splits"].get(split) or {}).get("cuts", 0)
        found = sum(marks.before_text for marks in seen)
        if found != parts:
            yield Problem("manifest.json", f"{split} has {number_of(found, 'part')} of documents, not {parts}")
        return
    if eot not in ("prepend", "append"):
        return
    before = True  # whether a document begins with the next token
    for record, marks in zip(records, seen):
        found = marks.marks if eot == "prepend" else before + marks.marks - marks.last
        before = marks.last
        if found != record.documents:
            yield Problem(record.file, f"has {number_of(found, 'document')}, but the manifest says {record.documents}")
    if (seen[0].first, seen[-1].last) != (eot == "prepend", eot == "append"):
        yield Problem("manifest.json", f"{split} has its ends of text elsewhere than its eot, {eot}, says")


def _unlisted(folder: str, manifest: Manifest) -> Iterator[Problem]:
    """Yields files that programs would take for the folder's token files, though the manifest does not list them."""
    form = FORMATS.get(str(manifest.settings.get("format")))
    listed = set(manifest.file_names)
    for split in SPLIT_NAMES if form is not None else ():
        assert form is not None
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), form.pattern(split)))):
            if os.path.basename(path) not in listed:
                fault = "the manifest does not list it, but programs that match names by a pattern read it: remove it"
                yield Problem(os.path.basename(path), fault)


def _file_problems(folder: str, record: FileRecord | ShardRecord) -> Iterator[Problem]:
    path = os.path.join(folder, record.file)
    try:
        size = os.path.getsize(path)
        if size != record.bytes:
            yield Problem(
                record.file,
                f"has {number_of(size, 'byte')}, but the manifest says {record.bytes}: truncated or replaced",
            )
        elif file_sha256(path) != record.sha256:
            yield Problem(record.file, "its SHA-256 is not the manifest's: its content has changed")
    except OSError as error:
        yield Problem(record.file, f"cannot be read: {error.strerror}")


def _row_problems(folder: str, shard: ShardRecord, manifest: Manifest) -> Iterator[Problem]:
    """Yields whether rows that were packed are not where they must be."""
    if manifest.packing is None:
        return
    try:
        blocks, size = shard_blocks(folder, shard, manifest), manifest.packing["sequence_length"]
        more = int(manifest.settings.get("format") == LLMC.name)
        fault = row_fault(blocks, size, manifest.tokenizer["eot"], more)  # type: ignore[arg-type]
    except Error as error:
        fault = str(error)
    if fault is not None:
        yield Problem(shard.file, fault)


def shard_blocks(folder: str, shard: ShardRecord, manifest: Manifest) -> Iterator[Array]:
    """Yields the ids of a shard in blocks.

    Raises:
        ArgumentError: the manifest's format is unknown. FormatError, FileError: the file is damaged.
    """
    form = FORMATS.get(str(manifest.settings.get("format")))
    if form is None:
        raise ArgumentError(f"the manifest's format {manifest.settings.get('format')!r} is unknown")
    return form.read(os.path.join(folder, shard.file), str(manifest.settings.get("dtype")))


def _token_problems(
    folder: str, shard: ShardRecord, manifest: Manifest, tok: Tokenizer, seen: list[_Marks]
) -> Iterator[Problem]:
    """Yields whether the tokens of a shard do not match the manifest. Adds its marks to `seen`."""
    pad = None if manifest.packing is None else manifest.packing["pad"]
    marks, parts, last, begins = 0, 0, False, None
    lengths = numpy.fromiter(map(len, tok.model.tokens), dtype=numpy.int64, count=tok.vocab_size)
    if tok.eot_token is not None:
        lengths[tok.eot_token] = 0  # it is not text
    if manifest.packing is not None and manifest.packing["pad"] < tok.vocab_size:
        lengths[manifest.packing["pad"]] = 0  # padding is not text
    rng = random.Random(shard.sha256)
    tokens = text_bytes = 0
    samples: list[Array] = []
    try:
        for number, block in enumerate(shard_blocks(folder, shard, manifest)):
            if len(block) and int(block.max()) >= tok.vocab_size:
                yield Problem(
                    shard.file, f"has the id {int(block.max())}, but the vocabulary ends at {tok.vocab_size - 1}"
                )
                return
            if len(block) and tok.eot_token is not None:
                is_mark = block.reshape(-1) == tok.eot_token
                after = numpy.append(last, is_mark[:-1])
                marks, parts = (
                    marks + int(is_mark.sum()),
                    parts + int((after & ~is_mark & (block.reshape(-1) != pad)).sum()),
                )
                begins, last = bool(is_mark[0]) if begins is None else begins, bool(is_mark[-1])
            tokens += len(block)
            text_bytes += int(lengths[block].sum())
            place = number if number < _SAMPLES else rng.randint(0, number)
            if place < _SAMPLES:  # every block is equally likely to end up among the samples
                samples[place : place + 1] = [block.copy()]
    except Error as error:
        yield Problem(shard.file, str(error))
        return
    if begins is not None:
        seen.append(_Marks(begins, last, marks, parts))
    if tokens != shard.tokens:
        yield Problem(shard.file, f"has {number_of(tokens, 'token')}, but the manifest says {shard.tokens}")
    if text_bytes != shard.text_bytes:
        yield Problem(
            shard.file, f"represents {number_of(text_bytes, 'byte')} of text, but the manifest says {shard.text_bytes}"
        )
    # The ends of some documents of a mixture may be cut off, to make amounts exact. Packing cuts documents anywhere.
    cut = manifest.mixture is not None and any(source["cuts"] for source in manifest.mixture["sources"].values())
    for block in samples if manifest.packing is None else ():
        begin = _wrong_document(block, tok, rng, cut)
        if begin is not None:
            text = tok.decode(block[begin : begin + 12].tolist())
            yield Problem(shard.file, f"a document encodes to different ids; it begins {text!r}")


def _wrong_document(block: Array, tok: Tokenizer, rng: random.Random, cut: bool) -> int | None:
    """Picks a random document of a block. Returns where it begins if its text encodes to other ids. Only after a mark
    is a beginning certain. `cut` says that a document may end before its end."""
    starts = numpy.flatnonzero(block == tok.eot_token) + 1 if tok.eot_token is not None else ()
    if not len(starts):
        return None
    begin = int(rng.choice(starts))
    ids = block[begin : begin + _SAMPLE_TOKENS].tolist()
    whole = tok.eot_token in ids
    if whole:
        ids = ids[: ids.index(tok.eot_token)]
    if not tok.model.encodes_again(ids):
        return None
    text = tok.decode_bytes(ids)
    same = len(ids) if whole and not cut else max(0, len(ids) - _END_TOKENS)
    # Records were encoded as ordinary text. In plain text, special tokens are recognized.
    found = (tok.encode(text), tok.encode_ordinary(text))
    return None if any(again[:same] == ids[:same] for again in found) else begin


# ----------------------------------------------------------------------------------------------------
# Statistics


@dataclass(frozen=True)
class SplitStatistics:
    """The statistics of one split.

    Attributes:
        tokens, documents, text_bytes, shards: their numbers.
        bytes_per_token: bytes of text per token, or 0 if there are no tokens.
        document_tokens: percentile -> document length in tokens, without marks. Empty if no marks separate documents.
            In packed rows, the length of a part of a document.
    """

    tokens: int
    documents: int
    text_bytes: int
    shards: int
    bytes_per_token: float
    document_tokens: dict[int, int]

    def __str__(self) -> str:
        shares = ", ".join(f"{percent}%: {length}" for percent, length in self.document_tokens.items())
        lengths = f"; tokens per document, by percentile: {shares}" if shares else ""
        return f"{self.bytes_per_token:.3f} bytes per token{lengths}"


def dataset_statistics(folder: _binding.PathLike) -> dict[str, SplitStatistics]:
    """Computes the statistics of a folder with a manifest.json. Reads all tokens.

    Raises:
        FileError, FormatError: there is no manifest, or a file is damaged.
    """
    name = os.fsdecode(folder)
    manifest = Manifest.load(name)
    eot = manifest.settings.get("eot")
    mark = manifest.tokenizer.get("eot")
    if mark is not None and not isinstance(mark, int):
        raise FormatError(f"{name}: the manifest's tokenizer has the eot {mark!r}, expected an id")
    found = {}
    for split, shards in manifest.shards.items():
        tokens = manifest.split_tokens(split)
        lengths = _document_lengths(name, manifest, split, mark) if eot != "none" and mark is not None else Counter()
        text_bytes = manifest.text_bytes.get(split, 0)
        found[split] = SplitStatistics(
            tokens,
            manifest.split_documents(split),
            text_bytes,
            len(shards),
            round(text_bytes / tokens, 4) if tokens else 0.0,
            _percentiles(lengths),
        )
    return found


def _document_lengths(folder: str, manifest: Manifest, split: str, mark: int) -> Counter[int]:
    pad = manifest.packing["pad"] if manifest.packing is not None and manifest.packing["pad"] != mark else None
    lengths: Counter[int] = Counter()
    run = 0  # tokens since the last mark
    for shard in manifest.shards[split]:
        for block in shard_blocks(folder, shard, manifest):
            if pad is not None:
                block = block[block != pad]
            marks = numpy.flatnonzero(block == mark)
            if not len(marks):
                run += len(block)
                continue
            lengths[run + int(marks[0])] += 1
            values, counts = numpy.unique(numpy.diff(marks) - 1, return_counts=True)
            lengths.update(dict(zip(values.tolist(), counts.tolist())))
            run = len(block) - int(marks[-1]) - 1
    lengths[run] += 1
    del lengths[0]  # from before the first mark, or after the last: no document is empty
    return lengths


def _percentiles(lengths: Counter[int]) -> dict[int, int]:
    """Returns the smallest length that this percentage of the documents does not exceed."""
    values = sorted(lengths)
    ends = list(accumulate(lengths[value] for value in values))  # how many documents are at most so long
    wanted = [max(1, -(-percent * ends[-1] // 100)) for percent in PERCENTILES if values]
    return dict(zip(PERCENTILES, (values[bisect_left(ends, count)] for count in wanted)))
