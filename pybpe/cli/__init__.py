"""The command line: `pybpe COMMAND --help` explains each command.

Exit codes: 0 for success, 2 for bad input (one line on standard error says what is wrong and how to fix it), 130 if
interrupted. `diff`, `verify` and `llmc check` exit with 1 if they find a difference or a fault.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from llmc_compat.cli import IncludeDirAction, add_llmc

from .._version import __version__
from ..errors import (
    ArgumentError,
    Error,
    LimitError,
    OutOfMemoryError,
    PybpeWarning,
    UnsupportedError,
    file_error,
    note,
)
from .advise import add_advise
from .binarize import add_binarize, add_prepare
from .coding import add_count, add_decode, add_encode
from .common import check_call, paths_of
from .compare import add_compare
from .corpus import add_corpus
from .counts import add_counts
from .dataset import add_join, add_pack, add_stats, add_verify
from .inspect import add_inspect
from .messages import in_flags, unknown_arguments, unknown_command
from .mixture import add_mix
from .streams import discard_output, open_streams
from .train import add_train
from .viz import add_viz
from .vocabulary import add_diff, add_export, add_extend, add_prune

_LONGEST_COMMAND = 80  # characters; longer commands are not repeated


class _VersionAction(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from .. import _binding

        patterns, normalizers = _binding.unicode_version(), _binding.normalizer_unicode_version()
        print(
            f"pybpe {__version__} (C library {_binding.version()}, Unicode {patterns} in patterns, {normalizers} in"
            " normalizers)"
        )
        parser.exit()


_COMMANDS: tuple[Callable[[Any], None], ...] = (
    add_train,
    add_counts,
    add_encode,
    add_decode,
    add_count,
    add_binarize,
    add_prepare,
    add_corpus,
    add_join,
    add_mix,
    add_pack,
    add_verify,
    add_stats,
    add_inspect,
    add_export,
    add_diff,
    add_compare,
    add_advise,
    add_prune,
    add_extend,
    add_viz,
    add_llmc,
)


_MAY_BE_EMPTY = ("text", "separator")


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, like the rest of pybpe. In every command, files may come before,
    between and after options."""

    _intermixing = False
    _given: set[argparse.Action] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is not None or self._intermixing or "--" in (args or ()):  # intermixed parsing loses "--"
            return super().parse_known_args(args, namespace)
        self._given = set()
        self._intermixing = True  # Python up to 3.11 calls this again
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixing = False
        if unknown:
            self.error(unknown_arguments(unknown, self._option_string_actions))
        return found, unknown

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Returns the value of an argument, each time that it is given. Refuses the last of several values that would
        silently replace the others, and empty ones."""
        if action.option_strings and action.nargs != 0 and not isinstance(action, argparse._AppendAction):
            if action in self._given:
                self.error(f"{action.option_strings[-1]}: given twice: give it once")
            self._given.add(action)
        if "" in arg_strings and self._subparsers is None and action.dest not in _MAY_BE_EMPTY:
            name = action.option_strings[-1] if action.option_strings else action.dest
            self.error(f"{name}: expected a value, not an empty one")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(unknown_command(str(value), action.choices))
        super()._check_value(action, value)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # the help, or the version
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"pybpe: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pybpe",
        description="Train a byte-level BPE tokenizer on your own corpus, and turn the corpus into token files\n"
        "that llm.c trains on. `pybpe COMMAND --help` explains each command, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="print the versions and exit")
    parser.add_argument(
        "--include-dir",
        action=IncludeDirAction,
        nargs=0,
        help="print the folder of the C library (pybpe.h, pybpe.c) and of the drop-in headers (llmc/*.h), and exit",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in _COMMANDS:
        add(commands)
    return parser


def _complete(parser: argparse.ArgumentParser) -> None:
    """Completes words in the shell, if argcomplete is installed: eval "$(register-python-argcomplete pybpe)"."""
    if "_ARGCOMPLETE" in os.environ:  # set by the shell's hook, and only then
        try:
            import argcomplete
        except ImportError:
            return
        argcomplete.autocomplete(parser)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code. __main__.py handles Ctrl-C."""
    open_streams()
    parser = _parser()
    _complete(parser)
    args = argparse.Namespace()
    with warnings.catch_warnings():
        warnings.simplefilter("default", PybpeWarning)  # with PYTHONWARNINGS=error, they would end the command
        warnings.showwarning = partial(_show_warning, args)
        return _run(parser, _as_options(sys.argv[1:] if argv is None else list(argv)), args)


def _as_options(words: list[str]) -> list[str]:
    """Converts `pybpe`, `pybpe help COMMAND` and `pybpe version`, which other programs have, to options."""
    if not words:
        return ["--help"]
    if words[:1] == ["version"]:
        return ["--version", *words[1:]]
    return [*words[1:], "--help"] if words[:1] == ["help"] else words


def _run(parser: argparse.ArgumentParser, words: list[str], args: argparse.Namespace) -> int:
    try:
        parser.parse_args(words, args)
        from ..reading.files import reading_for

        with _notes(quiet=getattr(args, "quiet", False)):
            replaced = check_call(args)
            writes = paths_of(args)["writes"]
            with reading_for(chain.from_iterable(writes.values()), bool(writes and getattr(args, "files", None))):
                code = args.run(args)
            for line in replaced:
                note(line)
        sys.stdout.flush()
    except KeyboardInterrupt:
        state = getattr(args, "state", None)
        if state is None or not os.path.exists(state(args)):
            raise
        _tell(f"interrupted; to resume, run {_again(words)}")
        return 130
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        discard_output()
        return 0
    except OSError as error:
        if isinstance(error, Error):
            return _fail(error)
        if error.filename is None:
            discard_output()
        name = "standard output" if error.filename is None else error.filename
        return _fail(file_error(error.errno or 0, f"{name}: {error.strerror}"))
    except MemoryError as error:
        return _fail(error if isinstance(error, Error) else OutOfMemoryError("there is not enough memory"))
    except (ArgumentError, LimitError, UnsupportedError) as error:
        return _fail(in_flags(str(error), vars(args)))
    except Error as error:
        return _fail(in_flags(str(error), {"encoding"} & vars(args).keys()))
    return code or 0


@contextmanager
def _notes(quiet: bool) -> Iterator[None]:
    """Prints the notes of a call (see errors.py), unless it is quiet."""
    import logging

    class Printing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _tell(record.getMessage())

    logger, handler = logging.getLogger("pybpe"), Printing()
    level = logger.level
    if not quiet:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _again(words: list[str]) -> str:
    """Returns the command that resumes an interrupted one."""
    command = shlex.join(["pybpe", *(word for word in words if word != "--no-resume")])
    if len(command) <= _LONGEST_COMMAND:
        return command
    return "the same command again" + (", without --no-resume" if "--no-resume" in words else "")


def _fail(error: Exception | str) -> int:
    _tell(str(error))
    return 2


def _show_warning(args: argparse.Namespace, message: Warning | str, *_: object, **__: object) -> None:
    """Prints a Python warning as one line, without its location in pybpe's code."""
    _tell(f"warning: {in_flags(str(message), vars(args))}")


def _tell(text: str) -> None:
    line = " ".join(text.split())
    with suppress(OSError):  # standard error is closed
        print(f"pybpe: {line}", file=sys.stderr)
