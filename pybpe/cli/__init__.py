"""The command line: `pybpe COMMAND --help` explains a command. command.py says how to add one, and common.py has the
parts that several commands have.

Exit codes: 0 for success, 2 for bad input (one line on standard error explains the fault and the remedy), 130 if
interrupted. `compare`, `verify` and `llmc check` exit with 1 if they find a difference or a fault.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain

from .. import arguments, errors
from .._version import __version__
from ..errors import Error, OutOfMemoryError, PybpeWarning, file_error, note
from .command import Command

# The direction of /dev/null when it replaces a closed stream. Using it in the other direction is an error.
_STAND_INS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def _versions() -> str:
    from .. import _binding

    patterns, normalizers = _binding.unicode_version(), _binding.normalizer_unicode_version()
    library = f"C library {_binding.version()}, Unicode {patterns} in patterns, {normalizers} in normalizers"
    return f"pybpe {__version__} ({library})"


# Title -> name -> the module with its function add_NAME, which is loaded only for this command; its summary.
_GROUPS = {
    "tokenizers": {
        "train": (".train", "train a tokenizer, or extend one"),
        "encode": (".coding", "turn text into ids"),
        "decode": (".coding", "turn ids into text"),
        "export": (".train", "write a tokenizer in another format"),
        "prune": (".train", "drop tokens that a corpus does not use"),
    },
    "corpora and token files": {
        "corpus": (".corpus", "filter, scrub and deduplicate documents"),
        "binarize": (".token_files", "turn a corpus into token files for training"),
        "prepare": (".token_files", "train a tokenizer and write token files"),
        "pack": (".token_files", "pack documents into rows of T tokens"),
        "mix": (".token_files", "mix sources by a recipe, and shuffle all documents"),
        "join": (".token_files", "join token files that several machines wrote"),
        "verify": (".token_files", "check token files against their manifest"),
    },
    "looking and measuring": {
        "inspect": (".inspect", "show a tokenizer, a folder of token files or a checkpoint"),
        "viz": (".inspect", "make a page that shows text in colored tokens"),
        "count": (".coding", "count tokens, or words for `pybpe train --counts`"),
        "compare": (".inspect", "show how tokenizers differ, or measure them"),
        "bpb": (".inspect", "turn the losses of a model into bits per byte"),
    },
    "llm.c": {"llmc": ("llmc_compat.cli", "make workspaces, checkpoints, evals and chats; check files")},
}
_COMMANDS = {name: entry for group in _GROUPS.values() for name, entry in group.items()}

_QUESTIONS = {  # instead of a command -> the function that answers, and its help
    "--version": (_versions, "print the versions and exit"),
    "--include-dir": (
        lambda: str(import_module("llmc_compat.cli").include_dir()),
        "print the folder of the C library (pybpe.h, pybpe.c) and the drop-in headers (llmc/*.h), and exit",
    ),
}


def _parser(words: Sequence[str] | None = None) -> Command:
    """Returns the parser of all commands. With `words`, the words of the command line, only the commands among them get
    their options, whose modules take a while to load."""
    parser = Command(prog="pybpe")
    parser.declare(_add_commands)
    needed = words[:1] if words and words[0] in _COMMANDS else _COMMANDS  # making all takes milliseconds
    commands = parser.commands()
    for question, (_, help) in _QUESTIONS.items():
        parser.option(question, help)
    for name in needed:
        module, _ = _COMMANDS[name]
        command = commands.add_parser(name)
        if words is None or name in words:
            command.declare(getattr(import_module(module, __name__), f"add_{name}"))
    return parser


def _add_commands(command: Command) -> None:
    """Train byte-level BPE tokenizers, and turn a corpus into token files.

    examples:
      pybpe encode -t gpt2 --text 'Hello, world'
      pybpe train novel.txt --vocab-size 20000 -o tok.json
      pybpe llmc workspace novel.txt -o work

    `pybpe COMMAND --help` explains a command.
    """
    for title, group in _GROUPS.items():
        command.list_commands(title, {name: summary for name, (_, summary) in group.items()})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code. __main__.py handles Ctrl-C."""
    _open_streams()
    words = _as_options(sys.argv[1:] if argv is None else list(argv))
    with warnings.catch_warnings():
        warnings.simplefilter("default", PybpeWarning)  # with PYTHONWARNINGS=error, they would end the command
        warnings.showwarning = lambda message, *_, **__: _tell(f"warning: {message}")  # without its location
        return _run(words)


def _open_streams() -> None:
    """Gives closed streams (`>&-`) a file. Otherwise the first files to be opened would get their numbers and be
    mistaken for them. Using standard input or output then fails like any bad file, and messages on standard error are
    lost."""
    for name, flags, mode in _STAND_INS:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may contain bytes that are not text
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discards text that standard output did not accept, because Python tries to write it again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_options(words: list[str]) -> list[str]:
    """Converts `pybpe`, `pybpe help COMMAND` and `pybpe version`, which other programs have, to options."""
    if not words:
        return ["--help"]
    if words[:1] == ["version"]:
        return ["--version", *words[1:]]
    return [*words[1:], "--help"] if words[:1] == ["help"] else words


def _run(words: list[str]) -> int:
    try:
        if words[0] in _QUESTIONS:  # they need no parser
            print(_QUESTIONS[words[0]][0]())
            sys.stdout.flush()
            return 0
        completes = "_ARGCOMPLETE" in os.environ  # in the shell, after eval "$(register-python-argcomplete pybpe)"
        parser = _parser(None if completes else words)
        if completes:
            with suppress(ImportError):
                import_module("argcomplete").autocomplete(parser)
        args = parser.parse_args(words)
        from ..reading.files import reading_for
        from .common import check_call, paths_of, watched

        with _messages(args):
            replaced = check_call(args)
            writes = paths_of(args)["writes"]
            with reading_for(chain.from_iterable(writes.values()), bool(writes and getattr(args, "files", None))):
                with watched(args, _tell):
                    code = args.run(args)
            for line in replaced:
                note(line)
        sys.stdout.flush()
    except Error as error:
        return _fail(error)
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is None and isinstance(error, FileNotFoundError):  # from tempfile
            return _fail(file_error(error.errno or 0, error.strerror or str(error)))
        if error.filename is None:
            _discard_output()
        name = "standard output" if error.filename is None else error.filename
        return _fail(file_error(error.errno or 0, f"{name}: {error.strerror}"))
    except MemoryError:
        return _fail(OutOfMemoryError("there is not enough memory"))
    return code or 0


@contextmanager
def _messages(args: argparse.Namespace) -> Iterator[None]:
    """Prints the notes of a call (see errors.py), unless it is quiet. Messages name parameters by their flags."""
    before = errors.show_note, arguments.flags
    errors.show_note = (lambda _: None) if getattr(args, "quiet", False) else _tell
    arguments.flags = args.parser.flags
    try:
        yield
    finally:
        errors.show_note, arguments.flags = before


def _fail(error: Exception | str) -> int:
    _tell(str(error))
    return 2


def _tell(text: str) -> None:
    line = " ".join(text.split())
    with suppress(OSError):  # standard error is closed
        print(f"pybpe: {line}", file=sys.stderr)
