"""The commands `pybpe export`, `diff`, `prune` and `extend`, whose input and output are whole tokenizers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..arguments import counted
from ..errors import ArgumentError, warn
from .common import (
    add_command,
    add_common,
    check_tokenizer_output,
    load,
    named_output,
    parse_amount,
    progress,
    report,
    save_tokenizer,
)

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer


def _read(args: argparse.Namespace) -> Tokenizer:
    """Loads TOK. For a .tiktoken file, uses --pattern and --special-token."""
    from ..tokenizer import Tokenizer

    if args.pattern is None and args.special_token is None:
        return load(args.tokenizer)
    specials = {}
    for given in args.special_token or ():
        text, _, number = given.rpartition("=")
        if not text or not number.isdecimal():
            raise ArgumentError(f"--special-token: expected TEXT=ID, as in '<|endoftext|>=50256', not {given!r}")
        specials[text] = int(number)
    return Tokenizer.from_file(args.tokenizer, pattern=args.pattern, special_tokens=specials or None)


def add_export(commands: Any) -> None:
    parser = add_command(
        commands,
        "export",
        "write a tokenizer in another format",
        "Reads any tokenizer file or folder and writes it for another program: tokenizer.json for Hugging Face,\n"
        "tokenizer.bin for llm.c, vocab.json and merges.txt, .tiktoken ranks, or a folder for transformers. Refuses\n"
        "exports that would change ids or lose something.",
        "pybpe export tok.json -o tokenizer.bin\n"
        "pybpe export tokenizer.bin -o my-tokenizer/        # for AutoTokenizer.from_pretrained\n"
        "pybpe export tok.json -o gpt2/ --format files\n"
        "pybpe export gpt2 -o gpt2.json\n"
        "pybpe export cl100k_base.tiktoken --pattern cl100k --special-token '<|endoftext|>=100257' -o tok.json",
    )
    parser.add_argument(
        "tokenizer", metavar="TOK", help="tokenizer.json, tokenizer.bin, *.tiktoken, a folder, or a name such as gpt2"
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file or folder to write; - is stdout")
    parser.add_argument(
        "--format", metavar="F", help="json, bin, files, tiktoken or pretrained (default: by the ending of OUT)"
    )
    parser.add_argument(
        "--pattern",
        metavar="P",
        help="pattern of a .tiktoken file (a name, or tiktoken's regular expression), or to replace an unknown one",
    )
    parser.add_argument(
        "--special-token",
        action="append",
        metavar="S=ID",
        help="a special token and its id, for a .tiktoken file; repeatable",
    )
    parser.add_argument(
        "--ids-only",
        action="store_true",
        help="leave out what the format cannot hold and ids do not need, such as a template or chat template",
    )
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_export)


def _run_export(args: argparse.Namespace) -> None:
    from ..formats.export import format_of

    tokenizer = _read(args)
    format = args.format or ("json" if args.output == "-" else format_of(args.output))
    if args.output == "-" and format in ("files", "pretrained"):
        raise ArgumentError(f"--format {format} makes a folder, which cannot go to standard output: name it with -o")
    with named_output(args.output, "") as name:
        tokenizer.save(name, format, ids_only=args.ids_only)
    report(args, {"output": args.output, "format": format, "n_vocab": tokenizer.vocab_size},
           f"{args.output}: {tokenizer.vocab_size} tokens")  # fmt: skip


def add_diff(commands: Any) -> None:
    parser = add_command(
        commands,
        "diff",
        "compare two tokenizers",
        "Prints the differences between two tokenizers: settings, special tokens, tokens that only one has, tokens\n"
        "with different ids, and the first different merge; with a text, also where the ids differ. Exits with 0\n"
        "if they give the same ids for every text, and 1 if they differ.",
        "pybpe diff a.json b.bin\npybpe diff a.json b.json --text novel.txt --json",
    )
    parser.add_argument("a", metavar="A", help="a tokenizer file or folder")
    parser.add_argument("b", metavar="B", help="another tokenizer")
    parser.add_argument("--text", metavar="FILE", help="a text to encode with both")
    parser.add_argument(
        "--count", type=int, default=10, metavar="N", help="how many tokens of each kind to show (default: 10)"
    )
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_diff)


def _run_diff(args: argparse.Namespace) -> int:
    from ..analysis.differences import differences, differences_on

    a, b = load(args.a), load(args.b)
    facts = differences(a, b)
    if args.text is not None:
        from .common import open_source

        with open_source(args.text) as stream:
            facts["text"] = differences_on(a, b, stream.read())
    report(args, facts, "\n".join(_diff_lines(facts, max(0, args.count))))
    return 0 if facts["equal"] else 1


def _diff_lines(facts: dict[str, Any], count: int) -> list[str]:
    """Returns the differences as lines of text, with the first `count` of each kind."""
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
    lines = [f"the text: {counted(text['tokens_a'], 'token')} in A, {text['tokens_b']} in B"]
    if text["different"] is None:
        return [*lines, "their normalizers or special tokens turn the text into different texts"]
    places = [f"    byte {at}: {a} in A, {b} in B" for at, a, b in text["different"][:count]]
    return [*lines, f"places that are split differently: {len(text['different'])}", *places]


def add_prune(commands: Any) -> None:
    parser = add_command(
        commands,
        "prune",
        "drop tokens that a corpus does not use",
        "Keeps the tokens that occur in the files, the tokens that they are merged from, the bytes and the special\n"
        "tokens; or, with --vocab-size, the first tokens. --remap writes which rows of an embedding to keep.",
        "pybpe prune tok.json corpus/ -o small.json --min-count 10 --remap remap.npy\n"
        "pybpe prune tok.json --vocab-size 16k -o small.json",
    )
    parser.add_argument("tokenizer", metavar="TOK", help="a tokenizer file or folder")
    parser.add_argument("files", nargs="*", metavar="FILE", help="text files, folders, globs")
    parser.add_argument(
        "--min-count", type=int, default=1, metavar="N", help="keep tokens that occur at least N times (default: 1)"
    )
    parser.add_argument("--vocab-size", type=parse_amount, metavar="N", help="keep the first N tokens instead")
    _add_output(parser)
    add_common(parser)
    parser.set_defaults(run=_run_prune)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="output: *.json, *.bin or a folder; - is stdout"
    )
    parser.add_argument("--remap", metavar="F", help="write the old id of each new id to *.npy (int64, -1 if none)")


def _run_prune(args: argparse.Namespace) -> None:
    from ..remap import old_ids, save_remap

    check_tokenizer_output(args.output)
    if bool(args.files) == (args.vocab_size is not None):
        raise ArgumentError("name files whose tokens to keep, or give --vocab-size N")
    tokenizer = load(args.tokenizer)
    note = ""
    if args.vocab_size is not None:
        new = tokenizer.prune(vocab_size=args.vocab_size)
        if args.remap is not None:
            save_remap(args.remap, old_ids(tokenizer.model, new.model))
    else:
        counts = corpus_usage(tokenizer, args).counts
        new = tokenizer.prune([i for i, count in enumerate(counts) if count >= args.min_count], remap=args.remap)
        if new.vocab_size == tokenizer.vocab_size:
            note = ": every token is used, part of a used token, a byte or a special token; --min-count drops rare ones"
    _save(args, tokenizer, new, note)


def _save(args: argparse.Namespace, old: Tokenizer, new: Tokenizer, note: str = "") -> None:
    save_tokenizer(new, args.output)
    facts = {"output": args.output, "old": old.vocab_size, "n_vocab": new.vocab_size, "remap": args.remap}
    report(args, facts, f"{args.output}: {new.vocab_size} tokens, previously {old.vocab_size}{note}")


def corpus_usage(tokenizer: Tokenizer, args: argparse.Namespace) -> Any:
    """Returns the pybpe.analysis.usage.Usage of a tokenizer on `args.files`."""
    from ..analysis.usage import measure
    from ..training.counting import count_words

    if tokenizer.model.matching or tokenizer.model.prefix_space:
        warn(
            "words are counted without add_prefix_space and the flags of special tokens (lstrip,"
            " rstrip, single_word, normalized), so the counts of tokens next to special tokens are estimates"
        )
    counts = count_words(
        list(args.files),
        pattern=tokenizer.pattern.name or tokenizer.pattern.regex,
        digits=tokenizer.pattern.digits,
        normalizer=tokenizer.model.normalizer,
        special_tokens=list(tokenizer.special_tokens),
        workers=args.workers,
        progress=progress(args),
    )
    return measure(tokenizer, counts.to_dict())


def add_extend(commands: Any) -> None:
    parser = add_command(
        commands,
        "extend",
        "add special tokens, or merges learned from more text",
        "All ids stay the same; new special tokens and then new tokens follow them. --remap writes which rows of\n"
        "an embedding are new.",
        "pybpe extend tok.json --special-token '<|tool|>' -o new.json --remap remap.npy\n"
        "pybpe extend tok.json more/*.txt --vocab-size 40k -o new.json",
    )
    parser.add_argument("tokenizer", metavar="TOK", help="a tokenizer file or folder")
    parser.add_argument("files", nargs="*", metavar="FILE", help="texts to learn merges from")
    parser.add_argument("--special-token", action="append", metavar="S", help="a new special token; repeatable")
    parser.add_argument("--vocab-size", type=parse_amount, metavar="N", help="new number of tokens; needs files")
    _add_output(parser)
    add_common(parser)
    parser.set_defaults(run=_run_extend)


def _run_extend(args: argparse.Namespace) -> None:
    check_tokenizer_output(args.output)
    tokenizer = load(args.tokenizer)
    if not args.files and not args.special_token:
        raise ArgumentError("nothing to add: name --special-token S, or files and --vocab-size N")
    options = {"workers": args.workers, "progress": progress(args)} if args.files else {}
    new = tokenizer.extend(
        args.special_token or (), args.files or None, vocab_size=args.vocab_size, remap=args.remap, **options
    )
    _save(args, tokenizer, new)
