"""What an output folder already has: nothing, the result of this very call, or something that must not be lost.

A manifest has a hash of the call that made the folder: its settings, the tokenizer, and the names and sizes of its
inputs, with samples of their content. Every command that fills a folder with token files first asks `made_before`:

    nothing, or an unfinished run    -> the call does its work
    the result of an equal call      -> the call returns the manifest that is there
    anything else                    -> refused, unless the caller passes force=True

The hash has no modification times, so that equal inputs give equal manifests everywhere. Instead, an input that was
written after the manifest counts as changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .. import _binding
from .._version import __version__
from ..errors import ArgumentError, FormatError, file_errors, note, warn
from ..reading.corpus_folder import TOKEN_FILE
from ..reading.input_file import InputFile
from ..reading.staging import Staged
from ..support.locking import only_writer
from ..support.output_files import real_output, remove_folder, unfinished_folder
from ..tokenizer import Tokenizer
from .manifest import FileRecord, Manifest, ShardRecord, manifest_name
from .output_folder import TOKENIZER_NAMES, files_of_manifest, is_unfinished, stale_tokenizers

_SAMPLED = 256  # the number of files of which the content is sampled
_BLOCK = 4096  # bytes; a sample has three blocks


def call_of(settings: object, staged: Staged | None = None) -> str:
    """Returns the hash of a call. `settings` has a `repr` that is the same in every process."""
    inputs = [] if staged is None else _inputs(staged)
    return hashlib.sha256(repr((__version__, settings, inputs)).encode("utf-8", "surrogateescape")).hexdigest()


def _inputs(staged: Staged) -> list[tuple[object, ...]]:
    every = -(-len(staged.files) // _SAMPLED) or 1
    found: list[tuple[object, ...]] = []
    for number, (file, identity) in enumerate(zip(staged.files, staged.identities)):
        if file.remote is not None or file.path in staged.names or file.size is None:
            found.append(identity)
        else:
            sample = _sample(file) if number % every == 0 else b""
            found.append((file.path, file.size, file.packing, file.encoding, sample))
    return found


def _sample(file: InputFile) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    with file_errors(file.location, "cannot be read"), open(file.location, "rb") as stream:
        for start in (0, (file.size or 0) // 2, (file.size or 0) - _BLOCK):
            stream.seek(max(0, start))
            digest.update(stream.read(_BLOCK))
    return digest.digest()


@dataclass(frozen=True)
class Goal:
    """What a call makes in the end.

    Attributes:
        folder: the output folder.
        force: whether the call replaces what other calls have made.
        also: what the result depends on besides the token files, such as the rows that they are packed into.
        rows: the arguments of `rows_call`, if the token files are packed.
    """

    folder: str
    force: bool = False
    also: object = None
    rows: tuple[object, ...] = ()

    def made(self, call: str, tok: Tokenizer | None, inputs: Sequence[InputFile]) -> Manifest | None:
        """Returns what `made_before` returns for the folder. `call` is the hash of the token files' call."""
        if not self.rows:
            made = made_before(self.folder, call, tok, self.force, inputs)
            if made is None:
                _drop_unpacked(self.folder)
            return made
        made = made_before(self.folder, rows_call(call, *self.rows), tok, self.force, inputs)
        if made is None:
            check_only_tokens(self.folder)
        return made


def hidden_folder(out: _binding.PathLike) -> str:
    """Returns where the token files go before they are packed."""
    return os.path.join(unfinished_folder(real_output(out) + ".tokens"), "data")


def _drop_unpacked(out: str) -> None:
    """Removes the token files that a call left that would have packed them into `out`, and was killed. Raises FileError
    if it is still running."""
    folder = hidden_folder(out)
    if os.path.isdir(folder):
        with only_writer(os.path.dirname(folder), temporary=True):
            remove_folder(folder)


def rows_call(call: str, *rows: object) -> str:
    """Returns the hash of a call that packs token files. `rows` are its arguments from `sequence_length` to
    `shard_tokens`."""
    return call_of((call, rows))


def made_before(
    folder: str, call: str, tok: Tokenizer | None, force: bool, inputs: Sequence[InputFile] = ()
) -> Manifest | None:
    """Returns the manifest of a folder that an equal call has made, or None if this call must do the work.

    Args:
        folder: the output folder, which may not exist.
        call: the hash of the call, as `call_of` returns it.
        tok: the tokenizer, or None if the call trains it.
        force: whether the call replaces what other calls have made.
        inputs: the files that the call reads.

    Raises:
        ArgumentError: the folder has token files of another call.
    """
    path = os.path.join(folder, manifest_name(folder))
    unfinished = is_unfinished(folder)
    if force:
        if not unfinished and not files_of_manifest(folder) and (name := _token_file(folder)) is not None:
            warn(f"{folder}: {name} is in no manifest, so it stays, unless this call makes a file with this name")
        return None
    if not os.path.exists(path):
        if not unfinished and (name := _token_file(folder)) is not None:
            raise _refusal(folder, f"has token files without a manifest, such as {name}")
        if not unfinished and (stale := stale_tokenizers(folder, tok)):
            raise _refusal(folder, f"has another tokenizer, {stale[0]}")
        return None
    try:
        found = Manifest.load(folder)
    except FormatError as error:
        raise _refusal(folder, f"has a manifest that cannot be read ({error})") from None
    if found.call != call:
        raise _refusal(folder, "has token files of other inputs, settings or another tokenizer")
    written_ns = os.stat(path).st_mtime_ns
    newer = next((file.path for file in inputs if file.mtime_ns > written_ns), None)
    if newer is not None:
        raise _refusal(folder, f"was written before {newer} changed")
    if unfinished or not _is_whole(folder, found):
        return None
    shards = sum(map(len, found.shards.values()))
    note(f"{folder}: already complete ({shards} shards, {found.tokens} tokens)")
    return found


def _token_file(folder: str) -> str | None:
    if not os.path.isdir(folder):
        return None
    with file_errors(folder, "cannot be read"):
        return next(filter(TOKEN_FILE.fullmatch, sorted(os.listdir(folder))), None)


def check_only_tokens(target: str) -> None:
    """Raises ArgumentError if the output folder has anything but what a manifest lists: it is replaced as a whole."""
    if not os.path.lexists(target):
        return
    left = (
        set(os.listdir(target)) - {*files_of_manifest(target), *TOKENIZER_NAMES} if os.path.isdir(target) else {target}
    )
    if left:
        raise ArgumentError(f"{target}: has something else, such as {min(left)}: name another folder")


def _is_whole(folder: str, manifest: Manifest) -> bool:
    records: list[ShardRecord | FileRecord] = [*manifest.files]
    for shards in manifest.shards.values():
        records += shards
    paths = [(os.path.join(folder, record.file), record.bytes) for record in records]
    return all(os.path.exists(path) and os.path.getsize(path) == size for path, size in paths)


def _refusal(folder: str, what: str) -> ArgumentError:
    return ArgumentError(f"{folder}: {what}: choose another folder, or replace them with force=True")
