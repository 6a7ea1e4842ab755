"""pybpe viz: the page is complete, safe and deterministic, and its encoder gives the same ids as Python."""

import base64
import html.parser
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import regex
from commands import pybpe_program, refusal
from texts import CORNER_TEXTS, chinese, english, mixed, random_bytes

import pybpe
from pybpe import _binding, viz
from pybpe.model import Matching
from pybpe.pattern import FROM_RIGHT, NAMES, Digits
from pybpe.viz import (
    PAGE_SCRIPTS,
    SAMPLE,
    _asset,
    cut_text,
    encoder_script,
    javascript_regex,
    make_page,
    packed_classes,
    tokenizer_data,
    write_page,
)

HOSTILE = (
    b"</script><script>alert(1)</script><!-- \" ' ` & \\u003c \x00 \xff\xfe \xe4\xb8 ]]> <|end|> \r\n\t \xe2\x80\xae x"
)
SPECIALS = ["<|end|>", "<|end|>>", "</script>", "né|", "ab|c", "\U0001f600"]


@cache
def tokenizer(pattern: str = "gpt2", digits: Digits = None, normalizer: str | None = None) -> pybpe.Tokenizer:
    text = english()[:50_000] + chinese()[:10_000] + mixed(20_000)
    return pybpe.train(
        iter([text]), vocab_size=900, pattern=pattern, digits=digits, normalizer=normalizer, special_tokens=SPECIALS
    )


