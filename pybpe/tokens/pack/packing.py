"""pack: writes the rows of all splits into shards, and gives the folder its name when it is complete.

The spans of a split are placed first, which gives the number of rows and so the size of its shards, and then
written. So no token is written twice, and one group of documents is in memory.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import groupby
from operator import itemgetter
from typing import IO, NamedTuple

from ... import _binding
from ..._lazy import Array, numpy
from ...arguments import chosen, instance, param
from ...errors import ArgumentError, FormatError, LimitError, file_errors
from ...model import named_special
from ...reading.streams import read_file
from ...support.output_files import FOLDER, make_folder, real_output, remove_folder
from ...support.progress import Progress
from ...tokenizer import Tokenizer
from ..formats import FORMATS, LLMC, RowOptions
from ..manifest import TOKENIZER_NAMES, FileRecord, Manifest, ShardRecord, record_file
from ..output_folder import FINISHED, call_of, files_of_manifest, made_before, publish, writing_to
from ..provenance import Part, Provenance, provenance_of, write_parts
from ..run import check_least
from ..task_encoder import ID_BYTES, text_length
from ..token_files import MarksFirst, TokenStream, with_marks_first
from ..token_folders import TokenFolder, with_mark_of
from .rows import WRITERS, Columns, NewShard, columns_of
from .spans import FIELDS, Group, chunks, groups, place, row_count, shuffled, spans_of

_PADDING_NAMES = ("<|padding|>", "<|pad|>")


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

    Every row begins with the end-of-text token, and so does every document or part of one in it. A shard of llm.c is a
    whole number of rows and one more end-of-text token, the target of its last token. All shards of a split have equal
    size. The same arguments give the same bytes. If a run is killed, the same call starts over.

    Args:
        tok: the tokenizer that made `data`.
        data: a folder that `binarize`, `prepare`, `join` or `mix` wrote, with end-of-text tokens between documents.
        out: the output folder, which has nothing else. If it has the result of the same call, nothing is done.
        sequence_length: tokens per row: llm.c's T.
        packing: "best-fit" cuts only documents that are longer than a row, and pads rows. "fill" also cuts documents to
            fill the rows that best fit leaves short.
        format: "llmc", or one whose rows have columns: "npy" (an array of shape (rows, sequence_length) per column),
            "parquet" or "webdataset". The columns are input_ids in the dtype of `data`, document_ids (int32, from 0 in
            a row, -1 for padding), position_ids (int32, from 0 in a document or part, and in the padding) and loss_mask
            (uint8, 0 for padding, for the first token of a row, and for an end-of-text token after a part whose
            document continues in another row, otherwise 1). The mask is aligned with input_ids.
        pad: the special token for padding. None means <|padding|> or <|pad|> if the tokenizer has one, and otherwise
            its end of text. The documents must not contain it.
        seed: an integer that chooses the order of the rows, and of the documents in a row.
        shard_tokens: the most tokens per shard.
        force: True replaces token files of other inputs, settings or another tokenizer in `out`, and redoes complete
            work. Otherwise pybpe refuses to replace them, and an equal call returns the existing manifest.

    Returns:
        The manifest. settings["packing"] has the rows, padding tokens, and cuts in documents of every split.

    Raises:
        ArgumentError: an argument is invalid, another tokenizer made the data, the documents contain the padding token,
            or `out` has anything else. FormatError: the data do not match their manifest. LimitError: a shard would be
        too small or too large. MissingExtraError: parquet without pyarrow.
    """
    arguments = locals()
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    options = chosen(RowOptions, arguments)
    source = TokenFolder.open(_binding.path_text(data), tok)
    source.check_documents(_binding.path_text(out), may_be_mixture=True)
    tok = with_mark_of(tok, source)
    largest = shard_tokens * ID_BYTES[str(source.manifest.settings["dtype"])]
    if format == LLMC.name and LLMC.header_bytes + largest > LLMC.max_bytes:
        raise LimitError(
            f"{param(shard_tokens=shard_tokens)} would exceed 2 GiB, beyond which llm.c cannot seek: choose fewer"
        )
    folder, pad_id = real_output(out), _pad_id(tok, pad)
    rows, known = os.path.join(folder, FOLDER, FINISHED), _known(source, options, pad_id)
    with writing_to(folder):
        if (made := made_before(folder, known, force)) is not None:
            return made
        _check_alone(folder)
        try:
            with Progress("packing", 2 * source.manifest.tokens, "token", progress) as bar:
                _Packing(tok, source, options, pad_id, bar).write(rows, known)
        except BaseException:
            remove_folder(rows)  # nothing resumes
            raise
        publish(folder)
    return Manifest.load(folder)


def _known(source: TokenFolder, options: RowOptions, pad: int) -> Manifest:
    """Returns the manifest of the rows before they are made."""
    settings = {
        **{key: value for key, value in source.manifest.settings.items() if key != "document_offsets"},
        "format": options.format,
        "eot": "prepend",
        "shard_tokens": options.shard_tokens,
        "sequence_length": options.sequence_length,
        "packing": {
            "sequence_length": options.sequence_length,
            "method": options.packing,
            "pad": pad,
            "seed": options.seed,
            "source": source.sha256,
        },
    }
    call = call_of((source.manifest.call or source.sha256, astuple(options)))
    return replace(source.manifest, settings=settings, shards={}, files=[], skipped=None, call=call)


