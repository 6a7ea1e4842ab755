"""The command line: `pybpe COMMAND --help` teaches each command.

Exit codes: 0 done, 2 bad input (one line on standard error says what and how to mend it), 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from ._version import __version__
from .errors import ArgumentError, Error, FormatError, file_error

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

_SHARD_MAGICS = (20240520, 20240801)

# Heavy imports happen inside the commands: `pybpe --help` should not wait for them.


class _VersionAction(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from . import _binding

        print(f"pybpe {__version__} (C library {_binding.version()}, Unicode {_binding.unicode_version()})")
        parser.exit()


# ----------------------------------------------------------------------------------------------------
# train


def _add_train(commands: Any) -> None:
    parser = _command(
        commands,
        "train",
        "train a tokenizer",
        "Counts the words of the files and merges the most frequent pairs of tokens until the vocabulary is\n"
        "full. The result is the same for any number of workers.",
        "pybpe train novel.txt --vocab-size 20000 --special-token '<|endoftext|>' -o tok.json\n"
        "pybpe train *.txt --vocab-size 32000 --pattern cl100k --min-frequency 2 -o tok.bin",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="text files")
    _add_training_options(parser)
    parser.add_argument("--vocab-size", type=int, required=True, metavar="N", help="tokens, specials included")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="where to save: *.json (Hugging Face) or *.bin (llm.c)",
    )
    _add_common(parser)
    parser.set_defaults(run=_run_train)


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--special-token", action="append", default=[], metavar="S", help="a control token; may be repeated"
    )
    parser.add_argument(
        "--special-ids", default="first", metavar="WHERE", help="first, after_bytes or last (default: first)"
    )
    parser.add_argument(
        "--pattern",
        default="gpt2",
        metavar="P",
        help="gpt2, cl100k, o200k, llama3, qwen2, or a regular expression (default: gpt2)",
    )
    parser.add_argument("--digits", type=int, metavar="1", help="1: every digit is a word of its own")
    parser.add_argument("--normalizer", metavar="N", help="NFC or NFKC (default: none)")
    parser.add_argument(
        "--min-frequency", type=int, default=0, metavar="N", help="merge no pair that is rarer (default: 0)"
    )
    parser.add_argument(
        "--max-token-length",
        type=int,
        default=255,
        metavar="N",
        help="in bytes (default: 255, llm.c's limit)",
    )
    parser.add_argument(
        "--tie-break", default="lexicographic", metavar="T", help="lexicographic (default) or huggingface"
    )


def _run_train(args: argparse.Namespace) -> None:
    from .trainer import train

    _check_writable(args.output)
    tokenizer = train(
        args.files,
        vocab_size=args.vocab_size,
        special_tokens=args.special_token,
        special_ids=args.special_ids,
        pattern=args.pattern,
        digits=args.digits,
        normalizer=args.normalizer,
        min_frequency=args.min_frequency,
        max_token_length=args.max_token_length,
        tie_break=args.tie_break,
        workers=args.workers,
        progress=_progress(args),
    )
    if args.output.endswith(".bin"):
        tokenizer.save_bin(args.output)
    else:
        tokenizer.save(args.output)
    facts = {"output": args.output, "n_vocab": tokenizer.n_vocab, "merges": len(tokenizer.model.merges)}
    line = f"{args.output}: {tokenizer.n_vocab} tokens, {facts['merges']} merges"
    if tokenizer.n_vocab < args.vocab_size:
        line += f" (fewer than {args.vocab_size}: no pair was left that is frequent enough)"
    _report(args, facts, line)


def _check_writable(path: str) -> None:
    """Fails now, not after an hour of training."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise ArgumentError(f"{path}: is a folder; name a file in it")
    if not os.path.isdir(folder):
        raise ArgumentError(f"{path}: the folder {folder} does not exist")


# ----------------------------------------------------------------------------------------------------
# encode, decode, count


def _add_encode(commands: Any) -> None:
    parser = _command(
        commands,
        "encode",
        "text to ids",
        "Writes the ids of a text as decimal numbers with spaces between, or as a numpy file if OUT ends in\n"
        ".npy. Bytes that are not UTF-8 are fine.",
        "echo 'Hello, world' | pybpe encode -t tok.json\npybpe encode -t tok.json novel.txt -o ids.npy",
    )
    _add_tokenizer_and_file(parser, "text")
    parser.add_argument("--ordinary", action="store_true", help="special tokens in the text are plain text")
    _add_common(parser)
    parser.set_defaults(run=_run_encode)


