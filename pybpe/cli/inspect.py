"""The commands that show and measure: `pybpe inspect`, `viz`, `compare` and `bpb`."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pybpe

from .._lazy import Array, numpy
from ..analysis import table
from ..arguments import number_of, without_secrets
from ..errors import ArgumentError, FormatError
from ..reading.file_types import llmc_file
from ..reading.input_file import InputFile
from ..reading.inputs import ReadOptions
from ..reading.streams import open_unchanged
from .coding import hinting_at_text
from .command import Command
from .common import call, load, load_all, named_files, open_source, parse_amount, parse_bytes, report, writing

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
      pybpe inspect --where out/web_train_000000.bin 123456
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

    With --where, you see the document that a token belongs to, if `pybpe binarize
    --provenance` wrote the token file: its input, the number of the record, its id,
    its text in the token file, and the record itself, unless the input has changed.
    If the tokenizer is not in the folder of the token file, use it as TOK.

    With --audit, you see possible faults of a tokenizer: tokens that no text gives,
    parts of characters, equal tokens, a slow pattern. If you add text files or
    token files, you also see tokens that never occur in them (glitch tokens),
    special tokens that occur as ordinary text, and ids that the tokenizer does not
    have.
    """
    what = "a tokenizer, a folder with a manifest.json, or a checkpoint of llm.c"
    command.option("path TOK", what, nargs="?", path="reads")
    command.option("files FILE", "for a tokenizer: text files, folders, globs", nargs="*", path="texts")
    help = "show where the document with token TOKEN of a token file came from"
    command.add_argument("--where", nargs=2, metavar=("SHARD", "TOKEN"), help=help)
    command.option("--audit", "show possible faults of a tokenizer, and of text or token files")
    command.option("--min-count N", "with --audit: list tokens that occur less often (default: 2)", int, default=2)
    command.option("--count N", "how many tokens per kind to show (default: 10)", int, default=10)
    with command.group("reading"):
        command.options(ReadOptions, "text_key", "encoding", "keep_crlf")
    command.runtime("workers")
    command.runs(_run_inspect)


def _run_inspect(args: argparse.Namespace) -> None:
    from ..tokens.manifest import manifest_name

    if args.where is not None:
        return _where(args, *args.where)
    if args.path is None:
        raise ArgumentError("name a tokenizer, a folder of token files or a checkpoint, or use --where SHARD TOKEN")
    folder = args.path if os.path.isdir(args.path) else os.path.dirname(args.path) or "."
    name = manifest_name(folder)
    if args.audit:
        _audit(args)
    elif os.path.basename(args.path) == name or os.path.isfile(os.path.join(args.path, name)):
        _refuse_files(args)
        from ..tokens.manifest import Manifest
        from ..tokens.verification import dataset_statistics

        manifest, statistics = Manifest.load(folder), dataset_statistics(folder)
        described: dict[str, Any] = {split: asdict(facts) for split, facts in statistics.items()}
        if manifest.mixture is not None:
            described["mixture"] = {key: manifest.mixture[key] for key in ("seed", "sources")}
        lines = [str(manifest), *(f"{split}: {facts}" for split, facts in statistics.items())]
        report(args, described, "\n".join(lines))
    elif _is_checkpoint(args.path):
        from llmc_compat.cli import show

        _refuse_files(args)
        show(args)
    else:
        _inspect_tokenizer(args)


