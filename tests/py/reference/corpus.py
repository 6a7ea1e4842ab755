"""Measures of one text, by their definitions: slow, plain Python without arrays or hashes."""

import re
import unicodedata
from collections import Counter


def kind(c: str) -> str:
    """Returns the class: letter (of a script with or without spaces), digit, space, or other visible character."""
    if c in "\t\n\v\f\r\x85":
        return "space"
    category = unicodedata.category(c)[0]
    if category == "L" and re.match("[\u4e00-\u9fff\u3040-\u30ff\u0e00-\u0e7f]", c):
        return "unspaced"
    return {"L": "letter", "M": "letter", "N": "digit", "Z": "space"}.get(category, "other")


def words(text: str) -> list[str]:
    found = []
    current = ""
    for c in text:
        if kind(c) in ("letter", "digit"):
            current += c
            continue
        found += [current] if current else []
        current = ""
        found += [c] if kind(c) == "unspaced" else []
    return found + ([current] if current else [])


def units_per_word(text: str) -> int:
    units = words(text)
    return 2 if 2 * sum(kind(unit[0]) == "unspaced" for unit in units) > len(units) else 1


def lower(c: str) -> str:
    """Returns the lowercase of a character if it is one character. Both forms of a small sigma are the same."""
    return (c.lower() if len(c.lower()) == 1 else c).replace("ς", "σ")


def folded(text: str) -> list[str]:
    return ["".join(map(lower, word)) for word in words(text)]


def top_ngram_chars(text: str, n: int) -> int:
    n *= units_per_word(text)
    units = folded(text)
    counts = Counter(tuple(units[i : i + n]) for i in range(len(units) - n + 1))
    most = max(counts.values(), default=0)
    return max((sum(map(len, gram)) * most for gram, count in counts.items() if count == most > 1), default=0)


def repeated_ngram_chars(text: str, n: int) -> int:
    n *= units_per_word(text)
    units = folded(text)
    seen = set()
    covered = set()
    for i in range(len(units) - n + 1):
        gram = tuple(units[i : i + n])
        covered |= set(range(i, i + n)) if gram in seen else set()
        seen.add(gram)
    return sum(len(units[i]) for i in covered)


BULLETS = tuple("\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013-*")
ENDS = tuple(".!?\"'\u201d\u2019\u2026;:\u3002\uff01\uff1f\u300d\u300f\uff1b\uff1a\u0964\u061f\u06d4")


def repeats(parts: list[str]) -> tuple[float, float]:
    """Returns the share of parts that occurred before, and the share of characters in them."""
    again = [part for i, part in enumerate(parts) if part in parts[:i]]
    return len(again) / len(parts), sum(map(len, again)) / sum(map(len, parts))


def line_measures(text: str) -> dict[str, float]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return {}
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    found = dict(zip(("repeated_lines", "repeated_line_chars"), repeats(lines)))
    found |= dict(zip(("repeated_paragraphs", "repeated_paragraph_chars"), repeats(paragraphs)))
    kinds = {
        "bullet_lines": [line.startswith(BULLETS) for line in lines],
        "ellipsis_lines": [line.endswith(("...", "\u2026")) for line in lines],
        "short_lines": [
            sum(2 if c >= "\u1100" and not "\ud800" <= c < "\ue000" else 1 for c in line) < 30 for line in lines
        ],
        "terminal_lines": [line.endswith(ENDS) for line in lines],
    }
    return found | {name: sum(values) / len(lines) for name, values in kinds.items()}


def measures(text: str) -> dict[str, float]:
    """Returns the measures by the names of their limits, without min_ and max_, except those that are undefined."""
    units = words(text)
    visible = [kind(c) for c in text if kind(c) != "space"]
    spaced = [word for word in units if kind(word[0]) != "unspaced"]
    found: dict[str, float] = {
        "chars": len(text),
        "words": len(units) / units_per_word(text),
        "distinct_words": len(set(folded(text))),
    }
    if visible:
        found["symbol_ratio"] = visible.count("other") / (len(visible) + 1.5 * visible.count("unspaced"))
        found["digit_ratio"] = visible.count("digit") / len(visible)
    if 2 * len(spaced) > len(units):
        found["mean_word_length"] = sum(map(len, spaced)) / len(spaced)
    if units:
        found["alphabetic_words"] = sum(any(kind(c) != "digit" for c in word) for word in units) / len(units)
        found["repeated_words"] = max(Counter(folded(text)).values()) / len(units)
        marks = text.count("#") + text.count("...") + text.count("\u2026")
        found["hashes_per_word"] = marks / found["words"]
        for n in (2, 3, 5):
            found[f"top_ngrams_{n}"] = top_ngram_chars(text, n) / sum(map(len, units))
            found[f"repeated_ngrams_{n}"] = repeated_ngram_chars(text, n) / sum(map(len, units))
    return found | line_measures(text)
