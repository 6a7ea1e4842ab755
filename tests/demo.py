"""Runs the full pipeline, end to end, for `make demo`.

Trains a tokenizer with llm.c's nine control tokens on a corpus, encodes and splits the corpus, writes tokenizer.json,
tokenizer.bin and shards, and has the compiled C program tests/c/decode_test.c decode all of it and compare hashes. Then
it shows a sentence cut into its tokens. Without a corpus it uses English that every CPython ships: pydoc's topics.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pybpe
from pybpe._binding import Output
from pybpe.control_tokens import CONTROL_TOKENS, END_OF_TEXT
from pybpe.reading.documents import RECORDS
from pybpe.reading.files import input_files, open_text
from pybpe.reading.input_file import InputFile
from pybpe.support.output_files import make_folder

# GPT-2's tokenizer on pydoc's topics, measured with Python 3.11.
GPT2_TOKENS, GPT2_BYTES_PER_TOKEN = 50_257, 3.35
_BACKGROUNDS = (44, 45, 46, 42, 43)  # of ANSI, for tokens side by side


def corpus_file(corpus: str, folder: str) -> str:
    """Returns the file that CORPUS names. If it names several files, separated as in a shell command, joins them in the
    folder, each as one document. If CORPUS is empty, writes a text there."""
    if not corpus:
        from pydoc_data import topics

        path = os.path.join(folder, "corpus.txt")
        Path(path).write_text("\n\n".join(text for _, text in sorted(topics.topics.items())), encoding="utf-8")
        print("corpus: pydoc's topics, of Python's standard library (English)")
        return path
    try:
        names = [corpus] if os.path.exists(corpus) else shlex.split(corpus)
    except ValueError as error:
        what = "CORPUS must name a file, or several files as in a shell command"
        raise pybpe.errors.ArgumentError(f"{what}: {error}") from None
    files = input_files(names)
    for path in files:
        if InputFile.look(path)[0].form in RECORDS:
            what = "the demo takes text files; for records use .venv/bin/pybpe prepare"
            raise pybpe.errors.ArgumentError(f"{path}: {what}")
    return files[0] if len(files) == 1 else _joined(files, os.path.join(folder, "joined.txt"))


def _joined(files: Sequence[str], path: str) -> str:
    with Output(path) as output:
        for number, file in enumerate(files):
            output.write(END_OF_TEXT.encode() if number else b"")
            with open_text(file) as stream:
                while block := stream.read(1 << 20):
                    output.write(block)
    print(f"corpus: {len(files)} files, joined with {END_OF_TEXT} between them")
    return path


def _facts(path: str) -> tuple[int, str]:
    """Returns the size of a text, and the SHA-256 of the text without the marks between documents."""
    mark, digest, size, rest = END_OF_TEXT.encode(), hashlib.sha256(), 0, b""
    with open_text(path) as stream:
        while block := stream.read(1 << 20):
            size += len(block)
            *whole, rest = (rest + block).split(mark)
            digest.update(b"".join(whole))
            end = max(0, len(rest) - len(mark) + 1)  # the rest may be the start of a mark
            digest.update(rest[:end])
            rest = rest[end:]
    digest.update(rest)
    return size, digest.hexdigest()


def run(corpus: str, vocab_size: int, out: str, decode_test: str) -> int:
    """Runs the pipeline and prints its results. Returns the exit code: 0 if the decoded bytes equal the corpus."""
    folder = make_folder(out)
    path = corpus_file(corpus, folder)
    size, sha256 = _facts(path)
    print(f"training {vocab_size:,} tokens on {path}, {size:,} bytes", flush=True)
    tok = pybpe.train(path, vocab_size=vocab_size, special_tokens=CONTROL_TOKENS, min_frequency=2)
    tokenizers = [os.path.join(folder, name) for name in ("tokenizer.json", "tokenizer.bin")]
    for name in tokenizers:
        tok.save(name)
    print("encoding, and splitting 8:1:1", flush=True)
    manifest = pybpe.binarize(tok, path, folder, split_by="token", splits=(8, 1, 1), force=True)
    shards = [os.path.join(folder, record.file) for records in manifest.shards.values() for record in records]
    same = _decode_in_c(decode_test, tokenizers[1], shards, tok, sha256)
    if same:
        _show(tok, manifest, path, size, out, is_default=not corpus)
    return 0 if same else 1


def _decode_in_c(decode_test: str, tokenizer_bin: str, shards: list[str], tok: pybpe.Tokenizer, sha256: str) -> bool:
    """Runs the C program. Returns whether the bytes it decoded have this hash."""
    command = [decode_test, tokenizer_bin, *shards, "--skip-id", str(tok.eot_token)]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode != 0:
        print(f"the C program failed: {result.stderr.decode('utf-8', 'replace').strip()}")
        return False
    same = sha256 in result.stdout.decode("utf-8", "replace").split()
    print(f"decoded with C alone: {'byte for byte equal to the corpus' if same else 'DIFFERENT from the corpus'}")
    return same


def _show(tok: pybpe.Tokenizer, manifest: pybpe.Manifest, path: str, size: int, out: str, is_default: bool) -> None:
    """Prints a sentence cut into its tokens, the compression, the files, and the next commands."""
    with open_text(path) as stream:
        start = stream.read(4000).decode("utf-8", "ignore")
    lines = [line for line in start.replace(END_OF_TEXT, "\n").splitlines() if len(line.split()) > 5] or [start]
    print(f"\nits first sentence, cut into tokens:\n  {_cut(tok, lines[0].strip()[:100])}\n")
    gpt2 = f"; GPT-2's {GPT2_TOKENS:,} tokens would give {GPT2_BYTES_PER_TOKEN}" if is_default else ""
    print(f"{size / max(1, manifest.tokens):.2f} bytes per token{gpt2}")
    print(f"\nin {out}/:")
    print("  tokenizer.json           for Hugging Face and pybpe")
    print("  tokenizer.bin            for llm.c")
    for split, records in manifest.shards.items():
        print(f"  {records[0].file:<24} {manifest.split_tokens(split):,} tokens")
    print("\nnext:")
    print("  source .venv/bin/activate")
    print(f"  pybpe encode -t {out}/tokenizer.json --text 'Hello, world' --explain")
    print(f"  pybpe viz -t {out}/tokenizer.json -o tokens.html")


def _cut(tok: pybpe.Tokenizer, text: str) -> str:
    """Returns the tokens of a text, in colors on a terminal, otherwise with bars between them."""
    tokens = [tok.decode([i]) for i in tok.encode_ordinary(text)]
    if not sys.stdout.isatty():
        return "|".join(tokens)
    colors = (_BACKGROUNDS[number % len(_BACKGROUNDS)] for number in range(len(tokens)))
    return "".join(f"\x1b[30;{color}m{token}\x1b[0m" for color, token in zip(colors, tokens))


def main() -> int:
    """The command line of `make demo`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpus", default="", help="text files, with spaces between; default: text that ships with Python"
    )
    parser.add_argument("--vocab-size", type=int, default=4000)
    parser.add_argument("--out", default="out")
    parser.add_argument("--decode-test", required=True, help="the compiled tests/c/decode_test.c")
    args = parser.parse_args()
    try:
        return run(args.corpus, args.vocab_size, args.out, args.decode_test)
    except pybpe.Error as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
