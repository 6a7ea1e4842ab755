"""The common parts of commands: options, output and files."""

from __future__ import annotations

import argparse
import codecs
import errno
import json
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from importlib import import_module
from inspect import signature
from typing import Any, BinaryIO, TypeVar

import pybpe

from .._binding import Output
from .._lazy import futures, shutil, tempfile
from ..arguments import number_of, refuse_as_output, without_secrets
from ..errors import ArgumentError, FormatError, MissingExtraError, WorkerError, file_error, file_errors, note, warn
from ..reading.charset import check_encoding
from ..reading.file_types import holds_records, made_kind, says_records
from ..reading.files import text_file
from ..reading.input_file import tell_of_crlf, tell_of_encodings
from ..reading.inputs import first_of
from ..reading.records import list_name, remove_list
from ..reading.streams import ENDINGS, Peekable
from ..support import progress as watching
from ..support.call_paths import check_paths, with_content
from ..support.output_files import make_folder, output_at

Result = TypeVar("Result")


def paths_of(args: argparse.Namespace) -> dict[str, dict[str, list[str]]]:
    """Returns the paths that a command writes and reads: "writes", "reads" or "texts" -> flag -> paths."""
    paths: dict[str, dict[str, list[str]]] = {"writes": {}, "reads": {}, "texts": {}}
    for action, role in args.parser.paths.items():
        given = getattr(args, action.dest, None)
        if given:
            some = [given] if isinstance(given, str) else given
            if not role.startswith("writes"):  # NAME=FILE
                some = [path if os.path.exists(path) else path.partition("=")[2] or path for path in some]
            paths[role.split()[0]][action.option_strings[-1] if action.option_strings else "the input"] = some
    return paths


def check_call(args: argparse.Namespace) -> list[str]:
    """Checks the paths of a command before it runs. No other path may lead to a file that it writes. Without --force,
    it may replace a file only by one of the same kind. Returns the notes to print when it has replaced files."""
    paths = paths_of(args)
    written = {flag: some[0] for flag, some in paths["writes"].items()}
    if args.writes_tokenizer:  # a folder, whose files the command replaces one by one
        paths["writes"]["--output"] += with_content(args.output)[1:]
    check_paths(**paths)
    if "skipped" in args and args.output is not None and (listed := list_of_skipped(args)) is not None:
        written["--skipped"] = listed
    replaced = _check_replaced(args, written)
    folders = {flag for it, role in args.parser.paths.items() if role == "writes folder" for flag in it.option_strings}
    for flag in written.keys() - folders:
        check_writable(written[flag], args.may_be_folder and flag == "--output")
    return replaced


def list_of_skipped(args: argparse.Namespace) -> str | None:
    """Returns the file for the list of skipped records: by default next to the output, if the command skips some."""
    if args.on_error != "skip" or args.skipped is not None:
        found: str | None = args.skipped
        return found
    if args.output == "-":
        raise ArgumentError("with -o -, --on-error skip needs --skipped FILE for the list of skipped records")
    return list_name(os.path.normpath(args.output))


def remove_old_list(args: argparse.Namespace) -> None:
    """Removes the list of an earlier run next to the output, if this run skips nothing."""
    if args.on_error != "skip" and args.output != "-":
        remove_list(list_name(os.path.normpath(args.output)))


def call(function: Callable[..., Result], args: argparse.Namespace, *given: Any, **more: Any) -> Result:
    """Calls a function of the package with `given` and `more`, and with every option of the command that it has a
    keyword argument for. None stands for the function's own default. The workers of --dask are its executor."""
    names = signature(function)
    own = names.parameters.keys() - names.bind_partial(*given).arguments.keys()
    options = {name: value for name, value in vars(args).items() if name in own and value is not None}
    if "progress" in own:
        options["progress"] = progress(args)
    with dask_executor(getattr(args, "dask", None)) as executor:
        if executor is not None:
            options["executor"] = executor
        return function(*given, **options | more)


@contextmanager
def dask_executor(address: str | None) -> Iterator[futures.Executor | None]:
    """Yields the executor for a Dask scheduler's workers, or None without an address."""
    if address is None:
        yield None
        return
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise MissingExtraError("--dask needs Dask: pip install 'pybpe[dask]'") from None
    import asyncio  # takes longer to load than everything else that the command line needs at startup

    try:
        asyncio.run(_reach(distributed, address))
    except (OSError, ValueError) as error:
        raise WorkerError(f"{address}: no Dask scheduler answers: {error}") from None
    with distributed.Client(address, set_as_default=False) as client:
        yield client.get_executor()