def _check_alone(folder: str) -> None:
    """Raises ArgumentError if a folder has something else than a run's files and a tokenizer: programs read all files
    of a folder of rows."""
    left = set(os.listdir(folder)) - {*files_of_manifest(folder), *TOKENIZER_NAMES, FOLDER}
    if left:
        raise ArgumentError(f"{folder}: contains other files, such as {min(left)}: use another folder")


def _pad_id(tok: Tokenizer, pad: str | None) -> int:
    if pad is None:
        names = [name for name in _PADDING_NAMES if name in tok.special_tokens]
        assert tok.eot_token is not None
        return tok.special_tokens[names[0]] if names else tok.eot_token
    return tok.special_tokens[named_special("pad", pad, tok.special_tokens)]


# ----------------------------------------------------------------------------------------------------
# Writing


class _Placed(NamedTuple):
    """A group whose spans have rows."""

    start: int  # this and `end`: where its ids are in the split
    end: int
    spans: int
    rows: int
    used: int  # the tokens of the spans, marks included


def _part(provenance: Provenance, spans: Array, start: int, first: int, size: int) -> Part:
    """Returns where spans of a group came from, and where they are in their shard. The group starts at `start` among
    the tokens of the split, and the first of the rows at token `first` of the shard."""
    ends = numpy.cumsum(spans["length"])
    begins = ends - spans["length"]
    of_row = numpy.searchsorted(spans["row"], spans["row"])  # the first span in its row, for every span
    places = first + spans["row"] * size + begins - begins[of_row]
    return places, spans["length"], provenance.at(start + spans["start"] + 1)