def _where(args: argparse.Namespace, shard: str, token: str) -> None:
    """Shows where the document with a token came from."""
    from ..tokens.manifest import TOKENIZER_NAMES, check_tokenizer, with_mark
    from ..tokens.provenance import document_at, record_at

    _refuse_files(args)
    if not token.isdecimal():
        raise ArgumentError(f"--where: {token!r} is not the number of a token in {shard}")
    manifest, row, ids = document_at(shard, int(token))
    names = [args.path] if args.path else [os.path.join(os.path.dirname(shard), name) for name in TOKENIZER_NAMES]
    name = next(filter(os.path.isfile, names), args.path)
    if name is None:
        raise ArgumentError(f"{shard}: its folder has no tokenizer: name it, `pybpe inspect TOK --where SHARD TOKEN`")
    tok = load(name)
    check_tokenizer(shard, manifest.tokenizer.get("fingerprint"), tok)
    mark = with_mark(tok, manifest).eot_token
    document = tok.decode_bytes([i for i in ids if i != mark])
    facts: dict[str, Any] = {**row, "text": document.decode("utf-8", "replace")}
    settings, encoding = manifest.settings, args.encoding or manifest.encodings.get(row["file"])
    key, form = (str(settings.get(*each)) for each in (("text_key", args.text_key), ("documents", "auto")))
    found = record_at(row["file"], row["row"], key, encoding, form)
    # The token file may have only a part of the document, and its text is normalized.
    changed = found is not None and document not in tok.decode_bytes(tok.encode_ordinary(found[0]))
    facts |= {"record": None if found is None or changed else found[1], "changed": changed}
    lines = [f"{name:>11}  {value}" for name, value in facts.items() if value is not None and name != "changed"]
    told = f"the input has changed, or {key!r} was not the key of its text: the record is not the document's"
    lines += [f"{'record':>11}  ({told})"] * changed
    report(args, facts, "\n".join(lines))


def _refuse_files(args: argparse.Namespace) -> None:
    if args.files:
        raise ArgumentError(f"{args.path}: this is not a tokenizer, so it cannot encode files: leave them out")