def _run_encode(args: argparse.Namespace) -> None:
    tokenizer = _load(args.tokenizer)
    if args.output.endswith(".npy"):
        _encode_to_npy(tokenizer, args)
        return
    with _Sink(args.output) as sink:
        separator = b""
        for ids in _encode_pieces(tokenizer, args):
            if ids:
                sink.write(separator + " ".join(map(str, ids)).encode())
                separator = b" "
        sink.write(b"\n")


def _encode_pieces(tokenizer: Tokenizer, args: argparse.Namespace) -> Iterator[list[int]]:
    """The ids of the input, a list a piece, in order."""
    from .parallel import map_ordered

    encode = tokenizer.encode_ordinary if args.ordinary else tokenizer.encode
    yield from map_ordered(encode, _pieces(tokenizer, args.file), args.workers)


def _pieces(tokenizer: Tokenizer, path: str) -> Iterator[bytes]:
    """The input in pieces that can be encoded separately; whole if a normalizer must see it whole."""
    from .pretokenize import cutter, stream_pieces

    with _open_source(path) as stream:
        if tokenizer.normalizer is not None:
            yield stream.read()
        else:
            cut = cutter(tokenizer.pattern, tokenizer.specials_matcher)
            yield from stream_pieces(stream, cut)  # type: ignore[misc]  # memoryviews serve as bytes


def _encode_to_npy(tokenizer: Tokenizer, args: argparse.Namespace) -> None:
    import io

    import numpy

    from . import _binding

    arrays = [numpy.array(ids, dtype=tokenizer.dtype) for ids in _encode_pieces(tokenizer, args)]
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.concatenate(arrays) if arrays else numpy.empty(0, dtype=tokenizer.dtype))
    _binding.write_file(args.output, buffer.getbuffer())


def _add_decode(commands: Any) -> None:
    parser = _command(
        commands,
        "decode",
        "ids to text",
        "Reads decimal ids with white space between, a numpy file (*.npy), or a llm.c shard, and writes the\n"
        "bytes that they stand for, exactly.",
        "echo 15496 11 995 | pybpe decode -t gpt2.json\npybpe decode -t out/tokenizer.bin out/novel_val_000000.bin",
    )
    _add_tokenizer_and_file(parser, "ids")
    _add_common(parser)
    parser.set_defaults(run=_run_decode)


def _run_decode(args: argparse.Namespace) -> None:
    tokenizer = _load(args.tokenizer)
    with _Sink(args.output) as sink:
        for ids in _read_ids(args.file):
            sink.write(tokenizer.decode_bytes(ids))


def _read_ids(path: str) -> Iterator[Iterable[int]]:
    """The ids of a file in blocks, in order."""
    block = 1 << 20
    with _open_source(path) as stream:
        start = stream.read(8)
        if int.from_bytes(start[:4], "little") in _SHARD_MAGICS and path != "-":
            from ._binding import Shard

            shard = Shard(path)
            for at in range(0, len(shard), block):
                yield shard.read(at, min(block, len(shard) - at))
        elif start[:6] == b"\x93NUMPY" and path != "-":
            import numpy

            try:
                yield numpy.load(path, allow_pickle=False).ravel()
            except ValueError as error:
                raise FormatError(f"{path}: not a numpy file of ids: {error}") from None
        else:
            yield from _decimal_ids(start, stream, path, block)


def _decimal_ids(start: bytes, stream: BinaryIO, path: str, block: int) -> Iterator[list[int]]:
    rest = start
    offset = 0
    while True:
        more = stream.read(block)
        text = rest + more
        # The last number may go on in the next block.
        end = len(text) if not more else max(text.rfind(b" "), text.rfind(b"\n"), 0)
        words, rest = text[:end].split(), text[end:]
        if not all(word.isdigit() for word in words):
            bad = next(word for word in words if not word.isdigit())
            at = offset + text.find(bad)
            raise FormatError(f"{path}: expected decimal ids, found {bad[:40]!r} at offset {at}", at)
        offset += end
        yield [int(word) for word in words]
        if not more:
            return


