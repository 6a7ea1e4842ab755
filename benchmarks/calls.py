"""Times small calls and loads of pybpe, tiktoken, gigatoken and Hugging Face's tokenizers 1.0, in one process.

    make bench-calls [TOKENIZER=cl100k_base]

The libraries take turns, each for some milliseconds, and the fastest turn of each counts, so that other programs
disturb all of them alike. A library that is not installed, or has no such call, has no entry. Rows in which pybpe is
not the fastest come first. gigatoken's encode returns arrays, so a list takes its tolist() as well.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from encode_one import find_tokenizers_1, load_tiktoken_encoding
from measure import Run, machine, run_in_turn

import pybpe

Call = Callable[[], object]
TURN = 0.004  # seconds
TEXT = (
    "The tokenizer turns a text into ids, and a model reads the ids. Most calls in a program that serves a model are"
    " short: a question of a few words, an answer of some sentences (it's often 200 characters or so), one id after"
    " another.\n\nLong texts matter when a corpus is prepared; 1,000 documents a second is slow.\n"
)


def library(load: Callable[[], Any]) -> Any:
    """Returns what `load` returns, or None if the library is not installed or does not read the file."""
    try:
        return load()
    except Exception as error:  # each library has its own
        print(f"({type(error).__name__}: {str(error)[:80]})")
        return None


def load_gigatoken(ranks: str, ours: pybpe.Tokenizer) -> Any:
    import gigatoken

    return gigatoken.Tokenizer.from_tiktoken(ranks, ours.pattern.name, dict(ours.special_tokens))


def load_tokenizers_1(path: str) -> Any:
    find_tokenizers_1()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode("a")  # fails with a pattern that it lacks, such as cl100k's
    return tokenizer


def pushing(tok: pybpe.Tokenizer) -> Callable[[list[int]], object]:
    stream = tok.decode_stream()
    return lambda ids: [stream.push(i) for i in ids]


def calls(tok: pybpe.Tokenizer, tik: Any, giga: Any, hf: Any) -> dict[str, dict[str, Call]]:
    """Returns row -> library -> call."""
    texts = {"12 characters": "Hello, world", "200 characters": TEXT[:200], "4 KiB": (TEXT * 20)[:4096]}
    rows: dict[str, dict[str, Call]] = {}

    def add(row: str, argument: Any, **functions: Any) -> None:
        rows[row] = {name: partial(call, argument) for name, call in functions.items() if call is not None}

    for name, text in texts.items():
        add(
            f"encode, {name}", text, pybpe=tok.encode_ordinary, tiktoken=tik and tik.encode_ordinary,
            gigatoken=giga and (lambda text: giga.encode(text).tolist()),
            tokenizers=hf and (lambda text: hf.encode(text).ids),
        )  # fmt: skip
        add(f"encode with special tokens, {name}", text, pybpe=tok.encode,
            tiktoken=tik and partial(tik.encode, allowed_special="all"))  # fmt: skip
        add(f"encode_to_numpy, {name}", text, pybpe=tok.encode_to_numpy, tiktoken=tik and tik.encode_to_numpy,
            gigatoken=giga and giga.encode, tokenizers=hf and (lambda text: hf.encode(text).ids_array))  # fmt: skip
    add("count, 200 characters", texts["200 characters"], pybpe=tok.count,
        tiktoken=tik and (lambda text: len(tik.encode_ordinary(text))))  # fmt: skip
    for size in (3, 46):
        ids = tok.encode(TEXT)[:size]
        add(f"decode, {size} ids", ids, pybpe=tok.decode, tiktoken=tik and tik.decode,
            gigatoken=giga and giga.decode, tokenizers=hf and hf.decode)  # fmt: skip
    add("decode_stream, 46 ids", tok.encode(TEXT)[:46], pybpe=pushing(tok),
        tiktoken=tik and (lambda ids: [tik.decode_single_token_bytes(i) for i in ids]))  # fmt: skip
    return rows


def loads(json: str, ranks: str, tok: pybpe.Tokenizer, has_hf: bool) -> dict[str, dict[str, Call]]:
    """Returns the rows of loading a file."""
    pattern, specials = tok.pattern.name, tok.special_tokens
    rows: dict[str, dict[str, Call]] = {
        "load a tokenizer.json": {"pybpe": partial(pybpe.Tokenizer.from_file, json)},
        "load a .tiktoken file": {
            "pybpe": partial(pybpe.Tokenizer.from_file, ranks, pattern=pattern, special_tokens=specials),
        },
    }
    if has_hf:
        rows["load a tokenizer.json"]["tokenizers"] = partial(load_tokenizers_1, json)
    try:
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe
    except ImportError:
        return rows

    def with_tiktoken() -> object:
        regex = tok.pattern.regex
        return tiktoken.Encoding("x", pat_str=regex, mergeable_ranks=load_tiktoken_bpe(ranks), special_tokens=specials)

    rows["load a .tiktoken file"]["tiktoken"] = with_tiktoken
    return rows


def commands(json: str, folder: str) -> dict[str, list[str]]:
    """Returns the rows of commands that have almost nothing to do, and of Python alone."""
    text = Path(folder, "text.txt")
    text.write_text(TEXT * 400, encoding="utf-8")
    python = [sys.executable]
    run = [*python, "-m", "pybpe"]
    return {
        "python -c pass": [*python, "-c", "pass"],
        "pybpe --version": [*run, "--version"],
        "pybpe count": [*run, "count", "-t", json, str(text)],
        "pybpe binarize": [
            *run,
            "binarize",
            "-t",
            json,
            str(text),
            "-o",
            str(Path(folder, "out")),
            "--force",
            "--quiet",
        ],
    }


def seconds(row: dict[str, Call], rounds: int) -> dict[str, float]:
    """Returns the CPU seconds of each library's call, in its fastest turn."""
    repeats = {}
    for name, call in row.items():
        call()  # fills caches
        start = time.process_time()
        call()
        repeats[name] = max(1, min(10_000, int(TURN / max(time.process_time() - start, 1e-7))))
    best = dict.fromkeys(row, float("inf"))
    for _ in range(rounds if max(repeats.values()) > 1 else min(rounds, 5)):
        for name, call in row.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                call()
            best[name] = min(best[name], (time.process_time() - start) / repeats[name])
    return best


