"""Finds the page of the site to which a link to a file of the repository leads."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

# Files outside docs/ that are pages of the site.
PAGES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "results.md",
}
SHOWN_ELSEWHERE = dict.fromkeys(("csrc/pybpe.h", "csrc/pybpe_train.h", "csrc/pybpe_corpus.h"), "reference/c.md")

# Links are those of Markdown, and the images of <picture>.
CODE_OR_LINK = re.compile(
    r"^```.*?^```|`[^`\n]+`|(?:\]\(|\bsrc(?:set)?=\")(?P<to>[^)\s\"]+)[)\"]", re.DOTALL | re.MULTILINE
)
LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".md": "markdown", ".toml": "toml"}


def in_repository(target: str, page: str) -> str | None:
    """Returns the path in the repository that a link of a page leads to, or None for a web address or an anchor."""
    path = target.partition("#")[0]
    if not path or re.match(r"[a-z]+:", target):
        return None
    original = {made: source for source, made in PAGES.items()}.get(page, f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(original), path))


def on_site(path: str) -> str:
    """Returns the page that shows a file or folder of the repository."""
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    return (PAGES | SHOWN_ELSEWHERE).get(path, f"source/{path}.md")


def rewritten(markdown: str, page: str, root: Path) -> str:
    """Returns the Markdown of a page with links that work on the site."""

    def replaced(match: re.Match[str]) -> str:
        path = in_repository(match["to"], page) if match["to"] else None
        if path is None or not (root / path).exists():
            return match[0]
        _, mark, anchor = match["to"].partition("#")
        there = posixpath.relpath(on_site(path), posixpath.dirname(page) or ".") + mark + anchor
        return match[0].replace(match["to"], there)

    return CODE_OR_LINK.sub(replaced, markdown)


def source_pages(root: Path, markdown: Mapping[str, str]) -> dict[str, str]:
    """Returns pages that show the files and folders outside docs/ to which the given pages link."""
    linked = {
        path
        for page, text in markdown.items()
        for match in CODE_OR_LINK.finditer(text)
        if match["to"] and (path := in_repository(match["to"], page)) and (root / path).exists()
    }
    return {uri: source_page(root, path) for path in sorted(linked) if (uri := on_site(path)).startswith("source/")}


def source_page(root: Path, path: str) -> str:
    """Returns a page that shows a file, or the names of the files in a folder."""
    head = f"---\nsearch: {{exclude: true}}\nhide: [toc]\ntitle: {path}\n---\n# `{path}`\n\n"
    if (root / path).is_dir():
        names = (f"{part.name}{'/' * part.is_dir()}" for part in (root / path).iterdir() if part.name[0] not in "_.")
        return head + "This folder of the repository contains:\n\n" + "".join(f"- `{name}`\n" for name in sorted(names))
    text = (root / path).read_text(encoding="utf-8")
    return head + code(text, LANGUAGES.get(Path(path).suffix, "text"), ' linenums="1"')


def code(text: str, language: str, options: str = "") -> str:
    """Returns a block of code whose fence is longer than any in the text."""
    fence = "`" * (3 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}{options}\n{text.rstrip()}\n{fence}\n"