def _add_count(commands: Any) -> None:
    parser = _command(
        commands,
        "count",
        "count the tokens of a text",
        "Prints the number of tokens, and bytes a token.",
        "pybpe count -t tok.json novel.txt",
    )
    _add_tokenizer_and_file(parser, "text", output=False)
    parser.add_argument("--ordinary", action="store_true", help="special tokens in the text are plain text")
    _add_common(parser)
    parser.set_defaults(run=_run_count)


def _run_count(args: argparse.Namespace) -> None:
    from .parallel import map_ordered

    tokenizer = _load(args.tokenizer)
    allowed: Any = () if args.ordinary else "all"

    def count(piece: bytes) -> tuple[int, int]:
        return tokenizer.count(piece, allowed_special=allowed), len(piece)

    tokens, size = 0, 0
    for piece_tokens, piece_size in map_ordered(count, _pieces(tokenizer, args.file), args.workers):
        tokens += piece_tokens
        size += piece_size
    ratio = f", {size / tokens:.3f} bytes a token" if tokens else ""
    _report(args, {"tokens": tokens, "bytes": size}, f"{tokens} tokens, {size} bytes{ratio}")


def _add_tokenizer_and_file(parser: argparse.ArgumentParser, what: str, output: bool = True) -> None:
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help="tokenizer.json or tokenizer.bin")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help=f"the {what}; - (default) is stdin")
    if output:
        parser.add_argument("-o", "--output", default="-", metavar="OUT", help="- (default) is stdout")


# ----------------------------------------------------------------------------------------------------
# binarize


def _add_binarize(commands: Any) -> None:
    parser = _command(
        commands,
        "binarize",
        "text files to token files for training",
        "Encodes text files, splits them, and writes shards that llm.c reads as they are, with a manifest.",
        "pybpe binarize -t tok.json novel.txt -o out\n"
        "pybpe binarize -t tok.json web/*.txt -o out --splits 98,1,1 --split-by hash",
    )
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help="tokenizer.json or tokenizer.bin")
    parser.add_argument("files", nargs="+", metavar="FILE", help="text files")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="a folder, made if needed")
    parser.add_argument("--format", default="llmc", metavar="F", help="llmc (default) or raw (nanoGPT)")
    parser.add_argument("--splits", default="8,1,1", metavar="A,B,C", help="train, val, test (default: 8,1,1)")
    parser.add_argument("--split-by", default="hash", metavar="BY", help="hash (default), document or token")
    parser.add_argument("--eot", metavar="WHERE", help="prepend (default for llmc), append (for raw) or none")
    parser.add_argument("--dtype", default="auto", metavar="D", help="uint16, uint32 or auto (default)")
    parser.add_argument("--shard-tokens", type=int, default=10**8, metavar="N", help="default: 100000000")
    parser.add_argument("--min-shard-tokens", type=int, metavar="N", help="default: 257, llm.c's least; 0 allows any")
    parser.add_argument("--name", metavar="NAME", help="of the shards (default: the first file's)")
    _add_common(parser)
    parser.set_defaults(run=_run_binarize)


def _run_binarize(args: argparse.Namespace) -> None:
    from .dataset import binarize

    try:
        splits = [float(part) for part in args.splits.split(",")]
    except ValueError:
        raise ArgumentError(f"--splits: expected numbers such as 8,1,1, not {args.splits!r}") from None
    manifest = binarize(
        _load(args.tokenizer),
        args.files,
        args.output,
        format=args.format,
        splits=splits,
        split_by=args.split_by,
        eot=args.eot,
        dtype=args.dtype,
        shard_tokens=args.shard_tokens,
        min_shard_tokens=args.min_shard_tokens,
        name=args.name,
        workers=args.workers,
        progress=_progress(args),
    )
    lines = [
        f"{split}: {manifest.split_tokens(split)} tokens, {manifest.text_bytes[split]} bytes of text,"
        f" {len(records)} shard{'s' if len(records) != 1 else ''}"
        for split, records in manifest.shards.items()
    ]
    facts = {split: manifest.split_tokens(split) for split in manifest.shards}
    _report(args, {"output": args.output, "tokens": facts}, "\n".join([f"{args.output}:", *lines]))


# ----------------------------------------------------------------------------------------------------
# inspect