class Reader(html.parser.HTMLParser):
    """Collects the elements of a page, the content of its scripts, and its title."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.texts:
            self.texts[self._inside][-1] += data


def unpack(packed: str) -> list[int]:
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(packed):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value, shift = 0, 0
    return numbers


def page_data(page: str) -> dict:
    return json.loads(Reader(page).texts["script"][0])


# ------------------------------------------------------------------------------------------------------
# The page


def test_the_page_holds_the_ids_that_python_gives() -> None:
    tok = tokenizer()
    for text in ("", b"\x00", "a"):
        assert unpack(page_data(make_page(text, tok))["tokenizers"][0]["ids"]) == tok.encode(text)
    data = page_data(make_page(HOSTILE, tok, source="here"))
    (shown,) = data["tokenizers"]
    assert unpack(shown["ids"]) == tok.encode(HOSTILE)
    assert tok.decode_bytes(unpack(shown["ids"])) == HOSTILE
    assert (data["source"], data["shown_bytes"], data["total_bytes"]) == ("here", len(HOSTILE), len(HOSTILE))
    assert shown["size"] == 900 and dict(shown["specials"]) == tok.special_tokens
    assert shown["curve"][-1] == [900, tok.count(HOSTILE)]
    for size, tokens in shown["curve"]:
        assert tokens == tok.prune(vocab_size=size).count(HOSTILE)
    assert shown["curve"][0][0] == 256 + len(SPECIALS) and len(shown["curve"]) == 3


def test_nothing_in_the_text_or_a_name_becomes_html() -> None:
    plain = Reader(make_page("x", {"name": tokenizer()}, source="source"))
    name = "</title></script><img src=x onerror=alert(1)>\"'&@@data@@"
    page = make_page(HOSTILE * 20, {name: tokenizer(), "<!--<script>": tokenizer("o200k")}, source=name)
    hostile = Reader(page)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert hostile.texts["title"][0].startswith(name)
    data = json.loads(hostile.texts["script"][0])
    assert data["source"] == name and data["tokenizers"][0]["name"] == name
    assert not set("<>&") & set(hostile.texts["script"][0]) and hostile.texts["script"][0].isascii()
    assert "</script" not in encoder_script() and "<!--" not in encoder_script()


def test_the_page_loads_nothing() -> None:
    page = Reader(make_page(SAMPLE, tokenizer()))
    for tag, attributes in page.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:,")), (tag, attributes)
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    (policy,) = [a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "http" not in policy
    code = page.texts["script"][1] + page.texts["style"][0]
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "fetch(", "import("):
        assert forbidden not in code
    assert re.findall(r"https?:[^\"]*", code) == ["http://www.w3.org/2000/svg"]


def test_the_page_is_the_same_each_time(tmp_path: Path) -> None:
    """A list of tokenizers is numbered."""
    tokenizers = {"tokenizer 1": tokenizer(), "tokenizer 2": tokenizer("qwen2")}
    write_page(tmp_path / "page.html", SAMPLE, tokenizers)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == make_page(SAMPLE, list(tokenizers.values()))


def test_a_long_text_is_cut_between_characters() -> None:
    data = page_data(make_page("né" * 100, tokenizer(), max_bytes=5))
    assert (data["shown_bytes"], data["total_bytes"]) == (4, 300)
    assert tokenizer().decode(unpack(data["tokenizers"][0]["ids"])) == "nén"
    assert page_data(make_page(b"abc", tokenizer(), total_bytes=7))["total_bytes"] == 7
    assert cut_text("中".encode() * 2, 5) == "中".encode()
    assert cut_text(b"\x80" * 9, 5) == b"\x80\x80"
    assert cut_text("é".encode(), 1) == b"\xc3"


def test_a_file_name_that_is_not_utf_8(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "x", {"tok": tokenizer()}, source="\udcff.txt")
    assert Reader((tmp_path / "page.html").read_text(encoding="utf-8")).texts["title"] == ["\ufffd.txt · tok"]


def test_bad_arguments() -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="1 to 4 tokenizers, not 0"):
        make_page("x", {})
    with pytest.raises(pybpe.errors.ArgumentError, match="not 5"):
        make_page("x", {str(i): tokenizer() for i in range(5)})
    with pytest.raises(pybpe.errors.ArgumentError, match="max_bytes"):
        make_page("x", tokenizer(), max_bytes=0)
    for wrong in (None, "tok.json", 3, [tokenizer(), None], {"a": "tok.json"}, {1: tokenizer()}):
        with pytest.raises(pybpe.errors.ArgumentError, match="must be a"):
            make_page("x", wrong)  # type: ignore[arg-type]


def test_a_notebook_shows_the_page() -> None:
    tok, text = tokenizer(), 'a "quoted" </script> & 北京'
    page = viz.show(text, {"<b>": tok}, height=300)
    assert page.html == make_page(text, {"<b>": tok}) and repr(page).startswith("Page(")
    frame = Reader(page._repr_html_())
    assert frame.tags[0][0] == "iframe" and len(frame.tags) == 1
    attributes = frame.tags[0][1]
    assert attributes["srcdoc"] == page.html and attributes["sandbox"] == "allow-scripts"
    assert "height: 300px" in attributes["style"]
    for height in (0, "3", None):
        with pytest.raises(pybpe.errors.ArgumentError, match="height must be"):
            viz.show(text, tok, height=height)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------
# The encoder in JavaScript, run by node

MAIN = """
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const tokenizer = new Tokenizer(input.tokenizer, readShadows(input.classes));
const texts = [...input.data.map((data) => decodeUtf8(atob(data))), ...input.typed.map(wellFormed)];
const output = {
  why: tokenizer.whyNotLive,
  ids: tokenizer.words ? texts.map((text) => tokenizer.encode(text)) : null,
  tokens: tokenizer.tokens.map((bytes) => btoa(bytes)),
  again: texts.map((text) => btoa(encodeUtf8(text))),
};
process.stdout.write(JSON.stringify(output));
"""


def run_javascript(script: str, data: object) -> Any:
    """Returns the JSON value that a script prints for a JSON input."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    result = subprocess.run([node, "-e", script], input=json.dumps(data).encode(), capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def encode_in_page(tok: pybpe.Tokenizer, data: Sequence[bytes], typed: Sequence[str] = ()) -> dict[str, Any]:
    """Runs the page's encoder on bytes and on typed strings."""
    given = {
        "classes": packed_classes(),
        "tokenizer": tokenizer_data("t", tok, b""),
        "data": [base64.b64encode(text).decode() for text in data],
        "typed": list(typed),
    }
    return run_javascript('"use strict";\n' + encoder_script() + MAIN, given)


