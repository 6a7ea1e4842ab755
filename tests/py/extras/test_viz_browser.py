"""The page of pybpe viz in Chromium: it encodes as Python does, works with mouse, keyboard and phone, passes automatic
accessibility checks, and makes no network requests.

PYBPE_SCREENSHOTS=folder keeps screenshots to look at.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

from test_viz import HOSTILE, tokenizer  # noqa: E402

import pybpe  # noqa: E402
from pybpe.viz import SAMPLE, write_page  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]

# Milliseconds. Playwright gives up after 5 or 30 seconds, which a busy machine can take for a screenshot.
PATIENCE = 300_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


class Opened:
    """A page in a browser tab, with its console errors and network requests."""

    def __init__(self, browser: Any, folder: Path, text: str | bytes, tokenizers: Any, **settings: Any) -> None:
        path = folder / "page.html"
        write_page(path, text, tokenizers, source="test", max_bytes=settings.pop("max_bytes", 100_000))
        self.tab = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **settings})
        self.tab.set_default_timeout(PATIENCE)
        self.url = path.as_uri()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.complaints.append("a dialog"))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(self.url)
        self.tab.wait_for_selector("body.ready", state="attached")

    def type(self, text: str, expected: list[list[int]]) -> None:
        """Types into the live box, and waits for the ids that each panel must show."""
        self.tab.locator("#typed").fill(text)
        shown = [" ".join(map(str, ids)) for ids in expected]
        sync_api.expect(self.tab.locator("#live .ids")).to_have_text(shown)

    def close(self) -> None:
        assert self.complaints == []
        assert self.requests == [self.url]
        self.tab.close()


def test_the_text_and_what_is_typed(browser: Any, tmp_path: Path) -> None:
    tokenizers = {"one": tokenizer("cl100k"), "two": tokenizer("o200k")}
    page = Opened(browser, tmp_path, SAMPLE, tokenizers)
    for i, tok in enumerate(tokenizers.values()):
        panel = page.tab.locator("#text .panel").nth(i)
        assert panel.locator(".token").count() == tok.count(SAMPLE)
        assert panel.locator(".flow").evaluate("flow => flow.textContent") != ""
    for text in ("it's 'LL \U0001f600\u00a0\u3000\ufeff12345", "</script><img src=x onerror=alert(1)>", "<|end|>a", ""):
        page.type(text, [tok.encode(text) for tok in tokenizers.values()])
    page.close()


def test_a_part_of_a_character_says_of_which(browser: Any, tmp_path: Path) -> None:
    text = "aé一ÿ".encode() + b"\xff"
    page = Opened(browser, tmp_path, text, pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, []))
    hints = []
    for i in range(len(text)):
        page.tab.locator("#text .token").nth(i).hover()
        lines = page.tab.locator("#hint div").all_inner_texts()
        hints.append([line for line in lines if line.startswith("part of")])
    assert hints == [[], *[["part of é"]] * 2, *[["part of 一"]] * 3, *[["part of ÿ"]] * 2, []]
    page.close()


def test_a_merge_tree_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    word = "abcdefghijklmn"
    tokens = {**{i: bytes([i]) for i in range(256)}, **{254 + n: word[:n].encode() for n in range(2, len(word) + 1)}}
    merges = [(word[: n - 1].encode(), word[n - 1].encode()) for n in range(2, len(word) + 1)]
    page = Opened(browser, tmp_path, word, pybpe.Tokenizer(tokens, merges), viewport={"width": 390, "height": 844})
    page.tab.locator("#text .token").click()
    tree = page.tab.locator("#details .tree")
    assert tree.locator(".leaf").count() == len(word)
    assert tree.evaluate("tree => tree.scrollWidth <= tree.clientWidth")
    page.close()


def test_marks_leave_the_text_as_it_is(browser: Any, tmp_path: Path) -> None:
    text = "def f():\n\treturn 1  # x\n\n\nend\n"
    page = Opened(browser, tmp_path, text, tokenizer())
    flow = page.tab.locator("#text .flow")
    assert flow.evaluate("flow => flow.textContent") == text
    mark = "getComputedStyle(document.querySelector('#text .space'), '::before').content"
    assert page.tab.evaluate(mark) == '"·"'
    page.tab.locator("#whitespace").uncheck()
    assert page.tab.evaluate(mark) == "none"
    page.close()


def test_hostile_text_stays_text(browser: Any, tmp_path: Path) -> None:
    page = Opened(
        browser, tmp_path, HOSTILE * 3, {"<img src=x onerror=alert(1)>": tokenizer(), "b": tokenizer("qwen2")}
    )
    assert page.tab.locator("img").count() == 0 and page.tab.locator("script").count() == 2
    assert "</script><script>alert(1)" in page.tab.locator("#text .flow").first.evaluate("flow => flow.textContent")
    page.tab.locator("#query").fill("<script")
    page.close()


def test_keyboard(browser: Any, tmp_path: Path) -> None:
    tok = tokenizer()
    page = Opened(browser, tmp_path, "some tokens in a row\n" * 30, tok)
    tab = page.tab
    tokens = tab.locator("#text .token")
    focused = "Number(document.activeElement.dataset.index)"
    tokens.first.focus()
    assert tab.locator("#hint").is_visible()
    assert str(tok.encode("some")[0]) in tab.locator("#hint").inner_text()
    last = tokens.count() - 1
    for key, index in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Home", 0), ("End", last)):
        tab.keyboard.press(key)
        assert tab.evaluate(focused) == index
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate(focused) == len(tok.encode("some tokens in a row\n"))
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(focused) == 0
    tab.keyboard.press("Escape")
    assert not tab.locator("#hint").is_visible()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "details-heading"
    tab.keyboard.press("Escape")
    assert not tab.locator("#details").is_visible() and tab.evaluate(focused) == 0
    tab.keyboard.press("Tab")  # the group is one stop
    assert tab.evaluate("document.activeElement.id") == "typed"
    page.close()


def test_hover_search_and_merge_tree(browser: Any, tmp_path: Path) -> None:
    tok = tokenizer()
    page = Opened(browser, tmp_path, " the cat", {"a": tok, "b": tokenizer("llama3")})
    tab = page.tab
    tab.locator("#text .panel").first.locator(".token").first.hover()
    assert "once in this text" in tab.locator("#hint").inner_text()
    assert tab.locator(".token.peer").count() >= 1
    word = max(tok.model.vocab, key=lambda i: (i not in tok.special_tokens.values()) * len(tok.model.vocab[i]))
    tab.locator("#query").fill(f"#{word}")
    assert tab.locator("#found").inner_text() == "1 token found, 1 shown"
    tab.locator("#entries button").click()
    details = tab.locator("#details")
    assert details.locator("h2").inner_text() == f"Token {word}"
    merges = len(tok.model.vocab[word]) - 1
    assert details.locator(".steps li").count() == merges
    assert details.locator(".tree .leaf").count() in (0, merges + 1)
    details.locator(".steps button").first.click()
    assert details.locator("h2").inner_text() != f"Token {word}"
    details.locator(".close").click()
    tab.locator("#query").fill("0x20 74")
    wanted = sum(1 for token in tok.model.vocab.values() if b" t" in token)
    assert tab.locator("#found").inner_text().startswith(f"{wanted} tokens found")
    tab.locator("#query").fill("")
    tab.locator("#more").click()
    assert tab.locator("#entries li").count() == 192
    assert tab.evaluate("document.activeElement.tagName") == "BUTTON"
    page.close()


@pytest.mark.filterwarnings("ignore:.*about a hundred times slower")
def test_what_cannot_be_done_is_said(browser: Any, tmp_path: Path) -> None:
    page = Opened(browser, tmp_path, "word " * 100, {"a": tokenizer(r"\w\X|\W|\w"), "b": tokenizer()}, max_bytes=100)
    assert "first 100 of 500 bytes" in page.tab.locator("#cut").inner_text()
    panels = page.tab.locator("#live .panel")
    assert "cannot run in a browser" in panels.first.locator(".warning").inner_text()
    page.type("word", [[], tokenizer().encode("word")])
    page.close()
    path = tmp_path / "page.html"
    without = browser.new_page(java_script_enabled=False)
    without.set_default_timeout(PATIENCE)
    without.goto(path.as_uri())
    assert "JavaScript" in without.locator("noscript").inner_text()
    without.close()


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 360, "light")]
)
def test_looks(browser: Any, tmp_path: Path, name: str, width: int, scheme: str) -> None:
    settings = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    page = Opened(browser, tmp_path, SAMPLE, {"gpt2.json": tokenizer(), "mine.json": tokenizer("o200k")}, **settings)
    tab = page.tab
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    brightness = tab.evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (brightness < 60) == (scheme == "dark")
    for state in ("page", "details"):
        if state == "details":
            tab.locator("#text .token").nth(3).click()
            assert tab.locator("#details").bounding_box()["width"] <= width
        found = axe.Axe().run(tab)
        assert found.violations_count == 0, found.generate_report()
        folder = Path(os.environ.get("PYBPE_SCREENSHOTS", tmp_path))
        shot = tab.screenshot(path=folder / f"{name}-{state}.png", full_page=state == "page")
        assert len(shot) > 10_000
    page.close()


def test_a_large_text(browser: Any, tmp_path: Path) -> None:
    text = "the quick brown fox, 12 lazy dogs. " * 2800
    page = Opened(browser, tmp_path, text, tokenizer())
    assert page.tab.locator("#text .token").count() == tokenizer().count(text)
    page.close()