def _is_checkpoint(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return llmc_file(stream.read(8)) == "a checkpoint"


def _inspect_tokenizer(args: argparse.Namespace) -> None:
    from ..tokenizer.explanation import shown_token
    from .train import corpus_usage

    tok = load(args.path)
    usage = corpus_usage(tok, args) if args.files else None
    facts, counts, notes = _facts(tok), {}, {}
    lists = _lists(tok)
    counts["not_utf8"] = len(lists["not_utf8"])
    lines = [f"{key:>15}  {value}" for key, value in facts.items() if value is not None]
    if usage is not None:
        specials = set(tok.special_tokens.values())
        unused = [
            (i, tok.decode_single_token_bytes(i)) for i in usage.unused if i in tok.model.vocab and i not in specials
        ]
        used = tok.prune([i for i, amount in enumerate(usage.counts) if amount and i in tok.model.vocab])
        lists["never_used"], facts["prunable"] = unused, len(tok.model.vocab) - len(used.model.vocab)
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
    from ..tokenizer.explanation import shown_token

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


# ----------------------------------------------------------------------------------------------------
# compare


def add_compare(command: Command) -> None:
    """Show how two tokenizers differ, or measure several on documents of your own.

    examples:
      pybpe compare a.json b.bin
      pybpe compare a.json b.json --file novel.txt
      pybpe compare mine.json gpt2 --on en=english.txt --on zh=chinese.txt
      pybpe compare a.json b.json --on news='news/*.jsonl.gz' --on code=src/ --json

    Differences are settings, special tokens, tokens that only one of them has,
    tokens with different ids, and the first different merge. With --file, you also
    see where the ids of a text differ. The command exits with 0 if both give the
    same ids for every text, and with 1 if they differ.

    Measures are bytes per token, tokens per word and per character, Renyi
    efficiency, the share of the vocabulary that is used, tokens that never occur,
    occur fewer than 100 times, are not UTF-8 or cannot be reached, the slope of the
    Zipf curve, fairness between languages, and how a tokenizer cuts numbers and
    code. Special tokens separate documents and are not measured. To compare
    languages, use translations of the same text, line by line.
    """
    command.option("tokenizers TOK", "tokenizer files or folders, or names such as gpt2", nargs="+", path="reads")
    command.option("--file FILE", "a text to encode with two tokenizers, to see where their ids differ", path="texts")
    command.option("--count N", "how many differences per kind to show (default: 10)", int, default=10)
    command.option(
        "--on NAME=FILE",
        "measure on this file, folder or glob; NAME is its language or kind. Repeat the option for more; the same NAME"
        " adds files to it",
        action="append",
        path="texts",
    )
    with command.group("reading"):
        command.options(ReadOptions, "text_key", "encoding", "keep_crlf")
    command.runtime("workers")
    command.progress()
    command.runs(_run_compare)


def _run_compare(args: argparse.Namespace) -> int:
    if not args.on:
        return _run_differences(args)
    if args.file is not None:
        raise ArgumentError("--file shows where two tokenizers differ, without --on: leave one of them out")
    comparison = call(pybpe.compare, args, load_all(args.tokenizers), named_files("--on", args.on))
    report(args, comparison.to_dict(), str(comparison))
    return 0


def _run_differences(args: argparse.Namespace) -> int:
    from ..analysis.comparison import differences, differences_on

    if len(args.tokenizers) != 2:
        raise ArgumentError("use two tokenizers, or --on NAME=FILE with documents to measure them on")
    a, b = map(load, args.tokenizers)
    facts = differences(a, b)
    if args.file is not None:
        with open_source(args.file, args.encoding, args.keep_crlf) as stream:
            facts["text"] = differences_on(a, b, stream.read())
    report(args, facts, "\n".join(_difference_lines(facts, max(0, args.count))))
    return 0 if facts["equal"] else 1


def _difference_lines(facts: dict[str, Any], count: int) -> list[str]:
    lines = ["equal: the same ids for every text" if facts["equal"] else "different"]
    lines += [f"{name}: {a} in A, {b} in B" for name, (a, b) in facts["settings"].items()]
    if not facts["equal"]:
        for key, title in (
            ("only_in_a", "tokens only in A"),
            ("only_in_b", "tokens only in B"),
            ("other_ids", "tokens with different ids [token, in A, in B]"),
        ):
            lines += [f"{title}: {len(facts[key])}", *(f"    {entry!r}" for entry in facts[key][:count])]
        if facts["first_merge"] is not None:
            rank, a, b = facts["first_merge"]
            lines.append(f"first merge that differs: number {rank}, {a} in A, {b} in B")
    return lines + (_text_lines(facts["text"], count) if "text" in facts else [])


def _text_lines(text: dict[str, Any], count: int) -> list[str]:
    lines = [f"the text: {number_of(text['tokens_a'], 'token')} in A, {text['tokens_b']} in B"]
    if text["different"] is None:
        return [*lines, "their normalizers or special tokens change the text in different ways"]
    places = [f"    byte {at}: {a} in A, {b} in B" for at, a, b in text["different"][:count]]
    return [*lines, f"places that are split differently: {len(text['different'])}", *places]


# ----------------------------------------------------------------------------------------------------
# bpb


def add_bpb(command: Command) -> None:
    """Turn the losses of a model into bits per byte, a measure that lets you compare
    models with different tokenizers.

    examples:
      pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy
      pybpe bpb -t tok.json shards/*_val_*.bin --losses losses.npy --limit 10485760
      pybpe bpb -t tok.json val.bin --losses 3.2829 --count-special

    Bits per byte is the sum of the losses, divided by ln 2 and by the bytes of text
    in the same tokens. The losses are in nats, and there is one for every token but
    the first. Special tokens are not text, so both sums leave them out, as in
    nanochat. If your losses are a mean over all tokens, use --count-special. The
    command refuses losses that do not fit the files, and a tokenizer that did not
    make them.
    """
    command.option("files FILE", "token files, which are one stream", nargs="+", path="texts")
    command.tokenizer()
    command.option(
        "--losses FILE|MEAN",
        "-ln p of every token, as *.npy of floats in any shape, or as text separated by white space; or their mean",
        required=True,
        path="texts",
    )
    command.option("--limit N", "the evaluation stopped after N tokens (default: at the end)", parse_amount)
    command.option(
        "--count-special",
        "also add the losses of special tokens, which mark the ends of documents",
    )
    command.runs(_run_bpb)


def _run_bpb(args: argparse.Namespace) -> None:
    found = call(pybpe.bits_per_byte, args, load(args.tokenizer), args.files, losses=_losses(args.losses))
    report(args, {"bits_per_byte": found.value, **vars(found)}, str(found))


def _losses(given: str) -> float | Array:
    from ..formats.id_files import NPY_MAGIC, npy_blocks, read_npy_header

    with suppress(ValueError):
        if not os.path.lexists(given):
            return float(given)
    with open_unchanged(given) as stream:
        if stream.read(len(NPY_MAGIC)) == NPY_MAGIC:
            header = read_npy_header(stream, given)
            return numpy.concatenate([numpy.empty(0, header.dtype), *npy_blocks(stream, header, given, 1 << 24)])
        stream.seek(0)
        words = stream.read().split()
    try:
        return numpy.array(words, dtype=numpy.float64)
    except ValueError as error:
        raise FormatError(f"{given}: expected a .npy file, or numbers: {str(error):.120}") from None