def class_boundaries() -> str:
    """Tests the first and last code points of every run of a class, in a word and alone."""
    classes = _binding.unicode_classes()
    points = [i for i in range(1, len(classes)) if classes[i] != classes[i - 1]]
    points = sorted({p for i in points for p in (i - 1, i) if not 0xD800 <= p < 0xE000} | {0x10FFFF, 0})
    return "".join(f"a{chr(p)} 1{chr(p)}{chr(p)}'{chr(p)}s\n" for p in points)


def hostile_texts() -> list[bytes]:
    rng = random.Random(5)
    atoms = [*("a", "Z", "é", "中", "ǅ", "\u0301", "ʰ", "1", "²", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000")]
    atoms += [*("'s", "'LL", "'\u017f", "'RE", ".", "/", "!", "\u0085", "\ufeff", "\u200b", "\x1c", "\U0001f600")]
    made = ["".join(rng.choices(atoms, k=rng.randint(1, 40))) for _ in range(300)]
    whole = [
        *CORNER_TEXTS, *made, *SPECIALS, "".join(SPECIALS), "x<|end|>>ab|cné|", mixed(20_000, 9), class_boundaries(),
    ]  # fmt: skip
    invalid = [b"\xe4\xb8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"]
    return [*(text.encode() for text in whole), HOSTILE, *invalid, bytes(range(256)), random_bytes(5000, 1)]


PATTERNS: list[tuple[str, Digits]] = [*((name, None) for name in NAMES), ("gpt2", 1), ("cl100k", FROM_RIGHT)]


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "digits"), PATTERNS)
def test_the_page_encodes_as_python_does(pattern: str, digits: Digits) -> None:
    tok = tokenizer(pattern, digits)
    texts = hostile_texts()
    typed = ["\ud800", "a\udc80b", "\udfff\ud800x", "\U0001f600\ud83d", "it's\x00"]
    got = encode_in_page(tok, texts, typed)
    assert [base64.b64decode(token) for token in got["tokens"]] == list(tok.model.tokens)
    assert [base64.b64decode(text) for text in got["again"][: len(texts)]] == texts
    for text, ids in zip([*texts, *typed], got["ids"]):
        assert ids == tok.encode(text), text


def whole_words(whole: bool) -> pybpe.Tokenizer:
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"he", 257: b" hello", 258: b"hel"}
    tok = pybpe.Tokenizer(vocab, [(b"h", b"e")])
    return pybpe.tokenizer.of_model(replace(tok.model, whole_words=whole))


def reused_token() -> pybpe.Tokenizer:
    """Two merges spell "aaa"; ids are not in the order of merges; a special looks like a token."""
    vocab = {i + 3: bytes([i]) for i in range(256)} | {0: b"aaaa", 1: b"aaa", 2: b"aa", 260: b"ab"}
    merges = [(b"a", b"a"), (b"aa", b"a"), (b"a", b"aa"), (b"aa", b"aa"), (b"a", b"b")]
    return pybpe.Tokenizer(vocab, merges, ["aab"])


TO_NORMALIZE = [*map(str.encode, ("e\u0301", "ﬁ ½ Å", mixed(3000, 4), "\uac00\u11a8", "１２")), b"e\xcc\x81\xff\xcc"]
HELLOS = [b"he", b"hello hello hel", b"hel", b" hello", b" hellohello"]
RUNS_OF_A = [b"a" * n for n in (1, 2, 3, 4, 5, 7, 1000, 20_001)] + [b"aab aaab", b"ab" * 5000 + b"a" * 99]
INVALID = [HOSTILE, random_bytes(500, 3), b"\xf0\x9f\x98\x80<|end|>\xed\xa0"]


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda: tokenizer(normalizer="NFC"), TO_NORMALIZE),
        (lambda: tokenizer(normalizer="NFKC"), TO_NORMALIZE),
        (reused_token, RUNS_OF_A),
        (lambda: whole_words(True), HELLOS),
        (lambda: whole_words(False), HELLOS),
        (lambda: tokenizer(r"(?i:[a-z]+)|\s++|[^\s]"), [english()[:5000].encode(), *INVALID]),
    ],
    ids=["NFC", "NFKC", "a token twice", "whole words", "no whole words", "custom pattern"],
)
def test_the_page_encodes_as_an_odd_tokenizer_does(make: Callable[[], pybpe.Tokenizer], texts: list[bytes]) -> None:
    tok = make()
    got = encode_in_page(tok, texts)
    assert got["ids"] == [tok.encode(text) for text in texts]
    assert [base64.b64decode(token) for token in got["tokens"]] == list(tok.model.tokens)


