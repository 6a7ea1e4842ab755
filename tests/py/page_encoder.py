"""The encoder of pybpe viz's page, run by node."""

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

import pybpe
from pybpe.viz.data import packed_classes, tokenizer_data
from pybpe.viz.page import encoder_script

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


def encode(tok: pybpe.Tokenizer, data: Sequence[bytes], typed: Sequence[str] = ()) -> dict[str, Any]:
    """Runs the page's encoder on bytes and on typed strings."""
    given = {
        "classes": packed_classes(),
        "tokenizer": tokenizer_data("t", tok, b""),
        "data": [base64.b64encode(text).decode() for text in data],
        "typed": list(typed),
    }
    return run_javascript('"use strict";\n' + encoder_script() + MAIN, given)
