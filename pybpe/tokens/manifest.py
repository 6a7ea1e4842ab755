"""manifest.json: the contents of a folder of token files, and how they were made."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .. import _binding
from ..arguments import is_unicode, is_url, json_text, number_of, param
from ..errors import (
    ArgumentError,
    FileError,
    FormatError,
    file_error,
    file_errors,
)
from ..formats import VERSION_KEY, check_version_of
from ..reading.planning import SPLIT_NAMES
from ..reading.streams import file_sha256, read_file
from ..support.task_results import size_of
from ..tokenizer import Tokenizer

FILE_NAME = "manifest.json"
HIDDEN_NAME = "_manifest.json"  # next to parquet files: readers of whole folders skip names with this prefix
FILE_NAMES = (FILE_NAME, HIDDEN_NAME)
TOKENIZER_NAMES = ("tokenizer.json", "tokenizer.bin")  # the files that `prepare` writes next to token files
VERSION = 2  # 1 had ranges of inputs in the shards


def manifest_name(folder: str) -> str:
    """Returns the name of a folder's manifest, or FILE_NAME if there is none."""
    has_hidden = os.path.exists(os.path.join(folder, HIDDEN_NAME))
    return HIDDEN_NAME if has_hidden and not os.path.exists(os.path.join(folder, FILE_NAME)) else FILE_NAME


def named_folder(path: _binding.PathLike) -> tuple[str, str | None]:
    """Returns the folder of token files that a path names, and which file there. A manifest names its folder. Then, and
    if the path is a folder, the file is None."""
    name = _binding.path_text(path)
    if not os.path.isfile(name):
        return name, None
    folder, file = os.path.split(name)
    return folder or ".", None if file in FILE_NAMES else file


Input = tuple[str, "int | None"]
"""The name of an input and its size."""


class FileRecord(NamedTuple):
    """A file next to the token files.

    Attributes:
        file: its name, in the folder of the manifest.
        bytes: its size.
        sha256: the SHA-256 of the whole file, in hex.
    """

    file: str
    bytes: int
    sha256: str


class ShardRecord(NamedTuple):
    """One token file.

    Attributes:
        file, bytes, sha256: as in FileRecord.
        tokens: the number of tokens in it.
        documents: the number of documents that begin in it.
        text_bytes: the bytes of text that its tokens represent, without marks.
    """

    file: str
    tokens: int
    bytes: int
    sha256: str
    documents: int = 0
    text_bytes: int = 0