async def _reach(distributed: Any, address: str) -> None:
    """Tests the connection. A Client that cannot connect prints a traceback a minute later, when it is deleted."""
    security = distributed.Security().get_connection_args("client")
    connection = await distributed.comm.connect(address, **security)
    await connection.close()


def progress(args: argparse.Namespace) -> bool | None:
    """Returns whether to show a bar, or None if only a terminal gets one."""
    how = getattr(args, "progress", "auto")
    if how == "auto":
        return False if args.quiet or args.json else None
    return bool(how == "bar")


@contextmanager
def watched(args: argparse.Namespace, tell: Callable[[str], object]) -> Iterator[None]:
    """While a command runs, tells lines about its progress, and keeps the file of --status up to date. Before the first
    line, or an interruption, tells what runs and since when, and after the last one, when it ended."""
    before, how = watching.watchers, getattr(args, "progress", "none")
    is_log = how == "auto" and not (args.quiet or args.json or sys.stderr.isatty())
    command, begun, start, told = args.parser.prog.partition(" ")[2], watching.now(), time.monotonic(), list[str]()

    def log(line: str | None) -> None:
        if not told:
            inputs = [without_secrets(path) for some in paths_of(args).values() for path in some.get("the input", ())]
            told.append(f"{command}{f' {first_of(inputs)}' if inputs else ''}: started at {begun}")
            tell(told[0])
        if line is not None:
            tell(line)

    lines = [watching.lines(log)] if is_log or how == "lines" else []
    path = getattr(args, "status", None)
    status = None if path is None else watching.StatusFile(path, command)
    state, message = "finished", ""
    try:
        watching.watchers = (*lines, *([] if status is None else [status]))
        yield
    except BaseException as error:
        state, message = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed", str(error)
        if lines and state == "interrupted":
            log(None)  # even in its first seconds, a log says what was interrupted
        raise
    finally:
        watching.watchers = before
        if status is not None:
            status.end(state, message)
        if told:
            tell(f"{command}: {state} at {watching.now()}, after {watching.duration(time.monotonic() - start)}")


def report(args: argparse.Namespace, facts: dict[str, Any], text: str) -> None:
    """Prints the summary: JSON for machines, otherwise text. If the result goes to standard output, the summary goes to
    standard error. Of a command that writes nothing, the text is the answer, which --quiet does not hide."""
    output = getattr(args, "output", None)
    where = sys.stderr if output == "-" else sys.stdout
    if args.json:
        print(json.dumps(facts, ensure_ascii=False), file=where)
    elif output is None or not args.quiet:
        print(text, file=where)


def load(path: str) -> pybpe.Tokenizer:
    """Loads the tokenizer in a file or folder, or, if there is none, OpenAI's encoding of this name."""
    if not os.path.lexists(path) and re.fullmatch(r"[\w-]+", path):
        from ..encodings import NAMES, get_encoding

        if path in NAMES:
            return get_encoding(path)
        names = ", ".join(NAMES)
        raise file_error(
            errno.ENOENT, f"{path}: there is no file or encoding with this name. The encodings are {names}"
        )
    return pybpe.Tokenizer.from_file(path)


def load_all(paths: list[str]) -> dict[str, pybpe.Tokenizer]:
    """Loads the tokenizers, by the names of their files, or by their paths if names are equal."""
    names = [os.path.basename(path) for path in paths]
    names = names if len(set(names)) == len(names) else paths
    loaded: dict[str, pybpe.Tokenizer] = {}
    for name, path in zip(names, paths):
        if name in loaded:
            raise ArgumentError(f"{path}: this tokenizer is given twice: name each one once")
        loaded[name] = load(path)
    return loaded


def open_source(path: str, encoding: str | None = None, keep_crlf: bool = False, records: str = "warn") -> BinaryIO:
    """Opens a text for reading, and decompresses it if needed. - is standard input. `records` says what to do with JSON
    lines, whose braces and keys would be text: "warn", "refuse" or "accept"."""
    tell_terminal(path)
    file = text_file(path, encoding, keep_crlf)
    tell_of_encodings([file], check_encoding(encoding))
    tell_of_crlf([file])
    stream = Peekable(file.open())
    head = stream.peek()
    if records != "accept" and (says_records(file.path) or holds_records(head, file.path)):
        name = "standard input" if path == "-" else file.path
        if records == "refuse":
            raise FormatError(
                f"{name}: JSON lines, not one text: `pybpe binarize` encodes their records; --documents file encodes"
                " the file as it is, with braces and keys"
            )
        warn(f"{name}: JSON lines, read as one text with braces and keys; `pybpe binarize` encodes their records")
    if head.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    return stream


def tell_terminal(path: str) -> None:
    if path == "-" and sys.stdin.isatty():
        print("pybpe: reading from the terminal. To end, press Ctrl-D on a new line", file=sys.stderr)


