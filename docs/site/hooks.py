"""Hooks for mkdocs: they add the pages that are made from files outside docs/, and make the links to such files work.

The pages of docs/ are written for GitHub, where a link such as ../csrc/pybpe.h opens the file. On the site, such a link
leads to a page that shows the file, so the site needs no server that hosts the repository.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import links
import reference
import viewers
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).parent
C_HEADERS = [ROOT / "csrc" / name for name in ("pybpe.h", "pybpe_train.h", "pybpe_corpus.h")]
MERMAID = "assets/mermaid.js"
CODE = re.compile(r"<code.*?</code>", re.DOTALL)
OPTION = re.compile(r"(?<![-\w])--[a-z][-\w]*")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and the files that pages load."""
    made = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in links.PAGES.items()}
    written = {file.src_uri: file.content_string for file in files if file.is_documentation_page()}
    made |= links.source_pages(ROOT, {**written, **made})
    made |= {"reference/c.md": reference.c_page(*C_HEADERS), "reference/cli.md": reference.cli_page()}
    made |= viewers.pages(ROOT)
    made |= {f"notebooks/{book.stem}.md": notebook_page(book) for book in (ROOT / "docs/notebooks").glob("*.ipynb")}
    made |= {
        f"assets/{name}": (SITE / name).read_text(encoding="utf-8")
        for name in ("site.css", "icon.svg", "iframe-worker.js")
    }
    made[MERMAID] = (resources.files("mermaidx") / "assets" / "mermaid.js").read_text(encoding="utf-8")
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def notebook_page(book: Path) -> str:
    """Returns a notebook as Markdown, with the outputs that it has."""
    parts = []
    for cell in json.loads(book.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += ("```text\n" + "".join(output["text"]).rstrip() + "\n```" for output in cell.get("outputs", ()))
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Points links to files outside docs/ at the pages that show them."""
    return markdown if page.file.src_uri in reference.GENERATED else links.rewritten(markdown, page.file.src_uri, ROOT)


def on_page_content(html: str, **_: Any) -> str:
    """Marks options in code, because a browser would break a line after one of their hyphens."""
    return CODE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Loads Mermaid on pages with a diagram. Without this, the theme would load Mermaid from a CDN.

    Raises:
        PluginError: the page loads something from another server.
    """
    if foreign := re.search(r'\bsrc="https?:[^"]*"|<link[^>]*href="https?:[^>]*>', output):
        raise PluginError(f"{page.file.src_uri} loads {foreign[0]}: the site must be complete without a network")
    if 'class="mermaid"' not in output:
        return output
    script = "../" * page.url.count("/") + MERMAID
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)
