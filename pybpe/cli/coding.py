"""pybpe encode, decode and count."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import ArgumentError, FormatError
from .common import Sink, add_command, add_common, add_tokenizer_and_file, add_workers, load, open_source, report

if TYPE_CHECKING:
    import numpy

    from ..tokenizer import Tokenizer

_SHARD_MAGICS = (20240520, 20240801)
_BLANKS = bytes.maketrans(b"[],\t\r\v\f", b" " * 7)  # a JSON list is decimal ids too
_LONGEST_ID = 4000  # digits; Python reads no more than 4300, and leading zeros are fine


def add_encode(commands: Any) -> None:
    parser = add_command(
        commands,
        "encode",
        "text to ids",
        "Writes the ids of a text as decimal numbers with spaces between, as a list with --json, or as a numpy\n"
        "file if OUT ends in .npy. Bytes that are not UTF-8 are fine.",
        "echo 'Hello, world' | pybpe encode -t tok.json\npybpe encode -t tok.json novel.txt -o ids.npy",
    )
    add_tokenizer_and_file(parser, "text")
    parser.add_argument("--ordinary", action="store_true", help="special tokens in the text are plain text")
    add_workers(parser)
    parser.add_argument("--json", action="store_true", help="the ids as a JSON list")
    parser.set_defaults(run=_run_encode)


def _run_encode(args: argparse.Namespace) -> None:
    tokenizer = load(args.tokenizer)
    if args.output.endswith(".npy"):
        _encode_to_npy(tokenizer, args)
        return
    start, between, end = ("[", ", ", "]\n") if args.json else ("", " ", "\n")
    with Sink(args.output) as sink:
        sink.write(start.encode())
        separator = ""
        for ids in _encode_pieces(tokenizer, args):
            if ids:
                sink.write((separator + between.join(map(str, ids))).encode())
                separator = between
        sink.write(end.encode())


def _encode_pieces(tokenizer: Tokenizer, args: argparse.Namespace) -> Iterator[list[int]]:
    """The ids of the input, a list a piece, in order."""
    from ..parallel import map_ordered

    encode = tokenizer.encode_ordinary if args.ordinary else tokenizer.encode
    yield from map_ordered(encode, _pieces(tokenizer, args.file), args.workers)


def _pieces(tokenizer: Tokenizer, path: str) -> Iterator[bytes]:
    """The input in pieces that can be encoded separately."""
    from ..pretokenize import cutter, stream_pieces

    with open_source(path) as stream:
        cut = cutter(tokenizer.pattern, tokenizer.specials_matcher, tokenizer.normalizer)
        yield from stream_pieces(stream, cut)  # type: ignore[misc]  # memoryviews serve as bytes


def _encode_to_npy(tokenizer: Tokenizer, args: argparse.Namespace) -> None:
    import sys

    from ..formats import npy
    from ..parallel import map_ordered

    encoder = tokenizer.encoder
    specials = None if args.ordinary else encoder.specials
    typecode, id_bytes = ("H", 2) if tokenizer.n_vocab <= 1 << 16 else ("I", 4)
    encode = partial(encoder.compact, specials=specials, typecode=typecode)
    arrays = list(map_ordered(encode, _pieces(tokenizer, args.file), args.workers))
    with Sink(args.output) as sink:
        sink.write(npy.header(sum(map(len, arrays)), id_bytes, sys.byteorder))
        for array in arrays:
            sink.write(memoryview(array).cast("B"))


def add_decode(commands: Any) -> None:
    parser = add_command(
        commands,
        "decode",
        "ids to text",
        "Reads decimal ids with white space or commas between, a JSON list of them, a numpy file (*.npy), or a\n"
        "llm.c shard, and writes the bytes that they stand for, exactly.",
        "echo 15496 11 995 | pybpe decode -t gpt2.json\npybpe decode -t out/tokenizer.bin out/novel_val_000000.bin",
    )
    add_tokenizer_and_file(parser, "ids")
    parser.set_defaults(run=_run_decode)


def _run_decode(args: argparse.Namespace) -> None:
    tokenizer = load(args.tokenizer)
    position = 0
    with Sink(args.output) as sink:
        for ids in _read_ids(args.file):
            try:
                sink.write(tokenizer.decode_bytes(ids, position))
            except ArgumentError as error:
                raise ArgumentError(f"{args.file}: {error}") from None
            position += len(ids)


def _read_ids(path: str) -> Iterator[list[int] | numpy.ndarray[Any, Any]]:
    """The ids of a file in blocks, in order."""
    from ..formats import npy

    block = 1 << 20
    with open_source(path) as stream:
        start = stream.read(8)
        if int.from_bytes(start[:4], "little") in _SHARD_MAGICS and path != "-":
            from .._binding import Shard

            shard = Shard(path)
            for at in range(0, len(shard), block):
                yield shard.read(at, min(block, len(shard) - at))
        elif start.startswith(npy.MAGIC) and path != "-":
            import numpy

            try:
                array = numpy.load(path, allow_pickle=False).ravel()
            except OSError:
                raise
            except Exception as error:  # what numpy's parsers raise on a damaged header is any of a dozen types
                raise FormatError(f"{path}: not a numpy file of ids: {error}") from None
            for at in range(0, len(array), block):
                yield array[at : at + block]
        else:
            yield from _decimal_ids(start, stream, path, block)


def _decimal_ids(start: bytes, stream: BinaryIO, path: str, block: int) -> Iterator[list[int]]:
    rest = start
    offset = 0
    while True:
        more = stream.read(block)
        text = (rest + more).translate(_BLANKS)
        # The last number may go on in the next block.
        end = max(text.rfind(b" "), text.rfind(b"\n"), 0)
        end = end if more and len(text) - end <= _LONGEST_ID + 1 else len(text)
        words, rest = text[:end].split(), text[end:]
        bad = next((word for word in words if not word.isdigit() or len(word) > _LONGEST_ID), None)
        if bad is not None:
            at = offset + text.find(bad)
            raise FormatError(f"{path}: expected decimal ids, found {bad[:40]!r} at offset {at}", at)
        offset += end
        yield [int(word) for word in words]
        if not more:
            return


def add_count(commands: Any) -> None:
    parser = add_command(
        commands,
        "count",
        "count the tokens of a text",
        "Prints the number of tokens, and bytes a token.",
        "pybpe count -t tok.json novel.txt",
    )
    add_tokenizer_and_file(parser, "text", output=False)
    parser.add_argument("--ordinary", action="store_true", help="special tokens in the text are plain text")
    add_common(parser)
    parser.set_defaults(run=_run_count)


def _run_count(args: argparse.Namespace) -> None:
    from ..parallel import map_ordered

    tokenizer = load(args.tokenizer)
    allowed: Any = () if args.ordinary else "all"

    def count(piece: bytes) -> tuple[int, int]:
        return tokenizer.count(piece, allowed_special=allowed), len(piece)

    tokens, size = 0, 0
    for piece_tokens, piece_size in map_ordered(count, _pieces(tokenizer, args.file), args.workers):
        tokens += piece_tokens
        size += piece_size
    ratio = f", {size / tokens:.3f} bytes a token" if tokens else ""
    report(args, {"tokens": tokens, "bytes": size}, f"{tokens} tokens, {size} bytes{ratio}")
