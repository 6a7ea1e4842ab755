r"""Writes tests/py/translations.jsonl: what the translation of many patterns gives, after the engines have agreed.

    PYTHONPATH=. .venv/bin/python tests/py/record_translations.py

Run it again after a change of pybpe/pattern/dialects that changes translations, and read what `git diff` shows.
test_dialects.py explains the patterns, and compares more of them with the engines.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from engines import WORDS
from test_dialects import FILE, SETS, hostile_texts, outcome, random_pattern

# Patterns with one construct, or with two that meet
SMALL = r"""
a ab|c (a) (?:a|b)c a| () ) ( (a a) a|b) [ [a [a- [^ \ (? (?P<n>a (?P<n (?i)a (?i) (?s). (?m)^a$ (?si)a. (?i-s)a.
(?-i)a (?i:a)B (?i-i:a) (?:(?i:a)a) (?x)a a(?i) (?i:k) (?-s:.) (?m:^a) (?m:a$) ^a a$ \Aa a\z a\Z \ba a\B a\b|b (?s:.).
a^ $a \G a*b a+ a?b a*?b a+? a??b a*+b a++ a?+b a** a+* a{2} a{2}? a{2}+ a{0}b a{,2}b a{,}b a{}b a{1} a{1}b a{1,1}
a{1}+ a{1}? a{0,1}b a{1,} a{0,}b a{2,} a{2,3} a{2,3}? a{2,3}+ a{0,3}+b a{3,2} a{,0}b a{0,0}b a{12345} a{2 a{2,3}*
a{2}{3} { a{ } ] a] * +a ? |a a|*b a{,3}+b a{0,1}+b (?:a?)*b (?:a*)?b (?:|a)+ (?:a|b)*c (?:ab)+ (?:ab){2}c (?>a*)b
(?>a|ab)c (?:(?>a))+ (?=a)\w (?!a)\w (?<=a)b (?<!a)b (?=ab)\w (?<=ab)c (?<=a|b)c (?<=a|bc)d (?<=a{2})b (?<=a{1,2})b
(?<=a*)b (?<=(?:ab){2})c (?<=[ab])c (?<=^)a (?<=(?=a))b (?<=[a&&b])c (?=a)(?=\w)\w (?!a)(?!b)\w (?=a) (?!a) (?=a|b)\w
(?=a)[b-d&&c] x(?!a)\w+ (?<n>a) (?P<n>a) (?P=n) (?|a) (?#x)a (?'n'a) (?=a)*b \d \D+ \h \H (?i:\h) (?i:\d) (?i:\s) \w
\W [\w] [^\w] [\W] [\h] [^\h] \p{L} \P{L} \p{^L} \P{^L} \pL \PL \pQ \p{Script=Han} \p{sc=Han} \p{Script=L} \p{Han}
\p{Foo} \p{ \p \P (?i:\p{Han}) (?i:\pN) (?i:\pL) (?i:\p{Lu}) (?i:\p{Alphabetic}) \x41 \x7f \x80 \xff \xe9 \u4e2d
\u00e9 \U0001f600 \x{41} \x{1f600} \u{41} \x{110000} \x{10ffff} \ud800 \udfff \ue000 \ud7ff \U00110000 \x4 \u4e2
\n\r\t\f\v\a \e \. \- \~ \< \> \_ \1 \q \/ \{ \] \^ [a] [ab] [a-c] [^a] [^ab] [^a-c] [a-a] [b-a] [-a] [a-] [^-a]
[a-c-e] [a-c-] []a] [^]a] [] [^] [a\]b] [\-a] [a\-z] [\^] [a^] [(] [.] [$] [\d] [\D] [^\d] [\d\s] [^\d\s] [\D\s]
[\D\S] [\p{L}] [\P{L}] [\p{L}\P{L}] [^\p{L}\P{L}] [\s\S] [^\s\S] [\pL\pN_] [a-\d] [\d-a] [a-\p{L}] [a-\x7a]
[\x41-\x5a] [a-\u4e2d] [a-[b]] [[a]] [[a]b] [a[b]] [[a-c]&&[b-d]] [a-c&&b-d] [a-c--b] [a-c~~b-d] [a||b] [a&&] [&&a]
[a&b] [a-z&&[^b]] [a-z&&b-y&&c-x] [^a&&b] [^[a]] [a--] [a-c--b--c] [a~~b~~c] [[:alpha:]] [[:^alpha:]] [[:digit:]a]
[[:foo:]] [:alpha:] [[:alpha]] [[:word:]] (?i:[[:lower:]]) (?i:[[:^upper:]]) [[:punct:][:space:]] (?i:[a-c]) (?i:[^a])
(?i:1) (?i:[\d]) (?i:[\s]) (?i:[\w]) (?i:[\p{N}]) (?i:s) (?i:[k]) (?i:i) [^a]|[^b] [^a]|b [^a]+|[^b] [^a]{1}|[^b]
[^a]|[^b]{2} [^ab]|[^c] [^a-d]|[^b] [^a-e]|[^b] x[^a]|y[^b] (?:[^a]|x)|[^b] [^a][^b] (?:[^a]|[^b]) [^\d]|[^a]
[^a]?|[^b]x [^a]??x|[^b] [^ab-e]|[^x] (?i:[^k])|[^a] (?i:ss) (?i:st) (?i:ts) (?i:ff) (?i:fi) (?i:if) (?i:fl) (?i:s)s
(?i:s+) (?i:f*)x (?i:s?)x (?i:f{2}) (?i:a+) (?i:s(?:t|x)) (?i:(?:s|x)t) (?i:(?>s)t) (?i:s+t) (?i:xst) (?i:stx)
(?i:s.t) (?i:(?:s)(?:t)) (?i:(?:as)+) (?i:'s|'t|'re|'ve|'m|'ll|'d) [a-\xff] [a-\ud800] [a-\q] [a-\x{110000}]
[\x61-\x63] [a-[] [a-\w] [a-\P{L}] [a-\-] [+-\-] [ab]|cd (?:a|b)|c (?:a(?:bc))d (?:a|(?:b|c))+ a(?:b)c ((a)) (?:(?:a))
(?:ab|cd)e (?>ab)+ (?=a)(?:b|c) (?:(?=a)b)+ (?:a{2}){3} (?:a{2})+ (?:a+)+ (?:a+)*b (?:a|b)?c (?:\b)a (?:^)*a (?:a|^)+
\U00010000 \uffff [^\n] [^\n]+|. \p{gc=Letter} \p{Foobarbaz} [\p{Foobarbaz}]
a\N a|\R \X \Gx \Kx (a)\1 (?P<n>a)(?P=n) (?|a|b) (?V1)a a(?i)b (?r)a (?:cat){e<=1} a{3,1} (?:a*)+ a* (?<=^a)b [a--b]
[a&&b] \p{Cs} \p{gc=L} (?i:[\ud7fb-\ue000]) (?i)[^\s\p{L}] x{ x(?:[^a]|\d[^b]) \z (?i:s)(?i:t)x (?i:[\w-])
(?i:[^a]|[^b]) \U00000041
""".split()
ODD = [
    "a{1, 3}", "(?x: a)",
    "", "a{ 2}", "\\ ", "\\\xe9", "\\\n", "\\\x7f", "\xe9", "\u4e2d", "\x7f", "\x80", "\x00", "\n", "\xa0", "\ue000",
    "(?i:[\xe9])", "(?i:\xe9)", "(?i:\u4e2d)", "(?i:[a-\u4e2d])", "(?i:\u0131)", "(?i:\ud7fc)",
] + ["(" * 10_000]  # fmt: skip


def patterns() -> list[str]:
    rng = random.Random(5)
    return [
        *SMALL,
        *ODD,
        *SETS[: SETS.index("(?i:a)")],
        *(random_pattern(rng, 2) + rng.choice(["", r"|[\s\S]"]) for _ in range(150)),
    ]


def check(pattern: str, source: str, found: list[str | None]) -> None:
    """Compares what the engines do with a pattern and with its translations, `found`."""
    texts = hostile_texts(random.Random(len(pattern)), 12)
    words = None
    for target, other in zip(WORDS, found[1:] * 3):
        if other is not None and not other.startswith("!"):
            words = words or WORDS[source](pattern, texts)
            assert WORDS[target](other, texts) == words, (pattern, source, other, target)


def main() -> None:
    lines = []
    for pattern in dict.fromkeys(patterns()):
        found = {source: outcome(pattern, source) for source in WORDS}
        for source, translations in found.items():
            check(pattern, source, translations)
        lines.append(json.dumps([pattern, *found.values()]))
    Path(FILE).write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