@contextmanager
def writing(args: argparse.Namespace) -> Iterator[Callable[[bytes | memoryview], object]]:
    """Yields a function that writes to standard output (-), or to a file that appears only when it is complete."""
    if args.output == "-":
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
    elif args.output.endswith(tuple(ENDINGS)):
        raise ArgumentError(f"{args.output}: this command does not compress: choose another name, and compress it then")
    else:
        with named_output(args) as name, Output(name) as output:
            yield output.write


@contextmanager
def named_output(
    args: argparse.Namespace, ending: str = "", keep: bool = False, flag: str = "output", alone: Collection[str] = ()
) -> Iterator[str]:
    """Yields the path to write an output to: see `output_at`. For "-" it is a temporary file with this ending, which is
    then copied to standard output."""
    path = getattr(args, flag)
    if path != "-":
        force = args.force or (os.path.isfile(path) and made_kind(path) in _MADE_ANEW)
        with output_at(path, force, keep, alone) as name:
            yield name
        return
    with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
        name = os.path.join(folder, "out" + ending)
        yield name
        with open(name, "rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def save_tokenizer(
    tokenizer: pybpe.Tokenizer, args: argparse.Namespace, old: pybpe.Tokenizer | None, keep: bool = False
) -> None:
    """Writes a tokenizer in the format that the ending of -o names, or as JSON to standard output. With --remap, also
    writes the ids of `old`."""
    with named_output(args, ".json", keep, alone=names_alone()) as name:
        tokenizer.save(name)
    if args.remap is not None and old is not None:
        from ..model.remap import old_ids, save_remap

        with named_output(args, flag="remap") as name:
            save_remap(name, old_ids(old.model, tokenizer.model))


def names_alone() -> Collection[str]:
    """Returns names of files that would be another tokenizer in the folder of one."""
    from ..formats.pretrained import TOKENIZER_FILES

    return TOKENIZER_FILES


def tell_of_commas(args: argparse.Namespace) -> None:
    for text in args.special_tokens or ():
        if "," in text:
            note(f"--special-token {text!r} is one token, with its commas: to name several, repeat the option")


def check_writable(path: str, may_be_folder: bool = False) -> None:
    """Raises an error now, not after an hour of work, if a file cannot be written. Makes its folder."""
    if path == "-":
        return
    refuse_as_output(path)
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    if folder == path and not may_be_folder:
        raise ArgumentError(f"{path}: this is a folder: name a file in it")
    make_folder(folder)
    if folder == path or not os.path.exists(path) or os.path.isfile(path):  # otherwise a device
        with file_errors(path, "cannot be written"), tempfile.TemporaryFile(dir=folder):
            pass


# ----------------------------------------------------------------------------------------------------
# Options. Most are fields of dataclasses, which declare an option once: see `option` in arguments.py.


def add_options(command: Any, kind: type, *names: str, without: Iterable[str] = (), **defaults: Any) -> None:
    """Adds the options that a dataclass declares: all, or the named ones, but not `without`. `defaults` are the
    command's own."""
    for field in fields(kind):
        if field.metadata and field.name not in without and (not names or field.name in names):
            _add_option(command, field, defaults.get(field.name, field.default))


def _add_option(command: Any, field: Field[Any], default: Any) -> None:
    flag = field.metadata.get("flag") or "--" + field.name.replace("_", "-")
    help = field.metadata["help"] + ("" if "(default" in field.metadata["help"] else _default(default))
    if field.type == "bool":
        command.option(flag, help, dest=field.name)
        return
    parse = _UNITS.get(field.metadata.get("unit", "")) or _TYPES.get(str(field.type).removesuffix(" | None"), str)
    more: dict[str, Any] = {"type": parse}
    if "Iterable" in str(field.type):
        more, default = {"action": "append"}, None  # without the option, the function's default
    more |= {"required": True} if default is MISSING else {"default": default}
    command.option(
        f"{flag} {field.metadata['metavar']}", help, path=field.metadata.get("path", ""), dest=field.name, **more
    )


def _default(value: Any) -> str:
    """Returns the text about a default for the help."""
    if value is MISSING or value is None or value is False:
        return ""
    if value == ():
        return " (default: none)"
    if isinstance(value, int) and value % 10**6 == 0 and value:
        return f" (default: {value // 10**6}M)"
    if isinstance(value, (tuple, list)) and isinstance(value[0], str):
        return f" (default: {len(value)} control tokens for documents and chats; the first is {value[0]})"
    return f" (default: {','.join(map(str, value)) if isinstance(value, tuple) else value})"


