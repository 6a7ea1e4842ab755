"""pack: checks what is given and what is there, and publishes the folder when it is complete."""

from __future__ import annotations

import os

from ... import _binding
from ...arguments import instance, one_of, shown, whole_number
from ...errors import ArgumentError, LimitError, file_errors
from ...reading.streams import file_sha256
from ...support import platform
from ...support.locking import only_writer
from ...support.output_files import real_output, remove_file, unfinished_folder
from ...support.progress import Progress
from ...tokenizer import Tokenizer
from ..finished import check_only_tokens, made_before, rows_call
from ..formats.flat import LLMC
from ..manifest import FILE_NAME, Manifest
from ..output_folder import TOKENIZER_NAMES, files_of_manifest, finished_manifest
from ..spool import id_bytes
from .layout import METHODS
from .row_files import ROW_FORMATS
from .shards import Packing, write_packed

_PADDING_NAMES = ("<|padding|>", "<|pad|>")
_DATA = "data"  # inside the unfinished folder


def pack(
    tok: Tokenizer,
    data: _binding.PathLike,
    out: _binding.PathLike,
    *,
    sequence_length: int,
    packing: str = "best-fit",
    format: str = "llmc",
    pad: str | None = None,
    seed: int = 0,
    shard_tokens: int = 10**8,
    force: bool = False,
    progress: bool | None = None,
) -> Manifest:
    """Packs the documents of token files into rows of exactly `sequence_length` tokens.

    Each row begins with the end-of-text token, and so does each document or part of one in it. A shard of llm.c is a
    whole number of rows and one more end-of-text token, the target of its last token; all shards of a split have equal
    size. The same arguments give the same bytes. A run that was killed starts again.

    Args:
        tok: the tokenizer that made `data`.
        data: a folder that `binarize` or `prepare` wrote, with llm.c's shards and eot="prepend".
        out: the output folder, which has nothing else. If it has the result of the same call, nothing is done.
        sequence_length: tokens per row: llm.c's T.
        packing: "best-fit" cuts only documents that are longer than a row, and pads rows; "fill" also cuts documents
            to fill the rows that best fit leaves short; "concat" cuts wherever a row is full.
        format: "llmc", or one whose rows have columns: "npy" (an array of shape (rows, sequence_length) per column),
            "parquet" or "webdataset". The columns are input_ids in the dtype of `data`; document_ids, int32: from 0 in
            each row, -1 for padding; position_ids, int32: from 0 in each document or part, and in the padding;
            loss_mask, uint8: 0 for padding, for the first token of a row, and for an end-of-text token after a part
            whose document continues in another row; otherwise 1. The mask is aligned with input_ids.
        pad: the special token for padding. None means <|padding|> or <|pad|> if the tokenizer has one, otherwise its
            end of text. The documents must not contain it.
        seed: an integer that chooses the order of the rows, and of the documents in each row.
        shard_tokens: the most tokens per shard.
        force: True replaces token files of other inputs, settings or another tokenizer in `out`, and redoes what is
            complete. Otherwise pybpe refuses to replace them, and an equal call returns the manifest that is there.

    Returns:
        The manifest. settings["packing"] has the rows, padding tokens, and cuts in documents of each split.

    Raises:
        ArgumentError: an argument is invalid; another tokenizer made the data; the documents contain the padding token;
        `out` has anything else. FormatError: the data do not match their manifest. LimitError: a shard would be
        too small or too large. MissingExtraError: parquet without pyarrow.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    one_of("packing", packing, METHODS)
    one_of("format", format, ROW_FORMATS)
    ROW_FORMATS[format].check_packages()
    size = whole_number("sequence_length", sequence_length, 2)
    most = whole_number("shard_tokens", shard_tokens, size + 1)
    source, folder = _source(data, tok), _binding.path_text(data)
    dtype = str(source.settings["dtype"])
    if format == LLMC.name and LLMC.header_bytes + most * id_bytes(dtype) > LLMC.max_bytes:
        raise LimitError(f"shard_tokens={most} would exceed 2 GiB, beyond which llm.c cannot seek: choose fewer")
    identity = {
        "sequence_length": size,
        "method": packing,
        "pad": _pad_id(tok, pad),
        "seed": whole_number("seed", seed, None),
        "source": file_sha256(os.path.join(folder, FILE_NAME)),
    }
    settings = {**source.settings, "format": format, "shard_tokens": most, "sequence_length": size, "packing": identity}
    target = real_output(out)
    call = rows_call(source.call or str(identity["source"]), size, packing, format, pad, seed, most)
    made = made_before(target, call, tok, force)
    if made is not None:
        return made
    check_only_tokens(target)
    hidden = unfinished_folder(target)
    with only_writer(hidden, temporary=True), Progress("packing", 2 * source.tokens, "token", progress) as bar:
        rows = os.path.join(hidden, _DATA)
        write_packed(Packing(tok, folder, source, identity, format, most, call), settings, rows, bar)
        _publish(rows, target)
    return Manifest.load(target)


# ----------------------------------------------------------------------------------------------------
# What is given


def _source(data: _binding.PathLike, tok: Tokenizer) -> Manifest:
    """Returns the manifest of the data. Raises an error if they cannot be packed."""
    name = _binding.path_text(data)
    manifest = finished_manifest(name, tok)
    settings = manifest.settings
    if settings.get("packing") is not None:
        raise ArgumentError(f"{name}: has packed rows already: pack the folder that they were made from")
    if settings.get("format") != "llmc" or settings.get("dtype") not in ("uint16", "uint32"):
        raise ArgumentError(f"{name}: only llm.c's shards can be packed: write them with binarize, format='llmc'")
    if settings.get("eot") != "prepend":
        raise ArgumentError(f"{name}: a mark must begin each document: write the data with eot='prepend'")
    return manifest


def _pad_id(tok: Tokenizer, pad: str | None) -> int:
    if pad is None:
        names = [name for name in _PADDING_NAMES if name in tok.special_tokens]
        assert tok.eot_token is not None
        return tok.special_tokens[names[0]] if names else tok.eot_token
    if not isinstance(pad, str) or pad not in tok.special_tokens:
        raise ArgumentError(f"pad must be one of the tokenizer's special tokens, not {shown(pad)}")
    return tok.special_tokens[pad]


# ----------------------------------------------------------------------------------------------------
# What is there


def _publish(folder: str, target: str) -> None:
    """Gives the finished folder its name."""
    with file_errors(target, "cannot be written"):
        platform.sync_folder(folder)
        if os.path.isdir(target):
            for name in {*files_of_manifest(target), *TOKENIZER_NAMES}:
                remove_file(os.path.join(target, name))
            os.rmdir(target)
        os.rename(folder, target)
        platform.sync_folder(os.path.dirname(target))
