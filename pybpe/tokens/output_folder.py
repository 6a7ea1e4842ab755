"""The folder that a command fills with token files: who writes to it, whether an equal call has filled it already, and
how finished files get their names.

    with writing_to(folder):            one writer at a time
        made = made_before(folder, ...) the manifest of an equal call; or an error, if the files are of another one
        publish(folder, made)           the files that a run has finished get their names, the manifest last
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..arguments import number_of, param
from ..errors import ArgumentError, FileError, FormatError, UnsupportedError, file_errors, note, warn
from ..reading.corpus_folder import TOKEN_FILE
from ..reading.files import Corpus, SmallFiles, Staged
from ..reading.streams import sample_of
from ..support import platform
from ..support.output_files import FOLDER, differences, make_folder, only_writer, remove_file, remove_work
from ..support.task_results import TASKS, hashed
from ..tokenizer import Tokenizer
from .manifest import FILE_NAMES, TOKENIZER_NAMES, Manifest, found_manifest, is_as_recorded, manifest_name

FINISHED = "finished"  # in a hidden folder: files that get their names when all of them are there
REPLACED = "replaced"  # there, too: the manifest of the files that they are replacing


@contextmanager
def writing_to(folder: str) -> Iterator[None]:
    """Holds the lock of an output folder, and first ends the `publish` of a call that was killed."""
    with only_writer(folder):
        finished, aside = (os.path.join(folder, FOLDER, name) for name in (FINISHED, REPLACED))
        if os.path.isdir(aside) and os.path.exists(os.path.join(finished, manifest_name(finished))):
            publish(folder)
        yield


# ----------------------------------------------------------------------------------------------------
# The content of an output folder: nothing, the result of this very call, or something that must not be lost.
#
# A manifest has a hash of the call that made the folder: its settings, the tokenizer, and the names and sizes of its
# inputs, with samples of their content. Every command that fills a folder with token files first asks `made_before`:
#
#     nothing, or an unfinished run    -> the call does its work
#     the result of an equal call      -> the call returns the manifest that is there
#     the same, but files are missing  -> the call does its work again
#     anything else                    -> refused, unless the caller passes force=True
#
# A result is complete if every file that its manifest lists, tokenizers included, has the SHA-256 that is there. Only
# these files are ever removed: all others belong to somebody else. The old files stay until the new ones are complete.
#
# The hash has no modification times, so that equal inputs give equal manifests everywhere. Instead, an input that was
# written after the manifest counts as changed.

_SAMPLED = 256  # the number of files whose content is sampled


def call_of(settings: object, staged: Staged | None = None) -> str:
    """Returns the hash of a call. `settings` has a `repr` that is the same in every process."""
    staged = staged or Staged(Corpus())
    names, sizes, others = list[str](), list[int](), list[object]()
    for part in staged.files.parts:
        if isinstance(part, SmallFiles):
            if any(part.are_crlf):
                crlf = (number for number, is_crlf in enumerate(part.are_crlf, len(names) + 1) if is_crlf)
                others += [(number, None, None, True) for number in crlf]
            names += part.paths
            sizes += part.sizes
        elif part.inside or part.remote is not None or part.path in staged.names or part.size is None:
            others.append((len(names), staged.fingerprint(part)))
        else:
            names.append(part.path)
            sizes.append(part.size)
            if part.is_sequential:
                others.append((len(names), part.packing, part.encoding, part.is_crlf))
    every = -(-len(names) // _SAMPLED) or 1
    samples = list(map(sample_of, names[::every], sizes[::every]))
    return hashed(settings, names, sizes, others, samples)


def made_before(folder: str, known: Manifest, force: bool, files: Corpus | None = None) -> Manifest | None:
    """Returns the manifest of a folder if an equal call has made it, or None if this call must do the work.

    Args:
        folder: the output folder.
        known: the manifest of this call, as far as it is known: without a fingerprint if the call trains
            the tokenizer.
        force: whether the call replaces the output of other calls.
        files: the files that the call reads.

    Raises:
        ArgumentError: the folder has token files of another call.
    """
    path, unfinished = os.path.join(folder, manifest_name(folder)), is_unfinished(folder)
    ours: Any = known.tokenizer.get("fingerprint")
    stale = None if unfinished else stale_tokenizer(folder, ours)
    if force:
        if not unfinished and not files_of_manifest(folder) and (name := token_file(folder)) is not None:
            warn(f"{folder}: {name} is in no manifest, so it stays, unless this call makes a file with this name")
        if stale is not None and ours is not None:
            told = "which no manifest lists, and which would not fit the tokens"
            raise ArgumentError(f"{folder}: has another tokenizer, {stale}, {told}: remove it")
        return None
    if not os.path.exists(path):
        if not unfinished and (name := token_file(folder)) is not None:
            raise _refusal(folder, f"has token files without a manifest, such as {name}")
        if stale is not None:
            raise _refusal(folder, f"has another tokenizer, {stale}")
        return None
    try:
        found = Manifest.load(folder)
    except FormatError as error:
        raise _refusal(folder, f"has a manifest that cannot be read ({error})") from None
    written_ns = os.stat(path).st_mtime_ns
    files = files or Corpus()
    newer = [name for name, mtime_ns in zip(files.paths, files.modified) if mtime_ns > written_ns]
    if found.call != known.call:
        old, new = _asked(found), _asked(known)
        if ours is None and (trained := _training(folder)):
            old, new = {**old, **trained, "tokenizer": None}, {**new, **known.tokenizer, "tokenizer": None}
        new["inputs"] |= {name: (*new["inputs"][name], "newer") for name in newer if name in new["inputs"]}
        raise _refusal(folder, f"has token files of another call. {differences(old, new)}")
    if newer:
        raise _refusal(folder, f"was written before {newer[0]} changed")
    there = [record for record in found.records if os.path.lexists(os.path.join(folder, record.file))]
    changed = next((record.file for record in there if not is_as_recorded(folder, record)), None)
    if changed is not None:
        raise _refusal(folder, f"{changed} is not the file that this call wrote")
    if len(there) < len(found.records):
        return None
    if os.path.isdir(os.path.join(folder, FOLDER)):
        if unfinished:
            note(f"{folder}: gave up the unfinished run of another call, which would have replaced these files")
        remove_work(folder)
    note(f"{folder}: already complete ({sum(map(len, found.shards.values()))} shards, {found.tokens} tokens)")
    return found


def _training(folder: str) -> dict[str, object]:
    """Returns the options that trained the tokenizer in a folder, by the names of parameters, as far as it has them."""
    with suppress(FileError, FormatError, UnsupportedError):
        model = Tokenizer.from_file(os.path.join(folder, TOKENIZER_NAMES[0])).model
        specials = sorted(model.specials, key=lambda text: model.specials[text])
        facts = {"vocab_size": len(model.tokens), "special_tokens": specials, "end_of_text": model.eot}
        return {**facts, "pattern": model.pattern.regex, "normalizer": model.normalizer, **model.training}
    return {}


def _asked(manifest: Manifest) -> dict[str, Any]:
    """Returns the options of a call, by the names of parameters: a manifest without the results of the call."""
    settings: dict[str, Any] = dict(manifest.settings)
    if (rows := settings.pop("packing", None)) is not None:
        settings |= {"packing": rows.get("method"), "pad": rows["pad"], "seed": rows.get("seed")}
        settings |= {"data": rows.get("source"), "sequence_length": rows["sequence_length"]}
    if (mixture := settings.pop("mixture", None)) is not None:
        sources = {name: source.get("manifest") for name, source in mixture["sources"].items()}
        recipe = {**mixture.get("recipe", {}), "seed": mixture.get("seed")}
        settings |= {"recipe": recipe, "manifests of sources": sources}
    if (joined := settings.pop("joined", None)) is not None:
        settings["manifests of folders"] = {part.get("folder"): part.get("manifest") for part in joined}
    crlf = set(manifest.crlf)
    inputs = {name: (size, manifest.encodings.get(name), name in crlf) for name, size in manifest.inputs}
    return {**settings, "tokenizer": manifest.tokenizer, "inputs": inputs}


def token_file(folder: str) -> str | None:
    """Returns the name of a file in a folder that is named like token files of llm.c or nanoGPT, if there is one."""
    if not os.path.isdir(folder):
        return None
    with file_errors(folder, "cannot be read"):
        return next(filter(TOKEN_FILE.fullmatch, sorted(os.listdir(folder))), None)


def _refusal(folder: str, what: str) -> ArgumentError:
    return ArgumentError(f"{folder}: {what}: choose another folder, or replace them with {param(force=True)}")


# ----------------------------------------------------------------------------------------------------
# The finished files of a run get their names, and replace the files of an earlier one


def publish(folder: str, made: Manifest | None = None) -> None:
    """Moves finished files into their output folder, the manifest last. Removes the files that the manifest there
    lists, and says so to a caller who has just `made` the new one. The old manifest is put aside first, because it
    would be wrong from then on, and still lists them after a kill."""
    finished, aside = (os.path.join(folder, FOLDER, name) for name in (FINISHED, REPLACED))
    manifest, names = manifest_name(finished), os.listdir(finished)
    new = made or Manifest.load(finished)
    older = replaced_files(folder, new.tokenizer.get("fingerprint"))
    older = [name for name in older if os.path.lexists(os.path.join(folder, name))]
    if older and made is not None:
        warn(f"{folder}: replacing {number_of(len(older), 'file')} of an earlier run, such as {older[-1]}")
    make_folder(aside)
    with file_errors(folder, "cannot be written"):
        for name in FILE_NAMES:
            if os.path.exists(os.path.join(folder, name)):
                platform.replace_file(os.path.join(folder, name), os.path.join(aside, name))
                platform.sync_folder(aside)
        platform.sync_folder(folder)
        # After a kill, some new files are in the folder already, with the names of older ones.
        for name in set(older) - set(names) - set(new.file_names) - set(FILE_NAMES):
            remove_file(os.path.join(folder, name))
        for some in (set(names) - {manifest}, {manifest}):
            for name in some:
                platform.replace_file(os.path.join(finished, name), os.path.join(folder, name))
            platform.sync_folder(folder)
    remove_work(folder)


def files_of_manifest(folder: str) -> list[str]:
    """Returns the names of the files that a finished run wrote, its manifest included."""
    found = found_manifest(folder)
    return [] if found is None else [manifest_name(folder), *found.file_names]


def stale_tokenizer(folder: str, ours: str | None) -> str | None:
    """Returns the name of a tokenizer's file in a folder that no manifest lists and that does not hold the tokenizer
    with this fingerprint: next to its token files, it would decode them to another text."""
    listed = files_of_manifest(folder)
    names = (name for name in TOKENIZER_NAMES if name not in listed and os.path.lexists(os.path.join(folder, name)))
    return next((name for name in names if ours is None or _fingerprint(folder, name) != ours), None)


def _fingerprint(folder: str, name: str) -> str | None:
    """Returns the fingerprint of the tokenizer in a file, or None if there is none."""
    with suppress(FileError, FormatError, UnsupportedError):
        return Tokenizer.from_file(os.path.join(folder, name)).model.fingerprint
    return None


def replaced_files(folder: str, fingerprint: object) -> list[str]:
    """Returns the names of the files that earlier runs wrote, finished or not, with their manifest, and that another
    run removes: not the tokenizer if it has the fingerprint of the other run's, which may read it there."""
    hidden = os.path.join(folder, FOLDER)
    places = (folder, os.path.join(hidden, REPLACED))
    names = dict.fromkeys(name for place in places for name in files_of_manifest(place))
    return [name for name in names if name not in TOKENIZER_NAMES or _fingerprint(folder, name) != fingerprint]


