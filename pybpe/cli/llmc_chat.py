"""The command `pybpe llmc chat`."""

from __future__ import annotations

import argparse
from typing import Any

from .common import TOKENIZER_HELP, add_command, add_common, load, open_source, parse_numbers, report
from .token_files import add_least_tokens, add_split_options


def add_chat(commands: Any) -> None:
    """Adds the command to `pybpe llmc`."""
    parser = add_command(
        commands,
        "chat",
        "turn conversations into shards and loss masks",
        'Encodes JSON lines {"messages": [{"role": ..., "content": ..., "thought": ...}, ...]}. The roles are system,\n'
        "user and assistant, and the assistant may have a thought. Each conversation becomes\n\n"
        "  <|endoftext|> and for each message <|im_start|> <|ROLE|> [<|thought|> ... <|/thought|>] ... <|im_end|>\n\n"
        "without spaces. Texts cannot forge these tokens. Next to each shard is its loss mask, *.mask, which is 1\n"
        "where the assistant speaks. chat_template.jinja is the same format for Hugging Face.",
        "pybpe llmc chat -t tok.json conversations.jsonl -o chat\n"
        "pybpe llmc chat -t tok.json a.jsonl b.jsonl.gz -o chat --splits 95,5 --name tutor",
    )
    parser.add_argument("-t", "--tokenizer", required=True, metavar="TOK", help=TOKENIZER_HELP)
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines; - is stdin")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the output folder, made if needed")
    parser.add_argument("--name", default="chat", metavar="NAME", help="name of the shards (default: chat)")
    add_split_options(parser, by=False)
    add_least_tokens(parser, 257)
    add_common(parser, workers=False)
    parser.set_defaults(run=_run_chat)


def _run_chat(args: argparse.Namespace) -> None:
    from llmc_compat.chat import write_chat

    data = write_chat(
        load(args.tokenizer),
        [open_source("-") if file == "-" else file for file in args.files],
        args.output,
        name=args.name,
        splits=parse_numbers("--splits", args.splits),
        shard_tokens=args.shard_tokens,
        min_shard_tokens=args.min_shard_tokens,
    )
    facts = {
        "output": args.output,
        "conversations": data.conversations,
        "tokens": data.tokens,
        "trained_tokens": data.trained_tokens,
    }
    lines = [
        f"{split}: {data.tokens[split]} tokens, {data.trained_tokens[split]} of them trained on"
        for split in data.tokens
    ]
    report(args, facts, "\n".join([f"{args.output}: {data.conversations} conversations", *lines]))