@dataclass(frozen=True, repr=False)
class Manifest:
    """The contents of a folder of token files.

    Attributes:
        settings: the arguments of `binarize`, `mix` and `pack` that influence the files.
        tokenizer: n_vocab, pattern, normalizer, the id of <|endoftext|>, and its fingerprint (Model.fingerprint).
        text_bytes: the bytes of encoded text by split, without marks.
        shards: the token files, by split, in order.
        files: other files that belong to them, such as Megatron's indexes.
        inputs: the files that the token files were made from: their names, and their sizes as they are stored, or None
            if a size was not known.
        call: a hash of the call that made the folder (see `call_of`), or "" if it is unknown.
        skipped: if bad records were skipped (`on_error="skip"`): the number of records, how many of them were skipped,
            and the file that lists those. Otherwise None.
        encodings: the encodings of inputs, except UTF-8.
        crlf: the inputs whose \\r\\n was read as \\n.
    """

    settings: Mapping[str, object]
    tokenizer: Mapping[str, object]
    text_bytes: Mapping[str, int] = field(default_factory=dict)
    shards: Mapping[str, list[ShardRecord]] = field(default_factory=dict)
    files: list[FileRecord] = field(default_factory=list)
    skipped: Mapping[str, Any] | None = None
    call: str = ""
    inputs: Sequence[Input] = ()
    encodings: Mapping[str, str] = field(default_factory=dict)
    crlf: Sequence[str] = ()

    def __repr__(self) -> str:
        splits = (
            f"{split}: {number_of(self.split_tokens(split), 'token')},"
            f" {number_of(self.split_documents(split), 'document')}, {number_of(len(found), 'file')}"
            for split, found in self.shards.items()
        )
        return f"Manifest({'; '.join(splits)})"

    def __str__(self) -> str:
        splits = [
            f"{split}: {number_of(self.split_tokens(split), 'token')},"
            f" {number_of(self.split_documents(split), 'document')},"
            f" {number_of(self.text_bytes.get(split, 0), 'byte')} of text, {number_of(len(found), 'shard')}"
            for split, found in self.shards.items()
        ]
        return "\n".join([*splits, *_row_lines(self), *_mixture_lines(self.mixture)])

    @property
    def packing(self) -> Mapping[str, Any] | None:
        """The facts of `pack` about the rows: their sequence_length, the id of the pad, and so on. None if there are no
        packed rows."""
        return self.settings.get("packing")  # type: ignore[return-value]

    @property
    def mixture(self) -> Mapping[str, Any] | None:
        """The facts of `mix` about the recipe and its result. None if the folder is not a mixture, or rows of one."""
        return self.settings.get("mixture")  # type: ignore[return-value]

    @property
    def name(self) -> str | None:
        """NAME of the token files. None if the names of the format have none, or there are no files."""
        files = ((split, record.file) for split, found in self.shards.items() for record in found)
        return next((file.rpartition(f"_{split}")[0] or None for split, file in files), None)

    @property
    def tokens(self) -> int:
        """The number of tokens in all splits."""
        return sum(self.split_tokens(split) for split in self.shards)

    def split_tokens(self, split: str) -> int:
        """Returns the number of tokens in one split, or 0 if there is no such split."""
        return sum(shard.tokens for shard in self.shards.get(split, ()))

    def split_documents(self, split: str) -> int:
        """Returns the number of documents in one split, or 0 if there is no such split."""
        return sum(shard.documents for shard in self.shards.get(split, ()))

    @property
    def records(self) -> list[ShardRecord | FileRecord]:
        """The records of all files that the manifest describes."""
        return [*(record for found in self.shards.values() for record in found), *self.files]

    @property
    def file_names(self) -> list[str]:
        """The names of all files that the manifest describes."""
        return [record.file for record in self.records]

    def to_json(self) -> bytes:
        """Returns the content of manifest.json."""
        shards = {split: [record._asdict() for record in found] for split, found in self.shards.items()}
        files = [record._asdict() for record in self.files]
        content = {VERSION_KEY: VERSION, **vars(self), "shards": shards, "files": files}
        del content["inputs"]
        if self.skipped is None:
            del content["skipped"]
        for name in ("call", "encodings", "crlf"):
            if not content[name]:
                del content[name]
        # There may be millions of inputs, and with an indent Python's json takes long for them.
        quoted = json.encoder.encode_basestring
        if not is_unicode("".join(path for path, _ in self.inputs)):  # as json_text
            quoted = json.encoder.encode_basestring_ascii
        inputs = ",\n".join(f"    [{quoted(path)}, {'null' if size is None else size}]" for path, size in self.inputs)
        text = json_text(content, indent=2).removesuffix("\n}")
        return f'{text},\n  "inputs": [\n{inputs}\n  ]\n}}\n'.encode()

    @classmethod
    def load(cls, folder: _binding.PathLike) -> Manifest:
        """Reads the manifest.json of a folder, or the _manifest.json next to parquet files.

        Raises:
            FileError: there is no manifest. FormatError: it is not a manifest, a newer pybpe made it, or it names a
            file outside its folder.
        """
        name = _binding.path_text(folder)
        path = os.path.join(name, manifest_name(name))
        is_there = is_url(name) or os.path.exists(path)  # read_file refuses a URL
        if not is_there and os.path.exists(os.path.join(name, "data", FILE_NAME)):
            raise file_error(errno.ENOENT, f"{name}: the token files of this workspace are in {name}/data: name that")
        if not is_there:
            told = "not a folder of token files: it has no manifest.json" if os.path.isdir(name) else "no such folder"
            raise file_error(errno.ENOENT, f"{name}: {told}")
        data = read_file(path)
        try:
            content = json.loads(data.decode("utf-8", "surrogateescape"))
            check_version_of(content, VERSION, f"{path}: this manifest")
            inputs = _inputs(content)
            shards = {s: [ShardRecord(**record) for record in found] for s, found in content["shards"].items()}
            files = [FileRecord(**record) for record in content.get("files", [])]
            facts = (content["settings"], content["tokenizer"], content["text_bytes"])
            manifest = cls(*facts, shards, files, content.get("skipped"), content.get("call", ""), inputs)
            manifest = replace(manifest, encodings=content.get("encodings", {}), crlf=content.get("crlf", []))
            _check_types(manifest)
            if manifest.settings.get("split_by") == "document":
                raise FormatError(
                    f"{path}: was made with {param(split_by='document')}, which no version has: make it again"
                )
        except FormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"{path}: not a manifest of token files ({type(error).__name__}: {error})") from None
        for name in manifest.file_names:
            if not is_plain_name(name):
                raise FormatError(f"{path}: names the file {name!r}, which is not in its folder")
        return manifest