def test_what_keeps_the_page_from_encoding() -> None:
    model = tokenizer().model
    cases = {
        "it adds a space before each text": replace(model, prefix_space=True),
        "its special token '<|end|>' has lstrip on": replace(model, matching={"<|end|>": Matching(lstrip=True)}),
    }
    for why, changed in cases.items():
        pattern = tokenizer_data("x", pybpe.tokenizer.of_model(changed), b"a <|end|>")["pattern"]
        assert pattern["javascript"] is None and pattern["why"].startswith(why)
    assert tokenizer_data("x", tokenizer(), b"a <|end|>")["pattern"]["javascript"] is not None


# ------------------------------------------------------------------------------------------------------
# Patterns in JavaScript

TRANSLATABLE = [
    r"\p{L}+|\p{N}{1,2}|[^\s\p{L}\p{N}]+|\s+",
    r"(?i:[a-k]+)|(?i:s)|(?i:I)|[^a-z]",
    r"(?i:[^iks])|.",
    r"(?>a|ab)c|[\s\S]",
    r"a++b?|a{2,3}+b|\w+?|\W",
    r".+$|\n",
    r"(?<=a)b|(?<!a)c|(?=d)d|(?!e).|\s",
    r"\A\d+|\D+\Z|\D|\d",
    r"[\]a\-^]+|[^\]]",
    r"\p{Han}+|\p{Script=Greek}|\P{Lu}|\pL",
    r"a{,2}b|(a|b){2}|(?:)x|[\x41-\u0043]|\S|\s",
    r"\t|\r|[\t\r]|\\|\.|\-|/|[^\\]",
    r"\ba\w*\b|\B.|\w|\s",
    r"(?i)a[b-d]+|(?P<x>e)d|(?s:.)",
    r"\p{Alphabetic}+|[\W]|\d|(?i:\p{Lo})",
    r"(?:a|ab)++c?|(?:1?2){1,2}+|[^\S\n]+|(?m:^.)",
]

UNTRANSLATABLE = {
    r"(a)\1": r"\1",
    r"a*": "match the empty string",
    r"(?=a)|b": "match the empty string",
    r"[a||b]": "'||'",
    r"[]a]": "first in a class",
    r"[[:alpha:]]": "'[:alpha:]'",
    r"(?i:é)": "'é'",
    r"(?i:\p{Lu})": "case",
    r"(?:ab){e<=1}": "{e<=1}",
    r"\p{Cn}|a": r"\p{Cn}",
    r"(?<=(?>a))b": "lookbehind",
    r"\X": r"\X",
}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", TRANSLATABLE)
def test_translated_patterns_match_the_same(pattern: str) -> None:
    rng = random.Random(3)
    letters = "aabbcdeiIsSkK12\u0130\u0131\u017f\u212a \n\n\r\t\u0085\ufeff\u2028中αΑé-^]\\./x\x1cA_\u0301"
    texts = ["".join(rng.choices(letters, k=rng.randint(1, 25))) for _ in range(400)]
    texts += ["a\n", "a\n\n", "\n", "aab", "aaab", "12x", "x12\n", "中文αβ"]
    script = """
    const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const words = makePretokenizer(input.source, null);
    process.stdout.write(JSON.stringify(input.texts.map(words)));
    """
    got = run_javascript(encoder_script() + script, {"source": javascript_regex(pattern), "texts": texts})
    assert got == [list(pybpe.tokenizer.Pattern(pattern)._words(text)) for text in texts]


