"""Finds personal data in text by patterns and checksums, and replaces it with placeholders such as <EMAIL>.

Every pattern has parts of bounded length, so that the time is linear for any text. Most of a text is skipped: patterns
are tried only on runs of digits, and on lines with a substring that every match contains.
Candidate numbers are then validated: by the check digit of Chinese identity numbers (GB 11643-1999), the Luhn check of
    cards (ISO/IEC 7812-1), and the ranges of IP addresses.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..arguments import instance
from ..errors import ArgumentError


class Finding(NamedTuple):
    """Personal data found in a text.

    Attributes:
        kind: one of KINDS.
        start, end: its position, in characters.
    """

    kind: str
    start: int
    end: int


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = [d if i % 2 == 0 else d * 2 - 9 * (d > 4) for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _chinese_id(text: str) -> bool:
    """Returns whether the date of birth exists and the last character is the ISO 7064, MOD 11-2 check digit."""
    try:
        born = datetime.date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    except ValueError:
        return False
    total = sum(int(c) * weight for c, weight in zip(text, _ID_WEIGHTS))
    return 1900 <= born.year <= 2100 and "10X98765432"[total % 11] == text[17].upper()


def _ip(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if not any(c.isdigit() for c in text):
        return False  # a::b is more likely a name in a program
    # Addresses that belong to nobody identify nobody: 127.0.0.1, 0.0.0.0, ::
    if address.is_loopback or address.is_unspecified:
        return False
    # Four small numbers are more likely a section (27.4.2.3), an OID or a version. A reserved address, a netmask.
    return address.version == 6 or (max(address.packed) >= _LEAST_PART and not address.is_reserved)


_LEAST_PART = 64


def _mail(text: str) -> bool:
    """Returns whether this is not an image name, such as icon@2x.png for high-resolution screens."""
    return text.rpartition(".")[2].lower() not in ("png", "jpg", "jpeg", "gif", "svg", "webp")


def _secret(text: str) -> bool:
    """Returns whether letters and digits are mixed, as in a random key but not in a program's names."""
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text) and len(set(text)) > 8


# The kind; the regular expression; hints: a line without any of these has no match, and without hints, runs of digits
# are searched; a check of a match.
_Pattern = tuple[str, re.Pattern[str], tuple[str, ...], Callable[[str], bool]]


def _compiled(kind: str, regex: str, *hints: str, check: Callable[[str], bool] = bool) -> _Pattern:
    return kind, re.compile(regex, re.ASCII), hints, check