def _expecting(example: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns a parser of values for argparse, whose errors show an example."""

    def checked(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError(f"expected {example}, not {text!r}") from None

    return checked


def _amount(text: str) -> int:
    """Returns 32000, 32k, 1.5M, 4G or 4B (billion) as a number. The units are powers of 1000."""
    unit = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}.get(text[-1:].lower())
    return int(text) if unit is None else int(float(text[:-1]) * unit)


def _bytes(text: str) -> int:
    if text[-1:] in ("b", "B"):  # which could mean bytes or billions
        raise ValueError
    return _amount(text)


parse_amount = _expecting("a number such as 32000, 32k or 4G", _amount)
parse_bytes = _expecting("bytes such as 500M or 2G", _bytes)
_UNITS = {"bytes": parse_bytes, "depth": _expecting("d6, d12, d24 and so on", lambda text: int(text.removeprefix("d")))}
_TYPES = {
    "int": parse_amount,
    "float": float,
    "Digits": lambda text: int(text) if re.fullmatch("[0-9]{1,8}", text) else text,  # Pattern checks it
    "Sequence[float]": _expecting("numbers such as 8,1,1", lambda text: [float(part) for part in text.split(",")]),
}


def named_files(what: str, entries: Iterable[str]) -> dict[str, list[str]]:
    """Returns name -> files, from arguments NAME=FILE of the option `what`."""
    files: dict[str, list[str]] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not equals or not name or not path:
            raise ArgumentError(f"{what}: expected NAME=FILE, as in en=english.txt, not {entry!r:.80}")
        files.setdefault(name, []).append(path)
    return files


# ----------------------------------------------------------------------------------------------------
# The files that a command may replace without --force. `output_at` decides, when the result is there. Before a long
# run, a command already refuses to replace a file of another kind than it writes.

_RECORD = "a report or a list of records"
_MADE_ANEW = {"a page", "a picture", _RECORD}  # they show the contents of other files, so newer ones replace them
_BY_FLAG = {
    "remap": {"a numpy array"},
    "plot": {"a picture"},
    "report": {"a page", _RECORD},
    "skipped": {_RECORD},
    "status": {"the status of a command"},
}
_BY_COMMAND = {
    "train": {"a tokenizer"},
    "count": {"a counts file"},
    "encode": {"a numpy array", "ids", "plain ids"},
}
# The command and the flag: resuming refuses any other file, and so does corpus.clean.
_CHECKED_ELSEWHERE = frozenset((("train", "checkpoint"), ("corpus", "output")))


def _check_replaced(args: argparse.Namespace, writes: dict[str, str]) -> list[str]:
    """Looks at the outputs of a command (flag -> path) that exist already. Returns the notes about them for when it has
    replaced them. Raises ArgumentError for a file of another kind than the command writes, or a tokenizer next to token
    files that another tokenizer made, unless there is --force."""
    replaced: list[str] = []
    command = args.parser.prog.split()[-1]
    for flag, path in writes.items():
        dest = flag.lstrip("-")
        if (command, dest) in _CHECKED_ELSEWHERE or not os.path.isfile(path) or not os.path.getsize(path):
            continue
        kind = made_kind(path)
        allowed = _BY_FLAG.get(dest) or _BY_COMMAND.get(command)
        if allowed is not None and kind not in allowed and not args.force:
            raise ArgumentError(
                f"{path}: {flag} would replace {kind}, which this command does not write: choose another output, or"
                " pass --force"
            )
        if args.force or kind in _MADE_ANEW:
            replaced.append(f"{path}: replaced {kind}")
    if args.writes_tokenizer and not args.parser.prog.endswith(" export"):  # which checks the tokenizer that it reads
        check_place(args)
    return replaced


def check_place(args: argparse.Namespace, tokenizer: pybpe.Tokenizer | None = None) -> None:
    """Raises ArgumentError if a tokenizer (None: a new one) would be next to token files or a model of another one,
    unless there is --force."""
    from ..formats.pretrained import model_vocab_size
    from ..tokens.manifest import Manifest, manifest_name

    folder = args.output if os.path.isdir(args.output) else os.path.dirname(args.output) or "."
    if args.output == "-" or args.force:
        return
    found = None
    if os.path.exists(os.path.join(folder, manifest_name(folder))):
        theirs = Manifest.load(folder).tokenizer.get("fingerprint")
        if tokenizer is None or tokenizer.model.fingerprint != theirs:
            found = "token files that another tokenizer made, and this one cannot decode"
    elif (size := model_vocab_size(folder)) is not None and (tokenizer is None or len(tokenizer) != size):
        found = f"a model for a tokenizer of {number_of(size, 'token')}"
    if found is not None:
        raise ArgumentError(f"{folder}: has {found}: choose another folder, or pass --force")