def main() -> None:
    """Prints a table of microseconds, and how many times faster pybpe is than the fastest other library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tokenizer", nargs="?", default="cl100k_base", help="the name of an encoding, or a tokenizer.json"
    )
    parser.add_argument("--rounds", type=int, default=30, help="turns of each library, and at most 5 runs of commands")
    arguments = parser.parse_args()
    name, runs_of_commands = arguments.tokenizer, min(arguments.rounds, 5)
    tok = pybpe.Tokenizer.from_file(name) if os.path.exists(name) else pybpe.get_encoding(name)
    with tempfile.TemporaryDirectory() as folder:
        json, ranks = str(Path(folder, "tokenizer.json")), str(Path(folder, "ranks.tiktoken"))
        tok.save(json)
        tok.save(ranks)
        tok = pybpe.Tokenizer.from_file(json)
        tik = library(partial(load_tiktoken_encoding, json))
        giga = library(partial(load_gigatoken, ranks, tok))
        hf = library(partial(load_tokenizers_1, json))
        rows = calls(tok, tik, giga, hf) | loads(json, ranks, tok, hf is not None)
        found = {row: seconds(each, arguments.rounds) for row, each in rows.items()}
        ran = run_in_turn(commands(json, folder), runs_of_commands, 60)
    libraries = [
        "pybpe",
        *(each for each in ("tiktoken", "gigatoken", "tokenizers") if any(each in row for row in rows.values())),
    ]
    print(f"{name}, microseconds of CPU time per call; {machine()}\n")
    print(f"| | {' | '.join(libraries)} | the fastest other / pybpe |\n|---|{'--:|' * (len(libraries) + 1)}")
    table = []
    for row, times in found.items():
        others = [value for each, value in times.items() if each != "pybpe"]
        ratio = min(others) / times["pybpe"] if others else float("inf")
        cells = [f"{times[each] * 1e6:,.2f}" if each in times else "" for each in libraries]
        table.append((ratio, f"| {row} | {' | '.join(cells)} | {f'{ratio:.1f}' if others else ''} |"))
    losses = sorted(line for line in table if line[0] < 1)
    print("\n".join(line for _, line in [*losses, *(line for line in table if line[0] >= 1)]))
    print(f"\nCommands: CPU milliseconds, the fastest of {runs_of_commands} runs\n\n| | |\n|---|--:|")
    for command, runs in ran.items():
        times = [f"{run.cpu_seconds * 1000:.0f}" for run in runs if isinstance(run, Run)]
        print(f"| `{command}` | {min(times, key=float) if times else runs[0]} |")


if __name__ == "__main__":
    main()
