"""The content security policy of the pages that pybpe writes."""

from __future__ import annotations

import base64
import hashlib


def content_policy(style: str, script: str | None) -> str:
    """Returns a policy that allows this style and this script, if there is one, and nothing else."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    scripts = f"script-src {source(script)}; " if script is not None else ""
    return f"default-src 'none'; style-src {source(style)}; {scripts}img-src data:; base-uri 'none'; form-action 'none'"