@pytest.mark.parametrize("pattern", UNTRANSLATABLE)
def test_other_patterns_are_refused_with_the_reason(pattern: str) -> None:
    regex.compile(pattern)
    with pytest.raises(pybpe.errors.UnsupportedError, match=re.escape(UNTRANSLATABLE[pattern])):
        javascript_regex(pattern)


@pytest.mark.filterwarnings("ignore:the pattern")
def test_the_page_of_a_pattern_without_translation_says_so() -> None:
    tok = tokenizer(r"\w\X|\W|\w")
    shown = page_data(make_page("some words", tok))["tokenizers"][0]
    assert shown["pattern"]["javascript"] is None and r"\X" in shown["pattern"]["why"]
    assert encode_in_page(tok, [b"x"])["ids"] is None


def test_the_scripts_are_valid() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    whole = encoder_script() + "".join(map(_asset, PAGE_SCRIPTS))
    result = subprocess.run([node, "--check", "-"], input=whole.encode(), capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()


def test_characters_without_a_shape_do_not_look_like_bytes() -> None:
    texts = ["\u3000", "\u00a0", "\u2028", "\x00", "a", "\udce4"]  # the last represents the byte 0xE4
    script = encoder_script() + _asset("display.js")
    script += 'process.stdout.write(JSON.stringify(JSON.parse(require("fs").readFileSync(0, "utf8")).map(standIn)));'
    assert run_javascript(script, texts) == ["U+3000", "NBSP", "U+2028", "NUL", None, "E4"]


# ------------------------------------------------------------------------------------------------------
# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viz")
    tokenizer().save(folder / "tok.json")
    tokenizer("llama3").save(folder / "other.json")
    (folder / "novel.txt").write_text(english()[:200_000], encoding="utf-8", newline="")
    return folder


def test_the_command_shows_a_file(folder: Path) -> None:
    result = pybpe_program("viz", "novel.txt", "-t", "tok.json", "-t", "other.json", "-o", "a.html", cwd=folder)
    assert b"the first 100,000 bytes" in result.stdout and result.stderr == b""
    data = page_data((folder / "a.html").read_text(encoding="utf-8"))
    assert [shown["name"] for shown in data["tokenizers"]] == ["tok.json", "other.json"]
    size = (folder / "novel.txt").stat().st_size
    assert (data["source"], data["shown_bytes"], data["total_bytes"]) == ("novel.txt", 100_000, size)


def test_the_command_shows_words_standard_input_or_a_sample(folder: Path) -> None:
    typed = HOSTILE.replace(b"\0", b"")  # with it, this is binary data
    for args, stdin, text in (
        (["--text", "Hello, world"], b"", b"Hello, world"),
        (["-", "--keep-crlf"], typed, typed),
        ([], b"", SAMPLE),
    ):
        command = ("viz", *args, "-t", "tok.json", "-o", "-", "--quiet")
        page = pybpe_program(*command, stdin=stdin, cwd=folder).stdout.decode()
        assert unpack(page_data(page)["tokenizers"][0]["ids"]) == tokenizer().encode(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("novle.txt -t tok.json -o x.html", "novle.txt: no such file. If you mean this text, use --text"),
        ("Hello -t tok.json -o x.html", "--text"),
        ("novel.txt --text Hello -t tok.json -o x.html", "use a file or --text, not both"),
        ("-t missing.json -o x.html", "missing.json"),
        ("-t tok.json -o tok.json/such.html", "tok.json"),
        ("-t tok.json -o x.html --max-bytes 0", "--max-bytes must"),
        ("-t tok.json -o x.html -t tok.json", "tok.json: this tokenizer is given twice"),
    ],
)
def test_bad_input_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str) -> None:
    monkeypatch.chdir(folder)
    assert message in refusal(f"viz {arguments}")
    assert not (folder / "x.html").exists()
