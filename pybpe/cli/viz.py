"""The command `pybpe viz`."""

from __future__ import annotations

import argparse
import os
import re

from ..errors import FileMissingError
from ..urls import is_url, without_secrets
from .command import Command
from .common import load_all, open_source, report, writing
from .options import parse_bytes


def add_viz(command: Command) -> None:
    """Writes one self-contained HTML file. It shows a text in colored tokens with their ids and bytes, a box that
    encodes what you type, a searchable vocabulary, how each token is merged, and charts. It can show
    several tokenizers side by side.

    examples:
      pybpe viz 'Hello, world' -t tok.json -o tokens.html
      pybpe viz novel.txt -t mine.json -t gpt2 -o tokens.html
      git log | pybpe viz - -t tok.json -o tokens.html
    """
    command.option("text TEXT|FILE", "a file, - for stdin, or the text itself", nargs="?")
    command.option(
        "-t --tokenizer TOK",
        "tokenizer.json, tokenizer.bin, or a name such as gpt2; repeatable, up to four",
        action="append",
        required=True,
    )
    command.output("the page; - is stdout")
    command.option("--max-bytes N", "show the first N bytes of the text (default: 100k)", parse_bytes)
    command.runs(_run_viz)


def _run_viz(args: argparse.Namespace) -> None:
    from ..viz import MAX_BYTES, make_page

    max_bytes = MAX_BYTES if args.max_bytes is None else args.max_bytes
    tokenizers = load_all(args.tokenizer)
    text, source, total = _read(args.text, max_bytes)
    page = make_page(text, tokenizers, source=source, max_bytes=max_bytes, total_bytes=total).encode("utf-8")
    with writing(args.output) as write:
        write(page)
    cut = f", the first {max_bytes:,} bytes of the text" if max(total, len(text)) > max_bytes else ""
    report(
        args,
        {"output": args.output, "bytes": len(page)},
        f"{args.output}: {len(page):,} bytes{cut}; open it in a browser",
    )


def _read(argument: str | None, max_bytes: int) -> tuple[bytes, str, int]:
    """Returns the text as far as the page shows it, the name of its source, and its total number of bytes."""
    from ..reading.input_file import InputFile
    from ..viz import SAMPLE

    if argument is None:
        return SAMPLE.encode("utf-8"), "a sample", 0
    if argument != "-" and not is_url(argument) and not os.path.isfile(argument):
        if re.fullmatch(r"\S*(/\S*|\.[A-Za-z]\w{0,4})", argument):
            raise FileMissingError(
                f"{argument}: no such file. To show these words as text, pipe them: echo ... | pybpe viz -"
            )
        return os.fsencode(argument), "", 0
    with open_source(argument) as stream:
        text = b""
        # Reads one byte more than the page shows, to find out whether there are more.
        while len(text) <= max_bytes and (more := stream.read(max_bytes + 1 - len(text))):
            text += more
    if argument == "-":
        return text, "standard input", 0
    return text, os.path.basename(without_secrets(argument)), InputFile.of(argument).known_size or 0