_LABEL = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}\."  # one part of a domain name
_INTEGER_PART = r"(?<!\b\d,)(?<!\b\d\d,)"  # 3,14159265359 is a decimal number in much of the world
_NUMBER = r"(?:(?<![\w.+-])|(?<=[A-Za-z]\.))" + _INTEGER_PART  # text that may precede a number: also Tel.,
_END = r"(?!\w|[.-]\d)"  # and text that may not follow it
_KEYS = {  # by prefix
    ("sk-",): r"sk-[A-Za-z0-9_-]{20,200}",  # OpenAI, Anthropic and others
    ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"): r"gh[pousr]_[A-Za-z0-9]{36,255}",  # GitHub
    ("github_pat_",): r"github_pat_[A-Za-z0-9_]{22,255}",
    ("glpat-",): r"glpat-[A-Za-z0-9_-]{20,64}",  # GitLab
    ("AKIA", "ASIA"): r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # Amazon
    ("AIza",): r"AIza[A-Za-z0-9_-]{35}",  # Google
    ("xox",): r"xox[abeprs]-[A-Za-z0-9-]{10,200}",  # Slack
    ("hf_",): r"hf_[A-Za-z0-9]{30,64}",  # Hugging Face
    ("k_live_", "k_test_"): r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,128}",  # Stripe
    ("npm_", "pypi-"): r"npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,255}",
    ("SG.",): r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",  # SendGrid
    ("eyJ",): r"eyJ[A-Za-z0-9_-]{10,400}\.eyJ[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{10,600}",  # JSON Web Tokens
}
_NAMED_KEY = (
    r"(?i:(?<![a-z0-9])(?:(?:api[_-]?|secret[_-]?|access[_-]?)key|(?:(?:access|auth)[_-]?)?token|(?:client|api)[_-]?secret)"
    r"[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?|\bbearer[ \t]{1,4})"
    r"(?P<value>[A-Za-z0-9_/+.-]{16,128})(?![A-Za-z0-9_/+-])"
)
_NAMES = ("key", "token", "secret", "bearer")
_CARD = r"[2-6]\d{3}(?:([ -]?)\d{4}\1\d{4}\1\d{1,7}|([ -])\d{6}\2\d{4,5})"
_IPV6 = r"(?:[0-9A-Fa-f]{1,4}:{1,2}|::){1,8}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4})?"
# Chinese mobile numbers. Chinese landlines. International (E.164: at most 15 digits), North American.
_CHINESE_MOBILE = r"(?:(?:\+|00)?86[ -]?|\(\+?86\) ?)?1[3-9]\d(?:[ -]?\d{4}){2}"
_MOBILE = r"1[3-9]\d{9}"  # may also be joined to another by a hyphen
_MOBILE_START = rf"(?:{_NUMBER}|(?<=(?<![\w.+-]){_MOBILE}-))"
_MOBILE_END = rf"(?:{_END}|(?=-{_MOBILE}{_END}))"
_CHINESE_LANDLINE = r"(?:0\d{2,3}[ -]|\(0\d{2,3}\) ?)[2-8]\d{2,3}[ -]?\d{4}"
_NORTH_AMERICAN = r"(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}"
_EMAIL = rf"(?<![\w.%+-])[A-Za-z0-9_%+-][\w.%+-]{{0,63}}@(?:{_LABEL}){{1,8}}[A-Za-z]{{2,24}}(?![\w-])"
# Earlier ones win where two overlap.
_PATTERNS = (
    _compiled("EMAIL", _EMAIL, "@", check=_mail),
    *(_compiled("API_KEY", rf"(?<![A-Za-z0-9_-])(?:{key})(?![A-Za-z0-9])", *hints) for hints, key in _KEYS.items()),
    *(_compiled("API_KEY", _NAMED_KEY, *(hint, hint.title(), hint.upper()), check=_secret) for hint in _NAMES),
    _compiled("CHINESE_ID", r"(?<![A-Za-z0-9])[1-9]\d{16}[\dXx](?![A-Za-z0-9])", check=_chinese_id),
    _compiled("CREDIT_CARD", rf"(?<![A-Za-z0-9.-]){_INTEGER_PART}{_CARD}{_END}", check=_luhn),
    _compiled("IP_ADDRESS", rf"(?<![\w:.]){_IPV6}(?![\w:]|\.\d)", ":", check=_ip),
    _compiled("IP_ADDRESS", r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)", check=_ip),
    _compiled("PHONE", _MOBILE_START + _CHINESE_MOBILE + _MOBILE_END),
    _compiled("PHONE", _NUMBER + _CHINESE_LANDLINE + _END),
    _compiled("PHONE", r"(?<![\w+])" + _INTEGER_PART + r"\+[1-9](?:[ .()-]{0,2}\d){7,14}(?!\w)"),
    _compiled("PHONE", _NUMBER + _NORTH_AMERICAN + _END),
)
KINDS = tuple(dict.fromkeys(kind for kind, *_ in _PATTERNS))
_DIGITS = re.compile(r"[+(0-9][0-9 ().+-]{6,}")  # the characters of any number, however it is written


def find_pii(text: str, kinds: Iterable[str] = KINDS) -> list[Finding]:
    """Returns all findings in a text, in order and without overlaps.

    Raises:
        ArgumentError: a kind is unknown, or the text is not a str.

    >>> find_pii("Write to ann@example.com.")
    [Finding(kind='EMAIL', start=9, end=24)]
    """
    instance("text", text, str, "a str")
    kinds = check_kinds(kinds)
    found: list[Finding] = []
    taken = bytearray(len(text))
    # Two more characters, because a pattern looks at the text after it.
    numbers = [(run.start(), run.end() + 2) for run in _DIGITS.finditer(text)]
    for kind, regex, hints, check in _PATTERNS:
        if kind not in kinds:
            continue
        for begin, stop in _lines(text, hints) if hints else numbers:
            for match in regex.finditer(text, begin, stop):
                start, end = match.span(match.lastgroup or 0)
                if check(text[start:end]) and 1 not in taken[start:end]:
                    taken[start:end] = bytes([1]) * (end - start)
                    found.append(Finding(kind, start, end))
    return sorted(found, key=lambda finding: finding.start)


def _lines(text: str, hints: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields the starts and ends of lines with one of the hints, possibly once per hint."""
    for hint in hints:
        at = text.find(hint)
        while at >= 0:
            end = text.find("\n", at)
            end = end if end >= 0 else len(text)
            yield text.rfind("\n", 0, at) + 1, end
            at = text.find(hint, end)


def check_kinds(kinds: Iterable[str]) -> list[str]:
    """Returns the kinds as a list. Raises ArgumentError for a kind that is not one of KINDS."""
    found = list(kinds)
    for kind in found:
        if kind not in KINDS:
            raise ArgumentError(f"unknown kind of personal data {kind!r}; the kinds are {', '.join(KINDS)}")
    return found


def replace_pii(text: str, findings: Sequence[Finding]) -> str:
    """Returns the text with every finding replaced by <KIND>.

    >>> replace_pii("Call 13812345678 now", find_pii("Call 13812345678 now"))
    'Call <PHONE> now'
    """
    parts = []
    at = 0
    for finding in findings:
        parts += [text[at : finding.start], f"<{finding.kind}>"]
        at = finding.end
    return "".join([*parts, text[at:]])
