"""The commands that show: `pybpe inspect` and `pybpe viz`."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pybpe

from ..analysis import table
from ..arguments import without_secrets
from ..errors import ArgumentError
from ..reading.file_types import llmc_file
from ..reading.input_file import InputFile
from ..reading.inputs import ReadOptions
from ..tokenizer.explanation import shown_token
from .coding import hinting_at_text
from .command import Command
from .common import call, load, load_all, open_source, parse_bytes, report, writing
from .train import corpus_usage

if TYPE_CHECKING:
    from ..analysis.usage import Usage

Entries = list[tuple[int, bytes]]

_TITLES = {
    "first": "first tokens",
    "last": "last tokens",
    "longest": "longest tokens",
    "not_utf8": "multi-byte tokens that are not UTF-8",
    "never_used": "tokens that the files never use",
}


def add_inspect(command: Command) -> None:
    """Show the contents of a tokenizer, a folder of token files or a checkpoint.

    examples:
      pybpe inspect tok.json
      pybpe inspect --json tokenizer.bin
      pybpe inspect tok.json corpus/
      pybpe inspect tok.json --audit shards
      pybpe inspect out
      pybpe inspect gpt2_124M.bin

    For a tokenizer, you see its properties, its special tokens, its first, last and
    longest tokens, and tokens that are not UTF-8 on their own. With files, you also
    see the tokens that they never use, and how well the tokenizer compresses every
    script.

    For a folder of token files, you see the number of tokens, documents and bytes
    of text in every split, and the lengths of documents. For a mixture, you also
    see the amounts in its recipe, the amounts that every source contributed, and
    how often it was repeated.

    For a checkpoint of llm.c, you see the header, and the shape, mean, standard
    deviation, minimum and maximum of every tensor (for wte, without the padding),
    and the number of values that are infinite or NaN.

    With --audit, you see what may be wrong with a tokenizer: tokens that no text
    gives, parts of characters, equal tokens, a slow pattern. FILE are text files or
    token files then, and you also see the tokens that they lack (glitch tokens),
    the special tokens whose text they have as ordinary text, and the ids that the
    tokenizer does not have.
    """
    command.option("path TOK", "a tokenizer, a folder with a manifest.json, or a checkpoint of llm.c", path="reads")
    command.option("files FILE", "for a tokenizer: text files, folders, globs", nargs="*", path="texts")
    command.option("--audit", "show what may be wrong with a tokenizer, and in texts or token files")
    command.option("--min-count N", "with --audit: list tokens that occur less often (default: 2)", int, default=2)
    command.option("--count N", "how many tokens of each kind to show (default: 10)", int, default=10)
    with command.group("reading"):
        command.options(ReadOptions, "text_key", "encoding", "keep_crlf")
    command.runtime("workers")
    command.runs(_run_inspect)


def _run_inspect(args: argparse.Namespace) -> None:
    from ..tokens.manifest import manifest_name

    folder = args.path if os.path.isdir(args.path) else os.path.dirname(args.path) or "."
    manifest = manifest_name(folder)
    if args.audit:
        _audit(args)
    elif os.path.basename(args.path) == manifest or os.path.isfile(os.path.join(args.path, manifest)):
        _refuse_files(args)
        _inspect_token_files(args, folder)
    elif _is_checkpoint(args.path):
        from llmc_compat.cli import show

        _refuse_files(args)
        show(args)
    else:
        _inspect_tokenizer(args)


def _refuse_files(args: argparse.Namespace) -> None:
    if args.files:
        raise ArgumentError(f"{args.path}: this is no tokenizer: leave out the files, which a tokenizer could encode")


def _is_checkpoint(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return llmc_file(stream.read(8)) == "a checkpoint"


def _inspect_token_files(args: argparse.Namespace, folder: str) -> None:
    from ..tokens.manifest import Manifest
    from ..tokens.verification import dataset_statistics

    manifest, statistics = Manifest.load(folder), dataset_statistics(folder)
    described: dict[str, Any] = {split: asdict(facts) for split, facts in statistics.items()}
    if manifest.mixture is not None:
        described["mixture"] = {key: manifest.mixture[key] for key in ("seed", "sources")}
    lines = [str(manifest), *(f"{split}: {facts}" for split, facts in statistics.items())]
    report(args, described, "\n".join(lines))


def _inspect_tokenizer(args: argparse.Namespace) -> None:
    tok = load(args.path)
    usage = corpus_usage(tok, args) if args.files else None
    facts, counts, notes = _facts(tok), {}, {}
    lists = _lists(tok)
    counts["not_utf8"] = len(lists["not_utf8"])
    lines = [f"{key:>15}  {value}" for key, value in facts.items() if value is not None]
    if usage is not None:
        lists["never_used"], facts["prunable"] = _never_used(tok, usage)
        counts["never_used"] = len(lists["never_used"])
        notes["never_used"] = f"; `pybpe prune` drops {facts['prunable']}, the others are bytes or parts of tokens"
    count = max(0, args.count)
    for name, entries in lists.items():
        shown = entries[-count:] if name == "last" and count else entries[:count]
        facts[name] = [{"id": i, "text": token.decode("utf-8", "replace"), "hex": token.hex()} for i, token in shown]
        total = f" ({counts[name]}{notes.get(name, '')})" if name in counts else ""
        lines += ["", f"{_TITLES[name]}{total}", *(f"{i:>15}  {shown_token(token)}" for i, token in shown)]
    facts |= {f"{name}_count": amount for name, amount in counts.items()}
    if usage is not None:
        amounts = {"all": usage.total, **usage.scripts}
        facts["scripts"] = {script: amount.facts for script, amount in amounts.items()}
        rows = [
            (script, f"{amount.bytes:,}", f"{amount.bytes_per_token:.3f}", f"{amount.tokens_per_character:.3f}")
            for script, amount in amounts.items()
        ]
        lines += ["", table(["script", "bytes", "bytes/token", "tokens/char"], rows)]
    report(args, facts, "\n".join(lines))


def _audit(args: argparse.Namespace) -> None:
    from ..analysis.audit import TITLES, audit, is_tokens, seen_in_texts, seen_in_tokens

    tok, seen = load(args.path), None
    if args.files and all(map(is_tokens, args.files)):
        seen = seen_in_tokens(tok, args.files)
    elif args.files:
        seen = call(seen_in_texts, args, tok, args.files)
    facts, lines = dict[str, Any](), list[str]()
    for finding, entries in audit(tok, seen, args.min_count).items():
        shown = entries[: max(0, args.count)]
        examples = [
            {"id": i, "text": text.decode("utf-8", "replace"), "hex": text.hex(), "count": count}
            for i, text, count in shown
        ]
        facts[finding] = {"count": len(entries), "examples": examples}
        lines.append(f"{len(entries):>8,}  {TITLES[finding].format(least=args.min_count)}")
        for i, text, count in shown:
            times = "" if count is None else f"  {count:,} times"
            lines.append(f"{'' if i is None else i:>15}  {shown_token(text)}{times}")
    report(args, facts, "\n".join(lines))


def _never_used(tok: pybpe.Tokenizer, usage: Usage) -> tuple[Entries, int]:
    """Returns the tokens that a corpus does not use, and how many of them `pybpe prune` drops."""
    specials = set(tok.special_tokens.values())
    unused = [(i, tok.decode_single_token_bytes(i)) for i in usage.unused if i in tok.model.vocab and i not in specials]
    used = tok.prune([i for i, amount in enumerate(usage.counts) if amount and i in tok.model.vocab])
    return unused, len(tok.model.vocab) - len(used.model.vocab)


def _facts(tok: pybpe.Tokenizer) -> dict[str, Any]:
    return {
        "tokens": tok.vocab_size,
        "padded_64": pybpe.padded_vocab_size(tok.vocab_size, 64),
        "padded_128": pybpe.padded_vocab_size(tok.vocab_size, 128),
        "merges": len(tok.model.merges),
        "pattern": tok.pattern.name or tok.pattern.regex,
        "digits": tok.pattern.digits,
        "normalizer": tok.model.normalizer,
        "prefix_space": tok.model.prefix_space,
        "whole_words": tok.model.whole_words,
        "dropout": tok.model.dropout,
        "template": str(tok.model.template) if tok.model.template is not None else None,
        "dtype": f"uint{8 * tok.model.id_bytes}",
        "end_of_text": tok.eot_token,
        "special_tokens": tok.special_tokens,
        "special_token_flags": {text: rules.names for text, rules in tok.model.matching.items()} or None,
    }


def _lists(tok: pybpe.Tokenizer) -> dict[str, Entries]:
    from ..analysis.comparison import is_utf8

    first = sorted(tok.model.vocab.items())
    broken = [(i, token) for i, token in first if len(token) > 1 and not token.isascii() and not is_utf8(token)]
    longest = sorted(first, key=lambda entry: -len(entry[1]))
    return {"first": first, "last": first, "longest": longest, "not_utf8": broken}


def add_viz(command: Command) -> None:
    """Make a page that shows text in colored tokens, for up to four tokenizers.

    examples:
      pybpe viz --text 'Hello, world' -t tok.json -o tokens.html
      pybpe viz novel.txt -t mine.json -t gpt2 -o tokens.html
      git log | pybpe viz - -t tok.json -o tokens.html

    The page is one HTML file that needs no network. It shows ids and bytes, a box
    that encodes your input as you type, a searchable vocabulary, the merges of
    every token, and charts.
    """
    command.option("file FILE", "a text file; - is stdin (default: a sample)", nargs="?", path="texts")
    command.option("--text TEXT", "the text itself, instead of a file")
    command.option(
        "-t --tokenizer TOK",
        "tokenizer.json, tokenizer.bin, or a name such as gpt2; repeatable, up to four",
        action="append",
        required=True,
        path="reads",
    )
    command.output("the page; - is stdout")
    command.option("--max-bytes N", "show the first N bytes of the text (default: 100k)", parse_bytes)
    with command.group("reading"):
        command.options(ReadOptions, "encoding", "keep_crlf")
    command.runs(_run_viz)


def _run_viz(args: argparse.Namespace) -> None:
    max_bytes = pybpe.viz.MAX_BYTES if args.max_bytes is None else args.max_bytes
    tokenizers = load_all(args.tokenizer)
    text, source, total = _read(args, max_bytes)
    page = pybpe.viz.make_page(text, tokenizers, source=source, max_bytes=max_bytes, total_bytes=total).encode("utf-8")
    with writing(args) as write:
        write(page)
    cut = f", the first {max_bytes:,} bytes of the text" if max(total, len(text)) > max_bytes else ""
    report(
        args,
        {"output": args.output, "bytes": len(page)},
        f"{args.output}: {len(page):,} bytes{cut}; open it in a browser",
    )


def _read(args: argparse.Namespace, max_bytes: int) -> tuple[bytes, str, int]:
    """Returns the text as far as the page shows it, the name of its source, and its total number of bytes."""
    if args.text is not None:
        if args.file is not None:
            raise ArgumentError("use a file or --text, not both")
        return os.fsencode(args.text), "", 0
    if args.file is None:
        return pybpe.viz.SAMPLE.encode("utf-8"), "a sample", 0
    with hinting_at_text([args.file]), open_source(args.file, args.encoding, args.keep_crlf) as stream:
        text = b""
        # Reads one byte more than the page shows, to find out whether there are more.
        while len(text) <= max_bytes and (more := stream.read(max_bytes + 1 - len(text))):
            text += more
    if args.file == "-":
        return text, "standard input", 0
    return text, os.path.basename(without_secrets(args.file)), InputFile.of(args.file).known_size or 0
