"""Checks the arguments that callers pass. A value of the wrong type raises a one-line error that names the argument,
instead of an error deep inside the package. A message names it with `param`, so that Python and the command line can
say it in their own words."""

from __future__ import annotations

import json
import math
import operator
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Union

from .errors import ArgumentError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def shown(value: object) -> str:
    """Returns a value as an error message shows it, shortened if it is long."""
    try:
        text = repr(value.item() if hasattr(value, "item") else value)  # 5 rather than np.int64(5)
    except TypeError:  # numpy.int64 itself
        text = repr(value)
    except (ValueError, RuntimeError):  # an integer with thousands of digits, which Python refuses to print, a tensor
        return f"a {type(value).__name__} too long to show"
    return text if len(text) <= 80 else text[:77] + "..."


# Parameter -> flag of the command that runs. The command line sets it, None in Python. Like errors.show_note.
flags: Mapping[str, str] | None = None


def param(name: str = "", /, **given: object) -> str:
    """Returns a parameter, alone or with a value, as the caller writes it: `eot='none'` in Python, `--eot none` on the
    command line. Other words stay as they are.

    >>> param("eot"), param(eot="none")
    ('eot', "eot='none'")
    """
    [(name, value)] = given.items() or [(name, None)]
    if flags is None:
        return f"{name}={shown(value)}" if given else name
    flag = flags.get(name, name)
    if value is None or isinstance(value, bool):
        return flag
    import shlex  # takes milliseconds

    return f"{flag} {shlex.quote(','.join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))}"


def can_pass(name: str) -> bool:
    """Returns whether a message may advise the caller to pass a parameter, because the command has it."""
    return flags is None or name in flags


def by_caller(python: str, command: str) -> str:
    """Returns the one of two messages that is for the caller: in Python, or on the command line."""
    return python if flags is None else command


def number_of(amount: int, noun: str) -> str:
    """ "1 file", "2 files"."""
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def whole_number(name: str, value: object, least: int | None = 0, most: int | None = None) -> int:
    """Returns an integer of Python or numpy as an int. Callers use that one: numpy's overflow, and JSON refuses them.
    Raises ArgumentError for anything else, or if it is below `least` or above `most`. Without `most`, an amount (it has
    a `least`) must fit into the types of C and numpy. Any other number, such as a seed, has no bound."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{param(name)} must be an integer, not {shown(value)}") from None
    if least is not None:
        most = (1 << 63) - 1 if most is None else most
        if number < least:
            raise ArgumentError(f"{param(name)} must be at least {least}, not {shown(number)}")
    if most is not None and number > most:
        raise ArgumentError(f"{param(name)} must be at most {most}, not {shown(number)}")
    return number


def probability(name: str, value: object) -> float:
    """Returns a number from 0 to 1 of Python or numpy as a float. Raises ArgumentError for anything else."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        raise ArgumentError(f"{param(name)} must be a number from 0 to 1, not {shown(value)}")
    return number


def is_unicode(text: str) -> bool:
    """Returns whether UTF-8 can represent a text, which means that it has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def json_text(value: object, indent: int | None = None) -> str:
    """Returns JSON that is valid Unicode. A file name that is not UTF-8 has escapes there, and from these a parser of
    JSON and os.fsencode give its bytes back."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text if is_unicode(text) else json.dumps(value, indent=indent)


def one_of(name: str, value: object, choices: Collection[str]) -> None:
    """Raises ArgumentError unless the value is one of the strings."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{param(name)} must be one of {', '.join(choices)}, not {shown(value)}")


def together(**pair: object) -> None:
    """Raises ArgumentError if only some of these arguments are given: alone, one would silently have no effect."""
    if len({value is None for value in pair.values()}) > 1:
        raise ArgumentError(f"pass both {' and '.join(map(param, pair))}, or neither")


def option(default: Any, help: str, metavar: str = "N", **more: str) -> Any:
    """Returns a field of a dataclass of options, with the texts of the command line: see cli/common.py. `more` may have
    a `flag` that is not the name, the `unit` of a number, and the role of a `path` (see cli/command.py)."""
    from dataclasses import field

    return field(default=default, metadata={"help": help, "metavar": metavar, **more})


Kind = TypeVar("Kind")


def chosen(kind: type[Kind], given: Mapping[str, Any], **others: Any) -> Kind:
    """Makes an object of a dataclass of options from the keyword arguments that are its fields. `others`
    replace some of them."""
    from dataclasses import fields

    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in {**given, **others}.items() if name in names})


def refuse_unused(name: str, value: object, reason: str) -> NoReturn:
    """Raises the ArgumentError for an argument that is given where it has no effect."""
    raise ArgumentError(f"{param(**{name: value})} has no effect: {reason}")


def instance(name: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Raises ArgumentError unless the value is an instance of `kind`, which `expected` describes in words. (An array of
    numpy without a dimension is an Iterable, but cannot be iterated over.)"""
    if not isinstance(value, kind) or kind is Iterable and getattr(value, "shape", None) == ():
        raise ArgumentError(f"{param(name)} must be {expected}, not {type(value).__name__}: {shown(value)}")


Text = Union[str, "ReadableBuffer"]  # the latter is bytes, or any other object with readable bytes


def utf8(text: Text) -> bytes:
    """Returns the bytes of a text. Lone surrogates, which UTF-8 cannot represent, become U+FFFD, as in tiktoken.

    Bytes are not copied. Neither are other objects with the buffer protocol (bytearray, memoryview, mmap, a uint8
    array): for these the result is a memoryview, which works wherever bytes do.
    """
    if isinstance(text, str):
        try:
            return str.encode(text, "utf-8")  # not text.encode, which a subclass of str may override
        except UnicodeEncodeError:
            return str.encode(text, "utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    if type(text) is bytes:
        return text
    try:
        view = memoryview(text)
    except (TypeError, ValueError):  # no buffer, or a numpy array of times
        raise ArgumentError(f"expected text as str or bytes, not {type(text).__name__}") from None
    if view.format not in ("B", "b", "c") or view.ndim != 1 or not view.c_contiguous:
        raise ArgumentError(
            f"expected text as str or bytes; this {type(text).__name__} has items of format {view.format!r}, shape"
            f" {view.shape} and strides {view.strides}, not contiguous bytes"
        )
    return view.cast("B")  # type: ignore[return-value]


# ----------------------------------------------------------------------------------------------------
# URLs among paths

# At least two characters, because C:// is a drive of Windows. A text with several lines is not a URL.
_URL = r"(?:\w+::)?[A-Za-z][A-Za-z0-9+.-]+://[^\r\n]*"
_WEB = ("http", "https")


def is_url(path: str) -> bool:
    """Returns whether a path is a URL, such as s3://bucket/key."""
    return "://" in path and re.fullmatch(_URL, path) is not None


def without_secrets(url: str) -> str:
    """Returns a URL as messages, manifests and logs show it. A query may be a signature, and the part before an @ in
    the address of a server is a password, so neither is shown. Paths that are not URLs are returned unchanged."""
    if not is_url(url):
        return url
    scheme, _, rest = url.partition("://")
    if scheme.lower() in _WEB:
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    server, slash, path = rest.partition("/")
    return f"{scheme}://{server.rpartition('@')[2]}{slash}{path}"


def refuse_as_output(path: str | bytes) -> None:
    """Raises ArgumentError if an output is a URL. Without this check, `s3://bucket` would become a local folder."""
    if is_url(name := os.fsdecode(path)):
        raise ArgumentError(
            f"{without_secrets(name)}: pybpe writes only to local files: choose a local output, and copy it there"
            " afterward"
        )