def _add_inspect(commands: Any) -> None:
    parser = _command(
        commands,
        "inspect",
        "show what is in a tokenizer",
        "Prints the facts of a tokenizer, its special tokens, and its first, last and longest tokens.",
        "pybpe inspect tok.json\npybpe inspect --json tokenizer.bin",
    )
    parser.add_argument("tokenizer", metavar="TOK", help="tokenizer.json or tokenizer.bin")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="how many tokens of each kind (10)")
    _add_common(parser, workers=False)
    parser.set_defaults(run=_run_inspect)


def _run_inspect(args: argparse.Namespace) -> None:
    from .padding import padded_vocab_size

    tok = _load(args.tokenizer)
    first = sorted(tok.vocab.items())
    longest = sorted(first, key=lambda entry: -len(entry[1]))
    count = max(0, args.count)
    shown = {
        "first": first[:count],
        "last": first[-count:] if count else [],
        "longest": longest[:count],
    }
    facts: dict[str, Any] = {
        "tokens": tok.n_vocab,
        "padded_64": padded_vocab_size(tok.n_vocab, 64),
        "padded_128": padded_vocab_size(tok.n_vocab, 128),
        "merges": len(tok.model.merges),
        "pattern": tok.pattern.name or tok.pattern.regex,
        "digits": tok.pattern.digits,
        "normalizer": tok.normalizer,
        "dtype": tok.dtype.name,
        "end_of_text": tok.eot_token,
        "special_tokens": tok.special_tokens,
    }
    lines = [f"{key:>15}  {value}" for key, value in facts.items()]
    for title, entries in shown.items():
        lines += ["", f"{title} tokens", *(f"{i:>15}  {token!r}" for i, token in entries)]
    machine = {key: [[i, token.decode("latin-1")] for i, token in entries] for key, entries in shown.items()}
    _report(args, {**facts, **machine}, "\n".join(lines))


# ----------------------------------------------------------------------------------------------------
# What the commands share


def _command(commands: Any, name: str, summary: str, text: str, examples: str) -> argparse.ArgumentParser:
    indented = "\n".join("  " + line for line in examples.split("\n"))
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=text,
        epilog=f"examples:\n{indented}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _add_common(parser: argparse.ArgumentParser, workers: bool = True) -> None:
    if workers:
        parser.add_argument("--workers", type=int, metavar="N", help="threads (default: all CPUs)")
    parser.add_argument("--quiet", action="store_true", help="no progress bars, no summary")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")


def _progress(args: argparse.Namespace) -> bool | None:
    return False if args.quiet or args.json else None


def _report(args: argparse.Namespace, facts: dict[str, Any], text: str) -> None:
    """The summary: JSON for machines, else text."""
    if args.json:
        print(json.dumps(facts, ensure_ascii=False))
    elif not args.quiet:
        print(text)


def _load(path: str) -> Tokenizer:
    from .tokenizer import Tokenizer

    return Tokenizer.from_file(path)


def _open_source(path: str) -> BinaryIO:
    from .pretokenize import open_input

    return sys.stdin.buffer if path == "-" else open_input(path)


class _Sink:
    """Standard output, or a file that appears complete at the end or not at all."""

    def __init__(self, path: str) -> None:
        from ._binding import Output

        self._output = None if path == "-" else Output(path)

    def write(self, data: bytes) -> None:
        if self._output is None:
            sys.stdout.buffer.write(data)
        else:
            self._output.write(data)

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._output is not None:
            self._output.__exit__(kind, *rest)
        elif kind is None:
            sys.stdout.buffer.flush()


_COMMANDS: tuple[Callable[[Any], None], ...] = (
    _add_train,
    _add_encode,
    _add_decode,
    _add_count,
    _add_binarize,
    _add_inspect,
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pybpe",
        description="Train a byte-level BPE tokenizer on your own corpus, and turn the corpus into token files\n"
        "that llm.c trains on. `pybpe COMMAND --help` shows each command with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="print the versions and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in _COMMANDS:
        add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    args = _parser().parse_args(argv)
    try:
        args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        known = (
            error if isinstance(error, Error) else file_error(error.errno or 0, f"{error.filename}: {error.strerror}")
        )
        return _fail(known)
    except Error as error:
        return _fail(error)
    except KeyboardInterrupt:
        print("pybpe: interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(error: Exception) -> int:
    line = " ".join(str(error).split())
    print(f"pybpe: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
