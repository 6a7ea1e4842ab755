"""The language of a text, by eldc: 60 languages, no download (extra `langid`)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..arguments import instance
from ..errors import ArgumentError, MissingExtraError

UNKNOWN = "und"  # as ISO 639-2 calls it: undetermined
_SAMPLE = 300  # characters a part


@lru_cache(maxsize=1)
def _detector() -> Any:
    try:
        import eldc
    except ImportError:
        raise MissingExtraError("recognising languages needs a package: pip install 'pybpe[langid]'") from None
    eldc.init()
    return eldc


def detect_language(text: str) -> tuple[str, float]:
    """A text's language as its ISO 639-1 code, and the confidence, 0 to 1.

    Long texts are judged by three parts: from the begin, the middle and the end. UNKNOWN, with 0, for a text
    without words, or one that could as well be of some other language.

    Raises:
        MissingExtraError: eldc is not installed.
    """
    detector = _detector()
    instance("text", text, str, "a str")
    if len(text) > 3 * _SAMPLE:
        middle = (len(text) - _SAMPLE) // 2
        text = "\n".join((text[:_SAMPLE], text[middle : middle + _SAMPLE], text[-_SAMPLE:]))
    # A NUL ends a text for eldc; a lone surrogate is no text for it.
    clean = text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
    result = detector.detect_details(clean)
    if result.language == UNKNOWN:
        return UNKNOWN, 0.0
    return result.language, float(result.scores[result.language])


def check_languages(languages: object) -> None:
    """ArgumentError for codes that the detector doesn't know.

    Raises:
        MissingExtraError: eldc is not installed.
    """
    known = _detector().LANGUAGES
    for code in languages:  # type: ignore[attr-defined]
        if code not in known:
            raise ArgumentError(f"language {code!r} is unknown; there are {', '.join(known)}")
