"""The commands `pybpe llmc chat` and `pybpe llmc eval`."""

from __future__ import annotations

import argparse

from pybpe.arguments import counted
from pybpe.cli.command import Command
from pybpe.cli.common import call, load, open_source, report
from pybpe.reading.splits import SplitOptions
from pybpe.tokens.options import OutputOptions


def add_chat(command: Command) -> None:
    """Encodes JSON lines {"messages": [{"role": ..., "content": ..., "thought": ...}, ...]}. The roles are system,
    user and assistant, and the assistant may have a thought. Each conversation becomes

      <|endoftext|> and for each message <|im_start|> <|ROLE|> [<|thought|> ... <|/thought|>] ... <|im_end|>

    without spaces. Texts cannot forge these tokens. Next to each shard is its loss mask, *.mask, which is 1
    where the assistant speaks. chat_template.jinja is the same format for Hugging Face.

    examples:
      pybpe llmc chat -t tok.json conversations.jsonl -o chat
      pybpe llmc chat -t tok.json a.jsonl b.jsonl.gz -o chat --splits 95,5 --name tutor
    """
    command.tokenizer()
    command.option("files FILE", "JSON lines; - is stdin", nargs="+")
    command.output("the output folder, created if needed", "DIR")
    command.option("--name NAME", "name prefix of the shards (default: chat)", default="chat")
    command.options(SplitOptions, "splits")
    command.options(OutputOptions, "shard_tokens", "min_shard_tokens", min_shard_tokens=257)
    command.runs(_run_chat)


def _run_chat(args: argparse.Namespace) -> None:
    from llmc_compat.chat import write_chat

    sources = [open_source("-", records="accept") if file == "-" else file for file in args.files]
    data = call(write_chat, args, load(args.tokenizer), sources, args.output)
    facts = {
        "output": args.output,
        "conversations": data.conversations,
        "tokens": data.tokens,
        "trained_tokens": data.trained_tokens,
    }
    lines = [
        f"{split}: {counted(data.tokens[split], 'token')}, {data.trained_tokens[split]} of them trained on"
        for split in data.tokens
    ]
    report(args, facts, "\n".join([f"{args.output}: {counted(data.conversations, 'conversation')}", *lines]))


def add_eval(command: Command) -> None:
    """Encodes JSON lines {"context": ..., "completions": [4 texts], "label": 0-3}, or HellaSwag lines (ctx,
    endings, label). With -h 1, llm.c evaluates dev/data/hellaswag/hellaswag_val.bin in its working folder.

    examples:
      pybpe llmc eval -t tok.json hellaswag_val.jsonl -o work/dev/data/hellaswag/hellaswag_val.bin
      pybpe llmc eval -t tok.json questions.jsonl.gz -o questions.bin
      pybpe llmc eval -t tok.json chinese.jsonl -o questions.bin --separator ''
    """
    command.tokenizer()
    command.option("file FILE", "JSON lines; - (default) is stdin", nargs="?", default="-")
    command.output("the eval file to write")
    command.option("--separator S", "text before each completion (default: a space, as in llm.c)", default=" ")
    command.runs(_run_eval)


def _run_eval(args: argparse.Namespace) -> None:
    from llmc_compat.evals import encode_examples, write_eval

    source = open_source("-", records="accept") if args.file == "-" else args.file
    facts = write_eval(args.output, encode_examples(load(args.tokenizer), source, separator=args.separator))
    report(
        args,
        {"output": args.output, "examples": facts.examples, "min_T": facts.min_T, "min_B": 4},
        f"{args.output}: {counted(facts.examples, 'example')}; llm.c needs -b 4 or more and -t {facts.min_T} or more",
    )