# ----------------------------------------------------------------------------------------------------
# Folders that a run may not have finished, for readers of token files


def is_unfinished(folder: str) -> bool:
    """Returns whether a run that writes to a folder was killed or is still running. A manifest is newer than the work
    of its own run, which may have been killed before it removed that."""
    hidden, manifest = os.path.join(folder, FOLDER), os.path.join(folder, manifest_name(folder))
    with suppress(FileNotFoundError), file_errors(hidden, "cannot be examined"):
        places = [os.path.join(hidden, name) for name in (TASKS, FINISHED)]
        begun = [os.stat(place).st_mtime_ns for place in places if os.path.isdir(place) and os.listdir(place)]
        return bool(begun) and not (os.path.exists(manifest) and os.stat(manifest).st_mtime_ns >= max(begun))
    return False


def check_finished(folder: str) -> None:
    """Says, if a run that writes to a folder was killed or is still running, how to go on. A run removes the manifest
    before it changes a file that the manifest lists: until then, that finished result can be used.

    Raises:
        ArgumentError: there is no manifest.
    """
    if not is_unfinished(folder):
        return
    if not os.path.exists(os.path.join(folder, manifest_name(folder))):
        raise ArgumentError(f"{folder}: the run that writes to this folder has not finished: run its command again")
    note(
        f"{folder}: these are the files of a finished run. Another one, which has not ended, would replace them: run"
        " its command again, or the command that made these files, which gives the other one up"
    )
