"""Every relative link of the documentation leads to an existing file, and to an existing heading in it."""

import re
import runpy
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks/RESULTS.md", *sorted((ROOT / "docs").rglob("*.md"))]

CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[`~]*[ \t]*$|`+[^`\n]+`+", re.DOTALL | re.MULTILINE)
LINK = re.compile(
    r"""\]\(\s*<?([^)\s>]+)[^)]*\)      # [text](target), ![text](target), [text](<target> "title")
    | ^[ ]{0,3}\[[^\]]+\]:\s*(\S+)      # [name]: target
    | \b(?:href|src)=["']([^"']+)["']   # HTML""",
    re.VERBOSE | re.MULTILINE,
)


def links(text: str) -> list[str]:
    """Returns the targets of the links of a page, without those in code."""
    return [next(filter(None, found)) for found in LINK.findall(CODE.sub("`code`", text))]


def anchors(text: str) -> set[str]:
    """Returns the names that GitHub gives the headings of a page, and those that the page itself defines."""
    found: dict[str, int] = {}
    names = set(re.findall(r'<a (?:name|id)="([^"]+)"', text))
    fences = re.compile(r"^( *)(```+|~~~+).*?^\1\2[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#{1,6} +(.*?)[ #]*$", fences.sub("", text), re.MULTILINE):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return names


def broken(page: Path) -> list[str]:
    """Returns the broken links of a page."""
    return [target for target in links(page.read_text(encoding="utf-8")) if not leads_somewhere(target, page)]


def leads_somewhere(target: str, page: Path) -> bool:
    if re.match(r"[a-z][a-z+.-]*:", target):
        return not target.startswith("file:")
    path, _, anchor = unquote(target).partition("#")
    file = page.parent / path if path else page
    if path in MADE.get(page.name, ()):
        return True
    inside = file.resolve().is_relative_to(ROOT.resolve()) or not page.is_relative_to(ROOT)
    if path.startswith("/") or not file.exists() or not inside:
        return False
    return not anchor or (file.suffix == ".md" and anchor in anchors(file.read_text(encoding="utf-8")))


# Files that exist only on the site.
MADE = {"viewer.md": ("viewers/english.html", "viewers/chinese.html")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_the_page_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


GOOD = """
[a](there.md) [b](there.md#a-b-c) [c](<there.md#检查点> 'title') ![d](there.md#twice-1) [e](https://f.g)

[h]: there.md

`[a](nowhere.md)`

```
[b](nowhere.md)
```
"""
BAD = """
[a](nowhere.md) [b](there.md#none) [c](#none) ![d](none.png) [e](there.md#no-heading) [f](/etc)

[g]: none.md

<img src="none.svg">
"""


def test_broken_links_are_found(tmp_path: Path) -> None:
    headings = ("# A `b`, [c](d.md)!", "## 检查点", "## Twice", "## Twice", "```\n# no heading\n```")
    (tmp_path / "there.md").write_text("\n\n".join(headings))
    page = tmp_path / "page.md"
    page.write_text(GOOD)
    assert broken(page) == []
    page.write_text(GOOD + BAD)
    assert broken(page) == [
        *("nowhere.md", "there.md#none", "#none", "none.png", "there.md#no-heading", "/etc", "none.md", "none.svg")
    ]


def test_the_page_of_a_package_index_has_no_links_to_files() -> None:
    index_page = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["index_page"]
    assert (
        index_page("[`a.md`](a.md) [b](c/d.py#e) [f](#g) [h](https://i.j)")
        == "`a.md` b (`c/d.py`) [f](#g) [h](https://i.j)"
    )
    readme = index_page((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [target for target in links(readme) if not target.startswith(("https://", "#"))] == []
    assert "tutorial (`docs/tutorial.md`)" in readme
