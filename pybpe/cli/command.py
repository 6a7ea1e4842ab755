"""A command of the command line: its help, its arguments, and the function that does its work.

To add a command: a function `add_NAME` in a module of this folder (or in llmc_compat/cli.py), whose docstring is the
help. It adds the arguments with the methods of Command, and ends with `runs`. Options that several functions have are
fields of a dataclass: see `option` in arguments.py. The function that runs the command passes the options to a function
of the package with `call`, and prints the result with `report`, so that --json works. Its name and summary are in
_GROUPS of __init__.py, and the names that other programs have for it in _OTHER_COMMANDS. Test it in test_cli.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

# Names that other programs use for our commands and options.
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
    "--file FILE": "--text",
}


def _meant(word: str, others: Mapping[str, str], known: Collection[str]) -> str:
    """Returns the name that somebody who typed a word probably meant, or "" if that is unclear."""
    from difflib import get_close_matches

    named = [ours for ours, theirs in others.items() if word in theirs.split() and ours.split()[0] in (*known, ours)]
    return next(iter([*named, *get_close_matches(word, known, 1, 0.75)]), "")


_MAY_BE_EMPTY = ("text", "separator")


class Command(argparse.ArgumentParser):
    """The parser of a command, or of a group of commands. It reports errors in one line, like the rest of pybpe. In
    every command, files may come before, between and after options."""

    def __init__(self, **more: Any) -> None:
        # argparse makes a formatter for every argument. Without a width, all would ask for the terminal's; only the
        # help does.
        formatter = partial(argparse.RawDescriptionHelpFormatter, width=80)
        super().__init__(formatter_class=formatter, usage="", add_help=False, allow_abbrev=False, **more)
        self._positionals.title = "arguments"
        self._intermixing = False
        self._given: set[argparse.Action] = set()
        self._groups: dict[str, argparse._ArgumentGroup] = {}
        self._target: argparse._ActionsContainer = self
        # The arguments that name files: "writes", "writes folder", "reads" (tokenizers, models, recipes) or "texts".
        self.paths: dict[argparse.Action, str] = {}
        self._needed = "COMMAND [OPTIONS]"  # for the usage

    def declare(self, add: Callable[[Command], None]) -> None:
        """Calls a function that adds the arguments. Its docstring is the help: a description and the most important
        examples, which come before the options, and after an empty line whatever comes after them."""
        text = (add.__doc__ or "").replace("\n    ", "\n").rstrip()  # Python 3.13 itself removes the indentation
        description, title, rest = text.partition("examples:\n")
        examples, _, self.epilog = rest.partition("\n\n")
        self.description = description + title + examples
        name = self.prog.split()[-1]
        writes_tokenizer = name in ("train", "export", "prune")
        self.set_defaults(
            parser=self, writes_tokenizer=writes_tokenizer, may_be_folder=writes_tokenizer or name == "corpus"
        )
        add(self)

    def commands(self) -> argparse._SubParsersAction[Command]:
        """Makes this a group of commands, which `list_commands` shows in the help."""
        self.help_option()
        # With `prog`, argparse need not format the usage.
        return self.add_subparsers(metavar="COMMAND", required=True, prog=self.prog, help=argparse.SUPPRESS)

    def list_commands(self, title: str, summaries: Mapping[str, str]) -> None:
        """Shows some commands in the help, before the options."""
        lines = (f"  {name:<10} {summary}" for name, summary in summaries.items())
        self.description = "\n".join([f"{self.description}\n", f"{title}:", *lines])

    def help_option(self) -> None:
        self._target.add_argument("-h", "--help", action="help", help="show this help and exit")

    def option(self, names: str, help: str, type: Callable[[str], Any] = str, path: str = "", **more: Any) -> None:
        """Adds an argument: "FLAG... METAVAR", "NAME METAVAR" for one without a flag, or "FLAG" for one without a
        value. `path` says how the command uses the files that the value names: see `paths`. `more` is for argparse."""
        *flags, metavar = names.split()
        if flags:
            action = self._target.add_argument(*flags, metavar=metavar, help=help, type=type, **more)
        else:
            action = self._target.add_argument(metavar, help=help, **{"action": "store_true", **more})
        if path:
            self.paths[action] = path

    def options(self, kind: type, *names: str, **more: Any) -> None:
        """Adds the options that a dataclass declares: see `add_options`."""
        from .common import add_options  # loads dataclasses, which take milliseconds, and `pybpe --help` needs none

        add_options(self, kind, *names, **more)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Puts the options that are added meanwhile under a title of their own."""
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(title)
        before, self._target = self._target, self._groups[title]
        yield
        self._target = before

    def files(self, nargs: str = "+", more: str = "") -> None:
        """Adds the documents to read."""
        self.option(
            "files FILE",
            "text, JSON lines, parquet, Arrow, EPUB, plain or compressed (gz, bz2, xz, zst, zip); folders (also of"
            f" Hugging Face's datasets), globs, URLs (s3, gs, hf, https); - is stdin{more}",
            nargs=nargs,
            path="texts",
        )

    def tokenizer(self) -> None:
        """Adds the tokenizer to use."""
        help = "tokenizer.json, tokenizer.bin, or a name such as gpt2, cl100k_base or o200k_base"
        self.option("-t --tokenizer TOK", help, required=True, path="reads")

    def output(self, help: str, required: bool = True) -> None:
        """Adds the file to write."""
        self.option("-o --output OUT", help, required=required, path="writes")

    def output_folder(self, required: bool = True) -> None:
        """Adds the folder to write."""
        help = "the output folder, created if needed"
        self.option("-o --output DIR", help, required=required, path="writes folder")

    def force(self) -> None:
        """Adds the choice to replace files of any kind."""
        self.option("--force", "overwrite any existing output")

    def runtime(self, *names: str, dask: str = "") -> None:
        """Adds options of RunOptions, and other machines, which do the work that `dask` names."""
        from ..support.parallel import RunOptions

        with self.group("running"):
            self.options(RunOptions, *names)
            if dask:
                self.option("--dask ADDRESS", f"a Dask scheduler, e.g. tcp://node1:8786, whose workers {dask}")
                self.options(RunOptions, "task_timeout")

    def progress(self) -> None:
        """Adds the choice of how to show the progress of a long run."""
        help = "bar, lines (for logs: one a minute) or none; auto (default): a bar on a terminal, otherwise lines"
        with self.group("running"):
            self.option("--progress HOW", help, choices=("auto", "bar", "lines", "none"), default="auto")
            status = "keep this small JSON file up to date with the progress, for dashboards"
            self.option("--status FILE", status, path="writes")

    def runs(self, run: Callable[[argparse.Namespace], int | None], has_summary: bool = True) -> None:
        """Adds the options of all commands, and the function that does the work. It is the last call."""
        self.set_defaults(run=run)
        with self.group("general"):
            if any(role.startswith("writes") for role in self.paths.values()):
                self.force()
            if has_summary:
                self.option("--quiet", "show no progress bars, notes or summary")
                self.option("--json", "print the summary as JSON")
            self.help_option()
        files: dict[object, str] = {None: "{}", "+": "{}...", "?": "[{}]", "*": "[{}...]"}
        shown = [files[action.nargs].format(action.metavar) for action in self._get_positional_actions()]
        shown += [f"{it.option_strings[0]} {it.metavar}" for it in self._actions if it.required and it.option_strings]
        self._needed = " ".join(["[OPTIONS]", *shown])

    def format_help(self) -> str:
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        self.usage = f"{self.prog} {self._needed}"
        return super().format_help()

    @property
    def flags(self) -> dict[str, str]:
        """Parameter of Python -> flag."""
        return {each.dest: each.option_strings[-1] for each in self._actions if each.option_strings}

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
        """Returns the value of an argument. Refuses a second value that would silently replace the first, and empty
        ones."""
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
