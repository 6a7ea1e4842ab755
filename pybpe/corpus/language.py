"""Detects the language of a text with eldc: 60 languages, no download (extra `langid`)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..arguments import instance
from ..errors import ArgumentError, MissingExtraError

UNKNOWN = "und"  # ISO 639-2's code for "undetermined"
_SAMPLE = 300  # characters per part


@lru_cache(maxsize=1)
def _detector() -> Any:
    try:
        import eldc
    except ImportError:
        raise MissingExtraError("detecting languages needs a package: pip install 'pybpe[langid]'") from None
    eldc.init()
    return eldc


def detect_language(text: str) -> tuple[str, float]:
    """Returns a text's language as an ISO 639-1 code, and the confidence from 0 to 1.

    Long texts are judged by three parts: the beginning, the middle and the end. Returns UNKNOWN with confidence 0 for a
    text without words, or one that could equally be in another language.

    Raises:
        MissingExtraError: eldc is not installed.
    """
    detector = _detector()
    instance("text", text, str, "a str")
    if len(text) > 3 * _SAMPLE:
        middle = (len(text) - _SAMPLE) // 2
        text = "\n".join((text[:_SAMPLE], text[middle : middle + _SAMPLE], text[-_SAMPLE:]))
    # eldc stops at a NUL, and rejects lone surrogates.
    clean = text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
    result = detector.detect_details(clean)
    if result.language == UNKNOWN:
        return UNKNOWN, 0.0
    return result.language, float(result.scores[result.language])


def check_languages(languages: object) -> None:
    """Raises ArgumentError for codes that the detector does not know.

    Raises:
        MissingExtraError: eldc is not installed.
    """
    known = _detector().LANGUAGES
    for code in languages:  # type: ignore[attr-defined]
        if code not in known:
            raise ArgumentError(f"unknown language {code!r}; the languages are {', '.join(known)}")
