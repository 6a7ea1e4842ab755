"""Folders of finished token files, which `join`, `mix` and `pack` read, and what several of them have in common: files,
and documents.

`join` and `mix` make one data set of several folders. A document that one of them holds out, in val or test, must not
be trained on through another one, however they were split. So all documents are compared: by the first 8 bytes of a
hash of their ids. The hashes of held-out documents are in memory, 8 bytes a document. A long document counts as its
beginning."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import is_url, number_of, param, shown
from ..errors import ArgumentError, FormatError
from ..reading.inputs import STDIN
from ..reading.streams import file_sha256
from ..support.call_paths import file_id
from ..support.parallel import end_if_unwanted
from ..tokenizer import Tokenizer
from .formats import FLAT
from .manifest import (
    FileRecord,
    Manifest,
    ShardRecord,
    check_tokenizer,
    checked,
    manifest_name,
    split_paths,
    with_mark,
)
from .output_folder import check_finished
from .task_encoder import ID_BYTES
from .token_files import TokenStream, with_marks_first

_BLOCK = 1 << 20  # tokens read at once. Of a longer document, only these are hashed
_SAMPLE = 1 << 20  # documents of a folder that are kept, about, to compare it with another as a whole


def finished_manifest(folder: str, tok: Tokenizer) -> Manifest:
    """Returns the manifest of a folder of token files.

    Raises:
        ArgumentError: the run that writes to it has not finished, or another tokenizer made the files. FileError,
            FormatError: there is no manifest, or it is damaged.
    """
    check_finished(folder)
    manifest = Manifest.load(folder)
    check_tokenizer(folder, manifest.tokenizer.get("fingerprint"), tok)
    return manifest


def with_mark_of(tok: Tokenizer, *folders: TokenFolder) -> Tokenizer:
    """Returns the tokenizer that made the folders, with their mark as its end of text.

    Raises:
        ArgumentError: the folders have different marks. FormatError: their mark is not a special token.
    """
    first = folders[0]
    for each in folders:
        mark, other = (some.manifest.tokenizer.get("eot") for some in (each, first))
        if mark != other:
            raise ArgumentError(
                f"{each.path}: its end-of-text token has id {mark}, but in {first.path} it has id {other}: make both"
                f" with the same {param('eot')}"
            )
    made = with_mark(tok, first.manifest)
    if made.eot_token != mark:
        raise FormatError(
            f"{first.path}: the manifest says that id {shown(mark)} ends documents, but it is not a special token"
        )
    return made


class TokenFolder(NamedTuple):
    """A folder of finished token files."""

    path: str
    manifest: Manifest  # its contents
    sha256: str  # of the manifest's file, which has the hashes of the tokens

    @classmethod
    def open(cls, path: str, tok: Tokenizer) -> TokenFolder:
        """Opens a folder.

        Raises:
            ArgumentError: as finished_manifest, or the folder has packed rows. FileError, FormatError: there is no
            manifest, or it is damaged.
        """
        manifest = finished_manifest(path, tok)
        if manifest.packing is not None:
            raise ArgumentError(f"{path}: has packed rows: name the folder that they were made from")
        return cls(path, manifest, file_sha256(os.path.join(path, manifest_name(path))))

    def paths(self, split: str) -> list[str]:
        """Returns the token files of a split, in order.

        Raises:
            ArgumentError, FileError, FormatError: as split_paths, and as `checked`.
        """
        # A file that is missing or too short is named before others are read.
        split_paths(self.path, self.manifest, split)
        return [self.checked(record) for record in self.manifest.shards[split]]

    def checked(self, record: ShardRecord | FileRecord) -> str:
        """Returns the path of a file. Raises FormatError if the hash of its content is not the manifest's: other
        token files must not be made from damaged ones, and their own manifest would hide it."""
        return checked(self.path, record)

    def check_documents(self, out: str | None, may_be_mixture: bool = False) -> None:
        """Raises ArgumentError unless the folder has the documents of its inputs, all with a mark, or if it is the
        output folder `out`, or a mixture."""
        settings = self.manifest.settings
        if out is not None and os.path.realpath(self.path) == os.path.realpath(out):
            raise ArgumentError(f"{self.path}: this is also the output folder: choose another output")
        if self.manifest.mixture is not None and not may_be_mixture:
            raise ArgumentError(f"{self.path}: is a mixture: name all of its sources in one recipe")
        if settings.get("format") not in FLAT or settings.get("dtype") not in ID_BYTES:
            told = f"expected {', '.join(FLAT)}"
            raise ArgumentError(f"{self.path}: has files of the format {settings.get('format')}, {told}")
        if settings.get("eot") not in ("prepend", "append") or self.manifest.tokenizer.get("eot") is None:
            raise ArgumentError(
                f"{self.path}: has no end of text between documents: write it with {param(eot='prepend')}"
            )


# ----------------------------------------------------------------------------------------------------
# Common properties of several folders


Parts = Sequence[tuple[str, TokenFolder]]
"""Folders, with their names in errors."""


def check_copies(parts: Parts) -> None:
    """Raises ArgumentError if two folders have the same token files, because the output would have documents twice."""
    seen: dict[object, str] = {}
    for name, data in parts:
        files = tuple(record.sha256 for records in data.manifest.shards.values() for record in records)
        if data.manifest.tokens and seen.setdefault(files, name) is not name:
            told = "both have the same tokens, so their documents would occur twice"
            raise ArgumentError(f"{seen[files]} and {name}: {told}")


def check_documents_apart(parts: Parts) -> None:
    """Reads all documents of several folders.

    Raises:
        ArgumentError: a document that one holds out is in the train split of another, or two were made from the same
            file: from files with the same path, and some of their documents are the same (if the sizes of the files
            differ, most of them). FileError, FormatError: a file is missing or damaged.
    """
    if len(parts) < 2:
        return
    suspects = _with_equal_inputs(parts)
    every = 1 + max(sum(map(data.manifest.split_documents, data.manifest.shards)) for _, data in parts) // _SAMPLE
    samples: dict[int, list[Array]] = {number: [] for pair in suspects for number in pair}
    held: list[Array] = []
    for split in ("test", "val", "train"):
        if split == "train":
            values, owners = _owned(held)
        for number, (_, data) in enumerate(parts):
            found = [numpy.empty(0, numpy.uint64)]
            for digests in _digests(data, split):
                if number in samples:
                    samples[number].append(digests[digests % numpy.uint64(every) == 0])
                if split != "train":
                    found.append(digests)
                elif len(values):
                    _check_held_out(parts, number, digests, values, owners)
            held += [numpy.unique(numpy.concatenate(found))] if split == "test" else []
            if split == "val":
                held[number] = numpy.unique(numpy.concatenate([held[number], *found]))
    whole = {number: numpy.unique(numpy.concatenate(some)) for number, some in samples.items()}
    for (first, second), (path, is_equal) in suspects.items():
        shared = len(numpy.intersect1d(whole[first], whole[second]))
        if shared > (0 if is_equal else min(len(whole[first]), len(whole[second])) // 2):
            raise ArgumentError(
                f"{parts[first][0]} and {parts[second][0]}: both were made from {path}, so its documents would occur"
                " twice: leave one of them out"
            )


def _with_equal_inputs(parts: Parts) -> dict[tuple[int, int], tuple[str, bool]]:
    """Returns the pairs of folders that have an input of the same path, with the path, and whether the sizes are
    equal, too."""
    sizes: list[dict[object, tuple[str, int | None]]] = []
    for _, data in parts:
        inputs = ((path, size) for path, size in data.manifest.inputs if path != STDIN)  # another text every time
        sizes.append({path if is_url(path) else file_id(path) or path: (path, size) for path, size in inputs})
    found: dict[tuple[int, int], tuple[str, bool]] = {}
    for (first, ours), (second, theirs) in combinations(enumerate(sizes), 2):
        both = [(ours[key][0], ours[key][1] == theirs[key][1]) for key in ours.keys() & theirs.keys()]
        if both:
            found[first, second] = max(both, key=lambda each: (each[1], each[0]))
    return found


def _owned(held: Sequence[Array]) -> tuple[Array, Array]:
    """Returns all values, sorted, and the numbers of the arrays that have them, or -1 if several do."""
    values, counts = numpy.unique(numpy.concatenate(held), return_counts=True)
    owners = numpy.empty(len(values), dtype=numpy.int32)
    for number, some in enumerate(held):
        owners[numpy.searchsorted(values, some)] = number
    owners[counts > 1] = -1
    return values, owners


def _check_held_out(parts: Parts, number: int, digests: Array, values: Array, owners: Array) -> None:
    places = numpy.minimum(numpy.searchsorted(values, digests), len(values) - 1)
    shared = (values[places] == digests) & (owners[places] != number)
    if not shared.any():
        return
    owner = int(owners[places[shared][0]])
    other = parts[owner][0] if owner >= 0 else "another one"
    raise ArgumentError(
        f"{parts[number][0]}: would train on {number_of(int(shared.sum()), 'document')} or more that {other} holds out:"
        f" make all of them with {param(split_by='hash')} and the same splits, or remove duplicates first"
    )


def _digests(data: TokenFolder, split: str) -> Iterator[Array]:
    """Yields the hashes of the documents of a split: uint64."""
    manifest = data.manifest
    if not manifest.split_tokens(split):
        return
    mark = int(manifest.tokenizer["eot"])  # type: ignore[call-overload]
    stream = TokenStream(split_paths(data.path, manifest, split), str(manifest.settings.get("dtype")))
    tokens = with_marks_first(stream, mark, manifest.settings["eot"])
    begin, size = 0, len(tokens)
    while begin < size:
        end_if_unwanted()
        ids = tokens.slice(begin, min(begin + _BLOCK, size))
        borders = numpy.flatnonzero(ids == mark)
        if not len(borders) or borders[0]:
            raise FormatError(f"{data.path}: {split} does not begin with the end of text: write the data again")
        step = len(ids)
        if begin + step < size and len(borders) > 1:  # the last document may go on
            step = int(borders[-1])
        else:
            borders = numpy.append(borders, len(ids))
        # The same documents have the same hash in uint16 and uint32.
        whole = numpy.ascontiguousarray(ids[: borders[-1]], dtype="<u4")
        strings = _binding.Strings(data=whole.view(numpy.uint8).data, offsets=(4 * borders).astype(numpy.uint64).data)
        yield numpy.frombuffer(_binding.digest_texts(strings), numpy.uint64)[:: _binding.DIGEST_SIZE // 8]
        begin += step
        while step == _BLOCK and begin < size:  # inside a long document
            rest = tokens.slice(begin, min(begin + _BLOCK, size))
            found = numpy.flatnonzero(rest == mark)
            begin += int(found[0]) if len(found) else len(rest)
            if len(found):
                break