def found_manifest(folder: str) -> Manifest | None:
    """Returns the manifest of a folder, or None if there is none or it is damaged."""
    if os.path.exists(os.path.join(folder, manifest_name(folder))):
        with suppress(FileError, FormatError):
            return Manifest.load(folder)
    return None


def _row_lines(manifest: Manifest) -> Iterator[str]:
    """Yields one line per split about its packed rows, if there are any."""
    packing: Mapping[str, Any] = manifest.packing or {}
    for split, facts in packing.get("splits", {}).items():
        if facts and facts["rows"]:
            size = packing["sequence_length"]
            yield (
                f"{split}: {number_of(facts['rows'], 'row')} of {size} tokens,"
                f" {100 * facts['padding'] / (facts['rows'] * size):.4f} % padding, {number_of(facts['cuts'], 'cut')}"
            )


def _mixture_lines(mixture: Mapping[str, Any] | None) -> Iterator[str]:
    """Yields lines that compare the tokens that were asked of a source with the tokens that it gave, and say how
    often it was repeated."""
    if mixture is None:
        return
    total = max(1, sum(source["used"] for source in mixture["sources"].values()))
    for name, source in mixture["sources"].items():
        cut = f", {source['cuts']} of them cut" if source["cuts"] else ""
        yield (
            f"source {name}: {source['asked']} asked, {number_of(source['used'], 'token')}"
            f" ({100 * source['used'] / total:.2f}%) in {number_of(source['used_documents'], 'document')}{cut}; its"
            f" {source['tokens']} are used {passes(source['epochs'])}"
        )


def passes(epochs: float) -> str:
    """ "once", "1.5 times"."""
    return "once" if epochs == 1 else f"{epochs:.4g} times"


# ----------------------------------------------------------------------------------------------------
# A manifest may come from anywhere: what is checked when it is read


def _inputs(content: dict[str, Any]) -> list[Input]:
    """Returns the inputs of a manifest. Removes from its shards, and from what was joined, the facts of version 1 about
    them: (file, start, end) of every range that was read."""
    ranges: list[Sequence[Any]] = []
    for record in (record for found in content["shards"].values() for record in found):
        ranges += record.pop("sources", ())
    joined = content["settings"].get("joined", ())
    if any("inputs" in folder for folder in joined):
        ranges = [entry for folder in joined for entry in folder.pop("inputs")]
    found = [*content.get("inputs", ()), *((path, None) for path in dict.fromkeys(path for path, _, _ in ranges))]
    if not all(isinstance(name, str) and (size is None or type(size) is int) for name, size in found):
        raise ValueError("inputs must be names and sizes")
    return [(name, size) for name, size in found]


_SETTINGS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("format", "eot", "dtype", "split_by", "documents", "text_key", "encoding"), (str,)),
    **dict.fromkeys(("shard_tokens", "min_shard_tokens", "sequence_length", "val_documents"), (int,)),
    **{"splits": (list,), "joined": (list,)},
}


def _check_types(manifest: Manifest) -> None:
    parts = (manifest.settings, manifest.tokenizer, manifest.text_bytes, manifest.encodings)
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError("settings, tokenizer, text_bytes and encodings must be objects")
    if not all(isinstance(text, str) for text in (manifest.call, *(record.sha256 for record in manifest.records))):
        raise ValueError("hashes must be strings")
    for name, kinds in _SETTINGS.items():
        if not isinstance(value := manifest.settings.get(name), (*kinds, type(None))) or isinstance(value, bool):
            raise ValueError(f"settings: {name} must not be {value!r:.40}")
    shares: Any = manifest.settings.get("splits", [1])
    if not 1 <= len(shares) <= len(SPLIT_NAMES) or not all(type(share) in (int, float) for share in shares):
        raise ValueError("settings: splits must be one to three numbers")
    for record in manifest.records:
        facts = record._asdict()
        _check_numbers(f"the record of {record.file!r}", facts, *(facts.keys() - {"file", "sha256"}))
    _check_numbers("text_bytes", manifest.text_bytes, *manifest.text_bytes)
    if manifest.skipped is not None:
        _check_numbers("skipped", manifest.skipped, "records", "skipped")
    if (packing := manifest.packing) is not None:
        _check_numbers("packing", packing, "sequence_length", "pad")
        _check_numbers("the tokenizer of packed rows", manifest.tokenizer, "eot")
        if packing["sequence_length"] < 2:
            raise ValueError("packing needs rows of at least 2 tokens")
        for facts in filter(None, packing.get("splits", {}).values()):
            _check_numbers("a split of packed rows", facts, "rows", "padding", "cuts")
    if (mixture := manifest.mixture) is not None:
        for source in mixture["sources"].values():
            names = ("tokens", "documents", "asked", "used", "used_documents", "cuts", "epochs")
            _check_numbers("a source of a mixture", source, *names)