class _Packing(NamedTuple):
    tok: Tokenizer  # the tokenizer that made the data
    data: TokenFolder  # the folder of the tokens
    options: RowOptions  # the arguments of `pack`
    pad: int  # the id of the padding token
    bar: Progress  # counts tokens that are placed, and then tokens that are written

    @property
    def mark(self) -> int:
        """The id that begins every row and document."""
        assert self.tok.eot_token is not None
        return self.tok.eot_token

    def write(self, out: str, known: Manifest) -> None:
        """Writes the shards of all splits and the manifest into a new folder."""
        source, options = self.data.manifest, self.options
        remove_folder(out)
        make_folder(out)
        counts: dict[str, dict[str, int]] = {}
        shards: dict[str, list[ShardRecord]] = {}
        files: list[FileRecord] = []
        for split in source.shards:
            counts[split], shards[split] = {}, []
            if source.split_tokens(split):  # otherwise, the split has no rows, and no file
                counts[split], shards[split], others = self._write_split(split, out)
                files += others
        for record in source.files if options.format == LLMC.name else ():
            if record.file in TOKENIZER_NAMES:
                _binding.write_file(os.path.join(out, record.file), read_file(self.data.checked(record)))
                files.append(record)
        rows = {**(known.packing or {}), "splits": counts}
        made = replace(known, settings={**known.settings, "packing": rows}, shards=shards, files=files)
        _binding.write_file(os.path.join(out, FORMATS[options.format].manifest), made.to_json())

    def _write_split(self, split: str, out: str) -> tuple[dict[str, int], list[ShardRecord], list[FileRecord]]:
        """Writes one split. Returns the numbers of rows, padding tokens, and cuts in documents, and the records of its
        shards and of other files."""
        options, size = self.options, self.options.sequence_length
        dtype = str(self.data.manifest.settings["dtype"])
        files = TokenStream(self.data.paths(split), dtype)
        stream = with_marks_first(files, self.mark, self.data.manifest.settings["eot"])
        records, others = list[ShardRecord](), list[FileRecord]()
        sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])  # documents and bytes of text, by shard
        tables: dict[int, list[Part]] = defaultdict(list)  # where its documents came from, by shard
        is_known, has_ids = (name in self.data.manifest.settings for name in ("provenance", "id_key"))
        with file_errors(out, "cannot be written"), tempfile.TemporaryFile(dir=out) as file:
            placed = [self._place(number, group, file) for number, group in enumerate(groups(stream, self.mark, size))]
            rows = sum(group.rows for group in placed)
            total, per_shard = self._divide(split, rows)
            file.seek(0)
            provenance = provenance_of([self.data], out, split) if is_known else None
            parts = self._parts(self._again(stream, placed, file, total - rows), per_shard, sums, provenance, tables)
            for number, some in groupby(parts, key=itemgetter(0)):
                base = os.path.join(out, f"{self.data.manifest.name or 'data'}_{split}_{number:06d}")
                shard = NewShard(base, dtype, min(per_shard, total - number * per_shard), size, self.mark)
                first, *more = WRITERS[options.format](shard, (each for _, each in some))
                tokens = shard.rows * size + (options.format == LLMC.name)
                records.append(ShardRecord(first.file, tokens, first.bytes, first.sha256, *sums[number]))
                others += more
                if provenance is not None:
                    its = ((0, part) for part in tables.pop(number, []))
                    (name,) = write_parts(out, [first.file], its, provenance.names, has_ids)
                    others.append(record_file(os.path.join(out, name)))
        self._check(split, records)
        cuts = sum(group.spans for group in placed) - sum(record.documents for record in records)
        padding = total * size - sum(group.used for group in placed)
        return {"rows": total, "padding": padding, "cuts": cuts}, records, others

    def _place(self, number: int, group: Group, file: IO[bytes]) -> _Placed:
        """Chooses the rows of a group's spans, and writes the spans to a file.

        Raises:
            ArgumentError: the documents contain the padding token.
        """
        options = self.options
        if self.pad != self.mark and (group.ids == self.pad).any():
            raise ArgumentError(
                f"{self.data.path}: the documents contain the padding token, id {self.pad}: pass another one as"
                f" {param('pad')}"
            )
        spans = shuffled(place(group.documents, options.sequence_length, options.packing), options.seed, number)
        file.write(spans.tobytes())
        self.bar.add(int(group.documents["length"].sum()))
        used = int(spans["length"].sum())
        return _Placed(group.start, group.start + len(group.ids), len(spans), row_count(spans), used)

    def _parts(
        self,
        groups: Iterable[tuple[int, Array, Array]],
        per_shard: int,
        sums: Mapping[int, list[int]],
        provenance: Provenance | None,
        tables: Mapping[int, list[Part]],
    ) -> Iterator[tuple[int, Columns]]:
        """Yields the rows of all groups, some at a time, with the number of their shard. It adds them to the shard's
        sums, and to its tables if the provenance of tokens is known. Padding is not text."""
        size, before, has_columns = self.options.sequence_length, 0, self.options.format != LLMC.name
        pad_bytes = 0 if self.pad == self.mark else len(self.tok.decode_single_token_bytes(self.pad))
        for start, ids, spans in groups:
            row = before
            for shard, some in chunks(spans, size, before, per_shard):
                columns = columns_of(ids, some, size, self.mark, self.pad, has_columns)
                tokens = columns["input_ids"].reshape(-1).data
                padding = len(tokens) - int(some["length"].sum())
                sums[shard][0] += int(some["begins"].sum())
                sums[shard][1] += text_length(self.tok, tokens) - padding * pad_bytes
                if provenance is not None:
                    some = some[some["length"] > 1]
                    tables[shard].append(_part(provenance, some, start, row % per_shard * size, size))
                row += len(columns["input_ids"])
                yield shard, columns
            before += row_count(spans)

    def _again(
        self, stream: TokenStream | MarksFirst, placed: Sequence[_Placed], file: IO[bytes], spare: int
    ) -> Iterator[tuple[int, Array, Array]]:
        """Yields the start, the ids and the spans of every group, and then of `spare` rows that have only a mark."""
        for group in placed:
            spans = numpy.frombuffer(file.read(group.spans * numpy.dtype(FIELDS).itemsize), FIELDS)
            yield group.start, stream.slice(group.start, group.end), spans
            self.bar.add(int(spans["length"].sum()) - int((~spans["begins"]).sum()))
        numbers = numpy.arange(spare)
        yield 0, stream.slice(0, 1), spans_of(numbers * 0, numbers * 0 + 1, False, False, numbers)

    def _divide(self, split: str, rows: int) -> tuple[int, int]:
        """Returns the number of rows of a split, and in its shards. The last may have fewer.

        Shards for llm.c are equal. Of up to twice as many shards as necessary, the fewest that need the fewest rows of
        padding to be equal.

        Raises:
            ShardTooSmallError: the split is too small for one shard.
        """
        size, most = self.options.sequence_length, self.options.shard_tokens
        if self.options.format != LLMC.name:
            return rows, max(1, most // size)
        settings = self.data.manifest.settings
        given = settings.get("min_shard_tokens") if settings["format"] == LLMC.name else None
        least = max(1, LLMC.min_tokens if given is None else int(given))  # type: ignore[call-overload]
        check_least(self.data.manifest.shards[split][0].file, rows * size + 1, least)
        least_rows = -(-(least - 1) // size)
        fewest = -(-rows // ((most - 1) // size))
        counts = range(fewest, max(fewest, min(2 * fewest, rows // max(1, least_rows))) + 1)
        shards = min(counts, key=lambda count: (-rows % count, count))
        return shards * -(-rows // shards), -(-rows // shards)

    def _check(self, split: str, records: Sequence[ShardRecord]) -> None:
        """Raises FormatError unless the packed tokens match the manifest: the data may be damaged."""
        documents, size = (sum(getattr(record, name) for record in records) for name in ("documents", "text_bytes"))
        expected = self.data.manifest.split_documents(split), self.data.manifest.text_bytes.get(split, 0)
        if (documents, size) != expected:
            raise FormatError(
                f"{self.data.path}: its {split} split has {documents} documents and {size} bytes of text, but the"
                f" manifest says {expected[0]} and {expected[1]}: write the data again"
            )
