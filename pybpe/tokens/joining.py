"""join: makes one folder of token files from several, which binarize wrote on different machines.

Every machine runs `binarize` on its own files, into its own folder. With split_by="hash", only the content of a
document decides its split, so every document is in the same split as after one run on all files. So the tokens of the
folders, one after the other, are that run's tokens, and `join` writes them as that run would:

    node 1   train [aaaa|aaaa|aa]  val [a]           joined   train [aaaa|aaaa|aabb|bbbb|b]
    node 2   train [bbbb|bbb]      val [bb]     ->            val   [abb]

The ids are copied. No text is encoded again.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .. import _binding
from ..arguments import instance
from ..errors import ArgumentError, FormatError
from ..reading.charset import Doubts
from ..reading.inputs import Inputs, path_list
from ..reading.planning import SPLIT_NAMES
from ..support.parallel import RunOptions, end_if_unwanted
from ..support.task_results import hashed
from ..tokenizer import Tokenizer
from .formats import Layout, OutputOptions
from .manifest import Manifest, ShardRecord, split_paths
from .output_folder import made_before, writing_to
from .provenance import kept_provenance, provenance_of
from .run import Job, write_token_files
from .task_encoder import TYPECODES, Encoded, Segment, text_length, text_starts
from .token_folders import TokenFolder, check_copies, check_documents_apart, with_mark_of

_PROVENANCE = ("provenance", "id_key")  # the output has it if all folders do
_SETTINGS = ("format", "eot", "dtype", "shard_tokens", "min_shard_tokens")


def join(
    tok: Tokenizer,
    folders: Inputs,
    out: _binding.PathLike,
    *,
    name: str | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> Manifest:
    """Joins folders of token files, in the order given, into one.

    If the folders were made with split_by="hash" and the same arguments, you get the token files that one run of
    `binarize` on all their inputs, in this order, would write. With another `split_by`, every folder keeps its own
    division. `join` writes new files, because the shards of a split must have equal size. It checks the SHA-256 of all
    files first. If a run is killed, make the same call again to resume it.

    Args:
        tok: the tokenizer that made the folders.
        folders: paths of folders that `binarize` or `prepare` wrote, as "llmc", "raw", "npy" or "megatron".
        out: the output folder.
        name: NAME of the files. None uses the first folder's.
        force: as in `binarize`.
        progress: as in `pybpe.train`.

    Returns:
        The manifest. settings["joined"] has the folders, and the SHA-256 of their manifests.

    Raises:
        ArgumentError: the folders were made with different arguments, by another tokenizer, or from the same input. Or
            one holds out a document that another one trains on. Or their files have rows, or no marks between
            documents.
        FormatError: a file does not match its manifest.
        LimitError: a shard would be too small or too large.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    target = _binding.path_text(out)
    parts = _folders(tok, path_list(folders), target)
    tok = with_mark_of(tok, *parts)
    settings: dict[str, Any] = {**parts[0].manifest.settings, "joined": [_described(part) for part in parts]}
    if name is not None:
        OutputOptions(settings["format"], name=name).check_used()
    settings = {key: value for key, value in settings.items() if key not in _PROVENANCE} | kept_provenance(parts)
    given = {key: settings[key] for key in (*_SETTINGS, *_PROVENANCE, "document_offsets") if key in settings}
    output = OutputOptions(**given, name=name or parts[0].manifest.name)
    output = output.for_vocabulary(tok.vocab_size, tok.model.eot)
    fingerprint = hashed(output, [part.sha256 for part in parts])
    with writing_to(target):
        inputs = [input for part in parts for input in part.manifest.inputs]
        encodings = {name: encoding for part in parts for name, encoding in part.manifest.encodings.items()}
        crlf = [name for part in parts for name in part.manifest.crlf]
        known = Manifest(settings, dict(parts[0].manifest.tokenizer), call=fingerprint, inputs=inputs)
        known = replace(known, encodings=encodings, crlf=crlf)
        if (made := made_before(target, known, force)) is not None:
            return made
        check_documents_apart([(part.path, part) for part in parts])
        layout = Layout(tok, output, target, output.name or "", {})
        tasks = [(each, repr((each[0], each[1].sha256, each[2])).encode(), b"") for each in _copies(parts)]
        provenance = partial(provenance_of, parts, layout.unfinished) if output.provenance else None
        copied = partial(_copied, layout)
        job = Job(fingerprint, len(settings["splits"]), tasks, copied, provenance=provenance, doing=("joining", "B"))
        total = sum(each[2].bytes for each, _, _ in tasks)
        return write_token_files(layout, job, RunOptions(progress=progress), total, known)


# ----------------------------------------------------------------------------------------------------
# Inputs


def _folders(tok: Tokenizer, folders: Sequence[str], out: str) -> list[TokenFolder]:
    """Returns the folders. Raises an error if they cannot be joined."""
    parts: list[TokenFolder] = []
    for path in folders:
        part = TokenFolder.open(path, tok)
        part.check_documents(out)
        missing = [key for key in (*_SETTINGS, "splits", "split_by") if key not in part.manifest.settings]
        if missing:
            raise FormatError(f"{path}: the manifest's settings have no {missing[0]}: `binarize` did not write it")
        first = parts[0] if parts else part
        theirs, ours = part.manifest.settings, first.manifest.settings
        for key in sorted((theirs.keys() | ours.keys()) - {"joined", "sequence_length", *_PROVENANCE}):
            if theirs.get(key) != ours.get(key):
                raise ArgumentError(
                    f"{path}: was made with {key}={theirs.get(key)!r}, and {first.path} with {ours.get(key)!r}: make"
                    " both with the same arguments"
                )
        for split, records in part.manifest.shards.items():
            if records:
                split_paths(path, part.manifest, split)
        parts.append(part)
    check_copies([(part.path, part) for part in parts])
    return parts


def _described(part: TokenFolder) -> dict[str, Any]:
    skipped = {} if part.manifest.skipped is None else {"skipped": dict(part.manifest.skipped)}
    return {**skipped, "folder": os.path.basename(os.path.normpath(part.path)), "manifest": part.sha256}


# ----------------------------------------------------------------------------------------------------
# Reading


_Copy = tuple[int, TokenFolder, ShardRecord, bool, int]
"""A token file to copy: the index of its split, its folder, its record, whether it is the last one of both, and how
many tokens of the split are before it."""


def _copies(parts: Sequence[TokenFolder]) -> Iterator[_Copy]:
    for split, name in enumerate(SPLIT_NAMES):
        before = 0
        for part in parts:
            records = part.manifest.shards.get(name, [])
            for record in records:
                yield split, part, record, record is records[-1], before
                before += record.tokens


def _copied(layout: Layout, copies: Iterable[_Copy], doubts: Doubts) -> Iterator[Encoded]:
    """Yields the tokens of files: see Job."""
    for split, part, record, is_last, before in copies:
        for block in layout.output.form.read(part.checked(record), layout.output.dtype):
            end_if_unwanted()
            ids = array(TYPECODES[layout.output.dtype], block.tobytes())
            marks = _binding.count_id(ids, layout.tok.eot_token or 0)
            segment = Segment(split, ids, marks, text_length(layout.tok, ids), False)
            if layout.output.provenance:
                places = [before + start for start in text_starts(ids, layout.tok.eot_token)]
                segment, before = segment._replace(origins=(places, ())), before + len(ids)
            yield Encoded([segment], len(ids) * ids.itemsize)
        end = Segment(split, array(TYPECODES[layout.output.dtype]), 0, 0, is_last)  # of the last document, or no end
        yield Encoded([end], 0, True)