def _check_numbers(what: str, facts: Any, *names: str) -> None:
    """Raises ValueError unless an object has these numbers, at least 0. Only epochs may be fractions."""
    for name in names:
        number = facts.get(name) if isinstance(facts, dict) else None
        if not (type(number) is int or (name == "epochs" and type(number) is float)) or number < 0:
            raise ValueError(f"{what}: {name} must be a number that is at least 0")


def is_plain_name(name: object) -> bool:
    """Returns whether a name belongs to a file in the folder itself: an untrusted manifest must not lead out of it."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        return False
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # surrogates that represent no byte
        return False
    return True


# ----------------------------------------------------------------------------------------------------
# The files and the tokenizer that a manifest describes


def check_name(name: str) -> None:
    """Raises ArgumentError unless token files can have this name prefix."""
    if not isinstance(name, str) or not is_plain_name(name + "_") or min(name, default=" ") < " ":
        raise ArgumentError(f"{param('name')} must be a file-name prefix without / or line breaks, not {name!r}")


def split_paths(folder: str, manifest: Manifest, split: str) -> list[str]:
    """Returns the token files of a split, in order.

    Raises:
        ArgumentError: there is no such split. FileError: a file is missing. FormatError: a file is not as long as the
            manifest says.
    """
    records = manifest.shards.get(split)
    if not records:
        there = ", ".join(split for split, records in manifest.shards.items() if records)
        raise ArgumentError(f"{folder}: has no split {split}; it has {there or 'none'}")
    paths = [os.path.join(folder, record.file) for record in records]
    for path, record in zip(paths, records):
        check_size(path, record.bytes)
    return paths


def check_size(path: str, expected: int) -> None:
    """Raises FormatError if a file is not as long as its manifest says."""
    with file_errors(path, "cannot be read"):
        size = os.path.getsize(path)
    if size != expected:
        raise FormatError(
            f"{path}: has {number_of(size, 'byte')}, but the manifest says {expected}: write the data again"
        )


def record_file(path: str) -> FileRecord:
    """Returns the record of a finished file."""
    return FileRecord(os.path.basename(path), os.path.getsize(path), file_sha256(path))


def is_as_recorded(folder: str, record: ShardRecord | FileRecord) -> bool:
    """Returns whether a file of a manifest has the content that the manifest states."""
    path = os.path.join(folder, record.file)
    return size_of(path) == record.bytes and file_sha256(path) == record.sha256


def checked(folder: str, record: ShardRecord | FileRecord) -> str:
    """Returns the path of a file of a manifest. Raises FormatError if it has another content."""
    path = os.path.join(folder, record.file)
    if not is_as_recorded(folder, record):
        raise FormatError(f"{path}: does not match its manifest: `pybpe verify` says more; make the folder again")
    return path


def tokenizer_entry(tok: Tokenizer) -> dict[str, object]:
    """Returns the entry of a manifest about the tokenizer."""
    return {
        "n_vocab": tok.vocab_size,
        "pattern": tok.pattern.regex,
        "normalizer": tok.model.normalizer,
        "eot": tok.eot_token,
        "fingerprint": tok.model.fingerprint,
    }


OTHER_TOKENIZER = (
    "another tokenizer made these tokens: its fingerprint in the manifest differs; use that tokenizer, or make the"
    " files again with this one"
)


def check_tokenizer(name: str, fingerprint: object, tok: Tokenizer) -> None:
    """Raises ArgumentError unless a tokenizer has the fingerprint that a manifest states for `name`. Dropout changes
    nothing about token files, which are written without it."""
    model = tok.replace(dropout=0).model if tok.model.dropout else tok.model
    if fingerprint != model.fingerprint:
        raise ArgumentError(f"{name}: {OTHER_TOKENIZER}")


def with_mark(tok: Tokenizer, manifest: Manifest) -> Tokenizer:
    """Returns the tokenizer that made token files, with their mark as its end of text: `binarize` may have been told to
    take another special token. If the mark is no special token, the tokenizer is as it was."""
    mark = manifest.tokenizer.get("eot")
    name = next((text for text, i in tok.special_tokens.items() if i == mark), None)
    return tok if name is None or mark == tok.eot_token else tok.replace(end_of_text=name)
