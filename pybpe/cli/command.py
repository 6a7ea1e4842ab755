"""A command of the command line: its help, its arguments, and the function that does its work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

# Arguments that name files: what a flag writes, by its name.
WRITTEN = frozenset(("output", "report", "skipped", "remap", "plot", "checkpoint", "status"))

# What other programs call our commands and options.
_OTHER_COMMANDS = {
    "inspect": "info show stats",
    "encode": "tokenize",
    "decode": "detokenize",
    "export": "convert save",
    "compare": "measure diff",
    "viz": "visualize",
    "count": "counts",
    "train --base": "extend add",
    "llmc check": "check",
    "llmc workspace": "workspace",
    "corpus": "clean",
    "corpus --dedup": "dedup",
    "binarize": "shard",
    "mix": "shuffle blend",
    "prune": "trim",
}
_OTHER_OPTIONS = {
    "--special-token S, once per token": "--special-tokens --specials",
    "the name of the file without an option": "--input --file",
    "-t TOK": "--model --compare",
    "--workers": "--num-workers --threads --processes",
    "--vocab-size": "--size",
    "-o OUT": "--out --output-dir",
}


def _meant(word: str, others: Mapping[str, str], known: Collection[str]) -> str:
    """Returns what somebody who typed a word probably meant; "" if that is unclear."""
    from difflib import get_close_matches

    named = [ours for ours, theirs in others.items() if word in theirs.split() and ours.split()[0] in (*known, ours)]
    return next(iter([*named, *get_close_matches(word, known, 1, 0.75)]), "")


_MAY_BE_EMPTY = ("text", "separator")


class Command(argparse.ArgumentParser):
    """The parser of a command, or of a group of commands. It reports errors in one line, like the rest of pybpe. In
    every command, files may come before, between and after options."""

    def __init__(self, **more: Any) -> None:
        # argparse makes a formatter for every argument. Without a width, each would ask for the terminal's; only the
        # help does.
        super().__init__(formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=80), **more)
        self._intermixing = False
        self._given: set[argparse.Action] = set()
        self._target: argparse._ActionsContainer = self

    def declare(self, add: Callable[[Command], None]) -> None:
        """Calls a function that adds the arguments. Its docstring is the help: a description, and examples."""
        text = (add.__doc__ or "").replace("\n    ", "\n").rstrip()  # Python 3.13 itself removes the indentation
        self.description, title, examples = text.partition("examples:\n")
        self.epilog = title + examples
        name = self.prog.split()[-1]
        self.set_defaults(parser=self, writes_tokenizer=name in ("train", "export", "prune"))
        add(self)

    def commands(self) -> argparse._SubParsersAction[Command]:
        """Adds the commands of a group."""
        # With `prog`, argparse need not format the usage.
        return self.add_subparsers(title="commands", metavar="COMMAND", required=True, prog=self.prog)

    def option(self, names: str, help: str, type: Callable[[str], Any] = str, **more: Any) -> None:
        """Adds an argument: "FLAG... METAVAR", "NAME METAVAR" of one without a flag, or "FLAG" of one without a value.
        `more` is for argparse."""
        *flags, metavar = names.split()
        if flags:
            self._target.add_argument(*flags, metavar=metavar, help=help, type=type, **more)
        else:
            self._target.add_argument(metavar, help=help, **{"action": "store_true", **more})

    def options(self, kind: type, *names: str, **more: Any) -> None:
        """Adds the options that a dataclass declares: see `add_options`."""
        from .options import add_options  # loads dataclasses, which take milliseconds, and `pybpe --help` needs none

        add_options(self._target, kind, *names, **more)

    @contextmanager
    def group(self, title: str, description: str | None = None) -> Iterator[None]:
        """Puts the options that are added meanwhile under a title of their own."""
        self._target = self.add_argument_group(title, description)
        yield
        self._target = self

    def files(self, nargs: str = "+", more: str = "") -> None:
        """Adds the texts to read."""
        self.option(
            "files FILE",
            "text or *.jsonl, plain or compressed (gz, bz2, xz, zst), *.parquet, *.arrow; folders, globs, URLs (s3,"
            f" gs, hf, https); - is stdin{more}",
            nargs=nargs,
        )

    def tokenizer(self) -> None:
        """Adds the tokenizer to use."""
        help = "tokenizer.json, tokenizer.bin, or a name such as gpt2, cl100k_base or o200k_base"
        self.option("-t --tokenizer TOK", help, required=True)

    def output(self, help: str = "the output folder, created if needed", metavar: str = "OUT") -> None:
        """Adds the file or folder to write."""
        self.option(f"-o --output {metavar}", help, required=True)

    def resume(self) -> None:
        """Adds the choice to start over."""
        help = "start over; do not resume an interrupted run"
        self.option("--no-resume", help, dest="resume", action="store_false")

    def force(self) -> None:
        """Adds the choice to replace files of any kind."""
        self.option("--force", "replace what the output has, whatever it is")

    def dask(self, what: str) -> None:
        """Adds other machines, which do what `what` says."""
        from ..support.parallel import RunOptions

        self.option("--dask ADDRESS", f"a Dask scheduler, e.g. tcp://node1:8786, whose workers {what}")
        self.options(RunOptions, "task_timeout")

    def progress(self) -> None:
        """Adds the choice of how to show the progress of a long run."""
        help = "bar, lines (for logs: one a minute) or none; auto (default): a bar on a terminal, otherwise lines"
        self.option("--progress HOW", help, choices=("auto", "bar", "lines", "none"), default="auto")
        self.option("--status FILE", "keep this small JSON file up to date with the progress, for dashboards")

    def runs(self, run: Callable[[argparse.Namespace], int | None]) -> None:
        """Adds the options of all commands, and what the command does."""
        self.set_defaults(run=run)
        self.option("--quiet", "show no progress bars, no notes and no summary of what was written")
        self.option("--json", "print the summary as JSON")
        if any(action.dest in WRITTEN for action in self._actions):
            self.force()

    def format_help(self) -> str:
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    @property
    def flags(self) -> dict[str, str]:
        """Parameter of Python -> flag."""
        return {each.dest: each.option_strings[-1] for each in self._actions if each.option_strings}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        is_question = any(word.startswith(("-h", "--h")) for word in args or ())
        if is_question:
            self.formatter_class = argparse.RawDescriptionHelpFormatter  # Python up to 3.12 formats the usage first
        if self._subparsers is not None or self._intermixing or "--" in (args or ()):  # intermixed parsing loses "--"
            return super().parse_known_args(args, namespace)
        self._given = set()
        if not is_question:
            self.usage = ""  # argparse would format all options for its errors, but `error` prints only the message
        self._intermixing = True  # Python up to 3.11 calls this again
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixing = False
        if unknown:
            self._refuse(unknown)
        return found, unknown

    def _refuse(self, words: Sequence[str]) -> NoReturn:
        option = next((word.partition("=")[0] for word in words if word.startswith("-")), "")
        meant = _meant(option, _OTHER_OPTIONS, self._option_string_actions) if option else ""
        hint = f"; did you mean {meant}?" if meant else ""
        if option == "--verbose":
            hint = "; commands show progress unless you give --quiet"
        self.error(f"unrecognized arguments: {' '.join(words)}{hint}")

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
            meant = _meant(value, _OTHER_COMMANDS, action.choices)
            guess = f"did you mean {meant}?" if meant else f"the commands are {', '.join(action.choices)}"
            self.error(f"there is no command {value[:40]!r}; {guess}")
        super()._check_value(action, value)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints the help. Python's own function ignores errors, such as a full disk."""
        (file or sys.stderr).write(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # the help, or the version
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"pybpe: {message} (see {self.prog} --help)\n")
