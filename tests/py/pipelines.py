"""The pre-tokenizers and normalizers of models, as their tokenizer.json files have them, for tests and docs/models.md.

Sources: the files that the models' authors published; where these were not available, copies of their pre_tokenizer in
other projects, and llama.cpp's list of them (llama_vocab_pre_type in src/llama-vocab.cpp).
"""

from typing import Any

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
WITH_REGEX = {**BYTE_LEVEL, "use_regex": True}
WITHOUT_REGEX = {**BYTE_LEVEL, "use_regex": False}
DIGITS = {"type": "Digits", "individual_digits": True}
CONTIGUOUS = {"type": "Punctuation", "behavior": "Contiguous"}


def added(i: Any, text: str, **flags: Any) -> dict[str, Any]:
    """Returns an entry of added_tokens."""
    every = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": i, "content": text, **every, **flags}


def split(regex: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def splits(*regexes: str) -> dict[str, Any]:
    return sequence(*map(split, regexes), WITHOUT_REGEX)


_CASELESS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = _CASELESS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + _REST
QWEN2 = _CASELESS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + _REST
QWEN35 = _CASELESS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_REST_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CASELESS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CASELESS}?"
    rf"|\p{{N}}{{1,3}}|{_REST_SLASH}"
)
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}|{_REST_SLASH}"
_NO_HAN = "&&[^\\p{Han}]]"
KIMI = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER[:-1]}{_NO_HAN}*{_LOWER[:-1]}{_NO_HAN}+{_CASELESS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER[:-1]}{_NO_HAN}+{_LOWER[:-1]}{_NO_HAN}*{_CASELESS}?|\p{{N}}{{1,3}}|{_REST}"
)
DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_CJK = "[一-龥ࠀ-一가-\ud7ff]+"
# The letters with case, as DeepSeek lists them, up to U+1FBC. (The list continues to U+1E943.)
_DEEPSEEK_LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗ"
    "\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc"
)
DEEPSEEK_LLM = sequence(
    split("[\r\n]"),
    split(rf"\s?[{_DEEPSEEK_LETTERS}]+"),
    split("\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
    split(r"\s+$"),
    split(_CJK),
    DIGITS,
    WITHOUT_REGEX,
)
DEEPSEEK_CODER = sequence(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(_CJK), DIGITS, WITHOUT_REGEX)
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"

# name -> (pre_tokenizer, normalizer)
EXACT: dict[str, tuple[dict[str, Any], str | None]] = {
    "ByteLevel": (WITH_REGEX, None),
    "ByteLevel, NFC": (WITH_REGEX, "NFC"),
    "ByteLevel with add_prefix_space": ({**WITH_REGEX, "add_prefix_space": True}, None),
    "ByteLevel with add_prefix_space, NFC": ({**WITH_REGEX, "add_prefix_space": True}, "NFC"),
    "Digits, ByteLevel": (sequence(DIGITS, WITH_REGEX), None),
    "Digits, ByteLevel, NFC": (sequence(DIGITS, WITH_REGEX), "NFC"),
    "Split llama3": (splits(LLAMA3), None),
    "Split llama3, Removed and inverted": (sequence(split(LLAMA3, "Removed", True), WITHOUT_REGEX), None),
    "Split qwen2, NFC": (splits(QWEN2), "NFC"),
    "Split qwen3.5, NFC": (splits(QWEN35), "NFC"),
    "Split o200k": (splits(O200K), None),
    "Split tekken": (splits(TEKKEN), None),
    "Split kimi": (splits(KIMI), None),
    "Split bloom": (splits(BLOOM), None),
    "Splits deepseek-v3": (splits(*DEEPSEEK_V3), None),
    "Splits deepseek-coder": (DEEPSEEK_CODER, None),
    "Splits deepseek-llm": (DEEPSEEK_LLM, None),
    "Punctuation, ByteLevel, Digits, Split": (
        sequence(CONTIGUOUS, WITH_REGEX, {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")),
        None,
    ),
    "Punctuation, ByteLevel, Digits": (sequence(CONTIGUOUS, WITH_REGEX, DIGITS), None),
    "Split numbers, Split cl100k": (splits(r"\p{N}{1,3}", LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+")), None),
    "Split line ends with MergedWithNext, Split qwen2": (
        sequence(split(r"(?:\r?\n)+(?!\r?\n)", "MergedWithNext"), split(QWEN2), WITHOUT_REGEX),
        None,
    ),
}
